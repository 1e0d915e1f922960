"""Wrong manners: the model's mode, gradients, the streamer, the caller's arguments, errors."""

from ...bank import Bank

bank = Bank("generate")

WAS = "    was_training = model.training\n"
EVAL = "    if was_training:\n        model.eval()\n"
READING = """\
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            model.train()
"""
RESTORE = "        if was_training:\n            model.train()\n"
INFERENCE = "        with torch.inference_mode():\n"
STREAMER = "            streamer(token)\n    ### END SOLUTION"
END = "            return result\n        if streamer is not None:\n" + STREAMER
TELL = "        yield token\n        if ends and finished.all():\n            break\n"
COPY_IDS = "    ids = ids.to(torch.long, copy=True)\n"
CHECKS = "    _check_arguments(model, ids, max_new_tokens, pad_id, attention_mask, on_overflow)\n"
ENDS = "    ends = [] if eos_id is None"
NEGATIVE = """\
    if max_new_tokens < 0:
        raise ValueError(f"max_new_tokens={max_new_tokens} is not allowed: it must be 0 or more")
"""
OVERFLOW = """\
    if on_overflow not in ("slide", "stop"):
        raise ValueError(f'on_overflow="{on_overflow}" is not allowed: it is "slide" or "stop"')
"""
EMPTY = "    if ids.ndim != 2 or 0 in ids.shape:\n"

# --- the model's mode ---

bank.mistake_by_edit(
    "stays_in_training_mode",
    "generate",
    (EVAL, ""),
    hint="The model is never put into eval mode: a model in training drops out a part of itself "
    "at random, and greedy text changes from run to run.",
)
bank.mistake_by_edit(
    "mode_is_not_given_back",
    "generate",
    (RESTORE, "        pass\n"),
    hint="The model stays in eval mode after the call, so whoever goes on training it trains "
    "without dropout, and nothing says so. Put it back as it was.",
)
bank.mistake_by_edit(
    "mode_is_lost_on_an_exception",
    "generate",
    (READING, "    with torch.inference_mode():\n        yield\n    model.train(was_training)\n"),
    hint="The mode is given back at the end, but an exception never gets there. What runs in any "
    "case goes into `finally`.",
)
bank.mistake_by_edit(
    "always_back_to_training",
    "generate",
    (RESTORE, "        model.train()\n"),
    hint="The model is in training mode after the call, also where it was in eval mode before. "
    "Keep what it was, and give it that.",
)
bank.mistake_by_edit(
    "sets_the_flag_only",
    "generate",
    (EVAL, "    model.training = False\n"),
    hint="model.training was set by hand. That is a flag of the model alone: its parts, the "
    "dropout among them, stay in training mode. `eval()` tells them all.",
)
bank.mistake_by_edit(
    "restores_the_flag_only",
    "generate",
    (RESTORE, "        model.training = was_training\n"),
    hint="model.training was set back by hand. That is a flag of the model alone: its parts, the "
    "dropout among them, stay in eval mode. `train(mode)` tells them all.",
)

# --- gradients ---

bank.mistake_by_edit(
    "keeps_gradients",
    "generate",
    (INFERENCE, "        with torch.enable_grad():\n"),
    hint="The model was called with gradients on: torch remembers every intermediate number for "
    "a backward pass that never comes. `torch.inference_mode()` tells it not to.",
)
bank.mistake_by_edit(
    "gradients_off_for_good",
    "generate",
    (INFERENCE, "        torch.set_grad_enabled(False)\n        with torch.inference_mode():\n"),
    hint="Gradients are switched off and stay off: the caller's next training step fails. A "
    "`with` block ends by itself.",
)
bank.mistake_by_edit(
    "ids_of_inference_mode",
    "generate",
    (
        "    return Generation(\n        ids=ids,\n",
        "    with torch.inference_mode():\n        ids = ids.clone()\n"
        "    return Generation(\n        ids=ids,\n",
    ),
    hint="The ids were made inside inference mode (a decorator on the whole function does that), "
    "and torch will not let the caller train on them. Make the result outside.",
)

# --- the streamer ---

