"""Statistics and weights from blocks equal those of dense weights, computed in float64."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from headscope.capturing.building.layers import SideTokens
from headscope.capturing.building.statistics import Marks, sampled, statistics_of_call
from headscope.capturing.calls import attention
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.call import Call, visibility_of
from headscope.capturing.keep import KeepChoice
from headscope.errors import CaptureError
from headscope.record import STATISTICS, Tokens

from ...plain_statistics import statistics_of

TOLERANCE = 5e-6
FEATURES, VALUE_FEATURES, VOCABULARY, TOP = 4, 6, 5, 3


@dataclass(frozen=True)
class Case:
    """One call and what is real in it; every axis has a size of its own."""

    call: Call
    queries: list[torch.Tensor]
    keys: list[torch.Tensor]
    cross: bool

    @property
    def sides(self):
        generator = torch.Generator().manual_seed(5)
        batch, _, queries, keys = self.call.size
        ids = torch.randint(VOCABULARY, (batch, keys), generator=generator)
        segments = (torch.arange(keys) > keys // 2).int()
        of_keys = tuple(
            tokens(ids[text, real], ids[text, real] == 3, segments[real])
            for text, real in enumerate(self.keys)
        )
        if not self.cross:
            side = SideTokens(of_keys, tuple(self.keys))
            return side, side
        own = torch.randint(VOCABULARY, (batch, queries), generator=generator)
        of_queries = (tokens(own[text, real]) for text, real in enumerate(self.queries))
        return SideTokens(tuple(of_queries), tuple(self.queries)), SideTokens(
            of_keys, tuple(self.keys)
        )

    def statistics(self, *, top=0, rows=None):
        marks = Marks(self.call, self.sides, KeepChoice(rows=rows))
        return statistics_of_call(self.call, visibility_of(self.call), marks, top=top)

    def reference(self, example, rows=None, *, top=0):
        weights = dense_weights(self.call)[example]
        queries, keys = self.queries[example].numpy(), self.keys[example].numpy()
        query, key = (side.tokens[example] for side in self.sides)
        return statistics_of(
            weights[:, queries][:, :, keys], key, query if self.cross else None, rows=rows, top=top
        )


def tokens(ids, special=None, segments=None):
    found = (
        {}
        if special is None
        else {"special": tuple(special.tolist()), "segments": tuple(segments.tolist())}
    )
    return Tokens(pieces=("x",) * len(ids), ids=tuple(ids.tolist()), **found)


def dense_weights(call):
    """``[batch head query key]`` in float64, the plain way."""
    query, key = (tensor.double().numpy() for tensor in (call.query, call.key))
    scores = (
        query @ key.repeat(query.shape[1] // key.shape[1], axis=1).swapaxes(-1, -2) * call.scale
    )
    if call.soft_cap is not None:
        scores = call.soft_cap * np.tanh(scores / call.soft_cap)
    if call.bias is not None:
        scores = scores + call.bias.double().numpy()
    if call.causal:
        scores = np.where(np.tri(*scores.shape[2:], dtype=bool), scores, -np.inf)
    if call.mask is not None and call.mask.dtype == torch.bool:
        scores = np.where(call.mask.numpy(), scores, -np.inf)
    elif call.mask is not None:
        added = call.mask.double().numpy()
        scores = np.where(added > torch.finfo(call.mask.dtype).min / 2, scores + added, -np.inf)
    dead = np.isneginf(scores).all(-1, keepdims=True)
    sinks = (
        np.full((1, 1, 1), -np.inf)
        if call.sinks is None
        else call.sinks.double().numpy()[:, None, None]
    )
    top = np.maximum(np.where(dead, 0, scores).max(-1, keepdims=True), sinks)
    raised = np.where(dead, 0, np.exp(scores - top))
    return raised / (raised.sum(-1, keepdims=True) + np.exp(sinks - top) + dead)


def assert_equal(found, wanted, tolerance=TOLERANCE):
    for name in STATISTICS:
        ours, theirs = getattr(found, name), getattr(wanted, name)
        if name != "top_keys" and theirs is not None:
            np.testing.assert_allclose(ours, theirs, atol=tolerance, rtol=0, err_msg=name)
    np.testing.assert_array_equal(found.rows, wanted.rows)
    assert found.size == wanted.size


@st.composite
def cases(draw):
    shared, kv_heads = draw(st.sampled_from([(1, 3), (2, 3), (3, 1)]))
    batch, heads = 2, shared * kv_heads
    cross = draw(st.booleans())
    queries = draw(st.integers(9, 17))
    keys = draw(st.integers(6, 30).filter(lambda count: count != queries)) if cross else queries
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    normal = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]))
    real = draw(st.sampled_from(["all", "left", "right"]))
    cut = {"all": slice(0, None), "left": slice(4, None), "right": slice(0, -4)}[real]
    positions = (
        [torch.arange(queries), torch.arange(queries)[cut]],
        [torch.arange(keys), torch.arange(keys)[cut]],
    )
    kind = draw(st.sampled_from(["none", "causal", "window", "scattered", "float", "half", "row"]))
    mask = masks(kind, generator, heads, queries, keys)
    if mask is None and real != "all":
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool)
        mask = mask.tril() if kind == "causal" else mask
    if real != "all":
        mask = mask.expand(batch, *mask.shape[1:]).clone()
        hidden = torch.ones(keys, dtype=torch.bool)
        hidden[cut] = False
        mask[1][..., hidden] = False if mask.dtype == torch.bool else torch.finfo(mask.dtype).min
    value = normal(batch, kv_heads, keys, VALUE_FEATURES)
    call = Call(
        module=nn.Identity(),
        name="layer.0",
        route="interface",
        cross=cross,
        query=(2 * normal(batch, queries, heads, FEATURES)).to(dtype).transpose(1, 2),
        key=normal(batch, kv_heads, keys, FEATURES).to(dtype),
        value=value,
        context=normal(batch, queries, heads, VALUE_FEATURES),
        mask=mask,
        causal=kind == "causal" and mask is None,
        scale=0.7,
        soft_cap=draw(st.sampled_from([None, None, 1.5])),
        bias=draw(
            st.sampled_from(
                [None, None, normal(1, heads, queries, keys), normal(batch, 1, 1, keys)]
            )
        ),
        sinks=draw(st.sampled_from([None, None, normal(heads)])),
    )
    return Case(call, *positions, cross)


def masks(kind, generator, heads, queries, keys):
    """A mask of one of the forms that models hand over; scattered ones have rows that may look at
    nothing.
    """
    distance = torch.arange(queries)[:, None] - torch.arange(keys)
    if kind == "window":
        return ((distance >= 0) & (distance < 4))[None, None]
    if kind == "row":
        return torch.rand(2, 1, 1, keys, generator=generator) < 0.7
    scattered = torch.rand(1, heads, queries, keys, generator=generator) < 0.5
    scattered[..., 2, :] = False
    if kind == "scattered":
        return scattered
    if kind in ("float", "half"):
        dtype = torch.float32 if kind == "float" else torch.float16
        added = torch.randn(1, heads, queries, keys, generator=generator).to(dtype)
        return added.masked_fill(
            ~scattered, torch.finfo(dtype).min if kind == "half" else -float("inf")
        )
    return None


@pytest.mark.usefixtures("tiny_tiles")
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases(), rows=st.sampled_from([None, 5]))
def test_statistics_equal_those_of_dense_weights(case, rows):
    for example, found in enumerate(case.statistics(top=TOP, rows=rows)):
        covered = sampled(len(case.queries[example]), KeepChoice(rows=rows))
        assert_equal(found, case.reference(example, covered, top=TOP))
        weights = dense_weights(case.call)[example][:, case.queries[example]][
            :, :, case.keys[example]
        ]
        weights = weights if covered is None else weights[:, covered]
        named = np.take_along_axis(weights, np.maximum(found.top_keys, 0), axis=-1)
        np.testing.assert_allclose(
            np.where(found.top_keys < 0, 0, named), found.top_weights, atol=TOLERANCE, rtol=0
        )


@settings(max_examples=60)
@given(case=cases())
def test_texts_that_share_a_tile_have_the_statistics_of_each_alone(case):
    for example, found in enumerate(case.statistics(top=TOP)):
        assert_equal(found, case.reference(example, top=TOP))


@pytest.mark.usefixtures("tiny_tiles")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_weights_in_blocks_are_the_dense_ones(case):
    found = torch.full(case.call.size, torch.nan)
    attention.fill(case.call, visibility_of(case.call), found)
    wanted = dense_weights(case.call)
    np.testing.assert_allclose(found.numpy(), wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.usefixtures("tiny_tiles")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_weights_of_some_rows_are_the_dense_ones(case):
    rows = torch.tensor([1, 2, 3, 8])
    weights = weights_of(case.call, visibility_of(case.call), QueryRows(rows))
    wanted = dense_weights(case.call)[:, :, rows]
    np.testing.assert_allclose(weights.numpy(), wanted, atol=TOLERANCE, rtol=0)


def plain_case(queries=11, keys=11, batch=1, **changes):
    generator = torch.Generator().manual_seed(3)
    call = Call(
        module=nn.Identity(),
        name="layer.0",
        route="operators",
        cross=queries != keys,
        query=torch.randn(batch, 6, queries, FEATURES, generator=generator),
        key=torch.randn(batch, 2, keys, FEATURES, generator=generator),
        value=torch.randn(batch, 2, keys, VALUE_FEATURES, generator=generator),
        context=torch.zeros(batch, queries, 6, VALUE_FEATURES),
    )
    real = [torch.arange(queries)] * batch, [torch.arange(keys)] * batch
    return Case(replace(call, **changes), *real, queries != keys)


@pytest.mark.parametrize("scale", [1.0, 40.0])
@pytest.mark.parametrize("causal", [True, False])
def test_real_tiles_and_scores_far_from_zero(scale, causal):
    """Tiles as they are in use, of which 700 is no multiple; scores of up to several hundred."""
    case = plain_case(700, 700, causal=causal, scale=scale)
    wanted = case.reference(0, top=TOP)
    rounding = (
        2e-7
        * scale
        * (case.call.query.norm(dim=-1).max() * case.call.key.norm(dim=-1).max()).item()
    )
    assert_equal(case.statistics(top=TOP)[0], wanted, tolerance=max(TOLERANCE, rounding))


def test_a_mean_key_far_from_zero_does_not_spoil_the_entropy():
    """Softmax does not see a constant in the scores; a log-sum-exp in single precision would."""
    case = plain_case(50, 60)
    shifted = replace(
        case, call=replace(case.call, query=case.call.query * 0 + 3, key=case.call.key * 1e-3 + 30)
    )
    assert_equal(shifted.statistics()[0], shifted.reference(0), tolerance=2e-5)


def test_a_bias_of_the_least_number_hides_keys():
    """Nothing becomes infinite on the way, where infinity times a weight of 0 were no number."""
    bias = torch.zeros(1, 1, 13, 17)
    bias[..., ::3] = torch.finfo(torch.float32).min
    case = plain_case(13, 17, bias=bias)
    assert_equal(case.statistics()[0], case.reference(0))


@pytest.mark.usefixtures("tiny_tiles")
def test_weights_that_the_model_gave_are_read_in_tiles():
    case = plain_case(13, 17)
    weights = torch.from_numpy(dense_weights(case.call)).float()
    given_weights = replace(case, call=replace(case.call, query=None, key=None, weights=weights))
    assert_equal(given_weights.statistics(top=TOP)[0], case.reference(0, top=TOP))
    with pytest.raises(CaptureError, match="neither weights nor queries and keys"):
        replace(case, call=replace(case.call, query=None)).statistics()


@pytest.mark.usefixtures("tiny_tiles")
def test_rows_of_given_weights_that_may_look_at_nothing_are_zero():
    mask = torch.ones(1, 1, 13, 17, dtype=torch.bool)
    mask[:, :, 4] = False
    weights = torch.full((1, 6, 13, 17), 1 / 17)
    found = plain_case(13, 17, query=None, key=None, weights=weights, mask=mask).statistics()[0]
    assert (found.entropy[:, 4] == 0).all()
    assert (found.segments[:, 4] == 0).all()
    np.testing.assert_allclose(found.received, 12 / 13 / 17, rtol=1e-6)


def test_a_model_that_is_being_trained_is_read_without_gradients():
    with torch.enable_grad():
        case = plain_case(11, 13, key=torch.randn(1, 2, 13, FEATURES, requires_grad=True))
        found = case.statistics()[0]
    with torch.no_grad():
        case.call.key.requires_grad_(False)
        assert_equal(found, case.reference(0))


def test_weight_on_padding_is_refused():
    case = replace(plain_case(11, 13), keys=[torch.arange(10)])
    with pytest.raises(CaptureError, match=r"layer.0: up to 0.\d+ of a row's weight lies on"):
        case.statistics()


def test_padding_in_the_middle_of_the_keys_is_cut_off_too():
    keys = torch.tensor([0, 1, 4, 5, 6, 9])
    mask = torch.zeros(1, 1, 1, 13, dtype=torch.bool)
    mask[..., keys] = True
    case = replace(plain_case(11, 13, mask=mask), keys=[keys])
    assert_equal(case.statistics(top=TOP)[0], case.reference(0, top=TOP))


def test_padding_that_a_soft_mask_hides_is_cut_off():
    """Some families add -10000 instead of hiding, which leaves a weight of exactly 0."""
    mask = torch.zeros(1, 1, 11, 13)
    mask[..., 10:] = -10000.0
    case = replace(plain_case(11, 13, mask=mask), keys=[torch.arange(10)])
    assert_equal(case.statistics()[0], case.reference(0))


@pytest.fixture
def small_tiles(monkeypatch):
    in_blocks_of(monkeypatch, 2**15)


@pytest.fixture
def tiny_tiles(monkeypatch):
    in_blocks_of(monkeypatch, 150)


def in_blocks_of(monkeypatch, numbers):
    monkeypatch.setitem(attention.NUMBERS, "cpu", numbers)
    monkeypatch.setattr(attention, "NUMBERS_OF_LONG", numbers)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("causal", [True, False])
def test_nothing_as_large_as_the_weights_of_one_head_is_ever_there(causal):
    case = plain_case(600, 600 if causal else 700, causal=causal)
    with Sizes() as sizes:
        case.statistics(top=TOP)
    assert sizes.largest <= max(2 * 2**15, 6 * (600 * (14 + 2 * TOP) + 700) + 1)
    assert sizes.largest < 600 * 600 / 3


@pytest.mark.usefixtures("small_tiles")
def test_a_bias_of_every_head_is_cut_into_tiles_too():
    case = plain_case(
        600, 700, bias=torch.randn(1, 6, 600, 700), key=torch.randn(1, 6, 700, FEATURES)
    )
    with Sizes() as sizes:
        case.statistics()
    assert sizes.largest <= 2 * 2**15


class Sizes(TorchDispatchMode):
    """Notes the memory of the largest tensor that an operator makes."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = result if isinstance(result, tuple | list) else [result]
        given = {
            tensor.untyped_storage().data_ptr()
            for tensor in args
            if isinstance(tensor, torch.Tensor)
        }
        for tensor in made:
            if (
                isinstance(tensor, torch.Tensor)
                and tensor.untyped_storage().data_ptr() not in given
            ):
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // 4)
        return result
