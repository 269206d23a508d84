"""What attention agrees with in a classifier: what was found of each text, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RecordError
from headscope.evidence import interval, length_text
from headscope.results import Kept, Result, TextTable
from headscope.studies.explaining._explained import SIGNALS, ExplainedText
from headscope.studies.explaining._measures import (
    ADVERSARIAL,
    AGAINST,
    AGREEMENT,
    ERASURE,
    PERMUTED,
    Name,
    measures_of,
    names_of,
)
from headscope.studies.explaining._sums import FaithfulnessSums

FIELDS = ("measure", "signal", "against", "mean", "deviation", "low", "high", "texts")

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


@dataclass(frozen=True, eq=False)
class Faithfulness(Result):
    """What `faithfulness` found on each text; prints as tables of means over texts with their
    intervals.

    Args:
        texts: one by one; none where ``sums`` are known.
        confidence: of the intervals over texts, or over their documents.
        model: its name.
        layer: whose attention was looked at; counted from the end where negative.
        control: the same of a classifier with random weights, where that was run.
        groups: the document that each text is of; None where nobody knows.
        sums: of a run over more than 2,000 texts, in place of each; else None.
    """

    KIND: ClassVar[str] = "faithfulness"

    texts: tuple[ExplainedText, ...]
    confidence: float = 0.95
    model: str = ""
    layer: int = -1
    control: Faithfulness | None = None
    groups: tuple[Any, ...] | None = None
    sums: FaithfulnessSums | None = None

    @property
    def text_count(self) -> int:
        """Number of texts."""
        return len(self.texts) if self.sums is None else self.sums.texts

    @property
    def over(self) -> str:
        """What intervals are over: ``"texts"``, or ``"documents"``."""
        has_groups = self.groups is not None if self.sums is None else self.sums.has_groups
        return "documents" if has_groups else "texts"

    @property
    def missing(self) -> Mapping[str, str]:
        """By name, why a signal cannot be had of the model, as the first text has it."""
        return self.texts[0].missing if self.sums is None else self.sums.missing

    def in_sums(self) -> Faithfulness:
        """The same without single texts: sums, which do not grow with the texts, and Student's
        intervals.
        """
        control = None if self.control is None else self.control.in_sums()
        sums = self.sums or FaithfulnessSums.of(self.texts, self.groups, self.missing)
        return replace(self, texts=(), groups=None, sums=sums, control=control)

    def agreement(
        self, first: str = "attention", second: str = "gradient"
    ) -> Float[np.ndarray, "text 2"]:
        """Kendall's tau-b and Spearman's rho of two signals on each text; NaN where one of them is
        all ties.

        Raises:
            RecordError: where sums alone are known.
        """
        self._check_held()
        return np.array([text.agreement(first, second) for text in self.texts])

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that could be had of every text."""
        if self.sums is not None:
            return self.sums.signals
        return tuple(name for name in SIGNALS if all(name in text.signals for text in self.texts))

    @cached_property
    def values(self) -> dict[Name, Float[np.ndarray, " text"]]:
        """One value for each text, NaN for none, by measure, signal and what it is set against.

        Raises:
            RecordError: where sums alone are known.
        """
        self._check_held()
        rows = [measures_of(text) for text in self.texts]
        names = names_of(self.signals)
        values = {name: np.array([row[name] for row in rows], float) for name in names}
        # What no text has a value of, such as where there was no adversary, is left out.
        return {name: column for name, column in values.items() if np.isfinite(column).any()}

    def _check_held(self) -> None:
        """Raise where single texts are not known."""
        if self.sums is not None:
            raise RecordError(
                f"Of {self.text_count} texts sums alone are known; give fewer texts to have the "
                "numbers of each, or leave out=, workers= and executor= out"
            )

    @cached_property
    def means(self) -> dict[Name, tuple[float, float, float, float, int]]:
        """Of each of `values`: mean, standard deviation, lower and upper end of the interval, and
        number of texts.
        """
        if self.sums is not None:
            return self.sums.means(self.confidence)
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
        if self.sums is not None:
            return self.sums.erasure(signal, measure, self.confidence)
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
        return f"<Faithfulness of {self.text_count} texts>"

    @property
    def summary(self) -> str:
        """How far attention agrees with the gradient and with leaving tokens out."""
        parts = []
        for against, words in zip(AGAINST, ("the gradient", "leaving tokens out"), strict=True):
            name = ("kendall", "attention", against)
            if name in self.means:
                parts.append(f"Kendall's tau {self.means[name][0]:.2f} with {words}")
        lengths = [len(text.pieces) for text in self.texts]
        length = length_text(lengths if self.sums is None else self.sums.lengths)
        texts = f"{self.text_count} texts, {length} without special ones"
        agreement = " and ".join(parts) or "no rank correlation, since all ties"
        return f"{self.model or 'a model'}: {texts}. Attention has {agreement}"

    def _blocks(self) -> list[TextTable | str]:
        kind = "interval" if self.sums is None else "t interval"
        first = f"mean (standard deviation) [{self.confidence:.0%} {kind} over {self.over}]"
        blocks: list[TextTable | str] = [first, *self._tables()]
        blocks.append("\n".join(f"{name} is left out: {why}" for name, why in self.missing.items()))
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
