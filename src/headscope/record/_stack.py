"""The layers that share their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from headscope.errors import RecordError
from headscope.record._checks import frozen
from headscope.record._layer import Floating, Layer
from headscope.record._tokens import Tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class Stack:
    """Layers that share their query and key tokens: an encoder, a decoder, its cross-attention.

    Args:
        name: ``"self"`` where there is only one; ``"encoder"``, ``"decoder"``, ``"cross"`` ...; printable.
        query: the tokens that look.
        key: the tokens that are looked at; the same ones but in cross-attention.
        layers: in order; their numbers need not be without gaps (hybrid models).
        others: the layers in the gaps, by number: ``"linear (...)"`` or ``"none (...)"`` with the class of what they
            do instead of softmax attention.
        routers: router scores ``[token expert]`` of mixture-of-experts layers by number, where they were asked for.

    Raises:
        RecordError: where tokens and layers do not fit, or the name is not printable.
    """

    name: str
    query: Tokens
    key: Tokens
    layers: tuple[Layer, ...]
    others: Mapping[int, str] = field(default_factory=dict)
    routers: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.name.isprintable():
            raise RecordError(f"Stack {self.name!r}: a name of printable characters is wanted, for files and addresses")
        if not self.layers:
            raise RecordError(f"Stack {self.name!r} has no layers")
        numbers = [layer.layer for layer in self.layers]
        if sorted(set(numbers)) != numbers:
            raise RecordError(f"Stack {self.name!r}: layer numbers must rise, not {numbers}")
        for layer in self.layers:
            if layer.size != (len(self.query), len(self.key)):
                queries, keys = layer.size
                raise RecordError(
                    f"Stack {self.name!r}, layer {layer.layer}: the arrays have {queries} queries and {keys} keys, but "
                    f"{len(self.query)} query tokens and {len(self.key)} key tokens were given"
                )

        self._check_rest(numbers)

    def _check_rest(self, numbers: list[int]) -> None:
        twice = sorted(set(self.others) & set(numbers))
        if twice:
            raise RecordError(f"Stack {self.name!r}: layers {twice} are said to have attention and to have none")
        for number, scores in self.routers.items():
            if scores.ndim != 2 or len(scores) != len(self.query):
                raise RecordError(
                    f"Stack {self.name!r}: router scores of layer {number} have shape {scores.shape}; wanted are "
                    f"[token expert] for {len(self.query)} tokens"
                )
        object.__setattr__(self, "others", MappingProxyType(dict(self.others)))
        routers = {number: frozen(np.asanyarray(scores)) for number, scores in self.routers.items()}
        object.__setattr__(self, "routers", MappingProxyType(routers))

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def kinds(self) -> dict[int, str]:
        """Kind of every layer by number, those without softmax attention included: ``linear`` or ``none``."""
        found = {layer.layer: layer.kind for layer in self.layers}
        found |= {number: what.partition(" ")[0] for number, what in self.others.items()}
        return dict(sorted(found.items()))

    @property
    def heads(self) -> int:
        """Number of heads of the layer that has most."""
        return max(layer.heads for layer in self.layers)

    def layer(self, number: int) -> Layer:
        """The layer with this number.

        Raises:
            RecordError: where there is none; the message lists those there are.
        """
        for layer in self.layers:
            if layer.layer == number:
                return layer
        raise RecordError(
            f"Stack {self.name!r} has layers {_listed([layer.layer for layer in self.layers])}, not {number}"
        )

    def weights(self, layer: int, head: int | None = None) -> Floating:
        """Weights of a layer ``[head query key]``, or of one head of it ``[query key]``."""
        return self.layer(layer).weights_of(head)

    def scores(self, layer: int, head: int | None = None) -> Floating:
        """What goes into the softmax, ``[head query key]`` or ``[query key]``; -inf where a query may not look."""
        return self.layer(layer).scores_of(head)

    def contributions(self, layer: int, kind: str = "attention") -> Floating:
        """What each key adds to each query over all heads of a layer, ``[query key]``: a map of `Contributions`."""
        return self.layer(layer).contributions_of(kind)

    def head_contributions(self, layer: int, head: int | None = None) -> Floating:
        """``||a f(x_j)||`` of a layer ``[head query key]``, or of one head of it ``[query key]``."""
        return self.layer(layer).head_contributions_of(head)


def _listed(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
