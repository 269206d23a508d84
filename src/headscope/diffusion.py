"""Diffusion pipelines: records of their steps, a stack for each block of the denoiser.

Belongs to the extra ``headscope[diffusion]``: nothing else of headscope imports it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from typing import Any, Literal, Unpack

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.tokens import joined_tokens, tokens_from_ids
from headscope.capturing.keep import KeepChoice
from headscope.capturing.media.input_positions import (
    TEXT,
    VISION,
    elements_of,
    grid_of,
    positions_of,
)
from headscope.capturing.media.position_marks import PositionMarks, marked, marks_of
from headscope.capturing.observers import hook_before, swapped
from headscope.capturing.options import RecordOptions, keeping_of
from headscope.capturing.run import at_rest, run, unwrapped
from headscope.errors import CaptureError
from headscope.record import Record, Stack, Tokens

Part = Literal["picture", "text"]
"""Patches of the picture, or words."""
PARTS = ("picture", "text")
ENCODERS = ("", "_2", "_3")
"""What pipelines append to the names of their text encoders and their tokenizers."""
DENOISERS = ("transformer", "unet")
"""What pipelines call the part that takes noise away."""
PICTURES = ("sample", "hidden_states")
"""What models of diffusers call the noisy picture."""
WORDS = "encoder_hidden_states"


@dataclass
class PipelineRun:
    """What `watch_pipeline` saw; complete when its block has ended.

    Args:
        steps: numbers of the steps that were kept, from 0.
        timesteps: how far each of them is, as the scheduler counts.
        records: for each of these steps a record for each row of the denoiser's batch, with a stack
            for each block, called as the module that computes attention. With guidance the first
            half of the rows has the negative prompt; where a pipeline runs the denoiser several
            times a step, the rows follow each other.
    """

    steps: tuple[int, ...] = ()
    timesteps: tuple[float, ...] = ()
    records: tuple[tuple[Record, ...], ...] = field(default=(), repr=False)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The modules that compute attention, in the order of the model."""
        return tuple(self.records[0][0].stacks) if self.records else ()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that are kept."""
        total = 0
        for record in chain.from_iterable(self.records):
            for stack in record.stacks.values():
                total += sum(getattr(each, "nbytes", 0) for each in vars(stack.layer(0)).values())
        return total

    def stack(self, block: str, step: int, row: int = -1) -> Stack:
        """The attention of a block in a step.

        Args:
            block: one of `blocks`.
            step: one of `steps`.
            row: of the denoiser's batch; by default the last, which has the prompt.

        Raises:
            CaptureError: where it was not kept.
        """
        if step not in self.steps:
            raise CaptureError(f"Step {step} was not kept; there are {list(self.steps)}")
        records = self.records[self.steps.index(step)]
        if not -len(records) <= row < len(records):
            raise CaptureError(f"There is no row {row} in a batch of {len(records)}, from 0 on")
        if block not in records[row].stacks:
            raise CaptureError(f"Block {block!r} was not kept; there are {', '.join(self.blocks)}")
        return records[row][block]

    def weights(
        self, block: str, queries: Part | None = None, keys: Part | None = None, *, row: int = -1
    ) -> Float[np.ndarray, "step head query key"]:
        """Attention weights of a block in all steps that were kept.

        Args:
            block: one of `blocks`.
            queries: ``"picture"`` or ``"text"`` for these rows alone; by default all.
            keys: the same for columns. Rows of a part then need not sum to 1.
            row: of the denoiser's batch; by default the last, which has the prompt.

        Raises:
            CaptureError: for a block, part or row that there is not.
        """
        kept = []
        for step in self.steps:
            stack = self.stack(block, step, row)
            at = np.ix_(_positions(stack.query, queries), _positions(stack.key, keys))
            kept.append(stack.weights(layer=0)[:, *at])
        return np.stack(kept)

    def maps(
        self, block: str, word: int, *, row: int = -1
    ) -> Float[np.ndarray, "step head row column"]:
        """How much each patch of the picture looks at one word, on the grid of the patches.

        Args:
            block: one of `blocks` that attends from the picture to the text.
            word: its number among the positions of the text.
            row: of the denoiser's batch; by default the last, which has the prompt.

        Raises:
            CaptureError: for a block without text, or a word that there is not.
        """
        weights = self.weights(block, "picture", "text", row=row)
        if not -weights.shape[3] <= word < weights.shape[3]:
            raise CaptureError(
                f"Block {block!r} has {weights.shape[3]} positions of text, from 0 on, and no "
                f"{word}"
            )
        tokens = self.stack(block, self.steps[0], row).query
        maps = np.zeros((*weights.shape[:2], *tokens.grids[0]))
        places = [place for place in tokens.places or () if place is not None]
        for patch, place in enumerate(places):
            maps[:, :, place[0], place[1]] = weights[:, :, patch, word]
        return maps


@contextmanager
def watch_pipeline(
    pipe: Any,
    *,
    steps: Sequence[int] | None = None,
    blocks: Sequence[str] | None = None,
    words: Sequence[str] | None = None,
    **options: Unpack[RecordOptions],
) -> Generator[PipelineRun]:
    """Watch the denoiser of a diffusion pipeline (UNet, SD3, Flux) while the pipeline runs.

    Each chosen step is computed twice: once as the pipeline does, whose result it continues with,
    and once more, watched, on the same numbers. What is kept is checked as in `capture`.

    Args:
        pipe: a pipeline of diffusers, or its ``unet`` or ``transformer`` alone.
        steps: numbers of the steps to keep, from 0; by default all.
        blocks: the modules to keep, by the beginning of their names, such as
            ``["transformer_blocks.3"]``; by default all.
        words: names of the positions of the text, padding included; by default those of the
            tokenizers of the pipeline, or where its own text encoders did not run, ``w0``, ``w1``
            ...
        **options: see `RecordOptions`; ``keep`` is ``"qk"`` by default, from which weights follow
            exactly. Of n positions and heads of d features that is 8 n d bytes for each head of
            each block, step and row of the batch; ``"weights"`` takes 4 n**2.

    Raises:
        CaptureError: where there is no denoiser, where its attention could not be captured exactly,
            or none of the steps or blocks was seen.

    Example:
        >>> with watch_pipeline(pipe, steps=[0, 10, 19]) as seen:
        ...     pipe(prompt_embeds=embeds, num_inference_steps=20)
        >>> seen.maps("transformer_blocks.0.attn", word=4)  # [step head row column]
    """
    denoiser = _denoiser_of(pipe)
    keeping = keeping_of({"keep": "qk"} | options)
    watched = _KeptSteps(denoiser, keeping, steps=steps, blocks=blocks, words=words)
    seen = PipelineRun()
    original = denoiser.__dict__.get("forward")
    denoiser.forward = watched.forward
    try:
        with watched.reading(pipe):
            yield seen
    finally:
        if original is None:
            del denoiser.forward
        else:
            denoiser.forward = original
    if not watched.kept:
        asked = "" if steps is None else f" of the steps {list(steps)}"
        raise CaptureError(
            f"{type(denoiser).__name__} ran {watched.count} steps inside the block, and "
            f"none{asked} was kept; run the pipeline inside it"
        )
    seen.steps = tuple(watched.kept)
    seen.timesteps = tuple(watched.timesteps[step] for step in seen.steps)
    seen.records = tuple(tuple(records) for records in watched.kept.values())


class _KeptSteps:
    """Runs a denoiser as it is, and once more where a step is to be kept.

    Args:
        model: the denoiser.
        keeping: what to keep.
        steps: see `watch_pipeline`.
        blocks: likewise.
        words: likewise.
    """

    def __init__(
        self,
        model: nn.Module,
        keeping: KeepChoice,
        *,
        steps: Sequence[int] | None,
        blocks: Sequence[str] | None,
        words: Sequence[str] | None,
    ) -> None:
        self.kept: dict[int, list[Record]] = {}
        self.timesteps: list[float] = []
        self._model, self._keeping = model, keeping
        self._steps, self._blocks, self._words = steps, blocks, words
        self._forward: Callable = model.forward
        self._inside = False
        self._texts: list[Tokens] = []
        self._follow = PositionMarks(())

    @contextmanager
    def reading(self, pipe: Any) -> Generator[None]:
        """Follow the tokens of the pipeline's text encoders to the denoiser while it is open."""
        with ExitStack() as undo:
            for name in ENCODERS if self._words is None else ():
                encoder = getattr(pipe, f"text_encoder{name}", None)
                tokenizer = getattr(pipe, f"tokenizer{name}", None)
                if isinstance(encoder, nn.Module) and tokenizer is not None:
                    undo.callback(hook_before(encoder, partial(self._read, tokenizer)).remove)
            undo.enter_context(self._follow)
            yield

    def _read(self, tokenizer: Any, _: nn.Module, args: tuple, options: dict) -> Any:
        """A text encoder begins: its ids, marked, take their own place."""
        given = [*args, *options.values()]
        ids = next((each for each in given if isinstance(each, torch.Tensor)), None)
        if ids is None or ids.ndim != 2 or ids.is_floating_point():
            return None
        first = 1 + sum(map(len, self._texts))
        self._texts += [tokens_from_ids(tokenizer, row) for row in ids.tolist()]
        marks = torch.arange(first, first + ids.numel(), dtype=torch.int32).reshape(ids.shape)
        return swapped(args, options, ids, marked(ids, marks))

    @property
    def count(self) -> int:
        """Number of steps."""
        return len(self.timesteps)

    def forward(self, *given: Any, **named: Any) -> Any:
        """In place of the forward of the denoiser."""
        if not self._inside:
            self._see(dict(inspect.signature(self._forward).bind(*given, **named).arguments))
        return self._forward(*given, **named)

    def _see(self, arguments: dict[str, Any]) -> None:
        timestep = _number(arguments.get("timestep"))
        # A pipeline may run the denoiser several times a step, with and without the prompt.
        if not self.timesteps or timestep != self.timesteps[-1]:
            self.timesteps.append(timestep)
        step = self.count - 1
        if self._steps is not None and step not in self._steps:
            return
        self._inside = self._follow.away = True
        try:
            with at_rest(self._model):
                inputs = _denoiser_inputs(self._model, arguments, self._words, self._texts)
                records = run(self._model, inputs, self._keeping, numbers=False)
        finally:
            self._inside = self._follow.away = False
        order = {name: number for number, (name, _) in enumerate(self._model.named_modules())}
        held = [_by_block(record, self._blocks, order) for record in records]
        self.kept.setdefault(step, []).extend(held)


