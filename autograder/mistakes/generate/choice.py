"""Wrong ways to choose the next token: the knobs, their order, and chance."""

from ...bank import Bank

bank = Bank("generate")

IMPORT = "from .sampling import next_token\n"
FILTERS = "from .top_k import top_k_filter\nfrom .top_p import top_p_filter\n"
PENALTY = """\
            if repetition_penalty != 1.0:
                logits = apply_repetition_penalty(logits, ids, repetition_penalty, mask)
"""
KNOBS = """\
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                do_sample=do_sample,
                generator=generator,
            )
"""
CHOOSE = "            token = next_token(\n                logits,\n" + KNOBS
COPY = "        token = token.clone()\n"


def without(knob: str) -> str:
    """The call of next_token that does not hand this knob on."""
    return CHOOSE.replace(f"                {knob}={knob},\n", "")


IGNORED = {
    "temperature": "The temperature never reaches the logits: hand it on to next_token.",
    "top_k": "top_k changes nothing: hand it on to next_token.",
    "top_p": "top_p changes nothing: hand it on to next_token.",
    "do_sample": "do_sample = False is not heard, and the tokens are still drawn by chance: hand "
    "it on to next_token.",
    "generator": "The generator is not used: the same seed gives another text each time. Hand it "
    "on to whatever draws.",
}
for knob, hint in IGNORED.items():
    bank.mistake_by_edit(f"{knob}_is_ignored", "generate", (CHOOSE, without(knob)), hint=hint)

bank.mistake_by_edit(
    "always_greedy",
    "generate",
    (CHOOSE, CHOOSE.replace("do_sample=do_sample", "do_sample=False")),
    hint="The best token is taken each time, whatever was asked for: no chance is left. By "
    "default a token is DRAWN.",
)
bank.mistake_by_edit(
    "do_sample_reversed",
    "generate",
    (CHOOSE, CHOOSE.replace("do_sample=do_sample", "do_sample=not do_sample")),
    hint="do_sample = True is greedy and False draws: it is the wrong way round.",
)
bank.mistake_by_edit(
    "temperature_zero_is_refused",
    "generate",
    (
        "    _check_arguments(model,",
        "    if temperature <= 0:\n"
        '        raise ValueError(f"temperature={temperature}")\n'
        "    _check_arguments(model,",
    ),
    hint="temperature = 0 was refused. Nothing may be divided by it, but in this course it is a "
    "way to say greedy; only negative ones are wrong.",
)
bank.mistake_by_edit(
    "temperature_zero_is_off",
    "generate",
    (CHOOSE, CHOOSE.replace("temperature=temperature", "temperature=temperature or 1.0")),
    hint="temperature = 0 drew as if it were 1: 0 is false to Python, so it counted as not "
    "given. It means greedy.",
)
bank.mistake_by_edit(
    "temperature_twice",
    "generate",
    (CHOOSE, "            logits = logits / (temperature or 1.0)\n" + CHOOSE),
    hint="The temperature is applied twice, in the loop and in next_token. Two places that do "
    "the same job are one too many.",
)
bank.mistake_by_edit(
    "temperature_upside_down",
    "generate",
    (
        CHOOSE,
        CHOOSE.replace(
            "temperature=temperature", "temperature=temperature and 1.0 / abs(temperature)"
        ),
    ),
    hint="A high temperature makes the text safer and a low one wilder: the logits are "
    "multiplied by it. They are DIVIDED by the temperature.",
)
bank.mistake_by_edit(
    "temperature_after_the_filters",
    "generate",
    (IMPORT, IMPORT + FILTERS),
    (
        CHOOSE,
        "            logits = top_p_filter(top_k_filter(logits, top_k), top_p)\n"
        "            token = next_token(\n"
        "                logits,\n"
        "                temperature=temperature,\n"
        "                do_sample=do_sample,\n"
        "                generator=generator,\n"
        "            )\n",
    ),
    hint="top-p was measured before the temperature. It counts probabilities, and those are what "
    "the temperature changes: apply it first.",
)
bank.mistake_by_edit(
    "top_p_before_top_k",
    "generate",
    (IMPORT, "from .temperature import apply_temperature\n" + IMPORT + FILTERS),
    (
        CHOOSE,
        "            if temperature > 0:\n"
        "                logits = top_p_filter(apply_temperature(logits, temperature), top_p)\n"
        "            token = next_token(\n"
        "                logits,\n"
        "                temperature=1.0 if temperature else 0.0,\n"
        "                top_k=top_k,\n"
        "                do_sample=do_sample,\n"
        "                generator=generator,\n"
        "            )\n",
    ),
    hint="top-p came before top-k, and so it measured mass that top-k was about to take away. In "
    "a step top-k comes first, and top-p counts what is left.",
)
bank.mistake_by_edit(
    "filters_before_the_penalty",
    "generate",
    (IMPORT, IMPORT + FILTERS),
    (PENALTY, "            logits = top_p_filter(top_k_filter(logits, top_k), top_p)\n" + PENALTY),
    hint="top-k and top-p ran before the repetition penalty, so what they kept was chosen from "
    "the wrong order. The penalty changes who is best: it comes first.",
)

