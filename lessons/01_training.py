# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 1: training and inference, one pass to learn and a loop to speak
#
# You type "Once upon a time", and a machine goes on with the story. Inside is a network that turns numbers into other numbers. It
# does not write a single word. Everything between its numbers and the story on your screen is called *decoding*, and that is what we
# build in these eight lessons, piece by piece, until your own functions tell a story.
#
# Four questions lead through the course:
#
# - How do scores become text? (this lesson)
# - Why not simply take the best-scored word, always? (lessons 2 and 5)
# - What do temperature, top-k, top-p and the repetition penalty each solve? (lessons 2, 3, 4, 6)
# - What happens in each step of a generation, and how do we stop computing the same things over and over? (lessons 7 and 8)
#
# **When you are through with this lesson, you can**
#
# - follow a text into the model and out again: text, tokens, logits, probabilities, token, text;
# - write the loss that language models are trained with, and say what its number means;
# - explain why training is *one* pass over all positions, while writing is a loop with one pass a token;
# - write down the steps of that loop in order;
# - make a model give the same answer twice.
#
# **Time:** about 75 minutes. **You need:** Python, and PyTorch tensors (shapes, indexing, broadcasting). The network itself is
# given: `course_lib/given/minigpt.py` has fewer than 200 lines, to be read or to be trusted.
#
# ### How a lesson works
#
# **Predict, run, explain.** Where it says *Predict*, stop, and decide on an answer before you run the cell. A wrong guess that
# you noticed is worth more than a right answer that you read.
#
# **You write real functions.** Each lesson has a file of yours, here `course_lib/training.py`, beside this notebook. It holds the heads of
# functions, with what they must do. Edit it in JupyterLab (double-click it in the file browser) or anywhere else, and save: the next cell
# that you run uses what you saved. As long as a function is not written, a cell that needs it says so in one line and nothing is
# broken. Come back to that cell later.
#
# **Test cells** run checks on your file and say what they called, what came back and what was expected. The bar below counts your points.

# %%
from course_lib.given.notebook import start

start("training")

# %%
import math

import torch
from torch.nn import functional as F

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT, MiniGPTConfig
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.training import last_logits, next_token_loss, perplexity

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()
V = model.vocab_size

# %% [markdown]
# ## 1. From text to numbers
#
# A model reads no letters. A *tokenizer* cuts the text into pieces from a fixed list, the *vocabulary*; a token's *id* is its place in that list.
#
# **Predict.** How many pieces will this sentence be cut into? As many as it has words?

# %%
text = "Once upon a time, there was a little girl"
print(tokenizer.encode(text))
print([tokenizer.piece(i) for i in tokenizer.encode(text)])

# %% [markdown]
# Nearly. The comma is a piece of its own, and a word brings the space *before* it along (shown as `·`). So ` girl` and `girl` are two different
# tokens. Remember that space: it comes back to bite us in section 8.
#
# **Predict.** Our vocabulary has 4,096 pieces. What becomes of a word that is not among them?

# %%
for word in (" dragon", " unbelievable", " otter", "naïve"):
    print(f"{word!r:>16}: {[tokenizer.piece(i) for i in tokenizer.encode(word)]}")

# %% [markdown]
# It is spelled out in smaller pieces, if need be byte by byte (the `ï` is two bytes). Every text has a spelling, and `decode` puts it together again.
#
# ## 2. From numbers to scores
#
# Now the model. In go ids of shape `(B, T)`: a batch of B texts of T tokens each.


# %%
def read(text: str):
    """The ids (1, T) of a text, and the logits (1, T, V) that MiniGPT gives for it."""
    ids = torch.tensor([tokenizer.encode(text)])
    with torch.inference_mode():
        return ids, model(ids)


ids, logits = read(text)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
for name, tensor in [("in", ids), ("out", logits), ("last position", logits[:, -1])]:
    print(f"{name}: {tuple(tensor.shape)}")

# %% [markdown]
# Out come *logits* of shape `(B, T, V)`: at each of the T positions, one score for each of the V tokens of the vocabulary. The scores at
# position t say which token may come *after* position t. Ten positions, so ten answers. We gave it one text, and it guesses at ten
# next tokens at once. This is the most important fact of the lesson.
#
# **Predict.** Are the logits of one position probabilities? What would have to be true of them?

# %%
row = logits[0, -1]
print(f"smallest {row.min():.1f}, largest {row.max():.1f}, sum {row.sum():.0f}")

# %% [markdown]
# Neither between 0 and 1 nor of sum 1: logits are scores, not probabilities, and far from being text. The *softmax* makes probabilities of them:
#
# $$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$
#
# Everything becomes positive, larger scores become larger probabilities, and the division makes the sum 1. Five logits that will stay with us
# for several lessons:

