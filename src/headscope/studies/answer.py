"""Ask a model about a picture, and see for each word of its answer what it attended to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, UInt8

from headscope.errors import CaptureError, RecordError
from headscope.record import Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import PAIR, Finite, array_of
from headscope.studies._answer_shown import (
    blocks_of,
    columns_of,
    heads_in_words,
    sinks_in_words,
    summary_of,
)
from headscope.studies._picture_attention import (
    SINK_TIMES,
    HeadChoice,
    parse_choice,
    patch_attention,
    patches_of,
)

if TYPE_CHECKING:
    from headscope.capturing import ParsedInput

HeadNumber = int | tuple[int, int] | str
LISTS = ("tokens", "probabilities", "layers", "picture_of")
PAIRS = ("chosen", "grids", "places")
ARRAYS = ("attention", "shares", "even", "times")
AS_THEY_ARE: dict[str, Any] = {
    **dict.fromkeys(("question", "prompt", "text", "model"), str),
    "keep_sinks": bool,
    "given": int,
    "apart": Finite,
}
DOCUMENT: dict[str, Any] = AS_THEY_ARE | {
    "tokens": [str],
    "probabilities": [Finite],
    "words": [[str, [int]]],
    "layers": [int],
    "picture_of": [int],
    "pictures": int,
    **{name: [PAIR] for name in PAIRS},
}


@dataclass(frozen=True)
class AnswerWord:
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
        choice = parse_choice(layers, heads)
        if self.record is None or self.record.generation is None:
            raise RecordError(
                "The answer was loaded from a file, which holds the attention of the heads that "
                "were chosen only; ask again with other layers or heads"
            )
        generation = self.record.generation
        stack = self.record.stacks[generation.stack]
        cells = choice.of(stack)
        seen = patch_attention(stack, generation, cells)
        return replace(
            self,
            chosen=cells,
            attention=seen.written,
            even=seen.even,
            times=seen.times,
            keep_sinks=self.keep_sinks if keep_sinks is None else keep_sinks,
        )

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
        return tuple(
            float(np.prod([self.probabilities[token] for token in word.tokens]))
            for word in self.words
        )

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
        return columns_of(self)

    @property
    def in_words(self) -> tuple[str, str]:
        """Which heads the numbers are the mean of; what patches that are sinks had."""
        return heads_in_words(self), sinks_in_words(self)

    @property
    def summary(self) -> str:
        """What was answered, how much attention the picture got, and what was left out."""
        return summary_of(self)

    def _blocks(self) -> list[TextTable | str]:
        return blocks_of(self)

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
        document = {name: getattr(self, name) for name in AS_THEY_ARE}
        for name in LISTS + PAIRS:
            document[name] = list(getattr(self, name))
        document["words"] = [[word.text, list(word.tokens)] for word in self.words]
        document["pictures"] = len(self.pictures)
        arrays = {name: np.asarray(getattr(self, name)) for name in ARRAYS}
        arrays |= {f"picture.{number}": each for number, each in enumerate(self.pictures)}
        return document, arrays

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> PictureAnswer:
        _check(document)
        tokens, patches = len(document["tokens"]), len(document["places"])
        sizes = {
            "attention": (tokens, patches),
            "shares": (tokens, len(document["layers"]), None),
            "even": (tokens,),
            "times": (patches,),
        }
        read = {name: array_of(arrays, name, "f", sizes[name]) for name in ARRAYS}
        return PictureAnswer(
            **{name: document[name] for name in AS_THEY_ARE},
            **{name: tuple(document[name]) for name in LISTS},
            **{name: _pairs(document[name]) for name in PAIRS},
            words=tuple(AnswerWord(text, tuple(of)) for text, of in document["words"]),
            pictures=tuple(
                array_of(arrays, f"picture.{number}", "u", (None, None, 3))
                for number in range(document["pictures"])
            ),
            **read,
        )


def _pairs(listed: list[list[int]]) -> tuple[tuple[int, int], ...]:
    # JSON has lists, and heads and places are compared as pairs.
    return tuple((first, second) for first, second in listed)


def _check(document: dict[str, Any]) -> None:
    """Raise `ValueError` where numbers point at what is not there."""
    tokens, grids = len(document["tokens"]), document["grids"]
    if not document["chosen"]:
        raise ValueError("it does not say which heads it is the mean of")
    patches = len(document["places"])
    if len(document["probabilities"]) != tokens or len(document["picture_of"]) != patches:
        raise ValueError("its lists are of different lengths")
    if document["pictures"] not in (0, len(grids)):
        raise ValueError(f"it has {document['pictures']} pictures for {len(grids)} grids")
    if any(not of or not all(0 <= at < tokens for at in of) for _, of in document["words"]):
        raise ValueError("a word is made of tokens that are not there")
    for (row, column), of in zip(document["places"], document["picture_of"], strict=True):
        if not 0 <= of < len(grids):
            raise ValueError(f"a patch is of picture {of}")
        if not (0 <= row < grids[of][0] and 0 <= column < grids[of][1]):
            raise ValueError(f"a patch is at {row}, {column} of a grid of {grids[of]}")


def answer(
    model: Any,
    processor: Any = None,
    image: Any = None,
    question: str | list[dict[str, Any]] | ParsedInput | None = None,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[HeadNumber] | None = None,
    keep_sinks: bool = False,
    **options: Any,
) -> PictureAnswer:
    """Ask a vision-language model about a picture: what it writes, and for each word the attention
    on the picture's patches.

    The heat of a written token is the row of attention of the query that wrote it, which is the
    token before it, mean over the chosen heads; of a word of several tokens the mean over their
    rows. Weights are the model's own, under whichever attention implementation it runs. The answer
    is written first and then read once more in one pass, which is watched.

    Args:
        model: a loaded model that reads pictures and writes, a hub name, or a folder.
        processor: its processor; may be left out where the model is named.
        image: the picture, or a list of them: as of `headscope.capture`.
        question: a text, which is put into the processor's chat template behind the picture; or a
            conversation, a list of ``{"role": ..., "content": ...}``, which may hold its pictures.
        layers: numbers of the layers that the mean is over; by default all.
        heads: numbers of the heads in each of these layers, or layer and head of each, ``(12, 7)``
            or ``"12-7"``; by default all.
        keep_sinks: whether patches stay in heat that get outsized attention from at least three
            quarters of all text after the pictures; by default they are blank.
        **options: ``chat_template=False`` for a question that is read as it is, with the mark of
            each picture in it, and not put into the processor's chat template; ``max_new_tokens``,
            ``seed``, ``alternatives``, ``keep``, ``precision`` and fields of
            ``transformers.GenerationConfig``, as of `headscope.generate`; `LoadOptions` for a model
            that is named; ``allow_unfit=True`` for one whose head was not trained.

    Raises:
        TextError: an empty question, or too long an answer.
        FileError: a picture that cannot be read.
        ModelError: a model that cannot be loaded, or whose head was not trained.
        CaptureError: no picture, a model that cannot write about pictures, or whose attention could
            not be captured exactly.
        RecordError: layers or heads that the model does not have.

    Example:
        >>> answer = answer("llava-hf/llava-1.5-7b-hf", image="cat.jpg", question="What is this?")
        >>> answer.text, answer.heat(0)  # what was written; [row column] of the first word
    """
    from headscope.capturing.facts import display_name
    from headscope.capturing.generating.about_pictures import prompt_about, written_about

    choice = parse_choice(layers, heads)
    given = _parsed(image, question)
    model, processor = _loaded(model, processor, given, options)
    read = prompt_about(processor, given, chat_template=options.pop("chat_template", True))
    record, apart = written_about(model, processor, read, **options)
    facts = {
        "question": getattr(given.text, "question", given.text),
        "prompt": read.text,
        "model": display_name(model),
        "keep_sinks": bool(keep_sinks),
        "given": len(given.pictures),
        "apart": apart,
    }
    return _result(record, choice, facts)


def _parsed(image: Any, question: Any) -> ParsedInput:
    """The question and its pictures, their files read.

    Raises:
        HeadscopeError: what is wrong with them.
    """
    from headscope.capturing import ParsedInput, parse_call
    from headscope.capturing.inputs.parse import check_text, is_conversation

    if isinstance(question, ParsedInput):
        return question.in_memory()
    if not is_conversation(question):
        check_text("" if question is None else question, "question")
    given = parse_call(question, None, {"image": image}).in_memory()
    if not given.pictures:
        raise CaptureError("answer needs a picture: answer(model, processor, image, question)")
    return given


def _loaded(model: Any, processor: Any, given: ParsedInput, options: dict[str, Any]) -> tuple:
    """The model and its processor; what loading needed is taken from the options."""
    from headscope.capturing import check_not_loaded, load_for
    from headscope.capturing.options import LOADING

    loading = {name: options.pop(name) for name in LOADING if name in options}
    if isinstance(model, str | Path):
        anyway = bool(options.get("allow_unfit", False))
        model, own = load_for(model, given, writes=True, allow_unfit=anyway, **loading)
        return model, own if processor is None else processor
    check_not_loaded(model, loading)
    if model is None:
        raise CaptureError(
            "The demo model reads no pictures; name a vision-language model (--model)"
        )
    if getattr(processor, "tokenizer", None) is None:
        raise CaptureError(
            f"answer needs the processor of {type(model).__name__} (AutoProcessor), which reads "
            "pictures and text: answer(model, processor, image, question)"
        )
    return model, processor


def _result(record: Record, choice: HeadChoice, facts: dict[str, Any]) -> PictureAnswer:
    """What is seen in the record of an answer."""
    generation = record.generation
    if generation is None:
        raise CaptureError("The record of an answer holds no generation")
    stack = record.stacks[generation.stack]
    cells = choice.of(stack)
    seen = patch_attention(stack, generation, cells)
    tokens, patches = stack.key, patches_of(stack)
    # A patch without a place or a picture of its own counts as the first one.
    places, pictures = tokens.places or (), tokens.pictures or ()
    words = generation.tokens.whole_words
    named = zip(words.names, words.tokens, strict=True)
    written = [(name.strip(), run) for name, run in named if not generation.tokens.special[run[0]]]
    return PictureAnswer(
        **facts,
        text=generation.text,
        tokens=generation.tokens.labels,
        probabilities=generation.probabilities,
        words=tuple(AnswerWord(name, run) for name, run in written if name),
        chosen=cells,
        layers=tuple(layer.layer for layer in stack),
        grids=tokens.grids,
        places=tuple([places[at] or (0, 0) for at in patches]),
        picture_of=tuple([pictures[at] or 0 for at in patches]),
        # The pictures where there is one for each grid.
        pictures=record.pictures if len(record.pictures) == len(tokens.grids) else (),
        attention=seen.written,
        shares=seen.shares,
        even=seen.even,
        times=seen.times,
        record=record,
    )
