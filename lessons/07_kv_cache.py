# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 7: KV cache, or reading every token once
#
# So far our model is like a person who has to read a book from page one again before writing each next word. It needn't: most of what it computes in a step it has computed in the step before. In this lesson we keep that, and find out what it saves, what it
# costs, and where it ends.
#
# **When you are through, you can**
#
# - say what may be kept from step to step, why, and why not more;
# - write the mask, the attention and the cache, and use them: *prefill* for the prompt, *decode* for each new token;
# - show that the answers stay the same, and what "the same" means for floating-point numbers;
# - count the work, measure the time, and compute the memory;
# - say what happens when the window is full, and why cropping the cache is wrong.
#
# **Time:** about 100 minutes; sections 2 to 5 hold the tasks, and after each of them is a good place for a break. **You need:** lesson 1 (causality, the loop). Lessons 2 to 6 are not used.

# %%
from course_lib.given.notebook import start

start("kv_cache")

# %%
import time

import torch
from torch.nn import functional as F

from course_lib.checks.models import tiny_gpt
from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.kv_cache import KVCache, attend, causal_mask, decode_step, prefill

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. The same work again
#
# **Predict.** A conversation of 1,000 tokens, and the answer has 100. The loop of lesson 1 hands the whole text to the model for each new token. How many positions does the model work through in all? And how many different positions are there?

# %%
again = sum(1000 + step for step in range(100))
print(f"{again:,} positions, of which {1000 + 99:,} are different")

# %% [markdown]
# (99, not 100: the last token is chosen, and nobody has to read it any more.)
#
# Nearly a hundred times the necessary work, *if* nothing changes for a position when text is added behind it. Let us look inside. In each layer the *attention* makes three vectors for each position:
#
# - a **query**: what am I looking for?
# - a **key**: what can be found here?
# - a **value**: what do I hand over to those who find me?


# %%
def inside(ids: torch.Tensor, layer: int) -> tuple[torch.Tensor, ...]:
    """The queries, keys and values (1, T, 256) that a layer makes of a text."""
    caught = []
    qkv = model.blocks[layer].attention.qkv
    with (
        torch.inference_mode(),
        qkv.register_forward_hook(lambda module, inputs, output: caught.append(output)),
    ):
        model(ids)
    return caught[0].chunk(3, dim=-1)


# %% [markdown]
# **Predict.** We append one token to a text. Which of the old positions' queries, keys and values change in the *last* layer, which has seen everything that the other layers did?

# %%
ids = torch.tensor([tokenizer.encode("Once upon a time, there was a little girl named Mia")])
shorter, longer = inside(ids[:, :-1], layer=3), inside(ids, layer=3)
for name, old, new in zip(("queries", "keys", "values"), shorter, longer, strict=True):
    same = torch.allclose(new[:, :-1], old, atol=1e-4)
    print(f"{name}: {old.shape[1]} positions, then {new.shape[1]}; the old ones unchanged: {same}")

# %% [markdown]
# None. A position sees itself and what stands before it, so nothing that comes later can change what was computed for it. It was wasted work, and it can be *kept*.
#
# What does a new token need of the old ones? It compares *its* query with *their* keys, and takes a mean of *their* values. So keys and values are kept, for each layer: that is the KV cache.
#
# <details><summary>And the queries? Why is there no Q cache?</summary>
#
# The query of an old position serves that position alone: it was used once, when that position looked around, and its result is there. Nobody else ever asks for it.
#
# </details>
#
# ## 2. Who may look at whom
#
# Without a cache the rule of causality is a triangle: query i looks at the keys 0 to i. With a cache the model gets the *new* positions only. They bring their own queries, but they look at *all* keys.
#
# **Predict.** Three positions are in the cache, two new ones come. Which shape does the table "who may look at whom" have, and how many cells are forbidden?

# %%
by_hand = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
plots.grid(by_hand, ["may not look", "may look"], [3, 4], range(5), "Two new positions, three kept")

# %% [markdown]
# > **Causal mask.** `T_new` rows and `T_total` columns. The queries are the *last* of the positions, so the triangle sits in the bottom right corner, and the newest query sees every key.
#
# ### Your turn: the mask
#
# Open **`course_lib/kv_cache.py`** and write `causal_mask`. Have in mind: at which position stands query i? What does one single new token see? What is there to say about more queries than keys?

# %%
causal_mask(2, 4)

# %% [markdown]
# ### Checks

# %% grade_id="kv_cache-mask_of_a_prompt" points=0.5
from course_lib.checks import check, hidden

check("kv_cache-mask_of_a_prompt")

# %% grade_id="kv_cache-mask_with_a_past" points=1
check("kv_cache-mask_with_a_past")

# %% grade_id="kv_cache-mask_is_bool" points=0.25
check("kv_cache-mask_is_bool")

# %% grade_id="kv_cache-mask_bad_sizes" points=0.25
check("kv_cache-mask_bad_sizes")

# %% [markdown]
# Your mask, with sliders. What becomes of the triangle when the past grows? And for one new token?


# %%
def picture(past: int, new: int):
    names, total = ["may not look", "may look"], past + new
    title = f"{past} positions kept, {new} new"
    return plots.grid(causal_mask(new, total), names, range(past, total), range(total), title)