# %%
Y = torch.tensor([2.0, 1.0, 0.1, -1.0, -2.0])
by_formula = Y.exp() / Y.exp().sum()
print(by_formula)
plots.bars(range(5), {"softmax": by_formula}, title="Five scores as probabilities")

# %% [markdown]
# **Predict.** What changes if we add 10,000 to each of the five logits? First in mathematics, then on a computer.

# %%
high = Y + 10_000
print("by the formula:       ", high.exp() / high.exp().sum())
shifted = high - high.max()
print("largest one taken off:", shifted.exp() / shifted.exp().sum())

# %% [markdown]
# In mathematics nothing changes: the factor e to the 10,000 stands above and below the fraction bar, and cancels. Softmax sees only *differences* of scores. On
# a computer e to the 10,000 is infinite, and infinity divided by infinity is not a number (`nan`). So everybody takes the
# largest logit off first, torch's own `softmax` included.
#
# Back to the girl. What may follow?

# %%
plots.distribution(logits[:, -1], tokenizer, top=10, title=f"After: {text}")

# %% [markdown]
# ## 3. What a model is trained on
#
# Nobody taught MiniGPT any grammar. It was shown children's stories, and one question about them, over and over: *what comes next?* The answers
# need no teacher. They are in the text itself.

# %%
pieces = [tokenizer.piece(i) for i in ids[0]]
for t in range(len(pieces) - 1):
    print(f"{''.join(pieces[: t + 1]):>38}  ->  {pieces[t + 1]}")

# %% [markdown]
# A text of T tokens is T - 1 exercises. Position t is asked for token t + 1; the last position has nothing to answer for, and the first token is nobody's answer.
#
# How good is an answer? Look at the probability p that the model gave to the token that really came, and take −log p. This *surprise* is 0 if the model was certain
# and right, and grows without bound as p goes to 0. With the natural logarithm its unit is the *nat*.
#
# **Predict.** Where in our sentence is the model surprised most? Where least?

# %%
log_probs = logits[0].log_softmax(dim=-1)
surprise = [-log_probs[t, ids[0, t + 1]].item() for t in range(len(pieces) - 1)]
plots.bars(
    pieces[1:],
    {"surprise": surprise},
    title="How much each token surprised MiniGPT",
    ylabel="nats",
)

# %% [markdown]
# After "Once upon a" there is one road, and MiniGPT knows it well. Where a story may go many ways the bars are high: it can't know whom this one is about.
#
# The *loss* of a text is the mean of these bars. Training means: change the weights a little so that the loss gets smaller, and again, thousands of times.
#
# **Predict.** A model that knows nothing gives each of the V tokens the same probability. What is its loss, for V = 4,096, and for the 6,400 tokens of
# MiniMind, a small Chinese model that we shall meet again?

# %%
for vocab in (4096, 6400):
    print(f"log {vocab} = {math.log(vocab):.3f} nats")

# %% [markdown]
# Keep the first number in mind. A fresh model starts there, and one that starts far above has a bug.
#
# ### One pass, or one pass a position?
#
# Move the slider through the text: at each position, what the model has read so far, and what it expects next.


# %%
def at_position(position: int):
    seen = "".join(pieces[: position + 1]).replace("·", " ")
    title = f"after “{seen}”; the text goes on “{pieces[position + 1]}”"
    return plots.distribution(logits[:, position], tokenizer, top=8, title=title)


explore(at_position, position=(0, len(pieces) - 2, 3))

# %% [markdown]
# All these pictures came out of *one* pass of the model. Is that honest? Let us do it the slow way: show the model one token, take its answer; show it
# two tokens, take its answer; and so on.
#
# **Predict.** Will the slow surprises be the same numbers? How many positions will the model have worked through in all?

# %%
slow, forwarded = [], 0
for t in range(1, len(pieces)):
    with torch.inference_mode():
        answer = model(ids[:, :t])[0, -1]
    slow.append(-answer.log_softmax(dim=-1)[ids[0, t]].item())
    forwarded += t
print(f"largest difference: {max(abs(a - b) for a, b in zip(slow, surprise, strict=True)):.4f}")
print(f"positions: {forwarded} the slow way, {ids.shape[1]} in one pass")

# %% [markdown]
# The same answers for a fraction of the work: T positions instead of T(T − 1)/2. For a full window of our model, 256 tokens, that is 256 against 32,640.
# This is why language models can be trained at all: **in training all positions are answered in one pass, in parallel.**
#
# It works because of *causality*: a position sees itself and what stands before it, never what comes after. Let us test that.
#
# **Predict.** We replace the seventh token, `·was`, by `·cat`. At which positions do the logits change?

