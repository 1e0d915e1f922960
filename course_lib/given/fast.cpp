// A step of MiniGPT for one text, and the choice of its next token, without a line of Python inside.
//
// fast.py compiles this file and hands over pointers. All matrices are (out, in) and contiguous, in
// float32 or in int8 with one scale a row; everything else is float32.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

template <class Weight>
struct Matrix {
    const Weight* weight;  // (out, in)
    const float* scale;    // (out), or null: then weights are what they say
    int out, in;
};

// e to the x within 2e-7 of itself: 2^n times a polynomial, in a form that compilers turn into SIMD
inline float exponential(float x) {
    x = std::min(std::max(x, -87.0f), 88.0f);
    const float n = std::floor(x * 1.44269504f + 0.5f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const float y = p * r * r + r + 1.0f;
    const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return y * power;
}

inline float dot(const float* a, const float* b, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// y = W x. Four rows at a time: one sum alone would wait for its own last addition
template <class Weight>
void multiply(const Matrix<Weight>& m, const float* x, float* y) {
    int row = 0;
    for (; row + 4 <= m.out; row += 4) {
        const Weight* w0 = m.weight + static_cast<size_t>(row) * m.in;
        const Weight *w1 = w0 + m.in, *w2 = w1 + m.in, *w3 = w2 + m.in;
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int i = 0; i < m.in; ++i) {
            s0 += x[i] * static_cast<float>(w0[i]);
            s1 += x[i] * static_cast<float>(w1[i]);
            s2 += x[i] * static_cast<float>(w2[i]);
            s3 += x[i] * static_cast<float>(w3[i]);
        }
        y[row] = s0, y[row + 1] = s1, y[row + 2] = s2, y[row + 3] = s3;
    }
    for (; row < m.out; ++row) {
        const Weight* w = m.weight + static_cast<size_t>(row) * m.in;
        float sum = 0;
        for (int i = 0; i < m.in; ++i) sum += x[i] * static_cast<float>(w[i]);
        y[row] = sum;
    }
    if (m.scale)
        for (int i = 0; i < m.out; ++i) y[i] *= m.scale[i];
}

void normalise(const float* x, const float* weight, const float* bias, float* y, int n) {
    float mean = 0, square = 0;
    for (int i = 0; i < n; ++i) mean += x[i];
    mean /= n;
    for (int i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
    const float inverse = 1.0f / std::sqrt(square / n + 1e-5f);
    for (int i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
}

// one head looks at the positions so far; keys and values are `stride` floats apart
void attend(const float* q, const float* keys, const float* values, float* scores, float* y,
            int positions, int stride, int size) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(size));
    float best = -INFINITY, total = 0;
    for (int t = 0; t < positions; ++t) {
        scores[t] = scale * dot(q, keys + static_cast<size_t>(t) * stride, size);
        best = std::max(best, scores[t]);
    }
    for (int t = 0; t < positions; ++t) scores[t] = exponential(scores[t] - best);
    for (int t = 0; t < positions; ++t) total += scores[t];
    std::fill(y, y + size, 0.0f);
    for (int t = 0; t < positions; ++t) {
        const float weight = scores[t] / total;
        const float* v = values + static_cast<size_t>(t) * stride;
        for (int i = 0; i < size; ++i) y[i] += weight * v[i];
    }
}

// GPT-2's GELU: 0.5 x (1 + tanh u) is x / (1 + exp(-2u))
void gelu(float* x, int n) {
    for (int i = 0; i < n; ++i) {
        const float u = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = x[i] / (1.0f + exponential(-2.0f * u));
    }
}

struct Shape {
    int32_t vocab, block, layers, heads, width;
};

// What fast.py hands over, in its order: a matrix is two pointers, weight and scale
template <class Weight>
struct Reader {
    const void* const* next;
    const float* vector() { return static_cast<const float*>(*next++); }
    Matrix<Weight> matrix(int out, int in) {
        const auto* weight = static_cast<const Weight*>(*next++);
        return {weight, vector(), out, in};
    }
};

template <class Weight>
void step(const Shape& s, const void* const* parts, float* cache, int token, int position,
          float* logits) {
    const int width = s.width, size = width / s.heads;
    std::vector<float> x(width), y(width), mixed(width), qkv(3 * width), hidden(4 * width);
    std::vector<float> scores(position + 1);
    Reader<Weight> read{parts};
    const Matrix<Weight> head = read.matrix(s.vocab, width);
    const float *embedding = read.vector(), *places = read.vector();
    for (int i = 0; i < width; ++i)
        x[i] = embedding[static_cast<size_t>(token) * width + i] +
               places[static_cast<size_t>(position) * width + i];
    for (int layer = 0; layer < s.layers; ++layer) {
        const float *norm = read.vector(), *bias = read.vector();
        normalise(x.data(), norm, bias, y.data(), width);
        multiply(read.matrix(3 * width, width), y.data(), qkv.data());
        // the cache is (layers, 2, block, width): all keys of a layer, then all its values
        float* keys = cache + static_cast<size_t>(layer) * 2 * s.block * width;
        float* values = keys + static_cast<size_t>(s.block) * width;
        std::copy_n(qkv.data() + width, width, keys + static_cast<size_t>(position) * width);
        std::copy_n(qkv.data() + 2 * width, width, values + static_cast<size_t>(position) * width);
        for (int h = 0; h < width; h += size)
            attend(qkv.data() + h, keys + h, values + h, scores.data(), mixed.data() + h,
                   position + 1, width, size);
        multiply(read.matrix(width, width), mixed.data(), y.data());
        for (int i = 0; i < width; ++i) x[i] += y[i];
        norm = read.vector(), bias = read.vector();
        normalise(x.data(), norm, bias, y.data(), width);
        multiply(read.matrix(4 * width, width), y.data(), hidden.data());
        gelu(hidden.data(), 4 * width);
        multiply(read.matrix(width, 4 * width), hidden.data(), y.data());
        for (int i = 0; i < width; ++i) x[i] += y[i];
    }
    const float *norm = read.vector(), *bias = read.vector();
    normalise(x.data(), norm, bias, y.data(), width);
    multiply(head, y.data(), logits);
}

}  // namespace

