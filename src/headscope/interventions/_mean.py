"""Heads that attend, or answer, as they do on average over texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing.seam import CallPositions, Where
from headscope.errors import InterventionError
from headscope.interventions._intervention import Intervention, Make, needs_whole
from headscope.interventions._patch import layer_of, outputs_of
from headscope.interventions._set_weights import laid
from headscope.interventions._uniform import visible_of
from headscope.interventions.means import RecordMeans
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record


@dataclass(frozen=True, kw_only=True, eq=False)
class _MeanOfRecords(Intervention):
    """What is made of several records."""

    records: Sequence[Record] | RecordMeans

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.records, RecordMeans):
            return
        if not self.records or not all(isinstance(record, Record) for record in self.records):
            raise InterventionError(
                f"{type(self).__name__} needs the records whose mean is to be taken"
            )

    def layers(self, place: LayerPlace) -> list[Layer]:
        """The layer in each of the records."""
        assert not isinstance(self.records, RecordMeans), "their means are taken as they are"
        return [layer_of(record, place) for record in self.records]


@dataclass(frozen=True, kw_only=True, eq=False)
class Mean(_MeanOfRecords):
    """The heads attend as they do on average over texts: what depends on position stays, what on
    content goes.

    ``A[q, k]`` is the mean over the records that have both tokens; the rows are renormalised to 1
    over the keys that the query may look at.

    Source: ours. Positions are counted from the first token, so a text must not be longer than the
    longest record.

    Args:
        records: of the same model on other texts.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: without records, or where they do not fit the model or the text.

    Example:
        >>> others = list(capture_many(model, tokenizer, texts))
        >>> capture(model, tokenizer, text, interventions=[Mean(records=others, layer=0)])
    """

    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention made the mean over texts"

    def check(self, place: LayerPlace) -> None:
        """See `Intervention`."""
        needs_whole(place, "row")

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        whole = torch.from_numpy(self._map(place, heads))

        def make(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
            visible = visible_of(at).expand_as(old)

            def cut(own: torch.Tensor, example: int, _: int) -> torch.Tensor:
                _, queries, keys = own.shape
                if queries > whole.shape[1] or keys > whole.shape[2]:
                    raise InterventionError(
                        f"{place.name}: the text has {queries} x {keys} tokens and the longest "
                        f"record {whole.shape[1]} x {whole.shape[2]}; take the mean over longer "
                        "texts"
                    )
                seen = visible[example][:, at.queries[example][:, None], at.keys[example]]
                # The mean is over texts whose masks differ, so that it may lie on keys that this
                # query may not look at: what is left without them is made to sum to 1.
                rows = whole[:, :queries, :keys].to(own).masked_fill(~seen, 0.0)
                sums = rows.sum(-1, keepdim=True)
                return (rows / sums).where(sums > 0, rows)

            return laid(cut, (old, at), place.name)

        return make

    def _map(self, place: LayerPlace, heads: tuple[int, ...]) -> np.ndarray:
        if isinstance(self.records, RecordMeans):
            return self.records.of(place, heads)
        return mean_map([layer.weights_of()[list(heads)] for layer in self.layers(place)])


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanOutput(_MeanOfRecords):
    """The heads output what they do on average over texts and tokens, whatever they look at ("mean
    ablation").

    ``Att_h = E[sum_k A[q, k] v_k]`` over the queries of all records, each counting the same. In the
    record the rows of such a head are zero: nothing it looked at went further.

    Source: ours in this form; Michel et al. 2019 put zeros in its place, see `Zero`.

    Args:
        records: of the same model on other texts, with values kept.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: without records, or where they do not fit the model.

    Example:
        >>> with intervene(model, MeanOutput(records=others, layer=1, heads=2)):
        ...     model(**inputs)
    """

    where: ClassVar[Where] = "output"
    does: ClassVar[str] = "output made the mean over texts"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        if isinstance(self.records, RecordMeans):
            mean = torch.from_numpy(self.records.of(place, heads))
        else:
            outputs = [outputs_of(layer, heads) for layer in self.layers(place)]
            mean = torch.from_numpy(np.concatenate(outputs, axis=1).mean(axis=1))
        return lambda old, at: mean.to(old).expand_as(old)


def mean_map(maps: Sequence[Float[np.ndarray, "head _ _"]]) -> Float[np.ndarray, "head query key"]:
    """The mean over maps of texts of several lengths, each entry over the texts that have it.

    Args:
        maps: weights ``[head query key]`` of each text.

    Returns:
        As large as the largest of them; zero where no text has both tokens.
    """
    heads, queries, keys = (max(map_.shape[axis] for map_ in maps) for axis in range(3))
    total, count = np.zeros((heads, queries, keys)), np.zeros((queries, keys))
    for map_ in maps:
        inside = np.s_[: map_.shape[1], : map_.shape[2]]
        total[:, *inside] += map_
        count[inside] += 1
    return total / np.maximum(count, 1)
