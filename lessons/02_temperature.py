# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 2: temperature, how daring a model is
#
# A model has given its scores. Do we take the safe road, the likeliest word each time, or do we dare something? There is a knob between the two. It costs one division, every library has it, and it is
# misread, and miswritten, more often than any other.
#
# **When you are through, you can**
#
# - say what the temperature does to a distribution, and what it can't do;
# - write `apply_temperature` and `entropy`, right at the edges too;
# - measure how spread out a distribution is, and how repetitive a text;
# - explain why "temperature 0" is not a temperature, and what libraries make of it.
#
# **Time:** about 50 minutes. **You need:** lesson 1 (logits, softmax, nats).

# %%
from course_lib.given.notebook import start

start("temperature")

# %%
import torch

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.temperature import apply_temperature, entropy

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. One division
#
# Two rows of logits will do for most of this lesson. Z has its best token at id 1, not 0, so that a mix-up shows.

# %%
Z = torch.tensor([1.0, 2.0, 0.5, 0.1])
Y = torch.tensor([2.0, 1.0, 0.1, -1.0, -2.0])
print("Z:", [f"{p:.2f}" for p in Z.softmax(dim=-1).tolist()])

# %% [markdown]
# Softmax sees differences: token 1 leads token 0 by 1, so it is e¹ = 2.7 times as likely.
#
# **Predict.** What if we double all the logits before the softmax? And if we halve them? Which of the two makes the favourite stronger?

# %%
by_hand = {
    "divided by 0.5": torch.tensor([2.0, 4.0, 1.0, 0.2]),
    "divided by 1": Z,
    "divided by 2": torch.tensor([0.5, 1.0, 0.25, 0.05]),
}
plots.bars(
    range(4),
    {name: row.softmax(dim=-1) for name, row in by_hand.items()},
    title="The same four scores, at three temperatures",
)

# %% [markdown]
# Doubled, the lead is 2, and token 1 is e² = 7.4 times as likely as token 0; halved, the lead is 0.5, and e to the 0.5 is only 1.6. The number that we divide by is the *temperature*:
#
# > **Temperature.** Divide the logits by T, *before* the softmax. Below 1 the distribution gets sharper, above 1 flatter, at 1 it stays as it is.
#
# $$p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}} \qquad\text{or, shorter, with another letter:}\qquad p = \mathrm{softmax}(z / \tau)$$
#
# The name is from physics: it is how hot matter spreads over states of different energy. In neural networks it came up with Boltzmann machines (Ackley, Hinton and Sejnowski 1985). For us it is a matter
# of character: *how daring* is the model? Cold, it says what is safest. Hot, it takes its chances.
#
# ### Your turn: temperature
#
# Open **`course_lib/temperature.py`** and write `apply_temperature`. The docstring says what it must do. Have in mind:
#
# - Which temperatures have no meaning? What does Python answer to `float("nan") <= 0`?
# - What becomes of a token that somebody banned, with a logit of -inf?
# - The largest number of a float16 is 65,504. What is 11 divided by 0.0001?
#
# A first look at your own function:

# %%
apply_temperature(Z, 0.5)

# %% [markdown]
# ### Checks
#
# They look at the softmax of what you return: rows that differ by a constant are the same distribution, so `(logits - max) / T` is as good as `logits / T`.

# %% grade_id="temperature-worked_numbers" points=2
from course_lib.checks import check, hidden

check("temperature-worked_numbers")

# %% grade_id="temperature-hot_and_cold" points=0.5
check("temperature-hot_and_cold")

# %% grade_id="temperature-any_shape" points=0.5
check("temperature-any_shape")

# %% grade_id="temperature-banned_stay_banned" points=0.5
check("temperature-banned_stay_banned")

# %% grade_id="temperature-half_precision" points=0.5
check("temperature-half_precision")

# %% grade_id="temperature-input_untouched" points=0.25
check("temperature-input_untouched")

# %% grade_id="temperature-zero" points=0.5
check("temperature-zero")

# %% grade_id="temperature-negative" points=0.5
check("temperature-negative")

