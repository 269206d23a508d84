"""Tiny configurations of architectures that read text."""

from __future__ import annotations

from typing import Any

Sizes = dict[str, Any]

VOCABULARY = 64
ENDS: Sizes = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 2}
POSITIONS: Sizes = {"max_position_embeddings": 32}
LAYERS: Sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
ENCODER: Sizes = LAYERS | POSITIONS | {"intermediate_size": 40}
EVEN: Sizes = ENCODER | {"num_attention_heads": 2}
"""Rotary positions turn pairs of features, so that the head size must be even."""
ROBERTA: Sizes = ENCODER | {"pad_token_id": 1}
GPT: Sizes = {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 32}
GROUPED: Sizes = (
    ENCODER | {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2} | ENDS
)
EXPERTS: Sizes = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}
TWO_STACKS: Sizes = {
    **ENDS,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 28,
}
BART: Sizes = TWO_STACKS | POSITIONS | {"forced_eos_token_id": None}
T5: Sizes = ENDS | {
    "d_model": 24,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
}
DISENTANGLED: Sizes = ENCODER | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
XLM: Sizes = POSITIONS | {"emb_dim": 24, "n_layers": 2, "n_heads": 3}
WINDOW: Sizes = {"sliding_window": 4}
HEAD_SIZE: Sizes = {"head_dim": 8}

