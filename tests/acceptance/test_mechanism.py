"""Vig's claim about neurons, and what positions make, on the demo model; skipped where the texts
are absent.
"""

import csv

import pytest

import headscope as hs


@pytest.fixture(scope="module")
def texts(shared):
    with (shared / "banking77" / "test.csv").open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)][::77]


def test_neurons_of_delimiter_heads_are_fixed_and_those_of_neighbours_shift(minilm, texts):
    labels = hs.heads(*minilm, texts).by_label()
    groups = hs.mechanism(*minilm, texts).grouped(labels)
    assert groups["delimiter"].heads > 10
    assert groups["delimiter"].fixed_low > 0.25
    assert groups["next"].fixed_high < 0.06
    assert groups["previous"].fixed_high < 0.06
    assert groups["delimiter"].neurons == pytest.approx(
        groups["next"].neurons, abs=1
    )  # no fewer, as Vig has it
