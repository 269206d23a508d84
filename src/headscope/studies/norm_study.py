"""The weight is not the contribution: Kobayashi's study of norms over many texts."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.corpus import REFUSED, Counts
from headscope.errors import RecordError
from headscope.evidence import interval_of_sums
from headscope.measures import spearman, token_class
from headscope.record import Layer, Record, Stack, Tokens
from headscope.results import TextTable
from headscope.storage import array_of
from headscope.studies.shared._fold import Fold, FoldResult, stack_of
from headscope.studies.shared._folded import folded_texts

SHOWN = {"cls": "[CLS]", "sep": "[SEP]", "first": "first", "stop": ". ,", "other": "other"}
FIELDS = ("quantity", "of", "layer", "mean", "low", "high", "texts")
SAYS = {
    "a ": "share of the weight of a row that goes to these tokens, mean over heads and texts",
    "||af||": "the same of the norms of what is added",
    "Spearman": "rank correlation of weight and ||f(x)||, all heads pooled",
    "mix ": (
        "mixing ratio: how much of a token's new state comes from others; W by weights, N by "
        "norms, Res with the residual, Ln after the norm"
    ),
    "||f||": "mean length of f(x) of these tokens",
    "expansion": "how much f lengthens what it takes",
}
"""The legend of the tables, by how their columns begin."""


def counts_of(text: Any, record: Record, *, stack: str | None = None) -> Counts:
    """The values of one text, and which of them there are: ``[row column]``, a column for each
    layer and one for all layers together.

    Args:
        text: that was read.
        record: captured with ``keep=("weights", "norms")``.
        stack: which stack of the record; by default the first.

    Raises:
        RecordError: where norms were not kept.
    """
    own = stack_of(record, stack)
    counts: dict[str, np.ndarray] = {}
    for layer in own:
        if layer.has("value_norms"):
            continue
        if layer.contributions is None:
            raise RecordError(
                "A text was captured without norms; capture with keep=('weights', 'norms')"
            )
        counts[f"{REFUSED}{layer.layer}/{layer.contributions.missing['attention']}"] = np.array(1)
    values = values_of(own)
    return counts | {"values": np.nan_to_num(values), "known": (~np.isnan(values)).astype(np.int64)}


class NormStudy(FoldResult):
    """What was counted; prints itself as tables, is added to others of the same model, saved and
    resumed.

    Args:
        stack: which stack of the records; by default the first.
        confidence: of the intervals.

    Example:
        >>> study = NormStudy()
        >>> study
        <NormStudy of 0 texts>
    """

    KIND: ClassVar[str] = "norm study"
    HOW: ClassVar[dict[str, Any]] = {"stack": (str, None)}

    def __init__(self, *, stack: str | None = None, confidence: float = 0.95) -> None:
        super().__init__({"stack": stack}, {"confidence": confidence})

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        shape = len(self.sums.rows), len(ROWS), len(self.layers) + 1
        array_of(arrays, "counts.values", "f", shape)
        array_of(arrays, "counts.known", "i", shape)

    @property
    def refused(self) -> dict[int, str]:
        """The layers whose norms were not to be had, and why."""
        return {int(layer): reason for layer, reason in self.sums.refused.items()}

    @property
    def means(self) -> Float[np.ndarray, "row column"]:
        """Mean over texts, each weighing the same; NaN where none has a value."""
        if not self.texts:
            return np.full((len(ROWS), 1), np.nan)
        total, known = self.sums.total("values"), self.counts
        return np.divide(total, known, out=np.full(total.shape, np.nan), where=known > 0)

    @property
    def counts(self) -> Int[np.ndarray, "row column"]:
        """How many texts have a value."""
        return self.sums.total("known")

    def mean(self, row: str) -> Float[np.ndarray, " column"]:
        """Mean over texts of one of the rows: a value for each layer, and one for all layers
        together.

        Raises:
            RecordError: where there is no such row.
        """
        return self.means[_row(row)]

    @cached_property
    def intervals(self) -> Float[np.ndarray, "row column 2"]:
        """Interval of every mean over texts, or over documents where these are known."""
        sums, known = self.sums["values"], self.sums["known"]
        return interval_of_sums(sums, known, confidence=self.confidence)

    def interval(self, row: str) -> Float[np.ndarray, "column 2"]:
        """The interval of `mean`."""
        return self.intervals[_row(row)]

    def shares(self, by: str) -> Float[np.ndarray, "class column"]:
        """Share of each class of `CLASSES`, ``"weight"`` or ``"norm"``; each column sums to 1."""
        return np.stack([self.mean(f"share by {by}: {name}") for name in CLASSES])

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that any text has a token of."""
        # A class without tokens has no mean length in any layer, while its shares are 0.
        there = [~np.isnan(self.mean(f"length of f: {name}")).all() for name in CLASSES]
        return tuple(name for name, is_there in zip(CLASSES, there, strict=True) if is_there)

    def columns(self) -> dict[str, list[Any]]:
        """Every mean with its interval as a table, one list for each column.

        With a model with random weights beside it, ``random_mean`` is its own.
        """
        means, counts = self.means, self.counts
        columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
        for number, row in enumerate(ROWS):
            quantity, _, of = row.partition(": ")
            for column, layer in enumerate((*self.layers, None)):
                ends, count = self.intervals[number, column].tolist(), int(counts[number, column])
                cells = (quantity, of, layer, float(means[number, column]), *ends, count)
                for name, cell in zip(FIELDS, cells, strict=True):
                    columns[name].append(cell)
        if self.control is not None:
            columns["random_mean"] = self.control.means.ravel().tolist()
            columns["random_low"] = self.control.intervals[..., 0].ravel().tolist()
            columns["random_high"] = self.control.intervals[..., 1].ravel().tolist()
        return columns

    def __repr__(self) -> str:
        return f"<NormStudy of {self.texts} texts>"

    def _blocks(self) -> list[TextTable | str]:
        if not self.texts:
            return []
        refused = [f"layer {layer} is left out: {reason}" for layer, reason in self.refused.items()]
        blocks: list[TextTable | str] = [self._main_table(), *self._mixing_table(), *refused]
        if self.control is not None:
            title = f"The same architecture with random weights:\n{self.control.summary}"
            blocks += [title, self.control._main_table()]
        return blocks

    @property
    def summary(self) -> str:
        """Shares of the classes of tokens by weight and by norm, and how these go together."""
        if not self.texts:
            return repr(self)
        length = self.length_text
        model = self.model or "a model"
        first = f"{model}: {len(self.layers)} layers, {self.texts} texts, {length}"
        # Texts of one document are alike, so that documents are drawn where they are known.
        documents = self.sums.documents
        over = "texts" if documents == self.texts else f"{documents} documents"
        level = f"{self.confidence:.0%} interval over {over}"
        pooled = self._ranks("all heads pooled", "spearman")
        within = self._ranks("within heads", "spearman within heads")
        return "\n".join([f"{first}; [{level}]", *map(self._shares, BY), *pooled, *within])

    def _shares(self, by: str) -> str:
        """The shares of the classes over all layers, in a line."""
        cells = []
        for name in self.classes:
            cells.append(f"{SHOWN[name]} {self._with_interval(f'share by {by}: {name}')}")
        return f"all layers by {by}: {', '.join(cells)}"

    def _ranks(self, what: str, row: str) -> list[str]:
        """Rank correlations of the classes in a line; none where no class has any."""
        cells = []
        for name in (*self.classes, ALL):
            if not np.isnan(self.mean(f"{row}: {name}")[-1]):
                cells.append(f"{SHOWN.get(name, name)} {self._with_interval(f'{row}: {name}')}")
        return [f"Spearman of weight and ||f||, {what}: {', '.join(cells)}"] if cells else []

    def _main_table(self) -> TextTable:
        columns = {}
        for title, by in (("a", "weight"), ("||af||", "norm")):
            columns |= {f"{title} {SHOWN[name]}": f"share by {by}: {name}" for name in self.classes}
        columns["Spearman"] = f"spearman: {ALL}"
        titles = ("mix W", "mix N", "mix ResN", "mix ResLnN")
        columns |= {
            title: f"mixing {kind}: {ALL}" for title, kind in zip(titles, MIXINGS, strict=True)
        }
        return self._table(columns | {"expansion": "expansion"})

    def _mixing_table(self) -> list[TextTable]:
        columns = {f"mix ResLnN {SHOWN[name]}": f"mixing output: {name}" for name in self.classes}
        # These are missing where contributions to the layer's output were not to be had.
        if np.isnan([self.mean(row) for row in columns.values()]).all():
            return []
        columns |= {f"||f|| {SHOWN[name]}": f"length of f: {name}" for name in self.classes}
        return [self._table(columns)]

    def _table(self, columns: dict[str, str]) -> TextTable:
        """Layers, and rows of values by the titles of their columns."""
        lines = [["layer", *columns]]
        for at, label in enumerate([*map(str, self.layers), ALL]):
            lines.append([label, *(_cell(row, self.mean(row)[at]) for row in columns.values())])
        says: dict[str, str] = {}
        for name, (start, words) in product(columns, SAYS.items()):
            # Of columns that say the same the first alone.
            if name.startswith(start) and words not in says.values():
                says[name] = words
        return TextTable.of_rows(lines, says=says, align="right")

    def _with_interval(self, row: str) -> str:
        mean, (low, high) = self.mean(row)[-1], self.interval(row)[-1]
        ends = "" if np.isnan(low) else f" [{_cell(row, low)}, {_cell(row, high)}]"
        return f"{_cell(row, mean)}{ends}"


