# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 9: faster, or how far is the hardware?
#
# Your `generate` reads each token once, and on our small model that already beats transformers, the library that most people decode with. How much faster *could* it be? In this lesson we first work out a limit that no program can beat on this machine, and then go towards it, one step at a time. Each step is measured, and each says the same tokens as before.
#
# This one is a stretch: there is nothing to write and nothing is graded. It is for those who wonder what the fast engines do.
#
# **When you are through, you can**
#
# - compute the least time that a step of decoding may take, from two numbers;
# - tell what a program that is slower than that spends its time on;
# - say what each of these brings, and why: fewer calls, another layout of the weights, compiled code, int8;
# - measure so that a busy machine doesn't fool you.
#
# **Time:** about 45 minutes. **You need:** lessons 5 and 7; of lesson 8 the idea. A C++ compiler is welcome, not needed.

# %% tags=["nbval-ignore-output"]
from course_lib.given.notebook import start

start("faster")

# %%
import copy
import math
import time
from collections import Counter
from statistics import median

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.given import plots
from course_lib.given.fast import (
    CompiledStep,
    FlatStep,
    NoCompiler,
    continue_text,
    decoding_weights,
    quantised,
)
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()
prompt = tokenizer.encode("Once upon a time, there was a little dog who")

# %% [markdown]
# ## 1. The floor
#
# To say one token, every weight of the model is needed: multiplied once, added once. So every weight has to come from memory to the processor, once a token. (All but the table of positions, of which we read one row. The table of tokens counts, since it is the head as well.)
#
# **Predict.** How many bytes are that? Today's memory, caches included, delivers some 10 to 100 gigabytes a second. How many tokens a second can this model say at most?

# %%
weights = decoding_weights(model)
numbers = sum(weight.numel() for weight in weights)
print(f"{numbers:,} weights of 4 bytes: {4 * numbers / 1e6:.1f} MB a token")

# %% [markdown]
# Let us measure how fast this machine reads. Nothing that touches all weights is simpler than adding them up. Times on a computer that does other things too jump about, always upwards; so we measure often and take the median.


# %%
def milliseconds(work, repeats: int = 30) -> float:
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * median(times)


# %% tags=["nbval-ignore-output"]
everything = torch.cat([weight.flatten() for weight in weights])
floor = milliseconds(everything.sum)
print(f"{floor:.3f} ms to read all weights, {4 * numbers / floor / 1e6:.0f} GB a second")
print(f"so at most {1000 / floor:,.0f} tokens a second")

# %% [markdown]
# That is the **floor** under a step of one text. And the arithmetic? Two operations a weight, 8.4 million a token. How many can this processor do in a millisecond? A product of two large matrices shows it, since there each number that was fetched is used hundreds of times.

# %% tags=["nbval-ignore-output"]
square = torch.randn(1024, 1024)
busy = 2 * 1024**3 / milliseconds(lambda: square @ square, repeats=10)
print(f"{busy / 1e6:.0f} billion operations a second: {2 * numbers / busy:.3f} ms for a token")

# %% [markdown]
# So reading takes several times longer than computing, and the processor waits. This picture, time for bytes against time for operations, is called the *roofline* (Williams, Waterman and Patterson 2009, [doi 10.1145/1498765.1498785](https://doi.org/10.1145/1498765.1498785)). One text at a time lies far on the memory's side of it.
#
# <details><summary>And with 32 texts in a batch?</summary>
#
# The weights are read once for all 32, while the operations are 32 times as many. Then computing is what takes the time: a batch costs more than one row, and far less than 32 of them. That is why servers put the requests of many people together.
#
# </details>
#
# ## 2. Where we are
#
# Here is a step as you wrote it in lesson 7: MiniGPT with your cache. `reset` forgets the text, a call reads one token. (Where your lesson 7 is not written yet, the cells that need it say so, and the others go on.)


# %%
from course_lib.kv_cache import KVCache, decode_step


class Yours:
    def reset(self) -> None:
        self.memory = KVCache(model.n_layers, 1, model.n_heads, model.head_dim, model.block_size)

    @torch.inference_mode()
    def __call__(self, token: int) -> torch.Tensor:
        return decode_step(model, torch.tensor([[token]]), self.memory)[0]


yours, steps = Yours(), {}

# %% [markdown]
# **Predict.** How many times the floor does it take?

# %%
words = (
    tokenizer.encode(
        "One day the little dog saw a big red ball in the park and wanted to play with it. "
    )
    * 5
)


