"""Packs of a student who has read how packs are read: memory, time, names, and whose they are."""

from __future__ import annotations

import io
import random
import re
import struct
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path, PurePosixPath

import pytest
from rich.console import Console

from autograder import archive, cli, members
from autograder.archive import read_pack
from autograder.authoring.layout import ROOT
from autograder.authoring.strip import strip
from autograder.classroom import Classroom, find_classroom, graded_lessons
from autograder.collect import Receipt, Refused, collect
from autograder.errors import CourseError
from autograder.grade_commands import Handover, run_collect, run_judge
from autograder.judge.verdict import LessonVerdict, Verdict
from autograder.members import BrokenPack, quoted
from autograder.packs import platform_owner
from autograder.submission import read_handed, read_submission, stub, wanted
from tests.attacks.scenes import forget_peak, peak
from tests.grading import fake
from tests.grading.conftest import WHEN
from tests.grading.packs import LESSON, REFERENCE, STUB, answered, work, write_folder, write_zip
from tests.grading.test_collect import module_of, take_in, taken, zipped

MOST_MEMORY = 60 << 20
# marks that could be read in two ways at each blank, and one that is none: a regular expression
# would try all of them
ENDLESS = "copy " * 45 + "x"
READER = """
import sys
from pathlib import PurePosixPath
from autograder.members import Member, Pack
from autograder.submission import sort_out, wanted
for suffix in (".py", ".ipynb"):
    path = PurePosixPath(sys.argv[1] + suffix)
    wanted(path)
    sort_out(Pack([Member(path, b"{}")]))
"""


# --- memory and time ---


def packed(data: bytes, method: int, times: int = 1) -> bytes:
    """A lesson's module, packed by some method."""
    out = io.BytesIO()
    info = zipfile.ZipInfo("course_lib/top_k.py")
    info.compress_type = method
    with zipfile.ZipFile(out, "w") as whole, whole.open(info, "w") as file:
        for _ in range(times):
            file.write(data)
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_unpacks_a_whole_block_at_once_is_refused(
    tmp_path: Path, method: int
) -> None:
    """A hundred bytes of bzip2 are 100 MB, before anybody could count them."""
    (tmp_path / "mallory.zip").write_bytes(packed(bytes(1 << 20), method, 100))
    memory = forget_peak()
    with pytest.raises(BrokenPack, match="rare method"):
        read_handed(tmp_path / "mallory.zip")
    assert peak() - memory < MOST_MEMORY


def test_zipfile_itself_unpacks_it_before_anybody_can_count() -> None:
    data = packed(bytes(1 << 20), zipfile.ZIP_BZIP2, 30)
    with zipfile.ZipFile(io.BytesIO(data)) as whole, whole.open("course_lib/top_k.py") as file:
        file.read(1)
        assert len(file._readbuffer) > 10_000 * len(data)  # type: ignore[attr-defined]


def test_zips_within_a_pack_share_what_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by itself is small enough; together they would fill the memory."""
    monkeypatch.setattr(members, "TOTAL", 2 << 20)
    chance = random.Random(0)
    inner = [zipped((f"{n}.ipynb", chance.randbytes(1 << 18))) for n in range(6)]
    whole = zipped(*((f"{n}.zip", data) for n, data in enumerate(inner)))
    (tmp_path / "mallory.zip").write_bytes(whole)
    with pytest.raises(BrokenPack, match="too large"):
        read_handed(tmp_path / "mallory.zip")


def test_zips_within_a_pack_share_the_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MEMBERS", 50)
    inner = zipped(*((f"{n}.txt", b"") for n in range(15)))
    write_folder(tmp_path / "mallory", {**work(), **{f"{n}.zip": inner for n in range(4)}})
    with pytest.raises(BrokenPack, match="more than 50 files"):
        read_handed(tmp_path / "mallory")


@pytest.mark.parametrize("name", [ENDLESS, "final copy " * 20 + "!", "copy" * 16_000 + "x"])
def test_no_name_takes_for_ever_to_read(name: str) -> None:
    """In a process of its own: a regular expression that tries everything ends in no lifetime."""
    command = [sys.executable, "-c", READER, name]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)


def test_what_is_in_one_students_file_does_not_close_the_zip_of_the_class(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a zip are counted in its list; a member may hold the same signs."""
    monkeypatch.setattr("autograder.packs.CLASS_MEMBERS", 100)
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as whole:
        path = write_zip(tmp_path / "zoe.zip", work())
        whole.write(path, "zoe.zip")
        whole.writestr(
            "mallory.zip", b"PK\x01\x02" * 100_000 + zipped(("course_lib/top_k.py", STUB))
        )
    results = take_in(classroom, tmp_path / "class.zip", whole_class=True, lesson=LESSON)
    assert [result.student for result in results if isinstance(result, Receipt)] == [
        "zoe",
        "mallory",
    ]


