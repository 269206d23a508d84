"""What is known of a tensor on its way from a product of queries and keys to the weights."""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

TIMES = {"mul", "__mul__", "__rmul__", "mul_"}
OVER = {"div", "__truediv__", "div_", "true_divide"}
FACTORS = TIMES | OVER
ADDITIONS = {"add", "add_"}
VIEWS = {"view", "reshape", "unflatten", "flatten", "transpose", "contiguous", "to", "float"}
"""Functions that leave the numbers as they are, but for their precision."""
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d"}
ENDS = re.compile(
    r"(bi)?linear|addmm|embedding|conv(_transpose)?[123]d|normalize|"
    r"(layer|rms|group|batch|instance)_norm|local_response_norm"
)
"""Functions whose result is something new: what is known of their arguments ends there."""
PRODUCTS_REMEMBERED = 4


class Product(NamedTuple):
    """Queries times keys, the result having been multiplied with ``scale`` since.

    Args:
        query: ``[batch head query feature]``.
        key: ``[batch kv_head key feature]``.
        scale: product of the numbers that the result was multiplied with.
        turned: whether the result has the axes ``[... key query]`` by now; None where these are not
            its last ones.
        exchanged: whether the factor that came first in the product are the keys.
    """

    query: torch.Tensor
    key: torch.Tensor
    scale: float = 1.0
    turned: bool | None = False
    exchanged: bool = False

    def done(self, factor: float, *, turned: bool) -> Product:
        """After the result was multiplied with a number, or its last two axes were exchanged."""
        exchanged = self.turned if self.turned is None else self.turned != turned
        return self._replace(scale=self.scale * factor, turned=exchanged)

    def keys_on(self, axis: int) -> Product:
        """With the roles of queries and keys such that the keys lie on an axis of the result, -1 or
        -2.
        """
        if self.turned is None or (axis == -2) == self.turned:
            return self
        return self._replace(query=self.key, key=self.query, turned=False, exchanged=True)


Step = tuple[Any, ...]
"""What was done to a product: equal where the same was done. A tensor that was added is where it
lies in memory, its form and its version.
"""


def addition(added: Any, factor: float = 1.0) -> Step | None:
    """The step in which a tensor or a number is added; None for a tensor that does not tell whether
    it was changed.
    """
    if isinstance(added, torch.Tensor):
        if added.is_inference():
            return None
        form = added.shape, added.stride(), added.dtype
        return ("+", factor, added.data_ptr(), added._version, *form)
    return ("+", added) if isinstance(added, int | float) else None


class ScoreTrace(NamedTuple):
    """Scores, or the weights that a softmax made of them.

    Args:
        products: that went into the scores, the first being the one that the others were added to.
        scores: what went into the softmax; None as long as there was none.
        sizes: numbers of queries and keys of each product; empty where one was of a form that is
            not understood.
        axis: the axis of the softmax, -1 or -2; other axes are not followed.
        turned: whether the weights were turned since the softmax.
        steps: from the one product to the scores; None where there are several, or more was done
            than multiplying with numbers, adding, and laying out otherwise.
        added: tensors that were added; held, so that no others come to lie where they do.
        adds_up: whether the first product is no outer one, as of positions and frequencies.
        unread: name of the module that made the product out of another one; None where it did not.
    """

    products: tuple[Product, ...] = ()
    scores: torch.Tensor | None = None
    sizes: tuple[tuple[int, int], ...] = ()
    axis: int = -1
    turned: bool = False
    steps: tuple[Step, ...] | None = None
    added: tuple[torch.Tensor, ...] = ()
    adds_up: bool = False
    unread: str | None = None

    @property
    def is_weights(self) -> bool:
        """Whether a softmax was taken."""
        return self.scores is not None

    @property
    def key_axis(self) -> int:
        """The axis of the weights, -1 or -2, along which they sum to 1."""
        return -3 - self.axis if self.turned else self.axis

    def softmax(self, scores: torch.Tensor, axis: int) -> ScoreTrace:
        """What is known of the weights that a softmax along an axis makes of these scores.

        The axis of the softmax is that of the keys, whichever of both factors came first in the
        product.
        """
        axis = axis - scores.ndim if axis >= 0 else axis
        if axis not in (-1, -2):
            return self._replace(scores=scores)
        products = tuple([product.keys_on(axis) for product in self.products])
        sizes = self.sizes if axis == -1 else tuple([size[::-1] for size in self.sizes])
        return self._replace(products=products, scores=scores, sizes=sizes, axis=axis)

    def fits(self, weights: torch.Tensor) -> bool:
        """Whether weights ``[... query key]`` have the size of a product that they are taken to
        come from.
        """
        rows, columns = weights.shape[-2:]
        sizes = (*self.sizes, *(size[::-1] for size in self.sizes if self.turned))
        return not sizes or (rows, columns) in sizes


class KnownTensor(NamedTuple):
    """What is known of a tensor, the version that it had then, and what forgets it with it."""

    trace: ScoreTrace
    version: int
    forget: weakref.ref[torch.Tensor]


