"""Show views in real notebooks, in a headless Chromium, and say what was seen.

python tools/drive_notebooks.py PYTHON [lab notebook nbconvert marimo] [--pictures FOLDER]

PYTHON is that of an environment with headscope[notebook], jupyterlab, notebook, nbconvert and
marimo; it is not the one that runs this script, which needs headscope and playwright:

    python -m venv notebooks
    notebooks/bin/pip install -e ".[notebook]" jupyterlab notebook nbconvert marimo
    .venv/bin/python tools/drive_notebooks.py notebooks/bin/python --pictures pictures

Exit 1 where something was not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from playwright.sync_api import Browser, FrameLocator, Page, sync_playwright

import find_chromium
import headscope as hs
from headscope.testing import random_weights

PIECES = ["[CLS]", "the", "caf\u00e9", "sold", "straw", "##berries", "[SEP]", "it", "did", "[SEP]"]
READY = '[data-headscope][data-ready="true"]'
FOLLOW = """\
def follow(change):
    with open("seen.txt", "a") as file:
        print(change["new"]["layer"], file=file)
    if change["new"]["layer"] == 1:
        widget.select(layer=2, head=0)
widget.observe(follow, "selection")"""
CELLS = [
    'import headscope as hs\nrecord = hs.load("record.safetensors")',
    "hs.view(record, layer=1)",
    f"widget = hs.view(record).widget()\n{FOLLOW}\nwidget",
    'hs.view(record, view="model").widget()',
]
MARIMO = f"""\
import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
    import headscope as hs
    record = hs.load("record.safetensors")
    return hs, mo, record

@app.cell
def _(hs, record):
    hs.view(record, layer=1)
    return

@app.cell
def _(hs, mo, record):
    widget = hs.view(record).widget()
{"".join(f"    {line}{chr(10)}" for line in FOLLOW.splitlines())}
    shown = mo.ui.anywidget(widget)
    shown
    return shown,

@app.cell
def _(mo, shown):
    mo.md(f"layer {{shown.value['selection']['layer']}} is looked at")
    return

if __name__ == "__main__":
    app.run()
