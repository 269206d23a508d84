"""Write the tutorials as notebooks, with the outputs of running them: python
tools/write_notebooks.py.

The pages beside them in notebooks/ are the one source. Their code is run as a notebook runs it, by
IPython, and text and pictures are kept. A view weighs half a megabyte, so a figure of it is kept in
its place.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from page_blocks import ROOT

FOLDER = ROOT / "notebooks"
TUTORIALS = tuple(sorted(FOLDER.glob("*.md")))
INSTALL = '%pip install --quiet "../dist/headscope-0.1.0-py3-none-any.whl[all,demo]"'
"""The first cell: the wheel that `make dist` builds; once released, ``headscope[all,demo]``."""
MOST_HTML = 60_000
"""Bytes of HTML that are kept of an output."""
WIDTH, DPI = 740, 110
"""Pixels that a picture is wide at most, and has in an inch: enough for a screen, and small in a
repository.
"""
DRAWN_IN_ITS_PLACE = "The view is drawn when this cell is run."
CODE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)\.md(#[^)]*)?\)")


def cells_of(page: Path) -> list[Any]:
    """The cells of one tutorial, code that is not yet run."""
    text = page.read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    setup = "The first cell installs the wheel that `make dist` has built in the checkout."
    made = [
        new_markdown_cell(f"{title}\n\n{setup}"),
        new_code_cell(INSTALL, metadata={"tags": ["setup"]}),
    ]
    for number, part in enumerate(CODE.split(rest)):
        if part.strip():
            made.append(
                new_code_cell(part.rstrip()) if number % 2 else new_markdown_cell(_links(part))
            )
    for number, cell in enumerate(made):
        cell["id"] = f"{page.stem.replace('_', '-')}-{number}"  # the same in every run
    return made


def _links(text: str) -> str:
    """Markdown whose links lead from notebooks/ to other notebooks and to the pages in docs/."""

    def moved(link: re.Match) -> str:
        page = link[1].removeprefix("../")
        target = f"{page}.ipynb" if page == link[1] else f"../docs/{page}.md"
        return f"]({target}{link[2] or ''})"

    return LINK.sub(moved, text).strip()


class Quiet(DisplayHook):
    """Keeps the last value of a cell and prints nothing."""

    def __call__(self, result: Any = None) -> None:
        """Keep a value."""
        if result is not None:
            self.fill_exec_result(result)


def run(cells: list[Any]) -> None:
    """Run the code of a notebook in the current folder and put what it gives into its cells.

    Raises:
        RuntimeError: where a cell fails, with its code.
    """
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(displayhook_class=Quiet)
    shell.colors = "nocolor"
    try:
        for number, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), 1):
            cell["execution_count"] = number
            if "setup" not in cell.metadata.get("tags", ()):
                cell["outputs"] = _outputs(shell, cell.source, number)
    finally:
        InteractiveShell.clear_instance()


def _outputs(shell: InteractiveShell, code: str, number: int) -> list[Any]:
    with capture_output() as captured:
        done = shell.run_cell(code)
    if not done.success:
        raise RuntimeError(f"This cell fails:\n{code}\n{captured.stdout}") from done.error_in_exec
    made = []
    if captured.stdout:
        made.append(new_output("stream", name="stdout", text=captured.stdout))
    for shown in captured.outputs:
        made.append(new_output("display_data", data=_small(shown.data)))
    if done.result is not None:
        made.append(
            new_output("execute_result", data=_data(shell, done.result), execution_count=number)
        )
    return made


def _data(shell: InteractiveShell, value: Any) -> dict[str, Any]:
    """What is kept of the last value of a cell."""
    from headscope.views import View
    from headscope.views.figures import Figure

    if isinstance(value, View):
        return {"text/plain": repr(value), "image/png": _picture(value.still())}
    if isinstance(value, Figure):
        return {"text/plain": "<Figure>", "image/png": _picture(value)}
    data, _ = shell.display_formatter.format(value)
    return _small(data)


def _small(data: dict[str, Any]) -> dict[str, Any]:
    if len(data.get("text/html", "")) > MOST_HTML:
        return {"text/plain": DRAWN_IN_ITS_PLACE}
    return {kind: data[kind] for kind in ("text/html", "text/plain", "image/png") if kind in data}


def _picture(figure: Any) -> str:
    """A figure as a small PNG with all its colours; drawn at its size, so nothing is scaled."""
    dpi = min(DPI, WIDTH / figure.matplotlib.get_figwidth())
    picture = Image.open(io.BytesIO(figure.to_bytes("png", dpi=dpi))).convert("RGB")
    kept = io.BytesIO()
    picture.save(kept, "PNG", optimize=True)
    return base64.b64encode(kept.getvalue()).decode("ascii")


def notebook_of(page: Path) -> Any:
    """One tutorial as a notebook, run."""
    cells = cells_of(page)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run(cells)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(
        cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}}
    )


def main() -> None:
    """Write those that are named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for page in TUTORIALS:
        if page.stem in sys.argv[1:] or not sys.argv[1:]:
            target = FOLDER / f"{page.stem}.ipynb"
            nbformat.write(notebook_of(page), target)
            print(f"{target.relative_to(ROOT)} ({target.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
