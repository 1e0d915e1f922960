"""Packs made to harm: the lesson's own file is taken, or the pack is refused; no third thing."""

import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.classroom import Classroom, graded_lessons
from autograder.collect import Receipt, collect
from autograder.late import When, read_due_dates
from autograder.members import BrokenPack
from autograder.submission import read_handed, read_submission
from course_lib.checks.kit import lessons

from .forms import FORMS, Form, Scene
from .forms.base import hostile
from .scenes import contents, forget_peak, peak

PACKS = [form for form in FORMS if form.kind == "pack"]
MOST_MEMORY = 300 << 20
# of these nothing can be taken at all
REFUSED = {
    "a_module_of_zeros",
    "a_notebook_of_zeros",
    "a_size_that_is_a_lie",
    "overlapping_members",
    "files_without_number",
    "a_damaged_one",
}
LATE = datetime(2026, 11, 3, 12, tzinfo=UTC)


def written(form: Form, scene: Scene, folder: Path) -> Path:
    data = form.make(scene)
    assert isinstance(data, bytes)
    path = folder / "mallory.zip"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", PACKS, ids=lambda form: f"{form.attack:02}_{form.name}")
def test_of_a_pack_only_the_lessons_own_file_is_taken(
    form: Form, scene: Scene, tmp_path: Path
) -> None:
    path, before = written(form, scene, tmp_path), contents(scene.folder)
    memory = forget_peak()
    if form.name in REFUSED:
        with pytest.raises(BrokenPack):
            read_handed(path)
    else:
        handed = read_handed(path)
        assert handed.files() == hostile()
        assert not handed.notebooks
    assert peak() - memory < MOST_MEMORY
    assert contents(scene.folder) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["mallory.zip"]


def test_a_reader_who_does_not_count_unpacks_the_bomb(scene: Scene, tmp_path: Path) -> None:
    (form,) = [form for form in PACKS if form.name == "a_module_of_zeros"]
    path = written(form, scene, tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.read("course_lib/top_p.py")) > 500 * path.stat().st_size


def test_a_reader_who_joins_paths_is_led_astray(scene: Scene) -> None:
    (form,) = [form for form in PACKS if form.name == "paths_that_climb"]
    data = form.make(scene)
    assert isinstance(data, bytes)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        places = [(Path("/grader/unpacked") / name).resolve() for name in archive.namelist()]
    assert any(not place.is_relative_to("/grader/unpacked") for place in places)


@pytest.mark.parametrize(
    "form", [form for form in PACKS if form.attack == 19], ids=lambda form: form.name
)
def test_a_pack_cannot_say_when_it_came(form: Form, scene: Scene, tmp_path: Path) -> None:
    classroom, lesson = Classroom(tmp_path / "class", ""), graded_lessons()["top_k"]
    (receipt,) = collect(classroom, [written(form, scene, tmp_path)], lesson=lesson, received=LATE)
    assert isinstance(receipt, Receipt)
    submission = read_submission(classroom, "mallory", lesson)
    assert receipt.received == submission.received == LATE
    (tmp_path / "due.toml").write_text(
        'timezone = "UTC"\npercent = 10\n[top_k]\ndue = 2026-11-02T00:00:00\n'
    )
    dates = read_due_dates(tmp_path / "due.toml", lessons())
    assert dates.judge("mallory", "top_k", submission.received).when is When.LATE


def test_whoever_believes_a_packs_own_timestamp_takes_it_for_early(
    scene: Scene, tmp_path: Path
) -> None:
    """What nbgrader does with a folder that a student has filled: the file in it is the time."""
    (form,) = [form for form in PACKS if form.name == "in_nbgraders_file"]
    classroom, lesson = Classroom(tmp_path / "class", ""), graded_lessons()["top_k"]
    with zipfile.ZipFile(written(form, scene, tmp_path)) as archive:
        archive.extractall(classroom.submission("mallory", lesson))
    assert read_submission(classroom, "mallory", lesson).received.year == 2020
