"""headscope capture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._media import Media
from headscope.cli._page import Words
from headscope.cli._run import ModelOptions, captured, check_record_name, say, say_checked, say_what
from headscope.errors import CaptureError

HEAD = re.compile(r"(?:(.+):)?(\d+)-(\d+)")


def capture(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    out: Path,
    model: ModelOptions | None = None,
    media: Media | None = None,
    keep: tuple[
        Literal["auto", "weights", "qk", "values", "before", "statistics", "norms"], ...
    ] = ("auto",),
    precision: Literal["float32", "float16"] = "float32",
    rows: int | None = None,
    top: int = 0,
    routers: Annotated[bool, Parameter(negative="")] = False,
    heads: Words = (),
) -> None:
    """Capture a text, a sentence pair, a picture or a sound, and keep the record as one
    .safetensors file.

    Args:
        text: The text; models of pictures or sounds alone have none.
        text_b: The second text of a sentence pair.
        out: Where to write the record; must end in .safetensors.
        model: Which model, and what it reads.
        media: Pictures and sound that the model reads.
        keep: What to keep; may be given several times. qk keeps queries and keys, from which
            weights follow exactly; before keeps what they were before positions; statistics keeps
            numbers about every row without the row; norms keeps what tokens add; auto keeps
            queries, keys and values, and the weights too while these stay below 256 MiB.
        precision: Of what is kept.
        rows: How many rows the statistics sample; by default all.
        top: How many of the largest weights of each row the statistics name.
        routers: Keep the router scores of mixture-of-experts layers, too.
        heads: The heads that alone are kept, as layer and head: 12-7 3-0, or cross:3-0 of one
            stack; all by default.
    """
    from headscope.capturing import parse_keep
    from headscope.storage import save

    check_record_name(out)
    kept: dict[str, Any] = {
        "keep": "auto" if keep == ("auto",) else keep,
        "precision": precision,
        "rows": rows,
    }
    kept |= {"top": top, "routers": routers, "heads": [parse_head(each) for each in heads] or None}
    parse_keep(**kept)
    media = media or Media()
    media.check(text, text_b)
    record = captured(
        (text, text_b),
        model or ModelOptions(),
        out,
        media=media,
        shows_budget=True,
        **kept,
    )
    path = save(record, out)
    say_what(record)
    say_checked(record)
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")


def parse_head(given: str) -> tuple:
    """A head as it is given on the command line: 12-7, or cross:3-0.

    Raises:
        CaptureError: where it is no head.
    """
    matched = HEAD.fullmatch(given)
    if matched is None:
        raise CaptureError(
            f"--heads {given}: a head is named by its layer and its number, such as 12-7, or "
            "cross:3-0"
        )
    stack, layer, head = matched.groups()
    return (int(layer), int(head)) if stack is None else (stack, int(layer), int(head))
