"""All forms of all attacks, as hostile submissions, by the number of the attack."""

from importlib import import_module
from pathlib import Path

from .base import Form, Forms, Scene

__all__ = ["FORMS", "Form", "Scene"]


def _all_forms() -> list[Form]:
    found: list[Form] = []
    for path in sorted(Path(__file__).parent.glob("a[0-9]*.py")):
        forms: Forms = import_module(f"{__name__}.{path.stem}").forms
        found += forms.forms
    return found


FORMS = _all_forms()
