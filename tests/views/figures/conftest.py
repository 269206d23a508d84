"""What stands on a figure, read back from matplotlib."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle

import headscope as hs
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights


class Seen:
    """The marks of a figure, in millimetres."""

    def __init__(self, figure):
        self.axes = figure.matplotlib.axes[0]

    @property
    def texts(self):
        return [text.get_text() for text in self.axes.texts]

    def place(self, words):
        """x and y of the baselines of a text."""
        return [text.get_position() for text in self.axes.texts if text.get_text() == words]

    @property
    def said(self):
        return " ".join(self.texts)

    @property
    def curves(self):
        """Axes curve, point (4), x and y; the samples of the legend, which are level and short,
        left out.
        """
        found = [patch.get_path().vertices.reshape(-1, 4, 2) for patch in self._paths()]
        return np.concatenate([curves for curves in found if np.ptp(curves[..., 0]) > 6])

    @property
    def opacities(self):
        """Opacity of each of the curves."""
        paths = [patch for patch in self._paths() if np.ptp(patch.get_path().vertices[:, 0]) > 6]
        return np.concatenate(
            [[patch.get_alpha()] * (len(patch.get_path().vertices) // 4) for patch in paths]
        )

    @property
    def dashed(self):
        return sum(
            len(p.get_path().vertices) // 4 for p in self._paths() if p.get_linestyle() != "solid"
        )

    @property
    def images(self):
        return [np.asarray(image.get_array()) for image in self.axes.images]

    def _paths(self):
        return [patch for patch in self.axes.patches if isinstance(patch, PathPatch)]

    def boxes(self, kind=Rectangle):
        return [patch for patch in self.axes.patches if isinstance(patch, kind)]

    def rounded(self):
        return self.boxes(FancyBboxPatch)


@pytest.fixture
def see():
    return Seen


@pytest.fixture(scope="session")
def check_titles():
    return _check_titles


def _bare(text):
    return "".join(text.get_text().replace("·", "").split())


def _check_titles(figure, *titles):
    """Titles stand there whole, and nothing of them leaves the sheet as it is rendered. A line
    may break in place of a middle dot.
    """
    # The dots of a saved picture: of fewer, letters are moved to whole dots.
    figure.matplotlib.set_dpi(300)
    canvas = FigureCanvasAgg(figure.matplotlib)
    renderer, sheet = canvas.get_renderer(), figure.matplotlib.bbox
    texts = [text for axes in figure.matplotlib.axes for text in axes.texts]
    said = "".join(map(_bare, texts))
    for title in titles:
        words = "".join(title.replace("·", "").split())
        assert words in said, f"{title!r} is not there whole"
        for text in texts:
            part = _bare(text)
            if part and part in words:
                box = text.get_window_extent(renderer)
                assert sheet.x0 <= box.x0, part
                assert box.x1 <= sheet.x1, part
                assert sheet.y0 <= box.y0, part
                assert box.y1 <= sheet.y1, part


@pytest.fixture
def grouped(rng):
    """A causal record with queries and keys, 4 heads on 2 key/value heads, no axis as long as
    another.
    """
    tokens = Tokens(pieces=("<s>", "Ġthe", "Ġcat", "Ġsat", "Ġdown", "."))
    visible = np.tril(np.ones((6, 6), bool))
    layers = tuple(
        Layer(
            layer=number,
            queries=rng.standard_normal((4, 6, 8)).astype(np.float32),
            keys=rng.standard_normal((2, 6, 8)).astype(np.float32),
            scale=0.25,
            visible=visible,
        )
        for number in (0, 2, 3)
    )
    facts = ModelFacts(name="org/tiny", revision="abc", versions={"torch": "2.0"})
    return Record(
        stacks={"self": Stack(name="self", query=tokens, key=tokens, layers=layers)}, model=facts
    )


@pytest.fixture
def pair(rng):
    """Sentences A and B, with special tokens and a continued word."""
    pieces = ["[CLS]", "a", "berry", "[SEP]", "straw", "##berries", "[SEP]"]
    return hs.from_weights(
        random_weights(rng, (2, 3, 7, 7)), pieces, sentence_b_start=4, model="two"
    )
