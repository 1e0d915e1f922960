"""Implementations of the bank as files that a learner could have handed in."""

import ast
import builtins
import sys

import pytest

from autograder.authoring.needs import global_names, read
from autograder.authoring.proof import hidden_suite
from autograder.authoring.sources import as_source, reference_source, stub_source, with_stubs
from autograder.bank import SOLUTIONS, Implementation, find_bank
from course_lib.checks.kit import Check, find_suite, lessons, run_check
from course_lib.checks.load import load_source

# what needs more than its twelfth neighbours do: a decorator with an argument, a call of what it
# replaces, another mistake as its helper, a base class, another lesson, an import of its own
SPECIAL = {
    ("training", "compares_the_batch_only"),
    ("sampling", "zero_is_off"),
    ("sampling", "own_seed"),
    ("kv_cache", "LengthAsAttribute"),
    ("kv_cache", "by_lesson_one"),
    ("kv_cache", "in_inference_mode"),
    ("kv_cache", "as_a_prefill_of_one"),
    ("generate", "eval_mode_all_along"),
    ("generate", "one_plain_loop"),
    ("top_p", "fills_with_zero"),
}


def bank(lesson: str) -> list[Implementation]:
    return [
        one
        for kind in ("mistakes", "variants")
        for one in find_bank(kind, lesson).implementations.values()
    ]


def checks_of(lesson: str) -> list[Check]:
    suite = find_suite(lesson)
    assert suite is not None
    return [*suite.checks.values(), *hidden_suite(lesson).checks.values()]


def outcomes(lesson: str, source: str, only: list[Check] | None = None) -> list[tuple[str, str]]:
    module = load_source(lesson, SOLUTIONS, source)
    results = [run_check(check, module) for check in only or checks_of(lesson)]
    return [(result.id, result.cause) for result in results]


@pytest.mark.parametrize("lesson", lessons())
def test_a_source_does_in_the_checks_what_the_bank_builds(lesson: str) -> None:
    """A slice of the bank; `make proof` goes through all of it."""
    chosen = [
        one
        for number, one in enumerate(bank(lesson))
        if number % 12 == 0 or (lesson, one.name) in SPECIAL
    ]
    for one in chosen:
        built = one.build()
        expected = [(c.id, run_check(c, built).cause) for c in checks_of(lesson)]
        assert outcomes(lesson, as_source(one)) == expected, one.name


@pytest.mark.parametrize("lesson", lessons())
def test_a_source_stands_alone(lesson: str) -> None:
    for one in bank(lesson):
        text = read(as_source(one))
        known = {*text.bound, *text.imported, *dir(builtins)}
        assert not global_names("\n".join(text.lines)) - known, one.name
        for origin in text.imported.values():
            own = origin.module.startswith(".") and origin.module[1:] in lessons()
            top = origin.module.split(".")[0]
            assert own or top in {"torch", "jaxtyping", *sys.stdlib_module_names}, one.name


@pytest.mark.parametrize("lesson", lessons())
def test_a_source_does_not_say_what_it_is(lesson: str) -> None:
    for one in bank(lesson):
        source = as_source(one)
        assert "SOLUTION" not in source and "type: ignore" not in source
        assert f"def {one.name}(" not in source
        if one.hint:
            assert one.hint not in " ".join(source.split()), one.name


@pytest.mark.parametrize("lesson", lessons())
def test_the_reference_passes_and_the_stub_attempts_nothing(lesson: str) -> None:
    assert {cause for _, cause in outcomes(lesson, reference_source(lesson))} == {""}
    assert {cause for _, cause in outcomes(lesson, stub_source(lesson))} == {"not attempted"}


def test_two_mistakes_in_one_file_fail_what_each_of_them_fails() -> None:
    mistakes = find_bank("mistakes", "training").implementations
    pair = mistakes["compares_the_batch_only"], mistakes["first_position"]
    checks = [c for c in checks_of("training") if c.of in {one.of for one in pair}]
    both = dict(outcomes("training", as_source(*pair), checks))
    for one in pair:
        alone = dict(outcomes("training", as_source(one), checks))
        assert {c.id: both[c.id] for c in checks if c.of == one.of} == {
            c.id: alone[c.id] for c in checks if c.of == one.of
        }


def test_a_file_may_be_done_in_part() -> None:
    source = with_stubs(reference_source("kv_cache"), "kv_cache", ["prefill", "KVCache"])
    assert ast.parse(source)
    of = {check.id: check.of for check in checks_of("kv_cache")}
    causes = {
        (of[name].split(".")[0], cause) for name, cause in outcomes("kv_cache", source) if cause
    }
    assert causes == {
        ("KVCache", "not attempted"),
        ("prefill", "not attempted"),
        ("decode_step", "not attempted"),  # its checks fill a cache first
    }
