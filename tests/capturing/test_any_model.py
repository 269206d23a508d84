"""Models of no library in particular, run by whoever knows how."""

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model, tiny_tokenizer


def test_an_encoder_decoder_of_torch_becomes_three_stacks():
    torch.manual_seed(4)
    model = nn.Transformer(12, 2, 2, 3, 16, batch_first=True).eval()
    source, target = torch.randn(1, 5, 12), torch.randn(1, 3, 12)
    with torch.no_grad():
        expected = model(source, target)
    model.train()
    with hs.watch(model, list("abcde"), list("xyz")) as seen:
        found = model(source, target)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert model.training
    record = seen.record
    assert {name: len(stack) for name, stack in record.stacks.items()} == {
        "encoder": 2,
        "decoder": 3,
        "cross": 3,
    }
    assert record["cross"].query.pieces == ("x", "y", "z")
    assert record["cross"].key.pieces == ("a", "b", "c", "d", "e")
    assert record.verified < 1e-5
    assert record.model.class_name == "Transformer"


def test_a_batch_gives_a_record_each_and_sides_without_tokens_are_numbered():
    torch.manual_seed(5)
    model, states = nn.MultiheadAttention(12, 3, batch_first=True).eval(), torch.randn(2, 4, 12)
    with (
        pytest.warns(UserWarning, match="numbered: .* was given no tokens for 4 positions$"),
        hs.watch(model, batch=2, keep=("weights", "values")) as seen,
    ):
        _, own = model(states, states, states, average_attn_weights=False)
    assert len(seen.records) == 2
    for example, record in enumerate(seen.records):
        assert record["self"].query.pieces == ("0", "1", "2", "3")
        np.testing.assert_allclose(record["self"].weights(0), own[example].numpy(), atol=1e-6)
        assert record["self"].layer(0).queries is None


@pytest.mark.parametrize(
    ("family", "name", "size"),
    [("wav2vec2", "input_values", (1, 4000)), ("videomae", "pixel_values", (1, 4, 3, 12, 12))],
)
def test_numbers_in_place_of_names_are_said_of_whatever_is_read(family, name, size):
    model, given = tiny_model(family), torch.randn(size)
    with pytest.warns(UserWarning, match="was given no tokens for"), hs.watch(model) as seen:
        model(**{name: given})
    assert seen.record.numbered


def test_what_was_not_seen_is_said():
    model = nn.Sequential(nn.Linear(3, 3))
    with (  # noqa: PT012
        pytest.raises(CaptureError, match="Sequential computed no softmax attention that could be"),
        hs.watch(model) as seen,
    ):
        with pytest.raises(CaptureError, match="once the block of hs.watch is left"):
            _ = seen.record
        model(torch.ones(2, 3))


def test_the_users_own_error_comes_through():
    with pytest.raises(ZeroDivisionError), hs.watch(nn.Linear(3, 3)):
        1 / 0  # noqa: B018


class Attention(nn.Module):
    """Two heads of six features, in windows or with its heads mixed where asked."""

    def __init__(self, *, windows: int = 1, axes: int = 4, mixed: bool = False):
        super().__init__()
        self.windows, self.axes, self.mixed = windows, axes, mixed
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.mix = nn.Linear(2, 2)

    def forward(self, states):
        batch, size, _ = states.shape
        leading = (batch, self.windows) if self.axes == 5 else (batch * self.windows,)
        parts = self.qkv(states).reshape(*leading, size // self.windows, 3, 2, 6)
        query, key, value = (part.transpose(-2, -3) for part in parts.unbind(-3))
        if self.axes == 5:
            context = nn.functional.scaled_dot_product_attention(query, key, value)
        else:
            weights = (query @ key.transpose(-1, -2) / 6**0.5).softmax(-1)
            weights = (
                self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) if self.mixed else weights
            )
            context = weights @ value
        return self.out(context.transpose(-2, -3).reshape(batch, size, 12))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"windows": 4}, "computes attention on 4 rows where hs.watch was given batch=1"),
        ({"windows": 4, "axes": 5}, r"attention on \[1, 4, 2, 2, 6\], expected \[batch head query"),
        ({"mixed": True}, "what is not a softmax: one of these weights is -"),
    ],
)
def test_windows_and_mixed_heads_are_refused_with_the_reason(options, reason):
    torch.manual_seed(6)
    model, states = Attention(**options), torch.randn(1, 8, 12)
    with pytest.raises(CaptureError, match=reason), hs.watch(model):
        model(states)


