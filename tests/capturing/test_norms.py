"""What tokens add, through the public interface: against models taken apart by name, and over all architectures."""

import json
import re
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope import CaptureError, RecordError
from headscope.capturing import capture_encoded
from headscope.capturing._capture import capture_ids
from headscope.record import CONTRIBUTIONS
from headscope.testing import ARCHITECTURES, tiny_model, tiny_tokenizer
from headscope.testing._made_up import made_up

TEXT, PAIR = "the cat sat. the cat", "a dog, it ran"


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def matrix(module, columns=slice(None)):
    """Matrix ``[in out]`` and bias, by the kind of module."""
    weight = module.weight if isinstance(module, nn.Linear) else module.weight.T
    bias = module.bias if module.bias is not None else torch.zeros(len(weight))
    return weight.T[:, columns].detach().double().numpy(), bias[columns].detach().double().numpy()


def of_bert(model, layer):
    part = model.encoder.layer[layer].attention
    return part.self, part.self, matrix(part.self.value), matrix(part.output.dense), part.output.LayerNorm


def of_gpt2(model, layer):
    block, width = model.h[layer], model.config.n_embd
    value = matrix(block.attn.c_attn, slice(2 * width, None))
    return block.ln_1, block.attn, value, matrix(block.attn.c_proj), block.ln_2


def of_llama(model, layer):
    block = model.layers[layer]
    part = block.self_attn
    return block.input_layernorm, part, matrix(part.v_proj), matrix(part.o_proj), block.post_attention_layernorm


def of_vit(model, layer):
    block = model.encoder.layer[layer] if hasattr(model, "encoder") else model.layers[layer]
    part = getattr(block.attention, "attention", block.attention)
    value = part.value if hasattr(part, "value") else part.v_proj
    out = block.attention.output.dense if hasattr(block.attention, "output") else part.o_proj
    return block.layernorm_before, part, matrix(value), matrix(out), block.layernorm_after


def of_t5(model, layer):
    block = model.encoder.block[layer]
    part = block.layer[0]
    own = part.SelfAttention
    return part.layer_norm, own, matrix(own.v), matrix(own.o), block.layer[1].layer_norm


def of_t5_cross(model, layer):
    block = model.decoder.block[layer]
    part = block.layer[1]
    own = part.EncDecAttention
    return part.layer_norm, own, matrix(own.v), matrix(own.o), block.layer[2].layer_norm


def of_bart(model, layer):
    block = model.get_encoder().layers[layer]
    part = block.self_attn
    return part, part, matrix(part.v_proj), matrix(part.out_proj), block.self_attn_layer_norm


FAMILIES = {
    ("bert", "self"): of_bert,
    ("gpt2", "self"): of_gpt2,
    ("llama", "self"): of_llama,
    ("t5", "encoder"): of_t5,
    ("t5", "cross"): of_t5_cross,
    ("bart", "encoder"): of_bart,
    ("vit", "self"): of_vit,
}


def seen_by(model, modules, inputs):
    """First tensor that each module takes when the model runs."""
    found = {}

    def note(module, args, options):
        tensor = args[0] if args else options.get("hidden_states")
        found.setdefault(id(module), tensor.detach().double().numpy()[0])

    hooks = [module.register_forward_pre_hook(note, with_kwargs=True) for module in modules]
    with torch.no_grad():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return [found[id(module)] for module in modules]


def normed(module, vectors, whole):
    """A norm's linear part with the deviation of another vector."""
    if isinstance(module, nn.LayerNorm):
        deviation = np.sqrt(whole.var(-1, keepdims=True) + module.eps)
        return (vectors - vectors.mean(-1, keepdims=True)) / deviation * module.weight.detach().double().numpy()
    deviation = np.sqrt((whole**2).mean(-1, keepdims=True) + module.variance_epsilon)
    return vectors / deviation * module.weight.detach().double().numpy()


