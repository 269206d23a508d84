"""Everything that one pass over one text computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headscope.errors import RecordError
from headscope.record._facts import ModelFacts
from headscope.record._generation import Generation
from headscope.record._stack import Stack


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """The attention of one model on one text: no batch axis, no padding. Frozen.

    ``record["self"].weights(layer=2, head=0)`` is one head's ``[query key]``.

    Args:
        stacks: by name: ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``.
        model: what is known about the model.
        generation: how the model wrote the text itself; None where the text was given.

    Raises:
        RecordError: where a stack is missing or named otherwise than its key, or is not what was generated.
    """

    stacks: Mapping[str, Stack]
    model: ModelFacts = field(default_factory=ModelFacts)
    generation: Generation | None = None

    def __post_init__(self) -> None:
        if not self.stacks:
            raise RecordError("A record needs at least one stack")
        for name, stack in self.stacks.items():
            if stack.name != name:
                raise RecordError(f"The stack under {name!r} calls itself {stack.name!r}")
        object.__setattr__(self, "stacks", MappingProxyType(dict(self.stacks)))
        if self.generation is not None:
            self.generation.check_queries(self[self.generation.stack].query)

    def __getitem__(self, name: str) -> Stack:
        if name not in self.stacks:
            raise RecordError(f"This record has the stacks {', '.join(map(repr, self.stacks))}, not {name!r}")
        return self.stacks[name]

    @property
    def verified(self) -> float | None:
        """Largest difference between a layer's output recomputed from its weights and values and the model's own.

        None for records that no model stands behind.
        """
        found = [layer.verified for stack in self.stacks.values() for layer in stack if layer.verified is not None]
        return max(found, default=None)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts behind the record, each once, in order."""
        sides = (side for stack in self.stacks.values() for side in (stack.query, stack.key))
        return tuple(dict.fromkeys(text for side in sides for text in side.texts))

    @property
    def summary(self) -> str:
        """One line: the model, the size of every stack, and how much the model wrote itself."""
        parts = [
            f"{'' if name == 'self' else name + ' '}{len(stack)} layers x {stack.heads} heads, {_counted(stack)}"
            for name, stack in self.stacks.items()
        ]
        if self.generation is not None:
            parts.append(f"{len(self.generation)} tokens generated")
        return f"{self.model.name or 'arrays'}: {'; '.join(parts)}"

    def __repr__(self) -> str:
        return f"<Record of {self.summary}>"


def _counted(stack: Stack) -> str:
    queries, keys = len(stack.query), len(stack.key)
    return f"{queries} tokens" if stack.query == stack.key else f"{queries} x {keys} tokens"
