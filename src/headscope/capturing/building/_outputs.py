"""The last route: weights that a model returns itself, where their computation cannot be watched.

Some families (windows, blocks) multiply pieces of queries and keys in an order of their own. Their
``output_attentions`` are accepted only with a proof: two matrices of the model, one whose output is
the values, and one whose input is weights times these values. Without it they are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple

import torch
from torch import nn

from headscope.capturing.building._build import Builder
from headscope.capturing.calls.call import Call
from headscope.capturing.device import allowed_apart, full_precision
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.walk import ModelModules, block_of, is_affine, modules_of
from headscope.capturing.watching._watch import Watch
from headscope.capturing.watching.running import ModuleUse, ModuleUses
from headscope.errors import CaptureError

RETURNED = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
BEFORE = 12
"""Largest number of matrices between values and output projection."""
PROVED_WITHIN = 1e-4
ROWS_PROVED = 8


def take_returned(
    model: nn.Module, inputs: Inputs, keeping: KeepChoice, options: dict[str, Any]
) -> Builder | None:
    """Run a model again and combine the weights that it returns with those that can be watched;
    None where it returns none.

    Args:
        model: a model whose attention cannot be watched completely.
        inputs: its inputs.
        keeping: the arrays to keep.
        options: more arguments of its forward.

    Raises:
        CaptureError: where a layer can neither be watched nor be proved by what the model returns.
    """
    if not {"output_attentions", "kwargs"} & set(inspect.signature(model.forward).parameters):
        return None
    builder, refused = Builder(inputs, keeping, model), {}

    def take(call: Call) -> None:
        try:
            builder.take(call)
            builder.check()
        except CaptureError as error:  # may be proved below by what the model returns
            builder.seen.pop(call.number, None)
            refused.setdefault(call.name, error)

    matrices = filter(is_affine, modules_of(model))
    with ModuleUses(matrices) as applied, Watch(model, inputs.count, take) as watch:
        outputs = model(**{**inputs.arguments, **options, "output_attentions": True})
    taken = {layer["projection"] for entry in builder.seen.values() for layer in entry.layers}
    proved = [
        call
        for call in proved_calls(outputs, applied.uses, ModelModules.of(model).names)
        if call.projection_name not in taken
    ]
    for number, call in enumerate(proved, start=watch.count):
        call.number, call.block = number, block_of(model, call.name)
        builder.take(call)
    builder.check()
    missing = [name for name in refused if not any(name.startswith(call.name) for call in proved)]
    if not missing:
        kept = {layer["module"] for entry in builder.seen.values() for layer in entry.layers}
        builder.left_out = [name for name in watch.left_out if not any(map(name.startswith, kept))]
        return builder
    if any(getattr(outputs, name, None) for name in RETURNED):
        raise refused[missing[0]]
    return None


def proved_calls(
    outputs: Any, applied: Sequence[ModuleUse], names: Mapping[int, str]
) -> Iterator[Call]:
    """The attention that a model returned, as calls, where the matrices that it applied prove it.

    Args:
        outputs: outputs of the model with ``output_attentions=True``.
        applied: the matrices, in the order in which they were applied.
        names: of the model's modules, by id.

    Raises:
        CaptureError: where some tokens have global attention, with values of their own.
    """
    if getattr(outputs, "global_attentions", None) or getattr(
        outputs, "encoder_global_attentions", None
    ):
        raise CaptureError(
            "Tokens with global attention use values of their own, which a record cannot hold; "
            "capture without global attention (AutoModel without global_attention_mask)"
        )
    # What gives more than a product, as a router does, is none.
    applied = [
        use
        for use in applied
        if isinstance(use.output, torch.Tensor) and use.given is not None and use.given.ndim == 3
    ]
    for name in RETURNED:
        for returned in getattr(outputs, name, None) or ():
            weights = whole_weights(returned) if isinstance(returned, torch.Tensor) else None
            matrices = None if weights is None else _connected(weights, applied)
            if weights is not None and matrices is not None:
                yield _call(weights, matrices, names, cross=name == "cross_attentions")


def whole_weights(returned: torch.Tensor) -> torch.Tensor | None:
    """``[batch head query key]`` of what a model returned; windows, as of Longformer (Beltagy et
    al. 2020), in full.

    Args:
        returned: ``[batch head query key]``, or ``[batch head query slot]``, the slots being the
            keys from ``w`` before the query to ``w`` after it.

    Returns:
        None where the layout is another.
    """
    batch, heads, queries, slots = returned.shape
    if slots == queries or slots % 2 == 0:
        return returned if slots == queries else None
    before = slots // 2
    whole = returned.new_zeros(batch, heads, queries, queries + 2 * before)
    positions = torch.arange(queries, device=whole.device)[:, None] + torch.arange(
        slots, device=whole.device
    )
    whole.scatter_(-1, positions.expand(batch, heads, -1, -1), returned)
    return whole[..., before : before + queries]


class _ConnectedMatrices(NamedTuple):
    """The matrices of values and of the output, which the weights of a call connect."""

    value: ModuleUse
    projection: ModuleUse
    values: torch.Tensor
    contexts: torch.Tensor


def _connected(weights: torch.Tensor, applied: list[ModuleUse]) -> _ConnectedMatrices | None:
    """The first pair of matrices, for values and output projection, that the weights connect."""
    batch, heads, queries, keys = weights.shape
    rows = torch.linspace(0, queries - 1, min(queries, ROWS_PROVED)).round().long()
    rows = rows.to(weights.device)
    for at, projection in enumerate(applied):
        for context in _laid_out(projection.given, heads, (batch, queries)):
            for value in islice(reversed(applied[:at]), BEFORE):
                for values in _laid_out(value.output, heads, (batch, keys)):
                    if _leads(weights[:, :, rows], values, context[:, rows]):
                        return _ConnectedMatrices(
                            value, projection, values.transpose(1, 2), context
                        )
    return None


def _leads(weights: torch.Tensor, values: torch.Tensor, context: torch.Tensor) -> bool:
    """Whether the weights ``[batch head query key]`` turn these values into these contexts, both
    ``[batch token head feature]``.
    """
    # Weights of padded queries are undefined. So most rows must agree, and each row in some text.
    if values.shape[-1] != context.shape[-1]:
        return False
    with full_precision():
        ours = (weights @ values.transpose(1, 2)).transpose(1, 2)
    within = allowed_apart(context, PROVED_WITHIN) * context.abs().max()
    close = (ours - context).abs().amax((2, 3)) <= within
    return bool(close.float().mean() > 0.5) and bool(close.any(0).all())


def _laid_out(tensor: torch.Tensor, heads: int, size: tuple[int, int]) -> Iterator[torch.Tensor]:
    """``[batch token head feature]`` from ``[batch token feature]`` or ``[token batch feature]``,
    where that fits; the padding of windows is cut off.
    """
    for batched in (tensor, tensor.transpose(0, 1)):
        if (
            batched.shape[0] == size[0]
            and batched.shape[1] >= size[1]
            and not batched.shape[2] % heads
        ):
            yield batched[:, : size[1]].unflatten(-1, (heads, -1))


def _call(
    weights: torch.Tensor, matrices: _ConnectedMatrices, names: Mapping[int, str], *, cross: bool
) -> Call:
    value, projection = (names[id(use.module)] for use in (matrices.value, matrices.projection))
    parts = zip(value.split("."), projection.split("."), strict=False)
    shared = takewhile(lambda pair: pair[0] == pair[1], parts)
    output = matrices.projection.output
    if output.shape[0] != weights.shape[0]:
        output = output.transpose(0, 1)
    return Call(
        module=matrices.projection.module,
        name=".".join(part for part, _ in shared),
        route="outputs",
        cross=cross,
        value=matrices.values,
        context=matrices.contexts,
        weights=weights,
        mask=(weights > 0).any(dim=1, keepdim=True),
        projection=matrices.projection.module,
        projection_name=projection,
        output=output[:, : weights.shape[2]],
    )
