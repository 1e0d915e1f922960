"""Wrong ways to end: the eos, the filling, the counts, and what comes back."""

from ...bank import Bank

bank = Bank("generate")

LOOP = "    for _ in range(max_new_tokens):\n"
FILL = "            token = token.masked_fill(finished, filling)\n"
COPY = "        token = token.clone()\n"
APPEND = "        ids = torch.cat([ids, token], dim=1)\n"
COUNT = "            filled = filled + finished\n"
FINISH = "            finished = finished | torch.isin(token, end_ids)\n"
ALL = "        if ends and finished.all():\n"
NOBODY = "    finished = torch.zeros(batch, 1, dtype=torch.bool, device=ids.device)\n"
ENDS = "[] if eos_id is None else [eos_id] if isinstance(eos_id, int) else list(eos_id)"
FILLING = "pad_id if pad_id is not None else ends[0] if ends else 0"
IDS = "        ids=ids,\n"
REASON = '["eos" if row else unfinished_reason for row in finished[:, 0].tolist()]'
NEW_TOKENS = "new_tokens=new_tokens[:, 0].tolist()"

# --- when it ends ---

bank.mistake_by_edit(
    "stops_when_any_row_ends",
    "generate",
    (ALL, "        if ends and finished.any():\n"),
    hint="The first row that ends stops all the others. A batch is done when EVERY row is; until "
    "then the finished ones wait.",
)
bank.mistake_by_edit(
    "looks_at_row_zero_only",
    "generate",
    (ALL, "        if ends and finished[0]:\n"),
    hint="Row 0 decides for the whole batch when to stop. With one row that is right, which is "
    "why it went unseen: which rows must be finished?",
)
bank.mistake_by_edit(
    "asks_one_token_of_a_batch",
    "generate",
    ("        if ends:\n", "        if True:\n"),
    (FINISH, "            finished = finished | (token.item() in ends)\n"),
    hint="The new token is asked for as if it were one number, but there is one a row. Compare "
    "the whole (B, 1) tensor with the eos, and keep an answer for each row.",
)
bank.mistake_by_edit(
    "never_ends",
    "generate",
    (FINISH, ""),
    hint="The eos is written and the text goes on behind it. After each step ask of every row "
    "whether its new token is an eos.",
)
bank.mistake_by_edit(
    "goes_on_after_the_last_row",
    "generate",
    (ALL, "        if False:\n"),
    hint="Every row is finished, and still the model is asked for more. When no row is left that "
    "wants a token, the loop is done.",
)
bank.mistake_by_edit(
    "finished_rows_go_on",
    "generate",
    (FILL, ""),
    hint="A finished row goes on talking behind its eos while it waits for the others. Its new "
    "tokens must be replaced by the filling, pad_id.",
)
bank.mistake_by_edit(
    "finished_is_forgotten",
    "generate",
    (FINISH, "            finished = torch.isin(token, end_ids)\n"),
    hint="Whether a row is finished is decided anew by its last token, so the first filling "
    "wakes it up again. Finished once is finished for good: what must the new flag be "
    "joined with?",
)
bank.mistake_by_edit(
    "drops_the_eos",
    "generate",
    (
        COPY,
        COPY + "        if (finished | torch.isin(token, end_ids)).all():\n"
        "            finished = torch.ones_like(finished)\n"
        "            break\n",
    ),
    hint="The loop ends before the eos is appended, so it is missing from the output. It belongs "
    "there: a reader of the ids can tell then that the text was finished, not cut.",
)
bank.mistake_by_edit(
    "eos_in_the_prompt_ends",
    "generate",
    (NOBODY, "    finished = torch.isin(ids, end_ids).any(dim=1, keepdim=True)\n"),
    (LOOP, LOOP + "        if finished.all():\n            break\n"),
    hint="An eos in the PROMPT counted as the end. There it only separates texts; only a token "
    "that the model makes can finish a row.",
)
bank.mistake_by_edit(
    "eos_at_the_prompts_end_ends",
    "generate",
    (NOBODY, "    finished = torch.isin(ids[:, -1:], end_ids)\n"),
    (LOOP, LOOP + "        if finished.all():\n            break\n"),
    hint="The last token was tested before the first step, but that one is the prompt's. Test "
    "the token that was just made, after it was made.",
)

