"""Which heads of a layer were kept, where not all were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headscope.errors import RecordError

FEW = 4
"""So many missing heads are named."""


@dataclass(frozen=True)
class HeldHeads:
    """The heads of a layer that were kept; the others were computed, and are not in the record.

    Args:
        numbers: their numbers in the model, rising.
        heads: how many the layer has in the model.
        kv_heads: how many key/value heads it has there.

    Raises:
        RecordError: where there are no such heads.
    """

    numbers: tuple[int, ...]
    heads: int
    kv_heads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))
        rising = sorted(set(self.numbers)) == list(self.numbers)
        if not self.numbers or not rising or self.numbers[0] < 0 or self.numbers[-1] >= self.heads:
            raise RecordError(
                f"Of {self.heads} heads {list(self.numbers)} were kept; give rising numbers of some"
            )
        if self.kv_heads < 1 or self.heads % self.kv_heads:
            raise RecordError(
                f"{self.heads} heads cannot share {self.kv_heads} key/value heads evenly"
            )

    @property
    def kv_numbers(self) -> tuple[int, ...]:
        """Numbers of the key/value heads that the heads use, each once."""
        # Neighbouring heads share, as in `Layer.kv_head_of`; dict.fromkeys keeps the order.
        return tuple(dict.fromkeys(number * self.kv_heads // self.heads for number in self.numbers))

    def indices(self, wanted: Iterable[int], name: str, *, shared: bool = False) -> list[int]:
        """Where heads stand among those that were kept.

        Args:
            wanted: their numbers in the model.
            name: of the layer, for the error.
            shared: whether these are numbers of key/value heads.

        Raises:
            RecordError: where one was not kept.
        """
        kept, what = (self.kv_numbers, "key/value head") if shared else (self.numbers, "head")
        missing = [int(number) for number in wanted if number not in kept]
        if missing:
            listed, most = ", ".join(map(str, kept)), self.kv_heads if shared else self.heads
            lacking = ", ".join(map(str, missing)) if len(missing) <= FEW else "all of them"
            raise RecordError(
                f"{name} holds {what}{'s' * (len(kept) > 1)} {listed} of {most}, and not "
                f"{lacking}: it was captured with heads=; ask for what it holds, or capture "
                "without heads="
            )
        return [kept.index(number) for number in wanted]
