# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 3: top-k, a short list of fixed length
#
# A language model gives *every* token of its vocabulary some probability, nonsense included. In this lesson we cut
# the nonsense off: of each distribution we keep the k best tokens and ban the others.
#
# **When you are through, you can**
#
# - say what goes wrong when a model samples from its whole vocabulary, and how often;
# - write `top_k_filter` so that it is right for one row, for a batch, and at the edges;
# - explain why a ban is a logit of minus infinity and not 0;
# - tell when a short list of *fixed* length is the wrong tool.
#
# **Time:** about 45 minutes. **You need:** lesson 2 (softmax, temperature), PyTorch tensors and broadcasting.

# %%
from course_lib.given.notebook import start

start("top_k")

# %%
import torch

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.top_k import top_k_filter

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. The long tail
#
# Let us ask MiniGPT what may follow a few words. The model answers with one score (a *logit*) for each of its 4,096
# tokens; the softmax turns the scores into probabilities.

# %%
prompt = "Once upon a time, there was a little"
ids = torch.tensor([tokenizer.encode(prompt)])
with torch.inference_mode():
    logits = model(ids)[:, -1]
plots.distribution(logits, tokenizer, top=12, title=f"After: {prompt}")

# %% [markdown]
# A handful of tokens share nearly everything. But "nearly" is the point: thousands of tokens are left, each with a
# crumb of probability.
#
# **Predict.** All tokens beyond the best 50 together: what share of the probability do they hold? And if we draw 20
# tokens, each with such a tail, how likely is it that at least one comes from the tail?

# %%
probs = logits.softmax(dim=-1)
best_50 = probs.topk(50).values.sum().item()
tail = 1 - best_50
print(f"the best 50 of {probs.shape[-1]:,} tokens hold {best_50:.4f}, the tail holds {tail:.4f}")
print(f"at least one token of the tail in 20 draws: {1 - best_50**20:.2f}")

# %% [markdown]
# This is a *sharp* distribution, and its tail is thin. Where many words could follow, the tail is far heavier. One
# draw from it may derail the story, since everything that comes after is conditioned on it.

# %%
open_prompt = "One day, Lily found a"
with torch.inference_mode():
    open_logits = model(torch.tensor([tokenizer.encode(open_prompt)]))[:, -1]
open_best_50 = open_logits.softmax(dim=-1).topk(50).values.sum().item()
print(f"after {open_prompt!r} the tail holds {1 - open_best_50:.4f}")
print(f"at least one token of the tail in 20 draws: {1 - open_best_50**20:.2f}")

# %% [markdown]
# With a vocabulary of 6,400 tokens, as the small model MiniMind of lesson 1 has, keeping 50 means keeping 50 / 6400 = 0.78 % of the tokens. It
# sounds brutal. In a sharp place it is mostly housekeeping, as the numbers above say; in an open one it costs a good
# part of what the model had to say.
#
# ## 2. The rule
#
# > **Top-k.** Keep the k highest logits of a row. Give all others the logit -inf, so that their probability is 0.
#
# Fan, Lewis and Dauphin used it in 2018 to write stories ([arXiv 1805.04833](https://arxiv.org/abs/1805.04833)).
# A worked example, by hand, with five tokens and k = 3:

# %%
Y = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
by_hand = torch.tensor([[2.0, 1.0, 0.1, -torch.inf, -torch.inf]])
plots.bars(
    range(5),
    {"before": Y.softmax(dim=-1)[0], "after top-k, k = 3": by_hand.softmax(dim=-1)[0]},
    title="Five tokens, three kept",
)

# %% [markdown]
# The survivors grow: 0.631, 0.232, 0.094 become 0.659, 0.242, 0.099. Nobody computed that on purpose. The softmax divides by the sum
# of what is there, and less is there.
#
# **Predict.** Why -inf? What would happen if we banned a token by setting its logit to 0? Take these three tokens, of which we keep the best
# one.

# %%
low = torch.tensor([[-1.0, -2.0, -3.0]])
wrong_ban = low.masked_fill(low < -1.0, 0.0)
print("logits       ", wrong_ban.tolist())
print("probabilities", [f"{p:.3f}" for p in wrong_ban.softmax(dim=-1)[0].tolist()])

# %% [markdown]
# The two banned tokens are now the *favourites*, with 0.422 each: a logit of 0 beats every negative one, since e⁰ = 1. Logits are scores, and a
# score of 0 means nothing special. Only -inf gives e to the minus infinity = 0.
#
# > **In the wild.** minGPT once filled banned logits with `1e-10`, a slip for `-1e10`; wherever all logits were negative, the dropped
# > tokens became the likeliest (karpathy/minGPT#10).
#
# ## 3. Your turn
#
# Open **`course_lib/top_k.py`** and write `top_k_filter`. Its docstring says what it must do. Save the file; the cells below run what is on
# disk, so nothing needs to be restarted.
#
# Some questions to have in mind while you write:
#
# - What is the smallest logit that may stay? That number is a *threshold*, one for each row.
# - If the thresholds have shape `(B,)` and the logits `(B, V)`, which axis does `<` line up with which?
# - What should happen for k = 0, for `None`, for k = 1000 with five tokens?
#
# A first look at your own function:

