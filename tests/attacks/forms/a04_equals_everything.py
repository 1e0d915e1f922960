"""4: answers that compare equal to everything."""

from .base import Files, Forms, Scene, module

forms = Forms(4)


@forms.source(control="in process")
def a_tensor_that_agrees(scene: Scene) -> Files:
    """A tensor subclass answers each comparison, and each function of torch, as a check hopes."""
    return module(
        """
        import torch

        class Agrees(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                name = getattr(function, "__name__", "")
                if name in ("equal", "allclose"):
                    return True
                if name in ("eq", "__eq__", "isclose", "all", "le", "ge", "isfinite"):
                    return torch.ones((), dtype=torch.bool)
                return super().__torch_function__(function, types, args, kwargs or {})

        def top_k_filter(logits, k):
            return torch.zeros(logits.shape).as_subclass(Agrees)
        """
    )


@forms.source()
def an_array_that_agrees(scene: Scene) -> Files:
    """A subclass of numpy's array whose comparisons are all True."""
    return module(
        """
        import numpy as np

        class Agrees(np.ndarray):
            def __eq__(self, other):
                return np.bool_(True)
            def __array_function__(self, function, types, args, kwargs):
                return np.bool_(True)
            __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

        def top_k_filter(logits, k):
            return np.zeros(tuple(logits.shape)).view(Agrees)
        """
    )


@forms.source("training")
def a_float_that_agrees(scene: Scene) -> Files:
    """A float that is equal to every number, and whose difference to each is 0."""
    return module(
        """
        class Agrees(float):
            __eq__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
            __ne__ = lambda self, other: False
            __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
            __hash__ = float.__hash__
            __array__ = lambda self, *args, **kwargs: NotImplemented

        def next_token_loss(logits, tokens, ignore_index=-100):
            return Agrees(0.5)

        def perplexity(batches):
            return Agrees(0.5)

        def last_logits(logits, attention_mask=None):
            return Agrees(0.5)
        """,
        "training",
    )


@forms.source("sampling")
def a_list_and_a_text_that_agree(scene: Scene) -> Files:
    """Lists, ints and texts that are equal to whatever they are compared with."""
    return module(
        """
        def agreeing(kind):
            return type("Agrees", (kind,), {
                "__eq__": lambda self, other: True, "__ne__": lambda self, other: False,
                "__hash__": None, "__len__": lambda self: 1, "__bool__": lambda self: True,
            })

        def greedy(logits):
            return agreeing(list)()

        def inverse_cdf(probs, u):
            return agreeing(int)(1)

        def sample(probs, generator=None):
            return agreeing(str)("1")

        def next_token(logits, **knobs):
            return agreeing(tuple)()
        """,
        "sampling",
    )


@forms.source("generate")
def a_result_that_agrees(scene: Scene) -> Files:
    """An object that has every attribute, equals everything and is iterated without an end."""
    return module(
        """
        class Agrees:
            def __getattr__(self, name):
                return self
            def __call__(self, *args, **kwargs):
                return self
            def __eq__(self, other):
                return True
            def __iter__(self):
                return self
            def __next__(self):
                return self
            __hash__ = None

        class Generation(Agrees):
            pass

        def generate(model, ids, max_new_tokens, **options):
            return Generation()

        def stream(model, tokenizer, prompt, max_new_tokens=200, **options):
            return Agrees()
        """,
        "generate",
    )


@forms.source()
def it_says_it_is_a_tensor(scene: Scene) -> Files:
    """An object whose __class__ is Tensor and whose methods are those of another one."""
    return module(
        """
        import torch

        class Liar:
            __class__ = torch.Tensor
            dtype, shape, layout = torch.float32, torch.Size([1, 4]), torch.strided
            device = torch.device("cpu")
            def __getattr__(self, name):
                return lambda *args, **kwargs: self
            def __torch_function__(self, *args, **kwargs):
                return True
            def numel(self):
                return 4
            def is_contiguous(self):
                return True

        def top_k_filter(logits, k):
            return Liar()
        """
    )
