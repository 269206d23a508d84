"""Take the pictures of docs/live.md and the moving one of the README anew, of a live model.

make pictures       # together with all others

Each is taken in light and in dark colours (NAME.webp, NAME_dark.webp). Pictures are of the demo
model, all-MiniLM-L6-v2; of a tiny model of pictures with random weights (tests/processors.py); and
of a model that writes where one is given: by the environment variable HEADSCOPE_WRITES, the folder
or hub name of a small causal model. Those in docs, and the moving one, are of stories260K
(Karpathy, MIT licence); without one they are left as they are.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page

import headscope as hs
from headscope.atlases import Atlas
from headscope.capturing import load_model
from headscope.live._facts import LIMITS
from headscope.live._model import LiveModel
from headscope.live._server import LiveHost, live_application
from headscope.views.listening import listening_on
from picture_texts import TEXTS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
TOKEN = "pictures"
WIDTH = 1240
RABBIT = "The rabbit hopped across the road because it was tired."
HE = "The doctor asked the nurse whether he could help."
SHE = "The doctor asked the kind nurse whether she could help."
DOG = "One day Lily saw a big dog. Lily was scared of the"
SILENCED = "4-4"
"""Of the heads of stories260K the one without which the next token of `DOG` is no longer dog."""
STORY = "Once upon a time there was a little girl named"
READY = '[data-headscope][data-ready="true"]'
FRAME = 868
"""Width of the moving picture, in pixels: seven tenths of the page, so that words can be read."""


@contextmanager
def served(model: tuple[Any, Any], text: str, atlas: Atlas | None = None) -> Generator[str]:
    """The address of a model behind its server."""
    live = LiveModel(*model, limits=LIMITS, text=text)
    host = LiveHost("", text, LIMITS, live, atlas=atlas)
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


def panel(tab: Page, name: str) -> None:
    """One of the questions behind "more"."""
    tab.locator("[data-live-more]").click()
    tab.locator(f'[data-panel="{name}"]').click()


def mattering(tab: Page) -> None:
    """Which heads matter."""
    panel(tab, "matters")
    tab.locator("[data-matters]").click()
    tab.locator('[data-matters-ranked="exact"]').wait_for()


def sketched(tab: Page) -> None:
    """The heads that look at the token before."""
    panel(tab, "sketch")
    tab.locator('[data-stamp="previous token"]').click()
    tab.locator("[data-sketched-head]").first.wait_for()


def answered(tab: Page) -> None:
    """A question about a picture, and the heat of one word of the answer over it."""
    panel(tab, "answer")
    file = io.BytesIO()
    drawn_picture().save(file, "PNG")
    picture = {"name": "house.png", "mimeType": "image/png", "buffer": file.getvalue()}
    tab.set_input_files('[data-field="image"]', files=[picture])  # ty: ignore[invalid-argument-type]
    tab.locator("[data-token-count]").select_option("8")
    tab.locator('[data-answer="start"]').click()
    tab.locator('[data-answered] [data-word="2"]').click()


def drawn_picture() -> Image.Image:
    """A house below the sun."""
    picture = Image.new("RGB", (40, 24), "#9fd3f5")
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 18, 39, 23), fill="#6aa84f")
    draw.ellipse((29, 2, 36, 9), fill="#ffd54a")
    draw.rectangle((8, 11, 19, 19), fill="#c94f3d")
    draw.polygon(((6, 11), (21, 11), (13, 4)), fill="#6b3a2e")
    return picture


Act = Callable[[Page], None]
PICTURES: dict[str, tuple[str, Act]] = {
    "live_change": (RABBIT, changed),
    "live_sketch": (RABBIT, sketched),
}
"""File name: the text, and what is done; of the demo model."""
WRITTEN: dict[str, tuple[str, Act]] = {"live_matters": (STORY, mattering)}
"""The same of a model that writes."""
ANSWERED: dict[str, tuple[str, Act]] = {"live_answer": ("what is it", answered)}
"""The same of a model that reads pictures."""


def taken(browser: Browser, address: str, pictures: dict[str, tuple[str, Act]]) -> None:
    """Pictures of one model, in both colours."""
    for name, (text, act) in pictures.items():
        for scheme in ("light", "dark"):
            tab = opened(browser, address, scheme)
            typed(tab, text)
            act(tab)
            tab.wait_for_timeout(700)
            suffix = "" if scheme == "light" else "_dark"
            saved(tab.screenshot(), FOLDER / f"{name}{suffix}.webp")
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
    return tab


def typed(tab: Page, text: str) -> None:
    """A text is typed, and shown."""
    field = tab.locator('[data-field="text"]')
    if field.input_value() != text:
        field.fill(text)
    tab.wait_for_timeout(1500)
    tab.locator('[data-live="ready"]').wait_for()


def saved(picture: bytes, path: Path) -> None:
    """A picture of a page as WebP without loss, which is half of a PNG."""
    Image.open(io.BytesIO(picture)).convert("RGB").save(path, lossless=True, quality=90, method=6)
    print(path)


def moving(browser: Browser, address: str) -> None:
    """Type, and heads and predictions move; silence a head, and another word comes."""
    tab = opened(browser, address)
    frames: list[Image.Image] = []
    lengths: list[int] = []

    def frame(milliseconds: int) -> None:
        tab.wait_for_timeout(400)
        picture = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        height = round(FRAME * picture.height / picture.width)
        frames.append(picture.resize((FRAME, height), Image.Resampling.LANCZOS))
        lengths.append(milliseconds)

    words = DOG.split()
    for count in (4, 7, 10, len(words)):
        typed(tab, " ".join(words[:count]))
        frame(700)
    lengths[-1] = 1500
    tab.locator(f'[data-tile="{SILENCED}"]').click()
    frame(1300)
    # The page moves below the pointer, which would then show the head that comes to lie there.
    tab.mouse.move(0, 0)
    tab.keyboard.press("x")
    tab.locator(f'[data-change="silence {SILENCED}"]').wait_for()
    tab.locator("[data-kl]").first.wait_for()
    frame(3000)
    tab.locator(f'[data-change="silence {SILENCED}"]').click()
    tab.locator("[data-kl]").first.wait_for(state="detached")
    mattering(tab)
    frame(2600)
    path = FOLDER / "live.webp"
    rest: dict[str, Any] = {"duration": lengths, "loop": 0, "quality": 72, "method": 6}
    frames[0].save(path, save_all=True, append_images=frames[1:], **rest)
    print(path, path.stat().st_size)
    tab.context.close()


def live_pictures(browser: Browser) -> None:
    """All of them."""
    model = load_model(None)
    atlas = hs.atlas(*model, [*TEXTS, RABBIT, HE, SHE], battery=False, progress=False)
    with served(model, RABBIT, atlas) as address:
        taken(browser, address, PICTURES)
    # The tiny models of the tests are no part of the package.
    sys.path.append(str(ROOT))
    from tests.processors import tiny_qwen_vl

    with served(tiny_qwen_vl("qwen3_vl"), "what is it") as address:
        taken(browser, address, ANSWERED)
    writes = os.environ.get("HEADSCOPE_WRITES")
    if writes:
        with served(load_model(writes, writes=True), STORY) as address:
            taken(browser, address, WRITTEN)
            moving(browser, address)
