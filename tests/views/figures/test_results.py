"""Figures of results: what stands in them is what was found."""

import json
import re

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FigureError, RecordError
from headscope.record import Layer, ModelFacts, Stack, Tokens
from headscope.testing import tiny_model, tiny_tokenizer

pytest.importorskip("matplotlib", reason="needs the extra figures")
TEXTS = ["the cat sat on it", ("a dog ran", "it ran"), "she saw us all"]


def planted(count):
    """Heads of two layers: next word, [SEP], and two that look everywhere."""
    rng = np.random.default_rng(1)
    records = []
    for _ in range(count):
        size = int(rng.integers(6, 10))
        tokens = Tokens(pieces=("[CLS]", *(f"w{rng.integers(99)}" for _ in range(size)), "[SEP]"))
        even = np.full((size + 2, size + 2), 1 / (size + 2))
        following = 0.9 * np.eye(size + 2, k=1) + 0.1 * even
        following[-1] = even[-1]
        last = np.tile(0.9 * (np.arange(size + 2) == size + 1), (size + 2, 1)) + 0.1 * even
        layers = [np.stack([following, even]), np.stack([even, last])]
        made = tuple(
            Layer(layer=number, weights=maps.astype(np.float32))
            for number, maps in enumerate(layers)
        )
        stack = Stack(name="self", query=tokens, key=tokens, layers=made)
        records.append(hs.Record(stacks={"self": stack}, model=ModelFacts(name="planted")))
    return records


@pytest.fixture(scope="module")
def found():
    return hs.heads(planted(24), distances=True)


def words(figure):
    return re.findall(r"<text[^>]*>([^<]*)</text>", figure.to_bytes("svg").decode())


def test_the_maps_name_patterns_measures_and_labels(found):
    text = words(found.figure())
    assert {"planted", "label", "next", "delimiter", "entropy", "map of all heads"} <= set(text)
    assert any(re.fullmatch(r"4 heads over 24 texts, median \d+ tokens", each) for each in text)
    assert {"0-0", "1-1"} <= set(text)
    assert any(
        re.fullmatch(r"like heads close together, 24 texts; stress \.?\d.*", each)
        or "stress" in each
        for each in text
    )


def test_titles_are_never_cut(found, check_titles):
    title = "all-MiniLM-L6-v2, en_ewt-ud-dev: heads that look along relations of words"
    for width in (50, 100, 180):
        check_titles(found.figure(title=title, width=width), title)


def test_colours_are_the_scores(found):
    figure = found.figure(show=["next"], mds=False)
    image = figure.matplotlib.axes[0].images[1].get_array()
    middle = image[:: image.shape[0] // 4, :: image.shape[1] // 4]
    dark = middle[1::2, 1::2].astype(int).sum(axis=2)
    assert dark.shape == (2, 2)
    assert dark.argmin() == 0
    assert dark[0, 0] < 200 < dark[0, 1]


def test_parts_may_be_chosen(found):
    assert "entropy" not in words(found.figure(show=["next", "special"]))
    only = words(found.figure(mds="only"))
    assert "map of all heads" in only
    assert "entropy" not in only
    assert "map of all heads" not in words(found.figure(mds=False))


def test_one_text_says_so_and_needs_no_distances():
    text = words(hs.heads(planted(1)[0]).figure())
    said = r"4 heads over 1 text: no evidence for others, median \d+ tokens"
    assert any(re.fullmatch(said, each) for each in text)
    assert "map of all heads" not in text


def test_figures_are_the_same_each_time_and_carry_their_recipe(found, tmp_path):
    options = {"theme": "dark", "width": 120, "colour": False, "title": "A title"}
    first, second = (found.figure(**options) for _ in range(2))
    assert first.to_bytes("svg") == second.to_bytes("svg")
    assert first.recipe["view"] == "heads"
    assert first.recipe["layers"] == [0, 1]
    assert first.recipe["model"] == "planted"
    assert "theme='dark'" in first.recipe["call"]
    for kind in ("svg", "pdf", "png"):
        assert first.save(tmp_path / f"a.{kind}").stat().st_size > 1000
    document = re.search(
        r"<dc:description>(.*?)</dc:description>", (tmp_path / "a.svg").read_text(encoding="utf-8")
    )
    assert json.loads(document[1].replace("&quot;", '"'))["call"] == first.recipe["call"].replace(
        "'", "'"
    )


@pytest.fixture(scope="module")
def neurons():
    return hs.mechanism(tiny_model("bert"), tiny_tokenizer(), TEXTS, at=[(0, 1), (1, 0)])


def test_neurons_are_drawn_by_position(neurons):
    text = words(neurons.figure())
    assert {"head 0-1", "head 1-0"} <= set(text)
    rows = neurons.columns()
    number = next(
        n for n in range(len(rows["of"])) if (rows["layer"][n], rows["of"][n]) == (0, "margin")
    )
    assert any(
        each.startswith(f"{rows['neurons'][number]:.1f} of {rows['units'][number]}, Jaccard")
        for each in text
    )
    figure = neurons.figure(at=[(1, 0)], of="score")
    assert figure.recipe["heads"] == [0]
    assert "read by the score" in " ".join(words(figure))


def test_what_there_is_not_is_refused(found, neurons):
    with pytest.raises(FigureError, match="There is no 'nxt' to draw; there are next"):
        found.figure(show=["nxt"])
    with pytest.raises(FigureError, match="has no option 'size'"):
        found.figure(size=3)
    with pytest.raises(RecordError, match="distances of heads were not added up"):
        hs.heads(planted(2)).figure(mds=True)
    with pytest.raises(FigureError, match="at= has 0 heads"):
        neurons.figure(at=[])
    with pytest.raises(RecordError, match="was not looked into"):
        neurons.figure(at=[(1, 1)])


def test_kovalevas_classes_are_bars_of_every_layer(found):
    text = words(found.figure(classes=True))
    assert {"vertical", "heterogeneous", "layer 0", "layer 1", "all"} <= set(text)
    shares = found.classes_of_layers()[1]
    assert f"{100 * shares['vertical']:.0f}" in text
    assert "entropy" not in text
    assert found.figure(classes=True).recipe["call"].startswith("headscope.figure(result, classes=")


def test_kovalevas_classes_of_several_tasks_stand_below_each_other(found):
    other = hs.heads(planted(5))
    text = words(found.figure(classes={"five texts": other}, colour=False))
    assert text.index("planted") < text.index("five texts")
    assert "layer 0" not in text
    with pytest.raises(FigureError, match="classes has a int for 'x'; give what headscope.heads"):
        found.figure(classes={"x": 3})