bank.mistake_by_edit(
    "streamer_is_not_called",
    "generate",
    (STREAMER, "            pass\n    ### END SOLUTION"),
    hint="The streamer hears nothing. Call it in each step with the new ids.",
)
bank.mistake_by_edit(
    "streamer_hears_all_at_the_end",
    "generate",
    (
        END,
        "            if streamer is not None:\n"
        "                for place in range(ids.shape[1], result.ids.shape[1]):\n"
        "                    streamer(result.ids[:, place : place + 1])\n"
        "            return result\n"
        "    ### END SOLUTION",
    ),
    hint="The streamer hears everything when all is over, and a reader waits before an empty "
    "page. Call it in the step that made the token.",
)
bank.mistake_by_edit(
    "streamer_hears_a_flat_row",
    "generate",
    (STREAMER, "            streamer(token[:, 0])\n    ### END SOLUTION"),
    hint="The streamer was handed ids of shape (B,). It gets the new column as it is appended, "
    "(B, 1).",
)
bank.mistake_by_edit(
    "streamer_hears_row_zero",
    "generate",
    (STREAMER, "            streamer(token[:1])\n    ### END SOLUTION"),
    hint="The streamer hears row 0 only. It gets the new ids of all rows, (B, 1).",
)
bank.mistake_by_edit(
    "streamer_hears_the_whole_text",
    "generate",
    (
        "        yield token\n",
        "        yield ids\n",
    ),
    hint="The streamer is handed the whole text each time. It wants what is new in this step, "
    "(B, 1).",
)
bank.mistake_by_edit(
    "streamer_hears_the_prompt",
    "generate",
    (
        "    while True:\n        try:\n            token = next(steps)\n"
        "        except StopIteration as end:\n            result: Generation = end.value\n"
        "            return result\n        if streamer",
        "    if streamer is not None:\n        streamer(ids)\n"
        "    while True:\n        try:\n            token = next(steps)\n"
        "        except StopIteration as end:\n            result: Generation = end.value\n"
        "            return result\n        if streamer",
    ),
    hint="The streamer was called with the prompt first. The caller has that; it is called once "
    "a step.",
)
bank.mistake_by_edit(
    "streamer_misses_the_end",
    "generate",
    (TELL, "        if ends and finished.all():\n            break\n        yield token\n"),
    hint="The streamer misses the last step: the loop ends before it is called. The last eos is "
    "news too.",
)

# --- the caller's arguments ---

bank.mistake_by_edit(
    "writes_into_the_prompt",
    "generate",
    (
        COPY_IDS,
        "    if mask is not None:\n        ids[mask == 0] = filling\n" + COPY_IDS,
    ),
    hint="The padding of the caller's ids was overwritten. A tensor that was handed in is seen "
    "everywhere it is used; change a copy, or nothing.",
)
bank.mistake_by_edit(
    "writes_into_the_mask",
    "generate",
    (
        COPY_IDS,
        "    if mask is not None and max_new_tokens:\n        mask[:] = mask.roll(-1, dims=1)\n"
        "        mask = mask.roll(1, dims=1)\n" + COPY_IDS,
    ),
    hint="The caller's attention_mask changed. Join it with the new column to a NEW tensor each "
    "step.",
)
bank.mistake_by_edit(
    "sorts_the_callers_list",
    "generate",
    (ENDS, "    if isinstance(eos_id, list):\n        eos_id.sort()\n" + ENDS),
    hint="The caller's list of eos ids was changed, and with it the filling, its first entry. "
    "Work on a copy.",
)
bank.mistake_by_edit(
    "asks_the_model_for_parameters",
    "generate",
    (COPY_IDS, COPY_IDS + "    ids = ids.to(next(model.parameters()).device)\n"),
    hint="The model was asked for something that it need not have: `Model`, at the top of the "
    "file, lists all that generate may use.",
)

# --- errors ---

bank.mistake_by_edit(
    "negative_length_passes",
    "generate",
    (NEGATIVE, ""),
    hint="A negative max_new_tokens passes in silence. It can only be a slip of the caller's, so "
    "tell it: ValueError, with the argument's name and value.",
)
bank.mistake_by_edit(
    "asserts_the_length",
    "generate",
    (NEGATIVE, "    assert max_new_tokens >= 0\n"),
    hint="A wrong argument met an `assert`. Python can be told to skip those, and the message "
    "says nothing; raise ValueError with the argument's name and value.",
)
bank.mistake_by_edit(
    "empty_prompt_passes",
    "generate",
    (CHECKS, "    ids = ids if ids.shape[1] else ids.new_zeros(len(ids), 1)\n" + CHECKS),
    hint="An empty prompt was taken, but no model can say what comes after nothing. Raise "
    "ValueError.",
)
bank.mistake_by_edit(
    "empty_prompt_crashes",
    "generate",
    (EMPTY, "    ids[:, -1]\n    if ids.ndim != 2:\n"),
    hint="An empty prompt crashes inside with an error about some index. Look at the shape "
    "first, and raise ValueError that says what is wrong.",
)
bank.mistake_by_edit(
    "unknown_overflow_passes",
    "generate",
    (OVERFLOW, ""),
    hint='An on_overflow that is neither "slide" nor "stop" passes in silence, and a typing '
    "error goes unseen. Raise ValueError that lists both.",
)
bank.mistake_by_edit(
    "negative_temperature_is_greedy",
    "generate",
    (CHECKS, CHECKS + "    temperature = max(0.0, temperature)\n"),
    hint="A negative temperature is taken for greedy. Only 0 means that; a negative one is a "
    "slip, and raises ValueError.",
)
