# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 8: generate, the whole machine
#
# Seven lessons of parts lie on the bench: a last row, a temperature, two filters, a draw, a penalty, a cache. Now we screw them together. At the end there is one function that you can give to a friend, and a model that tells you
# a story, with nothing between the two of you but code that you wrote.
#
# **When you are through, you can**
#
# - assemble `generate` from your own functions, step by step, and say why each step stands where it stands;
# - let a batch of texts end one by one, with prompts of different lengths;
# - go past the model's window, or stop there and say so;
# - leave the caller's model, tensors and gradients as you found them;
# - stream a text without ever showing half a character;
# - prove that the fast way gives the same tokens as the slow one.
#
# **Time:** about two and a half hours. Each of the sections 3 to 8 is a small task with its checks, so there are many good places for a break. **You need:** your functions of lessons 1 and 5 to 7, which use those of 2 to 4.

# %%
from course_lib.given.notebook import start

start("generate")

# %%
import torch

from course_lib.checks.models import Bigram, ByteTokenizer, Script, Table, tiny_gpt
from course_lib.generate import generate, stream
from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.repetition import apply_repetition_penalty
from course_lib.sampling import inverse_cdf
from course_lib.temperature import apply_temperature
from course_lib.top_k import top_k_filter
from course_lib.top_p import top_p_filter
from course_lib.training import next_token_loss

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()


def ids_of(text: str) -> torch.Tensor:
    return torch.tensor([tokenizer.encode(text)])


# %% [markdown]
# ## 1. The bench
#
# | in a step | who does it | lesson |
# |---|---|---|
# | read the prompt, then each new token once | `KVCache`, `prefill`, `decode_step` | 7 |
# | take the last row of logits | `last_logits` | 1 |
# | make what was said less likely | `apply_repetition_penalty` | 6 |
# | sharpen or flatten | `apply_temperature` | 2 |
# | keep a short list | `top_k_filter`, `top_p_filter` | 3, 4 |
# | take the best, or draw | `greedy`, `sample` | 5 |
#
# The last three rows are one call already, `next_token` of lesson 5. And this is how they hang together:
#
# > **forward → last logits → penalty → temperature → top-k → top-p → draw → append → forward → ...**
#
# **Predict.** Two pairs of neighbours in this row may change places, and nothing happens. Which? And which steps must never be swapped?
#
# <details><summary>Answer</summary>
#
# Penalty and temperature: one multiplies or divides single logits, the other divides all of them, and multiplication does not mind the order. Temperature and top-k: the k best are the k best at any temperature.
#
# But the penalty changes who is best, so it has to come before the *filters*, or it only shuffles what they have left (lesson 6). And top-p measures probabilities, so it has to come after everything that changes them (lesson 4).
#
# </details>
#
# ## 2. One step in slow motion
#
# Here is a text on its way. Each frame is one step, read it from top to bottom: the context, the probabilities after penalty and temperature, what the filters leave of them, the wheel with the ball on it, and the cache. All of it comes out of functions that you have written already.


# %%
STATES = ["not read yet", "in the cache", "read now"]


def frame(ids, scores, left, u, step):
    kept = left[0].isfinite().nonzero()[:, 0]  # in the order of the ids, as on the wheel
    said = [tokenizer.piece(i) for i in ids[0]]
    read = torch.ones(1, len(said), dtype=torch.long)
    read[0, -2 if step else 0 : -1], read[0, -1] = 2, 0
    title = f"step {step}, after: … {tokenizer.decode(ids[0, :-1])[-45:]}"
    names = [tokenizer.piece(i) for i in kept]
    return plots.column(
        plots.distribution(scores, tokenizer, left.isfinite(), top=8, title=title),
        plots.roulette(names, left[0, kept].softmax(dim=-1), u, f"the draw: {said[-1]}"),
        plots.grid(read, STATES, [""], said, "the cache", "token", "cache"),
    )


# %%
@torch.inference_mode()
def play(step: int, temperature: float, top_k: int, top_p: float, penalty: float):
    ids, luck = ids_of("Mia looked up and saw a"), torch.Generator().manual_seed(3)
    for _ in range(step + 1):
        scores = apply_repetition_penalty(model(ids)[:, -1], ids, penalty)
        scores = apply_temperature(scores, temperature)
        left = top_p_filter(top_k_filter(scores, top_k), top_p)
        u = torch.rand(1, generator=luck)
        ids = torch.cat([ids, inverse_cdf(left.softmax(dim=-1), u)], dim=1)
    return frame(ids, scores, left, u.item(), step)


knobs = {"temperature": (0.1, 2.0, 0.8), "top_k": (1, 40, 8), "top_p": (0.0, 1.0, 0.9)}
explore(play, step=(0, 12, 2), **knobs, penalty=(1.0, 2.0, 1.0))

