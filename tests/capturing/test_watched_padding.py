"""Padding of a batch that is run under `hs.watch`: cut off, however the model is told of it."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

WIDTH, LENGTHS = 12, (7, 4)


def check_alone(batched, alone):
    """The arrays of a text are the same in a batch and alone, without padding."""
    assert list(batched.stacks) == list(alone.stacks)
    for name, stack in alone.stacks.items():
        other = batched[name]
        assert (len(other.query), len(other.key)) == (len(stack.query), len(stack.key)), name
        for layer, own in zip(other, stack, strict=True):
            np.testing.assert_allclose(layer.weights_of(), own.weights_of(), atol=2e-5)
            np.testing.assert_allclose(layer.values, own.values, atol=2e-5)


def watched(model, run, batch=1, tokens=()):
    with hs.watch(model, *map(list, tokens), batch=batch) as seen:
        run()
    return seen.records


def texts(*, left=False):
    """Ids of texts of two lengths, padded, and their mask."""
    ids, mask = torch.zeros(2, len(LENGTHS), max(LENGTHS), dtype=torch.long)
    drawn = torch.Generator().manual_seed(3)
    for row, length in enumerate(LENGTHS):
        at = slice(max(LENGTHS) - length, None) if left else slice(0, length)
        ids[row, at] = torch.randint(5, 60, (length,), generator=drawn)
        mask[row, at] = 1
    return ids, mask


@pytest.mark.parametrize(
    ("family", "left", "implementation"),
    [
        ("bert", False, "sdpa"),
        ("bert", False, "eager"),
        ("gpt2", False, "sdpa"),
        ("llama", True, "sdpa"),
        ("llama", True, "eager"),
        ("bloom", True, "eager"),
        ("codegen", True, "eager"),
    ],
)
def test_texts_are_those_without_padding(family, left, implementation):
    model = tiny_model(family)
    model.set_attn_implementation(implementation)
    ids, mask = texts(left=left)
    records = watched(model, lambda: model(input_ids=ids, attention_mask=mask), batch=2)
    for row, record in enumerate(records):
        own = ids[row : row + 1, mask[row].bool()]
        (alone,) = watched(model, lambda own=own: model(input_ids=own))
        check_alone(record, alone)
        first = max(LENGTHS) - LENGTHS[row] if left else 0
        assert record["self"].query.pieces == tuple(
            str(first + place) for place in range(LENGTHS[row])
        )


def test_only_the_encoder_of_an_encoder_decoder_is_padded_though_both_are_as_long():
    model = tiny_model("t5")
    ids, mask = texts()
    written = torch.randint(5, 60, (2, max(LENGTHS)), generator=torch.Generator().manual_seed(5))
    records = watched(
        model, lambda: model(input_ids=ids, attention_mask=mask, decoder_input_ids=written), batch=2
    )
    for row, record in enumerate(records):
        own, target = ids[row : row + 1, mask[row].bool()], written[row : row + 1]
        (alone,) = watched(
            model, lambda own=own, target=target: model(input_ids=own, decoder_input_ids=target)
        )
        check_alone(record, alone)
        assert (len(record["cross"].query), len(record["cross"].key)) == (7, LENGTHS[row])


@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "given", [("the cat sat", "a dog"), ("a dog", "the cat sat"), ("the cat", "big dog")]
)
def test_each_text_of_a_batch_has_its_own_tokens(family, side, given):
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    tokenizer.padding_side = side
    encoded = tokenizer(list(given), padding=True, return_tensors="pt")
    padded = [tokenizer.convert_ids_to_tokens(ids) for ids in encoded.input_ids]
    for tokens in (given, padded):
        with hs.watch(model, *tokens, batch=2, tokenizer=tokenizer) as seen:
            model(**encoded)
        for text, record in zip(given, seen.records, strict=True):
            own = tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)
            assert record["self"].query.pieces == tuple(own)
            assert not record.numbered
    with (
        pytest.raises(hs.errors.CaptureError, match="1 sequences of tokens for a batch of 2"),
        hs.watch(model, padded[0], batch=2),
    ):
        model(**encoded)


@pytest.mark.parametrize("by_position", [True, False])
@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (["the cat", "cat the"], None),
        (["cat the", "the cat"], r"id 25 at position 1 of example 0, .* was given 8 \('c'\)"),
        (["the cat", "cat tho"], r"id 36 at position 6 of example 1, .* was given 46 \('##o'\)"),
    ],
)
def test_other_words_than_the_model_reads_are_refused(told, wrong, by_position):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    padding = {"padding": "max_length", "max_length": 11}
    encoded = tokenizer(["the cat", "cat the"], return_tensors="pt", **padding)
    ids = [encoded.pop("input_ids")] if by_position else []
    expected = pytest.raises(hs.errors.CaptureError, match=wrong) if wrong else nullcontext()
    with expected, hs.watch(model, *told, batch=2, tokenizer=tokenizer):
        model(*ids, **encoded)


class Even(nn.Module):
    """Even attention, masked before its softmax or after."""

    def __init__(self, fill):
        super().__init__()
        self.fill, self.qkv = fill, nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        nn.init.zeros_(self.qkv.weight[:WIDTH])
        nn.init.zeros_(self.qkv.bias[:WIDTH])

    def forward(self, states, seen):
        query, key, value = self.qkv(states).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / 6**0.5
        if self.fill is None:
            weights = scores.softmax(-1) * seen
            weights = weights / weights.sum(-1, keepdim=True)
        else:
            weights = scores.masked_fill(~seen, self.fill).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("fill", [None, -1e4, -torch.inf])
@pytest.mark.parametrize("backwards", [False, True])
def test_an_even_row_that_sees_all_is_no_padding(fill, backwards):
    with torch.random.fork_rng(), torch.no_grad():
        model = Even(fill).eval()
    seen = torch.ones(5, 5, dtype=torch.bool)
    seen = seen.triu() if backwards else seen.tril()
    with hs.watch(model, list("abcde")) as watching:
        model(torch.randn(1, 5, WIDTH), seen)
    stack = watching.record["self"]
    assert stack.query.labels == tuple("abcde")
    if not backwards or fill is not None:
        visible = stack.layer(0).visible
        assert visible is not None
        assert np.array_equal(visible.dense(), seen.numpy())
    even = seen / seen.sum(-1, keepdim=True)
    np.testing.assert_allclose(stack.weights(0, 0), even.numpy(), atol=1e-6)


class Hidden(nn.Module):
    """Attention of two heads that is told of padding in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way, self.qkv, self.out = way, nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, states, real):
        parts = self.qkv(states).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)
        shown = real[:, None, None].expand(-1, 1, states.shape[1], -1)
        if self.way in ("truths", "numbers"):
            mask = shown if self.way == "truths" else torch.zeros(shown.shape)
            if self.way == "numbers":
                mask = mask.masked_fill(~shown, -torch.inf)
            context = functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        else:
            scores = parts[0] @ parts[1].mT / 6**0.5
            scores = (
                scores.masked_fill(~shown, -torch.inf)
                if self.way == "filled"
                else scores + -1e4 * ~shown
            )
            context = scores.softmax(-1) @ parts[2]
        return self.out(context.transpose(1, 2).flatten(2))


