"""The size of a record, estimated before the model is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice
from headscope.capturing.media.input_positions import UnnamedPositions
from headscope.capturing.run import at_rest, run
from headscope.errors import CaptureError
from headscope.record import CONTRIBUTION_KINDS, Layer, Record

PARTS = {
    **{"qk": "queries and keys", "values": "values", "weights": "weights"},
    **{"statistics": "statistics", "before": "queries and keys before positions", "norms": "norms"},
}
"""Parts of a record whose bytes are counted, and what they are."""
LONG = 2048
"""Tokens from which on it is asked first whether a record fits into memory."""
TRIED = (8, 7, 6)
"""Numbers of tokens to try for source and target, so that both always have different numbers."""
STATISTICS_OF_A_ROW, STATISTICS_OF_A_KEY, TOP_OF_A_ROW = 52, 4, 8
"""Bytes for each head: see `headscope.record.Statistics`."""
FLOAT, NORMS_OF_A_ROW = 4, 4
"""Bytes of a norm, and how many each query has in addition to its maps: see
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
        texts: number of inputs.
        largest: bytes that are kept of the largest of them.
    """

    qk: int
    values: int
    weights: int
    statistics: int
    kept: int
    what: tuple[str, ...]
    norms: int = 0
    before: int = 0
    texts: int = 1
    largest: int = 0

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """What is kept and what is not, in one line."""
        parts, rest = [], []
        for name, text in PARTS.items():
            line = f"{text} {_size(getattr(self, name))}"
            if name in self.what:
                parts.append(line)
            elif name not in ("before", "norms"):  # rarely asked for
                rest.append(line)
        left_out = f"; not {', '.join(rest)}" if rest else ""
        several = ""
        if self.texts > 1:
            several = f" of {self.texts:,} inputs, at most {_size(self.largest)} of one"
        return f"keeps {_size(self.kept)}{several}: {', '.join(parts)}{left_out}"


def budget_of(model: Any, inputs: Inputs, keeping: KeepChoice) -> Budget:
    """The budget of one input that is encoded."""
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
    return _counted(record, sizes, keeping, is_pair=is_pair(inputs))


def check_memory(model: Any, inputs: Inputs, keeping: KeepChoice) -> None:
    """Raise where a record of a long text would be larger than the memory that is free.

    Raises:
        CaptureError: with both sizes, and what to choose instead.
    """
    longest, told = max(map(len, inputs.source), default=0), Path("/proc/meminfo")
    # Only Linux tells how much is free.
    is_known = longest >= LONG and inputs.input_positions is None and told.exists()
    if keeping.put is not None or not is_known:
        return
    free = 1024 * int(told.read_text("utf-8").partition("MemAvailable:")[2].split()[0])
    budget = budget_of(model, inputs, keeping)
    if budget.kept > free:
        raise CaptureError(
            f"A record of {longest:,} tokens {budget}. There are {_size(free)} of memory free: "
            "keep='qk' keeps what weights follow from, keep='statistics' numbers of each row, "
            "heads= some heads, and out= writes the record to a file"
        )


def is_pair(inputs: Inputs) -> bool:
    """Whether an input is two texts, whose statistics have a column more."""
    return any(1 in tokens.segments for tokens in inputs.source)


def sum_of(budgets: list[Budget]) -> Budget:
    """The budget of several inputs."""
    # Of short texts alone `auto` keeps weights, so that what is kept differs from text to text.
    names = set().union(*(each.what for each in budgets))
    parts = {}
    for name in PARTS:
        counted = [each for each in budgets if name in each.what or name not in names]
        parts[name] = sum(getattr(each, name) for each in counted)
    kept = [each.kept for each in budgets]
    what = tuple(name for name in PARTS if name in names)
    return Budget(**parts, kept=sum(kept), what=what, texts=len(budgets), largest=max(kept))


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
        side = "target" if name.startswith("decoder_") else "source"
        is_of_tokens = tensor.ndim == 2 and tensor.shape[1] == whole[side]
        arguments[name] = tensor[:, : left[side]] if is_of_tokens else tensor
    source = tuple(tokens.take(range(left["source"])) for tokens in inputs.source)
    target = tuple(tokens.take(range(left["target"])) for tokens in inputs.target)
    return Inputs(arguments, source, target), {left[side]: size for side, size in whole.items()}


def _left_of(whole: dict[str, int]) -> dict[str, int]:
    """The number of tokens of source and target that are run."""
    left: dict[str, int] = {}
    for side, size in whole.items():
        # A layer's queries and keys are assigned to source or target by their number alone, so that
        # of two lengths two others are made.
        taken = {*whole.values(), *(() if size == whole["source"] else left.values())}
        shorter = next(number for number in TRIED if number not in taken)
        left[side] = shorter if size > TRIED[0] else size
    return left


def _counted(
    record: Record, sizes: dict[int, int], keeping: KeepChoice, *, is_pair: bool
) -> Budget:
    parts = dict.fromkeys(PARTS, 0)
    for stack in record.stacks.values():
        for layer in stack:
            queries = sizes.get(layer.size[0], layer.size[0])
            keys = sizes.get(layer.size[1], layer.size[1])
            for name, count in _of_layer(layer, queries, keys, keeping).items():
                parts[name] += count
            if is_pair:
                parts["statistics"] += FLOAT * len(layer.head_numbers) * _rows_of(queries, keeping)
    wanted = keeping.what
    if keeping.auto and parts["weights"] > WEIGHTS_KEPT_BELOW:
        wanted = wanted - {"weights"}
    what = tuple(name for name in parts if name in wanted)
    kept = sum(parts[name] for name in what)
    return Budget(**parts, kept=kept, what=what, largest=kept)


def _rows_of(queries: int, keeping: KeepChoice) -> int:
    """Number of queries that statistics are kept of."""
    return queries if keeping.rows is None else min(keeping.rows, queries)


def _of_layer(layer: Layer, queries: int, keys: int, keeping: KeepChoice) -> dict[str, int]:
    item, heads, shared = keeping.dtype.itemsize, len(layer.head_numbers), layer.kv_heads
    if layer.held_heads is not None:
        shared = len(layer.held_heads.kv_numbers)
    weights = heads * queries * keys * item
    width = 0 if layer.values is None else layer.values.shape[2]
    of_row = STATISTICS_OF_A_ROW + TOP_OF_A_ROW * keeping.top
    of_head = _rows_of(queries, keeping) * of_row + keys * STATISTICS_OF_A_KEY
    sizes = {
        "weights": weights,
        # Where queries and keys cannot be seen, weights are kept in their place.
        "qk": 0 if "weights" in keeping.what else weights,
        "values": shared * keys * width * item,
        "before": 0,
        "statistics": heads * of_head,
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
