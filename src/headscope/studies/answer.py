"""Ask a model about a picture, and see for each word of its answer what it attended to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import CaptureError
from headscope.record import Record
from headscope.studies._picture_answer import AnswerWord, PictureAnswer
from headscope.studies._picture_attention import cells_of, parse_choice, patch_attention, patches_of

if TYPE_CHECKING:
    from headscope.capturing import ParsedInput

HeadNumber = int | tuple[int, int] | str


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


def _result(record: Record, choice: Any, facts: dict[str, Any]) -> PictureAnswer:
    """What is seen in the record of an answer."""
    generation = record.generation
    if generation is None:
        raise CaptureError("The record of an answer holds no generation")
    stack = record.stacks[generation.stack]
    cells = cells_of(stack, *choice)
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
