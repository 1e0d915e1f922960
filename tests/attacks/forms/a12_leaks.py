"""12: hidden inputs are told by what comes back: messages, names, lines, values."""

from .base import Files, Forms, Scene, module

forms = Forms(12)


@forms.source(control="message")
def in_the_message(scene: Scene) -> Files:
    """What is raised tells the input."""
    return module(
        """
        def top_k_filter(logits, k):
            raise ValueError(f"LEAK {logits.flatten()[:50].tolist()} {k}")
        """
    )


@forms.source()
def in_the_name_of_the_class(scene: Scene) -> Files:
    """The class of the exception is named after the input."""
    return module(
        """
        def top_k_filter(logits, k):
            digits = "".join(c if c.isalnum() else "_" for c in str(logits.flatten()[:5].tolist()))
            raise type(f"LEAK_{digits}_{k}", (ValueError,), {})
        """
    )


@forms.source()
def in_the_line(scene: Scene) -> Files:
    """The line of the traceback is made of the input."""
    return module(
        """
        import linecache

        def top_k_filter(logits, k):
            text = f"raise ValueError  # LEAK {logits.flatten()[:5].tolist()}"
            name = "<course_lib/top_k.py>"
            linecache.cache[name] = (len(text), None, [text] * 200, name)
            exec(compile("\\n" * 9 + text, name, "exec"))
        """
    )


@forms.source()
def in_the_answer(scene: Scene) -> Files:
    """A text or a number of the input comes back where a tensor is wanted."""
    return module(
        """
        def top_k_filter(logits, k):
            if logits.numel() % 2:
                return f"LEAK {logits.flatten()[:5].tolist()}"
            return type("LEAK_" + "".join(filter(str.isalnum, str(logits[..., 0].tolist())))[:80],
                        (), {"go": lambda self: None})()
        """
    )


@forms.source()
def printed(scene: Scene) -> Files:
    """The input is printed, logged, warned of and written to the terminal."""
    return module(
        """
        import logging, os, sys, warnings

        def top_k_filter(logits, k):
            text = f"LEAK {logits.flatten()[:5].tolist()}"
            print(text)
            print(text, file=sys.stderr)
            os.write(1, text.encode())
            logging.critical(text)
            warnings.warn(text)
            raise ValueError
        """
    )


@forms.source()
def in_the_time(scene: Scene) -> Files:
    """It ends early or late by a bit of the input; a verdict tells causes, never times."""
    return module(
        """
        import os

        def top_k_filter(logits, k):
            if float(logits.flatten()[0]) > 0:
                os._exit(0)
            raise ValueError("LEAK")
        """
    )