# --- how many tokens ---

bank.mistake_by_edit(
    "one_token_too_many",
    "generate",
    (LOOP, "    for _ in range(max_new_tokens + 1):\n"),
    hint="One token too many. Count the rounds of your loop: each of them appends one token, the "
    "first included.",
)
bank.mistake_by_edit(
    "one_token_too_few",
    "generate",
    (LOOP, "    for _ in range(max_new_tokens - 1):\n"),
    hint="One token too few. The prefill decides a token too: it reads the prompt, and its last "
    "logits are those of the first new token.",
)
bank.mistake_by_edit(
    "at_least_one_token",
    "generate",
    (LOOP, "    for _ in range(max(1, max_new_tokens)):\n"),
    hint="max_new_tokens = 0 made a token. Ask before the first step whether one is wanted, not "
    "after it.",
)
bank.mistake_by_edit(
    "length_counts_the_prompt",
    "generate",
    (LOOP, "    for _ in range(max_new_tokens - prompt_len):\n"),
    hint="max_new_tokens was taken for the length of the whole text. It counts NEW tokens: the "
    "prompt does not use any of them up.",
)

# --- which ids end and fill ---

bank.mistake_by_edit(
    "pad_zero_is_not_set",
    "generate",
    (FILLING, "pad_id or (ends[0] if ends else 0)"),
    hint="pad_id = 0 was taken for not given. 0 is false to Python and a token like any other to "
    "a model: ask whether it `is None`.",
)
bank.mistake_by_edit(
    "eos_zero_is_not_set",
    "generate",
    (ENDS, "[] if not eos_id else [eos_id] if isinstance(eos_id, int) else list(eos_id)"),
    hint="eos_id = 0 was taken for not given. 0 is false to Python and a token like any other to "
    "a model: ask whether it `is None`.",
)
bank.mistake_by_edit(
    "takes_one_eos_only",
    "generate",
    (ENDS, "[] if eos_id is None else [int(eos_id)]"),
    hint="A list of eos ids is not understood. Several tokens may end a text; make one form of "
    "both cases (a list of one, say) and go on with that.",
)
bank.mistake_by_edit(
    "first_eos_of_the_list_only",
    "generate",
    ("end_ids = torch.tensor(ends,", "end_ids = torch.tensor(ends[:1],"),
    hint="Only the first of the eos ids ends a row. Any of them does.",
)
bank.mistake_by_edit(
    "fills_with_the_last_eos",
    "generate",
    (FILLING, "pad_id if pad_id is not None else ends[-1] if ends else 0"),
    hint="Without a pad_id a row is filled with the FIRST eos of the list; yours takes another.",
)
bank.mistake_by_edit(
    "fills_with_its_own_eos",
    "generate",
    (
        FILL,
        "            own = ids[:, -1:] if pad_id is None else torch.full_like(token, pad_id)\n"
        "            token = torch.where(finished, own, token)\n",
    ),
    hint="Without a pad_id each row is filled with its own last token. All rows get the same "
    "filling: the first eos of the list.",
)
bank.mistake_by_edit(
    "fills_with_zero",
    "generate",
    (FILLING, "pad_id if pad_id is not None else 0"),
    hint="Without a pad_id a finished row is filled with 0, which may be a word. By default the "
    "filling is the first eos, which nobody can mistake for text.",
)
bank.mistake_by_edit(
    "pad_id_is_ignored",
    "generate",
    (FILLING, "ends[0] if ends else 0"),
    hint="A finished row is filled with the eos although a pad_id was given. The eos is only the "
    "default.",
)