explore(picture, past=(0, 8, 3), new=(1, 8, 4))

# %% [markdown]
# ## 3. Attention
#
# A query asks each key that it may look at, "how well do you fit?", and gets a number, the dot product. A softmax makes weights of the numbers, and the answer is the weighted mean of the values (Vaswani et al. 2017, [arXiv 1706.03762](https://arxiv.org/abs/1706.03762)):
#
# $$\mathrm{attend}(q, K, V) = \mathrm{softmax}\!\left(\frac{q \cdot K^\top}{\sqrt{D}}\right) V$$
#
# The root of the head size D keeps the numbers from growing with D, and the softmax from becoming a hard choice. MiniGPT does this with 4 *heads* side by side, of 64 numbers each, so the tensors have the shape `(B, H, T, D)`.
#
# **Predict.** A query of zeros fits every key alike. Values 1, 2, 3, 4. What do two queries get, of which the first may look at three keys and the second at all four?
#
# <details><summary>Answer</summary>
#
# Plain means: (1 + 2 + 3) / 3 = 2 and (1 + 2 + 3 + 4) / 4 = 2.5.
#
# </details>
#
# ### Your turn: attention
#
# Write `attend`. Have in mind:
#
# - Which two axes does the dot product eat? Over which axis does the softmax run?
# - Lesson 3: which score has a key that is forbidden? And what does a softmax make of a row in which *all* are forbidden, as for padding?
# - Is −1e9 a number in float16?

# %%
values = torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 4, 1)
q, k = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 4, 1)
allowed = torch.tensor([[True, True, True, False], [True, True, True, True]])
attend(q, k, values, allowed).flatten()

# %% [markdown]
# ### Checks

# %% grade_id="kv_cache-attend_means" points=0.5
check("kv_cache-attend_means")

# %% grade_id="kv_cache-attend_weights" points=0.5
check("kv_cache-attend_weights")

# %% grade_id="kv_cache-attend_masked_out" points=0.25
check("kv_cache-attend_masked_out")

# %% grade_id="kv_cache-attend_mask_shapes" points=0.25
check("kv_cache-attend_mask_shapes")

# %% grade_id="kv_cache-attend_nothing_allowed" points=0.25
check("kv_cache-attend_nothing_allowed")

# %% grade_id="kv_cache-attend_half_precision" points=0.25
check("kv_cache-attend_half_precision")

# %% grade_id="kv_cache-attend_input_untouched" points=0.25
check("kv_cache-attend_input_untouched")

# %% grade_id="kv_cache-attend_against_lists" points=0.5
check("kv_cache-attend_against_lists")

# %% [markdown]
# ### Find the bug: causal, isn't it?
#
# torch has all this built in, mask included: `F.scaled_dot_product_attention(q, k, v, is_causal=True)`. Our values are 1 to 4 again. First the four positions of a prompt, then one new token that has all four keys in front of it.
#
# **Predict** both results.

# %%
keys, prompt, token = torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 1, 1)
for name, query in [("prompt", prompt), ("new token", token)]:
    answer = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
    print(f"{name}: {[f'{x:.1f}' for x in answer.flatten().tolist()]}")

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# The prompt is right: 1, 1.5, 2, 2.5. The new token should see all four and get 2.5, but it got 1. torch puts the triangle into the *top left* corner: it takes the only query for position 0, which sees key 0 and nothing else. With as many queries as keys both corners
# are the same, so the bug shows only when the cache is used. Hand over a mask of your own, or `is_causal=False` for a single new token (but not for two).
#
# </details>
#
# > **In the wild.** torch's corner is documented and a trap all the same (pytorch/pytorch#108108). FlashAttention had it there too and moved it to the bottom right, for the sake of caches (Dao-AILab/flash-attention#517).
#
# **Predict.** Another popular shortcut: "with a cache no mask is needed, a new token sees everything". What do the four positions of the *prompt* get?

# %%
everything = F.scaled_dot_product_attention(prompt, keys, values)
print([f"{x:.1f}" for x in everything.flatten().tolist()])

# %% [markdown]
# Each gets the mean of all, its own future included. One new token is the only case in which the shortcut is right.
#
# ## 4. The cache
#
# Now a place to keep keys and values: one for each of the L layers, `(B, H, T, D)` each, and T grows.
#
# The simplest way is `torch.cat([old, new], dim=2)`. It is right, and it copies all the old numbers for every new token: the copying grows with the square of the text. The usual way sets aside room for `capacity` positions at the start, and writes
# the new ones into it. Then "all so far" is a slice.
#
# One more thing. A forward pass goes through the layers one after the other: when layer 0 has stored a new position, layer 3 has not. `length` tells the model at which position a new token stands, so it must not move in the middle of a pass. It counts the positions that *every* layer holds.
#
# ### Your turn: the cache
#
# Write the class `KVCache`: `__init__`, `length`, `reset`, `append`. The method `attend` is given; it is what MiniGPT calls in each layer, and it brings your three pieces together. Have in mind:
#
# - What has to be remembered for each layer, besides the numbers?
# - "Raises, and changes nothing": in which order do you check and write?
# - After `reset` old numbers may still lie in the memory. Does that matter?

