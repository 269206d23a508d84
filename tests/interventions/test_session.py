"""A block in which a model is changed: nesting, restoring, refusing, and every way to run a
model.
"""

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.watching.operators import OperatorWatch
from headscope.errors import CaptureError, InterventionError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

TEXT = "the cat sat."


def test_blocks_nest_and_come_back_one_by_one(batch, states):
    model, inputs = tiny_model("bert"), batch()
    intact = states(model, **inputs)
    with hs.intervene(model, hs.Zero(layer=1, heads=0)):
        outer = states(model, **inputs)
        with hs.intervene(model, hs.interventions.Uniform(layer=1, heads=[1, 2])):
            both = states(model, **inputs)
        assert_close(states(model, **inputs), outer)
    assert_close(states(model, **inputs), intact)
    with hs.intervene(
        model, hs.Zero(layer=1, heads=0), hs.interventions.Uniform(layer=1, heads=[1, 2])
    ):
        assert_close(states(model, **inputs), both)
    assert len({tuple(found.ravel()[:5].tolist()) for found in (intact, outer, both)}) == 3


@pytest.mark.parametrize("given", [[1], 1, hs.Zero(layer=0), [hs.Zero(layer=0), "zero"]])
def test_what_is_no_list_of_interventions_is_one_error(given):
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    said = "interventions takes a list such as .*headscope.Zero|effect takes lists"
    for call in (
        lambda: hs.capture(model, tokenizer, TEXT, interventions=given),
        lambda: list(hs.capture_many(model, tokenizer, [TEXT], interventions=given)),
        lambda: capture_encoded(model, tokenizer, tokenizer(TEXT), interventions=given),
        lambda: hs.effect(model, tokenizer, TEXT, interventions=given),
    ):
        with pytest.raises(InterventionError, match=said):
            call()


def modes_inside(model, run):
    """Which mode stands first in the way of torch's functions while the model runs."""
    modes = []
    hook = next(iter(model.modules())).register_forward_pre_hook(
        lambda *_: modes.append(_get_current_function_mode())
    )
    try:
        run()
    finally:
        hook.remove()
    return modes


def test_a_mode_of_the_users_stays_where_it_is(batch, states):
    model, inputs = tiny_model("bert"), batch()
    intact = states(model, **inputs)
    with hs.intervene(model, hs.Zero(layer=1, heads=0)), torch.device("cpu"):
        own = _get_current_function_mode()
        assert not isinstance(own, OperatorWatch)
        assert not torch.allclose(states(model, **inputs), intact)  # layers are found in this run
        assert modes_inside(model, lambda: states(model, **inputs)) == [own]
        assert _get_current_function_mode() is own


def test_it_comes_back_after_an_error_inside_the_model(batch, states):
    model, inputs = tiny_model("bert"), batch()
    intact, hooks = states(model, **inputs), hooks_of(model)

    def fail(_):
        raise ZeroDivisionError

    with (
        pytest.raises(ZeroDivisionError),
        hs.intervene(model, hs.interventions.SetWeights(weights=fail, layer=0)),
    ):
        states(model, **inputs)
    assert_close(states(model, **inputs), intact)
    assert hooks_of(model) == hooks
    with hs.intervene(model, hs.Zero(layer=0)):
        assert not torch.allclose(states(model, **inputs), intact)


def hooks_of(model):
    return [
        (len(module._forward_hooks), len(module._forward_pre_hooks)) for module in model.modules()
    ]


@pytest.mark.parametrize("family", ["bert", "gptj"])
def test_a_capture_inside_a_block_is_one_with_interventions(family, tokenizer):
    model = tiny_model(family)
    interventions = [
        hs.interventions.Uniform(layer=0, heads=1),
        hs.Cut(layer=1, queries=3, keys=1, renormalise=False),
    ]
    given = hs.capture(model, tokenizer, TEXT, interventions=interventions)
    with hs.intervene(model, *interventions):
        inside = hs.capture(model, tokenizer, TEXT)
    for ours, theirs in zip(given["self"], inside["self"], strict=True):
        assert_close(ours.weights_of(), theirs.weights_of())
        assert ours.changes == theirs.changes
    assert given.verified < 1e-5


