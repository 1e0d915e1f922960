"""The lessons as a static site: every notebook a page, with search, for reading without a kernel.

Nothing is fetched: it opens from the disk, in a light or a dark theme as the reader's system says.
"""

from __future__ import annotations

import html
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from ..errors import CourseError
from .layout import ROOT, Lesson, lessons

SETTINGS = {
    "project": "LLM decoding from scratch",
    "author": "the authors of LLM decoding from scratch",
    "copyright": "the authors of LLM decoding from scratch; text CC BY 4.0, code MIT",
    "extensions": ["myst_nb", __name__],
    "html_math_renderer": "drawn",
    "html_theme": "furo",
    "html_title": "LLM decoding from scratch",
    "nb_execution_mode": "off",
    # sliders need a kernel; their still picture stands in the page
    "nb_ipywidgets_js": {},
    "myst_enable_extensions": ["dollarmath"],
    # cells are pages of their own kind: a heading may follow one of another level
    "suppress_warnings": ["myst.header"],
    "html_copy_source": False,
    "html_show_sourcelink": False,
}
INDEX = """# LLM decoding from scratch

{beginning}

```{{toctree}}
:caption: Lessons
:maxdepth: 1

{pages}
```
"""


def build_site(folder: Path, root: Path = ROOT) -> list[str]:
    """Render all lessons into `folder`; returns the pages.

    Raises CourseError with Sphinx's words if a page cannot be made.
    """
    known = lessons(root)
    with tempfile.TemporaryDirectory() as temporary:
        source = Path(temporary) / "source"
        source.mkdir()
        for lesson in known:
            nbformat.write(page(lesson), source / f"{lesson.slug}.ipynb")
        pages = [lesson.slug for lesson in known]
        text = INDEX.format(beginning=beginning(root), pages="\n".join(pages))
        (source / "index.md").write_text(text, encoding="utf-8")
        warnings = (Path(temporary) / "warnings").open("w+", encoding="utf-8")
        with warnings, patch_docutils(), docutils_namespace():
            app = Sphinx(
                source,
                None,
                Path(temporary) / "html",
                Path(temporary) / "doctrees",
                "html",
                confoverrides=SETTINGS,
                status=None,
                warning=warnings,
            )
            app.build()
            warnings.seek(0)
            told = warnings.read().strip()
        if app.statuscode or told:
            raise CourseError(f"the site cannot be built: {told.splitlines()[0] if told else ''}")
        # the old site stays until the new one is whole
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(Path(temporary) / "html", folder)
    return pages


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls: formulas are drawn, where its own way fetches a script from elsewhere."""
    app.add_html_math_renderer("drawn", (draw_formula, None), (draw_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def draw_formula(translator: Any, node: Any) -> None:
    """Put a formula into the page as a picture in the colour of the text, with its TeX as label."""
    from docutils.nodes import SkipNode
    from matplotlib import rc_context
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import math_to_image

    tex = " ".join(node.astext().split())
    drawn = io.StringIO()
    # the same bytes each time
    with rc_context({"svg.hashsalt": "formula", "mathtext.fontset": "cm"}):
        math_to_image(f"${tex}$", drawn, prop=FontProperties(size=13), dpi=96, format="svg")
    picture = re.search(r"<svg.*</svg>", drawn.getvalue(), re.DOTALL)
    assert picture is not None  # math_to_image wrote an SVG
    label = html.escape(tex)
    opening = f'<svg role="img" aria-label="{label}" fill="currentColor" '
    # no paper of its own: it stands on a light page and on a dark one
    drawing = picture[0].replace("fill: #ffffff", "fill: none")
    translator.body.append(drawing.replace("<svg ", opening, 1))
    raise SkipNode


def page(lesson: Lesson) -> NotebookNode:
    """A built notebook as a page: with its outputs, without the model answer."""
    notebook = nbformat.read(lesson.notebook, as_version=4)
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and grading.get("solution"):
            cell.source = "*Your answer goes here, in your own copy of the lesson.*"
    return notebook


def beginning(root: Path) -> str:
    """What the README says before its first heading."""
    text = (root / "README.md").read_text(encoding="utf-8")
    return text.split("\n## ", 1)[0].split("\n", 1)[1].strip()
