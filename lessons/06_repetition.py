# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 6: repetition penalty, a patch against going round in circles
#
# Left to itself, a model that always takes its best token sooner or later goes "the the the the", or 很好很好很好, "very good very good very good". There is an old remedy that needs no training: remember what was said, and lower its
# scores. It is three lines of code, two of which have been written wrongly in famous places.
#
# **When you are through, you can**
#
# - measure how much a text repeats itself, and say why a model does;
# - write `apply_repetition_penalty` so that it is right for both signs, for a batch, and with padding;
# - say what the penalty does not know: where zero is, what a full stop is, how often a word was said;
# - choose between this patch and its relatives.
#
# **Time:** about 60 minutes. **You need:** lessons 1 and 2 (logits, softmax, surprise). It helps to have lessons 3 and 5.

# %%
from course_lib.given.notebook import start

start("repetition")

# %%
import torch

from course_lib.given import plots
from course_lib.given.minigpt import MiniGPT
from course_lib.given.tokenizer import Tokenizer
from course_lib.given.widgets import explore
from course_lib.repetition import apply_frequency_penalty, apply_repetition_penalty
from course_lib.sampling import next_token
from course_lib.temperature import apply_temperature
from course_lib.top_k import top_k_filter

model = MiniGPT.from_pretrained()
tokenizer = Tokenizer.from_pretrained()

# %% [markdown]
# ## 1. Round in circles
#
# A greedy loop with a place for somebody who meddles with the scores: it is handed the scores and all ids so far, and hands scores back. For now nobody meddles.

# %%
ball = "The ball rolled down. The ball rolled"


@torch.inference_mode()
def tell(meddle=lambda scores, ids: scores, prompt=ball, new_tokens=60) -> torch.Tensor:
    """The ids (1, T) of a greedy story, prompt included."""
    ids = torch.tensor([tokenizer.encode(prompt)])
    for _ in range(new_tokens):
        scores = meddle(model(ids)[:, -1], ids)
        ids = torch.cat([ids, scores.argmax(dim=-1, keepdim=True)], dim=1)
        if ids[0, -1] == tokenizer.eos_id:
            break
    return ids


# %%
for prompt in ("The parrot said", ball):
    print(tokenizer.decode(tell(prompt=prompt)[0]), end="\n\n")

# %% [markdown]
# The second time we tempted it a little, by beginning a sentence twice. But nothing is broken here: at each step this *was* the token that the model found most likely. Large models do it too; only it takes them longer.
#
# ### A number for it
#
# Take all runs of n words. The share of those that stood there before is the *repeat rate*: 0 for a text that never says anything twice.


# %%
def repeats(words: list, n: int) -> float:
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(runs)) / len(runs)


# %% [markdown]
# **Predict.** By hand: the repeat rate of single words in "no no no yes", and of pairs.

# %%
print([f"{repeats(['no', 'no', 'no', 'yes'], n):.3f}" for n in (1, 2)])

# %% [markdown]
# Four words, two of them different: 1/2. Three pairs, (no, no), (no, no), (no, yes): 1/3.
#
# **Exercise.** Two tellings of one story. Estimate before you run: which share of the *pairs* of words was there before, and of the runs of *four*? Which n tells the two texts apart best?

# %%
circling = (
    "The robot wanted to sing. It wanted to sing all day, but it did not know a song. The cricket "
    "said it should try. It wanted to try, but it did not know a song. So it went home, but it did "
    "not know a song."
)
straight = (
    "The robot wanted to sing, but it had never heard a song. It knocked at the door of a cricket. "
    "The cricket played all night, and in the morning the robot hummed along, and in the evening "
    "it was proud of a song."
)
for name, text in [("circling", circling), ("straight", straight)]:
    rates = "   ".join(f"n = {n}: {repeats(text.split(), n):.3f}" for n in (1, 2, 4))
    print(f"{name}   {rates}")

# %% [markdown]
# Single words come back in any text, since there are few small words, and a story has one hero. Even some pairs do. But the same four words hardly ever come twice by chance: from n = 4 on a repeat means a circle. (By the way: for `split`, are
# `song.` and `song` the same word?)
#
# And MiniGPT's own story, in tokens:

