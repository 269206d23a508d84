"""The tokens of the queries and keys of a call.

Some models attend over positions of their own (pooled tokens, prompts, the tubes of a video), which
are not tokens of the input. Then `UnnamedPositions` is raised, and the model is run again on inputs
that allow such positions to be numbered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch

from headscope.capturing.building._side_tokens import (
    PADDING,
    WatchedTokens,
    looked_at,
    numbers_at,
    positions_in,
)
from headscope.capturing.building._windows import joined, laid_out
from headscope.capturing.building.layers import SPACE, TIME, StackKey, group_of, role_of
from headscope.capturing.building.padding import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.media._pictures import are_whole, tokens_from_marks
from headscope.capturing.media._pixels import lie_within
from headscope.capturing.media.input_positions import (
    AUDIO,
    KINDS,
    PIXEL_MASKS,
    SERIES,
    TARGET,
    TEXT,
    VISION,
    InputPositions,
    UnnamedPositions,
)
from headscope.capturing.media.position_marks import position_marks
from headscope.errors import CaptureError
from headscope.record import Tokens

PROBE, CHANNEL = "probe", "channel"
MASKS = {
    TEXT: ("attention_mask",),
    TARGET: ("decoder_attention_mask",),
    VISION: PIXEL_MASKS,
    AUDIO: ("attention_mask", "input_features_mask"),
}
"""Arguments of models that mark padding in the input."""


class CallTokens:
    """Finds the tokens of calls, and keeps the results for later calls."""

    def __init__(self, inputs: Inputs) -> None:
        self._known: dict[tuple[str, int, bool], SideTokens] = {}
        self._watched = None if inputs.sides is None else WatchedTokens(inputs.sides)
        self._tokens: list[tuple] = []
        self._inputs, self._rows = inputs, 0
        self._marked: _MarkedTokens | None = None
        if inputs.input_positions is not None:
            self.follow(inputs.input_positions)

    def follow(self, input_positions: InputPositions) -> None:
        """From here on positions are followed from these elements of the input."""
        self._marked = _MarkedTokens(self._inputs, input_positions)

    def are_followed(self, call: Call) -> bool:
        """Whether its positions are known to come from the input, also within windows."""
        return self._marked is not None and self._marked.knows(call)

    def joined(self, call: Call) -> Call | None:
        """The call, joined with others that its module made for other pictures; None while more are
        expected.
        """
        return call if self._marked is None else self._marked.joined(call)

    def check_joined(self) -> None:
        """Raise where calls still wait for others.

        Raises:
            CaptureError: with the name of their module.
        """
        if self._marked is not None and self._marked.parts:
            name = next(iter(self._marked.parts))
            raise UnnamedPositions(
                f"{name} attends to positions that do not stand for all patches, one by one"
            )

    def unattended(self) -> list[str]:
        """Kinds of inputs, such as text or vision, of which no position is on a side of a call; or
        sequences that were given to `headscope.watch`.
        """
        inputs = self._inputs
        if self._watched is not None:
            unused = (each for each in self._watched.given if each not in self._watched.used)
            return [f"{len(each)} tokens ({each.pieces[0]!r} ...)" for each in unused]
        if self._marked is not None:
            given = {KINDS[kind] for kind in np.unique(self._marked.input_positions.kind)}
            return sorted(given - self._marked.kinds)
        if inputs.numbered:
            return []
        held = {role for role, _, _ in self._known}
        given = {TEXT: ("source", inputs.source), TARGET: ("target", inputs.target)}
        return [kind for kind, (role, tokens) in given.items() if tokens and role not in held]

    def laid_out(self, call: Call) -> Call:
        """The call with one row of its batch for each example, and its patches in the order of the
        picture.

        Raises:
            CaptureError: where it works within windows that cannot be put together.
        """
        return call if self._marked is None or call.of_channels else self._marked.laid_out(call)

    def group_of(self, call: Call, sides: tuple[SideTokens, SideTokens]) -> StackKey:
        """The stack of the call: calls of one part of the model with the same tokens share one."""
        tokens = tuple(side.tokens for side in sides)
        if tokens not in self._tokens:
            self._tokens.append(tokens)
        return group_of(call)._replace(kind=sides[0].kind, part=self._tokens.index(tokens))

    def of(self, call: Call) -> tuple[SideTokens, SideTokens]:
        """The tokens of the queries and of the keys.

        Raises:
            UnnamedPositions: where the number of positions differs from the number of tokens.
            CaptureError: where the number of examples differs.
        """
        if call.of_channels:
            return self._channels(call)
        given = {len(side) for side in self._inputs.sides or ()}
        followed = self.are_followed(call) and not given & set(call.size[2:])
        if self._watched is not None and not followed:
            return self._watched.of(call)
        if self._marked is not None:
            return self._marked.of(call)
        _, _, queries, keys = call.size
        query, key = self._roles(call)
        seen = self._side(call, key, keys, is_key=True)
        # Which numbered keys are padding follows from the queries that look at them. This comes
        # first, because the same positions then serve as queries.
        if (query, queries) == (key, keys):
            return seen, seen
        return self._side(call, query, queries, is_key=False), seen

    def _channels(self, call: Call) -> tuple[SideTokens, SideTokens]:
        """The channels of a head, which are queries and keys alike."""
        batch, _, count, _ = call.size
        known = CHANNEL, count, True
        if known not in self._known:
            tokens = Tokens(pieces=tuple(f"{CHANNEL} {number}" for number in range(count)))
            positions = torch.arange(count, device=call.context.device)
            self._known[known] = SideTokens((tokens,) * batch, (positions,) * batch, CHANNEL)
        return self._known[known], self._known[known]

    def _roles(self, call: Call) -> tuple[str, str]:
        if not self._inputs.target:
            return "source", "source"
        group = group_of(call)
        return {"decoder": ("target", "target"), "cross": ("target", "source")}.get(
            role_of(group.path, group.cross), ("source", "source")
        )

    def _side(self, call: Call, role: str, size: int, *, is_key: bool) -> SideTokens:
        # The queries of cross-attention were keys of self-attention before, where their padding
        # could be seen.
        if (role, size, True) in self._known:
            return self._known[role, size, True]
        if (role, size, is_key) not in self._known:
            self._known[role, size, is_key] = self._found(call, role, size, is_key=is_key)
        return self._known[role, size, is_key]

    def _found(self, call: Call, role: str, size: int, *, is_key: bool) -> SideTokens:
        tokens = self._inputs.source if role == "source" else self._inputs.target
        mask = self._real(call, role, size)
        if tokens and mask is not None and len(tokens) == len(mask):
            positions = positions_in(mask)
            # Tokens may be given with padding or without it.
            kept = tuple(
                whole if len(whole) == len(where) else whole.take(where.tolist())
                for whole, where in zip(tokens, positions, strict=True)
            )
            return SideTokens(kept, positions)
        if not self._inputs.numbered:
            known = "no tokens are known"
            if tokens:
                known = f"the {role} text has {(len(tokens), len(tokens[0]))} tokens"
            raise UnnamedPositions(
                f"{call.name} works on {call.size[0]} x {size} positions, but {known}"
            )
        return self._numbers(call, size, mask, is_key=is_key)

    def _numbers(
        self, call: Call, size: int, mask: torch.Tensor | None, *, is_key: bool
    ) -> SideTokens:
        """Numbered tokens for the positions that are not padding."""
        batch = call.size[0]
        if not self._fits(batch):
            raise CaptureError(
                f"{call.name} computes attention on {batch} rows where the model was given "
                f"{self._inputs.count}; attention within windows or blocks of its own cannot be "
                "captured yet"
            )
        reason, seen = self._inputs.numbered, np.ones((batch, size), bool)
        if mask is None and self._is_padded():
            seen = looked_at(call, seen.shape) if is_key else seen
            reason += f"; {PADDING}" if seen.all() and size > 1 else ""
        mask = torch.from_numpy(seen).to(call.context.device) if mask is None else mask
        positions = positions_in(mask)
        return SideTokens(numbers_at(positions, reason), positions)

    def _fits(self, rows: int) -> bool:
        """Whether rows are examples, or parts of examples that are the same in all calls.

        Such parts are the channels of time series, or one row for all codebooks of a sound. Several
        rows of one picture are its windows (Swin2SR), which do not attend to each other.
        """
        examples = self._inputs.count
        is_text = bool(self._inputs.source or self._inputs.target)
        given = self._inputs.arguments.values()
        is_picture = any(isinstance(each, torch.Tensor) and each.ndim >= 4 for each in given)
        has_channels = not is_text and not is_picture and not rows % examples
        even = not examples % rows or has_channels
        self._rows = self._rows or rows
        return even and self._rows == rows

    def _real(self, call: Call, role: str, size: int) -> torch.Tensor | None:
        """``[batch position]``, nonzero for positions that are not padding; None without a mask of
        that length.

        In a mask with an axis of queries, such as ``[batch 1 query key]``, padding is hidden from
        all queries.
        """
        shape = call.size[0], size
        mask = self._inputs.arguments.get(
            "attention_mask" if role == "source" else "decoder_attention_mask"
        )
        if mask is None:
            tokens = self._inputs.source if role == "source" else self._inputs.target
            given = (len(tokens), len(tokens[0])) if tokens else None
            return torch.ones(shape, device=call.context.device) if given == shape else None
        if mask.ndim > 2 and len(mask) in (1, shape[0]) and mask.shape[-1] == size:
            return torch.from_numpy(looked_at(call, shape)).to(call.context.device)
        return mask if mask.shape == shape else None

    def _is_padded(self) -> bool:
        """Whether the model was given a mask of padding."""
        given = self._inputs.arguments.items()
        masks = [mask for name, mask in given if "mask" in name and mask.ndim == 2]
        return any(not bool(mask.all()) for mask in masks)


@dataclass
class _MarkedTokens:
    """The sides of calls whose positions were followed from the input."""

    inputs: Inputs
    input_positions: InputPositions
    parts: dict[str, list[tuple[Call, np.ndarray]]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    _marks: dict[int, np.ndarray] = field(default_factory=dict)
    _filled: dict[int, np.ndarray] = field(default_factory=dict)
    _axes: dict[int, str] = field(default_factory=dict)
    _known: dict[tuple, SideTokens] = field(default_factory=dict)

    def knows(self, call: Call) -> bool:
        """Whether queries and keys were followed."""
        return all(marks is not None for marks in self._marks_of(call))

    def joined(self, call: Call) -> Call | None:
        queries, keys = _marks_of(call)
        if queries is None or keys is None or not np.array_equal(queries, keys):
            return call
        seen = {kind for kind in KINDS if self.input_positions.come_from(queries, kind).any()}
        if VISION not in seen or {TEXT, TARGET} & seen:
            return call
        parts = self.parts.setdefault(call.name, [])
        parts.append((call, queries))
        if not self._is_complete(np.concatenate([marks.ravel() for _, marks in parts])):
            return None
        del self.parts[call.name]
        whole = joined([part for part, _ in parts])
        self._marks[whole.number] = np.concatenate([marks for _, marks in parts], axis=1)
        return whole

    def laid_out(self, call: Call) -> Call:
        queries, keys = self._marks_of(call)
        if queries is None or keys is None or self._is_plain(queries):
            return call
        if not np.array_equal(queries, keys):
            raise CaptureError(
                f"{call.name} attends within windows from {queries.shape[1]} positions to "
                f"{keys.shape[1]} others; such models cannot be captured yet"
            )
        layouts = self._layouts(call.name, queries)
        filled = np.arange(max(map(len, layouts))) < np.array([[len(layout)] for layout in layouts])
        marks = np.zeros(filled.shape, np.int64)
        for example, layout in enumerate(layouts):
            marks[example, : len(layout)] = queries[layout[:, 0], layout[:, 1]]
        self._marks[call.number], self._filled[call.number] = marks, filled
        axis = self._axis_of(queries)
        if axis:
            self._axes[call.number] = axis
        return laid_out(call, layouts)

    def of(self, call: Call) -> tuple[SideTokens, SideTokens]:
        queries, keys = self._marks_of(call)
        filled = self._filled.pop(call.number, None)
        self._marks.pop(call.number, None)
        query = None if queries is None else self._side(call, queries, filled)
        key = None if keys is None else self._side(call, keys, filled)
        if query is None and call.size[2] == 1 < call.size[3]:
            query = self._probe(call)
        if not call.cross and call.size[2] == call.size[3]:
            query, key = query or key, key or query
        if query is None or key is None:
            raise UnnamedPositions(
                f"{call.name} works on positions that cannot be followed back to the picture, "
                "sound or text"
            )
        return replace(query, kind=self._axes.pop(call.number, query.kind)), key

    def _axis_of(self, windows: np.ndarray) -> str:
        """Along what windows ``[window position]`` of a video lie: time, where each holds the
        patches of one place, or space, where each holds those of one frame; else empty.
        """
        where = self.input_positions
        seen = where.come_from(windows, VISION)
        if not seen.any() or None in where.clips:
            return ""
        within = {TIME: (where.row, where.column), SPACE: (where.item,)}
        for axis, sides in within.items():
            alike = True
            for window, real in zip(windows, seen, strict=True):
                marks = window[real] - 1
                alike &= all(len(np.unique(side[marks])) <= 1 for side in sides)
            if alike:
                return axis
        return ""

    def _is_plain(self, marks: np.ndarray) -> bool:
        """Whether row ``i`` is example ``i``."""
        examples = self.input_positions.examples(marks)
        return len(marks) == self.input_positions.count and all(
            set(row[row >= 0]) <= {number} for number, row in enumerate(examples)
        )

    def _is_complete(self, marks: np.ndarray) -> bool:
        """Whether all pictures were seen, or all patches where these were packed."""
        seen = self.input_positions.come_from(marks, VISION)
        pixels = self.input_positions.kind == KINDS.index(VISION)
        if self.input_positions.whole:
            return len(np.unique(marks[seen])) == int(
                (pixels & (self.input_positions.row >= 0)).sum()
            )
        return not seen.any() or self._wholes(marks[seen] - 1) == self._wholes(pixels)

    def _wholes(self, elements: np.ndarray) -> set[tuple[str, int]]:
        """The pictures and videos that these elements of the input belong to.

        A tube of several frames has the mark of one of them, so frames are not counted.
        """
        wholes = set()
        for item in np.unique(self.input_positions.item[elements]):
            clip = self.input_positions.clips[item]
            wholes.add(("picture", int(item)) if clip is None else ("video", clip))
        return wholes

    def _layouts(self, name: str, marks: np.ndarray) -> list[np.ndarray]:
        """For each example the row and position of each of its tokens, in the order of the
        input.
        """
        examples, keys = self.input_positions.examples(marks), marks.astype(float)
        for row, own in enumerate(examples):
            belongs = np.unique(own[own >= 0])
            unknown = marks[row] <= 0 if len(belongs) != 1 else marks[row] == 0
            if unknown.any():
                raise CaptureError(
                    f"{name} attends within windows, one of which holds {int(unknown.sum())} "
                    "positions that belong to no patch, such as padding; give a picture whose "
                    "grid of patches fills the windows"
                )
            # Learned tokens come before the first patch of their row.
            keys[row, own < 0] = keys[row, own >= 0].min() - 0.5
            examples[row, own < 0] = belongs[0]
        order = np.argsort(keys, axis=None, kind="stable")
        where = np.stack(np.unravel_index(order, marks.shape), axis=1)
        owners = examples.ravel()[order]
        return [where[owners == example] for example in range(self.input_positions.count)]

    def _marks_of(self, call: Call) -> tuple[np.ndarray | None, np.ndarray | None]:
        if call.number in self._marks:
            return self._marks[call.number], self._marks[call.number]
        return _marks_of(call)

    def _probe(self, call: Call) -> SideTokens:
        positions = torch.zeros(1, dtype=torch.long, device=call.context.device)
        count = call.size[0]
        tokens = Tokens(pieces=("[PROBE]",), labels=(PROBE,))
        return self._known.setdefault(
            (1, PROBE), SideTokens((tokens,) * count, (positions,) * count, PROBE)
        )

    def _side(self, call: Call, marks: np.ndarray, kept: np.ndarray | None = None) -> SideTokens:
        kinds = [
            kind
            for kind in (TARGET, TEXT, AUDIO, VISION, SERIES)
            if self.input_positions.come_from(marks, kind).any()
        ]
        self.kinds.update(kinds)
        kind = kinds[0] if kinds else PROBE
        kept = self._kept(call, marks, kind) if kept is None else kept
        known = (marks.shape[1], marks.tobytes(), kept.tobytes())
        if known not in self._known:
            texts = {TEXT: self.inputs.source, TARGET: self.inputs.target}.get(kind)
            positions = [np.flatnonzero(row) for row in kept]
            tokens, fits = [], []
            for example, (row, at) in enumerate(zip(marks, positions, strict=True)):
                whole = are_whole(row, self.input_positions)
                text = None if texts is None else texts[example]
                # Of a text the tokenizer gives the padding, too.
                own = row[at] if text is None else row
                side = tokens_from_marks(own, self.input_positions, text, whole=whole)
                tokens.append(side if text is None else side.take(at.tolist()))
                if example < len(self.inputs.pictures):
                    pictures = self.inputs.pictures[example]
                    is_drawn = not side.grids or lie_within(row[at], self.input_positions, pictures)
                    fits.append(is_drawn and not side.numbered)
            device = call.context.device
            self._known[known] = SideTokens(
                tuple(tokens),
                tuple(torch.from_numpy(at).to(device) for at in positions),
                kind,
                tuple(fits),
            )
        return self._known[known]

    def _kept(self, call: Call, marks: np.ndarray, kind: str) -> np.ndarray:
        """True for positions that are not padding."""
        for name in MASKS.get(kind, ()):
            mask = self.inputs.arguments.get(name)
            if mask is not None and kind in (TEXT, TARGET) and mask.shape == marks.shape:
                return mask.bool().cpu().numpy()
            if mask is not None and not mask.all():
                return looked_at(call, marks.shape)
        return np.ones(marks.shape, bool)


def _marks_of(call: Call) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The marks of queries and of keys ``[batch position]``."""
    queries = position_marks(call.query, heads=1)
    keys = position_marks(call.key, heads=1)
    return (
        position_marks(call.context, heads=2) if queries is None else queries,
        position_marks(call.value, heads=1) if keys is None else keys,
    )