def states_and_mask():
    states = torch.randn(2, max(LENGTHS), WIDTH, generator=torch.Generator().manual_seed(6))
    return states, torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]


@pytest.mark.parametrize("way", ["truths", "numbers", "filled", "added"])
def test_masks_of_any_form(way):
    torch.manual_seed(2)
    model, (states, real) = Hidden(way).eval(), states_and_mask()
    records = watched(model, lambda: model(states, real), batch=2, tokens=["abcdefg", "klmn"])
    for row, record in enumerate(records):
        own = states[row : row + 1, real[row]]
        (alone,) = watched(
            model, lambda own=own: model(own, torch.ones(1, own.shape[1], dtype=torch.bool))
        )
        check_alone(record, alone)
        assert record["self"].query.pieces == (tuple("abcdefg"), tuple("klmn"))[row]


@pytest.mark.parametrize("form", ["truths", "numbers"])
def test_key_padding_mask_of_torch(form):
    torch.manual_seed(2)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=True)
    model, (states, real) = nn.TransformerEncoder(layer, 2).eval(), states_and_mask()
    hidden = ~real if form == "truths" else torch.zeros(real.shape).masked_fill(~real, -torch.inf)
    records = watched(model, lambda: model(states, src_key_padding_mask=hidden), batch=2)
    for row, record in enumerate(records):
        (alone,) = watched(model, lambda row=row: model(states[row : row + 1, real[row]]))
        check_alone(record, alone)


def test_an_example_of_padding_alone_is_refused():
    torch.manual_seed(2)
    model, (states, real) = Hidden("added").eval(), states_and_mask()
    real[1] = False
    with pytest.raises(hs.errors.CaptureError, match="hides all 7 positions of row 1 of the batch"):
        watched(model, lambda: model(states, real), batch=2)


