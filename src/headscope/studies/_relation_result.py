"""Which heads look along dependency relations: what was counted, and what follows from it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError, TextError
from headscope.evidence import p_above, redrawn_ratios
from headscope.evidence._correction import CORRECTIONS
from headscope.linguistics import DIRECTIONS, NEAREST_STANFORD, OFFSETS, Sentence, words_at
from headscope.patterns import Heads
from headscope.patterns._table import Table
from headscope.record import Record
from headscope.studies._range_plot import range_plot
from headscope.studies._reading import cells_of
from headscope.studies._relation_head import FIELDS, RelationHead
from headscope.studies._relation_table import GROUPS, LEAST, plotted, printed
from headscope.studies._relation_tally import SCORES, Chosen, Corpus, Read, chosen_for, corpus_of, read_heads

COMMON = 100
"""How many words a relation has that is a label of heads."""


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
        listed = [each for score in self.scores for each in self.heads_of(score)]
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
        return range_plot(Path(path), *plotted(self, least, score))

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
        return printed(self)

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
    def scores(self) -> tuple[str, ...]:
        """How heads were read, of `SCORES`."""
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
        if score not in self.scores:
            raise RecordError(f"score is {score!r}; it may be {', '.join(self.scores)}")
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


def _check_text(sentence: Sentence, texts: tuple[str, ...]) -> None:
    if texts[:1] not in ((sentence.text,), (sentence.written,)):
        raise RecordError(
            f"The record is of {''.join(texts[:1])[:40]!r}, not of the sentence {sentence.name!r}: capture its text, "
            "or the text as it was written"
        )
