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
from headscope.cli._asked import FILES, INPUT, MODEL, PAGE_FILES, Request
from headscope.cli._files import RECORD, hs, left_out, say
from headscope.cli._signature import made_from, place_of, plain_help
from headscope.errors import FigureError, FileError, HeadscopeError, TextError
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
    from headscope.patterns import Heads
    from headscope.record import Record
    from headscope.views import View

TRAY = 'Pictures side by side: 2-0 7-3, or quoted "7-3 query=store view=matrix"'
AT = (
    "Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; short for --layer and "
    "--heads."
)
OF_A_FIGURE = "up to six; or kinds for the clearest head of each kind on this text"
OF_ONE = "comparison links treebank quantities"
"""Files of one text."""
TREEBANK = ".conllu"
MOST_COMPARED = 256
"""Number of heads up to which all are compared with each other over the texts, the slowest step."""


def _declared(group: str, kind: type, tray: str, **others: Option) -> Any:
    """The declared options as a type that cyclopts reads: a dictionary of those that are given, so
    that no default is repeated here; ``tray`` has another form here than in Python.
    """
    fields: Any = {}
    for name, option in {**declared(kind), **others}.items():
        off = option.default.off or None if option.default else None
        text = tray if name == "tray" else plain_help(option.help)
        more: Any = {"group": group} | place_of(name)
        fields[name] = Annotated[option.written, Parameter(help=text, negative=off, **more)]
    fields["at"] = Annotated[tuple[str, ...], Parameter(help=AT)]
    kind: Any = TypedDict(group, fields, total=False)  # ty: ignore
    return Annotated[kind, Parameter(name="*", group=group)]


VIEW = declared(WrittenOptions)["view"]
# A page takes the names of views that are drawn only for print, too, as `headscope.view` does.
EVERY_VIEW = replace(VIEW, type=Literal.__getitem__((*get_args(ViewName), *MOVED_VIEWS)))
PageChoices: Any = _declared("Page", WrittenOptions, f"{TRAY}.", view=EVERY_VIEW)
FigureChoices: Any = _declared("Figure", WrittenFigureOptions, f"{TRAY}, {OF_A_FIGURE}.")


def check_files(asked: Request) -> None:
    """Raise where evidence or a sentence cannot be read, before any work.

    Raises:
        TextError: where files do not go together.
        FileError: where one does not exist, or holds something else.
    """
    if asked.evidence and asked.evidence_of is not None:
        raise TextError("--evidence is of this text, --evidence-of of others; use one of them")
    if asked.evidence_of is not None:
        _check_evidence(asked.evidence_of)
    if asked.sentence is not None and asked.treebank is None:
        raise TextError(f"--sentence {asked.sentence} is of no treebank; give --treebank")
    if asked.treebank is not None and asked.links is not None:
        raise TextError("--links and --treebank both give gold links; give one of them")
    # Read now, so that a mistake is reported before the model is loaded.
    gold_of(asked)


def _check_evidence(file: Path) -> None:
    known = (*hs.storage.SUFFIXES, RECORD, TREEBANK)
    if file.suffix not in known:
        raise FileError(f"Expected {', '.join(known)} for --evidence-of, got {file}")
    if file.suffix in hs.storage.SUFFIXES:
        hs.storage.read_texts(file)
    elif not file.is_file():
        raise FileError(f"{file} does not exist")


def gold_of(asked: Request) -> Any:
    """The chosen sentence of the treebank; None without one.

    Raises:
        FileError: where the treebank cannot be read or has no such sentence.
    """
    if asked.treebank is None:
        return None
    bank = hs.linguistics.read_treebank(asked.treebank)
    # Names win over numbers, since a sent_id may be a number itself.
    named = {str(number): each for number, each in enumerate(bank)}
    named |= {each.name: each for each in bank}
    wanted = "0" if asked.sentence is None else asked.sentence
    if wanted not in named:
        raise FileError(
            f"{asked.treebank} has no sentence {wanted!r}; give a sent_id, such as "
            f"{bank.sentences[0].name!r}, or a number from 0 to {len(bank) - 1}"
        )
    return named[wanted]


