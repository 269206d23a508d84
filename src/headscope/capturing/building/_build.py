"""Records from the calls of a model's attention."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headscope.capturing.building._call_tokens import CallTokens
from headscope.capturing.building._checks import (
    Keys,
    OrderSample,
    Proof,
    check_chunks,
    check_sizes,
    explained,
    not_proved,
    read_proofs,
    sample_of,
)
from headscope.capturing.building._inventory import Inventory, inventory_of
from headscope.capturing.building._real_tokens import (
    ROWS_CHECKED,
    Masks,
    RealTokens,
    padding_of,
    plain,
    stored,
)
from headscope.capturing.building._rotation import Rotations
from headscope.capturing.building.layers import (
    KEPT_OF_CALL,
    NO_ARRAYS,
    SeenLayer,
    SideTokens,
    facts_of_call,
    order_of,
    put_away,
)
from headscope.capturing.building.statistics import Marks, statistics_of_call
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.blocks import ChosenRows, fill
from headscope.capturing.calls.call import Call, Visibility, state_of, visibility_of
from headscope.capturing.facts import position_kind
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import (
    WEIGHTS_KEPT_BELOW,
    KeepChoice,
    call_of_heads,
    each_once,
    held_heads,
)
from headscope.capturing.media.input_positions import InputPositions
from headscope.capturing.walk import modules_of
from headscope.capturing.watching._projection import check_joined
from headscope.capturing.watching._routers import routers_of
from headscope.record import CONTRIBUTION_KINDS as KINDS
from headscope.record import Contributions, HeldHeads, ModelFacts, Record, Stack, Statistics, Tokens

if TYPE_CHECKING:
    from headscope.capturing.contributions._watch import NormsWatch


@dataclass(eq=False)
class Computed:
    """What was computed of a call.

    Args:
        checked: ``[text head row key]``, the rows at which it is checked.
        weights: ``[head query key]`` of each text, padding included; None where they are not kept.
        statistics: of each text, likewise.
        held: the heads that these are of; None for all.
    """

    checked: Any = None
    weights: Sequence[torch.Tensor] | None = None
    statistics: Sequence[Statistics] | None = None
    held: HeldHeads | None = None


class Builder:
    """Makes layers of calls as each is complete, so that the model's tensors are released early.

    Args:
        inputs: the inputs that the model is run on.
        keeping: the arrays to keep.
        model: the model that makes the calls.

    Attributes:
        seen: the layers of the calls that were taken, by number of the call.
        samples: of calls whose projection did not prove the order of texts and heads.
        norms: is told of each call, where norms are wanted.
        left_out: names of modules whose attention was not seen, see `Watch.left_out`.
        unattended: kinds of inputs that no attention was seen to work on, once there are records.
        routers: router scores of each example, by name of the module.
    """

    def __init__(self, inputs: Inputs, keeping: KeepChoice, model: torch.nn.Module) -> None:
        self._keeping, self._sides, self._masks = keeping, CallTokens(inputs), Masks()
        self._keeps_weights = "weights" in keeping.what
        self._bytes, self._model, self._known = 0, model, inputs.pictures
        self._count_of_texts = inputs.count if inputs.input_positions is None else None
        self._marks: dict[tuple, Marks] = {}
        self._rows_and_padding: dict[tuple, tuple[QueryRows, torch.Tensor | None]] = {}
        self._kinds: Counter[type] = Counter()
        self._biases: dict[tuple, tuple[torch.Tensor, np.ndarray]] = {}
        self._visibilities: dict[tuple, tuple[tuple, Visibility]] = {}
        self._rotations = Rotations()
        self._keys: dict[str, Keys] = {}
        self.seen: dict[int, SeenLayer] = {}
        self._unread: list[tuple[SeenLayer, Proof]] = []
        self.samples: list[OrderSample] = []
        self._made: Counter[str] = Counter()
        self.norms: NormsWatch | None = None
        self.left_out: list[str] = []
        self.unattended: list[str] = []
        self.routers: dict[str, list[np.ndarray]] = {}

    def follow(self, input_positions: InputPositions) -> None:
        """From here on positions are followed from these elements of the input."""
        self._count_of_texts = None
        self._sides.follow(input_positions)

    def are_followed(self, call: Call) -> bool:
        """Whether the positions of a call are known to come from the input."""
        return self._sides.are_followed(call)

    def join(self, call: Call) -> Call | None:
        """A call joined with others of the same attention; None while more are expected."""
        return self._sides.joined(call)

    def take(self, call: Call) -> None:
        """Keep the chosen parts of a call, whose projection is known; `check` is to follow.

        Raises:
            CaptureError: where tokens and call do not fit.
        """
        check_sizes(call)
        check_chunks(call, self._keys)
        if call.layout.open:
            if self._count_of_texts not in (None, call.size[0]):
                raise not_proved(call.name, self._count_of_texts or 0)
            self.samples.append(sample_of(call, self._made[call.name]))
        self._made[call.name] += 1
        whole, call = call, self._sides.laid_out(call)
        sides, visibility = self._sides.of(call), self._visibility_of(call)
        rows, padding = self._rows_and_padding_of(call, sides)
        if not explained(call, visibility, rows):
            call.query = call.key = None
        call, visibility = self._narrowed(call, visibility)
        unpadded = self._unpadded(call, sides)
        if self._keeping.heads is None:
            self._count(call)
            computed = self._computed(call, visibility, sides, rows)
        else:
            computed = Computed(weights_of(call, visibility, rows))
        proof = Proof.of(call, computed.checked, rows, padding)
        layers = self._facts(unpadded, visibility)
        group = self._sides.group_of(call, sides)
        seen = SeenLayer(call, group, size=whole.size, sides=sides)
        if self._keeping.heads is None:
            seen.layers = self._kept(unpadded, visibility, layers, computed)
        else:
            seen.layers = layers
            for number, heads in seen.may_hold(self._keeping.heads, self.seen.values()):
                held = held_heads(unpadded[0].call, heads)
                seen.chosen[number, heads] = self._kept_heads(unpadded, layers, sides, held)
        self.seen[call.number] = seen
        self._unread.append((seen, proof))
        if self.norms is not None:
            self.norms.take(
                whole,
                call=call,
                sides=sides,
                visibility=visibility,
                weights=computed.checked if rows.at is None else None,
                layers=seen.layers,
            )
        put_away(seen.all_layers, self._keeping.put)

    def _narrowed(self, call: Call, visibility: Visibility) -> tuple[Call, Visibility]:
        """As much of a call as is kept."""
        return call, visibility

    def check(self) -> None:
        """Read what shows that the calls since the last time were recomputed rightly.

        Raises:
            CaptureError: where a layer differs from what the model computed.
        """
        unread, self._unread = self._unread, []
        facts = read_proofs([proof for _, proof in unread])
        for (seen, _), of_texts in zip(unread, facts, strict=True):
            seen.proved = of_texts

    def complete(self) -> None:
        """All calls of the pass were seen.

        Raises:
            CaptureError: where calls still wait for others, or `check` does.
        """
        self._sides.check_joined()
        self.check()
        if self.norms is not None:
            self.norms.complete()

    def records(self, facts: ModelFacts) -> list[Record]:
        """One record for each example of the batch."""
        wanted, inventory = self._keeping.heads, self._inventory()
        if "norms" in self._keeping.what:
            self._refuse_unwatched_norms()
        stacks: list[dict[str, Stack]] = [{} for _ in inventory.stacks[0].first.layers]
        for stack, others in zip(inventory.stacks, inventory.others, strict=True):
            for example, of_example in enumerate(stacks):
                layers = stack.layers_of(example, wanted)
                if layers:
                    of_example[stack.name] = Stack(
                        name=stack.name,
                        **self._tokens_of(stack.first, example),
                        layers=layers,
                        others=others,
                        routers=self._routers_of(stack.first, example),
                    )
        self.unattended = self._sides.unattended()
        return self._records_of(stacks, replace(facts, unseen=inventory.unseen))

    def _records_of(self, stacks: list[dict[str, Stack]], facts: ModelFacts) -> list[Record]:
        """A record of the stacks of each example, in their usual order."""
        layers = (layer for stack in stacks[0].values() for layer in stack)
        facts = replace(facts, positions=position_kind(self._model, layers))
        return [
            Record(
                stacks=dict(sorted(of_example.items(), key=lambda named: order_of(named[0]))),
                model=facts,
                pictures=self._pictures_of(example),
            )
            for example, of_example in enumerate(stacks)
        ]

    def _tokens_of(self, entry: SeenLayer, example: int) -> dict[str, Tokens]:
        """The tokens of a stack's queries and keys."""
        query, key = (side.tokens[example] for side in entry.sides)
        return {"query": query, "key": key}

    def _inventory(self) -> Inventory[SeenLayer]:
        """The layers that were seen, which cannot be parts of each other."""
        check_joined([self.seen[number].made for number in sorted(self.seen)])
        seen, heads = self.seen.values(), self._keeping.heads
        return inventory_of(self._model, seen, self.left_out, heads)

    def _pictures_of(self, example: int) -> tuple[np.ndarray, ...]:
        """The pictures of an example; none where the patches of some call are not parts of them."""
        if example >= len(self._known) or not self._known[example]:
            return ()
        sides = (side for entry in self.seen.values() for side in entry.sides)
        fits = all(side.fits[example] for side in sides if side.fits)
        return tuple(picture.pixels for picture in self._known[example]) if fits else ()

    def _refuse_unwatched_norms(self) -> None:
        for entry in self.seen.values():
            for layer in entry.layers:
                if "contributions" not in layer:
                    reason = (
                        "the model gives its weights only when it has run, so that nothing "
                        "could be watched"
                    )
                    layer["contributions"] = Contributions(
                        missing=dict.fromkeys(KINDS, f"{layer['module']}: {reason}")
                    )

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

    def _count(self, call: Call, layers: int = 1) -> None:
        """Stop keeping weights where all layers together, of which a call may hold several, would
        be too large.
        """
        if not (self._keeps_weights and self._keeping.auto):
            return
        size = math.prod(call.size) * self._keeping.dtype.itemsize // layers
        self._bytes += size * layers
        alike = 1 if self._keeping.heads is not None else self._alike(type(call.module))
        if max(self._bytes, size * alike) > WEIGHTS_KEPT_BELOW:
            self._keeps_weights = False
            for entry in self.seen.values():
                for layer in entry.all_layers:
                    if layer.get("queries") is not None:
                        layer["weights"] = None

    def _visibility_of(self, call: Call) -> Visibility:
        """The visibility of a call, from its mask and bias; computed once if layers share them."""
        if call.mask is None:
            return visibility_of(call)
        known = (*state_of(call.mask), *state_of(call.bias), call.size[3])
        if known not in self._visibilities:
            self._visibilities[known] = (call.mask, call.bias), visibility_of(call)
        return self._visibilities[known][1]

    def _alike(self, kind: type) -> int:
        """Number of modules of a class in the model."""
        if kind not in self._kinds:
            modules = modules_of(self._model)
            self._kinds = Counter(type(module) for module in modules)
        return self._kinds[kind]

    def _rows_and_padding_of(
        self, call: Call, sides: tuple[SideTokens, SideTokens]
    ) -> tuple[QueryRows, torch.Tensor | None]:
        """The rows at which a call is checked, and ``[text key]``, True for its padding, if any."""
        key = (*map(id, sides), call.size[2:])
        if key not in self._rows_and_padding:
            query, keys = (side.positions for side in sides)
            rows = QueryRows.spread(query, call.size[2], ROWS_CHECKED)
            self._rows_and_padding[key] = rows, padding_of(call, keys)
        return self._rows_and_padding[key]

    def _unpadded(self, call: Call, sides: tuple[SideTokens, SideTokens]) -> list[RealTokens]:
        """The real tokens of each text."""
        return [
            RealTokens(call, example, *(side.positions[example] for side in sides))
            for example in range(call.size[0])
        ]

    def _facts(self, unpadded: list[RealTokens], visibility: Visibility) -> list[dict[str, Any]]:
        """The facts about a layer for each text, with all its heads, without its arrays."""
        shared = facts_of_call(unpadded[0].call)
        turns = self._rotations.of(unpadded)
        return [
            {**shared, "visible": self._masks.of(text, visibility), **turned}
            for text, turned in zip(unpadded, turns, strict=True)
        ]

    def _computed(
        self,
        call: Call,
        visibility: Visibility,
        sides: tuple[SideTokens, SideTokens],
        rows: QueryRows | None,
    ) -> Computed:
        """Weights and statistics, as far as they are kept, and the rows that are checked, which are
        of the same numbers; None for no rows.
        """
        what, computed = self._keeping.what, Computed()
        # Weights are kept instead of queries and keys that the call does not have.
        if self._keeps_weights or ("qk" in what and call.query is None):
            computed.weights = _room(call)
            fill(call, visibility, computed.weights)
            computed.checked = None if rows is None else rows.of_each(computed.weights)
        if "statistics" in what:
            marks, chosen = self._marks_of(call, sides), None
            if rows is not None and computed.weights is None:
                chosen = ChosenRows.of(call, rows if marks.rows is None else None)
            top = self._keeping.top
            computed.statistics = statistics_of_call(
                call, visibility, marks, top=top, chosen=chosen
            )
            computed.checked = computed.checked if chosen is None else chosen.weights
        if rows is not None and computed.checked is None:
            computed.checked = weights_of(call, visibility, rows)
        return computed

    def _marks_of(self, call: Call, sides: tuple[SideTokens, SideTokens]) -> Marks:
        """What is known of the tokens of a call; the same for all layers with these."""
        known = (*map(id, sides), call.size[2:])
        if known not in self._marks:
            self._marks[known] = Marks(call, sides, self._keeping)
        return self._marks[known]

    def _kept_heads(
        self,
        unpadded: list[RealTokens],
        facts: list[dict[str, Any]],
        sides: tuple[SideTokens, SideTokens],
        held: HeldHeads | None,
    ) -> list[dict[str, Any]]:
        """As `_kept`, of some heads alone."""
        if held is not None:
            call = call_of_heads(unpadded[0].call, held)
            # Which keys a query may see is a fact about all heads, where it is read from weights.
            call.causal = visibility_of(unpadded[0].call).causal
            unpadded = [replace(text, call=call) for text in unpadded]
            self._count(call)
        call = unpadded[0].call
        visibility = self._visibility_of(call)
        computed = self._computed(call, visibility, sides, None)
        computed.held = held
        return self._kept(unpadded, visibility, facts, computed)

    def _kept(
        self,
        unpadded: list[RealTokens],
        visibility: Visibility,
        facts: list[dict[str, Any]],
        computed: Computed,
    ) -> list[dict[str, Any]]:
        """The arguments of a `Layer` for each example, with the arrays of all heads, or of those
        that are held.
        """
        layers = []
        for number, text in enumerate(unpadded):
            layer = {**facts[number], **self._arrays_of(text, visibility, computed.held)}
            layer["weights"] = layer["statistics"] = None
            if computed.weights is not None:
                whole = computed.weights[number]
                own = text.of_whole(whole)
                is_kept = own is whole and whole.dtype == torch.float32
                is_kept &= self._keeping.dtype == np.float32
                layer["weights"] = own.cpu().numpy() if is_kept else self._plain(own)
            if computed.statistics is not None:
                layer["statistics"] = computed.statistics[number]
            layers.append(layer)
        return layers

    def _arrays_of(
        self, text: RealTokens, visibility: Visibility, held: HeldHeads | None
    ) -> dict[str, Any]:
        arrays: dict[str, Any] = {**NO_ARRAYS, "held_heads": held}
        for name, (of_call, what) in KEPT_OF_CALL.items():
            tensor = getattr(text.call, of_call)
            if what not in self._keeping.what or tensor is None:
                continue
            if of_call.startswith("query"):
                arrays[name] = self._plain(text.of_queries(tensor))
            else:
                arrays[name] = self._plain(each_once(text.of_keys(tensor), held))
        if arrays["queries"] is not None:
            arrays["bias"] = self._bias(text, visibility)
        if text.call.sinks is not None:
            arrays["sinks"] = plain(text.call.sinks.reshape(-1))
        return arrays

    def _bias(self, text: RealTokens, visibility: Visibility) -> np.ndarray | None:
        """The bias of one text; layers that share their bias share the array."""
        if visibility.bias is None:
            return None
        known = (*state_of(visibility.bias), text.example, id(text.queries), id(text.keys))
        if known not in self._biases:
            # The tensor is kept with the array, so that no other tensor can get its id.
            self._biases[known] = visibility.bias, self._plain(text.of_both(visibility.bias))
        return self._biases[known][1]

    def _plain(self, tensor: torch.Tensor) -> np.ndarray:
        return stored(tensor, self._keeping.dtype)


def _room(call: Call) -> Sequence[torch.Tensor]:
    """Memory ``[head query key]`` for the weights of each text: on a CPU of its own, so that a
    record does not hold the weights of others.
    """
    given = call.weights if call.query is None else call.query
    dtype = torch.promote_types((call.context if given is None else given).dtype, torch.float32)
    if call.context.device.type != "cpu":
        return torch.empty(call.size, dtype=dtype, device=call.context.device).unbind()
    return [torch.empty(call.size[1:], dtype=dtype) for _ in range(call.size[0])]
