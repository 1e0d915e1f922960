"""Wrong ways to handle what the model reads: window, cache, padding, and the work counted."""

from ...bank import Bank

bank = Bank("generate")

STOP = '        if on_overflow == "stop" and reader.is_full:\n'
OVERFLOW = '            unfinished_reason = "overflow"\n'
REASON = '["eos" if row else unfinished_reason for row in finished[:, 0].tolist()]'
APPEND = "        ids = torch.cat([ids, token], dim=1)\n"
EXTEND = "mask = torch.cat([mask, torch.ones_like(token, dtype=mask.dtype)], dim=1)"
NEW_READER = "reader = _Reader(model, use_cache, batch, prompt_len + max_new_tokens)"
MASK = "mask = attention_mask if attention_mask is not None and not attention_mask.all() else None"
CACHED = "        if self.use_cache and self.window and not self.is_full:\n"
DECODE = "return decode_step(self.model, ids[:, -1:], self.cache, mask)"
CONTEXT = "context = ids[:, -size:]"
CONTEXT_MASK = "None if mask is None else mask[:, -size:]"
WINDOW = "        self.window = context.shape[1]\n"
COUNT = "        self.positions_forwarded += self.window\n"
PREFILL = "return prefill(self.model, context, self.cache, context_mask)"
PLAIN = "            return last_logits(self.model(context))\n"
MASKED = "return last_logits(self.model(context, attention_mask=context_mask))"
LAYERS = "                model.n_layers,\n"
HEADS = "                model.n_heads,\n                model.head_dim,\n"

# --- the window ---

bank.mistake_by_edit(
    "keeps_the_first_tokens",
    "generate",
    (CONTEXT, "context = ids[:, :size]"),
    hint="The window holds the FIRST tokens of the text, and the model goes on from there for "
    "ever. What decides the next token are the last ones.",
)
bank.mistake_by_edit(
    "no_window",
    "generate",
    (CONTEXT, "context = ids"),
    hint="The model is handed more positions than it has (block_size). Show it the last "
    "block_size tokens of a long text.",
)
bank.mistake_by_edit(
    "window_one_short",
    "generate",
    (CONTEXT, "context = ids[:, -(size - 1) :]"),
    (CONTEXT_MASK, "None if mask is None else mask[:, -(size - 1) :]"),
    hint="The window holds one token less than fits. A forward may read block_size tokens, and "
    "the token that it decides needs no place in it.",
)
bank.mistake_by_edit(
    "loses_what_left_the_window",
    "generate",
    (APPEND, "        ids = torch.cat([ids, token], dim=1)[:, -model.block_size :]\n"),
    hint="The running text itself was cut to block_size, so its beginning is missing from the "
    "output. Cut a copy for the model, and keep the whole for the caller.",
)
bank.mistake_by_edit(
    "drops_the_oldest_key",
    "generate",
    (
        CACHED,
        "        if self.use_cache and self.window:\n"
        "            if self.is_full:\n"
        "                for kept in (self.cache.keys, self.cache.values):\n"
        "                    kept[:] = [layer.roll(-1, dims=2) for layer in kept]\n"
        "                self.cache.lengths = [size - 1] * self.model.n_layers\n"
        "                self.window -= 1\n"
        "                mask = None if mask is None else mask[:, -size:]\n",
    ),
    hint="When the window slid, the cache dropped its oldest entry and kept the others. Those "
    "were computed at positions that are theirs no more, and from tokens that are gone: the "
    "text is no longer the one without a cache. Read the window afresh.",
)
bank.mistake_by_edit(
    "slides_half_a_window",
    "generate",
    (
        "        size = self.model.block_size\n",
        "        size = self.model.block_size\n"
        "        if self.use_cache and self.is_full:\n"
        "            size = max(1, size // 2)\n",
    ),
    hint="When the window was full the cache was rebuilt from a part of it, to have room for "
    "more. That saves work, but the model then reads less than it could, and its text is "
    "another than without a cache.",
)
bank.mistake_by_edit(
    "stops_at_block_size",
    "generate",
    (STOP, "        if reader.is_full:\n"),
    hint='It stops where the window is full, though it was not asked to: by default, "slide", '
    "the text goes on with the last block_size tokens.",
)
bank.mistake_by_edit(
    "cache_stops_at_block_size",
    "generate",
    (STOP, '        if reader.is_full and (on_overflow == "stop" or use_cache):\n'),
    hint="With the cache it stops where the window is full; without, it slides. The cache may "
    "change the work, never the text: rebuild it from the last block_size tokens.",
)
bank.mistake_by_edit(
    "stop_is_ignored",
    "generate",
    (STOP, "        if False:\n"),
    hint='on_overflow = "stop" changes nothing: the text slides on. End when the next forward '
    "would no longer fit.",
)
bank.mistake_by_edit(
    "stops_one_early",
    "generate",
    (STOP, STOP.replace("reader.is_full", "ids.shape[1] >= model.block_size")),
    hint="It stops when the TEXT fills the window. One more token can be had: the last one is "
    "decided by a forward over block_size positions and is not read itself.",
)
bank.mistake_by_edit(
    "stops_one_late",
    "generate",
    (STOP, STOP.replace("reader.is_full", "ids.shape[1] > model.block_size + 1")),
    hint="It stops one forward too late: that one no longer had the whole text before it. How "
    "many positions have been read when the window is full?",
)
bank.mistake_by_edit(
    "overflow_is_called_length",
    "generate",
    (OVERFLOW, ""),
    hint='A row that was stopped by the window says "length". The caller could not tell that '
    'from a text that had all its tokens: the reason is "overflow".',
)
bank.mistake_by_edit(
    "overflow_told_too_soon",
    "generate",
    (
        "    return Generation(\n        ids=ids,\n",
        '    if on_overflow == "stop" and reader.is_full:\n'
        '        unfinished_reason = "overflow"\n'
        "    return Generation(\n        ids=ids,\n",
    ),
    hint='A text that had all the tokens it wanted says "overflow" because the window happens to '
    "be full at its end. It overflows when one MORE forward is wanted.",
)
bank.mistake_by_edit(
    "overflow_beats_eos",
    "generate",
    (
        REASON,
        '["eos" if row and unfinished_reason == "length" else unfinished_reason '
        "for row in finished[:, 0].tolist()]",
    ),
    hint='When one row overflowed, the rows that had met their eos before say "overflow" too. A '
    "finished row keeps its reason.",
)