def test_half_of_a_row_is_cut_once_and_not_twice(tokenizer):
    """Watches on the inside and outside both see the layer; only one of them may change it."""
    model = tiny_model("gptj")
    own = hs.capture(model, tokenizer, TEXT)["self"].weights(0)
    halved = hs.interventions.SetWeights(weights=lambda weights: weights / 2, layer=0)
    with hs.intervene(model, halved):
        found = hs.capture(model, tokenizer, TEXT)
    np.testing.assert_allclose(found["self"].weights(0), own / 2, atol=1e-6)


def test_a_part_of_a_model_may_be_changed(tokenizer, states):
    model = tiny_model("gpt2", writes=True)
    inputs = tokenizer(TEXT, return_tensors="pt")
    with hs.intervene(model, hs.Zero(layer=1)):
        whole = states(model, input_ids=inputs["input_ids"])
    with hs.intervene(model.transformer, hs.Zero(layer=1)):
        assert_close(states(model, input_ids=inputs["input_ids"]), whole)


def test_two_models_in_one_block(tokenizer, states):
    first, second = tiny_model("gptj"), tiny_model("bert")
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    wanted = []
    for model in (first, second):
        with hs.intervene(model, hs.Zero(layer=0, heads=1)):
            wanted.append(states(model, input_ids=ids))
    with (
        hs.intervene(first, hs.Zero(layer=0, heads=1)),
        hs.intervene(second, hs.Zero(layer=0, heads=1)),
    ):
        assert_close(states(first, input_ids=ids), wanted[0])
        assert_close(states(second, input_ids=ids), wanted[1])
        other = tiny_model("bloom")
        plain = states(other, input_ids=ids)
    assert_close(states(other, input_ids=ids), plain)


def test_layers_that_share_their_module_are_told_apart(tokenizer):
    model = tiny_model("albert")
    own = hs.capture(model, tokenizer, TEXT)["self"]
    found = hs.capture(model, tokenizer, TEXT, interventions=[hs.interventions.Uniform(layer=1)])[
        "self"
    ]
    assert_close(found.weights(0), own.weights(0))
    np.testing.assert_allclose(found.weights(1), 1 / 12, atol=1e-6)


@pytest.mark.parametrize("family", ["gpt2", "gptj", "bart", "marian"])
def test_generation_step_by_step_is_what_a_run_without_a_cache_gives(family, tokenizer):
    model = tiny_model(family, writes=True)
    inputs = tokenizer(TEXT, return_tensors="pt")
    stacks = (
        [{}]
        if family.startswith("gpt")
        else [{"stack": name} for name in ("encoder", "decoder", "cross")]
    )
    interventions = [hs.interventions.Uniform(layer=0, heads=1, **stack) for stack in stacks]
    interventions += [hs.Zero(layer=1, heads=0, **stack) for stack in stacks]
    settings = {
        "max_new_tokens": 6,
        "do_sample": False,
        "eos_token_id": None,
        "return_dict_in_generate": True,
    }
    found = []
    for cached in (True, False):
        with hs.intervene(model, *interventions):
            given = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
            written = model.generate(**given, **settings, output_logits=True, use_cache=cached)
        found.append(torch.stack(written.logits))
    assert (found[0] - found[1]).abs().max() <= 1e-5 * found[0].abs().max()
    plain = torch.stack(model.generate(**given, **settings, output_logits=True).logits)
    assert (found[0][0] - plain[0]).abs().max() > 1e-3


@pytest.mark.parametrize("family", ["gpt2", "gptj"])
def test_a_generation_that_is_recorded(family, tokenizer):
    with hs.intervene(
        model := tiny_model(family, writes=True),
        hs.interventions.Uniform(layer=0, heads=1),
        hs.Zero(layer=1, heads=0),
    ):
        record = hs.generate(model, tokenizer, "the cat", max_new_tokens=4)
    size = len(record["self"].query)
    np.testing.assert_allclose(record["self"].weights(0, 1)[-1], 1 / size, atol=1e-6)
    assert not record["self"].weights(1, 0).any()
    assert record["self"].layer(1).changes == ("output set to zero (heads 0)",)
    assert record.verified < 1e-5


COUNTED = {
    "silenced": lambda records: hs.Zero(layer=0, heads=1, queries=[0, 3]),
    "even": lambda records: hs.interventions.Uniform(layer=1, heads=1, queries=1),
    "link": lambda records: hs.Cut(layer=0, heads=0, queries=2, keys=0),
    "key": lambda records: hs.Cut(layer=0, heads=0, keys=1),
    "mean": lambda records: hs.interventions.Mean(layer=1, heads=2, records=records),
    "outputs": lambda records: hs.Patch(
        layer=0, record=records[0], what="output", positions=[3, 1], source=[7, 2]
    ),
    "keys": lambda records: hs.Patch(
        layer=0, record=records[0], what="keys", positions=[3, 1], source=[7, 2]
    ),
}


