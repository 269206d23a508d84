"""What people type first either works, or says in one sentence what to type instead."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record, tiny_model, tiny_tokenizer
from headscope.views.opening import View


@pytest.fixture
def record():
    """Eight tokens, two of them the same word, and a word of three pieces."""
    rng = np.random.default_rng(3)
    pieces = ("[CLS]", "the", "cat", "em", "##bed", "##ding", "the", "Cat2")
    weights = rng.dirichlet(np.ones(len(pieces)), (4, len(pieces))).astype(np.float32)
    return hs.from_weights([weights, weights], pieces)


def selection(view):
    return view.header["selection"]


def test_one_head_may_be_a_number(record):
    assert selection(hs.view(record, heads=3))["heads"] == [3]
    with pytest.raises(
        hs.errors.PageError, match=r"head=\[1, 3\]: head is one number; give several as"
    ):
        hs.view(record, head=[1, 3])
    with pytest.raises(
        hs.errors.PageError, match=r"heads=\['mean'\]: stack 'self' has heads 0 to 3"
    ):
        hs.view(record, heads="mean")


def test_tokens_are_chosen_by_their_word(record):
    assert selection(hs.view(record, query="cat", key=["[CLS]", 6]))["query"] == [2]
    assert selection(hs.view(record, query="cat", key=["[CLS]", 6]))["key"] == [0, 6]
    assert selection(hs.view(record, query="CAT"))["query"] == [2]
    assert selection(hs.view(record, query="embedding"))["query"] == [3, 4, 5]
    assert selection(hs.view(record, query="##bed"))["query"] == [4]
    with pytest.raises(hs.errors.PageError, match="query='the' stands at 1, 6; give one of these"):
        hs.view(record, query="the")
    with pytest.raises(hs.errors.PageError, match="key='dog': there is no such token; there are"):
        hs.view(record, key="dog")
    assert hs.figure(record, view="text", query="cat").matplotlib
    with pytest.raises(hs.errors.FigureError, match="query='the' stands at 1, 6"):
        hs.figure(record, view="text", query="the")


def test_a_live_view_takes_words_too(record):
    from headscope.views._selection import changed_selection

    header = hs.view(record).header
    assert changed_selection(header, header["selection"], {"query": "cat"})["query"] == [2]


def test_so_do_the_commands(record, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headscope.views._html.bundle", lambda name="page.js": "")
    hs.save(record, "r.safetensors")
    assert run(["view", "r.safetensors", "--query", "cat", "3", "--key", "7"]) == 0
    assert run(["view", "r.safetensors", "--query", "the"]) == 1
    assert "stands at 1, 6" in capsys.readouterr().err
    assert (
        run(["figure", "r.safetensors", "--view", "text", "--query", "cat", "--out", "a.svg"]) == 0
    )


def test_calls_of_bertviz_are_shown_the_way():
    for given in (([np.ones((1, 2, 3, 3))], ["a", "b", "c"]), ((np.ones((1, 2, 3, 3)),),)):
        with pytest.raises(
            hs.errors.PageError,
            match=r"headscope\.bertviz\.head_view\(attention, tokens\), or view\(headsc",
        ):
            hs.view(*given)


def test_what_is_no_record_is_shown_the_way(record):
    model = tiny_model("bert")
    with pytest.raises(
        hs.errors.PageError, match="view shows one Record or result, and was given BertModel; cap"
    ):
        hs.view(model)
    with pytest.raises(
        hs.errors.FigureError, match="figure draws a Record, and was given a BertModel"
    ):
        hs.figure(model)
    with pytest.raises(
        hs.errors.FigureError, match="A figure of a result has no option 'view'; it has"
    ):
        hs.figure(hs.compare(record, record), view="matrix")
    with pytest.raises(
        hs.errors.PageError, match="A figure of a result has no option 'layer'; it has"
    ):
        hs.view(hs.heads(record), layer=2)


def test_texts_and_encodings_have_calls_of_their_own():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    with pytest.raises(hs.errors.TextError, match=r"got a list of 2; of many give capture_many"):
        hs.capture(model, tokenizer, ["a", "b"])
    with pytest.raises(
        hs.errors.TextError,
        match="got a BatchEncoding of 2; .* goes to headscope.capturing.capture_encoded",
    ):
        hs.capture(model, tokenizer, tokenizer("the cat", return_tensors="pt"))


@pytest.mark.parametrize("name", ["x.npz", "x", "x.html"])
def test_a_record_is_called_like_one(name, record, tmp_path):
    with pytest.raises(
        hs.errors.FileError, match=r"A record is a \.safetensors file, and this is called"
    ):
        hs.save(record, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_empty_path_is_answered_with_a_name(record):
    with pytest.raises(
        hs.errors.FileError, match=r"and this is called .*; name it record\.safetensors"
    ):
        hs.save(record, "")
    with pytest.raises(hs.errors.FileError, match=r"and the path is empty; name it view\.html"):
        hs.view(record).save("")


def test_a_page_is_called_like_one(record, tmp_path, monkeypatch):
    monkeypatch.setattr(View, "html", "<!doctype html>")
    with pytest.raises(
        hs.errors.FileError, match="A view is a page, and the path is .*zz; name it"
    ):
        hs.view(record).save(tmp_path / "zz")
    assert hs.view(record).save(tmp_path / "zz.html").exists()


def test_a_file_of_another_kind_is_not_replaced_by_a_slip(record, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headscope.views._html.bundle", lambda name="page.js": "")
    hs.save(record, "r.safetensors")
    before = (tmp_path / "r.safetensors").read_bytes()
    assert run(["view", "r.safetensors", "--out", "r.safetensors"]) == 1
    assert "Expected a .html file for --out, got r.safetensors" in capsys.readouterr().err
    (tmp_path / "page.html").write_bytes(before)  # a record by a slip of its name
    assert run(["view", "r.safetensors", "--out", "page.html"]) == 1
    assert "page.html holds a record or a result" in capsys.readouterr().err
    assert (tmp_path / "page.html").read_bytes() == before
    assert (tmp_path / "r.safetensors").read_bytes() == before


@pytest.mark.parametrize("given", ["0", 1.5, [0, 0], slice(0, 1), True])
def test_layers_and_heads_are_whole_numbers(given):
    record = random_record()
    stack = next(iter(record.stacks.values()))
    with pytest.raises(hs.errors.RecordError, match="head is .*; give one whole number"):
        stack.weights(0, given)
    with pytest.raises(hs.errors.RecordError, match="layer is .*; give one whole number"):
        stack.layer(given)
    assert stack.weights(np.int64(0), np.int64(1)).ndim == 2
    with pytest.raises(hs.errors.RecordError, match="This record has the stacks"):
        record[[]]
    assert stack.name in record
    assert "no such stack" not in record
    with pytest.raises(hs.errors.RecordError, match=r"record\.stacks has all of them"):
        list(record)


def test_arrays_that_would_lose_something_are_refused():
    even, pieces = np.full((2, 3, 3), 1 / 3, np.float32), ["a", "b", "c"]
    masked = np.ma.masked_less(np.where(np.eye(3), 0, even), 0.1)
    given = {
        "is a sparse tensor": torch.from_numpy(even).to_sparse(),
        "is on the meta device": torch.from_numpy(even).to("meta"),
        "holds complex numbers": even.astype(np.complex64),
        "is a masked array": masked,
    }
    for what, array in given.items():
        with pytest.raises(hs.errors.RecordError, match=f"self attention of layer 0 {what}"):
            hs.from_weights([array], pieces)


def test_weights_that_are_nowhere_or_of_several_kinds():
    tokenizer = tiny_tokenizer()
    with pytest.raises(
        hs.errors.CaptureError, match="BertModel has weights on the meta device, where"
    ):
        hs.capture(tiny_model("bert").to("meta"), tokenizer, "the cat")
    writing = tiny_model("gpt2", writes=True).to("meta")
    with pytest.raises(
        hs.errors.CaptureError, match="GPT2LMHeadModel has weights on the meta device"
    ):
        hs.generate(writing, tokenizer, "the cat")
    torch.set_default_device("meta")
    try:
        with pytest.raises(
            hs.errors.CaptureError, match=r"set_default_device\('meta'\) is in force"
        ):
            hs.heads(tiny_model("bert").to_empty(device="cpu"), tokenizer, ["the cat", "a b"])
    finally:
        torch.set_default_device("cpu")
    mixed = tiny_model("bert")
    mixed.encoder.layer[1].half()
    with pytest.raises(
        hs.errors.CaptureError, match="BertModel has weights in float16 and float32 and"
    ):
        hs.capture(mixed, tokenizer, "the cat")
