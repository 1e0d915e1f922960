# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 4: top-p, a short list that fits
#
# Top-k left us with a complaint: sometimes two tokens are reasonable, sometimes a hundred are, and k is always the same. So let us ask another
# question. Not *how many tokens?* but *how much probability?*
#
# **When you are through, you can**
#
# - find the nucleus of a distribution with pencil and paper, the token at its edge included;
# - write `top_p_filter` for one row and for a batch, and bring its answer back into the order of ids;
# - say why the nucleus grows and shrinks from step to step, and what temperature does to it;
# - combine temperature, top-k and top-p in the right order, and show what another order changes;
# - tell five published top-p bugs from the real thing.
#
# **Time:** about 75 minutes. **You need:** lessons 2 and 3 (temperature, top-k, why a ban is -inf).

# %%
from course_lib.given.notebook import start

start("top_p")

# %%
import torch

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.temperature import apply_temperature
from course_lib.top_k import top_k_filter
from course_lib.top_p import min_p_filter, top_p_filter

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. How much do we want to keep?
#
# Three prompts, from a foregone conclusion to an open question.


# %%
def next_logits(text: str) -> torch.Tensor:
    """Logits (1, V) for the token after a text."""
    with torch.inference_mode():
        return model(torch.tensor([tokenizer.encode(text)]))[:, -1]


SHARP = "Once upon"
MIDDLE = "Once upon a time, there was a little"
OPEN = "One day, Lily found a"
PROMPTS = {"Once upon": SHARP, "... was a little": MIDDLE, "... found a": OPEN}

# %% [markdown]
# Line up the tokens of each distribution, the best first, and add up their probabilities from left to right. The curve says how much the best 1, 2, 3, ... tokens hold
# together.
#
# **Predict.** Where on the three curves will you cross the height 0.9?

# %%
curves = {}
for name, text in PROMPTS.items():
    ranked = next_logits(text)[0].softmax(dim=-1).sort(descending=True).values
    curves[name] = ranked.cumsum(dim=-1)[:1000]
plots.lines(
    range(1, 1001), curves, "What the best tokens hold together", "tokens", "probability", log="x"
)

# %% [markdown]
# After "Once upon" the first token does it alone. The open prompt needs a long walk to the same height. Top-k cuts all three curves at the same place *along*; top-p cuts them at the same *height*.
#
# ## 2. The rule
#
# > **Top-p.** Walk down the tokens from the most probable one, adding up. Stop as soon as the sum is at least p. The tokens that you met are the *nucleus*, the smallest set that holds p. All others get the logit -inf.
#
# Holtzman and others proposed it in 2020 as *nucleus sampling* ([arXiv 1904.09751](https://arxiv.org/abs/1904.09751)). Here is the walk, on four tokens:

# %%
Z = torch.tensor([[1.0, 2.0, 0.5, 0.1]])
probs = Z.softmax(dim=-1)[0].tolist()
mass = 0.0
for i in sorted(range(4), key=lambda i: -probs[i]):
    mass += probs[i]
    print(f"id {i}: probability {probs[i]:.6f}, sum so far {mass:.6f}")

# %% [markdown]
# **Predict.** Which ids make up the nucleus for p = 0.9? And for p = 0.78, 0.6 and 0.5?
#
# <details><summary>Answer</summary>
#
# For 0.9: ids 1, 0, 2. After two tokens we hold 0.785876, which is not enough; the third takes us to 0.914070, and we stop. For 0.78 and for 0.6: ids 1 and 0. For 0.5: id 1 alone, with its 0.574522.
#
# </details>
#
# The token that takes the sum across p belongs to the nucleus. So for p = 0.9 we hold *more* than 0.9, and nearly always do. What the four-token nucleus looks like after the cut:

# %%
by_hand = torch.tensor([[1.0, 2.0, 0.5, -torch.inf]])
plots.bars(
    range(4),
    {"before": Z.softmax(dim=-1)[0], "after top-p, p = 0.9": by_hand.softmax(dim=-1)[0]},
    title="Four tokens, a nucleus of three",
)

# %% [markdown]
# The three that stay share the whole: 0.574522, 0.211355, 0.128193 have become 0.628532, 0.231224, 0.140244. As in lesson 3, nobody has to do that on purpose. The softmax divides by what is there.
#
# **Predict.** Why not the other way round, "the largest set that holds *at most* p"? Try it on our five old friends, with p = 0.5.

# %%
Y = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
print([f"{p:.4f}" for p in Y.softmax(dim=-1)[0].tolist()])

# %% [markdown]
# The best token alone holds 0.6307. At most 0.5? Then not even this one may stay, nothing is left, and the softmax over nothing is NaN. With "at least p" that can't happen: the best token is always met first, so it stays whatever p is.
#
# ## 3. Your turn
#
# Open **`course_lib/top_p.py`** and write `top_p_filter`. Leave `min_p_filter` below it for section 8.
#
# Some questions to have in mind while you write:
#
# - Does a token stay because of the sum *with* it or because of the sum *before* it? Write down both sums for the best token, and for the one that crosses.
# - You find the nucleus by rank: first, second, third. The answer is wanted by id. In Z the first rank is id 1. `sort` returns two things; which one brings you home?
# - What do p = 0, p = 1 and `None` mean? What if a sum ends at 0.9999999, as sums do on a computer?
#
# A loop over tokens and rows is a fine start, and the checks accept it. A first look at your own function:

# %%
top_p_filter(Z, 0.9)

# %% [markdown]
# ### Checks

# %% grade_id="top_p-smallest_set" points=1
from course_lib.checks import check, hidden

check("top_p-smallest_set")

# %% grade_id="top_p-probability_zero" points=0.5
check("top_p-probability_zero")

# %% grade_id="top_p-crossing_token" points=1.5
check("top_p-crossing_token")

# %% grade_id="top_p-mass_equal_to_p" points=0.5
check("top_p-mass_equal_to_p")

# %% grade_id="top_p-back_to_ids" points=1
check("top_p-back_to_ids")

# %% grade_id="top_p-rows_apart" points=1
check("top_p-rows_apart")

# %% grade_id="top_p-any_shape" points=0.25
check("top_p-any_shape")

# %% grade_id="top_p-off" points=0.5
check("top_p-off")

# %% grade_id="top_p-best_token_stays" points=0.5
check("top_p-best_token_stays")

# %% grade_id="top_p-banned_stay_banned" points=0.5
check("top_p-banned_stay_banned")

# %% grade_id="top_p-ties" points=0.25
check("top_p-ties")

# %% grade_id="top_p-half_precision" points=0.5
check("top_p-half_precision")

# %% grade_id="top_p-input_untouched" points=0.5
check("top_p-input_untouched")

# %% grade_id="top_p-p_outside" points=0.25
check("top_p-p_outside")

# %% grade_id="top_p-against_the_definition" points=0.25
check("top_p-against_the_definition")

# %% [markdown]
# > **In the wild.** The edges of p have cost many people an evening. p = 0 left no token at all (huggingface/transformers#19839, google-deepmind/simply#42), and so did a tiny p in half precision, where 1 − p is rounded to 1
# > (ml-explore/mlx-lm#1912). p = 1 kept only the best token, since no sum is *above* 1 and the argmax of an all-false comparison is 0 (BlinkDL/ChatRWKV#170). The notebook course dnnlpy allows p in (0, 1]; ours takes 0 too, where the best token stays
# > alone.
#
# ### A sum of exactly p
#
# **Predict.** Three tokens with 0.4, 0.3 and 0.2 hold 0.9 together. Is that at least 0.9?

