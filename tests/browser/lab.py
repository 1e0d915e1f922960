"""JupyterLab as a person uses it: started, opened, and worked with mouse and keyboard."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

SECONDS = 100  # far above what anything here takes: it ends a wait that would last for ever

expect.set_options(timeout=SECONDS * 1000)

# what JupyterLab itself logs as an error in every session, by its exact text
NOISE: frozenset[str] = frozenset()

SETTINGS = {
    # else it asks in a dialogue whether it may fetch news
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # else cells far from the window are not in the page at all
    "notebook-extension/tracker": {"windowingMode": "none"},
}


@contextmanager
def served(workspace: Path, home: Path) -> Iterator[str]:
    """JupyterLab serving `workspace` on a free port of this machine; gives its address.

    Everything that it writes for its user goes to `home`. Stopped, with its kernels, at the end.
    """
    for name, values in SETTINGS.items():
        path = home / "lab" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    port, token = free_port(), secrets.token_hex(16)
    command = [str(Path(sys.executable).with_name("course")), "lab"]
    command += ["--no-browser", "--allow-root", "--ip=127.0.0.1"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    environment = {
        **os.environ,
        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    # notebooks draw as the learner's do, whatever the tests around them are told
    environment.pop("MPLBACKEND", None)
    log = home / "jupyterlab.log"
    with log.open("w") as file:
        server = subprocess.Popen(
            command, cwd=workspace, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for_server(server, f"{address}/api?token={token}", log)
        yield f"{address}/lab/tree/{{path}}?token={token}"
    finally:
        # it shuts its kernels down first
        server.terminate()
        server.wait(timeout=SECONDS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_server(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return once the server answers. Raises RuntimeError, with its log, if it ends or hangs."""
    for _ in range(SECONDS * 5):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=SECONDS):
                return
        except urllib.error.URLError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


class Lab:
    """One page with JupyterLab in it. `errors` gathers what its console shows as an error."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.errors: list[str] = []
        self._address = address
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and message.text not in NOISE:
            self.errors.append(message.text)

    # --- the notebook ---

    def open_notebook(self, name: str) -> None:
        """Open a notebook of the workspace, and wait until its kernel is there."""
        self.page.goto(self._address.format(path=name))
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle")
        self.wait_for_curtain()

    def wait_for_curtain(self) -> None:
        """Wait until JupyterLab has drawn its curtain away: at its start, and at a new theme."""
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)

    def cell(self, source: str) -> Locator:
        """The one code cell whose source has `source` in it."""
        cells = self.page.locator(".jp-Notebook .jp-CodeCell")
        return cells.filter(has=self.page.locator(".jp-InputArea-editor", has_text=source))

    def test_cells(self) -> Locator:
        return self.cell('check("')

    def run_all(self) -> None:
        """Run > Run All Cells, and wait for the last one."""
        with self._runs(self.page.locator(".jp-Notebook .jp-CodeCell").last):
            self.menu("Run", "Run All Cells")

    def run_cell(self, cell: Locator) -> None:
        """Click into a cell and run it with Ctrl+Enter."""
        with self._runs(cell):
            cell.locator(".cm-content").click()
            self.page.keyboard.press("Control+Enter")

    @contextmanager
    def _runs(self, cell: Locator) -> Iterator[None]:
        """Wait, at the end, until `cell` has run once more: its number is a new one."""
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        yield
        expect(prompt).not_to_have_text(before)
        # after a cell that raises as it may, JupyterLab blanks the numbers to come, and goes on
        expect(prompt).to_have_text(re.compile(r"\[\d+\]:"))

    # --- the rest of the window ---

    def menu(self, *names: str) -> None:
        """Click through the menus, as in `menu("Run", "Run All Cells")`."""
        first, *rest = names
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(first, exact=True).click()
        for name in rest:
            entry = self.page.locator(".lm-Menu-itemLabel").get_by_text(name, exact=True)
            entry.hover()
            entry.click()

    def edit(self, folder: str, name: str, text: str) -> None:
        """Open a file by double-clicks, paste `text` over all of it, save, and close it."""
        entry = self.page.locator(".jp-DirListing-itemName")
        entry.get_by_text(folder, exact=True).dblclick()
        entry.get_by_text(name, exact=True).dblclick()
        editor = self.page.locator(".jp-FileEditor .cm-content")
        editor.click()
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Control+V")
        # the tab has a dot from the first change until the file is on disk
        tab = self.page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=name)
        expect(tab).to_contain_class("jp-mod-dirty")
        self.page.keyboard.press("Control+S")
        expect(tab).not_to_contain_class("jp-mod-dirty")
        tab.locator(".lm-TabBar-tabCloseIcon").click()
        expect(editor).to_have_count(0)
