"""What a live model says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from headscope.capturing.facts import facts_of
from headscope.capturing.fitness import CLASS, MASKED, NEXT, TRANSLATION, check_fit
from headscope.capturing.inputs.inputs import positions_of
from headscope.capturing.loading.load import head_of
from headscope.capturing.media.input_positions import ARGUMENTS, TEXT, VISION
from headscope.capturing.walk import arguments_of
from headscope.errors import ModelError
from headscope.live.contract import AnswerKind, InputField, LiveFacts, LiveLimits, LiveStack
from headscope.record import Record

LIMITS: LiveLimits = {
    "tokens": 1024,
    "seconds": 60.0,
    "characters": 20_000,
    "changes": 64,
    "queue": 8,
    "picture_bytes": 4 * 2**20,
}
KINDS: Mapping[str, AnswerKind] = {
    NEXT: "next-token",
    MASKED: "masked",
    CLASS: "classes",
    TRANSLATION: "target",
}


def loading_facts(name: str, text: str, limits: LiveLimits, failed: str = "") -> LiveFacts:
    """What is known of a model that is not there yet.

    Args:
        name: as the user called it.
        text: that the server was started with.
        limits: of its requests.
        failed: why it could not be loaded; else empty.
    """
    return {
        "name": name,
        "device": "",
        "dtype": "",
        "revision": "",
        "implementation": "",
        "kind": "none",
        "untrained": "",
        "fields": [],
        "limits": limits,
        "stacks": [],
        "chat": False,
        "writes": False,
        "matters": [],
        "mask": "",
        "loading": not failed,
        "failed": failed,
        "threads": torch.get_num_threads(),
        "text": text,
        "versions": {},
    }


def live_facts(model: Any, reads_with: Any, limits: LiveLimits, text: str) -> LiveFacts:
    """What a loaded model says of itself.

    Args:
        model: loaded.
        reads_with: its tokenizer or processor.
        limits: of its requests.
        text: that the server was started with.
    """
    own, tokenizer = facts_of(model), getattr(reads_with, "tokenizer", reads_with)
    kind, untrained = _kind(model), _untrained(model)
    guesses = kind != "none" and not untrained
    positions = positions_of(model)
    chat = kind == "next-token" and bool(getattr(tokenizer, "chat_template", None))
    return {
        "name": own.name,
        "device": own.device,
        "dtype": own.dtype,
        "revision": own.revision or "",
        "implementation": own.implementation,
        "kind": kind,
        "untrained": untrained,
        "fields": _fields(model, kind, chat=chat),
        "limits": {**limits, "tokens": min(limits["tokens"], positions or limits["tokens"])},
        "stacks": [],
        "chat": chat,
        "writes": guesses and kind == "next-token",
        "matters": ["gradient", "exact"] if guesses else ["exact"],
        "mask": str(getattr(tokenizer, "mask_token", None) or "") if kind == "masked" else "",
        "loading": False,
        "failed": "",
        "threads": torch.get_num_threads(),
        "text": text,
        "versions": dict(own.versions),
    }


def stacks_of(record: Record) -> list[LiveStack]:
    """The stacks of a model, as a record of it shows them."""
    stacks: list[LiveStack] = []
    for name, stack in record.stacks.items():
        numbers = [layer.layer for layer in stack]
        heads = max(layer.heads for layer in stack)
        stacks.append({"name": name, "layers": numbers, "heads": heads})
    return stacks


def _kind(model: Any) -> AnswerKind:
    """What a model says, by transformers' own table of classes; a tokenizer with a mask token does
    not tell, as some causal models have one.
    """
    config = getattr(model, "config", None)
    kind = KINDS.get(head_of(type(model), config), "none")
    if kind != "none":
        return kind
    # Of speech and pictures, or of classes of every token, there are more than the table has.
    name = type(model).__name__
    if getattr(config, "is_encoder_decoder", False) and name.endswith("ForConditionalGeneration"):
        return "target"
    if name.endswith("ForConditionalGeneration"):
        return "next-token"
    return "classes" if name.endswith("Classification") else "none"


def _untrained(model: Any) -> str:
    """Why the guesses of a model say nothing; empty where they do."""
    try:
        check_fit(model, head_of(type(model), getattr(model, "config", None)))
    except ModelError as error:
        return str(error)
    return ""


def _fields(model: Any, kind: AnswerKind, *, chat: bool) -> list[InputField]:
    reads = {ARGUMENTS[name] for name in arguments_of(model) if name in ARGUMENTS}
    encodes = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    fields: list[InputField] = []
    if TEXT in reads or not reads:
        fields.append("text")
        if kind != "next-token" and not encodes:
            fields.append("text_b")
    if encodes:
        fields.append("target")
    if VISION in reads:
        fields.append("image")
    if chat:
        fields.append("messages")
    return fields
