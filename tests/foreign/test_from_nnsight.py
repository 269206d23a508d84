"""Values as nnsight 0.8.1 was seen to save them from transformers 5.23 models, made here without
it.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import RecordError
from headscope.record.recompute import softmax_of
from headscope.testing import random_weights

TOKENS = ["the", "cat", "sat", "on", "mats"]
CAUSAL = np.tril(np.ones((5, 5), bool))
WINDOW = CAUSAL & ~np.tril(np.ones((5, 5), bool), -3)


@pytest.fixture
def weights(rng):
    """``[layer batch head query key]``."""
    return random_weights(rng, (2, 1, 6, 5, 5))


@pytest.fixture
def call(rng):
    """A function that makes the inputs and the output of one call of transformers' attention
    interface.
    """

    def make(*, visible=CAUSAL, mask="added", bias=0.0, eager=True, batch=1, **options):
        queries = rng.standard_normal((batch, 6, 5, 4)).astype(np.float32)
        keys, values = rng.standard_normal((2, batch, 2, 5, 4)).astype(np.float32)
        scores = (
            queries.astype(np.float64)
            @ np.repeat(keys, 3, 1).swapaxes(2, 3)
            * options.get("scaling", 0.5)
        )
        if options.get("softcap") is not None:
            scores = options["softcap"] * np.tanh(scores / options["softcap"])
        sinks = options.get("s_aux")
        scores = np.where(visible, scores + bias, -np.inf)
        weights = np.stack(
            [softmax_of(example, None if sinks is None else sinks.numpy()) for example in scores]
        )
        output = weights @ np.repeat(values, 3, 1)
        added = np.where(visible, bias, np.finfo(np.float32).min)
        added = np.broadcast_to(added, (batch, *((1,) * (3 - added.ndim)), *added.shape))
        masks = {
            "added": added.astype(np.float32),
            "bool": np.broadcast_to(visible, (batch, 1, 5, 5)).copy(),
        }
        arrays = [queries, keys, values, *([masks[mask]] if mask else [])]
        positional = ("the module", *map(torch.tensor, arrays), *([] if mask else [None]))
        first = torch.tensor(output.swapaxes(1, 2).astype(np.float32))
        made = torch.tensor(weights.astype(np.float32))
        inputs = (positional, {"dropout": 0.0} | options)
        return {"inputs": inputs, "output": (first, made if eager else None)}, made

    return make


class Proxy:
    """A value as nnsight before 0.5 gave it."""

    def __init__(self, value):
        self.value = value


class CacheView:
    """As `tracer.cache` gives it: keys and items by module path, and an output; not a mapping, not
    iterable.
    """

    def __init__(self, entries):
        self.entries = entries

    def keys(self):
        return self.entries.keys()

    def __getitem__(self, name):
        return SimpleNamespace(output=self.entries[name], inputs=((), {}))


def hidden():
    """The output of a module, with rows that sum to 1 as those of weights do."""
    return torch.full((1, 5, 24), 1 / 24)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda w: [torch.tensor(layer, requires_grad=True) for layer in w], id="list"),
        pytest.param(lambda w: tuple(torch.tensor(layer) for layer in w), id="tuple of attentions"),
        pytest.param(lambda w: {0: torch.tensor(w[0]), 1: torch.tensor(w[1])}, id="dictionary"),
        pytest.param(lambda w: {1: w[1], 0: w[0]}, id="dictionary out of order"),
        pytest.param(
            lambda w: {"transformer.h.1.attn": w[1], "transformer.h.0.attn": w[0]},
            id="module paths",
        ),
        pytest.param(
            lambda w: {f"encoder.block.{i}.layer.0.SelfAttention": w[i] for i in range(2)},
            id="module paths of T5",
        ),
        pytest.param(
            lambda w: [(hidden(), torch.tensor(layer)) for layer in w], id="outputs of modules"
        ),
        pytest.param(
            lambda w: [(hidden(), torch.randn(1, 6, 5, 5), torch.tensor(layer)) for layer in w],
            id="outputs of T5 with their position bias",
        ),
        pytest.param(
            lambda w: CacheView(
                {f"model.transformer.h.{i}.attn": (hidden(), torch.tensor(w[i])) for i in range(2)}
            ),
            id="tracer.cache",
        ),
        pytest.param(lambda w: [Proxy(torch.tensor(layer)) for layer in w], id="proxies"),
        pytest.param(
            lambda w: Proxy([Proxy((hidden(), torch.tensor(layer))) for layer in w]),
            id="a proxy of proxies",
        ),
        pytest.param(lambda w: [{"weights": layer} for layer in w], id="dictionaries"),
        pytest.param(lambda w: torch.tensor(w), id="stacked"),
        pytest.param(lambda w: [layer[0] for layer in w], id="without batch axis"),
    ],
)
def test_every_form_of_saved_weights_gives_the_same_record(weights, given):
    record = hs.foreign.from_nnsight(
        given(weights), TOKENS, text="the cat sat on mats", model="gpt2"
    )
    for layer in range(2):
        np.testing.assert_array_equal(record["self"].weights(layer), weights[layer, 0])
    assert (record.model.name, record.texts, record.verified) == (
        "gpt2",
        ("the cat sat on mats",),
        None,
    )


@pytest.mark.parametrize("mask", ["added", "bool", None])
@pytest.mark.parametrize(("visible", "kind"), [(CAUSAL, "causal"), (np.ones((5, 5), bool), "full")])
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "sdpa"])
def test_a_call_of_the_attention_interface_holds_everything(call, mask, visible, kind, eager):
    saved, weights = call(visible=visible, mask=mask, eager=eager, scaling=0.3)
    record = hs.foreign.from_nnsight([None, saved], TOKENS)
    layer = record["self"].layer(1)
    np.testing.assert_allclose(layer.weights_of(), weights[0], atol=1e-6)
    np.testing.assert_array_equal(layer.queries, saved["inputs"][0][1][0])
    np.testing.assert_array_equal(layer.values, saved["inputs"][0][3][0])
    assert (layer.kind, layer.kv_heads, layer.scale) == (kind, 2, 0.3)
    assert record.verified < 1e-6


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "sdpa"])
def test_window_cap_sinks_and_bias_come_from_the_call(call, eager):
    sinks = torch.linspace(-1, 1, 6)
    distance = np.arange(6)[:, None, None] * (np.arange(5)[None, :] - np.arange(5)[:, None]) / 4
    saved, weights = call(visible=WINDOW, bias=distance, eager=eager, softcap=0.6, s_aux=sinks)
    layer = hs.foreign.from_nnsight([saved], TOKENS)["self"].layer(0)
    np.testing.assert_allclose(layer.weights_of(), weights[0], atol=1e-6)
    np.testing.assert_allclose(softmax_of(layer.scores_of(), layer.sinks), weights[0], atol=1e-6)
    assert (layer.kind, layer.soft_cap) == ("sliding", 0.6)
    np.testing.assert_allclose(layer.bias[:, 4, 2:], distance[:, 4, 2:], rtol=1e-6)


def test_queries_keys_and_values_by_name(call):
    saved, weights = call()
    (_, queries, keys, values, _), _ = saved["inputs"]
    parts = {
        "weights": weights,
        "queries": queries,
        "keys": keys,
        "values": values,
        "output": saved["output"][0],
    }
    record = hs.foreign.from_nnsight({7: parts | {"scale": 0.5}}, TOKENS)
    np.testing.assert_array_equal(record["self"].layer(7).keys, keys[0])
    assert record.verified < 1e-6
    assert (
        hs.foreign.from_nnsight([parts], TOKENS)["self"].layer(0).scale == 0.5
    )  # one over the root of 4 features


def test_one_text_of_a_batch_and_its_place_in_the_padding(call):
    # Two prompts in one trace: nnsight pads the shorter on the left, and eager rows of padding
    # become uniform.
    saved, weights = call(batch=3, visible=CAUSAL & (np.arange(5) > 1) | np.eye(5, dtype=bool))
    record = hs.foreign.from_nnsight([saved], TOKENS[2:], example=1, positions=slice(2, None))
    np.testing.assert_array_equal(record["self"].weights(0), weights[1, :, 2:, 2:])
    assert record["self"].layer(0).kind == "causal"
    assert record.verified < 1e-6


def test_one_mask_serves_a_whole_batch(call):
    saved, weights = call(batch=3)
    (*arrays, mask), options = saved["inputs"]
    record = hs.foreign.from_nnsight(
        [saved | {"inputs": ((*arrays, mask[:1]), options)}], TOKENS, example=1
    )
    np.testing.assert_array_equal(record["self"].weights(0), weights[1])


@pytest.mark.parametrize("mask", ["added", "bool"])
def test_without_weights_the_mask_is_that_of_the_call(call, mask):
    saved, weights = call(visible=WINDOW, mask=mask, eager=False)
    layer = hs.foreign.from_nnsight([saved], TOKENS)["self"].layer(0)
    np.testing.assert_allclose(layer.weights_of(), weights[0], atol=1e-6)
    assert layer.kind == "sliding"


def test_encoder_and_decoder_have_their_stacks(rng):
    saved = {
        "encoder": [random_weights(rng, (1, 6, 5, 5))],
        "decoder": [(torch.zeros(1, 3, 24), torch.tensor(random_weights(rng, (1, 6, 3, 3))))],
        "cross": {0: random_weights(rng, (1, 6, 3, 5))},
    }
    record = hs.foreign.from_nnsight(saved, TOKENS, decoder_tokens=["<pad>", "die", "Katze"])
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    np.testing.assert_array_equal(record["cross"].weights(0), saved["cross"][0][0])
    assert record["decoder"].key.pieces == ("<pad>", "die", "Katze")
    with pytest.raises(RecordError, match="'decoder'; give decoder_tokens"):
        hs.foreign.from_nnsight(saved, TOKENS)
    with pytest.raises(RecordError, match="positions are for models with one stack"):
        hs.foreign.from_nnsight(
            saved, TOKENS, decoder_tokens=["<pad>", "die", "Katze"], positions=[1]
        )


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (lambda w: [None, None], "every value is None. Under sdpa modules return no weights"),
        (lambda w: [], "every value is None"),
        (lambda w: [(hidden(), None)], r"layer 0 returned no attention weights, but \(1, 5, 24\)"),
        (lambda w: [(hidden(), torch.randn(1, 6, 5, 5))], "returned no attention weights"),
        (lambda w: {"transformer.wte": w[0]}, "'transformer.wte' names no layer"),
        (lambda w: {"h.0.attn": w[0], "h.0.cross": w[1]}, "'h.0.attn' and 'h.0.cross' are both"),
        (lambda w: [{"weight": w[0]}], r"layer 0 holds \['weight'\]; known are weights, queries"),
        (lambda w: [{"values": w[0]}], "holds neither weights nor queries and keys"),
        (lambda w: [{"queries": w[0], "keys": w[0]}], "but nothing to check them against"),
        (lambda w: [{"inputs": ((w[0],), {}), "output": (w[0], w[0])}], "are not those of a call"),
        (lambda w: [{"inputs": None}], "layer 0: inputs and output are not those of a call"),
        (lambda w: [np.repeat(w[0], 2, 0)], "weights of layer 0 holds a batch of 2 texts; say"),
        (lambda w: [0 * hidden()[..., :5]], "layer 0: query 0 gives weight to no key at all; for"),
        (lambda w: [np.log(w[0])], "are these scores before softmax"),
        (lambda w: [w[0][..., :4]], "rows must sum to 1 over the keys"),
        (lambda w: [w[0][:, :, :4]], "4 queries and 5 keys, but 5 query tokens and 5 key"),
        (lambda w: ["no"], "weights of layer 0 is not an array of numbers with equally long rows"),
    ],
)
def test_what_is_no_attention_is_refused(weights, saved, message):
    with pytest.raises(RecordError, match=message):
        hs.foreign.from_nnsight(saved(weights), TOKENS)


@pytest.mark.parametrize(
    "part", ["queries", "keys", "values", "output", "weights", "scale", "mask"]
)
@pytest.mark.parametrize("eager", [True, False], ids=["eager", "sdpa"])
def test_a_call_whose_parts_do_not_agree_is_refused(call, part, eager):
    saved, _ = call(eager=eager, scaling=0.5)
    (module, *arrays), options = saved["inputs"]
    output, made = saved["output"]
    if part == "output":
        output = output.flip(2)
    elif part == "weights":
        made = made.flip(1) if eager else made
        output = output if eager else output.flip(1)
    elif part == "scale":
        options = options | {"scaling": 0.6}
    elif part == "mask":
        arrays[3] = torch.zeros(1, 1, 5, 5)
        arrays[3][..., 0] = torch.finfo(torch.float32).min
    else:
        place = ["queries", "keys", "values"].index(part)
        arrays[place] = arrays[place].flip(1)
    with pytest.raises(RecordError, match=r"differs? from the (weights|output) |holds the"):
        hs.foreign.from_nnsight(
            [{"inputs": ((module, *arrays), options), "output": (output, made)}], TOKENS
        )


def test_a_mask_of_another_size_is_refused(call):
    saved, _ = call()
    (module, *arrays), options = saved["inputs"]
    arrays[3] = torch.nn.functional.pad(arrays[3], (0, 3), value=torch.finfo(torch.float32).min)
    with pytest.raises(RecordError, match=r"queries and keys give \(5, 5\), but \(5, 8\) visible"):
        hs.foreign.from_nnsight([saved | {"inputs": ((module, *arrays), options)}], TOKENS)
