"""Manual grading in formgrader, as a teacher does it: write a grade, regrade, find it kept."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from autograder.authoring.layout import ROOT
from autograder.classroom import Classroom, read_classroom
from tests.grading.conftest import CONFIG
from tests.grading.packs import LESSON, REFERENCE, STUB, answered, notebook, work, write_zip

from .conftest import SCREENSHOTS
from .lab import SECONDS, free_port, wait_for_server

BEST = REFERENCE.replace(b"import torch\n", b"import torch  # mine\n", 1)


@pytest.fixture
def classroom(tmp_path: Path) -> Classroom:
    """A class of three, collected and graded by the commands."""
    root = tmp_path / "[test] a+b (c)"
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    write_zip(tmp_path / "in/Ada L.zip", work(REFERENCE, answered(b"A *fixed* list <b>fits</b>.")))
    write_zip(tmp_path / "in/bob+1.zip", work(STUB, notebook()))
    hostile = answered(b"<script>document.title = 'owned'</script> Words.")
    write_zip(tmp_path / "in/mallory.zip", work(REFERENCE, hostile))
    autograder(root, "collect", str(tmp_path / "in"))
    autograder(root, "grade", "--workers", "1")
    return read_classroom(root)


def autograder(root: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "autograder", *arguments],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}


@contextmanager
def formgrader(root: Path, home: Path) -> Iterator[tuple[str, str]]:
    """A Jupyter server with formgrader in the class's folder; gives its address and its token."""
    home.mkdir()
    port, token = free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "server", "--no-browser", "--allow-root"]
    command += ["--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={token}"]
    command += ["--ServerApp.jpserver_extensions=nbgrader.server_extensions.formgrader=True"]
    own = {f"JUPYTER_{name.upper()}_DIR": str(home / name) for name in ("config", "runtime")}
    log = home / "server.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            command, cwd=root, env=environment() | own, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for_server(server, f"{address}/api?token={token}", log)
        yield address, token
    finally:
        server.terminate()
        server.wait(timeout=SECONDS)


def open_submission(page: Page, address: str, student: str) -> None:
    """From the gradebook by clicks, as a person gets there."""
    page.goto(f"{address}/formgrader/gradebook")
    page.get_by_role("link", name=LESSON.slug).first.click()
    page.get_by_role("link", name=LESSON.slug).last.click()
    expect(page.get_by_text("Submission #1")).to_be_visible()
    # names stay hidden while one grades
    page.locator("#main-table tr", has_text=student).locator("a.name-hidden").click()
    expect(page.locator("#top_k-written")).to_be_visible()


def test_a_manual_grade_is_written_in_formgrader_and_kept_after_a_regrade(
    classroom: Classroom, browser: Browser, tmp_path: Path
) -> None:
    def shoot(what: str) -> None:
        page.screenshot(path=SCREENSHOTS / f"formgrader-{what}.png")

    with formgrader(classroom.root, tmp_path / "home") as (address, token):
        context = browser.new_context(viewport={"width": 1300, "height": 900})
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)

        page.goto(f"{address}/lab?token={token}")  # logs in
        page.goto(f"{address}/formgrader/manage_submissions/{LESSON.slug}")
        table = page.locator("#main-table")
        row = table.locator("tr", has_text="Ada L")
        expect(row.locator(".score")).to_have_text("15 / 17")
        expect(row.locator(".status")).to_have_text("needs manual grading")
        expect(table.locator("tr", has_text="bob+1").locator(".score")).to_have_text("0 / 17")
        expect(table.locator("tr", has_text="bob+1").locator(".status")).to_have_text("graded")
        shoot("1-submissions")

        open_submission(page, address, "Ada L")
        # the judge's verdict stands in the cells, and no hidden check's inputs do
        passed = page.locator("[role=status]", has_text="passed")
        expect(passed).to_have_count(19)
        score = page.locator("#top_k-written")
        score.scroll_into_view_if_needed()
        shoot("2-an-answer")
        cell = page.locator(".nbgrader_cell", has=score)
        with page.expect_response(lambda reply: "/api/grade/" in reply.url and reply.ok):
            score.fill("1.5")
            score.blur()
        comment = page.locator("#top_k-written-comment")
        with page.expect_response(lambda reply: "/api/comment/" in reply.url and reply.ok):
            comment.fill("Clear and to the point.")
            comment.blur()
        expect(cell).to_contain_text("A fixed list fits.")
        shoot("3-graded-by-hand")

        # handed in once more with the same answer, collected and graded: the grade is kept
        again = work(BEST, answered(b"A *fixed* list <b>fits</b>."))
        autograder(classroom.root, "collect", str(write_zip(tmp_path / "Ada L.zip", again)))
        autograder(classroom.root, "grade", "--workers", "1", "--regrade", "--yes")
        open_submission(page, address, "Ada L")
        expect(page.locator("#top_k-written")).to_have_value("1.5")
        expect(page.locator("#top_k-written-comment")).to_have_value("Clear and to the point.")

        # and so it is by formgrader's own button
        page.goto(f"{address}/formgrader/manage_submissions/{LESSON.slug}")
        expect(row.locator(".score")).to_have_text("16.5 / 17")
        row.locator(".autograde a").click()
        expect(page.locator("#success-modal")).to_be_visible()
        shoot("4-button")
        expect(row.locator(".score")).to_have_text("16.5 / 17")
        open_submission(page, address, "Ada L")
        expect(page.locator("#top_k-written")).to_have_value("1.5")
        page.locator("#top_k-written").scroll_into_view_if_needed()
        shoot("5-kept")

        # what a student wrote does not run in the teacher's page
        open_submission(page, address, "mallory")
        expect(page.get_by_text("document.title = 'owned'")).to_be_visible()
        assert page.title() == LESSON.slug
        context.close()
