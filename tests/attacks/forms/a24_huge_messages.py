"""24: messages of megabytes, NaN of all kinds, tensors larger than they are."""

from .base import Files, Forms, Scene, module
from .wire import rogue

forms = Forms(24)


@forms.source()
def a_tensor_of_one_number(scene: Scene) -> Files:
    """One number is expanded to as many as the wire lets pass: what compares them needs memory."""
    return module(
        """
        import torch

        def top_k_filter(logits, k):
            return torch.zeros(1, dtype=torch.bool).expand(2**27)
        """
    )


@forms.source()
def a_tensor_of_many_numbers(scene: Scene) -> Files:
    """A tensor of a hundred megabytes."""
    return module(
        """
        import torch

        def top_k_filter(logits, k):
            return torch.zeros(25 << 20)
        """
    )


@forms.source()
def tensors_that_lie(scene: Scene) -> Files:
    """Headers claim 10^12 elements, negative sizes and strides, no dtype, bytes that are not."""
    return rogue(
        """
        def answer(message, buffers):
            data = bytes(16)
            lies = [([10**12], [0]), ([10**12], [1]), ([-4], [1]), ([4], [-1]), ([2, 2], [1]),
                    ([4], [1], "str"), ([4], [1], "float32", 10**9), ([4], [1], "float32", -8),
                    ([4.0], [1]), ([True], [1]), ([1] * 99, [1] * 99), ([2**62, 2**62], [0, 0]),
                    ([0, 2**62], [1, 1]), ([2], [2**62]), ([4], [1], "float64"), ([], [])]
            reply(tensor(data, *lies[count % len(lies)]), data)
        """
    )


@forms.source()
def frames_that_lie(scene: Scene) -> Files:
    """A head that announces four gigabytes."""
    return rogue(
        """
        def answer(message, buffers):
            wire.sendall(struct.pack("!II", 2**32 - 1, 2**32 - 1) + bytes(100))
        """
    )


@forms.source()
def json_that_hurts(scene: Scene) -> Files:
    """JSON nested a hundred thousand deep, numbers of a million digits, NaN, half characters."""
    return rogue(
        """
        def answer(message, buffers):
            values = [b"9" * 5000, b"NaN", b"1e999999999", b'"\\ud800"', b"[" * 100 + b"]" * 100]
            wholes = [b"[" * 100_000, b'{"op": ' * 50_000, b"9" * 1_000_000, b"NaN", b"\\xff\\xfe",
                      b"", b"null", b'{"op": "return", "op": "raise"}']
            rest = b', "changed": [], "modes": [true, false]}'
            bodies = wholes + [b'{"op": "return", "value": ' + one + rest for one in values]
            body = bodies[count % len(bodies)]
            wire.sendall(struct.pack("!II", len(body), 0) + body)
        """
    )


@forms.source()
def texts_and_numbers(scene: Scene) -> Files:
    """Texts of megabytes, ints of a million digits, lists in lists, a list that holds itself."""
    return module(
        """
        import itertools

        def deep():
            inner = []
            for _ in range(100_000):
                inner = [inner]
            return inner

        def endless():
            knot = []
            knot.append(knot)
            return knot

        kinds = itertools.cycle([lambda: "x" * (9 << 20), lambda: 10 ** 1_000_000, deep, endless,
                                 lambda: [0] * 10_000_000, lambda: {i: i for i in range(10**6)},
                                 lambda: float("nan"), lambda: range(10**12), lambda: b"x" * 10**8])

        def top_k_filter(logits, k):
            return next(kinds)()
        """
    )


@forms.source()
def names_of_megabytes(scene: Scene) -> Files:
    """Exceptions, classes, functions, parameters and frames with names of a megabyte."""
    return module(
        """
        NAME = "x" * (1 << 20)

        exec(f"def {NAME}(): raise type(NAME, (ValueError,), {{}})(NAME * 8)")
        exec("def many(" + ", ".join(f"p{i}" for i in range(20_000)) + "): pass")
        for i in range(20_000):
            globals()[f"f{i}"] = lambda: None
        long = globals()[NAME]

        def top_k_filter(logits, k):
            long()
        """
    )


@forms.source()
def nan_payloads(scene: Scene) -> Files:
    """NaN of every payload, and infinities of both signs, in all dtypes."""
    return module(
        """
        import itertools, torch

        dtypes = itertools.cycle([torch.float16, torch.bfloat16, torch.float32, torch.float64,
                                  torch.complex64])

        def top_k_filter(logits, k):
            dtype = next(dtypes)
            bits = torch.arange(logits.numel(), dtype=torch.int32) | 0x7FC00001
            return bits.view(torch.float32).reshape(logits.shape).to(dtype)
        """
    )