# %% grade_id="temperature-nan" points=0.25
check("temperature-nan")

# %% grade_id="temperature-infinity" points=0.25
check("temperature-infinity")

# %% grade_id="temperature-by_hand" points=0.5
check("temperature-by_hand")

# %% [markdown]
# ## 2. How spread out is it?
#
# "Sharper" and "flatter" ought to be a number. In lesson 1 the *surprise* of a token was −log p. If the model is right about its own probabilities, it meets token i with probability pᵢ, so the surprise it has to
# *expect* is
#
# $$H = -\sum_i p_i \log p_i$$
#
# This is the *entropy* (Shannon 1948), in nats. And e to the H says how many equally likely tokens would be just as undecided, as the perplexity did.
#
# **Predict.** What is the entropy of a model that is certain? Of one that finds all of its V tokens equally likely?
#
# <details><summary>Answer</summary>
#
# 0: it will not be surprised. And log V: each of the V terms is (1/V) · log V. Everything else lies between the two.
#
# </details>
#
# ### Your turn: entropy
#
# Write `entropy` in **`course_lib/temperature.py`**. It takes logits, not probabilities. One question to have in mind: what is 0 times the logarithm of 0 to a computer, and what should it be?

# %%
print(torch.tensor(0.0) * torch.tensor(0.0).log())
print(f"{entropy(Z):.4f}")

# %% [markdown]
# ### Checks

# %% grade_id="temperature-entropy_worked_numbers" points=1
check("temperature-entropy_worked_numbers")

# %% grade_id="temperature-entropy_ends" points=1
check("temperature-entropy_ends")

# %% grade_id="temperature-entropy_banned" points=0.5
check("temperature-entropy_banned")

# %% grade_id="temperature-entropy_any_shape" points=0.5
check("temperature-entropy_any_shape")

# %% grade_id="temperature-entropy_half_precision" points=0.5
check("temperature-entropy_half_precision")

# %% grade_id="temperature-entropy_untouched" points=0.25
check("temperature-entropy_untouched")

# %% [markdown]
# ## 3. The numbers, by your own functions
#
# The three temperatures of the picture, and the entropy beside them.


# %%
def table(logits: torch.Tensor, temperatures) -> None:
    for temperature in temperatures:
        scaled = apply_temperature(logits, temperature)
        probs = "  ".join(f"{p:.6f}" for p in scaled.softmax(dim=-1).tolist())
        print(f"T = {temperature:<5} {probs}   entropy {entropy(scaled):.4f}")


table(Z, [0.5, 1.0, 2.0])

# %%
table(Y, [0.5, 1.0, 2.0])

# %% [markdown]
# The favourite of Z falls from 0.83 over 0.57 to 0.41, and the entropy rises with every step.
#
# **Predict.** Rounded to two digits the last row of Z is 0.25, 0.41, 0.19, 0.16. What is their sum, and what is wrong with the softmax?
#
# <details><summary>Answer</summary>
#
# 1.01, and nothing is wrong. Each of the four was rounded by itself, and three of them upwards. (0.245993 + 0.405575 + 0.191580 + 0.156852 = 1.) A table of rounded probabilities need not add up. Never
# *compute* with them: draw with the numbers that you have, not with those that you printed.
#
# </details>
#
# ### Very cold, very hot
#
# **Predict.** Where does the distribution go when T goes to 0? And when T goes to infinity?

# %%
table(Z, [0.1, 100])

# %% [markdown]
# Towards *greedy* on the cold side: the best token takes all. Towards *uniform* on the hot side: all four near 0.25, and the entropy near log 4 = 1.386. The whole way, in one picture:

# %%
temperatures = [0.1 * 1.27**i for i in range(30)]
entropies = {
    name: [entropy(apply_temperature(row, t)).item() for t in temperatures]
    for name, row in [("Z, 4 tokens", Z), ("Y, 5 tokens", Y)]
}
title = "The hotter, the more undecided"
plots.lines(temperatures, entropies, title, "temperature", "entropy in nats", log="x")

