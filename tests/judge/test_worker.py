"""A worker's own memory has a wall."""

import subprocess
import sys

from autograder.authoring.layout import ROOT

SCRIPT = """
import sys
import torch
from autograder.judge.worker import limit_memory
if sys.argv[1] == "limited":
    limit_memory(1 << 28)
try:
    torch.empty(1 << 29, dtype=torch.uint8)
    print("took it")
except RuntimeError as error:
    print("refused")
"""


def said(how: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, how], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_worker_is_refused_what_is_beyond_its_room() -> None:
    assert said("limited") == "refused"
    assert said("free") == "took it"