# %%
story = tell()[0].tolist()
print(f"runs of four: {repeats(story, 4):.2f} were there before")

# %% [markdown]
# ### Why does it do that?
#
# One reads that a token which is the likeliest once will be taken again and again. But the context is another one at each step, so why should it stay the likeliest? Let us look. We write a sentence down six times in a row, and measure the
# mean surprise of each copy.
#
# **Predict.** How will the surprise go on, from copy to copy? For a sentence that makes sense, and for one that doesn't?


# %%
def surprise_by_copy(sentence: str, copies: int = 6) -> list[float]:
    tokens = tokenizer.encode(sentence)
    ids = torch.tensor([[tokenizer.eos_id, *tokens * copies]])
    with torch.inference_mode():
        log_probs = model(ids)[0, :-1].log_softmax(dim=-1)
    surprise = -log_probs.gather(-1, ids[0, 1:, None])
    return surprise.view(copies, len(tokens)).mean(dim=-1).tolist()


sentences = ("The ball rolled down.", "Tom ate a purple lamp.")
curves = {sentence: surprise_by_copy(" " + sentence) for sentence in sentences}
plots.lines(range(1, 7), curves, "Heard before", "copy", "nats a token")

# %% [markdown]
# From the second copy on both surprise the model far less, nonsense too. The model has learned that texts take up again what they said, and that is true of the stories that it read. But now it reads *its own* words: one
# sentence said twice makes the third time likelier, and nothing ever breaks the circle. Holtzman et al. found the same in GPT-2, with each copy likelier than the one before (2020, [arXiv 1904.09751](https://arxiv.org/abs/1904.09751)).
#
# (Drawing instead of taking the best helps: sooner or later another token is drawn. It also gets stuck, more rarely.)
#
# ## 2. A patch
#
# Keskar et al. had the idea for their model CTRL in 2019 ([arXiv 1909.05858](https://arxiv.org/abs/1909.05858), section 4.1): divide the score of every token that was said before by a number r a little above 1. They recommend 1.2.
#
# **Predict.** Logits 0, 4, 3.9; token 1 was said before; r = 2. Which token is the best now?
#
# <details><summary>Answer</summary>
#
# Token 2: the logits are 0, 2, 3.9 now. Token 1 still has a chance, it is not forbidden.
#
# </details>
#
# **Predict.** Now logits −4 and −3, and token 1 was said before. Compute −3 / 2. What has become of its probability?

# %%
for name, row in {
    "as it was": [-4.0, -3.0],
    "divided by 2": [-4.0, -1.5],
    "multiplied by 2": [-4.0, -6.0],
}.items():
    print(f"{name:>15}: P(token 1) = {torch.tensor(row).softmax(dim=-1)[1]:.3f}")

# %% [markdown]
# −1.5 is *more* than −3. Dividing moves a number towards zero, and seen from below, zero is up: the token that we wanted to punish was rewarded. Below zero we have to multiply:
#
# > **Repetition penalty.** For every token that stands in the text so far: a positive logit is divided by r, any other is multiplied by r. Once, however often the token stands there. r = 1 is off.
#
# > **In the wild.** The paper's formula only divides, and so did transformers at first: "The dog" went on "dog dog dog dog dog", the more so the higher the penalty (huggingface/transformers#2302). The same in NVIDIA-NeMo/Speech#8194, and in MiniMind
# > until May 2026 (its commit dddedc6).
#
# Mind where it sits. The network knows nothing of it: no weight changes, nothing is trained. It is a *logits processor*, a function between the network and the choice, like temperature and the filters. Unlike
# temperature it moves the best token too, so it works for greedy decoding.
#
# ## 3. Your turn
#
# Open **`course_lib/repetition.py`** and write `apply_repetition_penalty`. Leave `apply_frequency_penalty` for later; it is a stretch. Some questions to have in mind:
#
# - Row i of the logits has the history in row i of `ids`. What is the simplest thing of shape `(B, V)` that says what was seen?
# - "Once, however often": what does your code do with the ids 0, 0, 0?
# - A mask of 0 says "this position is padding". Which id stands there, and may it also occur as a real token?
# - What is −inf times 2? And what becomes of an id of −1, for Python and for you?
#
# A first look at your own function:

# %%
apply_repetition_penalty(torch.tensor([[4.0, -4.0, 1.0]]), torch.tensor([[0, 1, 0]]), 2.0)

# %% [markdown]
# ### Checks

# %% grade_id="repetition-sign_rule" points=1.5
from course_lib.checks import check, hidden

check("repetition-sign_rule")

# %% grade_id="repetition-less_likely" points=0.5
check("repetition-less_likely")

# %% grade_id="repetition-once_per_token" points=1
check("repetition-once_per_token")

# %% grade_id="repetition-whole_history" points=0.5
check("repetition-whole_history")

# %% grade_id="repetition-rows_apart" points=1
check("repetition-rows_apart")

# %% grade_id="repetition-padding" points=1
check("repetition-padding")

# %% grade_id="repetition-one_is_off" points=0.5
check("repetition-one_is_off")

# %% grade_id="repetition-banned_stay_banned" points=0.5
check("repetition-banned_stay_banned")

# %% grade_id="repetition-half_precision" points=0.5
check("repetition-half_precision")

# %% grade_id="repetition-input_untouched" points=0.5
check("repetition-input_untouched")

# %% grade_id="repetition-bad_penalty" points=0.5
check("repetition-bad_penalty")

# %% grade_id="repetition-bad_ids" points=0.25
check("repetition-bad_ids")

# %% grade_id="repetition-bad_shapes" points=0.25
check("repetition-bad_shapes")

# %% grade_id="repetition-against_a_loop" points=0.5
check("repetition-against_a_loop")

# %% [markdown]
# <details><summary>What if a logit is exactly 0?</summary>
#
# Then it stays 0, divided or multiplied. The rule has a blind spot there: a token whose score happens to be 0 can't be punished at all. Keep that in mind for section 5.
#
# </details>
#
# ### By your own function
#
# Five logits that we know well. Tokens 0 and 3 were said before, and r = 1.2.
#
# **Predict.** Which of the five *probabilities* fall? All of those that were penalised, and no others?

# %%
Y = torch.tensor([[2.0, 1.0, 0.1, -1.0, -2.0]])
penalised = apply_repetition_penalty(Y, torch.tensor([[0, 3, 0]]), 1.2)
print("logits", [f"{x:.4f}" for x in penalised[0].tolist()])
for name, row in [("before", Y), ("after ", penalised)]:
    print(name, [f"{p:.4f}" for p in row.softmax(dim=-1)[0].tolist()])

# %% [markdown]
# Look at token 3: its logit went down, from −1 to −1.2, and its probability *up*, from 0.0314 to 0.0315. A softmax is a competition: token 0, with most of the probability, lost more than token 3 did, and all the others shared what it
# lost. A penalty of 1.2 does not mean "20 % less likely", and for a single token it need not even mean "less".
#
# ## 4. On MiniGPT
#
# The same loop, and now you meddle.


# %%
def by(penalty: float):
    return lambda scores, ids: apply_repetition_penalty(scores, ids, penalty)


for penalty in (1.0, 1.2):
    ids = tell(by(penalty))[0]
    print(f"penalty {penalty}, repeats of four {repeats(ids.tolist(), 4):.2f}:")
    print(f"{tokenizer.decode(ids)}\n")

# %% [markdown]
# The circle is gone. At 1.0 we got the story that we had at the start: off is off.
#
# Now step by step. We walk along the *unpenalised* story with the first slider; the second one sets the penalty. Tokens with a star have been said already. Go to a place in the circle: how large must the penalty be for another token to win?

# %%
with torch.inference_mode():
    circle = tell()
    circle_logits = model(circle)[0]  # all positions in one pass, as in lesson 1
last = circle.shape[1] - 1


def picture(step: int, penalty: float):
    seen, before = circle[:, : step + 1], circle_logits[step : step + 1]
    after = apply_repetition_penalty(before, seen, penalty)
    p, q = before.softmax(dim=-1)[0], after.softmax(dim=-1)[0]
    top = torch.maximum(p, q).topk(8).indices
    names = [tokenizer.piece(i) + "*" * bool((seen == i).any()) for i in top]
    title = f"step {step}, after “...{tokenizer.decode(seen[0])[-40:]}”"
    return plots.bars(names, {"without": p[top], f"penalty {penalty:.2f}": q[top]}, title)


