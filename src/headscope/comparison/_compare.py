"""Two records side by side, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, Literal, overload

import numpy as np

from headscope.comparison import _grid
from headscope.comparison._alignment import LEAST, align
from headscope.comparison._results import ACROSS, compare_results
from headscope.comparison.stack import (
    STACK,
    StackComparison,
    counted,
    joined,
    kept_of,
    largest_of,
    stack_of,
)
from headscope.errors import RecordError, listed
from headscope.evidence.groups import check_confidence, length_text, parse_groups, several_groups
from headscope.record import Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import arrays_below, record_of, record_parts

Pair = tuple[Record, Record]
SAYS = {
    "head": "of A, layer-head, both from 0",
    "nearest": "the head of B that it is set against",
    "JS (nats)": "Jensen-Shannon distance of their rows, mean over rows and texts, 0 to 0.69",
    "interval": "of that mean over texts",
    "spread": "the largest distance of the baseline: pairs or changes without an effect",
}
"""The legend of the table."""
ROUNDING = "give spread= (--spread), from two texts or seeds without a real difference"


DOCUMENT: dict[str, Any] = {"left_out": [str], "stacks": [STACK]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Result):
    """Two records side by side, or several pairs of them: what `compare` found. Prints itself
    as a table.

    Args:
        a: the first record of the first pair.
        b: the second.
        stacks: by the name of the stack of A.
        left_out: stacks that only one of the records has.
    """

    KIND: ClassVar[str] = "comparison"
    DOCUMENT: ClassVar[dict[str, Any]] = DOCUMENT

    a: Record
    b: Record
    stacks: Mapping[str, StackComparison]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stacks", MappingProxyType(dict(self.stacks)))

    def __getitem__(self, name: str) -> StackComparison:
        if name not in self.stacks:
            raise RecordError(
                f"This comparison has the stacks {', '.join(map(repr, self.stacks))}, not {name!r}"
            )
        return self.stacks[name]

    @property
    def texts(self) -> int:
        """Number of pairs of records."""
        return len(next(iter(self.stacks.values())).matched)

    def columns(self) -> dict[str, list[Any]]:
        """Every head of every stack as a table, one list for each column; `to_pandas` and its like
        are made of it.

        ``distance`` is the Jensen-Shannon distance in nats, mean over rows and texts; ``beyond``
        shows whether it is more than ``spread``; both columns are left out where no baseline was
        given.
        """
        return joined([stack.columns() for stack in self.stacks.values()])

    def __repr__(self) -> str:
        heads = sum(len(stack.cells) for stack in self.stacks.values())
        moved = sum(stack.count for stack in self.stacks.values())
        ranked = all(stack.has_baseline for stack in self.stacks.values())
        outcome = f"{moved} moved" if ranked else "ranking only"
        return f"<Comparison: {heads} heads, {counted(self.texts, 'text')}, {outcome}>"

    @property
    def summary(self) -> str:
        """What was compared, and how many heads moved."""
        return "\n".join([f"A: {self.a.summary}", f"B: {self.b.summary}", *self.counts()])

    def counts(self) -> list[str]:
        """How many heads of each stack moved, in words."""
        named = len(self.stacks) > 1
        return [f"{name}: " * named + each.descriptions()[0] for name, each in self.stacks.items()]

    @property
    def model(self) -> str:
        """Name of the model of B; empty where nobody knows."""
        return self.b.model.name

    def _kept(self) -> Kept:
        """Both records with the texts they hold, and how far every head is from its other."""
        document: dict[str, Any] = {"left_out": list(self.left_out), "stacks": []}
        arrays: dict[str, np.ndarray] = {}
        for side, record in (("a", self.a), ("b", self.b)):
            document[side], tensors = record_parts(record)
            arrays |= {f"{side}.{name}": np.asarray(tensor) for name, tensor in tensors.items()}
        for number, stack in enumerate(self.stacks.values()):
            entry, own = kept_of(stack)
            document["stacks"].append(entry)
            arrays |= {f"stacks.{number}.{name}": array for name, array in own.items()}
        return document, arrays

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Comparison:
        a, b = (record_of(document[side], arrays_below(arrays, f"{side}.")) for side in ("a", "b"))
        stacks = {}
        for number, entry in enumerate(document["stacks"]):
            # The tokens are aligned again: that follows from the records.
            grid = grid_of((a, b), (entry["name"], entry["other"]), least=0.0)
            own = arrays_below(arrays, f"stacks.{number}.")
            stacks[entry["name"]] = stack_of(entry, own, grid)
        if not stacks:
            raise ValueError("it has no stacks")
        return Comparison(a=a, b=b, stacks=stacks, left_out=tuple(document["left_out"]))

    def _blocks(self) -> list[TextTable | str]:
        """The heads of every stack that moved most."""
        blocks: list[TextTable | str] = []
        for name, stack in self.stacks.items():
            lines = [
                *([f"{name}:"] if len(self.stacks) > 1 else []),
                *_tokens(stack),
                *stack.descriptions()[1:],
            ]
            if stack.candidates > 1:
                lines.append(
                    f"Heads of A and the nearest of {stack.candidates} heads of B, chosen on "
                    f"these texts: {ACROSS}"
                )
            blocks += ["\n".join(lines), TextTable.of_rows(stack.lines(), says=SAYS)]
        return [*blocks, *(f"Stack {name!r} is only in one of them" for name in self.left_out)]


UNASKED: dict[str, Any] = {"stack": None, "heads": "auto", "spread": (), "least": LEAST}
UNASKED |= {"confidence": 0.95, "groups": None}
"""The options of `compare`, as they are where none was given."""


@overload
def compare(a: Result, b: Result) -> Result: ...


@overload
def compare(a: Any, b: Any, **options: Any) -> Comparison: ...


def compare(
    a: Any,
    b: Any,
    *,
    stack: str | tuple[str, str] | None = None,
    heads: Literal["auto", "number", "best"] | str = "auto",
    spread: Sequence[Pair] = (),
    least: float = LEAST,
    **over: Any,
) -> Result:
    """Compare two records token by token and head by head, or refuse with the reason why that would
    not be right; or two results of one kind, such as those of `headscope.heads` for two models.

    Rows of two results are matched by what names them (layer, head, pattern, relation ...). Each
    number that both have is set side by side, with the difference and, where both have an interval,
    that of the difference: ``d - sqrt((b - b_low)^2 + (a_high - a)^2)`` to ``d + sqrt((b_high -
    b)^2 + (a - a_low)^2)`` (MOVER; Zou and Donner 2008), which holds for different texts and is too
    wide where both read the same. Options are for records, but ``heads`` of two atlases, which
    `Atlas.compare` compares.

    Tokens are aligned as `headscope.comparison.align` says: the same ones one by one; one model's
    two texts by edit distance; two tokenizers of one text by characters, weights summed over the
    tokens of a key and averaged over those of a query (Clark et al. 2019); patches of pictures by
    their places in the same grid. Two models and two texts at once are refused. Of each query that
    both have, the attention of both heads is compared by the Jensen-Shannon divergence (Clark et
    al. 2019, section 6; natural logarithm, no square root, no smoothing), where all keys that only
    one of them has count as one. What a row gives to such keys is kept: nothing is renormalised.

    Heads are matched by number where the stacks have the same layers and heads and the models are
    of one type; otherwise each head of A is set against the nearest of all heads of B, which makes
    distances small: the table reports how many there were to choose from.

    A head counts as moved where its distance is larger than the spread: the largest distance that
    it has among the pairs of ``spread=`` (of k pairs one more of their kind is the largest by
    chance with 1 / (k + 1)). Of several pairs of records the lower end of the interval over texts
    must lie above. Without ``spread=`` heads are ranked and no more; pages then hatch those that
    moved by no more than rounding may make.

    Args:
        a: a record, or one for each text; or a result.
        b: as many others.
        stack: which stack, or those of A and of B where they are called otherwise; by default all
            that both have.
        heads: how heads are matched: ``"number"``, ``"best"`` (the nearest), or ``"auto"``.
        spread: pairs of records whose differences say nothing: two seeds of one model, two texts
            with one meaning.
        least: part of the tokens that both records must have.
        **over: ``confidence`` of the intervals over texts (0.95); ``groups``, the document that
            each pair of records is of, by name or number, so that they are over documents.

    Raises:
        RecordError: where the tokens cannot be aligned, no stack is in both, the numbers of
            records, or of groups, differ, or two results are of different kinds.

    Example:
        >>> from headscope.testing import random_record
        >>> compare(random_record(seed=1), random_record(seed=2))
        <Comparison: 6 heads, 1 text, ranking only>
    """
    of_results = isinstance(a, Result) and isinstance(b, Result)
    # An atlas knows how its heads are matched.
    own = getattr(a, "compare", None) if of_results else None
    nulls = _nulls(spread)
    given: dict[str, Any] = {"stack": stack, "heads": heads, "least": least, "spread": tuple(nulls)}
    for name, value in (given | over).items():
        if name not in UNASKED:
            raise RecordError(f"compare has no option {name!r}; there are {', '.join(UNASKED)}")
        known = own is not None and name == "heads"
        if of_results and not known and repr(value) != repr(UNASKED[name]):
            raise RecordError(
                f"{name}={value!r} is for records, and two results were given, whose rows are "
                "matched by what names them; leave it out, or give records"
            )
    if own is not None:
        return own(b) if heads == "auto" else own(b, heads=heads)
    if of_results:
        return compare_results(a, b)
    pairs = _pairs(a, b)
    options = UNASKED | given | over
    check_confidence(options["confidence"])
    parse_groups(options["groups"], len(pairs), "record")
    names = _stack_names(pairs[0], stack)
    stacks = {each[0]: _compared(pairs, nulls, each, options) for each in names}
    first, second = pairs[0]
    # Where a stack was asked for, the user left the others out, and nothing is reported.
    left_out = sorted(set(first.stacks) ^ set(second.stacks)) if stack is None else ()
    return Comparison(a=first, b=second, stacks=stacks, left_out=tuple(left_out))


def same_model(a: Record, b: Record) -> bool:
    """Whether two records are of one model, as far as they tell: name, revision, class and
    heads.
    """

    def facts(each: Record) -> tuple[Any, ...]:
        heads = {name: _grid.cells_of(stack) for name, stack in each.stacks.items()}
        return each.model.name, each.model.revision, each.model.class_name, heads

    return facts(a) == facts(b)


def _compared(
    pairs: list[Pair], nulls: list[Pair], names: tuple[str, str], options: dict[str, Any]
) -> StackComparison:
    grids = _grids(pairs, names, options)
    _check_cells(grids)
    how = _grid.matching_of(options["heads"], grids[0], (pairs[0][0].model, pairs[0][1].model))
    matched = _matched(grids, how)
    # Without pairs that say nothing the spread is what rounding may make; heads are ranked only.
    spread, spread_of = _rounding(grids[0], matched[0]), ROUNDING
    means: list[np.ndarray] = []
    if nulls:
        # Both records of such a pair are of one model, so they share the stack's name in A.
        others = _grids(nulls, (names[0], names[0]), options)
        _check_cells([grids[0], *others])
        means = [_matched([other], how)[0].mean for other in others]
        spread, spread_of = (np.max(means, axis=0), largest_of(len(nulls), "given pair"))
    return StackComparison(
        name=names[0],
        grid=grids[0],
        matched=matched,
        spread=spread,
        spread_of=spread_of,
        candidates=1 if how == "number" else len(_grid.cells_of(grids[0].b)),
        confidence=options["confidence"],
        groups=None if options["groups"] is None else tuple(several_groups(options["groups"])),
        nulls=tuple(means),
    )


def _grids(pairs: list[Pair], names: tuple[str, str], options: dict[str, Any]) -> list[_grid.Grid]:
    several, least = len(pairs) > 1, options["least"]
    if not isinstance(least, Real) or not 0 <= least <= 1:
        raise RecordError(f"least is the part of the tokens in both, 0 to 1, not {least!r}")
    return [
        grid_of(pair, names, least=least, where=f"Pair {number}: " * several)
        for number, pair in enumerate(pairs)
    ]


def grid_of(pair: Pair, names: tuple[str, str], *, least: float, where: str = "") -> _grid.Grid:
    """Two stacks on their common tokens.

    Raises:
        RecordError: where the tokens cannot be aligned, or no query is in both.
    """
    a, b = (record[name] for record, name in zip(pair, names, strict=True))
    # Of one model two texts may be aligned by edits, as tokens with one name mean the same there.
    same = same_model(*pair)
    try:
        query = key = align(a.query, b.query, same_model=same, least=least)
        if (a.key, b.key) != (a.query, b.query):
            key = align(a.key, b.key, same_model=same, least=least)
    except RecordError as error:
        raise RecordError(f"{where}{error}") from None
    grid = _grid.Grid(a, b, query, key, (pair[0].model.dtype, pair[1].model.dtype))
    if not len(grid.rows):
        raise RecordError(
            f"No query of stack {names[0]!r} is in both records: there is nothing to compare"
        )
    return grid


def _matched(grids: list[_grid.Grid], how: str) -> tuple[_grid.MatchedHeads, ...]:
    # Chosen over all texts together: a head has one partner, and not another in every text.
    partners = _grid.cells_of(grids[0].a) if how == "number" else _grid.best_partners(grids)
    return tuple(_grid.by_partners(grid, partners) for grid in grids)


def _rounding(grid: _grid.Grid, matched: _grid.MatchedHeads) -> np.ndarray:
    """What rounding may make, for each head of A."""
    theirs = dict(zip(matched.cells, matched.partners, strict=True))
    made = [grid.rounding(layer.layer, theirs[layer.layer, 0][0]) for layer in grid.a]
    return np.concatenate(made)


def _check_cells(grids: list[_grid.Grid]) -> None:
    for grid in grids[1:]:
        own, first = ([_grid.cells_of(each.a), _grid.cells_of(each.b)] for each in (grid, grids[0]))
        if own[0] != first[0] or own[1] not in first:
            raise RecordError(
                f"The records have {len(first[0])} and {len(first[1])} heads, and others of them "
                f"{len(own[0])} and {len(own[1])}; give records of the same two models"
            )


def _pairs(a: Any, b: Any) -> list[Pair]:
    wanted = "two results, or as many records on both sides (hs.load reads files)"
    sides = ([own] if isinstance(own, Record) else listed(own, wanted) for own in (a, b))
    firsts, seconds = sides
    for record in (*firsts, *seconds):
        if not isinstance(record, Record):
            raise RecordError(f"Expected {wanted}, got {record!r:.60}")
    if len(firsts) != len(seconds) or not firsts:
        raise RecordError(
            f"compare was given {len(firsts)} and {len(seconds)} records; give as many, at least "
            "one"
        )
    return list(zip(firsts, seconds, strict=True))


def _nulls(spread: Any) -> list[Pair]:
    """The pairs of records whose differences say nothing."""
    given = [listed(each, "a pair in spread") for each in listed(spread, "pairs as spread")]
    return [pair for each in given for pair in _pairs(each[:1], each[1:])]


def _stack_names(pair: Pair, stack: str | tuple[str, str] | None) -> list[tuple[str, str]]:
    if stack is not None:
        names = stack if isinstance(stack, tuple) and len(stack) == 2 else (stack, stack)
        for record, name in zip(pair, names, strict=True):
            # Looked up for its error where there is none.
            record[name]
        return [names]
    shared = [(name, name) for name in pair[0].stacks if name in pair[1].stacks]
    if not shared:
        there = [", ".join(map(repr, record.stacks)) for record in pair]
        raise RecordError(
            f"The records have the stacks {there[0]} and {there[1]}, none in common; say which to "
            f"compare with stack=({next(iter(pair[0].stacks))!r}, "
            f"{next(iter(pair[1].stacks))!r})"
        )
    return shared


def _tokens(stack: StackComparison) -> list[str]:
    """How long the texts are, and how the tokens of the first one are aligned."""
    lines, first = [], ""
    if len(stack.matched) > 1:
        lengths = [each.distances.shape[1] for each in stack.matched]
        lines = [f"{len(lengths)} texts, {length_text(lengths)} that both have"]
        first = " of the first"
    if stack.query == stack.key:
        return [*lines, f"Tokens{first}: {stack.query.summary}"]
    sides = (("Query", stack.query), ("Key", stack.key))
    return [*lines, *(f"{side} tokens{first}: {each.summary}" for side, each in sides)]