def damaged() -> list[bytes]:
    """A zip with a few bytes that are others, in many ways, its list most of all."""
    chance, whole = (
        random.Random(5),
        zipped(("course_lib/top_k.py", STUB), ("03_top_k.ipynb", b"{}")),
    )
    start = whole.find(b"PK\x01\x02")
    found = []
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 5)):
            data[chance.randrange(start if chance.random() < 0.8 else 0, len(data))] = (
                chance.choice((0, 1, 8, 20, 127, 128, 255, chance.randrange(256)))
            )
        found.append(bytes(data))
    return found


def test_whatever_is_damaged_is_a_broken_pack_or_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "mallory.zip"
    for data in damaged():
        path.write_bytes(data)
        try:
            read_handed(path)
        except BrokenPack as error:
            assert str(error).isprintable()


def test_a_list_that_is_said_to_be_huge_is_not_read(tmp_path: Path) -> None:
    whole = zipped(("course_lib/top_k.py", STUB))
    end = whole.rfind(b"PK\x05\x06")
    tail = bytearray(whole[end:])
    size = members.MEMBERS * archive.LONGEST_ENTRY + 1
    struct.pack_into("<II", tail, 12, size, 0)
    path = tmp_path / "mallory.zip"
    with path.open("wb") as file:
        file.truncate(size + 10)  # of holes
        file.seek(size + 10)
        file.write(tail)
    memory = forget_peak()
    with pytest.raises(BrokenPack, match="its list of files"):
        read_handed(path)
    assert peak() - memory < MOST_MEMORY


def test_a_receipt_is_no_list_of_twenty_thousand_files(
    classroom: Classroom, tmp_path: Path
) -> None:
    """Reports read all receipts; one pack could make each of them megabytes longer."""
    files = {f"{n:05}{'x' * 150}.txt": b"" for n in range(5_000)}
    (tmp_path / "mallory.zip").write_bytes(zipped(("03_top_k.ipynb", answered()), *files.items()))
    (receipt,) = take_in(classroom, tmp_path / "mallory.zip")
    assert isinstance(receipt, Receipt)
    (path,) = (classroom.kept / "receipts").rglob("*.json")
    assert path.stat().st_size < 400_000
    assert receipt.ignored[-1]["path"] == "and 4000 more"


# --- names ---

COMMANDS = "\x1b[2J\x1b]0;owned\x07\nzoe = top_k 0123456789ab\r\u202e\u2066"


@pytest.mark.parametrize(
    "names",
    [
        [f"Copy of 03_top_k {COMMANDS}.ipynb"],
        ["03_top_k.ipynb", f"{COMMANDS}.ipynb"],
        [f"{COMMANDS}/03_top_k.ipynb", "a/03_top_k.ipynb"],
        [f"{COMMANDS}.txt", "03_top_k.ipynb"],
    ],
    ids=["taken for it", "not taken", "not guessed between", "ignored"],
)
@pytest.mark.parametrize("form", ["zip", "folder", "zip in a zip", "loose"])
def test_no_name_in_a_pack_commands_a_terminal_or_writes_a_line(
    classroom: Classroom, tmp_path: Path, names: list[str], form: str
) -> None:
    files = {name: answered() + b" " * n for n, name in enumerate(names)}
    path = tmp_path / "in/mallory"
    if form == "folder":
        write_folder(path, files)
    elif form == "loose":
        loose = {f"mal_7_8_{name.replace('/', '-')}": data for name, data in files.items()}
        write_folder(path.parent, loose)
    else:
        data = zipped(*files.items())
        path = path.with_suffix(".zip")
        path.parent.mkdir()
        path.write_bytes(data if form == "zip" else zipped(("work.zip", data)))
    (result,) = collect(classroom, [path.parent], received=WHEN, whole_class=True)
    told = [result.student, result.origin]
    told += [result.line()] if isinstance(result, Receipt) else [result.why]
    assert all(text.isprintable() for text in told), told
    kept = [path.read_text("utf-8") for path in classroom.kept.rglob("*.json")]
    assert not any("\\u001b" in text or "\u202e" in text for text in kept)


