"""What a model answered about a picture, and what each word of the answer attended to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.errors import RecordError
from headscope.record import Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import PAIR, Finite, array_of, arrays_below

SINK_TIMES = 10.0
"""A patch is a sink where it gets this many times what each would get if all got the same ..."""
SINK_TOKENS = 0.75
"""... from this share of the tokens that follow the pictures. Both are ours."""
MOST_HEADS = 5
"""Heads in the table of those that look at the picture most."""
SAYS = {
    "share": "part of the attention of the row that wrote the word that falls on the picture, "
    "mean over the chosen heads",
    "even": "the same, were the row even over all tokens",
    "sinks": "part of the share that sinks have",
    "most at": "row and column of the patch with most attention, sinks left out",
}
ASKED: dict[str, Any] = {
    **dict.fromkeys(("question", "prompt", "model"), str),
    "keep_sinks": bool,
    "given": int,
    "apart": Finite,
}
"""What does not follow from the record, and its kinds in a file."""
DOCUMENT: dict[str, Any] = ASKED | {
    "text": str,
    "tokens": [str],
    "probabilities": [Finite],
    "words": [[str, [int]]],
    "layers": [int],
    "picture_of": [int],
    **{name: [PAIR] for name in ("chosen", "grids", "places")},
}
ARRAYS = ("attention", "shares", "even", "times")
PICTURE = "picture."


class AnswerWord(NamedTuple):
    """A word, a mark of punctuation or a character of an answer.

    Args:
        text: as it is written.
        tokens: the tokens that it was written as, counted from the first one written.
    """

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PictureAnswer(Result):
    """What a model answered about a picture, and for each word the attention on its patches.

    Args:
        question: as it was asked.
        prompt: what the model read: the question in the chat template, with marks of pictures.
        text: the answer.
        model: its name.
        keep_sinks: whether sinks stay in `heat`; else they are blank.
        given: how many pictures were given; a model that reads crops has more grids.
        tokens: that were written, as a reader sees them.
        probabilities: of each token.
        words: of the answer.
        chosen: layer and head of those that `attention` is the mean of.
        layers: numbers of the layers in `shares`.
        grids: rows and columns of the patches of each picture.
        places: row and column of each patch in its picture.
        picture_of: which of the grids each patch is of.
        pictures: as the model saw them; none where their pixels are not known for certain.
        attention: ``[token patch]``, weights of the row that wrote each token.
        shares: ``[token layer head]``, sum over all patches; NaN where there is no such head.
        even: ``[token]``, the share were each row even.
        times: ``[patch]``, how many times an even part it gets from at least three quarters of the
            text after the pictures; 10 or more is a sink.
        apart: largest difference of a token's probability between writing and reading again.
        record: of prompt and answer; None of an answer that was loaded.
    """

    KIND: ClassVar[str] = "answer"
    DOCUMENT: ClassVar = DOCUMENT
    question: str
    prompt: str
    text: str
    model: str
    keep_sinks: bool
    given: int
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    words: tuple[AnswerWord, ...]
    chosen: tuple[tuple[int, int], ...]
    layers: tuple[int, ...]
    grids: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, int], ...]
    picture_of: tuple[int, ...]
    pictures: tuple[UInt8[np.ndarray, "height width 3"], ...]
    attention: Float[np.ndarray, "token patch"]
    shares: Float[np.ndarray, "token layer head"]
    even: Float[np.ndarray, " token"]
    times: Float[np.ndarray, " patch"]
    apart: float
    record: Record | None = None

    def __repr__(self) -> str:
        shown = self.text if len(self.text) <= 60 else f"{self.text[:60]}..."
        return f"<PictureAnswer of {self.model}: {shown!r}>"

    def with_heads(
        self,
        layers: Sequence[int] | None = None,
        heads: Sequence[int | tuple[int, int] | str] | None = None,
        *,
        keep_sinks: bool | None = None,
    ) -> PictureAnswer:
        """The same answer with the mean over other heads; the model is not run again.

        Args:
            layers: as of `headscope.answer`.
            heads: as of `headscope.answer`.
            keep_sinks: whether sinks stay in `heat`; by default as they did.

        Raises:
            RecordError: heads that the model does not have, or an answer that was loaded, which
                has no record.
        """
        from headscope.studies.answer import answered, parse_choice

        choice = parse_choice(layers, heads)
        if self.record is None:
            raise RecordError(
                "The answer was loaded from a file, which holds the attention of the heads that "
                "were chosen only; ask again with other layers or heads"
            )
        facts = {name: getattr(self, name) for name in ASKED}
        if keep_sinks is not None:
            facts["keep_sinks"] = keep_sinks
        return answered(self.record, choice, facts)

    @property
    def is_sink(self) -> Bool[np.ndarray, " patch"]:
        """True for patches that get outsized attention whatever is written."""
        return self.times >= SINK_TIMES

    @cached_property
    def word_attention(self) -> Float[np.ndarray, "word patch"]:
        """Attention of each word on all patches, sinks too: mean over the rows of its tokens."""
        rows = [self.attention[list(word.tokens)].mean(axis=0) for word in self.words]
        return np.array(rows).reshape(len(rows), len(self.places))

    @property
    def word_shares(self) -> Float[np.ndarray, " word"]:
        """Part of the attention of each word that falls on the pictures, sinks too."""
        return self.word_attention.sum(axis=-1)

    @property
    def word_even(self) -> Float[np.ndarray, " word"]:
        """The same, were its rows even over all tokens."""
        return np.array([self.even[list(word.tokens)].mean() for word in self.words])

    @property
    def word_sinks(self) -> Float[np.ndarray, " word"]:
        """Part of each word's share that sinks have; 0 where the share is 0."""
        shares = self.word_shares
        in_sinks = self.word_attention[:, self.is_sink].sum(axis=-1)
        return np.divide(in_sinks, shares, out=np.zeros_like(shares), where=shares > 0)

    @property
    def word_probabilities(self) -> tuple[float, ...]:
        """The probability of each word: the product of those of its tokens."""
        products = (np.prod([self.probabilities[at] for at in word.tokens]) for word in self.words)
        return tuple(map(float, products))

    def values(self, *, relative: bool = False) -> Float[np.ndarray, "word patch"]:
        """What heat is made of: attention of each word on each patch, NaN at sinks that are left
        out.

        Args:
            relative: as the difference to the mean over all words.

        Raises:
            RecordError: where there is one word alone, which has no others.
        """
        values = self.word_attention
        if relative:
            if len(values) < 2:
                raise RecordError(
                    f"relative is the difference to the mean over words, and the answer has "
                    f"{len(values)}; leave it out, or ask for a longer answer"
                )
            values = values - values.mean(axis=0)
        if not self.keep_sinks:
            values = np.where(self.is_sink, np.nan, values)
        return values

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
        values = self.values(relative=relative)[self._index_of(word)]
        return self.laid_out(values, picture)

    def laid_out(
        self, values: Float[np.ndarray, " patch"], picture: int = 0
    ) -> Float[np.ndarray, "row column"]:
        """One number for each patch, as a grid over a picture.

        Raises:
            RecordError: where there is no such picture.
        """
        if not 0 <= picture < len(self.grids):
            raise RecordError(
                f"There is no picture {picture}; the model read {len(self.grids)}, from 0 on"
            )
        grid = np.full(self.grids[picture], np.nan)
        for value, place, of in zip(values, self.places, self.picture_of, strict=True):
            if of == picture:
                grid[place] = value
        return grid

    def head_shares(self) -> Float[np.ndarray, "layer head"]:
        """Part of the attention of each head that falls on the pictures, mean over the tokens of
        words.
        """
        tokens = [token for word in self.words for token in word.tokens]
        if not tokens:
            return np.full(self.shares.shape[1:], np.nan)
        return self.shares[tokens].mean(axis=0)

    def columns(self) -> dict[str, list[Any]]:
        """A line for each word of the answer, one list for each column."""
        # The patch with most attention, sinks left out where that was asked for.
        values = self.values()
        most = np.where(np.isnan(values), -1.0, values).argmax(axis=-1).tolist()
        places = [self.places[patch] for patch in most]
        return {
            "word": [word.text for word in self.words],
            "tokens": [len(word.tokens) for word in self.words],
            "probability": list(self.word_probabilities),
            "share": self.word_shares.tolist(),
            "even": self.word_even.tolist(),
            "sinks": self.word_sinks.tolist(),
            "picture": [self.picture_of[patch] for patch in most],
            "row": [row for row, _ in places],
            "column": [column for _, column in places],
        }

    @property
    def in_words(self) -> tuple[str, str]:
        """Which heads the numbers are the mean of; what patches that are sinks had."""
        return self._heads_in_words(), self._sinks_in_words()

    @property
    def summary(self) -> str:
        """What was answered, how much attention the picture got, and what was left out."""
        begin = f"Asked “{self.question}”, {self.model} answered “{self.text.strip()}”."
        if not self.words:
            return f"{begin} There is no word in it."
        shares = self.word_shares
        most = int(shares.argmax())
        heads, sinks = self.in_words
        sentence = (
            f"{begin} Its words gave {_percent(shares.mean())} of their attention to the picture "
            f"({heads}; even attention would give {_percent(self.word_even.mean())})"
        )
        if len(self.words) > 1:
            sentence += f", most for “{self.words[most].text}” ({_percent(shares[most])})"
        return f"{sentence}. {sinks}"

    def _blocks(self) -> list[TextTable | str]:
        if not self.words:
            return []
        columns = self.columns()
        rows = [("word", "probability", "share", "even", "sinks", "most at")]
        for word, _, probability, *shares, picture, row, column in zip(
            *columns.values(), strict=True
        ):
            place = f"p{picture} " * (len(self.grids) > 1) + f"r{row}c{column}"
            rows.append((word, f"{probability:.2f}", *map(_percent, shares), place))
        blocks = [TextTable.of_rows(rows, says=SAYS, align="right"), self._heads_table()]
        if len(self.grids) != self.given:
            blocks.append(
                f"{self.given} picture{'s' * (self.given > 1)} given; the model read "
                f"{len(self.grids)} (crops), numbered p0, p1 ..."
            )
        return blocks

    def _heads_in_words(self) -> str:
        """Which heads the numbers are the mean of."""
        layers = sorted({layer for layer, _ in self.chosen})
        by_layer = {layer: {head for at, head in self.chosen if at == layer} for layer in layers}
        there = np.isfinite(self.shares).all(axis=0)
        counts = dict(zip(self.layers, there.sum(axis=-1).tolist(), strict=True))
        where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {_numbers(layers)}"
        if all(len(by_layer[layer]) == counts[layer] for layer in layers):
            return f"all heads of {'all layers' if len(layers) == len(counts) else where}"
        if len(self.chosen) == 1:
            return "head {}-{}".format(*self.chosen[0])
        heads = by_layer[layers[0]]
        if all(each == heads for each in by_layer.values()):
            return f"head{'s' * (len(heads) > 1)} {_numbers(heads)} of {where}"
        return f"heads {', '.join(f'{layer}-{head}' for layer, head in self.chosen)}"

    def _sinks_in_words(self) -> str:
        """How many patches are sinks, what they had, and whether they are left out."""
        count = int(self.is_sink.sum())
        if not count:
            return "No patch is a sink."
        had = _percent(self.word_attention[:, self.is_sink].sum() / self.word_shares.sum())
        done = "kept" if self.keep_sinks else "left out"
        sinks = f"{count} patches of {len(self.places)} are sinks"
        if count == 1:
            sinks = f"1 patch of {len(self.places)} is a sink"
        return f"{sinks} with {had} of the attention on the picture, {done}."

    def _heads_table(self) -> TextTable:
        shares = self.head_shares()
        order = np.argsort(-np.nan_to_num(shares, nan=-1.0), axis=None, kind="stable")[:MOST_HEADS]
        rows = [("head", "share")]
        for layer, head in zip(*np.unravel_index(order, shares.shape), strict=True):
            rows.append((f"{self.layers[layer]}-{head}", _percent(shares[layer, head])))
        title = "The heads that look at the picture most"
        return TextTable.of_rows(rows, title=title, align="right")

    def _index_of(self, word: int | str) -> int:
        texts = [each.text for each in self.words]
        if isinstance(word, str):
            if word not in texts:
                raise RecordError(f"The answer has no word {word!r}; it has {', '.join(texts)}")
            return texts.index(word)
        if not 0 <= word < len(texts):
            raise RecordError(f"There is no word {word}; the answer has {len(texts)}, from 0 on")
        return word

    def _kept(self) -> Kept:
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        arrays |= {f"{PICTURE}{number}": each for number, each in enumerate(self.pictures)}
        return {name: getattr(self, name) for name in DOCUMENT}, arrays

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> PictureAnswer:
        tokens, patches = (len(document[name]) for name in ("tokens", "places"))
        layers, pictures = len(document["layers"]), len(arrays_below(arrays, PICTURE))
        _check(document, pictures)
        sizes = (tokens, patches), (tokens, layers, None), (tokens,), (patches,)
        read: dict[str, Any] = {}
        for name, size in zip(ARRAYS, sizes, strict=True):
            read[name] = array_of(arrays, name, "f", size)
        shown = (f"{PICTURE}{number}" for number in range(pictures))
        read["pictures"] = tuple(array_of(arrays, name, "u", (None, None, 3)) for name in shown)
        fields = {name: _with_tuples(document[name]) for name in DOCUMENT}
        fields["words"] = tuple(AnswerWord(*word) for word in fields["words"])
        return PictureAnswer(**fields, **read)


