"""Tiny models with random weights, of every family that is captured: made in milliseconds, no download."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headscope.errors import ModelError

VOCABULARY = 64


def tiny_model(family: str, *, seed: int = 0, **changes: Any) -> Any:
    """A transformers model in evaluation mode with random weights and sizes that are all different.

    Args:
        family: ``"bert"``, ``"gpt2"``, ``"llama"`` (heads share key/value heads) or ``"bart"``.
        seed: of the weights; the caller's random state is left as it was.
        **changes: of its configuration.

    Raises:
        ModelError: where there is no such family.
    """
    import torch

    if family not in FAMILIES:
        raise ModelError(f"There is no tiny model {family!r}; there are {', '.join(FAMILIES)}")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FAMILIES[family]({"vocab_size": VOCABULARY} | changes).eval()


def _bert(changes: dict) -> Any:
    from transformers import BertConfig, BertModel

    sizes: dict[str, Any] = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 40,
    }
    return BertModel(BertConfig(max_position_embeddings=32, **sizes | changes))


def _gpt2(changes: dict) -> Any:
    from transformers import GPT2Config, GPT2Model

    sizes: dict[str, Any] = {"n_embd": 20, "n_layer": 3, "n_head": 5, "n_positions": 32}
    return GPT2Model(GPT2Config(**sizes | changes))


def _llama(changes: dict) -> Any:
    from transformers import LlamaConfig, LlamaModel

    sizes: dict[str, Any] = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
    }
    return LlamaModel(LlamaConfig(max_position_embeddings=32, intermediate_size=56, **sizes | changes))


def _bart(changes: dict) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    sizes: dict[str, Any] = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3}
    sizes |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 28, "max_position_embeddings": 32}
    ends: dict[str, Any] = {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }
    return BartForConditionalGeneration(BartConfig(**ends | sizes | changes))


FAMILIES: dict[str, Callable[[dict], Any]] = {"bert": _bert, "gpt2": _gpt2, "llama": _llama, "bart": _bart}


def tiny_tokenizer() -> Any:
    """A word-piece tokenizer over the letters of English: each word becomes its first letter and ``##`` pieces.

    ``[CLS] a [SEP]`` and ``[CLS] a [SEP] b [SEP]`` around texts and pairs; offsets and word numbers as usual.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz"
    marks = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", ".", ","]
    pieces = [*marks, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)