def _by_block(record: Record, blocks: Sequence[str] | None, order: Mapping[str, int]) -> Record:
    """The record with a stack for each chosen block, in the order of the model's modules."""
    wanted = None if blocks is None else tuple(blocks)
    stacks: dict[str, Stack] = {}
    names: list[str] = []
    for stack in record.stacks.values():
        for layer in stack:
            names.append(layer.module)
            if wanted is None or layer.module.startswith(wanted):
                stacks[layer.module] = Stack(
                    name=layer.module,
                    query=stack.query,
                    key=stack.key,
                    layers=(replace(layer, layer=0),),
                )
    if not stacks:
        raise CaptureError(
            f"None of the blocks {list(wanted or ())} is there; there are {', '.join(names)}"
        )
    return replace(record, stacks=dict(sorted(stacks.items(), key=lambda named: order[named[0]])))


def _denoiser_of(pipe: Any) -> nn.Module:
    if isinstance(pipe, nn.Module):
        return unwrapped(pipe)
    for name in DENOISERS:
        part = getattr(pipe, name, None)
        if isinstance(part, nn.Module):
            return unwrapped(part)
    raise CaptureError(
        f"{type(pipe).__name__} has no {' and no '.join(DENOISERS)}; expected a pipeline of "
        "diffusers, or its denoiser"
    )


