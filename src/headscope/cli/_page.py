"""What commands that show a record can choose to show first."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headscope.cli._evidence import check_evidence, evidence_of
from headscope.cli._run import RECORD_SUFFIX, ModelOptions, captured
from headscope.errors import FileError, TextError
from headscope.views.options import (
    HeadMeasure,
    HeadOrder,
    KindName,
    Layout,
    Pinned,
    Quantity,
    Theme,
    ViewName,
)

if TYPE_CHECKING:
    from headscope.linguistics import Sentence
    from headscope.record import Record

Numbers = Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative="")]
Words = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]
Paths = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative="")]
CALLED = {"view_": "view"}
OURS = ("evidence", "evidence_of", "beside", "treebank", "sentence")


@Parameter(name="*")
@dataclass(frozen=True)
class PageChoices:
    """What the page holds and shows first."""

    view_: Annotated[ViewName | None, Parameter(name="--view")] = None
    """View that is shown first: the overview, or the head view where heads, tokens or a quantity
    are chosen.
    """
    stack: str | None = None
    """Stack that is shown first, such as cross."""
    layer: int | None = None
    """Layer that is shown first."""
    heads: Numbers = ()
    """Heads that are shown first; all by default."""
    query: Words = ()
    """Query tokens that are pinned: positions from 0, or words that stand there once."""
    key: Words = ()
    """Key tokens that are pinned, likewise."""
    pinned: Pinned | None = None
    """Whether several pinned tokens are shown by the mean or the sum of what they have."""
    words: Annotated[bool, Parameter(negative="")] = False
    """Join the pieces of a word: sum over the word that is looked at, mean over the word that
    looks.
    """
    mean_layers: Numbers = ()
    """Layers of which the mean is shown together with the layer."""
    quantity: Quantity | None = None
    """What is shown: weight (default), score, or another that the record has."""
    include_layers: Numbers = ()
    """Layers that the page holds; all by default."""
    include_heads: Numbers = ()
    """Heads that the page holds; all by default."""
    evidence: Annotated[bool, Parameter(negative="")] = False
    """Say what kinds of heads there are; seen on this one text, which the page says."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .parquet), a .npz tally that was kept, or relations
    of a .conllu.
    """
    order: HeadOrder = "layer"
    """How the overview orders heads."""
    kind: KindName | None = None
    """Kind whose heads stand out in the overview, such as next."""
    measure: HeadMeasure | None = None
    """What colours a head where it is too small for a matrix."""
    layout: Layout | None = None
    """Tokens of the head view in two columns or two rows; auto takes rows for Chinese and
    Japanese.
    """
    label: str | None = None
    """Pattern whose heads stand out, such as next."""
    min_score: int | None = None
    """Percent that the score of a label must reach for its head to stand out."""
    sort: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    """Measure by which the model view sorts heads, such as entropy; -entropy for the lowest
    first.
    """
    x: str | None = None
    """Measure of the scatter from left to right, or map for the map of heads."""
    y: str | None = None
    """Measure of the scatter from bottom to top."""
    tray: Words = ()
    """Pictures beside each other: 2-0 7-3, or quoted "7-3 query=store view=matrix"."""
    beside: Words = ()
    """Further records (.safetensors), or texts that the same model reads; the tray calls them b, c
    ...: --tray 2-0 "2-0 record=b".
    """
    treebank: Path | None = None
    """A file in CoNLL-U: the gold tree of one of its sentences is shown beside what heads look
    at.
    """
    sentence: str | None = None
    """Which sentence of the treebank: its sent_id, or its number, counted from 0; the first by
    default.
    """
    theme: Theme = "auto"
    """Colours; auto follows the reader's system."""

    def check(self) -> None:
        """Raise where evidence or a sentence is asked for that cannot be had, before any work.

        Raises:
            HeadscopeError: saying why.
        """
        check_evidence(self.evidence, self.evidence_of)
        if self.sentence is not None and self.treebank is None:
            raise TextError(
                f"--sentence {self.sentence} is of no treebank; name its file with --treebank"
            )
        if self.treebank is not None:
            _ = self.gold

    @cached_property
    def gold(self) -> Sentence:
        """The sentence of the treebank that was asked for.

        Raises:
            HeadscopeError: without a treebank, or where it cannot be read or has no such sentence.
        """
        if self.treebank is None:
            raise TextError("There is no treebank; name its file with --treebank")
        return sentence_of(self.treebank, self.sentence)

    def options(self, record: Record, model: ModelOptions, known: Any = None) -> dict[str, Any]:
        """The options of `headscope.view` that were chosen.

        Args:
            record: what is shown.
            model: which model reads the texts of the evidence.
            known: evidence that was read for another record, and is not read again.

        Raises:
            HeadscopeError: whatever is wrong with these texts or the model.
        """
        chosen = {
            CALLED.get(field.name, field.name): getattr(self, field.name) for field in fields(self)
        }
        chosen = {
            name: value
            for name, value in chosen.items()
            if value not in (None, ()) and name not in OURS
        }
        for side in ("query", "key"):
            if side in chosen:
                chosen[side] = [position_or_word(each) for each in chosen[side]]
        if self.evidence_of and known is not None:
            chosen["evidence"] = known
        elif self.evidence or self.evidence_of:
            chosen["evidence"] = evidence_of(record, self.evidence_of, model)
        if self.treebank is not None:
            chosen["links"] = self.gold
        if self.beside:
            chosen["beside"] = [self._beside(given, model) for given in self.beside]
        return chosen

    def _beside(self, given: str, model: ModelOptions) -> Record:
        """A further record: read from its file, or captured with the model of the first."""
        from headscope.storage import load

        return (
            load(Path(given))
            if given.endswith(RECORD_SUFFIX)
            else captured((given, None), model, None)
        )


def position_or_word(given: str) -> int | str:
    """A token as it is given on the command line: a position from 0, or its word."""
    return int(given) if given.lstrip("-").isdecimal() else given


def sentence_of(treebank: Path, wanted: str | None) -> Sentence:
    """A sentence of a treebank by its name, or by its number, counted from 0; the first where
    nothing is wanted.

    Raises:
        FileError: where the treebank cannot be read or has no such sentence.
    """
    from headscope.linguistics import read_treebank

    bank = read_treebank(treebank)
    named = {str(number): sentence for number, sentence in enumerate(bank)} | {
        each.name: each for each in bank
    }
    found = named.get("0" if wanted is None else wanted)
    if found is None:
        raise FileError(
            f"{treebank} has no sentence {wanted!r}; give a sent_id, such as "
            f"{bank.sentences[0].name!r}, or a number from 0 to {len(bank) - 1}"
        )
    return found