# %%
for dtype in (torch.float32, torch.float64):
    mass = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=dtype).cumsum(dim=-1)[2].item()
    print(f"{dtype}: {mass:.17f}, at least 0.9: {mass >= 0.9}")

# %% [markdown]
# It depends on the precision: 0.4, 0.3 and 0.2 are no binary fractions, and their rounding errors decide. Only sums of powers of 1/2 are exact. So the rule "a sum of exactly p is enough" can be tested with 0.5 + 0.25 = 0.75, and our check *stops when the mass is exactly p* does just
# that.

# %%
halves = torch.tensor([[0.5, 0.25, 0.125, 0.0625, 0.0625]]).log()
top_p_filter(halves, 0.75).softmax(dim=-1)

# %% [markdown]
# > **In the wild.** transformers kept one token too many at equality until huggingface/transformers#18976. MiniMind, and the code in the style of Meta's Llama from which many have learned, still do: they drop a token if the sum before it is *greater* than p.
#
# ## 4. Your nucleus on MiniGPT

# %%
logits = next_logits(MIDDLE)
kept = top_p_filter(logits, 0.9).isfinite()
plots.distribution(logits, tokenizer, kept=kept, top=15, title=f"p = 0.9, after: {MIDDLE}")

# %% [markdown]
# Move the slider. What stays at p = 0? And how far do you have to go before a token comes in that you would not want in a story?


# %%
def picture(p: float):
    kept = top_p_filter(logits, p).isfinite()
    return plots.distribution(
        logits, tokenizer, kept=kept, top=20, title=f"p = {p:.2f}, after: {MIDDLE}"
    )


explore(picture, p=(0.0, 1.0, 0.8, 0.01))

# %% [markdown]
# ### The list breathes
#
# Now the promise of the title. We send a whole sentence through the model, and ask at *each* position how many tokens make up 0.9. (All positions at once: T rows of logits are a batch of T rows to your filter.)
#
# **Predict.** Where in the sentence is the nucleus smallest? Where largest?

# %%
ids = torch.tensor([tokenizer.encode("Once upon a time, there was a little girl. She")])
with torch.inference_mode():
    rows = model(ids)[0]
sizes = top_p_filter(rows, 0.9).isfinite().sum(dim=-1)
after = [tokenizer.piece(i) for i in ids[0]]
plots.bars(after, {"nucleus": sizes}, "How many tokens make up 0.9", "after", "tokens")

# %% [markdown]
# One setting, and the list has a single token where the text leaves no choice, as after "upon", and a long row of them after "a", where almost anything may come. No k could do that.
#
# <details><summary>Does p = 0.9 mean that we drop one token in ten?</summary>
#
# No: p counts probability, not tokens. In a sharp place p = 0.9 drops 4,095 of 4,096 tokens. Of the *probability* it drops at most a tenth.
#
# </details>
#
# ### Temperature moves the edge
#
# **Predict.** Z once more, p = 0.9, and temperatures 0.5, 1 and 2 before the filter. How large is the nucleus?

# %%
for T in (0.5, 1.0, 2.0):
    scaled = apply_temperature(Z, T)
    kept = top_p_filter(scaled, 0.9).isfinite()
    print(f"T = {T}: {[f'{p:.2f}' for p in scaled.softmax(dim=-1)[0].tolist()]}, {kept.sum()} stay")

# %% [markdown]
# 2, 3, 4: a flatter distribution needs more tokens for the same mass. So two knobs that seem independent are not. Whoever turns up the temperature also opens the nucleus. On MiniGPT:

# %%
temperatures = [0.3, 0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0]
growth = {
    name: [
        top_p_filter(apply_temperature(next_logits(text), T), 0.9).isfinite().sum().item()
        for T in temperatures
    ]
    for name, text in PROMPTS.items()
}
plots.lines(temperatures, growth, "The nucleus for p = 0.9", "temperature", "tokens", log="y")

