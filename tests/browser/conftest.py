"""A learner's workspace, JupyterLab in it, and a browser in front of it.

Run by `make test-browser` alone: pytest enters this folder only when it is named. The browser is a
Chromium that is installed already; none is ever downloaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from autograder.authoring.edition import cut_edition

from .lab import Lab, served

SCREENSHOTS = Path(__file__).parent / "screenshots"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """The path of a Chromium: CHROMIUM if it is set, else the first of the usual names."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def pytest_sessionstart() -> None:
    if chromium() is None:
        pytest.exit(
            "the browser tests need Chromium and there is none: `apt-get install chromium`, "
            "or name yours with CHROMIUM=/path/to/it",
            returncode=1,
        )
    shutil.rmtree(SCREENSHOTS, ignore_errors=True)
    SCREENSHOTS.mkdir()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"screenshots: {SCREENSHOTS}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A freshly cut edition, as `make study` gives it to a learner."""
    folder = tmp_path / "workspace"
    cut_edition(folder)
    return folder


@pytest.fixture
def lab(browser: Browser, workspace: Path, tmp_path: Path) -> Iterator[Lab]:
    """JupyterLab in the workspace, as a browser shows it. No error may have been logged."""
    with served(workspace, tmp_path / "home") as address:
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        lab = Lab(context.new_page(), address)
        yield lab
        context.close()
    assert lab.errors == []
