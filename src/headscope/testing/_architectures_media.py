"""Tiny configurations of architectures that read pictures or sounds, and of pairs of models."""

from __future__ import annotations

from typing import Any

from headscope.testing._architectures_text import (
    DECODERS,
    ENCODER,
    ENCODER_DECODERS,
    ENCODERS,
    ENDS,
    GPT,
    GROUPED,
    LAYERS,
    TWO_STACKS,
    VOCABULARY,
    Sizes,
)

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
