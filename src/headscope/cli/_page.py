"""Options of commands that show a record: what the page holds and what it shows first.

Options with simple values are declared in `headscope.views.options`. Options that are objects in
Python are files here: `PageFiles`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from typing_extensions import TypedDict

from headscope.cli._declared import parameters
from headscope.cli._evidence import check_evidence, evidence_of
from headscope.cli._layers_and_heads import layer_number
from headscope.cli._run import RECORD_SUFFIX, ModelOptions, captured
from headscope.errors import FileError, TextError
from headscope.views.options import TOKEN_OPTIONS, WrittenOptions, declared

if TYPE_CHECKING:
    from headscope.comparison import Comparison
    from headscope.linguistics import Sentence
    from headscope.record import Record
    from headscope.views import View

    Choices = dict[str, Any]
else:
    Choices = TypedDict(
        "Choices",
        parameters(
            declared(WrittenOptions),
            tray='Pictures side by side: 2-0 7-3, or quoted "7-3 query=store view=matrix".',
        ),
        total=False,
    )
PageChoices = Annotated[Choices, Parameter(name="*", group="Page")]
"""The options of `headscope.view` that were given."""
Words = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]
Paths = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative="")]


@Parameter(name="*", group="Page")
@dataclass(frozen=True)
class PageFiles:
    """Files that the page holds besides the record."""

    evidence: Annotated[bool, Parameter(negative="")] = False
    """Say what kinds of heads there are; seen on this one text, which the page says."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .parquet), heads that were kept, or relations
    of a .conllu.
    """
    comparison: Path | None = None
    """The record (.safetensors) that this one is compared with: the page shows how they differ."""
    quantities: Path | None = None
    """Further quantities: a .npz with an array for each, axes layer, query, key, or layer, head,
    query, key. It is called as the quantity is, or cross/NAME for stack cross.
    """
    beside: Words = ()
    """Further records (.safetensors), or texts that the same model reads; the tray calls them b, c
    ...: --tray 2-0 "2-0 record=b".
    """
    links: Path | None = None
    """Gold links that are shown next to what heads look at: a .json with a list of [tokens of a
    dependent, tokens of its head, label], tokens being positions from 0; for trees see --treebank.
    """
    treebank: Path | None = None
    """A file in CoNLL-U: the gold tree of one of its sentences is shown next to what heads look
    at.
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
        check_evidence(self.evidence, self.evidence_of)
        if self.sentence is not None and self.treebank is None:
            raise TextError(
                f"--sentence {self.sentence} is of no treebank; name its file with --treebank"
            )
        if self.treebank is not None:
            if self.links is not None:
                raise TextError("--links and --treebank both give gold links; give one of them")
            # Read now, so that a mistake is reported before the model is loaded; it is kept.
            _ = self.gold

    @cached_property
    def gold(self) -> Sentence:
        """The chosen sentence of the treebank.

        Raises:
            HeadscopeError: without a treebank, or where it cannot be read or has no such sentence.
        """
        if self.treebank is None:
            raise TextError("There is no treebank; name its file with --treebank")
        return sentence_of(self.treebank, self.sentence)

    def given(self, record: Record, model: ModelOptions, known: Any = None) -> dict[str, Any]:
        """The options of `headscope.view` that these files give.

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
        if self.comparison is not None:
            options["comparison"] = compared_with(self.comparison, record)
        if self.quantities is not None:
            options["quantities"] = read_quantities(self.quantities)
        if self.beside:
            options["beside"] = [self._beside(each, model) for each in self.beside]
        if self.links is not None:
            options["links"] = read_links(self.links)
        if self.treebank is not None:
            options["links"] = self.gold
        return options

    def _beside(self, given: str, model: ModelOptions) -> Record:
        """A further record: read from its file, or captured with the model of the first."""
        from headscope.storage import load

        return (
            load(Path(given))
            if given.endswith(RECORD_SUFFIX)
            else captured((given, None), model, None)
        )


def shown_page(record: Record, choices: Choices, files: Mapping[str, Any]) -> View:
    """The view of a record.

    Args:
        record: the record that is shown.
        choices: options of `headscope.view` from the command line.
        files: options from files, by `PageFiles.given`.

    Raises:
        HeadscopeError: errors of the options.
    """
    from headscope.views import view

    options: dict[str, Any] = {**choices, **files}
    if options.get("layer") is not None:
        stack = record.stacks.get(options.get("stack") or next(iter(record.stacks)))
        numbers = [layer.layer for layer in stack or ()]
        options["layer"] = layer_number(options["layer"], numbers)
    for name in TOKEN_OPTIONS:
        if name in options:
            options[name] = [position_or_word(each) for each in options[name]]
    return view(options.pop("comparison", record), **options)


def position_or_word(given: str) -> int | str:
    """A token from the command line: a position from 0, or its word."""
    return int(given) if given.lstrip("-").isdecimal() else given


def compared_with(file: Path, record: Record) -> Comparison:
    """The comparison of a record with that of a file.

    Raises:
        HeadscopeError: where the file holds no record, or one that cannot be compared.
    """
    from headscope.comparison import compare
    from headscope.storage import load

    if file.suffix != RECORD_SUFFIX:
        raise FileError(f"--comparison is {file}; give a record ({RECORD_SUFFIX})")
    return compare(load(file), record)


def read_quantities(file: Path) -> dict[str, Any]:
    """The option ``quantities`` of `headscope.view`: each array of a file as a list of layers.

    Raises:
        FileError: where it cannot be read.
    """
    from headscope.storage.npz import read_npz, reading

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
    try:
        links = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"--links is {file}: {error.strerror}") from None
    except ValueError as error:
        raise FileError(f"--links is {file}, which is not JSON: {error}") from None
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
    named = {str(number): sentence for number, sentence in enumerate(bank)} | {
        each.name: each for each in bank
    }
    match = named.get("0" if wanted is None else wanted)
    if match is None:
        raise FileError(
            f"{treebank} has no sentence {wanted!r}; give a sent_id, such as "
            f"{bank.sentences[0].name!r}, or a number from 0 to {len(bank) - 1}"
        )
    return match