# %% [markdown]
# Both curves rise from nearly 0 and never fall. Each levels out at the logarithm of its number of tokens: 1.386 and 1.609.
#
# ### Two things that it never does
#
# **Predict.** Does a temperature change *which* token is the best one? Can it remove a token?

# %%
torch.manual_seed(0)
rows = torch.randn(1000, 50) * 4
for temperature in (0.1, 0.7, 1.5, 10):
    hot = apply_temperature(rows, temperature)
    same = (hot.argsort(dim=-1) == rows.argsort(dim=-1)).all()
    print(f"T = {temperature:<4} all 1000 rows in the same order: {same}")

# %% [markdown]
# Dividing by a number above 0 keeps the order, so the best stays the best. Greedy decoding doesn't notice the temperature at all.
#
# And e to anything is more than 0, so no token is ever removed, however cold it gets. In theory:

# %%
for dtype in (torch.float64, torch.float32):
    probs = apply_temperature(Z.to(dtype), 0.01).softmax(dim=-1)
    print(f"{dtype!s:>13}: probability of the last token {probs[-1]:.1e}")

# %% [markdown]
# 10 to the −83 is too small for a float32, so it becomes 0: the number ran out of digits, nobody banned the token. Its logit is still finite. To *remove* tokens is the business of lessons 3 and 4.
#
# ## 4. Temperature 0
#
# People ask for it all the time, and mean: be greedy. But dividing by 0 is no greedy decoding.
#
# **Predict.** What is `Z / 0`? Which token will `argmax` choose? And what if there is a logit of 0 or below?

# %%
for row in (Z, torch.tensor([0.0, 1.0, -2.0])):
    divided = row / 0
    print(f"{[round(z, 1) for z in row.tolist()]} / 0 = {divided.tolist()}")
    print(f"  argmax says {divided.argmax().item()}, the best is {row.argmax().item()}")
    print(f"  softmax: {divided.softmax(dim=-1).tolist()}")

# %% [markdown]
# Every positive logit becomes infinite, 0/0 is not a number, and the wrong token wins without any error. Only *drawing* notices:

# %%
try:
    torch.multinomial((Z / 0).softmax(dim=-1), 1)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# What to do about 0 is a decision, and libraries decide differently:
#
# | who | what temperature 0 does |
# |---|---|
# | transformers | an error (so is a whole number such as 1: it must be a `float`); greedy is `do_sample=False` |
# | vLLM, litgpt, llama.cpp | greedy (llama.cpp below 0, too: ggml-org/llama.cpp#9897) |
# | gpt-fast, a Rust course | clamps: the temperature is at least 0.00001 |
# | dnnlpy, a course of notebooks | an error, even with `do_sample=False`, where no temperature is used |
# | nanoGPT, MiniMind | divide |
#
# > **In the wild.** The plain division: karpathy/nanoGPT#738, google-deepmind/gemma#562. It is worst where it is silent: MiniMind with temperature 0 and `do_sample=False` takes the argmax of infinities. Another model skipped the
# > division at 0 and then drew as always, so that "0" quietly meant 1 (inclusionAI/LLaDA2.X#6).
#
# Ours: `apply_temperature` refuses 0, since there is nothing right that it could return. `next_token` and `generate`, in lessons 5 and 8, take temperature 0 for "greedy" and never call it.
#
# ### Find the bug: the clamp
#
# The clamp looks clever: 0 becomes very cold, and very cold is greedy.


