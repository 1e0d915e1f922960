"""The whole course as a learner takes it: lessons 1 to 8 in order, the later ones still stubs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder.authoring.edition import cut_edition
from autograder.authoring.layout import modules, stub_path
from tests.lessons.by_hand import written_by_hand

# an accepted variant for every function of a lesson. Those of lesson 8 lean on helpers of the
# reference, so there the file is the reference with another way to draw in it
VARIANTS = {
    "training": ["turns_the_axes", "adds_up_lists", "searches_from_the_end"],
    "temperature": ["subtracts_the_maximum", "leaves_the_zeros_out"],
    "top_k": ["scatters_exactly_k"],
    "top_p": ["shifts_the_mask_in_place", "min_p_in_logits"],
    "sampling": [
        "greedy_by_stable_sort",
        "cdf_by_a_wheel",
        "sample_row_by_row",
        "next_with_filters_only_where_set",
    ],
    "repetition": ["loops_over_sets", "counts_with_counter"],
    "kv_cache": [
        "compares_positions",
        "by_torch_itself",
        "ListOfTensors",
        "without_gradients",
        "as_a_prefill_of_one",
    ],
    "generate": ["multinomial"],
}


def course(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as the launcher does; nothing may come out as a traceback."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "course_lib", *arguments],
        cwd=workspace,
        env=os.environ | {"PYTHONPATH": str(workspace), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def check_all(workspace: Path) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit code of `course check`, and the results of each lesson."""
    done = course(workspace, "check", "--json")
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in modules()}
    for result in json.loads(done.stdout)["checks"]:
        results[result["lesson"]].append(result)
    return done.returncode, results


def is_waiting(result: dict[str, Any]) -> bool:
    """Whether a check says that its function, or one of an earlier lesson, is not written yet."""
    if result["passed"]:
        return False
    return not result["attempted"] or "is not written yet" in result["message"]


@pytest.mark.slow
def test_lessons_1_to_8_can_be_solved_in_order_each_with_the_later_ones_unwritten(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "my course"
    cut_edition(workspace)
    solved: set[str] = set()
    assert list(VARIANTS) == list(modules())
    for lesson, names in VARIANTS.items():
        file = stub_path(workspace, lesson)
        text = written_by_hand(lesson, file.read_text(encoding="utf-8"), names)
        file.write_text(text, encoding="utf-8")
        solved.add(lesson)
        code, results = check_all(workspace)
        for name, of_lesson in results.items():
            assert of_lesson, f"{name} has no checks"
            if name in solved:
                failed = [(r["id"], r["message"]) for r in of_lesson if not r["passed"]]
            else:
                failed = [(r["id"], r["message"]) for r in of_lesson if not is_waiting(r)]
            assert failed == [], f"with {lesson} just written"
        assert code == (0 if len(solved) == len(VARIANTS) else 1)
    told = course(workspace, "generate", "Once upon a time", "--greedy", "--max-new-tokens", "20")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("Once upon a time")
    assert "80 of 80 points" in " ".join(course(workspace, "progress").stdout.split())