def beside_of(asked: Request, record: Record, known: Any = None) -> dict[str, Any]:
    """The options of `headscope.view` and `headscope.figure` that files give.

    Args:
        asked: the files, and the model that reads the texts of the evidence.
        record: that is shown.
        known: evidence over texts that was computed for another record of the same model.

    Raises:
        HeadscopeError: errors of these files or the model.
    """
    options: dict[str, Any] = {}
    if asked.evidence or asked.evidence_of:
        options["evidence"] = known or evidence_of(record, asked)
    if asked.quantities is not None:
        options["quantities"] = read_quantities(asked.quantities)
    for each in asked.beside:
        other = asked.of_model(text=each)
        is_file = each.endswith(RECORD)
        read = hs.storage.load(Path(each)) if is_file else other.captured(other.parsed())
        options.setdefault("beside", []).append(read)
    if asked.comparison is not None:
        other = hs.storage.load(asked.comparison)
        options["comparison"] = hs.comparison.compare(other, record)
    if asked.links is not None:
        options["links"] = read_links(asked.links)
    if asked.treebank is not None:
        options["links"] = gold_of(asked)
    return options


def evidence_of(record: Record, asked: Request) -> Heads:
    """Evidence about the heads: over the texts of a file, or on the record alone.

    Args:
        record: the record that the page shows.
        asked: the model, and a file of texts that it reads, a tally saved by
            `headscope.patterns.Tally.save`, or a treebank, whose relations are the labels; checked
            by `check_files`.

    Raises:
        HeadscopeError: errors of the texts or the model.
    """
    file = asked.evidence_of
    if file is None:
        return hs.patterns.heads(record)
    if file.suffix == RECORD:
        kept = hs.results.load(file)
        if not isinstance(kept, hs.patterns.Heads):
            raise FileError(
                f"Expected the result of headscope.heads, got a {type(kept).__name__} in {file}; "
                f"save one with heads(...).save({file.name!r})"
            )
        return kept
    asked = asked.of_model(target=None, target_tokenizer=None)
    if file.suffix == TREEBANK:
        bank = hs.linguistics.read_treebank(file)
        return asked.run("relations", bank, trees=False, on_error=None).as_heads()

    def lose(index: int, error: HeadscopeError) -> None:
        place = hs.storage.place_of(hs.storage.read_rows(file)[index], str(file), index + 1)
        # The error of a row names its place itself.
        why = str(error) if place in str(error) else f"{place}: {error}"
        left_out.note(f"{index + 1} of the evidence", why)

    texts = hs.storage.read_texts(file)
    # Beside those that were left out of the pages themselves.
    left_out.of += len(texts)
    cells = sum(layer.heads for stack in record.stacks.values() for layer in stack)
    how: dict[str, Any] = {"on_error": lose, "battery": False}
    return asked.run("heads", texts, distances=cells <= MOST_COMPARED, **how)


def read_quantities(file: Path) -> dict[str, Any]:
    """The option ``quantities`` of `headscope.view`: each array of a file as a list of layers.

    Raises:
        FileError: where it cannot be read.
    """
    with hs.storage.reading(file, "arrays"):
        arrays = hs.storage.read_npz(file)
    quantities: dict[str, Any] = {}
    for name, array in arrays.items():
        stack, _, quantity = name.rpartition("/")
        if array.ndim < 3:
            raise FileError(
                f"{file}: {name!r} has the shape {array.shape}; give the axes layer, query, key, "
                "or layer, head, query, key"
            )
        if stack:
            quantities.setdefault(quantity, {})[stack] = list(array)
        else:
            quantities[quantity] = list(array)
    return quantities


def read_links(file: Path) -> list[Any]:
    """The option ``links`` of `headscope.view`, from a list in JSON.

    Raises:
        FileError: where it cannot be read, or holds no list.
    """
    links = files.read_json(file, "--links")
    if not isinstance(links, list):
        raise FileError(
            f"--links is {file}; give a list of [tokens of a dependent, tokens of its head, label]"
        )
    return [tuple(link) if isinstance(link, list) else link for link in links]


def shown_page(record: Record, choices: Mapping[str, Any], beside: Mapping[str, Any]) -> View:
    """The view of a record.

    Args:
        record: the record that is shown.
        choices: options of `headscope.view` from the command line.
        beside: options from files, by `beside_of`.

    Raises:
        HeadscopeError: errors of the options.
    """
    options: dict[str, Any] = {**_placed(choices), **beside}
    if options.get("layer") is not None:
        stack = record.stacks.get(options.get("stack") or next(iter(record.stacks)))
        layers = [each.layer for each in stack or ()]
        options["layer"] = files.layer_number(options["layer"], layers)
    return hs.views.view(options.pop("comparison", record), **options)