def test_neither_does_the_name_of_a_pack(classroom: Classroom, tmp_path: Path) -> None:
    for name in (f"mallory{COMMANDS}", f"Mal{COMMANDS}_12_assignsubmission_file_", "\udcff"):
        write_folder(tmp_path / "in" / name, work())
    for result in collect(classroom, [tmp_path / "in"], received=WHEN, whole_class=True):
        told = (result.student, result.origin)
        assert isinstance(result, Receipt) or (*told, result.why)
        line = result.line() if isinstance(result, Receipt) else result.why
        assert all(text.isprintable() for text in (*told, line)), (told, line)


def test_no_name_ends_a_line_by_filling_it(classroom: Classroom, tmp_path: Path) -> None:
    """Where a screen's line ends, another student's receipt seemed to begin."""
    line = "zoe: top_k 0123456789ab"
    names = (f"{'x' * 70} {line}.txt", f"{' ' * 70}{line}.txt", f"Copy of 03_top_k {line}.ipynb")
    (receipt,) = collect(
        classroom,
        [write_folder(tmp_path / "mallory", dict.fromkeys(names, answered()))],
        received=WHEN,
    )
    assert isinstance(receipt, Receipt)
    # whatever a student named stands in quotes
    assert "zoe:" not in re.sub(r"'[^']*'", "", receipt.line())


@pytest.mark.parametrize("name", ["03_top_k (1).ipynb", "a/b c/Kopie-2.py", "naïve 文.txt"])
def test_ordinary_names_are_told_as_they_are(name: str) -> None:
    assert quoted(name) == name


def test_what_a_message_says_stands_apart_from_what_the_judge_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "top_k: 15 of 15 points"
    check = fake.check("top_k-ties", 1.0, "raised", f"x\n{line}\n{'.' * 74}{line}")
    verdict = Verdict({"top_k": LessonVerdict("top_k", [check])}, "lock")
    monkeypatch.setattr("autograder.judge.worker.judge_job", lambda job: verdict)
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    pack = write_folder(tmp_path / "mallory", work())
    run_judge(Console(file=out, width=80, soft_wrap=True), pack, [], False, None, "reference", True)
    own = [told for told in out.getvalue().splitlines() if not told.startswith("      ")]
    assert own == [
        "top_k: 0 of 1 points; visible 0/1 passed, hidden not run",
        "  ✗ failed: claim of top_k-ties (0 of 1 points)",
        "sandbox: lock",
    ]


def test_an_id_is_no_picture() -> None:
    with cli.console.capture() as said:
        cli.console.print("a:warning:b")
    assert said.get() == "a:warning:b\n"


# --- links that come while a folder is read ---


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(tmp_path: Path) -> None:
    """By the time that a folder is opened, it may be another than what was looked at."""
    write_folder(tmp_path / "solutions", {"top_k.py": b"SECRET"})
    folder = write_folder(tmp_path / "mallory", {"a.ipynb": b"{}", "course_lib/top_k.py": STUB})

    def swapping(path: PurePosixPath) -> bool:
        if path.name == "a.ipynb":  # the first that is asked for
            (folder / "course_lib").rename(folder / "gone")
            (folder / "course_lib").symlink_to(tmp_path / "solutions")
        return wanted(path)

    with pytest.raises(BrokenPack, match="cannot be read"):
        read_pack(folder, swapping)