# %%
def clamped(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    return (logits / max(temperature, 1e-5)).softmax(dim=-1)


print(clamped(Z, 0).tolist())

# %% [markdown]
# **Predict.** What does it do for a temperature of −1, which somebody typed by mistake? For logits in half precision? For two logits that are nearly equal?

# %%
print("T = -1:        ", clamped(Z, -1).tolist())
print("half precision:", clamped(torch.tensor([11.0625, 2.955], dtype=torch.float16), 0).tolist())
print("nearly equal:  ", [f"{p:.3f}" for p in clamped(torch.tensor([1.0, 1.000001]), 0).tolist()])

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# A wrong argument went through and became "greedy", so the caller will never learn of it. In float16 both quotients are beyond the largest number, 65,504: infinity over infinity. And two scores that differ by a
# millionth are still nearly a coin toss at T = 0.00001, so it is not greedy either. Refuse what makes no sense, compute in float32, and take greedy decoding for what it is: another function.
#
# </details>
#
# **Predict.** And what does a temperature of −1 *mean*, if we let it through?

# %%
print([f"{p:.2f}" for p in (Z / -1).softmax(dim=-1).tolist()])

# %% [markdown]
# The order is turned around: the worst token is now the favourite. That is why your function raises.
#
# ## 5. Your temperature on MiniGPT
#
# A place where the model has a choice. Move the slider, and watch the number in the title: e to the entropy.

# %%
prompt = "One day, Lily found a"
with torch.inference_mode():
    logits = model(torch.tensor([tokenizer.encode(prompt)]))[:, -1]


def picture(temperature: float):
    scaled = apply_temperature(logits, temperature)
    choices = entropy(scaled).exp().item()
    title = f"T = {temperature:.2f}, as undecided as between {choices:.3g} tokens"
    return plots.distribution(scaled, tokenizer, top=15, title=title)


explore(picture, temperature=(0.1, 3.0, 1.0))

# %% [markdown]
# **Predict.** At T = 2 the favourites have lost much of their probability. Who has got it?

# %%
for temperature in (0.5, 1.0, 2.0):
    probs = apply_temperature(logits, temperature).softmax(dim=-1)[0]
    rest = 1 - probs.topk(50).values.sum().item()
    print(f"T = {temperature}: all tokens beyond the best 50 hold {rest:.4f}")

# %% [markdown]
# Not the second and third best: the long tail, thousands of tokens that were worth a crumb each. A flat distribution over 4,096 tokens is mostly nonsense. That is why hot models babble, and why
# the next two lessons cut the tail off.
#
# ### Where the model hesitates
#
# Entropy is known *before* the next token is there, surprise after it. Side by side, along a sentence:

# %%
sentence = "Tom was hungry. He went to the kitchen and opened the door."
ids = torch.tensor([tokenizer.encode(sentence)])
with torch.inference_mode():
    rows = model(ids)[0, :-1]
surprise = -rows.log_softmax(dim=-1).gather(-1, ids[0, 1:, None])[:, 0]
plots.bars(
    [tokenizer.piece(i) for i in ids[0, 1:]],
    {"expected (entropy)": entropy(rows), "what came (surprise)": surprise},
    title="How much MiniGPT expects to be surprised, and is",
    ylabel="nats",
)

# %% [markdown]
# Some tokens hold hardly a question, others open many roads. One temperature is applied to all of them alike: what is right for the roads is too hot for the certain places, and the other way round.
#
# ### Cold stories, hot stories
#
# **Exercise.** Let MiniGPT tell stories at T = 0.1 and at T = 2.0. **Predict** first: what will each be like? Which mistakes will each make?


# %%
@torch.inference_mode()
def tell(temperature: float, stories: int = 1, new_tokens: int = 60) -> torch.Tensor:
    ids = torch.tensor([tokenizer.encode("Once upon a time")] * stories)
    generator = torch.Generator().manual_seed(0)
    for _ in range(new_tokens):
        probs = apply_temperature(model(ids)[:, -1], temperature).softmax(dim=-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1, generator=generator)], dim=1)
    return ids


# %% tags=["nbval-ignore-output"]
for temperature in (0.1, 2.0):
    for story in tell(temperature, stories=2):
        print(f"T = {temperature}: {tokenizer.decode(story)}\n")

# %% [markdown]
# A parrot and a babbler. Cold, the two stories hardly differ, and go round in circles if one lets them. Hot, no phrase comes back, since no phrase makes sense. Let us measure that. `distinct-n` is the share of
# different ones among all runs of n tokens (Li et al. 2016, [arXiv 1510.03055](https://arxiv.org/abs/1510.03055)); what is not distinct is a *repeat*.


