# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 5: sampling, how a token is drawn
#
# Four lessons of numbers, and not one word chosen by our own hands. Now we choose. It can be done without chance (take the best) or with it (spin a wheel), and at the end of this lesson one function of yours, `next_token`, does either, with every knob that we have built.
#
# **When you are through, you can**
#
# - choose greedily, for a whole batch, and say what is good and what is bad about it;
# - turn a random number into a token, so that each token comes as often as its probability says;
# - make draws that can be repeated, and know what a seed promises and what it does not;
# - put temperature, top-k, top-p and the draw together in the right order;
# - pick settings for a task, and say why they are rules of thumb and not laws.
#
# **Time:** about 100 minutes, with a good place for a break after section 4. **You need:** lessons 2 to 4. `next_token` calls *your* functions of those lessons.

# %%
from course_lib.given.notebook import start

start("sampling")

# %%
import torch

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.sampling import greedy, inverse_cdf, next_token, sample
from course_lib.temperature import apply_temperature
from course_lib.top_k import top_k_filter
from course_lib.top_p import top_p_filter

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. One question, many answers
#
# "I like to eat ..." Apples? Rice? Pizza? There is no right answer, and a model does not pretend that there is one. It gives a *distribution*.


# %%
def next_logits(text: str) -> torch.Tensor:
    """Logits (1, V) for the token after a text."""
    with torch.inference_mode():
        return model(torch.tensor([tokenizer.encode(text)]))[:, -1]


HUNGRY = "Tom was hungry. He wanted to eat some"
plots.distribution(next_logits(HUNGRY), tokenizer, top=12, title=f"After: {HUNGRY}")

# %% [markdown]
# To go on we need *one* token. Two ways:
#
# - **greedy**: take the most probable one;
# - **sampling**: draw, each token with its probability.
#
# Libraries have a switch for it, and it comes in two polarities: `do_sample=True` in transformers and MiniMind, `greedy=False` in the notebook course dnnlpy. Ours is `do_sample`.
#
# ## 2. Greedy
#
# Open **`course_lib/sampling.py`** and write `greedy`, the first of four functions. It is one line, and that line can go wrong in three ways:
#
# - `argmax` without an axis: which row does it look at?
# - The answer is wanted as `(B, 1)`, since it will be appended to ids of shape `(B, T)`. What shape does `argmax` give?
# - What should happen to logits of shape `(B, T, V)`, which somebody forgot to cut down to the last position?
#
# A first look. Y and Z are our old friends; their best tokens are 0 and 1.

# %%
Y = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
Z = torch.tensor([[1.0, 2.0, 0.5, 0.1]])
print(greedy(Y), greedy(Z))

# %% [markdown]
# ### Checks

# %% grade_id="sampling-greedy_best" points=1
from course_lib.checks import check, hidden

check("sampling-greedy_best")

# %% grade_id="sampling-greedy_tie" points=0.5
check("sampling-greedy_tie")

# %% grade_id="sampling-greedy_shape" points=0.5
check("sampling-greedy_shape")

# %% [markdown]
# ### Find the bug: one answer for two
#
# An article on MiniMind's code explains greedy decoding with this expression. **Predict** what it says to two rows.

# %%
two_rows = torch.tensor([[1.0, 2.0], [9.0, 0.0]])
print(torch.argmax(two_rows))

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# Without `dim`, `argmax` flattens: of the four numbers 1, 2, 9, 0 the third is largest, so 2 comes out. It is an answer to no question: there is no token 2, and there should be two answers. With one row the two things are the same, and so a test with one row finds nothing.
# `argmax(dim=-1, keepdim=True)` says what is meant. (MiniMind itself does write that.)
#
# </details>
#
# ## 3. Always the best?
#
# Greedy has two great virtues. It needs no luck, and it repeats itself: same prompt, same answer.


# %%
@torch.inference_mode()
def go_on(text: str, new_tokens: int) -> str:
    """The text with greedy tokens appended."""
    ids = torch.tensor([tokenizer.encode(text)])
    for _ in range(new_tokens):
        ids = torch.cat([ids, greedy(model(ids)[:, -1])], dim=1)
    return tokenizer.decode(ids[0])


print("twice the same:", go_on("Lily and Ben", 15) == go_on("Lily and Ben", 15))

# %% [markdown]
# **Predict.** We let it talk for a while. Will the story get better or worse?

# %%
print(go_on("Mia said hello. Ben said hello.", 60))

