"""The figure of a faithfulness study: marks stand where the numbers are."""

import re

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.evidence import interval
from headscope.studies import ExplainedText, Faithfulness
from headscope.studies.faithfulness import counts_of

pytest.importorskip("matplotlib", reason="needs the extra figures")
NAMES = ("attention", "contribution", "gradient", "leave_one_out", "random")
TEXTS, TOKENS, SHARES = 9, 7, 5


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(2)
    texts = []
    for _ in range(TEXTS):
        true = rng.random(TOKENS)
        noise = dict(zip(NAMES, (0.4, 0.1, 0.2, 0.0, 9.0), strict=True))
        texts.append(
            ExplainedText(
                pieces=tuple("abcdefg"),
                probabilities=np.array([0.25, 0.75]),
                signals={name: true + much * rng.random(TOKENS) for name, much in noise.items()},
                erased={name: np.cumsum(rng.random((2, SHARES)) / 6, axis=1) for name in NAMES},
                permuted=np.zeros(0),
                adversarial=None,
                largest=0.5,
            )
        )
    return of_texts(texts)


def of_texts(texts):
    """The result of these texts."""
    found = Faithfulness(confidence=0.9)
    for number, text in enumerate(texts):
        facts = {"model": "planted"}
        found.sums.add(f"{number}", f"{number}", counts_of(None, text), length=TOKENS, facts=facts)
    found.explained = tuple(texts)
    return found


def test_erasure_curves_are_means_with_intervals(found):
    curve = found.erasure("gradient", "sufficiency")
    values = np.stack([text.erased["gradient"][1] for text in found.explained])
    assert curve.shape == (SHARES, 3)
    np.testing.assert_allclose(curve[:, 0], values.mean(axis=0))
    np.testing.assert_allclose(curve[:, 1:], interval(values, confidence=0.9))
    assert curve[:, 0].mean() == pytest.approx(found.means["sufficiency", "gradient", ""][0])
    assert found.erasure("gradient")[:, 0].mean() == pytest.approx(
        found.means["comprehensiveness", "gradient", ""][0]
    )
    with pytest.raises(RecordError, match="no 'loss' by 'gradient'; there are comprehensiveness,"):
        found.erasure("gradient", "loss")
    with pytest.raises(RecordError, match="by 'alti'"):
        found.erasure("alti")


def test_titles_are_never_cut(found, check_titles):
    curves = ("without the top tokens the answer loses", "with the top tokens alone it loses")
    for width in (60, 120, 180):
        figure = found.figure(width=width)
        check_titles(figure, "agrees with gradient", "comprehensiveness", *curves)
        # Narrow panels stand below each other, so that no word is broken.
        words = [each.get_text() for each in figure.matplotlib.axes[0].texts]
        assert {"comprehensiveness", "sufficiency"} <= set(words)


def panels(figure):
    """The charts of the figure, in the order in which they are drawn."""
    return figure.matplotlib.axes[0].child_axes


def test_marks_stand_where_the_numbers_are(found):
    placed = []
    for axes in panels(found.figure()):
        placed.append(
            [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]
        )
    assert sum(map(len, placed[:4])) == len(found.means)
    wanted = [found.means[name][0] for name in found.means if name[2] == "gradient"]
    np.testing.assert_allclose(sorted(placed[0]), sorted(wanted))


def test_curves_are_drawn_for_every_signal(found):
    figure = found.figure(title="T", width=140)
    lines = [each for axes in panels(figure) for each in axes.lines]
    curves = {tuple(each.get_ydata()) for each in lines if len(each.get_xdata()) == SHARES}
    wanted = set()
    for name in NAMES:
        for measure in ("comprehensiveness", "sufficiency"):
            wanted.add(tuple(found.erasure(name, measure)[:, 0]))
    assert curves == wanted
    text = re.findall(r"<text[^>]*>([^<]*)</text>", figure.to_bytes("svg").decode())
    assert text.count("leave one out") >= 3
    assert "itself" in text
    assert "T" in text
    assert figure.recipe["call"] == "headscope.figure(result, title='T', width=140)"
    assert (figure.recipe["model"], figure.recipe["layers"]) == ("planted", [-1])


def test_one_text_has_no_whiskers(found):
    alone = of_texts(found.explained[:1])
    text = " ".join(
        re.findall(
            r"<text[^>]*>([^<]*)</text>",
            alone.figure(theme="dark", colour=False).to_bytes("svg").decode(),
        )
    )
    assert "mean over 1 text;" in text
    assert "whiskers" not in text


def test_what_cutting_any_tokens_does_is_the_zero_line_of_erasure(found):
    figure = found.figure()
    for axes, measure in zip(
        panels(figure)[2:4], ("comprehensiveness", "sufficiency"), strict=True
    ):
        at_random = found.means[measure, "random", ""][0]
        assert any(list(line.get_xdata()) == [at_random] * 2 for line in axes.lines)
    assert any("the zero line" in text.get_text() for text in figure.matplotlib.axes[0].texts)
