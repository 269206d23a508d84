"""The figure of an answer: a picture for each word, its share, crosses on sinks."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.lines import Line2D

import headscope as hs
from headscope.errors import FigureError, RecordError
from headscope.record import Part

from ...answers import made_answer


def pictures(figure):
    return figure.matplotlib.axes[0].images


def diagonals(figure):
    lines = [each for each in figure.matplotlib.axes[0].get_children() if type(each) is Line2D]
    ends = [(set(line.get_xdata()), set(line.get_ydata())) for line in lines]
    return sum(len(across) == len(down) == 2 for across, down in ends)


def said(figure):
    return [text.get_text() for text in figure.matplotlib.axes[0].texts]


def test_each_word_has_its_picture_and_share():
    answer = made_answer(words=7)
    figure = hs.figure(answer)
    assert len(pictures(figure)) == 7 + 1  # and the bar of the scale
    told = said(figure)
    for word, share in zip(answer.words, answer.word_shares, strict=True):
        assert told.count(f"{100 * share:.1f} %") >= 2
        assert word.text in told
    assert answer.question in told
    assert any("1 patch of 24 is a sink" in line for line in told)


def test_the_heat_of_a_word_hides_what_it_looks_at():
    answer = made_answer(words=3, pictures=(np.full((32, 48, 3), 120, np.uint8),))
    for word, image in enumerate(pictures(hs.figure(answer))[:3]):
        drawn = image.get_array().astype(float)
        rows, columns = drawn.shape[0] // 4, drawn.shape[1] // 6
        cells = drawn.reshape(4, rows, 6, columns, 3).mean(axis=(1, 3))
        # blue hides most of the patch that gets most
        blue = cells[..., 2] - cells[..., 0]
        assert np.unravel_index(blue.argmax(), blue.shape) == divmod(3 * word, 6)


def test_sinks_that_are_left_out_have_a_cross():
    kept, without = (hs.figure(made_answer(words=3, keep_sinks=keep)) for keep in (True, False))
    assert (diagonals(kept), diagonals(without)) == (0, 2 * 3)
    assert "a cross: a sink" in " ".join(said(without))
    assert "a cross" not in " ".join(said(kept))


def test_a_long_answer_has_the_words_that_differ_most():
    answer = made_answer(words=40)
    figure = hs.figure(answer)
    assert len(pictures(figure)) == 24 + 1
    assert "24 of 40 words have a picture" in " ".join(said(figure))
    chosen = hs.figure(answer, words=[39, 2])
    assert len(pictures(chosen)) == 2 + 1
    assert "words=[39, 2]" in chosen.recipe["call"]


def test_without_pixels_there_are_bare_patches_and_several_pictures_stand_below_each_other():
    bare = made_answer(words=2, pictures=())
    assert len(pictures(hs.figure(bare))) == 2 + 1
    half = tuple((place // 3, place % 3) for place in range(12))
    two = made_answer(
        words=2,
        pictures=(),
        grids=((4, 3), (4, 3)),
        places=half + half,
        picture_of=(0,) * 12 + (1,) * 12,
        given=1,
    )
    figure = hs.figure(two, relative=True, theme="dark")
    assert len(pictures(figure)) == 2 * 2 + 1
    assert "1 picture given; the model read 2 (crops)" in str(two)


def test_frames_of_a_video_are_named_with_what_was_needed():
    half = tuple((place // 3, place % 3) for place in range(12))
    names = {"frames 0-1": range(1, 13), "frames 2-3": range(13, 25)}
    parts = [Part(name=name, kind="frame", tokens=tuple(own)) for name, own in names.items()]
    video = made_answer(words=2, grids=((4, 3), (4, 3)), places=half * 2, parts=tuple(parts))
    whole, lost = video.whole, np.array([[0.1], [4.0]])
    cut = {"need": "cut", "none": whole - 4, "without": whole - lost, "alone": whole - lost[::-1]}
    answer = replace(
        video,
        picture_of=(0,) * 12 + (1,) * 12,
        pictures=(),
        candidates=(0, 1),
        shares=np.insert(video.shares, 1, 0.01, axis=-1),
        even=np.insert(video.even, 1, 0.2, axis=-1),
        **cut,
    )
    assert "needed frames 2-3: with them cut off" in answer.summary
    assert "of their attention to the video" in answer.summary
    told = " ".join(said(hs.figure(answer)))
    assert "share of attention on the video" in told
    assert "from above: frames 0-1, frames 2-3" in told
    assert "needed frames 2-3: with them cut off, its probability falls" in told


@pytest.mark.parametrize(
    ("changes", "options", "error", "told"),
    [
        ({"words": 3}, {"words": [3]}, FigureError, "has the words 0 to 2"),
        ({"words": 3}, {"words": []}, FigureError, "has the words 0 to 2"),
        ({"words": 1}, {"relative": True}, RecordError, "the answer has 1"),
        ({"words": 3}, {"wrods": [1]}, FigureError, "no option 'wrods'"),
    ],
)
def test_what_cannot_be_drawn_is_told(changes, options, error, told):
    with pytest.raises(error, match=told):
        hs.figure(made_answer(**changes), **options)


def test_an_answer_without_words_has_no_figure():

    empty = replace(made_answer(words=1), words=(), text="")
    with pytest.raises(FigureError, match="no word to draw"):
        hs.figure(empty)
    assert "wrote nothing" in str(empty)
