"""What is measured: ways to run a model, from the plain forward pass to everything kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import torch
from _capture_models import Shape
from torch import nn

from headscope.capturing import capture_encoded
from headscope.capturing.calls.call import Call
from headscope.capturing.watching._watch import Watch

Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Variant:
    """One way to run a model: a function of the model and its inputs that returns what is kept.

    Args:
        name: as the table has it.
        run: what is measured.
        implementation: of the model's attention.
        short: whether it is measured with short texts alone.
        family: the one family that it is measured with; empty for all.
        needs: a package that must be installed.
        made: what is made of the model beforehand.
    """

    name: str
    run: Callable[..., object]
    implementation: str = "sdpa"
    short: bool = False
    family: str = ""
    needs: str = ""
    made: Callable[[nn.Module], object] = lambda model: model

    def fits(self, shape: Shape) -> bool:
        if self.needs and find_spec(self.needs) is None:
            return False
        if self.implementation == "eager" and shape.family.startswith(("BLOOM", "GPT-J")):
            return False  # they have no other
        return shape.family.startswith(self.family) and (shape.is_short or not self.short)


def plain(model: nn.Module, inputs: Inputs, **options: bool) -> object:
    with torch.no_grad():
        return model(**inputs, **options)


def watched(model: nn.Module, inputs: Inputs, tell: Callable[[Call], None]) -> None:
    with Watch(model, len(inputs["input_ids"]), tell):
        plain(model, inputs)


def watch_only(model: nn.Module, inputs: Inputs) -> object:
    return watched(model, inputs, lambda _: None)


def captured(model: nn.Module, inputs: Inputs, **options: object) -> object:
    """Through the public interface, records and checks included."""
    return capture_encoded(model, None, inputs, **options)


def with_nnsight(model: nn.Module) -> object:
    from nnsight import NNsight  # noqa: PLC0415 - not everybody has it

    return NNsight(model)


def traced(model: Any, inputs: Inputs) -> object:
    """The weights of every layer, as nnsight's users save them."""
    with torch.no_grad():
        kept = []
        with model.trace(**inputs):
            for layer in model.transformer.h:
                kept.append(layer.attn.output[1].save())
    return kept


def with_bridge(model: nn.Module) -> object:
    """TransformerLens over the same model; it reads the configuration from a folder."""
    from transformer_lens.model_bridge import TransformerBridge  # noqa: PLC0415

    with TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        return TransformerBridge.boot_transformers(folder, hf_model=model)


def cached(model: Any, inputs: Inputs) -> object:
    """The weights of every layer, as TransformerLens keeps them."""
    with torch.no_grad():
        return model.run_with_cache(
            inputs["input_ids"], names_filter=lambda name: name.endswith("pattern")
        )


VARIANTS = (
    Variant("plain", plain),
    Variant("watch only", watch_only),
    Variant('keep="qk"', partial(captured, keep="qk")),
    Variant('keep="statistics"', partial(captured, keep="statistics")),
    Variant('keep="statistics", rows=64', partial(captured, keep="statistics", rows=64)),
    Variant('keep="statistics", top=8', partial(captured, keep="statistics", top=8)),
    Variant('keep="weights"', partial(captured, keep="weights")),
    Variant('keep="weights", float16', partial(captured, keep="weights", precision="float16")),
    Variant('keep="auto"', captured),
    Variant('keep="norms"', partial(captured, keep="norms"), short=True),
    Variant('keep="alti"', partial(captured, keep="alti"), short=True),
    Variant(
        "nnsight, weights",
        traced,
        "eager",
        short=True,
        family="GPT-2, ",
        needs="nnsight",
        made=with_nnsight,
    ),
    Variant(
        "TransformerLens, pattern",
        cached,
        "eager",
        short=True,
        family="GPT-2, ",
        needs="transformer_lens",
        made=with_bridge,
    ),
    Variant(
        "eager, output_attentions", partial(plain, output_attentions=True), implementation="eager"
    ),
)
"""The first is what the others are divided by."""
