"""A learner's file of a lesson, put together from accepted variants as a person would write it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from autograder.authoring.layout import ROOT
from autograder.bank import Implementation, find_bank

Definition = ast.FunctionDef | ast.ClassDef


def written_by_hand(lesson: str, stub: str, names: Sequence[str]) -> str:
    """The text of `stub` with the variants `names` of its functions in place of its own.

    What a variant uses (imports, helpers) comes along above it. A name of a variant by edit must
    stand alone: it gives the whole file.
    """
    variants = find_bank("variants", lesson).implementations
    chosen = [variants[name] for name in names]
    edited = _edited_text(chosen[0])
    if edited is not None:
        assert len(chosen) == 1
        return edited
    page = _Page(lesson)
    for variant in chosen:
        stub = page.put(variant, stub)
    return page.with_what_is_used(stub)


def _edited_text(variant: Implementation) -> str | None:
    """The solution's text with the edits of a variant by edit; None for any other variant."""
    spec = variant.build().__spec__
    source = spec.loader.source if spec is not None else None  # type: ignore[union-attr]
    return None if source is None else source.decode()


class _Page:
    """The module of a lesson's variants, to copy from; remembers what was copied."""

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self.text = (ROOT / "autograder" / "variants" / f"{lesson}.py").read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.used: set[str] = set()

    def put(self, variant: Implementation, stub: str) -> str:
        """`stub` with the variant, under its right name, in place of the function it is of."""
        node = next(
            node
            for node in self.tree.body
            if isinstance(node, Definition) and node.name == variant.name
        )
        place = next(
            place
            for place in ast.parse(stub).body
            if isinstance(place, Definition) and place.name == variant.of
        )
        self.use(node)
        lines = stub.splitlines()
        text = self.source(node).replace(variant.name, variant.of, 1)
        lines[place.lineno - 1 : place.end_lineno] = text.splitlines()
        return "\n".join(lines) + "\n"

    def use(self, node: ast.AST) -> None:
        """Note what `node` uses of its module, and what that uses."""
        # all but the bank, which the decorator of a variant speaks of
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"bank"}
        for other in self.tree.body:
            for name in _bound(other) & names - self.used:
                self.used.add(name)
                self.use(other)

    def with_what_is_used(self, stub: str) -> str:
        """`stub` with the imports and helpers of its variants below its own imports."""
        last = max(
            node.end_lineno or 0
            for node in ast.parse(stub).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        )
        wanted = [node for node in self.tree.body if _bound(node) & self.used]
        lines = stub.splitlines()
        lines[last:last] = "\n\n".join(self.source(node) for node in wanted).splitlines()
        return "\n".join(lines) + "\n"

    def source(self, node: ast.stmt) -> str:
        """The text of a statement, for a file that stands in `course_lib`."""
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("solutions"):
            _, _, sibling = (node.module or "").partition(".")
            if sibling in ("", self.lesson):
                return ""  # the file itself
            return ast.unparse(ast.ImportFrom(sibling, node.names, level=1))
        text = ast.get_source_segment(self.text, node)
        assert text is not None
        # a variant speaks of the other functions of `solution`; here they are of the same file
        return text.replace("solution.", "")


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement at the top of a module gives a meaning to."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, Definition):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return set()