def test_a_pack_that_becomes_a_link_is_not_followed(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("mallory", "zoe"):
        write_folder(tmp_path / "in" / student, work())
    packs = iter(collect(classroom, [tmp_path / "in"], received=WHEN, whole_class=True))
    original = Path.is_symlink

    def swapping(path: Path) -> bool:
        found = original(path)
        if path.name == "mallory" and not found:
            path.rename(tmp_path / "gone")
            path.symlink_to(tmp_path / "in/zoe")
        return found

    monkeypatch.setattr(Path, "is_symlink", swapping)
    first, second = packs
    assert isinstance(first, Refused)
    assert isinstance(second, Receipt)
    assert not (classroom.submitted / "mallory").exists()


# --- whose it is ---


@pytest.mark.parametrize(
    "name",
    [
        # Moodle lets people write their own names, and has blanks for underscores there
        "Mal 5 assignsubmission file_12_assignsubmission_file_",
        "Mal_5_assignsubmission_file__12_assignsubmission_file_",
        "a_5_88_x_12_assignsubmission_file_",
    ],
)
def test_a_students_own_name_does_not_bring_along_another_number(name: str) -> None:
    owner = platform_owner(name)
    if " " in name:
        assert owner is not None
        assert owner.student == "12"
    else:
        # no platform writes such a name: the first number is what a platform has put there
        assert owner is None or owner.student == "5"


def test_nothing_in_the_zip_of_a_class_is_left_untold(classroom: Classroom, tmp_path: Path) -> None:
    """Folders and files whose owner does not show were passed over in silence."""
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as whole:
        whole.write(write_zip(tmp_path / "alice.zip", work()), "alice.zip")
        for name, data in work().items():
            whole.writestr(f"bob/{name}", data)
        whole.writestr("carol.rar", b"Rar!")
        whole.writestr(".", b"")
        whole.writestr("__MACOSX/._alice.zip", b"")
    results = take_in(classroom, tmp_path / "class.zip", whole_class=True)
    assert taken(results[:1]) == {"alice": ["top_k"]}
    assert [result.student for result in results[1:]] == ["bob", "carol.rar"]
    assert all(isinstance(result, Refused) for result in results[1:])


@pytest.mark.parametrize(
    ("form", "other"),
    [
        *[(form, name) for form in ("folder", "zip") for name in ("ann .zip", "a\u0301nn.zip")],
        ("folder", "ann"),
    ],
)
def test_of_two_packs_of_one_name_neither_is_taken(
    classroom: Classroom, tmp_path: Path, other: str, form: str
) -> None:
    """Where people name their own packs, somebody may try to hand in for another."""
    true = "\u00e1nn.zip" if "\u0301" in other else "ann.zip"
    for name, module in ((true, REFERENCE), (other, STUB), ("bob.zip", REFERENCE)):
        path = tmp_path / "in" / name
        write_zip(path, work(module)) if name.endswith(".zip") else write_folder(path, work(module))
    source = tmp_path / "in"
    if form == "zip":
        with zipfile.ZipFile(tmp_path / "class.zip", "w") as whole:
            for path in sorted(source.iterdir()):
                whole.write(path, path.name)
        source = tmp_path / "class.zip"
    results = take_in(classroom, source, whole_class=True)
    assert [result.student for result in results if isinstance(result, Receipt)] == ["bob"]
    refused = [result for result in results if isinstance(result, Refused)]
    assert len(refused) == 2
    assert all("same student's" in result.why for result in refused)


def test_a_number_that_two_names_claim_is_nobodys(classroom: Classroom, tmp_path: Path) -> None:
    """A platform calls one student by one name, in however many folders and files."""
    folder = tmp_path / "in"
    for name in ("Zoe_12_assignsubmission_file_", "Mal_12_assignsubmission_file_", "13"):
        write_folder(folder / name, work())
    write_folder(folder, {"Ann_13_assignsubmission_file_top_k.py": REFERENCE})
    write_folder(folder / "Joe_14_assignsubmission_file_", work())
    write_folder(folder / "Joe_14_assignsubmission_onlinetext_", {"onlinetext.html": b"hello"})
    results = take_in(classroom, folder, whole_class=True)
    told = {(result.origin.rpartition("/")[2], type(result).__name__) for result in results}
    assert told == {
        ("Zoe_12_assignsubmission_file_", "Refused"),
        ("Mal_12_assignsubmission_file_", "Refused"),
        ("13", "Refused"),
        ("Ann_13_assignsubmission_file_top_k.py", "Refused"),
        ("Joe_14_assignsubmission_file_", "Receipt"),
        ("Joe_14_assignsubmission_onlinetext_", "Refused"),  # there is nothing of a lesson in it
    }


# --- history ---


def test_who_comes_back_to_an_earlier_version_keeps_both_receipts(
    classroom: Classroom, tmp_path: Path
) -> None:
    versions = (b"x = 1\n", b"x = 2\n", b"x = 1\n")
    for number, module in enumerate(versions):
        folder = write_folder(tmp_path / f"{number}/alice", work(module))
        take_in(classroom, folder, received=WHEN + timedelta(hours=number))
    kept = sorted((classroom.kept / "receipts/03_top_k").rglob("*.json"))
    assert len(kept) == 3


def test_a_former_submission_that_was_taken_away_leaves_room_for_the_next(
    classroom: Classroom, tmp_path: Path
) -> None:
    for number in range(4):
        if number == 3:
            former = classroom.kept / "former/03_top_k/alice"
            (former / "001").rename(tmp_path / "taken away")
        folder = write_folder(tmp_path / f"{number}/alice", work(b"x = %d\n" % number))
        take_in(classroom, folder, received=WHEN + timedelta(hours=number))
    assert module_of(classroom, "alice") == b"x = 3\n"
    assert sorted(path.name for path in former.iterdir()) == ["002", "003"]


def workspace(**modules: bytes) -> dict[str, bytes]:
    """What counts of a learner's whole folder, with some modules written."""
    known = graded_lessons()
    two = (known["top_k"], known["top_p"])
    files = {f"lessons/{one.slug}.ipynb": strip(one.notebook, ROOT) for one in two}
    files |= {f"course_lib/{one.name}.py": stub(one.name) for one in known.values()}
    return {**files, **{f"course_lib/{name}.py": module for name, module in modules.items()}}


def test_a_workspace_brings_no_earlier_lesson_along_anew(
    classroom: Classroom, tmp_path: Path
) -> None:
    """It was received again with the next lesson, and so late: a penalty for nothing."""
    first = workspace(top_k=REFERENCE)
    take_in(classroom, write_folder(tmp_path / "1/alice", first))
    later = WHEN + timedelta(days=7)
    second = workspace(top_k=REFERENCE, top_p=b"x = 1\n")
    # a notebook that was only run again says what it said
    second["lessons/03_top_k.ipynb"] = second["lessons/03_top_k.ipynb"].replace(
        b'"execution_count": null', b'"execution_count": 7'
    )
    (receipt,) = take_in(classroom, write_folder(tmp_path / "2/alice", second), received=later)
    assert isinstance(receipt, Receipt)
    assert (list(receipt.lessons), receipt.again) == (["top_k", "top_p"], ["top_k"])
    submission = read_submission(classroom, "alice", LESSON)
    assert submission.received == WHEN
    assert submission.files["top_p"] != b"x = 1\n"
    # of what is named, whatever it leans on may have become better
    (receipt,) = take_in(
        classroom, write_folder(tmp_path / "3/alice", second), received=later, lesson=LESSON
    )
    assert isinstance(receipt, Receipt)
    assert receipt.again == []


def test_work_on_the_lesson_itself_is_received_anew(classroom: Classroom, tmp_path: Path) -> None:
    files = workspace(top_k=REFERENCE, top_p=b"x = 1\n")
    take_in(classroom, write_folder(tmp_path / "1/alice", files))
    later = WHEN + timedelta(days=7)
    files["course_lib/top_k.py"] += b"# better\n"
    (receipt,) = take_in(classroom, write_folder(tmp_path / "2/alice", files), received=later)
    assert isinstance(receipt, Receipt)
    assert receipt.again == ["top_p"]
    assert read_submission(classroom, "alice", LESSON).received == later


# --- a pack that is stood in ---

TRAP = "import pathlib\npathlib.Path({!r}).write_text('owned')\n"


@pytest.mark.parametrize("below", ["", "work", "work/deeper"])
@pytest.mark.parametrize("command", ["judge", "collect"])
def test_a_configuration_in_a_pack_is_not_run_by_whoever_stands_in_it(
    classroom: Classroom,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    below: str,
    command: str,
) -> None:
    """It is Python, and it would also bring a secret seed that the student knows."""
    pack = write_folder(tmp_path / "mallory", {f"work/deeper/{n}": d for n, d in work().items()})
    proof = tmp_path / "proof"
    (pack / below / "nbgrader_config.py").write_text(TRAP.format(str(proof)))
    monkeypatch.chdir(pack / "work/deeper")
    console = Console(file=io.StringIO())
    with pytest.raises(CourseError, match="lies in what was handed in"):
        if command == "judge":
            run_judge(console, pack, [], False, None, "reference", False)
        else:
            run_collect(console, [pack], Handover())
    assert not proof.exists()


def test_nor_one_that_the_exchange_brought(
    classroom: Classroom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = classroom.submission("mallory", LESSON)
    proof = tmp_path / "proof"
    write_folder(place, {"nbgrader_config.py": TRAP.format(str(proof)).encode()})
    monkeypatch.chdir(place)
    with pytest.raises(CourseError, match="lies in what was handed in"):
        find_classroom()
    assert not proof.exists()


def test_a_class_within_another_ones_folder_is_found_as_ever(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = write_folder(classroom.root / "spring", {"nbgrader_config.py": b"c = get_config()\n"})
    monkeypatch.chdir(inner)
    assert find_classroom().root == inner