# %% [markdown]
# That is the first failure in our gallery, and it is not a weakness of small models only. Three complaints are made about greedy decoding. Each is half right.
#
# | people say | what is right about it | what is not |
# |---|---|---|
# | It repeats itself. | It does, more than any other method. | "Because the token with the highest probability stays the highest": no, the context changes with each token, and so does the distribution. |
# | It holds no surprise. | It can't: it is a function of the prompt. | That may be just what you want. |
# | It takes a wrong turn and can't go back. | It never goes back. | No left-to-right method does, sampling included. |
#
# So why does it loop? Let us measure. We repeat a sentence ourselves, and look at how probable the model finds each copy.
#
# **Predict.** Does a sentence get more or less probable when it has just been said?

# %%
sentence = tokenizer.encode(" The cat looked at the moon.")
ids = torch.tensor([tokenizer.encode("One night it was warm.") + sentence * 5])
with torch.inference_mode():
    log_probs = model(ids)[0, :-1].log_softmax(dim=-1)
seen = log_probs.gather(-1, ids[0, 1:, None])[:, 0]  # log-probability of the token that came
copies = seen[-5 * len(sentence) :].view(5, -1).mean(dim=-1).exp()
title = "How probable a token of the sentence is, on average"
plots.bars(["1st time", "2nd", "3rd", "4th", "5th"], {"probability": copies}, title, "copy")

# %% [markdown]
# Far more probable, once it has been said. A text that repeats itself asks for more of the same: each copy is an argument for the next, and greedy decoding never does the one thing that would break the circle: something less probable. (Holtzman and others measured this in 2020, [arXiv 1904.09751](https://arxiv.org/abs/1904.09751). Lesson 6 has a remedy.)
#
# ## 4. The roulette
#
# A computer can give us a random number u from 0 to 1 (1 excluded), any one as likely as any other. How do we make a token of it? We lay the probabilities end to end, as if we had cut a roulette wheel open and straightened its rim. The stretch on which u falls is our token.
#
# Here is the nucleus of lesson 4, as top-p with p = 0.9 cuts it out of Z:

# %%
nucleus = torch.tensor([[0.231224, 0.628532, 0.140244, 0.0]])
plots.roulette(
    range(4), nucleus[0], u=0.7, title="Four tokens on the line from 0 to 1, one without room"
)

# %% [markdown]
# **Predict.** Which token for u = 0.7? For u = 0.1? For u = 0.95? What is the chance of token 1, if every u is equally likely?
#
# A stretch is as long as its probability, so u falls on it just so often. That is all. The ends of the stretches are sums, 0.231224, 0.859756, 1, 1: the *cumulative distribution function*, CDF. We are looking for the first id whose sum is *above* u. Going backwards from a value of the CDF to an id is what gives the method its name:
# *inverse CDF*. (Devroye has a chapter on it, 1986. A loop that subtracts one probability after the other from u until it can't, as a Rust course does, is the same.)
#
# ### Your turn: inverse_cdf
#
# Write `inverse_cdf`. Questions to have in mind:
#
# - u = 0, and token 0 has probability 0. Must token 0 not come? Is "the first sum that is *at least* u" good enough?
# - Rounding: a thousand probabilities may add up to 0.9999998. What if u = 0.9999999?
# - And if the last token has probability 0: who stands at the end of the line?
# - `torch.searchsorted` walks for you, if you tell it on which `side` to stop.
#
# A first look, with six balls on the same wheel:

# %%
inverse_cdf(nucleus.repeat(6, 1), torch.tensor([0.0, 0.2, 0.24, 0.85, 0.87, 0.999])).flatten()

# %% [markdown]
# ### Checks

# %% grade_id="sampling-cdf_stretches" points=0.75
check("sampling-cdf_stretches")

# %% grade_id="sampling-cdf_step" points=0.25
check("sampling-cdf_step")

# %% grade_id="sampling-cdf_probability_zero" points=0.5
check("sampling-cdf_probability_zero")

# %% grade_id="sampling-cdf_weights" points=0.25
check("sampling-cdf_weights")

# %% grade_id="sampling-cdf_rows" points=0.25
check("sampling-cdf_rows")

# %% grade_id="sampling-cdf_float64" points=0.25
check("sampling-cdf_float64")

# %% grade_id="sampling-cdf_bad_values" points=0.25
check("sampling-cdf_bad_values")

# %% grade_id="sampling-cdf_no_mass" points=0.25
check("sampling-cdf_no_mass")

# %% grade_id="sampling-cdf_wrong_u" points=0.25
check("sampling-cdf_wrong_u")

# %% grade_id="sampling-cdf_input_untouched" points=0.25
check("sampling-cdf_input_untouched")

# %% grade_id="sampling-cdf_against_a_loop" points=0.25
check("sampling-cdf_against_a_loop")

# %% [markdown]
# ### Spin it yourself
#
# The six best tokens after a prompt of ours. Move the ball.