explore(picture, step=(4, last, last - 12), penalty=(0.5, 3.0, 1.2))

# %% [markdown]
# ### What does it cost?
#
# A penalised story is not the one that the model wanted to tell. How far it strays can be measured: by the *surprise* of the model itself, without penalty, at the tokens that it was made to say. Three stories at once, for five penalties.
#
# **Predict.** Which curve falls, which one rises? Is there a penalty where the first has fallen and the second has not yet risen?


# %%
@torch.inference_mode()
def three_stories(penalty: float, new_tokens: int = 40) -> tuple[float, float]:
    """Repeats of four, and the model's own surprise in nats, over three greedy stories."""
    prompts = [ball, "The train went up. The train went", "The frog jumped up. The frog jumped"]
    ids = torch.tensor([tokenizer.encode(prompt) for prompt in prompts])  # 8 tokens each
    surprise = []
    for _ in range(new_tokens):
        scores = model(ids)[:, -1]
        token = apply_repetition_penalty(scores, ids, penalty).argmax(dim=-1, keepdim=True)
        surprise.append(-scores.log_softmax(dim=-1).gather(1, token).mean().item())
        ids = torch.cat([ids, token], dim=1)
    return sum(repeats(row, 4) for row in ids.tolist()) / 3, sum(surprise) / new_tokens


# %%
penalties = [1.0, 1.1, 1.3, 1.6, 2.0]
rates, nats = zip(*map(three_stories, penalties), strict=True)
series = {"repeats of four (share)": rates, "surprise (nats a token)": nats}
plots.lines(penalties, series, "What a penalty buys, and its price", "penalty", "share, or nats")

# %% [markdown]
# The circles go at a small penalty. After that, more of it buys nothing and costs ever more: the model is pushed to tokens that it does not believe in. That is why 1.1 to 1.3 are the usual values.
#
# And with sampling? There the circles are rarer in the first place, so less is needed. The penalty comes first, then what you wrote in lessons 2 to 5.


# %%
@torch.inference_mode()
def sampled(penalty: float, stories: int = 4, new_tokens: int = 50) -> torch.Tensor:
    ids = torch.tensor([tokenizer.encode(ball)] * stories)
    generator = torch.Generator().manual_seed(0)
    for _ in range(new_tokens):
        scores = apply_repetition_penalty(model(ids)[:, -1], ids, penalty)
        token = next_token(scores, temperature=0.8, top_p=0.95, generator=generator)
        ids = torch.cat([ids, token], dim=1)
    return ids


# %% tags=["nbval-ignore-output"]
for penalty in (1.0, 1.1):
    ids = sampled(penalty)
    rate = sum(repeats(row, 4) for row in ids.tolist()) / len(ids)
    print(f"penalty {penalty}, repeats of four {rate:.2f} in {len(ids)} stories; the first:")
    print(f"{tokenizer.decode(ids[0])}\n")

# %% [markdown]
# ## 5. What it does not know
#
# ### Where zero is
#
# In lesson 1 we added 10,000 to all logits, and the softmax did not mind: only differences count. Training never tells a model where its zero should be. But our rule asks each logit whether it is above zero.
#
# **Predict.** Token 0 of our five logits was said before, r = 1.2. We compute its probability for the logits as they are, for all of them minus 3, and for all of them plus 3. Without penalty all three give 0.631. And with it?

# %%
for shift in (0.0, -3.0, 3.0):
    row = apply_repetition_penalty(Y + shift, torch.tensor([[0]]), 1.2)
    print(f"shift {shift:+.0f}: P(token 0) = {row.softmax(dim=-1)[0, 0]:.3f}")

# %% [markdown]
# 0.550, 0.583, 0.426: three answers, for what is the same distribution. The further the logits lie from zero, the harder the rule hits. So a penalty of 1.2 means one thing for this model and another for that one, whose logits happen to lie
# elsewhere; and within one row it changes its grip at zero.
#
# **Predict.** Somebody applies the rule to *log-probabilities*, which differ from logits by a shift. They are never above 0, so half of the rule is never used. Logits 2 and 1, token 0 was said, r = 2. Which probability comes out for token 0?