# %% [markdown]
# Move the step with the arrow keys. Then stay at one step and turn one knob after the other. The ball stays where it is, for u comes from a seed. But the wheel changes under it, so it may come to lie on another token; and as the earlier steps are played with the new knob as well, you may suddenly find yourself in another story.
#
# **Predict.** In each frame the newest token is white in the cache's row. Why is it not in the cache?
#
# <details><summary>Answer</summary>
#
# It has been drawn and not been read. It goes through the model at the beginning of the *next* step, if there is one. That is why N new tokens after a prompt of P cost P + N − 1 positions, not P + N.
#
# </details>
#
# ## 3. The loop, and how it ends
#
# What should the function look like from outside? Two courses, two answers:
#
# | | a course of notebooks | a Rust course |
# |---|---|---|
# | call | `generate(model, input_ids, block_size, max_new_tokens, temperature=1.0, top_k=None, top_p=None, do_sample=True)` | `generate(model, tokenizer, prompt, max_new, temperature, top_k, top_p, use_kv_cache, rng)` |
# | gives | ids `(B, T + new)` | text |
#
# **Predict.** The first has one argument that the caller should not have to know, and it lacks at least four that you will want. Which?
#
# <details><summary>Answer</summary>
#
# `block_size` belongs to the model: whoever passes a wrong one gets a crash or a forgetful model. Missing: an end token, a repetition penalty, a random generator of one's own, the cache. The second has the last two of these, but since it takes and gives *text* it can't do a batch, and nobody learns which ids were drawn.
#
# </details>
#
# So we write two functions. `generate` works on ids and does everything; `stream` puts text around it. And because ids alone don't tell *why* a text is over, `generate` returns a `Generation`: the ids, a finish reason and a count of new tokens for each row, the speed, and the positions forwarded.
#
# ### Your turn: the loop
#
# Open **`course_lib/generate.py`**. It has two functions to write, and you need not write them at once. We suggest:
#
# 1. this section: greedy, everything read again in each step, `do_sample=False` only, and the ends;
# 2. section 4: the knobs; 3. section 5: window and cache; 4. section 6: padding; 5. section 7: manners; 6. section 8: `stream`.
#
# After each, run that section's checks. Those of later sections can wait, and a field of `Generation` that you can't fill yet may hold a 0. A first look, with a toy model that can count: after 0 it says 1, after 1 it says 2, and so on up to 4, and then 0.

# %%
counting = Bigram([1, 2, 3, 4, 0])
result = generate(counting, torch.tensor([[0], [3]]), 4, do_sample=False)
print(result.ids.tolist(), result.finish_reason, result.new_tokens)

# %% [markdown]
# Now the ends. A row is over when it *says* the end token. Alone that is easy; in a batch the others go on, and a tensor has no ragged rows.
#
# **Predict.** This model says 1 after 0, 4 after 1, 3 after 2, 0 after 3, and 2 after 4. The end token is 4, the filling 0. The prompts are 0 and 2. Write down both rows.
#
# <details><summary>Answer</summary>
#
# | | prompt | 1 | 2 | 3 | 4 |
# |---|---|---|---|---|---|
# | row 0 | 0 | 1 | **4**, over | 0 filling | 0 filling |
# | row 1 | 2 | 3 | 0 | 1 | **4**, over |
#
# The zero of row 1 is a word like any other, those of row 0 are filling. After the fourth step both are over, so the loop is, too: 2 and 4 new tokens.
#
# </details>

# %%
ending = Bigram([1, 4, 3, 0, 2])
result = generate(ending, torch.tensor([[0], [2]]), 9, do_sample=False, eos_id=4, pad_id=0)
print(result.ids.tolist(), result.finish_reason, result.new_tokens)

# %% [markdown]
# Have in mind:
#
# - A row that is over stays over. What do you append to it, and do you look at what the model says there?
# - The prompt may hold an end token: texts that are glued together do. It ends nothing.
# - `if eos_id:` asks whether there is an end token. What does it say to the end token 0?
# - An `int` or a list: turn one into the other at the door, and the loop needs to know one case only.
#
# ### Checks

# %% grade_id="generate-continues_each_row" points=0.25
from course_lib.checks import check, hidden

check("generate-continues_each_row")

# %% grade_id="generate-none_or_one" points=0.25
check("generate-none_or_one")

# %% grade_id="generate-eos_ends_a_row" points=0.5
check("generate-eos_ends_a_row")

# %% grade_id="generate-eos_in_the_prompt" points=0.25
check("generate-eos_in_the_prompt")

# %% grade_id="generate-rows_end_apart" points=0.5
check("generate-rows_end_apart")

# %% grade_id="generate-several_ends" points=0.25
check("generate-several_ends")

# %% grade_id="generate-id_zero" points=0.25
check("generate-id_zero")

# %% [markdown]
# ### Find the bug: when are we done?
#
# Two loops from the wild differ in one word. **Predict** what each makes of our two rows, with at most six new tokens.


# %%
def until(enough, new_tokens: int = 6) -> list[list[int]]:
    ids = torch.tensor([[0], [2]])
    for _ in range(new_tokens):
        token = torch.tensor([1, 4, 3, 0, 2])[ids[:, -1:]]
        ids = torch.cat([ids, token], dim=1)
        if enough(token == 4):
            break
    return ids.tolist()


print("any:", until(torch.any))
print("all:", until(torch.all))

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# `any` ends all rows with the first of them: row 1 is cut off. `all` waits for a step in which every row says 4 *at the same time*; row 0 meanwhile talks on beyond its end. One has to remember for each row whether it is over, and add to that memory in each step.
#
# </details>
#
# > **In the wild.** A bare `if` on a batch crashed in Lightning-AI/lit-llama#153; an end token in the *prompt* ended the text in facebookresearch/fairseq#3780; asking for 0 tokens gave one in sgl-project/sglang#772. The chapter code of rasbt's book leaves the end token out of its output; ours keeps it, so that one can see that
# > the row ended by itself.
#
# ## 4. The choice
#
# One line of your loop says `argmax` or `greedy`. It becomes a penalty and a call of `next_token`. Have in mind:
#
# - Which ids does the penalty look at: those in the window, or the whole text?
# - Temperature 0 is a friendly way of saying "greedy". Who takes care of it?
# - `generator` is handed on. You never seed anything.
#
# ### Checks

# %% grade_id="generate-greedy_two_ways" points=0.25
check("generate-greedy_two_ways")

# %% grade_id="generate-sampling_knobs" points=0.5
check("generate-sampling_knobs")

# %% grade_id="generate-penalty_before_filters" points=0.25
check("generate-penalty_before_filters")

# %% grade_id="generate-penalty_remembers" points=0.25
check("generate-penalty_remembers")

# %% grade_id="generate-same_seed" points=0.25
check("generate-same_seed")