FOLD = NormStudy.FOLD = Fold(
    name="norm_study",
    what="text",
    counts_of=counts_of,
    result_of=NormStudy.of_sums,
    keep=("weights", "norms"),
)


def norm_study(
    records: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    stack: str | None = None,
    confidence: float = 0.95,
    random_weights: bool = False,
    **options: Any,
) -> NormStudy:
    """How much special tokens, punctuation and words are looked at, and how much they add, layer by
    layer.

    Of each text and layer: ``share by weight`` and ``share by norm``, the mean over heads and
    queries of a class's part in a row of a, and of ``||a f(x_j)||`` divided by the row's sum;
    ``length of f``, mean ``||f(x_j)||`` over heads and tokens; ``spearman``, rank correlation over
    heads and tokens of ``||f(x_j)||`` and the mean weight that a token gets from those that may
    look at it, and ``spearman within heads``, the same in each head by itself, mean over heads (the
    first also sees that heads differ); ``mixing``, mean mixing ratio by weights, Attn-N, AttnRes-N
    and AttnResLn-N; ``expansion``. Then the mean over texts, each weighing the same. For all layers
    together shares are means and ranks are computed again.

    Source: Kobayashi et al. 2020, sections 3 and 4; Kobayashi et al. 2021, sections 4 and 5. There
    texts are cut to 128 tokens, some of them masked in the second paper, and norms are not divided
    by the row's sum.

    Args:
        records: one for each text, captured with ``keep=("weights", "norms")``; or a model, loaded,
            by name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        texts: a text, or texts and pairs of them, for the model to read.
        stack: which stack of the records; by default the first.
        confidence: of the intervals.
        random_weights: whether the same architecture with random weights reads the texts, too:
            ``control`` of the result.
        **options: ``groups``, the document that each text is of, so that intervals are over
            documents; with a model ``truncate``, ``batch_tokens``, ``progress`` and ``on_error`` of
            `capture_many`; ``out``, ``workers``, ``executor`` and ``part_size`` of
            `headscope.corpus.RunOptions`, for a run in parts, see docs page "Over many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        RecordError: where there is no record, norms were not kept, or random weights are asked of
            records.
        CaptureError: a model whose attention cannot be captured.

    Example:
        >>> norm_study(capture_many(model, tokenizer, texts, keep=("weights", "norms")))
        <NormStudy of 300 texts>
    """
    # Before the run: whatever is wrong with the options is said here.
    asked, readers = NormStudy(stack=stack, confidence=confidence), (records, tokenizer)
    return folded_texts(asked, readers, texts, options, random_weights=random_weights)


