"""The inventory that every capture ends with: all attention that ran and all inputs that were given
are in the record, or named as missing, or the capture is refused.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from torch import nn

from headscope.capturing.building.layers import SeenLayer, SeenStack, stacks_of
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.keep import ChosenHeads
from headscope.capturing.walk import arguments_of, block_of, place_of
from headscope.errors import CaptureError
from headscope.record import Record, Tokens

MIXER = re.compile(
    r"mamba|delta|linear.?attention|retention|recurrent|rwkv|conv|ssm|mixer|attention",
    re.IGNORECASE,
)
MASK = "attention_mask"
STATES = re.compile(r"mamba|ssm|rwkv|recurrent", re.IGNORECASE)
"""Of models of states, whose products are no attention."""
LINEAR = re.compile(r"linear|delta|retention|lightning", re.IGNORECASE)


@dataclass(frozen=True)
class Inventory:
    """The attention that ran.

    Args:
        stacks: of the layers that are kept.
        others: for each stack the other blocks of its list, by number, with what they compute.
        unseen: names of further modules whose attention ran and is not kept.
    """

    stacks: tuple[SeenStack, ...]
    others: tuple[dict[int, str], ...]
    unseen: str


def inventory_of(
    model: nn.Module,
    seen: Collection[SeenLayer],
    left_out: Sequence[str],
    wanted: ChosenHeads | None = None,
) -> Inventory:
    """The inventory of a capture.

    Args:
        model: that ran.
        seen: a layer for each attention that was seen.
        left_out: names of modules with attention that was not, see `Watch.left_out`.
        wanted: the heads that alone are kept; None for all.

    Raises:
        CaptureError: where there is none, a layer would be lost, or a chosen head does not exist.
    """
    if not seen:
        raise CaptureError(
            f"{type(model).__name__} computed no softmax attention that could be seen: it has none "
            "(as state-space models do), or computes it in a form that headscope does not know"
        )
    stacks = stacks_of(seen, wanted)
    kept = {stack.name: len(stack.layers) for stack in stacks}
    if sum(kept.values()) != len(seen):
        raise CaptureError(
            f"{len(seen)} attentions were seen, of which the stacks {', '.join(kept)} would hold "
            f"{sum(kept.values())}; the others would be lost, so that none are kept"
        )
    left_out = [name for name in left_out if not STATES.search(name)]
    places = {name: block_of(model, name) for name in left_out}
    others = [_others(stack, model, seen, places.values()) for stack in stacks]
    named = set()
    for stack, of_stack in zip(stacks, others, strict=True):
        named |= {(stack.group.path, number) for number in of_stack}
    rest = [name or type(model).__name__ for name in left_out if places[name] not in named]
    return Inventory(tuple(stacks), tuple(others), ", ".join(rest))


def warn_of_gaps(
    records: Sequence[Record],
    unread: Sequence[str] = (),
    unattended: Sequence[str] = (),
    lost: Sequence[str] = (),
    *,
    numbered: bool = True,
) -> None:
    """Warn once of all that is not in a record as the user may expect it.

    Args:
        records: of the batch.
        unread: names of inputs that the model does not read.
        unattended: kinds of inputs, of which no attention was seen.
        lost: what `lost_tokens` found.
        numbered: whether positions without names are a gap.
    """
    gaps, record = [], records[0]
    if record.unseen:
        gaps.append(
            "The attention of some layers was not seen, and the record leaves them out: "
            f"{record.unseen} (in a form that headscope does not know)"
        )
    if unread:
        gaps.append(f"{record.model.class_name} does not read {', '.join(unread)}")
    if unattended:
        gaps.append(f"No attention was seen that works on its {' and '.join(unattended)}")
    if lost:
        gaps.append(f"Tokens of the input are in no stack: {', '.join(lost)}")
    reasons = dict.fromkeys(chain(*(each.numbered.split("; ") for each in records)))
    reasons.pop("", None)
    if reasons and numbered:
        gaps.append(f"Some positions have no names and are numbered: {'; '.join(reasons)}")
    if gaps:
        warnings.warn(". ".join(gaps), stacklevel=5)


def not_read(modules: Iterable[nn.Module], model: nn.Module, given: Iterable[str]) -> list[str]:
    """Names of inputs that no part of a model takes, and ``**kwargs`` swallows."""
    left = set(given) - {"output_attentions", "output_hidden_states"} - set(arguments_of(model))
    if left:
        kinds = {type(module) for module in modules}
        left = left.difference(*map(arguments_of, kinds))
    return sorted(left)


def lost_tokens(records: Sequence[Record], inputs: Inputs) -> list[str]:
    """How many words of each text no side of any stack of its record holds; of nothing where
    positions are numbered.
    """
    lost, sides = [], []
    for record in records:
        both = [(stack.query.pieces, stack.key.pieces) for stack in record.stacks.values()]
        sides.append(set(chain(*both)))
    for texts, mask in ((inputs.source, MASK), (inputs.target, f"decoder_{MASK}")):
        for number, (record, tokens) in enumerate(zip(records, texts, strict=False)):
            if record.numbered or tokens.pieces in sides[number]:
                continue
            real = _real_words(tokens, inputs.arguments.get(mask), number)
            held = max((real & Counter(side)).total() for side in sides[number])
            if held < real.total():
                lost.append(f"{real.total() - held} of {real.total()} of input {number} (from 0)")
    return lost


def _real_words(tokens: Tokens, mask: Any, example: int) -> Counter[str]:
    """The pieces of words of an example, without padding."""
    is_real = [True] * len(tokens)
    if mask is not None and mask.shape[-1] == len(tokens):
        # Its axes of heads and queries, where it has them, hide padding from all.
        is_real = (mask[example].reshape(-1, len(tokens)) > 0).any(dim=0).tolist()
    marked = zip(tokens.pieces, tokens.special, is_real, strict=True)
    return Counter(piece for piece, special, real in marked if real and not special)


def _others(
    stack: SeenStack, model: nn.Module, seen: Iterable[SeenLayer], left_out: Collection[Any]
) -> dict[int, str]:
    """The blocks of a stack's list whose softmax attention was not seen, by number.

    A block where some ran is ``unseen``; any other layer is described by what it computes instead;
    cross-attention a block may well lack.
    """
    place, cross = place_of(model, stack.first.name), stack.group.cross
    if place is None:
        return {}
    # Blocks of the same list may belong to another stack, as the stages of Swin and Funnel do.
    numbers = set(stack.layers)
    for layer in seen:
        if layer.block and layer.block[0] == place.path and layer.cross == cross:
            numbers.add(layer.block[1])
    blocks = list(place.blocks.values())
    missing = sorted(set(range(len(blocks))) - numbers)
    # Numbers beyond the list were counted in some other way, and do not refer to its blocks.
    if not missing or max(numbers) >= len(blocks):
        return {}
    others = {}
    for number in missing:
        if (place.path, number) in left_out:
            others[number] = _described(blocks[number], "unseen")
        elif place.is_list and not cross:
            others[number] = _described(blocks[number], "none")
    return others


def _described(block: nn.Module, kind: str) -> str:
    mixers = [type(each).__name__ for each in block.children() if MIXER.search(type(each).__name__)]
    name = mixers[0] if mixers else type(block).__name__
    kind = "none" if STATES.search(name) else kind
    return f"{'linear' if LINEAR.search(name) else kind} ({name})"
