"""What is measured: ways to run a model, from the plain forward pass to everything kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from _capture_models import Numbers
from torch import nn

from headscope.capturing import capture_encoded
from headscope.capturing.calls.call import Call
from headscope.capturing.statistics import StatisticsPlan, statistics_of_call
from headscope.capturing.watching._watch import Watch

Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Variant:
    """One way to run a model: a function of the model and its inputs that returns what is kept."""

    name: str
    run: Callable[[nn.Module, Inputs], object]
    implementation: str = "sdpa"


def plain(model: nn.Module, inputs: Inputs, **options: bool) -> object:
    cache = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
    with torch.no_grad():
        return model(**inputs, **cache, **options)


def watched(model: nn.Module, inputs: Inputs, tell: Callable[[Call], None]) -> None:
    with Watch(model, len(inputs["input_ids"]), tell):
        plain(model, inputs)


def watch_only(model: nn.Module, inputs: Inputs) -> object:
    return watched(model, inputs, lambda _: None)


def engine_alone(model: nn.Module, inputs: Inputs, **asked: int) -> object:
    """Statistics without the record around them: neither the check of every layer nor the
    projection.
    """
    ids = inputs["input_ids"]
    plan = StatisticsPlan(
        special=torch.isin(ids, torch.tensor(Numbers.all_special_ids)), ids=ids, **asked
    )
    real = [torch.arange(ids.shape[1])] * len(ids)
    found: list = []
    watched(
        model,
        inputs,
        lambda call: found.append(
            statistics_of_call(call, plan, kept_queries=real, kept_keys=real)
        ),
    )
    return found


def captured(model: nn.Module, inputs: Inputs, **options: object) -> object:
    """Through the public interface, records and checks included."""
    return capture_encoded(model, Numbers(), inputs, **options)


ENGINE = "engine: "
VARIANTS = (
    Variant("plain", plain),
    Variant("watch only", watch_only),
    Variant('keep="qk"', partial(captured, keep="qk")),
    Variant(ENGINE + "statistics", engine_alone),
    Variant(ENGINE + "statistics, 64 rows", partial(engine_alone, rows=64)),
    Variant(ENGINE + "statistics, top 8", partial(engine_alone, top=8)),
    Variant('keep="statistics"', partial(captured, keep="statistics")),
    Variant('keep="statistics", rows=64', partial(captured, keep="statistics", rows=64)),
    Variant('keep="statistics", top=8', partial(captured, keep="statistics", top=8)),
    Variant('keep="weights"', partial(captured, keep="weights")),
    Variant('keep="weights", float16', partial(captured, keep="weights", precision="float16")),
    Variant(
        "eager, output_attentions", partial(plain, output_attentions=True), implementation="eager"
    ),
)
"""The first is what the others are divided by."""
