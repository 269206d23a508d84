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


IMAGE_TOKEN = VOCABULARY - 1
PATCHES: Sizes = {"image_size": (12, 20), "patch_size": 4}
"""Three rows of five patches."""
SQUARE: Sizes = {"image_size": 12, "patch_size": 4}
"""Three rows of three patches, where an architecture knows no others."""
VISION: Sizes = LAYERS | {"intermediate_size": 40}
WAVES: Sizes = ENCODER | {
    "conv_dim": (16, 12),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 4),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "feat_extract_norm": "layer",
    "apply_spec_augment": False,
}
WORDS: Sizes = ENCODER | ENDS | {"vocab_size": VOCABULARY}
SPEAKERS: Sizes = TWO_STACKS | {"max_target_positions": 32}


def _named(model_type: str, sizes: Sizes, **more: Any) -> Sizes:
    return {"model_type": model_type, **sizes, **more}


PACKED: Sizes = {
    "num_heads": 3,
    "patch_size": 4,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "in_channels": 3,
}
QWEN_VL: Sizes = {
    "text_config": GROUPED
    | {"vocab_size": VOCABULARY}
    | {"rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}},
    "image_token_id": IMAGE_TOKEN,
    "video_token_id": IMAGE_TOKEN - 1,
    "vision_start_token_id": IMAGE_TOKEN - 2,
    "vision_end_token_id": IMAGE_TOKEN - 3,
}


PYRAMID: Sizes = {
    "image_size": (32, 64),
    "num_encoder_blocks": 2,
    "depths": [1, 2],
    "sr_ratios": [2, 1],
    "hidden_sizes": [12, 24],
    "num_attention_heads": [2, 3],
    "mlp_ratios": [2, 2],
    "patch_sizes": [7, 3],
}
"""A stage with fewer and larger patches after another."""
PICTURES: dict[str, Sizes] = {
    "vit": VISION | PATCHES,
    "deit": VISION | PATCHES,
    "beit": VISION | PATCHES | {"use_relative_position_bias": True, "use_mask_token": False},
    "data2vec-vision": VISION
    | PATCHES
    | {"use_relative_position_bias": True, "use_mask_token": False},
    "dinov2": LAYERS | PATCHES | {"mlp_ratio": 2, "image_size": 20},
    "dinov2_with_registers": LAYERS
    | PATCHES
    | {"mlp_ratio": 2, "image_size": 20, "num_register_tokens": 2},
    "dinov3_vit": VISION | PATCHES | {"num_attention_heads": 2, "num_register_tokens": 2},
    "ijepa": VISION | PATCHES,
    "vit_mae": VISION | PATCHES | {"mask_ratio": 0.0},
    "yolos": VISION | PATCHES | {"num_detection_tokens": 2},
    "swin": {"image_size": (16, 32), "patch_size": 2, "window_size": 4}
    | {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3]},
    "swinv2": {"image_size": (16, 32), "patch_size": 2, "window_size": 4}
    | {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3]},
    "segformer": PYRAMID | {"strides": [4, 2], "decoder_hidden_size": 8},
    "pvt_v2": PYRAMID | {"strides": [4, 2]},
    "glpn": PYRAMID | {"strides": [4, 2], "decoder_hidden_size": 8},
    "siglip_vision_model": VISION | SQUARE,
    "mobilevitv2": {"image_size": 64, "width_multiplier": 0.125, "n_attn_blocks": [1, 1, 1]}
    | {"base_attn_unit_dims": [64, 64, 64]},
    "convnext": {"image_size": 32, "hidden_sizes": [8, 12], "depths": [1, 1], "num_stages": 2},
}

FRAMES: Sizes = SQUARE | {"num_frames": 4}
"""Four frames of three rows of three patches; two frames make one layer of tubes."""

VIDEOS: dict[str, Sizes] = {
    "videomae": VISION | FRAMES | {"tubelet_size": 2},
    "vivit": VISION | FRAMES | {"tubelet_size": [2, 4, 4]},
    "vjepa2": LAYERS
    | {"crop_size": 12, "patch_size": 4, "frames_per_clip": 4, "tubelet_size": 2, "mlp_ratio": 2}
    | {
        "pred_hidden_size": 24,
        "pred_num_attention_heads": 3,
        "pred_num_hidden_layers": 3,
        "pred_num_mask_tokens": 2,
    },
}