# %%
def distinct(texts: list[list[int]], n: int) -> float:
    runs = [tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)]
    return len(set(runs)) / len(runs)


parrot = [[1, 2, 1, 2, 1, 2]]
print(f"distinct-1: {distinct(parrot, 1):.2f}, distinct-2: {distinct(parrot, 2):.2f}")

# %% [markdown]
# **Predict.** Draw the curves in your head: distinct tokens, distinct pairs, and the share of repeats among runs of four, from cold to hot.

# %% tags=["nbval-ignore-output"]
temperatures = [0.1, 0.5, 1.0, 1.5, 2.0]
told = [tell(t, stories=4, new_tokens=50).tolist() for t in temperatures]
measures = {
    "distinct-1": [distinct(texts, 1) for texts in told],
    "distinct-2": [distinct(texts, 2) for texts in told],
    "repeats of four": [1 - distinct(texts, 4) for texts in told],
}
plots.lines(temperatures, measures, "Four stories a temperature", "temperature", "share")

# %% [markdown]
# From left to right the parrot turns into the babbler. And no number in the picture says where the stories are *good*: nonsense is very distinct. Measures of variety have to be read together with the text. Usual settings lie
# between 0.7 and 1.0, and together with the filters of lessons 3 and 4.
#
# ### A gallery of failures
#
# Cold and long: does it find an end?

# %% tags=["nbval-ignore-output"]
print(tokenizer.decode(tell(0.1, new_tokens=150)[0]))

# %% [markdown]
# If a new story begins in the middle, the model has said its end token, which `decode` leaves out, and our loop went on all the same. (Lesson 8 stops.)
#
# Hot from the very first word, and hotter still:

# %% tags=["nbval-ignore-output"]
print(tokenizer.decode(tell(5.0, new_tokens=30)[0]))

# %% [markdown]
# In the hot story look for the first token that makes no sense. Everything after it is conditioned on it: the model tries to go on from nonsense, and is undecided from there on even at a lower temperature.
#
# ## 6. Find the bugs
#
# ### It has the wrong name
#
# A course has this function. Its docstring says "Sample the next token greedily".


