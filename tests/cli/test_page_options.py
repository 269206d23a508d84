"""The options of a page on the command line: all that `headscope.view` has, declared once."""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.cli._signature import plain_help
from headscope.testing import random_record
from headscope.views.figure_options import FigureOptions
from headscope.views.options import PageOptions, PageSelection, WrittenOptions, declared

from .conftest import header_of, run_line

SPECIAL = {
    "stack": "cross",
    "layer": 1,
    "heads": [0, 2],
    "query": [0, 2],
    "key": [1, 3],
    "quantity": "weight",
    "zoom": [1.0, 2.0, 3.5],
}
"""Values of options that are neither switches nor words of a list."""
AS_WORDS = {"query": ["0", "q2"], "key": ["k1", "3"]}
"""How some of them are written, where not as in Python."""


def flag(name):
    """The name on the command line of an option of Python."""
    return f"--{name.replace('_', '-')}"


def other_values():
    """A value of each option that can be chosen without evidence or further records, mostly not the
    default.
    """
    values = dict(SPECIAL)
    for name, option in declared(PageSelection).items():
        if option.choices:
            values[name] = option.choices[-1]
        elif option.type is bool:
            values[name] = not option.default.value
    return values | {"view": "matrix"}


def as_written(name, value):
    """An option as it is written on the command line."""
    option = declared(PageSelection)[name]
    if value is True:
        return [flag(name)]
    if value is False:
        return [option.default.off or flag(f"no_{name}")]
    given = value if isinstance(value, list) else [value]
    return [flag(name), *AS_WORDS.get(name, map(str, given))]


@pytest.fixture
def record(here):
    record = random_record()
    hs.save(record, "run.safetensors")
    return record


def options_of(command):
    from headscope.cli._main import app

    arguments = app[command].assemble_argument_collection()
    return {name: argument.parameter.help for argument in arguments for name in argument.names}


def test_at_says_where_a_page_opens(record, here, capsys):
    """As it says what a figure draws."""
    found = []
    for heads, more in (("1-2", ["--layer", "1", "--head", "2"]), ("1", ["--layer", "1"])):
        assert run(["view", "run.safetensors", "--view", "head", "--at", heads]) == 0
        found.append((here / "headscope.html").read_text())
        assert run(["view", "run.safetensors", "--view", "head", *more]) == 0
        assert (here / "headscope.html").read_text() == found[-1]
    assert found[0] != found[1]
    assert run(["view", "run.safetensors", "--at", "1-2", "--layer", "0"]) == 1
    assert "--at and --layer both say where to look" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["view", "serve"])
def test_every_option_of_a_page_is_one_of_the_command(command):
    assert {flag(name) for name in PageOptions.__annotations__} <= set(options_of(command))


def test_every_option_of_a_figure_is_one_of_the_command():
    assert {flag(name) for name in FigureOptions.__annotations__} <= set(options_of("figure"))


def test_help_is_the_docstring():
    helps = options_of("view")
    assert helps["--head"] == "One head that is shown first; the same as --heads with one number."
    for name, option in declared(WrittenOptions).items():
        if name != "tray":
            assert helps[flag(name)] == plain_help(option.help)
            assert "`" not in helps[flag(name)]


def test_what_is_written_is_what_the_page_shows(record, here):
    values = other_values()
    words = [word for name, value in values.items() for word in as_written(name, value)]
    assert run(["view", "run.safetensors", *words, "--out", "a.html", "--title", "Mine"]) == 0
    header = header_of(here / "a.html")
    assert header["selection"].items() >= values.items()
    assert header["title"] == "Mine"
    assert header["selection"] == hs.view(record, **values).header["selection"]


def test_quantities_come_from_a_file(record, here):
    weights = np.random.default_rng(1).random((2, 5, 7))
    np.savez("mine.npz", **{"mine": weights, "cross/theirs": weights[:, None].repeat(3, 1)})
    page = ["--quantities", "mine.npz", "--quantity", "theirs", "--out", "a.html"]
    assert run(["view", "run.safetensors", *page]) == 0
    header = header_of(here / "a.html")
    assert [(each["name"], each["per"]) for each in header["quantities"]] == [
        ("mine", "layer"),
        ("theirs", "head"),
    ]
    assert header["selection"]["quantity"] == "theirs"


def test_the_page_of_a_comparison_is_that_of_python(record, here):
    hs.save(random_record(seed=1), "before.safetensors")
    assert run(["view", "run.safetensors", "--comparison", "before.safetensors"]) == 0
    wanted = hs.view(hs.compare(hs.load("before.safetensors"), record)).header
    header = header_of(here / "headscope.html")
    assert header["note"] == wanted["note"]
    assert header["selection"] == wanted["selection"]


@pytest.mark.parametrize(
    ("content", "more", "line"),
    [
        (None, "--links links.json", "--links is links.json: No such file"),
        ("[", "--links links.json", "--links is links.json, which is not JSON"),
        ("{}", "--links links.json", "give a list of [tokens of a dependent"),
        ("[]", "--links links.json --treebank b.conllu", "--links and --treebank both give gold"),
        (None, "--comparison a.html", "a.html does not exist"),
        (None, "--quantities flat.npz", "'flat' has the shape (4,); give the axes layer"),
        (None, "--quantities gone.npz", "gone.npz"),
    ],
)
def test_files_that_do_not_fit_are_one_line(content, more, line, record, here, capsys):
    np.savez("flat.npz", flat=np.zeros(4))
    if content is not None:
        (here / "links.json").write_text(content)
    assert run_line(f"view run.safetensors {more}") == 1
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert not (here / "headscope.html").exists()


def test_links_come_from_a_file(here, folder):
    (here / "links.json").write_text(json.dumps([[1, [2, 3], "det"]]))
    assert run_line(f"view 'the cat sat' --model {folder} --links links.json --out a.html") == 0
    arcs = header_of(here / "a.html")["links"]["arcs"]
    assert [arc["label"] for arc in arcs] == ["det"]
