"""Keys that take most of the mass: found from the data, left out when asked, and said."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FigureError
from headscope.testing import random_weights
from headscope.views.figures._numbers import find_sinks, without_keys


@pytest.fixture
def sunk(rng):
    """Heads of which key 2 takes 70 %, whatever it is called; 9 queries, 11 keys."""
    weights = 0.3 * random_weights(rng, (2, 3, 9, 11))
    weights[..., 2] += 0.7
    return hs.from_weights(
        cross=weights,
        encoder_tokens=[f"k{at}" for at in range(11)],
        decoder_tokens=[f"q{at}" for at in range(9)],
        model="m",
    )


def test_the_part_that_it_takes_is_that_of_the_data(sunk):
    weights = sunk["cross"].weights(1).astype(float)
    found = find_sinks(sunk["cross"].layer(1), (0, 2))
    assert list(found) == [2]
    assert found[2] == pytest.approx(weights[[0, 2], :, 2].sum() / weights[[0, 2]].sum())
    assert found[2] > 0.7


def test_even_rows_have_none(see):
    record = hs.from_weights(np.full((1, 2, 5, 5), 0.2), list("abcde"))
    assert find_sinks(record["self"].layer(0), (0, 1)) == {}
    assert "no key takes most" in see(hs.figure(record, sinks=False)).said


def test_rows_keep_their_sum_when_keys_are_left_out(rng):
    values = random_weights(rng, (2, 5, 7)).astype(float) * 0.9
    values[0, 1] = 0
    values[0, 1, 3] = 0.9
    values[:, 0, 4:] = np.nan
    found = without_keys(values, [3, 6])
    assert (found[:, :, [3]] == 0).all()
    rows = np.nansum(found, axis=-1)
    assert rows[0, 1] == 0
    rows[0, 1] = np.nansum(values[0, 1])
    np.testing.assert_allclose(rows, np.nansum(values, axis=-1))
    np.testing.assert_allclose(found[1, 2, 0] / found[1, 2, 5], values[1, 2, 0] / values[1, 2, 5])
    assert np.isnan(found[0, 0, 5])


@pytest.mark.parametrize("view", ["head", "matrix", "text"])
def test_figures_say_what_they_leave_out(view, sunk, see):
    part = find_sinks(sunk["cross"].layer(0), (1,))[2]
    kept = see(hs.figure(sunk, view=view, head=1)).said
    assert f"keys that take most of the attention: “k2” {100 * part:.0f} %" in kept
    said = see(hs.figure(sunk, view=view, head=1, sinks=False)).said
    assert (
        f"without “k2”: {100 * part:.0f} % of the attention removed, the rest renormalised" in said
    )
    assert "take most of the attention" not in said
    assert "k2" not in see(hs.figure(sunk, view="matrix", head=1, sinks=False)).texts


def test_other_views_have_no_such_option(sunk):
    with pytest.raises(FigureError, match="View 'pair' has no option 'sinks'"):
        hs.figure(sunk, view="pair", query=0, key=1, sinks=False)


def test_a_key_that_is_written_from_the_right_turns_nothing_around_it(rng, see):
    weights = 0.3 * random_weights(rng, (2, 3, 9, 9))
    weights[..., 2] += 0.7
    record = hs.from_weights(weights, ["a", "b", "قطة", *"defghi"], model="m")
    assert "attention: “\u2068قطة\u2069” " in see(hs.figure(record, view="matrix", head=1)).said
