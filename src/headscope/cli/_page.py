"""Commands that show a record: as the viewer page, and as a figure for print.

Options with simple values are declared in `headscope.views.options` and
`headscope.views.figure_options`. Options that are objects in Python are files here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args

from cyclopts import Group, Parameter

from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._files import RECORD, hs, left_out, say
from headscope.cli._run import Input, ModelOptions, Study, parse_texts
from headscope.cli._signature import made_from, plain_help
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
OF_ONE = ("treebank", "links", "comparison", "quantities")
"""Files of one text."""
TREEBANK = ".conllu"
FILES = Group("Files")
MOST_COMPARED = 256
"""Number of heads up to which all are compared with each other over the texts, the slowest step."""


def _declared(group: str, kind: type, tray: str, **more: Option) -> Any:
    """The declared options as a type that cyclopts reads: a dictionary of those that are given, so
    that no default is repeated here; ``tray`` has another form here than in Python.
    """
    fields: Any = {}
    for name, option in {**declared(kind), **more}.items():
        off = option.default.off or None if option.default else None
        told = Parameter(help=tray if name == "tray" else plain_help(option.help), negative=off)
        fields[name] = Annotated[option.written, told]
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


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class FigureFiles:
    """Files that a figure or a page shows besides the record."""

    beside: tuple[str, ...] = ()
    """Further records (.safetensors), or for a page texts that the same model reads; the tray calls
    them b, c ...: --tray 2-0 "2-0 record=b". For serve --model: one second model (hub name or
    folder), to compare the first with on what is typed.
    """
    quantities: Path | None = None
    """Further quantities: a .npz with an array for each, axes layer, query, key, or layer, head,
    query, key. It is called as the quantity is, or cross/NAME for stack cross.
    """
    evidence: bool = False
    """Say what kinds of heads there are; seen on this one text, which the page says."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .tsv, .parquet), heads that were kept, or relations
    of a .conllu.
    """

    def check(self) -> None:
        """Raise where evidence cannot be computed, before any work.

        Raises:
            TextError: where both kinds are given.
            FileError: where the file does not exist, or is not a file of texts.
        """
        file = self.evidence_of
        if file is None:
            return
        if self.evidence:
            raise TextError(
                "--evidence uses this one text, --evidence-of a file of texts; use one of them"
            )
        known = (*hs.storage.SUFFIXES, RECORD, TREEBANK)
        if file.suffix not in known:
            raise FileError(f"Expected {', '.join(known)} for --evidence-of, got {file}")
        if file.suffix in hs.storage.SUFFIXES:
            hs.storage.read_texts(file)
        elif not file.is_file():
            raise FileError(f"{file} does not exist")

    def given(self, record: Record, model: ModelOptions, known: Any = None) -> dict[str, Any]:
        """The options of `headscope.view` and `headscope.figure` that these files give.

        Args:
            record: the record that is shown.
            model: the model that reads the texts of the evidence.
            known: evidence over texts that was computed for another record of the same model.

        Raises:
            HeadscopeError: errors of these files or the model.
        """
        options: dict[str, Any] = {}
        if self.evidence or self.evidence_of:
            options["evidence"] = known or evidence_of(record, self.evidence_of, model)
        if self.quantities is not None:
            options["quantities"] = read_quantities(self.quantities)
        for each in self.beside:
            is_file = each.endswith(RECORD)
            other = hs.storage.load(Path(each)) if is_file else _captured(each, model)
            options.setdefault("beside", []).append(other)
        return options


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class PageFiles(FigureFiles):
    """Files that the page holds besides the record."""

    comparison: Path | None = None
    """The record (.safetensors) that this one is compared with: the page shows how they differ."""
    links: Path | None = None
    """Gold links that are shown next to what heads attend to: a .json with a list of [tokens of a
    dependent, tokens of its head, label], tokens being positions from 0; for trees see --treebank.
    """
    treebank: Path | None = None
    """A file in CoNLL-U: the gold tree of one of its sentences is shown next to what heads attend
    to.
    """
    sentence: str | None = None
    """Which sentence of the treebank: its sent_id, or its number, counted from 0; the first by
    default.
    """

    def check(self) -> None:
        """Raise where evidence or a sentence cannot be read, before any work.

        Raises:
            HeadscopeError: saying why.
        """
        super().check()
        if self.sentence is not None and self.treebank is None:
            raise TextError(
                f"--sentence {self.sentence} is of no treebank; name its file with --treebank"
            )
        if self.treebank is not None and self.links is not None:
            raise TextError("--links and --treebank both give gold links; give one of them")
        # Read now, so that a mistake is reported before the model is loaded; it is kept.
        _ = self.gold

    @cached_property
    def gold(self) -> Any:
        """The chosen sentence of the treebank; None without one.

        Raises:
            FileError: where the treebank cannot be read or has no such sentence.
        """
        if self.treebank is None:
            return None
        bank = hs.linguistics.read_treebank(self.treebank)
        # Names win over numbers, since a sent_id may be a number itself.
        named = {str(number): each for number, each in enumerate(bank)}
        named |= {each.name: each for each in bank}
        wanted = "0" if self.sentence is None else self.sentence
        if wanted not in named:
            raise FileError(
                f"{self.treebank} has no sentence {wanted!r}; give a sent_id, such as "
                f"{bank.sentences[0].name!r}, or a number from 0 to {len(bank) - 1}"
            )
        return named[wanted]

    def given(self, record: Record, model: ModelOptions, known: Any = None) -> dict[str, Any]:
        """The options of `headscope.view` that these files give; see `FigureFiles.given`.

        Raises:
            HeadscopeError: errors of these files or the model.
        """
        options = super().given(record, model, known)
        if self.comparison is not None:
            if self.comparison.suffix != RECORD:
                raise FileError(f"--comparison is {self.comparison}; give a record ({RECORD})")
            other = hs.storage.load(self.comparison)
            options["comparison"] = hs.comparison.compare(other, record)
        if self.links is not None:
            options["links"] = read_links(self.links)
        if self.gold is not None:
            options["links"] = self.gold
        return options


def _captured(text: str, model: ModelOptions) -> Record:
    return run.captured(Input(text, model=model).parsed(), model)


def evidence_of(record: Record, file: Path | None, options: ModelOptions) -> Heads:
    """Evidence about the heads: over the texts of a file, or on the record alone.

    Args:
        record: the record that the page shows.
        file: a file of texts, a tally saved by `headscope.patterns.Tally.save`, or a treebank,
            whose relations are the labels; checked by `FigureFiles.check`.
        options: the model that reads the texts.

    Raises:
        HeadscopeError: errors of the texts or the model.
    """
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
    asked = Study(model=replace(options, target=None, target_tokenizer=None))
    if file.suffix == TREEBANK:
        bank = hs.linguistics.read_treebank(file)
        return asked.run("relations", bank, trees=False, on_error=None).as_heads()

    def lose(index: int, error: HeadscopeError) -> None:
        left_out.note(f"{index + 1} of the evidence", error)

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
    links = run.read_json(file, "--links")
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
        beside: options from files, by `PageFiles.given`.

    Raises:
        HeadscopeError: errors of the options.
    """
    options: dict[str, Any] = {**_placed(choices), **beside}
    if options.get("layer") is not None:
        stack = record.stacks.get(options.get("stack") or next(iter(record.stacks)))
        layers = [each.layer for each in stack or ()]
        options["layer"] = files.layer_number(options["layer"], layers)
    for name in TOKEN_OPTIONS:
        if name in options:
            options[name] = [files.position_or_word(each) for each in options[name]]
    return hs.views.view(options.pop("comparison", record), **options)


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
    from headscope.views.file_page import open_page

    shown.check()
    text, keep = asked.written(texts), "alti" if norms else "auto"
    if texts is not None:
        if text is not None or asked.media or open_:
            raise TextError("--texts replaces a text, a picture, a sound and --open; remove those")
        given = parse_texts(None, None, texts)
        _write_pages(given, out or Path("headscope-pages"), (asked.model, keep), page or {}, shown)
        return
    out = out or Path("headscope.html")
    files.check_file("--out", out, files.PAGES)
    if text is None and shown.gold is not None:
        asked = replace(asked, text=shown.gold.text)
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
        record = run.captured(asked.parsed(), asked.model, keep=keep)
    options = shown.given(record, asked.model)
    with files.status("Writing the page"):
        path = shown_page(record, page or {}, options).save(out)
    run.say_what(record)
    files.say_written(path)
    if open_:
        open_page(path.resolve().as_uri())