# %%
two, seen = torch.tensor([[2.0, 1.0]]), torch.tensor([[0]])
for name, row in [("logits", two), ("log-probabilities", two.log_softmax(dim=-1))]:
    row = apply_repetition_penalty(row, seen, 2.0)
    print(f"{name:>17}: P(token 0) = {row.softmax(dim=-1)[0, 0]:.3f}")

# %% [markdown]
# > **In the wild.** The shift was found by users who tuned penalties by ear (oobabooga/text-generation-webui#3627, which adds a penalty that is subtracted). Log-probabilities instead of logits: oobabooga/textgen#4433. In transformers it is both: greedy and sampled decoding
# > hand logits to the rule, beam search hands it log-probabilities; what to do about the dependence on zero is an open question there (huggingface/transformers#47595, where valid JSON is reported to fall from 97 % of the answers to 23 % at a penalty of 1.3).
#
# ### What words are for
#
# The rule does not know a hero from a full stop. Whatever was said is punished, and what was said first in any story are commas, full stops, "the" and "a".
#
# **Predict.** The sentence could well end here. What does a penalty do to the full stop?

# %%
middle = (
    "Mia had a big red ball. She played with it all day. Then the ball was gone. Mia was very sad"
)
ids = torch.tensor([tokenizer.encode(middle)])
with torch.inference_mode():
    scores = model(ids)[:, -1]
top = scores[0].topk(4).indices
series = {
    f"penalty {r}": apply_repetition_penalty(scores, ids, r).softmax(dim=-1)[0, top]
    for r in (1.0, 1.5)
}
plots.bars([tokenizer.piece(i) for i in top], series, "After: Mia was very sad")

# %% [markdown]
# The sentences get longer and longer: "and ..., because ..., but ...". Each connecting word is used once, then it is punished too, and the next one has its turn. In a long enough text *every* common word has been said, all are punished alike, and it is the rare
# words that profit.
#
# One token hurts more than all others. Our stories were joined for the training with `<|endoftext|>` between them, so many people begin a prompt with it. Then it has been *said*.
#
# **Predict.** The story is over. How likely does the end token stay, if it also stands at the beginning?

# %%
over = "Mia lost her red ball. She looked for it all day. It was under the bed. Mia was happy. The end."
for first in ([], [tokenizer.eos_id]):
    ids = torch.tensor([first + tokenizer.encode(over)])
    with torch.inference_mode():
        scores = model(ids)[:, -1]
    row = [apply_repetition_penalty(scores, ids, r).softmax(dim=-1) for r in (1.0, 1.5, 2.0)]
    chances = ", ".join(f"{p[0, tokenizer.eos_id]:.2f}" for p in row)
    print(f"end token also in front: {bool(first)!s:>5}. P(end) at 1.0, 1.5, 2.0: {chances}")

# %% [markdown]
# That is a story that can't end, because somebody began it properly.
#
# ### Who said it
#
# The prompt counts: the rule punishes what stands in the *text*, no matter who wrote it. For a story that is right, or it would repeat your opening. For a question like "What is the capital of France?" it means that "France" is punished in the answer.
#
# Padding does not count, since nobody said it. And it has to be told apart by the mask, not by its id: many models pad with the end token.
#
# **Predict.** The same story, without the end token in front, but in a batch with a longer one: it was filled up on the left with three end tokens. What comes out with the mask, and what without?

# %%
ids = torch.tensor([[tokenizer.eos_id] * 3 + tokenizer.encode(over)])
mask = torch.ones_like(ids)
mask[:, :3] = 0
with torch.inference_mode():
    scores = model(ids, attention_mask=mask)[:, -1]
for name, given in [("with the mask", mask), ("without", None)]:
    p = apply_repetition_penalty(scores, ids, 2.0, given).softmax(dim=-1)
    print(f"{name:>13}: P(end) = {p[0, tokenizer.eos_id]:.2f}")

# %% [markdown]
# > **In the wild.** transformers counts the prompt, each token once, and so do we. vLLM left the prompt out at first, and gave other texts than transformers for the same arguments (vllm-project/vllm#1577). MiniMind takes `torch.unique(input_ids[i])`, so there padding
# > counts. llama.cpp looks at the last 64 tokens only.
#
# ### When it comes
#
# **Predict.** Penalty, then temperature; or temperature, then penalty: does it matter?