class ScoreTraces:
    """What is known of tensors, as long as they live."""

    def __init__(self) -> None:
        self._known: dict[int, KnownTensor] = {}

    def among(self, args: tuple) -> list[Any]:
        """Those arguments of a function of which something is known."""
        return [given for given in _flat(args) if id(given) in self._known] if self._known else []

    def of(self, tensor: Any, *, written: bool = False) -> ScoreTrace | None:
        """What is known of a tensor.

        Args:
            tensor: any object; nothing is known of most.
            written: whether the function that is running wrote to it.
        """
        known = self._known.get(id(tensor))
        if known is None:
            return None
        # What wrote to it unseen, as ``tensor[...] = 0`` does, did more than the known steps.
        is_as_known = _version(tensor) == known.version + written
        return known.trace if is_as_known else known.trace._replace(steps=None)

    def remember(self, tensor: torch.Tensor, trace: ScoreTrace) -> None:
        """Let this be known of a tensor."""
        if tensor.is_inference():
            trace = trace._replace(steps=None)
        # Before another tensor may come to have its id.
        forget = weakref.ref(tensor, partial(self._known.pop, id(tensor)))
        self._known[id(tensor)] = KnownTensor(trace, _version(tensor), forget)

    def pass_on(
        self, func: Any, args: tuple, options: dict[str, Any], result: torch.Tensor
    ) -> None:
        """Note what is known of the result of a function: what was done to scores gives scores,
        weights stay weights.

        Projections, convolutions and norms end it, but where they mix heads.
        """
        traced = self.among(args)
        if not traced:
            return
        first, name = traced[0], getattr(func, "__name__", "")
        if ENDS.fullmatch(name) and self._ends(name, (*args, options.get("weight")), result, first):
            return
        is_turned = _is_turned(first, result)
        trace = self._known[id(first)].trace
        if trace.is_weights:
            if result is not first:
                turned = trace.turned != is_turned
                self.remember(result, trace._replace(turned=turned) if is_turned else trace)
            return
        known = self.of(first, written=first is result and name.endswith("_")) or trace
        # Another product put to it in place is part of what is added.
        others = () if id(result) in self._known and name not in FACTORS else traced[1:]
        more = [self._known[id(other)].trace for other in others]
        factor, step, added = _done(func, args, options, first)
        done = known._replace(steps=None, added=())  # where it was more than one step
        if not (step is None or known.steps is None or traced[1:]):
            done = known._replace(steps=(*known.steps, step), added=(*known.added, *added))
        if more or is_turned or factor != 1:
            products, sizes = _together((known, *more), factor, is_turned=is_turned)
            done = done._replace(products=products, sizes=sizes)
        self.remember(result, done)

    def _ends(self, name: str, args: tuple, result: torch.Tensor, traced: torch.Tensor) -> bool:
        """Whether nothing is known of the result: it was projected, convolved or normalised, and
        not over heads alone.
        """
        given, trace = args[0], self._known[id(traced)].trace
        if given is not traced:
            return True
        if trace.is_weights:
            # Heads mixed after the softmax are reported where they are multiplied with values.
            return given.shape != result.shape
        if name == "linear" and given.ndim == 4:
            return given.shape != result.shape or tuple(given.shape[1:3]) not in trace.sizes
        if name in CONVOLUTIONS:
            is_local = args[1].shape[2:].numel() == 1
            return not is_local or tuple(result.shape[2:]) not in trace.sizes
        return True


def _flat(args: tuple) -> list[Any]:
    flat: list[Any] = []
    for given in args:
        flat += given if isinstance(given, list | tuple) else [given]
    return flat


def _is_turned(given: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a function exchanged the last two axes, by how both lie in memory."""
    if result is given or given.ndim != result.ndim or given.ndim < 2:
        return False
    before = given.shape[-2:], given.stride()[-2:]
    after = result.shape[:-3:-1], result.stride()[:-3:-1]
    # A square that is laid out the same in both directions is not turned.
    if before != after or before == (result.shape[-2:], result.stride()[-2:]):
        return False
    return storage_of(given) == storage_of(result)


def storage_of(tensor: torch.Tensor) -> int:
    """Where in memory the numbers of a tensor and of its views are."""
    return tensor.untyped_storage().data_ptr()


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _together(
    traces: Sequence[ScoreTrace], factor: float, *, is_turned: bool
) -> tuple[tuple[Product, ...], tuple[tuple[int, int], ...]]:
    """Products and sizes of what was made of scores.

    Args:
        traces: of these.
        factor: what they were multiplied with.
        is_turned: whether their last two axes were exchanged.
    """
    products: list[Product] = []
    # A dictionary keeps each size once, in the order in which they came.
    sizes: dict[tuple[int, int], None] = {}
    for trace in traces:
        for product in trace.products:
            products.append(product.done(factor, turned=is_turned))
        for size in trace.sizes:
            sizes[size[::-1] if is_turned else size] = None
    return tuple(products[:PRODUCTS_REMEMBERED]), tuple(sizes)


def _done(
    func: Any, args: tuple, options: dict[str, Any], traced: torch.Tensor
) -> tuple[float, Step | None, tuple[torch.Tensor, ...]]:
    """What a function multiplied a tensor with, its first argument or its second, what it did, None
    where that is more than a step, and the tensor that it added.
    """
    name, rest = getattr(func, "__name__", ""), (*args[1:], *options.values())
    other = args[0] if args[0] is not traced else next(iter(rest), None)
    if name in FACTORS:
        factor = _number(other, is_divisor=name in OVER)
        return (1.0, None, ()) if factor is None else (factor, ("*", factor), ())
    if name in ADDITIONS and len(rest) == 1:
        return 1.0, addition(other), (other,) if isinstance(other, torch.Tensor) else ()
    if name in VIEWS and not any(isinstance(given, torch.Tensor) for given in rest):
        return 1.0, (name, *rest), ()
    return 1.0, None, ()


def _number(given: Any, *, is_divisor: bool) -> float | None:
    """The factor that is given, also as a tensor, or as what is divided by; None for anything
    else.
    """
    if isinstance(given, torch.Tensor) and given.numel() == 1:
        given = given.item()
    if not isinstance(given, int | float):
        return None
    return 1 / given if is_divisor else float(given)
