"""Facts about a live model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, cast

import torch

from headscope.atlases import SIDE, Atlas
from headscope.capturing import parse_call
from headscope.capturing.facts import facts_of, name_in
from headscope.capturing.fitness import CLASS, MASKED, NEXT, TRANSLATION, check_fit
from headscope.capturing.inputs.inputs import position_limit
from headscope.capturing.loading import head_of
from headscope.capturing.media.given import marks_of
from headscope.capturing.media.input_positions import ARGUMENTS, AUDIO, TEXT, VISION
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import FileError, HeadscopeError, ModelError, TextError, check_count
from headscope.live import contract
from headscope.parts import Conversation, chat_form_of
from headscope.record import Record
from headscope.results import load
from headscope.storage import local_path
from headscope.studies.runs import DISCRIMINATORS
from headscope.views.atlas_page import packed_maps

LIMITS: contract.LiveLimits = {
    "tokens": 1024,
    "seconds": 60.0,
    "characters": 20_000,
    "changes": 64,
    "queue": 8,
    "picture_bytes": 4 * 2**20,
}
KINDS: Mapping[str, contract.AnswerKind] = {
    NEXT: "next-token",
    MASKED: "masked",
    CLASS: "classes",
    TRANSLATION: "target",
}


OF_CLASSES = ("Classification", "NextSentencePrediction", "ObjectDetection", "CTC")
"""How models are called that give classes, or letters, and are not in the table of transformers."""


def parse_limits(
    max_tokens: Any = LIMITS["tokens"], seconds: Any = LIMITS["seconds"]
) -> contract.LiveLimits:
    """The limits of a live model, of which these two are the user's.

    Raises:
        HeadscopeError: where one is no number above 0.
    """
    if not isinstance(seconds, Real) or not seconds > 0:
        raise HeadscopeError(f"seconds is a number above 0, not {seconds!r}")
    return {**LIMITS, "tokens": check_count("max_tokens", max_tokens), "seconds": seconds}


def loading_facts(
    name: str, text: Any, limits: contract.LiveLimits, failed: str = ""
) -> contract.LiveFacts:
    """What is known of a model that is not there yet.

    Args:
        name: as the user called it.
        text: that the server was started with.
        limits: of its requests.
        failed: why it could not be loaded; else empty.
    """
    texts = ("device", "dtype", "revision", "implementation", "untrained", "mask", "picture_mark")
    facts: dict[str, Any] = {
        **dict.fromkeys((*texts, "beside"), ""),
        **dict.fromkeys(("chat", "writes", "lens"), False),
        **dict.fromkeys(("sampling_rate", "atlas"), 0),
        **{name: [] for name in ("fields", "stacks", "matters", "messages")},
        **{"name": name, "kind": "none", "limits": limits, "loading": not failed},
        **{"failed": failed, "threads": torch.get_num_threads(), "versions": {}},
        "text": text if isinstance(text, str) else "",
    }
    return cast("contract.LiveFacts", facts)


def live_facts(
    model: Any, reads_with: Any, limits: contract.LiveLimits, text: Any
) -> contract.LiveFacts:
    """Facts about a loaded model.

    Args:
        model: loaded.
        reads_with: its tokenizer or processor.
        limits: of its requests.
        text: or conversation that the server was started with.

    Raises:
        TextError: where it is neither, or the model has no form for a conversation.
    """
    own, tokenizer = facts_of(model), tokenizer_of(reads_with)
    kind, untrained = _kind(model), _untrained(model)
    guesses = kind != "none" and not untrained
    positions = position_limit(model)
    chat = kind == "next-token" and chat_form_of(reads_with) is not None
    first, messages = _beginning(text, chat=chat)
    return {
        **loading_facts(own.name, "", limits),
        "device": own.device,
        "dtype": own.dtype,
        "revision": own.revision or "",
        "implementation": own.implementation,
        "kind": kind,
        "untrained": untrained,
        "fields": _fields(model, kind, chat=chat),
        "limits": {**limits, "tokens": min(limits["tokens"], positions or limits["tokens"])},
        "chat": chat,
        "writes": guesses and kind == "next-token",
        "lens": guesses and kind in ("next-token", "masked"),
        "matters": ["gradient", "exact"] if guesses else ["exact"],
        "mask": str(getattr(tokenizer, "mask_token", None) or "") if kind == "masked" else "",
        "picture_mark": picture_mark_of(reads_with),
        "sampling_rate": _sampling_rate(reads_with),
        "loading": False,
        "text": first,
        "messages": messages,
        "versions": dict(own.versions),
    }


def _beginning(given: Any, *, chat: bool) -> tuple[str, list[contract.LiveMessage]]:
    """The text that a page begins with, or the messages."""
    text = parse_call(given).text if given else ""
    if not isinstance(text, Conversation):
        return text, []
    if not chat or text.has_media:
        raise TextError("The page begins with a text: this model reads no conversation like this")
    return "", [{"role": each["role"], "content": each["content"]} for each in text.plain]


def tokenizer_of(reads_with: Any) -> Any:
    """The tokenizer of a processor, or what is one; None where there is none."""
    tokenizer = getattr(reads_with, "tokenizer", reads_with)
    return tokenizer if hasattr(tokenizer, "decode") else None


def stacks_of(record: Record) -> list[contract.LiveStack]:
    """The stacks of a model, as a record of it shows them."""
    stacks: list[contract.LiveStack] = []
    for name, stack in record.stacks.items():
        numbers = [layer.layer for layer in stack]
        heads = max(layer.heads for layer in stack)
        stacks.append({"name": name, "layers": numbers, "heads": heads})
    return stacks


def _kind(model: Any) -> contract.AnswerKind:
    """What a model says, by transformers' own table of classes; a tokenizer with a mask token does
    not tell, as some causal models have one.
    """
    config = getattr(model, "config", None)
    kind = KINDS.get(head_of(type(model), config), "none")
    encodes = reads_target(model)
    # The table has BART among those that fill masks: its decoder writes the whole text again.
    if encodes and kind == "masked":
        return "target"
    if kind != "none":
        return kind
    # Of speech and pictures, or of classes of every token, there are more than the table has.
    name = type(model).__name__
    if encodes and name.endswith(("ForConditionalGeneration", "EncoderDecoderModel")):
        return "target"
    if name.endswith("ForConditionalGeneration"):
        return "next-token"
    return "classes" if name in DISCRIMINATORS or name.endswith(OF_CLASSES) else "none"


def _untrained(model: Any) -> str:
    """Why the guesses of a model say nothing; empty where they do."""
    try:
        check_fit(model, head_of(type(model), getattr(model, "config", None)))
    except ModelError as error:
        return str(error)
    return ""


def _fields(model: Any, kind: contract.AnswerKind, *, chat: bool) -> list[contract.InputField]:
    reads = {ARGUMENTS[name] for name in arguments_of(model) if name in ARGUMENTS}
    encodes = reads_target(model)
    has_text = TEXT in reads or not reads
    has_pair = kind != "next-token" and not encodes and not {VISION, AUDIO} & reads
    wanted: dict[contract.InputField, bool] = {
        "text": has_text,
        "text_b": has_text and has_pair,
        "target": encodes,
        "image": VISION in reads,
        "audio": AUDIO in reads,
        "messages": chat,
    }
    return [name for name, is_there in wanted.items() if is_there]


def picture_mark_of(processor: Any) -> str:
    """What stands for a picture in a text; empty where texts have no place for one."""
    # Of two marks the last is that of a picture's beginning.
    return next(reversed(marks_of(processor, "picture")), "")


def _sampling_rate(processor: Any) -> int:
    """Samples a second that the model hears; 0 where it hears nothing."""
    extractor = getattr(processor, "feature_extractor", processor)
    rate = getattr(extractor, "sampling_rate", None)
    return rate if isinstance(rate, int) else 0


def parse_atlas(given: Atlas | str | os.PathLike[str]) -> Atlas:
    """An atlas, or the file or folder that holds one.

    Raises:
        FileError: where there is none.
    """
    if isinstance(given, Atlas):
        return given
    if not local_path(given).exists():
        raise FileError(
            f"{given} does not exist; headscope atlas --texts FILE --out {given} makes an atlas"
        )
    loaded = load(given)
    if not isinstance(loaded, Atlas):
        raise FileError(
            f"Expected an atlas, got {loaded!r} in {given}; give the folder that headscope atlas "
            "wrote"
        )
    return loaded


def check_atlas(atlas: Atlas, config: Any) -> None:
    """Raise where an atlas is of another model, as far as a configuration says.

    A model that was loaded by no name is compared by its layers and heads alone. Of an
    encoder-decoder the configuration does not say which stack is meant: `live_atlas` compares it
    when its heads are known.

    Args:
        atlas: of a model.
        config: of the model that is served; its weights need not be loaded.

    Raises:
        ModelError: naming both.
    """
    name = name_in(config)
    # A folder and the hub call one model by different names with the same last part.
    one, other = (each.rpartition("/")[2].casefold() for each in (atlas.model, name))
    if one and other and one != other:
        raise ModelError(
            f"The atlas is of {atlas.model}, the model is {name}; give the atlas of this model"
        )
    if getattr(config, "is_encoder_decoder", False):
        return
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers = getattr(text, "num_hidden_layers", None)
    heads = getattr(text, "num_attention_heads", None)
    if not isinstance(layers, int) or not isinstance(heads, int):
        return
    numbers, most = _size(atlas.cells)
    # A model of which only some layers have attention has gaps; one that ends early is another.
    ends_early = numbers == list(range(len(numbers))) and len(numbers) < layers
    if numbers[-1] >= layers or ends_early or most != heads:
        raise ModelError(
            f"The atlas is of {len(numbers)} layers with {most} heads each, the model "
            f"{name or 'that is served'} has {layers} with {heads}; give the atlas of this model"
        )


def atlas_for(model: Any, given: Atlas | str | os.PathLike[str] | None) -> Atlas | None:
    """The atlas that is given for a loaded model; None where none is.

    Raises:
        HeadscopeError: where there is no such atlas, or it is of another model.
    """
    if given is None:
        return None
    atlas = parse_atlas(given)
    check_atlas(atlas, getattr(model, "config", None))
    return atlas


def live_atlas(atlas: Atlas, stacks: Sequence[contract.LiveStack]) -> contract.LiveAtlas:
    """What a page compares drawings with.

    Args:
        atlas: of the model that is served.
        stacks: of that model; none before a text was read.

    Raises:
        ModelError: where the stack of the atlas has other layers or heads.
    """
    by_name: Mapping[str, contract.LiveStack] = {stack["name"]: stack for stack in stacks}
    named = atlas.heads.tally.stack
    name = next(iter(by_name), "") if named is None else named
    numbers, most = _size(atlas.cells)
    stack = by_name.get(name)
    if stack is None or (stack["layers"], stack["heads"]) != (numbers, most):
        raise ModelError(
            f"The atlas is of {len(numbers)} layers with {most} heads each, and no stack of the "
            "model has them; give the atlas of this model"
        )
    return {
        "texts": atlas.texts,
        "stack": name,
        "side": SIDE,
        "heads": list(atlas.cells),
        "mean_maps": packed_maps(atlas.maps),
    }


def _size(cells: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """The numbers of the layers, and the most heads that one of them has."""
    return list(dict.fromkeys(layer for layer, _ in cells)), 1 + max(head for _, head in cells)