# %%
changed = ids.clone()
changed[0, 6] = tokenizer.encode(" cat")[0]
with torch.inference_mode():
    change = (model(changed) - logits).abs().amax(dim=-1)[0]
plots.bars(
    pieces,
    {"change": change},
    title="·was becomes ·cat: how far the logits move",
    ylabel="largest change",
)

# %% [markdown]
# From there on, and not before: the bars to the left are exactly 0. If a position could see the token that it is asked for, training would be an exam with the
# answers printed on the back, and the model would learn to turn the page.
#
# ### Your turn: the loss
#
# Open **`course_lib/training.py`** and write `next_token_loss`. Its docstring says what it must do. Leave the two functions below it for later.
#
# Some questions to have in mind:
#
# - Which rows of the logits have a partner among the tokens? Which token has none among the rows?
# - `F.cross_entropy` wants two axes, `(N, V)` and `(N,)`. Does it matter whether you shift before you flatten or after?
# - Some targets do not count. What is the mean divided by then?
# - What would torch do, without a word, with logits and tokens that do not belong together?
#
# A first look at your own function. By hand, for the first row: the softmax of (0, 1, 2) gives 0.245 to token 1, and −log 0.245 = 1.408.

# %%
little = torch.tensor([[[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]])
next_token_loss(little, torch.tensor([[0, 1, 2]]))

# %% [markdown]
# ### Checks
#
# Each cell runs one check on your file and says what it called, what came back, and what was expected. Take them from the top: the first red one often explains the next.

# %% grade_id="training-loss_shift" points=1.5
from course_lib.checks import check, hidden

check("training-loss_shift")

# %% grade_id="training-loss_uniform" points=0.5
check("training-loss_uniform")

# %% grade_id="training-loss_rows_apart" points=0.5
check("training-loss_rows_apart")

# %% grade_id="training-loss_ignored" points=0.5
check("training-loss_ignored")

# %% grade_id="training-loss_nothing_left" points=0.5
check("training-loss_nothing_left")

# %% grade_id="training-loss_extreme_logits" points=0.5
check("training-loss_extreme_logits")

# %% grade_id="training-loss_half_precision" points=0.5
check("training-loss_half_precision")

# %% grade_id="training-loss_untouched" points=0.25
check("training-loss_untouched")

# %% grade_id="training-loss_bad_shapes" points=0.5
check("training-loss_bad_shapes")

# %% grade_id="training-loss_bad_targets" points=0.5
check("training-loss_bad_targets")

# %% grade_id="training-loss_by_hand" points=0.5
check("training-loss_by_hand")

# %% [markdown]
# ### Your loss on MiniGPT
#
# The mean of the bars above, by your function; and three sentences.
#
# **Predict.** Order the three by their loss.

# %%
print(f"mean of the bars: {sum(surprise) / len(surprise):.3f}")
print(f"your loss:        {next_token_loss(logits, ids):.3f}")

# %%
for sentence in (
    "Tom and his dog ran to the park. They played with a big red ball.",
    "Park the to ran dog his and Tom. Ball red big a with played they.",
    "The tenant shall indemnify the landlord against all claims.",
):
    their_ids, their_logits = read(sentence)
    print(f"{next_token_loss(their_logits, their_ids):5.2f} nats a token: {sentence}")

# %% [markdown]
# The first is MiniGPT's mother tongue. The second has the same words, but now they are no help to each other. Legal English it has never seen. (A loss can even be larger than log V: who is
# sure and wrong pays more than who knows nothing.)
#
# **Predict.** And a model of the same shape that has not been trained?

# %%
torch.manual_seed(0)
fresh = MiniGPT(model.config).eval()
with torch.inference_mode():
    print(f"a fresh model: {next_token_loss(fresh(ids), ids):.3f}")
for vocab in (4096, 6400):
    equal_scores = torch.zeros(1, ids.shape[1], vocab)
    print(f"{vocab} equal scores: {next_token_loss(equal_scores, ids):.3f}")

# %% [markdown]
# The scores of a fresh model are small random numbers, so all its tokens are about equally likely: it starts at log V, give or take a little.

# %% [markdown]
# ## 4. Training, for real
#
# The shipped model took more than an hour. But a training step is the same for a small one, so let us train one now, a very small one, on a single text of our
# own. It ends with `<|endoftext|>`, the token that says "the end": a model that shall learn to stop needs to see where texts stop.

# %%
poem = (
    "My robot likes to count. It counts the stars, it counts the stairs, "
    "and when nothing is left, it counts the numbers."
)
poem_ids = torch.tensor([[tokenizer.eos_id, *tokenizer.encode(poem), tokenizer.eos_id]])
print(f"{poem_ids.shape[1]} tokens, so {poem_ids.shape[1] - 1} exercises in each step")


# %%
def train(loss_function, steps: int = 60):
    """A small model after some steps on the poem, and the loss before each step."""
    torch.manual_seed(0)
    small = MiniGPT(MiniGPTConfig(n_layers=2, n_heads=2, width=64, dropout=0.0))
    optimizer = torch.optim.AdamW(small.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        loss = loss_function(small(poem_ids), poem_ids)  # one pass, all positions
        optimizer.zero_grad()
        loss.backward()  # which way is down?
        optimizer.step()  # a small step that way
        losses.append(loss.item())
    return small.eval(), losses


# %% [markdown]
# To hear a model we let it go on from a few words, always with its best-scored token. Section 6 takes this loop apart.


# %%
def say(some_model, prompt: str, new_tokens: int) -> str:
    ids = torch.tensor([[tokenizer.eos_id, *tokenizer.encode(prompt)]])
    for _ in range(new_tokens):
        with torch.inference_mode():
            best = some_model(ids)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, best], dim=1)
        if best.item() == tokenizer.eos_id:
            break
    return tokenizer.decode(ids[0])