# %%
row, seen = Y.double(), torch.tensor([[0, 3]])
first = apply_temperature(apply_repetition_penalty(row, seen, 1.2), 0.7)
last = apply_repetition_penalty(apply_temperature(row, 0.7), seen, 1.2)
print("the same, but for rounding:", torch.allclose(first, last, rtol=1e-12))

# %% [markdown]
# It doesn't: the temperature is above 0, so signs stay, and factors can be swapped.
#
# **Predict.** And penalty and top-k? Logits 3, 2.9, 1; token 0 was said; r = 2; k = 1.

# %%
row, seen = torch.tensor([[3.0, 2.9, 1.0]]), torch.tensor([[0]])
first = top_k_filter(apply_repetition_penalty(row, seen, 2.0), 1)
last = apply_repetition_penalty(top_k_filter(row, 1), seen, 2.0)
print("penalty, then top-k: token", first.argmax().item())
print("top-k, then penalty: token", last.argmax().item())

# %% [markdown]
# Once a filter has thrown out the alternatives, punishing what is left changes nothing: with k = 1 the second line says token 0 for ever. So the order of a step, in lesson 8: *forward, last logits, **penalty**, temperature, top-k, top-p, draw.*
#
# ## 6. A gallery of failures
#
# Another story, with a penalty of 1, so with none. No harm is done.

# %%
dog = "The dog ran and ran"
print(tokenizer.decode(tell(prompt=dog)[0]))

# %% [markdown]
# **Predict** what will become of it in each of the following.
#
# **Below 1.** A penalty of 0.8 is allowed, and is a reward.

# %%
print(tokenizer.decode(tell(by(0.8), dog)[0]))

# %% [markdown]
# **The reversed penalty.** Plain division, as in the paper. MiniGPT's best logits are positive, so one hardly notices. But GPT-2's lie far below zero, and for the softmax it makes no difference where they lie. So we shift ours by −30, which is *the same model*, and divide.


# %%
def plain_division(scores: torch.Tensor, ids: torch.Tensor, penalty: float) -> torch.Tensor:
    scores = scores.clone()
    scores[:, ids[0]] /= penalty  # indexed like this, an id that occurs twice is still divided once
    return scores


# %%
print(tokenizer.decode(tell(lambda scores, ids: plain_division(scores - 30, ids, 1.3), dog)[0]))

# %% [markdown]
# There it is, the dog of the bug report. Whatever was said is rewarded, so nothing else is ever said. The cure that people tried was to turn the penalty *up*.
#
# **Too strong.** Your own, right function, with a penalty of 3, and a longer story.

# %%
print(tokenizer.decode(tell(by(3.0), "Once upon a time", 100)[0]))

# %% [markdown]
# Hardly a word may come back, so people turn into other people, places into other places, and full stops get rare. Each phrase by itself is fine, which is why nobody sees it in a short test.
#
# **Exercise.** Shift the scores by −30 and use your *right* function with 1.2. Is it still a mild penalty? Think of a logit of 10, and of what it loses with and without the shift; then try it.
#
# <details><summary>Answer</summary>
#
# No. A logit of 10 becomes 8.3 and loses 1.7. Shifted it is −20, becomes −24 and loses 4: with e to the −4 instead of e to the −1.7 in front of it, what is said once is nearly forbidden.
#
# </details>
#
# ## 7. Find the bugs
#
# ### It counts


# %%
def counts(scores: torch.Tensor, ids: torch.Tensor, penalty: float) -> torch.Tensor:
    scores = scores.clone()
    for token in ids[0].tolist():
        good = scores[0, token] > 0
        scores[0, token] = scores[0, token] / penalty if good else scores[0, token] * penalty
    return scores


# %% [markdown]
# **Predict.** Logits 8 and 1, ids 0, 0, 0, penalty 2. And what does the harmless penalty of 1.2 do to the full stop of a text that gets longer and longer?

# %%
print(counts(torch.tensor([[8.0, 1.0]]), torch.tensor([[0, 0, 0]]), 2.0).tolist())

