"""Model to record; with interventions the only place that knows torch."""

from headscope.capturing._any_model import watch
from headscope.capturing._budget import budget
from headscope.capturing._capture import capture, capture_encoded, capture_ids
from headscope.capturing._demo import demo_model
from headscope.capturing._embeddings import input_embeddings, without_embedding
from headscope.capturing._generate import generate
from headscope.capturing._inputs import check_text
from headscope.capturing._load import (
    load_bare_model,
    load_classifier,
    load_for,
    load_masked_model,
    load_model,
    load_tokenizer,
    loader_of,
)
from headscope.capturing._many import capture_many
from headscope.capturing._masking import Masking, masking_drops
from headscope.capturing._options import CaptureOptions
from headscope.capturing._processor import parse_image
from headscope.capturing._random_twin import random_twin
from headscope.capturing._sound import parse_sound

__all__ = [
    "CaptureOptions",
    "Masking",
    "budget",
    "capture",
    "capture_encoded",
    "capture_ids",
    "capture_many",
    "check_text",
    "demo_model",
    "generate",
    "input_embeddings",
    "load_bare_model",
    "load_classifier",
    "load_for",
    "load_masked_model",
    "load_model",
    "load_tokenizer",
    "loader_of",
    "masking_drops",
    "parse_image",
    "parse_sound",
    "random_twin",
    "watch",
    "without_embedding",
]