def test_the_same_attention_without_windows_or_mixing_is_captured():
    torch.manual_seed(6)
    with hs.watch(model := Attention(), keep="weights") as seen:
        model(torch.randn(1, 8, 12))
    assert seen.record["self"].weights(0).shape == (2, 8, 8)
    assert seen.record.verified < 1e-6


class Block(nn.Module):
    """A layer of attention, after which each position is as before and something of the others."""

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(24), nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, states):
        normed = self.norm(states)
        return states + self.attention(normed, normed, normed)[0]


class Convolved(nn.Module):
    """As timm and torchvision: a convolution cuts patches, a class token comes first."""

    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, 24, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 24))
        self.position = nn.Parameter(torch.randn(1, 16, 24))
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def patches(self, pixels):
        return self.cut(pixels).flatten(2).transpose(1, 2)

    def forward(self, pixels):
        patches = self.patches(pixels)
        states = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1)
        states = states + self.position
        for block in self.blocks:
            states = block(states)
        return states


class Rearranged(Convolved):
    """As vit-pytorch: pixels are put in rows of patches, which a product of matrices reads."""

    def __init__(self):
        super().__init__()
        self.cut = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 24))

    def patches(self, pixels):
        rows = pixels.reshape(len(pixels), 3, 3, 4, 5, 4).permute(0, 2, 4, 3, 5, 1)
        return self.cut(rows.reshape(len(pixels), 15, 48))


class Windowed(Convolved):
    """As Swin: patches look at those of their own window, here a row of the picture."""

    def forward(self, pixels):
        patches = self.patches(pixels)
        windows = patches.reshape(-1, 5, 24)
        for block in self.blocks:
            windows = block(windows)
        return windows.reshape(patches.shape)


