"""The real TransformerLens, where it is installed: 4.3.0 (bridges) and 3.9.0 (HookedTransformer
too) were run.
"""

from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import headscope as hs

# Looked for, not imported: every worker collects this file, and one runs it.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        find_spec("transformer_lens") is None,
        reason="transformer_lens is not installed; no extra of ours needs it",
    ),
]
TOKENS = list("abcdefg")
SIZES = {
    "vocab_size": 50,
    "pad_token_id": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "decoder_start_token_id": 0,
}
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
    "Qwen3ForCausalLM": GROUPED,
    "Gemma2ForCausalLM": GROUPED
    | {"query_pre_attn_scalar": 5, "sliding_window": 3, "attn_logit_softcapping": 0.5},
    "GptOssForCausalLM": GROUPED
    | {"intermediate_size": 32, "sliding_window": 3}
    | {"num_local_experts": 2, "num_experts_per_tok": 1},
    "GPTNeoXForCausalLM": SMALL,
    "GPTJForCausalLM": {"n_layer": 2, "n_head": 3, "n_embd": 24, "rotary_dim": 4},
    "GPTNeoForCausalLM": {
        "num_layers": 2,
        "num_heads": 3,
        "hidden_size": 24,
        "intermediate_size": 30,
    }
    | {"attention_types": [[["global", "local"], 1]], "window_size": 3},
    "BloomForCausalLM": {"n_layer": 2, "n_head": 3, "hidden_size": 24},
}
TWO_STACKS = {
    "T5ForConditionalGeneration": {
        "num_layers": 2,
        "num_heads": 3,
        "d_model": 24,
        "d_kv": 8,
        "d_ff": 30,
    },
    "BartForConditionalGeneration": {"encoder_layers": 2, "decoder_layers": 2, "d_model": 24}
    | {
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "encoder_ffn_dim": 30,
        "decoder_ffn_dim": 30,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tokenizer in a folder; a bridge loads it from there a second time."""
    import transformers
    from tokenizers import Tokenizer, models

    words = {
        word: number
        for number, word in enumerate(["<s>", "</s>", "[UNK]", "a", "[PAD]", *"bcdefg"])
    }
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="[UNK]")),
        bos_token="<s>",
        eos_token="</s>",
        unk_token="[UNK]",
        pad_token="[PAD]",
    )
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(path)
    return path


def tiny(name, options):
    import transformers

    torch.manual_seed(0)
    model_class = getattr(transformers, name)
    configuration = model_class.config_class(**options, **SIZES, architectures=[name])
    model = model_class._from_config(configuration, attn_implementation="eager").eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0, 0.4)
    return model


def bridged(model, folder):
    import transformers
    from transformer_lens.model_bridge import TransformerBridge

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return TransformerBridge.boot_transformers("tiny", hf_model=model, tokenizer=tokenizer)


def run(model, *inputs, **options):
    with torch.no_grad():
        return model.run_with_cache(*inputs, **options)[1]


@pytest.mark.parametrize("name", MODELS)
def test_a_bridge_gives_the_weights_of_the_model_itself(name, folder):
    ids = torch.tensor([[3, 5, 6, 7, 8, 9, 10]])
    with torch.no_grad():
        wanted = tiny(name, MODELS[name])(ids, output_attentions=True).attentions
    record = hs.foreign.from_transformer_lens(
        run(bridged(tiny(name, MODELS[name]), folder), ids), TOKENS
    )
    for layer, weights in enumerate(wanted):
        np.testing.assert_allclose(record["self"].weights(layer), weights[0].numpy(), atol=2e-6)
    assert record.verified < 2e-6
    assert record.model.class_name == name
    rotated_in_secret = name in ("GPTNeoXForCausalLM", "GPTJForCausalLM")
    assert (record["self"].layer(0).queries is None) == rotated_in_secret
    kinds = {
        "BertForMaskedLM": "full full",
        "Gemma2ForCausalLM": "sliding causal",
        "GptOssForCausalLM": "sliding causal",
        "GPTNeoForCausalLM": "causal sliding",
    }
    assert " ".join(layer.kind for layer in record["self"]) == kinds.get(name, "causal causal")


@pytest.mark.parametrize("name", TWO_STACKS)
def test_a_bridge_over_an_encoder_and_a_decoder_gives_three_stacks(name, folder):
    if name == "T5ForConditionalGeneration" and version("transformer_lens") < "4":
        pytest.skip("the bridge of TransformerLens 3.9 cannot run the T5 of transformers 5.23")
    source, target = torch.tensor([[3, 5, 6, 7, 8, 9, 10]]), torch.tensor([[0, 7, 3, 9]])
    with torch.no_grad():
        made = tiny(name, TWO_STACKS[name])(
            source, decoder_input_ids=target, output_attentions=True
        )
    cache = run(bridged(tiny(name, TWO_STACKS[name]), folder), source, decoder_input=target)
    record = hs.foreign.from_transformer_lens(cache, TOKENS, decoder_tokens=list("wxyz"))
    wanted = {
        "encoder": made.encoder_attentions,
        "decoder": made.decoder_attentions,
        "cross": made.cross_attentions,
    }
    for stack, layers in wanted.items():
        for layer, weights in enumerate(layers):
            np.testing.assert_allclose(record[stack].weights(layer), weights[0].numpy(), atol=2e-6)
    assert record.verified < 2e-6


def test_the_tokens_of_the_model_fit_its_cache(folder):
    model = bridged(tiny("GPT2LMHeadModel", MODELS["GPT2LMHeadModel"]), folder)
    ids = torch.tensor([[0, 3, 5]])
    record = hs.foreign.from_transformer_lens(
        run(model, ids).remove_batch_dim(), model.to_str_tokens(ids)
    )
    assert record["self"].query.pieces == ("<s>", "a", "b")
