"""Old names of options: they say what they are called now, and do the same."""

import pytest

import headscope as hs
from headscope.cli import run
from headscope.cli._old_options import with_new_names
from headscope.testing import random_record
from headscope.views._selection import changed_selection
from headscope.views.options import OLD_NAMES


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_of_a_view_warns_and_does_the_same(old):
    value = {"mute": True, "share": 40, "least": 0}[old]
    with pytest.warns(DeprecationWarning, match=f"{old}= is called {OLD_NAMES[old]}= now"):
        shown = hs.view(random_record(), **{old: value})
    assert shown.header["selection"][OLD_NAMES[old]] == value


def test_an_old_name_of_a_figure_warns_and_does_the_same():
    record = random_record()
    with pytest.warns(DeprecationWarning, match="share= is called top_percent= now"):
        figure = hs.figure(record, view="head", share=40)
    assert figure.recipe["call"] == hs.figure(record, view="head", top_percent=40).recipe["call"]


def test_an_old_name_in_a_selection_warns_and_does_the_same():
    header = hs.view(random_record(), view="head").header
    with pytest.warns(DeprecationWarning, match="mute= is called hide_special= now"):
        selection = changed_selection(header, header["selection"], {"mute": True})
    assert selection["hide_special"] is True


def test_the_new_name_counts_where_both_are_given():
    with pytest.warns(DeprecationWarning, match="top_percent"):
        shown = hs.view(random_record(), share=40, top_percent=50)
    assert shown.header["selection"]["top_percent"] == 50


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            [
                "view",
                "run.safetensors",
                "--layers",
                "1",
                "--least=20",
                "--evidence",
                "--out",
                "p.html",
            ],
            "--include-layers",
        ),
        (["figure", "run.safetensors", "--mute", "--out", "f.svg"], "--hide-special"),
        (["figure", "run.safetensors", "--without-sinks", "--out", "f.svg"], "--exclude-sinks"),
        (["figure", "run.safetensors", "--share", "40", "--out", "f.svg"], "--top-percent"),
    ],
)
def test_an_old_option_of_the_command_line_says_so_and_does_the_same(
    old, new, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    hs.save(random_record(), "run.safetensors")
    assert run(old) == 0
    assert f"is now {new}; the old name will be removed in 0.3" in capsys.readouterr().err
    made = (tmp_path / old[-1]).read_bytes()
    renamed = with_new_names(old)
    capsys.readouterr()
    assert run(renamed) == 0
    assert "is called" not in capsys.readouterr().err
    assert (tmp_path / old[-1]).read_bytes() == made


def test_a_new_option_and_another_command_say_nothing(capsys):
    assert with_new_names(["figure", "--layers", "1", "--top-percent=3"]) == [
        "figure",
        "--layers",
        "1",
        "--top-percent=3",
    ]
    assert with_new_names([]) == []
    assert capsys.readouterr().err == ""
