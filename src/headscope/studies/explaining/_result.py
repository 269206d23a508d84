"""What attention agrees with in a classifier: what was found of each text, and what follows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import interval, length_text
from headscope.results import Kept, Result, TextTable
from headscope.studies.explaining._explained import SIGNALS, ExplainedText

AGAINST = ("gradient", "leave_one_out")
AGREEMENT = ("kendall", "spearman")
ERASURE = ("comprehensiveness", "sufficiency")
PERMUTED, ADVERSARIAL = "output moved, attention shuffled", "attention moved, output held"
FIELDS = ("measure", "signal", "against", "mean", "deviation", "low", "high", "texts")
Name = tuple[str, str, str]


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


class MeansOrSummary(dict[Name, tuple[float, float, float, float, int]]):
    """What `Faithfulness.summary` gives: called, a sentence; read as headscope 0.1 had it,
    `Faithfulness.means`.

    Args:
        means: by measure, signal and what it is set against.
        words: the sentence.
    """

    def __init__(
        self, means: Mapping[Name, tuple[float, float, float, float, int]], words: str
    ) -> None:
        super().__init__(means)
        self.words = words

    def __call__(self) -> str:
        """The sentence."""
        return self.words

    def __getitem__(self, name: Name) -> tuple[float, float, float, float, int]:
        warnings.warn(
            "Faithfulness.summary[...] is called means[...]", DeprecationWarning, stacklevel=2
        )
        return super().__getitem__(name)


@dataclass(frozen=True, eq=False)
class Faithfulness(Result):
    """What `faithfulness` found on each text; prints as tables of means over texts with their
    intervals.

    Args:
        texts: one by one.
        confidence: of the intervals over texts, or over their documents.
        model: its name.
        layer: whose attention was looked at; counted from the end where negative.
        control: the same of a classifier with random weights, where that was run.
        groups: the document that each text is of; None where nobody knows.
    """

    KIND: ClassVar[str] = "faithfulness"

    texts: tuple[ExplainedText, ...]
    confidence: float = 0.95
    model: str = ""
    layer: int = -1
    control: Faithfulness | None = None
    groups: tuple[Any, ...] | None = None

    def agreement(
        self, first: str = "attention", second: str = "gradient"
    ) -> Float[np.ndarray, "text 2"]:
        """Kendall's tau-b and Spearman's rho of two signals on each text; NaN where one of them is
        all ties.
        """
        return np.array([text.agreement(first, second) for text in self.texts])

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that could be had of every text."""
        return tuple(name for name in SIGNALS if all(name in text.signals for text in self.texts))

    @cached_property
    def values(self) -> dict[Name, Float[np.ndarray, " text"]]:
        """One value for each text, NaN for none, by measure, signal and what it is set against."""
        values = self._agreements() | self._erasures()
        moved = [np.median(text.permuted) if len(text.permuted) else np.nan for text in self.texts]
        apart = [np.nan if text.adversarial is None else text.adversarial for text in self.texts]
        values[PERMUTED, "attention", ""] = np.array(moved, float)
        values[ADVERSARIAL, "attention", ""] = np.array(apart, float)
        # What no text has a value of, such as where there was no adversary, is left out.
        return {name: column for name, column in values.items() if np.isfinite(column).any()}

    def _agreements(self) -> dict[Name, np.ndarray]:
        values: dict[Name, np.ndarray] = {}
        for against in AGAINST:
            for signal in self.signals:
                if signal == against:
                    continue
                columns = self.agreement(signal, against).T
                for measure, column in zip(AGREEMENT, columns, strict=True):
                    values[measure, signal, against] = column
        return values

    def _erasures(self) -> dict[Name, np.ndarray]:
        values: dict[Name, np.ndarray] = {}
        for measure in ERASURE:
            for signal in self.signals:
                column = [getattr(text, measure)[signal] for text in self.texts]
                values[measure, signal, ""] = np.array(column)
        return values

    @cached_property
    def means(self) -> dict[Name, tuple[float, float, float, float, int]]:
        """Of each of `values`: mean, standard deviation, lower and upper end of the interval, and
        number of texts.
        """
        ends = self._interval(np.stack(list(self.values.values()), axis=1))
        return {
            name: (
                float(np.nanmean(column)),
                float(np.nanstd(column)),
                float(low),
                float(high),
                _count(column),
            )
            for (name, column), (low, high) in zip(self.values.items(), ends, strict=True)
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
        values = np.stack([text.erased[signal][ERASURE.index(measure)] for text in self.texts])
        ends = self._interval(values)
        return np.concatenate([values.mean(axis=0)[:, None], ends], axis=1)

    def _interval(self, values: np.ndarray) -> np.ndarray:
        return interval(values, groups=self.groups, method="expanded", confidence=self.confidence)

    def columns(self) -> dict[str, list[Any]]:
        """The summary as a table, one list for each column."""
        rows = [(*name, *numbers) for name, numbers in self.means.items()]
        columns = {field: [row[index] for row in rows] for index, field in enumerate(FIELDS)}
        if self.control is not None:
            unknown = (np.nan,) * 4
            rows = [self.control.means.get(name, unknown) for name in self.means]
            for index, field in enumerate(("mean", "deviation", "low", "high")):
                columns[f"random_{field}"] = [row[index] for row in rows]
        return columns

    def _kept(self) -> Kept:
        from headscope.studies.explaining._file import kept_of

        return kept_of(self)

    def __repr__(self) -> str:
        return f"<Faithfulness of {len(self.texts)} texts>"

    @property
    def summary(self) -> MeansOrSummary:
        """How far attention agrees with the gradient and with leaving out; call it as of every
        result.

        headscope 0.1 had `means` here, which can be read from it for one version more, with a
        warning.
        """
        return MeansOrSummary(self.means, self._summary())

    def _summary(self) -> str:
        parts = []
        for against, words in zip(AGAINST, ("the gradient", "leaving tokens out"), strict=True):
            name = ("kendall", "attention", against)
            if name in self.means:
                parts.append(f"Kendall's tau {self.means[name][0]:.2f} with {words}")
        length = length_text(len(text.pieces) for text in self.texts)
        texts = f"{len(self.texts)} texts, {length} without special ones"
        agreement = " and ".join(parts) or "no rank correlation, since all ties"
        return f"{self.model or 'a model'}: {texts}. Attention has {agreement}"

    def _blocks(self) -> list[TextTable | str]:
        over = "texts" if self.groups is None else "documents"
        first = f"mean (standard deviation) [{self.confidence:.0%} interval over {over}]"
        blocks: list[TextTable | str] = [first, *self._tables()]
        blocks.append(
            "\n".join(f"{name} is left out: {why}" for name, why in self.texts[0].missing.items())
        )
        if self.control is not None:
            blocks += ["The same with random weights:", *self.control._tables()]
        return blocks

    def _tables(self) -> list[TextTable | str]:
        agreement = [(measure, against) for against in AGAINST for measure in AGREEMENT]
        return [
            self._table(
                "signal",
                [(f"{measure}, {against}", measure, against) for measure, against in agreement],
            ),
            self._table("erasure by", [(measure, measure, "") for measure in ERASURE]),
            self._counterfactual_lines(),
        ]

    def _table(self, corner: str, columns: list[tuple[str, str, str]]) -> TextTable:
        rows = [[corner, *(title for title, _, _ in columns)]]
        for signal in self.signals:
            rows.append(
                [
                    signal,
                    *(self._cell((measure, signal, against)) for _, measure, against in columns),
                ]
            )
        return TextTable.of_rows(rows, align="right", says=SAYS)

    def _counterfactual_lines(self) -> str:
        lines = []
        for measure, unit in (
            (PERMUTED, "median total variation distance"),
            (ADVERSARIAL, "nats, log 2 at most"),
        ):
            name = (measure, "attention", "")
            if name in self.means:
                lines.append(
                    f"{measure}: {self._cell(name)} ({unit}; {self.means[name][-1]} texts)"
                )
        return "\n".join(lines)

    def _cell(self, name: Name) -> str:
        if name not in self.means:
            return "-"
        mean, deviation, low, high, _ = self.means[name]
        ends = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
        return f"{mean:.2f} ({deviation:.2f}){ends}"


def _count(column: np.ndarray) -> int:
    return int(np.isfinite(column).sum())