# %% [markdown]
# **Predict.** Where does the curve begin, and what will the small model say at the end?

# %%
small, losses = train(next_token_loss)
print(f"loss {losses[0]:.2f} at first, {losses[-1]:.2f} at last. It says:")
print(say(small, "My robot", 40))
plots.lines(range(60), {"loss": losses}, "Sixty training steps on one text", "step", "nats a token")

# %% [markdown]
# It starts near log V, knowing nothing, and ends knowing the poem by heart, and nothing else in the world. MiniGPT itself was made in the same way, with your loss: only
# with a larger network, millions of tokens, and patience.
#
# ### Find the bug: a loss that is too good
#
# Here is another loss. It looks tidier, doesn't it?


# %%
def tidy_loss(logits, tokens):
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


# %% [markdown]
# **Predict.** Will the training succeed? What will the model say?

# %%
broken, broken_losses = train(tidy_loss)
print(f"loss {broken_losses[0]:.2f} at first, {broken_losses[-1]:.2f} at last. It says:")
print(say(broken, "My robot", 12))

# %% [markdown]
# The loss went down as it should, further even than ours. And all the model has learned is to say again what it has just read.
#
# <details><summary>What happened, and how to mend it</summary>
#
# The shift is missing. Position t is asked for token t, the one that it is looking at, so copying is the perfect answer. A loss alone can't tell you that it asks the wrong
# question: look at what the model *says*. (It also begins *below* log V: our model's scores come from the same table as its inputs, so even a fresh one leans a little
# towards repeating. A start below log V is as suspicious as one above.)
#
# </details>
#
# > **In the wild.** A missing shift: huggingface/transformers#27517. The opposite is more common: data that were shifted when they were loaded, and a loss that shifts again. Then position t learns to
# > predict token t + 2 (huggingface/transformers#47394, for a whole model class, through many releases).

# %% [markdown]
# **Predict.** What does the double shift do to the loss of MiniGPT, which predicts token t + 1 very well?


# %%
def loss_of_a_library(logits, tokens):
    logits, targets = logits[:, :-1], tokens[:, 1:]  # "the loss wants shifted labels"
    return next_token_loss(logits, targets)


print(f"shifted once:  {next_token_loss(logits, ids):.2f}")
print(f"shifted twice: {loss_of_a_library(logits, ids):.2f}")

# %% [markdown]
# A trained model shows the mistake at once. A fresh one does not: it starts at log V as it should, learns to guess two tokens ahead, and is just a bit worse
# than expected, for ever. Who shifts, the data or the loss? Our contract says: the loss, and nobody else.
#
# ## 5. What a loss means: perplexity
#
# "2.3 nats" is hard to feel. The *perplexity* is e to the loss, and reads like this: the model hesitates as if it had to choose between so many equally likely tokens. A certain model: 1. One
# that knows nothing: e to the log 4096 = 4,096.
#
# The one trap is in the averaging. An evaluation comes in batches, and batches have different lengths.
#
# **Predict.** One batch has a single token, with 6 nats. Another has three tokens, with 2 nats in all. What is the perplexity of the four?
#
# <details><summary>Answer</summary>
#
# 8 nats over 4 tokens are 2 nats a token, and e² = 7.389. Whoever averages the batches first gets (6 + 2/3) / 2 = 3.333 nats, and e to that is 28.03: the single token was given as much weight
# as the other three together.
#
# </details>
#
# ### Your turn: perplexity
#
# Write `perplexity` in **`course_lib/training.py`**. Two questions to have in mind: what do you add up, and how often do you divide? What is there to say about a text without tokens?
#
# A first look:

# %%
perplexity([(6.0, 1), (2.0, 3)])

# %% [markdown]
# ### Checks

# %% grade_id="training-perplexity_weighted" points=0.5
check("training-perplexity_weighted")

# %% grade_id="training-perplexity_any_batches" points=0.5
check("training-perplexity_any_batches")

# %% grade_id="training-perplexity_bad_counts" points=0.5
check("training-perplexity_bad_counts")

# %% [markdown]
# ### Your perplexity on MiniGPT
#
# Two little collections of texts, one in MiniGPT's language and one not.

# %%
stories = [
    "The cat was hungry.",
    "Mia had a blue kite. She ran up the hill, and the kite flew high in the sky. Mia laughed.",
    "Ben could not find his shoe. He looked under the bed. There it was!",
]
news = [
    "The central bank left its rate unchanged on Thursday.",
    "Analysts had expected an increase of a quarter point after months of rising prices.",
]


# %%
def nats_and_tokens(text: str) -> tuple[float, int]:
    ids, logits = read(text)
    count = ids.shape[1] - 1
    return next_token_loss(logits, ids).item() * count, count


print(f"stories: {perplexity(map(nats_and_tokens, stories)):.1f}")
print(f"news:    {perplexity(map(nats_and_tokens, news)):.1f}")

# %% [markdown]
# The news is beyond it: a perplexity that is far from 4,096 shows that the model knows some English, and one that is far from the stories' shows which English it knows.
#
# > **In the wild.** A metric that averaged the perplexities of the batches: keras-team/keras-hub#2958. Losses averaged over batches of unequal length, in *training*:
# > huggingface/transformers#34191. A perplexity that depended on the batch size, since padding was counted: ml-explore/mlx-lm#1855. That last one is why your loss has `ignore_index`, and why it divides by
# > what is left. If nothing is left, 0/0 is NaN, and NaN is the honest answer (pytorch/pytorch#116349).
#
# <details><summary>Model A has a perplexity of 5 and model B of 8. Is A better?</summary>
#
# Only if they have the same tokenizer and were measured on the same text. A perplexity is *per token*. A model with larger tokens has fewer of them, each harder to guess, and so a higher perplexity for
# the same knowledge. To compare across tokenizers, divide the nats by the bytes of the text, not by the tokens ("bits per byte").
#
# </details>
#
# ## 6. Speaking
#
# In training the whole text was there. Now only its beginning is, and we want the rest. The model can't answer for tokens that do not exist yet, so there is only one way:
#
# ```
# prompt ─► model ─► token 1
# prompt + token 1 ─► model ─► token 2
# prompt + token 1 + token 2 ─► model ─► token 3 ...
# ```
#
# Each token is appended, and the longer text is read again. This is called *autoregressive*: what the model said becomes what it reads. **Training is parallel, speaking is serial**, and nearly everything that
# is odd, slow or expensive about language models follows from that.
#
# In each step the model gives T rows of logits, and we need *one*: the last, the only one that speaks about a token that we do not have. All earlier rows are answers to questions whose answers we know. They are
# wasted work, and even the same work in each step. (Why the same? You have tested it in section 3. Lesson 7 gets rid of it.)
#
# A language without tensors stores the logits as one long row of numbers, `data`, of length n = B·T·V. For one text, "the last row" is then simply the last V numbers, `data[n - V:]`.

# %%
data = logits.flatten()
n = len(data)
print("the last V numbers are the last row:", torch.equal(data[n - V :], logits[0, -1]))

# %% [markdown]
# **Predict.** Is that still right for a batch of two texts? How would you find both last rows in a table of shape `[B*T, V]`?
#
# <details><summary>Answer</summary>
#
# The last V numbers are the last row of the *last* text; the first text's answer is lost. In the table the rows of text b begin at b·T, so the last ones are T − 1 and 2T − 1. With a tensor `(B, T, V)`
# one just says which axis one means.
#
# </details>
#
# ### Your turn: the last row
#
# A batch brings one more question. Texts have different lengths, so the shorter ones are filled up with *padding*, and a *mask* says which positions are real (1) and which are filling (0). The
# answer that we want stands at the last *real* position, which need not be the last one. Some fill up on the left, some on the right.
#
# Write `last_logits` in **`course_lib/training.py`**. Have in mind: which of the three axes is time? In the mask `0 0 1 1`, is the number of ones of any use?

# %%
last_logits(torch.arange(12.0).view(2, 3, 2))

# %% [markdown]
# ### Checks

# %% grade_id="training-last_position" points=0.5
check("training-last_position")

# %% grade_id="training-last_real_position" points=0.5
check("training-last_real_position")

# %% grade_id="training-last_half_precision" points=0.25
check("training-last_half_precision")