# --- the cache ---

bank.mistake_by_edit(
    "use_cache_is_ignored",
    "generate",
    (NEW_READER, NEW_READER.replace("use_cache", "True")),
    hint="use_cache = False still uses the cache. Without it, each step reads the whole window: "
    "a plain road to compare the fast one with.",
)
bank.mistake_by_edit(
    "never_uses_the_cache",
    "generate",
    (NEW_READER, NEW_READER.replace("use_cache", "False")),
    family="a cache that saves nothing",
    hint="The text is right, but each step read everything again, so the cache saves nothing. "
    "Prefill once, then feed the newest token alone.",
)
bank.mistake_by_edit(
    "prefills_each_step",
    "generate",
    (CACHED, "        if False:\n"),
    family="a cache that saves nothing",
    hint="Each step clears the cache and reads the whole text into it again, which is as slow as "
    "having none. After the prefill only the newest token is new.",
)
bank.mistake_by_edit(
    "feeds_the_last_prompt_token_twice",
    "generate",
    (
        PREFILL,
        "if context.shape[1] == size:\n"
        "                return prefill(self.model, context, self.cache, context_mask)\n"
        "            prefill(self.model, context, self.cache, context_mask)\n"
        "            self.window += 1\n"
        "            self.positions_forwarded += 1\n"
        "            if mask is not None:\n"
        "                mask = torch.cat([mask, mask[:, -1:]], dim=1)\n"
        "            return decode_step(self.model, ids[:, -1:], self.cache, mask)",
    ),
    hint="The last token of the prompt was read twice: in the prefill, and again as the first "
    "step. The prefill's own logits decide the first new token.",
)
bank.mistake_by_edit(
    "one_forward_too_many",
    "generate",
    (
        "    return Generation(\n        ids=ids,\n",
        "    if max_new_tokens and not reader.is_full:\n"
        "        with _reading(model):\n"
        "            reader.read(ids, mask)\n"
        "    return Generation(\n        ids=ids,\n",
    ),
    hint="The last token was still read by the model, and what came of it thrown away. Nobody "
    "asks for the token after the last one.",
)
bank.mistake_by_edit(
    "cache_kept_between_calls",
    "generate",
    ("class _Reader:\n", "class _Reader:\n    shared: Any = None\n"),
    (
        "            self.cache = KVCache(\n",
        "            _Reader.shared = self.cache = _Reader.shared or KVCache(\n",
    ),
    (
        "            self.cache.reset()\n",
        "            if self.positions_forwarded > self.window:\n"
        "                self.cache.reset()\n",
    ),
    hint="The cache outlives the call: the next text starts with the last one's positions still "
    "in it. Make a new cache in each call (a default argument or a module's variable is "
    "made once).",
)
bank.mistake_by_edit(
    "cache_not_reset",
    "generate",
    ("            self.cache.reset()\n", ""),
    hint="When the window slides, the window is read on top of a cache that is full already. "
    "Empty it first: none of what it holds is at its right position any more.",
)
bank.mistake_by_edit(
    "cache_of_one_row",
    "generate",
    (LAYERS + "                batch,\n", LAYERS + "                1,\n"),
    hint="The cache was made for one row whatever the batch. Its size is (layers, BATCH, heads, "
    "...): where does the number of rows come from?",
)
bank.mistake_by_edit(
    "cache_of_one_layer",
    "generate",
    (LAYERS, "                1,\n"),
    family="a cache of another shape",
    hint="The cache does not fit a real transformer, which has several layers and heads. Take "
    "its sizes from the model, n_layers, n_heads and head_dim, in the order of KVCache's "
    "arguments.",
)
bank.mistake_by_edit(
    "heads_and_size_swapped",
    "generate",
    (HEADS, "                model.head_dim,\n                model.n_heads,\n"),
    family="a cache of another shape",
    hint="The cache does not fit a real transformer: the number of heads and their size stand in "
    "each other's place. Look at the order of KVCache's arguments.",
)
bank.mistake_by_edit(
    "room_for_the_prompt_only",
    "generate",
    (NEW_READER, NEW_READER.replace("prompt_len + max_new_tokens", "prompt_len")),
    hint="The cache has room for the prompt and no more, so the first new token does not fit. "
    "How many positions will it hold at the end, and what is the most that the model can "
    "read?",
)

