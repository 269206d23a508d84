"""The size of a capture, estimated before it is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from typing_extensions import Unpack

from headscope.capturing.entry import prepared
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.parse import parse_call
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.capturing.media.input_positions import UnnamedPositions
from headscope.capturing.options import CaptureOptions, check_options, keeping_of
from headscope.capturing.run import at_rest, run
from headscope.record import CONTRIBUTION_KINDS, Layer, Record

TRIED = (8, 7, 6)
"""Numbers of tokens to try for source and target, so that both always have different numbers."""
STATISTICS_OF_A_ROW, STATISTICS_OF_A_KEY, TOP_OF_A_ROW = 52, 4, 8
"""Bytes for each head: see `headscope.record.Statistics`."""
FLOAT, NORMS_OF_A_ROW = 4, 4
"""Bytes of a norm, and how many each query has beside its maps: see
`headscope.record.Contributions`.
"""


@dataclass(frozen=True)
class Budget:
    """Bytes of each part of a record, and bytes that the given options would keep.

    Args:
        qk: queries and keys, and what is added to the scores.
        values: values.
        weights: weights.
        statistics: statistics of the rows.
        kept: bytes of all parts that the options keep.
        what: names of these parts.
        norms: value norms and contributions, at most.
        before: queries and keys before positions, at most.
    """

    qk: int
    values: int
    weights: int
    statistics: int
    kept: int
    what: tuple[str, ...]
    norms: int = 0
    before: int = 0

    def __str__(self) -> str:
        names = {
            "qk": "queries and keys",
            "values": "values",
            "weights": "weights",
            "statistics": "statistics",
        }
        parts, rest = [], []
        for name, text in names.items():
            line = f"{text} {_size(getattr(self, name))}"
            (parts if name in self.what else rest).append(line)
        # These two are rarely asked for, so what they would take is not printed.
        if "before" in self.what:
            parts.append(f"queries and keys before positions {_size(self.before)}")
        if "norms" in self.what:
            parts.append(f"norms {_size(self.norms)}")
        left_out = f"; not {', '.join(rest)}" if rest else ""
        return f"keeps {_size(self.kept)}: {', '.join(parts)}{left_out}"


def budget(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    text_pair: str | None = None,
    **options: Unpack[CaptureOptions],
) -> Budget:
    """The number of bytes that `capture` would keep with the same arguments, found by running the
    first few tokens.

    A picture or a sound is run as a whole, because it cannot be cut.

    Args:
        model: see `capture`.
        tokenizer: see `capture`.
        text: see `capture`.
        text_pair: see `capture`.
        **options: see `CaptureOptions`.

    Raises:
        HeadscopeError: the errors of `capture`.

    Example:
        >>> print(budget(model, tokenizer, "The cat sat.", keep="qk"))
        keeps 18 kB: queries and keys 18 kB; not values 9.2 kB, weights 3.6 kB, statistics 9.4 kB
    """
    keeping = keeping_of(options)
    check_options(options)
    given = parse_call(text, text_pair, options)
    model, inputs = prepared(model, tokenizer, given, options)
    tried, sizes = _cut(inputs)
    # Queries, keys and values have the shapes from which all other sizes follow.
    kept = KeepChoice(frozenset({"qk", "values"}), auto=False, heads=keeping.heads)
    with at_rest(model):
        try:
            record = run(model, tried, kept, numbers=False)[0]
        except UnnamedPositions:
            # The model makes positions of its own from tokens, and their number for a part of the
            # text does not determine their number for all of it.
            record, sizes = run(model, inputs, kept)[0], {}
    return _counted(record, sizes, keeping)


def _cut(inputs: Inputs) -> tuple[Inputs, dict[int, int]]:
    """The first tokens of source and target, and the whole number of tokens by the number left."""
    if inputs.input_positions is not None:
        return inputs, {}
    whole = {"source": len(inputs.source[0])}
    if inputs.target:
        whole["target"] = len(inputs.target[0])
    left = _left_of(whole)
    arguments = {}
    for name, tensor in inputs.arguments.items():
        arguments[name] = _shortened(name, tensor, whole, left)
    source = tuple(tokens.take(range(left["source"])) for tokens in inputs.source)
    target = tuple(tokens.take(range(left["target"])) for tokens in inputs.target)
    return Inputs(arguments, source, target), {left[side]: size for side, size in whole.items()}


def _left_of(whole: dict[str, int]) -> dict[str, int]:
    """The number of tokens of source and target that are run."""
    # A layer's queries and keys are assigned to source or target by their number alone, so the two
    # must differ.
    left = {}
    for side, size in whole.items():
        left[side] = _first_but(whole.values()) if size > TRIED[0] else size
    if len(left) == 2 and left["source"] == left["target"] and whole["source"] != whole["target"]:
        left["target"] = _first_but((left["source"], *whole.values()))
    return left


def _first_but(taken: Iterable[int]) -> int:
    others = set(taken)
    return next(number for number in TRIED if number not in others)


def _shortened(
    name: str, tensor: torch.Tensor, whole: dict[str, int], left: dict[str, int]
) -> torch.Tensor:
    side = "target" if name.startswith("decoder_") else "source"
    return (
        tensor[:, : left[side]] if tensor.ndim == 2 and tensor.shape[1] == whole[side] else tensor
    )


def _counted(record: Record, sizes: dict[int, int], keeping: KeepChoice) -> Budget:
    parts = dict.fromkeys(("qk", "values", "weights", "statistics", "norms", "before"), 0)
    for stack in record.stacks.values():
        for layer in stack:
            queries = sizes.get(layer.size[0], layer.size[0])
            keys = sizes.get(layer.size[1], layer.size[1])
            for name, count in _of_layer(layer, queries, keys, keeping).items():
                parts[name] += count
    wanted = keeping.what
    if keeping.auto and parts["weights"] > WEIGHTS_KEPT_BELOW:
        wanted = wanted - {"weights"}
    what = tuple(name for name in parts if name in wanted)
    return Budget(**parts, kept=sum(parts[name] for name in what), what=what)


def _of_layer(layer: Layer, queries: int, keys: int, keeping: KeepChoice) -> dict[str, int]:
    item, heads, shared = keeping.dtype.itemsize, len(layer.head_numbers), layer.kv_heads
    if layer.held_heads is not None:
        shared = len(layer.held_heads.kv_numbers)
    weights = heads * queries * keys * item
    rows = queries if keeping.rows is None else min(keeping.rows, queries)
    sizes = {
        "weights": weights,
        # Where queries and keys cannot be seen, weights are kept in their place.
        "qk": 0 if "weights" in keeping.what else weights,
        "values": shared * keys * (0 if layer.values is None else layer.values.shape[2]) * item,
        "before": 0,
        "statistics": heads
        * (rows * (STATISTICS_OF_A_ROW + TOP_OF_A_ROW * keeping.top) + keys * STATISTICS_OF_A_KEY),
    }
    maps = len(CONTRIBUTION_KINDS) - ("alti" not in keeping.what)
    sizes["norms"] = FLOAT * (heads * keys + (maps * keys + NORMS_OF_A_ROW) * queries)
    if layer.queries is not None:
        bias = 0 if layer.bias is None else layer.bias.shape[0] * queries * keys
        sizes["before"] = layer.queries.shape[2] * (heads * queries + shared * keys) * item
        sizes["qk"] = sizes["before"] + bias * item
    return sizes


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count = count / 1000  # ty: ignore[invalid-assignment]
    return f"{count:.3g} GB"