# %%
best = next_logits("Once upon a time, there was a little").softmax(dim=-1).topk(6)
pieces = [tokenizer.piece(i) for i in best.indices[0]]


def spin(u: float):
    place = inverse_cdf(best.values, torch.tensor([u]))
    token = best.indices.gather(-1, place)
    title = (
        f"u = {u:.2f}: place {place.item()}, token {token.item()}, {tokenizer.piece(token.item())}"
    )
    return plots.roulette(pieces, best.values[0], u, title)


explore(spin, u=(0.0, 0.99, 0.5, 0.01))

# %% [markdown]
# Note the line with `gather`. The wheel has six places, and `inverse_cdf` answers with a *place*, 0 to 5; the token that stands there is another number. The same with the nucleus in the order of its ranks, where ids 1, 0, 2 stand at places 0, 1, 2:

# %%
by_rank = torch.tensor([[0.628532, 0.231224, 0.140244]])
ids_by_rank = torch.tensor([1, 0, 2])
us = torch.tensor([0.0, 0.5, 0.62, 0.63, 0.7, 0.85, 0.86, 0.9, 0.999999])
places = inverse_cdf(by_rank.repeat(9, 1), us).flatten()
print("places:", places.tolist())
print("ids:   ", ids_by_rank[places].tolist())

# %% [markdown]
# Same probabilities, other order, other tokens for the same u. Is that allowed? Certainly: each token still has a stretch of its own length. Only the *frequencies* are promised, not which u means what. Whoever forgets the way from place to id, though, and returns the place as if it were an id, gets a token that was never meant. It is a classic slip after `topk` or `sort`, and a test whose best token has id 0 may well miss it.
#
# ### On the steps
#
# **Predict.** Probabilities 0.25, 0.25, 0.5, and u exactly 0.25. Token 0 or token 1?

# %%
quarters = torch.tensor([[0.25, 0.25, 0.5]])
for u in (0.0, 0.2499, 0.25, 0.5, 0.99):
    print(f"u = {u}: token {inverse_cdf(quarters, torch.tensor([u])).item()}")

# %% [markdown]
# A stretch owns its left end and not its right one. Then every u belongs to exactly one token, and a token without a stretch to none. With the opposite choice, u = 0 would belong to token 0 even where that is banned: a chance of one in 2⁵³, or, with the 24 bits of a float32, one in 16 million. That is one accident a day for a busy server.
#
# > **In the wild.** `torch.multinomial` itself has drawn elements of weight zero, about once in ten million draws: pytorch/pytorch#48841 shows it with a row of just two weights, pytorch/pytorch#50034 with four. A banned token that comes out once in ten million times is the kind of bug that nobody believes.
#
# ### Does it keep its promise?
#
# **Exercise.** Draw with random u, look at what was hit, and compare the frequencies with the probabilities. First ten draws, by eye:

# %%
generator = torch.Generator().manual_seed(0)
for u in torch.rand(10, dtype=torch.float64, generator=generator):
    token = inverse_cdf(Z.softmax(dim=-1), u[None]).item()
    print(f"u = {u:.3f} hits token {token}")

# %% [markdown]
# **Predict.** Now 100,000 draws. How close do the frequencies come, in digits?

# %%
n = 100_000
probs = Z.softmax(dim=-1)
us = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
found = inverse_cdf(probs.expand(n, -1), us).flatten()
frequencies = found.bincount(minlength=4) / n
for i, (p, f) in enumerate(zip(probs[0].tolist(), frequencies.tolist(), strict=True)):
    sigma = (p * (1 - p) / n) ** 0.5
    print(f"token {i}: probability {p:.4f}, frequency {f:.4f}, {(f - p) / sigma:+.1f} sigma off")

# %% [markdown]
# Two or three digits, and they will never agree entirely: the frequency of n draws wobbles by *sigma* = √(p(1 − p)/n). For one more digit you need a hundred times as many draws. A wobble of more than three sigma happens to a *right* sampler in one of 370 trials.
#
# <details><summary>Then how can a check ever say that a sampler is wrong?</summary>
#
# By leaving chance out where it can: `inverse_cdf` is given its u, and has one right answer. Where frequencies must be counted, our check *sample draws each id as often as its probability says* has a fixed seed and bounds so wide that it refuses a right sampler less than once in a thousand million runs. A check with bounds of three sigma on four tokens would refuse about one
# right answer in a hundred, and send its author looking for a bug that isn't there.
#
# </details>
#
# <details><summary>"The probability that token i comes is exactly pᵢ." Is it?</summary>
#
# Up to rounding. A float64 u has 2⁵³ values, and a stretch holds a whole number of them. And the sum of the probabilities is not exactly 1, so somebody owns the crumb that is left over: the last token of positive probability if the code has a fallback, everybody a little if the mass is normalised first, as yours does. No one will ever see the difference. But an
# index that points beyond the last token, for u above a sum of 0.9999998, is seen at once.
#
# </details>
#
# ## 5. Draws that can be repeated
#
# `inverse_cdf` is told its u. `sample` fetches one for each row, from a *generator*: a machine with an inner state, which gives a number and moves on. A seed sets the state.
#
# Write `sample`. Have in mind: one u a row, or one for all? What should the generator's state be after the call? Where do random numbers come from if no generator is given?
#
# A first look:

# %%
generator = torch.Generator().manual_seed(1)
wheel = torch.full((1, 50), 0.02)  # fifty tokens, all alike
print([sample(wheel, generator).item() for _ in range(8)])
generator = torch.Generator().manual_seed(1)
print([sample(wheel, generator).item() for _ in range(8)])

# %% [markdown]
# ### Checks

# %% grade_id="sampling-sample_certain" points=0.25
check("sampling-sample_certain")

# %% grade_id="sampling-sample_shares" points=0.5
check("sampling-sample_shares")

# %% grade_id="sampling-sample_own_draw" points=0.25
check("sampling-sample_own_draw")

# %% grade_id="sampling-sample_repeats" points=0.5
check("sampling-sample_repeats")

# %% grade_id="sampling-sample_no_distribution" points=0.25
check("sampling-sample_no_distribution")

# %% grade_id="sampling-sample_input_untouched" points=0.25
check("sampling-sample_input_untouched")

# %% [markdown]
# ### What a seed promises
#
# **Predict.** Four rows in one call, or four calls with one row each, from generators with the same seed. Same tokens?

# %%
together = sample(wheel.repeat(4, 1), torch.Generator().manual_seed(3)).flatten().tolist()
generator = torch.Generator().manual_seed(3)
one_by_one = [sample(wheel, generator).item() for _ in range(4)]
print(together, one_by_one)

# %% [markdown]
# The same, if you draw one u a row, in order. It also means that a row's token depends on how many rows come before it. Add a prompt in front of the batch, and everybody draws something else.
#
# A published notebook prints what it drew with `torch.manual_seed(42)` from our Y: first a 0, then 0, 0, 1, 0, 0. Does *yours* draw that? Does torch still?

# %% tags=["nbval-ignore-output"]
torch.manual_seed(42)
print("torch.multinomial:", [torch.multinomial(Y.softmax(dim=-1), 1).item() for _ in range(6)])
torch.manual_seed(42)
print("your sample:      ", [sample(Y.softmax(dim=-1)).item() for _ in range(6)])

# %% [markdown]
# Two right samplers, one seed, and as a rule different tokens: they *use* their random numbers differently. A seed makes one program on one kind of machine repeat itself. It promises nothing across libraries, versions or processors. So nobody here is graded on printed draws, and you should not write such a test either.
#
# > **In the wild.** The promise was broken within one library: in vLLM a seeded request changed with its neighbours in the batch (vllm-project/vllm#1637 tells why that is hard, #51226 is a case from years later). An engine that drew the first token once and gave it to all samples of a prompt: karpathy/nanochat#201. A sampler that drew for row 0 only: NVlabs/Fast-dLLM#64. A chip's code path that
# > ignored the seed and everything else, with k = 1 built in: google-ai-edge/LiteRT-LM#2080.
#
# ### Find the bug: a seed in the wrong place
#
# This storyteller is reproducible. It is also very strange. **Predict** what is wrong before you run it.


# %%
@torch.inference_mode()
def stubborn(text: str, seed: int, new_tokens: int = 25) -> str:
    ids = torch.tensor([tokenizer.encode(text)])
    for _ in range(new_tokens):
        generator = torch.Generator().manual_seed(seed)
        probs = top_k_filter(model(ids)[:, -1], 20).softmax(dim=-1)
        ids = torch.cat([ids, sample(probs, generator)], dim=1)
    return tokenizer.decode(ids[0])


