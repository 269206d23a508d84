"""Everything that one pass over one text computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from headscope.errors import NoSuchStackError, RecordError
from headscope.record._facts import ModelFacts, verification_of, weakest
from headscope.record._generation import Generation
from headscope.record._stack import Stack
from headscope.record._stored import RebuiltWhenCopied
from headscope.record._tokens import Tokens

NAMED = 6
"""So many chosen heads are named in a summary."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Record(RebuiltWhenCopied):
    """The attention of one model on one text: no batch axis, no padding. Frozen.

    ``record["self"].weights(layer=2, head=0)`` is one head's ``[query key]``.

    Args:
        stacks: by name: ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``.
        model: what is known about the model.
        generation: how the model wrote the text itself; None where the text was given.
        pictures: those that the patches are equal parts of, as the model saw them (scaled, cut,
            without padding): uint8 ``[height width 3]``, red, green and blue, at most 448 pixels a
            side; `Tokens.pictures` counts them. There are none where pixels are not known: of
            packed patches and of bare tensors.

    Raises:
        RecordError: where a stack is missing or named otherwise than its key, or is not what was
            generated; where pictures are no bytes, or not as many as the grids of patches.
    """

    stacks: Mapping[str, Stack]
    model: ModelFacts = field(default_factory=ModelFacts)
    generation: Generation | None = None
    pictures: tuple[np.ndarray, ...] = ()

    def __post_init__(self) -> None:
        if not self.stacks:
            raise RecordError("A record needs at least one stack")
        for name, stack in self.stacks.items():
            if stack.name != name:
                raise RecordError(f"The stack under {name!r} calls itself {stack.name!r}")
        object.__setattr__(self, "stacks", MappingProxyType(dict(self.stacks)))
        if self.generation is not None:
            self.generation.check_queries(self[self.generation.stack].query)
        object.__setattr__(self, "pictures", tuple(self.pictures))
        self._check_pictures()

    def __getitem__(self, name: Any) -> Stack:
        if not isinstance(name, str) or name not in self.stacks:
            raise NoSuchStackError(
                f"This record has the stacks {', '.join(map(repr, self.stacks))}, not {name!r}"
            )
        return self.stacks[name]

    @property
    def verified(self) -> float | None:
        """Largest difference between what was recomputed from a layer and the model's own; see
        `verified_against`.

        None for records that no model stands behind.
        """
        layers = (layer for stack in self.stacks.values() for layer in stack)
        differences = [layer.verified for layer in layers if layer.verified is not None]
        return max(differences, default=None)

    @property
    def verified_against(self) -> str:
        """What the layers were compared with, of several what says least: see `Layer`; empty where
        it is not known.
        """
        layers = (layer for stack in self.stacks.values() for layer in stack)
        return weakest(layer.verified_against for layer in layers if layer.verified is not None)

    @property
    def verification(self) -> str:
        """One sentence: what the layers were compared with, the largest difference and its limit;
        may be empty.
        """
        return verification_of([layer for stack in self.stacks.values() for layer in stack])

    @property
    def unseen(self) -> str:
        """Which layers have attention that was not seen, by stack, and which other modules; empty
        where there are none.
        """
        stacks = [(name, stack.unseen) for name, stack in self.stacks.items() if stack.unseen]
        several = len(self.stacks) > 1
        layers = [
            f"layer{'s' * (len(numbers) > 1)} "
            f"{', '.join(map(str, numbers))}{f' of {name!r}' if several else ''}"
            for name, numbers in stacks
        ]
        return "; ".join([*layers, *filter(None, [self.model.unseen])])

    @property
    def numbered(self) -> str:
        """Why some of the tokens are but numbers of positions; empty where all of them have
        names.
        """
        return "; ".join(dict.fromkeys(side.numbered for side in self._sides if side.numbered))

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts behind the record, each once, in order."""
        return tuple(dict.fromkeys(text for side in self._sides for text in side.texts))

    @property
    def _sides(self) -> Iterator[Tokens]:
        return (side for stack in self.stacks.values() for side in (stack.query, stack.key))

    def _check_pictures(self) -> None:
        for number, picture in enumerate(self.pictures):
            is_rgb = picture.ndim == 3 and picture.shape[2] == 3
            if picture.dtype != np.uint8 or not is_rgb or not picture.size:
                raise RecordError(
                    f"Picture {number} must be uint8 with the axes [height width 3], not "
                    f"{picture.dtype} {list(picture.shape)}"
                )
        for side in self._sides if self.pictures else ():
            # Beside the patches there may be a side of text alone, as in cross-attention.
            if len(side.grids) not in (0, len(self.pictures)):
                raise RecordError(
                    f"{len(self.pictures)} pictures were given for tokens of {len(side.grids)}; "
                    "give one for each grid"
                )

    @property
    def summary(self) -> str:
        """One line: the model, the size of every stack, and how much the model wrote itself."""
        parts = [
            f"{'' if name == 'self' else name + ' '}{_sized(stack)}, {_counted(stack)}"
            for name, stack in self.stacks.items()
        ]
        if self.unseen:
            parts.append(f"attention of {self.unseen} not seen")
        if self.generation is not None:
            parts.append(f"{len(self.generation)} tokens generated")
        return f"{self.model.name or 'arrays'}: {'; '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Record of {self.summary}>"


def _sized(stack: Stack) -> str:
    if stack.is_whole:
        return f"{len(stack)} layers x {stack.heads} heads"
    held = [f"{layer}-{head}" for layer, head in stack.held_heads]
    named = ", ".join(held[:NAMED]) + (" ..." if len(held) > NAMED else "")
    return f"{len(held)} chosen head{'s' * (len(held) > 1)} ({named})"


def _counted(stack: Stack) -> str:
    query, key = (
        "numbered positions" if side.numbered else "tokens" for side in (stack.query, stack.key)
    )
    queries, keys = len(stack.query), len(stack.key)
    if stack.query == stack.key:
        return f"{queries} {query}"
    return f"{queries} x {keys} {key}" if query == key else f"{queries} {query} x {keys} {key}"
