"""The real nnsight, where it is installed: 0.8.1 was run, with transformers 5.23."""

import warnings

import numpy as np
import pytest
import torch

import headscope as hs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nnsight = pytest.importorskip(
        "nnsight", reason="nnsight is not installed; no extra of ours needs it"
    )

pytestmark = pytest.mark.filterwarnings("ignore")
TEXT = "the cat sat on mats"
SMALL = {
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "hidden_size": 24,
    "intermediate_size": 30,
}
GROUPED = SMALL | {
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "hidden_size": 48,
    "head_dim": 8,
}
MODELS = {
    "GPT2LMHeadModel": {"n_layer": 2, "n_head": 3, "n_embd": 24},
    "BertForMaskedLM": SMALL,
    "LlamaForCausalLM": GROUPED,
    "Gemma2ForCausalLM": GROUPED
    | {"query_pre_attn_scalar": 5, "sliding_window": 3, "attn_logit_softcapping": 0.5},
    "GptOssForCausalLM": GROUPED
    | {
        "intermediate_size": 32,
        "sliding_window": 3,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
    },
}


def tokenizer():
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {
        word: number for number, word in enumerate(["<s>", "</s>", "[UNK]", "[PAD]", *TEXT.split()])
    }
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **special)


def tiny(name, attention="eager"):
    import transformers

    torch.manual_seed(0)
    model_class = getattr(transformers, name)
    sizes = {"vocab_size": 50, "pad_token_id": 3, "bos_token_id": 0, "eos_token_id": 0}
    configuration = model_class.config_class(**MODELS[name], **sizes)
    model = model_class._from_config(configuration, attn_implementation=attention).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.4)
    if name == "BertForMaskedLM":  # LanguageModel is for those that generate
        return nnsight.NNsight(model)
    return nnsight.LanguageModel(model, tokenizer=tokenizer())


def ids():
    return dict(tokenizer()(TEXT, return_tensors="pt"))


def wanted(name, text=TEXT):
    encoded = tokenizer()(text, return_tensors="pt")
    with torch.no_grad():
        made = tiny(name)._module(**encoded, output_attentions=True)
    return [weights[0].numpy() for weights in made.attentions]


def attentions(model):
    """The attention modules of a model."""
    if hasattr(model, "transformer"):
        return [block.attn for block in model.transformer.h]
    if hasattr(model, "bert"):
        return [block.attention.self for block in model.bert.encoder.layer]
    return [block.self_attn for block in model.model.layers]


def check(record, name, text=TEXT, atol=2e-6):
    for layer, weights in enumerate(wanted(name, text)):
        np.testing.assert_allclose(record["self"].weights(layer), weights, atol=atol)


def test_the_example_of_the_docstring_is_true():
    model = tiny("GPT2LMHeadModel")
    with model.trace(TEXT):
        saved = nnsight.save([block.attn.output[1] for block in model.transformer.h])
    check(hs.foreign.from_nnsight(saved, model.tokenizer.tokenize(TEXT)), "GPT2LMHeadModel")


def test_outputs_and_caches_and_attentions():
    name = "GPT2LMHeadModel"
    model = tiny(name)
    tokens = model.tokenizer.tokenize(TEXT)
    with model.trace(TEXT):
        outputs = nnsight.save([attention.output for attention in attentions(model)])
    check(hs.foreign.from_nnsight(outputs, tokens), name)
    with model.trace(TEXT) as tracer:
        cache = tracer.cache(modules=attentions(model))
    check(hs.foreign.from_nnsight(cache, tokens), name)
    with model.trace(TEXT, output_attentions=True):
        given = model.output.attentions.save()
    check(hs.foreign.from_nnsight(given, tokens), name)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
def test_calls_of_the_attention_interface_are_checked(name, attention):
    if attention == "sdpa" and name in ("Gemma2ForCausalLM", "GptOssForCausalLM"):
        pytest.skip(
            "transformers has no sdpa for this model: its scores are capped, or it has sinks"
        )
    model = tiny(name, attention)
    with model.trace(**ids()):
        calls = nnsight.save([])
        for module in attentions(model):
            call = module.source.attention_interface_1
            calls.append({"inputs": call.inputs, "output": call.output})
    record = hs.foreign.from_nnsight(calls, tokenizer().tokenize(TEXT))
    check(record, name, atol=5e-6)
    assert record.verified < 5e-6
    assert record["self"].layer(1).queries is not None


def test_a_prompt_that_nnsight_padded_is_found_in_its_place():
    name = "GPT2LMHeadModel"
    model = tiny(name)
    with model.trace() as tracer:
        with tracer.invoke(TEXT):
            first = model.transformer.h[0].attn.output[1].save()
        with tracer.invoke("cat sat"):
            second = model.transformer.h[0].attn.output[1].save()
    assert first.shape == second.shape == (1, 3, 5, 5)
    record = hs.foreign.from_nnsight([second], ["cat", "sat"], positions=slice(3, None))
    np.testing.assert_allclose(record["self"].weights(0), wanted(name, "cat sat")[0], atol=2e-6)


def test_the_save_that_nnsight_puts_on_every_object_does_not_hide_ours(tmp_path):
    record = hs.foreign.from_nnsight([[[[1.0, 0.0], [0.25, 0.75]]]], ["cat", "sat"])
    assert hasattr(object, "save")
    hs.save(record, tmp_path / "run.safetensors")
    assert hs.load(tmp_path / "run.safetensors")["self"].query.pieces == ("cat", "sat")
