"""An answer: which parts of its prompt its words looked at, and which they needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.answering import _printed
from headscope.answering._looked import REST, Cell, parse_choice
from headscope.errors import RecordError
from headscope.record import Part, Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import PAIR, Finite, array_of, arrays_below

DEMO = Path(__file__).parent / "retrieval_tiny"
"""Folder of the small retrieval model, which is meant where no model is named."""
SINK_TIMES = 10.0
"""A patch is a sink where it gets this many times what each would get if all got the same; ours."""
HALF = math.log(2)
"""An answer needed a part where it is less than half as probable without it; ours. See `POWER`."""
COLUMNS = ["word", "number", "probability", "part", "kind", "tokens"]
COLUMNS += ["looked", "even", "lift", "without", "alone"]
ASKED: dict[str, Any] = {
    **dict.fromkeys(("question", "prompt", "model", "quantity", "need", "by"), str),
    **dict.fromkeys(("keep_sinks", "heads_given"), bool),
    "given": int,
    "checked": (Finite, None),
}
"""What does not follow from the record, and its kinds in a file."""
DOCUMENT: dict[str, Any] = ASKED | {
    "text": str,
    "sampled": bool,
    "drawn": {"kinds": [str], str: Any},
    "pieces": [str],
    "tokens": [str],
    "probabilities": [Finite],
    "words": [[str, [int]]],
    "parts": [[str, str, int, [int]]],
    **{name: [int] for name in ("layers", "candidates", "patches", "picture_of")},
    **{name: [PAIR] for name in ("chosen", "grids", "places")},
}
NEEDS = ("whole", "none", "without", "alone")
ARRAYS = ("attention", "shares", "even", "copies", "times", *NEEDS)
PICTURE = "picture."
Words = int | str | Sequence[int | str] | None
"""Number or text of a word, or several; None for all."""
PART = ("name", "kind", "level", "tokens")
"""What a file has of a part: the text is not kept."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answer(Result):
    """What a model answered, and for each word which parts of the prompt it looked at and needed.

    Args:
        question: as it was asked, or the prompt.
        prompt: what the model read, rendered.
        pieces: text of each token of the prompt, with what stands before it.
        text: the answer.
        model: its name.
        quantity: what `shares` are of: ``"weight"``, ``"norm"`` or ``"alti"``.
        need: how parts were cut off, see `headscope.answer`; empty where they were not.
        by: how links were cut: ``"hidden keys"`` or ``"Cut"``; else empty.
        checked: largest difference of a log-probability between these two on a short text.
        keep_sinks: whether sinks stay in `heat`; else they are blank.
        heads_given: whether `chosen` was given, and not all heads.
        given: how many pictures were given; a model that reads crops has more grids.
        sampled: whether the answer was drawn at random.
        tokens: that were written, as a reader sees them.
        probabilities: of each token.
        words: of the answer.
        parts: of the prompt, see `headscope.record.Part`.
        candidates: numbers of the parts that are compared and cut.
        chosen: layer and head of those that `looked` is the mean of.
        layers: numbers of the layers in `shares`.
        grids: rows and columns of the patches of each picture.
        patches: positions of the patches.
        places: row and column of each patch in its picture.
        picture_of: which of the grids each patch is of.
        pictures: as the model saw them; none where their pixels are not known for certain.
        attention: ``[token key]``, of the row that wrote each token, mean over the chosen heads.
        shares: ``[token layer head part]``, behind the parts the first token, the template and the
            answer itself; NaN where there is no such head.
        even: ``[token layer part]``, the share were each row even over what it sees.
        copies: ``[token layer head]``, 1 where the token that got most is of a candidate and the
            one that was written.
        times: ``[patch]``, how many times an even part it gets from at least three quarters of the
            text after the pictures; 10 or more is a sink.
        whole: ``[token]``, logarithm of its probability, forced.
        none: ``[token]``, with all candidates cut off; NaN where nothing was.
        without: ``[candidate token]``, with one cut off.
        alone: ``[candidate token]``, with all others cut off.
        record: of prompt and answer; None of an answer that was loaded.
        drawn: what its page draws of the record, of an answer that was loaded.
    """

    KIND: ClassVar[str] = "answer"
    DOCUMENT: ClassVar = DOCUMENT
    question: str
    prompt: str
    pieces: tuple[str, ...]
    text: str
    model: str
    quantity: str
    need: str
    by: str
    checked: float | None
    keep_sinks: bool
    heads_given: bool
    given: int
    sampled: bool
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    words: tuple[_printed.AnswerWord, ...]
    parts: tuple[Part, ...]
    candidates: tuple[int, ...]
    chosen: tuple[Cell, ...]
    layers: tuple[int, ...]
    grids: tuple[tuple[int, int], ...]
    patches: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    picture_of: tuple[int, ...]
    pictures: tuple[UInt8[np.ndarray, "_ _ 3"], ...]
    attention: Float[np.ndarray, "token key"]
    shares: Float[np.ndarray, "token layer head part"]
    even: Float[np.ndarray, "token layer part"]
    copies: Float[np.ndarray, "token layer head"]
    times: Float[np.ndarray, " patch"]
    whole: Float[np.ndarray, " token"]
    none: Float[np.ndarray, " token"]
    without: Float[np.ndarray, "candidate token"]
    alone: Float[np.ndarray, "candidate token"]
    record: Record | None = None
    drawn: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Answer of {self.model}: {self.text[:60]!r}{'...' * (len(self.text) > 60)}>"

    def with_heads(
        self,
        layers: Sequence[int] | None = None,
        heads: Sequence[int | tuple[int, int] | str] | None = None,
        *,
        keep_sinks: bool | None = None,
    ) -> Answer:
        """The same answer with the mean over other heads; the model is not run again. For the
        arguments see `headscope.answer`; sinks by default stay as they did.

        Raises:
            RecordError: heads that the model does not have, or an answer that was loaded, which
                has no record.
        """
        from headscope.answering._answer import seen

        choice = parse_choice(layers, heads)
        if self.record is None:
            raise RecordError(
                "The answer was loaded from a file, which holds the attention of the heads that "
                "were chosen only; ask again with other layers or heads"
            )
        facts = {name: getattr(self, name) for name in (*ASKED, "candidates", *NEEDS)}
        facts["heads_given"] = choice != (None, None)
        if keep_sinks is not None:
            facts["keep_sinks"] = keep_sinks
        return seen(self.record, choice, facts)

    def part_numbers(self, words: Words = None) -> list[_printed.PartNumbers]:
        """What is printed and drawn of each part."""
        looked, even, (needs, meant) = self.looked(words), self.even_share(words), self.needs(words)
        lift, (whole, none, *cut) = self._lift(looked, even), self._sums(words)
        cuts, rows = dict(zip(self.candidates, zip(*cut, strict=True), strict=True)), []
        for at in range(len(self.parts)):
            own = cuts.get(at, (math.nan, math.nan))
            lost = -np.expm1(np.minimum(0.0, own[0] - whole))
            numbers = map(float, (looked[at], even[at], lift[at], *own, whole, none, lost))
            rows.append(_printed.PartNumbers(*numbers, needs == "any" and at in meant))
        return rows

    def looked(
        self, words: Words = None, heads: Sequence[Cell] | None = None
    ) -> Float[np.ndarray, " part"]:
        """Share of attention on each part, behind them the first token, the template and the
        answer: mean over tokens of each word, over words, and over heads.

        Args:
            words: number or text of one, or several; by default all.
            heads: layer and head of each; by default those that were chosen.
        """
        cells = heads or self.chosen
        shares = [self.shares[:, self.layers.index(layer), head] for layer, head in cells]
        return self._mean(np.mean(shares, axis=0), words)

    def even_share(self, words: Words = None) -> Float[np.ndarray, " part"]:
        """The same as `looked`, were each row even over the tokens that it sees."""
        layers = [self.layers.index(layer) for layer, _ in self.chosen]
        return self._mean(self.even[:, layers].mean(axis=1), words)

    def lift(self, words: Words = None) -> Float[np.ndarray, " part"]:
        """How many times as much attention a candidate got as its length among the candidates
        gives, of a single one among all tokens; NaN for other parts.
        """
        return self._lift(self.looked(words), self.even_share(words))

    def change(self, words: Words = None) -> Float[np.ndarray, " candidate"]:
        """Nats that the answer loses without each candidate."""
        whole, _, without, _ = self._sums(words)
        return whole - without

    def head_shares(self) -> Float[np.ndarray, "part layer head"]:
        """`looked` by each head, chosen or not; NaN where there is no such head."""
        return self._mean(self.shares.transpose(0, 3, 1, 2), None)

    def head_lift(self) -> Float[np.ndarray, "part layer head"]:
        """`lift` by each head, chosen or not."""
        even = self._mean(self.even.transpose(0, 2, 1), None)
        return self._lift(self.head_shares(), even[..., None])

    def head_copies(self) -> Float[np.ndarray, "layer head"]:
        """Retrieval score of each head: how often the token that got most of its attention is of a
        candidate, and the one that was written (Wu et al. 2024, section 2, of one needle).
        """
        return self.copies[self._tokens(None)].mean(axis=0)

    @property
    def verdict(self) -> _printed.Verdict:
        """What the answer needed, asked in this order: none, one, one of several, several."""
        return self.needs()

    def needs(self, words: Words = None) -> _printed.Verdict:
        """`verdict`, of some words."""
        if not self.need:
            return _printed.Verdict("", ())
        whole, *cut = self._sums(words)
        none, lost, short = (whole - each for each in cut)
        numbers, least = np.array(self.candidates), HALF - (_printed.POWER - 1) * whole
        if none < least:
            return _printed.Verdict("none", ())
        if (lost >= least).any():
            # The most needed comes first.
            order = sorted(np.flatnonzero(lost >= least), key=lambda at: -lost[at])
            return _printed.Verdict("parts", tuple(numbers[order].tolist()))
        if (short < least).any():
            return _printed.Verdict("any", tuple(numbers[short < least].tolist()))
        return _printed.Verdict("several", ())

    @property
    def targets(self) -> tuple[int, ...]:
        """Numbers of the parts that heads are ranked by: those needed, else the one looked at
        most.
        """
        top = self.looks_at
        return self.verdict.parts or (() if top is None else (top,))

    def foremost(self, most: int) -> list[int]:
        """Numbers of so many parts, those that were needed and looked at most, as in the prompt."""
        weight = np.nan_to_num(self.lift(), nan=-1.0)[: len(self.parts)]
        if self.need:
            weight[list(self.candidates)] += 1e3 * np.maximum(0.0, self.change() - HALF)
        chosen = np.argsort(-weight, kind="stable")[:most].tolist()
        return sorted(chosen, key=lambda at: (self.parts[at].tokens[:1], self.parts[at].level))

    @property
    def looks_at(self) -> int | None:
        """The candidate that was looked at most for its length; None where that is hardly more."""
        lift = np.nan_to_num(self.lift(), nan=-1.0)
        return int(lift.argmax()) if lift.max() >= _printed.LOOKS else None

    def _chosen(self, words: Words) -> Sequence[_printed.AnswerWord]:
        if words is None:
            return self.words
        several = [words] if isinstance(words, int | str) else words
        return [self.words[self._index_of(at)] for at in several]

    def _sums(self, words: Words) -> list[np.ndarray]:
        """Logarithms of probabilities of words, by the names of `NEEDS`."""
        return [getattr(self, name)[..., self._tokens(words)].sum(axis=-1) for name in NEEDS]

    def _tokens(self, words: Words) -> list[int]:
        return [token for word in self._chosen(words) for token in word.tokens]

    def _mean(self, values: np.ndarray, words: Words) -> np.ndarray:
        """Mean over the tokens of each word, then over words."""
        chosen = self._chosen(words)
        if not chosen:
            return np.full(values.shape[1:], np.nan)
        return np.mean([values[list(word.tokens)].mean(axis=0) for word in chosen], axis=0)

    def _lift(self, shares: np.ndarray, even: np.ndarray) -> np.ndarray:
        """Along the first axis, parts."""
        lift, some = np.full(shares.shape, np.nan), list(self.candidates)
        own, wanted = shares[some], np.broadcast_to(even, shares.shape)[some]
        if len(some) > 1:
            # NaN where none of them can be seen.
            with np.errstate(invalid="ignore"):
                own, wanted = own / own.sum(axis=0), wanted / wanted.sum(axis=0)
        lift[some] = np.divide(own, wanted, out=np.full(own.shape, np.nan), where=wanted > 0)
        return lift

    @property
    def is_sink(self) -> Bool[np.ndarray, " patch"]:
        """True for patches that get outsized attention whatever is written."""
        return self.times >= SINK_TIMES

    @cached_property
    def word_attention(self) -> Float[np.ndarray, "word patch"]:
        """Attention of each word on all patches, sinks too: mean over the rows of its tokens."""
        patches = self.attention[:, list(self.patches)]
        rows = [patches[list(word.tokens)].mean(axis=0) for word in self.words]
        return np.array(rows).reshape(len(rows), len(self.patches))

    @property
    def word_shares(self) -> Float[np.ndarray, " word"]:
        """Part of the attention of each word that falls on the pictures, sinks too."""
        return self.word_attention.sum(axis=-1)

    @property
    def word_even(self) -> Float[np.ndarray, " word"]:
        """The same, were its rows even over all tokens."""
        return np.array([self.even_share([at])[self.shown].sum() for at in range(len(self.words))])

    @property
    def shown(self) -> list[int]:
        """Numbers of the parts that are whole pictures or frames."""
        return [at for at, part in enumerate(self.parts) if part.kind in ("picture", "frame")]

    @property
    def word_sinks(self) -> Float[np.ndarray, " word"]:
        """Part of each word's share that sinks have; 0 where the share is 0."""
        shares = self.word_shares
        in_sinks = self.word_attention[:, self.is_sink].sum(axis=-1)
        return np.divide(in_sinks, shares, out=np.zeros_like(shares), where=shares > 0)

    @property
    def word_probabilities(self) -> tuple[float, ...]:
        """The probability of each word: the product of those of its tokens."""
        return tuple(math.prod(self.probabilities[at] for at in of) for _, of in self.words)

    def values(self, *, relative: bool = False) -> Float[np.ndarray, "word patch"]:
        """Attention of each word on each patch, NaN at sinks that are left out.

        Args:
            relative: as the difference to the mean over all words.

        Raises:
            RecordError: where there is one word alone, which has no others.
        """
        values = self.word_attention
        if relative:
            if len(values) < 2:
                told = f"relative compares words, and the answer has {len(values)}; leave it out"
                raise RecordError(told)
            values = values - values.mean(axis=0)
        return values if self.keep_sinks else np.where(self.is_sink, np.nan, values)

    def heat(
        self, word: int | str, *, picture: int = 0, relative: bool = False
    ) -> Float[np.ndarray, "row column"]:
        """Attention of a word over a picture, NaN at sinks that are left out.

        Args:
            word: its number from 0, or the word itself, of which the first counts.
            picture: which of several.
            relative: as the difference to the mean over all words of the answer.

        Raises:
            RecordError: where there is no such word or picture, or ``relative`` of a single word.
        """
        return self.laid_out(self.values(relative=relative)[self._index_of(word)], picture)

    def laid_out(
        self, values: Float[np.ndarray, " patch"], picture: int = 0
    ) -> Float[np.ndarray, "row column"]:
        """One number for each patch, as a grid over a picture.

        Raises:
            RecordError: where there is no such picture.
        """
        if not 0 <= picture < len(self.grids):
            raise RecordError(f"There is no picture {picture}; the model read {len(self.grids)}")
        grid = np.full(self.grids[picture], np.nan)
        for value, place, of in zip(values, self.places, self.picture_of, strict=True):
            if of == picture:
                grid[place] = value
        return grid

    def columns(self) -> dict[str, list[Any]]:
        """A line for each word and part, one list for each column; NaN for parts that were not cut
        or are not compared.
        """
        rows: list[tuple[Any, ...]] = []
        for word, each in enumerate(self.words):
            for part, numbers in zip(self.parts, self.part_numbers([word]), strict=True):
                own = (each.text, word, self.word_probabilities[word], part.name, part.kind)
                odds = map(math.exp, (numbers.without, numbers.alone))
                rows.append((*own, len(part.tokens), *numbers[:3], *odds))
        return dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}

    @property
    def shares_of(self) -> str:
        """What shares are of, in words."""
        return _printed.SHARES[self.quantity]

    @property
    def gone(self) -> str:
        """What was done to parts, in words: cut off, deleted ...; empty where nothing was."""
        return _printed.BY[self.need][0] if self.need else ""

    @property
    def mean_of(self) -> str:
        """Which heads the numbers are the mean of, in words."""
        return _printed.heads_in_words(self)

    @property
    def sentences(self) -> list[str]:
        """What the answer needed, what it looked at, and what of pictures, in this order."""
        return _printed.sentences_of(self)

    @property
    def summary(self) -> str:
        """What the answer needed and looked at."""
        return " ".join(self.sentences)

    @property
    def media(self) -> str:
        """What an answer about pictures is about, in words: picture or video."""
        return "video" if "frame" in {part.kind for part in self.parts} else "picture"

    def _blocks(self) -> list[TextTable | str]:
        return _printed.blocks_of(self)

    def _index_of(self, word: int | str) -> int:
        texts = [each.text for each in self.words]
        at = texts.index(word) if word in texts else word
        if at not in range(len(texts)):
            raise RecordError(f"The answer has no word {word!r}; it has {', '.join(texts)}")
        return int(at)

    def _kept(self) -> Kept:
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        arrays |= {f"{PICTURE}{number}": each for number, each in enumerate(self.pictures)}
        page = self.drawn or self.view().picture
        document = {name: getattr(self, name) for name in DOCUMENT}
        document["drawn"] = {name: page[name] for name in ("kinds", "ink", "tops", "between")}
        parts = [[part.name, part.kind, part.level, list(part.tokens)] for part in self.parts]
        return document | {"parts": parts}, arrays

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Answer:
        names = ("tokens", "layers", "parts", "places", "candidates")
        tokens, layers, parts, patches, candidates = (len(document[name]) for name in names)
        pictures, count = len(arrays_below(arrays, PICTURE)), parts + len(REST)
        _check(document, pictures)
        sizes = (tokens, None), (tokens, layers, None, count), (tokens, layers, count)
        sizes += (tokens, layers, None), (patches,), (tokens,), (tokens,)
        sizes += (candidates, tokens), (candidates, tokens)
        named = zip(ARRAYS, sizes, strict=True)
        read: dict[str, Any] = {name: array_of(arrays, name, "f", size) for name, size in named}
        shown = (f"{PICTURE}{number}" for number in range(pictures))
        read["pictures"] = tuple(array_of(arrays, name, "u", (None, None, 3)) for name in shown)
        fields = {name: _with_tuples(document[name]) for name in DOCUMENT}
        fields["words"] = tuple(_printed.AnswerWord(*word) for word in fields["words"])
        fields["parts"] = tuple(Part(**dict(zip(PART, of, strict=True))) for of in fields["parts"])
        return Answer(**fields, **read)


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _check(document: dict[str, Any], pictures: int) -> None:
    """Raise `ValueError` where numbers point at what is not there."""
    tokens, grids, places = document["tokens"], document["grids"], document["places"]
    fits = [bool(document["chosen"]), pictures in (0, len(grids))]
    fits += [len(document["probabilities"]) == len(tokens), len(document["patches"]) == len(places)]
    fits += [all(0 <= at < len(document["parts"]) for at in document["candidates"])]
    fits += [min(of, default=-1) >= 0 and max(of) < len(tokens) for _, of in document["words"]]
    for place, of in zip(places, document["picture_of"], strict=True):
        sizes = grids[of] if 0 <= of < len(grids) else (0, 0)
        fits += [0 <= at < size for at, size in zip(place, sizes, strict=True)]
    if not all(fits):
        raise ValueError("its heads, words, parts, patches and pictures do not fit each other")
