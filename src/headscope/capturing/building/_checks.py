"""Checks of calls: the captured attention must reproduce what the model computed, and the first
axis of a batch must be that of the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from headscope.capturing.calls.attention import (
    EXACT,
    QueryRows,
    check_lost,
    difference,
    recomputed,
    weights_of,
)
from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.device import allowed_apart
from headscope.errors import CaptureError

ROWS_CHECKED = 16
"""Number of rows of each head that are recomputed to check a layer."""
TOLERANCE = 1e-4
"""Difference allowed in single precision, relative to the largest value of the layer output."""
EXPLAINED_WITHIN = 2e-5
SUMS_WITHIN = 5e-3
"""Difference from 1 allowed in the sum of a row."""


class Keys(NamedTuple):
    """Where the keys of a call lie, and whether they still do."""

    at: tuple[int, torch.Size]
    storage: StorageWeakRef


class Proof(NamedTuple):
    """What shows that a call was recomputed rightly, on the device that computed it.

    Args:
        name: name of the module.
        against: see `against`.
        relative: the difference allowed, relative to the largest value.
        is_padded: whether the call has padding.
        numbers: the least weight, the largest share of a row on padding, by how much the sum of a
            row differs from 1 where it differs most, and for each text the largest difference and
            the largest value of the layer output.
    """

    name: str
    against: str
    relative: float
    is_padded: bool
    numbers: torch.Tensor

    @classmethod
    def of(
        cls, call: Call, weights: torch.Tensor, rows: QueryRows, padding: torch.Tensor | None = None
    ) -> Proof:
        """Compare a call with what follows from these rows.

        Args:
            call: the watched call.
            weights: ``[text head row key]``.
            rows: the queries of these rows.
            padding: ``[text key]``, True for padding; None without padding.
        """
        compared = [call.context] if call.output is None else [call.context, call.output]
        relative = max(allowed_apart(each, TOLERANCE) for each in compared)
        # a third of the time of min
        lost = least = weights.amin() if weights.numel() else weights.new_zeros(())
        if padding is not None:
            lost = (weights * padding[:, None, None]).sum(-1).max()
        of_weights = torch.stack([least, lost, _excess(call, weights)])
        of_output = difference(call, weights, rows)
        numbers = torch.cat([of_weights, *of_output])
        return cls(call.name, against(call), relative, padding is not None, numbers)

    def facts(self, numbers: Sequence[float]) -> list[dict[str, Any]]:
        """For each text ``verified``, ``verified_against`` and ``verified_limit`` of a `Layer`.

        Raises:
            CaptureError: where the difference is too large in one text, or weights are not a
                softmax over real keys: negative, as where heads are mixed after the softmax
                (talking heads), with rows that do not sum to 1, or on padding.
        """
        least, lost, excess, *rest = numbers
        if least < 0 or abs(excess) > SUMS_WITHIN:
            wrong = f"weights is {least:.3g}" if least < 0 else f"rows sums to {1 + excess:.4g}"
            raise CaptureError(
                f"{self.name} multiplies values with what is not a softmax: one of these {wrong}; "
                "attention whose heads are mixed after the softmax, or whose weights are changed "
                "after it or come from something else in part, cannot be captured"
            )
        if self.is_padded:
            check_lost(lost, self.name)
        facts, texts = [], len(rest) // 2
        for worst, largest in zip(rest[:texts], rest[texts:], strict=True):
            tolerance = self.relative * largest
            if not largest < float("inf"):  # NaN, too
                raise CaptureError(
                    f"{self.name}: the model itself computes {largest:.3g} here; look for weights "
                    "that are not finite up to this layer, or give dtype=torch.float32"
                )
            if not worst <= tolerance:
                raise CaptureError(
                    f"{self.name}: the layer output recomputed from weights and values differs "
                    f"from the model's own by {worst:.3g} (allowed {tolerance:.1g}); this "
                    "attention is computed in a way that headscope does not know, and is refused"
                )
            facts.append(
                {"verified": worst, "verified_against": self.against, "verified_limit": tolerance}
            )
        return facts


def _excess(call: Call, weights: torch.Tensor) -> torch.Tensor:
    """By how much the sum of a row differs from 1 where it differs most.

    Rows that look at nothing are 0, learned sinks take a part of each, and so may changes of ours.
    """
    if call.weights is None or call.changes or not weights.numel():
        return weights.new_zeros(())
    sums = weights.sum(-1, dtype=torch.float32).flatten()
    excess = (sums - 1).masked_fill(sums == 0, 0)
    excess = excess if call.sinks is None else excess.clamp(min=0)
    return excess[excess.abs().argmax()].to(weights.dtype)


def against(call: Call) -> str:
    """What a call is compared with, in words.

    Where no output projection takes the product of weights and values, and this product itself was
    captured, from torch's operators or from a change of ours, it is compared only with itself.
    """
    if call.projection is not None and call.output is not None:
        return "layer output"
    is_product = call.route == "operators" and call.weights is not None
    return "itself" if is_product or call.changes else "attention output"


def is_rounded(call: Call) -> bool:
    """Whether a call has queries and keys, and weights in half precision besides."""
    return call.weights is not None and call.query is not None and call.weights.dtype not in EXACT


def explained(call: Call, visibility: Visibility, rows: QueryRows) -> bool:
    """Whether the model's own weights, where it returned them, follow from its queries and keys.

    Those in half precision do but for rounding: both are kept as the model made them.
    """
    if call.weights is None or call.query is None or is_rounded(call):
        return True
    apart = weights_of(call, visibility, rows) - recomputed(call, visibility, rows)
    return bool(apart.abs().max() <= EXPLAINED_WITHIN)


def check_chunks(call: Call, known: dict[str, Keys]) -> None:
    """Raise where a module has used these very keys before, with others of its queries.

    Args:
        call: with fewer queries than keys, else it has no others.
        known: the latest keys of each module, by name.

    Raises:
        CaptureError: naming the module.
    """
    if call.key is None or call.size[2] >= call.size[3]:
        return
    before, keys = known.get(call.name), (call.key.data_ptr(), call.key.shape)
    # Other memory may come to lie where theirs was.
    if before is not None and before.at == keys and not before.storage.expired():
        raise CaptureError(
            f"{call.name} goes over its queries in chunks, which cannot be put together yet; "
            "run it on fewer tokens than a chunk has, or without chunks"
        )
    known[call.name] = Keys(keys, StorageWeakRef(call.key.untyped_storage()))


def check_form(call: Call, texts: int) -> None:
    """Raise where the weights do not cover all queries and keys, as with landmarks or blocks, or
    nothing proves the order of texts and heads.

    Args:
        call: any call.
        texts: how many the model was given.

    Raises:
        CaptureError: naming the module.
    """
    if call.odd:
        raise CaptureError(f"{call.name} {call.odd}")
    if call.weights is not None and tuple(call.weights.shape) != call.size:
        raise CaptureError(
            f"{call.name} multiplies weights of shape {list(call.weights.shape)} where [batch "
            f"head query key] is {list(call.size)}; attention in blocks or by landmarks cannot be "
            "captured yet"
        )
    if call.layout.open:
        remedy = (
            "capture one text at a time" if texts != 1 else "give the module an output projection"
        )
        raise CaptureError(
            f"{call.name} has texts and heads side by side in one axis, and no output projection "
            f"takes its result, so that nothing shows which rows are heads of which text; {remedy}"
        )