# %% [markdown]
# ### On logits or on probabilities?
#
# Some write top-p as we do: logits in, logits out. Others take the softmax first, set the dropped *probabilities* to 0, and divide by what is left.
#
# **Predict.** Is it the same?

# %%
row = next_logits(OPEN)
filtered = top_p_filter(row, 0.9)
zeroed = row.softmax(dim=-1) * filtered.isfinite()
zeroed = zeroed / zeroed.sum(dim=-1, keepdim=True)
difference = (zeroed - filtered.softmax(dim=-1)).abs().max().item()
print("the same probabilities:", difference < 1e-6)

# %% [markdown]
# The same. We stay with logits, since filters that take logits and return logits can be chained. A filter that returns probabilities can't: the next one would take a softmax of them.
#
# ## 5. Knobs together
#
# ### Temperature and top-p: who goes first?
#
# **Predict.** Probabilities 0.6, 0.3, 0.1; temperature 2; p = 0.55. Which tokens stay if the temperature comes first? And if top-p does?

# %%
row = torch.tensor([[0.6, 0.3, 0.1]]).log()
first = top_p_filter(apply_temperature(row, 2.0), 0.55)
last = apply_temperature(top_p_filter(row, 0.55), 2.0)
for name, result in [("temperature first", first), ("top-p first", last)]:
    print(f"{name}: {[f'{p:.3f}' for p in result.softmax(dim=-1)[0].tolist()]}")

# %% [markdown]
# At temperature 2 the best token has only 0.473, not enough for 0.55, so the second one joins. Top-p first sees the 0.6 and is satisfied. Ours is the first order: **temperature, top-k, top-p**. It reads "make it bolder, then cut off its tail".
#
# > **In the wild.** transformers once had the filters first, by accident of a refactoring, and went back (huggingface/transformers#8686); others followed (fishaudio/fish-speech#1150). llama.cpp puts temperature *last*, on purpose: cut by what the model really believes, then heat what is left
# > (ggml-org/llama.cpp#4091). Neither is a law. But the same p then means two different things, and settings can't be carried over from one program to the other.
#
# <details><summary>For temperature and top-<i>k</i>, does the order matter too?</summary>
#
# No. Temperature never changes the order of the tokens, so the k best are the same before and after. Only what adds up *probabilities* feels the difference.
#
# </details>
#
# ### Top-k and top-p
#
# **Predict.** Probabilities 0.4, 0.3, 0.2, 0.1. Top-k with k = 3, then top-p with p = 0.72. Who stays?

# %%
row = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
after_k = top_k_filter(row, 3)
print("after top-k:", [f"{p:.3f}" for p in after_k.softmax(dim=-1)[0].tolist()])
print("after both: ", [f"{p:.3f}" for p in top_p_filter(after_k, 0.72).softmax(dim=-1)[0].tolist()])

# %% [markdown]
# Two tokens. If you guessed three, you added 0.4 + 0.3 = 0.7 < 0.72. But top-p sees what top-k left, and there the best two hold 0.444 + 0.333 = 0.778. The mass is *renormalised* between the filters, all by itself, because your filter takes a softmax of what it is given.
#
# > **In the wild.** A chain of filters on log-probabilities that were not normalised again: ml-explore/mlx-lm#388.
#
# **Exercise.** A setting that one meets now and then is `top_k=10, top_p=1.0`. What does top-p do there? Compare it with p = 0.9: on Z at temperature 0.8, and on our three prompts.

# %%
for p in (1.0, 0.9):
    result = top_p_filter(top_k_filter(apply_temperature(Z, 0.8), 10), p)
    print(f"Z, k = 10, p = {p}: {[f'{q:.3f}' for q in result.softmax(dim=-1)[0].tolist()]}")
    sizes = [
        top_p_filter(top_k_filter(next_logits(text), 10), p).isfinite().sum().item()
        for text in PROMPTS.values()
    ]
    print(f"   the three prompts keep {sizes} tokens")

