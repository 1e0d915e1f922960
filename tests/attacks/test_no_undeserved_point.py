"""Every hostile file earns nothing but what it does honestly, and touches nothing."""

import json
import socket

import pytest

from autograder.authoring.sources import reference_source
from autograder.judge import judging
from autograder.judge.judging import judge_files
from autograder.judge.sandbox import WarmParent
from autograder.judge.verdict import Verdict

from .forms import FORMS, Form, Scene
from .forms.base import WORD, module
from .scenes import contents, descendants, forget_peak, left_in_the_kernel, peak, visitors

SECRET = b"of a class that is not there....."
LARGEST_VERDICT = 200_000  # bytes
MOST_MEMORY = 1 << 30  # bytes that one file may make the driver use
SOURCES = [form for form in FORMS if form.kind == "source"]


def judged(form: Form, scene: Scene, parent: WarmParent) -> Verdict:
    files = form.make(scene)
    assert isinstance(files, dict)
    return judge_files(files, [form.lesson], parent, SECRET)


@pytest.mark.parametrize("form", SOURCES, ids=lambda form: f"{form.attack:02}_{form.name}")
def test_a_hostile_file_earns_nothing(
    form: Form, place: tuple[Scene, socket.socket], parent: WarmParent
) -> None:
    scene, listener = place
    before, family, memory = contents(scene.folder), descendants(), forget_peak()
    verdict = judged(form, scene, parent)
    assert peak() - memory < MOST_MEMORY
    assert descendants() <= family
    assert left_in_the_kernel() == []
    checks = verdict.lessons[form.lesson].checks
    undeserved = {check.id: check.earned for check in checks if check.id not in form.fair}
    assert sum(undeserved.values()) == 0, {k: v for k, v in undeserved.items() if v}
    assert all(check.cause for check in checks if check.id not in form.fair)
    told = json.dumps(verdict.as_data())
    assert len(told) < LARGEST_VERDICT
    assert scene.word not in told
    assert WORD not in told
    hidden = [(check.message, check.hint, check.mistake) for check in checks if check.hidden]
    assert "LEAK" not in str(hidden)
    assert contents(scene.folder) == before
    assert visitors(listener) == 0


def test_what_visible_checks_tell_is_the_same_whatever_the_secret_is(parent: WarmParent) -> None:
    """The file remembers each input, and tells all of them later: drawn ones must not be there."""
    source = """
        seen = []

        def top_k_filter(logits, k):
            seen.append(logits.flatten()[:3].tolist())
            raise ValueError(f"{seen}")
        """
    files = module(source)
    told = [
        judge_files(files, ["top_k"], parent, secret).lessons["top_k"].checks
        for secret in (SECRET, bytes(reversed(SECRET)))
    ]
    assert told[0] == told[1]


def test_the_judge_is_what_it_was_after_all_that(
    scene: Scene, parent: WarmParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same warm parent gives an honest file its points, after each kind of attack."""
    one_each = {form.attack: form for form in SOURCES if form.attack not in (9, 24)}
    honest = {"top_k": reference_source("top_k").encode()}
    for form in one_each.values():
        judged(form, scene, parent)
    monkeypatch.setattr(judging, "SECONDS", 20.0)
    lesson = judge_files(honest, ["top_k"], parent, SECRET).lessons["top_k"]
    assert lesson.score == lesson.max


def test_every_attack_has_forms_each_with_a_claim() -> None:
    assert {form.attack for form in FORMS} == set(range(1, 26))
    assert len({(form.attack, form.name) for form in FORMS}) == len(FORMS)
    for form in FORMS:
        assert form.claim.endswith((".", "`")), form.name
