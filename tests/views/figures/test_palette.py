import numpy as np
import pytest

from headscope.views.constants import KIND_COLOURS
from headscope.views.figures import _style
from headscope.views.figures._style import style_for


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