# %% [markdown]
# p = 1.0 is "off": only top-k is at work, and keeps ten tokens (of Z all four), sharp or not. With p = 0.9 the list may get shorter than ten, never longer. Together they read: "as many as it takes, but never more than k".
#
# And our five numbers, by both filters, for the record: k = 3 leaves three tokens, and of those p = 0.9 keeps two.

# %%
print(top_p_filter(top_k_filter(Y, 3), 0.9).softmax(dim=-1))
print(top_p_filter(Y, 0.9).softmax(dim=-1))
print("sums:", [f"{mass:.4f}" for mass in Y.softmax(dim=-1)[0].cumsum(dim=-1).tolist()])

# %% [markdown]
# Without top-k it keeps three: the sums cross 0.9 at the third. Remember these two rows; we shall need them in section 7.
#
# | | temperature | top-k | top-p |
# |---|---|---|---|
# | asks | how sharp? | how many tokens? | how much probability? |
# | is a number | above 0; 1 is off | 1, 2, 3, ...; 0 is off | from 0 to 1; 1 is off |
# | bans tokens | never | always V − k | as many as the place allows |
# | the list is | the whole vocabulary | of fixed length | of a length that follows the distribution |
# | towards greedy | to 0 | to 1 | to 0 |
# | changes the order of tokens | no | no | no |
#
# ## 6. Why limit at all?
#
# A draw that has a 1 % chance to come from the tail sounds harmless. But a story has hundreds of draws, and each word is read again by all that follow.
#
# **Predict.** 1,000 stories of 200 tokens. In how many does at least one token come from a tail of 0.1 %? Of 1 %? Of 5 %?

# %%
u = torch.rand(1000, 200, generator=torch.Generator().manual_seed(0))
derailed = {}
for tail in (0.001, 0.01, 0.05):
    hit = (u < tail).cumsum(dim=1) > 0  # at least one draw so far
    derailed[f"tail of {tail:.1%}"] = hit.float().mean(dim=0)
    expected = 1000 * (1 - (1 - tail) ** 200)
    print(f"tail of {tail:.1%}: {hit[:, -1].sum()} stories, and {expected:.0f} by the formula")
title = "Stories with a token of the tail"
plots.lines(range(1, 201), derailed, title, "tokens drawn", "share of stories")

# %% [markdown]
# The formula is 1 − (1 − tail)ⁿ: n draws in a row *without* an accident get less and less likely. With a large vocabulary the tail is made of thousands of tokens, each of them negligible, and together they are not.
#
# The price: the nucleus throws away up to 1 − p, and not all of that is rubbish. In an open place some good words stand beyond 0.9. A filter buys safety with variety.
#
# ### Telling a story


# %%
def tell(p: float, temperature: float = 1.0, new_tokens: int = 30, seed: int = 0) -> str:
    ids = torch.tensor([tokenizer.encode("One day, a little cat")])
    generator = torch.Generator().manual_seed(seed)
    for _ in range(new_tokens):
        with torch.inference_mode():
            scores = top_p_filter(apply_temperature(model(ids)[:, -1], temperature), p)
        token = torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)
        ids = torch.cat([ids, token], dim=1)
    return tokenizer.decode(ids[0])


# %% tags=["nbval-ignore-output"]
for p in (1.0, 0.9, 0.5):
    print(f"p = {p}: {tell(p)}\n")

# %% [markdown]
# One seed, one story, until the draw from everything (p = 1.0) hits a token outside of the nucleus: from there on, p = 0.9 tells another. The smaller p is, the sooner that happens.
#
# **Predict.** What does p = 0.05 sound like, with three different seeds? And temperature 2, without a nucleus and with p = 0.9?

# %% tags=["nbval-ignore-output"]
for seed in (0, 1, 2):
    print(f"p = 0.05, seed {seed}: {tell(0.05, seed=seed)}\n")
