"""Strangers' strings in figures: they are text, and nothing else, in all three formats."""

import dataclasses
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from fontTools import subset
from PIL import Image

import headscope as hs
from headscope.cli import run
from headscope.patterns import PATTERNS
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

NAME = "</text><script>window.broken=1</script>) /OpenAction << /S /JavaScript >>"
"""Of models, stacks and titles."""
COLUMN = 49
"""Tokens whose names all have room in one figure."""
SVG = "{http://www.w3.org/2000/svg}"
DOES_SOMETHING = re.compile(
    rb"/(?:JavaScript|JS|URI|Launch|OpenAction|AA|GoToR|GoToE|SubmitForm|ImportData|EmbeddedFiles?|RichMedia|XFA|ObjStm)\b"
)


@pytest.fixture(autouse=True)
def fonts_without_ligatures(monkeypatch):
    """Half of the time that a document takes goes to tables of its fonts that no check here sees:
    those are left out of it.
    """
    left_out = [*subset.Options._drop_tables_default, "GSUB", "GPOS", "GDEF"]
    monkeypatch.setattr(subset.Options, "_drop_tables_default", left_out)


def check_svg(data, twin):
    """Elements are those of a harmless figure; none runs anything, none leads anywhere."""
    root = ET.fromstring(data)
    tags = {node.tag for node in root.iter()}
    assert tags == {node.tag for node in ET.fromstring(twin).iter()}
    assert {
        f"{SVG}{name}" for name in ("script", "foreignObject", "a", "set", "animate", "iframe")
    }.isdisjoint(tags)
    for node in root.iter():
        for name, value in node.attrib.items():
            local = name.rpartition("}")[2]
            assert not local.startswith("on"), name
            if local in ("href", "src"):
                assert value.startswith(("#", "data:image/png;base64,")), value
            if local in ("style", "clip-path", "fill", "filter", "mask"):
                assert "url" not in value.replace("url(#", ""), value
    for style in root.iter(f"{SVG}style"):
        assert "url" not in style.text
        assert "@import" not in style.text
    assert data.count(b"<!DOCTYPE") <= 1
    assert b"<?xml-stylesheet" not in data
    assert b"<!ENTITY" not in data


def check_pdf(data):
    """Outside of strings and streams there is no word that makes a reader do something."""
    bare = re.sub(rb"stream\r?\n.*?endstream", b"", data, flags=re.DOTALL)
    bare = re.sub(rb"\((?:\\.|[^()\\])*\)", b"()", bare, flags=re.DOTALL)
    assert b"(" not in bare.replace(b"()", b"")
    assert DOES_SOMETHING.findall(bare) == []


