"""What holds for all tests: the same examples in every run, one thread a process, no hub."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# set before torch is imported, and inherited by the commands that tests start: several test
# processes with several threads each only stand in each other's way
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "agg"

# derandomized: a test that passed yesterday fails today only if the code changed
settings.register_profile("course", derandomize=True, deadline=None, database=None)
settings.load_profile("course")

# they need Chromium and minutes: `make test-browser` names the folder, and then it is entered
collect_ignore = ["browser"]


@pytest.fixture(autouse=True)
def not_under_nbgrader(monkeypatch: pytest.MonkeyPatch) -> None:
    """nbgrader, run in this process, says so in the environment and leaves it there."""
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