# %% grade_id="training-last_mask_length" points=0.25
check("training-last_mask_length")

# %% grade_id="training-last_mask_rows" points=0.25
check("training-last_mask_rows")

# %% grade_id="training-last_empty_row" points=0.25
check("training-last_empty_row")

# %% grade_id="training-last_untouched" points=0.25
check("training-last_untouched")

# %% [markdown]
# ### Your last row on MiniGPT
#
# Two prompts of different length, the shorter one padded on the right.

# %%
prompts = ["Mia was very happy. She smiled and", "The dog"]
rows = [tokenizer.encode(prompt) for prompt in prompts]
T = max(len(row) for row in rows)
padded = torch.tensor([row + [0] * (T - len(row)) for row in rows])
mask = torch.tensor([[1] * len(row) + [0] * (T - len(row)) for row in rows])
with torch.inference_mode():
    both = model(padded, attention_mask=mask)
print("mask:", mask.tolist())

# %%
for name, picked in [("with the mask", last_logits(both, mask)), ("without", last_logits(both))]:
    print(f"{name}: {[tokenizer.piece(i) for i in picked.argmax(dim=-1)]}")

# %% [markdown]
# Both rows of the first line answer their prompts. In the second line the dog's answer was taken at a padding position, where the model has been asked nothing.
#
# > **In the wild.** With padding on the *left*, the last column is the right one for every row; code written for the right side took another one (huggingface/transformers#21080).
#
# <details><summary>A course takes <code>logits[-1, -1]</code> of logits (1, T, V), and it works. What is wrong with it? And what does <code>logits[-1]</code> give you?</summary>
#
# The first -1 is the *batch* axis: the last text, of one. With two prompts it answers only the second, without a word. `logits[-1]` is all positions of the last text, shape `(T, V)`: as many "rows" as
# positions, which looks right whenever B equals T. `logits[:, -1]` says what is meant. (Seen in callummcdougall/ARENA_3.0.)
#
# </details>
#
# ### The loop
#
# **Predict.** Bring the steps into order, and say which ones are outside of the loop: *append; choose a token; decode to text; forward; take the last row; encode the prompt; cut to the model's window.*

# %%
story = torch.tensor([tokenizer.encode("Tom has a red ball. He")])  # encode
for _ in range(16):
    window = story[:, -model.block_size :]  # cut to the window
    with torch.inference_mode():
        all_rows = model(window)  # forward
    scores = last_logits(all_rows)  # the last row
    token = scores.argmax(dim=-1, keepdim=True)  # choose: the best one
    story = torch.cat([story, token], dim=1)  # append
print(tokenizer.decode(story[0]))  # decode

# %% [markdown]
# That is a text generator. The rest of the course makes it good (choose), fast (forward) and safe (everything else). Watch it, a step at a time:


# %%
def at_step(step: int):
    ids = torch.tensor([tokenizer.encode("Tom has a red ball. He")])
    with torch.inference_mode():
        for _ in range(step):
            ids = torch.cat([ids, last_logits(model(ids)).argmax(dim=-1, keepdim=True)], dim=1)
        scores = last_logits(model(ids))
    title = f"step {step}, “{tokenizer.decode(ids[0])[-50:]}”"
    return plots.distribution(scores, tokenizer, top=8, title=title)


explore(at_step, step=(0, 16, 0))

# %% [markdown]
# The same loop is written in different words in every code base. Three that we shall meet again:
#
# | | a Rust course's `sample.rs` | dnnlpy, a course of notebooks | MiniMind's `generate` |
# |---|---|---|---|
# | before the loop | encode the prompt | take the input ids | make an empty `past_key_values`, and the ids generated so far |
# | cut | to the last `block_size` ids | to the last `context_length` ids | |
# | forward | the whole window, or with a cache the new id | the whole window | the ids that the cache does not hold yet |
# | last row | the last V numbers | `logits[:, -1, :]` | `logits[:, -1, :]` |
# | choose | temperature, top-k, top-p, draw | sample the next token | temperature, penalty, top-k, top-p, draw or argmax |
# | append | push the id | concatenate | concatenate, keep the cache |
# | again | until `max_new` | `max_new_tokens` times | until every row has said the end token, or `max_new_tokens` |
# | after the loop | decode | | |
#
# All three, and ours, in one line, the slogan of this course:
#
# > **forward → last logits → adjust → draw or argmax → append → update the cache → repeat**
#
# ### When does it end?
#
# Two things end a text: the model says its end token, `<|endoftext|>` here, or we have had enough: `max_new_tokens`. A model without the second can talk for ever.
#
# And there is a third limit. **Predict.** Our window is 256 tokens. Who refuses a longer text, the tokenizer or the model?

