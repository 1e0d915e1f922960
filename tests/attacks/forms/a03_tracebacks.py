"""3: the way in which failures are told is overridden, so that none is seen."""

from .base import Files, Forms, Scene, hostile, module

forms = Forms(3)


@forms.source()
def excepthook(scene: Scene) -> Files:
    """sys.excepthook, unraisablehook and traceback's functions say nothing any more."""
    return hostile(
        at_import="""
        import sys, traceback

        sys.excepthook = sys.unraisablehook = lambda *args: None
        for name in dir(traceback):
            if callable(getattr(traceback, name)):
                setattr(traceback, name, lambda *args, **kwargs: [])
        """
    )


@forms.source(control="in process")
def failures_pass(scene: Scene) -> Files:
    """The class that checks raise on a mismatch becomes one that checks take for a success."""
    return hostile(
        at_import="""
        import sys

        for name, module in list(sys.modules.items()):
            if name.endswith("checks.kit"):
                real = module.run_check
                def run_check(check, student, seed=0):
                    result = real(check, student, seed)
                    result.passed, result.cause = True, ""
                    return result
                module.run_check = run_check
        """
    )


@forms.source()
def an_exception_that_cannot_be_told(scene: Scene) -> Files:
    """What is raised has no text, no class name and no traceback that could be had."""
    return module(
        """
        class Quiet(type):
            @property
            def __name__(cls):
                raise SystemExit

        class Never(Exception, metaclass=Quiet):
            __str__ = __repr__ = lambda self: 1 / 0
            __traceback__ = property(lambda self: 1 / 0)
            args = property(lambda self: 1 / 0)

        def top_k_filter(logits, k):
            raise Never()
        """
    )


@forms.source()
def an_exception_named_like_a_verdict(scene: Scene) -> Files:
    """The exception bears the name of those that mean something to the checks."""
    return module(
        """
        class StudentRaised(Exception):
            pass

        class Mismatch(StudentRaised):
            cause = ""

        def top_k_filter(logits, k):
            error = Mismatch("passed")
            error.original = error.call = None
            raise error
        """
    )


@forms.source()
def a_generator_exit(scene: Scene) -> Files:
    """It raises what ends loops, generators and programs, where a check waits for an answer."""
    return module(
        """
        import itertools

        kinds = itertools.cycle([StopIteration, GeneratorExit, KeyboardInterrupt, SystemExit,
                                 StopAsyncIteration, BaseExceptionGroup, MemoryError])

        def top_k_filter(logits, k):
            kind = next(kinds)
            raise kind("passed", [ValueError()]) if kind is BaseExceptionGroup else kind("passed")
        """
    )