"""


class Drive:
    """One host under test: its folder, the browser, and what was found."""

    def __init__(self, python: str, browser: Browser, folder: Path, pictures: Path | None):
        self.python, self.browser, self.folder, self.pictures = python, browser, folder, pictures
        self.failed = False

    def see(self, what: str, right: bool) -> None:
        """Print one finding."""
        self.failed |= not right
        print(f"  {'yes' if right else 'NO '}  {what}", flush=True)

    def wait(self, what: str, seen: Callable[[], object]) -> None:
        """Print whether a locator's wait ended."""
        try:
            seen()
            self.see(what, True)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in a host is the finding
            self.see(f"{what}: {str(error).splitlines()[0]}", False)

    def picture(self, page: Page, name: str) -> None:
        """Keep a picture where pictures are wanted."""
        if self.pictures:
            page.screenshot(path=self.pictures / f"{name}.png")

    def page(self, address: str, *, offline: bool = False) -> Page:
        """Open an address; ``page.outside`` lists what was asked of other machines."""
        context = self.browser.new_context(
            viewport={"width": 1300, "height": 1000}, color_scheme="light"
        )
        context.set_offline(offline)
        page = context.new_page()
        page.outside = []  # ty: ignore[unresolved-attribute]
        here = (
            "http://127.0.0.1:",
            "http://localhost:",
            "ws://127.0.0.1:",
            "file:",
            "data:",
            "blob:",
            "about:",
        )
        page.on(
            "request",
            lambda request: request.url.startswith(here) or page.outside.append(request.url),
        )
        page.goto(address)
        return page

    @contextmanager
    def server(self, *arguments: str, ready: str = "") -> Generator[str]:
        """Run a server of the other environment in the folder, and give its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [self.python, "-m", *(argument.format(port=port) for argument in arguments)]
        log = (self.folder / "server.log").open("w")
        process = subprocess.Popen(
            command, cwd=self.folder, stdout=log, stderr=log, env=environment()
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/{ready}")
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(20)
            log.close()

    def frame_and_widget(self, frame: FrameLocator, widgets: Page) -> None:
        """Whether both draw, and whether the widget and Python hear each other."""
        widget = widgets.locator(READY).first
        self.wait(
            "the frame draws",
            lambda: frame.locator(READY).wait_for(state="attached", timeout=60_000),
        )
        self.wait("the widget draws", lambda: widget.wait_for(state="attached", timeout=60_000))
        seen = self.folder / "seen.txt"
        seen.unlink(missing_ok=True)
        widgets.get_by_role("button", name="Next layer").first.click()
        told = widgets.locator(f'{READY}[data-layer="2"][data-heads="0"]')
        self.wait(
            "Python heard of the layer and chose another",
            lambda: told.first.wait_for(state="attached"),
        )
        heard = seen.read_text().split() if seen.exists() else []
        # marimo tells each change twice, as the widget's and as its own element's
        self.see(
            f"Python heard of layers {', '.join(heard)}", heard in (["1", "2"], ["1", "2"] * 2)
        )


def lab(drive: Drive) -> None:
    """JupyterLab: run all, click, dark colours, save, reload."""
    jupyter(drive, "jupyterlab", "lab/tree/views.ipynb", "--LabApp.expose_app_in_browser=True")


def notebook(drive: Drive) -> None:
    """Notebook 7: the same."""
    jupyter(
        drive,
        "notebook",
        "notebooks/views.ipynb",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    )


def jupyter(drive: Drive, module: str, path: str, expose: str) -> None:
    """Drive JupyterLab or Notebook 7, which have the same commands."""
    write_notebook(drive.folder)
    options = (
        "--no-browser",
        "--allow-root",
        "--ServerApp.port={port}",
        "--IdentityProvider.token=",
        expose,
    )
    with drive.server(module, *options, ready="api") as address:
        page = drive.page(address + path)
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=90_000)
        page.wait_for_timeout(3000)
        command(page, "notebook:run-all-cells")
        frame = page.frame_locator("iframe[data-headscope-frame]")
        page.locator("iframe[data-headscope-frame]").scroll_into_view_if_needed(timeout=60_000)
        page.wait_for_timeout(6000)  # what grows moves what is below it from under the pointer
        height = "document.querySelector('iframe[data-headscope-frame]').style.height"
        drive.see(
            f"the frame has its own height: {page.evaluate(height)}",
            page.evaluate(height) != "720px",
        )
        drive.frame_and_widget(frame, page)
        page.locator("iframe[data-headscope-frame]").scroll_into_view_if_needed()
        drive.picture(page, f"{module}_light")
        page.locator(READY).nth(1).scroll_into_view_if_needed()
        drive.see("two widgets draw", page.locator(READY).count() == 2)
        drive.picture(page, f"{module}_widget")
        command(page, "apputils:change-theme", {"theme": "JupyterLab Dark"})
        page.locator("iframe[data-headscope-frame]").scroll_into_view_if_needed()
        dark = '[data-headscope][data-theme="dark"]'
        drive.wait(
            "the widget turns dark", lambda: page.locator(dark).first.wait_for(state="attached")
        )
        drive.wait("the frame turns dark", lambda: frame.locator(dark).wait_for(state="attached"))
        drive.picture(page, f"{module}_dark")
        command(page, "apputils:change-theme", {"theme": "JupyterLab Light"})
        command(page, "docmanager:save")
        page.wait_for_timeout(2000)
        drive.see(f"nothing was asked of another machine {page.outside}", not page.outside)
        page.context.close()
        page = drive.page(address + path)
        again = page.frame_locator("iframe[data-headscope-frame]")
        drive.wait(
            "after save and reload the frame draws",
            lambda: again.locator(READY).wait_for(state="attached"),
        )
        page.wait_for_timeout(3000)
        print(
            f"       after reload {page.locator(READY).count()} widgets draw (the kernel still "
            "runs)"
        )
        drive.picture(page, f"{module}_reloaded")
        page.context.close()


def nbconvert(drive: Drive) -> None:
    """Nbconvert: a notebook that was run becomes one page, opened without a network."""
    write_notebook(drive.folder, CELLS[:2])
    convert = [drive.python, "-m", "nbconvert", "--to", "html", "--execute", "views.ipynb"]
    done = subprocess.run(
        convert, cwd=drive.folder, capture_output=True, text=True, env=environment(), check=False
    )
    drive.see(f"it converts {done.stderr[-200:] if done.returncode else ''}", done.returncode == 0)
    print(f"       {(drive.folder / 'views.html').stat().st_size:,} bytes")
    page = drive.page((drive.folder / "views.html").as_uri(), offline=True)
    frame = page.frame_locator("iframe[data-headscope-frame]")
    drive.wait("offline the frame draws", lambda: frame.locator(READY).wait_for(state="attached"))
    height = page.locator("iframe[data-headscope-frame]").evaluate("(frame) => frame.style.height")
    drive.see(f"the frame has its own height: {height}", height != "720px")
    frame.locator('button[data-head="1"]').click()
    one = '[data-headscope][data-heads="0,2,3"]'
    drive.wait("a click works", lambda: frame.locator(one).wait_for(state="attached"))
    asked = [url for request in [page.frames[-1]] for url in request.evaluate(ASKED)]
    drive.see(f"the frame asked for nothing {asked}", not asked)
    print(
        "       the page of nbconvert itself asks for "
        f"{[url.split('/')[2] for url in page.outside]}"
    )
    drive.picture(page, "nbconvert_offline")
    page.context.close()


ASKED = "performance.getEntriesByType('resource').map((entry) => entry.name)"


def marimo(drive: Drive) -> None:
    """Marimo: the application runs; a cell that depends on the widget follows it."""
    (drive.folder / "app.py").write_text(MARIMO, encoding="utf-8")
    with drive.server(
        "marimo", "run", "app.py", "--headless", "--no-token", "--port", "{port}"
    ) as address:
        page = drive.page(address)
        page.locator("iframe[data-headscope-frame]").wait_for(timeout=90_000)
        drive.frame_and_widget(page.frame_locator("iframe[data-headscope-frame]"), page)
        cell = page.get_by_text("layer 2 is looked at")
        drive.wait("a cell that depends on it follows", lambda: cell.wait_for(timeout=15_000))
        drive.see(f"nothing was asked of another machine {page.outside}", not page.outside)
        drive.picture(page, "marimo")
        page.context.close()


def write_notebook(folder: Path, cells: list[str] = CELLS) -> None:
    """A notebook that was not run yet."""
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    made = [
        code | {"id": f"cell-{number}", "source": source} for number, source in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    text = json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    (folder / "views.ipynb").write_text(text, encoding="utf-8")


def command(page: Page, name: str, arguments: dict | None = None) -> None:
    """Run a command of JupyterLab."""
    page.evaluate(
        "([name, given]) => { window.jupyterapp.commands.execute(name, given); }",
        [name, arguments or {}],
    )


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    for _ in range(240):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.5)
    sys.exit(f"{address} does not answer")


def environment() -> dict[str, str]:
    """The environment of a server, which must find the record and nothing of ours by chance."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "JUPYTER"))
    }


HOSTS = {"lab": lab, "notebook": notebook, "nbconvert": nbconvert, "marimo": marimo}


def main() -> None:
    """Drive the hosts that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("python", help="Python of the environment with the notebooks")
    parser.add_argument("hosts", nargs="*", help=f"of {', '.join(HOSTS)}")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    given = parser.parse_args()
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
    weights = random_weights(np.random.default_rng(0), (3, 4, len(PIECES), len(PIECES)))
    record = hs.from_weights(weights, PIECES, sentence_b_start=7, model="random weights")
    failed = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium.needed(), args=find_chromium.FLAGS
        )
        for name in given.hosts or HOSTS:
            print(name)
            with TemporaryDirectory() as folder:
                hs.save(record, Path(folder) / "record.safetensors")
                drive = Drive(given.python, browser, Path(folder), given.pictures)
                HOSTS[name](drive)
                failed |= drive.failed
        browser.close()
    sys.exit(failed)


if __name__ == "__main__":
    main()
