"""Attention in forms that people write by hand: seen as what it is, joined, or refused with the
reason.
"""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.errors import CaptureError, InterventionError
from headscope.record import Layer

from ..close import assert_close

BATCH, HEADS, TOKENS, FEATURES, WIDTH = 2, 3, 5, 4, 7


class Attention(nn.Module):
    """Attention whose way from queries, keys and values ``[batch head token feature]`` to contexts
    is given.
    """

    def __init__(self, way, kv_heads=HEADS, *, has_output=True):
        super().__init__()
        self.way = way
        self.query = nn.Linear(WIDTH, HEADS * FEATURES)
        self.key, self.value = (nn.Linear(WIDTH, kv_heads * FEATURES) for _ in "kv")
        self.output = nn.Linear(HEADS * FEATURES, WIDTH) if has_output else nn.Identity()

    def made(self, states):
        parts = (self.query, self.key, self.value)
        return [part(states).unflatten(-1, (-1, FEATURES)).transpose(1, 2) for part in parts]

    def forward(self, states):
        return self.output(self.way(*self.made(states)).transpose(1, 2).flatten(2))

    def wanted(self, states):
        query, key, _ = self.made(states)
        return (query @ key.transpose(-1, -2) / 2).softmax(-1)


def first_keys_last(q, k, v):
    weights = (k @ q.mT / 2).softmax(-2)  # [batch head key query]
    return (v.mT @ weights).mT


def turned(q, k, v):
    return (v.mT @ (q @ k.mT / 2).softmax(-1).mT).mT


def turned_before(q, k, v):
    return (k @ q.mT / 2).transpose(-1, -2).softmax(-1) @ v


def ellipsis(q, k, v):
    weights = (torch.einsum("...qd,...kd->...qk", q, k) / 2).softmax(-1)
    return torch.einsum("...qk,...kd->...qd", weights, v)


def values_first(q, k, v):
    weights = (torch.einsum("bhqd,bhkd->bhqk", q, k) / 2).softmax(-1)
    return torch.einsum("bhkd,bhqk->bhqd", v, weights)


def keys_first(q, k, v):
    weights = (torch.einsum("bhkd,bhqd->bhkq", k, q) / 2).softmax(-2)
    return torch.einsum("bhkq,bhkd->bhqd", weights, v)


def keys_inside(q, k, v):
    weights = (torch.einsum("bhqd,bhkd->bqkh", q, k) / 2).softmax(2)
    return torch.einsum("bqkh,bhkd->bhqd", weights, v)


def three_axes(q, k, v):
    weights = (torch.einsum("aqd,akd->aqk", q.flatten(0, 1), k.flatten(0, 1)) / 2).softmax(-1)
    return torch.einsum("aqk,akd->aqd", weights, v.flatten(0, 1)).unflatten(0, (-1, HEADS))


def fused_three_axes(q, k, v):
    found = functional.scaled_dot_product_attention(*(tensor.flatten(0, 1) for tensor in (q, k, v)))
    return found.unflatten(0, (-1, HEADS))


def one_kv_head(q, k, v):
    weights = (torch.einsum("bhid,bjd->bhij", q, k[:, 0]) / 2).softmax(-1)
    return torch.einsum("bhij,bjd->bhid", weights, v[:, 0])


FORMS = [
    first_keys_last,
    turned,
    turned_before,
    ellipsis,
    values_first,
    keys_first,
    keys_inside,
    three_axes,
    fused_three_axes,
    one_kv_head,
]