# %%
stop = tokenizer.encode("The end.")[-1]
for sentences in (1, 4, 16):
    text = "Mia had a red ball." + " She played with it." * sentences + " Mia was very happy"
    ids = torch.tensor([tokenizer.encode(text)])
    with torch.inference_mode():
        scores = model(ids)[:, -1]
    row = [f(scores, ids, 1.2).softmax(dim=-1) for f in (apply_repetition_penalty, counts)]
    right, counted = (p[0, stop].item() for p in row)
    print(f"{sentences:>2} sentences: P(.) is {right:.3f}, with counting {counted:.3f}")

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# Token 0 was divided three times: 8 became 1, not 4. What occurs ten times is punished with 1.2 to the tenth, which is 6.2, and the full stop is the first that feels it. It gets worse as the text grows, so a short
# test looks right. A set of ids, or a table `(B, V)` of what was seen, counts each once. (Seen in ohdearquant/lattice#312.)
#
# </details>
#
# ### It remembers too much


# %%
def remembers(scores: torch.Tensor, ids: torch.Tensor, penalty: float) -> torch.Tensor:
    seen = ids.unique()
    old = scores[:, seen]
    scores = scores.clone()
    scores[:, seen] = torch.where(old > 0, old / penalty, old * penalty)
    return scores


# %% [markdown]
# **Predict.** Two stories in a batch. The first said token 0 so far, the second token 1. All logits are 4, the penalty is 2.

# %%
print(remembers(torch.full((2, 2), 4.0), torch.tensor([[0], [1]]), 2.0).tolist())

# %% [markdown]
# <details><summary>What happened, and how to mend it</summary>
#
# `unique` flattens the batch, so both stories are punished for the words of both. It is the kind of bug that makes an answer depend on who else is being served at that moment, and it can't be seen with one row. Each row needs its own history:
# entry `(i, token)` of a table is set by row i of the ids and by no other.
#
# </details>
#
# ## 8. Relatives
#
# It feels like a patch, and it is one: a rule that hits heroes, commas and end tokens, with a strength that depends on where zero lies. What else is there?
#
# | | what it does | its own trouble |
# |---|---|---|
# | a window: look at the last n tokens only | old words are forgiven (llama.cpp: 64) | circles longer than the window |
# | presence penalty | subtracts a constant from what was said | as blind to words |
# | frequency penalty | subtracts more, the more often it was said | punishes "the" most of all |
# | no-repeat n-gram (Paulus et al. 2017, [arXiv 1705.04304](https://arxiv.org/abs/1705.04304)) | bans the token that would complete a run of n that was there | "New York City" can be said once |
# | drawing, with top-p | circles are left by chance | not in places where the model is certain |
# | training against it (Welleck et al. 2020, [arXiv 1908.04319](https://arxiv.org/abs/1908.04319)) | mends the cause | needs training |
#
# Larger models, trained on more, need the patch less. Many leave it at 1, MiniMind's `eval_llm.py` among them.
#
# ### Stretch: presence and frequency
#
# The two that subtract are in the interface of many services. Write `apply_frequency_penalty` in **`course_lib/repetition.py`**: from every token that occurs, subtract `presence + frequency x count`. You have most of it already: where you had "seen or not" you now need "how often".

# %%
apply_frequency_penalty(
    torch.tensor([[4.0, 4.0, 4.0]]), torch.tensor([[0, 0, 1]]), presence=0.5, frequency=1.0
)

# %% grade_id="repetition-frequency_counts" points=0.25
check("repetition-frequency_counts")

# %% grade_id="repetition-frequency_rows_and_padding" points=0.25
check("repetition-frequency_rows_and_padding")

# %% grade_id="repetition-frequency_half_precision" points=0.2
check("repetition-frequency_half_precision")

# %% grade_id="repetition-frequency_input_untouched" points=0.15
check("repetition-frequency_input_untouched")

# %% grade_id="repetition-frequency_bad_arguments" points=0.15
check("repetition-frequency_bad_arguments")

# %% [markdown]
# **Predict.** A token has the logit 4 and was said 0 to 8 times. How do the three penalties go on with the count?

