"""Ask a model about a picture, and see for each word of its answer what it attended to."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from headscope.errors import CaptureError, RecordError, listed
from headscope.record import Generation, Record, Stack
from headscope.studies._picture_answer import SINK_TOKENS, AnswerWord, PictureAnswer

if TYPE_CHECKING:
    from headscope.capturing import ParsedInput

HeadNumber = int | tuple[int, int] | str
Cell = tuple[int, int]
"""Layer and head."""


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
    return answered(record, choice, facts)


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


def answered(record: Record, choice: Any, facts: dict[str, Any]) -> PictureAnswer:
    """What is seen in the record of an answer.

    Args:
        record: of prompt and answer.
        choice: the heads that the mean is over, see `parse_choice`.
        facts: what was asked.
    """
    generation = record.generation
    if generation is None:
        raise CaptureError("The record of an answer holds no generation")
    stack = record.stacks[generation.stack]
    cells, tokens = cells_of(stack, *choice), stack.key
    # A patch without a place or a picture of its own counts as the first one.
    places, pictures = tokens.places or (), tokens.pictures or ()
    patches = [at for at, place in enumerate(places) if place is not None]
    words = generation.tokens.whole_words
    named = zip(words.names, words.tokens, strict=True)
    written = [(name.strip(), run) for name, run in named if not generation.tokens.special[run[0]]]
    return PictureAnswer(
        **facts,
        **patch_attention(stack, generation, patches, cells),
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
        record=record,
    )


def patch_attention(
    stack: Stack, generation: Generation, patches: list[int], chosen: Collection[Cell]
) -> dict[str, np.ndarray]:
    """What the tokens of an answer, and all text after the pictures, give to patches, by the names
    of `PictureAnswer`.

    Args:
        stack: of the model that wrote the answer.
        generation: how it was written.
        patches: positions of the patches of pictures among the keys.
        chosen: layer and head of those that the mean is over.
    """
    rows, after = generation.chosen_by, np.arange(patches[-1] + 1, len(stack.query))
    shares = np.full((len(rows), len(stack), max(layer.heads for layer in stack)), np.nan)
    written = np.zeros((len(rows), len(patches)))
    text = np.zeros((len(after), len(patches)))
    even = np.zeros(len(rows))
    for index, layer in enumerate(stack):
        for head in layer.head_numbers:
            weights = np.asarray(layer.weights_of(head), np.float64)[:, patches]
            shares[:, index, head] = weights[rows].sum(axis=-1)
            if (layer.layer, head) in chosen:
                written += weights[rows] / len(chosen)
                text += weights[after] / len(chosen)
        visible = layer.visible.dense()[rows]
        part = sum(head == layer.layer for head, _ in chosen) / len(chosen)
        even += part * visible[:, patches].sum(axis=-1) / visible.sum(axis=-1)
    times = sink_times(text)
    return {"attention": written, "shares": shares, "even": even, "times": times}


def sink_times(text: Float[np.ndarray, "token patch"]) -> Float[np.ndarray, " patch"]:
    """How many times an even part of the attention on the pictures each patch gets from at least
    three quarters of the tokens.

    ``times[j] = n min_i(a[i, j] / sum_k a[i, k])`` with n patches, over those three quarters of the
    tokens i that give patch j most. Source: the phenomenon Xiao et al. 2023, Darcet et al. 2023 and
    Kang et al. 2025; the rule is ours: Kang et al. find sinks by activations of hidden states.

    Args:
        text: attention of the tokens after the pictures on patches.
    """
    totals = text.sum(axis=-1, keepdims=True)
    parts = np.divide(text, totals, out=np.zeros_like(text), where=totals > 0)
    # In rising order, so that this one and those after it are three quarters of the tokens.
    least = len(text) - math.ceil(SINK_TOKENS * len(text))
    return text.shape[1] * np.sort(parts, axis=0)[least]


def parse_choice(layers: Any, heads: Any) -> tuple[list[int] | None, list[Sequence[int]] | None]:
    """Layers, and heads as their number, or layer and head, such as ``"12-7"``; None for all.

    Raises:
        RecordError: where they are none of these, a list is empty, or pairs stand among layers.
    """
    wanted = None if layers is None else [_numbers_of(layer)[-1] for layer in _listed(layers)]
    given = None if heads is None else [_numbers_of(head) for head in _listed(heads)]
    sizes = {len(head) for head in given or ()}
    if 2 in sizes and (wanted is not None or len(sizes) > 1):
        raise RecordError(
            "heads holds pairs of layer and head; leave out layers and heads without a layer"
        )
    return wanted, given


def cells_of(
    stack: Stack, layers: Sequence[int] | None, heads: Sequence[Sequence[int]] | None
) -> tuple[Cell, ...]:
    """Layer and head of those that were asked for, see `parse_choice`.

    Raises:
        RecordError: where the model does not have one of them.
    """
    there = [(layer.layer, head) for layer in stack for head in layer.head_numbers]
    asked: list[Cell] = [(head[0], head[1]) for head in heads or () if len(head) == 2]
    if not asked:
        for layer in layers or sorted({at for at, _ in there}):
            numbers = [head for head, *_ in heads or ()]
            # A layer that does not exist has one head that does not exist, so that this is told.
            numbers = numbers or sorted(head for at, head in there if at == layer) or [0]
            asked += [(layer, head) for head in numbers]
    missing = next((cell for cell in asked if cell not in there), None)
    if missing is not None:
        every, of = ([part[at] for part in there] for at in (0, 1))
        ends = f"layers {min(every)} to {max(every)} and heads {min(of)} to {max(of)}"
        raise RecordError(
            f"The model has no head {missing[0]}-{missing[1]} among those kept; stack "
            f"{stack.name!r} has {ends}"
        )
    return tuple(dict.fromkeys(asked))


def _listed(given: Any) -> list[Any]:
    several = (
        [given] if isinstance(given, int | str) else listed(given, "a list of heads or layers")
    )
    if not several:
        raise RecordError("layers or heads is an empty list; give numbers, or leave it out for all")
    return several


def _numbers_of(head: Any) -> Sequence[int]:
    """The number of a head, or layer and head."""
    parts = head.split("-") if isinstance(head, str) else head
    try:
        numbers = [int(part) for part in ([parts] if isinstance(parts, int) else parts)]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) in (1, 2):
        return numbers
    raise RecordError(f"Expected a head such as 7, (12, 7) or '12-7', got {head!r}")
