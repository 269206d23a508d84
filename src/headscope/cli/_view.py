"""headscope view."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from headscope.cli._media import Media
from headscope.cli._page import PageChoices
from headscope.cli._run import RECORD_SUFFIX, ModelOptions, captured, say, status
from headscope.errors import TextError


def view(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    out: Path = Path("headscope.html"),
    model: ModelOptions | None = None,
    media: Media | None = None,
    page: PageChoices | None = None,
    norms: Annotated[bool, Parameter(negative="")] = False,
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Capture a text, a sentence pair, a sentence of a treebank, a picture or a sound, and write the viewer page.

    Args:
        text: The text, or a record file (.safetensors) to show; by default the words of the --treebank's sentence.
        text_b: The second text of a sentence pair.
        out: Where to write the page.
        model: Which model, and what it reads.
        media: Pictures and sound that the model reads.
        page: What the page holds and shows first.
        norms: Keep what tokens add, too: the quantities contribution, contribution-heads, contribution-residual, alti
            and rollout.
        open_: Open the page in the browser.
    """
    from headscope.storage import load
    from headscope.views import view as viewed
    from headscope.views._view import open_page

    page, model, media = page or PageChoices(), model or ModelOptions(), media or Media()
    page.check()
    if text is None and page.treebank is not None:
        text = page.gold.text
    media.check(text, text_b)
    if text is not None and text.endswith(RECORD_SUFFIX):
        if text_b is not None:
            raise TextError(f"{text} is a record file, which holds its texts already; leave {text_b!r} out")
        if norms:
            raise TextError(f"{text} is a record file; whether it holds norms was chosen when it was captured: --keep")
        record = load(text)
    else:
        record = captured((text, text_b), model, out, media=media, keep="norms" if norms else "auto")
    options = page.options(record, model)
    with status("Writing the page"):
        path = viewed(record, **options).save(out)
    say(record.summary)
    if record.verified is not None:
        say(f"Checked against the model's own layer outputs: largest difference {record.verified:.1e}")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")
    if open_:
        open_page(path.resolve().as_uri())
