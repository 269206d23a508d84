"""The atlas of a live model: what every head does over many texts, for drawings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.atlases import SIDE, Atlas
from headscope.capturing.loading.fingerprint import name_in
from headscope.errors import FileError, ModelError
from headscope.live.contract import LiveAtlas, LiveStack
from headscope.results import load
from headscope.views.atlas_page import packed_maps


def parse_atlas(given: Atlas | str | os.PathLike[str]) -> Atlas:
    """An atlas, or the file or folder that holds one.

    Raises:
        FileError: where there is none.
    """
    if isinstance(given, Atlas):
        return given
    if not Path(given).exists():
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


def live_atlas(atlas: Atlas, stacks: Sequence[LiveStack]) -> LiveAtlas:
    """What a page compares drawings with.

    Args:
        atlas: of the model that is served.
        stacks: of that model; none before a text was read.

    Raises:
        ModelError: where the stack of the atlas has other layers or heads.
    """
    by_name: Mapping[str, LiveStack] = {stack["name"]: stack for stack in stacks}
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
