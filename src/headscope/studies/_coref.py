"""Which heads look from a mention at what it means, and is it more than looking at the nearest?"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence import benjamini_hochberg, holm, p_above, redrawn_ratios
from headscope.linguistics import Passage, read_coreference, word_attention, words_at
from headscope.linguistics._mentions import RULES, mention_answers, rule_hits
from headscope.patterns._table import Table, aligned
from headscope.record import Record
from headscope.studies._range_plot import Mark, range_plot
from headscope.studies._reading import cells_of, numbered, p_shown, percent, said_of
from headscope.studies._source import parse_source

CANDIDATES = ("mentions", "words")
"""What a mention chooses among: the heads of its candidates, or all other words of the passage."""
CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class AntecedentHead:
    """The head that answers most questions of one kind right.

    Shares lie between 0 and 1; NaN, or None, where there is nothing to tell.

    Args:
        kind: of the mentions that ask: all, pronoun, proper, nominal, or a group of passages.
        candidates: one of `CANDIDATES`.
        count: how many questions.
        layer: of the head that is best on all documents, measured on them too, as published numbers are.
        head: its number.
        accuracy: share of questions that it answers right.
        low: lower end of the bootstrap interval over documents.
        high: its upper end.
        nearest: share that taking the nearest mention answers right.
        head_match: the nearest with the same head word, where there is one.
        sieves: see `headscope.linguistics.sieves`.
        held_out_layer: of the head that is best on one half of the documents.
        held_out_head: its number.
        held_out_count: how many questions the other half has.
        held_out_accuracy: share of these that it answers right.
        held_out_low: lower end of its interval.
        held_out_high: upper end.
        held_out_nearest: share that the nearest mention answers right there.
        p: of that head not being above the nearest mention, paired t-test over the documents of the other half.
        p_corrected: the same, corrected for all kinds tried.
    """

    kind: str
    candidates: str
    count: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    nearest: float
    head_match: float
    sieves: float
    held_out_layer: int | None
    held_out_head: int | None
    held_out_count: int
    held_out_accuracy: float
    held_out_low: float
    held_out_high: float
    held_out_nearest: float
    p: float
    p_corrected: float

    @property
    def place(self) -> str:
        """The head as printed, layer first, both from 0."""
        return f"{self.layer}-{self.head}"

    @property
    def held_out_place(self) -> str:
        """The head that was chosen on the other half, as printed."""
        return "-" if self.held_out_layer is None else f"{self.held_out_layer}-{self.held_out_head}"


FIELDS = tuple(field.name for field in fields(AntecedentHead))


@dataclass(frozen=True)
class _Answers:
    """What is right in one passage: questions, the rules and all heads."""

    document: str
    kinds: tuple[tuple[str, ...], ...]
    rules: Bool[np.ndarray, "rule question"]
    heads: Bool[np.ndarray, "candidates head question"]


class Coreference(Table):
    """Which questions every head answers right; prints itself, and is added to others of the same model.

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
        self._answers: dict[str, _Answers] = {}

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
        questions = passage.questions or ()
        groups = (passage.group,) if passage.group else ()
        self._answers[passage.name] = _Answers(
            passage.document,
            tuple((ALL, each.mention.kind, *groups) for each in questions),
            rule_hits(passage),
            _head_hits(passage, maps),
        )
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
        rows = {
            f"{each.kind}  ({each.count})": (each.held_out_place, self._marks(each))
            for each in self.heads_of(candidates)
        }
        caption = f"{self._title()}: share of mentions whose antecedent the best attention head finds, held out"
        return range_plot(Path(path), rows, caption)

    def __repr__(self) -> str:
        return f"<Coreference of {self.passages} passages>"

    def __str__(self) -> str:
        if not self.passages:
            return "\n".join([repr(self), *said_of(self.left_out, "passages are")])
        asked = len(self._documents)
        title = f"{self._title()}: {len(self.cells)} heads, {self.passages} passages, {asked} questions"
        tables = [line for candidates in CANDIDATES for line in self._table(candidates)]
        note = (
            "Accuracy in %: of mentions whose head word looks most at the right one. Held out: the head is chosen on "
            f"one half of the documents, measured on the other; p of being no better than the nearest mention, "
            f"{self.correction} over kinds. Heads are layer-head from 0."
        )
        return "\n".join([title, *tables, note, *said_of(self.left_out, "passages are")])

    def _title(self) -> str:
        return f"{self.model or 'a model'}, {self.data or 'texts'}"

    def _table(self, candidates: str) -> list[str]:
        level = f"[{self.confidence:.0%}]"
        header = ["mention", "count", "head", f"accuracy {level}", "nearest", "head match", "sieves"]
        header += ["held out", f"accuracy {level}", "nearest", "p"]
        rows = [tuple(header + ["random weights"] * (self.control is not None))]
        for each in self.heads_of(candidates):
            cells = [each.kind, str(each.count), each.place, percent(each.accuracy, (each.low, each.high))]
            cells += [percent(value) for value in (each.nearest, each.head_match, each.sieves)]
            cells += [each.held_out_place, percent(each.held_out_accuracy, (each.held_out_low, each.held_out_high))]
            cells += [percent(each.held_out_nearest), p_shown(each.p_corrected)]
            if self.control is not None:
                cells.append(percent(self.control.best(each.kind, candidates).held_out_accuracy))
            rows.append(tuple(cells))
        among = "the heads of the candidate mentions" if candidates == "mentions" else "all other words"
        return [f"among {among}:", *aligned(rows)]

    def _marks(self, each: AntecedentHead) -> dict[str, Mark]:
        found: dict[str, Mark] = {
            "best head": (each.held_out_accuracy, (each.held_out_low, each.held_out_high)),
            "nearest mention": (each.held_out_nearest, None),
        }
        if self.control is not None:
            control = self.control.best(each.kind, each.candidates).held_out_accuracy
            found["random weights, best head"] = (control, None)
        return found | {"head match, all": (each.head_match, None), "simple sieves, all": (each.sieves, None)}

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
    def _listed(self) -> list[_Answers]:
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