def pictures(count=1):
    return torch.randn(count, 3, 12, 20, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("make", [Convolved, Rearranged])
@pytest.mark.parametrize("way", ["model", "forward", "keyword"])
def test_patches_of_a_watched_model_have_their_places(make, way):
    model, pixels = make().eval(), pictures(2)
    with hs.watch(model, batch=2) as seen:
        if way == "model":
            model(pixels)
        elif way == "forward":
            model.forward(pixels)
        else:
            model(pixels=pixels)
    if make is Rearranged and way == "forward":  # no module was given the picture itself
        assert seen.record.numbered
        return
    tokens = seen.records[1]["self"].query
    assert tokens.grid == (3, 5)
    assert tokens.labels[:7] == ("[CLS]", "r0c0", "r0c1", "r0c2", "r0c3", "r0c4", "r1c0")
    painted = pixels.clone()
    painted[1, :, 4:8, 12:16] = -painted[1, :, 4:8, 12:16]
    with hs.watch(model, batch=2) as after:
        model(painted)
    values = [each.records[1]["self"].layer(0).values for each in (seen, after)]
    changed = np.abs(values[0] - values[1]).max(axis=(0, 2)) > 1e-6
    assert [tokens.labels[at] for at in np.flatnonzero(changed)] == ["r1c3"]


def test_windows_of_a_watched_picture_are_laid_out():
    model = Windowed().eval()
    with hs.watch(model) as seen:
        model(pictures())
    stack = seen.record["self"]
    assert stack.query.grid == (3, 5)
    weights = stack.weights(0)
    assert np.allclose(weights.sum(axis=-1), 1, atol=1e-6)
    assert not weights[:, :5, 5:].any()


def test_tokens_of_the_user_come_before_patches():
    names = [f"own {number}" for number in range(16)]
    model = Convolved().eval()
    with hs.watch(model, names) as seen:
        model(pictures())
    assert seen.record["self"].query.pieces == tuple(names)


def test_a_mask_is_no_picture():
    class Text(Convolved):
        def forward(self, states, mask):
            for block in self.blocks:
                states = block.attention(states, states, states, attn_mask=mask[0, 0])[0]
            return states

    model = Text().eval()
    with hs.watch(model) as seen:
        model(torch.randn(1, 5, 24), torch.zeros(1, 1, 5, 5))
    assert seen.record["self"].query.labels == tuple("01234")


class Across(Convolved):
    """As XCiT: features attend to each other, and what they hold are the patches."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, pixels):
        parts = self.qkv(self.patches(pixels)).reshape(len(pixels), 15, 3, 3, 8)
        query, key, value = parts.permute(2, 0, 3, 4, 1)
        context = (query @ key.transpose(-2, -1)).softmax(-1) @ value
        return self.out(context.permute(0, 3, 1, 2).reshape(len(pixels), 15, 24))


def test_features_that_attend_to_each_other_are_no_patches():
    model = Across().eval()
    with hs.watch(model) as seen:
        model(pictures())
    assert seen.record["self"].query.labels == tuple(f"channel {number}" for number in range(8))


@pytest.fixture
def gpt2():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for each in messages %}{{ each.content }} {% endfor %}"
    return tiny_model("gpt2"), tokenizer


CHAT = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "it sat"}]


@pytest.mark.parametrize("given", ["the cat sat", CHAT], ids=["text", "conversation"])
def test_a_tokenizer_makes_tokens_of_a_text_or_a_conversation(given, gpt2):
    model, tokenizer = gpt2
    text = given if isinstance(given, str) else tokenizer.apply_chat_template(CHAT, tokenize=False)
    wanted = hs.capture(model, tokenizer, given)["self"].query
    encoding = tokenizer(text, add_special_tokens=given is not CHAT, return_tensors="pt")
    with hs.watch(model, given, tokenizer=tokenizer) as seen:
        model(**encoding)
    assert seen.record["self"].query == wanted
    what = "a text" if isinstance(given, str) else "a conversation"
    with (
        pytest.raises(TextError, match=f"given {what}, and reads tokens; give tokenizer="),
        hs.watch(model, given),
    ):
        model(**encoding)


def test_tokens_that_fit_nowhere_or_twice_are_told(gpt2):
    model, tokenizer = gpt2
    ids = tokenizer("the cat sat", return_tensors="pt")["input_ids"]
    with (
        pytest.warns(UserWarning, match=r"No attention was seen that works on its 2 tokens \('a'"),
        hs.watch(model, ["a", "b"]) as seen,
    ):
        model(ids)
    assert seen.record.numbered
    with (
        pytest.raises(CaptureError, match="given 2 sequences of 3 tokens, and goes by how many"),
        hs.watch(model, list("abc"), list("xyz")),
    ):
        model(ids)


def test_a_second_run_in_one_block_is_refused():
    """Not taken for more layers of the same model."""
    model, ids = tiny_model("gpt2"), torch.tensor([[1, 7, 8, 2]])
    with pytest.raises(CaptureError, match="runs again in one block of hs.watch"), hs.watch(model):
        model(input_ids=model(input_ids=ids).last_hidden_state.argmax(-1))
    with hs.watch(model) as seen:
        model(input_ids=ids)
    assert len(seen.record["self"]) == model.config.n_layer


def test_ids_are_named_by_the_tokenizer():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    ids = tokenizer(["the cat", "the dog"], return_tensors="pt")["input_ids"]
    for given in (ids, ids.numpy(), ids.tolist()):
        with hs.watch(model, *given, batch=2, tokenizer=tokenizer) as seen:
            model(ids)
        names = [tokenizer.convert_ids_to_tokens(row) for row in ids.tolist()]
        assert [list(each["self"].query.pieces) for each in seen.records] == names


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"batch": torch.zeros(1, 3, dtype=torch.long)},
            "batch of hs.watch must be a whole number",
        ),
        ({"batch": 2}, "was given a tokenizer and nothing to read: give texts or hs.watch"),
    ],
)
def test_a_tokenizer_without_anything_to_read_is_refused(options, match):
    watching = hs.watch(tiny_model("bert"), tokenizer=tiny_tokenizer(), **options)
    with pytest.raises(hs.errors.HeadscopeError, match=match), watching:
        pass


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_a_model_that_computes_nan_is_told_by_layer(kind):
    model = tiny_model("bert")
    model.set_attn_implementation(kind)
    with torch.no_grad():
        model.encoder.layer[1].attention.self.query.weight.fill_(float("nan"))
    match = r"^encoder\.layer\.1\.attention\.self: the model itself computes nan here"
    with pytest.raises(CaptureError, match=match):
        hs.capture(model, tiny_tokenizer(), "the cat")
