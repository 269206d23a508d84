"""Alignment studies of more sentences than are kept, next to those that hold every one."""

import dataclasses

import numpy as np
import pytest

import headscope as hs
from headscope import FileError, RecordError
from headscope.studies import AlignmentStudy
from headscope.studies.alignment._best_layer_or_head import chosen_cells
from headscope.studies.alignment._counts import rates_of
from headscope.studies.alignment._file import alignment_study_of, kept_of
from headscope.studies.alignment._sums import (
    BY,
    KEYS,
    STATES,
    AlignmentTotals,
    documents_of,
    hashed_halves,
)
from headscope.testing import cipher_pairs, cipher_translator

from ..close import assert_close

SENTENCES = 90
SPLITS = 6


@pytest.fixture(scope="module")
def given():
    """Trained a little, so that layers differ and rates are none of chance alone."""
    model, tokenizer, _ = cipher_translator(steps=25)
    pairs = [
        dataclasses.replace(pair, group=f"d{number % 40}" if number % 3 else None)
        for number, pair in enumerate(cipher_pairs(SENTENCES, seed=7))
    ]
    return model, tokenizer, pairs


@pytest.fixture(scope="module")
def held(given):
    return hs.alignment_study(*given, part_size=30, progress=False)


@pytest.fixture(scope="module")
def begun(given, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "alignment"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.studies.shared._counted_texts.MANY", SENTENCES - 1)
        return out, hs.alignment_study(*given, out=out, part_size=30, progress=False)


def test_rates_are_the_same_and_intervals_are_near(held, begun):
    _, summed = begun
    assert held.sums is None
    assert (summed.sentences, len(summed.statistic)) == (SENTENCES, 0)
    assert summed.sums.documents == held.statistic.documents
    assert (summed.baseline, summed.layers, summed.heads) == (held.baseline, (0, 1), held.heads)
    for by in BY:
        for state in STATES:
            own, wanted = (each.error_rates(by, state) for each in (summed, held))
            assert_close(own, wanted)
            ends, theirs = (each.intervals(by, state) for each in (summed, held))
            # Two bootstraps, of 1,000 and 2,000 draws.
            np.testing.assert_allclose(ends, theirs, atol=0.2 * np.ptp(theirs, axis=-1).max())
    apart, wanted = (each.difference("output") for each in (summed, held))
    assert_close(apart[..., 0], wanted[..., 0])
    np.testing.assert_allclose(apart, wanted, atol=0.2 * np.ptp(wanted[..., 1:], axis=-1).max())
    low, high = held.baseline_interval
    assert summed.baseline_interval == pytest.approx((low, high), abs=0.15 * (high - low))


def test_the_best_are_those_of_documents_that_are_held(held):
    """With the same halves, what is chosen and its rate are those of `chosen_cells`."""
    names, values, _ = documents_of(held)
    totals = AlignmentTotals(held.statistic.shape, SPLITS)
    totals.update(held)
    halves = hashed_halves(names, 0, SPLITS)
    for key in KEYS:
        by, state, of_heads = key
        own = values[:, :, STATES.index(state), BY.index(by)]
        own = own[..., :-1] if of_heads else own[..., -1:]
        cells, rates, rows = chosen_cells(own, halves)
        choice = totals.choice(key)
        places = [divmod(cell, choice.columns) for cell in choice.best.T.ravel().tolist()]
        assert places == cells
        assert choice.chosen_at == pytest.approx(np.mean(rates))
        np.testing.assert_allclose(choice.rates, rates_of(np.moveaxis(rows.sum(axis=1), -1, 0)))
        flat = own.reshape(*own.shape[:2], -1)
        np.testing.assert_allclose(choice.elsewhere(flat, halves), rows.sum(axis=0))


def test_the_best_are_near_those_of_other_halves(held, begun):
    _, summed = begun
    for key in KEYS:
        by, state, of_heads = key
        own, wanted = (each.best(by, state, of_heads=of_heads) for each in (summed, held))
        low, high = wanted.interval
        assert own.aer == pytest.approx(wanted.aer, abs=0.3 * (high - low))
        assert own.interval == pytest.approx((low, high), abs=0.4 * (high - low))
        assert own.sentences == wanted.sentences
        if wanted.chosen == own.chosen == 1:
            assert own.place == wanted.place
    assert summed.best("weight", "output").chosen == 1


def test_the_file_says_the_same_and_what_is_not_known_is_said(held, begun):
    out, summed = begun
    again = hs.load(out)
    assert str(again) == str(summed)
    assert again.columns() == summed.columns()
    assert summed.columns().keys() == held.columns().keys()
    assert again.summary == held.summary
    with pytest.raises(RecordError, match="Of 90 sentences sums alone are known; give all"):
        again + AlignmentStudy()
    with pytest.raises(RecordError, match="sums alone are known; give all"):
        AlignmentStudy() + again
    with pytest.raises(RecordError, match="sums alone are known; what was chosen is of the usual"):
        again.best("weight", splits=3)
    with pytest.raises(RecordError, match="There is no 'map'"):
        again.best("map")
    kept = kept_of(summed)
    for name, wrong in (("counts", np.zeros((2, 1))), ("best", np.full((1, 11), 99.0))):
        with pytest.raises(FileError):
            alignment_study_of((kept[0], kept[1] | {name: wrong}), "a file")
