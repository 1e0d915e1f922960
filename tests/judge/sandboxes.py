"""For the sandbox's tests: warm parents without torch, the course elsewhere, other users."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autograder.judge.sandbox import Limits, ladder
from autograder.judge.sandbox.children import try_out

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
ODD_NAME = "[test] a+b (c) größer"

SMALL = Limits(file_size=1 << 20)

# runs in a Python of its own: tries one rung, and tells what came out
REPORT = """
import json, sys
from autograder.judge.sandbox import Limits, SandboxError, children, control, ladder, selftest
rung = next(rung for rung in ladder.LADDER if rung.level == sys.argv[1])
try:
    process = ladder.start(rung, Limits(), ())
except SandboxError as error:
    print(json.dumps({"fault": str(error)}))
    sys.exit()
fault = selftest.fault(process, rung, Limits())
print(json.dumps({"fault": fault, "measures": selftest.measures(process, Limits())}))
process.close()
"""


@contextmanager
def warm(rung: ladder.Rung, imports: tuple[str, ...] = (), limits: Limits = SMALL) -> Iterator[Any]:
    """A function that runs code in a new child of one warm parent on this rung."""
    process = ladder.start(rung, limits, imports)
    try:
        yield lambda source, **arguments: try_out(process, source, arguments, limits)
    finally:
        process.close()


def for_anybody() -> Path | None:
    """A Python of this course's version or later that every user may run."""
    for python in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if python.exists() and all(f.stat().st_mode & 0o001 for f in python.parents):
            asked = subprocess.run(
                [python, "-c", "import sys; print(sys.version_info >= (3, 11))"],
                capture_output=True,
                text=True,
                check=True,
            )
            if asked.stdout.strip() == "True":
                return python
    return None


def copy_course(folder: Path) -> Path:
    """What the sandbox needs of the course, in a folder with an odd name that all may read."""
    home = folder / ODD_NAME
    shutil.copytree(ROOT / "autograder" / "judge", home / "autograder" / "judge")
    for name in ("__init__.py", "errors.py", "hidden/__init__.py"):
        (home / "autograder" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "autograder" / name, home / "autograder" / name)
    for name in ("given", "checks"):
        shutil.copytree(ROOT / "course_lib" / name, home / "course_lib" / name)
    shutil.copy(ROOT / "course_lib" / "__init__.py", home / "course_lib")
    # the one package that the driver needs for itself
    found = find_spec("packaging")
    assert found is not None and found.origin is not None
    shutil.copytree(Path(found.origin).parent, home / "packaging")
    return home


def report(home: Path, python: Path, level: str, user: int | None = None) -> dict[str, Any]:
    """What a rung does for the course in this folder, as this user."""
    other = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        [python, "-P", "-c", REPORT, level],
        cwd="/",
        env={"PYTHONPATH": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        **other,  # type: ignore[arg-type]  # mypy cannot tell which of run's arguments they are
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
