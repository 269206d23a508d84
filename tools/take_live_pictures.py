"""Take the pictures of docs/live.md and the moving one of the README anew, of a live model.

make pictures       # together with all others

Pictures are of the demo model, all-MiniLM-L6-v2, and of a model that writes where one is given: by
the environment variable HEADSCOPE_WRITES, the folder or hub name of a small causal model. The
pictures in docs are of stories260K (Karpathy, MIT licence); without one they are left as they are.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, Page

from headscope.capturing import load_model
from headscope.live._facts import LIMITS
from headscope.live._model import LiveModel
from headscope.live._server import LiveHost, live_application
from headscope.views.listening import listening_on

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
TOKEN = "pictures"
WIDTH = 1240
RABBIT = "The rabbit hopped across the road because it was tired."
HE = "The doctor asked the nurse whether he could help."
SHE = "The doctor asked the kind nurse whether she could help."
STORY = "Once upon a time there was a little girl named"
READY = '[data-headscope][data-ready="true"]'
FRAME = 868
"""Width of the moving picture, in pixels: seven tenths of the page, so that words can be read."""


@contextmanager
def served(name: str | None, text: str) -> Generator[str]:
    """The address of a model behind its server."""
    live = LiveModel(*load_model(name, writes=name is not None), limits=LIMITS, text=text)
    host = LiveHost(name or "demo", text, LIMITS, live)
    with listening_on(0) as listening:
        application = live_application(host, TOKEN)
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/?token={TOKEN}"
        finally:
            server.should_exit = True
            thread.join()


def changed(tab: Page) -> None:
    """Head 1-8, which looks at the next word, is silenced."""
    tab.locator('[data-tile="1-8"]').click()
    tab.keyboard.press("x")
    tab.locator('[data-change="silence 1-8"]').wait_for()
    tab.locator("[data-kl]").wait_for()


def mattering(tab: Page) -> None:
    """Which heads matter."""
    tab.locator('[data-panel="matters"]').click()
    tab.locator("[data-matters]").click()
    tab.locator('[data-matters-ranked="exact"]').wait_for()


def sketched(tab: Page) -> None:
    """The heads that look at the token before."""
    tab.locator('[data-panel="sketch"]').click()
    tab.locator('[data-stamp="previous token"]').click()
    tab.locator("[data-sketched-head]").first.wait_for()


def beside(tab: Page) -> None:
    """He and she."""
    tab.locator('[data-panel="two"]').click()
    tab.locator("[data-other-text]").fill(SHE)
    tab.locator("[data-side-by-side]").click()
    tab.locator('[data-headscope][data-view="compare"]').wait_for(state="attached")


def written(tab: Page) -> None:
    """Ten tokens, with what one of them might have been and what each layer would have said."""
    tab.locator('[data-panel="write"]').click()
    tab.locator("[data-token-count]").select_option("10")
    tab.locator("[data-lens]").check()
    tab.locator("[data-write]").click()
    tab.locator('[data-written-token="9"]').wait_for()
    tab.locator('[data-written-token="1"]').click()
    tab.locator("[data-lens-layers]").wait_for()


Told = tuple[str, str, Callable[[Page], None]]
PICTURES: dict[str, Told] = {
    "live_change": (RABBIT, "light", changed),
    "live_sketch": (RABBIT, "light", sketched),
    "live_two_texts": (HE, "light", beside),
}
"""File name: the text, the colours, and what is done; of the demo model."""
WRITTEN: dict[str, Told] = {
    "live_matters": (STORY, "light", mattering),
    "live_write": (STORY, "dark", written),
}
"""The same of a model that writes."""


def taken(browser: Browser, address: str, pictures: dict[str, Told]) -> None:
    """Pictures of one model."""
    for name, (text, scheme, act) in pictures.items():
        tab = opened(browser, address, scheme)
        typed(tab, text)
        act(tab)
        tab.wait_for_timeout(700)
        saved(tab.screenshot(), FOLDER / f"{name}.webp")
        tab.context.close()


def opened(browser: Browser, address: str, scheme: Any = "light") -> Page:
    """The page of a model."""
    size = {"width": WIDTH, "height": 900}
    context = browser.new_context(
        viewport=size, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1
    )
    tab = context.new_page()
    tab.goto(address)
    tab.locator(READY).wait_for(state="attached")
    tab.get_by_role("button", name="got it").click()
    return tab


def typed(tab: Page, text: str) -> None:
    """A text is typed, and shown."""
    field = tab.locator('[data-field="text"]')
    if field.input_value() != text:
        field.fill(text)
    tab.wait_for_timeout(400)
    tab.locator('[data-live="ready"]').wait_for()


def saved(picture: bytes, path: Path) -> None:
    """A picture of a page as WebP without loss, which is half of a PNG."""
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, lossless=True, quality=90, method=6)
    print(path)


def moving(browser: Browser, address: str) -> None:
    """Type, and heads move; silence head 1-8, and the output moves."""
    tab = opened(browser, address)
    frames: list[Image.Image] = []
    lengths: list[int] = []

    def frame(milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        height = round(FRAME * picture.height / picture.width)
        frames.append(picture.resize((FRAME, height), Image.Resampling.LANCZOS))
        lengths.append(milliseconds)

    typed(tab, "The rabbit hopped.")
    frame(900)
    words = RABBIT[:-1].split()
    for count in range(4, len(words) + 1, 2):
        typed(tab, " ".join(words[:count]))
        frame(450)
    typed(tab, RABBIT)
    frame(900)
    tab.locator('[data-tile="1-8"]').click()
    tab.wait_for_timeout(400)
    frame(900)
    changed(tab)
    tab.wait_for_timeout(600)
    frame(2200)
    tab.locator('[data-tile="2-8"]').click()
    tab.wait_for_timeout(600)
    frame(2200)
    tab.locator('[data-change="silence 1-8"]').click()
    tab.locator("[data-kl]").wait_for(state="detached")
    tab.wait_for_timeout(400)
    mattering(tab)
    tab.wait_for_timeout(500)
    frame(2600)
    path = FOLDER / "live.webp"
    frames[0].save(
        path,
        save_all=True,
        append_images=frames[1:],
        duration=lengths,
        loop=0,
        quality=72,
        method=6,
    )
    print(path, path.stat().st_size)
    tab.context.close()


def live_pictures(browser: Browser) -> None:
    """All of them."""
    with served(None, RABBIT) as address:
        taken(browser, address, PICTURES)
        moving(browser, address)
    writes = os.environ.get("HEADSCOPE_WRITES")
    if writes:
        with served(writes, STORY) as address:
            taken(browser, address, WRITTEN)