def check_png(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    assert set(image.text) == {"Title", "Software", "Description"}


def check(figure, twin, formats=("pdf", "png")):
    """What a figure holds is harmless, beside the SVG of a harmless one like it."""
    check_svg(figure.to_bytes("svg"), twin)
    if "pdf" in formats:
        check_pdf(figure.to_bytes("pdf"))
    if "png" in formats:
        check_png(figure.to_bytes("png", dpi=30))


def is_written(shown, texts):
    """Whether a text stands there as it is, or cut where there was no room; squares are what no
    font can write.
    """
    wanted = shown.replace("\u200d", "")
    for text in (text.replace("\u200d", "") for text in texts):
        seen = text if text in ("…", wanted) else text.removesuffix("…")
        whole = len(seen) == len(wanted) or (seen != text and seen)
        if whole and all(here in (sign, "□") for here, sign in zip(seen, wanted, strict=False)):
            return True
    return False


def columns_of(hostile):
    tokens = list(hostile.items())
    return [dict(tokens[start : start + COLUMN]) for start in range(0, len(tokens), COLUMN)]


def record_of(queries, keys, rng, name="cross", model=NAME):
    query, key = (Tokens(pieces=tuple(pieces), labels=tuple(pieces)) for pieces in (queries, keys))
    vectors = {
        "queries": rng.normal(size=(2, len(queries), 4)).astype(np.float32),
        "keys": rng.normal(size=(2, len(keys), 4)).astype(np.float32),
    }
    stack = Stack(name=name, query=query, key=key, layers=(Layer(layer=0, **vectors),))
    return Record(stacks={name: stack}, model=ModelFacts(name=model))


KEYS = ("k0", "k1", "k2")
ACROSS = {
    "text": ("key", {"query": 1}),
    "neuron": ("key", {"query": 1}),
    "head": ("query", {}),
    "matrix": ("query", {"head": 1}),
}
"""On which side a view shows many tokens, and what it needs beside."""


@pytest.mark.parametrize("view", ACROSS)
def test_tokens_are_text_in_figures(view, hostile, see):
    side, options = ACROSS[view]
    columns = columns_of(hostile)
    # Strips of numbers take most of its time, and its names are drawn as those of other views are.
    if view == "neuron":
        columns = columns[:2]

    def drawn(pieces, name):
        sides = (pieces, KEYS) if side == "query" else (KEYS, pieces)
        record = record_of(*sides, np.random.default_rng(3), NAME if name == NAME else "cross")
        return hs.figure(record, view=view, width=180, title=name, **options)

    twins = {
        size: drawn(["w"] * size, "w").to_bytes("svg") for size in {len(each) for each in columns}
    }
    for number, column in enumerate(columns):
        figure = drawn(column, NAME)
        # Documents write the tokens of all views in one way: all of them in one view are enough.
        formats = ("pdf", "png") if number == 0 else ("pdf",) if view == "matrix" else ()
        check(figure, twins[len(column)], formats)
        texts = see(figure).texts
        assert [
            token for token, shown in column.items() if not is_written(shown.figure, texts)
        ] == []


@pytest.fixture
def neighbours(hostile):
    """Two by two, with what stands for each in a figure.

    Of each of three tests a third: one figure for each string takes long, and all of them were seen
    as tokens.
    """
    tokens = [(token, shown.figure) for token, shown in hostile.items()]
    if len(tokens) % 2:
        tokens.append(tokens[0])
    return list(zip(tokens[::2], tokens[1::2], strict=True))


def test_chosen_tokens_and_names_of_models_are_text(neighbours, see):
    rng = np.random.default_rng(3)
    twin = hs.figure(record_of(KEYS, KEYS, rng, "cross", "w"), view="pair", query=0, key=1)
    twin = twin.to_bytes("svg")
    tokens = [token for pair in neighbours[::3] for token in pair]
    for number, (token, wanted) in enumerate(tokens):
        record = record_of((token,), KEYS, rng, "self", token)
        figure = hs.figure(record, view="pair", query=0, key=1, width=400)
        texts = see(figure).texts
        named = wanted if len(token) <= 60 else wanted[:60] + "…"
        assert is_written(f"“{named}” → “k1”", texts), texts
        # of an address the model is the last part
        assert not token or "/" in token or is_written(wanted, texts), token
        if number % 60 == 0:
            check(figure, twin)


def test_titles_and_names_of_stacks_are_text(neighbours, see):
    rng = np.random.default_rng(3)
    twins = [
        hs.figure(record_of(KEYS, KEYS, rng, "cross"), view=view, title="w").to_bytes("svg")
        for view in ("model", "matrix")
    ]
    for number, ((title, wanted), (name, _)) in enumerate(neighbours[1::3]):
        view = ("model", "matrix")[number % 2]
        record = record_of(KEYS, KEYS, rng, name if name.isprintable() else NAME, name)
        figure = hs.figure(record, view=view, title=title, width=400)
        trimmed = " ".join(title.split()) == title and title
        assert not trimmed or is_written(wanted, see(figure).texts), title
        if number % 30 < 2:
            check(figure, twins[number % 2])


def test_names_of_labels_are_text(neighbours, see):
    rng = np.random.default_rng(6)
    planted = next(pattern for pattern in PATTERNS if pattern.name == "next")
    tokens = Tokens(pieces=("w0", "w1", "w2", "w3", "w4"))
    weights = random_weights(rng, (2, 5, 5))
    weights[1] = 0.1 * weights[1] + 0.9 * np.roll(np.eye(5), 1, axis=1)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(Layer(layer=0, weights=weights),))
    record = Record(stacks={"self": stack}, model=ModelFacts(name=NAME))
    twin = None
    for number, ((first, wanted), (second, beside)) in enumerate(
        [(("w", "w"), ("x", "x")), *neighbours[2::3]]
    ):
        patterns = tuple(
            dataclasses.replace(planted, name=name, says=name, source=name)
            for name in (first, second)
        )
        found = hs.heads(record, patterns=patterns)
        figure = hs.figure(record, view="scatter", evidence=found, x=first, y=second, width=1000)
        texts = see(figure).texts
        assert is_written(wanted, texts), first
        assert is_written(beside, texts), second
        assert is_written(f"{wanted} (1)", texts) or is_written(f"{beside} (1)", texts), (
            first,
            second,
        )
        twin = twin or figure.to_bytes("svg")
        if number % 30 == 1:
            check(figure, twin)


@pytest.mark.parametrize(
    "fault",
    [
        "<script>window.broken=1</script>",
        '<a href="//example.com">x</a>',
        '<text onload="x">x</text>',
        "<foreignObject/>",
    ],
)
def test_what_breaks_out_of_a_picture_is_seen(fault):
    plain = hs.figure(record_of(KEYS, KEYS, np.random.default_rng(3))).to_bytes("svg")
    check_svg(plain, plain)
    with pytest.raises(AssertionError):
        check_svg(plain.replace(b"</svg>", fault.encode() + b"</svg>"), plain)


def test_what_breaks_out_of_a_document_is_seen():
    plain = hs.figure(record_of(KEYS, KEYS, np.random.default_rng(3))).to_bytes("pdf")
    check_pdf(plain)
    action = b"/OpenAction << /S /JavaScript /JS (x) >> /Type /Catalog"
    assert b"/Type /Catalog" in plain
    with pytest.raises(AssertionError):
        check_pdf(plain.replace(b"/Type /Catalog", action))


def test_a_figure_from_the_command_line_is_inert(hostile, tmp_path):
    valid = [token for token in hostile if token.encode("utf-8", "replace").decode() == token][
        -COLUMN:
    ]
    harmless = ["w" * len(token) for token in valid], "w" * len(NAME)
    for name, (pieces, model) in {"hostile": (valid, NAME), "harmless": harmless}.items():
        record = record_of(pieces, KEYS, np.random.default_rng(3), model=model)
        path = hs.save(record, tmp_path / f"{name}.safetensors")
        for kind in ("svg", "pdf"):
            out = str(path.with_suffix(f".{kind}"))
            assert run(["figure", str(path), "--out", out, "--title", NAME]) == 0
    check_svg((tmp_path / "hostile.svg").read_bytes(), (tmp_path / "harmless.svg").read_bytes())
    check_pdf((tmp_path / "hostile.pdf").read_bytes())
