"""Whose own lines are alike: leads for a conversation, never proof.

From each file the lines of the stub and of the reference are taken away first. What is left is read
as copydetect reads it, by kinds of tokens, so that other names and other comments change nothing.
Short functions have few natural forms: what many learners share is told apart from what few do.
"""

from __future__ import annotations

import io
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

LENGTH = 25  # signs of copydetect's token text that a fragment has; its own default
WINDOW = 13  # of so many fragments in a row one is kept for finding pairs
LARGEST = 40_000  # bytes of a file that are looked at: the reference's longest has 14,000
FEWEST = 5  # fragments that only few share, below which a pair is no lead
MOST_LEADS = 100
MOST_COMPARED = 400
EXCERPT = 500


@dataclass(frozen=True)
class Same:
    """Learners whose own lines are the same text, comments and names included."""

    students: tuple[str, ...]
    lines: int
    excerpt: str


@dataclass(frozen=True)
class Alike:
    """Two learners whose own lines are alike by kinds of tokens."""

    students: tuple[str, str]
    shares: tuple[float, float]  # of each one's own code that the other's has too
    rare: int  # shared fragments that hardly anyone else has
    excerpt: str  # of the first one's file


@dataclass(frozen=True)
class Leads:
    """What was found among `files` files."""

    files: int
    same: list[Same]
    alike: list[Alike]


def own_lines(source: str, given: Iterable[str]) -> str:
    """The lines of a file that are in none of the `given` texts, but for blanks."""
    known = {_bare(line) for text in given for line in text.splitlines()} | {""}
    return "\n".join(line for line in source.splitlines() if _bare(line) not in known)


def find_leads(files: Mapping[str, bytes], given: Iterable[str]) -> Leads:
    """Leads among the files of a class, by student; `given` are stub and reference."""
    known = list(given)
    own = {
        student: own_lines(data[:LARGEST].decode("utf-8", "replace"), known)
        for student, data in sorted(files.items())
    }
    groups: dict[str, list[str]] = defaultdict(list)
    for student, source in own.items():
        groups["\n".join(_bare(line) for line in source.splitlines())].append(student)
    # who wrote the same to the letter is in one group, and compared with others once
    alike = _alike({students[0]: own[students[0]] for students in groups.values()}, len(files))
    same = [
        Same(tuple(students), len(text.splitlines()), own[students[0]][:EXCERPT])
        for text, students in groups.items()
        if len(students) > 1 and len(text) >= 2 * LENGTH
    ]
    same.sort(key=lambda group: (-group.lines, group.students))
    return Leads(len(files), same[:MOST_LEADS], alike)


def _alike(own: Mapping[str, str], size: int) -> list[Alike]:
    from copydetect import CodeFingerprint, compare_files
    from copydetect.utils import filter_code

    fragments = {
        student: _fragments(filter_code(source, "lesson.py", "python")[0])
        for student, source in own.items()
    }

    @lru_cache(maxsize=50)
    def whole(student: str) -> Any:
        # a window of 1 keeps all fragments: Python's hash of a text is another in each run, and
        # would choose others
        text = io.StringIO(own[student])
        return CodeFingerprint("lesson.py", LENGTH, 1, language="python", fp=text)

    found = []
    for (one, other), rare in _pairs(fragments, min(20, max(5, size // 10))):
        first, second = whole(one), whole(other)
        shared, shares, slices = compare_files(first, second)
        if not shared:
            continue  # other fragments may have the same numbers, and somebody may look for some
        begin, end = (int(side[0]) for side in slices[0])
        excerpt = first.raw_code[begin:end][:EXCERPT]
        found.append(Alike((one, other), (_share(shares[0]), _share(shares[1])), rare, excerpt))
    found.sort(key=lambda lead: (-lead.rare * max(lead.shares), lead.students))
    return found[:MOST_LEADS]


def _pairs(fragments: Mapping[str, set[int]], common: int) -> list[tuple[tuple[str, str], int]]:
    """Pairs and how many fragments they share that at most `common` files have, most first."""
    holders: dict[int, list[str]] = defaultdict(list)
    for student, own in fragments.items():
        for fragment in own:
            holders[fragment].append(student)
    shared: Counter[tuple[str, str]] = Counter()
    for students in holders.values():
        if len(students) <= common:
            shared.update(combinations(sorted(students), 2))
    enough = [(pair, count) for pair, count in shared.items() if count >= FEWEST]
    return sorted(enough, key=lambda found: (-found[1], found[0]))[:MOST_COMPARED]


def _fragments(tokens: str) -> set[int]:
    """The least of every few neighbouring fragments' numbers, the same in every run (winnowing)."""
    data = tokens.encode("utf-8", "replace")
    numbers = [zlib.crc32(data[place : place + LENGTH]) for place in range(len(data) - LENGTH + 1)]
    return {
        min(numbers[place : place + WINDOW])
        for place in range(max(1, len(numbers) - WINDOW + 1))
        if numbers
    }


def _share(share: float) -> float:
    """A plain number; overlapping fragments may count a little more than there is."""
    return min(1.0, float(share))


def _bare(line: str) -> str:
    return " ".join(line.split())
