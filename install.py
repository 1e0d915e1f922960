"""Makes `.venv` beside this file and installs the course into it: `python3 install.py`.

Needs the standard library only, and any Python 3 can read it, so that one that is too old is told
so in a line. A second call does nothing until pyproject.toml or constraints.txt changes.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys

OLDEST_PYTHON = (3, 11)
NEEDED_BYTES = 3 * 1000**3

HERE = os.path.dirname(os.path.abspath(__file__))

# what pip says when it fails, and what a person can do about it; the first that fits is told
PIP_FAILURES = (
    (
        ("No space left on device", "not enough space on the disk"),
        "the disk of .venv or of the temporary folder is full; free some and run this again",
    ),
    (
        (
            "NewConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "Read timed out",
            "ProxyError",
            "SSLError",
            "Temporary failure in name resolution",
            "getaddrinfo failed",
            "Network is unreachable",
        ),
        "no network: pip cannot reach its package index; "
        "check the connection (or the proxy that pip uses) and run this again",
    ),
    (
        ("Permission denied", "Access is denied"),
        ".venv cannot be written; delete it (or see who owns it) and run this again",
    ),
)

PIP_STEPS = ("Collecting", "Downloading", "Installing")


class CannotInstall(Exception):
    """What a person has to mend first: one line that says how."""


def check_python(version: "tuple[int, ...]") -> None:
    """Raise CannotInstall if `version`, as in `sys.version_info[:3]`, is too old for the course."""
    if tuple(version[:2]) < OLDEST_PYTHON:
        raise CannotInstall(
            "this is Python {} and the course needs {} or later; install one and name it: "
            "python3.11 install.py (or: make study PYTHON=python3.11)".format(
                ".".join(map(str, version)), ".".join(map(str, OLDEST_PYTHON))
            )
        )


def check_venv() -> None:
    """Raise CannotInstall if this Python cannot make virtual environments (Debian's, at first)."""
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise CannotInstall(
            "this Python has no venv and ensurepip modules; "
            "on Debian or Ubuntu: apt-get install python3-venv, then run this again"
        )


def check_disk(free: int) -> None:
    """Raise CannotInstall if `free` bytes are too few for torch and JupyterLab."""
    if free < NEEDED_BYTES:
        raise CannotInstall(
            "the disk of {} has {:.1f} GB free and the course needs {:.0f} GB; "
            "free some and run this again".format(HERE, free / 1000**3, NEEDED_BYTES / 1000**3)
        )


def venv_python(home: str) -> str:
    """Where the interpreter of `home`'s virtual environment is, or will be."""
    if os.name == "nt":
        return os.path.join(home, ".venv", "Scripts", "python.exe")
    return os.path.join(home, ".venv", "bin", "python")


def stamp(home: str) -> str:
    """What `.venv/.installed` says when all is up to date: the folder, and a hash of the two files.

    The folder is there because a virtual environment that was moved no longer works.
    """
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(home, name), "rb") as file:
            digest.update(file.read())
    return "{}\n{}\n".format(home, digest.hexdigest())


def installed_stamp(home: str) -> str:
    """The stamp of the last completed installation; empty if none or if its Python is gone."""
    if not os.path.exists(venv_python(home)):
        return ""
    try:
        with open(os.path.join(home, ".venv", ".installed"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def extras(home: str) -> "list[str]":
    """The extras that `home`'s pyproject.toml offers: an edition for learners has fewer.

    Those of `make bench`, which compiles one from source, are left to it.
    """
    import tomllib  # came with Python 3.11, and the version is checked before

    with open(os.path.join(home, "pyproject.toml"), "rb") as file:
        offered = tomllib.load(file)["project"].get("optional-dependencies", {})
    return sorted(name for name in offered if not name.startswith("bench"))


def make_venv(home: str) -> None:
    """Make `.venv` from nothing; an old or half-made one is replaced."""
    check_venv()
    check_disk(shutil.disk_usage(home).free)
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", os.path.join(home, ".venv")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if made.returncode != 0:
        raise CannotInstall(explain(made.stdout, "python3 -m venv .venv failed"))


def pip_install(home: str) -> None:
    """Install the course with all its extras at the pinned versions.

    What pip says goes to `.venv/install.log`; a terminal shows the package it is at.
    """
    argv = [venv_python(home), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    argv += ["-c", "constraints.txt", "-e", ".[{}]".format(",".join(extras(home)))]
    path = os.path.join(home, ".venv", "install.log")
    with open(path, "w", encoding="utf-8") as log:
        pip = subprocess.Popen(
            argv,
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        said = ""
        for line in pip.stdout or ():
            said += line
            log.write(line)
            show(line)
    show("")
    if pip.wait() != 0:
        raise CannotInstall("{} (pip's log: {})".format(explain(said, "pip failed"), path))


def show(line: str) -> None:
    """Show what pip is at in the one line that a terminal has for it; an empty `line` clears it."""
    words = line.split()
    if not sys.stdout.isatty() or (words and words[0] not in PIP_STEPS):
        return
    width = shutil.get_terminal_size().columns - 1
    sys.stdout.write("\r" + " ".join(words)[:width].ljust(width) + ("" if words else "\r"))
    sys.stdout.flush()


def explain(said: str, otherwise: str) -> str:
    """One line for a failed step that `said` this: the known cause, else its last line of error."""
    for signs, mend in PIP_FAILURES:
        if any(sign in said for sign in signs):
            return mend
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines
    return "{}: {}".format(otherwise, errors[-1]) if errors else otherwise


def install(home: str) -> None:
    """Bring `home/.venv` up to date; returns at once if it is."""
    wanted = stamp(home)
    found = installed_stamp(home)
    if found == wanted:
        return
    check_python(tuple(sys.version_info[:3]))
    if not found.startswith(home + "\n"):
        print("making .venv with Python {}.{}".format(*sys.version_info[:2]), flush=True)
        make_venv(home)
    print("installing the course into .venv: a few minutes the first time", flush=True)
    pip_install(home)
    # last, so that an installation that was broken off is not taken for one that is done
    with open(os.path.join(home, ".venv", ".installed"), "w", encoding="utf-8") as file:
        file.write(wanted)
    print("installed", flush=True)


def main() -> int:
    """Install; returns 0, or 1 after one line on what has to be mended."""
    try:
        install(HERE)
    except CannotInstall as problem:
        sys.stderr.write("install: {}\n".format(problem))
        return 1
    except OSError as problem:
        sys.stderr.write("install: {}; mend that and run this again\n".format(problem))
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("install: stopped; run this again\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