# %% tags=["nbval-ignore-output"]
for seed in (0, 1):
    print(f"seed {seed}: {stubborn('One day', seed)}\n")

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# The generator is seeded anew at *every* token, so every token is drawn with the same u. A story is then told by one number: with u = 0.02 always from the left end of the wheel. Each single draw is right, and their frequencies over many seeds are right, too. What is missing is that draws are independent of each other. Seed once, before the loop, and let the generator
# move on.
#
# </details>
#
# ### Find the bug: a proof
#
# A course has made its generator faster. It shows that the fast version writes the same as the slow one: the slow one continues "Once upon a", the fast one continues "The fox", both with the same random numbers running on. "The two texts are highly consistent."
#
# **Question.** What does it prove? What would you run?
#
# <details><summary>Answer</summary>
#
# Nothing. Two prompts have two continuations, whatever is fast or slow, and from the second demo on the random numbers are others, too. "Highly consistent" is what any two children's stories are. A proof has the *same* prompt and a *fresh generator with the same seed*, and then the ids must be identical, every one of them. One different token is a bug, or a rounding error that met a very close
# decision, and it is worth finding out which. (The author saw it himself, and called the demo a bad example in a later lesson.)
#
# </details>
#
# ## 6. All in one: next_token
#
# Everything that we have, in order. For each row of logits:
#
# 1. **temperature**: how sharp?
# 2. **top-k**: at most how many?
# 3. **top-p**: how much probability, of what is left?
# 4. **softmax**: scores to shares; banned tokens get 0;
# 5. **u**: a random number a row;
# 6. **find**: the token on whose stretch u falls.
#
# And before the first step: is it to be greedy? `temperature=0` and `do_sample=False` both mean that, and then there is no u. By default every knob is off (`temperature=1.0, top_k=None, top_p=None`), and it draws (`do_sample=True`).
#
# Write `next_token`. You have all the parts. What is left is the care:
#
# - Which arguments make no sense *even if* the choice is greedy?
# - A row with a NaN, or a row where everything is banned: what would your parts make of it? What would a caller want to hear?
# - Temperature 0.000001 on a logit of 1,000: what is their quotient, and how far can float32 count?
#
# A first look: twelve draws with T = 1, k = 3 and p = 0.9 from Y. After lesson 4 you know which two tokens can come.

# %%
generator = torch.Generator().manual_seed(0)
rows = Y.repeat(12, 1)
print(next_token(rows, top_k=3, top_p=0.9, generator=generator).flatten().tolist())

# %% [markdown]
# ### Checks

# %% grade_id="sampling-next_greedy" points=0.5
check("sampling-next_greedy")

# %% grade_id="sampling-next_ids" points=0.25
check("sampling-next_ids")

# %% grade_id="sampling-next_support" points=0.25
check("sampling-next_support")

# %% grade_id="sampling-next_temperature" points=0.25
check("sampling-next_temperature")

# %% grade_id="sampling-next_after_top_k" points=0.25
check("sampling-next_after_top_k")

# %% grade_id="sampling-next_repeats" points=0.25
check("sampling-next_repeats")

# %% grade_id="sampling-next_unusable" points=0.25
check("sampling-next_unusable")

# %% grade_id="sampling-next_wrong_arguments" points=0.25
check("sampling-next_wrong_arguments")

# %% grade_id="sampling-next_input_untouched" points=0.25
check("sampling-next_input_untouched")

# %% [markdown]
# ### The six steps, one by one
#
# The Rust course's demo settings on Z: T = 0.8, k = 10, p = 0.9. **Predict** which steps change anything, and which token is lost.

# %%
scaled = apply_temperature(Z, 0.8)
short = top_k_filter(scaled, 10)
nucleus_of_three = top_p_filter(short, 0.9)
stages = {"the scores": Z, "1 temperature": scaled, "2 top-k": short, "3 top-p": nucleus_of_three}
series = {name: row.softmax(dim=-1)[0] for name, row in stages.items()}  # step 4
plots.bars(range(4), series, "T = 0.8, k = 10, p = 0.9")

# %%
probs = top_p_filter(top_k_filter(apply_temperature(Z, 0.8), 10), 0.9).softmax(dim=-1)
order = probs[0].argsort(descending=True)[:3]
print("ids", order.tolist(), "with", [f"{p:.6f}" for p in probs[0, order].tolist()])
u = torch.tensor([0.75])  # step 5
token = inverse_cdf(probs, u).item()  # step 6
plots.roulette(range(4), probs[0], u.item(), f"u = {u.item()} falls on token {token}")

