"""What the plots of studies are drawn on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headscope.errors import FigureError, FileError

SUFFIXES = (".svg", ".pdf", ".png")
SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8,
    "svg.hashsalt": "headscope",
}
MISSING = "Plots need matplotlib: pip install 'headscope[figures]'"
FAINT = "#5A5A5A"


@contextmanager
def canvas(path: Path, size: tuple[float, float], caption: str) -> Generator[Any]:
    """A figure of matplotlib to draw on, which is saved where the block ends.

    Args:
        path: where to: .svg, .pdf or .png.
        size: width and height in inches.
        caption: what is said above.

    Raises:
        FigureError: where matplotlib is missing, or the suffix is none of ours.
        FileError: where the file cannot be written.
    """
    check_plot(path)
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise FigureError(MISSING) from None
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        figure.suptitle(caption, x=0.01, ha="left", fontsize=8, color=FAINT)
        try:
            figure.savefig(
                path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None
            )
        except OSError as error:
            raise FileError(f"Cannot write {path}: {error.strerror or error}") from error


def check_plot(path: Path) -> None:
    """Raise where a plot could not be drawn, before any long work.

    Raises:
        FigureError: saying why.
    """
    if path.suffix not in SUFFIXES:
        raise FigureError(f"A plot is drawn as {', '.join(SUFFIXES)}, not {path.name}")
    if find_spec("matplotlib") is None:
        raise FigureError(MISSING)