@pytest.mark.parametrize(("family", "stack"), FAMILIES)
def test_it_is_what_the_parts_of_the_model_compute(family, stack):
    model = tiny_model(family)
    inputs = {name: tensor[:1] for name, tensor in made_up(model).items()}
    layers = captured(model, inputs)[0][stack]
    for number, layer in enumerate(layers):
        before, reads, (value, value_bias), (out, out_bias), norm = FAMILIES[family, stack](model, number)
        x, h, p = seen_by(model, [before, reads, norm], inputs)
        source = h
        if stack == "cross":
            (source,) = seen_by(model, [model.decoder.block[number].layer[1].EncDecAttention.v], inputs)
        heads, weights = layer.heads, layer.weights_of().astype(float)
        values = (source @ value + value_bias).reshape(len(source), -1, out.shape[0] // heads)
        f = np.stack([values[:, head // (heads // values.shape[1])] @ out.reshape(heads, -1, out.shape[1])[head]
                      for head in range(heads)])  # fmt: skip
        pieces = np.einsum("hij,hjd->hijd", weights, f)
        np.testing.assert_allclose(layer.value_norms, np.linalg.norm(f, axis=-1), rtol=1e-4)
        np.testing.assert_allclose(
            layers.head_contributions(number), np.linalg.norm(pieces, axis=-1), rtol=1e-4, atol=1e-6
        )
        S = pieces.sum(0)
        found = layer.contributions
        np.testing.assert_allclose(found.attention, np.linalg.norm(S, axis=-1), rtol=1e-3, atol=1e-5)
        eye = np.eye(len(x))[:, :, None] if stack != "cross" else np.zeros((*weights.shape[1:], 1))
        R = S + eye * x[:, None, :]
        np.testing.assert_allclose(found.residual, np.linalg.norm(R, axis=-1), rtol=1e-3, atol=1e-5)
        whole = p if family in ("gpt2", "llama", "t5", "vit") else S.sum(1) + out_bias + x
        T = normed(norm, R, whole[:, None, :])
        np.testing.assert_allclose(found.output, np.linalg.norm(T, axis=-1), rtol=1e-3, atol=1e-5)
        own = normed(norm, x, whole)
        others = T.sum(1) - (np.einsum("iid->id", T) if stack != "cross" else 0)
        rest = np.linalg.norm(np.einsum("iid->id", T) if stack != "cross" else own, axis=-1)
        mixed = np.linalg.norm(others, axis=-1)
        np.testing.assert_allclose(found.mixing_output, mixed / (mixed + rest), rtol=1e-3, atol=1e-6)
        shared = values.shape[1]
        of_head = np.arange(heads) // (heads // shared)
        grouped = (part.reshape(*part.shape[:-1], shared, -1) for part in (value, value_bias))
        value, value_bias = (part[..., of_head, :].reshape(*part.shape[:-2], -1) for part in grouped)
        whole = np.block([[value @ out, np.zeros((len(value), 1))], [value_bias @ out + out_bias, np.ones((1, 1))]])
        sizes = np.linalg.svd(whole, compute_uv=False)
        assert found.expansion == pytest.approx(np.sqrt((sizes**2).sum() / len(whole)), rel=1e-5)
        if stack == "cross":
            np.testing.assert_allclose(found.own, np.linalg.norm(own, axis=-1), rtol=1e-3)


def captured(model, inputs):
    """Records of bare tensors, with norms."""
    from headscope.capturing import _capture
    from headscope.capturing._keep import Keeping

    before = _capture.Keeping
    _capture.Keeping = lambda: Keeping(frozenset({"weights", "qk", "norms"}))
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return capture_ids(model, **inputs)
    finally:
        _capture.Keeping = before


NOT_THERE = {
    "xlnet": "no matrix takes what its heads hand on",
    "squeezebert": "no matrix takes what its heads hand on",
    "ibert": "no matrix takes what its heads hand on",
    "convbert": "no matrix takes what its heads hand on",
    "qwen3_next": "no matrix takes what its heads hand on",
    "longformer": "tells of its weights only when it has run",
    "led": "tells of its weights only when it has run",
}
"""Architectures of which not even the norms of attention are there, and why."""
WITHOUT_RESIDUAL = {
    ("mobilebert", "self"): "nothing had been read by a part of the model before",
    ("siglip_vision_model", "probe"): "nothing is added to its output",
    ("siglip", "probe"): "nothing is added to its output",
    ("paligemma", "probe"): "nothing is added to its output",
}
WITHOUT_NORM = {"olmo2", "exaone4", "swinv2"}
"""Architectures whose norms stand on what is added and not on the sum."""
NO_ATTENTION = {"big_bird (sparse)", "canine", "prophetnet", "yoso", "fnet", "mamba", "rwkv", "convnext"}
PARALLEL = {"gptj", "gpt_neox", "codegen", "falcon", "falcon (alibi)", "phi", "cohere"}
POST_NORM = {"bert", "roberta", "distilbert", "albert", "electra", "deberta", "deberta-v2", "xlm", "openai-gpt", "bart"}


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in NO_ATTENTION])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_architecture_sums_to_its_own_vectors_or_says_why_not(name):
    model = tiny_model(name)
    for record in captured(model, made_up(model)):
        for stack in record.stacks.values():
            for layer in stack:
                check_layer(name, stack.name, layer)