def drawn(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model.eval()


@pytest.fixture
def states():
    torch.manual_seed(6)
    return torch.randn(BATCH, TOKENS, WIDTH)


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_weights_queries_and_keys_are_seen_in_every_form(form, states):
    model = drawn(Attention(form, 1 if form is one_kv_head else HEADS))
    expected = model(states)
    with hs.watch(model, batch=BATCH) as seen:
        found = model(states)
    assert_close(found, expected)
    for record, wanted in zip(seen.records, model.wanted(states), strict=True):
        (layer,) = record["self"]
        np.testing.assert_allclose(layer.weights_of(), wanted.numpy(), atol=1e-5)
        assert (layer.projection, layer.bias) == ("output", None)
        again = Layer(layer=0, queries=layer.queries, keys=layer.keys, scale=layer.scale)
        np.testing.assert_allclose(again.weights_of(), wanted.numpy(), atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_a_head_is_silenced_in_every_form(form, states):
    model = drawn(Attention(form, 1 if form is one_kv_head else HEADS))
    model.output.bias.zero_()
    whole = model(states)
    with hs.intervene(model, hs.Zero(layer=0, heads=[1])):
        rest = model(states)
    with hs.intervene(model, hs.Zero(layer=0, heads=[0, 2])):
        alone = model(states)
    torch.testing.assert_close(rest + alone, whole)
    assert (alone - whole).abs().max() > 0.1


@pytest.mark.parametrize("form", [first_keys_last, keys_first])
@torch.no_grad()
def test_keys_that_come_first_are_not_patched_for_queries(form, states):
    model = drawn(Attention(form))
    with hs.watch(model) as seen:
        model(states[:1])
    patch = hs.Patch(record=seen.record, layer=0, heads=[0], what="queries")
    with pytest.raises(InterventionError, match="keys times queries"), hs.intervene(model, patch):
        model(states[:1])


class Linear(nn.Module):
    """Efficient Attention (Shen et al. 2021), which is not a softmax of queries times keys."""

    def __init__(self, *, separate, has_output):
        super().__init__()
        sizes = (2 * FEATURES,) * 3 if separate else (3 * 2 * FEATURES,)
        self.parts = nn.ModuleList(nn.Linear(2 * FEATURES, size) for size in sizes)
        self.output = nn.Linear(2 * FEATURES, 2 * FEATURES) if has_output else nn.Identity()

    def forward(self, states):
        made = [part(states) for part in self.parts]
        made = made if len(made) == 3 else made[0].chunk(3, dim=-1)
        q, k, v = (tensor.unflatten(-1, (2, FEATURES)).transpose(1, 2) for tensor in made)
        return self.output((q.softmax(-1) @ (k.softmax(-2).mT @ v)).transpose(1, 2).flatten(2))


class Residual(nn.Module):
    def __init__(self, layers, *, has_norm=True, width=WIDTH):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(width) if has_norm else nn.Identity()

    def forward(self, states):
        for layer in self.layers:
            states = states + layer(self.norm(states))
        return states


@pytest.mark.parametrize("has_norm", [True, False])
@pytest.mark.parametrize("has_output", [True, False])
@pytest.mark.parametrize("separate", [True, False])
@torch.no_grad()
def test_linear_attention_is_not_shown_as_softmax_attention(separate, has_output, has_norm):
    torch.manual_seed(7)
    layers = [Linear(separate=separate, has_output=has_output) for _ in range(3)]
    model = drawn(Residual(layers, has_norm=has_norm, width=2 * FEATURES))
    for tokens in (
        FEATURES,
        TOKENS,
    ):  # as many tokens as features a head has, which sizes cannot tell apart, or not
        with pytest.raises(CaptureError, match="no softmax attention that could"), hs.watch(model):
            model(torch.randn(1, tokens, 2 * FEATURES))


class Pooled(nn.Module):
    """Scores of pairs of keys, as of no product."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, states):
        return functional.avg_pool1d(states @ states.mT * self.scale, 2).softmax(-1) @ states[:, :2]


@torch.no_grad()
def test_a_softmax_of_another_size_than_its_product_is_refused(states):
    reason = (
        "a softmax of 5 x 2 with other states, but the product that its scores come from is 5 x 5"
    )
    with pytest.raises(CaptureError, match=reason), hs.watch(model := Pooled()):
        model(states[:1])


class Talking(nn.Module):
    """Heads mixed before the softmax by a convolution or a matrix, which leaves queries and keys
    where they are.
    """

    def __init__(self, mixes):
        super().__init__()
        self.mixes = mixes
        self.conv, self.linear = nn.Conv2d(HEADS, HEADS, 1), nn.Linear(HEADS, HEADS)
        self.inner = Attention(self.mixed)

    def mixed(self, q, k, v):
        scores = q @ k.mT / 2
        if self.mixes == "conv":
            scores = self.conv(scores)
        else:
            scores = self.linear(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        self.weights = scores.softmax(-1)
        return self.weights @ v

    def forward(self, states):
        return self.inner(states)


@pytest.mark.parametrize("mixes", ["conv", "linear"])
@torch.no_grad()
def test_heads_mixed_before_the_softmax_are_still_attention(mixes, states):
    model = drawn(Talking(mixes))
    with hs.watch(model, batch=BATCH) as seen:
        model(states)
    for record, wanted in zip(seen.records, model.weights, strict=True):
        np.testing.assert_allclose(record["self"].layers[0].weights_of(), wanted.numpy(), atol=1e-5)


class Loop(nn.Module):
    """Heads computed one by one."""

    def __init__(self, way, *, has_output=True):
        super().__init__()
        self.way, self.inner = way, Attention(None, has_output=has_output)
        self.weights = None

    def forward(self, states):
        made = self.inner.made(states)
        contexts = []
        for head in range(HEADS):
            q, k, v = (tensor[:, head] for tensor in made)
            if self.way == "fused":
                one = functional.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[
                    :, 0
                ]
            else:
                one = (q @ k.mT / 2 - head * torch.ones(TOKENS, TOKENS).triu(1)).softmax(-1) @ v
            contexts.append(one)
        return self.inner.output(torch.cat(contexts, dim=-1))

    def wanted(self, states):
        query, key, _ = self.inner.made(states)
        scores = query @ key.mT / 2
        if self.way != "fused":
            scores = scores - torch.arange(HEADS)[:, None, None] * torch.ones(TOKENS, TOKENS).triu(
                1
            )
        return scores.softmax(-1)


@pytest.mark.parametrize("way", ["fused", "matmul"])
@torch.no_grad()
def test_a_loop_over_heads_is_one_layer(way, states):
    model = drawn(Residual([Loop(way), Loop(way)], has_norm=False))
    given = []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda layer, args: given.append(layer.wanted(args[0])))
    with hs.watch(model, batch=BATCH) as seen:
        model(states)
    for example, record in enumerate(seen.records):
        stack = record["self"]
        assert [(layer.layer, layer.heads, layer.projection) for layer in stack] == [
            (number, HEADS, f"layers.{number}.inner.output") for number in range(2)
        ]
        for layer, wanted in zip(stack, given, strict=True):
            np.testing.assert_allclose(layer.weights_of(), wanted[example].numpy(), atol=1e-6)
            again = Layer(
                layer=0, queries=layer.queries, keys=layer.keys, scale=layer.scale, bias=layer.bias
            )
            np.testing.assert_allclose(again.weights_of(), wanted[example].numpy(), atol=1e-5)


class Head(nn.Module):
    """One head with matrices of its own, as in many tutorials."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, FEATURES) for _ in "qkv")

    def forward(self, states):
        hidden = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        scores = self.query(states) @ self.key(states).mT / 2
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ self.value(states)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))
        self.output = nn.Linear(HEADS * FEATURES, WIDTH)

    def forward(self, states):
        return self.output(torch.cat([head(states) for head in self.heads], dim=-1))


