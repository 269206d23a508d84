"""Queries, keys, values or outputs from another run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing.seam import CallPositions, LayerChange, within
from headscope.errors import InterventionError, RecordError
from headscope.interventions._intervention import (
    Intervention,
    Make,
    Numbers,
    checked,
    parse_numbers,
)
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record

What = Literal["queries", "keys", "values", "output"]
WHERE = {"queries": "query", "keys": "key", "values": "value", "output": "output"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Patch(Intervention):
    """What the heads compute on the way is taken from another run of the same model.

    Queries and keys are those after positions were applied. The output of a head is ``sum_k A[q, k]
    v_k``, before the projection; in the record its rows are zero, since nothing it looked at in
    this run went further.

    Args:
        record: of the other run, with queries, keys and values kept (``keep="auto"``); or one for
            each text of a batch.
        what: ``"queries"``, ``"keys"``, ``"values"`` or ``"output"``.
        positions: the tokens that are patched: queries for queries and output, keys for keys and
            values; all by default, the text then having as many tokens as the record.
        source: the positions in the record that are put there, in this order; by default the same
            ones.
        layer: see `Intervention`, as for the rest. Keys and values are shared: their heads must be
            named as ``kv_heads``, or be all that share them.

    Raises:
        InterventionError: where record, model and text do not fit, or a layer's queries and keys
            cannot be separated from what is added to their product.

    Example:
        >>> other = capture(model, tokenizer, "The dog sat.")
        >>> capture(
        ...     model,
        ...     tokenizer,
        ...     "The cat sat.",
        ...     interventions=[Patch(record=other, what="values", layer=1)],
        ... )
    """

    record: Record | Sequence[Record]
    what: What
    positions: Numbers = None
    source: Numbers = None
    does: ClassVar[str] = "patched"
    alone: ClassVar[str] = "token"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_given()
        given = _as_given(self.positions, "Patch: positions")
        source = _as_given(self.source, "Patch: source")
        # Without source the positions are read as a set: one named twice has no second source.
        wanted = parse_numbers(given, "Patch: positions") if source is None else source
        if (given is None) != (wanted is None) or len(given or ()) != len(wanted or ()):
            raise InterventionError(
                f"Patch: {wanted} cannot be put at the positions {given}; give as many of both"
            )
        object.__setattr__(self, "positions", given)
        object.__setattr__(self, "source", given if source is None else source)

    def _check_given(self) -> None:
        are_records = self.records and all(isinstance(one, Record) for one in self.records)
        if not are_records or self.what not in tuple(WHERE):
            raise InterventionError(
                f"Patch needs a record and one of {', '.join(WHERE)}; not {self.what!r}"
            )
        if self.queries is not None:
            raise InterventionError("Patch takes positions=, the tokens to patch, not queries=")

    @property
    def records(self) -> tuple[Record, ...]:
        """One record, or one for each text."""
        return tuple(self.record) if isinstance(self.record, list | tuple) else (self.record,)  # ty: ignore

    def check(self, place: LayerPlace) -> None:
        """See `Intervention`."""
        super().check(place)
        # Beside transformers' interface, queries times keys is itself a product of activations that
        # was seen; any further one, such as with relative positions, is a part of the scores that a
        # patch would leave as it was.
        expected = 1 if place.route == "operators" else 0
        unclear = place.products > expected or not place.features[0] or place.exchanged
        if self.what in ("queries", "keys") and unclear:
            raise InterventionError(
                f"{place.name} ({place.module}) makes its scores of more than queries times keys, "
                "or of keys times queries; they cannot be patched there. Patch values or output, "
                "or give weights with headscope.interventions.SetWeights"
            )

    def description(self, heads: Any, kind: str = "heads") -> str:
        """See `Intervention`."""
        return f"{self.what} {super().description(heads, kind)}"

    def part(self, place: LayerPlace) -> LayerChange:
        """See `Intervention`."""
        if self.what in ("keys", "values"):
            heads, count, kind = self._kv_heads_of(place), place.kv_heads, "key/value heads"
        else:
            heads, count, kind = self.heads_of(place), place.heads, "heads"
        number = ("queries", "keys", "values", "output").index(self.what)
        size = (count, place.features[number]) if number < 3 else None
        return LayerChange(
            WHERE[self.what],  # ty: ignore[invalid-argument-type]
            heads,
            self.maker(place, heads),
            self.positions,  # ty: ignore[invalid-argument-type]
            self.description(heads, kind),
            place.route,
            size,
        )

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        taken = [self._array(layer_of(one, place), heads) for one in self.records]
        arrays = [torch.from_numpy(np.array(each)) for each in taken]

        def make(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
            if len(arrays) not in (1, len(at.queries)):
                raise InterventionError(
                    f"{len(arrays)} records were given, and the batch has {len(at.queries)} texts"
                )
            new = old.clone()
            # Outputs come as [batch query head feature], all others with the heads first.
            rows = new.transpose(1, 2) if self.what == "output" else new
            of_keys = self.what in ("keys", "values")
            sides = at.keys if of_keys else at.queries
            for example, own_positions in enumerate(sides):
                array = arrays[example % len(arrays)]  # one record serves all texts
                counts = len(own_positions), at.before_in(example)[of_keys]
                to, of = self._positions(counts, array.shape[1], f"{place.name}, text {example}")
                rows[example, :, own_positions[to]] = array[:, of].to(new)
            return new

        return make

    def _array(self, layer: Layer, heads: tuple[int, ...]) -> np.ndarray:
        """``[head token feature]`` of the heads."""
        if self.what == "output":
            return outputs_of(layer, heads)
        array = getattr(layer, self.what)
        if array is None:
            raise InterventionError(
                f"Layer {layer.layer} of the record holds no {self.what}; capture it with "
                "keep='auto'"
            )
        return array[list(heads)]

    def _positions(self, counts: tuple[int, int], there: int, name: str) -> tuple[list[int], ...]:
        """Positions among the tokens that are run now, and in the record.

        Args:
            counts: of tokens that are run now, and of those before them.
            there: tokens of the record.
            name: of layer and text.
        """
        (here, before), to, of = counts, self.positions, self.source
        if to is None or of is None:
            if before + here != there:
                raise InterventionError(
                    f"{name} has {before + here} tokens, and the record {there}; say with "
                    "positions= and source= which are to be put where"
                )
            to = of = range(there)
        pairs = dict(zip(to, of, strict=True))  # ty: ignore
        shown, last = within(list(pairs), here, before), max(pairs.values())
        if last >= there:
            raise InterventionError(f"The record has tokens 0 to {there - 1}, not {last}")
        return shown, [pairs[before + position] for position in shown]

    def _kv_heads_of(self, place: LayerPlace) -> tuple[int, ...]:
        if self.heads is None:
            return checked(self.kv_heads, place.kv_heads, f"{place.name} has key/value heads")
        heads, shared = self.heads_of(place), place.heads // place.kv_heads
        groups = sorted({head // shared for head in heads})
        # Some heads of a group alone cannot be patched: the others would read the same keys.
        if len(groups) * shared != len(heads):
            raise InterventionError(
                f"{place.name}: heads {', '.join(map(str, heads))} share key/value heads "
                f"{', '.join(map(str, groups))} with others; name the key/value heads with "
                "kv_heads="
            )
        return tuple(groups)


def _as_given(numbers: Any, name: str) -> tuple[int, ...] | None:
    """Positions in the order in which they were given, in which source and target go together."""
    several = list(numbers) if isinstance(numbers, Iterable) else numbers
    parsed = parse_numbers(several, name)
    return tuple(several) if isinstance(several, list) else parsed


def layer_of(record: Record, place: LayerPlace) -> Layer:
    """The layer of a record that belongs to a place.

    Raises:
        InterventionError: where there is none with as many heads.
    """
    try:
        layer = record[place.stack].layer(place.layer)
    except RecordError as error:
        raise InterventionError(f"The record does not fit the model: {error}") from None
    if (layer.heads, layer.kv_heads) != (place.heads, place.kv_heads):
        raise InterventionError(
            f"{place.name} has {place.heads} heads and {place.kv_heads} key/value heads, but "
            f"{layer.heads} and {layer.kv_heads} in the record; is it of this model?"
        )
    return layer


def outputs_of(layer: Layer, heads: tuple[int, ...]) -> Float[np.ndarray, "head query feature"]:
    """What heads hand on before the projection: ``sum_k A[q, k] v_k``.

    Raises:
        InterventionError: where no values were kept.
    """
    if not layer.has("values"):
        raise InterventionError(
            f"Layer {layer.layer} of the record holds no values; capture it with keep='auto'"
        )
    chosen = list(heads)
    return layer.weights_of()[chosen] @ np.asarray(layer.values)[layer.kv_head_of[chosen]]
