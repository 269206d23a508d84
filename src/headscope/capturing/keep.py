"""The choice of what a capture keeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from headscope.errors import CaptureError, is_whole
from headscope.errors import check_count as checked_count
from headscope.record import HeldHeads

if TYPE_CHECKING:
    import torch

    from headscope.capturing.calls.call import Call


Keepable = Literal["weights", "qk", "values", "before", "statistics", "norms", "alti"]
Keep = Literal["auto"] | Keepable | Collection[Keepable]
Precision = Literal["float32", "float16"]

WEIGHTS_KEPT_BELOW = 256 * 2**20


@dataclass(frozen=True)
class KeepChoice:
    """The choice of what is kept, parsed.

    Args:
        what: any of weights, qk (queries and keys), values, before (queries and keys before
            positions are applied), statistics, norms, alti (which brings norms).
        auto: whether weights are kept only while all of them stay below 256 MiB.
        precision: the precision of the kept arrays.
        rows: how many rows the statistics sample; None for all.
        top: how many of the largest weights of each row the statistics name.
        routers: whether router scores are kept.
        heads: the only heads to keep; None for all.
        put: takes the arrays of a layer when it is complete, and gives those that are kept in their
            place; None to keep them in memory.
    """

    what: frozenset[str] = frozenset({"weights", "qk", "values"})
    auto: bool = True
    precision: Precision = "float32"
    rows: int | None = None
    top: int = 0
    routers: bool = False
    heads: ChosenHeads | None = None
    put: Callable[[np.ndarray], Any] | None = None

    @property
    def dtype(self) -> np.dtype:
        """NumPy's name of the precision."""
        return np.dtype(self.precision)


def parse_keep(
    *,
    keep: Any = "auto",
    precision: Any = "float32",
    rows: Any = None,
    top: Any = 0,
    routers: Any = False,
    heads: Any = None,
) -> KeepChoice:
    """The options of `KeepOptions`, checked.

    Raises:
        CaptureError: if a value is not allowed, or options do not fit together.
    """
    chosen = parse_heads(heads)
    if precision not in get_args(Precision):
        raise CaptureError(f"precision must be 'float32' or 'float16', not {precision!r}")
    what = _parse_what(keep)
    if "alti" in what:
        # ALTI is one of the contributions; the others come at little cost.
        what |= {"norms"}
    _check_rows(what, rows, top)
    # Norms are useful only together with the weights, and views draw contributions over these.
    is_bare = "norms" in what and not what & {"weights", "qk", "statistics"}
    what |= {"weights", "qk"} if is_bare else set()
    is_auto = is_bare or keep == "auto"
    return KeepChoice(what, is_auto, precision, rows, top, bool(routers), chosen)


def _parse_what(keep: Any) -> frozenset[str]:
    if isinstance(keep, str) and keep == "auto":
        return frozenset({"weights", "qk", "values"})
    # A string is a collection too, of its letters; a single name must not be split into them.
    names = [keep] if isinstance(keep, str) or not isinstance(keep, Collection) else keep
    what = frozenset(map(str, names))
    if not what or what - set(get_args(Keepable)):
        raise CaptureError(
            f"keep must be 'auto', or one or several of {', '.join(get_args(Keepable))}; "
            f"not {keep!r}"
        )
    if what <= {"values", "before"}:
        alone = "values" if "values" in what else "queries and keys before positions"
        raise CaptureError(
            f"{alone} alone have no attention in them; keep 'qk', 'weights' or 'statistics' too"
        )
    return what


def _check_rows(what: frozenset[str], rows: Any, top: Any) -> None:
    """Raise if ``rows`` or ``top`` is no whole number, or is given without the statistics."""
    if "statistics" not in what and (rows is not None or top):
        raise CaptureError("rows and top belong to the statistics; add keep='statistics'")
    for name, number, least in (("rows", rows, 2), ("top", top, 0)):
        if number is not None:
            check_count(name, number, least)


check_count: Callable[..., int] = partial(checked_count, error=CaptureError)


HOW = (
    "give pairs of layer and head, heads=[(12, 7), (3, 0)], or with the stack first, "
    "heads=[('cross', 3, 0)]"
)


class NoSuchHeadsError(CaptureError):
    """Heads that the model does not have, whatever its input is."""


@dataclass(frozen=True)
class ChosenHeads:
    """The heads of ``capture(heads=...)``.

    Args:
        heads: for each head the name of its stack, where one was given, its layer and its number.
    """

    heads: tuple[tuple[str | None, int, int], ...]

    def of_layer(self, layer: int, stack: str, *, most: int) -> tuple[int, ...]:
        """Numbers of the chosen heads of a layer with so many heads, ascending."""
        heads = {
            head for name, number, head in self.heads if number == layer and name in (None, stack)
        }
        return tuple(sorted(head for head in heads if head < most))

    def check(self, there: Mapping[str, Mapping[int, int]]) -> None:
        """Raise where one of the heads does not exist.

        Args:
            there: the number of heads of each layer, by stack.

        Raises:
            NoSuchHeadsError: naming it, and the layers or heads that there are.
        """
        for name, layer, head in self.heads:
            given = f"heads={[(layer, head) if name is None else (name, layer, head)]}"
            if name is not None and name not in there:
                raise NoSuchHeadsError(
                    f"{given}: this model has the stacks {', '.join(map(repr, there))}"
                )
            stacks = list(there.values()) if name is None else [there[name]]
            counts = [layers[layer] for layers in stacks if layer in layers]
            if not counts:
                numbers = sorted(set().union(*stacks))
                raise NoSuchHeadsError(
                    f"{given}: there are the layers {', '.join(map(str, numbers))}"
                )
            # A head without a stack is looked for in all stacks, and must exist in at least one.
            if head >= max(counts):
                raise NoSuchHeadsError(f"{given}: layer {layer} has heads 0 to {max(counts) - 1}")


def parse_heads(given: Any) -> ChosenHeads | None:
    """The option ``heads``; None where all are kept.

    Raises:
        CaptureError: where it is not a list of layers and heads.
    """
    if given is None:
        return None
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise CaptureError(f"heads={given!r}: {HOW}")
    heads = tuple(_parsed(each) for each in given)
    if not heads:
        raise CaptureError(f"heads=[] would keep nothing; {HOW}")
    return ChosenHeads(heads)


def _parsed(given: Any) -> tuple[str | None, int, int]:
    # A string can be iterated like a pair, but holds letters and not numbers.
    is_listed = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    parts = list(given) if is_listed else []
    stack = parts.pop(0) if len(parts) == 3 and isinstance(parts[0], str) else None
    if len(parts) != 2 or not all(map(is_whole, parts)):
        raise CaptureError(f"heads holds {given!r}: {HOW}")
    return stack, int(parts[0]), int(parts[1])


def held_heads(call: Call, numbers: tuple[int, ...]) -> HeldHeads | None:
    """The description of the heads that a layer holds; None where it holds all."""
    heads = call.size[1]
    return None if len(numbers) == heads else HeldHeads(numbers, heads, call.value.shape[1])


def each_once(tensor: torch.Tensor, held: HeldHeads | None) -> torch.Tensor:
    """``[text kv_head key feature]`` of the key/value heads that are held, each once: see
    `headscope.capturing.calls.call.of_heads`.
    """
    if held is None or tensor.shape[1] == len(held.kv_numbers):
        return tensor
    shared = [number * held.kv_heads // held.heads for number in held.numbers]
    return tensor[:, [shared.index(number) for number in held.kv_numbers]]