for p in (1.0, 0.9, 0.5):
    print(f"temperature 2, p = {p}: {tell(p, temperature=2.0)}\n")

# %% [markdown]
# **Too small a p** is greedy decoding under another name: hardly a place is so open that its best token holds less than 0.05, so the seed makes little difference or none. Safe, and monotonous.
#
# **Too hot** is gibberish, and p = 0.9 alone does not save it. At temperature 2 the distribution is so flat that the nucleus itself holds hundreds of tokens (look at the curve in section 4). A nucleus is only as good as the distribution that it is cut from. Section 8 has an answer.
#
# ## 7. Find the bug
#
# ### A nucleus that is too small
#
# One row of probabilities in, the ids of its nucleus out. The bug below has been published many times.


# %%
def published_nucleus(probs: list[float], p: float) -> list[int]:
    kept, mass = [], 0.0
    for i in sorted(range(len(probs)), key=lambda i: -probs[i]):
        if mass + probs[i] > p:
            break
        kept.append(i)
        mass += probs[i]
    return kept


published_nucleus([0.5, 0.35, 0.1, 0.05], 0.9)

# %% [markdown]
# **Predict** what it answers for our Y and p = 0.5. And what happens when we draw from that?

# %%
kept = published_nucleus(Y.softmax(dim=-1)[0].tolist(), 0.5)
print("kept:", kept)
nobody = torch.full((1, 5), -torch.inf)
print("the softmax that follows:", nobody.softmax(dim=-1))

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# It keeps the largest set with *at most* p, without the token that crosses. In the first example 0.5 + 0.35 = 0.85 is less than the 0.9 that was asked for. Test `mass >= p` *before* a token is added, and the one that crosses is still taken.
#
# Often the best token is protected by an extra line. Then nothing crashes, but whenever the best token holds a bit less than p, it stays alone: sampling turns into greedy decoding, and only a reader with patience notices.
#
# </details>
#
# > **In the wild.** rasbt/reasoning-from-scratch#164, fishaudio/fish-speech#1171, Biohub/esm#360, ggml-org/llama.cpp#1953; with the best token protected, thu-nics/C2C#21, where the author counted: on 264 of 300 random distributions the set differed from transformers'.
#
# ### A worked example
#
# From a lesson on sampling, in our words: *"The scores of four tokens give the probabilities 0.21, 0.57, 0.13, 0.09, sorted by score. Adding up gives 0.57, then 0.78, then 0.91. With p = 0.9 we keep three."* The answer is right. Two statements are not. Which?
#
# Two ways to catch them. Walk through the list as it *stands*, with p = 0.5: 0.21 is not enough, 0.21 + 0.57 is, so ids 0 and 1 stay. And walk with the *rounded* sums, p = 0.785: 0.57, then 0.78, not enough, so a third token stays.
#
# **Predict** what your filter says to p = 0.5 and to p = 0.785.

# %%
for p in (0.9, 0.785, 0.5):
    ids = top_p_filter(Z, p)[0].isfinite().nonzero()[:, 0].tolist()
    print(f"p = {p}: your filter keeps ids {ids}")

# %% [markdown]
# <details><summary>What is wrong</summary>
#
# The list is not sorted: it stands in the order of ids. Sorted it is 0.57, 0.21, 0.13, 0.09, with ids 1, 0, 2, 3. For p = 0.9 both orders end with the same three ids, so the example can't show it; p = 0.5 does.
#
# And the sum 0.78 comes from adding *rounded* numbers. The sum is 0.785876, which is 0.79. Round for the eye, never for the next step. (At temperature 2 the same four tokens, rounded to two digits, add up to 1.01.)
#
# </details>
#
# ### There and back again
#
# The nucleus of (0.2, 0.5, 0.3) for p = 0.6 is ids 1 and 2. By rank the mask is True, True, False, and somebody brings it back to ids:

