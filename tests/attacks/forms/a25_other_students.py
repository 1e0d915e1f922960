"""25: another student's files, and what the instructor keeps."""

from .base import SEEN, Files, Forms, Scene, hostile

forms = Forms(25)


@forms.source(control="unsandboxed")
def by_path(scene: Scene) -> Files:
    """A file beside the grader's is read and told in an exception."""
    return hostile(
        inside=f"""
        try:
            told = open({str(scene.secret)!r}).read()
        except OSError as error:
            told = str(error)
        raise ValueError(told)
        """
    )


@forms.source()
def by_every_other_way(scene: Scene) -> Files:
    """By a descriptor that is open already, by /proc, by mapping, by other users' folders."""
    return hostile(
        inside=f"""
        import glob, mmap, os

        told = []
        paths = [{str(scene.secret)!r}, f"/proc/self/root{scene.secret}",
                 f"/proc/1/root{scene.secret}", f"/proc/{{os.getppid()}}/root{scene.secret}",
                 *glob.glob("/proc/*/fd/*"), *glob.glob("/home/*/*"), *glob.glob("/root*/*"),
                 *glob.glob("/tmp/*/*"), "/etc/shadow", "/etc/passwd"]
        for path in paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                told.append(os.read(descriptor, 10_000).decode(errors="replace"))
            except OSError:
                pass
        for number in range(1024):
            try:
                told.append(os.pread(number, 10_000, 0).decode(errors="replace"))
            except OSError:
                pass
        raise ValueError(" ".join(text[-2000:] for text in told if {scene.word[:8]!r} in text))
        """
    )


@forms.source()
def by_listing(scene: Scene) -> Files:
    """Folders are listed: names tell who else handed in."""
    return hostile(
        at_import=SEEN,
        inside=f"""
        import os

        told = []
        for folder in ("{scene.folder}", "{scene.folder.parent}", "{scene.root}", "/", "/tmp", "."):
            try:
                told += os.listdir(folder)
            except OSError:
                pass
        raise ValueError(seen({scene.secret.name!r} in told))
        """,
    )


@forms.source()
def what_another_left(scene: Scene) -> Files:
    """Shared memory, temporary files and caches of whoever was judged before."""
    return hostile(
        at_import=SEEN,
        inside="""
        import os

        told = []
        for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~")):
            for place, folders, files in os.walk(folder):
                told += [os.path.join(place, name) for name in files]
        raise ValueError(seen(told))
        """,
    )