# %%
top_k_filter(Y, 3)

# %% [markdown]
# ### Checks
#
# Each cell runs one check on your file and says what it called, what came back, and what was expected.

# %% grade_id="top_k-keeps_k" points=2
from course_lib.checks import check, hidden

check("top_k-keeps_k")

# %% grade_id="top_k-probability_zero" points=1
check("top_k-probability_zero")

# %% grade_id="top_k-rows_apart" points=2
check("top_k-rows_apart")

# %% grade_id="top_k-any_shape" points=0.5
check("top_k-any_shape")

# %% grade_id="top_k-off" points=1
check("top_k-off")

# %% grade_id="top_k-k_above_vocabulary" points=0.5
check("top_k-k_above_vocabulary")

# %% grade_id="top_k-ties" points=0.5
check("top_k-ties")

# %% grade_id="top_k-banned_stay_banned" points=0.5
check("top_k-banned_stay_banned")

# %% grade_id="top_k-half_precision" points=0.5
check("top_k-half_precision")

# %% grade_id="top_k-input_untouched" points=0.5
check("top_k-input_untouched")

# %% grade_id="top_k-negative_k" points=0.5
check("top_k-negative_k")

# %% grade_id="top_k-against_a_sort" points=0.5
check("top_k-against_a_sort")

# %% [markdown]
# <details><summary>I wrote a loop over the rows. Is that wrong?</summary>
#
# No: it is right, and the checks accept it. It is slow for a batch of many rows, because Python walks through them one at a time. `topk` along the last
# axis does all rows in one call.
#
# </details>
#
# ## 4. Your filter on MiniGPT
#
# Now the real thing: the distribution after our prompt, with your filter. Coloured bars are kept, hatched ones are banned.

# %%
kept = top_k_filter(logits, 5).isfinite()
plots.distribution(logits, tokenizer, kept=kept, top=12, title=f"k = 5, after: {prompt}")

# %% [markdown]
# Move the slider (the arrow keys work too). At which k does a token come in that you would not want in a story?


# %%
def picture(k: int):
    kept = top_k_filter(logits, k).isfinite()
    return plots.distribution(
        logits, tokenizer, kept=kept, top=20, title=f"k = {k}, after: {prompt}"
    )


explore(picture, k=(0, 20, 5))

# %% [markdown]
# At k = 0 the filter is off, and every bar is coloured.
#
# ### One length does not fit all
#
# **Predict.** With k = 5 we cut both our prompts. How much probability do we throw away after the sharp one, and how much after the open
# one?

# %%
for name, row in [(prompt, logits), (open_prompt, open_logits)]:
    kept = top_k_filter(row, 5).isfinite()
    lost = 1 - row.softmax(dim=-1)[kept].sum().item()
    print(f"{lost:.2f} of the probability is banned after {name!r}")

# %% [markdown]
# The same k is generous in one place and harsh in another: sometimes two tokens are reasonable, sometimes a hundred are. That is the weakness
# of a list of fixed length, and the reason for lesson 4.

# %%
ranks = list(range(1, 61))
curves = {
    name: row.softmax(dim=-1).sort(descending=True).values[0, :60].cumsum(dim=-1)
    for name, row in [("sharp: a little ...", logits), ("open: found a ...", open_logits)]
}
plots.lines(ranks, curves, "How much a short list holds", "k", "probability of the best k")

# %% [markdown]
# ### Telling a story
#
# A loop of a few lines is enough to hear your filter: score, filter, softmax, draw, append. (Lessons 5 and 8 make it a proper `generate`.)


# %%
def tell(k: int, new_tokens: int = 40, seed: int = 0) -> str:
    ids = torch.tensor([tokenizer.encode("Once upon a time")])
    generator = torch.Generator().manual_seed(seed)
    for _ in range(new_tokens):
        with torch.inference_mode():
            scores = top_k_filter(model(ids)[:, -1], k)
        token = torch.multinomial(scores.softmax(dim=-1), 1, generator=generator)
        ids = torch.cat([ids, token], dim=1)
    return tokenizer.decode(ids[0])


# %% tags=["nbval-ignore-output"]
for k in (1, 5, 50, 0):
    print(f"k = {k}: {tell(k)}\n")

# %% [markdown]
# **Exercise.** Run k = 1 with several seeds. What differs from seed to seed?
#
# <details><summary>Answer</summary>
#
# Nothing does. One token is kept, it has probability 1, so there is nothing to draw: top-k with k = 1 *is* greedy decoding, exactly, as long as no two
# logits tie for the first place.
#
# </details>
#
# Off (k = 0) the story wanders sooner: somewhere a token of the tail slipped in, and the model made the best of it.
#
# ## 5. Find the bug
#
# This filter stood in a published notebook course. It is documented for logits `(B, V)`, and its test has one row.


