"""What is known of tensors between a product and its softmax, and what layers that add the same are
known by.
"""

import gc
import weakref

import pytest
import torch
from torch import nn

from headscope.capturing.watching._score_trace import ScoreTrace, ScoreTraces
from headscope.capturing.watching._watch import Watch

BATCH, HEADS, TOKENS, FEATURES = 2, 3, 5, 4
WIDTH = HEADS * FEATURES


class Layer(nn.Module):
    """Attention with something done to the scores."""

    def __init__(self, act):
        super().__init__()
        self.act = act
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, states, added):
        parts = (part(states) for part in (self.query, self.key, self.value))
        q, k, v = (part.unflatten(-1, (HEADS, FEATURES)).transpose(1, 2) for part in parts)
        self.weights = self.act(q @ k.mT / 2, added).softmax(-1)
        return self.output((self.weights @ v).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, *acts):
        super().__init__()
        self.layers = nn.ModuleList([Layer(act) for act in acts])

    def forward(self, states, added):
        for layer in self.layers:
            states = states + layer(states, added)
        return states


def plus(scores, added):
    return scores + added


def watched(model, added):
    calls = []
    with torch.no_grad(), Watch(model, BATCH, calls.append):
        model(torch.randn(BATCH, TOKENS, WIDTH), added)
    return calls


def assert_follow(calls, model):
    for call, layer in zip(calls, model.layers, strict=True):
        scores = call.query @ call.key.mT * call.scale
        scores = scores if call.bias is None else scores + call.bias
        if call.mask is not None:
            scores = scores.masked_fill(~call.mask, torch.finfo(scores.dtype).min)
        torch.testing.assert_close(scores.softmax(-1), layer.weights, atol=1e-5, rtol=0)


@pytest.fixture
def slopes():
    torch.manual_seed(4)
    return torch.randn(1, HEADS, 1, TOKENS)


def test_what_layers_add_alike_is_computed_once(slopes):
    model = Model(plus, plus, plus)
    first, *others = calls = watched(model, slopes)
    torch.testing.assert_close(first.bias, slopes.expand_as(first.bias), atol=1e-5, rtol=0)
    assert all(call.bias is first.bias for call in others)
    assert_follow(calls, model)


def hide(key):
    def act(scores, added):
        scores = scores + added
        scores[..., key] = torch.finfo(scores.dtype).min  # torch tells no mode what this made
        return scores

    return act


def grow(scores, added):
    scores = scores + added
    added += 1.5 * torch.arange(TOKENS)
    return scores


def fresh(factor):
    # The memory of what one layer added is free when the next one asks for some.
    return lambda scores, added: scores + (added * factor)


def scaled(factor):
    return lambda scores, added: (scores + added) * factor


def capped(factor):
    return lambda scores, added: factor * torch.tanh(scores + added)


@pytest.mark.parametrize(
    "acts",
    [
        (hide(1), hide(3)),
        (grow, grow),
        (fresh(1.0), fresh(-2.0)),
        (scaled(1.0), scaled(3.0)),
        (plus, lambda scores, added: scores.transpose(-1, -2).add(added).mT),
        (capped(2.0), capped(2.0)),
        (plus, lambda scores, added: torch.add(scores, added, alpha=2)),
        (plus, lambda scores, added: scores.add_(added).add_(1.0 + added)),
    ],
)
def test_what_layers_add_otherwise_is_seen(acts, slopes):
    torch.manual_seed(1)
    model = Model(*acts)
    assert_follow(watched(model, slopes), model)


def test_what_was_added_is_held_so_that_nothing_comes_to_lie_in_its_place(slopes):
    model, added_by_layers, are_held = Model(), [], []

    def act(scores, added):
        own = added * 1.0
        for layer in model.layers:
            layer.weights = None
        are_held.append([other() is not None for other in added_by_layers])
        added_by_layers.append(weakref.ref(own))
        return scores + own

    model.layers.extend(Layer(act) for _ in range(2))
    calls = []
    with torch.no_grad(), Watch(model, BATCH, lambda call: calls.append(call.bias)):
        model(torch.randn(BATCH, TOKENS, WIDTH), slopes)
    assert are_held == [[], [True]]


@torch.inference_mode()
def test_in_inference_mode_numbers_tell_what_was_added(slopes):
    model = Model(plus, grow, plus)
    assert_follow(watched(model, slopes.clone()), model)


def test_nothing_is_written_on_tensors_and_nothing_outlives_them(slopes):
    model = Model(plus)
    watched(model, slopes)
    assert vars(model.layers[0].weights) == {}
    traces, tensor = ScoreTraces(), torch.zeros(2, 3)
    traces.remember(tensor, ScoreTrace())
    traces.remember(tensor, ScoreTrace(sizes=((2, 3),)))
    assert traces.of(tensor).sizes == ((2, 3),)
    del tensor
    gc.collect()
    assert not traces._known


class Products(nn.Module):
    """Attention whose products are asked for in one way."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, q, k, v):
        return getattr(self, self.way)(q, k, v)

    def bmm(self, q, k, v):
        q, k, v = (each.flatten(0, 1) for each in (q, k, v))
        weights = torch.bmm(input=q, mat2=k.mT).softmax(-1)
        return torch.bmm(weights, mat2=v).unflatten(0, (-1, HEADS))

    def baddbmm(self, q, k, v):
        q, k, v = (each.flatten(0, 1) for each in (q, k, v))
        scores = torch.baddbmm(torch.zeros(()), batch1=q, batch2=k.mT, beta=0.5, alpha=1.0)
        return (scores.softmax(-1) @ v).unflatten(0, (-1, HEADS))

    def matmul(self, q, k, v):
        return torch.matmul(torch.matmul(q, other=k.mT).softmax(-1), v)

    def one_text(self, q, k, v):
        """Keys and values of the heads without an axis for the one text."""
        return (q @ k[0].mT).softmax(-1) @ v[0]


@pytest.mark.parametrize("way", ["bmm", "baddbmm", "matmul", "one_text"])
def test_products_are_seen_whatever_they_are_given_by(way):
    torch.manual_seed(5)
    q, k, v = torch.randn(3, 1, HEADS, TOKENS, FEATURES)
    k, v = torch.cat([k, k], 2), torch.cat([v, v + 1], 2)
    calls = []
    # a module needs a parameter to be one that computes attention
    model = Products(way)
    model.weight = nn.Parameter(torch.ones(1))
    with torch.no_grad(), Watch(model, 1, calls.append):
        model(q, k, v)
    (call,) = calls
    torch.testing.assert_close(call.query, q)
    torch.testing.assert_close(call.key, k)
    torch.testing.assert_close(call.value, v)
    torch.testing.assert_close(call.weights, (q @ k.mT).softmax(-1))