def _number(timestep: Any) -> float:
    """A time step, which a pipeline may repeat for each row of the batch."""
    if isinstance(timestep, torch.Tensor):
        return float(timestep.reshape(-1)[0])
    return float("nan") if timestep is None else float(timestep)


def _positions(tokens: Tokens, part: Part | None) -> np.ndarray:
    """Positions of a part, in their order."""
    if part is None:
        return np.arange(len(tokens))
    if part not in PARTS:
        raise CaptureError(f"There is no part {part!r}; there are {' and '.join(PARTS)}")
    places = tokens.places or (None,) * len(tokens)
    is_picture = np.array([place is not None for place in places])
    positions = np.flatnonzero(is_picture if part == "picture" else ~is_picture)
    if not len(positions):
        raise CaptureError(f"This block has no {part} on that side; choose another part or block")
    return positions


def _denoiser_inputs(
    model: Any,
    arguments: Mapping[str, Any],
    words: Sequence[str] | None = None,
    encoded: Sequence[Tokens] = (),
) -> Inputs:
    """The arguments of a denoiser, with the place that each entry of the picture and each word has.

    Args:
        model: a UNet or a transformer of diffusers.
        arguments: of its forward, by name.
        words: names of the positions of the text; by default those of the tokens that they come
            from, or they are counted.
        encoded: tokens of the texts whose positions were followed from their encoders, numbered
            through from 1 on.

    Raises:
        CaptureError: where there is no picture, or it is unknown where its parts lie; where there
            are more words than positions, or fewer.
    """
    name = _picture_name(model, arguments)
    picture, text = arguments[name], arguments.get(WORDS)
    places = _places(model, picture, arguments)
    batch, size = len(picture), len(places)
    length = 0 if text is None else text.shape[1]
    _check_words(words, length)
    seen = torch.arange(1, batch * size + 1, dtype=torch.int32).reshape(batch, size)
    read = batch * size + 1 + torch.arange(batch * length, dtype=torch.int32)
    marks = {name: seen[:, :, None]}
    if picture.ndim == 4:
        marks[name] = seen.reshape(batch, 1, *picture.shape[2:])
    if text is not None:
        marks[WORDS] = read.reshape(batch, length, 1)
    elements = [elements_of(VISION, [places] * batch, range(batch))]
    elements.append(elements_of(TEXT, [grid_of(1, length)] * batch, range(batch)))
    clips = (None,) * batch
    positions = positions_of(model, batch, marks, np.concatenate(elements), clips=clips)
    source: tuple[Tokens, ...] = ()
    if length:
        numbers = tuple(words or (f"w{number}" for number in range(length)))
        named = Tokens(pieces=numbers, labels=numbers, special=(False,) * length)
        source = (named,) * batch
        if not words and text is not None:
            source = tuple(_read(text, named, encoded))
    return Inputs(dict(arguments), source, (), positions)


