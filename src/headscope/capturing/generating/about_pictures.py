"""A text that a model writes about pictures, and what it attended to for each token."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from headscope.capturing.device import device_of, one_at_a_time
from headscope.capturing.fitness import NEXT, check_fit
from headscope.capturing.generating._generate import check_room, check_writes
from headscope.capturing.generating._options import left_as_it_was, length_of
from headscope.capturing.generating._written import numbers_in, writer_of
from headscope.capturing.inputs._processor import AS_LONG_AS_TEXT, inputs_of
from headscope.capturing.inputs.inputs import Inputs, followed_inputs
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import joined_tokens, tokens_from_ids
from headscope.capturing.media.given import marks_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError
from headscope.parts import Conversation
from headscope.record import Record


def written_about(
    model: Any, processor: Any, given: ParsedInput, *, allow_unfit: bool = False, **options: Any
) -> tuple[Record, dict[str, Any]]:
    """Go on with a text about pictures, and keep what every head computed for each token.

    Args:
        model: loaded; with a decoder alone, that reads pictures among its words.
        processor: of the model.
        given: the prompt, with the marks of its pictures, and the pictures.
        allow_unfit: whether the head may be untrained.
        **options: of `headscope.generate`.

    Returns:
        The record of prompt and text, with its generation, whose ``stack`` is the one that wrote
        it; and the arguments that it was read with besides the ids.

    Raises:
        TextError: a prompt that leaves no room for so many tokens.
        ModelError: a model whose head was not trained.
        CaptureError: a model that cannot write about pictures, or whose attention could not be
            captured exactly.
    """
    model = unwrapped(model)
    check_writes(model, "AutoModelForImageTextToText")
    if reads_target(model):
        raise CaptureError(
            f"{type(model).__name__} is an encoder-decoder, whose pictures stand in another stack "
            "than its words; capture it with target=, and look at its stack 'cross'"
        )
    if not allow_unfit:
        check_fit(model, NEXT)
    numbers = numbers_in(options)
    writer = writer_of(model, processor.tokenizer, numbers, options)
    with one_at_a_time(model), at_rest(model), left_as_it_was(model):
        inputs = inputs_of(model, processor, given)
        prompt = inputs.arguments["input_ids"].shape[1]
        length = numbers["max_new_tokens"] or length_of(model, prompt)
        check_room(model, prompt, length)
        writer.arguments["max_new_tokens"] = length
        texts = writer.write(inputs)
        read = _read_again(model, inputs, processor.tokenizer, texts[0].ids)
        (record,) = writer.read(read, texts)
    _check_patches(record)
    return record, {name: each for name, each in read.arguments.items() if name != "input_ids"}


def prompt_about(processor: Any, given: ParsedInput, *, chat_template: bool = True) -> ParsedInput:
    """The input with its question as the prompt that the model reads.

    Without a chat template that is the mark of each picture, followed by the question.

    Args:
        processor: the model's processor.
        given: pictures, and a question or a conversation.
        chat_template: whether a question is put into the template.

    Raises:
        TextError: where the template refuses it.
    """
    is_video = given.video is not None
    asked, marks = given.text, marks_of(processor, "video" if is_video else "picture")
    if chat_template and not isinstance(asked, Conversation):
        if getattr(processor, "chat_template", None):
            asked = Conversation(({"role": "user", "content": asked},))
        elif marks and marks[0] not in asked:
            asked = marks[0] * (is_video or len(given.pictures)) + asked
    return replace(given, text=asked).read_with(processor, writes=True)


def _read_again(model: Any, inputs: Inputs, tokenizer: Any, ids: list[int]) -> Inputs:
    """The prompt, the pictures and what was written, but the last token, which was never read."""
    prompt = inputs.arguments["input_ids"].shape[1]
    count = len(ids) - 1 - prompt
    arguments = dict(inputs.arguments)
    for name, tensor in inputs.arguments.items():
        if not name.endswith(AS_LONG_AS_TEXT) or tensor.ndim < 2 or tensor.shape[1] != prompt:
            continue
        if tensor.ndim > 2:
            raise CaptureError(
                f"{type(model).__name__} reads {name} of shape {list(tensor.shape)}, and it is "
                "not known how that continues with the words of an answer"
            )
        # What is written is a word that may be looked at, of the kind of the word before it.
        arguments[name] = torch.cat([tensor, tensor[:, -1:].expand(1, count)], dim=1)
    arguments["input_ids"] = torch.tensor([ids[:-1]], device=device_of(model))
    written = tokens_from_ids(tokenizer, ids[prompt:-1])
    tokens = joined_tokens(inputs.source[0], written)
    read = followed_inputs(model, arguments, (tokens,), pictures=inputs.pictures)
    return replace(read, given=inputs.given)


def _check_patches(record: Record) -> None:
    """Raise where no patch of a picture stands among the words.

    Raises:
        CaptureError: naming the stacks.
    """
    generation = record.generation
    if generation is not None and any(record[generation.stack].key.places or ()):
        return
    raise CaptureError(
        f"{record.model.name} has no patch of a picture among the tokens that it writes from "
        "(it may look at pictures by cross-attention); capture it, and look at its other stacks: "
        f"{', '.join(record.stacks)}"
    )