ENCODERS: dict[str, Sizes] = {
    "bert": ENCODER,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "camembert": ROBERTA,
    "data2vec-text": ROBERTA,
    "ernie": ENCODER,
    "megatron-bert": ENCODER,
    "rembert": ENCODER | {"input_embedding_size": 16, "output_embedding_size": 16},
    "distilbert": POSITIONS | {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40},
    "albert": ENCODER | {"embedding_size": 16},
    "electra": ENCODER | {"embedding_size": 16},
    "deberta": DISENTANGLED,
    "deberta-v2": DISENTANGLED | {"position_buckets": 8, "share_att_key": True},
    "mpnet": ENCODER,
    "xlnet": {"d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 40},
    "xlm": XLM,
    "flaubert": XLM,
    "longformer": ROBERTA | {"attention_window": [4, 4]},
    "big_bird": ENCODER | {"attention_type": "original_full"},
    "big_bird (sparse)": ENCODER
    | {"attention_type": "block_sparse", "block_size": 1, "num_random_blocks": 1},
    "modernbert": GROUPED
    | {"num_hidden_layers": 4, "local_attention": 4, "cls_token_id": 1, "sep_token_id": 2},
    "nomic_bert": EVEN,
    "eurobert": GROUPED,
    "roformer": EVEN,
    "esm": ROBERTA | {"position_embedding_type": "rotary", "mask_token_id": 3},
    "squeezebert": ENCODER
    | {"embedding_size": 24}
    | {f"{part}_groups": 1 for part in ("q", "k", "v", "intermediate")},
    "mobilebert": ENCODER | {"embedding_size": 16, "intra_bottleneck_size": 12},
    "ibert": ROBERTA,
    "convbert": ENCODER | {"embedding_size": 24, "num_attention_heads": 4},
    "layoutlm": ENCODER,
    "splinter": ENCODER,
    "luke": ENCODER | {"entity_vocab_size": 8, "entity_emb_size": 8},
    "canine": ENCODER,
    "funnel": {"d_model": 24, "n_head": 3, "d_head": 8, "d_inner": 40, "num_decoder_layers": 2}
    | {"block_sizes": [2, 2], "block_repeats": [1, 1], "architectures": ["FunnelModel"]},
    "cpmant": {
        "hidden_size": 24,
        "num_attention_heads": 3,
        "dim_head": 8,
        "dim_ff": 40,
        "num_hidden_layers": 2,
    }
    | {"prompt_length": 4, "prompt_types": 4, "segment_types": 4},
    "yoso": ENCODER,
    "fnet": POSITIONS | {"hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 40},
}

DECODERS: dict[str, Sizes] = {
    "gpt2": GPT | {"n_embd": 20, "n_layer": 3, "n_head": 5},
    "openai-gpt": GPT,
    "gpt_neo": POSITIONS
    | {"hidden_size": 24, "num_layers": 2, "num_heads": 3, "window_size": 4}
    | {"attention_types": [[["global", "local"], 1]]},
    "gptj": GPT | {"rotary_dim": 4},
    "gpt_neox": ENCODER,
    "gpt_bigcode": GPT | {"multi_query": True},
    "codegen": GPT | {"n_embd": 32, "n_head": 4, "rotary_dim": 4, "n_ctx": 32},
    "ctrl": GPT | {"dff": 40},
    "biogpt": ENCODER,
    "xglm": POSITIONS | {"d_model": 24, "num_layers": 2, "attention_heads": 3, "ffn_dim": 40},
    "opt": LAYERS | POSITIONS | {"ffn_dim": 40, "word_embed_proj_dim": 24},
    "bloom": {"hidden_size": 24, "n_layer": 2, "n_head": 3},
    "mpt": {"d_model": 24, "n_layers": 2, "n_heads": 3, "max_seq_len": 32},
    "falcon": LAYERS,
    "falcon (alibi)": LAYERS | {"alibi": True, "multi_query": False},
    "llama": GROUPED,
    "mistral": GROUPED | WINDOW,
    "mixtral": GROUPED | {"num_local_experts": 4},
    "qwen2": GROUPED,
    "qwen3": GROUPED | HEAD_SIZE,
    "qwen3_moe": GROUPED | HEAD_SIZE | EXPERTS | {"num_experts": 4},
    "qwen3_next": GROUPED
    | HEAD_SIZE
    | EXPERTS
    | {"num_experts": 4, "shared_expert_intermediate_size": 16, "num_hidden_layers": 4}
    | {
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
    },
    "gemma": GROUPED | HEAD_SIZE,
    "gemma2": GROUPED
    | HEAD_SIZE
    | WINDOW
    | {"attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 8},
    "gemma3_text": GROUPED
    | HEAD_SIZE
    | WINDOW
    | {"query_pre_attn_scalar": 8, "num_hidden_layers": 6},
    "phi": EVEN,
    "phi3": GROUPED,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "cohere": GROUPED,
    "deepseek_v3": GROUPED
    | EXPERTS
    | {
        "num_key_value_heads": 6,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 8,
    }
    | {
        "v_head_dim": 12,
        "n_shared_experts": 1,
        "n_routed_experts": 4,
        "n_group": 2,
        "topk_group": 1,
    }
    | {"first_k_dense_replace": 1},
    "gpt_oss": GROUPED | HEAD_SIZE | WINDOW | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "granite": GROUPED,
    "smollm3": GROUPED | {"num_hidden_layers": 4},
    "stablelm": GROUPED,
    "starcoder2": GROUPED,
    "persimmon": EVEN,
    "nemotron": GROUPED,
    "exaone4": GROUPED | WINDOW,
    "glm": GROUPED | HEAD_SIZE,
    "hunyuan_v1_dense": GROUPED | HEAD_SIZE,
    "jamba": GROUPED
    | {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2}
    | {"expert_layer_period": 2, "expert_layer_offset": 1, "use_mamba_kernels": False}
    | {"mamba_d_state": 4, "mamba_dt_rank": 4},
    "mamba": {"hidden_size": 24, "num_hidden_layers": 2, "state_size": 4},
    "rwkv": {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "attention_hidden_size": 24,
        "intermediate_size": 40,
    },
}

ENCODER_DECODERS: dict[str, Sizes] = {
    "t5": T5,
    "mt5": T5,
    "umt5": T5,
    "longt5": T5 | {"local_radius": 4},
    "switch_transformers": T5 | {"num_experts": 2},
    "bart": BART,
    "mbart": BART,
    "marian": BART | {"decoder_vocab_size": VOCABULARY},
    "pegasus": BART,
    "m2m_100": BART,
    "blenderbot": BART,
    "plbart": BART,
    "nllb-moe": BART | {"num_experts": 2},
    "prophetnet": ENDS
    | POSITIONS
    | {"hidden_size": 24, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    | {
        f"num_{side}_{part}": count
        for side in ("encoder", "decoder")
        for part, count in (("layers", 2), ("attention_heads", 3))
    },
    "led": {name: size for name, size in BART.items() if name != "max_position_embeddings"}
    | {
        "attention_window": [4, 4],
        "max_encoder_position_embeddings": 48,
        "max_decoder_position_embeddings": 48,
    },
}