# %%
cache = KVCache(n_layers=1, batch=1, heads=1, head_dim=1, capacity=8)
two, three = torch.tensor([1.0, 2.0]).view(1, 1, 2, 1), torch.full((1, 1, 1, 1), 3.0)
cache.append(0, two, 10 * two)
k_all, v_all = cache.append(0, three, 10 * three)
print(k_all.flatten().tolist(), v_all.flatten().tolist(), cache.length)

# %% [markdown]
# ### Checks

# %% grade_id="kv_cache-cache_append" points=0.5
check("kv_cache-cache_append")

# %% grade_id="kv_cache-cache_shapes" points=0.25
check("kv_cache-cache_shapes")

# %% grade_id="kv_cache-cache_length" points=0.5
check("kv_cache-cache_length")

# %% grade_id="kv_cache-cache_layers" points=0.25
check("kv_cache-cache_layers")

# %% grade_id="kv_cache-cache_reset" points=0.25
check("kv_cache-cache_reset")

# %% grade_id="kv_cache-cache_capacity" points=0.5
check("kv_cache-cache_capacity")

# %% grade_id="kv_cache-cache_separate" points=0.25
check("kv_cache-cache_separate")

# %% grade_id="kv_cache-cache_bad_sizes" points=0.25
check("kv_cache-cache_bad_sizes")

# %% grade_id="kv_cache-cache_bad_append" points=0.25
check("kv_cache-cache_bad_append")

# %% grade_id="kv_cache-cache_dtype" points=0.25
check("kv_cache-cache_dtype")

# %% grade_id="kv_cache-cache_in_a_model" points=0.5
check("kv_cache-cache_in_a_model")

# %% [markdown]
# ### Find the bug: four layers, four lists?
#
# **Predict** what is printed.

# %%
layers = [[]] * 4
layers[0].append("a key of layer 0")
print(layers[3])

# %% [markdown]
# <details><summary>What happened?</summary>
#
# `[[]] * 4` is one list with four names. A cache made like this mixes the keys of all layers; the shapes are right, the text is nonsense. `[[] for _ in range(4)]` makes four. MiniMind and a Rust course say the same thing by hand: one entry a layer, `past_key_values`, or one
# `new_kv_cache()` for each.
#
# </details>
#
# ### What it costs: memory
#
# **Predict.** Two tensors, L layers, B rows, T positions, H · D numbers each. How many bytes for MiniGPT, 4 layers and 4 heads of 64 numbers, with a full window of 256, in float32 (4 bytes)?


# %%
def cache_bytes(layers, heads, head_dim, positions, bytes_each, batch=1) -> int:
    return 2 * layers * batch * heads * head_dim * positions * bytes_each


for name, size in {
    "MiniGPT, 128 positions, float32": cache_bytes(4, 4, 64, 128, 4),
    "MiniGPT, 256 positions, float32": cache_bytes(4, 4, 64, 256, 4),
    "MiniMind, 1 position, float16, 8 KV heads": cache_bytes(8, 8, 96, 1, 2),
    "MiniMind, 1 position, float16, 4 KV heads": cache_bytes(8, 4, 96, 1, 2),
    "Llama 3 8B, 8,192 positions, float16": cache_bytes(32, 8, 128, 8192, 2),
}.items():
    print(f"{name:>42}: {size:13,} bytes = {size / 2**20:9.4f} MiB")

# %% [markdown]
# 1 MiB for half of our window, 2 for the whole. It is little beside our 17 MB of weights, but it grows with the length of the text *and* with the number of texts in a batch, and the weights don't. A server that talks to a hundred people keeps a hundred caches and one copy
# of the weights.
#
# So people make it smaller. MiniMind has 8 heads of queries but 4 of keys and values, each used by two of the former: half the cache. Llama 3 shares among four. (*Grouped-query attention*, Ainslie et al. 2023, [arXiv 2305.13245](https://arxiv.org/abs/2305.13245).) And vLLM began with the
# observation that room set aside for the longest possible text is mostly never used, so it hands it out in pages (Kwon et al. 2023, [arXiv 2309.06180](https://arxiv.org/abs/2309.06180)).
#
# ## 5. Prefill and decode
#
# With a cache the loop has two phases, and they could hardly be more different.
#
# | | **prefill** | **decode** |
# |---|---|---|
# | reads | the prompt, all at once | one new token a step |
# | works | in parallel, as training does | in series, each step waits for the token before |
# | passes of the model | one | one for each token |
# | time grows with | the input | the output |
# | what limits it | arithmetic | moving weights and cache through memory |
#
# ### Your turn: the two steps
#
# Write `prefill` and `decode_step`. They are short: MiniGPT has done the hard part, it asks the cache for its `length` and calls `cache.attend`. Have in mind: which row of the logits do you return? What would `decode_step` do with two tokens in a row? What is an empty prompt?

# %%
ids = torch.tensor([tokenizer.encode("Once upon a time")])
cache = KVCache(model.n_layers, 1, model.n_heads, model.head_dim, model.block_size)
with torch.inference_mode():
    token = prefill(model, ids, cache).argmax(dim=-1, keepdim=True)
    following = decode_step(model, token, cache).argmax(dim=-1)
print([tokenizer.piece(i) for i in (token, following)], "cache:", cache.length)

# %% [markdown]
# ### Checks

