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
    keep_heads: Words = (),
) -> None:
    """Capture attention of a text, a sentence pair, a picture or a sound, and save the record.

    Args:
        text: The text to read; leave it out for models of pictures or sounds alone.
        text_b: The second text of a sentence pair.
        out: Write the record to this file (.safetensors).
        model: Model, and how it runs.
        media: Pictures and sound that the model reads.
        keep: What to store; may be given several times. weights; qk for queries and keys, from
            which weights follow exactly; values; before for queries and keys before positions are
            applied; statistics for numbers about every row without the row; norms for the norms of
            contributions. auto stores queries, keys and values, and weights as long as these stay
            below 256 MiB.
        precision: Precision of the stored arrays.
        rows: How many rows the statistics sample; by default all.
        top: How many of the largest weights of each row the statistics list.
        routers: Store the router scores of mixture-of-experts layers, too.
        keep_heads: Heads to store, as layer and head: 12-7 3-0, or cross:3-0 for one stack; by
            default all.
    """
    from headscope.capturing import parse_keep
    from headscope.storage import save

    check_record_name(out)
    kept: dict[str, Any] = {
        "keep": "auto" if keep == ("auto",) else keep,
        "precision": precision,
        "rows": rows,
    }
    kept |= {
        "top": top,
        "routers": routers,
        "heads": [parse_head(each) for each in keep_heads] or None,
    }
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
            f"Expected layer and head for --keep-heads, such as 12-7 or cross:3-0, got {given!r}"
        )
    stack, layer, head = matched.groups()
    return (int(layer), int(head)) if stack is None else (stack, int(layer), int(head))
