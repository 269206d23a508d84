"""What a module computes, found by trying it: norms and matrices, whatever they are called."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from headscope.capturing.device import full_precision, in_memory
from headscope.capturing.watching.running import ModuleUse
from headscope.norms import Norm

PROBES = 4
FITS_WITHIN = 1e-5
"""How far a norm may be from what its formula gives for random vectors; some compute in float32
inside.
"""
SMALL, LARGE = 1e-3, 1e3
COLUMNS_COMPARED = 8
READ_WHOLE = 2**20
"""Up to how many numbers of a weight are summed, to notice what was written past torch's own count.
Of larger ones, whose products are not kept, a sample is."""
SAMPLE = 1024

Ask = Callable[[torch.Tensor], np.ndarray]


def norm_of(module: nn.Module, width: int) -> Norm | None:
    """The norm that a module computes of vectors of this width; None if it is not a norm.

    It is asked for zeros (the shift), for large vectors (the gain, eps being nothing to them), for
    small ones (eps), and for random ones, of which the formula found must give the same.
    """
    try:
        ask = _asked(module)
        shift = ask(torch.zeros(1, width, dtype=torch.float64))[0]
        drawn = (
            torch.randn(
                PROBES, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
            )
            + 0.5
        )
        answers = ask(drawn)
    except Exception:  # noqa: BLE001 - a foreign module may raise anything at what it was not made for
        return None
    if answers.shape != drawn.shape or not np.isfinite(answers).all():
        return None
    for centred, divided in ((True, True), (False, True), (False, False)):
        norm = _fitted(ask, shift, centred=centred, divided=divided)
        if norm is None:
            continue
        largest = max(1.0, float(np.abs(answers).max()))
        if np.abs(norm(drawn.numpy()) - answers).max() <= FITS_WITHIN * largest:
            plain = not divided and np.allclose(norm.gain, 1) and not norm.shift.any()
            return None if plain else norm  # dropout, at rest, is none
    return None


def exact(tensor: torch.Tensor) -> torch.Tensor:
    """In float32 or better, on the tensor's own device where that has float64 (Apple's has not)."""
    tensor = tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
    return tensor.cpu() if tensor.device.type == "mps" else tensor


def matrix_of(module: nn.Module) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Matrix ``[in out]`` and bias ``[out]`` of an affine module, whichever way round it keeps
    them, in float32 or better.
    """
    with in_memory(module):
        return _matrix_of(module)


def _matrix_of(module: nn.Module) -> tuple[torch.Tensor, torch.Tensor | None]:
    weight, bias = (getattr(module, name, None) for name in ("weight", "bias"))
    if not isinstance(weight, torch.Tensor):
        raise ValueError("it has no matrix")
    offset = exact(bias) if isinstance(bias, torch.Tensor) else None
    if weight.is_floating_point() and weight.ndim == 2:
        plain = exact(weight)
        for matrix in (plain.T, plain):
            if _computes(module, matrix, offset, weight.dtype):
                return matrix, offset
    # What is kept as whole numbers (quantised weights) is no matrix yet: the module makes it.
    matrix = _answers_to_units(module, offset)
    if matrix is None or not _computes(module, matrix, offset, torch.float32):
        raise ValueError("it computes something else than a matrix product and a bias")
    return matrix, offset


def _computes(
    module: nn.Module, matrix: torch.Tensor, offset: torch.Tensor | None, dtype: torch.dtype
) -> bool:
    """Whether a module gives the product with this matrix and the bias, tried with random rows."""
    probe = torch.randn(2, len(matrix), generator=torch.Generator().manual_seed(0)).to(dtype)
    answer = _answer(module, probe)
    wanted = probe.to(matrix.device, matrix.dtype) @ matrix
    if answer is None or answer.shape != wanted.shape:
        return False
    wanted = wanted if offset is None else wanted + offset
    loose = 1e-4 if dtype in (torch.float32, torch.float64) else 3e-2
    return bool((answer - wanted).abs().max() <= loose * wanted.abs().max().clamp(min=1.0))


def _answers_to_units(module: nn.Module, offset: torch.Tensor | None) -> torch.Tensor | None:
    """Matrix ``[in out]`` of a module that does not keep it: what it gives for each unit vector,
    without its bias. None where it takes none, or has parts whose weights may change unnoticed.
    """
    width = getattr(module, "in_features", None)
    if not isinstance(width, int) or module._modules:
        return None
    answers = _answer(module, torch.eye(width))
    if answers is None or answers.shape[0] != width:
        return None
    return answers if offset is None else answers - offset


def _answer(module: nn.Module, rows: torch.Tensor) -> torch.Tensor | None:
    """What a module gives for these rows; None where it does not take them."""
    weight = getattr(module, "weight", rows)
    try:
        with torch.no_grad(), full_precision():
            return exact(module.forward(rows.to(weight.device)))
    except (RuntimeError, TypeError):  # the wrong way round, or of another precision
        return None


def value_columns_of(
    value: torch.Tensor, applied: Iterable[ModuleUse]
) -> tuple[nn.Module, tuple[int, ...]] | None:
    """The matrix whose output holds the values, by their place in memory or number by number, and
    its columns that do.

    Args:
        value: ``[batch kv_head key feature]``.
        applied: uses of matrices, of which one is looked for.

    Returns:
        None where there is none (a norm follows it, or attention works in windows), or columns
        cannot be distinguished.
    """
    rows = value.permute(0, 2, 1, 3).flatten(2).flatten(0, 1)  # [batch * key, kv_head * feature]
    for use in applied:
        columns = _columns_by_memory(value, use.output)
        if columns:
            return use.module, columns
        output = use.output.flatten(0, -2)
        turned = use.output.transpose(0, 1).flatten(0, -2) if use.output.ndim == 3 else output
        for given in (output, turned):
            if (len(given), given.dtype) != (len(rows), rows.dtype):
                continue
            columns = _columns_in(rows, given)
            if columns is not None:
                return use.module, columns
    return None