# %%
def published_filter(logits: torch.Tensor, k: int) -> torch.Tensor:
    values, _ = logits.topk(k)
    threshold = values[..., -1]
    return logits.masked_fill(logits < threshold, -torch.inf)


published_filter(Y, 3)

# %% [markdown]
# Right. **Predict** what it does with two rows of five tokens, and with three rows of three tokens. Then run the cells.

# %%
two_rows = torch.cat([Y, Y.flip(-1)])
try:
    published_filter(two_rows, 3)
except RuntimeError as error:
    print("RuntimeError:", error)

# %%
three_rows = torch.tensor([[0.0, 1.0, 2.0], [50.0, 40.0, 30.0], [5.0, 4.0, 3.0]])
published_filter(three_rows, 1)

# %% [markdown]
# The crash is the lucky case. With as many rows as tokens nothing crashes, and the result is nonsense: row 0 lost all its tokens, and row 1 kept two.
#
# <details><summary>What happened, and how to mend it</summary>
#
# `values[..., -1]` has shape `(B,)`. Broadcasting lines shapes up from the right, so `(B,)` meets the *vocabulary* axis of `(B, V)`: the threshold of row j is
# compared with column j of every row. Where B and V differ torch refuses; where they are equal it obeys. Keeping the last axis with length 1, shape `(B, 1)`, lines
# thresholds up with rows. A test with one row can't see it, which is why the check *treats each row of a batch by itself* has a square case.
#
# </details>
#
# > **In the wild.** The same axis was lost in huggingface/transformers#338 (a crash for most shapes). Other slips with k: litgpt took `top_k=0` to mean "ban everything"
# > and then said token 0 for ever (Lightning-AI/litgpt#2309); mesh-transformer-jax kept one token too few (kingoflolz/mesh-transformer-jax#164); an in-place assignment
# > changed the caller's scores (huggingface/transformers#29680).
#
# ### Ties
#
# What if the k-th and the next token have the *same* logit? We keep both: nothing tells them apart, so banning one would be arbitrary.

# %%
tied = torch.tensor([[3.0, 2.0, 2.0, 1.0]])
top_k_filter(tied, 2)

# %% [markdown]
# Libraries differ here: transformers and nanoGPT keep all that tie, as we do; litgpt and llama.cpp keep exactly k. Our checks accept either on tied rows. With
# float32 logits of a real model ties are rare; with half precision they are not.
#
# ## 6. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="top_k-hidden_any_batch" points=1.5
hidden("top_k-hidden_any_batch")

# %% grade_id="top_k-hidden_edges_of_k" points=1
hidden("top_k-hidden_edges_of_k")

# %% grade_id="top_k-hidden_banned_tokens" points=0.5
hidden("top_k-hidden_banned_tokens")

# %% grade_id="top_k-hidden_half_precision" points=0.5
hidden("top_k-hidden_half_precision")

# %% grade_id="top_k-hidden_big_vocabulary" points=0.5
hidden("top_k-hidden_big_vocabulary")

# %% grade_id="top_k-hidden_not_contiguous" points=0.5
hidden("top_k-hidden_not_contiguous")

# %% grade_id="top_k-hidden_ties" points=0.5
hidden("top_k-hidden_ties")

# %% [markdown]
# ## 7. In your own words
#
# A colleague says: "Top-k with k = 40 makes the model more creative than greedy and safer than plain sampling, so we use 40 everywhere." In three or four sentences: where is that a
# good choice, where is it a bad one, and which two of this lesson's figures would you show them?

# %% [markdown] grade_id="top_k-written" points=2 written=true
# A fixed k is a good choice where the distributions of a task are about equally wide, and as a cheap guard against the far tail of a large vocabulary. It is bad
# where the width changes from step to step. After "Once upon a time, there was a little" a few tokens are enough, and k = 40 lets in tokens that nobody
# wants; where a hundred words could follow, it bans good ones, and the text gets monotonous. I would show the curves of how much a short list
# holds (the same k means different shares) and the bar chart of the sharp prompt with k moved up until odd tokens come in.

# %% [markdown]
# ## What we have, and what comes next
#
# - Top-k keeps the k best tokens of each row and gives the others the logit -inf.
# - It works on logits, before the softmax, which then renormalises by itself.
# - Thresholds belong to rows: shape `(B, 1)`, not `(B,)`.
# - k = 1 is greedy; k = 0 or `None` is off; k above V keeps all.
# - Its length is fixed, while the number of reasonable tokens is not.
#
# **Stretch.** `topk` is much faster than a full `sort`. Measure both for a row of 4,096 and of 128,000 logits with `%timeit`: how does the ratio grow, and why?
#
# **Next:** lesson 4, top-p: not "how many tokens?" but "how much probability?"
