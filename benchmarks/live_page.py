"""What a new text costs server and page of a live model together, in a real browser.

    python benchmarks/live_page.py               # MiniLM, 20 tokens; about half a minute

The server is a process of its own. Its processor time is that of the process, the page's that of
its main thread (``TaskDuration`` of Chromium's ``Performance.getMetrics`` in thread ticks, so that
waiting for a core is not in it), both from before the last key until `QUIET` milliseconds after the
drawing, so that what the page asks for afterwards counts too. ``wall`` is the time from the
question, which follows the last key after its rest, until the frame that shows the answer. Beside
them a plain pass over the same text in this process. Medians in milliseconds, of one torch thread;
the load of the machine is printed, as other work slows all of it, the plain pass too.

The page itself tells when it has drawn: to ask it again and again would cost it time.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import psutil
import torch
from playwright.sync_api import sync_playwright

from headscope.capturing import load_model
from live import clock, text_of

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import find_chromium

READY = '[data-headscope][data-ready="true"]'
QUIET = 400
"""Milliseconds after the drawing that are counted."""
WATCH = """(bar) => {
  performance.clearResourceTimings();
  window.drawn = new Promise((done) => {
    let isRunning = false;
    const end = () => {
      const asked = performance.getEntriesByType("resource");
      const start = asked.find(({ name }) => name.endsWith("/ask"))?.startTime;
      done(start ? performance.now() - start : 0);
    };
    const watch = new MutationObserver(() => {
      if (bar.dataset.live === "running") isRunning = true;
      else if (isRunning) {
        watch.disconnect();
        // Once the frame is painted.
        requestAnimationFrame(() => setTimeout(end));
      }
    });
    watch.observe(bar, { attributes: true, attributeFilter: ["data-live"] });
  });
}"""
"""Notes when the page says that it shows an answer."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    start = "from headscope.cli import main; main()"
    command = [sys.executable, "-u", "-c", start, "serve", "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            lines = (re.search(r"http://\S+", line) for line in server.stdout)
            address = next(match[0] for match in lines if match)
            measure(address, psutil.Process(server.pid), rounds)
        finally:
            server.terminate()


def measure(address: str, server: psutil.Process, rounds: int) -> None:
    """Print medians of a plain pass, and of server and page after a new text and a change."""
    model, tokenizer = load_model()
    rows = {"plain pass": [], "new text": [], "one head changed": []}
    with sync_playwright() as playwright:
        path = find_chromium.find()
        browser = playwright.chromium.launch(executable_path=path, args=find_chromium.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
        page.goto(address)
        page.locator(READY).wait_for(state="attached", timeout=120_000)
        page.locator('[data-live="ready"]').wait_for(state="attached", timeout=120_000)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        for number in range(rounds + 2):
            text = text_of(number)
            inputs = tokenizer(text, return_tensors="pt")
            with torch.no_grad():
                plain = clock(lambda given=inputs: model(**given))
            typed = cost(page, devtools, server, lambda given=text: type_text(page, given))
            changed = cost(page, devtools, server, lambda: page.keyboard.press("x"))
            cost(page, devtools, server, lambda: page.keyboard.press("x"))
            # the first two find the places of the model's attention, and compile the page
            if number >= 2:
                rows["plain pass"].append((plain[0], 0.0, plain[1]))
                rows["new text"].append(typed)
                rows["one head changed"].append(changed)
        browser.close()
    tokens = len(inputs["input_ids"][0])
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{tokens} tokens, {rounds} rounds, milliseconds; load {load} on {os.cpu_count()} cores")
    for name, own in rows.items():
        server_time, page_time, wall = (statistics.median(axis) for axis in zip(*own, strict=True))
        both = server_time + page_time
        times = f"server {server_time:6.0f}   page {page_time:6.0f}   both {both:6.0f}"
        print(f"  {name:18} {times}   wall {wall:6.0f}")


def type_text(page, text: str) -> None:
    """A text in place of the one before, and a head as the focus of keys."""
    page.locator('[data-field="text"]').fill(text)
    page.locator('[data-tile="2-3"]').focus()


def cost(page, devtools, server: psutil.Process, act) -> tuple[float, float, float]:
    """Processor time of server and page for an act, and the time until its answer is drawn."""
    page.locator("[data-live]").evaluate(WATCH)
    before = used(devtools, server)
    act()
    wall = page.evaluate("window.drawn")
    page.wait_for_timeout(QUIET)
    after = used(devtools, server)
    return after[0] - before[0], after[1] - before[1], wall


def used(devtools, server: psutil.Process) -> tuple[float, float]:
    """Milliseconds that the server and the page's main thread were at work."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    (page,) = [each["value"] for each in metrics if each["name"] == "TaskDuration"]
    times = server.cpu_times()
    return 1000 * (times.user + times.system), 1000 * page


if __name__ == "__main__":
    main()
