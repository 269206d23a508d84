"""headscope view."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._media import Media
from headscope.cli._page import PageChoices, PageFiles, shown_page
from headscope.cli._run import (
    RECORD_SUFFIX,
    ModelOptions,
    captured,
    check_writable,
    say,
    say_checked,
    say_what,
    say_where,
    status,
)
from headscope.cli._study import capturing, loaded, parse_texts, text_or_chat
from headscope.errors import FileError, HeadscopeError, TextError

PAGE = ".html"
PAGES = (PAGE, ".htm", ".xhtml")


def view(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    chat: Path | None = None,
    out: Path | None = None,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    media: Media | None = None,
    page: PageChoices | None = None,
    files: PageFiles | None = None,
    norms: Annotated[bool, Parameter(negative="")] = False,
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Capture a text, a sentence pair, a sentence of a treebank, a picture or a sound, and write
    the viewer page.

    Args:
        text: The text to read, or a record file (.safetensors) to show; by default the sentence of
            --treebank.
        text_b: The second text of a sentence pair.
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        out: Write the page to this file (.html); by default headscope.html. With --texts a folder,
            by default headscope-pages, with 1.html, 2.html ...
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b; each gets a page.
        model: Model, and how it runs.
        media: Pictures and sound that the model reads.
        page: What the page holds and shows first.
        files: What the page holds besides.
        norms: Also store norms, shown as quantities: contributions, ALTI and rollout.
        open_: Open the page in the browser.
    """
    from headscope.storage import load
    from headscope.views.file_page import open_page

    files, model, media = files or PageFiles(), model or ModelOptions(), media or Media()
    files.check()
    text = text_or_chat(text, chat, text_b, texts)
    if texts is not None:
        if text is not None or media.given or open_:
            raise TextError("--texts replaces a text, a picture, a sound and --open; remove those")
        write_pages(
            texts, out or Path("headscope-pages"), model, page=page or {}, files=files, norms=norms
        )
        return
    out = out or Path("headscope.html")
    check_writable(out, PAGE)
    if out.suffix.lower() not in PAGES:
        raise FileError(f"Expected a {PAGE} file for --out, got {out}; use {out.with_suffix(PAGE)}")
    if text is None and files.treebank is not None:
        text = files.gold.text
    media.check(text, text_b)
    if str(text).endswith(RECORD_SUFFIX):
        if text_b is not None:
            raise TextError(
                f"{text} is a record file, which already holds its texts; remove {text_b!r}"
            )
        if norms:
            raise TextError(
                f"{text} is a record file; norms can only be stored when it is captured: "
                "headscope capture --keep norms"
            )
        record = load(text)
    else:
        record = captured((text, text_b), model, out, media=media, keep="alti" if norms else "auto")
    given = files.given(record, model)
    with status("Writing the page"):
        path = shown_page(record, page or {}, given).save(out)
    say_what(record)
    say_checked(record)
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")
    if open_:
        open_page(path.resolve().as_uri())


def write_pages(
    texts: Path,
    folder: Path,
    model: ModelOptions,
    *,
    page: PageChoices,
    files: PageFiles,
    norms: bool,
) -> None:
    """Write a page for each text of a file, named by its number, with the model loaded once.

    Raises:
        HeadscopeError: errors of the file, the folder or the model.
    """
    if folder.exists() and not folder.is_dir():
        raise FileError(f"Expected a folder for --out with --texts, got the file {folder}")
    for name in ("treebank", "links", "comparison", "quantities"):
        if getattr(files, name) is not None:
            raise TextError(f"--{name} is of one text; leave --texts out")
    given = parse_texts(None, None, texts)
    source = loaded(given, model)
    from headscope.capturing import capture_many

    folder.mkdir(parents=True, exist_ok=True)
    reading = capturing(given, model)
    reading.pop("allow_unfit")
    lost, on_error = set(), reading.pop("on_error")

    def lose(number: int, error: HeadscopeError) -> None:
        lost.add(number)
        on_error(number, error)

    options: dict[str, Any] = {}
    # A text that is left out is reported before the record of any later one comes.
    numbers = (number for number in range(len(given)) if number not in lost)
    for record in capture_many(
        *source, given, keep="alti" if norms else "auto", on_error=lose, **reading
    ):
        # Evidence over texts is the same for all pages and computed once.
        options = files.given(record, model, options.get("evidence"))
        number = next(numbers) + 1
        path = shown_page(record, page, options).save(folder / f"{number}.html")
        say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB): {record.summary}")
    say_where()
