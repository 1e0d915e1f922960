"""Which installed packages the sandbox shows: those that the course's code needs, and theirs."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.machinery import all_suffixes
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# what a learner's module may import beside the standard library; transformers is not among them,
# or its samplers could be called instead of written
SHOWN = ("torch", "jaxtyping", "numpy", "tokenizers", "safetensors", "matplotlib")


def closure(names: Iterable[str] = SHOWN) -> list[Distribution]:
    """The distributions of these names and all that they require, if they are installed."""
    # the warm parent imports this module with the others, before it can find any package
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    seen = set()
    left = list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for line in found[name].requires or []:
            requirement = Requirement(line)
            # one without an extra: what `pip install name` brings
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    return list(found.values())


def entries(distributions: Iterable[Distribution]) -> set[Path]:
    """The files and folders in site-packages that the distributions put there."""
    found = set()
    for known in distributions:
        for file in known.files or []:
            first = file.parts[0]
            if first == "__pycache__":  # shared by all modules that are one file
                found.add(Path(str(known.locate_file(file))))
            elif first != ".." and not first.endswith(".pth"):
                found.add(Path(str(known.locate_file(first))))
    return {path for path in found if path.exists()}


def top_level(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Module name -> the folders in which it is to be looked for, of such entries."""
    found: dict[str, list[str]] = {}
    for path in paths:
        suffix = next((s for s in all_suffixes() if path.name.endswith(s)), "")
        name = path.name.removesuffix(suffix)
        if name.isidentifier() and name != "__pycache__" and path.parent.name != "__pycache__":
            places = found.setdefault(name, [])
            if str(path.parent) not in places:
                places.append(str(path.parent))
    return found
