"""Commands that show a record: as the viewer page, and as a figure for print.

Options with simple values are declared in `headscope.views.options` and
`headscope.views.figure_options`. Options that are objects in Python are files here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args

from cyclopts import Parameter

from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._page_files import FigureFiles, PageFiles
from headscope.cli._run import Input, ModelOptions, left_out, say
from headscope.cli._signature import made_from, parameters
from headscope.cli._study import Study, parse_texts
from headscope.errors import FigureError, FileError, TextError
from headscope.views.figure_options import WrittenFigureOptions
from headscope.views.options import (
    MOVED_VIEWS,
    TOKEN_OPTIONS,
    Option,
    ViewName,
    WrittenOptions,
    declared,
)

if TYPE_CHECKING:
    from headscope.record import Record
    from headscope.views import View

TRAY = 'Pictures side by side: 2-0 7-3, or quoted "7-3 query=store view=matrix"'
AT = (
    "Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; short for --layer and "
    "--heads."
)
OF_A_FIGURE = "up to six; or kinds for the clearest head of each kind on this text"
OF_ONE = ("treebank", "links", "comparison", "quantities")
"""Files of one text."""


def _declared(group: str, kind: type, tray: str, **more: Option) -> Any:
    """The declared options as a type that cyclopts reads."""
    fields: Any = parameters({**declared(kind), **more}, tray=tray)
    fields["at"] = Annotated[tuple[str, ...], Parameter(help=AT)]
    kind: Any = TypedDict(group, fields, total=False)  # ty: ignore
    return Annotated[kind, Parameter(name="*", group=group)]


VIEW = declared(WrittenOptions)["view"]
# A page takes the names of views that are drawn only for print, too, as `headscope.view` does.
EVERY_VIEW = replace(VIEW, type=Literal.__getitem__((*get_args(ViewName), *MOVED_VIEWS)))
if TYPE_CHECKING:
    PageChoices = dict[str, Any]
    FigureChoices = dict[str, Any]
else:
    PageChoices = _declared("Page", WrittenOptions, f"{TRAY}.", view=EVERY_VIEW)
    FigureChoices = _declared("Figure", WrittenFigureOptions, f"{TRAY}, {OF_A_FIGURE}.")


def shown_page(record: Record, choices: Mapping[str, Any], beside: Mapping[str, Any]) -> View:
    """The view of a record.

    Args:
        record: the record that is shown.
        choices: options of `headscope.view` from the command line.
        beside: options from files, by `PageFiles.given`.

    Raises:
        HeadscopeError: errors of the options.
    """
    from headscope.views import view

    options: dict[str, Any] = {**_placed(choices), **beside}
    if options.get("layer") is not None:
        stack = record.stacks.get(options.get("stack") or next(iter(record.stacks)))
        layers = [each.layer for each in stack or ()]
        options["layer"] = files.layer_number(options["layer"], layers)
    for name in TOKEN_OPTIONS:
        if name in options:
            options[name] = [files.position_or_word(each) for each in options[name]]
    return view(options.pop("comparison", record), **options)


@made_from()
def view(
    asked: Input,
    *,
    out: Path | None = None,
    texts: Path | None = None,
    norms: bool = False,
    open_: Annotated[bool, Parameter(name="--open")] = False,
    page: PageChoices | None = None,
    shown: PageFiles = PageFiles(),
) -> None:
    """Capture a text, picture or sound and write the viewer page.

    headscope view "I went to the store." "At the store, I bought strawberries." --open

    headscope view run.safetensors --view matrix --layer 2 --heads 0 --out page.html

    Args:
        asked: What is read, and the model.
        text: The text to read, or a record file (.safetensors) to show; by default the sentence of
            --treebank.
        out: Write the page to this file (.html); by default headscope.html. With --texts a folder,
            by default headscope-pages, with 1.html, 2.html ...
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b; each gets a page.
        norms: Also store norms, shown as quantities: contributions, ALTI and rollout.
        open_: Open the page in the browser.
        page: What the page holds and shows first.
        shown: What the page holds besides.
    """
    from headscope.storage import load
    from headscope.views.file_page import open_page

    shown.check()
    text, given, model = asked.written(texts), asked.media.given, asked.model
    keep = "alti" if norms else "auto"
    if texts is not None:
        if text is not None or given or open_:
            raise TextError("--texts replaces a text, a picture, a sound and --open; remove those")
        _write_pages(texts, out or Path("headscope-pages"), model, keep, page or {}, shown)
        return
    out = out or Path("headscope.html")
    files.check_suffix("--out", out, files.PAGES)
    if text is None and shown.gold is not None:
        text = shown.gold.text
    if str(text).endswith(files.RECORD):
        beside = {repr(asked.text_b): asked.text_b, "--image, --video and --sound": given}
        refusal = f"{text} is a record file, which already holds its input; remove {{}}"
        files.check_absent(beside, refusal)
        if norms:
            raise TextError(
                f"{text} is a record file; norms can only be stored when it is captured: "
                "headscope capture --keep norms"
            )
        record = load(text)
    else:
        parsed = asked.media.parsed(text, asked.text_b, model.target)
        record = run.captured(parsed, model, keep=keep)
    options = shown.given(record, model)
    with run.status("Writing the page"):
        path = shown_page(record, page or {}, options).save(out)
    run.say_what(record)
    run.say_written(path)
    if open_:
        open_page(path.resolve().as_uri())


def _write_pages(
    texts: Path,
    folder: Path,
    model: ModelOptions,
    keep: str,
    page: Mapping[str, Any],
    shown: PageFiles,
) -> None:
    """Write a page for each text of a file, named by its number, with the model loaded once.

    Raises:
        HeadscopeError: errors of the file, the folder or the model.
    """
    from headscope.storage import local_path

    if local_path(folder).exists() and not folder.is_dir():
        raise FileError(f"Expected a folder for --out with --texts, got the file {folder}")
    of_one = {name: getattr(shown, name) is not None for name in OF_ONE}
    files.check_absent(of_one, "--{} is of one text; leave --texts out")
    given = parse_texts(None, None, texts)
    with Study(model=model).reading(given) as (source, reading):
        from headscope.capturing import capture_many

        folder.mkdir(parents=True, exist_ok=True)
        reading.pop("allow_unfit")
        lost: dict[int, Any] = {}
        reading |= {"keep": keep, "on_error": left_out.losing(lost, alone=len(given) == 1)}
        known: Any = None
        # A text that is left out is reported before the record of any later one comes.
        numbers = (number for number in range(len(given)) if number not in lost)
        for record in capture_many(*source, given, **reading):
            options = shown.given(record, model, known)
            # Evidence over texts is the same for all pages and computed once.
            known = options.get("evidence")
            path = shown_page(record, page, options).save(folder / f"{next(numbers) + 1}.html")
            run.say_written(path, f": {record.summary}")
    run.say_where()


def figure(
    file: Path,
    /,
    *,
    out: Path,
    choices: FigureChoices | None = None,
    shown: FigureFiles = FigureFiles(),
    dpi: float = 300.0,
    model: ModelOptions = ModelOptions(),
) -> None:
    """Draw a figure of a record for print: .svg, .pdf or .png.

    headscope figure run.safetensors --view matrix --at 2-0 --out matrix.pdf

    headscope figure run.safetensors --tray 2-0 7-3 --out heads.svg

    Args:
        file: The record (.safetensors), as headscope capture keeps it.
        out: Write the figure to this file (.svg, .pdf or .png).
        choices: What is drawn, and how.
        shown: What is shown with the record.
        dpi: Dots in an inch of a PNG.
        model: Which model reads the texts of the evidence.
    """
    from headscope.storage import load
    from headscope.views.figures import figure as draw
    from headscope.views.figures.fonts import missing_words

    options = _figure_options(choices or {})
    files.check_suffix("--out", out, files.PICTURES)
    shown.check()
    if (shown.evidence or shown.evidence_of) and options["view"] != "scatter":
        raise FigureError(
            f"--evidence and --evidence-of need --view scatter, got --view {options['view']}"
        )
    record = load(file)
    drawn = draw(record, **options, **shown.given(record, model))
    path = drawn.save(out, dpi=dpi)
    if drawn.missing:
        sys.stderr.write(f"{missing_words(drawn.missing)}\n")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e3:.0f} kB)")


def _placed(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Options with ``at`` as layer and heads.

    Raises:
        FigureError: where layer and heads are given twice, or are of several layers.
    """
    options: dict[str, Any] = dict(choices)
    at = options.pop("at", ())
    places = files.parse_places(at, "--at")
    if len(places) > 1:
        raise FigureError(
            f"Expected one layer and its heads for --at, such as 2-0,3, got {' '.join(at)}; for "
            "heads of several layers give --tray"
        )
    chosen: dict[str, Any] = {}
    for layer, heads in places:
        one = {"head": heads[0]} if len(heads) == 1 else {"heads": heads or None}
        chosen = {"layer": layer} | one
    for name in sorted(chosen.keys() & options.keys()):
        raise FigureError(f"--at and --{name} both say where to look; give one of them")
    return options | chosen


def _figure_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `headscope.figure` from the command line.

    Raises:
        FigureError: where layer and heads are given twice, or are of several layers.
    """
    options = _placed(choices)
    for side in ("query", "key"):
        if side in options:
            options[side] = files.position_or_word(options[side])
    if options.get("tray") == ["kinds"]:
        options["tray"] = "kinds"
    options.setdefault("view", "compare" if "tray" in options else "head")
    # In the order of the declaration, in which the figure's metadata has them.
    return {name: options[name] for name in declared(WrittenFigureOptions) if name in options}