# %% grade_id="kv_cache-prefill_last" points=0.25
check("kv_cache-prefill_last")

# %% grade_id="kv_cache-prefill_in_pieces" points=0.25
check("kv_cache-prefill_in_pieces")

# %% grade_id="kv_cache-prefill_mask" points=0.15
check("kv_cache-prefill_mask")

# %% grade_id="kv_cache-prefill_empty" points=0.1
check("kv_cache-prefill_empty")

# %% grade_id="kv_cache-decode_one_token" points=0.25
check("kv_cache-decode_one_token")

# %% grade_id="kv_cache-decode_mask" points=0.15
check("kv_cache-decode_mask")

# %% grade_id="kv_cache-decode_one_column" points=0.1
check("kv_cache-decode_one_column")

# %% grade_id="kv_cache-decode_equals_full" points=0.25
check("kv_cache-decode_equals_full")

# %% [markdown]
# ## 6. The same text
#
# The loop with its two branches. Without a cache everything is read again; with one, the whole prompt at first, and then the newest token.


# %%
def new_cache(some_model) -> KVCache:
    shape = some_model.n_layers, 1, some_model.n_heads, some_model.head_dim
    return KVCache(*shape, some_model.block_size)


def next_logits(some_model, ids: torch.Tensor, cache: KVCache | None) -> torch.Tensor:
    if cache is None:
        return some_model(ids)[:, -1]  # slow, but needs no memory
    if cache.length == 0:
        return prefill(some_model, ids, cache)
    return decode_step(some_model, ids[:, -1:], cache)


# %% [markdown]
# Both branches can be written as one: hand over what the cache does not hold yet, `ids[:, cache.length:]`. MiniMind does, `input_ids[:, past_len:]`. One reads now and then that the *model* takes that slice in its `forward`; it is the caller that does, in `generate`, and the model never sees the
# rest.
#
# Watch it work. Each step of a story: which queries look at which keys, and what of it is done anew? Set the second slider to 0 to see the loop without a cache.

# %%
with torch.inference_mode():
    story = torch.tensor([tokenizer.encode("Once upon a time, there")])
    for _ in range(8):
        story = torch.cat([story, model(story)[:, -1:].argmax(dim=-1)], dim=1)
pieces = [tokenizer.piece(i) for i in story[0]]
print(pieces)


# %%
@torch.inference_mode()
def at_step(step: int, cached: int):
    cache, before, first = new_cache(model), 0, len(pieces) - 8
    for end in range(first, first + step + 1):
        before = cache.length
        next_logits(model, story[:, :end], cache)
    total, start = cache.length, before if cached else 0
    cells = torch.zeros(len(pieces), len(pieces), dtype=torch.long)
    cells[:total, :total] = causal_mask(total, total)
    cells[start:total] *= 2
    title = f"step {step}: {total - start} forwarded; the cache has grown to {total}"
    kinds = ["not looked at", "done in an earlier step", "done in this step"]
    return plots.grid(cells, kinds, pieces, pieces, title)


explore(at_step, step=(0, 8, 4), cached=(0, 1, 1))

# %% [markdown]
# Step 0 is the prefill, the only triangle. Then each step adds one row at the bottom, over columns that were kept.
#
# ### How to test a cache
#
# A Rust course checks its cache with two demos, one for each mode, and finds the texts "highly consistent". The first has the prompt "Once upon a", the second "The fox", and both draw from one random generator that runs on.
#
# **Predict.** If the cache was broken, would these demos show it?
#
# <details><summary>Answer</summary>
#
# No. Different prompts and different random numbers give different texts anyway, and any two texts of one small model look alike. (The author has said so since.) A test of a cache has the *same* prompt and the *same* seed, and then the ids are not similar but *identical*.
#
# </details>


# %%
@torch.inference_mode()
def write(prompt: str, new_tokens: int, cache: KVCache | None, seed: int = 0) -> torch.Tensor:
    ids = torch.tensor([tokenizer.encode(prompt)])
    generator = torch.Generator().manual_seed(seed)
    for _ in range(new_tokens):
        probs = (next_logits(model, ids, cache) / 0.7).softmax(dim=-1)  # temperature 0.7
        ids = torch.cat([ids, torch.multinomial(probs, 1, generator=generator)], dim=1)
    return ids


# %%
for prompt in ("Once upon a", "The fox"):
    for seed in (0, 1):
        plain, cached = (write(prompt, 40, cache, seed) for cache in (None, new_cache(model)))
        print(f"{prompt!r}, seed {seed}: identical ids: {torch.equal(plain, cached)}")

# %% tags=["nbval-ignore-output"]
print(tokenizer.decode(write("The fox", 80, new_cache(model))[0]))

# %% [markdown]
# The cache changes how the answer is computed, not the answer. Is that true to the last digit?
#
# **Predict.** We compare the logits themselves, step by step along our story. Will they be close? Will they be equal bit for bit?

# %%
with torch.inference_mode():
    at_once, cache = model(story)[0], new_cache(model)
    steps = [prefill(model, story[:, :1], cache)]
    steps += [decode_step(model, story[:, i : i + 1], cache) for i in range(1, story.shape[1])]