extern "C" {

void step_float(const Shape* s, const void* const* parts, float* cache, int token, int position,
                float* logits) {
    step<float>(*s, parts, cache, token, position, logits);
}

void step_int8(const Shape* s, const void* const* parts, float* cache, int token, int position,
               float* logits) {
    step<int8_t>(*s, parts, cache, token, position, logits);
}

// The next token of one row by the course's rules: temperature, top-k, top-p, inverse CDF at u.
// `temperature` 0 is greedy; `top_k` 0 and `top_p` 1 are off
int choose(const float* logits, int vocab, double temperature, int top_k, double top_p, double u) {
    const int best = static_cast<int>(std::max_element(logits, logits + vocab) - logits);
    if (temperature == 0) return best;
    // ids by falling logit, equal ones by rising id; only as many in order as are asked for
    std::vector<int> order(vocab);
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](int a, int b) {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    const auto weight = [&](int id) {
        const float x = (logits[id] - logits[best]) / static_cast<float>(temperature);
        return static_cast<double>(x > -87.0f ? exponential(x) : std::exp(x));
    };
    int kept = vocab, sorted = 0;
    const auto sort_up_to = [&](int n) {
        if (n <= sorted) return;
        std::partial_sort(order.begin() + sorted, order.begin() + n, order.end(), before);
        sorted = n;
    };
    if (top_k > 0 && top_k < vocab) {
        sort_up_to(kept = top_k);
        const float threshold = logits[order[top_k - 1]];
        // what ties with the k-th stays
        std::partition(order.begin() + kept, order.end(),
                       [&](int id) { return logits[id] == threshold; });
        while (kept < vocab && logits[order[kept]] == threshold) ++kept;
        sort_up_to(kept);
    }
    if (top_p < 1) {
        double total = 0, mass = 0;
        for (int i = 0; i < kept; ++i) total += weight(order[i]);
        int nucleus = 0;
        do {
            if (nucleus == sorted) sort_up_to(std::min(kept, 2 * sorted + 64));
            mass += weight(order[nucleus++]);
        } while (nucleus < kept && mass < top_p * total);
        kept = nucleus;
    }
    if (kept < vocab) std::sort(order.begin(), order.begin() + kept);
    double total = 0, mass = 0;
    for (int i = 0; i < kept; ++i) total += weight(order[i]);
    int last = best;
    for (int i = 0; i < kept; ++i) {
        const double share = weight(order[i]);
        if (share > 0) last = order[i];
        if ((mass += share) > u * total) return order[i];
    }
    return last;  // u was so near to 1 that rounding swallowed the difference
}

}  // extern "C"
