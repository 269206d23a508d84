"""The options of a page on the command line: all that `headscope.view` has, declared once."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.cli._declared import flag, plain_help, written_type
from headscope.testing import random_record
from headscope.views.options import PageOptions, WrittenOptions, declared

from .conftest import header_of

WRITTEN = {
    "view": ["matrix"],
    "stack": ["cross"],
    "layer": ["1"],
    "heads": ["0", "2"],
    "query": ["0", "q2"],
    "key": ["k1", "3"],
    "pinned": ["sum"],
    "words": [],
    "mean_layers": ["0", "1"],
    "quantity": ["weight"],
    "filter": ["ab"],
    "hide_special": [],
    "sinks": ["--exclude-sinks"],
    "top_percent": ["40"],
    "order": ["kind"],
    "kind": ["near"],
    "measure": ["sharpness"],
    "layout": ["rows"],
    "tiles": ["lines"],
    "direction": ["given"],
    "neurons": ["ranked"],
    "vector": ["key"],
    "zoom": ["1", "2", "3.5"],
    "stretch": [],
    "per_head": [],
    "link_direction": ["head->dep"],
    "link_words": ["hits"],
    "linked": ["--no-linked"],
    "shown_record": ["b", "--beside", "run.safetensors"],
    "theme": ["dark"],
    "tray": ["2-0"],
}
"""Each option as it is written; of what begins with a dash this is the whole option."""
VALUES = {
    "view": "matrix",
    "stack": "cross",
    "layer": 1,
    "heads": [0, 2],
    "query": [0, 2],
    "key": [1, 3],
    "pinned": "sum",
    "words": True,
    "mean_layers": [0, 1],
    "quantity": "weight",
    "filter": "ab",
    "hide_special": True,
    "sinks": False,
    "top_percent": 40,
    "order": "kind",
    "kind": "near",
    "measure": "sharpness",
    "layout": "rows",
    "tiles": "lines",
    "direction": "given",
    "neurons": "ranked",
    "vector": "key",
    "zoom": [1.0, 2.0, 3.5],
    "stretch": True,
    "per_head": True,
    "link_direction": "head->dep",
    "link_words": "hits",
    "linked": False,
    "shown_record": "b",
    "theme": "dark",
}
NEED_EVIDENCE = {"label", "min_score", "sort", "x", "y"}


@pytest.fixture
def record(here):
    record = random_record()
    hs.save(record, "run.safetensors")
    return record


def options_of(command):
    from headscope.cli._app import app

    arguments = app[command].assemble_argument_collection()
    return {name: argument.parameter.help for argument in arguments for name in argument.names}


@pytest.mark.parametrize("command", ["view", "serve"])
def test_every_option_of_a_page_is_one_of_the_command(command):
    assert {flag(name) for name in PageOptions.__annotations__} <= set(options_of(command))


def test_help_is_the_docstring():
    helps = options_of("view")
    assert helps["--head"] == "One head that is shown first; the same as --heads with one number."
    for name, option in declared(WrittenOptions).items():
        if name != "tray":
            assert helps[flag(name)] == plain_help(option.help)
            assert "`" not in helps[flag(name)]


def test_what_is_written_is_what_the_page_shows(record, here):
    words = []
    for name, written in WRITTEN.items():
        if name != "tray":
            words += written if written[:1] and written[0][0] == "-" else [flag(name), *written]
    assert run(["view", "run.safetensors", *words, "--out", "a.html", "--title", "Mine"]) == 0
    header = header_of(here / "a.html")
    assert header["selection"] == VALUES | dict.fromkeys(("label", "sort", "x", "y")) | {
        "min_score": 0,
        "tray": [],
    }
    assert header["title"] == "Mine"
    # ... and of no option is it forgotten here
    held = {"head", "title", "include_layers", "include_heads"}
    assert {*WRITTEN, *NEED_EVIDENCE, *held} == set(declared(WrittenOptions))
    assert header["selection"] == hs.view(record, beside=[record], **VALUES).header["selection"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int | Sequence[int], list[int]),
        (int | str | Sequence[int | str], list[str]),
        (Sequence[str | Mapping[str, int]], list[str]),
        (Sequence[float] | None, list[float]),
        (int | None, int),
        (str, str),
        (bool, bool),
    ],
)
def test_types_are_those_of_python_as_they_are_written(given, wanted):
    assert written_type(given) == wanted


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
        (None, ["--links", "links.json"], "--links is links.json: No such file"),
        ("[", ["--links", "links.json"], "--links is links.json, which is no JSON"),
        ("{}", ["--links", "links.json"], "give a list of [tokens of a dependent"),
        (
            "[]",
            ["--links", "links.json", "--treebank", "b.conllu"],
            "--links and --treebank both give gold links",
        ),
        (None, ["--comparison", "a.html"], "--comparison is a.html; give a record"),
        (None, ["--quantities", "flat.npz"], "'flat' has the shape (4,); give the axes layer"),
        (None, ["--quantities", "gone.npz"], "gone.npz"),
    ],
)
def test_files_that_do_not_fit_are_one_line(content, more, line, record, here, capsys):
    np.savez("flat.npz", flat=np.zeros(4))
    if content is not None:
        (here / "links.json").write_text(content)
    assert run(["view", "run.safetensors", *more]) == 1
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1
    assert not (here / "headscope.html").exists()


def test_links_come_from_a_file(here, folder):
    (here / "links.json").write_text(json.dumps([[1, [2, 3], "det"]]))
    assert (
        run(["view", "the cat sat", "--model", folder, "--links", "links.json", "--out", "a.html"])
        == 0
    )
    arcs = header_of(here / "a.html")["links"]["arcs"]
    assert [arc["label"] for arc in arcs] == ["det"]