# --- the work ---

bank.mistake_by_edit(
    "counts_calls",
    "generate",
    (COUNT, "        self.positions_forwarded += 1\n"),
    hint="positions_forwarded counts the CALLS of the model. A prefill of P tokens is P "
    "positions; that is what costs time.",
)
bank.mistake_by_edit(
    "counts_rows_too",
    "generate",
    (COUNT, "        self.positions_forwarded += self.window * len(ids)\n"),
    hint="positions_forwarded is multiplied by the number of rows. It sums T over the model's "
    "calls, whatever the batch.",
)
bank.mistake_by_edit(
    "counts_the_steps_only",
    "generate",
    (COUNT, "        self.positions_forwarded += 0 if self.use_cache else self.window\n"),
    hint="positions_forwarded leaves out the prefill. The prompt is read too, and is often most "
    "of the work.",
)
bank.mistake_by_edit(
    "counts_tokens_for_positions",
    "generate",
    (
        "positions_forwarded=reader.positions_forwarded",
        "positions_forwarded=prompt_len + int(new_tokens.max()) - 1",
    ),
    hint="positions_forwarded is worked out from the lengths, as if each token were read once. "
    "That is true with the cache while the window is not full; count what you really "
    "forward.",
)

# --- padding ---

bank.mistake_by_edit(
    "mask_is_ignored",
    "generate",
    (MASK, "mask = None"),
    hint="attention_mask is never used, so the model reads the padding as text. Hand it on with "
    "each call of the model.",
)
bank.mistake_by_edit(
    "mask_without_cache_only",
    "generate",
    (DECODE, DECODE.replace(", mask)", ")")),
    (PREFILL, PREFILL.replace(", context_mask)", ")")),
    hint="With the cache the mask is not handed on, so the padding is read as text: prefill and "
    "decode_step take it too.",
)
bank.mistake_by_edit(
    "mask_with_cache_only",
    "generate",
    (MASKED, "return last_logits(self.model(context))"),
    hint="Without the cache the mask is not handed to the model, so the padding is read as text.",
)
bank.mistake_by_edit(
    "mask_in_prefill_only",
    "generate",
    (DECODE, DECODE.replace(", mask)", ")")),
    hint="The mask went into the prefill and into no step after it. The padding is still in the "
    "cache: each step has to be told where.",
)
bank.mistake_by_edit(
    "mask_does_not_grow",
    "generate",
    (EXTEND, "pass"),
    hint="The text grows by a token each step and the mask does not: they no longer fit each "
    "other. A new token is real; add a 1 for it.",
)
bank.mistake_by_edit(
    "mask_grows_on_the_left",
    "generate",
    (EXTEND, "mask = torch.cat([torch.ones_like(token, dtype=mask.dtype), mask], dim=1)"),
    hint="The mask grew on the left while the text grows on the right, so each step unmasks "
    "padding and masks the newest words.",
)
bank.mistake_by_edit(
    "new_tokens_are_masked",
    "generate",
    (EXTEND, "mask = torch.cat([mask, torch.zeros_like(token, dtype=mask.dtype)], dim=1)"),
    hint="The mask says 0 for the new tokens, so the model does not see what it has just said. "
    "In this course 1 is real and 0 is padding.",
)
bank.mistake_by_edit(
    "mask_of_the_new_token_only",
    "generate",
    (DECODE, DECODE.replace(", mask)", ", None if mask is None else mask[:, -1:])")),
    hint="The step hands on the mask of the new token alone. It must cover ALL positions so far, "
    "those in the cache too.",
)
bank.mistake_by_edit(
    "mask_window_at_the_wrong_end",
    "generate",
    (CONTEXT_MASK, "None if mask is None else mask[:, :size]"),
    hint="When the window slides, the text is cut at its front and the mask at its back. Cut "
    "both at the same end.",
)
bank.mistake_by_edit(
    "reads_the_first_position",
    "generate",
    (PLAIN, "            return self.model(context)[:, 0]\n"),
    hint="Without the cache the logits of the FIRST position decide. What comes after the whole "
    "text is said at its last position.",
)
