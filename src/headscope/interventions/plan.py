"""Which attention there is in a model to be changed, found out by running it once as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.capturing.building.layers import group_of, role_of
from headscope.capturing.calls.call import Call, Layout
from headscope.capturing.device import device_of, one_at_a_time, same_random_numbers
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import KeepChoice
from headscope.capturing.run import at_rest, run
from headscope.capturing.seam import intact
from headscope.errors import InterventionError
from headscope.record import Layer

ROLES = {"decoder": ("target", "target"), "cross": ("target", "source")}
SEEN = ("vision", "audio", "stage", "time", "space")
"""Stacks whose tokens are not those of a text, by the beginning of their names."""


@dataclass(frozen=True)
class LayerPlace:
    """One layer of one stack, and where in the model its attention is computed.

    Args:
        stack: name of the stack.
        layer: number of the layer.
        module: name of the module that computes it.
        visit: how often that module has run before in the same pass (ALBERT's layers share one).
        heads: number of heads.
        kv_heads: number of key/value heads.
        route: how it was seen.
        roles: whether queries and keys are of the source or of the target; empty where of neither.
        features: of queries, keys and values; 0 where not known.
        products: how many products of activations went into the scores, or were made beside the
            interface.
        whole: whether the layer works on each example at once, and not on windows or one picture
            after the other.
        exchanged: whether keys come before queries in their product, or values before weights.
        refused: why the layer cannot be changed; empty where it can.
    """

    stack: str
    layer: int
    module: str
    visit: int
    heads: int
    kv_heads: int
    route: str
    roles: tuple[str, str]
    features: tuple[int, int, int]
    products: int
    whole: bool
    exchanged: bool = False
    refused: str = ""

    @property
    def name(self) -> str:
        """Of the layer, for messages."""
        if self.stack == "self":
            return f"Layer {self.layer}"
        return f"Layer {self.layer} of {self.stack!r}"


@dataclass(frozen=True)
class ModelPlan:
    """The places of a model.

    Args:
        places: all layers with softmax attention.
        others: those without, by stack and number, and what they are instead.
    """

    places: tuple[LayerPlace, ...]
    others: Mapping[str, Mapping[int, str]]

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks."""
        return tuple(dict.fromkeys(place.stack for place in self.places))

    @property
    def depends_on_batch(self) -> bool:
        """Whether other places may be found with another number of texts: where torch's operators
        are seen.
        """
        return any(place.route == "operators" for place in self.places)

    def chosen(self, stack: str | None, layers: tuple[int, ...] | None) -> list[LayerPlace]:
        """The places of these layers, of all where None.

        Raises:
            InterventionError: where there is no such stack or layer, or the stack is left open and
                there are several.
        """
        stack = self._stack(stack)
        places = {place.layer: place for place in self.places if place.stack == stack}
        if layers is None:
            return list(places.values())
        for layer in layers:
            if layer not in places:
                raise InterventionError(
                    f"Layer {layer} of stack {stack!r} cannot be changed: "
                    f"{self._why_not(stack, layer)}; there are "
                    f"layers {', '.join(map(str, places))}"
                )
        # In the order of the model, whatever the order in which layers were named.
        return [place for number, place in places.items() if number in layers]

    def _stack(self, stack: str | None) -> str:
        """The stack that is meant, which may be left open where there is only one."""
        names = ", ".join(map(repr, self.stacks))
        if stack is None and len(self.stacks) > 1:
            raise InterventionError(
                f"This model has the stacks {names}; say which is meant with stack="
            )
        stack = self.stacks[0] if stack is None else stack
        if stack not in self.stacks:
            raise InterventionError(f"This model has the stacks {names}, not {stack!r}")
        return stack

    def _why_not(self, stack: str, layer: int) -> str:
        """Why a layer is none of the places."""
        what = self.others.get(stack, {}).get(layer)
        if what is None:
            return "there is none"
        if what.startswith("unseen"):
            return f"its attention was not seen: {what}"
        return f"it computes no softmax attention: {what}"


@dataclass(frozen=True)
class _Note:
    """What is remembered of a call as the model made it; its layout is known once its projection
    was seen.
    """

    module: str
    roles: tuple[str, str]
    products: int
    size: tuple[int, int, int, int]
    layout: Layout


def plan_of(model: Any, inputs: Inputs) -> ModelPlan:
    """The places of a model that is run on these inputs; it is run once, unchanged and checked as
    by `capture`.

    Raises:
        CaptureError: where its attention cannot be captured exactly.
    """
    notes: list[_Note] = []

    def note(call: Call) -> None:
        # A capture may run the model again, with positions numbered; the last run counts.
        if call.number == 0:
            notes.clear()
        group = group_of(call)
        roles = ROLES.get(role_of(group.path, group.cross)) if inputs.target else None
        roles = roles or ("source", "source")
        notes.append(_Note(call.name, roles, call.products, call.size, call.layout))

    keeping = KeepChoice(frozenset({"qk", "values"}), auto=False)
    same = same_random_numbers(device=device_of(model))
    with one_at_a_time(model), intact(), at_rest(model), same:
        record = run(model, inputs, keeping, note=note)[0]
    by_module: dict[str, list[_Note]] = {}
    for entry in notes:
        by_module.setdefault(entry.module, []).append(entry)
    layers = [(stack.name, layer) for stack in record.stacks.values() for layer in stack]
    uses = Counter(layer.module for _, layer in layers)
    places, visits = [], Counter[str]()
    for stack, layer in layers:
        seen = by_module.get(layer.module, []), uses[layer.module], inputs.count
        places.append(_place(stack, layer, visits[layer.module], seen))
        visits[layer.module] += 1
    others = {stack.name: dict(stack.others) for stack in record.stacks.values()}
    return ModelPlan(tuple(places), others)


def _place(stack: str, layer: Layer, visit: int, seen: tuple[list[_Note], int, int]) -> LayerPlace:
    notes, uses, count = seen
    roles, products = ("", ""), 0
    if notes:
        products = notes[0].products
        roles = roles if stack.startswith(SEEN) else notes[0].roles
    # Windows make more calls than the layer is used, or another first axis than the texts.
    is_whole = len(notes) == uses and all(note.size[0] == count for note in notes)
    return LayerPlace(
        stack=stack,
        layer=layer.layer,
        module=layer.module,
        visit=visit,
        heads=layer.heads,
        kv_heads=layer.kv_heads,
        route=layer.route,
        roles=roles,
        features=(_width(layer.queries), _width(layer.keys), _width(layer.values)),
        products=products,
        whole=is_whole,
        exchanged=any(note.layout.exchanged for note in notes),
        refused=_refused(notes),
    )


def _refused(notes: list[_Note]) -> str:
    if not notes or any(note.layout.one_by_one for note in notes):
        return "computes its heads one by one; it can be captured, but not changed"
    if any(note.layout.heads_first == "folded" for note in notes):
        return (
            "puts its heads before the texts of a batch, and cannot be changed there; run it on "
            "one text at a time"
        )
    if any(note.layout.heads_first for note in notes):
        return "puts its heads before the texts; it can be captured, but not changed"
    return ""


def _width(array: np.ndarray | None) -> int:
    return 0 if array is None else array.shape[-1]