# %%
row = torch.tensor([0.2, 0.5, 0.3])
order = row.argsort(descending=True)
by_rank = torch.tensor([True, True, False])
print("order:", order.tolist())
print("by id, they say:", by_rank[order].tolist())

# %% [markdown]
# **Predict.** That keeps ids 0 and 2. Why? And why did the same line pass a test with Z, whose order is 1, 0, 2, 3?
#
# <details><summary>What happened, and how to mend it</summary>
#
# `order[rank]` is the id that stands at a rank. `by_rank[order]` asks, for position j, "what about the *rank* `order[j]`?", though `order[j]` is an id. Wanted is the other direction: *put* the answer of rank j at position `order[j]`. Reading along an index is `gather`, writing along it is `scatter`:
# `torch.zeros(3, dtype=torch.bool).scatter(0, order, by_rank)`.
#
# For Z the order only swaps two places, and a swap is its own inverse: both directions agree. With three tokens going round in a circle (1, 2, 0) they do not. A test row wants such an order.
#
# </details>
#
# > **In the wild.** A gather where a scatter belongs, which shuffled who was kept: lucidrains/routing-transformer#2.
#
# ### Yesterday's cell
#
# A published notebook shows the filters one after the other. Its cells, in their order:

# %%
scores = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])

# %%
scores = top_k_filter(scores, 3)
print("top-k, k = 3:", scores.softmax(dim=-1))

# %%
print("original logits:", scores)
print("top-p, p = 0.9: ", top_p_filter(scores, 0.9).softmax(dim=-1))

# %% [markdown]
# **Predict.** The caption says that this is what top-p with p = 0.9 makes of the five logits. Is it? Further down the notebook says "sample 5 tokens" from `scores`. Which ids can come out?
#
# <details><summary>What happened, and how to mend it</summary>
#
# The second cell has overwritten `scores`. So "original logits" are filtered ones (they show -inf), and the last line is top-k *and* top-p: [0.7311, 0.2689, 0, 0, 0]. Top-p alone keeps three tokens, as you saw in section 5. If the draw comes from what both filters left, only ids 0 and 1 are possible,
# and no seed will ever show a 2.
#
# Each cell is right. The *order* in which they ran is the bug. Give every result a name of its own, let no cell change what an earlier one made, and now and then restart the kernel and run all.
#
# </details>
#
# ## 8. Stretch: min-p
#
# What if the filter looked neither at a number of tokens nor at a sum, but at the best token? **Min-p** keeps a token if it is at least `min_p` times as probable as the best one. A confident model is held to a high bar, an uncertain one to a low bar.
# (Nguyen and others 2024, [arXiv 2407.01082](https://arxiv.org/abs/2407.01082).)
#
# **Predict.** min_p = 0.2. Who stays of (0.8, 0.15, 0.05)? And of (0.3, 0.28, 0.22, 0.2)?
#
# <details><summary>Answer</summary>
#
# In the first row the bar is 0.2 × 0.8 = 0.16: the best stays alone. In the second it is 0.06: all four stay. Mind that 0.2 is a *strict* value here. Who brings 0.9 along from top-p has made the model nearly greedy.
#
# </details>
#
# Write `min_p_filter` in **`course_lib/top_p.py`**. No sorting, no sums, no way back to ids: where does the simplicity come from? (Half-precision logits and wrong arguments as in `top_p_filter`.)

# %%
for row in ([0.8, 0.15, 0.05], [0.3, 0.28, 0.22, 0.2]):
    print(min_p_filter(torch.tensor([row]).log(), 0.2).softmax(dim=-1))

# %% grade_id="top_p-min_p_share" points=0.25
check("top_p-min_p_share")

# %% grade_id="top_p-min_p_edges" points=0.25
check("top_p-min_p_edges")

# %% grade_id="top_p-min_p_careful" points=0.25
check("top_p-min_p_careful")