def check_layer(name, stack, layer):
    found = layer.contributions
    if name in NOT_THERE:
        assert layer.value_norms is None
        for kind in ("attention", "residual", "output", "alti", "globenc"):
            with pytest.raises(RecordError, match=f"Layer {layer.layer}: .*{kind}.*: .*{NOT_THERE[name]}"):
                layer.contributions_of(kind)
        return
    assert layer.value_norms.shape == (layer.heads, layer.size[1])
    bound = found.attention if found.residual is None else found.residual
    assert found.verified <= 1e-5 * max(1.0, float(bound.sum(-1).max()))
    assert found.attention.shape == layer.size
    if (name, stack) in WITHOUT_RESIDUAL:
        assert found.residual is None
        assert WITHOUT_RESIDUAL[name, stack] in found.missing["output"]
        return
    assert found.residual is not None
    assert found.alti is not None
    sums = found.alti.sum(-1)
    assert sums.max() < 1 + 1e-6
    if found.own is None:
        np.testing.assert_allclose(sums[sums > 0], 1, atol=1e-6)
    assert (found.output is None) == (name in WITHOUT_NORM)
    assert ("no token's" in found.decomposes) == (name in PARALLEL)
    if name in POST_NORM:
        assert "(post-norm)" in found.decomposes
    if name in ("llama", "gpt2", "t5", "vit", "gemma2", "granite"):
        assert "(pre-norm)" in found.decomposes


def test_padding_changes_nothing(tokenizer):
    model = tiny_model("bert")
    batch = capture_encoded(
        model, tokenizer, tokenizer([TEXT, "a bee"], padding=True, return_tensors="pt"), keep="norms"
    )
    alone = capture_encoded(model, tokenizer, tokenizer(["a bee"], return_tensors="pt"), keep="norms")[0]
    for padded, layer in zip(batch[1]["self"], alone["self"], strict=True):
        np.testing.assert_allclose(padded.value_norms, layer.value_norms, rtol=1e-4)
        for name in CONTRIBUTIONS:
            ours, theirs = getattr(padded.contributions, name), getattr(layer.contributions, name)
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "falcon", "gemma2", "bart"])
def test_watching_leaves_the_model_as_it_was(family, tokenizer):
    model = tiny_model(family)
    inputs = made_up(model)
    with torch.no_grad():
        before = model(**inputs)[0]
    captured(model, inputs)
    with torch.no_grad():
        assert torch.equal(model(**inputs)[0], before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_hooks_go_away_after_an_error(tokenizer):
    model = tiny_model("bert")
    model.encoder.layer[1].output.dense.register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="planted"):
        hs.capture(model, tokenizer, TEXT, keep="norms")
    assert sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()) == 1


def fail(*_):
    raise RuntimeError("planted")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_held_to_less(dtype, tokenizer):
    exact = hs.capture(tiny_model("llama"), tokenizer, TEXT, keep="norms")["self"]
    half = hs.capture(tiny_model("llama").to(dtype), tokenizer, TEXT, keep="norms")["self"]
    np.testing.assert_allclose(half.layer(0).contributions.output, exact.layer(0).contributions.output, atol=0.2)
    assert half.layer(0).contributions.verified > exact.layer(0).contributions.verified