# %% [markdown]
# The temperature sharpens. Top-k has nothing to do, since there are only four tokens. Top-p stops at the third, and token 3's share goes to the others. What is left is a wheel, and a ball.
#
# ### Who does what
#
# The same function in four code bases:
#
# | | call | greedy is | a row must be |
# |---|---|---|---|
# | ours | `next_token(logits, temperature, top_k, top_p, do_sample, generator)` | `temperature=0` or `do_sample=False` | `(B, V)` |
# | dnnlpy | `sample_next_token(logits, temperature, top_k, top_p, greedy)` | `greedy=True` | `(B, V)`, else an error |
# | a Rust course | `sample_token(logits, temperature, top_k, top_p, rng)` | a temperature clamped to 0.00001 | one row |
# | MiniMind | an expression inside `generate`: `multinomial(softmax(logits), 1) if do_sample else argmax(dim=-1, keepdim=True)` | `do_sample=False` | `(B, V)` |
#
# <details><summary>A text says: "top_k = 1 samples only near the most probable token, so it is nearly greedy." Nearly?</summary>
#
# It is greedy. One token is left, its probability is 1, and every u falls on it. The only exception are ties: if two tokens share the first place, ours keeps both and tosses a coin, while greedy takes the lower id.
#
# </details>
#
# <details><summary>And p = 0? And a very low temperature?</summary>
#
# p = 0 leaves the best token alone, so it is greedy too, with the lower id on a tie. A very low temperature is nearly greedy, but two logits that differ by a millionth remain a coin toss at T = 0.00001.
#
# </details>
#
# ### Find the bug: who looks first?
#
# Two published ways to begin such a function. **Predict**, for each: what comes out of Z with temperature 0 and `do_sample=False`?


# %%
def published_one(logits, temperature: float, do_sample: bool):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    logits = logits / temperature
    if not do_sample:
        return logits.argmax(dim=-1, keepdim=True)
    # ... and so on


def published_two(logits, temperature: float, do_sample: bool):
    logits = logits / temperature
    if not do_sample:
        return logits.argmax(dim=-1, keepdim=True)
    # ... and so on


# %%
for function in (published_one, published_two):
    try:
        print(function.__name__, "says", function(Z, 0.0, do_sample=False).item())
    except ValueError as error:
        print(function.__name__, "raises:", error)
print("yours says", next_token(Z, temperature=0.0, do_sample=False).item())

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# The first refuses a temperature that nobody was going to use; it is a nuisance, no more. The second is dangerous. Z / 0 is infinity four times, and among equals the argmax takes the first: token 0, where 1 is right. No error, and a wrong token for ever. Ask whether it is greedy *first*; a greedy choice needs no temperature. But look at the arguments all the same: a
# temperature of −1 is a mistake in any mode.
#
# </details>
#
# > **In the wild.** transformers warns if you set `do_sample=False` *and* `temperature=0`, and raises for temperature 0 with `do_sample=True` (huggingface/transformers#36896 is the complaint of one who tried both, #25722 is where the error message learned to name the way out).
#
# <details><summary>Three functions are documented as "sample the next token" and called <code>greedy_sampling</code>, <code>top_k_sampling</code>, <code>top_p_sampling</code>. The first returns a softmax, the others filtered logits. What is wrong?</summary>
#
# None of them samples, and the first is not greedy either. The test for a good name is the *type of the answer*: probabilities `(B, V)`, logits `(B, V)` and a token `(B, 1)` are three different things. `temperature_probs`, `top_k_filter`, `top_p_filter` say which one you get. So does `next_token`.
#
# </details>
#
# ## 7. Your sampler on MiniGPT
#
# All knobs at once, on a real step. The picture shows the distribution *after* the temperature; coloured is what the filters keep. (k = 0 and p = 1 are off.)

# %%
OPEN = "One day, Lily found a"
open_logits = next_logits(OPEN)


def knobs(temperature: float, top_k: int, top_p: float):
    scaled = apply_temperature(open_logits, temperature)
    kept = top_p_filter(top_k_filter(scaled, top_k), top_p).isfinite()
    title = f"T = {temperature:.2f}, k = {top_k}, p = {top_p:.2f}, after: {OPEN}"
    return plots.distribution(scaled, tokenizer, kept=kept, top=15, title=title)


explore(knobs, temperature=(0.1, 2.0, 0.8), top_k=(0, 50, 10), top_p=(0.0, 1.0, 0.9))

# %% [markdown]
# **Try it.** Find three different settings that keep exactly five tokens. Which one of them would you trust at *another* place of the story?
#
# ### A story, step by step
#
# To watch the ball we take `next_token` apart once more, with T = 0.9, k = 8, p = 0.9. Each step of the slider is a step of the loop. Above: what was written so far, what could come, and what the filters keep. Below: the wheel of the kept tokens, and where u fell.


# %%
@torch.inference_mode()
def one_step(ids: torch.Tensor, u: torch.Tensor):
    """Scaled logits, the same after both filters, and the token that u hits."""
    scaled = apply_temperature(model(ids)[:, -1], 0.9)
    left = top_p_filter(top_k_filter(scaled, 8), 0.9)
    return scaled, left, inverse_cdf(left.softmax(dim=-1), u)


