"""Cut what each known mistake answers in the visible checks, as data for
`course_lib/checks/known/`.

A learner's folder then knows the mistakes by their answers, and holds none of their code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from course_lib.checks.diagnose import KNOWN, outcomes_of, unpack
from course_lib.checks.kit import find_suite, lessons, run_check
from course_lib.checks.record import alike

from ..bank import find_bank


def cut_known(lesson: str) -> list[dict[str, Any]]:
    """What each known mistake of a lesson answers: an entry a mistake, as `unpack` gives them."""
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
    return entries


def packed(entries: Sequence[dict[str, Any]]) -> str:
    """The JSON text of such entries, every answer written once; `unpack` reads it.

    An answer a line and a mistake a line: differences can be read.
    """
    checks = list(dict.fromkeys(check for entry in entries for check in entry["outcomes"]))
    texts: dict[str, dict[str, int]] = {check: {} for check in checks}
    mistakes = []
    for entry in entries:
        places: list[int | None] = []
        for check in checks:
            if check in entry["outcomes"]:
                seen = texts[check]
                places.append(seen.setdefault(json.dumps(entry["outcomes"][check]), len(seen)))
            else:
                places.append(None)
        mistakes.append(json.dumps({**entry, "outcomes": places}))
    answers = [f"{json.dumps(check)}: [\n" + ",\n".join(texts[check]) + "\n]" for check in checks]
    return (
        '{"answers": {\n'
        + ",\n".join(answers)
        + '\n},\n"mistakes": [\n'
        + ",\n".join(mistakes)
        + "\n]}\n"
    )


def known_path(lesson: str) -> Path:
    return KNOWN / f"{lesson}.json"


def write_known() -> list[str]:
    """Write the files of all lessons; returns the lessons whose file changed."""
    changed = [lesson for lesson in lessons() if stale(lesson)]
    KNOWN.mkdir(exist_ok=True)
    for lesson in changed:
        known_path(lesson).write_text(packed(cut_known(lesson)), encoding="utf-8")
    return changed


def stale(lesson: str) -> bool:
    """Whether a lesson's file is not what its mistakes and checks give now.

    Compared as the diagnosis compares: the last digits of an answer depend on the processor.
    """
    path = known_path(lesson)
    if not path.exists():
        return True
    written, now = path.read_text(encoding="utf-8"), packed(cut_known(lesson))
    return not alike(unpack(json.loads(written)), unpack(json.loads(now)))