class Odd(nn.Module):
    """Attention whose parts have names that say nothing, with a scale on the residual and one on the output."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(3)
        self.apple, self.pear = nn.Linear(12, 36), nn.Linear(12, 12)
        self.plum, self.fig, self.kind = nn.LayerNorm(12), nn.Linear(12, 12), kind
        nn.init.normal_(self.plum.weight)
        nn.init.normal_(self.plum.bias)

    def forward(self, x):
        q, k, v = self.apple(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v
        if self.kind == "gated":
            mixed = mixed * x.mean(-1)[:, None, :, None].sigmoid()
        out = self.pear(mixed.transpose(1, 2).flatten(2))
        if self.kind == "scaled":
            return self.fig(self.plum(2.5 * x + 0.125 * out))
        if self.kind == "squared":
            return self.fig(self.plum(x + out * out))
        if self.kind == "foreign":
            return self.fig(self.plum(torch.sin(x) + out))
        if self.kind == "function":
            whole = x + out
            return whole + self.fig(nn.functional.layer_norm(whole, (12,)))
        if self.kind == "matrix":
            whole = x + out
            return whole + self.fig(whole)
        if self.kind == "beside":
            return self.fig(self.plum(self.fig(x) + out + x))
        if self.kind == "in place":
            out += x
            made = self.plum(out)
            out += self.fig(made)
            return out
        return self.fig(self.plum(x + out))


def odd(kind):
    model = Odd(kind)
    with hs.watch(model, list("abcdefg"), batch=2, keep="norms") as seen:
        model(torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(1)))
    return [record["self"].layer(0).contributions for record in seen.records]


@pytest.mark.parametrize("kind", ["plain", "scaled", "in place"])
def test_parts_are_found_by_their_numbers(kind):
    for found in odd(kind):
        assert "plum (LayerNorm)" in found.decomposes
        assert found.verified < 1e-5
    assert ("(pre-norm)" in odd(kind)[0].decomposes) == (kind == "in place")


@pytest.mark.parametrize("kind", ["function", "matrix"])
def test_without_a_norm_that_is_a_module_there_is_the_stream(kind):
    found = odd(kind)[0]
    np.testing.assert_allclose(found.residual, odd("plain")[0].residual, rtol=1e-5)
    assert found.decomposes == "the residual stream after the attention, which no module that is a norm takes"
    with pytest.raises(RecordError, match="no module that is a norm takes the sum"):
        found.of("output")


def test_what_runs_beside_is_no_tokens():
    found = odd("beside")[0]
    np.testing.assert_allclose(found.residual, odd("plain")[0].residual, rtol=1e-5)
    assert "what else is added in the same place is no token's" in found.decomposes
    assert (found.output < odd("plain")[0].output).any()


def test_scales_of_both_parts_are_heeded():
    (scaled, _), (plain, _) = odd("scaled"), odd("plain")
    apart = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose(scaled.attention, plain.attention, rtol=1e-5)
    np.testing.assert_allclose(scaled.residual[apart], 0.125 * plain.residual[apart], rtol=1e-5)
    assert (scaled.mixing_residual < plain.mixing_residual).all()


@pytest.mark.parametrize(
    ("kind", "missing", "match"),
    [
        ("gated", "attention", "no matrix takes what its heads hand on"),
        ("squared", "residual", "nothing is added to its output"),
        ("foreign", "residual", "nothing had been read by a part of the model before"),
    ],
)
def test_what_is_not_a_sum_of_pieces_is_refused(kind, missing, match):
    with pytest.raises(RecordError, match=match):
        odd(kind)[0].of(missing)


def test_a_norm_that_lies_is_found_out(monkeypatch):
    from headscope.capturing import _norms
    from headscope.norms import Norm

    real = _norms.norm_of

    def lying(module, width):
        found = real(module, width)
        return found and Norm(gain=found.gain * 1.001, shift=found.shift, eps=found.eps, centred=found.centred)

    monkeypatch.setattr(_norms, "norm_of", lying)
    found = odd("plain")[0]
    assert found.residual is not None
    with pytest.raises(RecordError, match=r"from the norm's output of the model \(allowed"):
        found.of("output")
    with pytest.raises(RecordError, match="norm's output"):
        found.of("alti")


def test_a_second_norm_that_lies_costs_only_what_needs_it(monkeypatch, tokenizer):
    from headscope.capturing import _norms
    from headscope.norms import Norm

    model, real = tiny_model("bert"), _norms.norm_of
    seconds = [layer.output.LayerNorm for layer in model.encoder.layer]

    def lying(module, width):
        found = real(module, width)
        if module not in seconds:
            return found
        return Norm(gain=found.gain * 1.001, shift=found.shift, eps=found.eps, centred=found.centred)

    monkeypatch.setattr(_norms, "norm_of", lying)
    found = hs.capture(model, tokenizer, TEXT, keep="norms")["self"].layer(0).contributions
    assert set(found.missing) == {"globenc"}
    assert "second norm's output" in found.missing["globenc"]


def test_records_with_norms_are_kept(tokenizer, tmp_path):
    record = hs.capture(tiny_model("bart"), tokenizer, TEXT, target="a dog", keep="norms")
    again = hs.load(hs.save(record, tmp_path / "run.safetensors"))
    for stack in record.stacks.values():
        for layer in stack:
            other = again[stack.name].layer(layer.layer)
            np.testing.assert_array_equal(other.value_norms, layer.value_norms)
            for name in CONTRIBUTIONS:
                ours, theirs = getattr(layer.contributions, name), getattr(other.contributions, name)
                assert (ours is None) == (theirs is None)
                np.testing.assert_array_equal(ours, theirs)
            for name in ("decomposes", "verified", "expansion", "missing"):
                assert getattr(other.contributions, name) == getattr(layer.contributions, name)


def test_files_from_before_norms_are_read(tokenizer, tmp_path):
    from safetensors.numpy import load_file, save_file

    path = hs.save(hs.capture(tiny_model("bert"), tokenizer, TEXT), tmp_path / "run.safetensors")
    size = int.from_bytes(path.read_bytes()[:8], "little")
    document = json.loads(json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]["headscope"])
    assert all("contributions" not in layer for stack in document["stacks"] for layer in stack["layers"])
    save_file(load_file(path), tmp_path / "old.safetensors", {"headscope": json.dumps(document)})
    layer = hs.load(tmp_path / "old.safetensors")["self"].layer(0)
    assert layer.value_norms is layer.contributions is None
    with pytest.raises(RecordError, match="capture with keep='norms'"):
        layer.contributions_of("attention")
    with pytest.raises(RecordError, match="capture with keep='norms'"):
        layer.head_contributions_of()


def test_norms_beside_other_things_and_alone(tokenizer):
    model = tiny_model("bert")
    alone = hs.capture(model, tokenizer, TEXT, keep="norms")["self"].layer(0)
    assert alone.weights is not None
    assert alone.queries is not None
    assert alone.values is None
    beside = hs.capture(model, tokenizer, TEXT, keep=("weights", "norms"))["self"].layer(0)
    assert beside.queries is None
    np.testing.assert_array_equal(beside.contributions.alti, alone.contributions.alti)
    plain = hs.capture(model, tokenizer, TEXT)["self"].layer(0)
    assert plain.value_norms is plain.contributions is None
    budget = hs.budget(model, tokenizer, TEXT, keep="norms")
    assert "norms" in budget.what
    kept = [array for array in (getattr(alone.contributions, name) for name in CONTRIBUTIONS) if array is not None]
    assert budget.norms >= 2 * (alone.value_norms.nbytes + sum(array.nbytes for array in kept)) > 0


def test_rollout_of_what_was_captured(tokenizer):
    record = hs.capture(tiny_model("bert"), tokenizer, TEXT, keep="norms")
    for quantity in ("weights", "attention", "residual", "output", "alti", "globenc"):
        np.testing.assert_allclose(hs.rollout(record, quantity).sum(-1), 1, atol=1e-9)
    np.testing.assert_allclose(hs.flow(record, "alti", layer=0), hs.rollout(record, "alti")[0], atol=1e-9)


def test_a_generation_keeps_no_norms(tokenizer):
    with pytest.raises(CaptureError, match="keep='norms' is for capture"):
        hs.generate(tiny_model("gpt2", writes=True), tokenizer, TEXT, max_new_tokens=2, keep="norms")


@cache
def real(folder):
    from headscope.capturing import load_model

    return load_model(str(folder))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stories260K", "Once upon a time, there was a little girl."),
        ("gpt-nano-sort", "C A B B C A"),
        ("g2p-bart-us", "strawberries"),
        ("induction-2l-attn-only", None),
    ],
)
def test_real_models_sum_to_their_own_vectors(name, text, shared):
    model, tokenizer = real(shared / "models" / name)
    text = tokenizer.decode(torch.arange(5, 17).repeat(2)) if text is None else text
    record = hs.capture(model, tokenizer, text, keep="norms")
    for stack in record.stacks.values():
        for layer in stack:
            assert layer.contributions.verified < 1e-5
            assert layer.contributions.output is not None
            assert layer.contributions.expansion is not None
            assert re.search(r"\((LayerNorm|RMSNorm)\) of the residual stream", layer.contributions.decomposes)


def test_a_real_picture_model_sums_to_its_own_vectors(shared):
    from transformers import AutoImageProcessor, AutoModel

    folder = shared / "models" / "vit-mnist"
    digit = np.stack([np.load(folder / "digits.npz")["images"][0]] * 3, -1)
    model, processor = AutoModel.from_pretrained(folder).eval(), AutoImageProcessor.from_pretrained(folder)
    for layer in hs.capture(model, processor, image=digit, keep="norms")["self"]:
        assert layer.contributions.verified < 1e-5
        assert layer.contributions.output is not None


def test_minilm_sums_to_its_own_vectors(minilm):
    record = hs.capture(*minilm, "I went to the store.", "At the store, I bought fresh strawberries.", keep="norms")
    for layer in record["self"]:
        assert layer.contributions.verified < 1e-5
        assert "(post-norm)" in layer.contributions.decomposes
        assert layer.contributions.missing == {}
