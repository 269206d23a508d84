"""A text that a model writes about pictures, and what it attended to for each token.

The text is written first, by the model's own ``generate``. Then everything is read once more in one
pass, which is watched: where the patches of a picture stand among the tokens is known by following
them through a whole pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import torch

from headscope.capturing.device import device_of, one_at_a_time
from headscope.capturing.fitness import NEXT, check_fit
from headscope.capturing.generating._generate import check_room, check_writes
from headscope.capturing.generating._options import (
    by_beams,
    explained,
    left_as_it_was,
    length_of,
    padded,
    parse_options,
    seeded,
)
from headscope.capturing.generating._run import WrittenText, check_same_text
from headscope.capturing.inputs._processor import AS_LONG_AS_TEXT, inputs_of, marks_of
from headscope.capturing.inputs.inputs import Inputs, followed_inputs
from headscope.capturing.inputs.parsed_input import Conversation, ParsedInput
from headscope.capturing.inputs.tokens import joined_tokens, tokens_from_ids
from headscope.capturing.keep import check_count
from headscope.capturing.observers import hook_after
from headscope.capturing.run import at_rest, run, uncompiled, unwrapped
from headscope.capturing.seam import sessions
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError
from headscope.record import Record, Tokens

APART = 1e-3, 0.1
"""How far the probability of a written token may differ between the steps that wrote it and the one
pass that reads it again, in single and in half precision; ours.
"""


def written_about(
    model: Any,
    processor: Any,
    given: ParsedInput,
    *,
    max_new_tokens: int | None = None,
    alternatives: int = 5,
    seed: int | None = None,
    allow_unfit: bool = False,
    **options: Any,
) -> tuple[Record, float]:
    """Go on with a text about pictures, and keep what every head computed for each token.

    Args:
        model: loaded; with a decoder alone, that reads pictures among its words.
        processor: of the model.
        given: the prompt, with the marks of its pictures, and the pictures.
        max_new_tokens: how many tokens to write at most; by default as of `headscope.generate`.
        alternatives: how many of the most probable candidates to note for each token.
        seed: of the random numbers, where tokens are sampled.
        allow_unfit: whether the head may be untrained.
        **options: of `headscope.generate`.

    Returns:
        The record of prompt and text, with its generation, whose ``stack`` is the one that wrote
        it; and the largest difference of a written token's probability between writing and reading
        again.

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
    if max_new_tokens is not None:
        check_count("max_new_tokens", max_new_tokens)
    check_count("alternatives", alternatives, 0)
    if seed is not None:
        check_count("seed", seed, 0)
    keeping, arguments = parse_options(options, model)
    with one_at_a_time(model), at_rest(model), left_as_it_was(model):
        inputs = inputs_of(model, processor, given)
        prompt = inputs.arguments["input_ids"].shape[1]
        length = length_of(model, prompt) if max_new_tokens is None else max_new_tokens
        check_room(model, prompt, length)
        arguments["max_new_tokens"] = length
        written = WrittenText(alternatives)
        with uncompiled(model), seeded(seed, device_of(model)):
            ids = _written(model, inputs, arguments, written)
        tokenizer = processor.tokenizer
        read = _read_again(model, inputs, tokenizer, ids)
        outputs: deque[Any] = deque(maxlen=1)
        with ExitStack() as undo:
            undo.callback(hook_after(model, lambda *seen: outputs.append(seen[-1])).remove)
            record = run(model, read, keeping)[0]
    stack = _stack_of(record, read.source[0])
    generation = written.generation((model, tokenizer), ids, arguments, stack=stack, seed=seed)
    what = (
        f"{type(model).__name__} computes something else where it reads its answer in one pass "
        "than where it writes it"
    )
    apart = check_same_text(generation, outputs[-1].logits[0], APART, what)
    return replace(record, generation=generation), apart


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
    asked, marks = given.text, marks_of(processor, "picture")
    if chat_template and not isinstance(asked, Conversation):
        if getattr(processor, "chat_template", None):
            asked = Conversation(({"role": "user", "content": asked},))
        elif marks and marks[0] not in asked:
            asked = marks[0] * len(given.pictures) + asked
    return replace(given, text=asked).read_with(processor, writes=True)


def _written(
    model: Any, inputs: Inputs, arguments: Mapping[str, Any], written: WrittenText
) -> list[int]:
    """Run the model's ``generate``; the ids of prompt and text."""
    given = inputs.arguments
    prompt = given["input_ids"].shape[1]
    for session in sessions():
        session.prepare(model, inputs)
    with explained(model, "answer"):
        asked = by_beams(model, given, padded(dict(arguments), model))
        asked |= {"return_dict_in_generate": True, "output_logits": True}
        made = model.generate(**given, **asked)
    ids = made.sequences[0]
    if ids[:prompt].tolist() != given["input_ids"][0].tolist() or len(ids) <= prompt:
        raise CaptureError(
            f"{type(model).__name__} gives back another text than the prompt and what it wrote, so "
            "that it is unknown which row wrote a word"
        )
    for step, logits in enumerate(made.logits):
        written.end_pass(1 if step else prompt, logits[0])
        written.wrote(ids[: prompt + step + 1])
    return ids.tolist()


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
        # What is written is a word that may be looked at, and of no kind but text.
        value = int(name == "attention_mask")
        arguments[name] = torch.cat([tensor, tensor.new_full((1, count), value)], dim=1)
    arguments["input_ids"] = torch.tensor([ids[:-1]], device=device_of(model))
    written = tokens_from_ids(tokenizer, ids[prompt:-1])
    tokens = joined_tokens(inputs.source[0], written)
    return followed_inputs(model, arguments, (tokens,), pictures=inputs.pictures)


def _stack_of(record: Record, tokens: Tokens) -> str:
    """The stack that reads these tokens, with the patches among them.

    Raises:
        CaptureError: where no patch of a picture stands among the words.
    """
    for name, stack in record.stacks.items():
        same = stack.query.ids == tokens.ids and stack.key.ids == tokens.ids
        if same and stack.key.places is not None and any(stack.key.places):
            return name
    raise CaptureError(
        f"{record.model.name} has no patch of a picture among the tokens that it writes from "
        "(it may look at pictures by cross-attention); capture it, and look at its other stacks: "
        f"{', '.join(record.stacks)}"
    )
