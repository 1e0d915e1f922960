"""13: the solutions are imported, or read from the disk."""

from .base import SEEN, Files, Forms, Scene, hostile, module

forms = Forms(13)


@forms.source(control="in process")
def by_import(scene: Scene) -> Files:
    """`from solutions.top_k import top_k_filter`."""
    return module("from solutions.top_k import top_k_filter")


@forms.source()
def by_import_of_the_grader(scene: Scene) -> Files:
    """Solutions and hidden checks by every package that has them."""
    return module(
        """
        import importlib

        for name in ("autograder.bank", "autograder.hidden.top_k", "autograder.judge.judging",
                     "autograder.variants.top_k", "course_lib.checks.top_k"):
            try:
                found = importlib.import_module(name)
            except ImportError:
                continue
            for holder in (found, getattr(found, "reference", None)):
                top_k_filter = getattr(holder, "top_k_filter", globals().get("top_k_filter"))
        """
    )


@forms.source(control="unsandboxed")
def by_path(scene: Scene) -> Files:
    """The file is read and run."""
    return hostile(
        at_import=f"""
        try:
            exec(open({str(scene.root / "solutions" / "top_k.py")!r}).read())
        except OSError:
            pass
        """
    )


@forms.source()
def by_search(scene: Scene) -> Files:
    """All folders that can be listed are searched for it."""
    return hostile(
        at_import="""
        import os, sys

        found = None
        for top in ["/", *sys.path, os.getcwd() if os.path.exists(".") else "/"]:
            for folder, folders, files in os.walk(top):
                if folder.startswith(("/proc", "/sys", "/usr", "/lib")):
                    folders[:] = []
                    continue
                if folder.endswith("solutions") and "top_k.py" in files:
                    found = os.path.join(folder, "top_k.py")
        if found:
            exec(open(found).read())
        """
    )


@forms.source()
def by_sources_in_memory(scene: Scene) -> Files:
    """linecache, inspect, loaders and code objects may know sources that no file tells."""
    return hostile(
        at_import=SEEN,
        inside="""
        import gc, linecache, sys

        sources = ["".join(entry[2]) for entry in linecache.cache.values() if len(entry) > 2]
        for loaded in list(sys.modules.values()):
            loader = getattr(loaded, "__loader__", None)
            for name in ("solutions.top_k", "autograder.hidden.top_k"):
                try:
                    sources.append(loader.get_source(name) or "")
                except Exception:
                    pass
        for thing in gc.get_objects():
            if isinstance(thing, str) and "threshold = " in thing:
                sources.append(thing)
        marker = "".join(["logits.masked_fill(logits ", "< threshold, -torch.inf)"])
        raise RuntimeError(seen(any(marker in text for text in sources)))
        """,
    )
