"""A text that the model wrote, in print."""

import re
from dataclasses import replace

import pytest

import headscope as hs
from headscope import Record
from headscope.record import Generation, Layer, Stack, Tokens

PIECES = ("<s>", "Once", "upon", "a", "time", "there")


@pytest.fixture
def record(rng):
    """Two tokens were given and five written, of which the last was never read."""
    size = len(PIECES)
    tokens = Tokens(pieces=PIECES)
    generation = Generation(
        stack="self",
        prompt=2,
        reads=(2, 1, 1, 1, 1),
        tokens=Tokens(pieces=(*PIECES[2:], "was")),
        probabilities=(0.6, 0.25, 0.9, 0.5, 0.1),
        entropies=(1.5, 2.0, 0.2, 1.0, 2.5),
        ranks=(1, 2, 1, 1, 7),
    )
    layer = Layer(layer=0, weights=rng.dirichlet([0.4] * size, size=(2, size)).astype("float32"))
    stack = Stack(name="self", layers=(layer,), query=tokens, key=tokens)
    return Record(stacks={"self": stack}, generation=generation)


def words(figure):
    return " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", figure.to_bytes("svg").decode()))


@pytest.mark.parametrize("view", ["head", "matrix", "text"])
def test_the_strip_has_a_bar_for_each_written_token(record, view):
    figure = hs.figure(record, view=view, head=0)
    probabilities, entropies = figure.matplotlib.axes[0].child_axes
    assert [bar.get_height() for bar in probabilities.patches] == [0.6, 0.25, 0.9, 0.5, 0.1]
    assert [bar.get_height() for bar in entropies.patches] == [0.6, 0.8, 0.08, 0.4, 1.0]
    said = words(figure)
    assert "below the rule the model wrote: 5 tokens, 3 of them the most probable" in said
    assert "was" in said.split()
    assert "the model wrote" not in words(hs.figure(replace(record, generation=None), view=view))


@pytest.mark.parametrize("view", ["head", "matrix"])
def test_a_rule_stands_after_the_prompt(record, view):
    def rules(figure):
        return sum(
            line.get_linewidth() == 0.9 for axes in figure.matplotlib.axes for line in axes.lines
        )

    assert rules(hs.figure(record, view=view, head=0)) == 2
    assert rules(hs.figure(replace(record, generation=None), view=view, head=0)) == 0


def test_pictures_in_a_row_have_the_rule_and_no_strip(record):
    figure = hs.figure(record, tray=["0-0", "0-1"])
    assert "the model wrote" not in words(figure)
    assert (
        sum(line.get_linewidth() == 0.9 for axes in figure.matplotlib.axes for line in axes.lines)
        == 4
    )