def _read(text: torch.Tensor, named: Tokens, encoded: Sequence[Tokens]) -> Iterator[Tokens]:
    """The tokens of each row of a text; positions that were not followed keep their names."""
    known = reduce(joined_tokens, encoded, named)
    marks = marks_of(text)
    for row in range(len(text)):
        at = np.arange(len(named))
        if marks is not None:
            followed = marks[row, :, 0].cpu().numpy()
            at = np.where(followed > 0, len(named) + followed - 1, at)
        own = known.take(at.tolist())
        yield Tokens(pieces=own.pieces, labels=own.labels, special=own.special)


def _picture_name(model: Any, arguments: Mapping[str, Any]) -> str:
    for name in PICTURES:
        if arguments.get(name) is not None:
            return name
    raise CaptureError(
        f"{type(model).__name__} was given {', '.join(arguments)}; expected a picture as "
        f"{' or '.join(PICTURES)}"
    )


def _places(model: Any, picture: torch.Tensor, arguments: Mapping[str, Any]) -> np.ndarray:
    """Row and column of every place of a picture."""
    if picture.ndim == 4:
        return grid_of(*picture.shape[2:])
    ids = arguments.get("img_ids")
    if picture.ndim != 3 or ids is None:
        raise CaptureError(
            f"{type(model).__name__} reads a picture of shape {list(picture.shape)}, and the "
            "positions of its parts are unknown; expected [batch channel row column], or [batch "
            "part feature] with img_ids"
        )
    # Flux gives a number of its own, the row and the column; earlier versions have a batch before.
    numbers = ids.reshape(-1, ids.shape[-1])[: picture.shape[1]].cpu().numpy().astype(np.int64)
    return numbers[:, 1:3]


def _check_words(words: Sequence[str] | None, length: int) -> None:
    if words is not None and len(words) != length:
        raise CaptureError(
            f"{len(words)} words were given for a text of {length} positions; give one for each, "
            "padding included"
        )