print("close (rtol 1e-4, atol 1e-5):", torch.allclose(torch.cat(steps), at_once, 1e-4, 1e-5))
print("equal bit for bit:", torch.equal(torch.cat(steps), at_once))

# %% [markdown]
# Close, and not equal. A float32 has some seven digits, each sum is rounded, and the result depends on the order in which one adds:

# %%
big, one = torch.tensor(1e8), torch.tensor(1.0)
print((big + one) - big, (big - big) + one)

# %% [markdown]
# For one row torch multiplies matrices in another order than for ten, so the last digits differ. That is no bug, and a test with `==` on logits is a wrong test: use `allclose`. For a text to change, two tokens would have to be tied in their first five digits or so.
#
# > **In the wild.** "Coherent, but not exactly the same": whether that was a bug nobody could say without such a test (karpathy/nanoGPT#613). In half precision, with three digits, the differences are large enough to change what is drawn (huggingface/transformers#25420).
#
# ### The position of a new token
#
# A cached model sees one token, and must know that it is the 13th. MiniGPT takes `cache.length` for it. What if that number is wrong? We put a liar between the model and your cache:


# %%
class Liar:
    """A cache that keeps everything as it should, and tells the model another length."""

    def __init__(self, cache: KVCache, length: int) -> None:
        self.attend, self.length = cache.attend, length


# %% [markdown]
# **Predict.** How far will the logits of the last token be off, if the liar says 0? If it is wrong by one only?

# %%
past = story.shape[1] - 1
with torch.inference_mode():
    right = model(story)[0, -1]
    for said in (past, 0, past + 1):
        cache = new_cache(model)
        prefill(model, story[:, :-1], cache)
        told = decode_step(model, story[:, -1:], Liar(cache, said))[0]
        off = (told - right).abs().max().item()
        print(f"length {said:>2}: off by {off:.2f}, next token {tokenizer.piece(told.argmax())!r}")

# %% [markdown]
# No error, no nonsense: just another, worse model. That is what makes bugs in caches so durable, and why we compare numbers and don't read texts.
#
# > **In the wild.** Every decoded token at position 0: Blaizzy/mlx-vlm#1983. The prompt's length added twice: skyzh/tiny-llm#46. One slot too far: microsoft/onnxruntime-genai#2354.
#
# ### A prompt in pieces
#
# **Predict.** A long prompt is read in three pieces instead of one. Does the last row of logits change? Which of your functions would be at fault?

# %%
with torch.inference_mode():
    whole, cache = model(story)[:, -1], new_cache(model)
    for piece in story.split(5, dim=1):
        last = prefill(model, piece, cache)
print("the same:", torch.allclose(last, whole, 1e-4, 1e-5), "cache:", cache.length)

# %% [markdown]
# That is *chunked prefill*. A server uses it so that one enormous prompt does not keep everybody else waiting. It is also how a chat goes on: the next question is just another piece. Each piece is a block of several queries with a past, so the mask with its corner at the bottom right decides.
#
# ### Two prompts, one shorter
#
# In a batch the shorter prompt is padded. Lesson 1 padded on the right; to go on *writing*, all rows must end with their last token, so one pads on the left. Two things must then be right: nobody looks at padding (the mask), and padding takes no position (positions count the *real* tokens).
#
# **Predict.** Which of the two can be forgotten without a change of the row's answer?

# %%
alone = torch.tensor([tokenizer.encode("The fox")])
pad = 6 - alone.shape[1]
ids = F.pad(alone, (pad, 0), value=tokenizer.eos_id)
mask = (torch.arange(6) >= pad).long()[None]
shape = model.n_layers, 1, model.n_heads, model.head_dim, model.block_size
with torch.inference_mode():
    right = model(alone)[:, -1]
    for name, given in [("with the mask", mask), ("without", None)]:
        off = (prefill(model, ids, KVCache(*shape), given) - right).abs().max().item()
        print(f"{name:>13}: the same as alone: {off < 1e-4}")

# %% [markdown]
# Neither. In the next step the mask has one column more: it always covers all positions so far, those in the cache included, because padding stays in the cache for ever.
#
# > **In the wild.** Left padding with positions that count the padding: huggingface/transformers#3021, and again #7552.
#
# ## 7. What it saves
#
# ### Counted
#
# **Predict.** A prompt of 11 tokens, 80 new ones. How many positions does a cached model read: 90 or 91? We count what really goes in.


# %%
@torch.inference_mode()
def positions_read(prompt_len: int, new_tokens: int, cached: bool) -> int:
    sizes, ids = [], torch.zeros(1, prompt_len, dtype=torch.long)
    cache = new_cache(model) if cached else None
    with model.register_forward_pre_hook(lambda module, args: sizes.append(args[0].shape[1])):
        for _ in range(new_tokens):
            token = next_logits(model, ids, cache).argmax(dim=-1, keepdim=True)
            ids = torch.cat([ids, token], dim=1)
    return sum(sizes)


# %%
print("cached:", positions_read(11, 80, cached=True))
print("not:   ", positions_read(11, 80, cached=False))

# %% [markdown]
# 11 + 79: the 80th token is chosen from the logits after the 79th, and nobody reads it. (The Rust course prints 91. Off by one is easy here.) Without a cache it is 11 + 12 + ... + 90 = 4,040.
#
# In general P + N − 1 against N·P + N(N − 1)/2: a line against a parabola. On paper with two logarithmic scales, where a power is a straight line and its exponent is the slope:

# %%
lengths = [2**i for i in range(1, 11)]
counts = {
    "everything again": [n * 8 + n * (n - 1) / 2 for n in lengths],
    "with a cache": [8 + n - 1 for n in lengths],
}
plots.lines(lengths, counts, "A prompt of 8 tokens", "new tokens", "positions read", log="xy")

# %% [markdown]
# ### Measured
#
# Counting is exact, but nobody waits for positions. So let us take the time of *one step*, after a text of T tokens: once for a pass over everything, once for a pass over the new token with T − 1 in the cache. The best of nine, since a computer has other things to do as well.
#
# **Predict.** How do the two grow with T?


# %%
@torch.inference_mode()
def milliseconds(length: int, cached: bool) -> float:
    ids, best = torch.zeros(1, length, dtype=torch.long), float("inf")
    cache = new_cache(model) if cached else None
    for _ in range(9):
        if cache is not None:
            cache.reset()
            prefill(model, ids[:, :-1], cache)
        began = time.perf_counter()
        next_logits(model, ids, cache)
        best = min(best, time.perf_counter() - began)
    return 1000 * best


# %%
def fit(x: list[float], y: list[float]) -> tuple[float, list[float]]:
    """The slope of the straight line through the logarithms, and that line."""
    u, w = torch.tensor(x).log(), torch.tensor(y).log()
    slope = ((u - u.mean()) * (w - w.mean())).sum() / ((u - u.mean()) ** 2).sum()
    return slope.item(), (w.mean() + slope * (u - u.mean())).exp().tolist()


# %% tags=["nbval-ignore-output"]
lengths = [16, 32, 64, 128, 256]
series = {}
for name, cached in [("everything again", False), ("with a cache", True)]:
    measured = [milliseconds(length, cached) for length in lengths]
    slope, line = fit(lengths, measured)
    series |= {name: measured, f"fitted: exponent {slope:.2f}": line}
plots.lines(lengths, series, "One step", "tokens so far", "milliseconds", log="xy")

# %% [markdown]
# Without a cache a step grows nearly in proportion to the text: an exponent near 1, and a little less, since starting a pass costs something even for a short one. With a cache it grows slowly, with an exponent not far from 0. Add up N such steps and both exponents
# grow by one: nearly a line against nearly a parabola.
#
# <details><summary>Why does a cached step grow at all?</summary>
#
# The new token looks at T keys. That takes about 4·T·256 multiplications and additions a layer, while the weights of a layer take about 1.6 million for each token. So by arithmetic attention would need some 1,500 tokens of past to cost as much as the rest; in practice less, since all those keys and values have to
# come from memory. With a window of 100,000 it is all that one sees.
#
# </details>
#
# > **In the wild.** How much *time* it saves depends on what was the bottleneck. An early cache for nanoGPT made GPT-2 more than seven times faster on a laptop's CPU, and not at all on an A100 GPU, which was idle most of the time anyway (karpathy/nanoGPT#76).
#
# ### Why do output tokens cost more than input tokens?
#
# In the price lists of language models an output token costs several times as much as an input token. **Predict** why, then look at the same 200 tokens, once read and once written:

# %% tags=["nbval-ignore-output"]
ids = torch.zeros(1, 200, dtype=torch.long)
with torch.inference_mode():
    cache, began = new_cache(model), time.perf_counter()
    prefill(model, ids, cache)
    read, began = time.perf_counter() - began, time.perf_counter()
    cache.reset()
    for i in range(200):
        prefill(model, ids[:, i : i + 1], cache)
    wrote = time.perf_counter() - began
print(f"read: {200 / read:,.0f} tokens a second, written: {200 / wrote:,.0f}")

# %% [markdown]
# The arithmetic is the same for both. But input goes through the model in *one* pass, output in 200 that have to wait for each other. Each of them fetches all weights from memory to do a little arithmetic with one token, and on top of it the cache, which is different for each user; so the processor mostly waits
# (Pope et al. 2022, [arXiv 2211.05102](https://arxiv.org/abs/2211.05102)). Serving many people in one batch shares the weights, but not the caches.
#
# ## 8. The end of the window
#
# MiniGPT has learned 256 positions. **Predict.** A prompt of 250 tokens, and we ask for 20 more. With a cache, how many do we get?

# %%
ids, made = torch.zeros(1, 250, dtype=torch.long), 0
with torch.inference_mode():
    cache = new_cache(model)
    try:
        while made < 20:
            token = next_logits(model, ids, cache).argmax(dim=-1, keepdim=True)
            ids, made = torch.cat([ids, token], dim=1), made + 1
    except ValueError as error:
        print(f"{made} new tokens, {ids.shape[1]} in all, then: {error}")

# %% [markdown]
# Seven, not six: the cache is full with 256, and from the last logits one more token can be chosen, though nobody can read it. So it is `block_size - P + 1` new tokens, and a text of `block_size + 1`. (A course says "limited to within block_size"; that is off by one.)
#
# ### Stop
#
# The simplest rule: when no further pass fits, stop. How many tokens do we get? A model with a window of 32, asked for 80, with prompts of 7, 11, 32 and 40 tokens. The last one does not even fit: the loop takes its last 32.
#
# **Predict** the four numbers.


