"""Figures in axes of the reader's own."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import headscope as hs
from headscope.errors import FigureError

RECORD = hs.from_weights(
    np.tril(np.ones((2, 3, 5, 5))) / np.arange(1, 6)[:, None], ["the", "cat", "sat", "on", "it"]
)


@pytest.fixture
def axes():
    return Figure(figsize=(7, 5)).subplots(1, 2)


@pytest.mark.parametrize("view", ["head", "matrix", "model", "text"])
def test_a_view_is_drawn_into_given_axes_as_on_its_own_paper(view, axes):
    left, right = axes
    right.plot([0, 1], [2, 3])
    before = right.get_xlim(), right.get_position().bounds, left.get_position().bounds
    drawn = hs.figure(RECORD, view=view, ax=left)
    assert drawn.matplotlib is left.figure
    assert (right.get_xlim(), right.get_position().bounds, left.get_position().bounds) == before
    width = left.get_position().width * 7 * 25.4
    alone = hs.figure(RECORD, view=view, width=width)
    own = alone.matplotlib.axes[0]
    assert [text.get_text() for text in left.texts] == [text.get_text() for text in own.texts]
    places = [[text.get_position() for text in part.texts] for part in (left, own)]
    assert np.allclose(*places)
    # a millimetre is one on both papers, and in both directions
    scale = (
        np.diff(left.get_xlim())[0] / width,
        -np.diff(left.get_ylim())[0] / (left.get_position().height * 5 * 25.4),
    )
    assert np.allclose(scale, 1)


def test_what_does_not_fit_is_one_clear_error():
    flat = Figure(figsize=(7, 0.6)).subplots()
    with pytest.raises(FigureError, match=r"The drawing is \d+ mm high and the axes \d+ mm; make"):
        hs.figure(RECORD, view="matrix", ax=flat)
    with pytest.raises(FigureError, match="ax must be matplotlib Axes, such as plt.subplots.."):
        hs.figure(RECORD, ax=[flat])
    with pytest.raises(FigureError, match="the width is that of the axes"):
        hs.figure(RECORD, ax=flat, width=80)