# %%
four = torch.full((1, 1), 4.0)
said = [torch.zeros(1, count, dtype=torch.long) for count in range(9)]
series = {
    "repetition 1.5": [apply_repetition_penalty(four, ids, 1.5).item() for ids in said],
    "presence 1": [apply_frequency_penalty(four, ids, presence=1.0).item() for ids in said],
    "frequency 0.5": [apply_frequency_penalty(four, ids, frequency=0.5).item() for ids in said],
}
plots.lines(range(9), series, "A logit of 4, penalised", "times said", "logit")

# %% [markdown]
# Two of them ask *whether*, the third *how often*. And the experiment with the shift:

# %%
for shift in (0.0, -3.0, 3.0):
    row = apply_frequency_penalty(Y + shift, torch.tensor([[0]]), presence=0.4)
    print(f"shift {shift:+.0f}: P(token 0) = {row.softmax(dim=-1)[0, 0]:.3f}")

# %% [markdown]
# Subtracting does not care where zero is.
#
# > **In the wild.** Ours counts the prompt, as for the repetition penalty. vLLM's presence and frequency penalties count what the *model* said, its repetition penalty the prompt as well (vllm-project/vllm-metal#69 tells what comes of mixing them up). Before you compare two services,
# > read which text they look at.
#
# ## 9. What the instructor's grader tries
#
# These checks run when the lesson is graded. They are about the same rules, on inputs that are not shown.

# %% grade_id="repetition-hidden_any_batch" points=1
hidden("repetition-hidden_any_batch")

# %% grade_id="repetition-hidden_edges_of_penalty" points=1
hidden("repetition-hidden_edges_of_penalty")

# %% grade_id="repetition-hidden_padding_anywhere" points=1
hidden("repetition-hidden_padding_anywhere")

# %% grade_id="repetition-hidden_banned_tokens" points=0.5
hidden("repetition-hidden_banned_tokens")

# %% grade_id="repetition-hidden_half_precision" points=0.5
hidden("repetition-hidden_half_precision")

# %% grade_id="repetition-hidden_big_vocabulary" points=0.25
hidden("repetition-hidden_big_vocabulary")

# %% grade_id="repetition-hidden_not_contiguous" points=0.25
hidden("repetition-hidden_not_contiguous")

# %% grade_id="repetition-hidden_wrong_arguments" points=0.25
hidden("repetition-hidden_wrong_arguments")

# %% grade_id="repetition-hidden_frequency" points=0.25
hidden("repetition-hidden_frequency")

# %% [markdown]
# ## 10. In your own words
#
# A team lets a model fill in long forms as JSON. Its answers were fine. Then somebody read that a repetition penalty of 1.3 "makes models better" and switched it on. Now brackets and quotes are missing, field names come out misspelt, and many answers never end. Explain in four or
# five sentences how one cause makes all of these, why the same 1.3 did no harm to the team next door with another model, and what you would do.

# %% [markdown] grade_id="repetition-written" points=2 written=true
# The penalty lowers the score of every token that already stands in the text, whatever it is good for. JSON consists of tokens that have to come back, quotes, brackets, commas, field names from the prompt; after a few fields all of them are
# punished, so something else wins, a misspelling for instance. If the end token stands in the prompt, at its beginning or as padding that was counted, it is punished as well and the answer runs on. How hard 1.3 hits depends on how far from zero a
# model's logits lie, which the softmax doesn't see and no training fixes, so another model may hardly feel it. I would switch it off for structured text (1.0); where circles are a real problem, I would use a small value, or a window,
# or a penalty that is subtracted, and leave the end token out of it.

# %% [markdown]
# ## What we have, and what comes next
#
# - A model repeats itself because text that was said makes itself likelier. From runs of four on, a repeat is a circle.
# - Repetition penalty: above zero divide, otherwise multiply; each token once; the prompt counts, padding doesn't; row by row.
# - It works on logits, between network and choice, for greedy decoding too, and has to come before the filters.
# - It does not know where zero is, nor what a full stop or an end token is for. A little of it helps, much of it harms.
#
# **Stretch.** Write a version with a window of n tokens in one line, by handing your function another `ids`. At which n does MiniGPT find its circle again? And a `no_repeat_ngram(logits, ids, n)` that bans (-inf) whatever would complete a run of n tokens that
# stands in the text: compare its story with the one at 1.2.
#
# **Next:** lesson 7, the KV cache: the same tokens, for a fraction of the work.
