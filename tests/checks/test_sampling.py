"""The checks of lesson 5: what they tell a learner, whom they blame, and when they keep silent."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from autograder.authoring.proof import hidden_suite
from autograder.bank import SOLUTIONS, find_bank, with_edits
from course_lib.checks.diagnose import known_mistake
from course_lib.checks.kit import EARLIER_LESSON, Result, Suite, find_suite, run_check, run_lesson


@pytest.fixture(scope="module")
def suite() -> Suite:
    found = find_suite("sampling")
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A learner's folder in which every lesson is solved."""
    for file in SOLUTIONS.glob("*.py"):
        shutil.copy(file, tmp_path)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    source = file.read_text(encoding="utf-8")
    assert source.count(old) == 1
    file.write_text(source.replace(old, new), encoding="utf-8")


def results_of(suite: Suite, student: ModuleType) -> dict[str, Result]:
    return {name: run_check(check, student) for name, check in suite.checks.items()}


def failed(results: list[Result]) -> dict[str, list[Result]]:
    """The results that are not passed, by function."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if not result.passed:
            found.setdefault(result.of, []).append(result)
    return found


def named(results: dict[str, Result], function: str) -> str | None:
    found = known_mistake("sampling", function, list(results.values()))
    return found.name if found else None


# --- whom they blame ---

CUT = "keep_sorted[..., 1:] = mass[..., :-1] < p"


def test_a_wrong_nucleus_is_blamed_on_lesson_4(folder: Path) -> None:
    edit(folder / "top_p.py", CUT, "keep_sorted[..., 1:] = mass[..., 1:] < p")
    blamed = failed(run_lesson("sampling", folder=folder))
    assert set(blamed) == {"next_token"}
    for result in blamed["next_token"]:
        assert result.cause == EARLIER_LESSON
        assert result.hint == "`top_p_filter` (lesson 4) fails its own checks; mend it first"
        assert result.mistake is None


def test_greedy_is_not_excused_by_a_wrong_nucleus(folder: Path) -> None:
    edit(folder / "top_p.py", CUT, "keep_sorted[..., 1:] = mass[..., 1:] < p")
    edit(
        folder / "sampling.py",
        "return logits.argmax(dim=-1, keepdim=True)",
        "return logits.argmax(dim=0)[:, None]",
    )
    blamed = failed(run_lesson("sampling", folder=folder))
    assert EARLIER_LESSON not in {result.cause for result in blamed["greedy"]}
    assert {result.mistake for result in blamed["greedy"]} == {"argmax_down_the_batch_turned"}


def test_a_mistake_in_min_p_is_no_fault_of_next_token(folder: Path) -> None:
    edit(folder / "top_p.py", "probs < min_p *", "probs <= min_p *")
    assert all(result.passed for result in run_lesson("sampling", folder=folder))


def test_a_wrong_sampler_is_blamed_for_what_next_token_draws(folder: Path) -> None:
    """next_token looks as if it never drew; but it does, from a sampler that always takes the
    best."""
    edit(
        folder / "sampling.py",
        "return inverse_cdf(probs, u)",
        "return probs.argmax(-1, keepdim=True)",
    )
    blamed = failed(run_lesson("sampling", folder=folder))
    assert set(blamed) == {"sample", "next_token"}
    for result in blamed["next_token"]:
        assert (
            result.hint == "`sample`, which `next_token` uses, fails its own checks; mend it first"
        )
        assert result.mistake is None


def test_the_function_that_others_build_on_is_blamed_first(folder: Path) -> None:
    edit(
        folder / "sampling.py",
        "u[:, None], right=True",
        "u[:1].repeat(len(u))[:, None], right=True",
    )
    blamed = failed(run_lesson("sampling", folder=folder))
    assert set(blamed) == {"inverse_cdf", "sample", "next_token"}
    assert {result.mistake for result in blamed["inverse_cdf"]} == {"u_of_row_zero"}
    for function in ("sample", "next_token"):
        told = f"`inverse_cdf`, which `{function}` uses, fails its own checks; mend it first"
        assert {result.hint for result in blamed[function]} == {told}


# --- the diagnosis does not depend on how one draws ---

# the way that every learner goes: through the filters, always
PLAIN = (
    "    if (shortlist := _shortlist(logits, temperature, top_k, top_p)) is not None:\n"
    "        return _draw(shortlist, logits, generator)\n",
    "",
)

SAMPLERS = {
    "float64": ("probs.shape[0], dtype=torch.float64", "len(probs), dtype=torch.float64"),
    "float32": ("probs.shape[0], dtype=torch.float64", "len(probs)"),
    "multinomial": (
        "    return inverse_cdf(probs, u)",
        "    inverse_cdf(probs, u)\n    return torch.multinomial(probs, 1, generator=generator)",
    ),
}
MISTAKES = {
    "temperature_after_the_filters": (
        "logits = apply_temperature(logits - best, temperature)\n"
        "    logits = top_p_filter(top_k_filter(logits, top_k), top_p)",
        "logits = top_p_filter(top_k_filter(logits, top_k), top_p)\n"
        "    logits = apply_temperature(logits - best, temperature)",
    ),
    "top_p_before_top_k": (
        "logits = top_p_filter(top_k_filter(logits, top_k), top_p)",
        "logits = top_k_filter(top_p_filter(logits, top_p), top_k)",
    ),
    "generator_not_handed_on": (
        "sample(logits.exp(), generator)",
        "sample(logits.exp())",
    ),
    "softmax_twice": ("sample(logits.exp()", "sample(logits.softmax(-1).softmax(-1)"),
    "zero_is_off": (
        "if temperature == 0 or not do_sample:",
        "temperature = temperature or 1.0\n    if not do_sample:",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_mistake_is_known_whatever_the_sampler(suite: Suite, sampler: str, mistake: str) -> None:
    results = results_of(
        suite, with_edits("sampling", (PLAIN, SAMPLERS[sampler], MISTAKES[mistake]))
    )
    assert {result.of for result in results.values() if not result.passed} == {"next_token"}
    assert named(results, "next_token") == mistake


# --- when they keep silent ---


@pytest.mark.parametrize(
    "names",
    [
        ("top_p_before_top_k", "generator_not_handed_on"),
        ("zero_is_off", "temperature_after_the_filters"),
        ("generator_not_handed_on", "zero_is_off"),
    ],
    ids=" and ".join,
)
def test_a_double_fault_gets_no_hint(suite: Suite, names: tuple[str, str]) -> None:
    first, second = (MISTAKES[name] for name in names)
    results = results_of(suite, with_edits("sampling", (PLAIN, first, second)))
    assert not all(result.passed for result in results.values())
    assert named(results, "next_token") is None


@pytest.mark.parametrize(
    "change",
    [
        ("u = u.double()", "u = u.double().sqrt()"),
        ("cdf = probs.double()", "cdf = probs.double().sqrt()"),
        ("searchsorted(cdf, u[:, None]", "searchsorted(cdf, (u * u)[:, None]"),
    ],
    ids=["root of u", "root of the probabilities", "u squared"],
)
def test_an_unknown_mistake_gets_the_plain_difference(
    suite: Suite, change: tuple[str, str]
) -> None:
    results = results_of(suite, with_edits("sampling", (change,)))
    of_the_cdf = [r for r in results.values() if r.of == "inverse_cdf" and not r.passed]
    assert of_the_cdf
    for result in of_the_cdf:
        assert result.message.startswith("called inverse_cdf(probs=")
        assert "expected" in result.message
    assert named(results, "inverse_cdf") is None


# --- what they tell ---


def test_a_check_of_draws_tells_the_row_and_the_ids_that_came(suite: Suite) -> None:
    student = find_bank("mistakes", "sampling").implementations["never_draws"].build()
    message = results_of(suite, student)["sampling-next_support"].message
    assert message.splitlines()[-1] == (
        "400 draws from the row [1, 2, 0.5, 0.1] gave the ids {1}; expected {0, 1, 2, 3}"
    )


def test_a_check_of_shares_tells_counts_and_their_bounds(suite: Suite) -> None:
    student = find_bank("mistakes", "sampling").implementations["evenly_among_all"].build()
    message = results_of(suite, student)["sampling-sample_shares"].message
    assert "id 0 with probability 0.4 came" in message
    assert "times in 10000 draws; expected" in message


def test_points_of_the_lesson_add_up_to_ten(suite: Suite) -> None:
    assert sum(check.points for check in suite.checks.values()) == 10
    assert sum(check.points for check in hidden_suite("sampling").checks.values()) == 5


# --- samplers whose shares are right, and who are wrong all the same ---

WHOLE_BATCH = "u = torch.rand(probs.shape[0], dtype=torch.float64, generator=generator"


@pytest.mark.parametrize(
    "u",
    [
        "u = (torch.arange(len(probs)) + torch.rand((), generator=generator)) / len(probs)",
        "u = torch.rand(len(probs), generator=generator)\n"
        "    u[1::2] = 1 - u[: 2 * (len(u) // 2) : 2]",
        "u = torch.randint(100, (len(probs),), generator=generator) / 100",
    ],
    ids=["systematic", "antithetic", "in hundredths"],
)
def test_rows_that_share_their_chance_are_refused(u: str) -> None:
    line = WHOLE_BATCH + ", device=probs.device)"
    student = with_edits("sampling", ((line, u),))
    checks = hidden_suite("sampling").checks.values()
    assert [c.id for c in checks if c.of == "sample" and not run_check(c, student).passed] == [
        "sampling-hidden_sample_independent"
    ]
