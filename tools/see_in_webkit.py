"""Open a view in WebKitGTK's MiniBrowser, use it as a reader does, and say what was seen.

python tools/see_in_webkit.py [PAGE] [--pictures FOLDER]

PAGE is a file that a view wrote; without one a page of random weights is written. Needs headscope
and selenium, WebKitWebDriver and MiniBrowser (Debian: webkit2gtk-driver), and a display: `xvfb-run
-a` gives one. Exit 1 where something was not as it should be.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from selenium.webdriver import WebKitGTK, WebKitGTKOptions
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.webkitgtk.service import Service

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.views import View

ROOT = "document.querySelector('#headscope').shadowRoot"
MAIN = f"{ROOT}.querySelector('[data-headscope]')"
VIEWS = ("overview", "head", "matrix", "text", "neuron")
INKED = """
return [...%s.querySelectorAll('.stage canvas')].some((canvas) => canvas.width * canvas.height > 0 && new Set(
  new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 5);
"""


@contextmanager
def minibrowser() -> Generator[WebKitGTK]:
    """A MiniBrowser under automation."""
    options = WebKitGTKOptions()
    browsers = sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))
    if not browsers:
        sys.exit("No MiniBrowser under /usr/lib/*/webkit2gtk-4.*: install webkit2gtk-driver")
    options.binary_location = str(browsers[-1])
    options.add_argument("--automation")
    if os.geteuid() == 0:
        os.environ["WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS"] = (
            "1"  # its sandbox does not start for root
        )
    driver = WebKitGTK(options=options, service=Service("/usr/bin/WebKitWebDriver"))
    try:
        driver.set_window_size(1280, 900)
        yield driver
    finally:
        driver.quit()


class Reader:
    """Somebody who uses a page, and what they found."""

    def __init__(self, driver: WebKitGTK, page: str, pictures: Path | None):
        self.driver, self.page, self.pictures = driver, page, pictures
        self.failed = False

    def js(self, script: str) -> Any:
        """What a script gives."""
        return self.driver.execute_script(script)

    def see(self, what: str, right: Callable[[], object], seconds: float = 20) -> None:
        """Print whether something holds, now or soon."""
        end = time.monotonic() + seconds
        while not (good := bool(right())) and time.monotonic() < end:
            time.sleep(0.1)
        self.failed |= not good
        print(f"  {'yes' if good else 'NO '}  {what}", flush=True)

    def address(self) -> str:
        """The fragment of the address."""
        return self.js("return location.hash")

    def open(self, fragment: str) -> None:
        """Open the page anew."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.page}#v=2&{fragment}")

    def views(self) -> None:
        """Every view is drawn."""
        for view in VIEWS:
            self.open(f"view={view}")
            canvas = view in {"overview", "head", "matrix", "neuron"}
            self.see(
                f"the {view} view opens",
                lambda view=view: self.js(f"return {MAIN}?.dataset.view") == view,
            )
            if canvas:
                self.see("  and has ink", lambda: self.js(INKED % ROOT))
            if self.pictures:
                time.sleep(1)
                self.driver.save_screenshot(str(self.pictures / f"webkit-{view}.png"))

    def hands(self) -> None:
        """Pointer, keys and address do what they do elsewhere."""
        self.open("view=head")
        self.see("the page is ready", lambda: self.js(f"return {MAIN}?.dataset.ready"))
        token = self.js(f"return {ROOT}.querySelector('[data-side=query][data-token=\"2\"]')")
        keys = ActionChains(self.driver)
        keys.move_to_element(token).perform()
        self.see(
            "hovering shows numbers",
            lambda: self.js(f"return {ROOT}.querySelectorAll('[data-lit]').length") > 0,
        )
        keys.click(token).perform()
        self.see("a click pins", lambda: "query=2" in self.address())
        keys.send_keys("]").perform()
        self.see("] goes to the next layer", lambda: "layer=1" in self.address())
        keys.send_keys(Keys.ARROW_DOWN, Keys.ENTER).perform()
        self.see("arrow and Enter pin the next token", lambda: "query=3" in self.address())
        keys.send_keys(Keys.ESCAPE).perform()
        self.see("Escape lets go", lambda: "query" not in self.address())
        self.js("location.hash = 'v=2&view=matrix&layer=1'")
        self.see(
            "the address is followed", lambda: self.js(f"return {MAIN}.dataset.view") == "matrix"
        )
        self.js(f"{ROOT}.querySelector('[data-figure-menu]').click()")
        self.js(f"{ROOT}.querySelector('[data-figure=picture]').click()")
        said = f"return {ROOT}.querySelector('.figure-choices [role=status]').textContent"
        self.see("the picture is saved", lambda: self.js(said).startswith("saved matrix-1"))


def frames(reader: Reader, folder: Path, view: View) -> None:
    """The frame of a notebook gets the height of what it shows."""
    path = folder / "notebook.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{view._repr_html_()}', encoding="utf-8"
    )
    reader.driver.get(path.as_uri())
    height = "return document.querySelector('iframe').style.height"
    reader.see("a notebook's frame gets its height", lambda: reader.js(height) not in {"", "720px"})


def made_up() -> Record:
    """Three layers of two heads with queries and keys, from random numbers."""
    rng = np.random.default_rng(0)

    def layer(number: int) -> Layer:
        queries, keys = (2 * rng.standard_normal((2, 7, 8)).astype(np.float32) for _ in range(2))
        return Layer(layer=number, queries=queries, keys=keys, scale=8**-0.5)

    tokens = Tokens(pieces=tuple("abcdefg"))
    stack = Stack(name="self", query=tokens, key=tokens, layers=tuple(map(layer, range(3))))
    return Record(stacks={"self": stack}, model=ModelFacts(name="random"))


def main() -> None:
    """See it all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path, nargs="?")
    parser.add_argument("--pictures", type=Path, help="folder for a picture of each view")
    options = parser.parse_args()
    view = hs.view(made_up())
    with TemporaryDirectory() as folder, minibrowser() as driver:
        page = options.page or view.save(Path(folder) / "page.html")
        print(f"{driver.capabilities['browserName']} {driver.capabilities['browserVersion']}")
        reader = Reader(driver, page.resolve().as_uri(), options.pictures)
        reader.views()
        reader.hands()
        frames(reader, Path(folder), view)
    sys.exit(reader.failed)


if __name__ == "__main__":
    main()