# %% grade_id="top_p-min_p_outside" points=0.25
check("top_p-min_p_outside")

# %% [markdown]
# Back to the hot model. How many tokens do the two filters let in as the temperature goes up?

# %%
row = next_logits(OPEN)
sizes = {
    "top-p, p = 0.9": [
        top_p_filter(apply_temperature(row, T), 0.9).isfinite().sum().item() for T in temperatures
    ],
    "min-p, min_p = 0.1": [
        min_p_filter(apply_temperature(row, T), 0.1).isfinite().sum().item() for T in temperatures
    ],
}
plots.lines(temperatures, sizes, f"Kept after: {OPEN}", "temperature", "tokens", log="y")

# %% [markdown]
# A flatter distribution also has a lower best token, so min-p's bar goes down as well; but it goes down slowly. Top-p must fill its 0.9 with whatever there is.
#
# > **In the wild.** A user of llama.cpp saw a token of 1 % come out with min_p = 0.05 beside one of 96 %, and took it for a bug. It was the order again: temperature came after the filter (ggml-org/llama.cpp#7498).
#
# ## 9. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="top_p-hidden_any_batch" points=1
hidden("top_p-hidden_any_batch")

# %% grade_id="top_p-hidden_edges_of_p" points=1
hidden("top_p-hidden_edges_of_p")

# %% grade_id="top_p-hidden_banned_tokens" points=0.5
hidden("top_p-hidden_banned_tokens")

# %% grade_id="top_p-hidden_half_precision" points=0.5
hidden("top_p-hidden_half_precision")

# %% grade_id="top_p-hidden_big_vocabulary" points=0.5
hidden("top_p-hidden_big_vocabulary")

# %% grade_id="top_p-hidden_not_contiguous" points=0.5
hidden("top_p-hidden_not_contiguous")

# %% grade_id="top_p-hidden_ties" points=0.5
hidden("top_p-hidden_ties")

# %% grade_id="top_p-hidden_min_p" points=0.25
hidden("top_p-hidden_min_p")

# %% grade_id="top_p-hidden_min_p_edges" points=0.25
hidden("top_p-hidden_min_p_edges")

# %% [markdown]
# ## 10. In your own words
#
# A colleague reports: "With temperature 1.0 and p = 0.9 our stories were fine. We raised the temperature to 1.8 to get more variety, and kept p = 0.9 so that nothing bad could happen. Now they are nonsense." In three or four sentences: why did p = 0.9 not protect them, and what are two things
# that they could do instead?

# %% [markdown] grade_id="top_p-written" points=2 written=true
# p = 0.9 promises a mass, not a number of tokens and not their quality. The temperature is applied first and makes the distribution flatter, so many more tokens are needed to make up 0.9; tokens that stood in the far tail at temperature 1 are now part of the nucleus, and since they are many, one of them is drawn every few
# steps, after which the story goes on from nonsense. They could lower p together with raising the temperature, cap the list with top-k as well, use min-p, which judges tokens against the best one, or apply the temperature after the filter (as llama.cpp does), so that the nucleus is that of the unheated model and only the draw inside it gets bolder.

# %% [markdown]
# ## What we have, and what comes next
#
# - The nucleus is the smallest set of best tokens that holds at least p. The token that crosses belongs to it; a sum of exactly p is enough; the best token always stays.
# - It is found by rank and kept by id: a scatter, not a gather.
# - Its length follows the distribution, and so the temperature too.
# - Order: temperature, top-k, top-p. Between the filters the mass is renormalised, by the softmax.
# - p is about probability: not about a share of the tokens, and not about quality.
#
# **Stretch.** Sorting 4,096 numbers to keep twenty is a waste. Could you find the nucleus with `topk` first, and sort only if that was not enough? How would you know that it was not?
#
# **Next:** lesson 5. We have cut and shaped distributions for three lessons, and let torch draw from them. Now we draw ourselves.
