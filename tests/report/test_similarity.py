"""Whose own lines are alike: planted copies are found, natural likeness is not made a lead."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from copydetect import CodeFingerprint

from autograder.authoring.layout import ROOT, solution_path, stub_path
from autograder.authoring.sources import as_source
from autograder.bank import find_bank
from autograder.similarity import find_leads, own_lines

GIVEN = [path(ROOT, "top_k").read_text() for path in (stub_path, solution_path)]

OWN = """
def top_k_filter(logits, k):
    if k is None or k == 0:
        return logits.float()
    best = sorted(enumerate(logits[0].tolist()), key=lambda pair: (-pair[1], pair[0]))
    keep = {place for place, value in best[: int(k)]}
    rows = []
    for row in logits.tolist():
        row = [value if place in keep else float("-inf") for place, value in enumerate(row)]
        rows.append([value * 1.0 for value in row])
    answer = torch.tensor(rows, dtype=torch.float32)
    assert answer.shape == logits.shape, "the shape has changed on the way"
    return answer
"""
# the same with other names, comments and blanks
COPY = (
    OWN.replace("place", "index")
    .replace("value", "score")
    .replace("keep", "survivors")
    .replace("rows = []", "out = []  # gathers what is left\n")
    .replace("rows", "out")
    .replace("the shape has changed on the way", "bad shape")
)
OTHER = """
def top_k_filter(logits, k):
    while k and k > 0 and k < logits.shape[-1]:
        lowest = logits.min(dim=-1, keepdim=True).values
        smallest = torch.where(logits == lowest, -torch.inf, logits)
        count = torch.isfinite(smallest).sum(dim=-1)
        if bool((count <= k).all()):
            break
        logits = smallest
    return logits.to(torch.float32) if logits.dtype != torch.float32 else logits.clone()
"""


def filled(body: str) -> bytes:
    """The stub with its function written."""
    return f"{GIVEN[0]}\n{body}".encode()


def class_of(**files: str) -> dict[str, bytes]:
    return {student: filled(body) for student, body in files.items()}


def test_a_copy_under_other_names_is_found_and_an_independent_file_is_not() -> None:
    leads = find_leads(class_of(ada=OWN, eve=COPY, bob=OTHER), GIVEN)
    (lead,) = leads.alike
    assert lead.students == ("ada", "eve")
    assert min(lead.shares) > 0.8
    assert "sorted(enumerate(" in lead.excerpt
    assert leads.same == []


def test_the_same_lines_are_one_group_whatever_their_blanks() -> None:
    spaced = OWN.replace("    rows = []", "\n\n    rows =  []")
    leads = find_leads(class_of(ada=OWN, eve=spaced, mallory=OWN, bob=OTHER), GIVEN)
    (group,) = leads.same
    assert group.students == ("ada", "eve", "mallory")
    assert leads.alike == []


def test_stub_and_reference_alone_are_no_lead() -> None:
    stub, reference = (text.encode() for text in GIVEN)
    leads = find_leads({"a": stub, "b": stub, "c": reference, "d": reference}, GIVEN)
    assert (leads.same, leads.alike, leads.files) == ([], [], 4)


def test_what_everyone_writes_is_no_lead() -> None:
    """Forty learners with one helper in common, and else a line of their own each."""
    files = {f"s{n:02}": f"{OWN}\nresult_{n} = {'+'.join(['x'] * (n + 2))}\n" for n in range(40)}
    assert find_leads(class_of(**files), GIVEN).alike == []


@pytest.mark.parametrize("lesson", ["temperature", "top_k"])
def test_right_answers_of_different_shapes_are_no_lead(lesson: str) -> None:
    """Whoever writes one of the course's own variants has copied from nobody."""
    given = [path(ROOT, lesson).read_text() for path in (stub_path, solution_path)]
    files = {
        name: as_source(variant).encode()
        for name, variant in find_bank("variants", lesson).implementations.items()
    }
    leads = find_leads(files, given)
    assert (leads.same, leads.alike) == ([], [])


def test_own_lines_are_those_that_were_not_given() -> None:
    assert own_lines("import torch\n\n  x  = 1\ny = 2", ["import torch\nx = 1"]) == "y = 2"


def test_files_of_any_bytes_are_read() -> None:
    files = {
        "binary": bytes(range(256)) * 40,
        "empty": b"",
        "long line": b"x" * 300_000,
        "deep": b"(" * 50_000,
        "unclosed": b'"""' + b"a b c\n" * 1_000,
    }
    assert find_leads(files, GIVEN).files == 5


def test_another_run_finds_the_same() -> None:
    """Python's hash of a text differs from run to run; what is found must not."""
    program = (
        "import json, sys; from autograder.similarity import find_leads; "
        "print(find_leads({n: t.encode() for n, t in json.load(sys.stdin).items()}, []))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps({"ada": OWN, "eve": COPY, "bob": OTHER}),
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert "'ada', 'eve'" in min(told)
    assert len(told) == 1


def test_fragments_that_only_have_the_same_numbers_are_no_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A checksum is easily made to collide; that stopped the report of the whole class."""
    monkeypatch.setattr("autograder.similarity.zlib.crc32", lambda data: len(data) + data[0] % 8)
    monkeypatch.setattr("autograder.similarity.FEWEST", 1)
    other = "x = [[[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]]\n" * 9
    assert find_leads(class_of(ann=OWN, bob=other), GIVEN).alike == []


def test_each_file_is_read_once_however_many_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty friends with long files are 190 pairs: minutes, when each pair was read anew."""
    read: list[str] = []

    class Counting(CodeFingerprint):
        def __init__(self, *arguments: object, **options: object) -> None:
            read.append("once")
            super().__init__(*arguments, **options)

    monkeypatch.setattr("copydetect.CodeFingerprint", Counting)
    names = ("ann", "bob", "eve", "joe", "zoe")
    friends = {name: f"{OWN}\nx = {n}\n" for n, name in enumerate(names)}
    assert len(find_leads(class_of(**friends), GIVEN).alike) == 10
    assert len(read) == len(friends)
