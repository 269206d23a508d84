"""The numbers of one text that means are taken of, by their names."""

from __future__ import annotations

import numpy as np

from headscope.studies.explaining._explained import SIGNALS, ExplainedText

AGAINST = ("gradient", "leave_one_out")
AGREEMENT = ("kendall", "spearman")
ERASURE = ("comprehensiveness", "sufficiency")
PERMUTED, ADVERSARIAL = "output moved, attention shuffled", "attention moved, output held"
Name = tuple[str, str, str]
"""A measure, a signal and what it is set against."""


def names_of(signals: tuple[str, ...]) -> tuple[Name, ...]:
    """Everything that is measured of these signals, in the order of the tables."""
    names: list[Name] = []
    for against in AGAINST:
        for signal in signals:
            if signal != against:
                names += [(measure, signal, against) for measure in AGREEMENT]
    names += [(measure, signal, "") for measure in ERASURE for signal in signals]
    return (*names, (PERMUTED, "attention", ""), (ADVERSARIAL, "attention", ""))


def measures_of(text: ExplainedText) -> dict[Name, float]:
    """What one text says, of the signals that it has."""
    signals = tuple(name for name in SIGNALS if name in text.signals)
    values = dict.fromkeys(names_of(signals), np.nan)
    for against in AGAINST:
        for signal in signals:
            if signal != against and against in signals:
                agreements = text.agreement(signal, against)
                for measure, value in zip(AGREEMENT, agreements, strict=True):
                    values[measure, signal, against] = value
    for measure in ERASURE:
        for signal, value in getattr(text, measure).items():
            values[measure, signal, ""] = value
    if len(text.permuted):
        values[PERMUTED, "attention", ""] = float(np.median(text.permuted))
    if text.adversarial is not None:
        values[ADVERSARIAL, "attention", ""] = text.adversarial
    return values
