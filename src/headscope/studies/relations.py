"""Which head looks along each dependency relation, compared with position alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

import numpy as np
from jaxtyping import Float, Int

from headscope.corpus import Counts
from headscope.errors import RecordError, TextError
from headscope.linguistics import (
    DIRECTIONS,
    NEAREST_STANFORD,
    OFFSETS,
    Sentence,
    Treebank,
    decode_tree,
    predicted_heads,
)
from headscope.linguistics.dependencies import ALL, NO_PUNCT, NO_ROOT, groups_of
from headscope.patterns import AttentionMaps, Heads, Pattern, Tally
from headscope.record import Record
from headscope.results import TextTable
from headscope.studies.shared._fold import Fold, Item, maps_of_words, stack_of, taken
from headscope.studies.shared._folded import folded
from headscope.studies.shared._head_answers import (
    DEFAULTS,
    ChosenHead,
    EvidenceOptions,
    HeadAnswers,
    cell_of,
    percent,
)
from headscope.studies.shared._sentences import given_of, parse_treebank, sentence_of

if TYPE_CHECKING:
    from headscope.patterns import Heads

SCORES = ("max", "max undirected", "tree", "tree undirected")
"""How heads are read: the largest value (Clark), the best tree (Htut); undirected, either end may
name the other.
"""
GROUPS = (ALL, NO_PUNCT, NO_ROOT)
TEXTS = ("words", "written")
ALPHA = 0.05
"""For the sentence above the tables alone; p itself is in them."""
COMMON = 100
"""How many words a relation has that is a label of heads."""
LOOKS = ("looks from the dependent to its head", "looks from the head to its dependent")


def counts_of(
    sentence: Sentence,
    record: Record,
    *,
    rows: str = "mean",
    trees: bool = True,
    universal: bool = False,
    stack: str | None = None,
    text: str = "",
) -> Counts:
    """For how many words of each relation every head, and every offset, names the head.

    Args:
        sentence: its words and tree.
        record: of its `text`, or of the text as it was `written`.
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        trees: whether the best trees are decoded, too.
        universal: whether subtypes of relations are left off: nsubj for nsubj:pass.
        stack: which stack of the record; by default the first.
        text: what the model read; the record has it too.

    Raises:
        RecordError: where its words and the tokens cannot be aligned.
    """
    own = stack_of(record, stack)
    # Words joined by single spaces, or the text as it was written, with "don't" in one.
    is_text = own.query.texts[0] == sentence.text
    try:
        spans = sentence.spans if is_text else sentence.written_spans()
    except TextError as error:
        raise RecordError(str(error)) from None
    maps = maps_of_words(own, spans, rows=rows)
    predicted = {"max": predicted_heads(maps)}
    if trees:
        both = np.concatenate([maps, maps.transpose(0, 2, 1)])
        decoded = decode_tree(both, sentence.root)
        predicted["tree"] = decoded.reshape(predicted["max"].shape)
    gold = np.array(sentence.heads) - 1
    groups = groups_of(np.array(sentence.relations), universal=universal)
    counts: dict[str, np.ndarray] = {}
    for relation, words in groups.items():
        counts[f"asked/{relation}"] = np.array(len(words))
    for score in scores_of(trees):
        decoding, _, undirected = score.partition(" ")
        right = predicted[decoding] == gold
        # Undirected, a head is right as well where it names the word for the head of its head.
        if undirected:
            right |= predicted[decoding][..., np.maximum(gold, 0)] == np.arange(len(gold))
        # The root is no word that a head, or an offset, could name.
        right &= gold >= 0
        rules = _by_offset(gold, bool(undirected))
        for relation, words in groups.items():
            hits = right[..., words].sum(axis=-1, dtype=np.int32)
            counts[f"hits/{score}/{relation}"] = hits.reshape(-1)
            counts[f"rules/{score}/{relation}"] = rules[:, words].sum(axis=-1)
    return counts


def _by_offset(gold: Int[np.ndarray, " word"], undirected: bool) -> Float[np.ndarray, "rule word"]:
    """How likely each offset is to be right: where it leaves the sentence, any other word is as
    likely, as of a head that knows nothing.
    """
    size = len(gold)
    named = np.arange(size) + np.array(OFFSETS)[:, None]
    chance = np.where((named < 0) | (named >= size), 1 / max(size - 1, 1), 0.0)
    right = np.maximum(named == gold, chance)
    if undirected:
        heads = np.maximum(gold, 0)
        back = np.maximum(named[:, heads] == np.arange(size), chance[:, heads])
        right = 1 - (1 - right) * (1 - back)
    return right * (gold >= 0)


def scores_of(trees: bool) -> tuple[str, ...]:
    """How heads are read, of `SCORES`."""
    return tuple(score for score in SCORES if trees or not score.startswith("tree"))


@dataclass(frozen=True, kw_only=True)
class RelationHead(ChosenHead):
    """The head that names the head of most words of one relation; see `ChosenHead` for its numbers.
    The question is which word is the head of a word; the rule without a head is a fixed offset.

    Args:
        relation: which words; also all, all but punctuation, and of these all but the root.
        score: one of `SCORES`.
        stanford: the relation of the Penn Treebank that is next to it.
        direction: who looks at whom.
        offset: the best fixed offset on all sentences.
        baseline: share of words whose head is there, a word whose offset leaves the sentence
            counting as much as chance gives.
        held_out_direction: who looks at whom.
        held_out_offset: the best offset on one half, most often.
        held_out_baseline: share of words whose head is at the offset of the other half, mean over
            splits.
    """

    relation: str
    score: str
    stanford: str
    direction: str
    offset: int
    baseline: float
    held_out_direction: str | None
    held_out_offset: int | None
    held_out_baseline: float


class Relations(HeadAnswers[RelationHead]):
    """How every head predicts the heads of words; prints itself, is added to others of the same
    model, and kept.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        trees: whether the best trees are decoded, too.
        universal: whether subtypes of relations are left off: nsubj for nsubj:pass.
        stack: which stack of the records; by default the first.
        **options: ``confidence`` of the intervals (0.95); ``correction`` for trying many things,
            ``"holm"`` or ``"benjamini-hochberg"``; ``seed`` (0) and number (10) of the ``splits``
            of documents into halves.

    Raises:
        RecordError: where confidence, correction or splits are not what they may be.

    Example:
        >>> Relations()
        <Relations of 0 sentences>
    """

    KIND: ClassVar[str] = "relations"
    HOW: ClassVar[dict[str, Any]] = {
        "rows": str,
        "trees": bool,
        "universal": bool,
        "stack": (str, None),
    }
    HEAD: ClassVar[type[ChosenHead]] = RelationHead
    FIRST: ClassVar[tuple[str, ...]] = ("relation", "score", "stanford")
    BEST: ClassVar[str] = "relation words=count head=place looks=direction accuracy offset baseline"
    SAYS: ClassVar[dict[str, str]] = {
        "words": "how many have the relation",
        "looks": "from the dependent to its head, or back",
        "accuracy": "% of words whose head the attention head looks at most",
        "offset": "the fixed distance that is right most often",
        "baseline": "% of words for which it is",
        "above": "points of head less offset",
        "p": "of being no better than the offset, corrected",
    }
    NOTE: ClassVar[str] = (
        "head and offset are chosen | ; an offset that leaves the sentence is right by chance. p: "
        "{correction} over relations"
    )
    CHOICES: ClassVar[int] = len(DIRECTIONS)
    RULE_COUNT: ClassVar[int] = len(OFFSETS)
    RULE_KIND: ClassVar[str] = "f"
    LEAST_WORDS: ClassVar[int] = 20
    """How many words a relation has that is printed and drawn; tables to export hold them all."""

    control: Relations | None

    def __init__(
        self,
        *,
        rows: str = "mean",
        trees: bool = True,
        universal: bool = False,
        stack: str | None = None,
        **options: Unpack[EvidenceOptions],
    ) -> None:
        how = {"rows": rows, "trees": trees, "universal": universal, "stack": stack}
        super().__init__(how, options)

    def check_text(self, sentence: Sentence, record: Record) -> None:
        """Raise where a record is of another text than a sentence.

        Raises:
            RecordError: naming the sentence.
        """
        texts = stack_of(record, self.how["stack"]).query.texts
        if texts[:1] not in ((sentence.text,), (sentence.written,)):
            raise RecordError(
                f"The record is of {''.join(texts[:1])[:40]!r}, not of the sentence "
                f"{sentence.name!r}: capture its text, or the text as it was written"
            )

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self.sums)

    @property
    def words(self) -> int:
        """Number of words counted."""
        return self.counts.get(ALL, 0)

    @property
    def ways(self) -> tuple[str, ...]:
        """How heads were read, of `SCORES`."""
        return scores_of(self.how["trees"])

    @property
    def relations(self) -> tuple[str, ...]:
        """All that can be asked for: groups of words, then relations, the most frequent first."""
        return self.ordered(self.counts)

    @property
    def named(self) -> tuple[str, ...]:
        """The relations alone, without groups of words and the root."""
        return tuple(name for name in self.relations if name not in (*GROUPS, "root"))

    def ordered(self, counts: Mapping[str, int], /) -> tuple[str, ...]:
        """Groups of words, then relations, the most frequent first."""
        groups = [name for name in GROUPS if name in counts]
        rest = sorted(set(counts) - set(groups), key=lambda name: (-counts[name], name))
        return (*groups, *rest)

    def accuracy(self, relation: str, score: str = "max") -> Float[np.ndarray, "direction head"]:
        """Share of a relation's words whose head each head names, for both `DIRECTIONS`; heads as
        in ``cells``.

        Raises:
            RecordError: where there is no such relation or score.
        """
        return self.shares(score, relation).reshape(len(DIRECTIONS), -1)

    def as_heads(self, *, least: int | None = None, threshold: float = 0.3) -> Heads:
        """Relations as labels of heads, in the direction of the best head: ``hs.view(record,
        evidence=...)``.

        A label holds where the share of words, mean over the documents that have some, reaches the
        threshold and lies above that of the best offset (and of the best head with random weights),
        corrected for all heads and relations. Means over documents are near the accuracies of all
        words, not equal to them.

        Args:
            least: how many words a relation has; by default 100, of few sentences a twentieth of
                all words.
            threshold: least share, of 1.

        Raises:
            RecordError: where no relation has so many words, or nothing was counted.
        """
        fewest = min(COMMON, max(1, self.words // 20)) if least is None else least
        heads = [each for each in self.heads_of() if each.relation in self.named]
        shown = [each for each in heads if each.count >= fewest]
        if not shown:
            raise RecordError(f"No relation has {fewest} words or more; ask for fewer with least=")
        # What chance gives on these sentences: a label must do better than random weights can.
        levels: dict[str, float] = {}
        if self.control is not None:
            levels = {each.relation: self.control.best(each.relation).accuracy for each in shown}
        tally = _tally_of(self, shown, threshold, levels)
        return Heads(tally, confidence=self.confidence, correction=self.correction)

    def __repr__(self) -> str:
        return f"<Relations of {self.sentences} sentences>"

    @property
    def summary(self) -> str:
        """How many relations some head follows better than any fixed offset."""
        if not self.sentences:
            return repr(self)
        first = (
            f"{self.model or 'a model'}, {self.source or 'a treebank'}: {len(self.cells)} heads, "
            f"{self.sums.counted} ({self.length_text}), {self.words} words"
        )
        if self.too_few:
            return f"{first}. {self.too_few}"
        # Groups hold the words of many relations, and counting them too would count these twice.
        tried = [each for each in self.shown() if each.relation not in GROUPS]
        if not tried:
            return (
                f"{first}. No relation has {self.LEAST_WORDS} words, which is too few to judge any"
            )
        better = sum(each.held_out_above > 0 for each in tried if each.p_corrected < ALPHA)
        return (
            f"{first}. {better} of {len(tried)} relations with {self.LEAST_WORDS} words or "
            "more have a head that names the head of a word more often than the best fixed offset "
            f"does, on documents it was not chosen on (p < {ALPHA:g}, {self.correction})"
        )

    def shown(self) -> list[RelationHead]:
        """The heads of groups, and of relations with enough words to be printed."""
        return [
            each
            for each in self.heads_of()
            if each.count >= self.LEAST_WORDS or each.relation in GROUPS
        ]

    def _shown(self) -> tuple[list[TextTable], list[str]]:
        listed = self.shown()
        names = [each.relation for each in listed]
        rare, notes = [name for name in self.relations if name not in names], []
        if rare:
            few = f"{len(rare)} relations with fewer than {self.LEAST_WORDS} words"
            notes.append(f"{few} are not shown: {', '.join(rare)}")
        if NO_ROOT in self.counts:
            notes += [self._tree(score) for score in self.ways if score != "max"]
        held = "Held out, chosen on one half and measured on the other:"
        return self._tables(listed, "Best head on all documents:", held), notes

    def _tree(self, score: str) -> str:
        """A line about another way of reading heads."""
        best, control = self.best(NO_ROOT, score), ""
        if self.control is not None:
            control = f", random weights {percent(self._twin(best).held_out_accuracy)}"
        return (
            f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; "
            f"{best.held_out_place} {cell_of(best, 'held_out_accuracy')} held out, offset "
            f"{percent(best.held_out_baseline)}{control}"
        )

    def _named(self, relation: str, numbers: dict[str, Any]) -> dict[str, Any]:
        named: dict[str, Any] = {"stanford": NEAREST_STANFORD.get(relation, "")}
        for begin, choice in (("", "best"), ("held_out_", "held_best")):
            place, offset = numbers[choice], numbers[choice.replace("best", "rule")]
            direction = None if place is None else DIRECTIONS[place // len(self.cells)]
            named[f"{begin}direction"] = direction
            named[f"{begin}offset"] = None if offset is None else OFFSETS[offset]
        shares = {"baseline": numbers["rule_share"], "held_out_baseline": numbers["held_out_rule"]}
        return named | shares


def _tally_of(
    relations: Relations, shown: list[RelationHead], threshold: float, levels: Mapping[str, float]
) -> Tally:
    """The share of the words of each relation in each document, as a tally of patterns."""
    source = "Clark et al. 2019, section 4.2; mean over documents of the share of words"
    patterns = tuple(
        Pattern(
            name=each.relation,
            says=LOOKS[DIRECTIONS.index(each.direction)],
            source=source,
            threshold=threshold,
            score=_counted,
        )
        for each in shown
    )
    sums, tally = relations.sums, Tally(patterns, stack=relations.how["stack"], levels=levels)
    values = np.full((len(sums.rows), len(tally.rows), len(relations.cells)), np.nan)
    for each in shown:
        wholes = sums[f"asked/{each.relation}"][:, None]
        hits = sums[f"hits/max/{each.relation}"].reshape(len(wholes), len(DIRECTIONS), -1)
        offset = sums[f"rules/max/{each.relation}"][:, OFFSETS.index(each.offset), None]
        right = {"": hits[:, DIRECTIONS.index(each.direction)], ":position": offset}
        for row, parts in right.items():
            nothing = np.full(parts.shape, np.nan)
            shares = np.divide(parts, wholes, out=nothing, where=wholes > 0)
            values[:, tally.rows.index(f"{each.relation}{row}")] = shares
    facts = {"heads": [list(cell) for cell in relations.cells], "model": relations.model}
    for name, of in zip(sums.rows, values, strict=True):
        tally.add(name, of, facts)
    return tally


# A pattern must say how it is scored; these come with their scores, and no text can add to them.
def _counted(maps: AttentionMaps) -> np.ndarray:
    raise RecordError("A relation needs a treebank; it cannot be scored on a text without its tree")


def _input_of(sentence: Sentence, how: Mapping[str, Any]) -> str:
    """The sentence as the model reads it.

    Raises:
        TextError: where its words are not in the text as it was written.
    """
    if how["text"] == "words":
        return sentence.text
    sentence.written_spans()
    return sentence.written or ""


FOLD = Relations.FOLD = Fold(
    name="relations",
    what="sentence",
    counts_of=counts_of,
    result_of=Relations.of_sums,
    given_of=given_of,
    item_of=sentence_of,
    input_of=_input_of,
)


def relations(
    model: Any,
    tokenizer: Any = None,
    treebank: Treebank | Iterable[Sentence] | str | os.PathLike[str] | None = None,
    *,
    text: Literal["words", "written"] = "words",
    rows: Literal["mean", "first", "max"] = "mean",
    trees: bool = True,
    random_weights: bool = False,
    **options: Any,
) -> Relations:
    """Which head looks along each dependency relation, compared with position alone and a
    choice that was held out.

    Of every head and both directions the share of words whose head is looked at most (Clark), and
    of those whose head is above them in the best tree (Htut), relation by relation. A sentence that
    cannot be read, or whose words and tokens cannot be aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2; Htut et al. 2019. There the best head is chosen and
    measured on the same sentences; that number is given here, too, and with it one of documents
    that it was not chosen on: chosen on one half and measured on the other, both ways, mean and
    spread over several splits.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        treebank: a `Treebank`, its sentences, or a file in CoNLL-U.
        text: ``"words"`` joined by spaces, so that no token is part of two; or the text as it was
            ``"written"``.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        trees: whether the best trees are decoded, too, from the gold root.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        **options: ``groups``, the document of each sentence where the treebank does not say, or
            names it otherwise (``# newdoc``); ``universal``, ``stack``, ``confidence``,
            ``correction``, ``seed`` and ``splits`` of `Relations`; ``truncate``, ``batch_tokens``
            and ``progress`` of `headscope.capture_many`; ``out``, ``workers``, ``executor`` and
            ``part_size`` of `headscope.corpus.RunOptions`, for a run in parts, see docs page "Over
            many texts".

    Raises:
        FileError: where the treebank cannot be read, with the line and the reason.
        RecordError: where no sentence is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.
        RunError: of a run, see `headscope.corpus.run`.

    Example:
        >>> relations("bert-base-uncased", treebank="en_ewt-ud-dev.conllu").best("det").accuracy
        0.94
    """
    if text not in TEXTS:
        raise RecordError(f"text is {text!r}; it may be {' or '.join(map(repr, TEXTS))}")
    bank = parse_treebank(treebank)
    own = taken(options, ("universal", "stack", *DEFAULTS))
    items = [Item(each.name, each.document or None, each) for each in bank]
    asked, options = Relations(rows=rows, trees=trees, **own), options | {"source": bank.name}
    how = {"random_weights": random_weights, "text": text}
    return folded(asked, (model, tokenizer), items, options, **how)
