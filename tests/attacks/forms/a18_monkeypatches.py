"""18: torch, time, random and builtins are patched."""

from .base import Files, Forms, Scene, hostile

forms = Forms(18)


@forms.source(control="in process")
def torch_agrees(scene: Scene) -> Files:
    """torch.equal and torch.allclose always say yes, and no tensor is -inf anywhere."""
    return hostile(
        at_import="""
        import torch

        torch.equal = torch.allclose = lambda *args, **kwargs: True
        torch.Tensor.__ne__ = lambda self, other: torch.ones(self.shape).bool()
        """,
        inside="return torch.zeros(logits.shape)",
    )


@forms.source()
def torch_draws_nothing(scene: Scene) -> Files:
    """Every generator gives zeros, so that all drawn inputs would be known."""
    return hostile(
        at_import="""
        import random, torch

        for name in ("rand", "randn", "randint", "randperm", "multinomial", "bernoulli", "normal"):
            setattr(torch, name, lambda *args, **kwargs: torch.zeros(1))
        torch.Generator.manual_seed = lambda self, seed: self
        torch.manual_seed = random.seed = lambda seed=0: None
        random.random = lambda: 0.0
        """,
        inside="return torch.zeros(1)",
    )


@forms.source()
def time_stands_still(scene: Scene) -> Files:
    """Clocks stand, sleep returns at once, and no alarm rings."""
    return hostile(
        at_import="""
        import signal, time

        for name in ("time", "monotonic", "perf_counter", "process_time"):
            setattr(time, name, lambda: 0.0)
        time.sleep = lambda seconds: None
        signal.alarm = signal.setitimer = lambda *args: 0
        """,
        inside="while True:\n    pass",
    )


@forms.source()
def builtins_agree(scene: Scene) -> Files:
    """isinstance, all, any, len, abs, sorted and print are other functions now."""
    return hostile(
        at_import="""
        import builtins, json, math, socket, struct

        builtins.all = builtins.any = builtins.callable = lambda *args: True
        builtins.len = lambda thing: 0
        builtins.abs = lambda number: 0
        math.isclose = math.isfinite = lambda *args, **kwargs: True
        json.dumps = lambda *args, **kwargs: '{"op": "return", "value": true}'
        """
    )


@forms.source()
def the_wire_is_patched(scene: Scene) -> Files:
    """The child's own half of the wire says of every value that it is what was asked for."""
    return hostile(
        at_import="""
        import gc, sys

        for thing in gc.get_objects():
            if isinstance(thing, type) and thing.__module__ == "autograder.judge.wire":
                if thing.__name__ == "Encoder":
                    thing.encode = lambda self, value, depth=0: True
                if thing.__name__ == "Decoder":
                    thing.decode = lambda self, data, depth=0: ((), {})
        """
    )