# %%
long = tokenizer.encode("Tom ran. " * 120)
print(f"the tokenizer: {len(long)} tokens, no complaint")
try:
    model(torch.tensor([long]))
except ValueError as error:
    print("the model:", error)

# %% [markdown]
# The limit belongs to the model, which has learned 256 positions and no more. A tokenizer cuts as long a text as you like. So it is the loop that has to cut.
#
# ### Find the bug: a window
#
# `story[:, -model.block_size:]` did it above. This one says the same, for lists, doesn't it?


# %%
def window_of(ids: list[int], block_size: int) -> list[int]:
    return ids[len(ids) - block_size :]


print(window_of([1, 2, 3, 4, 5, 6, 7, 8, 9], 4))

# %% [markdown]
# **Predict.** And for a text that is shorter than the window?

# %%
print(window_of([1, 2, 3, 4, 5, 6], 8))

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# 6 − 8 is −2, and for Python a start of −2 means "the last two". The short text has lost its beginning, without an error, and the model goes on from two tokens. (A text shorter than half a window keeps everything, which
# makes it harder to notice: try three ids.) In Rust the same line stops the program, since its indices can't be negative; there one writes `saturating_sub`. In Python: `ids[-block_size:]`, or `max(0, ...)`.
#
# </details>
#
# ### Where do chats come from?
#
# A chat model is no different: it continues *one text*. Somebody agreed on how a conversation is written down, and trained the model on texts of that form. The form is a *chat template*:


# %%
def chat_template(messages, add_generation_prompt: bool = True) -> str:
    text = "".join(f"[{who}]\n{what}\n" for who, what in messages)
    return text + ("[assistant]\n" if add_generation_prompt else "")


conversation = [("system", "You are a friendly cat."), ("user", "What is your name?")]
print(chat_template(conversation))

# %% [markdown]
# **Exercise.** What would a well-trained model write after the template *without* the generation prompt? And what will MiniGPT make of it, which has never read a chat?

# %%
print(say(model, chat_template(conversation), 30))

# %% [markdown]
# <details><summary>Answer</summary>
#
# Without the prompt the conversation might go on with anybody's turn: the model could well write the *user's* next message. `[assistant]` says whose turn it is. MiniGPT has learned no such form. If its
# answer fits, that is because its stories are full of people who ask and answer; brackets and roles mean nothing to it, and it goes straight on with the story. You can rely on a template only with a model that
# was trained on it.
#
# </details>
#
# > **In the wild.** MiniMind's `eval_llm.py` does it in three calls: `apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)` makes the text, the tokenizer turns it into ids and an attention mask
# > (`return_tensors="pt", truncation=True`), and `generate(inputs, attention_mask, ...)` runs the loop. Descriptions of it tend to leave out three of its arguments: the `streamer`, `eos_token_id`, and `pad_token_id`, which is accepted and
# > never used.
#
# Five settings go into that call, and into nearly every other one. This is where we shall build them:
#
# | parameter | what it decides | lesson |
# |---|---|---|
# | `max_new_tokens` | when to stop at the latest | 8 |
# | `temperature` | how sharp the distribution is | 2 |
# | `top_p` | how much of the probability stays (`top_k`: how many tokens) | 4 (and 3) |
# | `do_sample` | draw a token, or take the best one | 5 |
# | `repetition_penalty` | how much a token that was said loses; 1 is off | 6 |
#
# ## 7. The same answer twice
#
# **Predict.** Same model, same text, two passes. Is there any reason for different logits?

# %%
model.train()
with torch.inference_mode():
    print("in training mode, twice the same logits:", torch.equal(model(ids), model(ids)))
model.eval()
with torch.inference_mode():
    print("in eval mode, twice the same logits:", torch.equal(model(ids), model(ids)))
print("two greedy runs agree:", say(model, "One day,", 20) == say(model, "One day,", 20))

# %% [markdown]
# In training mode *dropout* sets a tenth of the numbers inside of the network to 0, other ones in each pass, so that no part of it relies too much on another. That is good for learning and bad
# for everything else. `eval()` turns it off. `torch.inference_mode()` is another thing: it tells torch not to remember what gradients would need, which saves time and memory and changes no result.
#
# > **In the wild.** PyTorch's own language model example once generated its text with dropout on (pytorch/examples#114); years later a loader for generation forgot the same (ai2cm/ace#1019).
#
# ### Find the bug: a sample in between
#
# Somebody likes to hear their model every now and then while it is trained:


# %%
def sample_in_between(some_model, prompt: str) -> str:
    some_model.eval()
    return say(some_model, prompt, 5)


learning = MiniGPT(MiniGPTConfig(n_layers=1, n_heads=2, width=32)).train()
sample_in_between(learning, "Once")
print("still in training mode:", learning.training)