def _row(name: str) -> int:
    if name not in ROWS:
        raise RecordError(f"The study has no row {name!r}; it has {', '.join(ROWS)}")
    return ROWS.index(name)


def _cell(row: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{100 * value:.1f} %" if row.startswith(("share", "mixing")) else f"{value:.2f}"


CLASSES = ("cls", "sep", "first", "stop", "other")
"""Kobayashi's classes of tokens ([CLS], [SEP], "." or ",", other) and, where it is none of these,
the first token.
"""
MIXINGS = ("weights", "attention", "residual", "output")
"""Attn-W, Attn-N, AttnRes-N, AttnResLn-N."""
ALL = "all"
BY = ("weight", "norm")
ROWS = (
    *(f"share by {by}: {name}" for by in BY for name in CLASSES),
    *(f"length of f: {name}" for name in CLASSES),
    *(f"spearman: {name}" for name in (*CLASSES, ALL)),
    *(f"mixing {kind}: {name}" for kind in MIXINGS for name in (*CLASSES, ALL)),
    "expansion",
    *(f"spearman within heads: {name}" for name in (*CLASSES, ALL)),
)
"""The rows of values; see `norm_study`."""

Classes = dict[str, Bool[np.ndarray, " token"]]


def classes_of(tokens: Tokens) -> Classes:
    """The tokens of each class; every token is in one."""
    classes = {name: token_class(tokens, name) for name in ("cls", "sep", "first", "stop")}
    # In one class each: a full stop that begins a text counts as the first token, and a [CLS] that
    # does so as a [CLS].
    classes["stop"] = classes["stop"] & ~classes["first"]
    classes["first"] = classes["first"] & ~classes["cls"] & ~classes["sep"]
    classes["other"] = ~np.any(list(classes.values()), axis=0)
    return {name: classes[name] for name in CLASSES}


def values_of(stack: Stack) -> Float[np.ndarray, "row column"]:
    """The rows of one text; a column for each layer and one for all layers together."""
    keys, queries = (
        classes_of(side) | {ALL: np.ones(len(side), bool)} for side in (stack.key, stack.query)
    )
    values_of_text = np.full((len(ROWS), len(stack) + 1), np.nan)
    ranked: list[tuple[np.ndarray, np.ndarray]] = []
    for column, layer in enumerate(stack):
        if not layer.has("value_norms"):
            continue
        weights = np.asarray(layer.weights_of(), np.float64)
        lengths = np.asarray(layer.value_norms, np.float64)
        ranked.append((_looked_at(weights, layer), lengths))
        values = _shares(weights, lengths, keys) | _agreement([ranked[-1]], keys)
        values |= _within_heads(ranked[-1], keys)
        for name, chosen in keys.items():
            values[f"length of f: {name}"] = _mean(lengths[:, chosen])
        values |= _mixing(layer, weights, queries, is_self=stack.query == stack.key)
        values_of_text[:, column] = [values[row] for row in ROWS]
    values_of_text[:, -1] = [_mean(row[:-1]) for row in values_of_text]
    # Ranks of all layers together are taken anew: a mean of rank correlations is none.
    for row, value in _agreement(ranked, keys).items():
        values_of_text[ROWS.index(row), -1] = value
    return values_of_text


def _mean(values: np.ndarray) -> float:
    """Of those that are known; NaN where none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan


def _shares(
    weights: Float[np.ndarray, "head query key"],
    lengths: Float[np.ndarray, "head key"],
    keys: Classes,
) -> dict[str, float]:
    """Mean over heads and queries of the share that each class has in a row, by weight and by
    norm.
    """
    shares = {}
    for by, maps in zip(BY, (weights, weights * lengths[:, None]), strict=True):
        sums = maps.sum(-1)
        for name, chosen in keys.items():
            own = maps[..., chosen].sum(-1)
            shares[f"share by {by}: {name}"] = _mean(own[sums > 0] / sums[sums > 0])
    return shares


def _looked_at(
    weights: Float[np.ndarray, "head query key"], layer: Layer
) -> Float[np.ndarray, "head key"]:
    """Mean weight that each key gets from the queries that may look at it."""
    if layer.visible.is_full:
        return weights.mean(axis=1)
    # Under a causal mask early keys are seen by more queries; a plain mean would rank them higher.
    seeing = np.maximum(layer.visible.dense().sum(axis=0), 1)
    return weights.sum(axis=1) / seeing


def _agreement(ranked: list[tuple[np.ndarray, np.ndarray]], keys: Classes) -> dict[str, float]:
    """Spearman of weight and length over all heads and tokens of a class, in all layers given."""
    ranks = {}
    for name, chosen in keys.items():
        one, two = (
            np.concatenate([pair[part][:, chosen].ravel() for pair in ranked] or [[]])
            for part in (0, 1)
        )
        ranks[f"spearman: {name}"] = spearman(one, two) if len(one) > 2 else np.nan
    return ranks


def _within_heads(pair: tuple[np.ndarray, np.ndarray], keys: Classes) -> dict[str, float]:
    """Spearman of weight and length over the tokens of a class in each head, mean over heads."""
    ranks = {}
    for name, chosen in keys.items():
        heads = zip(*(part[:, chosen] for part in pair), strict=True)
        own = [spearman(*head) for head in heads] if chosen.sum() > 2 else []
        ranks[f"spearman within heads: {name}"] = _mean(np.array(own))
    return ranks


def _mixing(
    layer: Layer, weights: np.ndarray, queries: Classes, *, is_self: bool
) -> dict[str, float]:
    added, ratios = layer.contributions, {}
    if is_self:
        mean = weights.mean(axis=0)
        ratios["weights"] = mean.sum(-1) - np.diagonal(mean)
    mixing: dict[str, float] = {"expansion": np.nan}
    if added is not None:
        ratios |= {kind: getattr(added, f"mixing_{kind}") for kind in MIXINGS[1:]}
        mixing["expansion"] = np.nan if added.expansion is None else added.expansion
    for kind in MIXINGS:
        for name, chosen in queries.items():
            known = ratios.get(kind)
            own = np.zeros(0) if known is None else np.asarray(known)[chosen]
            mixing[f"mixing {kind}: {name}"] = _mean(own)
    return mixing
