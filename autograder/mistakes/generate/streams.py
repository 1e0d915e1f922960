"""Wrong ways to write stream."""

from ...bank import Bank

bank = Bank("generate")

START = '    waiting = list(getattr(encoded, "ids", encoded))  # ids whose text is not told yet\n'
WHOLE = '        if text and not text.endswith("\\N{REPLACEMENT CHARACTER}"):\n'
TELL = "            yield text\n            waiting = []\n"
FLUSH = "            if text := tokenizer.decode(waiting):\n                yield text\n"
RESULT = """\
                yield text
            result: Generation = end.value
            return result
"""
STEPS = """\
    steps = _steps(model, torch.tensor([waiting], dtype=torch.long), max_new_tokens, **options)
"""

bank.mistake_by_edit(
    "decodes_each_token_alone",
    "stream",
    (WHOLE, "        if text:\n"),
    hint="Each token was decoded by itself. A character may be spread over several tokens, and a "
    "part of one decodes to \\ufffd: keep the ids of an unfinished character until it is "
    "whole.",
)
bank.mistake_by_edit(
    "throws_half_characters_away",
    "stream",
    (
        TELL,
        TELL + "        elif text:\n            waiting = []\n",
    ),
    hint="A token that does not decode to a whole character was forgotten. Do not tell it yet, "
    "but keep its id: with the next ones it becomes a character.",
)
bank.mistake_by_edit(
    "end_is_not_told",
    "stream",
    (FLUSH, "            if False:\n                yield text\n"),
    hint="What still waits when the text ends is never told. At the end nothing more will come: "
    "tell what there is, as the decoder writes it.",
)
bank.mistake_by_edit(
    "end_is_told_twice",
    "stream",
    (
        RESULT,
        "                yield text\n"
        "            if waiting:\n"
        "                yield text\n"
        "            result: Generation = end.value\n            return result\n",
    ),
    hint="What still waited at the end was told twice.",
)
bank.mistake_by_edit(
    "leaves_out_the_prompt",
    "stream",
    (STEPS, STEPS + "    waiting = []\n"),
    hint="The prompt is missing: joined, the pieces are the whole text, prompt first.",
)
bank.mistake_by_edit(
    "tells_everything_each_time",
    "stream",
    (TELL, "            yield text\n"),
    hint="Each piece holds the text from its beginning, so joined it says everything many times. "
    "A piece is what is NEW since the last one.",
)
bank.mistake_by_edit(
    "waits_for_the_end",
    "stream",
    (
        WHOLE,
        "        if False:\n",
    ),
    hint="Nothing is told until the text is finished, and a reader waits before an empty page. "
    "Yield a piece as soon as its characters are whole.",
)
bank.mistake_by_edit(
    "makes_all_then_tells",
    "stream",
    (
        STEPS,
        "    pieces = _steps(\n"
        "        model, torch.tensor([waiting], dtype=torch.long), max_new_tokens, **options\n"
        "    )\n"
        "    made = []\n"
        "    while True:\n"
        "        try:\n"
        "            made.append(next(pieces))\n"
        "        except StopIteration as end:\n"
        "            steps = _replay(made, end.value)\n"
        "            break\n",
    ),
    (
        "### BEGIN SOLUTION\ndef _steps(\n",
        "def _replay(made: list[Tensor], result: Any) -> Generator[Tensor, None, Any]:\n"
        "    yield from made\n"
        "    return result\n\n\n"
        "### BEGIN SOLUTION\ndef _steps(\n",
    ),
    hint="The pieces are small, but they come when all of them are made: the text was finished "
    "before the first one was told. Make a token, tell it, make the next.",
)
bank.mistake_by_edit(
    "one_character_at_a_time",
    "stream",
    (
        TELL,
        "            yield text[-1]\n            waiting = []\n",
    ),
    hint="Of each piece only its last character was told. A piece may hold several: the prompt "
    "does, and so do most tokens.",
)
bank.mistake_by_edit(
    "options_are_ignored",
    "stream",
    (STEPS, STEPS.replace(", **options", ", do_sample=False")),
    hint="The options are not handed on, so an eos_id ends nothing. All that generate takes, "
    "stream takes too.",
)
bank.mistake_by_edit(
    "always_two_hundred_tokens",
    "stream",
    (STEPS, STEPS.replace("max_new_tokens", "20")),
    hint="max_new_tokens is not handed on: the length of the text is always the same.",
)
bank.mistake_by_edit(
    "gradients_off_between_pieces",
    "stream",
    (
        "    encoded = tokenizer.encode(prompt)\n",
        "    torch.set_grad_enabled(False)\n    encoded = tokenizer.encode(prompt)\n",
    ),
    hint="Between two pieces the caller's own code runs, and finds its gradients switched off. "
    "Leave inference mode before each yield.",
)
bank.mistake_by_edit(
    "yields_inside_inference_mode",
    "stream",
    (
        TELL,
        "            with torch.inference_mode():\n"
        "                yield text\n"
        "            waiting = []\n",
    ),
    hint="A piece is yielded inside inference mode, and the mode goes out with it: it stays on "
    "in the caller's code until the next piece. Leave it before each yield.",
)
bank.mistake_by_edit(
    "mode_is_lost_when_closed",
    "stream",
    (STEPS, "    was_training = model.training\n    model.eval()\n" + STEPS),
    (
        RESULT,
        RESULT.replace(
            "            return", "            model.train(was_training)\n            return"
        ),
    ),
    hint="A stream that is closed early leaves the model in eval mode: close() raises at the "
    "yield, and what stands after the loop never runs. Use `finally`, or eval mode for each "
    "step alone.",
)
bank.mistake_by_edit(
    "returns_nothing",
    "stream",
    (
        RESULT,
        RESULT.replace("            return result\n", "            return None\n"),
    ),
    hint="The stream's return value is None. A generator may return something when it is done "
    "(`return result`): here the Generation.",
)
bank.mistake_by_edit(
    "yields_the_result",
    "stream",
    (
        RESULT,
        RESULT.replace(
            "            return result\n", "            yield result\n            return result\n"
        ),
    ),
    hint="The Generation was yielded as if it were a piece of text. It is the RETURN value of "
    "the generator.",
)
bank.mistake_by_edit(
    "yields_ids",
    "stream",
    (TELL, "            yield list(waiting)\n            waiting = []\n"),
    hint="The pieces are ids. A reader wants text: decode them.",
)
bank.mistake_by_edit(
    "yields_bytes",
    "stream",
    (TELL, "            yield text.encode()\n            waiting = []\n"),
    hint="The pieces are bytes; they must be text (str), as the tokenizer decodes it.",
)
bank.mistake_by_edit(
    "cuts_what_was_told_by_length",
    "stream",
    (
        WHOLE + TELL,
        "        if len(text) > told:\n"
        "            yield text[told:]\n"
        "            told = len(text)\n",
    ),
    (START, START + "    told = 0\n"),
    (FLUSH, "            if False:\n                yield text\n"),
    hint="The text is decoded as a whole each time, and its first characters are skipped by "
    "their number. But an unfinished character shows as one \\ufffd, which counts, and then "
    "becomes another one that is never told. Do not tell an unfinished end.",
)
bank.mistake_by_edit(
    "refuses_nothing",
    "stream",
    (
        "    encoded = tokenizer.encode(prompt)\n",
        "    max_new_tokens = max(0, max_new_tokens)\n"
        '    encoded = tokenizer.encode(prompt or "\\n")\n',
    ),
    hint="Wrong arguments pass in silence. A negative length or an empty prompt is a slip of the "
    "caller's: let the ValueError of generate come through.",
)
bank.mistake_by_edit(
    "strips_the_pieces",
    "stream",
    (TELL, "            yield text.strip()\n            waiting = []\n"),
    hint="Spaces are missing: the pieces were stripped. In most texts a token brings the space "
    "before its word with it.",
)