# %% [markdown]
# <details><summary>What is wrong, and how to mend it</summary>
#
# The model stays in eval mode, so from the first sample on it is trained without dropout, and nothing says so. Whoever changes a mode has to put it back, also if something fails in between:
#
# ```python
# was_training = some_model.training
# some_model.eval()
# try:
#     return say(some_model, prompt, 5)
# finally:
#     some_model.train(was_training)
# ```
#
# Lesson 8 holds you to it. (Seen in the `generate` of a published notebook course, and in shubhamagarwal92/mmd#14.)
#
# </details>
#
# ## 8. Where it fails
#
# MiniGPT has read children's stories and nothing else. **Predict.** What will it make of these?

# %%
for prompt in ("The capital of France is", "2 + 2 =", "def add(a, b):"):
    print(say(model, prompt, 15), end="\n\n")

# %% [markdown]
# A story, whatever you ask. The model has no idea of true or false; it knows what tends to come next in the texts that it was trained on. Large models are no different in that: they have read more.
#
# And greedy as it is so far, it loses itself when we let it talk:

# %%
print(say(model, "The dog wanted to play. The cat wanted to play.", 70))

# %% [markdown]
# It comes back to its own words: what was said once becomes more likely to be said again. We shall see worse, and mend it, in lessons 5 and 6.
#
# One failure is all ours. **Predict.** What difference does a space at the end of the prompt make?

# %%
for prompt in ("Tom went to the", "Tom went to the "):
    _, scores = read(prompt)
    best = [tokenizer.piece(i) for i in scores[0, -1].topk(6).indices]
    print(f"{prompt!r}: the best {best}")
    print(f"  {say(model, prompt, 9)}")

# %% [markdown]
# All the common words of our vocabulary bring their space along, so after a lone space they are out. Only a few rare words are spelled with a space of its own; look at " otter" in the first section's cell. To MiniGPT a
# lone space says "now comes one of those". Strip your prompts.
#
# > **In the wild.** The very same with another small model of children's stories: karpathy/llama2.c#180.
#
# ## 9. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="training-hidden_loss_any_batch" points=0.75
hidden("training-hidden_loss_any_batch")

# %% grade_id="training-hidden_loss_ignored" points=0.75
hidden("training-hidden_loss_ignored")

# %% grade_id="training-hidden_loss_edges" points=0.5
hidden("training-hidden_loss_edges")

# %% grade_id="training-hidden_loss_arguments" points=0.5
hidden("training-hidden_loss_arguments")

# %% grade_id="training-hidden_perplexity" points=1
hidden("training-hidden_perplexity")

# %% grade_id="training-hidden_last_any_mask" points=1
hidden("training-hidden_last_any_mask")

# %% grade_id="training-hidden_last_edges" points=0.5
hidden("training-hidden_last_edges")

# %% [markdown]
# ## 10. In your own words
#
# A friend says: "If a model can be trained on 256 positions in a single pass, it can also write 256 tokens in a single pass. They only make it type word by word because it looks nice." In four or five sentences:
# what is right about that, what is wrong, and which work of our loop is really wasted?

# %% [markdown] grade_id="training-written" points=2 written=true
# In training the whole text is known, so each position can be asked for its next token at the same time: causality keeps it from seeing the answer, and one pass gives all T answers. When the model writes, token t + 1 does
# not exist until it has been chosen, and the answer for token t + 2 depends on which one it was; so the passes have to follow each other, one a token. What is wasted is something else: in each pass our loop computes
# all rows of logits again, though it needs the last one only, and because of causality the earlier rows come out the same as in the pass before. That repeated work can be saved (lesson 7 does), the order of the
# steps can't.

# %% [markdown]
# ## What we have, and what comes next
#
# - Text → tokens → logits `(B, T, V)` → softmax → a token → text. Logits are scores; softmax sees their differences only.
# - Training: position t predicts token t + 1, all positions in one pass, thanks to causality. The loss is the mean of −log p.
# - A loss of log V means "knows nothing"; a loss that is too good may ask the wrong question. Perplexity is e to the mean over all *tokens*.
# - Speaking: one pass a token, only the last real row counts. *forward → last logits → adjust → draw or argmax → append → update the cache → repeat.*
# - `eval()` for the same answer twice, and put back what you change.
#
# **Stretch.** Train the shipped model on the poem for ten steps: `train` with `MiniGPT.from_pretrained()` in place of the fresh model, and a learning rate of 3e-4. How does its perplexity on our `stories` change while it learns
# about the robot? (What you see is called *forgetting*.)
#
# **Next:** lesson 2, temperature: the model's scores stay as they are, and we make it bolder or shyer.