# --- the penalty ---

bank.mistake_by_edit(
    "penalty_is_ignored",
    "generate",
    (PENALTY, ""),
    hint="repetition_penalty changes nothing: apply it to the logits, before the token is chosen.",
)
bank.mistake_by_edit(
    "penalty_twice",
    "generate",
    (PENALTY, PENALTY + PENALTY),
    hint="The penalty is applied twice in a step. Once an id is enough, however often it was said.",
)
bank.mistake_by_edit(
    "penalty_only_above_one",
    "generate",
    (PENALTY, PENALTY.replace("!= 1.0", "> 1.0")),
    hint="A penalty below 1 is skipped. It is a value like the others (it ENCOURAGES "
    "repetition), and 0 or less must be told as an error: only 1.0 is off.",
)
bank.mistake_by_edit(
    "penalty_forgets_the_prompt",
    "generate",
    (PENALTY, PENALTY.replace("ids, rep", "ids[:, prompt_len:], rep").replace(", mask", "")),
    hint="Only the continuation is penalised. What the prompt says is said as well: hand the "
    "whole row to the penalty.",
)
bank.mistake_by_edit(
    "penalty_forgets_the_continuation",
    "generate",
    (
        PENALTY,
        PENALTY.replace("ids, rep", "ids[:, :prompt_len], rep").replace(
            ", mask", ", attention_mask"
        ),
    ),
    hint="Only the prompt is penalised, so the model may repeat itself. The history grows with "
    "each token: hand the whole row to the penalty.",
)
bank.mistake_by_edit(
    "penalty_on_the_last_token",
    "generate",
    (PENALTY, PENALTY.replace("ids, rep", "ids[:, -1:], rep").replace(", mask", "")),
    hint="Only the last token is penalised: it is what was fed to the model with the cache. The "
    "penalty wants all that was said so far, fed or not.",
)
bank.mistake_by_edit(
    "penalty_on_the_window",
    "generate",
    (
        PENALTY,
        PENALTY.replace("ids, rep", "ids[:, -model.block_size :], rep").replace(
            ", mask)", ", None if mask is None else mask[:, -model.block_size :])"
        ),
    ),
    hint="The penalty forgets what has left the window. The window is what the MODEL can read; "
    "said is said, so give the penalty the whole row.",
)
bank.mistake_by_edit(
    "penalty_counts_padding",
    "generate",
    (PENALTY, PENALTY.replace(", mask)", ")")),
    hint="The padding id is penalised though nobody said it: the penalty was not told which "
    "positions are padding.",
)

# --- chance ---

bank.mistake_by_edit(
    "reseeds_each_step",
    "generate",
    (
        CHOOSE,
        "            if generator is not None:\n"
        "                generator.manual_seed(generator.initial_seed())\n" + CHOOSE,
    ),
    hint="The generator is seeded anew before each draw, so every draw is the same. Seed it "
    "once, outside, and let it go on from token to token.",
)
bank.mistake_by_edit(
    "seeds_itself",
    "generate",
    (
        CHOOSE,
        CHOOSE.replace(
            "generator=generator",
            "generator=generator or torch.Generator().manual_seed(len(ids[0]))",
        ),
    ),
    hint="Without a generator each call gives the same text: a fixed seed is hidden in the "
    "function. Chance is then torch's own; leave the seed to the caller.",
)
bank.mistake_by_edit(
    "row_zero_speaks_for_all",
    "generate",
    (COPY, "        token = token[:1].expand(batch, 1)\n" + COPY),
    hint="Row 0's token was given to every row. Each row has logits of its own, and a draw of "
    "its own.",
)
bank.mistake_by_edit(
    "first_token_is_shared",
    "generate",
    (
        COPY,
        "        if ids.shape[1] == prompt_len:\n"
        "            token = token[:1].expand(batch, 1)\n" + COPY,
    ),
    hint="The rows share their FIRST new token and go apart only afterwards. The token after the "
    "prefill is drawn a row at a time like the others.",
)
bank.mistake_by_edit(
    "a_draw_is_thrown_away",
    "generate",
    (
        CHOOSE,
        "            if use_cache and ids.shape[1] == prompt_len:\n"
        "                next_token(logits, generator=generator)\n" + CHOOSE,
    ),
    hint="With the cache the same seed gives another text: a number is drawn and not used, such "
    "as for a token that is chosen after the prefill and then chosen again. One draw a row "
    "and step.",
)
