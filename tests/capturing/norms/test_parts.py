"""What tokens add, against models taken apart by name."""

import numpy as np
import pytest
import torch
from torch import nn

from headscope.testing import tiny_model
from headscope.testing._made_up import made_up

from .conftest import captured


def matrix(module, columns=slice(None)):
    """Matrix ``[in out]`` and bias, by the kind of module."""
    weight = module.weight if isinstance(module, nn.Linear) else module.weight.T
    bias = module.bias if module.bias is not None else torch.zeros(len(weight))
    return weight.T[:, columns].detach().double().numpy(), bias[columns].detach().double().numpy()


def of_bert(model, layer):
    part = model.encoder.layer[layer].attention
    return (
        part.self,
        part.self,
        matrix(part.self.value),
        matrix(part.output.dense),
        part.output.LayerNorm,
    )


def of_gpt2(model, layer):
    block, width = model.h[layer], model.config.n_embd
    value = matrix(block.attn.c_attn, slice(2 * width, None))
    return block.ln_1, block.attn, value, matrix(block.attn.c_proj), block.ln_2


def of_llama(model, layer):
    block = model.layers[layer]
    part = block.self_attn
    return (
        block.input_layernorm,
        part,
        matrix(part.v_proj),
        matrix(part.o_proj),
        block.post_attention_layernorm,
    )


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
        return (
            (vectors - vectors.mean(-1, keepdims=True))
            / deviation
            * module.weight.detach().double().numpy()
        )
    deviation = np.sqrt((whole**2).mean(-1, keepdims=True) + module.variance_epsilon)
    return vectors / deviation * module.weight.detach().double().numpy()


@pytest.mark.parametrize(("family", "stack"), FAMILIES)
def test_it_is_what_the_parts_of_the_model_compute(family, stack):
    model = tiny_model(family)
    inputs = {name: tensor[:1] for name, tensor in made_up(model).items()}
    layers = captured(model, inputs)[0][stack]
    for number, layer in enumerate(layers):
        before, reads, (value, value_bias), (out, out_bias), norm = FAMILIES[family, stack](
            model, number
        )
        x, h, p = seen_by(model, [before, reads, norm], inputs)
        source = h
        if stack == "cross":
            (source,) = seen_by(
                model, [model.decoder.block[number].layer[1].EncDecAttention.v], inputs
            )
        heads, weights = layer.heads, layer.weights_of().astype(float)
        values = (source @ value + value_bias).reshape(len(source), -1, out.shape[0] // heads)
        by_head = out.reshape(heads, -1, out.shape[1])
        group = heads // values.shape[1]
        f = np.stack([values[:, head // group] @ by_head[head] for head in range(heads)])
        pieces = np.einsum("hij,hjd->hijd", weights, f)
        np.testing.assert_allclose(layer.value_norms, np.linalg.norm(f, axis=-1), rtol=1e-4)
        np.testing.assert_allclose(
            layers.head_contributions(number), np.linalg.norm(pieces, axis=-1), rtol=1e-4, atol=1e-6
        )
        S = pieces.sum(0)
        found = layer.contributions
        np.testing.assert_allclose(
            found.attention, np.linalg.norm(S, axis=-1), rtol=1e-3, atol=1e-5
        )
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
        np.testing.assert_allclose(
            found.mixing_output, mixed / (mixed + rest), rtol=1e-3, atol=1e-6
        )
        shared = values.shape[1]
        of_head = np.arange(heads) // (heads // shared)
        grouped = (part.reshape(*part.shape[:-1], shared, -1) for part in (value, value_bias))
        value, value_bias = (
            part[..., of_head, :].reshape(*part.shape[:-2], -1) for part in grouped
        )
        whole = np.block(
            [
                [value @ out, np.zeros((len(value), 1))],
                [value_bias @ out + out_bias, np.ones((1, 1))],
            ]
        )
        sizes = np.linalg.svd(whole, compute_uv=False)
        assert found.expansion == pytest.approx(np.sqrt((sizes**2).sum() / len(whole)), rel=1e-5)
        if stack == "cross":
            np.testing.assert_allclose(found.own, np.linalg.norm(own, axis=-1), rtol=1e-3)