# %% [markdown]
# ### The same luck again
#
# **Predict.** A model for which fifty tokens are all alike. Which of these texts are equal: two from *one* generator, one after the other; two from two generators of the same seed; two after `torch.manual_seed(42)`, with somebody else's random number in between?


# %%
def twenty(generator: torch.Generator | None) -> list[int]:
    start = torch.zeros(1, 1, dtype=torch.long)
    return generate(Table(torch.zeros(50)), start, 20, generator=generator).ids.tolist()


one = torch.Generator().manual_seed(42)
print("one generator, twice:", twenty(one) == twenty(one))
again = [twenty(torch.Generator().manual_seed(42)) for _ in range(2)]
print("the same seed, twice:", again[0] == again[1])

# %%
torch.manual_seed(42)
first = twenty(None)
torch.manual_seed(42)
torch.rand(1)  # a data loader, say
print("the global seed, and somebody in between:", first == twenty(None))

# %% [markdown]
# A generator is not a seed, it *runs on*: that is its job. `torch.manual_seed` (many projects wrap it as `set_seed(42)`) is one generator for the whole process, and anybody may take from it. Give each text a generator of its own, and it can be told again.
#
# > **In the wild.** A project made a fresh generator with the same seed for *each token* (private-mind#255): all draws with the same u. In nanochat several answers to one prompt began with the same token, because the first one was drawn once and copied (its commit 8f979a8).
#
# How far does a seed's promise go? To the same version of torch on the same kind of machine, so one writes these down beside the seed:

# %% tags=["nbval-ignore-output"]
print(f"torch {torch.__version__}, device {torch.get_default_device()}, seed 42")

# %% [markdown]
# ## 5. The window and the cache
#
# Lesson 7 has left us three rules:
#
# - while there is room, the prompt is read once and then each token once;
# - when the window is full, everything moves by one place, so the cache is *reset and filled anew* with the last `block_size` tokens, at every step (`on_overflow="slide"`);
# - or we end there and say so (`on_overflow="stop"`).
#
# Have in mind:
#
# - The window is what the *model* sees. The text that you return is another thing.
# - A prompt may be longer than the window from the start. Which part of it does the model see?
# - `"stop"`: is it over when the window is full, or one token later? (Lesson 7, section 8.)
# - With `use_cache=False` nothing is kept: `model(ids)` on the window, and its last row.
# - How many positions does the cache need room for, at most? And numbers of which kind? Those of the model's weights, if it has any: our toys have none, and take float32.
# - Count what you hand to the model, and add it up: `positions_forwarded`.
#
# ### Checks

# %% grade_id="generate-window_slides" points=0.5
check("generate-window_slides")

# %% grade_id="generate-window_stops" points=0.5
check("generate-window_stops")

# %% grade_id="generate-work_is_counted" points=0.5
check("generate-work_is_counted")

# %% grade_id="generate-cache_changes_nothing" points=0.5
check("generate-cache_changes_nothing")

# %% grade_id="generate-real_transformer" points=0.5
check("generate-real_transformer")

# %% [markdown]
# ### To the end, and one further
#
# A course says that with a cache "the total is limited to within `block_size`", and that "a short prompt is never cut". **Predict**, for a window of 32 and 80 tokens wanted: how long does the text get after prompts of 7, 11, 32 and 40 tokens?

# %%
for prompt_len in (7, 11, 32, 40):
    prompt = torch.zeros(1, prompt_len, dtype=torch.long)
    small = Bigram([1, 2, 0], block_size=32)
    result = generate(small, prompt, 80, do_sample=False, on_overflow="stop")
    print(prompt_len, "+", result.new_tokens[0], "=", result.ids.shape[1], *result.finish_reason)

# %% [markdown]
# Neither is so. The last token that is drawn needs no place in the window, so the text reaches `block_size + 1`. And the shortest prompt is stopped as well: what counts is prompt *plus* answer. A caller who asked for 80 and got 26 wants to know why, and `"overflow"` tells them.
#
# ### What it costs
#
# **Predict.** A prompt of 9 tokens, a window of 256, 300 new tokens. Up to where is the cached way cheap? Is it still cheaper in all?

# %%
wanted = [1, 50, 100, 150, 200, 250, 300]
series = {}
for name, use_cache in [("everything again", False), ("with the cache", True)]:
    toy, prompt = Bigram([1, 2, 0], block_size=256), torch.zeros(1, 9, dtype=torch.long)
    runs = [generate(toy, prompt, n, do_sample=False, use_cache=use_cache) for n in wanted]
    series[name] = [run.positions_forwarded for run in runs]
    print(f"{name}: {series[name][-1]:,} positions for 300 tokens")
plots.lines(wanted, series, "A prompt of 9, a window of 256", "new tokens", "positions forwarded")

# %% [markdown]
# The line with the cache lies on the ground as long as there is room: 9 + 248 − 1 = 256 positions for 248 tokens. The other 52 cost 256 each, 13,312, in both ways alike. Still 13,568 against 46,172.
#
# <details><summary>The notebook course's model has a window of 128 and is asked for 150 tokens. Can a cache that stops do that? What does ours read?</summary>
#
# It can't: with a prompt of 9 it ends after 128 − 9 + 1 = 120. Filling anew reads 128 + 30 · 128 = 3,968 positions, everything again 12,060. Change two numbers in the cell above and see.
#
# </details>
#
# ### Find the bug: the shrinking text
#
# Two loops that cut. **Predict** what comes out when a window of 4 meets a prompt of six.


