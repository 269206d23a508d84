"""Heads that alone are kept."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.errors import CaptureError, FigureError, PageError, RecordError
from headscope.testing import tiny_model

from ..close import assert_close

TEXT = "the cat sat on the mat"
PICKS = {
    "bert": [(1, 2), (0, 0), (0, 2)],
    "gpt2": [(2, 4), (0, 1)],
    # three query heads share each of two key/value heads: shared evenly, unevenly, and one of each
    "llama": [(0, 0), (0, 1), (1, 1), (1, 2), (1, 5)],
    "gpt_oss": [(1, 3), (0, 0)],
    "bloom": [(1, 1)],
    "t5": [(1, 1), ("cross", 0, 2)],
    "bart": [("cross", 1, 3), ("encoder", 1, 0), ("decoder", 1, 2), ("decoder", 1, 3)],
}
ALL = ("weights", "statistics", "values", "qk", "before")
KEPT = [(family, keep) for family in PICKS for keep in ("auto", ALL)]


@pytest.mark.parametrize(("family", "keep"), [*KEPT, ("llama", "weights"), ("bart", "qk")])
def test_chosen_heads_are_those_of_the_whole_capture(tokenizer, family, keep):
    model = tiny_model(family)
    whole = hs.capture(model, tokenizer, TEXT, target=None, keep=keep)
    part = hs.capture(model, tokenizer, TEXT, target=None, keep=keep, heads=PICKS[family])
    assert _held(part) == _wanted(whole, PICKS[family])
    for name, layer, head in _held(part):
        ours, theirs = part[name].layer(layer), whole[name].layer(layer)
        np.testing.assert_allclose(
            ours.weights_of(head), theirs.weights_of(head), rtol=0, atol=2e-6
        )
        assert ours.heads == theirs.heads
        if theirs.has("keys") or theirs.has("values"):
            assert ours.kv_heads == theirs.kv_heads
        assert ours.visible == theirs.visible
        # The whole capture checks the weights that it keeps, which were rounded otherwise.
        assert abs(ours.verified - theirs.verified) <= 2e-6
        at = ours.head_numbers.index(head)
        for array in ("queries", "queries_before", "sinks"):
            assert ours.has(array) == theirs.has(array)
            if ours.has(array):
                assert_close(ours.part(array, [head]), theirs.part(array, [head]))
        for array in ("keys", "values", "keys_before"):
            if ours.has(array):
                number = int(theirs.kv_head_of[head])
                assert_close(ours.part(array, [number]), theirs.part(array, [number]))
        if theirs.statistics is not None:
            assert ours.statistics is not None
            for fact in ("entropy", "received"):
                row = getattr(ours.statistics, fact)[at]
                np.testing.assert_allclose(
                    row, getattr(theirs.statistics, fact)[head], rtol=0, atol=2e-6
                )


def _held(record: hs.Record) -> set[tuple[str, int, int]]:
    return {(name, *cell) for name, stack in record.stacks.items() for cell in stack.held_heads}


def _wanted(whole: hs.Record, picks: list) -> set[tuple[str, int, int]]:
    found = set()
    for pick in picks:
        *stack, layer, head = pick
        for name in stack or whole.stacks:
            there = {each.layer: each.heads for each in whole[name]}
            if head < there.get(layer, 0):
                found.add((name, layer, head))
    return found


def test_memory_is_that_of_the_chosen_heads(tokenizer):
    model = tiny_model("llama")
    whole, part = (
        hs.capture(model, tokenizer, TEXT, **more) for more in ({}, {"heads": [(1, 1), (1, 2)]})
    )
    layer, small = whole["self"].layer(1), part["self"].layer(1)
    for name, share in (("weights", 3), ("queries", 3), ("keys", 2), ("values", 2)):
        assert getattr(small, name).nbytes * share == getattr(layer, name).nbytes
    assert len(part["self"]) == 1
    assert hs.budget(model, tokenizer, TEXT, heads=[(1, 1), (1, 2)]).kept == sum(
        getattr(small, name).nbytes for name in ("weights", "queries", "keys", "values")
    )


def test_all_heads_of_a_layer_are_a_whole_layer(tokenizer):
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT, heads=[(1, head) for head in range(3)])
    layer = record["self"].layer(1)
    assert layer.held_heads is None
    assert layer.weights_of().shape[0] == 3
    assert record["self"].is_whole


def test_heads_that_were_not_kept_are_refused_with_a_reason(tokenizer):
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT, heads=[(0, 2), (1, 1)])
    stack = record["self"]
    with pytest.raises(RecordError, match="Layer 0 holds head 2 of 3, and not 1: it was captured"):
        stack.weights(0, 1)
    with pytest.raises(RecordError, match="holds head 2 of 3, and not 0, 1"):
        stack.weights()
    with pytest.raises(RecordError, match="holds other heads in each layer"):
        stack.to_xarray()
    with pytest.raises(PageError, match="has heads 1, 2; choose"):
        hs.view(record, heads=[0])
    with pytest.raises((RecordError, FigureError), match="holds head 2 of 3, and not 0"):
        hs.figure(record, view="head", layer=0, heads=[0])
    with pytest.raises(RecordError, match="holds head"):
        hs.compare(record, record)
    assert repr(record) == "<Record of BertModel: 2 chosen heads (0-2, 1-1), 19 tokens>"
    assert "holds weights, queries, keys, values of head 2" in repr(stack.layer(0))


def test_tables_keep_the_true_numbers(tokenizer):
    whole, part = (
        hs.capture(tiny_model("gpt2"), tokenizer, TEXT, **more)["self"]
        for more in ({}, {"heads": [(2, 4), (0, 1)]})
    )
    table, full = part.to_pandas(), whole.to_pandas()
    assert sorted(set(zip(table["layer"], table["head"], strict=True))) == [(0, 1), (2, 4)]
    of_head = full[(full["layer"] == 2) & (full["head"] == 4)]
    ours = table[table["layer"] == 2]
    np.testing.assert_allclose(ours["weight"].to_numpy(), of_head["weight"].to_numpy(), atol=2e-6)
    assert part.to_xarray(2).coords["head"].to_numpy().tolist() == [4]


def test_labels_keep_the_true_numbers(tokenizer):
    texts = [TEXT, "the dog ate the hat", "a man ran to a mat"]
    model = tiny_model("gpt2")
    whole, part = (
        hs.heads(list(hs.capture_many(model, tokenizer, texts, **more)))
        for more in ({}, {"heads": [(2, 4), (0, 1)]})
    )
    assert part.cells == [(0, 1), (2, 4)]
    for name, values in part.measures.items():
        picked = np.asarray(whole.measures[name])[
            ..., [whole.cells.index(cell) for cell in part.cells]
        ]
        np.testing.assert_allclose(values, picked, atol=2e-6)


def test_files_keep_chosen_heads(tokenizer, tmp_path):
    record = hs.capture(tiny_model("llama"), tokenizer, TEXT, heads=[(1, 1), (1, 5)])
    read = hs.load(hs.save(record, tmp_path / "some.safetensors"), check=True)
    assert read["self"].held_heads == ((1, 1), (1, 5))
    assert_close(read["self"].weights(1, 5), record["self"].weights(1, 5))
    assert read["self"].layer(1).held_heads == record["self"].layer(1).held_heads


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_writing_keeps_chosen_heads(tokenizer, family):
    model = _writer(family)
    options = {"max_new_tokens": 5, "allow_unfit": True}
    whole = hs.generate(model, tokenizer, TEXT, **options)
    picks = [(1, 1), (1, 2), (0, 0)]
    for keep in ("auto", "weights", "qk"):
        part = hs.generate(model, tokenizer, TEXT, keep=keep, heads=picks, **options)
        assert_close(part.generation, whole.generation)
        assert set(part["self"].held_heads) == set(picks)
        for layer, head in picks:
            ours = part["self"].weights(layer, head)
            np.testing.assert_allclose(ours, whole["self"].weights(layer, head), atol=2e-6)


def _writer(family: str):
    import torch
    from transformers import GPT2LMHeadModel, LlamaForCausalLM

    torch.manual_seed(0)
    kind = {"gpt2": GPT2LMHeadModel, "llama": LlamaForCausalLM}[family]
    return kind(tiny_model(family).config).eval()


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([(9, 0)], r"heads=\[\(9, 0\)\]: there are the layers 0, 1"),
        ([(0, 7)], r"layer 0 has heads 0 to 2"),
        ([("cross", 0, 0)], "has the stacks 'self'"),
        ("0-1", "give pairs of layer and head"),
        ([3], "give pairs of layer and head"),
        ([(1, -1)], "give pairs of layer and head"),
        ([(1, 2, 3, 4)], "give pairs of layer and head"),
        ([], "would keep nothing"),
    ],
)
def test_heads_that_there_are_not(tokenizer, heads, said):
    model = tiny_model("bert")
    with pytest.raises(CaptureError, match=said):
        hs.capture(model, tokenizer, TEXT, heads=heads)
    with pytest.raises(CaptureError, match=said):
        list(hs.capture_many(model, tokenizer, [TEXT, "a cat"], heads=heads))


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5"])
def test_norms_are_those_of_a_record_of_all_heads(family, tokenizer):
    """Value norms of the chosen heads; sums over all heads of the layer stay what they are."""
    model = tiny_model(family)
    name = "self" if family != "t5" else "cross"
    heads = [(0, 1), (1, 0), (1, 2)] if name == "self" else [("cross", 1, 0), ("cross", 1, 2)]
    whole = hs.capture(model, tokenizer, TEXT, keep="alti")
    some = hs.capture(model, tokenizer, TEXT, keep="alti", heads=heads)
    assert list(some.stacks) == [name]
    assert whole[name].layer(1).has("value_norms")
    for layer in some[name]:
        full, kept = whole[name].layer(layer.layer), list(layer.head_numbers)
        assert layer.held_heads is not None
        assert_close(layer.value_norms, full.value_norms[kept])
        assert layer.contributions.missing == full.contributions.missing
        for kind in ("attention", "residual", "output", "alti"):
            ours, theirs = (getattr(each.contributions, kind) for each in (layer, full))
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert_close(ours, theirs)
        for head in kept:
            assert_close(layer.head_contributions_of(head), full.head_contributions_of(head))


def test_norms_of_chosen_heads_are_kept_shown_and_drawn(tokenizer, tmp_path):
    model = tiny_model("bert")
    whole = hs.capture(model, tokenizer, TEXT, keep="norms")
    given = hs.capture(model, tokenizer, TEXT, keep="norms", heads=[(1, 2)])
    hs.save(given, tmp_path / "some.safetensors")
    some = hs.load(tmp_path / "some.safetensors")
    assert_close(some["self"].layer(1).value_norms, whole["self"].layer(1).value_norms[[2]])
    hs.view(some, quantity="contribution", layer=1, heads=[2]).save(tmp_path / "some.html")
    drawn = []
    for record in (some, whole):
        figure = hs.figure(record, view="matrix", layer=1, head=2, quantity="contribution")
        drawn.append(np.asarray(Image.open(BytesIO(figure.to_bytes("png")))))
    assert_close(*drawn)
    with pytest.raises(RecordError, match="holds head 2 of 3, and not 0"):
        some["self"].layer(1).head_contributions_of(0)
    with pytest.raises(RecordError):
        hs.norm_study([some])
    with pytest.raises(RecordError):
        hs.rollout(some)
