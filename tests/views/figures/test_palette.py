from itertools import pairwise

import numpy as np
import pytest

from headscope.views.constants import KIND_COLOURS
from headscope.views.figures import _style
from headscope.views.figures._style import Scale, style_for


def lightness(colours):
    return np.array([_style._oklab(colour)[0] for colour in colours])


@pytest.mark.parametrize("dark", [False, True])
def test_every_ramp_runs_evenly_from_paper_to_the_far_end(dark):
    style = style_for(dark=dark, colour=True, size=8.0, font=None)
    colours = [both[dark] for both in KIND_COLOURS.values()]
    for colour in (*colours, style.accent):
        ramp = lightness(_style.sequential(style.paper, colour, dark=dark))
        steps = np.diff(ramp) if dark else -np.diff(ramp)
        assert (steps > -0.003).all()
        assert abs(ramp[-1] - ramp[0]) > 0.6


def test_the_bar_of_weights_has_readable_ticks():
    colours = np.zeros((256, 3), np.uint8)
    for largest in (1.0, 0.86, 0.2, 0.05, 0.012, 0.0004, 0.0):
        ticks = Scale(colours, largest, signed=False, power=0.5, masked="#000000").ticks()
        places = [place for place, _ in ticks]
        assert ticks[0] == (0.0, "0")
        assert all(second - first > 0.15 for first, second in pairwise(places))
        assert all(words for _, words in ticks)
    assert Scale(colours, 0.86, signed=False, power=0.5, masked="#000000").ticks()[-1] == (
        1.0,
        ".86",
    )


def test_greys_stay_apart():
    for dark in (False, True):
        greys = [
            _style.luminance(_style.parse_hex(grey)) for grey in _style.head_greys(4, dark=dark)
        ]
        assert len(set(greys)) == 4
        assert greys == sorted(greys, reverse=dark)
