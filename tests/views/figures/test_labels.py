import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

import headscope as hs
from headscope.testing import random_weights
from headscope.views.figures.fonts import missing_words, readable


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        ("", "·"),
        (" ", "␣"),
        ("  ", "␣␣"),
        ("\n", "↵"),
        ("a\nb", "a↵b"),
        ("\t", "⇥"),
        ("\x00", "U+0000"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u200b", "U+200B"),
        ("\u0301", "◌\u0301"),
        ("\ud800", "U+D800"),
        ("\u3164", "U+3164"),
        ("x" * 61, "x" * 60 + "…"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_a_token_can_always_be_seen(token, shown):
    assert readable(token) == shown
    readable(token).encode()


def test_a_font_that_has_them_writes_characters_that_the_others_lack(tmp_path, see):
    """A made-up font with two of three characters of private use, which no other font has, under
    the name of one that is asked for.
    """
    first_of_font, second_of_font, in_none = has_none = "\U000f0101\U000f0102\U000f0103"
    record = hs.from_weights(
        random_weights(np.random.default_rng(0), (1, 2, 3, 3)), [*has_none], model="m"
    )
    first = hs.figure(record, view="text")
    assert (first.missing, see(first).texts.count("□")) == (has_none, 3)
    path = made_font(tmp_path / "made.ttf", "Noto Sans CJK SC", first_of_font + second_of_font)
    font_manager.fontManager.addfont(path)
    try:
        second = hs.figure(record, view="text")
        assert second.missing == in_none
        assert [text for text in see(second).texts if text in f"{has_none}□"] == [
            first_of_font,
            second_of_font,
            "□",
        ]
        assert "NotoSansCJKSC" in second.to_bytes("pdf").decode("latin-1").replace(" ", "")
    finally:
        font_manager.fontManager.ttflist = [
            entry for entry in font_manager.fontManager.ttflist if entry.fname != str(path)
        ]


def made_font(path, family, characters):
    """A font that draws each character as the same box."""
    pen = TTGlyphPen(None)
    (
        pen.moveTo((100, 0)),
        pen.lineTo((100, 700)),
        pen.lineTo((900, 700)),
        pen.lineTo((900, 0)),
        pen.closePath(),
    )
    names = [".notdef", *(f"uni{ord(each):04X}" for each in characters)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(each): f"uni{ord(each):04X}" for each in characters})
    builder.setupGlyf(dict.fromkeys(names, pen.glyph()))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable(
        {"familyName": family, "styleName": "Regular", "psName": family.replace(" ", "")}
    )
    builder.setupOS2()
    builder.setupPost()
    builder.save(path)
    return path


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("中文", "such as Noto Sans CJK SC"),
        ("한", "Noto Sans CJK KR"),
        ("か", "Noto Sans CJK JP"),
        ("𓀀", "Install one, or"),
    ],
)
def test_what_to_do_about_missing_characters(missing, words):
    assert words in missing_words(missing)
    assert missing_words("中" * 20).count("中") == 8