@pytest.mark.parametrize("family", ["llama", "mistral"])
@pytest.mark.parametrize("change", COUNTED)
def test_tokens_are_counted_from_the_beginning_of_a_generation(family, change, tokenizer):
    """In each step, also where a cache of a window (mistral) has let go of the first tokens."""
    model = tiny_model(family, writes=True)
    longer = [hs.capture(model, tokenizer, f"{TEXT} {TEXT}")]
    with hs.intervene(model, COUNTED[change](longer)):
        written = hs.generate(model, tokenizer, "the cat", max_new_tokens=8, allow_unfit=True)
        ids = [*tokenizer("the cat").input_ids, *written.generation.tokens.ids]
        (whole,) = capture_encoded(model, None, {"input_ids": torch.tensor([ids[:-1]])})
    for layer, other in zip(written["self"], whole["self"], strict=True):
        np.testing.assert_allclose(layer.weights_of(), other.weights_of(), atol=1e-5)


def test_torchs_own_multi_head_attention():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(12, 3, batch_first=True).eval()

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = layer

        def forward(self, states):
            return self.attention(states, states, states, need_weights=False)[0]

    model, states = Reader(), torch.randn(2, 5, 12)
    with torch.no_grad():
        with hs.intervene(model, hs.Zero(layer=0, heads=1)), hs.watch(model, batch=2) as seen:
            found = model(states)
        kept = layer.out_proj.weight.clone()
        layer.out_proj.weight[:, 4:8] = 0
        wanted = model(states)
        layer.out_proj.weight.copy_(kept)
    assert (found - wanted).abs().max() < 1e-6
    assert not seen.records[1]["self"].weights(0, 1).any()
    assert seen.record.verified < 1e-6
    with hs.watch(
        model, batch=2, interventions=[hs.interventions.Uniform(layer=0, heads=2)]
    ) as seen:
        model(states)
    np.testing.assert_allclose(seen.record["self"].weights(0, 2), 1 / 5, atol=1e-6)


def test_bfloat16(tokenizer):
    model = tiny_model("llama").to(torch.bfloat16)
    record = hs.capture(
        model,
        tokenizer,
        TEXT,
        interventions=[hs.interventions.Uniform(layer=0, heads=1), hs.Zero(layer=1, heads=0)],
    )
    np.testing.assert_allclose(record["self"].weights(0, 1)[3, :4], 1 / 4, atol=1e-6)
    assert not record["self"].weights(1, 0).any()


@pytest.mark.parametrize("keep", ["auto", "qk", "weights", "statistics", ("weights", "values")])
def test_whatever_is_kept(keep, tokenizer):
    layer = hs.capture(
        tiny_model("bert"),
        tokenizer,
        TEXT,
        keep=keep,
        interventions=[hs.Zero(layer=0, heads=1), hs.interventions.Uniform(layer=0)],
    )["self"].layer(0)
    assert len(layer.changes) == 2
    if keep == "statistics":
        assert not layer.statistics.largest[1].any()
        np.testing.assert_allclose(layer.statistics.largest[0], 1 / 12, atol=1e-6)
    else:
        assert not layer.weights_of(1).any()


def test_the_interface_of_the_model_is_asked_for_its_own_weights_too(tokenizer):
    model = tiny_model("bert", attn_implementation="eager")
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad(), hs.intervene(model, hs.interventions.Uniform(layer=1, heads=0)):
        returned = model(**inputs, output_attentions=True).attentions
    np.testing.assert_allclose(returned[1][0, 0].numpy(), 1 / 12, atol=1e-6)