@pytest.mark.parametrize("fill", [-1e4, -1e9, torch.finfo(torch.float32).min])
def test_padding_is_cut_where_every_row_is_even(fill):
    with torch.random.fork_rng(), torch.no_grad():
        model = Even(fill).eval()
    seen = torch.ones(5, 5, dtype=torch.bool).tril() & (torch.arange(5) > 0)
    with hs.watch(model, ["PAD", *"abcd"]) as watching:
        model(torch.randn(1, 5, WIDTH), seen)
    assert watching.record["self"].query.labels == tuple("abcd")
    even = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose(watching.record["self"].weights(0, 0), even, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_text_of_which_nothing_is_read_is_refused(family):
    model, (ids, mask) = tiny_model(family), texts()
    given = {"input_ids": ids, "attention_mask": mask * torch.tensor([[1], [0]])}
    with pytest.raises(hs.errors.CaptureError, match="hides all 7 positions of row 1 of the batch"):
        capture_encoded(model, None, given)
    with pytest.raises(hs.errors.CaptureError, match="hides all 7 positions of row 1 of the batch"):
        watched(model, lambda: model(**given), batch=2)


class Strict(nn.Module):
    """Attention in which no token sees itself, but for the first, which has nothing else."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, states, real):
        parts = self.qkv(states).unflatten(-1, (3, 2, 6)).permute(2, 0, 3, 1, 4)
        seen = torch.ones(states.shape[1], states.shape[1], dtype=torch.bool).tril(-1)
        seen[0, 0] = True
        context = functional.scaled_dot_product_attention(*parts, attn_mask=seen & real)
        return self.out(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("padding", [0, 2])
def test_the_last_token_is_kept_though_nobody_sees_it(padding):
    torch.manual_seed(2)
    states = torch.randn(1, 5 + padding, WIDTH)
    real = torch.arange(5 + padding) < 5
    names = list("abcdefg"[: 5 + padding])
    (record,) = watched(model := Strict().eval(), lambda: model(states, real), tokens=[names])
    assert record["self"].query.pieces == tuple("abcde")


@pytest.mark.parametrize("is_named", [True, False])
def test_hidden_columns_of_the_smaller_picture_are_cut(is_named):
    from transformers import DetrConfig, DetrModel, ResNetConfig

    backbone = ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage4"],
    )
    config = DetrConfig(
        use_timm_backbone=False,
        backbone=None,
        use_pretrained_backbone=False,
        backbone_config=backbone,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=5,
    )
    model = DetrModel(config).eval()
    pixels = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 64, 96).long()
    mask[1, :, 64:] = pixels[1, :, :, 64:] = 0
    given = {"pixel_values": pixels, "pixel_mask": mask}
    records = watched(
        model, lambda: model(**given) if is_named else model(*given.values()), batch=2
    )
    wanted = capture_encoded(model, None, given)
    assert [len(record["encoder"].query) for record in records] == [6, 4]
    for record, own in zip(records, wanted, strict=True):
        for name in ("encoder", "cross"):
            assert record[name].key.labels == own[name].key.labels
            np.testing.assert_allclose(
                record[name].weights(layer=0), own[name].weights(layer=0), atol=1e-5
            )


@pytest.mark.parametrize("family", ["funnel", "prophetnet"])
def test_padding_that_cannot_be_found_is_named(family):
    """Pooled positions, and those of several words ahead, are not those of the mask."""
    model, (ids, mask) = tiny_model(family), texts()
    given = {"input_ids": ids, "attention_mask": mask}
    if family == "prophetnet":
        given |= {"decoder_input_ids": ids, "decoder_attention_mask": mask}
    with pytest.warns(UserWarning, match="padding may be among them"):
        capture_encoded(model, None, given)
    with pytest.warns(UserWarning, match="padding may be among them"):
        watched(model, lambda: model(**given), batch=2)


@pytest.mark.parametrize("family", ["funnel", "bart"])
def test_nothing_is_said_of_padding_where_there_is_none_or_it_is_cut(family, recwarn):
    model, (ids, mask) = tiny_model(family), texts()
    mask = torch.ones_like(mask) if family == "funnel" else mask
    watched(model, lambda: model(input_ids=ids, attention_mask=mask), batch=2)
    assert not [each for each in recwarn if "padding" in str(each.message)]