# %%
@torch.inference_mode()
def until_full(some_model, prompt_len: int, wanted: int) -> int:
    ids = torch.zeros(1, prompt_len, dtype=torch.long)[:, -some_model.block_size :]
    cache, made = new_cache(some_model), 0
    while made < wanted and cache.length < some_model.block_size:
        token = next_logits(some_model, ids, cache).argmax(dim=-1, keepdim=True)
        ids, made = torch.cat([ids, token], dim=1), made + 1
    return made


small = MiniGPT(MiniGPTConfig(block_size=32, n_layers=1, n_heads=1, width=8)).eval()
for prompt_len in (7, 11, 32, 40):
    print(f"prompt of {prompt_len}: {until_full(small, prompt_len, 80)} of 80 new tokens")

# %% [markdown]
# The prompt of 40 gets a single token, where the mode without a cache would make all 80. And the *short* prompt of 11 is stopped too: what counts is prompt plus answer. So whoever stops has to *say* so, or it looks as if the model had nothing more to say. In lesson 8 the
# result will carry a `finish_reason` of `"overflow"`.
#
# ### Go on without a cache
#
# The loop of lesson 1 cuts: `ids[:, -block_size:]`. The window *slides*, the text can be as long as one likes, and the model has forgotten its beginning.
#
# ### Drop the oldest?
#
# Then a cache could slide as well: throw away the oldest key and value, append the new. With your cache:


# %%
def without_oldest(some_model, cache: KVCache) -> KVCache:
    """A new cache that lacks the first position."""
    smaller = new_cache(some_model)
    nothing = torch.zeros(1, some_model.n_heads, 0, some_model.head_dim)
    for layer in range(some_model.n_layers):
        k, v = cache.append(layer, nothing, nothing)  # adds nothing, returns all
        smaller.append(layer, k[:, :, 1:], v[:, :, 1:])
    return smaller


# %% [markdown]
# **Predict.** The window is full, one more token comes. We compare the logits with those of a fresh pass over the last `block_size` tokens: once after dropping the oldest, once after filling an empty cache with those tokens. For two random models of one and two layers with a window of 8, and for MiniGPT.

# %%
text = "Tom had a red kite. He ran up the hill with it. The wind was strong, the kite flew high. "
models = {"1 layer": tiny_gpt(n_layers=1), "2 layers": tiny_gpt(n_layers=2), "MiniGPT": model}
with torch.inference_mode():
    for name, gpt in models.items():
        size = gpt.block_size
        ids = torch.tensor([(tokenizer.encode(text) * 20)[: size + 1]]) % gpt.vocab_size
        full, cache = gpt(ids[:, 1:])[:, -1], new_cache(gpt)
        prefill(gpt, ids[:, :size], cache)
        dropped = decode_step(gpt, ids[:, size:], without_oldest(gpt, cache))
        rebuilt = prefill(gpt, ids[:, 1:], new_cache(gpt))
        off, same = (dropped - full).abs().max(), torch.allclose(rebuilt, full, 1e-4, 1e-5)
        print(f"{name:>8}: dropped: off by {off:.2f}; filled anew: the same: {same}")

# %% [markdown]
# Dropping is wrong, for two reasons:
#
# - **Places.** When the window slides, every token moves: the one at position 1 is now at position 0. But its key and value were made with position 1 mixed in. Already one layer is off.
# - **Memory.** From the second layer on, a token's key and value hold what it *read*, from the dropped one too. The text is gone, its traces are not.
#
# Models with rotary positions (RoPE) look at distances only, so for them the first reason falls away, and with one layer dropping would be exact. No model has one layer. (Some are *trained* with a sliding window of attention, and then it is right for them. And if one must drop, keep the first few tokens: Xiao et al. 2023, [arXiv
# 2309.17453](https://arxiv.org/abs/2309.17453).)
#
# > **In the wild.** What becomes of a full cache was forgotten in rasbt/LLMs-from-scratch#925. In Nehanth/swarmllm#31 nobody stopped at the end: keys were written past the end of the buffer, and the model went on with what happened to lie there.
#
# ### Fill it anew
#
# What is left is honest: reset the cache and prefill the last `block_size` tokens, in each step from then on. The same ids as without a cache, to the end, and past the end also the same cost: a cache that slides saves nothing.
#
# **Exercise.** Window 32, prompt 11, 80 new tokens. Count the positions read for each of the four rules.

# %%
P, N, block = 11, 80, 32
no_cache = sum(min(P + step, block) for step in range(N))
stopped = min(N, block - min(P, block) + 1)
filled_anew = (P + stopped - 1) + (N - stopped) * block
print(f"no cache {no_cache}, stop {P + stopped - 1}, fill anew {filled_anew}, drop {P + N - 1}")

