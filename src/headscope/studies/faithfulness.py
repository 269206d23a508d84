"""Does attention show what influenced a prediction? Attention compared with gradients, with leaving
tokens out, and with counterfactual attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations, product
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.corpus import REFUSED, Counts, asks_for_run, key_of
from headscope.errors import HeadscopeError, RecordError
from headscope.evidence import interval_of_sums
from headscope.measures.erasure import SHARES, erasure  # noqa: F401 -- public as of studies
from headscope.results import TextTable
from headscope.storage import array_of
from headscope.studies.shared._fold import Fold, FoldResult, Readers, Reading, one_by_one
from headscope.studies.shared._folded import folded_texts

if TYPE_CHECKING:
    from headscope.studies._explainer import CounterfactualAttention, ExplainedText

SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out", "random")
AGAINST = ("gradient", "leave_one_out")
AGREEMENT = ("kendall", "spearman")
ERASURE = ("comprehensiveness", "sufficiency")
PERMUTED, ADVERSARIAL = "output moved, attention shuffled", "attention moved, output held"
Name = tuple[str, str, str]
"""A measure, a signal and what it is set against."""
SAYS = {
    "kendall, gradient": "rank correlation (tau-b) with gradient times input",
    "spearman, gradient": "the same by Spearman's rho",
    "kendall, leave_one_out": "rank correlation (tau-b) with the change when a token is left out",
    "spearman, leave_one_out": "the same by Spearman's rho",
    "comprehensiveness": (
        "what the answer loses without the tokens of the highest rank, mean over shares"
    ),
    "sufficiency": "what it loses with these alone",
}
"""The legend of the tables."""
FIELDS = ("measure", "signal", "against", "mean", "deviation", "low", "high", "texts")
ROWS: tuple[Name, ...] = (
    *((measure, *pair) for pair in combinations(SIGNALS, 2) for measure in AGREEMENT),
    *product(ERASURE, SIGNALS, ("", *map(str, SHARES))),
    (PERMUTED, "attention", ""),
    (ADVERSARIAL, "attention", ""),
    *(("has", signal, "") for signal in SIGNALS),
)
"""What is counted of every text: agreement of every two signals, what erasure does (on average, and
at each share), counterfactual attention, and which signals it has."""
PLACES = {name: number for number, name in enumerate(ROWS)}


def counts_of(text: Any, explained: ExplainedText, **_: Any) -> Counts:
    """The numbers of one text in the order of `ROWS`, their squares, and which of them there are.

    Args:
        text: that was read.
        explained: what mattered in it.
    """
    row = np.full(len(ROWS), np.nan)
    for first, second in combinations([name for name in SIGNALS if name in explained.signals], 2):
        agreements = explained.agreement(first, second)
        for measure, value in zip(AGREEMENT, agreements, strict=True):
            row[PLACES[measure, first, second]] = value
    for signal, erased in explained.erased.items():
        row[PLACES["has", signal, ""]] = 1
        for measure, curve in zip(ERASURE, erased, strict=True):
            first = PLACES[measure, signal, ""]
            row[first : first + 1 + len(SHARES)] = (curve.mean(), *curve)
    if len(explained.permuted):
        row[PLACES[PERMUTED, "attention", ""]] = np.median(explained.permuted)
    if explained.adversarial is not None:
        row[PLACES[ADVERSARIAL, "attention", ""]] = explained.adversarial
    known, values = ~np.isnan(row), np.nan_to_num(row)
    counts = {"values": values, "squares": values**2, "known": known.astype(np.int64)}
    reasons = [f"{REFUSED}{name}/{why}" for name, why in explained.missing.items()]
    return counts | dict.fromkeys(reasons, np.array(1))


class Faithfulness(FoldResult):
    """What `faithfulness` found; prints as tables of means over texts with their intervals, is
    added to others of the same model, and saved.

    Args:
        layer: whose attention was looked at; counted from the end where negative.
        query: whose row.
        counterfactual: how attention was changed.
        confidence: of the intervals over texts, or over their documents.
    """

    KIND: ClassVar[str] = "faithfulness"
    HOW: ClassVar[dict[str, Any]] = {
        "layer": int,
        "query": (int, str),
        "counterfactual": ({}, None),
    }

    def __init__(
        self,
        *,
        layer: int = -1,
        query: int | str = 0,
        counterfactual: Any = None,
        confidence: float = 0.95,
    ) -> None:
        how = {"layer": layer, "query": query, "counterfactual": counterfactual}
        if not isinstance(layer, Integral) or not isinstance(query, Integral | str):
            raise RecordError(
                f"layer is a whole number and query one or a word, not {layer!r} and {query!r}"
            )
        super().__init__(how, {"confidence": confidence})
        self.layer: int = layer
        self.explained: tuple[ExplainedText, ...] = ()
        """What mattered in each text, where all were explained in this process; not in files."""

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        shape = len(self.sums.rows), len(ROWS)
        for name, kind in (("values", "f"), ("squares", "f"), ("known", "i")):
            array_of(arrays, f"counts.{name}", kind, shape)

    @property
    def over(self) -> str:
        """What intervals are over: ``"texts"``, or ``"documents"``."""
        return "texts" if self.sums.documents == self.texts else "documents"

    @property
    def missing(self) -> dict[str, str]:
        """By name, why a signal cannot be had of the model."""
        return self.sums.refused

    @property
    def signals(self) -> tuple[str, ...]:
        """Those that could be had of every text."""
        count = self._count
        return tuple(name for name in SIGNALS if count[PLACES["has", name, ""]] == self.texts)

    @property
    def values(self) -> dict[Name, Float[np.ndarray, " document"]]:
        """One value for each text, or document of several, NaN for none, by measure, signal and
        what it is set against; of more than 512, for each of the groups that they are drawn in.
        """
        return {name: self._rows[:, _place(name)] for name in self.means}

    @cached_property
    def _rows(self) -> Float[np.ndarray, "document row"]:
        values, known = self.sums["values"], self.sums["known"]
        return np.divide(values, known, out=np.full(values.shape, np.nan), where=known > 0)

    def agreement(
        self, first: str = "attention", second: str = "gradient"
    ) -> Float[np.ndarray, "document 2"]:
        """Kendall's tau-b and Spearman's rho of two signals on each text, as `values`; NaN where
        one of them is all ties.

        Raises:
            RecordError: where one of them does not exist.
        """
        for signal in (first, second):
            if signal not in self.signals or first == second:
                raise RecordError(f"Give two of the signals {', '.join(self.signals)}")
        return self._rows[:, [_place((measure, first, second)) for measure in AGREEMENT]]

    @cached_property
    def means(self) -> dict[Name, tuple[float, float, float, float, int]]:
        """Mean over texts, standard deviation, lower and upper end of the interval, and number of
        texts, of everything that some text has: agreement of each signal with gradient and with
        leaving out, erasure, counterfactual attention.
        """
        names: list[Name] = []
        for against, signal in product(AGAINST, self.signals):
            if signal != against:
                names += [(measure, signal, against) for measure in AGREEMENT]
        names += [(measure, signal, "") for measure, signal in product(ERASURE, self.signals)]
        names += [(PERMUTED, "attention", ""), (ADVERSARIAL, "attention", "")]
        counts = self._count
        squares = self.sums.total("squares") / np.maximum(counts, 1)
        deviations = np.sqrt(np.maximum(squares - self._mean**2, 0))
        numbers = np.column_stack([self._mean, deviations, self._ends]).tolist()
        places = {name: _place(name) for name in names}
        return {
            name: (*numbers[place], int(counts[place]))
            for name, place in places.items()
            if counts[place]
        }

    def erasure(
        self, signal: str, measure: str = "comprehensiveness"
    ) -> Float[np.ndarray, "share 3"]:
        """What the answer loses at each of the `SHARES` of tokens: mean over texts, and ends of the
        interval.

        Args:
            signal: in whose order tokens are taken.
            measure: ``"comprehensiveness"``, without these tokens, or ``"sufficiency"``, with these
                alone.

        Raises:
            RecordError: a signal or measure that there is not.
        """
        if signal not in self.signals or measure not in ERASURE:
            raise RecordError(
                f"There is no {measure!r} by {signal!r}; there are {', '.join(ERASURE)} by "
                f"{', '.join(self.signals)}"
            )
        places = [PLACES[measure, signal, str(share)] for share in SHARES]
        return np.concatenate([self._mean[places, None], self._ends[places]], axis=1)

    @property
    def _count(self) -> Float[np.ndarray, " row"]:
        """How many texts have a value."""
        return self.sums.total("known") if self.texts else np.zeros(len(ROWS))

    @property
    def _mean(self) -> Float[np.ndarray, " row"]:
        total, known = self.sums.total("values"), self._count
        return np.divide(total, known, out=np.full(total.shape, np.nan), where=known > 0)

    @cached_property
    def _ends(self) -> Float[np.ndarray, "row 2"]:
        sums, known = self.sums["values"], self.sums["known"]
        return interval_of_sums(sums, known, confidence=self.confidence)

    def columns(self) -> dict[str, list[Any]]:
        """The summary as a table, one list for each column."""
        rows = [(*name, *numbers) for name, numbers in self.means.items()]
        columns = dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True))
        if self.control is not None:
            theirs = [self.control.means.get(name, (np.nan,) * 5) for name in self.means]
            for index, field in enumerate(FIELDS[3:-1]):
                columns[f"random_{field}"] = [row[index] for row in theirs]
        return columns

    def __repr__(self) -> str:
        return f"<Faithfulness of {self.texts} texts>"

    @property
    def summary(self) -> str:
        """How far attention agrees with the gradient and with leaving tokens out."""
        parts = []
        for against, words in zip(AGAINST, ("the gradient", "leaving tokens out"), strict=True):
            name = ("kendall", "attention", against)
            if name in self.means:
                parts.append(f"Kendall's tau {self.means[name][0]:.2f} with {words}")
        length = self.length_text
        texts = f"{self.texts} texts, {length} without special ones"
        agreement = " and ".join(parts) or "no rank correlation, since all ties"
        return f"{self.model or 'a model'}: {texts}. Attention has {agreement}"

    def _blocks(self) -> list[TextTable | str]:
        first = f"mean (standard deviation) [{self.confidence:.0%} interval over {self.over}]"
        missing = [f"{name} is left out: {why}" for name, why in self.missing.items()]
        blocks: list[TextTable | str] = [first, *_tables(self), "\n".join(missing)]
        if self.control is not None:
            blocks += ["The same with random weights:", *_tables(self.control)]
        return blocks


def _tables(result: Faithfulness) -> list[TextTable | str]:
    agreement = [
        (f"{measure}, {against}", measure, against)
        for against, measure in product(AGAINST, AGREEMENT)
    ]
    erased = [(measure, measure, "") for measure in ERASURE]
    lines = []
    for measure, unit in (
        (PERMUTED, "median total variation distance"),
        (ADVERSARIAL, "nats, log 2 at most"),
    ):
        name = (measure, "attention", "")
        if name in result.means:
            texts = result.means[name][-1]
            lines.append(f"{measure}: {_cell(result, name)} ({unit}; {texts} texts)")
    tables = [_table(result, "signal", agreement), _table(result, "erasure by", erased)]
    return [*tables, "\n".join(lines)]


def _table(result: Faithfulness, corner: str, columns: list[tuple[str, str, str]]) -> TextTable:
    rows = [[corner, *(title for title, _, _ in columns)]]
    for signal in result.signals:
        cells = [_cell(result, (measure, signal, against)) for _, measure, against in columns]
        rows.append([signal, *cells])
    return TextTable.of_rows(rows, align="right", says=SAYS)


def _cell(result: Faithfulness, name: Name) -> str:
    if name not in result.means:
        return "-"
    mean, deviation, low, high, _ = result.means[name]
    ends = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return f"{mean:.2f} ({deviation:.2f}){ends}"


def _place(name: Name) -> int:
    """The row of a number; two signals agree either way round."""
    measure, signal, against = name
    return PLACES[name] if name in PLACES else PLACES[measure, against, signal]


def _records_of(
    readers: Readers,
    given: Iterable[Any],
    how: Mapping[str, Any],
    reading: Reading,
    *,
    noted: list[list[ExplainedText]] | None = None,
) -> Iterator[tuple[int, ExplainedText]]:
    """What mattered in each text, one after the other.

    Args:
        readers: the classifier and its tokenizer.
        given: texts.
        how: layer, query and counterfactual attention.
        reading: see `Reading`.
        noted: takes them, too, where texts are read in their order.
    """
    from headscope.capturing.run import at_rest, unwrapped
    from headscope.studies._explainer import TextExplainer

    readers, drawn = (unwrapped(readers[0]), readers[1]), how["counterfactual"].seed
    own: list[ExplainedText] = []
    cuts: list[int] = []

    def read(_: int, text: Any) -> ExplainedText:
        # Draws belong to the text, whatever its place among the others.
        seed = key_of("explain", *text.texts, str(drawn), bits=32)
        text = replace(text, cuts=cuts)
        own.append(TextExplainer(readers, text, how, reading).run(seed))
        return own[-1]

    with at_rest(readers[0]):
        yield from one_by_one(given, read, reading, "Explaining")
    if noted is not None:
        noted.append(own)


def _told_of(explained: ExplainedText, _: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    return len(explained.pieces), explained.facts


def _check_fit(readers: Readers, *_: Any, allow_unfit: bool, **__: Any) -> None:
    """Raise where the classifier was not trained."""
    from headscope.capturing.fitness import CLASS, check_fit

    if not allow_unfit:
        check_fit(readers[0], CLASS)


FOLD = Faithfulness.FOLD = Fold(
    name="faithfulness",
    what="text",
    counts_of=counts_of,
    result_of=Faithfulness.of_sums,
    records_of=_records_of,
    told_of=_told_of,
    needs="classifier",
    check=_check_fit,
)


def faithfulness(
    model: Any,
    tokenizer: Any = None,
    texts: Iterable[Any] | None = None,
    *,
    layer: int = -1,
    query: int | str = 0,
    counterfactual: CounterfactualAttention | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> Faithfulness:
    """Compare what one token looks at with what mattered to a classifier.

    For each text, how much each token matters by these signals:

    - ``attention`` of the query, mean over the heads of a layer;
    - ``contribution``, ``||sum_h a f_h(x_j)||`` to the query in that layer (Kobayashi et al. 2020);
    - ``rollout`` of the weights (Abnar and Zuidema 2020) and ``alti`` (Ferrando et al. 2022), the
      query's row after that layer;
    - ``gradient`` times input, absolute, summed over classes, attention held constant in all
      layers;
    - ``leave_one_out``: mean change of the class probabilities without the token;
    - ``random``: one draw, for comparison.

    Each is set against gradient and leaving out by Kendall's tau-b and Spearman's rho (mid-ranks).
    Erasure by each signal; the output's total variation distance when the row is shuffled, median
    over shuffles; and the most different attention (Jensen-Shannon) in all heads of the layer that
    leaves the output where it was.

    Source: Jain and Wallace 2019 (gradients, leaving out, permutation, adversary: Adam 0.01 from 5
    starts, aimed at a distance of 0.01 and reported up to 0.05); DeYoung et al. 2020 (erasure,
    shares 1, 5, 10, 20, 50 %). They looked at the one attention layer of a BiLSTM; here it is a row
    of one layer among several, and special tokens, at which much of it looks, are left out of the
    ranks but keep their place in the rows. Tokens are left out as word pieces.

    Args:
        model: transformers' classifier (logits ``[example class]``, of which the softmax is taken),
            reading ``inputs_embeds`` as well as ids; or its name or folder.
        tokenizer: of the model; None where that is named.
        texts: texts or pairs, with at least two tokens that are not special.
        layer: whose attention; counted from the end where negative.
        query: whose row: the token that the classifier reads, by its position, 0 for [CLS] and -1
            for the last token of a text, or by its word, ``"[CLS]"``.
        counterfactual: how attention is changed to see what then happens to the output; by default
            100 shuffles and no adversary, which is slow.
        confidence: of the intervals.
        **options: ``groups``, the document that each text is of, so that intervals are over
            documents; ``truncate`` (False); ``random_weights``, for the same of this architecture
            with random weights, ``control`` of the result (False); ``progress``, for a bar on
            terminals (False); ``allow_unfit``, for a classifier that was not trained (False);
            ``on_error``, called with number and error of a text that cannot be explained: the rest
            goes on. By default that is a warning, and of a single text an error; ``out``,
            ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, for a run
            in parts, see docs page "Over many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        TextError: a text of fewer than two tokens that are not special, or too long.
        ModelError: a model that is not a classifier, or whose classifier was not trained.
        InterventionError: a layer that does not exist.
        RecordError: no text is left, or an option that there is not.

    Example:
        >>> print(
        ...     faithfulness(
        ...         classifier,
        ...         tokenizer,
        ...         texts,
        ...         counterfactual=CounterfactualAttention(adversary=500),
        ...     )
        ... )
    """
    from headscope.studies import _explainer

    changed = counterfactual or _explainer.CounterfactualAttention()
    if not isinstance(changed, _explainer.CounterfactualAttention):
        raise RecordError(f"counterfactual is a CounterfactualAttention, not {counterfactual!r}")
    asked = Faithfulness(layer=layer, query=query, counterfactual=changed, confidence=confidence)
    for name in ("batch_tokens", "batch_size"):
        if name in options:
            raise RecordError(f"faithfulness has no option {name!r}; it runs texts one by one")
    random_weights = options.pop("random_weights", False)
    noted: list[list[ExplainedText]] = []
    fold = FOLD
    if not asks_for_run(options):
        fold = replace(FOLD, records_of=partial(_records_of, noted=noted))
        if _is_one(texts):
            options.setdefault("on_error", _stop)
    texts, readers = () if texts is None else texts, (model, tokenizer)
    how: dict[str, Any] = {"random_weights": random_weights, "fold": fold}
    result = folded_texts(asked, readers, texts, options, **how)
    for each, own in zip((result, result.control), noted, strict=False):
        if each is not None:
            each.explained = tuple(own)
    return result


def _is_one(texts: Any) -> bool:
    """Whether a text was given, or a list with one in it."""
    from headscope.capturing.inputs.parse import several_of

    rows = several_of(texts)
    return isinstance(rows, list | tuple) and len(rows) == 1


def _stop(_: int, error: HeadscopeError) -> None:
    raise error