def coref(
    model: Any,
    tokenizer: Any = None,
    passages: Iterable[Passage] | str | os.PathLike | None = None,
    *,
    rows: str = "mean",
    random_weights: bool = False,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Coreference:
    """Which head looks from a mention at what it means, beside the nearest mention and simple rules.

    Of every head the share of mentions whose head word (the last) looks most at the head word of an antecedent: among
    the head words of the candidates, those that end before it, and among all other words of the passage. Of candidates
    that share a head word the one that starts later is taken, as by the rules. A passage that cannot be read, or whose
    words and tokens cannot be aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2, where it is not said among what the largest is sought; there the best head
    is chosen and measured on the same texts.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        passages: a file or folder that `headscope.linguistics.read_coreference` reads, or passages.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        random_weights: whether the same architecture with random weights reads them, too: ``control`` of the result.
        reading: options of `headscope.linguistics.read_coreference` for a file.
        **options: ``stack``, ``confidence``, ``correction`` and ``seed`` of `Coreference`; ``truncate``,
            ``batch_tokens`` and ``progress`` of `headscope.capture_many`.

    Raises:
        FileError: where the file cannot be read, with the line and the reason.
        RecordError: where no passage is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.

    Example:
        >>> coref("bert-base-uncased", passages="litbank/coref/tsv").best("pronoun").place
        '4-3'
    """
    if isinstance(passages, str | os.PathLike):
        data, listed = name_of(passages), read_coreference(passages, **(reading or {}))
    else:
        data, listed = "passages", tuple(passages or ())
    if not listed or not all(isinstance(each, Passage) for each in listed):
        raise RecordError(
            f"Passages were given as {type(passages).__name__}; wanted is a file, a folder, or a list of Passage"
        )
    source = parse_source(model, tokenizer, [each.text for each in listed], options)
    assert source is not None, "texts were given"

    def study(other: Any = None) -> Coreference:
        found = Coreference(rows=rows, **options)
        found.data, lost = data, {}
        for number, record in numbered(source, lost, other):
            found.update(listed[number], record)
        found.left_out |= {listed[number].name: reason for number, reason in lost.items()}
        if not found.passages:
            raise RecordError(f"No passage is left: {next(iter(found.left_out.values()))}")
        return found

    result = study()
    if random_weights:
        from headscope.capturing import random_twin

        result.control = study(random_twin(source.model))
    return result


def name_of(path: str | os.PathLike) -> str:
    """What a file or folder is called in results; a folder's name alone says too little."""
    path = Path(path).resolve()
    return f"{path.parent.name}/{path.name}" if path.is_dir() else path.stem


def _head_hits(
    passage: Passage, maps: Float[np.ndarray, "head word word"]
) -> Bool[np.ndarray, "candidates head question"]:
    questions = passage.questions or ()
    found = np.zeros((len(CANDIDATES), len(maps), len(questions)), bool)
    for number, question in enumerate(questions):
        row = maps[:, question.mention.head].copy()
        right = np.array(question.right)
        found[0, :, number] = right[mention_answers(row, question)]
        row[:, question.mention.head] = -1
        heads = [each.head for each, is_right in zip(question.candidates, question.right, strict=True) if is_right]
        found[1, :, number] = np.isin(row.argmax(axis=1), heads)
    return found


def _share(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    sums = wholes.sum(axis=0)
    return np.divide(parts.sum(axis=0), sums, out=np.full(sums.shape, np.nan), where=sums > 0)


def _place(candidates: str) -> int:
    if candidates not in CANDIDATES:
        raise RecordError(f"candidates is {candidates!r}; it may be {' or '.join(map(repr, CANDIDATES))}")
    return CANDIDATES.index(candidates)
