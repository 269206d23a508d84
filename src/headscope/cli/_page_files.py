"""Files that a page or a figure shows besides the record: what is an object in Python is a file on
the command line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from headscope.cli._files import RECORD
from headscope.cli._run import Media, ModelOptions, captured, left_out, read_json
from headscope.cli._study import loaded
from headscope.errors import FileError, TextError

if TYPE_CHECKING:
    from headscope.linguistics import Sentence
    from headscope.patterns import Heads
    from headscope.record import Record

TREEBANK = ".conllu"
FILES = Group("Files")
MOST_COMPARED = 256
"""Number of heads up to which all are compared with each other over the texts, the slowest step."""


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
        from headscope.storage import SUFFIXES, read_texts

        known = (*SUFFIXES, RECORD, TREEBANK)
        if file.suffix not in known:
            raise FileError(f"Expected {', '.join(known)} for --evidence-of, got {file}")
        if file.suffix in SUFFIXES:
            read_texts(file)
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
        if self.evidence_of and known is not None:
            options["evidence"] = known
        elif self.evidence or self.evidence_of:
            options["evidence"] = evidence_of(record, self.evidence_of, model)
        if self.quantities is not None:
            options["quantities"] = read_quantities(self.quantities)
        if self.beside:
            options["beside"] = [_record_of(each, model) for each in self.beside]
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
    def gold(self) -> Sentence | None:
        """The chosen sentence of the treebank; None without one.

        Raises:
            HeadscopeError: where it cannot be read or has no such sentence.
        """
        return None if self.treebank is None else sentence_of(self.treebank, self.sentence)

    def given(self, record: Record, model: ModelOptions, known: Any = None) -> dict[str, Any]:
        """The options of `headscope.view` that these files give; see `FigureFiles.given`.

        Raises:
            HeadscopeError: errors of these files or the model.
        """
        options = super().given(record, model, known)
        if self.comparison is not None:
            from headscope.comparison import compare
            from headscope.storage import load

            if self.comparison.suffix != RECORD:
                raise FileError(f"--comparison is {self.comparison}; give a record ({RECORD})")
            options["comparison"] = compare(load(self.comparison), record)
        if self.links is not None:
            options["links"] = read_links(self.links)
        if self.gold is not None:
            options["links"] = self.gold
        return options


def _record_of(given: str, model: ModelOptions) -> Record:
    """A further record: read from its file, or captured with the model of the first."""
    from headscope.storage import load

    if given.endswith(RECORD):
        return load(Path(given))
    return captured(Media().parsed(given, None, model.target), model)


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
    from headscope.patterns import Heads, heads
    from headscope.results import load
    from headscope.storage import read_texts

    if file is None:
        return heads(record)
    if file.suffix == RECORD:
        kept = load(file)
        if not isinstance(kept, Heads):
            raise FileError(
                f"Expected the result of headscope.heads, got a {type(kept).__name__} in {file}; "
                f"save one with heads(...).save({file.name!r})"
            )
        return kept
    source = loaded(replace(options, target=None, target_tokenizer=None))
    reading: dict[str, Any] = {"truncate": options.truncate, "progress": True} | options.read_many()
    if file.suffix == TREEBANK:
        from headscope.studies import relations

        return relations(*source, file, trees=False, **reading).as_heads()
    from headscope.capturing import MOST_UNKNOWN, capture_many

    texts = read_texts(file)
    left_out.begin(of=len(texts), where=" of the evidence")
    reading |= {"max_unknown": 1.0 if options.allow_unfit else MOST_UNKNOWN}
    records = capture_many(*source, texts, on_error=left_out.number, **reading)
    cells = sum(layer.heads for stack in record.stacks.values() for layer in stack)
    return heads(records, distances=cells <= MOST_COMPARED)


def read_quantities(file: Path) -> dict[str, Any]:
    """The option ``quantities`` of `headscope.view`: each array of a file as a list of layers.

    Raises:
        FileError: where it cannot be read.
    """
    from headscope.storage import read_npz, reading

    with reading(file, "arrays"):
        arrays = read_npz(file)
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
    links = read_json(file, "--links")
    if not isinstance(links, list):
        raise FileError(
            f"--links is {file}; give a list of [tokens of a dependent, tokens of its head, label]"
        )
    return [tuple(link) if isinstance(link, list) else link for link in links]


def sentence_of(treebank: Path, wanted: str | None) -> Sentence:
    """A sentence of a treebank by its name, or by its number, counted from 0; by default the first.

    Raises:
        FileError: where the treebank cannot be read or has no such sentence.
    """
    from headscope.linguistics import read_treebank

    bank = read_treebank(treebank)
    # Names win over numbers, since a sent_id may be a number itself.
    named = dict(zip(map(str, range(len(bank))), bank, strict=True))
    named |= {each.name: each for each in bank}
    match = named.get("0" if wanted is None else wanted)
    if match is None:
        raise FileError(
            f"{treebank} has no sentence {wanted!r}; give a sent_id, such as "
            f"{bank.sentences[0].name!r}, or a number from 0 to {len(bank) - 1}"
        )
    return match