# %%
@torch.inference_mode()
def stored_back(gpt, ids: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        ids = ids[:, -gpt.block_size :]
        ids = torch.cat([ids, gpt(ids)[:, -1:].argmax(dim=-1)], dim=1)
    return ids


@torch.inference_mode()
def other_end(gpt, ids: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        window = ids[:, : gpt.block_size]
        ids = torch.cat([ids, gpt(window)[:, -1:].argmax(dim=-1)], dim=1)
    return ids


# %%
short_sighted, six = Bigram([1, 2, 3, 4, 5, 6, 7, 8, 9, 0], block_size=4), torch.arange(6)[None]
print("stored back:  ", stored_back(short_sighted, six).tolist())
print("the other end:", other_end(short_sighted, six).tolist())

# %%
print("yours:        ", generate(short_sighted, six, 3, do_sample=False).ids.tolist())

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# The first stores the *window* under the name of the *text*, so the beginning is lost, and the length is no longer prompt plus new. (Seen in an assignment of a well-known class, stanford-cs336/assignment2-systems.) The second keeps the first four tokens instead of the last, so the model never sees anything new and says the same for ever
# (EleutherAI/gpt-neo#54). Both are right until the window is full, which is when most tests have long ended.
#
# </details>
#
# > **In the wild.** Nobody had thought of the full cache in rasbt/LLMs-from-scratch#925. nanoGPT goes on by cutting, without a cache. MiniMind hands over `input_ids[:, past_len:]`: the slice is taken in `generate`, by the caller, and not inside the model.
#
# ## 6. Prompts of different lengths
#
# Rows end apart, and they begin apart, too. Three prompts of 3, 2 and 8 tokens make a batch when the short ones are padded, on the *left*, so that each row ends with its last word.


# %%
def left_padded(texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids and the attention mask (batch, pos) of some prompts: 1 real, 0 padding."""
    rows = [tokenizer.encode(text) for text in texts]
    longest = max(len(row) for row in rows)
    ids = [[tokenizer.eos_id] * (longest - len(row)) + row for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


beginnings = ["Once upon a", "The fox", "Tom and Mia were friends. One day"]
ids, mask = left_padded(beginnings)
print(mask)

# %% [markdown]
# The model takes care of positions and of who may look at whom, as long as it gets the mask (lesson 7). What is left for you:
#
# - After each step the text is one longer. And the mask?
# - When the window slides, what has to slide with it?
# - Padding is no word that was said. Whom do you have to tell?
# - Above, padding *is* the end token. Does that end anything?
#
# > **Claim.** A row of a batch says, greedily, what it says alone.
#
# ### Checks

# %% grade_id="generate-left_padding" points=0.5
check("generate-left_padding")

# %% [markdown]
# The claim on MiniGPT:

# %%
ids, mask = left_padded(beginnings)
together = generate(model, ids, 20, attention_mask=mask, do_sample=False)
for row, text in zip(together.ids, beginnings, strict=True):
    alone = generate(model, ids_of(text), 20, do_sample=False).ids[0]
    print(torch.equal(row[-len(alone) :], alone), "|", tokenizer.decode(alone))

# %% [markdown]
# <details><summary>Why "greedily"? Does a sampled row say something else in a batch?</summary>
#
# Its *distribution* is the same. But the rows draw from one generator in turn, so row 1 gets other random numbers than it would get alone.
#
# </details>
#
# > **In the wild.** Positions that count the padding: huggingface/transformers#3021. The mask left out when the prompt is read: TinyLLM#17. And right padding, where the model is asked to go on after a gap, is perhaps the most common mistake of all; transformers prints a warning when it sees it.
#
# ## 7. Manners
#
# `generate` is a guest in somebody's program. It may need the model in another mode, but it puts things back.
#
# - **Eval mode.** Dropout off while you work; afterwards `training` is what it was, also if something fails in the middle. (Lesson 1 has the pattern.)
# - **No gradients.** `torch.inference_mode()` is the strictest way to say so. But the ids that you *return* should be ordinary tensors that one may use anywhere.
# - **Nothing of the caller's is changed:** not the ids, not the mask, not the list of end tokens.
# - **A streamer** hears the new ids `(B, 1)` once a step, as they come, not all at the end.
# - **Wrong arguments** get a `ValueError` that names them, before any work is done.
#
# ### Checks

# %% grade_id="generate-mode_is_restored" points=0.5
check("generate-mode_is_restored")

# %% grade_id="generate-no_gradients" points=0.25
check("generate-no_gradients")

# %% grade_id="generate-streamer_hears" points=0.25
check("generate-streamer_hears")

# %% grade_id="generate-arguments_untouched" points=0.25
check("generate-arguments_untouched")

# %% grade_id="generate-bad_arguments" points=0.25
check("generate-bad_arguments")

# %% [markdown]
# A streamer can be anything that may be called with the new ids. **Predict** what a list's `append` hears from the two rows of section 3, one of which is over early.

# %%
heard, prompts = [], torch.tensor([[0], [2]])
ending = Bigram([1, 4, 3, 0, 2])
generate(ending, prompts, 9, do_sample=False, eos_id=4, pad_id=0, streamer=heard.append)
print([token.flatten().tolist() for token in heard])

# %% [markdown]
# One column at a time, filling included: the columns of the table, but for the prompt.
#
# ### Find the bug: the light left on
#
# `stream` will be a *generator* in Python's sense: a function with `yield`, which pauses there, and lives on. This one tells a story without gradients, as it should. Meanwhile the caller trains something else.
#
# **Predict** the second line.


# %%
def two_words():
    with torch.inference_mode():
        yield "Once"
        yield " upon"


own = torch.nn.Linear(1, 1)
print("before: has a gradient:", own(torch.ones(1)).requires_grad)
words = two_words()
next(words)
print("now:    has a gradient:", own(torch.ones(1)).requires_grad)
words.close()

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# At `yield` the function pauses *inside* the `with`. Inference mode is a switch of the whole thread, not of the function, so it stays on for the caller, whose training now fails or, worse, quietly learns nothing. It ends when the generator does, which may be never, if nobody reads the story to its end.
#
# Never `yield` inside of `inference_mode`: go in for the step, come out, then yield. The same holds for `model.eval()`: between two pieces the caller may train the very model that is telling. (As a *decorator* on a generator function, `@torch.inference_mode()` does just that by itself; as a `with` around a `yield` it can't.)
#
# </details>
#
# <details><summary>And the streamer? It is called in the middle of things, too.</summary>
#
# It is. The cleanest way is to call it where you would yield: outside. Many people write the loop as one private generator of steps, and both `generate` and `stream` are few lines around it.
#
# </details>
#
# ## 8. Word by word
#
# `stream` takes a prompt as text, and yields pieces of text: first the prompt, then what comes, as it comes. **Predict.** The loop gives us one id after the other. Why not decode each, and yield it?

# %%
word = "日本 café"
print([tokenizer.piece(i) for i in tokenizer.encode(word)])
print([tokenizer.decode([i]) for i in tokenizer.encode(word)])
print(tokenizer.decode(tokenizer.encode(word)))

# %% [markdown]
# Our vocabulary is made of *bytes*, and 日 has three of them, each a token of its own here. A byte alone is no character, so the decoder puts � in its place. It is half a character that one must never show: what has been printed can't be taken back.
#
# ### Your turn: stream
#
# Have in mind:
#
# - How do you see that a character is not yet whole? What do you do with its bytes until it is?
# - What if the text ends in the middle of one? Nothing may be lost.
# - The options are those of `generate`, and so is the work.
# - A generator may `return` a value: here the `Generation`. (`value = yield from ...` and `StopIteration.value` get hold of it.)

# %%
polyglot = Script("?日本 é".encode())  # a toy that says these bytes, one a token
list(stream(polyglot, ByteTokenizer(), "?", 9, do_sample=False))

# %% [markdown]
# ### Checks

# %% grade_id="generate-stream_tells_all" points=0.5
check("generate-stream_tells_all")

# %% grade_id="generate-stream_whole_characters" points=0.5
check("generate-stream_whole_characters")

# %% grade_id="generate-stream_as_it_comes" points=0.25
check("generate-stream_as_it_comes")

# %% grade_id="generate-stream_closed_early" points=0.25
check("generate-stream_closed_early")

# %% grade_id="generate-stream_returns" points=0.25
check("generate-stream_returns")

# %% [markdown]
# > **In the wild.** The last, unfinished character was swallowed at the end of a stream in leonickson1/Swiftlet#7 and in Blaizzy/mlx-vlm#1778.
#
# ## 9. It speaks
#
# Sit back. Every token of this goes through your code. Run these two cells, and watch.


# %%
def tell(prompt: str, max_new_tokens: int = 150, seed: int = 0, **options) -> None:
    luck = torch.Generator().manual_seed(seed)
    options = {"eos_id": tokenizer.eos_id, "generator": luck, **options}
    for piece in stream(model, tokenizer, prompt, max_new_tokens, **options):
        print(piece, end="", flush=True)
    print()


# %% tags=["nbval-ignore-output"]
tell("Once upon a time, there was a little girl", temperature=0.8, top_k=5, top_p=0.9)

# %% [markdown]
# Another seed, another story. Put in your own beginning; "Once upon a" and "The fox" are tradition. In a terminal, in the folder of this notebook, it is `course generate "The fox"`, and it is your code as well.
#
# ### Three at once
#
# The batch of section 6, and each row ends when *it* wants to.

# %%
ids, mask = left_padded(["The end.", "The fox", "Tom and Mia were friends. One day"])
options = {"do_sample": False, "eos_id": tokenizer.eos_id, "attention_mask": mask}
result = generate(model, ids, 60, **options)
for row, new, reason in zip(result.ids, result.new_tokens, result.finish_reason, strict=True):
    print(f"[{new} tokens, {reason}] {tokenizer.decode(row)}\n")

# %% [markdown]
# Rows that are over are not free: the batch is computed to the end of its longest row. Servers therefore take finished rows out and let waiting ones in, between two steps (*continuous batching*, Yu et al. 2022, in Orca).
#
# ### Every knob
#
# All at once, on a text of twenty tokens. The bars are the probability that *this model, unadjusted,* gave to each token that was chosen: high bars are the beaten track. Temperature 0 is greedy, top-k 0 is off.


# %%
def story(temperature: float, top_k: int, top_p: float, penalty: float, seed: int):
    luck, prompt = torch.Generator().manual_seed(seed), ids_of("One day, Lily found a")
    knobs = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    said = generate(model, prompt, 20, **knobs, repetition_penalty=penalty, generator=luck).ids
    with torch.inference_mode():
        probs = model(said)[0, :-1].softmax(dim=-1)
    seen = probs.gather(-1, said[0, 1:, None])[-20:, 0]
    names = [tokenizer.piece(i) for i in said[0, -20:]]
    told = tokenizer.decode(said[0, -20:]).replace("\n", " ")
    return plots.bars(names, {"probability": seen}, f"… {told[:70]}")


knobs = {"temperature": (0.0, 2.0, 0.0), "top_k": (0, 50, 0), "top_p": (0.0, 1.0, 1.0)}
explore(story, **knobs, penalty=(0.5, 2.0, 1.0), seed=(0, 20, 0))

# %% [markdown]
# **Exercise.** Find a setting that gives twenty tokens you like, with the lowest bars that you can get away with. Then turn *one* knob until it breaks. Which knob breaks it first?
#
# ### A gallery of failures
#
# **Predict** what is wrong with each of the settings before you run them.

# %% tags=["nbval-ignore-output"]
for name, options in {
    "greedy, and tempted": {"do_sample": False},
    "temperature 3": {"temperature": 3.0},
    "temperature 3, top-k 1": {"temperature": 3.0, "top_k": 1},
    "sampled, penalty 0.5": {"repetition_penalty": 0.5},
    "greedy, penalty 3": {"repetition_penalty": 3.0, "do_sample": False},
}.items():
    print(f"--- {name}")
    tell("The ball rolled down. The ball rolled", 50, eos_id=None, **options)

# %% [markdown]
# <details><summary>What we saw</summary>
#
# Greedy runs in a circle, as in lessons 5 and 6. At temperature 3 nearly every token of the vocabulary has a chance. Top-k with k = 1 is greedy, at any temperature. A penalty *below* 1 is a reward: what was said is said again, and not even chance gets the text out of it. And a large one bans what a text is made of: once it has been said, a name
# can't come back, nor a full stop, so people change their names and sentences don't end.
#
# </details>
#
# ## 10. Is it right?
#
# Fluent text proves nothing (lesson 7). What the reference promises can be tested, and here you do it yourself.
#
# ### Cached and uncached
#
# Same prompt, same seed, identical *ids*: not "highly similar" ones. First a small random model with a window of 8, far past its end, for twenty seeds.

# %%
small, prompt, pairs = tiny_gpt(), torch.tensor([[1, 2, 3]]), []
for seed in range(20):
    knobs = {"temperature": 0.8, "top_k": 6, "top_p": 0.9, "repetition_penalty": 1.1}
    luck = (torch.Generator().manual_seed(seed) for _ in range(2))
    cached = generate(small, prompt, 30, **knobs, generator=next(luck))
    plain = generate(small, prompt, 30, **knobs, generator=next(luck), use_cache=False)
    pairs.append(torch.equal(cached.ids, plain.ids))
print(f"{sum(pairs)} of {len(pairs)} seeds: identical ids")

# %% [markdown]
# Then MiniGPT, 300 tokens, past its window. (The slow way takes a while for that. So we let it write the last 30 only: greedy decoding does not care who wrote the beginning.)

# %%
girl = ids_of("Once upon a time, there was a little girl")
long = generate(model, girl, 300, do_sample=False)
tail = generate(model, long.ids[:, :-30], 30, do_sample=False, use_cache=False)
print(f"{girl.shape[1]} + {long.new_tokens[0]} = {long.ids.shape[1]} tokens, {long.finish_reason}")
print(f"{long.positions_forwarded:,} positions; identical: {torch.equal(tail.ids, long.ids)}")
print("...", tokenizer.decode(long.ids[0, -100:]))

# %% [markdown]
# The end of that text was written by a model that can't see the beginning any more. (And without an `eos_id`: where a story ends, it begins another one.)
#
# And with a seed, across the end of the window:

# %%
filled = ids_of("Tom had a kite. The wind took it up. " * 30)[:, :250]
luck = [torch.Generator().manual_seed(7) for _ in range(2)]
cached = generate(model, filled, 14, temperature=0.8, generator=luck[0])
plain = generate(model, filled, 14, temperature=0.8, generator=luck[1], use_cache=False)
print("identical:", torch.equal(cached.ids, plain.ids))
print(f"{cached.positions_forwarded:,} positions against {plain.positions_forwarded:,}")

# %% [markdown]
# <details><summary>Find the flaw: "Our cache is verified: a demo without it tells of 'Once upon a', a demo with it tells of 'The fox', from one random generator, and the two texts are of the same quality."</summary>
#
# Different prompts, and a generator that has run on: the texts would differ with a perfect cache, and look alike with a broken one. It can't fail, so it tests nothing. (It stood in a published course, whose author later called it a bad example.)
#
# </details>
#
# ## 11. How fast, and how good?
#
# Your `Generation` knows its speed. **Predict** the ratio of the two before you run it. (Counted in positions it would be 109 to 5,950.)

# %% tags=["nbval-ignore-output"]
for name, use_cache in [("with the cache", True), ("everything again", False)]:
    prompt = ids_of("Once upon a time, there was a little girl")
    result = generate(model, prompt, 100, do_sample=False, use_cache=use_cache)
    speed, read = result.tokens_per_second, result.positions_forwarded
    print(f"{name}: {speed:.0f} tokens a second, {read:,} positions forwarded")

# %% [markdown]
# Less than the positions promise. Reading forty positions in one pass does not take forty times as long as reading one: the pass itself costs, and arithmetic in bulk is cheap.
#
# ### Greedy against sampled
#
# The same beginning, 150 tokens, two ways: the classic comparison. Lesson 6's repeat rate says how much of a text was there before.


# %%
def repeats(words: list, n: int) -> float:
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs)


# %% tags=["nbval-ignore-output"]
ways = {"greedy": {"do_sample": False}, "sampled": {"temperature": 0.8, "top_k": 5, "top_p": 0.9}}
rates = {}
for name, options in ways.items():
    prompt = ids_of("Once upon a time, there was a little girl")
    luck = torch.Generator().manual_seed(3)
    text = tokenizer.decode(generate(model, prompt, 150, **options, generator=luck).ids[0])
    rates[name] = [repeats(text.split(), n) for n in (1, 2, 4)]
    print(f"--- {name}\n{text}\n")
plots.bars(["1 word", "2 words", "4 words"], rates, "Said before", "runs of", "repeat rate")

# %% [markdown]
# One text each is an anecdote. **Predict** how it looks over five beginnings, and add a third way: plain sampling, temperature 1 and no filter. Which of the three repeats itself most, which least?

# %% tags=["nbval-ignore-output"]
starts = [
    "Once upon a time, there was a little girl",
    "The fox",
    "One day, Tom",
    "Mia had a",
    "It was",
]
ids, mask = left_padded(starts)
ways = {"greedy": {"do_sample": False}, "sampled": {"temperature": 0.8, "top_k": 5, "top_p": 0.9}}
rates = {}
for name, options in {**ways, "plain": {}}.items():
    luck = torch.Generator().manual_seed(0)
    rows = generate(model, ids, 120, attention_mask=mask, generator=luck, **options).ids
    texts = [tokenizer.decode(row).split() for row in rows]
    rates[name] = [sum(repeats(text, n) for text in texts) / 5 for n in (1, 2, 4)]
plots.bars(["1 word", "2 words", "4 words"], rates, "Said before, five texts", "runs of", "rate")

# %% [markdown]
# Many a tutorial says here that greedy repeats itself and sampling does not. Our numbers are less tidy. Plain sampling repeats least, and it pays for that in sense. But 0.8 with k = 5 and p = 0.9 is a *careful* setting, close to greedy, and may go round in circles as often. What it does give is variety: another story for another seed, where greedy has
# only one. Measure before you repeat what tutorials say; change the seed, the settings, the length.
#
# ## 12. Find the bugs: a published generate
#
# The loop of the notebook course in section 3 is fine: cut, forward, last logits, sample, append. It checks `temperature > 0` before it looks at `do_sample`. It calls `model.eval()` at the top. Around it, the notebook loads `models/minigpt.pt` with `torch.load` and prints a greedy and a sampled text.
#
# **Predict.** You want to use it in a program that trains, answers and is tested. Make a list of what will hurt. (We have six.)
#
# <details><summary>Our list</summary>
#
# 1. No end token: every answer has `max_new_tokens`, and goes on into the next story.
# 2. No generator: nothing can be repeated without touching the global seed.
# 3. No cache: each step reads everything.
# 4. `eval()` is never undone: the training goes on without dropout.
# 5. `do_sample=False, temperature=0` raises, though nothing would be divided.
# 6. `minigpt.pt` is not in the repository, so the notebook can't be run; and where a `.pt` comes from a stranger, loading it may *run* code, unless one says `weights_only=True`.
#
# </details>
#
# What does it take to ship a model? Weights, tokenizer, and the *shape*, since a file of numbers doesn't say what network they belong to. Ours lie in `models/`, the weights in a format that holds numbers and nothing else (safetensors), and a checksum of each file, so that a damaged or swapped one is noticed:

# %%
from course_lib.given.pretrained import read_config, shipped_models

config = read_config(shipped_models())
print(config["model"])
print(sorted(config["sha256"]))
print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters")

# %% [markdown]
# <details><summary>Where do the 4,264,448 come from?</summary>
#
# Tokens 4,096 · 256 = 1,048,576 and positions 256 · 256 = 65,536; in each of 4 layers attention 4 · 256 · 256 = 262,144, the two-layer network 2 · 256 · 1,024 = 524,288, and two norms 1,024; the last norm 512. The head is the token table once more and costs nothing. (The notebook course's model has 128 positions, a hidden layer of 512
# and 1,792 biases a layer; with a vocabulary of 4,096 and a head without bias that makes 3,190,272.)
#
# </details>
#
# Without the checksum, a model and a tokenizer of different trainings load without a complaint, and talk gibberish in perfectly good words.
#
# ## 13. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="generate-hidden_any_batch" points=0.5
hidden("generate-hidden_any_batch")

# %% grade_id="generate-hidden_rows_end_apart" points=0.25
hidden("generate-hidden_rows_end_apart")

# %% grade_id="generate-hidden_window" points=0.5
hidden("generate-hidden_window")

# %% grade_id="generate-hidden_stop" points=0.25
hidden("generate-hidden_stop")

# %% grade_id="generate-hidden_left_padding" points=0.5
hidden("generate-hidden_left_padding")

# %% grade_id="generate-hidden_penalty" points=0.25
hidden("generate-hidden_penalty")

# %% grade_id="generate-hidden_frequencies" points=0.25
hidden("generate-hidden_frequencies")

# %% grade_id="generate-hidden_same_seed" points=0.25
hidden("generate-hidden_same_seed")

# %% grade_id="generate-hidden_half_precision" points=0.25
hidden("generate-hidden_half_precision")

# %% grade_id="generate-hidden_big_vocabulary" points=0.25
hidden("generate-hidden_big_vocabulary")

# %% grade_id="generate-hidden_not_contiguous" points=0.25
hidden("generate-hidden_not_contiguous")

# %% grade_id="generate-hidden_transformer" points=0.25
hidden("generate-hidden_transformer")

# %% grade_id="generate-hidden_exceptions" points=0.25
hidden("generate-hidden_exceptions")

# %% grade_id="generate-hidden_manners" points=0.25
hidden("generate-hidden_manners")

# %% grade_id="generate-hidden_stream" points=0.25
hidden("generate-hidden_stream")

# %% grade_id="generate-hidden_stream_options" points=0.25
hidden("generate-hidden_stream_options")

# %% grade_id="generate-hidden_stream_by_chance" points=0.25
hidden("generate-hidden_stream_by_chance")

# %% [markdown]
# ## 14. In your own words
#
# You build a story machine for a children's library: a tablet that continues what a child begins, aloud, word by word, with this model. Which settings (sampling, temperature, top-k or top-p, penalty, `max_new_tokens`, overflow, seed) do you choose, and why? Name two failures that you expect nevertheless, and say what your
# program would do about each. Six sentences or so.

# %% [markdown] grade_id="generate-written" points=2 written=true
# I would sample, since a child who begins alike twice wants two stories, at a temperature of about 0.8 with top-p 0.9 or 0.95, which adapts its list to what is open at each step; top-k 50 as well does no harm. I leave the penalty at 1.0, or just above it, because names and full stops have to come back. The text is streamed, ends at
# the end token and at 200 new tokens at the latest, and with `on_overflow="stop"` the tablet could say that the page is full instead of quietly forgetting how the story began. Each story gets a generator with a seed that is written down, so that one that a parent complains about can be told again. I expect that it contradicts itself, or
# loses who is who: short stories help, and a button for another one. And I expect circles now and then: the program can count repeated runs of four words, stop there, and go on from before the circle with another seed. It also needs a look at what is said, for the model does not know what is good for children.

# %% [markdown]
# ## What we have
#
# - `generate`: forward, last logits, penalty, temperature, top-k, top-p, draw, append. Rows end apart, begin apart, and say why they ended.
# - The cache saves work and changes nothing, which is tested on ids. Past the window it is filled anew.
# - No `yield` inside `inference_mode`; modes are put back; half a character waits for its other half.
#
# And of the whole course, three knobs and what they turn:
#
# | knob | turns | low | high |
# |---|---|---|---|
# | temperature | how *sharp* the distribution is | careful, then greedy | daring, then gibberish |
# | top-k | *how many* tokens may come | 1 is greedy | off |
# | top-p | *how much probability* may come | the best token only | off |
#
# Four questions to take away. Answer first, then unfold.
#
# <details><summary>How does a model that gives numbers come to give text?</summary>
#
# Logits are scores for each token of the vocabulary. A softmax makes probabilities of the last row, one token is chosen and appended, and all begins again; a tokenizer turns ids into text.
#
# </details>
#
# <details><summary>Why not always the best token?</summary>
#
# It is the same every time, it has no surprise in it, and it runs in circles, since what was said makes itself likelier.
#
# </details>
#
# <details><summary>Why are there three knobs?</summary>
#
# Temperature changes how the probability is shared but bans nobody, so the long tail keeps its chance. Top-k cuts the tail at a fixed length, top-p where enough is reached. Temperature with one of the two is mostly enough.
#
# </details>
#
# <details><summary>What happens in a step, with a cache and without?</summary>
#
# Without: the whole window goes through the model, and all rows but the last are thrown away. With: only the newest token goes through, the keys and values of the others are kept; same tokens, and a memory that grows with the text.
#
# </details>
#
# ## What comes next
#
# Is that how the big ones work? Look at the shape of GPT-2 (Radford and others, 2019), the smallest of its kind:
#
# | | MiniGPT | GPT-2, small |
# |---|---|---|
# | layers, heads, width | 4, 4, 256 | 12, 12, 768 |
# | window | 256 | 1,024 |
# | vocabulary | 4,096, byte-level BPE | 50,257, byte-level BPE |
# | positions | learned | learned |
# | biases in its linear layers | no | yes |
# | head | tied to the embedding | tied to the embedding |
# | parameters | 4.3 million | 124 million |
# | KV cache, full window, float32 | 2 MiB | 72 MiB |
# | has read | children's stories ([arXiv 2305.07759](https://arxiv.org/abs/2305.07759)) | 40 GB of web pages |
#
# Other numbers, the same machine. A wrapper of a few lines that has `block_size`, `n_layers` and so on, and calls `cache.attend`, and *your* `generate` drives it.
#
# Where to go from here:
#
# - **Train a model of your own.** MiniGPT is 170 lines, `course_lib/given/minigpt.py`, and lesson 1 has a training loop. A book in the public domain and a quiet evening are enough for something that sounds like it.
# - **Read a real one.** nanoGPT's `generate`, gpt-fast, transformers' `generation/utils.py`. You know what each line is for, and which edge cases to try.
# - **Make it faster.** A small model drafts, the large one checks several tokens in a single pass: *speculative decoding* (Leviathan et al. 2023, [arXiv 2211.17192](https://arxiv.org/abs/2211.17192)). It takes your prefill with several queries, and the draw of lesson 5.
#
# ## Stretch
#
# ### How likely is a text?
#
# `next_token_loss` of lesson 1 is a mean of −log p. So the logarithm of a text's probability, given its first token, is minus the loss times the number of targets. **Predict** which of the two is likelier.

# %%
for text in ("The cat was sad. It was sad.", "The cat was sad. It was Tuesday."):
    ids = ids_of(text)
    with torch.inference_mode():
        loss = next_token_loss(model(ids), ids).item()
    print(f"log p = {-loss * (ids.shape[1] - 1):.1f}, loss {loss:.2f}: {text}")

# %% [markdown]
# That is how benchmarks with several answers to choose from are scored. **Task.** The longer text has more factors below 1. Is it fair to compare them? Write `best_of(texts)` with log p and with the mean, and find two texts that change places.
#
# ### Several answers to one prompt
#
# A batch of equal rows, and the draws do the rest:

# %% tags=["nbval-ignore-output"]
luck = torch.Generator().manual_seed(0)
rows = generate(model, ids_of("The robot opened the door and").expand(3, -1), 20, generator=luck)
for row in rows.ids:
    print(tokenizer.decode(row))

# %% [markdown]
# **Task.** The prompt is read three times though it is the same. Prefill a single row, then copy the cache's rows: what does it save? (And don't copy the first *token*.) Then let the model choose: of ten answers keep the one with the best mean log-probability. Do you like it best?
#
# ### Stop strings
#
# "End when the text says `.`": your stream can be closed early, so a stop string is a few lines. **Predict.** Why look into `text` and not into `piece`? Why not into the prompt?


# %%
def until_said(stop: str, prompt: str, **options) -> str:
    pieces = stream(model, tokenizer, prompt, **options)
    text = next(pieces).removeprefix(prompt)  # what the model said, without the prompt
    for piece in pieces:
        text += piece
        if stop in text:
            pieces.close()
            break
    return prompt + text.partition(stop)[0]


print(until_said(".", "Mr. Fox had a plan. He", do_sample=False))

# %% [markdown]
# A stop string may be spread over two pieces, and it may be followed by something else in the same one. (And a full stop is not always the end of a sentence.) **Task.** Make it *stream*: tell what is safe, hold back what could be the beginning of a stop string, and let go of it when it turns out not to be. Allow several. (With two stop strings, litgpt lost what it held back for the one when the
# other was complete: Lightning-AI/litgpt#2302.)
#
# ---
#
# That was the last lesson. You have read the probabilities, bent them, cut them, drawn from them, and remembered what was worth remembering. Tell somebody a story with it.