# --- what is told about it ---

bank.mistake_by_edit(
    "reason_is_always_length",
    "generate",
    (REASON, "[unfinished_reason] * batch"),
    hint='finish_reason never says "eos". Which rows met one is known: you needed it to stop them.',
)
bank.mistake_by_edit(
    "one_reason_for_the_batch",
    "generate",
    (REASON, '["eos" if finished.all() else unfinished_reason] * batch'),
    hint="All rows got the same finish_reason. Each ends in its own way: give a list, a reason a "
    "row.",
)
bank.mistake_by_edit(
    "reason_is_one_word",
    "generate",
    (REASON, '"eos" if finished.all() else unfinished_reason'),
    hint="finish_reason is one word for the whole batch. It is a list with a word a row, also "
    "when there is one row.",
)
bank.mistake_by_edit(
    "reason_from_the_last_column",
    "generate",
    (
        REASON,
        '["eos" if row else unfinished_reason for row in torch.isin(ids[:, -1], end_ids).tolist()]',
    ),
    hint="finish_reason looks at the last column only: a row that ended early has its filling "
    "there, and a prompt may end in an eos. Remember for each row whether it FINISHED.",
)
bank.mistake_by_edit(
    "last_allowed_eos_is_length",
    "generate",
    (
        REASON,
        '["eos" if row and made < max_new_tokens else unfinished_reason '
        "for row, made in zip(finished[:, 0].tolist(), new_tokens[:, 0].tolist())]",
    ),
    hint='An eos that came as the last allowed token was told as "length". The text is finished '
    "all the same; the limit only had no time to cut it.",
)
bank.mistake_by_edit(
    "filling_is_counted",
    "generate",
    (COUNT, ""),
    hint="new_tokens counts the filling of finished rows. A row's count stands still once it is "
    "finished.",
)
bank.mistake_by_edit(
    "eos_is_not_counted",
    "generate",
    (COUNT + FINISH, FINISH + COUNT),
    hint="new_tokens misses the eos. The model made that token too: count first, and then look "
    "whether the row is finished by it.",
)
bank.mistake_by_edit(
    "new_tokens_is_one_number",
    "generate",
    (NEW_TOKENS, "new_tokens=int(new_tokens.max())"),
    hint="new_tokens is one number for the whole batch. It is a list with a number a row.",
)
bank.mistake_by_edit(
    "new_tokens_is_a_tensor",
    "generate",
    (NEW_TOKENS, "new_tokens=new_tokens[:, 0]"),
    hint="new_tokens is a tensor; a list of plain ints was asked for (`tolist()` makes one).",
)
bank.mistake_by_edit(
    "returns_the_continuation",
    "generate",
    (IDS, "        ids=ids[:, prompt_len:],\n"),
    hint="ids holds the continuation only. The prompt comes back too, in front, so that the rows "
    "are whole texts.",
)
bank.mistake_by_edit(
    "returns_ids_only",
    "generate",
    (
        "            return result\n"
        "        if streamer is not None:\n            streamer(token)\n    ### END",
        "            return result.ids\n"
        "        if streamer is not None:\n            streamer(token)\n    ### END",
    ),
    hint="The bare ids came back. Why a text ended and what it cost is wanted as well: put all "
    "of it into a Generation, the dataclass at the top of the file.",
)
bank.mistake_by_edit(
    "ids_are_floats",
    "generate",
    (IDS, "        ids=ids.float(),\n"),
    hint="ids are floating-point numbers. A token id is a whole number (int64): something in the "
    "joining of prompt and tokens changed the dtype.",
)
bank.mistake_by_edit(
    "speed_is_not_told",
    "generate",
    (
        "tokens_per_second=int(new_tokens.sum()) / seconds if seconds else 0.0",
        "tokens_per_second=None",
    ),
    hint="tokens_per_second is not filled in. Take the time around your steps and divide the new "
    "tokens by it; how large it is nobody grades.",
)