def _write_pages(
    given: Any, folder: Path, reads: tuple[ModelOptions, str], page: Any, shown: PageFiles
) -> None:
    """Write a page for each text, named by its number, with the model loaded once.

    Raises:
        HeadscopeError: errors of the folder or the model.
    """
    files.check_folder(folder)
    of_one = {name: getattr(shown, name) is not None for name in OF_ONE}
    files.check_absent(of_one, "--{} is of one text; leave --texts out")
    model, keep = reads
    with Study(model=model).reading() as (source, reading):
        folder.mkdir(exist_ok=True)
        reading.pop("allow_unfit")
        reading["on_error"], numbers = left_out.losing(len(given))
        known: Any = None
        # A text that is left out is reported before the record of any later one comes.
        for record in hs.capturing.capture_many(*source, given, keep=keep, **reading):
            options = shown.given(record, model, known)
            # Evidence over texts is the same for all pages and computed once.
            known = options.get("evidence") if shown.evidence_of else None
            path = shown_page(record, page, options).save(folder / f"{next(numbers)}.html")
            files.say_written(path, f": {record.summary}")
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
    from headscope.views import figures
    from headscope.views.figures.fonts import missing_words

    options = _figure_options(choices or {})
    files.check_file("--out", out, files.PICTURES)
    shown.check()
    if (shown.evidence or shown.evidence_of) and options["view"] != "scatter":
        raise FigureError(
            f"--evidence and --evidence-of need --view scatter, got --view {options['view']}"
        )
    record = hs.storage.load(file)
    drawn = figures.figure(record, **options, **shown.given(record, model))
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
    for side in {"query", "key"} & options.keys():
        options[side] = files.position_or_word(options[side])
    if options.get("tray") == ["kinds"]:
        options["tray"] = "kinds"
    options.setdefault("view", "compare" if "tray" in options else "head")
    # In the order of the declaration, in which the figure's metadata has them.
    return {name: options[name] for name in declared(WrittenFigureOptions) if name in options}