# %% [markdown]
# | | no cache | cache, then stop | cache, then fill anew | cache, drop the oldest |
# |---|---|---|---|---|
# | positions a step, while there is room | all so far | 1 | 1 | 1 |
# | extra memory | none | 2·L·B·T·H·D numbers | the same | the same |
# | window full | the last `block_size`, every step | the end: `"overflow"` | the last `block_size`, every step | 1 |
# | same ids as without a cache | | yes, as far as it goes | yes | **no** |
# | new tokens at most | any number | `block_size - min(P, block_size) + 1` | any number | any number |
# | our 80 tokens | 80 | 22 | 80 | 80 (other ones) |
# | positions read for them | 2,329 | 32 | 1,888 | 90 |
#
# Our `generate` will fill anew (`on_overflow="slide"`) unless it is told to stop (`"stop"`). It never drops.
#
# ## 9. Find the bugs
#
# Two more that nearly everybody has written once. Both go on from the prompt in `story`.
#
# ### Twice


# %%
@torch.inference_mode()
def twice(ids: torch.Tensor) -> torch.Tensor:
    cache = new_cache(model)
    prefill(model, ids, cache)
    return decode_step(model, ids[:, -1:], cache)


# %% [markdown]
# ### Once too seldom


# %%
class Storyteller:
    def __init__(self) -> None:
        self.cache = new_cache(model)

    @torch.inference_mode()
    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        return prefill(model, ids, self.cache)


# %% [markdown]
# **Predict** for each: is the answer right, and if not, what does the model believe that it has read?

# %%
with torch.inference_mode():
    right = model(story)[:, -1]
teller = Storyteller()
for name, answer in [
    ("twice", twice(story)),
    ("storyteller, first call", teller.logits(story)),
    ("storyteller, second call", teller.logits(story)),
]:
    print(f"{name}: {'right' if torch.allclose(answer, right, 1e-4, 1e-5) else 'wrong'}")

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# `twice`: prefill has read the last token and given its logits; then it is read again. The model sees the text with its last word doubled. Use the logits that prefill returns.
#
# The storyteller keeps its cache between two stories: the second one is read as the continuation of the first. The first call is always right, so a test that calls once finds nothing. Make a new cache for each text, or `reset` it. (Seen in Lightning-AI/litgpt#1596.)
#
# </details>
#
# ## 10. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="kv_cache-hidden_any_mask" points=0.5
hidden("kv_cache-hidden_any_mask")

# %% grade_id="kv_cache-hidden_any_attention" points=0.75
hidden("kv_cache-hidden_any_attention")

# %% grade_id="kv_cache-hidden_padding" points=0.5
hidden("kv_cache-hidden_padding")

# %% grade_id="kv_cache-hidden_half_precision" points=0.25
hidden("kv_cache-hidden_half_precision")

# %% grade_id="kv_cache-hidden_not_contiguous" points=0.25
hidden("kv_cache-hidden_not_contiguous")

# %% grade_id="kv_cache-hidden_any_cache" points=1
hidden("kv_cache-hidden_any_cache")

# %% grade_id="kv_cache-hidden_full_and_reset" points=0.5
hidden("kv_cache-hidden_full_and_reset")

# %% grade_id="kv_cache-hidden_wrong_arguments" points=0.25
hidden("kv_cache-hidden_wrong_arguments")

# %% grade_id="kv_cache-hidden_model_in_pieces" points=0.5
hidden("kv_cache-hidden_model_in_pieces")

# %% grade_id="kv_cache-hidden_prefill" points=0.25
hidden("kv_cache-hidden_prefill")

# %% grade_id="kv_cache-hidden_decode" points=0.25
hidden("kv_cache-hidden_decode")

# %% [markdown]
# ## 11. In your own words
#
# A chat service keeps a KV cache for each conversation. When the window is full it deletes the oldest 50 keys and values of every layer and goes on. Its maker says: "Nobody can look at deleted keys, so it is exactly as if the conversation had begun 50 tokens later. And we tested it: the texts read
# fine." In four or five sentences: what is right in that, what is wrong, how would you test it, and what else could the service do, at which price?

# %% [markdown] grade_id="kv_cache-written" points=2 written=true
# It is right that no query can look at the deleted keys any more. But the keys and values that stay are not those of a conversation that begins 50 tokens later: with learned positions each was made at a place 50 further on, and in every layer but the first they hold what
# their tokens read from the deleted part. Fluent text proves nothing, since a slightly wrong model is fluent too; I would compare the logits after the deletion with those of a fresh pass over the remaining tokens, same text, with `allclose`. The service could stop and say that
# the conversation is full, or reset the cache and prefill the last tokens. Filling anew is exact but costs a whole window, in every step if the window stays full; refilling with half a window makes that rare, at the price of forgetting more.

# %% [markdown]
# ## What we have, and what comes next
#
# - Keys and values of a position never change, thanks to causality, so they are kept, layer by layer. Queries are used once.
# - New queries are the last positions: the mask has its corner at the bottom right, positions go on at `cache.length`.
# - Prefill reads the prompt in one pass; each decode step reads one token: P + N − 1 positions instead of about N²/2.
# - The same ids for the same prompt and seed; logits agree to rounding: `allclose`, not `==`.
# - Memory: 2·L·B·T·H·D numbers. A full window: stop and say so, or fill anew. Dropping changes the text.
#
# **Stretch.** When the window is full, refill with the last `block_size / 2` tokens instead of all. How many positions do 1,000 new tokens cost then, and how many with filling anew? Is the text still the one of the mode without a cache?
#
# **Next:** lesson 8: your functions become `generate`.