SERIES: dict[str, Sizes] = {
    "patchtst": {
        "num_input_channels": 2,
        "context_length": 40,
        "patch_length": 8,
        "patch_stride": 8,
        "d_model": 24,
    }
    | {"num_attention_heads": 3, "num_hidden_layers": 2, "ffn_dim": 40},
    "timesfm": {
        "patch_length": 8,
        "context_length": 40,
        "horizon_length": 8,
        "hidden_size": 24,
        "head_dim": 8,
    }
    | {"intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3},
}

SOUNDS: dict[str, Sizes] = {
    "wav2vec2": WAVES,
    "wavlm": WAVES,
    "hubert": WAVES,
    "data2vec-audio": WAVES,
    "wav2vec2-conformer": WAVES,
    "whisper": SPEAKERS | {"num_mel_bins": 8, "max_source_positions": 11},
    "speech_to_text": SPEAKERS
    | {"input_feat_per_channel": 8, "input_channels": 1, "num_conv_layers": 2, "conv_channels": 12}
    | {"max_source_positions": 40},
    "audio-spectrogram-transformer": VISION
    | {
        "num_mel_bins": 12,
        "max_length": 20,
        "patch_size": 4,
        "time_stride": 4,
        "frequency_stride": 4,
    },
}

SEVERAL: dict[str, Sizes] = {
    "clip": {
        "text_config": WORDS | {"projection_dim": 16},
        "vision_config": VISION | SQUARE | {"num_hidden_layers": 3, "projection_dim": 16},
        "projection_dim": 16,
    },
    "siglip": {"text_config": WORDS, "vision_config": VISION | SQUARE | {"num_hidden_layers": 3}},
    "llava": {
        "text_config": _named("llama", GROUPED, vocab_size=VOCABULARY),
        "vision_config": _named("clip_vision_model", VISION, **SQUARE, num_hidden_layers=3),
        "image_token_id": IMAGE_TOKEN,
        "vision_feature_layer": -1,
    },
    "qwen2_vl": QWEN_VL
    | {"vision_config": PACKED | {"depth": 3, "embed_dim": 24, "hidden_size": 48, "mlp_ratio": 2}},
    "qwen2_5_vl": QWEN_VL
    | {
        "vision_config": PACKED
        | {"depth": 3, "hidden_size": 24, "out_hidden_size": 48, "intermediate_size": 40}
        | {"window_size": 16, "fullatt_block_indexes": [1]}
    },
    "internvl": {
        "text_config": _named("qwen2", GROUPED, vocab_size=VOCABULARY),
        "vision_config": VISION
        | {"image_size": (16, 16), "patch_size": (4, 4), "num_hidden_layers": 3},
        "image_token_id": IMAGE_TOKEN,
        "downsample_ratio": 0.5,
    },
    "blip": {
        "text_config": WORDS | {"encoder_hidden_size": 24, "is_decoder": False},
        "vision_config": VISION | SQUARE | {"num_hidden_layers": 3},
        "projection_dim": 16,
    },
    "git": WORDS | {"vision_config": VISION | SQUARE | {"num_hidden_layers": 3}},
    "paligemma": {
        "text_config": _named("gemma", GROUPED, vocab_size=VOCABULARY, head_dim=8),
        "vision_config": _named("siglip_vision_model", VISION, **SQUARE, num_hidden_layers=3),
        "image_token_id": IMAGE_TOKEN,
        "projection_dim": 48,
    },
    "vilt": ENCODER | PATCHES | {"image_size": 20, "max_image_length": -1},
}

PAIRS: dict[str, Sizes] = {
    "encoder-decoder": ENDS
    | {
        "encoder": _named("bert", ENCODER, vocab_size=VOCABULARY),
        "decoder": _named(
            "bert",
            ENCODER,
            vocab_size=VOCABULARY,
            num_hidden_layers=3,
            num_attention_heads=4,
            is_decoder=True,
            add_cross_attention=True,
        ),
    },
    "vision-encoder-decoder": ENDS
    | {
        "encoder": _named("vit", VISION, **PATCHES),
        "decoder": _named(
            "gpt2", GPT, n_layer=3, n_head=4, vocab_size=VOCABULARY, add_cross_attention=True
        ),
    },
    "speech-encoder-decoder": ENDS
    | {
        "encoder": _named("wav2vec2", WAVES),
        "decoder": _named(
            "gpt2", GPT, n_layer=3, n_head=4, vocab_size=VOCABULARY, add_cross_attention=True
        ),
    },
}


KINDS: dict[str, dict[str, Sizes]] = {
    "Text": ENCODERS | DECODERS | ENCODER_DECODERS,
    "Pictures": PICTURES,
    "Video": VIDEOS,
    "Sound": SOUNDS,
    "Time series": SERIES,
    "Pictures and text": SEVERAL,
    "Pairs of models": PAIRS,
}
"""The architectures by what they read."""

ARCHITECTURES: dict[str, Sizes] = {
    name: sizes for kind in KINDS.values() for name, sizes in kind.items()
}
"""By model type (and variant), what the configuration says: sizes that differ, so that no mixed-up
axis goes unseen.
"""

__all__ = ["ARCHITECTURES", "KINDS", "VOCABULARY", "Sizes"]
