"""Which head looks from a mention at what it means: what was counted, and what follows from it."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence import p_above, redrawn_ratios
from headscope.evidence._correction import CORRECTIONS
from headscope.linguistics import Passage, word_attention, words_at
from headscope.linguistics._mentions import RULES
from headscope.patterns._table import Table
from headscope.record import Record
from headscope.studies._antecedent_head import FIELDS, AntecedentHead
from headscope.studies._coref_table import plotted, printed
from headscope.studies._coref_tally import ALL, CANDIDATES, Answers, answers_of
from headscope.studies._range_plot import range_plot
from headscope.studies._reading import cells_of


class Coreference(Table):
    """Which questions every head answers right; prints itself, is added to others of the same model, and kept.

    Args:
        rows: how rows of a word's tokens become one; see `headscope.linguistics.word_attention`.
        stack: which stack of the records; by default the first.
        confidence: of the intervals.
        correction: for trying many kinds, ``"holm"`` or ``"benjamini-hochberg"``.
        seed: of how documents are split into halves.

    Raises:
        RecordError: where confidence or correction are not what they may be.

    Example:
        >>> Coreference()
        <Coreference of 0 passages>
    """

    def __init__(
        self,
        *,
        rows: str = "mean",
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
        self.rows, self.stack, self.confidence, self.correction, self.seed = rows, stack, confidence, correction, seed
        self.model, self.data = "", ""
        self.cells: tuple[tuple[int, int], ...] = ()
        self.left_out: dict[str, str] = {}
        self.control: Coreference | None = None
        self._answers: dict[str, Answers] = {}

    def update(self, passage: Passage, record: Record) -> None:
        """Count one passage; it goes to ``left_out`` where its words and the tokens cannot be aligned.

        Args:
            passage: its words and questions.
            record: of its text.

        Raises:
            RecordError: where it was counted before, the record is of another text, or has other layers and heads.
        """
        stack = record[self.stack or next(iter(record.stacks))]
        cells = cells_of(stack)
        if self.cells and cells != self.cells:
            raise RecordError(
                f"Passage {passage.name!r} has {len(cells)} heads, those before it {len(self.cells)}; heads of one "
                "model are counted together"
            )
        if passage.name in self._answers or passage.name in self.left_out:
            raise RecordError(f"Passage {passage.name!r} was counted before; each has a name of its own")
        if stack.query.texts[:1] != (passage.text,):
            raise RecordError(f"The record is of another text than the passage {passage.name!r}")
        try:
            words = words_at(stack.query, passage.spans)
            words.check()
        except RecordError as error:
            self.left_out[passage.name] = str(error)
            return
        places = list(words.places)
        weights = np.concatenate([np.asarray(layer.weights_of(), np.float64) for layer in stack])
        maps = word_attention(weights, words, rows=self.rows)[:, places][:, :, places]
        self._answers[passage.name] = answers_of(passage, maps)
        self.cells, self.model = cells, self.model or record.model.name
        self._forget()

    def __add__(self, other: Coreference) -> Coreference:
        """The passages of both.

        Raises:
            RecordError: where they share a passage, or heads or options differ.
        """
        if not isinstance(other, Coreference):
            return NotImplemented
        shared = {*self._answers, *self.left_out} & {*other._answers, *other.left_out}
        mine, theirs = ((each.rows, each.stack, each.cells or self.cells) for each in (self, other))
        if shared or (self.cells and mine != theirs) or mine[:2] != theirs[:2]:
            raise RecordError("These are of other models or options, or share a passage; they cannot be added up")
        found = Coreference(
            rows=self.rows,
            stack=self.stack,
            confidence=self.confidence,
            correction=self.correction,
            seed=self.seed,
        )
        found.cells, found.model = self.cells or other.cells, self.model or other.model
        found.data = self.data if self.data == other.data else f"{self.data} + {other.data}"
        found._answers, found.left_out = self._answers | other._answers, self.left_out | other.left_out
        if self.control is not None and other.control is not None:
            found.control = self.control + other.control
        return found

    @property
    def passages(self) -> int:
        """Number of passages counted."""
        return len(self._answers)

    @property
    def questions(self) -> int:
        """Number of mentions asked for."""
        return len(self._documents)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be asked for: all questions, kinds of mentions, groups of passages."""
        found = dict.fromkeys(kind for each in self._listed for kinds in each.kinds for kind in kinds)
        order = [name for name in (ALL, "pronoun", "proper", "nominal") if name in found]
        return (*order, *sorted(set(found) - set(order)))

    def accuracy(self, kind: str = ALL, candidates: str = "mentions") -> Float[np.ndarray, " head"]:
        """Share of questions that each head answers right; heads as in ``cells``.

        Raises:
            RecordError: where there is no such kind of mention or candidates.
        """
        return self._hits[_place(candidates)][:, self._asked(kind)].mean(axis=-1)

    def rule(self, name: str, kind: str = ALL) -> float:
        """Share of questions that a rule answers right: ``"nearest"``, ``"head match"`` or ``"sieves"``.

        Raises:
            RecordError: where there is no such rule or kind.
        """
        if name not in RULES:
            raise RecordError(f"There is no rule {name!r}; there are {', '.join(RULES)}")
        return float(self._rules[list(RULES).index(name), self._asked(kind)].mean())

    def heads_of(self, candidates: str = "mentions") -> tuple[AntecedentHead, ...]:
        """The best head for every kind of mention, on the same data and held out, with interval, baselines and test.

        Raises:
            RecordError: where there are no such candidates, or nothing was counted.
        """
        _place(candidates)
        if candidates not in self._found:
            self._found[candidates] = self._heads_of(candidates)
        return self._found[candidates]

    def best(self, kind: str = ALL, candidates: str = "mentions") -> AntecedentHead:
        """The best head for one kind of mention.

        Raises:
            RecordError: where there is no such kind of mention or candidates.
        """
        self._asked(kind)
        return next(each for each in self.heads_of(candidates) if each.kind == kind)

    def columns(self) -> dict[str, list]:
        """The best head for every kind and both candidate sets as a table, one list for each column.

        With a model with random weights beside it, ``random_accuracy`` and ``random_held_out_accuracy`` are its own.
        """
        listed = [each for candidates in CANDIDATES for each in self.heads_of(candidates)]
        found = {name: [getattr(each, name) for each in listed] for name in FIELDS}
        if self.control is not None:
            for name in ("accuracy", "held_out_accuracy"):
                control = self.control
                found[f"random_{name}"] = [getattr(control.best(each.kind, each.candidates), name) for each in listed]
        return found

    def plot(self, path: str | os.PathLike, *, candidates: str = "mentions") -> Path:
        """Draw the held-out accuracy for every kind of mention with its interval, beside its baselines.

        Args:
            path: .svg, .pdf or .png.
            candidates: one of `CANDIDATES`.

        Raises:
            FigureError: where matplotlib is missing, or the suffix is none of these.
        """
        return range_plot(Path(path), *plotted(self, candidates))

    def save(self, path: str | os.PathLike) -> Path:
        """Keep what was answered as one .npz file, to be gone on with by `load_coref`; without the random twin.

        Raises:
            FileError: where the file cannot be written.
        """
        from headscope.studies._coref_file import save

        return save(self, Path(path))

    def __repr__(self) -> str:
        return f"<Coreference of {self.passages} passages>"

    def __str__(self) -> str:
        return printed(self)

    def _heads_of(self, candidates: str) -> tuple[AntecedentHead, ...]:
        hits = self._hits[_place(candidates)]
        choosing = self._choosing
        found, sums = [], []
        for kind in self.kinds:
            asked = self._asked(kind)
            first = asked[choosing[self._documents[asked]]]
            best = int(hits[:, asked].sum(axis=-1).argmax())
            held = int(hits[:, first].sum(axis=-1).argmax()) if len(first) else None
            wholes = self._by_document(np.ones(len(self._documents), bool), asked)
            mine = np.zeros(len(wholes)) if held is None else self._by_document(hits[held], asked)
            sums.append((self._by_document(hits[best], asked), mine, self._by_document(self._rules[0], asked), wholes))
            found.append((kind, best, held))
        same, mine, near, wholes = (np.stack(each, axis=1) for each in zip(*sums, strict=True))
        other = ~choosing
        there = np.where(wholes > 0, 1.0, np.nan)[other]
        p = p_above(mine[other] * there, near[other] * there)
        corrected = CORRECTIONS[self.correction](p)
        ends, held_ends = self._ends(same, wholes), self._ends(mine[other], wholes[other])
        shares = [_share(mine[other], wholes[other]), _share(near[other], wholes[other])]
        return tuple(
            self._head(
                (kind, candidates, best, held),
                (same[:, n].sum() / wholes[:, n].sum(), *ends[n]),
                (wholes[other, n].sum(), shares[0][n], *held_ends[n], shares[1][n], p[n], corrected[n]),
            )
            for n, (kind, best, held) in enumerate(found)
        )

    def _head(self, chosen: tuple[str, str, int, int | None], same: tuple, other: tuple) -> AntecedentHead:
        kind, candidates, best, held = chosen
        accuracy, low, high = map(float, same)
        count, held_accuracy, held_low, held_high, near, p, corrected = map(float, other)
        layer, head = self.cells[best]
        held_layer, held_head = (None, None) if held is None else self.cells[held]
        return AntecedentHead(
            kind=kind,
            candidates=candidates,
            count=len(self._asked(kind)),
            layer=layer,
            head=head,
            accuracy=accuracy,
            low=low,
            high=high,
            nearest=self.rule("nearest", kind),
            head_match=self.rule("head match", kind),
            sieves=self.rule("sieves", kind),
            held_out_layer=held_layer,
            held_out_head=held_head,
            held_out_count=int(count),
            held_out_accuracy=float("nan") if held is None else held_accuracy,
            held_out_low=held_low,
            held_out_high=held_high,
            held_out_nearest=near,
            p=p,
            p_corrected=corrected,
        )

    def _ends(self, parts: np.ndarray, wholes: np.ndarray) -> Float[np.ndarray, "kind 2"]:
        """Bootstrap intervals over documents; NaN for a kind in fewer than two."""
        tails = ((1 - self.confidence) / 2, (1 + self.confidence) / 2)
        found = np.full((parts.shape[1], 2), np.nan)
        many = np.flatnonzero((wholes > 0).sum(axis=0) > 1)
        if len(many):
            found[many] = np.nanquantile(redrawn_ratios(parts[:, many], wholes[:, many]), tails, axis=0).T
        return found

    def _by_document(self, hits: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return np.bincount(self._documents[asked], weights=hits[asked], minlength=len(self._choosing))

    @cached_property
    def _listed(self) -> list[Answers]:
        if not self._answers:
            raise RecordError("No passage was counted")
        return [self._answers[name] for name in sorted(self._answers)]

    @cached_property
    def _documents(self) -> np.ndarray:
        """The document of every question."""
        names = [each.document for each in self._listed for _ in each.kinds]
        return np.unique(names, return_inverse=True)[1] if names else np.empty(0, int)

    @cached_property
    def _choosing(self) -> np.ndarray:
        """The half of the documents that heads are chosen on."""
        size = int(self._documents.max()) + 1 if len(self._documents) else 0
        found = np.zeros(size, bool)
        found[np.random.default_rng(self.seed).permutation(size)[: size // 2]] = True
        return found

    @cached_property
    def _hits(self) -> Bool[np.ndarray, "candidates head question"]:
        return np.concatenate([each.heads for each in self._listed], axis=-1)

    @cached_property
    def _rules(self) -> Bool[np.ndarray, "rule question"]:
        return np.concatenate([each.rules for each in self._listed], axis=-1)

    @cached_property
    def _found(self) -> dict[str, tuple[AntecedentHead, ...]]:
        return {}

    def _asked(self, kind: str) -> np.ndarray:
        kinds = [names for each in self._listed for names in each.kinds]
        found = np.array([place for place, names in enumerate(kinds) if kind in names], int)
        if not len(found):
            raise RecordError(f"There is no question of the kind {kind!r}; there are {', '.join(self.kinds)}")
        return found

    def _forget(self) -> None:
        for name in ("_listed", "_documents", "_choosing", "_hits", "_rules", "_found"):
            self.__dict__.pop(name, None)


def _share(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    sums = wholes.sum(axis=0)
    return np.divide(parts.sum(axis=0), sums, out=np.full(sums.shape, np.nan), where=sums > 0)


def _place(candidates: str) -> int:
    if candidates not in CANDIDATES:
        raise RecordError(f"candidates is {candidates!r}; it may be {' or '.join(map(repr, CANDIDATES))}")
    return CANDIDATES.index(candidates)
