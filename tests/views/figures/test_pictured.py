"""Patches over their picture, for print."""

import dataclasses

import numpy as np
import pytest

import headscope as hs
from headscope.record import Layer, Stack, Tokens
from headscope.testing import random_weights
from headscope.views.figures._style import style_of, veiled

GRID = (2, 3)
STYLE = style_of({})


def pictured(rng, weights=None):
    """A word, the patches of a picture of 8 x 24 pixels block by block, and a word."""
    places = (None, (0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), None)
    labels = ("seen", *(f"r{place[0]}c{place[1]}" for place in places[1:-1]), "owl")
    tokens = Tokens(pieces=labels, grids=(GRID,), places=places)
    layer = Layer(layer=0, weights=random_weights(rng, (4, 8, 8)) if weights is None else weights)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return hs.Record(stacks={"self": stack}, pictures=(rng.integers(0, 256, (8, 24, 3), np.uint8),))


def test_the_picture_is_on_the_figure_in_its_shape(see, rng):
    record = pictured(rng)
    seen = see(hs.figure(record, view="text", head=0, query=0))
    image = seen.axes.images[0]
    left, right, bottom, top = image.get_extent()
    assert (right - left) / (bottom - top) == pytest.approx(3)
    assert not seen.place("r0c0")
    heights = [seen.place("seen")[0][1], (top + bottom) / 2, seen.place("owl")[0][1]]
    assert heights == sorted(heights)
    without = see(hs.figure(dataclasses.replace(record, pictures=()), view="text", head=0, query=0))
    left, right, bottom, top = without.axes.images[0].get_extent()
    assert (right - left) / (bottom - top) == pytest.approx(3 / 2)  # square patches
    assert len(np.unique(without.images[0].reshape(-1, 3), axis=0)) > 2


def test_a_patch_with_all_the_weight_is_veiled_and_the_others_are_not(see, rng):
    weights = np.tile(np.eye(8)[4], (4, 8, 1))  # token 4 stands in row 1, column 1
    image = (
        see(hs.figure(pictured(rng, weights), view="text", head=0, query=0)).images[0].astype(float)
    )
    spread = [
        [block.std(axis=(0, 1)).mean() for block in np.split(half, 3, axis=1)]
        for half in np.split(image, 2, axis=0)
    ]
    others = [spread[row][column] for row, column in np.ndindex(GRID) if (row, column) != (1, 1)]
    assert spread[1][1] < 0.5 * min(others)


def test_a_chosen_patch_is_framed(see, rng):
    seen = see(hs.figure(pictured(rng), view="text", head=0, query=6))  # row 1, column 2
    left, right, bottom, top = seen.axes.images[0].get_extent()
    width, height = (right - left) / 3, (bottom - top) / 2
    (frame,) = [box for box in seen.boxes() if box.get_linewidth() == 0.9]
    assert frame.get_bbox().bounds == pytest.approx((left + 2 * width, top + height, width, height))


def test_words_beside_a_picture_are_on_the_same_scale(see, rng):
    """The class token with all the weight is as much of the ink over paper as a patch is over the
    picture.
    """
    weights = np.tile(np.eye(8)[0], (4, 8, 1))
    record = pictured(rng, weights)
    style = style_of({})
    seen = see(hs.figure(record, view="text", head=0, query=0))
    ink = style.weight_scale(1.0, style.accent).colours[173].astype(float)
    fills = {
        tuple(np.rint(255 * np.array(box.get_facecolor()[:3])).astype(int))
        for box in seen.rounded()
    }
    assert tuple(np.rint(255 + 0.72 * (ink - 255)).astype(int)) in fills
    bar = seen.axes.images[-1].get_array()
    assert len(np.unique(bar[:, -1], axis=0)) == 2  # over the light and over the dark of a picture
    assert "what is large hides more of the picture" in seen.said
    plain = see(hs.figure(dataclasses.replace(record, pictures=()), view="text", head=0, query=0))
    assert len(np.unique(plain.axes.images[-1].get_array()[:, -1], axis=0)) == 1


def test_nothing_hides_where_there_is_nothing(rng):
    """Every dot is a mean of paper and picture, channel by channel, where no weight is; sizes need
    not divide.
    """
    picture = np.repeat(rng.integers(0, 256, (5, 7, 1), np.uint8), 3, axis=2)
    scale = STYLE.weight_scale(1.0, None, power=0.5).over_pictures(STYLE.paper)
    found = veiled(picture, np.zeros((2, 3)), scale)
    dots = picture.repeat(found.shape[0] // 5, axis=0).repeat(found.shape[1] // 7, axis=1)
    np.testing.assert_allclose(found, 255 + 0.72 * (dots - 255.0), atol=0.51)
