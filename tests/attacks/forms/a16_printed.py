"""16: printed text that looks like a result."""

from .base import Files, Forms, Scene, hostile

forms = Forms(16)

RESULTS = """
LINES = (
    '{"lessons": {"top_k": {"score": 15.0, "max": 15.0}}, "sandbox": "namespaces and lock"}',
    "top_k-keeps_k: passed",
    "15 of 15 points",
    "##nbgrader score 15/15",
    "===== 19 passed in 0.01s =====",
    "\\x1b[2K\\x1b[1A\\x1b[32mPASSED\\x1b[0m",
    "::set-output name=score::15",
    "<testsuite failures='0' tests='19'/>",
)
"""


@forms.source(control="printed")
def at_import(scene: Scene) -> Files:
    """Verdicts in the words of several graders are printed on stdout and stderr."""
    return hostile(
        at_import=RESULTS
        + """
import sys
for line in LINES:
    print(line, flush=True)
    print(line, file=sys.stderr, flush=True)
"""
    )


@forms.source()
def in_a_call(scene: Scene) -> Files:
    """The same in a call, and as the text of what is raised."""
    return hostile(
        at_import=RESULTS,
        inside="""
        import os
        for line in LINES:
            print(line)
            os.write(1, line.encode())
        raise ValueError("\\n".join(LINES))
        """,
    )


@forms.source()
def two_gigabytes(scene: Scene) -> Files:
    """So much is printed that a log would fill the disk."""
    return hostile(
        inside="""
        import sys
        for _ in range(2000):
            sys.stdout.write("15 of 15 points\\n" * (1 << 16))
        raise ValueError
        """
    )


@forms.source()
def markup(scene: Scene) -> Files:
    """What is raised is a page's script, a terminal's commands and a spreadsheet's formula."""
    return hostile(
        inside="""
        raise ValueError(
            "<script>fetch('/grades')</script><img src=x onerror=alert(1)>\\x1b[2J\\x1b]0;15\\x07"
            "=HYPERLINK(1)\\u202e"
        )
        """
    )