def time_a_step(step, tokens: int = 100) -> float:
    step.reset()
    times = []
    for token in words[:tokens]:
        began = time.perf_counter()
        step(token)
        times.append(time.perf_counter() - began)
    return 1000 * median(times)


# %% tags=["nbval-ignore-output"]
at_first = time_a_step(yours)
steps["yours"] = yours
print(f"{at_first:.3f} ms a step, {at_first / floor:.1f} times the floor")

# %% [markdown]
# The weights are read in a fraction of that time. What is the rest? Let us ask torch what it is told to do in one step.


# %%
class Calls(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names[str(func).split(".")[1]] += 1
        return func(*args, **(kwargs or {}))


def calls_of(step) -> Counter[str]:
    step.reset()
    step(prompt[0])
    with Calls() as calls:
        step(prompt[1])
    return calls.names


# %% tags=["nbval-ignore-output"]
names = calls_of(yours)
print(names.total(), "calls, of which the most frequent are", names.most_common(6))

# %% [markdown]
# Seventeen of them (`linear`) do nearly all of the work. The others add two short rows, take a slice, turn axes; the reference makes some 120 in all. What does a call cost that has nearly nothing to do?

# %% tags=["nbval-ignore-output"]
tiny = torch.zeros(1)
hundred = milliseconds(lambda: [tiny + 1 for _ in range(100)])
print(f"{10 * hundred:.2f} microseconds a call")

# %% [markdown]
# About a microsecond in a tight loop; in the middle of a step two or three, because seventeen megabytes of weights have just pushed Python, torch and all their tables out of the fastest caches. Add Python's own work between the calls, and you have the gap. On a model a thousand times larger nobody would notice it. On ours it is most of the time.
#
# ## 3. Fewer calls
#
# `FlatStep` in `course_lib/given/fast.py` does the same with plain tensors: no modules, no mask (the newest token may look at everything), one row. Read it: a step is 25 lines. And `continue_text` decodes with anything that reads a token and says the logits for the next.

# %%
flat = steps["flat"] = FlatStep(model, by_input=False)
print(calls_of(flat).total(), "calls")

# %%
knobs = {"temperature": 0.8, "top_k": 50, "top_p": 0.95}


def tell(step, seed: int = 1) -> list[int]:
    chance = torch.Generator().manual_seed(seed)
    return continue_text(step, prompt, 60, **knobs, generator=chance)


story = tell(flat)
print(tokenizer.decode(story))

# %% [markdown]
# Is it the story that your `generate` tells from the same seed?

# %%
from course_lib.generate import generate

chance = torch.Generator().manual_seed(1)
of_generate = generate(model, torch.tensor([prompt]), 60, **knobs, generator=chance).ids[0].tolist()
print("the same story:", of_generate == story)

# %% [markdown]
# **Predict.** And the time? Note how we measure from now on: the rivals take turns. If the machine gets busy for a second, all of them suffer alike.


# %%
def compare(rounds: int = 5) -> dict[str, float]:
    times = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(time_a_step(step))
    return {name: median(of_step) for name, of_step in times.items()}


# %% tags=["nbval-ignore-output"]
for name, taken in compare().items():
    print(f"{name:10} {taken:.3f} ms, {taken / floor:.1f} times the floor")

# %% [markdown]
# ## 4. The layout of a matrix
#
# `nn.Linear` keeps its matrix as (out, in): the weights that make one output are neighbours. It can as well be kept as (in, out), where the weights of one *input* are. The numbers are the same, so is the product; only the order in which memory is read differs, and memory likes one long sweep.

# %%
by_input = steps["flat, (in, out)"] = FlatStep(model)
print("the same story:", tell(by_input) == story)

# %% tags=["nbval-ignore-output"]
row, matrix = torch.randn(1, 256), model.token_embedding.weight.detach()
for name, weight in [
    ("(out, in)", matrix.contiguous().t()),
    ("(in, out)", matrix.t().contiguous()),
]:
    print(f"{name}: {milliseconds(lambda w=weight: row @ w, 100):.4f} ms for the head")

# %% [markdown]
# Which one wins, and by how much, depends on the processor and the library beneath torch (here MKL, elsewhere OpenBLAS or Accelerate) and on how busy the machine is. On the server where this lesson was written (in, out) is faster by 5 % in quiet moments and by a sixth in busy ones, so `from_pretrained` stores it that way. *Measure on yours.*
#
# ## 5. No calls at all
#
# To get rid of the rest, the step has to become *one* call. There are several ways. `torch.compile` writes and compiles such code from a model; for ours it takes half a minute and gains little, since what it fuses is small. The engines you have heard of, llama.cpp for one, are written in C++ by hand. Ours is too: `fast.cpp`, 230 lines, of which a step
# is 40. It is compiled when you ask for it, in a second or two.

# %%
try:
    steps["C++"] = CompiledStep(model)
except NoCompiler as error:
    print(error)
print(
    "the same story:", all(tell(step) == story for name, step in steps.items() if name != "yours")
)

# %% [markdown]
# If there is no compiler on your machine, a line above says how to get one, and the rest goes on without.

# %% tags=["nbval-ignore-output"]
times = compare()
for name, taken in times.items():
    print(f"{name:16} {taken:.3f} ms, {taken / floor:.1f} times the floor")
plots.bars(
    [*times, "floor"],
    {"a step": [*times.values(), floor]},
    "One text, one step",
    "way",
    "milliseconds",
)

# %% [markdown]
# In C++ the weights *are* the time. What is above the floor: attention over the text so far, the norms, and reading in 17 pieces rather than one.
#
# <details><summary>Why is the result not equal bit for bit?</summary>
#
# Sums of float32 depend on the order in which one adds (lesson 7), and each way adds in its own: torch in its libraries, C++ in registers of 8 or 16 numbers. The logits differ in the sixth digit. For the story to differ, a random number would have to fall into a gap that small: once in some hundred thousand tokens.
#
# </details>
#
# ## 6. Fewer bytes
#
# Now we *are* at the floor. Is that the end? The floor is bytes divided by speed, and bytes can be saved. In **int8** a weight takes one byte: each row of a matrix is divided by a scale, so that its largest number becomes 127, and rounded.

# %%
some = model.blocks[0].mlp_up.weight.detach()
small, scale = quantised(some)
print("before", some[0, :4].tolist())
print("stored", small[0, :4].tolist(), f"x {scale[0]:.6f}")
print("after ", (small * scale[:, None])[0, :4].tolist())

# %% [markdown]
# That is not the same model any more. How much worse is it? The honest measure is the one of lesson 1: the loss on text that it has not seen, here in bits per byte, so that no tokenizer matters. Two little stories, written for this lesson:

# %%
STORIES = [
    "Mia had a red kite. Every day after lunch she ran up the hill to fly it. One day the wind was very strong. It pulled and pulled, and the string broke! "
    "The kite flew over the trees. Mia was sad and started to cry. Her brother Tom said, \"Don't cry. Let's look for it.\" They walked into the woods and looked up at every tree. "
    'At last they saw something red. A big bird was sitting next to it. "Please, may I have my kite back?" Mia asked. The bird pushed the kite down with its foot. '
    "Mia was so happy. She said thank you and gave the bird some bread. From then on she always tied a strong knot.",
    'There was an old clock in the kitchen. It did not go tick tock any more. Ben wanted to help it. He asked his grandpa, "Can we fix the clock?" Grandpa smiled and got his box of tools. '
    'They opened the little door. Inside they found a small button. It was the button from Ben\'s blue coat! Ben laughed. "So that is where it was," he said. '
    "Grandpa took it out and the clock began to tick. Mom came in and heard it. She was surprised and gave them both a hug. Then she sewed the button on the coat, and they all had cake.",
]


def bits_per_byte(model: MiniGPT) -> float:
    nats = count = 0
    for text in STORIES:
        ids = torch.tensor([tokenizer.encode(text)])
        with torch.inference_mode():
            nats += F.cross_entropy(model(ids)[0, :-1], ids[0, 1:], reduction="sum").item()
        # the first token is given, so its bytes are not told
        count += len(text.encode()) - len(tokenizer.decode(ids[0, :1]).encode())
    return nats / math.log(2) / count


def rounded_to(levels: int) -> MiniGPT:
    rounded = copy.deepcopy(model)
    for name, weight in rounded.named_parameters():
        if weight.ndim == 2 and "position" not in name:
            size = weight.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / levels
            weight.data = (weight.detach() / size).round() * size
    return rounded


exact = bits_per_byte(model)
print(f"float32: {exact:.4f} bits per byte")

# %% [markdown]
# **Predict.** What will 8 bits cost? And 4 (numbers from -7 to 7), and 3?

# %%
for bits in (8, 6, 4, 3):
    found = bits_per_byte(rounded_to(2 ** (bits - 1) - 1))
    print(f"{bits} bits: {found:.4f} bits per byte, {100 * (found / exact - 1):+.1f} %")

# %% [markdown]
# Eight bits cost next to nothing, four with one scale a row hurt. (Engines that go down to four give each *group* of some 32 weights a scale of its own, and choose the rounding with more care; our rows of 256 to 1,024 are rougher.) So: do the bytes pay?

# %% tags=["nbval-ignore-output"]
if "C++" in steps:
    steps["C++, int8"] = CompiledStep(model, int8=True)
    for name, taken in compare().items():
        print(f"{name:16} {taken:.3f} ms, {taken / floor:.2f} times the floor of float32")

# %% [markdown]
# Faster, below the old floor, and not by four: now the arithmetic is what takes the time, because each byte has to become a float first. Engines with more patience multiply the bytes themselves, with instructions made for it.
#
# The story, by the way, is another one now:

# %% tags=["nbval-ignore-output"]
if "C++" in steps:
    print(tokenizer.decode(tell(steps["C++, int8"])))

# %% [markdown]
# ## 7. Choosing takes time too
#
# A step ends with a choice among 4,096 tokens; a large model chooses among 128,000 or more. Here sorting is the trap: top-p by its definition sorts the vocabulary, and needs a few dozen tokens of it.

# %% tags=["nbval-ignore-output"]
sizes = [1000, 4096, 16_000, 64_000, 128_000]
ways = {
    "sort everything": lambda row: row.sort(descending=True),
    "the best 50": lambda row: row.topk(50),
    "a draw, multinomial": lambda row: torch.multinomial(row.softmax(-1), 1),
    "a draw, inverse CDF": lambda row: row.exp().double().cumsum(-1),
}
taken = {name: [] for name in ways}
for size in sizes:
    row = torch.randn(1, size)
    for name, way in ways.items():
        taken[name].append(milliseconds(lambda way=way, row=row: way(row), 5))
plots.lines(sizes, taken, "Filter and draw", "vocabulary", "milliseconds", log="xy")

# %% [markdown]
# So the reference's `next_token` asks `topk` for the best few, finds in plain Python what both filters keep of them (for fifty numbers that takes fewer microseconds than handing them to torch), and leaves it to the simple filters where the few can't tell: ties, a nucleus of hundreds. It was compared with the filters on a million random rows, and differed in none.
#
# ## 8. The whole way
#
# A text of 100 tokens, choice included, tokens a second:


# %% tags=["nbval-ignore-output"]
def tokens_a_second(step, rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        made = len(continue_text(step, prompt, 100, **knobs))
        times.append((time.perf_counter() - began) / made)
    return 1 / median(times)


speeds = {name: tokens_a_second(step) for name, step in steps.items() if name != "yours"}
plots.bars(list(speeds), {"speed": list(speeds.values())}, "One text", "way", "tokens a second")

# %% [markdown]
# And yours, with all that it can do beyond this (batches, padding, penalties, a sliding window)?

# %% tags=["nbval-ignore-output"]
ids = torch.tensor([prompt])
generate(model, ids, 100, **knobs)
print(f"{generate(model, ids, 100, **knobs).tokens_per_second:,.0f} tokens a second")

# %% [markdown]
# <details><summary>So should we have written the course in C++?</summary>
#
# No: what you wrote can be read, changed and checked by a person, and runs on whatever torch runs on. `fast.cpp` knows one model, one row and no padding. But now you know what is to be had, and what it takes: not cleverness in the mathematics, which stayed the same to the last token, but attention to where the time goes.
#
# </details>
#
# > **In the wild.** The order of the steps is the same everywhere. gpt-fast (pytorch-labs/gpt-fast) removes the calls, by CUDA graphs, then halves and quarters the bytes. llama.cpp is compiled from the start, and its quantised formats are why people use it. vLLM fills the batch, so that one reading of the weights serves many. `make bench` in the course's repository
# > measures some of them on MiniGPT, side by side with what we built here.
#
# ## What we have
#
# - The floor of a step is bytes divided by bandwidth; one text at a time is bound by memory, not by arithmetic.
# - On a small model the calls cost more than the work. Fewer calls, then one.
# - The layout of a matrix changes no number and some of the time.
# - At the floor only fewer bytes help: int8 costs a fraction of a percent in bits per byte, 3 bits cost a lot.
# - Sorting a vocabulary to keep 50 tokens of it is waste.
# - Rivals take turns when they are timed, and what is told is a median.
#
# **Further.** Multiply bytes by bytes: quantise the input too, and use your processor's dot product of int8 (`vpdpbusd`, `sdot`). Or read a prompt in one pass in C++; ours reads it token by token. Or draft tokens with a smaller model and check them in one pass (Leviathan, Kalman and Matias 2023, [arXiv 2211.17192](https://arxiv.org/abs/2211.17192)): the one
# trick that gets below the floor without changing a bit.