@pytest.mark.parametrize(
    ("family", "intervention", "message"),
    [
        ("bert", hs.Zero(layer=2), "Layer 2 of stack 'self' cannot be changed: there is none"),
        ("bert", hs.Zero(layer=0, heads=3), "Layer 0 has heads 0 to 2, not 3"),
        ("llama", hs.Zero(kv_heads=2), "Layer 0 has key/value heads 0 to 1, not 2"),
        ("bert", hs.Zero(stack="encoder"), "This model has the stacks 'self', not 'encoder'"),
        ("t5", hs.Zero(layer=0), "has the stacks 'encoder', 'decoder', 'cross'; say which is"),
        ("jamba", hs.Zero(layer=0), "Layer 0 of stack 'self' cannot be changed: it computes no"),
        ("longformer", hs.Zero(layer=0), "computes attention in pieces; it can be captured from"),
        ("bert", hs.Zero(queries=12), "There is no token 12: the text has tokens 0 to 11"),
    ],
)
def test_what_is_not_there_is_refused_before_anything_is_changed(
    family, intervention, message, tokenizer
):
    options = {"target": "a bee"} if family == "t5" else {}
    with pytest.raises(InterventionError, match=message):
        hs.capture(tiny_model(family), tokenizer, TEXT, interventions=[intervention], **options)


def test_tokens_that_a_decoder_writes_later_are_refused_and_the_message_says_so(tokenizer):
    later = hs.Zero(stack="decoder", queries=1)
    with (
        pytest.raises(InterventionError, match="no token 1: token 0 alone is read at first, and n"),
        hs.intervene(model := tiny_model("t5"), later),
    ):
        hs.generate(model, tokenizer, TEXT, max_new_tokens=2)


@pytest.mark.parametrize("name", ["layer", "heads", "kv_heads", "queries"])
@pytest.mark.parametrize("given", [-1, [], [0, -2]])
def test_numbers_that_are_none_are_refused_at_once(name, given):
    with pytest.raises(InterventionError, match=rf"Zero: {name} must be a whole number from 0 on"):
        hs.Zero(**{name: given})


def test_other_mistakes_are_said_at_once():
    with pytest.raises(InterventionError, match="takes heads or kv_heads, not both"):
        hs.Zero(heads=0, kv_heads=0)
    with pytest.raises(InterventionError, match="Cut needs the keys"):
        hs.Cut(queries=0)
    with pytest.raises(InterventionError, match="needs the records whose mean is to be taken"):
        hs.interventions.Mean(records=[])


def test_a_model_without_attention_is_refused(tokenizer):
    model = tiny_model("mamba")
    inputs = tokenizer(TEXT, return_tensors="pt")
    with pytest.raises(CaptureError, match="no softmax attention"), hs.intervene(model, hs.Zero()):
        model(input_ids=inputs["input_ids"])


def test_windows_lose_heads_but_no_single_tokens():
    from headscope.testing._made_up import made_up

    model = tiny_model("swin")
    inputs = made_up(model)
    with torch.no_grad():
        intact = model(**inputs)[0]
        with hs.intervene(model, hs.interventions.Uniform(stack="stage1", layer=0, heads=0)):
            assert (model(**inputs)[0] - intact).abs().max() > 1e-4
        with (
            pytest.raises(InterventionError, match="attends within windows"),
            hs.intervene(model, hs.Zero(stack="stage1", layer=0, queries=0)),
        ):
            model(**inputs)


def test_padding_on_both_sides_of_an_encoder_decoder(tokenizer):
    model = tiny_model("bart")
    source = tokenizer(["a bee", "the cat sat."], return_tensors="pt", padding=True)
    target = tokenizer(["on it", "she ran"], return_tensors="pt", padding=True)
    inputs = {
        "input_ids": source["input_ids"],
        "attention_mask": source["attention_mask"],
        "decoder_input_ids": target["input_ids"],
        "decoder_attention_mask": target["attention_mask"],
    }
    with hs.intervene(model, hs.interventions.Uniform(stack="cross", layer=0, heads=1)):
        for record in capture_encoded(model, tokenizer, inputs):
            keys = len(record["cross"].key)
            np.testing.assert_allclose(record["cross"].weights(0, 1), 1 / keys, atol=1e-6)
            assert record.verified < 1e-5


@pytest.mark.parametrize(
    ("change", "why"),
    [(hs.Zero(layer=0), "say which is meant"), (hs.Zero(layer=9, stack="cross"), "there is none")],
)
def test_what_cannot_be_changed_is_refused_in_every_call(change, why):
    """A study leaves texts out whose call failed: no other is to be read unchanged."""
    model, tokenizer = tiny_model("bart"), tiny_tokenizer()
    with hs.intervene(model, change):
        for _ in range(3):
            with pytest.raises(InterventionError, match=why):
                hs.capture(model, tokenizer, "the cat", target="it sat")