@forms.source()
def tensors_of_odd_kinds(scene: Scene) -> Files:
    """Sparse, quantised, nested, meta and subclassed tensors, views of nothing, gradients."""
    return module(
        """
        import itertools, torch

        kinds = itertools.cycle([
            lambda x: x.to_sparse(), lambda x: x.to("meta"), lambda x: torch.nn.Parameter(x),
            lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
            lambda x: torch.nested.nested_tensor([x, x]), lambda x: x.to(torch.float8_e4m3fn),
            lambda x: torch.empty(0).set_(), lambda x: x[..., None].expand(*x.shape, 3),
            lambda x: torch.view_as_complex(torch.stack([x, x], -1)).conj(),
            lambda x: torch._neg_view(x), lambda x: torch.empty(1, dtype=torch.bits8),
        ])

        def top_k_filter(logits, k):
            return next(kinds)(logits.float().nan_to_num())
        """
    )


@forms.source()
def an_exception_without_end(scene: Scene) -> Files:
    """A chain of exceptions that is a circle, a message of gigabytes, notes, groups in groups."""
    return module(
        """
        def top_k_filter(logits, k):
            first, second = ValueError("x" * (1 << 27)), ValueError("b")
            first.__cause__, second.__cause__ = second, first
            first.add_note("n" * (1 << 24))
            group = first
            for _ in range(500):
                group = ExceptionGroup("g" * 1000, [group])
            raise group
        """
    )


@forms.source()
def empty_and_long(scene: Scene) -> Files:
    """A tensor without an element has a hundred million rows, which a message might list."""
    return module(
        "import torch\n\ndef top_k_filter(logits, k):\n    return torch.empty(10**8, 0)\n"
    )


@forms.source()
def one_number_many_times(scene: Scene) -> Files:
    """A list of thousands of tensors, each of one number that stands for millions."""
    return module(
        """
        import torch

        def top_k_filter(logits, k):
            return [torch.zeros(1).expand(1 << 20)] * 5_000
        """
    )


@forms.source("training")
def an_int_that_no_float_holds(scene: Scene) -> Files:
    """An int that cannot be printed, nor be compared with a float, where a number is wanted."""
    return module("def perplexity(batches):\n    return 10**5000\n", "training")


@forms.source()
def records_without_number(scene: Scene) -> Files:
    """Thousands of records, each of which would be a class of its own in the driver."""
    return rogue(
        """
        def answer(message, buffers):
            reply([{"$": "record", "class": f"A{i}", "fields": {}} for i in range(20_000)])
        """
    )


@forms.source()
def keys_that_collide(scene: Scene) -> Files:
    """The keys of a dict have one hash, so that each takes as long as all before it."""
    return rogue(
        """
        def answer(message, buffers):
            reply({"$": "dict", "of": [[i * (2**61 - 1), 0] for i in range(50_000)]})
        """
    )


@forms.source()
def a_text_that_backtracks(scene: Scene) -> Files:
    """What a stub would raise, with a megabyte in which a pattern looks for the stub's name."""
    return rogue(
        """
        def answer(message, buffers):
            reply(table(**{"class": "NotImplementedError", "bases": ["NotImplementedError"],
                           "message": "x" * 1_000_000, "frames": []}), op="raise")
        """
    )


@forms.source()
def a_module_of_many_names(scene: Scene) -> Files:
    """The module claims tens of thousands of functions, which each check would make anew."""
    many = "table(**{f'f{i}': table(parameters=[]) for i in range(1000)})"
    source = rogue("def answer(message, buffers):\n    reply(None)\n")["top_k"].decode()
    named = 'names=table(top_k_filter=table(parameters=["logits", "k"]))'
    return {"top_k": source.replace(named, f"names={many}").encode()}


@forms.source("sampling")
def ids_of_billions(scene: Scene) -> Files:
    """Ids so high that a table of how often each comes would need gigabytes."""
    return module(
        """
        import torch

        def sample(probs, generator=None):
            return torch.full((len(probs), 1), 3 * 10**8)

        def next_token(logits, *, generator=None, **knobs):
            return torch.full((len(logits), 1), 3 * 10**8)
        """,
        "sampling",
    )


@forms.source()
def lists_as_long_as_they_may_be(scene: Scene) -> Files:
    """Lists, nested lists, texts and small tensors that fill a message to its end, in turn."""
    return module(
        """
        import itertools, torch

        kinds = itertools.cycle([
            lambda: [0] * 690_000, lambda: [[0] * 600] * 1_000, lambda: ["x" * 1000] * 1_900,
            lambda: [torch.zeros(60)] * 10_000, lambda: [1.5] * 400_000,
            lambda: [[[[i] for i in range(50)] for _ in range(50)] for _ in range(50)],
        ])

        def top_k_filter(logits, k):
            return next(kinds)()
        """
    )


@forms.source("generate")
def pieces_without_end(scene: Scene) -> Files:
    """A stream of empty pieces that never ends, and a model that is called all the time."""
    return module(
        """
        import torch

        def generate(model, ids, max_new_tokens, **options):
            while True:
                model(ids[:, :1])

        def stream(model, tokenizer, prompt, max_new_tokens=200, **options):
            for _ in range(20_000):
                model(torch.zeros(1, 1).long())
            while True:
                yield ""
        """,
        "generate",
    )
