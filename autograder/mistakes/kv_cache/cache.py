"""Wrong ways to write KVCache, each a change of a few lines in the reference."""

from ...bank import Bank

bank = Bank("kv_cache")

KEEP_K = "        self.keys[layer][:, :, start:stop] = k.detach()\n"
KEEP_V = "        self.values[layer][:, :, start:stop] = v.detach()\n"
STORE = KEEP_K + KEEP_V
COUNT = "        self.lengths[layer] = stop\n"
RETURN = "return self.keys[layer][:, :, :stop], self.values[layer][:, :, :stop]"
LENGTH = "return min(self.lengths)"
RESET = "self.lengths = [0] * len(self.lengths)"

bank.mistake_by_edit(
    "new_positions_only",
    "KVCache",
    (RETURN, "return k, v"),
    hint="append returned the new positions alone, so the model forgets what it read before. It "
    "has to hand back everything that the layer holds, old and new.",
)
bank.mistake_by_edit(
    "old_positions_only",
    "KVCache",
    (RETURN, RETURN.replace(":stop]", ":start]")),
    hint="append returned what was there BEFORE: the new positions are missing, and a token has "
    "to see itself too. Where does your slice end?",
)
bank.mistake_by_edit(
    "whole_capacity",
    "KVCache",
    (RETURN, "return self.keys[layer], self.values[layer]"),
    hint="append returned the whole memory, empty places included. Zeros are keys like any other "
    "to a softmax; hand back the filled part only.",
)
bank.mistake_by_edit(
    "not_stored_back",
    "KVCache",
    (
        STORE + COUNT,
        "        k_all = torch.cat([self.keys[layer][:, :, :start], k], dim=2)\n"
        "        v_all = torch.cat([self.values[layer][:, :, :start], v], dim=2)\n"
        "        return k_all, v_all\n",
    ),
    hint="Old and new were joined, but the result was not kept: at the next call the cache is as "
    "empty as before. Store it, and count it.",
)
bank.mistake_by_edit(
    "keys_not_stored",
    "KVCache",
    (KEEP_K, ""),
    hint="Only one of keys and values is stored; the other stays zero. Both belong to a position.",
)
bank.mistake_by_edit(
    "values_not_stored",
    "KVCache",
    (KEEP_V, ""),
    hint="The keys are stored and the values are not: they stay zero. Both belong to a position.",
)
bank.mistake_by_edit(
    "keys_stored_twice",
    "KVCache",
    (KEEP_V, KEEP_V.replace("v.detach()", "k.detach()")),
    hint="The keys were stored as values too. A copied line that was changed in one place only?",
)
bank.mistake_by_edit(
    "keys_and_values_swapped",
    "KVCache",
    (RETURN, "return self.values[layer][:, :, :stop], self.keys[layer][:, :, :stop]"),
    hint="Keys and values came back in the wrong order. The shapes are the same, so nothing "
    "complains: it is (k_all, v_all).",
)
bank.mistake_by_edit(
    "overwrites_the_start",
    "KVCache",
    ("start = self.lengths[layer]", "start = 0"),
    hint="Every piece is written to the beginning, over what was there. The new positions go "
    "behind the old ones: where does the filled part of this layer end?",
)
bank.mistake_by_edit(
    "counts_calls",
    "KVCache",
    (COUNT, "        self.lengths[layer] = start + 1\n"),
    hint="The count grows by 1 a call, however many positions came. A prompt brings many at once: "
    "which axis of k says how many?",
)
bank.mistake_by_edit(
    "counts_the_batch",
    "KVCache",
    ("stop = start + k.shape[-2]", "stop = start + k.shape[0]"),
    hint="The wrong axis was counted: k is (batch, heads, positions, head_dim), and only the "
    "positions fill the cache.",
)
bank.mistake_by_edit(
    "newest_first",
    "KVCache",
    (
        RETURN,
        "self.keys[layer][:, :, :stop] = torch.cat(\n"
        "            [k, self.keys[layer][:, :, :start].clone()], dim=2\n"
        "        )\n"
        "        self.values[layer][:, :, :stop] = torch.cat(\n"
        "            [v, self.values[layer][:, :, :start].clone()], dim=2\n"
        "        )\n"
        f"        {RETURN}",
    ),
    hint="The new positions stand BEFORE the old ones. The order of keys is the order of the "
    "text, on which the causal mask relies.",
)
bank.mistake_by_edit(
    "joined_along_the_heads",
    "KVCache",
    (
        RETURN,
        "old = self.keys[layer][:, :, :start], self.values[layer][:, :, :start]\n"
        "        if start != k.shape[2]:\n"
        f"            {RETURN}\n"
        "        return torch.cat([old[0], k], dim=1), torch.cat([old[1], v], dim=1)",
    ),
    hint="Old and new were joined along the heads. k is (batch, heads, positions, head_dim): "
    "which axis grows with the text?",
)
bank.mistake_by_edit(
    "one_memory_for_all_layers",
    "KVCache",
    (STORE, STORE.replace("[layer]", "[0]")),
    (RETURN, RETURN.replace("[layer]", "[0]")),
    hint="All layers write to the same memory, so each finds the keys of another. Every layer has "
    "keys and values of its own; check that nothing is shared, as in `[x] * n_layers`.",
)
bank.mistake_by_edit(
    "one_count_for_all_layers",
    "KVCache",
    ("start = self.lengths[layer]", "start = self.lengths[0]"),
    (COUNT, "        self.lengths = [stop] * len(self.lengths)\n"),
    hint="All layers share one count, and each layer moves it: the second layer of the same pass "
    "already starts behind the new positions. When may the count move on?",
)
bank.mistake_by_edit(
    "counts_the_first_layer",
    "KVCache",
    (LENGTH, "return self.lengths[0]"),
    hint="`length` follows the layer that is ahead, in a pass the first. A model that asks in the "
    "middle of the pass then gets a position that does not exist yet. Count what EVERY layer "
    "holds.",
)
bank.mistake_by_edit(
    "sums_the_layers",
    "KVCache",
    (LENGTH, "return sum(self.lengths)"),
    hint="`length` is the sum over the layers. A position is one position, in however many layers "
    "it is kept.",
)
bank.mistake_by_edit(
    "length_is_the_capacity",
    "KVCache",
    (LENGTH, "return self.capacity"),
    hint="`length` says how much fits in, not how much is there. The next token's position is "
    "made of it.",
)
bank.mistake_by_edit(
    "length_stays_zero",
    "KVCache",
    (LENGTH, "return 0"),
    hint="`length` stays 0, so every new token gets position 0. It has to tell how many positions "
    "the cache holds by now.",
)
bank.mistake_by_edit(
    "length_one_too_far",
    "KVCache",
    (LENGTH, "return min(self.lengths) + (1 if min(self.lengths) else 0)"),
    hint="`length` is one too large once something is there. Positions count from 0, so a cache "
    "that holds n of them makes the next one position n, without any + 1.",
)
bank.mistake_by_edit(
    "length_is_a_method",
    "KVCache",
    ("    @property\n    def length(self)", "    def length(self)"),
    hint="`length` is a method here, and a model that writes `cache.length` gets the method "
    "itself, not a number. It needs `@property` above it, or a plain attribute.",
)
bank.mistake_by_edit(
    "length_is_a_tensor",
    "KVCache",
    (LENGTH, "return torch.tensor(self.lengths).min()"),
    hint="`length` is a tensor. It is a plain count, and belongs in an int: `.item()` makes one.",
)
bank.mistake_by_edit(
    "reset_forgotten",
    "KVCache",
    (RESET, "pass"),
    hint="reset forgets nothing: the next text would go on where the last one ended. What has to "
    "become 0 again?",
)
bank.mistake_by_edit(
    "reset_of_one_layer",
    "KVCache",
    (RESET, "self.lengths[0] = 0"),
    hint="reset empties the first layer only; the others still hold the old text. All of them "
    "start again.",
)
bank.mistake_by_edit(
    "reset_wipes_numbers_only",
    "KVCache",
    (RESET, "for kept in (*self.keys, *self.values):\n            kept.zero_()"),
    hint="reset fills the memory with zeros, but the count stays, and zeros are keys like any "
    "other. What is forgotten is how MANY positions there are.",
)
bank.mistake_by_edit(
    "capacity_not_checked",
    "KVCache",
    ("if stop > capacity:", "if False:"),
    hint="What does not fit reaches torch, whose RuntimeError speaks of sizes and not of a full "
    "cache; a single position it even drops in silence. Check before you write, and raise "
    "ValueError that names the capacity.",
)
bank.mistake_by_edit(
    "full_one_too_early",
    "KVCache",
    ("if stop > capacity:", "if stop >= capacity:"),
    hint="The last place is never used: filling the cache exactly is allowed. Look at the "
    "comparison.",
)
bank.mistake_by_edit(
    "full_one_too_late",
    "KVCache",
    ("if stop > capacity:", "if start > capacity - 1:"),
    hint="Only a cache that is already full refuses. Several positions at once may run over the "
    "end too: compare where they would END.",
)
bank.mistake_by_edit(
    "drops_the_oldest",
    "KVCache",
    (
        "if stop > capacity:",
        "if stop > capacity:\n"
        "            drop = stop - capacity\n"
        "            self.keys[layer] = self.keys[layer].roll(-drop, dims=2)\n"
        "            self.values[layer] = self.values[layer].roll(-drop, dims=2)\n"
        "            start, stop = start - drop, capacity\n"
        "        if stop > capacity:",
    ),
    hint="A full cache drops its oldest positions to make room. With learned positions that "
    "changes the text: every token would have to move to another position. Raise ValueError, "
    "and let the caller decide.",
)
bank.mistake_by_edit(
    "keeps_what_fits",
    "KVCache",
    (
        "if stop > capacity:",
        "stop = min(stop, capacity)\n"
        "        k, v = k[:, :, : stop - start], v[:, :, : stop - start]\n"
        "        if stop > capacity:",
    ),
    hint="What does not fit was cut off in silence, and the caller goes on with a text that has a "
    "hole. Raise ValueError.",
)
bank.mistake_by_edit(
    "counts_before_checking",
    "KVCache",
    ("        if stop > capacity:", COUNT + "        if stop > capacity:"),
    hint="The error comes, but the count has moved before it: after a refusal the cache must be "
    "as it was. Check first, change afterwards.",
)
bank.mistake_by_edit(
    "resets_when_full",
    "KVCache",
    (
        "if stop > capacity:",
        "if stop > capacity:\n            self.lengths[layer] = 0\n        if stop > capacity:",
    ),
    hint="The error comes, but the cache is empty after it. What does not fit changes nothing: "
    "the caller may still want to go on with less.",
)
bank.mistake_by_edit(
    "grows_without_end",
    "KVCache",
    (
        "if stop > capacity:",
        "if stop > capacity:\n"
        "            more = self.keys[0].new_zeros(batch, heads, stop, head_dim)\n"
        "            self.keys = [torch.cat([kept, more], dim=2) for kept in self.keys]\n"
        "            self.values = [torch.cat([kept, more], dim=2) for kept in self.values]\n"
        "            capacity = self.keys[0].shape[2]\n"
        "        if stop > capacity:",
    ),
    hint="The cache grows past its capacity. The memory that it may take was agreed on when it "
    "was made: raise ValueError instead.",
)
bank.mistake_by_edit(
    "memory_of_the_class",
    "KVCache",
    (
        "        self.lengths = [0] * n_layers\n",
        "        self.lengths = [0] * n_layers\n"
        "        shared = KVCache.__dict__.get('shared', {})\n"
        "        KVCache.shared = shared\n"
        "        whose = n_layers, shape, dtype\n"
        "        memory = shared.setdefault(whose, (self.keys, self.values))\n"
        "        self.keys, self.values = memory\n",
    ),
    hint="Two caches write to the same memory: what is kept on the class, or in the module, is "
    "there once for all. Give each cache its own in `__init__`.",
)
bank.mistake_by_edit(
    "sizes_not_checked",
    "KVCache",
    ("            if size < 1:", "            if False:"),
    hint="A size of 0 passes, and the error comes later, somewhere else. Refuse it when the cache "
    "is made: ValueError, with the name and the value.",
)
bank.mistake_by_edit(
    "zero_is_a_size",
    "KVCache",
    ("            if size < 1:", "            if size < 0:"),
    hint="A negative size is refused, but 0 passes. A cache for no layers or no positions is a "
    "slip of the caller's: the least is 1.",
)
bank.mistake_by_edit(
    "capacity_alone_checked",
    "KVCache",
    ("            if size < 1:", "            if name == 'capacity' and size < 1:"),
    hint="Only some of the sizes are checked. All five have to be 1 or more.",
)
bank.mistake_by_edit(
    "last_layer_by_minus_one",
    "KVCache",
    ("if not 0 <= layer < len(self.lengths):", "if layer >= len(self.lengths):"),
    hint="Layer -1 is taken for the last one, as Python's lists do. A negative layer can only be "
    "a slip: raise ValueError.",
)
bank.mistake_by_edit(
    "layer_left_to_the_list",
    "KVCache",
    ("if not 0 <= layer < len(self.lengths):", "if False:"),
    hint="A layer that is not there raises IndexError from inside. Say which layers there are, "
    "and raise ValueError.",
)
bank.mistake_by_edit(
    "shapes_not_checked",
    "KVCache",
    ("            if new.shape != (batch, heads, k.shape[-2], head_dim):", "            if False:"),
    hint="k and v of another shape than the cache's pass: torch copies one row into all rows "
    "without a word. Compare the shapes, and raise ValueError.",
)
bank.mistake_by_edit(
    "only_the_last_axis_checked",
    "KVCache",
    ("if new.shape != (batch, heads, k.shape[-2], head_dim):", "if new.shape[-1] != head_dim:"),
    hint="Only some axes of k and v are compared with the cache's. One row would still be copied "
    "into all rows: compare batch, heads and head_dim, and the positions of k and v.",
)
bank.mistake_by_edit(
    "v_not_checked",
    "KVCache",
    ('for name, new in (("k", k), ("v", v)):', 'for name, new in (("k", k),):'),
    hint="The shape of k is checked and that of v is not: with fewer positions it is copied into "
    "the places of the missing ones. Both have to fit.",
)
bank.mistake_by_edit(
    "dtype_ignored",
    "KVCache",
    (
        "self.keys = [torch.zeros(shape, dtype=dtype, device=device)",
        "self.keys = [torch.zeros(shape, device=device)",
    ),
    (
        "self.values = [torch.zeros(shape, dtype=dtype, device=device)",
        "self.values = [torch.zeros(shape, device=device)",
    ),
    hint="The cache is float32 whatever `dtype` says. That takes twice the memory, and a model in "
    "half precision cannot multiply the two.",
)
bank.mistake_by_edit(
    "values_in_another_dtype",
    "KVCache",
    (
        "self.values = [torch.zeros(shape, dtype=dtype, device=device)",
        "self.values = [torch.zeros(shape, device=device)",
    ),
    hint="The keys have the `dtype` that was asked for, the values have not. Both memories are "
    "made alike.",
)
bank.mistake_by_edit(
    "whole_numbers",
    "KVCache",
    (
        "self.keys = [torch.zeros(shape, dtype=dtype, device=device)",
        "self.keys = [torch.zeros(shape, dtype=torch.long, device=device)",
    ),
    (
        "self.values = [torch.zeros(shape, dtype=dtype, device=device)",
        "self.values = [torch.zeros(shape, dtype=torch.long, device=device)",
    ),
    hint="The memory holds whole numbers, so everything behind the point is cut off. Which dtype "
    "was asked for?",
)
