"""Every number that a result prints is in its table to export."""

import math
import re

import numpy as np

from headscope.comparison import Effect

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NAMES = re.compile(r"\b\d+-\d+\b|\bhead \d+\.\d+|\b[A-Za-z_]+\d+\b|'[^']*'")
"""Heads and quoted words, whose digits are no numbers."""
FACTS = {
    "NormStudy": {"4"},
    "Comparison": {"5", "7", "0.69"},
    "Effect": {"5", "7", "0.69"},
    "Probing": {"8"},
    "Ablation": {"6"},
}
"""Tokens of the texts, the largest distance that there can be, a rank, how many examples a p takes:
nothing that was measured.
"""
DERIVED = {"Mechanism": {"1.7"}}
"""In the sentence above the table: the mean of a column."""
SIGNS = str.maketrans({"−": "-", "+": ""})


def printed_numbers(text):
    """The numbers of a text as they are written, without those that are part of names."""
    return [match.translate(SIGNS) for match in NUMBER.findall(NAMES.sub(" ", text))]


def exported_numbers(result):
    """All numbers of the table, one after the other; those in lists too, and how often something
    is so.
    """
    tables = [result.columns()]
    if isinstance(result, Effect):
        tables.append(result.output.columns())
    columns = [column for table in tables for column in table.values()]
    values = [float(sum(cell is True for cell in column)) for column in columns]
    for column in columns:
        for cell in column:
            cells = cell if isinstance(cell, list | tuple) else [cell]
            values += [
                float(each)
                for each in cells
                if isinstance(each, int | float | np.number) and not isinstance(each, bool)
            ]
    return np.array([value for value in values if math.isfinite(value)])


def is_exported(printed, values):
    """Whether some value is written so: as it is or in percent, with as many digits."""
    text = printed.lstrip("-")
    wanted = float(text)
    digits = len(text.partition("e")[0].partition(".")[2])
    for scaled in (np.abs(values), 100 * np.abs(values)):
        half = 0.5 * 10.0**-digits * (1 + 1e-9)
        if (np.abs(scaled - wanted) <= half).any():
            return True
        if any(float(f"{value:.{places}g}") == wanted for value in scaled for places in (2, 3, 4)):
            return True
    return False


def settings_of(result):
    """How it was told, not what was found: levels, seeds, splits, thresholds of the notes."""
    settings = {"0", "1", "2"}
    for name in ("confidence", "alpha", "margin", "splits", "share", "threshold"):
        value = getattr(result, name, getattr(getattr(result, "before", None), name, None))
        if value is not None:
            settings |= {f"{value:g}", f"{100 * value:.0f}"}
    settings |= {str(seed) for seed in getattr(result, "seeds", ())}
    if type(result).__name__ == "Probing":  # how many sentences were given, those left out included
        settings.add(str(sum(result.sentences) + len(result.left_out)))
    return settings


def test_every_printed_number_is_exported(result):
    assert_exported(result)


def assert_exported(result):
    kind = type(result).__name__
    values, settings = exported_numbers(result), settings_of(result) | FACTS.get(kind, set())
    for number in printed_numbers(result.table()):
        assert number in settings or is_exported(number, values), number
    settings |= DERIVED.get(kind, set())
    for number in printed_numbers(result.summary):
        is_count = "." not in number  # of texts, layers, tokens
        assert is_count or number in settings or is_exported(number, values), number


def test_every_export_holds_the_columns(result):
    columns = result.columns()
    assert len({len(column) for column in columns.values()}) == 1
    assert result.to_arrow().column_names == list(columns)
    assert list(result.to_pandas()) == list(columns)
    assert result.to_polars().columns == list(columns)