# %%
def greedy_sampling(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    return (logits / temperature).softmax(dim=-1)


greedy_sampling(Z, 0.5)

# %% [markdown]
# <details><summary>What would you call it?</summary>
#
# `temperature_probs`, say. It draws nothing, it chooses nothing, and what comes out is a distribution, not a token. "Greedy sampling" is a contradiction anyway: greedy takes the best, sampling draws. A function that
# is named after what its caller *does with it* will be used wrongly.
#
# </details>
#
# ### It heats the wrong thing
#
# Two people were told to "divide by the temperature", and divided the probabilities. **Predict** what comes out at T = 0.5, where 0.112, 0.828, 0.041, 0.019 is right.

# %%
probs = Z.softmax(dim=-1) / 0.5
print("divided, then normalised:", [f"{p:.3f}" for p in (probs / probs.sum()).tolist()])
print("divided, then softmax:   ", [f"{p:.3f}" for p in probs.softmax(dim=-1).tolist()])

# %% [markdown]
# <details><summary>What happened?</summary>
#
# The first does nothing at all: the factor cancels when the sum is made 1 again. The second takes a softmax of a softmax. Probabilities differ by 1 at the most, so the "logits" of the second softmax are never far apart, however sure
# the model was: asked to be colder, it came out flatter than at T = 1.
#
# </details>
#
# <details><summary>And if one divides the <em>logarithms</em> of the probabilities?</summary>
#
# That is right. `log_softmax` takes the same constant off every logit, and a constant divided by T is a constant again, which the next softmax doesn't see. A pull request once reported this as a bug, with the argument that the
# denominator is another one (MoonshotAI/Kimi-Audio#161). It is, and it cancels. Try it: `(Z.log_softmax(-1) / 0.5).softmax(-1)`.
#
# </details>
#
# ### It heats twice
#
# One function divides, and then calls another one that divides too. **Predict.** At which temperature does nobody notice? What temperature do we get at T = 2?

# %%
twice = apply_temperature(apply_temperature(Z, 2), 2).softmax(dim=-1)
print("twice at 2:", [f"{p:.4f}" for p in twice.tolist()])
for temperature in (2, 4):
    once = apply_temperature(Z, temperature).softmax(dim=-1)
    print(f"once at {temperature}: ", [f"{p:.4f}" for p in once.tolist()])

# %% [markdown]
# Twice at T is once at T². At T = 1 it doesn't show, and most tests are written at T = 1.
#
# > **In the wild.** Two divisions on one of several backends: RL-Align/RL-Kernel#81. A division in the wrong place, after top-p had chosen its tokens: huggingface/transformers#8686 (llama.cpp does it in that order on
# > purpose; lesson 5 comes back to it).
#
# ### It heats behind your back


# %%
def heated(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    logits /= temperature
    return logits.softmax(dim=-1)


# %% [markdown]
# **Predict.** We call it twice, with the same tensor and the same temperature. Do we get the same answer twice?

# %%
scores = Z.clone()
for call in ("first", "second"):
    print(f"{call} call:", [f"{p:.3f}" for p in heated(scores, 0.5).tolist()])

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# `/=` writes into the caller's tensor, so the second call starts from logits that are hot already. In a notebook it is worse: each run of the cell changes the answer. `logits = logits / temperature` makes a new tensor. Nothing in this
# course changes its arguments, and each lesson has a check on it.
#
# </details>
#
# ## 7. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="temperature-hidden_any_batch" points=1
hidden("temperature-hidden_any_batch")

# %% grade_id="temperature-hidden_range" points=0.5
hidden("temperature-hidden_range")

# %% grade_id="temperature-hidden_banned_and_half" points=0.5
hidden("temperature-hidden_banned_and_half")

# %% grade_id="temperature-hidden_any_memory" points=0.5
hidden("temperature-hidden_any_memory")

# %% grade_id="temperature-hidden_entropy_any_batch" points=1
hidden("temperature-hidden_entropy_any_batch")

# %% grade_id="temperature-hidden_entropy_edges" points=1
hidden("temperature-hidden_entropy_edges")

# %% grade_id="temperature-hidden_entropy_any_memory" points=0.5
hidden("temperature-hidden_entropy_any_memory")

# %% [markdown]
# ## 8. In your own words
#
# A team writes: "At temperature 0.2 our bot knows more than at 1.2. At 0 it crashed, so we set 0.00001, which is the same." In three or four sentences: what does the temperature change and what does it not, and
# what do you think of 0.00001?

# %% [markdown] grade_id="temperature-written" points=2 written=true
# The temperature only divides the scores: it changes how much probability the likely tokens get against the unlikely ones. It changes neither their order nor what the model knows, and it removes no token; at 0.2 the bot dares
# less, so it falls for fewer improbable tokens, and repeats itself more. A temperature of 0.00001 is nearly greedy, but not the same: two almost equal scores are still drawn by lot, and in half precision the quotients
# overflow, so that infinity over infinity gives NaN. If they want greedy decoding they should ask for it, with an argmax.

# %% [markdown]
# ## What we have, and what comes next
#
# - Temperature divides the *logits*, before the softmax: below 1 sharper, above 1 flatter.
# - It keeps the order and removes nothing. T → 0 is greedy, T → ∞ is uniform, T = 0 is another function.
# - Entropy says how spread out a distribution is: 0 to log V nats. Hot means more of it.
# - Cold repeats, hot babbles, and the probability that hot gives away goes mostly to the tail.
#
# **Stretch.** One temperature for all places is crude. Write `at_entropy(logits, nats)` that finds, by halving an interval, the temperature at which the entropy is what you ask for; your curves say why there is just one. Tell a story with 1.5 nats at each
# step. What happens in places where the model was certain?
#
# **Next:** lesson 3, top-k: the tail is cut off.
