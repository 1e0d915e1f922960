"""What the judge found: plain data, which goes into the journal and comes out of it unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# why points are not earned, in the words that gradebook, feedback and reports use
CAUSES = (
    "wrong value",
    "wrong shape",
    "wrong type",
    "raised",
    "timed out",
    "out of memory",
    "ended early",
    "not attempted",
    "earlier lesson",
    "import failed",
    "missing file",
    "only the examples",
    "no right answer",
    "broken protocol",
)


@dataclass(frozen=True)
class CheckVerdict:
    """One check on one submission."""

    id: str
    hidden: bool
    of: str  # the function that it is about
    claim: str
    points: float
    earned: float
    cause: str = ""  # "" if passed, else one of CAUSES
    message: str = ""  # of a hidden check the claim only, never a value
    hint: str = ""
    mistake: str = ""  # the known mistake that answers alike

    @property
    def passed(self) -> bool:
        return not self.cause


@dataclass(frozen=True)
class LessonVerdict:
    """One lesson of one submission: `score` of `max` points."""

    lesson: str
    checks: list[CheckVerdict]

    @property
    def score(self) -> float:
        return sum(check.earned for check in self.checks)

    @property
    def max(self) -> float:
        return sum(check.points for check in self.checks)


@dataclass(frozen=True)
class Verdict:
    """All judged lessons of one submission."""

    lessons: dict[str, LessonVerdict]
    sandbox: str  # how the code was held: see autograder.judge.sandbox
    dependencies: str = "reference"  # or "own": what other lessons' functions were
    notes: list[str] = field(default_factory=list)  # leads for the instructor, no verdicts

    def as_data(self) -> dict[str, Any]:
        """As JSON data, scores included."""
        return {
            "lessons": {
                name: {
                    "score": lesson.score,
                    "max": lesson.max,
                    "checks": [asdict(check) for check in lesson.checks],
                }
                for name, lesson in self.lessons.items()
            },
            "sandbox": self.sandbox,
            "dependencies": self.dependencies,
            "notes": self.notes,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict that `as_data` gave."""
        lessons = {
            name: LessonVerdict(name, [CheckVerdict(**check) for check in lesson["checks"]])
            for name, lesson in data["lessons"].items()
        }
        return cls(lessons, data["sandbox"], data["dependencies"], list(data["notes"]))
