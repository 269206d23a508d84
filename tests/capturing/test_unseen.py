"""Layers whose attention is computed in a form that is not seen, beside others that are; and what
was checked.
"""

import dataclasses
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.errors import InterventionError, RecordError
from headscope.testing import tiny_model, tiny_tokenizer

TOKENS, WIDTH = 5, 8


class Attention(nn.Module):
    """One attention of two heads; unseen where its softmax is none of torch's."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        self.parts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in "qkv")
        self.output = nn.Linear(WIDTH, WIDTH)
        self.gate = nn.Parameter(torch.full((WIDTH,), 0.5))

    def forward(self, states):
        q, k, v = (part(states).unflatten(-1, (2, 4)).transpose(1, 2) for part in self.parts)
        if self.form == "fused":
            return (
                functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            ) * self.gate
        scores = q @ k.mT / 2
        weights = (
            scores.exp() / scores.exp().sum(-1, keepdim=True)
            if self.form == "unseen"
            else scores.softmax(-1)
        )
        context = (weights @ v).transpose(1, 2).flatten(2)
        return context * self.gate if self.form == "gated" else self.output(context)


class Block(nn.Module):
    def __init__(self, mixer):
        super().__init__()
        self.mixer = mixer

    def forward(self, states):
        return states + self.mixer(states)


class Mamba(nn.Linear):
    """What other layers do instead of attention."""


def model_of(*forms):
    torch.manual_seed(9)
    blocks = [Block(Mamba(WIDTH, WIDTH) if form == "none" else Attention(form)) for form in forms]
    model = nn.Sequential()
    model.blocks = nn.ModuleList(blocks)
    model.forward = lambda states: [states := block(states) for block in blocks][-1]
    return model.eval()


def record_of(model):
    with hs.watch(model, list("abcde")) as seen:
        model(torch.randn(1, TOKENS, WIDTH))
    return seen.record


def test_a_layer_whose_attention_was_not_seen_is_said_to_be_unseen(tmp_path):
    model = model_of("softmax", "unseen", "none", "softmax", "unseen")
    with pytest.warns(  # noqa: PT031
        UserWarning, match="attention of some layers was not seen.* leaves them out: layers 1, 4"
    ):
        record = record_of(model)
        again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for stack in (record["self"], again["self"]):
        assert stack.kinds == {0: "full", 1: "unseen", 2: "none", 3: "full", 4: "unseen"}
        assert (stack.others[1], stack.others[2]) == ("unseen (Attention)", "none (Mamba)")
        assert stack.unseen == (1, 4)
    assert "attention of layers 1, 4 not seen" in repr(again)
    with (
        pytest.warns(UserWarning, match="layers 1, 4"),
        pytest.raises(InterventionError, match="was not seen"),
        hs.intervene(model, hs.Zero(layer=1)),
    ):
        model(torch.randn(1, TOKENS, WIDTH))


def by_hand(scores, values):
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True) @ values


def of_numpy(queries, keys, values):
    scores = np.exp((queries @ keys.mT).detach().numpy())
    return torch.tensor(scores / scores.sum(-1, keepdims=True)) @ values


def all_in_numpy(queries, keys, values):
    """Queries, keys and values each go there."""
    scores = np.exp(queries.numpy() @ keys.mT.numpy())
    return torch.tensor(scores / scores.sum(-1, keepdims=True) @ values.numpy())


def without_an_axis_for_texts(function):
    """Attention of each head by itself, on tensors `[token feature]`."""

    def each_head(queries, keys, values):
        heads = zip(queries[0], keys[0], values[0], strict=True)
        return torch.stack([function(*head) for head in heads])[None]

    return each_head


def mapped(queries, keys, values):
    """One head at a time."""
    return torch.vmap(torch.vmap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v))(queries, keys, values)


@torch.jit.script
def scripted(queries, keys, values):
    return torch.matmul(torch.matmul(queries, keys.transpose(-1, -2)).softmax(-1), values)


def routed(queries, keys, values):
    """As many experts as tokens, chosen and mixed by a softmax, and attention."""
    router = queries.mean(-1, keepdim=True).repeat(1, 1, 1, TOKENS).softmax(-1)
    experts = torch.stack([values, values.relu(), values.tanh(), values.sin(), -values], -2)
    mixed = torch.einsum("bhte,bhtef->bhtf", router, experts)
    return scripted(queries, keys, mixed + (router[..., None, :] @ experts)[..., 0, :])


def of_experts(queries, keys, values):
    """Two products, whose second factors are parameters seen from the side, and attention."""
    hidden = torch.bmm(values[:, 0], EXPERTS.transpose(1, 2)).relu()
    hidden = torch.bmm(hidden, EXPERTS[:, :, :TOKENS])
    return (queries @ keys.mT).softmax(-1) @ values + hidden[:, None, :, :1]


def turned(queries, keys, values):
    """Positions as products: an outer one of frequencies, and matrices that turn the queries."""
    angles = torch.ones(1, 4, 1) @ torch.arange(float(TOKENS))[None, None]
    turn = torch.eye(4).expand(1, 1, 4, 4) * angles.cos().mean()
    return ((queries * angles.mT[:, None].cos()) @ turn @ keys.mT).softmax(-1) @ values


def chosen(queries, keys, values):
    """Keys chosen by a sum of scores over heads, as an indexer does, and powers of scores."""
    scores = (queries.transpose(1, 2) @ keys[:, :1].mT).relu()
    mean = (queries.transpose(1, 2)[..., 0][..., None, :] @ scores)[..., 0, :]
    powers = (queries @ keys.mT).sigmoid()
    best = (mean[:, None] + powers @ powers).argmax(-1)
    return (queries @ keys.mT).softmax(-1) @ values + best[..., None]


def routed_flat(queries, keys, values):
    """The same on tensors without an axis for texts, with matrices for classes."""
    states = values[0].transpose(0, 1).flatten(1)
    router = (states @ CLASSES.T).softmax(-1)
    mixed = router[:, None] @ torch.stack([states, -states, states.sin(), *[states] * 2], 1)
    mixed = mixed[:, 0] + router @ CLASSES
    return (queries @ keys.mT).softmax(-1) @ values + mixed.mean()


def logged(queries, keys, values):
    """States and weights go to NumPy, to be looked at."""
    weights = (queries @ keys.mT).softmax(-1)
    assert all(array.size for array in (weights.numpy(), queries.numpy(), np.asarray(keys)))
    return weights @ values


def with_places(queries, keys, values):
    """Weights of scores mixed with weights of places, as in ConViT."""
    places = queries.repeat(1, 1, 1, 2)[..., :TOKENS].softmax(-1)
    return (0.7 * (queries @ keys.mT).softmax(-1) + 0.3 * places) @ values


EXPERTS = nn.Parameter(torch.ones(1, TOKENS, 4))
CLASSES = nn.Parameter(torch.ones(TOKENS, WIDTH))
NOT_SEEN = {
    "softmax by hand": lambda q, k, v: by_hand(q @ k.mT, v),
    "as an einsum": lambda q, k, v: by_hand(torch.einsum("bhqd,bhkd->bhqk", q, k), v),
    "in NumPy": of_numpy,
    "all in NumPy": all_in_numpy,
    "of two axes": without_an_axis_for_texts(lambda q, k, v: (q @ k.T).softmax(-1) @ v),
    "of two axes, as an einsum": without_an_axis_for_texts(
        lambda q, k, v: torch.einsum("qk,kf->qf", torch.mm(q, k.t()).softmax(-1), v)
    ),
    "of two axes, fused": without_an_axis_for_texts(functional.scaled_dot_product_attention),
    "of two axes and no product": without_an_axis_for_texts(
        lambda q, k, v: q.repeat(1, 2)[:, :TOKENS].softmax(-1) @ v
    ),
    "in vmap": mapped,
    "of no product": lambda q, k, v: q.repeat(1, 1, 1, 2)[..., :TOKENS].softmax(-1) @ v,
    "of no product, as an einsum": lambda q, k, v: torch.einsum(
        "bhts,bhtf->bhsf", k.repeat(1, 1, 1, 2)[..., :TOKENS].softmax(-2), v
    ),
    "of no product, of distances": lambda q, k, v: (-torch.cdist(q, k)).softmax(-1) @ v,
    "sigmoid": lambda q, k, v: (q @ k.mT).sigmoid() @ v,
    "linear": lambda q, k, v: q.softmax(-1) @ (k.softmax(-2).mT @ v),
    "with something added": lambda q, k, v: torch.baddbmm(v[0], (q @ k.mT)[0].softmax(-1), v[0]),
}


class Own(Attention):
    """Attention that computes what it is given."""

    def __init__(self, context):
        super().__init__("own")
        self.context = context
        if context is of_experts:
            self.experts = EXPERTS

    def forward(self, states):
        q, k, v = (part(states).unflatten(-1, (2, 4)).transpose(1, 2) for part in self.parts)
        return self.output(self.context(q, k, v).view(1, 2, TOKENS, 4).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("form", NOT_SEEN)
def test_attention_in_another_form_is_named_beside_attention_that_is_seen(form):
    model = model_of("softmax", "softmax")
    model.pool = Own(NOT_SEEN[form])
    layers, pool = model.forward, model.pool
    model.forward = lambda states: pool(layers(states))
    with pytest.warns(UserWarning, match="record leaves them out: pool "):
        assert record_of(model).unseen == "pool"
    model = model_of("softmax", "none", "softmax")
    model.blocks[1].mixer = Own(NOT_SEEN[form])
    with pytest.warns(UserWarning, match="record leaves them out: layer 1 "):
        assert record_of(model)["self"].unseen == (1,)


@pytest.mark.parametrize(
    "context", [of_experts, turned, chosen, routed, routed_flat, logged, with_places]
)
def test_products_that_are_no_attention_are_not_named(context):
    model = model_of("softmax")
    model.blocks[0].mixer = Own(context)
    assert record_of(model).unseen == ""


class Sampling(nn.Module):
    """Weights of four places that each token chooses by itself (Deformable DETR)."""

    def __init__(self):
        super().__init__()
        self.weights, self.places = nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 8)

    def forward(self, states):
        places = self.places(states).view(1, TOKENS, 4, 2).tanh()
        seen = functional.grid_sample(states.mT[:, :, None], places, align_corners=False)
        return (seen * self.weights(states).softmax(-1)[:, None]).sum(-1).mT


class DeformableAttention(Sampling):
    """As all that is known of it calls itself."""


def test_deformable_attention_is_named_and_no_other_sampling():
    model = model_of("softmax", "none", "softmax")
    model.blocks[1].mixer = DeformableAttention()
    with pytest.warns(UserWarning, match="leaves them out: layer 1 "):
        record = record_of(model)
    assert record["self"].others == {1: "unseen (DeformableAttention)"}
    model.blocks[1].mixer = Sampling()
    assert record_of(model).unseen == ""


@pytest.mark.parametrize("by_name", [False, True])
def test_heads_mixed_by_a_matrix_given_by_name(by_name):
    """As Inkling convolves its states; what is of no name is taken in its order."""
    mix = torch.tensor([[1.0, 0.5], [0.0, 1.0]])[..., None, None]
    given, named = ((), {"weight": mix}) if by_name else ((mix,), {})
    model = model_of("softmax")
    model.blocks[0].mixer = Own(
        lambda q, k, v: functional.conv2d(q @ k.mT, *given, **named).softmax(-1) @ v
    )
    record = record_of(model)
    assert (len(record["self"]), record.unseen) == (1, "")


def test_a_log_of_states_is_no_attention():
    class Logging(Mamba):
        def forward(self, states):
            assert states.numpy().size
            return super().forward(states)

    model = model_of("softmax", "none")
    model.blocks[1].mixer = Logging(WIDTH, WIDTH)
    assert record_of(model).unseen == ""


def test_functions_of_torchscript_are_seen_as_they_are_written():
    model = model_of("softmax", "softmax")
    model.blocks[1].mixer = Own(scripted)
    record = record_of(model)
    assert (len(record["self"]), record.unseen) == (2, "")


def test_what_was_made_a_graph_is_refused_by_name():
    model = model_of("softmax", "softmax")
    states = torch.randn(1, TOKENS, WIDTH)
    model.blocks[1] = torch.jit.trace(model.blocks[1], states, check_trace=False)
    with pytest.raises(hs.errors.CaptureError, match=r"^blocks\.1 runs as a graph of TorchScript"):
        record_of(model)


@pytest.mark.parametrize("keep", ["weights", "statistics"])
@pytest.mark.parametrize(
    "context",
    [
        lambda q, k, v: ((q @ k.mT).softmax(-1) * v.sigmoid().mean()) @ v,
        lambda q, k, v: (
            torch.cat([(q @ k.mT)[:, :1].softmax(-1), (q @ k.mT)[:, 1:].sigmoid() / TOKENS], 1) @ v
        ),
    ],
    ids=["gated", "one head a sigmoid"],
)
def test_rows_that_do_not_sum_to_1_are_refused_as_no_softmax(context, keep):
    model = model_of("softmax")
    model.blocks[0].mixer = Own(context)
    with (
        pytest.raises(
            hs.errors.CaptureError, match=r"not a softmax: one of these rows sums to 0\.\d+;"
        ),
        hs.watch(model, keep=keep),
    ):
        model(torch.randn(1, TOKENS, WIDTH))


def test_the_rotations_of_an_adapter_are_no_attention():
    class Rotated(nn.Module):
        def __init__(self, base_layer):
            super().__init__()
            self.base_layer = base_layer
            self.turn = nn.Parameter(torch.randn(4, 2, 2))

        def forward(self, states):
            skew = self.turn - self.turn.mT
            rotation = torch.linalg.matrix_exp(skew + skew @ skew @ skew)
            parts = states.unflatten(-1, (4, 2))
            return self.base_layer(torch.einsum("...nd,ndf->...nf", parts, rotation).flatten(-2))

    model = model_of("softmax")
    model.blocks[0].mixer.parts[0] = Rotated(model.blocks[0].mixer.parts[0])
    assert record_of(model).unseen == ""


def test_layers_with_fewer_heads_are_counted_as_they_are():
    model = model_of("softmax", "softmax")
    model.blocks[1].mixer = Own(
        lambda q, k, v: (
            (q.transpose(1, 2).flatten(2)[:, None] @ k.transpose(1, 2).flatten(2)[:, None].mT)
            .softmax(-1)
            .matmul(v.transpose(1, 2).flatten(2)[:, None])
            .unflatten(-1, (2, 4))
            .squeeze(1)
            .transpose(1, 2)
            .contiguous()
        )
    )
    record = record_of(model)
    assert "2 layers x 1 to 2 heads" in repr(record)
    assert "x 1 to 2 heads" in repr(record["self"])


def test_a_softmax_over_tokens_is_named_at_each_depth():
    model = model_of("softmax", "softmax")
    for block in model.blocks:
        attention, pool = block.mixer, Own(NOT_SEEN["of no product"])
        block.mixer = nn.Sequential(attention, pool)
    with pytest.warns(UserWarning, match="leaves them out"):
        assert record_of(model).unseen == "blocks.0.mixer.1, blocks.1.mixer.1"


def test_real_hybrids_say_what_their_other_layers_are():
    tokenizer = tiny_tokenizer()
    for family, others in {
        "qwen3_next": {0: "linear (Qwen3NextGatedDeltaNet)"},
        "jamba": {0: "none (JambaMambaMixer)"},
    }.items():
        stack = hs.capture(tiny_model(family), tokenizer, "the cat")["self"]
        assert stack.unseen == ()
        assert {number: stack.others[number] for number in others} == others


@pytest.mark.parametrize(
    ("forms", "against", "sentence"),
    [
        (
            ["softmax"],
            "layer output",
            r"^Checked against the model's own layer outputs: largest difference .*passes; limit",
        ),
        (
            ["fused"],
            "attention output",
            r"^Checked against the model's own attention outputs: largest difference .*passes",
        ),
        (
            ["gated"],
            "itself",
            r"^Checked against itself only \(weights times values, as they were multiplied\): ",
        ),
        (
            ["softmax", "gated"],
            "itself",
            r"layer outputs \(1 of 2 layers\): .*; 1 of 2 layers against themselves only$",
        ),
        (
            ["softmax", "fused"],
            "attention output",
            r"outputs \(1 of 2 layers\) and .* attention outputs \(1 of 2 layers\)",
        ),
    ],
)
def test_what_layers_were_checked_against_is_said(forms, against, sentence, tmp_path):
    record = record_of(model_of(*forms))
    again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for one in (record, again):
        assert one.verified_against == against
        layer = one["self"].layers[-1]
        assert layer.verified <= layer.verified_limit
    np.testing.assert_allclose(record.verified, again.verified)
    assert record.verification == again.verification
    assert re.search(sentence, record.verification), record.verification


def test_a_file_that_does_not_say_against_what_it_was_checked_is_not_said_to_pass(tmp_path):
    record = record_of(model_of("softmax"))
    (layer,) = record["self"]
    older = dataclasses.replace(layer, verified_against="", verified_limit=None)
    stack = dataclasses.replace(record["self"], layers=(older,))
    again = hs.load(hs.save(hs.Record(stacks={"self": stack}), tmp_path / "older.safetensors"))
    assert again.verified_against == ""
    assert re.search(
        r"^Checked when it was captured, against what was not kept: [^(]*$", again.verification
    )
    with pytest.raises(RecordError, match="verified_against is one of"):
        dataclasses.replace(layer, verified_against="everything")


def test_a_page_says_what_was_checked_and_what_was_not_seen():
    with pytest.warns(UserWarning, match="layer 1 "):
        record = record_of(model_of("gated", "unseen"))
    page = hs.view(record).html
    assert "Checked against itself only" in page
    assert "The attention of some layers was not seen, and they are left out: layer 1" in page


def test_a_generation_says_what_its_steps_were_checked_against():
    record = hs.generate(
        tiny_model("gpt2", writes=True), tiny_tokenizer(), "the cat", max_new_tokens=3
    )
    assert record.verified_against == "layer output"
    assert "limit" in record.verification
