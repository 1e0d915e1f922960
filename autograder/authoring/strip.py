"""A learner's copy of a notebook, made by nbgrader's own steps: it is the one nbgrader releases."""

from __future__ import annotations

from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import SaveCells
from traitlets.config import Config, PyFileConfigLoader


def strip(notebook: Path, root: Path) -> bytes:
    """The file that `nbgrader generate_assignment` in `root` would write for `notebook`.

    Outputs go, written answers become nbgrader's stub, graded cells get their checksums. The
    gradebook is neither needed nor touched.
    """
    config = _nbgrader_config(root)
    config.Exporter.default_preprocessors = []
    exporter = NotebookExporter(config=config)
    for step in GenerateAssignment(config=config).preprocessors:
        if step is not SaveCells:
            exporter.register_preprocessor(step, enabled=True)
    text, _ = exporter.from_filename(str(notebook))
    return text.encode()


def _nbgrader_config(root: Path) -> Config:
    """What nbgrader itself would be told in `root`."""
    if not (root / "nbgrader_config.py").is_file():
        return Config()
    return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
