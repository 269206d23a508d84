"""Records from the calls of a model's attention: one loop for all texts of a batch, which are cut
out of it as views.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.capturing.building import _checks
from headscope.capturing.building._call_tokens import CallTokens
from headscope.capturing.building._inventory import Inventory, inventory_of
from headscope.capturing.building._rotation import Rotations
from headscope.capturing.building.layers import (
    KEPT_OF_CALL,
    SeenLayer,
    check_joined,
    facts_of_call,
    order_of,
    put_away,
)
from headscope.capturing.building.padding import Sides, SideTokens, cut, mask_of, padding_of
from headscope.capturing.building.statistics import Marks, statistics_of_call
from headscope.capturing.calls.attention import QueryRows, fill, recomputed, weights_of
from headscope.capturing.calls.call import Call, Visibility, of_heads, state_of, visibility_of
from headscope.capturing.device import on_cpu
from headscope.capturing.facts import position_kind
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import WEIGHTS_KEPT_BELOW, KeepChoice, each_once, held_heads
from headscope.capturing.walk import modules_of
from headscope.capturing.watching.running import routers_of
from headscope.errors import CaptureError
from headscope.record import (
    CONTRIBUTION_KINDS,
    STATISTICS,
    Contributions,
    HeldHeads,
    Mask,
    ModelFacts,
    Record,
    Stack,
)

if TYPE_CHECKING:
    from headscope.capturing.contributions._watch import NormsWatch


UNWATCHED = "the model gives its weights only when it has run, so that nothing could be watched"


class Builder:
    """Makes layers of calls as each is complete, so that the model's tensors are released early.

    Args:
        inputs: the inputs that the model is run on.
        keeping: the arrays to keep.
        model: the model that makes the calls.

    Attributes:
        sides: of calls.
        seen: the layers of the calls that were taken, by number of the call.
        norms: is told of each call, where norms are wanted.
        left_out: names of modules whose attention was not seen, see `Watch.left_out`.
        unattended: kinds of inputs that no attention was seen to work on, once there are records.
        routers: router scores of each example, by name of the module.
    """

    def __init__(self, inputs: Inputs, keeping: KeepChoice, model: torch.nn.Module) -> None:
        self._keeping = keeping
        self._alike: dict[Mask, Mask] = {}
        self.sides: CallTokens = CallTokens(inputs)
        self._keeps_weights = "weights" in keeping.what
        self._bytes, self._model, self._known = 0, model, inputs.pictures
        self._texts = inputs.count
        self._made_once: dict[tuple, Any] = {}
        self._rotations = Rotations()
        self._keys: dict[str, _checks.Keys] = {}
        self.seen: dict[int, SeenLayer] = {}
        self._unread: list[tuple[SeenLayer, _checks.Proof]] = []
        self.norms: NormsWatch | None = None
        self.left_out: list[str] = []
        self.unattended: list[str] = []
        self.routers: dict[str, list[np.ndarray]] = {}

    def take(self, call: Call) -> None:
        """Keep the chosen parts of a call, whose projection is known; `check` is to follow.

        Raises:
            CaptureError: where tokens and call do not fit.
        """
        _checks.check_form(call, self._texts)
        _checks.check_chunks(call, self._keys)
        whole, call = call, self.sides.laid_out(call)
        sides, visibility = self.sides.of(call), self._visibility_of(call)
        rows, padding = self._rows_and_padding_of(call, sides)
        if not _checks.explained(call, visibility, rows):
            call.query = call.key = None
            visibility = self._visibility_of(call)
        group = self.sides.group_of(call, sides)
        seen = SeenLayer(call, group, size=whole.size, sides=sides)
        weights = None
        seen.layers = [{} for _ in range(call.size[0])]
        if self._keeping.heads is None:
            weights = self._keep(call, visibility, seen)
        elif seen.choose(self._keeping.heads, self.seen.values()):
            held, some = held_heads(call, seen.chosen), (call, visibility)
            if held is not None:
                some = of_heads(call, visibility, held.numbers)
            self._keep(*some, seen, held)
        checked = weights_of(call, visibility, rows) if weights is None else rows.of(weights)
        turns, facts = self._rotations.of(call, sides), facts_of_call(call)
        for example, layer in enumerate(seen.layers):
            visible = self._mask(call, visibility, sides, example)
            layer |= {"visible": visible, **facts, **turns[example]}
        self.seen[call.number] = seen
        # The model's rounded weights do not show whether queries and keys were seen rightly.
        proved = (
            [checked, recomputed(call, visibility, rows)] if _checks.is_rounded(call) else [checked]
        )
        self._unread += [(seen, _checks.Proof.of(call, each, rows, padding)) for each in proved]
        if self.norms is not None:
            self.norms.take(
                whole,
                call=call,
                sides=sides,
                visibility=visibility,
                weights=checked if rows.at is None else weights,
                layers=seen.layers,
            )
        elif "norms" in self._keeping.what:
            for layer in seen.layers:
                layer["contributions"] = Contributions(
                    missing=dict.fromkeys(CONTRIBUTION_KINDS, f"{call.name}: {UNWATCHED}")
                )

    def check(self) -> None:
        """Read what shows that the calls since the last time were recomputed rightly.

        Raises:
            CaptureError: where a layer differs from what the model computed.
        """
        unread, self._unread = self._unread, []
        # On one device, which has to be waited for each time that it is read.
        numbers = [proof.numbers.to(unread[0][1].numbers.device) for _, proof in unread]
        every = torch.cat(numbers).tolist() if numbers else []
        for seen, proof in unread:
            own, every = every[: len(proof.numbers)], every[len(proof.numbers) :]
            for layer, facts in zip(seen.layers, proof.facts(own), strict=True):
                layer.update(facts)

    def complete(self) -> None:
        """All calls of the pass were seen.

        Raises:
            CaptureError: where calls still wait for others, or `check` does.
        """
        self.sides.check_joined()
        self.check()
        if self.norms is not None:
            self.norms.complete()

    def records(self, facts: ModelFacts) -> list[Record]:
        """One record for each example of the batch."""
        wanted, inventory = self._keeping.heads, self._inventory()
        stacks: list[dict[str, Stack]] = [{} for _ in inventory.stacks[0].first.layers]
        for stack, others in zip(inventory.stacks, inventory.others, strict=True):
            for example, of_example in enumerate(stacks):
                layers = stack.layers_of(example, wanted)
                query, key = (side.tokens[example] for side in stack.first.sides)
                if layers:
                    of_example[stack.name] = Stack(
                        name=stack.name,
                        query=query,
                        key=key,
                        layers=layers,
                        others=others,
                        routers=self._routers_of(stack.first, example),
                    )
        self.unattended = self.sides.unattended()
        layers = (layer for stack in stacks[0].values() for layer in stack)
        positions = position_kind(self._model, layers)
        facts = replace(facts, unseen=inventory.unseen, positions=positions)
        records = []
        for example, of_example in enumerate(stacks):
            named = dict(sorted(of_example.items(), key=lambda named: order_of(named[0])))
            pictures = self._pictures_of(example)
            records.append(Record(stacks=named, model=facts, pictures=pictures))
        return records

    def _inventory(self) -> Inventory:
        """The layers that were seen, which cannot be parts of each other."""
        check_joined(self.seen.values())
        seen, heads = self.seen.values(), self._keeping.heads
        return inventory_of(self._model, seen, self.left_out, heads)

    def _pictures_of(self, example: int) -> tuple[np.ndarray, ...]:
        """The pictures of an example; none where the patches of some call are not parts of them."""
        if example >= len(self._known) or not self._known[example]:
            return ()
        sides = (side for entry in self.seen.values() for side in entry.sides)
        fits = all(side.fits[example] for side in sides if side.fits)
        return tuple(picture.pixels for picture in self._known[example]) if fits else ()

    def _routers_of(self, entry: SeenLayer, example: int) -> dict[int, np.ndarray]:
        """Router scores ``[token expert]`` of the real tokens in the blocks of a stack, by number;
        they belong to the block and are kept with its self-attention alone.
        """
        if entry.group.cross:
            return {}
        kept = entry.sides[0].positions[example].cpu().numpy()
        of_example = {name: scores[example] for name, scores in self.routers.items()}
        by_layer = routers_of(self._model, entry.group.path, of_example)
        return {number: scores[kept] for number, scores in by_layer.items()}

    def _count(self, call: Call) -> None:
        """Stop keeping weights where those of all layers together would be too large."""
        if not (self._keeps_weights and self._keeping.auto):
            return
        size = math.prod(call.size) * self._keeping.dtype.itemsize
        self._bytes += size
        kinds = self._once(("kinds",), lambda: Counter(map(type, modules_of(self._model))))
        alike = 1 if self._keeping.heads is not None else kinds[type(call.module)]
        if max(self._bytes, size * alike) > WEIGHTS_KEPT_BELOW:
            self._keeps_weights = False
            for entry in self.seen.values():
                entry.drop_weights()

    def _once(self, known: tuple, make: Callable[[], Any]) -> Any:
        """What layers share, made for the first of them."""
        if known not in self._made_once:
            self._made_once[known] = make()
        return self._made_once[known]

    def _visibility_of(self, call: Call) -> Visibility:
        """The visibility of a call, from its mask and bias."""
        if call.mask is None:
            return visibility_of(call)
        known = "visibility", *state_of(call.mask), *state_of(call.bias), call.size[3]
        # The tensors are kept with it, so that no others can get their ids.
        return self._once(known, lambda: (visibility_of(call), call.mask, call.bias))[0]

    def _rows_and_padding_of(
        self, call: Call, sides: tuple[SideTokens, SideTokens]
    ) -> tuple[QueryRows, torch.Tensor | None]:
        """The rows at which a call is checked, and ``[text key]``, True for its padding, if any."""
        return self._once(
            ("rows", *map(id, sides), call.size[2:]),
            lambda: (
                QueryRows.spread(sides[0].positions, call.size[2], _checks.ROWS_CHECKED),
                padding_of(call.size[3], sides[1]),
            ),
        )

    def _keep(
        self, call: Call, visibility: Visibility, seen: SeenLayer, held: HeldHeads | None = None
    ) -> torch.Tensor | None:
        """Put the arrays that are kept to the layer of each text.

        Args:
            call: with all heads, or with those that are held.
            visibility: of the call.
            seen: its layer.
            held: the heads.

        Returns:
            All weights, where they are kept.
        """
        self._count(call)
        weights = self._weights(call, visibility)
        if "statistics" in self._keeping.what:
            marks = self._once(
                ("marks", *map(id, seen.sides), call.size[2:]),
                lambda: Marks(call, seen.sides, self._keeping),
            )
            counted = statistics_of_call(call, visibility, marks, top=self._keeping.top)
            for layer, own in zip(seen.layers, counted, strict=True):
                layer["statistics"] = put_away(own, STATISTICS, self._keeping.put)
        arrays = self._arrays(call, held)
        if weights is not None:
            arrays["weights"] = self._stored(weights, copy=False)
        sinks = None if call.sinks is None else self._put(on_cpu(call.sinks.reshape(-1)).numpy())
        for example, layer in enumerate(seen.layers):
            layer |= {"held_heads": held, "sinks": sinks}
            for name, array in arrays.items():
                layer[name] = self._put(_of_text(array[example], name, seen.sides, example))
            if "queries" in layer:
                layer["bias"] = self._bias(call, visibility, seen.sides, example)
        return weights

    def _weights(self, call: Call, visibility: Visibility) -> torch.Tensor | None:
        """All weights ``[text head query key]``, where they are kept."""
        # Weights are kept instead of queries and keys that the call does not have.
        is_needed = "qk" in self._keeping.what and call.query is None
        if not (self._keeps_weights or is_needed):
            return None
        given = call.weights if call.query is None else call.query
        dtype = torch.promote_types((call.context if given is None else given).dtype, torch.float32)
        weights = torch.empty(call.size, dtype=dtype, device=call.context.device)
        fill(call, visibility, weights)
        return weights

    def _arrays(self, call: Call, held: HeldHeads | None) -> dict[str, np.ndarray]:
        """``[text head token feature]``, those tensors of a call that are kept, by their names in a
        layer.
        """
        arrays = {}
        for name, (of_call, what) in KEPT_OF_CALL.items():
            tensor = getattr(call, of_call)
            if what in self._keeping.what and tensor is not None:
                is_shared = not of_call.startswith("query")
                arrays[name] = self._stored(each_once(tensor, held) if is_shared else tensor)
        return arrays

    def _bias(
        self, call: Call, visibility: Visibility, sides: tuple[SideTokens, ...], example: int
    ) -> Any:
        """The bias of one text; layers that share their bias share the array."""
        bias = visibility.bias
        if bias is None:
            return None
        query, key = (side.places[example] for side in sides)

        def made() -> tuple[Any, torch.Tensor]:
            own = bias[example if len(bias) > 1 else 0].expand(-1, *call.size[2:])
            return self._put(self._stored(own[:, query][..., key])), bias

        return self._once(("bias", *state_of(bias), example, *map(id, sides)), made)[0]

    def _mask(self, call: Call, visibility: Visibility, sides: Sides, example: int) -> Mask | None:
        """The mask of one text; layers with equal masks share one."""
        source = call.mask if call.mask is not None else visibility.visible
        if source is None and not visibility.causal:
            return None

        def read() -> tuple[Mask | None, torch.Tensor | None]:
            visible = visibility.visible
            if visible is not None:  # read once for all texts
                own = "visible", id(visible)
                visible = self._once(own, lambda: (visible.cpu(), visible))[0]
            mask = mask_of(call, replace(visibility, visible=visible), sides, example)
            return None if mask is None else self._alike.setdefault(mask, mask), source

        text = 0 if source is None or len(source) == 1 else example
        at = (id(side.positions[example]) for side in sides)
        return self._once(("mask", id(source), text, *at), read)[0]

    def _put(self, array: np.ndarray) -> Any:
        """What is kept of an array that is complete: itself, or where it is in a file."""
        return array if self._keeping.put is None else self._keeping.put(array)

    def _stored(self, tensor: torch.Tensor, *, copy: bool = True) -> np.ndarray:
        """As an array, in the precision that is kept.

        Raises:
            CaptureError: where a value is too large for it.
        """
        dtype = getattr(torch, self._keeping.dtype.name)
        largest = 0.0
        if dtype is not torch.float32 and tensor.numel():
            largest = float(tensor.detach().abs().amax())
        if largest > torch.finfo(dtype).max:
            raise CaptureError(
                f"A value of {largest:.3g} does not fit in float16; capture with "
                "precision='float32'"
            )
        return on_cpu(tensor, dtype, copy=copy).numpy()


def _of_text(array: np.ndarray, name: str, sides: Sequence[SideTokens], example: int) -> np.ndarray:
    """An array of one text without its padding."""
    query, key = (side.places[example] for side in sides)
    if name == "weights":
        return cut(array, query, key)
    return array[:, query if name.startswith("queries") else key]
