"""Which heads can read what earlier heads write, by their weights alone."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.linalg import matrix_norm

from headscope.capturing import capture_encoded, load_model
from headscope.capturing.contributions import known_norm_of
from headscope.capturing.device import allowed_apart, device_of, full_precision, one_at_a_time
from headscope.capturing.entry import configured
from headscope.capturing.facts import display_name
from headscope.capturing.observers import hook_after, hook_before, swapped
from headscope.capturing.run import at_rest
from headscope.capturing.walk import modules_of
from headscope.capturing.watching.running import first_tensor
from headscope.composition._result import BY, Composition
from headscope.errors import CaptureError
from headscope.interventions import intervene
from headscope.why.held import ACTIVATIONS, Cell, Change, WhyQuestion

CHECKED, WITHIN = 2, 1e-4
"""Rows by which linearity is checked, and how far they may be off."""


def composition(model: Any) -> Composition:
    """How much of what each head writes each later head can read, by its query, key and value.

    ``||W_OV M|| / (||W_OV|| ||M||)`` with Frobenius norms, where M is ``W_Q W_K^T`` (by query),
    ``W_K W_Q^T`` (by key) or ``W_OV`` of the later head (by value). Gains of norms are part of the
    matrices. Beside it stands what chance gives: with the residual stream rotated at random between
    both heads the mean square of the ratio is ``1 / width``, and its deviation is exact, too.

    Source: Elhage et al. 2021, "Composition".

    Args:
        model: a loaded model, a hub name or a folder; of one stack, with norms in front of its
            attention.

    Raises:
        ModelError: a model that cannot be loaded.
        CaptureError: where a step from one head to another is not linear (norms behind the sum, as
            in BERT; what no module shows), or there are several stacks, or one layer.

    Example:
        >>> print(composition(model))
    """
    model = configured(load_model(str(model))[0] if isinstance(model, str | Path) else model)
    ids = torch.ones(1, 1, dtype=torch.long, device=device_of(model))
    is_pair = model.config.is_encoder_decoder
    record = None if is_pair else capture_encoded(model, None, {"input_ids": ids})[0]
    if record is None or [*map(len, record.stacks.values())] < [2]:
        raise CaptureError(
            f"composition is of one stack of several layers, and {type(model).__name__} is none"
        )
    question = WhyQuestion(model, {"input_ids": ids}, record, 0, (0, 0))
    with one_at_a_time(model), at_rest(model), torch.no_grad(), full_precision():
        parts = [[matrix.cpu() for matrix in of_layer] for of_layer in _matrices(question)]
    ratio, deviation = _compared(parts)
    cells = [(layer.layer, head) for layer in question.layers for head in range(layer.heads)]
    own = np.array(cells)[:, 0]
    later = own[:, None] < own
    return Composition(
        model=display_name(model),
        heads=tuple(f"{layer}-{head}" for layer, head in cells),
        chance=parts[0][0].shape[1] ** -0.5,
        ratio=np.where(later, ratio, np.nan),
        deviation=np.where(later, deviation, np.nan),
    )


def _matrices(question: WhyQuestion) -> list[list[torch.Tensor]]:
    """Of each layer what queries, keys and values read of the stream, ``[head model feature]``, and
    what its heads write, ``[head feature model]``.

    Each row of a batch is a text of one token, whose stream before each block is a unit vector, and
    so is what its heads give. Norms have the denominator 1 and activations give 0, so that all that
    comes of it is linear.

    Raises:
        CaptureError: where it is not.
    """
    model, layers = question.model, question.layers
    config: Any = model.config
    sizes = [layer.heads * np.asarray(layer.values).shape[-1] for layer in layers]
    draw = torch.Generator().manual_seed(0)
    width = config.get_text_config().hidden_size
    given, made = (_units(size, max(width, *sizes), draw) for size in (width, max(sizes)))
    noted: dict[tuple[str, Cell], torch.Tensor] = {}

    def entry(_: nn.Module, args: tuple, options: dict) -> Any:
        old: Any = first_tensor(args, options)
        return swapped(args, options, old, given[:, None].to(old))

    def note(side: str, cell: Cell, old: torch.Tensor) -> torch.Tensor:
        noted[side, cell] = old[:, :, 0].float()
        return old

    def wrote(cell: Cell, _: nn.Module, __: tuple, ___: dict, output: Any) -> None:
        stream = output if isinstance(output, torch.Tensor) else output[0]
        noted["output", cell] = stream[:, 0].float() - given.to(stream.device)

    def unit(_: Cell, old: torch.Tensor) -> torch.Tensor:
        return made[:, : old[0].numel()].to(old).view_as(old)

    changes = [Change(at=side, act=partial(note, side)) for side in BY]
    with ExitStack() as undo:
        for module in modules_of(model):
            if not module._modules:
                undo.callback(hook_after(module, _linear_step).remove)
        for cell, layer in zip(question.cells, layers, strict=True):
            _, block = question.block(layer)
            undo.callback(hook_before(block, entry).remove)
            undo.callback(hook_after(block, partial(wrote, cell)).remove)
        undo.enter_context(intervene(model, *changes, Change(at="output", act=unit)))
        model(input_ids=question.arguments["input_ids"].expand(len(given), 1))
    allowed, matrices = allowed_apart(next(model.parameters()), WITHIN), []
    for cell, layer, size in zip(question.cells, layers, sizes, strict=True):
        read = [_linear(noted[side, cell], given, allowed, layer.module) for side in BY]
        of_head = (np.arange(layer.heads), *[layer.kv_head_of] * 2)
        own = [matrix.transpose(0, 1)[at] for matrix, at in zip(read, of_head, strict=True)]
        written = _linear(noted["output", cell], made[:, :size], allowed, layer.module)
        matrices.append([*own, written.unflatten(0, (layer.heads, -1))])
    return matrices


def _linear_step(module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
    """What a module without parts gives, where norms divide by 1 and activations give 0."""
    given = first_tensor(args, options)
    if given is None:
        return None
    if type(module).__module__ in ACTIVATIONS:
        return 0 * output
    norm = known_norm_of(module, given.shape[-1])
    if norm is None or not norm.divided:
        return None
    straight = given - given.mean(-1, keepdim=True) if norm.centred else given
    return straight * torch.as_tensor(norm.gain).to(given)


def _units(size: int, rows: int, draw: torch.Generator) -> torch.Tensor:
    """Unit vectors, then 0, then some at random, which show whether a step is linear, then 0."""
    some = torch.randn(CHECKED, size, generator=draw)
    return torch.cat([torch.eye(rows, size), some, torch.zeros(1, size)])


def _linear(got: torch.Tensor, rows: torch.Tensor, allowed: float, module: str) -> torch.Tensor:
    """The matrix ``[in ...]`` of a step that gave this of rows.

    Raises:
        CaptureError: where it is none.
    """
    got = got - got[-1]
    matrix, tried = got[: rows.shape[1]], got[-1 - CHECKED : -1]
    wanted = torch.tensordot(rows[-1 - CHECKED : -1].to(got), matrix, 1)
    if not (wanted - tried).abs().max() <= allowed * max(1.0, float(tried.abs().max())):
        raise CaptureError(
            f"{module}: what a head writes does not come to the next layer as it is (a norm stands "
            "behind the sum, as in BERT, or a step is not known), so that it is not composed by "
            "matrices; take a model with norms in front of its parts"
        )
    return matrix


def _compared(parts: list[list[torch.Tensor]]) -> tuple[np.ndarray, np.ndarray]:
    """Ratios ``[by earlier later]``, and their deviations where the stream is rotated at random."""
    write, reads = [], [[], [], []]
    for query, key, value, output in parts:
        # Only sizes of products count, so that of outer factors their R is enough.
        write.append(_sized(torch.linalg.qr(value).R @ output))
        pairs = (query, key), (key, query), (value, output.mT)
        for of, (one, other) in zip(reads, pairs, strict=True):
            of.append(_sized(one @ torch.linalg.qr(other).R.mT))
    width, ratios, deviations = write[0].shape[2], [], []
    # Mean products of the squares of two numbers of a rotation: of one and itself, of two in a row
    # or a column, of two others.
    same, beside = 3 / (width * (width + 2)), 1 / (width * (width + 2))
    apart = (width + 1) / (width * (width - 1) * (width + 2))
    own = torch.cat([matrix_norm(one @ one.mT) for one in write]).square()[:, None]
    for read in reads:
        other = torch.cat([matrix_norm(one.mT @ one) for one in read]).square()
        square = same * own * other + beside * (own + other - 2 * own * other)
        square += apart * (1 - own) * (1 - other) - width**-2
        deviations.append((width * square).sqrt() / 2)
        ratios.append(torch.cat([torch.cat([_product(a, b) for b in read], 1) for a in write]))
    return torch.stack(ratios).double().numpy(), torch.stack(deviations).double().numpy()


def _sized(matrices: torch.Tensor) -> torch.Tensor:
    return matrices / matrix_norm(matrices, keepdim=True).clamp(min=1e-30)


def _product(writes: torch.Tensor, reads: torch.Tensor) -> torch.Tensor:
    """Sizes ``[earlier later]`` of products."""
    return matrix_norm(torch.einsum("afd,bdg->abfg", writes, reads))
