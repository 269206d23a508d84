"""The seam at which interventions change what an attention layer computes, between its parts.

Whoever changes a layer opens a `ChangeSession` and lists its changes; the watches of both
routes ask for them and apply them, so that a capture inside sees, and checks, what was really
computed. Queries, keys and values are changed before the model's own function runs. Weights and
outputs are changed after it, in the heads and rows that are meant and in no other: what is not
meant stays what the model computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import nn

from headscope.capturing.calls.attention import visible_of, weights_of
from headscope.capturing.calls.call import Call, of_heads, visibility_of
from headscope.capturing.device import full_precision
from headscope.capturing.media.position_marks import MARK
from headscope.capturing.observers import observers, observing
from headscope.errors import InterventionError

Where = Literal["query", "key", "value", "weights", "output"]
OPERANDS: tuple[Where, ...] = ("query", "key", "value")


@dataclass(frozen=True, eq=False)
class CallPositions:
    """The tokens of one call.

    Args:
        queries: for each example the positions ``[token]`` of its real queries.
        keys: for each example the positions ``[token]`` of its real keys.
        visible: True for real keys that a query may look at, broadcast to the weights; None where
            not asked for.
        sinks: whether a part of each row's weight goes to learned sinks.
        before: in a step of a generation, for each example, how many of its tokens come before the
            first of these queries, and before the first of these keys; else empty.
    """

    queries: Sequence[torch.Tensor]
    keys: Sequence[torch.Tensor]
    visible: torch.Tensor | None = None
    sinks: bool = False
    before: Sequence[tuple[int, int]] = ()

    @staticmethod
    def after(
        read: Sequence[int],
        queries: Sequence[torch.Tensor],
        keys: Sequence[torch.Tensor],
        *,
        cross: bool,
    ) -> CallPositions:
        """Those of a call after so many tokens of each example; empty where it is the first."""
        before = []
        for count, own, held in zip(read, queries, keys, strict=False):
            # A cache of a window has let go of the first keys.
            lost = 0 if cross else max(count + len(own) - len(held), 0)
            before.append((count, lost))
        return CallPositions(queries, keys, before=before)

    def before_in(self, example: int) -> tuple[int, int]:
        """What is `before` the queries and keys of an example."""
        return self.before[example] if self.before else (0, 0)


@dataclass(frozen=True, eq=False)
class LayerChange:
    """One change of one layer.

    Args:
        where: what is changed: queries, keys, values, weights, or what the heads output.
        heads: numbers of the heads, or of the key/value heads where keys or values are changed.
        make: makes of these heads' tensor the new one: ``[batch head token feature]``; weights are
            ``[batch head query key]``, outputs ``[batch query head feature]``.
        rows: positions among the real tokens that are changed; None for all.
        description: what is done, in words.
        route: on which the layer is seen.
        size: number of all heads and of features of the tensor, where queries, keys or values are
            changed.
    """

    where: Where
    heads: tuple[int, ...]
    make: Callable[[torch.Tensor, CallPositions], torch.Tensor]
    rows: tuple[int, ...] | None
    description: str
    route: str
    size: tuple[int, int] | None = None


@runtime_checkable
class ChangeSession(Protocol):
    """Somebody who changes layers.

    Args:
        done: changes of queries, keys and values that were made since the layer began, by their
            ids.
    """

    done: set[int]

    def parts(self, module: nn.Module) -> Sequence[LayerChange]:
        """What is to be changed in the pass of this module that is running."""
        ...

    def positions(self, module: nn.Module, call: Call) -> CallPositions:
        """Positions of the real queries and keys of each example of a call."""
        ...

    def prepare(self, model: nn.Module, inputs: Any) -> None:
        """The model will be run on these `Inputs`; what must be known beforehand is to be found out
        now.
        """
        ...


@runtime_checkable
class InterventionLike(Protocol):
    """What `capture` is given as an intervention."""

    def on(self, model: nn.Module) -> Any:
        """A block in which the model is changed."""
        ...


def sessions() -> tuple[ChangeSession, ...]:
    """Those that are open, the outermost first."""
    return observers().sessions


def changing(session: ChangeSession) -> AbstractContextManager[None]:
    """Let a session change layers while the block is open, after those that are open already."""
    return observing(sessions=(*sessions(), session))


def intact() -> AbstractContextManager[None]:
    """Change nothing while the block is open, and let no watch see it that was open before."""
    # Watches compare the level they were opened at with that of now: a number tells runs inside a
    # run apart, where a flag could not be set back.
    return observing(sessions=(), level=level() + 1)


def level() -> int:
    """How many blocks of `intact` are open."""
    return observers().level


def unseen() -> Any:
    """A block in which no watch sees what torch does."""
    return torch._C.DisableTorchFunction()


def edit_of(module: nn.Module | None, route: str) -> Edit | None:
    """What is to be changed in a module's attention, where it is seen on this route; None for
    nothing.
    """
    if module is None or not sessions():
        return None
    changes = [
        (session, part)
        for session in sessions()
        for part in session.parts(module)
        if part.route == route
    ]
    return Edit(module, changes[0][0], tuple(part for _, part in changes)) if changes else None


@dataclass(frozen=True, eq=False)
class Edit:
    """All changes of one attention call, in the order in which they are made."""

    module: nn.Module
    session: ChangeSession
    parts: tuple[LayerChange, ...]

    def of(self, *where: Where) -> list[LayerChange]:
        """The changes of these parts."""
        return [part for part in self.parts if part.where in where]

    def operand(self, where: Where, tensor: torch.Tensor, call: Call) -> torch.Tensor:
        """Changed queries, keys or values ``[batch head token feature]``; the tensor itself where
        none are.
        """
        changed = tensor
        with unseen():
            for part in self.of(where):
                if part.size != (tensor.shape[1], tensor.shape[3]):
                    continue  # another product of the same layer
                self._note(part)
                at = self.session.positions(self.module, call)
                index = _index(part.heads, tensor)
                chosen = rows_of(
                    part.rows, at, tensor.shape[2], tensor.device, of_keys=where != "query"
                )
                old = changed[:, index]
                # The tensor is the model's own: others may read it, and gradients may need what it
                # was.
                changed = changed.clone()
                changed[:, index] = (
                    part.make(old, at).to(old.dtype).where(chosen[:, None, :, None], old)
                )
        return changed if changed is tensor else alike(changed, tensor)

    def changed(self, call: Call, *, with_weights: bool) -> Call:
        """The call with its context, and its weights where ``with_weights`` asks for them, changed.

        A row whose output was replaced has no weights: none of what the head looked at went
        further.
        """
        self._check_done()
        call = replace(call, changes=tuple(part.description for part in self.parts))
        if not self.of("weights", "output"):
            return call
        with unseen():
            at = self.session.positions(self.module, call)
            at = replace(at, sinks=call.sinks is not None)
            return _Changing(self, call, with_weights, at).call()

    def _note(self, part: LayerChange) -> None:
        if id(part) in self.session.done:
            raise InterventionError(
                f"{self._name} uses its {part.where} twice; it is unclear which one to change"
            )
        self.session.done.add(id(part))

    def _check_done(self) -> None:
        for part in self.of(*OPERANDS):
            if id(part) not in self.session.done:
                raise InterventionError(
                    f"{self._name} does not use its {part.where} in a form that can be changed"
                )
            # Removed, since the same layer may run again within one pass of the model.
            self.session.done.remove(id(part))

    @property
    def _name(self) -> str:
        return type(self.module).__name__


class _Changing:
    """Changes weights and outputs of one call."""

    def __init__(self, edit: Edit, call: Call, with_weights: bool, at: CallPositions) -> None:
        self._edit, self._call, self._at = edit, call, at
        self._context = call.context.clone()
        self._visibility = visibility_of(call)
        # A copy: gradients may need the weights as the model made them.
        self._every = weights_of(call, self._visibility).clone() if with_weights else None
        self._added: torch.Tensor | None = None

    def call(self) -> Call:
        """The call as it is now."""
        weighted = self._edit.of("weights")
        if weighted:
            self._reweigh(weighted)
        for part in self._edit.of("output"):
            self._replace(part)
        context = alike(self._context, self._call.context)
        if self._every is None:
            return replace(self._call, context=context)
        fields = {
            "query": None,
            "key": None,
            "bias": None,
            "soft_cap": None,
            "weights": self._every,
        }
        return replace(self._call, context=context, added=self._added, **fields)

    def _reweigh(self, parts: list[LayerChange]) -> None:
        heads = tuple(sorted({head for part in parts for head in part.heads}))
        index = _index(heads, self._context)
        some = of_heads(self._call, self._visibility, heads)
        own = weights_of(*some) if self._every is None else self._every[:, index]
        new, touched = own, torch.zeros(own.shape[:3], dtype=torch.bool, device=own.device)
        for part in parts:
            at = replace(self._at, visible=self._visible(part.heads))
            chosen = _index([heads.index(head) for head in part.heads], own)
            rows = rows_of(part.rows, at, own.shape[2], own.device)[:, None]
            old, new = new[:, chosen], new.clone()
            new[:, chosen] = part.make(old, at).to(old.dtype).where(rows[..., None], old)
            touched[:, chosen] |= rows
        if some[1].alive is not None:  # rows that may look at nothing stay what they are
            touched &= some[1].alive[..., 0]
        # Grouped heads read the value of the head that they share.
        shared = index // (self._call.size[1] // self._call.value.shape[1])
        with full_precision():
            made = new @ self._call.value[:, shared].to(new.dtype)
        made = made.transpose(1, 2).to(self._context.dtype)
        # Only rows whose weights changed are taken from the product: the others stay what the model
        # computed, whatever kernel made them.
        old = self._context[:, :, index]
        self._context[:, :, index] = made.where(touched.transpose(1, 2)[..., None], old)
        if self._every is not None:
            self._every[:, index] = new.where(touched[..., None], own)

    def _replace(self, part: LayerChange) -> None:
        index = _index(part.heads, self._context)
        old = self._context[:, :, index]
        rows = rows_of(part.rows, self._at, old.shape[1], old.device)[:, :, None]
        self._context[:, :, index] = (
            part.make(old, self._at).to(old.dtype).where(rows[..., None], old)
        )
        if self._every is None:
            return
        self._every[:, index] = self._every[:, index].masked_fill(
            rows.transpose(1, 2)[..., None], 0.0
        )
        if self._added is None:
            self._added = torch.zeros_like(self._context)
        self._added[:, :, index] = self._context[:, :, index].where(
            rows[..., None], self._added[:, :, index]
        )

    def _visible(self, heads: tuple[int, ...]) -> torch.Tensor:
        """True for the real keys that a query may look at, broadcast to ``[batch head query
        key]``.
        """
        batch, _, queries, keys = self._call.size
        real = rows_of(None, self._at, keys, self._context.device, of_keys=True)[:, None, None]
        visible = visible_of(*of_heads(self._call, self._visibility, heads))
        real = real if visible is None else real & visible
        return real.expand(batch, -1, queries, keys)


def rows_of(
    rows: tuple[int, ...] | None,
    at: CallPositions,
    size: int,
    device: Any,
    *,
    of_keys: bool = False,
) -> torch.Tensor:
    """``[batch position]``, True for the chosen among the real queries, or keys; without a choice
    for all queries, or all real keys.

    Raises:
        InterventionError: where a text has no such token.
    """
    positions = at.keys if of_keys else at.queries
    chosen = torch.ones(len(positions), size, dtype=torch.bool, device=device)
    if rows is None and not of_keys:
        return chosen
    chosen = torch.zeros_like(chosen)
    for example, (row, shown) in enumerate(zip(chosen, positions, strict=True)):
        before = at.before_in(example)[of_keys]
        row[shown if rows is None else shown[within(rows, len(shown), before)]] = True
    return chosen


def within(rows: Sequence[int], count: int, before: int = 0) -> list[int]:
    """Numbers of tokens of a text as positions among those that are run now, which follow some
    others; without those of other steps of a generation.

    Raises:
        InterventionError: where one lies beyond the tokens that there are.
    """
    # The first step shows whether they exist.
    if not before and max(rows, default=0) >= count:
        there = f"the text has tokens 0 to {count - 1}"
        if count == 1:
            there = "token 0 alone is read at first, and none that is written later can be chosen"
        raise InterventionError(f"There is no token {max(rows)}: {there}")
    return [number - before for number in rows if 0 <= number - before < count]


def read_before(cached: Any, mask: Any, batch: int) -> list[int]:
    """How many tokens of each text earlier steps of a generation read; empty in the first.

    Args:
        cached: the cache of the model.
        mask: of padding; None without any.
        batch: number of texts.
    """
    if not cached:
        return []
    # generate hands an empty cache to the first step, which reads the whole prompt.
    is_tuple = isinstance(cached, tuple | list)
    count = int(cached[0][0].shape[-2] if is_tuple else cached.get_seq_length())
    if not count:
        return []
    if isinstance(mask, torch.Tensor) and mask.ndim == 2 and mask.shape[1] > count:
        return mask[:, :count].count_nonzero(1).tolist()
    return [count] * batch


def alike(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """The new tensor, which stands for the same positions of the input as the old one."""
    mark = getattr(old, MARK, None)
    if mark is not None and mark.shape == new.shape:
        setattr(new, MARK, mark)
    return new


def _index(numbers: Sequence[int], beside: torch.Tensor) -> torch.Tensor:
    return torch.tensor(list(numbers), dtype=torch.long, device=beside.device)