@torch.no_grad()
def test_a_list_of_heads_is_one_layer(states):
    model = drawn(Residual([Heads(), Heads()]))
    with hs.watch(model, batch=BATCH, keep=("qk", "values")) as seen:
        model(states)
    stack = seen.records[1]["self"]
    assert [(layer.module, layer.heads, layer.kind) for layer in stack] == [
        ("layers.0", HEADS, "causal"),
        ("layers.1", HEADS, "causal"),
    ]
    given = model.norm(states[1:])
    for number, head in enumerate(model.layers[0].heads):
        scores = (head.query(given) @ head.key(given).mT / 2)[0]
        wanted = scores.masked_fill(
            torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1), -torch.inf
        ).softmax(-1)
        np.testing.assert_allclose(stack.weights(0, number), wanted.numpy(), atol=1e-5)


@pytest.mark.parametrize("layer", [Heads, lambda: Loop("matmul")])
@torch.no_grad()
def test_heads_that_were_computed_one_by_one_are_not_changed(layer, states):
    model = drawn(Residual([layer(), layer()]))
    with pytest.raises(InterventionError, match="computes its heads one by one"):  # noqa: SIM117
        with hs.intervene(model, hs.Zero(layer=0, heads=[1])):
            model(states)


@torch.no_grad()
def test_heads_that_nothing_takes_side_by_side_are_refused(states):
    model = drawn(Residual([Loop("matmul", has_output=False)], has_norm=False))
    reason = (
        "computes 3 attentions of one head each, and no matrix was seen that takes them side by "
        "side"
    )
    with pytest.raises(CaptureError, match=reason), hs.watch(model, batch=BATCH):
        model.layers[0](states)


