"""A verdict as JUnit XML, which continuous integration shows as a list of tests."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ..judge.verdict import CheckVerdict, Verdict

LONGEST_MESSAGE = 4_000

# signs that XML 1.0 has no way to write, escaped or not
_UNWRITABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(verdict: Verdict) -> str:
    """The checks of all lessons: a suite a lesson, a case a check, in the format of JUnit.

    What was not attempted counts as skipped, all else that earned nothing as failed. Of a hidden
    check there is the property and the cause, no message.
    """
    root = ElementTree.Element("testsuites", name="LLM decoding from scratch")
    for name, lesson in verdict.lessons.items():
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        properties = ElementTree.SubElement(suite, "properties")
        told = {
            "score": f"{lesson.score:g}",
            "max": f"{lesson.max:g}",
            "sandbox": verdict.sandbox,
            "dependencies": verdict.dependencies,
        }
        for key, value in told.items():
            ElementTree.SubElement(properties, "property", name=key, value=_writable(value))
        for check in lesson.checks:
            _add(suite, name, check)
        _count(suite)
    _count(root)
    ElementTree.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(suite: ElementTree.Element, lesson: str, check: CheckVerdict) -> None:
    name = f"{check.claim} ({check.earned:g} of {check.points:g} points)"
    kind = "hidden" if check.hidden else check.of
    case = ElementTree.SubElement(
        suite, "testcase", name=_writable(name), classname=_writable(f"{lesson}.{kind}")
    )
    if check.passed:
        return
    if check.cause == "not attempted":
        ElementTree.SubElement(case, "skipped", message="not attempted")
        return
    failure = ElementTree.SubElement(case, "failure", type=check.cause, message=check.cause)
    if not check.hidden:
        failure.text = _writable(f"{check.message}\n{check.hint}".strip())[:LONGEST_MESSAGE]


def _count(element: ElementTree.Element) -> None:
    for key, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
        element.set(key, str(sum(1 for _ in element.iter(tag))))


def _writable(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)
