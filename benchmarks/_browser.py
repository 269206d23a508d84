"""Open a page in headless Chromium and note when it first shows the head view, and at what cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from _watch import Limits, Watch
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

from find_chromium import FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import psutil
    from playwright.sync_api import Browser, Page, Playwright, Route

VIEWPORT = {"width": 1280, "height": 900}
MIB = 2**20

# Resolves two animation frames after the page has set the mark and the drawing is in the document.
FIRST_DRAWING = """
window.firstDrawing = new Promise((resolve) => {
  const isDrawn = () =>
    performance.getEntriesByName(%(mark)r).length > 0 && Boolean(%(drawn)s);
  const look = () => {
    if (!isDrawn()) requestAnimationFrame(look);
    else requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
  };
  requestAnimationFrame(look);
});
"""


@dataclass(frozen=True)
class Sign:
    """How a page shows that its view is drawn.

    Attributes:
        mark: Name of the `performance.mark` set when the drawing code has returned.
        drawn: JavaScript expression, true once the drawing is in the document.
    """

    mark: str
    drawn: str


@dataclass
class Drawing:
    """What opening one page gave.

    Attributes:
        first_drawing_s: Wall time from the start of navigation to the first drawing, in seconds.
        main_thread_cpu_s: Processor time of the page's main thread until then, in seconds.
        renderer_peak_mib: Highest resident memory of the renderer process, in MiB.
        failure: Why nothing was drawn; None if it was.
        requests: Addresses outside the page that it asked for.
        page_errors: Messages of errors thrown inside the page.
    """

    first_drawing_s: float | None = None
    main_thread_cpu_s: float | None = None
    renderer_peak_mib: float = 0.0
    failure: str | None = None
    requests: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)


def chromium_version(executable: str) -> str:
    """Return the version that the browser itself reports."""
    with sync_playwright() as playwright:
        browser = launch(playwright, executable)
        version = browser.version
        browser.close()
    return version


def draw(
    html: Path,
    sign: Sign,
    *,
    executable: str,
    limits: Limits,
    answers: Mapping[str, str],
    picture: Path | None = None,
) -> Drawing:
    """Open one page in a fresh browser and wait for its first drawing.

    Args:
        html: The page, opened from disk as a reader would open it.
        sign: How this page shows that it is drawn.
        executable: Path of Chromium.
        limits: Time and memory after which the page is ended.
        answers: Script text by file name, given in reply to requests outside the page.
            Every other request is refused.
        picture: Where to keep a screenshot, taken after measuring.
    """
    with sync_playwright() as playwright:
        browser = launch(playwright, executable)
        page = browser.new_page(viewport=VIEWPORT)
        drawing = Drawing()
        page.on("pageerror", lambda error: drawing.page_errors.append(str(error)[:200]))
        page.route("**/*", lambda route: answer(route, answers, drawing.requests))
        page.add_init_script(FIRST_DRAWING % {"mark": sign.mark, "drawn": sign.drawn})
        _measure(page, html, limits, drawing)
        if picture and not drawing.failure:
            page.screenshot(path=picture)
        browser.close()
    return drawing


def launch(playwright: Playwright, executable: str) -> Browser:
    """Start a new browser, as every measurement does."""
    return playwright.chromium.launch(executable_path=executable, args=list(FLAGS))


def answer(route: Route, answers: Mapping[str, str], requests: list[str]) -> None:
    """Answer a request: files as they are, known scripts with their text, all else not at all."""
    url = route.request.url
    if url.startswith(("file:", "data:", "blob:")):
        route.continue_()
        return
    requests.append(url)
    script = answers.get(url.rpartition("/")[2])
    if script is None:
        route.abort()
    else:
        route.fulfill(body=script, content_type="text/javascript")


def _measure(page: Page, html: Path, limits: Limits, drawing: Drawing) -> None:
    """Fill in `drawing`; a page that hangs is ended from outside, for it can answer nothing."""
    crashed = threading.Event()
    page.on("crash", lambda _: crashed.set())
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    watch = Watch(_is_renderer, limits)
    try:
        with watch:
            page.goto(html.resolve().as_uri(), wait_until="commit", timeout=0)
            drawing.first_drawing_s = page.evaluate("window.firstDrawing") / 1000
            metrics = session.send("Performance.getMetrics")["metrics"]
        cpu = {metric["name"]: metric["value"] for metric in metrics}
        drawing.main_thread_cpu_s = cpu["TaskDuration"]
    except PlaywrightError:
        if not (watch.verdict or crashed.is_set()):
            raise
        drawing.failure = watch.verdict or "the page crashed"
    drawing.renderer_peak_mib = watch.peak_bytes / MIB


def _is_renderer(process: psutil.Process) -> bool:
    return "--type=renderer" in process.cmdline()
