"""headscope capture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, is_folder
from headscope.cli._media import Media
from headscope.cli._page import Words
from headscope.cli._run import ModelOptions, captured, check_record_name, say, say_checked, say_what
from headscope.cli._study import outcomes_of, text_or_chat
from headscope.errors import CaptureError, FileError, RunError, TextError

HEAD = re.compile(r"(?:(.+):)?(\d+)-(\d+)")


def capture(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    chat: Path | None = None,
    out: Path,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    media: Media | None = None,
    keep: tuple[
        Literal["auto", "weights", "qk", "values", "before", "statistics", "norms", "alti"], ...
    ] = ("auto",),
    precision: Literal["float32", "float16"] = "float32",
    rows: int | None = None,
    top: int = 0,
    routers: Annotated[bool, Parameter(negative="")] = False,
    keep_heads: Words = (),
    corpus: CorpusOptions | None = None,
) -> None:
    """Capture attention of a text, a sentence pair, a picture or a sound, and save the record; of
    many texts, a record each.

    Args:
        text: The text to read; leave it out for models of pictures or sounds alone.
        text_b: The second text of a sentence pair.
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        out: Write the record to this file (.safetensors), or the records of --texts and their
            index, records.jsonl, into this folder; the same command resumes after what is there.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b.
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
        corpus: Who captures the texts of --texts.
    """
    from headscope.capturing import parse_keep

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
    text = text_or_chat(text, chat, text_b, texts)
    options, run_options = model or ModelOptions(), corpus or CorpusOptions()
    if texts is not None:
        check_none_beside_texts(text, media, options)
        _capture_file(texts, out, options, corpus=run_options, kept=kept)
        return
    if run_options.is_given:
        raise RunError(
            "--workers, --dask and --part-size are for the texts of a file: give --texts"
        )
    _capture_one((text, text_b), out, options, media=media or Media(), kept=kept)


def _capture_one(
    given: tuple[str | None, str | None],
    out: Path,
    options: ModelOptions,
    *,
    media: Media,
    kept: dict[str, Any],
) -> None:
    """The record of one input to a file."""
    check_record_name(out)
    media.check(*given)
    # Layer by layer, so that a record may be larger than memory.
    record = captured(given, options, out, media=media, writes=True, **kept)
    say_what(record)
    say_checked(record)
    say(f"Wrote {out.resolve()} ({out.stat().st_size / 1e6:.2f} MB)")


def check_none_beside_texts(text: str | None, media: Media | None, options: ModelOptions) -> None:
    """Raise where a file of texts was given and something else to read with it.

    Raises:
        TextError: naming it.
    """
    beside = {
        "a text": text,
        "--target": options.target,
        "--target-tokenizer": options.target_tokenizer,
        "a picture or sound": media and media.given,
    }
    for what, given in beside.items():
        if given:
            raise TextError(f"Expected --texts alone, got {what} with it; leave one of them out")


def _capture_file(
    texts: Path, out: Path, options: ModelOptions, *, corpus: CorpusOptions, kept: dict[str, Any]
) -> None:
    """The records of the texts of a file to a folder."""
    if not is_folder(out):
        raise FileError(
            f"Expected a folder for --out with --texts, got {out}; leave the suffix out"
        )
    given = outcomes_of(texts)
    with corpus.reading(options, out, given=given) as (source, how):
        from headscope.capturing import MOST_UNKNOWN, capture_many

        how["max_unknown"] = 1.0 if how.pop("allow_unfit") else MOST_UNKNOWN
        records = capture_many(*source, given, progress=True, **kept, **how)
    say(f"Wrote {len(records):,} records to {out.resolve()}")


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
