"""Which heads look along dependency relations, and is it more than position?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError, TextError
from headscope.evidence import benjamini_hochberg, holm, p_above, redrawn_ratios
from headscope.linguistics import DIRECTIONS, NEAREST_STANFORD, OFFSETS, Sentence, Treebank, read_treebank, words_at
from headscope.linguistics._dependencies import ALL, NO_PUNCT, NO_ROOT
from headscope.patterns import Heads
from headscope.patterns._table import Table, aligned
from headscope.record import Record
from headscope.studies._range_plot import Mark, range_plot
from headscope.studies._reading import cells_of, numbered, p_shown, percent, said_of
from headscope.studies._relation_head import FIELDS, RelationHead
from headscope.studies._relation_tally import SCORES, Chosen, Corpus, Read, chosen_for, corpus_of, read_heads
from headscope.studies._source import parse_source

TEXTS = ("words", "written")
CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}
GROUPS = (ALL, NO_PUNCT, NO_ROOT)
LEAST = 20
"""How many words a relation has that is printed; tables to export hold them all."""
COMMON = 100
"""How many a relation has that is a label of heads."""


class Relations(Table):
    """What every head says about the heads of words; prints itself, is added to others of the same model, and kept.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        trees: whether the best trees are decoded, too.
        universal: whether subtypes of relations are left off.
        stack: which stack of the records; by default the first.
        confidence: of the intervals.
        correction: for trying many relations, ``"holm"`` or ``"benjamini-hochberg"``.
        seed: of how sentences are split into halves.

    Raises:
        RecordError: where confidence or correction are not what they may be.

    Example:
        >>> Relations()
        <Relations of 0 sentences>
    """

    def __init__(
        self,
        *,
        rows: str = "mean",
        trees: bool = True,
        universal: bool = False,
        stack: str | None = None,
        confidence: float = 0.95,
        correction: str = "holm",
        seed: int = 0,
    ) -> None:
        if not 0 < confidence < 1 or correction not in CORRECTIONS:
            raise RecordError(
                f"confidence {confidence} and correction {correction!r}: wanted are a number between 0 and 1, and "
                f"{' or '.join(CORRECTIONS)}"
            )
        self.rows, self.trees, self.universal, self.stack = rows, trees, universal, stack
        self.confidence, self.correction, self.seed = confidence, correction, seed
        self.model, self.treebank = "", ""
        self.cells: tuple[tuple[int, int], ...] = ()
        self.left_out: dict[str, str] = {}
        self.control: Relations | None = None
        self._read: dict[str, Read] = {}

    def update(self, sentence: Sentence, record: Record) -> None:
        """Count one sentence; it goes to ``left_out`` where its words and the tokens cannot be aligned.

        Args:
            sentence: its words and tree.
            record: of the sentence's `text`, or of the text as it was `written`.

        Raises:
            RecordError: where it was counted before, the record is of another text, or has other layers and heads.
        """
        stack = record[self.stack or next(iter(record.stacks))]
        cells = cells_of(stack)
        if self.cells and cells != self.cells:
            raise RecordError(
                f"Sentence {sentence.name!r} has {len(cells)} heads, those before it {len(self.cells)}; heads of one "
                "model are counted together"
            )
        if sentence.name in self._read or sentence.name in self.left_out:
            raise RecordError(f"Sentence {sentence.name!r} was counted before; each has a name of its own")
        _check_text(sentence, stack.query.texts)
        try:
            spans = sentence.spans if stack.query.texts[0] == sentence.text else sentence.written_spans()
            words = words_at(stack.query, spans)
            words.check()
        except (RecordError, TextError) as error:
            self.left_out[sentence.name] = str(error)
            return
        weights = np.concatenate([np.asarray(layer.weights_of(), np.float64) for layer in stack])
        self._read[sentence.name] = read_heads(sentence, words, weights, rows=self.rows, trees=self.trees)
        self.cells, self.model = cells, self.model or record.model.name
        self._forget()

    def __add__(self, other: Relations) -> Relations:
        """The sentences of both.

        Raises:
            RecordError: where they share a sentence, or heads or options differ.
        """
        if not isinstance(other, Relations):
            return NotImplemented
        found = self._like()
        mine, theirs = ((each.rows, each.trees, each.universal, each.cells or self.cells) for each in (self, other))
        shared = {*self._read, *self.left_out} & {*other._read, *other.left_out}
        if shared or (self.cells and mine != theirs) or mine[:3] != theirs[:3]:
            raise RecordError("These are of other models or options, or share a sentence; they cannot be added up")
        found.cells, found.model = self.cells or other.cells, self.model or other.model
        found.treebank = self.treebank if self.treebank == other.treebank else f"{self.treebank} + {other.treebank}"
        found._read, found.left_out = self._read | other._read, self.left_out | other.left_out
        if self.control is not None and other.control is not None:
            found.control = self.control + other.control
        return found

    @property
    def sentences(self) -> int:
        """Number of sentences counted."""
        return len(self._read)

    @property
    def words(self) -> int:
        """Number of words counted."""
        return sum(len(each.heads) for each in self._read.values())

    @property
    def relations(self) -> tuple[str, ...]:
        """All that can be asked for: groups of words, then relations, the most frequent first."""
        return tuple(self.corpus.groups)

    def accuracy(self, relation: str, score: str = "max") -> Float[np.ndarray, "direction head"]:
        """Share of a relation's words whose head each head names, for both `DIRECTIONS`; heads as in ``cells``.

        Raises:
            RecordError: where there is no such relation or score.
        """
        return self._hits(score)[:, :, self._words(relation)].mean(axis=-1)

    def heads_of(self, score: str = "max") -> tuple[RelationHead, ...]:
        """The best head of every relation, on the same data and held out, with interval, baseline and test.

        Raises:
            RecordError: where there is no such score, or nothing was counted.
        """
        self._hits(score)
        if score not in self._found:
            self._found[score] = self._heads_of(score)
        return self._found[score]

    def best(self, relation: str, score: str = "max") -> RelationHead:
        """The best head of one relation.

        Raises:
            RecordError: where there is no such relation or score.
        """
        self._words(relation)
        return next(each for each in self.heads_of(score) if each.relation == relation)

    def columns(self) -> dict[str, list]:
        """The best head of every relation by every score as a table, one list for each column.

        With a model with random weights beside it, ``random_accuracy`` and ``random_held_out_accuracy`` are its own.
        """
        listed = [each for score in self._scores for each in self.heads_of(score)]
        found = {name: [getattr(each, name) for each in listed] for name in FIELDS}
        if self.control is not None:
            for name in ("accuracy", "held_out_accuracy"):
                control = self.control
                found[f"random_{name}"] = [getattr(control.best(each.relation, each.score), name) for each in listed]
        return found

    def plot(self, path: str | os.PathLike, *, least: int = LEAST, score: str = "max") -> Path:
        """Draw the held-out accuracy of every relation with its interval, beside its baseline.

        Args:
            path: .svg, .pdf or .png.
            least: how many words a relation has that is drawn.
            score: one of `SCORES`.

        Raises:
            FigureError: where matplotlib is missing, or the suffix is none of these.
        """
        shown = [each for each in self.heads_of(score) if each.count >= least and each.relation in self.named]
        rows = {
            f"{each.relation}  ({each.count})": (
                f"{each.held_out_place} {each.held_out_direction}",
                self._marks(each),
            )
            for each in sorted(shown, key=lambda each: -each.held_out_accuracy)
        }
        caption = f"{self._title()}: share of words whose head the best attention head names, held out"
        return range_plot(Path(path), rows, caption)

    def as_heads(self, *, least: int | None = None, threshold: float = 0.3) -> Heads:
        """Relations as labels of heads, in the direction of the best head: ``hs.view(record, evidence=...)``.

        A label holds where the share of words, mean over the sentences that have some, reaches the threshold and lies
        above that of the best offset (and of the best head with random weights), corrected for all heads and relations.
        Means over sentences are near the accuracies of all words, not equal to them.

        Args:
            least: how many words a relation has; by default 100, of few sentences a twentieth of all words.
            threshold: least share, of 1.

        Raises:
            RecordError: where no relation has so many words, or nothing was counted.
        """
        from headscope.studies._relation_evidence import heads_of

        fewest = min(COMMON, max(1, self.words // 20)) if least is None else least
        return heads_of(self, least=fewest, threshold=threshold)

    @property
    def names(self) -> tuple[str, ...]:
        """The sentences that were counted, as `corpus` has them."""
        return tuple(sorted(self._read))

    @property
    def named(self) -> tuple[str, ...]:
        """The relations alone, without groups of words and the root."""
        return tuple(name for name in self.relations if name not in (*GROUPS, "root"))

    def save(self, path: str | os.PathLike) -> Path:
        """Keep what was read as one .npz file, to be gone on with by `load_relations`; without the random twin.

        Raises:
            FileError: where the file cannot be written.
        """
        from headscope.studies._relation_file import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        return f"<Relations of {self.sentences} sentences>"

    def __str__(self) -> str:
        if not self.sentences:
            return "\n".join([repr(self), *said_of(self.left_out, "sentences are")])
        title = f"{self._title()}: {len(self.cells)} heads, {self.sentences} sentences, {self.words} words"
        lines = [title, *aligned(self._table()), *self._rare(), *self._trees(), self._note()]
        return "\n".join([*lines, *said_of(self.left_out, "sentences are")])

    def _title(self) -> str:
        return f"{self.model or 'a model'}, {self.treebank or 'a treebank'}"

    def _table(self) -> list[tuple[str, ...]]:
        level = f"[{self.confidence:.0%}]"
        header = ["relation", "words", "head", "looks", f"accuracy {level}", "offset", "baseline"]
        header += ["held out", "looks", f"accuracy {level}", "offset", "baseline", "p"]
        rows = [tuple(header + ["random weights"] * (self.control is not None))]
        for each in self.heads_of():
            if each.count < LEAST and each.relation not in GROUPS:
                continue
            cells = [each.relation, str(each.count), each.place, each.direction]
            cells += [percent(each.accuracy, (each.low, each.high)), f"{each.offset:+d}", percent(each.baseline)]
            cells += [each.held_out_place, each.held_out_direction or "-"]
            cells += [percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
            cells += ["-" if each.held_out_offset is None else f"{each.held_out_offset:+d}"]
            cells += [percent(each.held_out_baseline), p_shown(each.p_corrected)]
            if self.control is not None:
                cells.append(percent(self.control.best(each.relation).held_out_accuracy))
            rows.append(tuple(cells))
        return rows

    def _rare(self) -> list[str]:
        rare = [each.relation for each in self.heads_of() if each.count < LEAST and each.relation not in GROUPS]
        return [f"{len(rare)} relations with fewer than {LEAST} words are not shown: {', '.join(rare)}"] if rare else []

    def _trees(self) -> list[str]:
        if NO_ROOT not in self.relations:
            return []
        lines = []
        for score in (score for score in self._scores if score != "max"):
            best = self.best(NO_ROOT, score)
            cells = f"{percent(best.held_out_accuracy, (best.held_out_low, best.held_out_high))} held out"
            control = ""
            if self.control is not None:
                control = f", random weights {percent(self.control.best(NO_ROOT, score).held_out_accuracy)}"
            lines.append(
                f"{score}, {NO_ROOT}: {best.place} {best.direction} {percent(best.accuracy)}; {best.held_out_place} "
                f"{cells}, offset {percent(best.held_out_baseline)}{control}"
            )
        return lines

    def _note(self) -> str:
        return (
            "Accuracy in %: of words whose head the attention head looks at most. Held out: head and offset are chosen "
            f"on one half of the sentences, measured on the other; p of being no better, {self.correction} over "
            "relations. Heads are layer-head from 0."
        )

    def _marks(self, each: RelationHead) -> dict[str, Mark]:
        found = {
            "best head": (each.held_out_accuracy, (each.held_out_low, each.held_out_high)),
            "best offset": (each.held_out_baseline, None),
        }
        if self.control is not None:
            control = self.control.best(each.relation, each.score).held_out_accuracy
            found["random weights, best head"] = (control, None)
        return found

    def _heads_of(self, score: str) -> tuple[RelationHead, ...]:
        corpus, hits, offsets = self.corpus, self._hits(score), self.corpus.offset_hits(score)
        chosen = [chosen_for(corpus, (hits, offsets), words, self._choosing) for words in corpus.groups.values()]
        wholes = np.stack([each.wholes for each in chosen], axis=1)
        same, held, base = (
            np.stack([getattr(each, name) for each in chosen], axis=1) for name in ("same", "held", "base")
        )
        measuring = ~self._choosing
        ends = self._ends(same, wholes)
        held_ends = self._ends(held[measuring], wholes[measuring])
        there = np.where(wholes > 0, 1.0, np.nan)[measuring]
        p = p_above(held[measuring] * there, base[measuring] * there)
        corrected = CORRECTIONS[self.correction](p)
        return tuple(
            self._head(name, score, each, (*ends[place], *held_ends[place], p[place], corrected[place]))
            for place, (name, each) in enumerate(zip(corpus.groups, chosen, strict=True))
        )

    def _head(self, name: str, score: str, each: Chosen, ends: tuple) -> RelationHead:
        low, high, held_low, held_high, p, corrected = map(float, ends)
        layer, head = self.cells[each.best[1]]
        held = None if each.held_best is None else self.cells[each.held_best[1]]
        measuring = ~self._choosing
        count = int(each.wholes[measuring].sum())
        known = held is not None and count
        return RelationHead(
            relation=name,
            score=score,
            stanford=NEAREST_STANFORD.get(name, ""),
            count=int(each.wholes.sum()),
            layer=layer,
            head=head,
            direction=DIRECTIONS[each.best[0]],
            accuracy=float(each.same.sum() / each.wholes.sum()),
            low=low,
            high=high,
            offset=OFFSETS[each.offset],
            baseline=each.baseline,
            held_out_layer=None if held is None else held[0],
            held_out_head=None if held is None else held[1],
            held_out_direction=None if each.held_best is None else DIRECTIONS[each.held_best[0]],
            held_out_count=count,
            held_out_accuracy=float(each.held[measuring].sum() / count) if known else float("nan"),
            held_out_low=held_low,
            held_out_high=held_high,
            held_out_offset=None if each.held_offset is None else OFFSETS[each.held_offset],
            held_out_baseline=float(each.base[measuring].sum() / count) if known else float("nan"),
            p=p,
            p_corrected=corrected,
        )

    def _ends(self, parts: np.ndarray, wholes: np.ndarray) -> Float[np.ndarray, "relation 2"]:
        """Bootstrap intervals over sentences; NaN for a relation of fewer than two."""
        tails = ((1 - self.confidence) / 2, (1 + self.confidence) / 2)
        found = np.full((parts.shape[1], 2), np.nan)
        many = np.flatnonzero((wholes > 0).sum(axis=0) > 1)
        if len(many):
            drawn = redrawn_ratios(parts[:, many], wholes[:, many])
            found[many] = np.nanquantile(drawn, tails, axis=0).T
        return found

    @property
    def _scores(self) -> tuple[str, ...]:
        return tuple(score for score in SCORES if self.trees or not score.startswith("tree"))

    @cached_property
    def corpus(self) -> Corpus:
        """All words of all sentences in one row.

        Raises:
            RecordError: where nothing was counted.
        """
        if not self._read:
            raise RecordError("No sentence was counted")
        return corpus_of((self._read[name] for name in sorted(self._read)), universal=self.universal)

    @cached_property
    def _choosing(self) -> np.ndarray:
        """The half of the sentences that heads are chosen on."""
        order = np.random.default_rng(self.seed).permutation(self.sentences)
        found = np.zeros(self.sentences, bool)
        found[order[: self.sentences // 2]] = True
        return found

    @cached_property
    def _found(self) -> dict[str, tuple[RelationHead, ...]]:
        return {}

    @cached_property
    def _hits_of(self) -> dict[str, np.ndarray]:
        return {}

    def _hits(self, score: str) -> np.ndarray:
        if score not in self._scores:
            raise RecordError(f"score is {score!r}; it may be {', '.join(self._scores)}")
        if score not in self._hits_of:
            self._hits_of[score] = self.corpus.hits(score)
        return self._hits_of[score]

    def _words(self, relation: str) -> np.ndarray:
        if relation not in self.corpus.groups:
            raise RecordError(f"No word has the relation {relation!r}; there are {', '.join(self.relations)}")
        return self.corpus.groups[relation]

    def _forget(self) -> None:
        for name in ("corpus", "_choosing", "_found", "_hits_of"):
            self.__dict__.pop(name, None)

    def _like(self) -> Relations:
        """An empty one with the same options."""
        return Relations(
            rows=self.rows,
            trees=self.trees,
            universal=self.universal,
            stack=self.stack,
            confidence=self.confidence,
            correction=self.correction,
            seed=self.seed,
        )


def relations(
    model: Any,
    tokenizer: Any = None,
    treebank: Treebank | Iterable[Sentence] | str | os.PathLike | None = None,
    *,
    text: str = "words",
    rows: str = "mean",
    trees: bool = True,
    random_weights: bool = False,
    **options: Any,
) -> Relations:
    """Which head looks along each dependency relation, beside position alone and a choice that was held out.

    Of every head and both directions the share of words whose head is looked at most (Clark), and of those whose head
    is above them in the best tree (Htut), relation by relation. A sentence that cannot be read, or whose words and
    tokens cannot be aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2; Htut et al. 2019. There the best head is chosen and measured on the same
    sentences; that number is given here, too, and beside it one of the half it was not chosen on.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        treebank: a `Treebank`, its sentences, or a file in CoNLL-U.
        text: ``"words"`` joined by spaces, so that no token is part of two; or the text as it was ``"written"``.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        trees: whether the best trees are decoded, too, from the gold root.
        random_weights: whether the same architecture with random weights reads them, too: ``control`` of the result.
        **options: ``universal``, ``stack``, ``confidence``, ``correction`` and ``seed`` of `Relations`; ``truncate``,
            ``batch_tokens`` and ``progress`` of `headscope.capture_many`.

    Raises:
        FileError: where the treebank cannot be read, with the line and the reason.
        RecordError: where no sentence is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.

    Example:
        >>> relations("bert-base-uncased", treebank="en_ewt-ud-dev.conllu").best("det").accuracy
        0.94
    """
    if text not in TEXTS:
        raise RecordError(f"text is {text!r}; it may be {' or '.join(map(repr, TEXTS))}")
    bank = parse_treebank(treebank)
    readable, unreadable = [], {}
    for sentence in bank:
        try:
            (sentence.spans if text == "words" else sentence.written_spans())
            readable.append(sentence)
        except TextError as error:
            unreadable[sentence.name] = str(error)
    texts = [sentence.text if text == "words" else sentence.written for sentence in readable]
    if not texts:
        raise RecordError(f"No sentence is left: {next(iter(unreadable.values()))}")
    source = parse_source(model, tokenizer, texts, options)
    assert source is not None, "texts were given"

    def study(other: Any = None) -> Relations:
        found = Relations(rows=rows, trees=trees, **options)
        found.treebank, lost = bank.name, {}
        for number, record in numbered(source, lost, other):
            found.update(readable[number], record)
        found.left_out |= unreadable | {readable[number].name: reason for number, reason in lost.items()}
        if not found.sentences:
            raise RecordError(f"No sentence is left: {next(iter(found.left_out.values()))}")
        return found

    result = study()
    if random_weights:
        from headscope.capturing import random_twin

        result.control = study(random_twin(source.model))
    return result


def parse_treebank(treebank: Any) -> Treebank:
    """A treebank from what users have.

    Raises:
        FileError: where a file cannot be read.
        RecordError: where it is none.
    """
    if isinstance(treebank, Treebank):
        return treebank
    if isinstance(treebank, str | os.PathLike):
        return read_treebank(treebank)
    listed = tuple(treebank) if isinstance(treebank, Iterable) else ()
    if not listed or not all(isinstance(each, Sentence) for each in listed):
        raise RecordError(
            f"A treebank was given as {type(treebank).__name__}; wanted is a file in CoNLL-U, a Treebank or its "
            "sentences"
        )
    return Treebank("sentences", listed)


def _check_text(sentence: Sentence, texts: tuple[str, ...]) -> None:
    if texts[:1] not in ((sentence.text,), (sentence.written,)):
        raise RecordError(
            f"The record is of {''.join(texts[:1])[:40]!r}, not of the sentence {sentence.name!r}: capture its text, "
            "or the text as it was written"
        )
