"""Tiny models with random weights: made in milliseconds, no download."""

from __future__ import annotations

from typing import Any

from headscope.errors import ModelError

VOCABULARY = 64
ENCODER: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
POSITIONS: dict[str, Any] = {"max_position_embeddings": 32}
ENDS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 2}

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": ENCODER | POSITIONS,
    "gpt2": {"n_embd": 20, "n_layer": 3, "n_head": 5, "n_positions": 32},
    "llama": ENCODER | POSITIONS | {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2},
    "bart": ENDS
    | POSITIONS
    | {"d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3}
    | {"decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 28, "forced_eos_token_id": None},
    "gptj": {"n_embd": 24, "n_layer": 2, "n_head": 3, "rotary_dim": 4, "n_positions": 32},
    "bloom": {"hidden_size": 24, "n_layer": 2, "n_head": 3},
    "deberta-v2": ENCODER
    | POSITIONS
    | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "share_att_key": True},
    "xlnet": {"d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 40},
    "falcon": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3},
}
"""By model type, what its configuration says: sizes that are all different, so that no mixed-up axis goes unseen."""


def tiny_model(family: str, *, seed: int = 0, **changes: Any) -> Any:
    """A transformers model in evaluation mode with random weights.

    Args:
        family: one of `FAMILIES`: ``"llama"`` has heads that share key/value heads; those from ``"gptj"`` on compute
            attention themselves, without transformers' attention interface.
        seed: of the weights; the caller's random state is left as it was.
        **changes: of its configuration.

    Raises:
        ModelError: where there is no such family.
    """
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM

    if family not in FAMILIES:
        raise ModelError(f"There is no tiny model {family!r}; there are {', '.join(FAMILIES)}")
    config = AutoConfig.for_model(family, **{"vocab_size": VOCABULARY} | FAMILIES[family] | changes)
    loader = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModel
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return loader.from_config(config).eval()


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
