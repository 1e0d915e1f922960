"""Cut what each known mistake answers in the visible checks, as data for
`course_lib/checks/known/`.

A learner's folder then knows the mistakes by their answers, and holds none of their code.
"""

from __future__ import annotations

import json
from pathlib import Path

from course_lib.checks.diagnose import KNOWN, outcomes_of
from course_lib.checks.kit import find_suite, lessons, run_check
from course_lib.checks.record import alike

from ..bank import find_bank


def cut_known(lesson: str) -> str:
    """The JSON text of a lesson's known mistakes."""
    suite = find_suite(lesson)
    if suite is None:
        raise KeyError(f"lesson {lesson} has no checks")
    entries = []
    for mistake in find_bank("mistakes", lesson).implementations.values():
        module = mistake.build()
        results = [run_check(check, module) for check in suite.checks.values()]
        entries.append(
            {
                "name": mistake.name,
                "of": mistake.of,
                "hint": mistake.hint,
                "family": mistake.family,
                "outcomes": outcomes_of(mistake.of, results),
            }
        )
    # a line a mistake: small files, and differences that can be read
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n"


def known_path(lesson: str) -> Path:
    return KNOWN / f"{lesson}.json"


def write_known() -> list[str]:
    """Write the files of all lessons; returns the lessons whose file changed."""
    changed = [lesson for lesson in lessons() if stale(lesson)]
    KNOWN.mkdir(exist_ok=True)
    for lesson in changed:
        known_path(lesson).write_text(cut_known(lesson), encoding="utf-8")
    return changed


def stale(lesson: str) -> bool:
    """Whether a lesson's file is not what its mistakes and checks give now.

    Compared as the diagnosis compares: the last digits of an answer depend on the processor.
    """
    path = known_path(lesson)
    if not path.exists():
        return True
    return not alike(json.loads(path.read_text(encoding="utf-8")), json.loads(cut_known(lesson)))