def _with_tuples(value: Any) -> Any:
    # JSON has lists, and heads and places are compared as pairs.
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _check(document: dict[str, Any], pictures: int) -> None:
    """Raise `ValueError` where numbers point at what is not there."""
    tokens, grids, places = (document[name] for name in ("tokens", "grids", "places"))
    fits = [bool(document["chosen"]), pictures in (0, len(grids))]
    fits += [len(document["probabilities"]) == len(tokens)]
    for _, of in document["words"]:
        fits.append(bool(of) and min(of) >= 0 and max(of) < len(tokens))
    for place, of in zip(places, document["picture_of"], strict=True):
        sizes = grids[of] if 0 <= of < len(grids) else (0, 0)
        fits += [0 <= at < size for at, size in zip(place, sizes, strict=True)]
    if not all(fits):
        raise ValueError("its heads, words, patches and pictures do not fit each other")


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _numbers(numbers: Sequence[int] | set[int]) -> str:
    """Numbers in a row, those that follow each other as a range: 0 to 3, 7."""
    listed = sorted(numbers)
    parts = []
    for _, run in itertools.groupby(enumerate(listed), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        if len(members) > 2:
            parts.append(f"{members[0]} to {members[-1]}")
        else:
            parts.extend(map(str, members))
    return ", ".join(parts)
