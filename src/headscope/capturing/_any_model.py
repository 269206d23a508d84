"""Records of any torch model, however it is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import nn

from headscope.capturing.building._build import Builder
from headscope.capturing.building._inventory import warn_of_gaps
from headscope.capturing.calls.call import Call
from headscope.capturing.entry import IDS
from headscope.capturing.facts import facts_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.parse import check_reader, is_conversation, parse_call
from headscope.capturing.inputs.tokens import tokenized, tokens_from_encoding, tokens_from_ids
from headscope.capturing.media.input_positions import InputPositions, pixels_followed
from headscope.capturing.observers import hook_before, observers
from headscope.capturing.options import KeepOptions, keeping_of
from headscope.capturing.run import at_rest, norms_for, uncompiled, unwrapped
from headscope.capturing.walk import arguments_of
from headscope.capturing.watching._watch import Watch
from headscope.errors import CaptureError, TextError, check_count, is_whole, listed
from headscope.parts import parts_of
from headscope.record import Record, Tokens


class Watched:
    """The records of a watched model; available when the block of `watch` has ended."""

    def __init__(self) -> None:
        self._records: list[Record] = []

    @property
    def records(self) -> list[Record]:
        """One record for each example of the batch.

        Raises:
            CaptureError: inside the block.
        """
        if not self._records:
            raise CaptureError("The records are there once the block of hs.watch is left")
        return self._records

    @property
    def record(self) -> Record:
        """The record of the first example."""
        return self.records[0]


@contextmanager
def watch(
    model: nn.Module,
    *tokens: Sequence[Any] | Tokens,
    batch: int = 1,
    tokenizer: Any = None,
    **options: Unpack[KeepOptions],
) -> Generator[Watched]:
    """Watch one run of a torch model of any library, however it is called (timm, hand-written ...).

    Inside the block the model is in evaluation mode and computes no gradients; afterwards it is
    unchanged. Every softmax attention is captured that is computed with torch's operators or
    through transformers' interface, and checked as in `capture`.

    Args:
        model: any torch module.
        *tokens: the tokens of each sequence that the model reads, such as source and target. They
            belong to the queries or keys with as many positions; patches of a picture have their
            places, and any other positions are numbered, with a warning. With ``tokenizer`` also a
            text, its ids, or a conversation as a list of messages. Of a batch those of every
            example, in its order: first the sources of all, then the targets of all.
        batch: number of examples in the model's batch.
        tokenizer: makes tokens of texts, ids and conversations.
        **options: see `KeepOptions`.

    Raises:
        CaptureError: where no attention was seen, it could not be captured exactly, the model ran
            a second time, two sequences of equal length were given for one example, which cannot be
            distinguished, or sequences were not given for every example.
        TextError: where a text or a conversation was given without a tokenizer.

    Example:
        >>> with watch(model, ["a", "b", "c"]) as seen:
        ...     model(states)  # [1 3 feature]
        >>> seen.record["self"].weights(layer=0)
    """
    check_reader(tokenizer, "watch")
    model, seen = unwrapped(model), Watched()
    keeping = keeping_of(options)
    sides = _sides(tokens, batch, tokenizer)
    inputs = Inputs({}, (), sides=sides)
    builder = Builder(inputs, keeping, model)
    norms = norms_for(builder, model, keeping)

    def follow(positions: InputPositions, masks: dict[str, Any]) -> None:
        inputs.arguments.update(masks)
        builder.sides.follow(positions)

    def take(call: Call) -> None:
        if call.size[0] != batch and not builder.sides.are_followed(call):
            raise CaptureError(
                f"{call.name} computes attention on {call.size[0]} rows where hs.watch was given "
                f"batch={batch}; give batch= as many examples as the model is given, unless it "
                "works within windows: that cannot be captured yet"
            )
        builder.take(call)

    # Watching comes last: interventions put their hooks before, and it must see what they do.
    with ExitStack() as inside:
        for block in (
            at_rest(model),
            uncompiled(model),
            *(one.on(model) for one in options.get("interventions", ())),
        ):
            inside.enter_context(block)
        unfollowed = inside.enter_context(pixels_followed(model, batch, follow))
        join = unfollowed(builder.sides.joined)
        watched = inside.enter_context(Watch(model, batch, unfollowed(take), join))
        inside.enter_context(norms or nullcontext())
        inside.callback(hook_before(model, _begun(model, sides, batch)).remove)
        yield seen
    builder.left_out = watched.left_out
    if not builder.seen:
        why = f"that of {', '.join(watched.left_out)} is in a form that is not known"
        why = why if watched.left_out else "run it inside the block, with torch's own operators"
        raise CaptureError(
            f"{type(model).__name__} computed no softmax attention that could be seen (heads "
            f"that are mixed before their softmax cannot be); {why}"
        )
    builder.complete()
    seen._records = builder.records(facts_of(model))
    warn_of_gaps(seen.records, unattended=builder.unattended)


def _begun(model: nn.Module, sides: Sequence[Tokens], batch: int) -> Callable[..., None]:
    """A hook that raises a `CaptureError` where the model is given other ids than those that name
    its tokens, or runs a second time, which would pass for more layers.
    """
    own, runs = observers().interface, []

    def begin(_: Any, args: tuple, options: dict[str, Any]) -> None:
        # A session of changes runs the model too, to find its layers, and is watched by itself.
        if observers().interface is not own:
            return
        if runs:
            raise CaptureError(
                f"{type(model).__name__} runs again in one block of hs.watch, which reads one run; "
                "give each run a block of its own, or capture what is written with hs.generate"
            )
        runs.append(model)
        given = dict(zip(arguments_of(model), args, strict=False)) | options
        for name in {*list(given)[:1], *IDS}:
            ids, mask = given.get(name), given.get(name.replace("input_ids", "attention_mask"))
            if isinstance(ids, torch.Tensor) and ids.shape[:-1] == (batch,):
                _check_named(ids, mask, sides)

    return begin


def _check_named(rows: torch.Tensor, mask: Any, sides: Sequence[Tokens]) -> None:
    """Raise where ids ``[batch token]`` that a model is given are not those of as many tokens."""
    is_masked = isinstance(mask, torch.Tensor) and mask.shape == rows.shape
    for number, side in enumerate(sides):
        example = number % len(rows)
        row, named = rows[example], side.ids or ()
        read = row[mask[example] != 0] if is_masked and len(row) != len(named) else row
        if len(read) != len(named) or row.is_floating_point():
            continue
        for at, (given, told) in enumerate(zip(read.tolist(), named, strict=True)):
            if given != told:
                raise CaptureError(
                    f"The model is given the id {given} at position {at} of example {example}, and "
                    f"hs.watch was given {told} ({side.pieces[at]!r}); give hs.watch what the "
                    "model reads: hs.watch(model, *ids, batch=len(ids), tokenizer=tokenizer)"
                )


def _sides(tokens: Sequence[Any], batch: int, tokenizer: Any) -> tuple[Tokens, ...]:
    """The tokens of each sequence.

    Raises:
        CaptureError: where an example lacks some, or has two with equally many.
    """
    check_count("batch of hs.watch", batch, error=CaptureError)
    if tokenizer is not None and not tokens:
        ids = "hs.watch(model, *ids, batch=len(ids), tokenizer=tokenizer)"
        raise TextError(f"hs.watch was given a tokenizer and nothing to read: give texts or {ids}")
    sides = tuple(_side(given, tokenizer) for given in tokens)
    if len(sides) % batch:
        raise CaptureError(
            f"hs.watch was given {len(sides)} sequences of tokens for a batch of {batch}; give "
            "those of every example, in the order of the batch, or none, to have positions numbered"
        )
    for example in range(batch):
        own = dict.fromkeys(sides[example::batch])
        for length, count in Counter(map(len, own)).items():
            if count > 1:
                raise CaptureError(
                    f"hs.watch was given {count} sequences of {length} tokens, and goes by how "
                    "many there are; give the tokens of one of them, or run inputs of other lengths"
                )
    return sides


def _side(given: Any, tokenizer: Any) -> Tokens:
    """The tokens of a sequence, made by the tokenizer where it is a text or a conversation.

    Raises:
        TextError: where there is none to make them.
    """
    if isinstance(given, Tokens):
        return given
    if not isinstance(given, str) and not is_conversation(given):
        given = given.tolist() if hasattr(given, "tolist") else given
        pieces = listed(given, "a text, ids, Tokens or a list of tokens", TextError)
        if tokenizer is not None and all(map(is_whole, pieces)):
            return tokens_from_ids(tokenizer, pieces)
        return Tokens(pieces=tuple(pieces))
    if tokenizer is None:
        what = "a text" if isinstance(given, str) else "a conversation"
        raise TextError(
            f"hs.watch was given {what}, and reads tokens; give tokenizer= to make them, or a list "
            "of them, such as tokenizer.convert_ids_to_tokens(ids)"
        )
    read = parse_call(given).read_with(tokenizer)
    tokens = tokens_from_encoding(tokenizer, tokenized(tokenizer, *read.texts), read.texts)
    return replace(tokens, parts=parts_of(tokens, known=read.known))