@made_from(takes=f"{INPUT} out texts open_ {PAGE_FILES} {MODEL}")
def view(*, asked: Request, norms: bool = False, page: PageChoices | None = None) -> None:
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
        treebank: A file in CoNLL-U: the gold tree of one of its sentences is shown next to what
            heads attend to.
        page: What the page holds and shows first.
    """
    from headscope.views.file_page import open_page

    check_files(asked)
    keep = "alti" if norms else "auto"
    text = files.text_or_chat(asked.text, asked.chat, asked.text_b, asked.texts)
    if asked.texts is not None:
        if text is not None or asked.media or asked.open_:
            raise TextError("--texts replaces a text, a picture, a sound and --open; remove those")
        _write_pages(asked, keep, page or {})
        return
    out = asked.out or Path("headscope.html")
    files.check_file("--out", out, files.PAGES)
    if str(text).endswith(RECORD):
        beside = {repr(asked.text_b): asked.text_b, "--image, --video and --sound": asked.media}
        refusal = f"{text} is a record file, which already holds its input; remove {{}}"
        files.check_absent(beside, refusal)
        if norms:
            raise TextError(
                f"{text} is a record file; norms can only be stored when it is captured: "
                "headscope capture --keep norms"
            )
        record = hs.storage.load(text)
    else:
        if text is None and asked.treebank is not None:
            asked = replace(asked, text=gold_of(asked).text)
        record = asked.captured(asked.parsed(), keep=keep)
    options = beside_of(asked, record)
    with files.status("Writing the page"):
        path = shown_page(record, page or {}, options).save(out)
    files.say_what(record)
    files.say_written(path)
    if asked.open_:
        open_page(path.resolve().as_uri())


def _write_pages(asked: Request, keep: str, page: Mapping[str, Any]) -> None:
    """Write a page for each text of a file, named by its number, with the model loaded once.

    Raises:
        HeadscopeError: errors of the file, the folder or the model.
    """
    folder = asked.out or Path("headscope-pages")
    files.check_folder(folder)
    of_one: dict[str, Any] = {name: getattr(asked, name) is not None for name in OF_ONE.split()}
    files.check_absent(of_one, "--{} is of one text; leave --texts out")
    given, _ = asked.given()
    with asked.of_model().reading() as (source, reading):
        folder.mkdir(exist_ok=True)
        reading.pop("allow_unfit")
        reading["on_error"], numbers = left_out.losing(len(given))
        known: Any = None
        # A text that is left out is reported before the record of any later one comes.
        for record in hs.capturing.capture_many(*source, given, keep=keep, **reading):
            options = beside_of(asked, record, known)
            # Evidence over texts is the same for all pages and computed once.
            known = options.get("evidence") if asked.evidence_of else None
            path = shown_page(record, page, options).save(folder / f"{next(numbers)}.html")
            files.say_written(path, f": {record.summary}")
    files.say_where()


@made_from(takes=f"out! {FILES} {MODEL}")
def figure(
    file: Path, /, *, asked: Request, choices: FigureChoices | None = None, dpi: float = 300.0
) -> None:
    """Draw a figure of a record for print: .svg, .pdf or .png.

    headscope figure run.safetensors --view matrix --at 2-0 --out matrix.pdf

    headscope figure run.safetensors --tray 2-0 7-3 --out heads.svg

    Args:
        file: The record (.safetensors), as headscope capture keeps it.
        out: Write the figure to this file (.svg, .pdf or .png).
        asked: What is shown with the record, and the model that reads the texts of the evidence.
        choices: What is drawn, and how.
        dpi: Dots in an inch of a PNG.
    """
    from headscope.views import figures
    from headscope.views.figures.fonts import missing_words

    options = _figure_options(choices or {})
    files.check_file("--out", asked.out, files.PICTURES)
    check_files(asked)
    if (asked.evidence or asked.evidence_of) and options["view"] != "scatter":
        raise FigureError(f"Evidence needs --view scatter, got --view {options['view']}")
    record = hs.storage.load(file)
    drawn = figures.figure(record, **options, **beside_of(asked, record))
    path = drawn.save(asked.place, dpi=dpi)
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
    for name in TOKEN_OPTIONS.keys() & options.keys():
        words, read = options[name], files.position_or_word
        options[name] = read(words) if isinstance(words, str) else list(map(read, words))
    for name in sorted(chosen.keys() & options.keys()):
        raise FigureError(f"--at and --{name} both say where to look; give one of them")
    return options | chosen


def _figure_options(choices: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `headscope.figure` from the command line.

    Raises:
        FigureError: where layer and heads are given twice, or are of several layers.
    """
    options = _placed(choices)
    if options.get("tray") == ["kinds"]:
        options["tray"] = "kinds"
    options.setdefault("view", "compare" if "tray" in options else "head")
    # In the order of the declaration, in which the figure's metadata has them.
    return {name: options[name] for name in declared(WrittenFigureOptions) if name in options}