def _columns_by_memory(value: torch.Tensor, output: torch.Tensor) -> tuple[int, ...]:
    """Columns of an output in whose memory the values lie, as most do; empty where they do not."""
    first, rest = divmod(value.data_ptr() - output.data_ptr(), value.element_size())
    batch, step, key, feature = value.stride()
    if (batch, key, feature) != output.stride() or feature != 1 or value.dtype != output.dtype:
        return ()
    inside = first >= 0 and first + step * (value.shape[1] - 1) + value.shape[3] <= key
    if (value.shape[0], value.shape[2]) != output.shape[:2] or rest or not inside:
        return ()
    return _columns_at(first, step, *value.shape[1::2])


@lru_cache(maxsize=256)
def _columns_at(first: int, step: int, heads: int, width: int) -> tuple[int, ...]:
    """Columns of heads of one width, one of which begins every so many columns."""
    firsts = range(first, first + step * heads, step)
    return tuple(column for begin in firsts for column in range(begin, begin + width))


def remembered(modules: Sequence[nn.Module], what: Hashable, make: Callable[[], Any]) -> Any:
    """What follows from the weights of modules, made once and again where these are others.

    Args:
        modules: on whose own weights it depends.
        what: distinguishes it from other things that follow from them.
        make: makes it.
    """
    states = list(map(state_of, modules))
    if None in states:
        return make()
    known = _known.setdefault(modules[0], {})
    if what not in known or known[what][0] != states:
        known[what] = states, make()
    return known[what][1]


_known: WeakKeyDictionary[nn.Module, dict[Hashable, tuple[list, Any]]] = WeakKeyDictionary()


def state_of(module: nn.Module) -> tuple | None:
    """A fingerprint of a module, which changes with it: its own weights, by where they are, how
    often they were written to and some of their numbers, and its settings. None where they are
    elsewhere. It takes least time right after the module was used, when they are in the cache.
    """
    state: list = [vars(module).get("forward"), type(module).forward]
    if hasattr(module, "_hf_hook"):
        return None
    for weight in (*module._parameters.values(), *module._buffers.values()):
        if weight is None:
            continue
        if weight.is_meta or weight.is_inference():
            return None
        read, count = weight.detach(), weight.numel()
        if count > READ_WHOLE:
            read = read.reshape(-1)[:: count // SAMPLE]
        if read.dtype in {torch.float16, torch.bfloat16}:
            read = read.float()  # the sum of many would be too large for half precision
        some = read.sum().item()
        state.append((weight.data_ptr(), weight._version, weight.shape, weight.dtype, some))
    settings = (int, float, str, bool)
    state += [(name, own) for name, own in vars(module).items() if isinstance(own, settings)]
    return tuple(state)


def _columns_in(rows: torch.Tensor, among: torch.Tensor) -> tuple[int, ...] | None:
    """Where each column of one matrix is in another; None where one is not there or there twice."""
    at = (
        torch.linspace(0, len(rows) - 1, min(len(rows), COLUMNS_COMPARED))
        .round()
        .long()
        .to(rows.device)
    )
    wanted, given = (np.ascontiguousarray(one[at].float().cpu().numpy().T) for one in (rows, among))
    places: dict[bytes, int] = {}
    for index, column in enumerate(given):
        name = column.tobytes()
        places[name] = -1 if name in places else index
    columns = [places.get(column.tobytes(), -1) for column in wanted]
    return None if min(columns) < 0 else tuple(columns)


def _asked(module: nn.Module):
    """The module as a function of float64 vectors, by a twin with parameters of its own and none of
    its hooks.
    """
    twin = copy.copy(module)
    if "_hf_hook" in vars(module):
        vars(twin).pop("forward", None)  # accelerate's, which would run the module itself
    with in_memory(module):
        for name in ("_parameters", "_buffers"):
            own = {
                key: None if part is None else part.detach().double().cpu()
                for key, part in getattr(module, name).items()
            }
            twin.__dict__[name] = own

    def ask(vectors: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            return twin.forward(vectors).double().numpy()

    return ask


def _fitted(ask: Ask, shift: np.ndarray, *, centred: bool, divided: bool) -> Norm | None:
    """The norm of this form, as far as a few probes show."""
    width = len(shift)
    probe = np.where(np.arange(width) % 2, 1.0, -1.0) * (1 + np.arange(width) / width)
    form = Norm(gain=np.ones(width), shift=np.zeros(width), centred=centred, divided=divided)
    straight = form.linear(probe[None])[0]
    if not divided:
        return Norm(
            gain=(ask(torch.from_numpy(probe[None]))[0] - shift) / probe,
            shift=shift,
            centred=False,
            divided=False,
        )
    if (np.abs(straight) < 1e-6).any():
        return None
    size = form.deviation(probe[None])[0]
    large, small = (
        ask(torch.from_numpy(factor * probe[None]))[0] - shift for factor in (LARGE, SMALL)
    )
    gain = large * size / straight
    at = np.abs(gain).argmax()
    if not np.isfinite(gain).all() or gain[at] == 0 or small[at] == 0:
        return None
    deviation = gain[at] * SMALL * straight[at] / small[at]
    eps = max(0.0, float(deviation**2 - (SMALL * size) ** 2))
    gain = large * np.sqrt((LARGE * size) ** 2 + eps) / (LARGE * straight)
    return Norm(gain=gain, shift=shift, eps=eps, centred=centred)
