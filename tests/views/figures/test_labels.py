import pytest

from headscope.views.figures._fonts import em_width, families, writable
from headscope.views.figures._labels import readable
from headscope.views.figures._words import counted, ordinal, percent, short_score, short_weight, two_digits


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        ("", "∅"),
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


def test_what_no_font_has_becomes_a_square():
    names = families()
    assert writable("ab", names) == ("ab", 0)
    assert writable(f"a{chr(0x3FFFD)}", names) == ("a□", 1)
    assert writable("□", names) == ("□", 0)
    assert writable("a\ufe0f", names)[0] in ("a", "a\ufe0f")


def test_widths_grow_with_the_text():
    names = families()
    assert 0.3 < em_width("a", names) < 0.8
    assert em_width("aa", names) == pytest.approx(2 * em_width("a", names), abs=0.12)


def test_a_font_can_be_put_first():
    assert families("DejaVu Sans")[0] == "DejaVu Sans"
    assert "DejaVu Sans" in families()


def test_numbers_in_words():
    assert [short_weight(w) for w in (1.0, 0.994, 0.21, 0.004, 0.0001, 0.0)] == [
        "1.0",
        ".99",
        ".21",
        ".004",
        "<.001",
        "0",
    ]
    assert [short_score(s) for s in (12.3, -3.42, 0.214, -0.001, 0.0)] == ["12", "−3.4", "0.21", "0.00", "0.00"]
    assert [percent(p) for p in (0.0, 0.001, 0.5, 0.997, 0.9999, 1.0)] == [
        "0 %",
        "<1 %",
        "50 %",
        ">99 %",
        "100 %",
        "100 %",
    ]
    assert [counted(n, "line") for n in (1, 1120)] == ["1 line", "1,120 lines"]
    assert [ordinal(n) for n in (2, 3, 4, 11, 22)] == ["2nd", "3rd", "4th", "11th", "22nd"]
    assert [two_digits(w) for w in (1.0, 0.86, 0.3, 0.048, 0.00041)] == ["1.0", ".86", ".30", ".048", ".00041"]
