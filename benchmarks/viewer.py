"""Measure how fast the viewer answers: hovering, changing the layer, first drawings, panning,
memory.

    python benchmarks/viewer.py
    python benchmarks/viewer.py --rounds 1

README.md in this folder says what is measured, and how to read it. BertViz takes part where it can
do the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

import _bertviz  # noqa: E402
import head_view  # noqa: E402
from _browser import FIRST_DRAWING, VIEWPORT, answer, launch  # noqa: E402
from _facts import facts  # noqa: E402
from _watch import Limits  # noqa: E402

import find_chromium  # noqa: E402

HERE = ROOT / "benchmarks"

# One act in each animation frame, as a hand does it; gives the time from frame to frame.
FRAMES = """
async ({ act, count }) => {
  const make = %s[act];
  const run = make();
  const times = [];
  await new Promise((done) => {
    let last = null;
    let at = 0;
    const frame = (now) => {
      if (last !== null) times.push(now - last);
      last = now;
      if (at === count) return done();
      run(at++);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  return times;
}
"""

# One act, then a wait until it is drawn: two frames, and what stands behind them. Gives the time of
# each.
STEPS = """
async ({ act, count }) => {
  const run = %s[act]();
  const settled = () => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))));
  const times = [];
  for (let at = 0; at < count; at++) {
    const start = performance.now();
    await run(at);
    await settled();
    times.push(performance.now() - start);
  }
  return times;
}
"""

# What a hand does in each tool; each function gives one that is called with the number of the time.
HEADSCOPE_ACTS = """({
  hover: () => {
    const root = document.querySelector('#headscope').shadowRoot;
    const tokens = [...root.querySelectorAll('[data-side="query"][data-token]')];
    return (at) => tokens[(7 * at) % tokens.length].dispatchEvent(new Event('pointerover', { bubbles: true }));
  },
  layer: () => {
    const root = document.querySelector('#headscope').shadowRoot;
    const select = root.querySelector('select[aria-label="Layer"]');
    const main = root.querySelector('[data-headscope]');
    return async (at) => {
      select.value = String((at + 1) % select.options.length);
      select.dispatchEvent(new Event('change', { bubbles: true }));
      while (main.dataset.layer !== select.value) await new Promise((done) => setTimeout(done));
    };
  },
  pan: () => {
    const canvas = document.querySelector('#headscope').shadowRoot.querySelector('canvas[data-canvas="matrix"]');
    const box = canvas.getBoundingClientRect();
    const at = (type, x, y, more) => canvas.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1,
      clientX: box.x + x, clientY: box.y + y, button: 0, buttons: 1, isPrimary: true, ...more }));
    at('pointerdown', 200, 200);
    return (step) => at('pointermove', 200 + 60 * Math.sin(step / 9), 200 + 60 * Math.cos(step / 7));
  },
  zoom: () => {
    const canvas = document.querySelector('#headscope').shadowRoot.querySelector('canvas[data-canvas="matrix"]');
    const box = canvas.getBoundingClientRect();
    return (step) => canvas.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true,
      clientX: box.x + 200, clientY: box.y + 200, deltaY: step % 60 < 30 ? -40 : 40, ctrlKey: true }));
  },
})"""

BERTVIZ_ACTS = """({
  hover: () => {
    const tokens = [...document.querySelectorAll('#attention #left > g, #attention #left text')]
      .filter((node) => node.__on?.some(({ type }) => type === 'mouseover'));
    const groups = tokens.length ? tokens : [...document.querySelectorAll('#left *')].filter((node) => node.__on);
    return (at) => groups[(7 * at) % groups.length].dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
  },
  layer: () => {
    const select = document.querySelector('#layer');
    return (at) => {
      select.value = String((at + 1) % select.options.length);
      $(select).trigger('change');
    };
  },
})"""

ACTS = {"headscope": HEADSCOPE_ACTS, "bertviz": BERTVIZ_ACTS}


@dataclass(frozen=True)
class Task:
    """Something that a reader does.

    Attributes:
        name: what the table calls it.
        act: which of the acts.
        count: how many times.
        frames: one in each animation frame; else each is awaited.
        limit: milliseconds that it may take.
    """

    name: str
    act: str
    count: int
    frames: bool
    limit: float


@dataclass(frozen=True)
class Shown:
    """A page, and what is done in it."""

    name: str
    tool: str
    fragment: str
    tasks: tuple[Task, ...]
    first: float = 1000
    """Milliseconds that the first drawing may take."""


HOVER = {128: Task("hover", "hover", 60, True, 16), 512: Task("hover", "hover", 60, True, 33)}
LAYER = Task("layer change", "layer", 10, False, 200)
OPENING = 500
"""Milliseconds of the main thread that the picture a page opens on may take."""
HEAP = 300 * 2**20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each page")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of the first drawing")
    parser.add_argument(
        "--alone", action="store_true", help="without BertViz, which is installed otherwise"
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder for the results"
    )
    return parser.parse_args()


def pages(folder: Path, setting: head_view.Setting) -> list[tuple[Shown, Path]]:
    """Write the pages once: the real model at two lengths, grids of 12 x 12 heads, answers to 16,000
    tokens, and one head of 4,096 tokens.
    """
    written = []
    for tokens in (128, 512):
        for tool in (
            ("headscope", "bertviz") if tokens == 128 and setting.packages else ("headscope",)
        ):
            page = folder / f"viewer-{tool}-{tokens}.html"
            head_view.write_page(tool, tokens, page, setting)
            name = f"head view, 6 x 12 heads, {tokens} tokens"
            # a page of ours opens on the overview, which has neither layers to choose nor all heads
            # of one
            fragment = "#v=2&view=head" if tool == "headscope" else ""
            written.append((Shown(name, tool, fragment, (HOVER[tokens], LAYER)), page))
    opening = folder / "viewer-opening.html"
    write_grid(opening, tokens=128)
    written.append(
        (
            Shown(
                "overview of 12 x 12 heads, 128 tokens",
                "headscope",
                "#v=2&view=overview",
                (),
                OPENING,
            ),
            opening,
        )
    )
    for parts, tokens in ((40, 400), (200, 80)):
        path = folder / f"viewer-answer-{parts}.html"
        write_answer(path, parts, tokens)
        name = f"answer, {parts} parts of {tokens} tokens"
        written.append((Shown(name, "headscope", "", (), OPENING), path))
    grid = folder / "viewer-grid.html"
    write_grid(grid, tokens=512)
    written.append(
        (Shown("grid of 12 x 12 heads, 512 tokens", "headscope", "#v=2&view=model", ()), grid)
    )
    long = folder / "viewer-4096.html"
    write_long(long)
    tasks = (Task("pan", "pan", 90, True, 1000 / 30), Task("zoom", "zoom", 90, True, 1000 / 30))
    written.append(
        (Shown("matrix of one head, 4,096 tokens", "headscope", "#v=2&view=matrix", tasks), long)
    )
    return written


def write_grid(path: Path, tokens: int) -> None:
    """12 layers of 12 heads of size 64, causal, from random numbers."""
    import headscope as hs  # noqa: PLC0415
    from headscope.record import Layer, ModelFacts, Record, Stack, Tokens  # noqa: PLC0415

    rng = np.random.default_rng(0)
    visible = np.tril(np.ones((tokens, tokens), bool))

    def layer(number: int) -> Layer:
        queries, keys = (rng.standard_normal((12, tokens, 64)).astype(np.float32) for _ in range(2))
        return Layer(layer=number, queries=2 * queries, keys=keys, scale=1 / 8, visible=visible)

    words = Tokens(pieces=tuple(f"w{number}" for number in range(tokens)))
    stack = Stack(name="self", query=words, key=words, layers=tuple(map(layer, range(12))))
    hs.view(Record(stacks={"self": stack}, model=ModelFacts(name="random"))).save(path)


def write_answer(path: Path, parts: int, tokens: int) -> None:
    """An answer of 20 words of a model of 32 x 32 heads to so many documents, from random
    numbers.
    """
    import headscope as hs  # noqa: PLC0415
    from headscope.answering import AnswerWord  # noqa: PLC0415
    from headscope.record import Part  # noqa: PLC0415

    rng, words = np.random.default_rng(0), 20
    keys = parts * tokens + 1
    looks = rng.gamma(0.3, 1, (words, keys + words))
    shares = rng.dirichlet(np.ones(parts + 3), (words, 32, 32))
    own = [range(first, first + tokens) for first in range(1, keys, tokens)]
    names = [f"document {number}" for number in range(1, parts + 1)]
    named = zip(names, own, strict=True)
    asked = hs.answer(None, documents=["One.", "Two."], question="What?", max_new_tokens=1)
    answer_of = replace(
        asked,
        record=None,
        pieces=tuple(" end." if at % 12 == 0 else " word" for at in range(keys)),
        parts=tuple(Part(name=name, kind="document", tokens=tuple(of)) for name, of in named),
        candidates=tuple(range(parts)),
        words=tuple(AnswerWord(f"word{at}", (at,)) for at in range(words)),
        tokens=tuple(f"word{at}" for at in range(words)),
        probabilities=(0.9,) * words,
        layers=tuple(range(32)),
        chosen=tuple((layer, head) for layer in range(32) for head in range(32)),
        attention=looks / looks.sum(axis=-1, keepdims=True),
        shares=shares,
        even=np.full((words, 32, parts + 3), 1 / (parts + 3)),
        copies=np.zeros((words, 32, 32)),
        whole=np.full(words, -0.1),
        none=np.full(words, -5.0),
        without=rng.uniform(-1, -0.1, (parts, words)),
        alone=np.full((parts, words), -5.0),
    )
    answer_of.view().save(path)


def write_long(path: Path) -> None:
    """One causal head of size 64 over 4,096 tokens, from random numbers."""
    import headscope as hs  # noqa: PLC0415
    from headscope.record import Layer, Mask, ModelFacts, Record, Stack, Tokens  # noqa: PLC0415

    rng = np.random.default_rng(0)
    queries, keys = (rng.standard_normal((1, 4096, 64)).astype(np.float32) for _ in range(2))
    layer = Layer(
        layer=0, queries=2 * queries, keys=keys, scale=1 / 8, visible=Mask.causal(4096, 4096)
    )
    tokens = Tokens(pieces=tuple(f"w{number}" for number in range(4096)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    hs.view(Record(stacks={"self": stack}, model=ModelFacts(name="random")), view="matrix").save(
        path
    )


def measure(shown: Shown, path: Path, setting: head_view.Setting) -> list[dict[str, object]]:
    """Open a page in a new browser and do its tasks; a row for the first drawing, for each task,
    and for memory.
    """
    sign = head_view.SIGNS[shown.tool]
    with sync_playwright() as playwright:
        browser = launch(playwright, setting.chromium)
        page = browser.new_page(viewport=VIEWPORT)
        page.route("**/*", lambda route: answer(route, setting.answers, []))
        page.add_init_script(FIRST_DRAWING % {"mark": sign.mark, "drawn": sign.drawn})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.resolve().as_uri() + shown.fragment, wait_until="commit", timeout=0)
        first = page.evaluate("window.firstDrawing")
        rows = [
            row(shown, "first drawing", [first], thread_time(session) * 1000, None, shown.first)
        ]
        page.wait_for_timeout(2500)  # what the page does when nothing else is to be done
        rows += [done(shown, task, page, session) for task in shown.tasks]
        heap = session.send("Runtime.getHeapUsage")
        held = heap["usedSize"] + heap.get("backingStorageSize", 0)
        rows.append(
            {"page": shown.name, "tool": shown.tool, "task": "memory", "bytes": held, "limit": HEAP}
        )
        browser.close()
    return rows


def done(shown: Shown, task: Task, page: Page, session: object) -> dict[str, object]:
    """Do a task and give its times: of each, of the main thread, and of all processes of the
    browser.
    """
    script = (FRAMES if task.frames else STEPS) % ACTS[shown.tool]
    page.evaluate(script, {"act": task.act, "count": 4})
    before, everything = thread_time(session), all_time()
    times = page.evaluate(script, {"act": task.act, "count": task.count})
    thread = 1000 * (thread_time(session) - before) / task.count
    return row(
        shown, task.name, times, thread, 1000 * (all_time() - everything) / task.count, task.limit
    )


def row(  # noqa: PLR0917
    shown: Shown,
    task: str,
    times: list[float],
    thread: float,
    all_of_it: float | None,
    limit: float,
) -> dict[str, object]:
    """One line of the results, in milliseconds."""
    return {
        "page": shown.name,
        "tool": shown.tool,
        "task": task,
        "wall": median(times),
        "worst": max(times),
        "thread": thread,
        "all": all_of_it,
        "limit": limit,
    }


def thread_time(session: object) -> float:
    """Processor time of the page's main thread until now, in seconds."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def all_time() -> float:
    """Processor time of the browser with all its processes, in seconds."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            spent = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    return total


def summary(runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """One row for each page, tool and task: the medians over the rounds."""
    groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for run in runs:
        groups.setdefault((run["page"], run["tool"], run["task"]), []).append(run)
    rows = []
    for group in groups.values():
        numbers = {
            name: median(run[name] for run in group)
            for name in ("wall", "worst", "thread", "all", "bytes")
            if group[0].get(name) is not None
        }
        rows.append({name: group[0][name] for name in ("page", "tool", "task", "limit")} | numbers)
    return rows


def table(rows: list[dict[str, object]]) -> str:
    """The summary as Markdown; BertViz beside headscope where both did the same."""
    lines = [
        "| page | what | limit | main thread | all processes | frame or wait | BertViz: main "
        "thread, all, wait |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    theirs = {(row["page"], row["task"]): row for row in rows if row["tool"] == "bertviz"}
    for row in rows:
        if row["tool"] == "bertviz":
            continue
        other = theirs.get((row["page"], row["task"]))
        lines.append(
            "| " + " | ".join([row["page"], row["task"], *_cells(row), _beside(other)]) + " |"
        )
    return "\n".join(lines)


def _cells(row: dict[str, object]) -> list[str]:
    if row["task"] == "memory":
        return [f"{row['limit'] / 2**20:.0f} MiB", "", "", f"{row['bytes'] / 2**20:.0f} MiB"]
    return [f"{row['limit']:.0f} ms", _ms(row["thread"]), _ms(row.get("all")), _ms(row["wall"])]


def _beside(other: dict[str, object] | None) -> str:
    if other is None:
        return ""
    if other["task"] == "memory":
        return f"{other['bytes'] / 2**20:.0f} MiB"
    return ", ".join(_ms(other.get(name)) for name in ("thread", "all", "wall"))


def _ms(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"


def main() -> None:
    options = arguments()
    head_view.INSTALLED.mkdir(exist_ok=True)
    setting = head_view.Setting(
        chromium=find_chromium.needed(),
        limits=Limits(options.seconds, 8),
        answers={} if options.alone else _bertviz.install_scripts(head_view.INSTALLED),
        packages=None if options.alone else _bertviz.install_package(head_view.INSTALLED),
        pictures=None,
    )
    machine = facts(setting.chromium)
    written = pages(head_view.INSTALLED, setting)
    runs = []
    for _ in range(options.rounds):
        for shown, path in written:
            measured = measure(shown, path, setting)
            runs += measured
            print(
                shown.name,
                shown.tool,
                [(each["task"], each.get("thread")) for each in measured],
                file=sys.stderr,
            )
    for _, path in written:
        path.unlink()
    rows = summary(runs)
    options.results.mkdir(parents=True, exist_ok=True)
    document = {
        "machine": machine,
        "settings": asdict(setting.limits),
        "summary": rows,
        "runs": runs,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (options.results / "viewer.json").write_text(text, encoding="utf-8")
    (options.results / "viewer.md").write_text(table(rows) + "\n", encoding="utf-8")
    print(table(rows))
    print(
        f"\nload {machine['load_at_start']} at the start, {psutil.getloadavg()[0]:.2f} at the end"
    )


if __name__ == "__main__":
    main()