def at_step(step: int):
    us = torch.rand(16, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ids = torch.tensor([tokenizer.encode("Mia opened the")])
    for u in us[: step + 1]:
        scaled, left, token = one_step(ids, u[None])
        ids = torch.cat([ids, token], dim=1)
    stay = left[0].isfinite().nonzero()[:, 0]
    names = [tokenizer.piece(i) for i in stay]
    said, hit = tokenizer.decode(ids[0, :-1])[-50:], tokenizer.piece(token.item())
    return plots.column(
        plots.distribution(scaled, tokenizer, left.isfinite(), 8, f"step {step}: “{said}”"),
        plots.roulette(
            names, left.softmax(dim=-1)[0, stay], u.item(), f"u = {u:.2f} falls on {hit}"
        ),
    )


explore(at_step, step=(0, 15, 0))

# %% [markdown]
# ### Several answers to one question
#
# The same prompt in each row of a batch, and each row draws for itself: several candidates in one go.

# %%
SETTINGS = {"temperature": 0.9, "top_k": 10, "top_p": 0.9}


@torch.inference_mode()
def tell(text: str, stories: int = 1, new_tokens: int = 40, seed: int = 0, **settings) -> list[str]:
    ids = torch.tensor([tokenizer.encode(text)] * stories)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(new_tokens):
        token = next_token(model(ids)[:, -1], **settings, generator=generator)
        ids = torch.cat([ids, token], dim=1)
    return [tokenizer.decode(row) for row in ids]


# %% tags=["nbval-ignore-output"]
for answer in tell(HUNGRY, stories=5, new_tokens=12, **SETTINGS):
    print(answer)

# %% [markdown]
# **Predict.** Five answers again, with `do_sample=False`. How many different ones? And how many with another seed?

# %%
answers = tell(HUNGRY, stories=5, new_tokens=12, do_sample=False)
answers += tell(HUNGRY, stories=5, new_tokens=12, do_sample=False, seed=1)
print(len(answers), "answers,", len(set(answers)), "of them different")

# %% [markdown]
# ## 8. Which settings?
#
# Three authors, three tables. They agree more than they differ:
#
# | for | a Rust course | dnnlpy | an article on MiniMind |
# |---|---|---|---|
# | exactness: code, facts, summaries | T 0.2 to 0.7, k 5 to 20, p 0.8 to 0.9 | T 0.2 to 0.8, k small or off, p 0.8 to 0.95 | |
# | conversation | T 0.7 to 0.9, k 30 to 50, p 0.9 to 0.95 | | T 0.7 to 1.0, p 0.8 to 0.95 |
# | variety: stories, ideas, several candidates | T 0.9 to 1.2, k large or off, p 0.95 to 1.0 | T 0.8 to 1.2, p 0.9 to 0.98 | |
#
# And what they use themselves:
#
# | | T | k | p |
# |---|---|---|---|
# | the Rust course's demo | 0.8 | 10 | 0.9 |
# | dnnlpy's demo | 0.8 | 5 | 0.9 |
# | MiniMind, defaults of `generate` | 0.85 | 50 | 0.85 |
# | MiniMind, `eval_llm.py` | 0.85 | (not set) | 0.95 |
#
# Read these as rules of thumb. They were found by trying, on other models, with another order of the filters in some. What carries over is the direction: *where one answer is right, be cold; where many are good, be warm; where the tail is long, cut it.* A temperature and one filter are often enough, and a third knob is one more thing that has to be
# explained.
#
# What do the settings leave of a distribution? Counted on MiniGPT, at a closed place and at an open one:

# %%
PRESETS = {
    "greedy": {"do_sample": False},
    "Rust course": {"temperature": 0.8, "top_k": 10, "top_p": 0.9},
    "dnnlpy": {"temperature": 0.8, "top_k": 5, "top_p": 0.9},
    "MiniMind": {"temperature": 0.85, "top_k": 50, "top_p": 0.85},
    "everything off": {},
}
for name, knob in list(PRESETS.items())[1:]:
    sizes = []
    for text in ("Once upon", OPEN):
        scaled = apply_temperature(next_logits(text), knob.get("temperature", 1.0))
        kept = top_p_filter(top_k_filter(scaled, knob.get("top_k")), knob.get("top_p"))
        sizes.append(kept.isfinite().sum().item())
    print(f"{name:>14}: keeps {sizes[0]} after 'Once upon', {sizes[1]} after {OPEN!r}")

# %% [markdown]
# **Predict** the order of these stories from dull to mad, then read.

# %% tags=["nbval-ignore-output"]
for name, settings in PRESETS.items():
    (story,) = tell("One day, a boy named Max", new_tokens=50, **settings)
    print(f"{name}: {story}\n")

# %% [markdown]
# ### The gallery of failures
#
# Three ways to spoil it. **Predict** what each of them sounds like.

# %% tags=["nbval-ignore-output"]
failures = {
    "greedy, for long": {"do_sample": False, "new_tokens": 80},
    "too hot: T = 2, no filter": {"temperature": 2.0},
    "too hot, with p = 0.9": {"temperature": 2.0, "top_p": 0.9},
    "too small a p: T = 1, p = 0.1": {"top_p": 0.1},
}
for name, settings in failures.items():
    print(f"{name}: {tell('The sun was hot and the sand was hot and', **settings)[0]}\n")

# %% [markdown]
# - **Greedy, for long** comes back to its own words. (Where a second story is glued to a first one, in any of our samples, the model had said its end token in between, and nobody listened. Lesson 8 does.)
# - **Too hot** is gibberish, and a nucleus of a flat distribution is not much of a protection (lesson 4).
# - **Too small a p** is greedy in disguise: monotonous, and the seed changes next to nothing.
#
# <details><summary>"We set the temperature to 0, so that the model tells the truth." Does it?</summary>
#
# It says what it finds most probable, and always the same. If the most probable continuation is false, it is now reliably false. Low temperature buys *repeatability*, not truth.
#
# </details>
#
# ## 9. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="sampling-hidden_greedy" points=0.5
hidden("sampling-hidden_greedy")

# %% grade_id="sampling-hidden_cdf_any_batch" points=1
hidden("sampling-hidden_cdf_any_batch")

# %% grade_id="sampling-hidden_cdf_edges" points=0.5
hidden("sampling-hidden_cdf_edges")

# %% grade_id="sampling-hidden_cdf_refuses" points=0.25
hidden("sampling-hidden_cdf_refuses")

# %% grade_id="sampling-hidden_sample_shares" points=0.25
hidden("sampling-hidden_sample_shares")

# %% grade_id="sampling-hidden_sample_rows" points=0.25
hidden("sampling-hidden_sample_rows")

# %% grade_id="sampling-hidden_sample_independent" points=0.25
hidden("sampling-hidden_sample_independent")

# %% grade_id="sampling-hidden_sample_refuses" points=0.25
hidden("sampling-hidden_sample_refuses")

# %% grade_id="sampling-hidden_next_support" points=0.75
hidden("sampling-hidden_next_support")

# %% grade_id="sampling-hidden_next_shares" points=0.25
hidden("sampling-hidden_next_shares")

# %% grade_id="sampling-hidden_next_greedy" points=0.5
hidden("sampling-hidden_next_greedy")

# %% grade_id="sampling-hidden_next_refuses" points=0.25
hidden("sampling-hidden_next_refuses")

# %% [markdown]
# ## 10. In your own words
#
# You are asked for settings for three products: (a) a tool that completes code while people type, (b) an app that tells children a new bedtime story every evening, (c) a button "suggest five names for my cat". For each: greedy or sampling, and roughly which temperature and filter? Give a reason in a sentence each. And say what you would do before you
# trust your own table.

# %% [markdown] grade_id="sampling-written" points=2 written=true
# (a) Greedy or nearly so (T around 0.2, a small nucleus): usually one continuation is right, a rare token breaks the program, and people like a tool that does the same thing twice. (b) Sampling, T around 0.8 to 1.0 with p around 0.9 to 0.95: the stories must differ from evening to evening, and the tail must be cut, since in a few hundred draws one bad token derails the story; the seed can be the date. (c) Sampling with a high
# temperature, say 1.0 to 1.2 with p = 0.95, five rows drawn at once, duplicates thrown away and drawn again: the texts are short, so one odd token costs little, and variety is the point. Before I trust it I would try settings on this very model and with this library's order of filters, look at many outputs of several seeds, and measure repetition and variety, because such tables are rules of thumb found on other models.

# %% [markdown]
# ## What we have, and what comes next
#
# - Greedy takes the best: one answer, always the same, and prone to loops, since what was said gets more probable.
# - Sampling lays the probabilities end to end and looks where u falls: the first id whose sum is above u.
# - A seed makes one program repeat itself. Seed once, before the loop; a row has its own draw.
# - `next_token`: temperature, top-k, top-p, softmax, u, find. Greedy is asked for first, and arguments are looked at always.
# - Settings are rules of thumb. Cold where one answer is right, warm where many are, and cut the tail.
#
# **Stretch.** There is a way to draw without any sum: add to each logit a random number of its own, −log(−log u), and take the *argmax*. Draw 100,000 tokens from Z like that, and compare the frequencies with ours. (It is called the Gumbel trick. Why might it be popular on machines where many small steps cost more than much work at once?)
#
# **Next:** lesson 6. Greedy loops because words that were said get more probable. We shall make them less so, by hand.
