"""Tiny configurations of architectures that nobody wrote one for: their defaults, made small."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.testing._models import VOCABULARY

MOST_LAYERS = 4
MOST = {
    re.compile(r"vocab_size$"): VOCABULARY,
    re.compile(r"(num_experts|local_experts|routed_experts)$"): 16,
    # Keys that sparse attention chooses for a query: fewer than a made-up text has.
    re.compile(r"index_topk$"): 4,
    # Learned positions and masks of more are large, and no text here is as long.
    re.compile(r"(max_position_embeddings|n_positions|max_(source|target)_positions|n_ctx)$"): 512,
    # A detector chooses the objects that it begins with among the patches of a picture.
    re.compile(r"num_queries$"): 5,
    # Pictures are a few patches, and cannot be pooled to more tokens than those.
    re.compile(r"mm_tokens_per_image$"): 4,
}
"""What fields that are no width may be at most."""
FREE_MARKS = 8
"""Numbers of tokens below this stay as they are; larger ones move to the end of the vocabulary."""

DEPTH = re.compile(
    r"(^|_)(num_hidden_layers|n_layers?|num_layers|layers|depth|num_blocks|num_hidden_groups)$"
)
WIDTH = re.compile(
    r"(hidden|embed|embd|dim|d_model|intermediate|ffn|width|channels|rank|d_kv|d_ff|n_inner|filters"
    r"|units|output_size|feature_size|mlp_size|_features)"
)
NO_WIDTH = re.compile(
    r"(vocab|patch|image|window|kernel|chunk|position|layers|heads|groups|types|queries|blocks"
    r"|state|feat_per|mel|stride|ratio|act|codebook_size|prob|mask)"
)
PICTURE = ("image_size", "img_size", "input_size", "pretrain_image_size")
IN_SECTIONS = re.compile(r"^(glm4v|glm46v|glmga|glm_image|qwen2_vl|qwen2_5_vl)")
"""Models whose rotary positions share the features of a head between three directions, by default
in numbers that stand in their code and not in their configuration.
"""
RESNET = {
    "model_type": "resnet",
    "layer_type": "basic",
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 16, 16],
    "depths": [1, 1, 1, 1],
}
OUT = ("out_features", "out_indices", "_out_features", "_out_indices")
LEFT_OUT = ("transformers_version", "architectures", "dtype", "id2label", "label2id", "stage_names")
LEFT_OUT += OUT
"""Facts that are derived from the others when a configuration is made."""


@dataclass(frozen=True)
class Shrinking:
    """How much smaller a configuration is made.

    All widths are divided by one number, so that what must fit together does (a projection and what
    it projects to), whatever the fields are called. Numbers of heads stay. Of layers of several
    kinds one of each kind stays, up to four.

    Args:
        divisor: what widths are divided by.
        side: pixels that the side of a picture has at most; None leaves pictures as they are.
    """

    divisor: int
    side: int | None = 64

    def configuration(self, model_type: str) -> Any:
        """The default configuration of an architecture, made small.

        Args:
            model_type: as in transformers' mapping of configurations.
        """
        from transformers import CONFIG_MAPPING

        made_from = CONFIG_MAPPING[model_type]
        return made_from.from_dict(self.of(made_from().to_dict()))

    def of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a configuration, or of a part of one, made small."""
        layers, chosen = layers_to_keep(values)
        marks: dict[int, int] = {}
        small: dict[str, Any] = {}
        for name, value in values.items():
            if name in LEFT_OUT:
                continue
            if name == "per_layer_config" and isinstance(value, Mapping):
                small[name] = self._layers(value, chosen)
            elif name == "backbone_config" and isinstance(value, Mapping):
                small[name] = self._backbone(value)
            elif isinstance(value, Mapping):
                small[name] = self.of(value)
            elif isinstance(value, list | tuple):
                small[name] = type(value)(self._list(name, value, layers, chosen))
            elif isinstance(value, int) and not isinstance(value, bool):
                small[name] = self._number(name, value, len(chosen), marks)
            else:
                small[name] = value
        _even_heads(small)
        self._complete(small)
        return small

    def _backbone(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What makes features of a picture, with as many stages: a model reads several of them."""
        read = {"out_indices": values.get("out_indices")}
        if values.get("model_type") == "timm_backbone":
            # Of a package that need not be installed; transformers has this one itself.
            return RESNET | read
        if "depths" not in values:
            return self.of(values)
        if "window_size" in values:
            read["window_size"] = 4  # fills a picture of 64 x 64
        # Stages are its layers, and each that is read must stay.
        return self.of({name: each for name, each in values.items() if name != "num_layers"}) | read

    def _layers(self, values: Mapping[Any, Any], chosen: list[int]) -> dict[str, dict[str, Any]]:
        """What differs by layer, under the new numbers of the layers that are kept."""
        small = {}
        for number, of_layer in values.items():
            if int(number) in chosen:
                small[str(chosen.index(int(number)))] = self.of(of_layer)
        return small

    def _list(
        self, name: str, value: Sequence[Any], layers: int, chosen: list[int]
    ) -> Sequence[Any]:
        if layers > len(chosen) and len(value) == layers:
            return [value[number] for number in chosen]
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in value):
            return value
        if name.endswith("depths"):
            return [min(each, 1 + (stage == 0)) for stage, each in enumerate(value)]
        if name in PICTURE:
            return [self._side(each) for each in value]
        if name.endswith("section"):
            return _section(value, self.divisor)
        return [self._width(name, each) for each in value]

    def _number(self, name: str, value: int, layers: int, marks: dict[int, int]) -> int:
        if name.endswith(("token_id", "token_index", "_idx", "_id")):
            return _mark(value, marks)
        if name in PICTURE:
            return self._side(value)
        if DEPTH.search(name):
            return min(value, max(layers, 1))
        for pattern, most in MOST.items():
            if pattern.search(name):
                return min(value, most)
        return self._width(name, value)

    def _width(self, name: str, value: int) -> int:
        is_width = WIDTH.search(name) and not NO_WIDTH.search(name)
        if not is_width or value % self.divisor or value < 2 * self.divisor:
            return value
        return value // self.divisor

    def _side(self, pixels: int) -> int:
        return pixels if self.side is None else min(pixels, self.side)

    def _complete(self, small: dict[str, Any]) -> None:
        """Put in what a default configuration leaves open and its model cannot do without."""
        if "vocab_size" in small and small["vocab_size"] is None:
            small["vocab_size"] = VOCABULARY
        heads, width = small.get("num_attention_heads"), small.get("hidden_size")
        if not isinstance(heads, int) or not isinstance(width, int):
            return
        if "head_dim" in small and small["head_dim"] is None:
            small["head_dim"] = width // heads
        rotary = small.get("rope_parameters")
        if isinstance(rotary, dict) and IN_SECTIONS.search(small.get("model_type") or ""):
            head = small.get("head_dim") or width // heads
            turned = int(head * rotary.get("partial_rotary_factor", 1)) // 2
            rotary.setdefault("mrope_section", _section([4 * turned, 6 * turned, 6 * turned], 16))


def _even_heads(small: dict[str, Any]) -> None:
    """Fewer heads where a head would have an odd number of features, which rotary positions cannot
    turn in pairs.
    """
    for name in ("num_attention_heads", "num_heads"):
        heads, width = small.get(name), small.get("hidden_size")
        if not isinstance(heads, int) or not isinstance(width, int) or "head_dim" in small:
            continue
        while heads % 2 == 0 and width % heads == 0 and width // heads % 2:
            heads //= 2
        small[name] = heads


def _section(features: Sequence[int], divisor: int) -> list[int]:
    """Features of a head for each direction of rotary positions; the last takes what is left over,
    since all of them together must be half of what is turned.
    """
    small = [max(1, each // divisor) for each in features]
    small[-1] += max(0, sum(features) // divisor - sum(small))
    return small


def layers_to_keep(values: Mapping[str, Any]) -> tuple[int, list[int]]:
    """How many layers a configuration has, and which of them are kept: one of each kind, two at
    least.
    """
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    layers = max((value for name, value in numbers.items() if DEPTH.search(name)), default=0)
    lists = {name: value for name, value in values.items() if isinstance(value, list | tuple)}
    kinds = [each for name, each in lists.items() if len(each) == layers and "type" in name]
    of_kind: dict[tuple[Any, ...], int] = {}
    for number in range(layers):
        of_kind.setdefault(tuple(each[number] for each in kinds), number)
    chosen = list(of_kind.values())[:MOST_LAYERS]
    others = [number for number in range(layers) if number not in chosen]
    return layers, sorted(chosen + others[: max(0, 2 - len(chosen))])


def _mark(value: int, marks: dict[int, int]) -> int:
    """The number of a special token within the small vocabulary, another for each."""
    if value < FREE_MARKS:
        return value
    return marks.setdefault(value, VOCABULARY - 1 - len(marks))