class Blocks(nn.Module):
    """The first query looks at all keys, the others at the first two."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, states):
        states = states[:, None] * self.scale
        first, rest = states[:, :, :1], states[:, :, 1:]
        one = (first @ states.mT).softmax(-1) @ states
        return torch.cat([one, (rest @ states[:, :, :2].mT).softmax(-1) @ states[:, :, :2]], dim=2)[
            :, 0
        ]


@torch.no_grad()
def test_pieces_of_one_layer_are_not_shown_as_layers(states):
    with (
        pytest.raises(CaptureError, match="in pieces of 2 sizes"),
        hs.watch(model := Blocks(), batch=BATCH),
    ):
        model(states)


def in_chunks(q, k, v):
    return torch.cat([(part @ k.mT / 2).softmax(-1) @ v for part in q.chunk(2, dim=2)], dim=2)


def folded(q, k, v):
    rows = q.flatten(1, 2).unsqueeze(1)
    return ((rows @ k.mT / 2).softmax(-1) @ v).unflatten(2, (HEADS, -1))[:, 0]


@pytest.mark.parametrize(
    ("form", "kv_heads", "told"),
    [(in_chunks, HEADS, "goes over its queries in chunks"), (folded, 1, "heads as rows of one")],
)
@torch.no_grad()
def test_parts_of_a_layer_are_not_taken_for_layers(form, kv_heads, told):
    model, states = drawn(Attention(form, kv_heads)), torch.randn(1, 8, WIDTH)
    with pytest.raises(CaptureError, match=told), hs.watch(model, list("abcdefgh")):
        model(states)


class Backwards(nn.Module):
    """Runs its blocks from the last to the first."""

    def __init__(self):
        super().__init__()
        blocks = (nn.MultiheadAttention(12, 3, batch_first=True) for _ in range(4))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, states):
        for block in reversed(self.blocks):
            states = states + block(states, states, states)[0]
        return states


@pytest.mark.filterwarnings("ignore:Some positions have no names")
def test_layers_are_numbered_in_the_order_in_which_they_ran():
    model = Backwards().eval()
    with hs.watch(model) as seen:
        model(torch.randn(1, 5, 12))
    (stack,) = seen.record.stacks.values()
    assert [layer.layer for layer in stack] == [0, 1, 2, 3]
    assert [layer.module for layer in stack] == [f"blocks.{number}" for number in (3, 2, 1, 0)]
