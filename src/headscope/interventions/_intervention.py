"""What all interventions share: which heads, layers and tokens they are about."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from headscope.capturing.seam import CallPositions, LayerChange, Where
from headscope.errors import InterventionError, is_whole
from headscope.interventions.plan import LayerPlace, ModelPlan

Numbers = int | Sequence[int] | None
Make = Callable[[torch.Tensor, CallPositions], torch.Tensor]


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervention(ABC):
    """A change of some heads; what is left out means all.

    Layers, heads and tokens are numbered as in a record: from 0, tokens without padding.

    Args:
        layer: one layer or several.
        heads: one head or several.
        kv_heads: one key/value head or several, meaning all heads that share them; instead of
            ``heads``.
        queries: positions of the tokens that look; their rows alone are changed.
        stack: which stack; may be left out where the model has only one.

    Raises:
        InterventionError: where a number is none, or heads are named twice over.
    """

    layer: Numbers = None
    heads: Numbers = None
    kv_heads: Numbers = None
    queries: Numbers = None
    stack: str | None = None

    where: ClassVar[Where]
    does: ClassVar[str]
    alone: ClassVar[str] = ""
    """What it changes alone, so that tokens must be laid out as those of the record."""

    def __post_init__(self) -> None:
        for name in ("layer", "heads", "kv_heads", "queries"):
            # The class is frozen, and a field is replaced by what was parsed here alone.
            parsed = parse_numbers(getattr(self, name), f"{type(self).__name__}: {name}")
            object.__setattr__(self, name, parsed)
        if self.heads is not None and self.kv_heads is not None:
            raise InterventionError(f"{type(self).__name__} takes heads or kv_heads, not both")

    def on(self, model: nn.Module) -> Any:
        """A block in which the model is changed; see `headscope.intervene`."""
        from headscope.interventions.session import intervene

        return intervene(model, self)

    def parts(self, plan: ModelPlan) -> Iterator[tuple[LayerPlace, LayerChange]]:
        """What is to be done in each layer of a model.

        Raises:
            InterventionError: where a layer or head does not exist, or a layer cannot carry the
                change.
        """
        for place in plan.chosen(self.stack, self.layer):  # ty: ignore[invalid-argument-type]
            if place.route == "outputs":
                raise InterventionError(
                    f"{place.name} ({place.module}) computes attention in pieces; it can be "
                    "captured from what the model returns, but not changed"
                )
            if place.refused:
                raise InterventionError(f"{place.name} ({place.module}) {place.refused}")
            self.check(place)
            yield place, self.part(place)

    def check(self, place: LayerPlace) -> None:
        """Raise where a layer cannot carry the change.

        Raises:
            InterventionError: with the reason.
        """
        what = self.alone or ("tokens" if self.queries is not None else "")
        if what and not place.whole:
            raise InterventionError(
                f"{place.name} ({place.module}) attends within windows or to one picture after the "
                f"other; heads can be changed there, but no single {what}"
            )

    def part(self, place: LayerPlace) -> LayerChange:
        """What is to be done in one layer."""
        heads = self.heads_of(place)
        return LayerChange(
            where=self.where,
            heads=heads,
            make=self.maker(place, heads),
            rows=self.queries,  # ty: ignore[invalid-argument-type]
            description=self.description(heads),
            route=place.route,
        )

    @abstractmethod
    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """What makes of these heads' tensor the new one; see `LayerChange`."""

    def heads_of(self, place: LayerPlace) -> tuple[int, ...]:
        """The heads that are meant in a layer.

        Raises:
            InterventionError: where one does not exist.
        """
        if self.kv_heads is not None:
            # In grouped attention heads that follow each other share a key/value head.
            shared = place.heads // place.kv_heads
            groups = checked(self.kv_heads, place.kv_heads, f"{place.name} has key/value heads")
            return tuple(group * shared + head for group in groups for head in range(shared))
        return checked(self.heads, place.heads, f"{place.name} has heads")

    def description(self, heads: Any, kind: str = "heads") -> str:
        """The change of these heads in words; None for all."""
        named = f"all {kind}" if heads is None else f"{kind} {_listed(heads)}"
        rows = "" if self.queries is None else f", queries {_listed(self.queries)}"
        return f"{self.does} ({named}{rows})"

    def __str__(self) -> str:
        """The change in words, as records of a model say it that was changed so."""
        layers = "all layers" if self.layer is None else f"layer {_listed(self.layer)}"
        of = "" if self.stack in (None, "self") else f" of {self.stack}"
        kind = "heads" if self.kv_heads is None else "key/value heads"
        return f"{layers}{of}: {self.description(self.kv_heads or self.heads, kind)}"


def parse_numbers(given: Any, name: str) -> tuple[int, ...] | None:
    """Numbers from 0 on, rising, each once; None for all.

    Raises:
        InterventionError: where one of them is none.
    """
    if given is None:
        return None
    several = list(given) if isinstance(given, Iterable) else [given]
    if not several or not all(map(is_whole, several)):
        raise InterventionError(
            f"{name} must be a whole number from 0 on, or several of them, not {given!r}"
        )
    return tuple(sorted({int(number) for number in several}))


def checked(numbers: Any, count: int, has: str) -> tuple[int, ...]:
    """The numbers, all of which there are; every number where None.

    Raises:
        InterventionError: naming the first that does not exist.
    """
    if numbers is None:
        return tuple(range(count))
    # Numbers rise, see `parse_numbers`: the last one is the largest.
    if numbers[-1] >= count:
        raise InterventionError(f"{has} 0 to {count - 1}, not {numbers[-1]}")
    return numbers


def _listed(numbers: Any) -> str:
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers))
