"""Checks of calls: the captured attention must reproduce what the model computed, and the first
axis of a batch must be that of the texts, which running one text alone may have to show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from headscope.capturing.calls.attention import (
    EXACT,
    QueryRows,
    check_lost,
    difference,
    has_own_weights,
    recomputed,
    weights_of,
)
from headscope.capturing.calls.call import Call, Visibility, visibility_of
from headscope.capturing.device import allowed_apart
from headscope.capturing.watching._watch import Watch
from headscope.errors import CaptureError

ROWS_CHECKED = 16
"""Number of rows of each head that are recomputed to check a layer."""
TOLERANCE = 1e-4
"""Difference allowed in single precision, relative to the largest value of the layer output."""
EXPLAINED_WITHIN = 2e-5


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
        numbers: the least weight, the largest share of a row on padding, and for each text the
            largest difference and the largest value of the layer output.
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
        of_weights, of_output = torch.stack([least, lost]), difference(call, weights, rows)
        numbers = torch.cat([each.double() for each in (of_weights, *of_output)])
        return cls(call.name, against(call), relative, padding is not None, numbers)

    def facts(self, numbers: Sequence[float]) -> list[dict[str, Any]]:
        """For each text ``verified``, ``verified_against`` and ``verified_limit`` of a `Layer`.

        Raises:
            CaptureError: where the difference is too large in one text, or weights are not a
                softmax over real keys: negative, as where heads are mixed after the softmax
                (talking heads), or on padding.
        """
        least, lost, *rest = numbers
        if least < 0:
            raise CaptureError(
                f"{self.name} multiplies values with what is not a softmax: one of these weights "
                f"is {least:.3g}; attention whose heads are mixed after the softmax cannot be "
                "captured"
            )
        if self.is_padded:
            check_lost(lost, self.name)
        facts, texts = [], len(rest) // 2
        for worst, largest in zip(rest[:texts], rest[texts:], strict=True):
            tolerance = self.relative * largest
            # Written so that NaN fails, too.
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


def read_proofs(proofs: Sequence[Proof]) -> list[list[dict[str, Any]]]:
    """The facts of each, read from the device at once: it has to be waited for each time."""
    if not proofs:
        return []
    device = proofs[0].numbers.device
    every = torch.cat([proof.numbers.to(device) for proof in proofs]).tolist()
    facts = []
    for proof in proofs:
        count = len(proof.numbers)
        facts.append(proof.facts(every[:count]))
        every = every[count:]
    return facts


def against(call: Call) -> str:
    """What a call is compared with, in words.

    Where no output projection takes the product of weights and values, and this product itself was
    captured, from torch's operators or from a change of ours, it is compared only with itself.
    """
    if call.projection is not None and call.output is not None:
        return "layer output"
    is_product = call.route == "operators" and has_own_weights(call)
    return "itself" if is_product or call.changes else "attention output"


def explained(call: Call, visibility: Visibility, rows: QueryRows) -> bool:
    """Whether the model's own weights, where it returned them, follow from its queries and keys."""
    if call.weights is None or call.query is None or call.weights.dtype not in EXACT:
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


def check_sizes(call: Call) -> None:
    """Raise where the weights do not cover all queries and keys, as with landmarks or blocks.

    Raises:
        CaptureError: naming the shapes.
    """
    if call.odd:
        raise CaptureError(f"{call.name} {call.odd}")
    if call.weights is not None and tuple(call.weights.shape) != call.size:
        raise CaptureError(
            f"{call.name} multiplies weights of shape {list(call.weights.shape)} where [batch "
            f"head query key] is {list(call.size)}; attention in blocks or by landmarks cannot be "
            "captured yet"
        )


@dataclass(frozen=True, eq=False)
class OrderSample:
    """Some rows of the first text's weights, from a call of several texts.

    Args:
        name: name of the module.
        use: number of earlier calls of the module in the same pass.
        weights: ``[head query key]`` of some queries.
        within: how far those of the text alone may be from them.
    """

    name: str
    use: int
    weights: torch.Tensor
    within: float

    def fits(self, weights: torch.Tensor) -> bool:
        """Whether these are the weights of the text alone."""
        return weights.shape == self.weights.shape and bool(
            (weights - self.weights).abs().max() <= self.within
        )


def sample_of(call: Call, use: int) -> OrderSample:
    """A sample of a call."""
    return OrderSample(call.name, use, _weights(call), allowed_apart(call.context, TOLERANCE))


def check_order(
    model: nn.Module, samples: Sequence[OrderSample], count: int, act: Callable[[], Any] | None
) -> None:
    """Raise where the first text has other weights in a batch than alone.

    Args:
        model: the model that made the calls.
        samples: samples of calls whose projection did not prove the order of texts and heads.
        count: number of texts.
        act: runs the model on the first text alone; None where that is impossible.

    Raises:
        CaptureError: naming the first such module.
    """
    if not samples:
        return
    if act is None:
        raise not_proved(samples[0].name, count)
    alone: dict[tuple[str, int], torch.Tensor] = {}
    made: dict[str, int] = {}

    def take(call: Call) -> None:
        use = made.get(call.name, 0)
        made[call.name] = use + 1
        if any(sample.name == call.name and sample.use == use for sample in samples):
            alone[call.name, use] = _weights(call)

    with Watch(model, 1, take):
        act()
    for sample in samples:
        weights = alone.get((sample.name, sample.use))
        if weights is None or not sample.fits(weights):
            raise not_proved(sample.name, count)


def not_proved(name: str, count: int) -> CaptureError:
    """The error where nothing proves the order of texts and heads."""
    remedy = "; capture one text at a time" if count > 1 else ""
    return CaptureError(
        f"{name} holds texts and heads in axes of which nothing shows which is which (no output "
        "projection takes its result, and a text alone gives other weights, or cannot be run "
        f"alone){remedy}"
    )


def _weights(call: Call) -> torch.Tensor:
    queries = call.size[2]
    rows = QueryRows.spread(
        [torch.arange(queries, device=call.context.device)], queries, ROWS_CHECKED
    )
    return weights_of(call, visibility_of(call), rows)[0]
