"""5: the gradebook is edited."""

from .base import Files, Forms, Scene, hostile

forms = Forms(5)


@forms.source(control="unsandboxed")
def by_sql(scene: Scene) -> Files:
    """An UPDATE on the gradebook's own file."""
    return hostile(
        at_import=f"""
        import sqlite3

        with sqlite3.connect({str(scene.gradebook)!r}) as book:
            book.execute("UPDATE grade SET auto_score = 198")
        """
    )


@forms.source()
def by_bytes(scene: Scene) -> Files:
    """The file is opened and written to, truncated, renamed, linked, made another's."""
    return hostile(
        at_import=f"""
        import os

        path = {str(scene.gradebook)!r}
        for attempt in (
            lambda: open(path, "r+b").write(b"198"),
            lambda: os.truncate(path, 0),
            lambda: os.rename(path, path + ".old"),
            lambda: os.unlink(path),
            lambda: os.link(path, "/tmp/book"),
            lambda: os.symlink("/dev/null", path + ".db"),
            lambda: os.chmod(path, 0),
            lambda: os.utime(path, (0, 0)),
            lambda: os.setxattr(path, "user.score", b"198"),
            lambda: os.mkdir(path + ".d"),
            lambda: os.mkfifo(path + "-journal"),
        ):
            try:
                attempt()
            except OSError:
                pass
        """
    )


@forms.source()
def by_another_program(scene: Scene) -> Files:
    """A shell and another python are to do it."""
    return hostile(
        at_import=f"""
        import os, subprocess, sys

        command = "import sqlite3; b = sqlite3.connect({str(scene.gradebook)!r}); " \\
                  "b.execute('UPDATE grade SET auto_score = 198'); b.commit()"
        for attempt in (
            lambda: subprocess.run([sys.executable, "-c", command], timeout=5),
            lambda: os.system("echo 198 > {scene.gradebook}"),
            lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "rm {scene.gradebook}"], {{}}),
            lambda: os.execv("/bin/sh", ["sh", "-c", "rm {scene.gradebook}"]),
        ):
            try:
                attempt()
            except Exception:
                pass
        """
    )
