"""Heads that attend, or answer, as they are told: evenly, as given, as on average, not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing.seam import CallPositions, Where, rows_of
from headscope.errors import InterventionError
from headscope.interventions._intervention import Intervention, Make, Numbers, parse_numbers
from headscope.interventions._patch import layer_of, outputs_of
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record, warn_changed


@dataclass(frozen=True, kw_only=True, eq=False)
class Uniform(Intervention):
    """The heads spread their attention evenly: ``A[q, k] = 1 / L`` over the ``L`` tokens that the
    query may look at.

    Padding is none of them, nor is what a causal mask or a window hides; learned sinks get nothing.
    Over all heads of a layer its output is the mean of the visible values, projected.

    Source: Kovaleva et al. 2019, section 4.4 ("disabling"), with ``L`` the non-padding tokens.
    Michel et al. 2019 disable heads otherwise: see `Zero`.

    Args:
        layer: see `Intervention`, as for the rest.

    Example:
        >>> with intervene(model, Uniform(layer=4)):
        ...     model(**inputs)
    """

    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention made uniform"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return _even


def _even(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
    visible = visible_of(at).to(old.dtype)
    return (visible / visible.sum(-1, keepdim=True).clamp(min=1)).expand_as(old)


def visible_of(at: CallPositions) -> torch.Tensor:
    """Where a query may look; always there while weights are changed."""
    if at.visible is None:
        raise ValueError("weights are changed by a part that changes something else")
    return at.visible


@dataclass(frozen=True, kw_only=True, eq=False)
class Zero(Intervention):
    """The heads output zeros: ``xi_h = 0`` in ``MHA = sum_h xi_h Att_h``, the same as zeros in the
    output projection.

    The projection's bias stays. In the record the rows of such a head are zero: nothing it looked
    at went further.

    Source: Michel et al. 2019, section 2.3. Kovaleva et al. 2019 disable heads otherwise: see
    `Uniform`.

    Args:
        layer: see `Intervention`, as for the rest.

    Example:
        >>> capture(model, tokenizer, "The cat sat.", interventions=[Zero(layer=2, heads=[0, 3])])
    """

    where: ClassVar[Where] = "output"
    does: ClassVar[str] = "output set to zero"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return lambda old, at: torch.zeros_like(old)


HIDDEN_AT_MOST = 1e-6
"""Weight on hidden keys that is taken for rounding, such as of another softmax."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SetWeights(Intervention):
    """The heads attend as given.

    Rows may sum to less than 1 (the rest goes nowhere), and must not put weight where the query may
    not look.

    Args:
        weights: ``[head query key]`` of the heads that are changed, in their order, or ``[query
            key]`` for each of them; over the text's own tokens, without padding. Or a list of
            these, one for each text of a batch. Or a function that makes them of the heads' own
            weights, called once for each text. Tensors keep their gradients.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: in the run, where weights have another shape than the text, are negative,
            sum to more than 1 or lie on hidden keys.

    Example:
        >>> own = capture(model, tokenizer, text)["self"].weights(layer=3)
        >>> capture(
        ...     model, tokenizer, text, interventions=[SetWeights(own[::-1].copy(), layer=3)]
        ... )  # heads swapped
    """

    weights: Any
    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention given"
    alone: ClassVar[str] = "row"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return lambda old, at: laid(self._of, (old, at), place.name)

    def _of(self, own: torch.Tensor, example: int, count: int) -> torch.Tensor:
        given = self.weights
        if callable(given):
            given = given(own)
        elif isinstance(given, list | tuple):
            if len(given) != count:
                raise InterventionError(
                    f"Weights were given for {len(given)} texts, and the batch has {count}"
                )
            given = given[example]
        if isinstance(given, torch.Tensor):
            return given
        array = np.asarray(given)
        if array.dtype.kind not in "fiu":
            raise InterventionError(f"weights are numbers [head query key], not {given!r}")
        return torch.from_numpy(np.array(array))


def laid(
    given_for: Callable[[torch.Tensor, int, int], torch.Tensor],
    there: tuple[torch.Tensor, CallPositions],
    name: str,
) -> torch.Tensor:
    """Weights given for each text, laid where its tokens are; rows of padding stay as they are.

    Args:
        given_for: gives the weights ``[head query key]``, or ``[query key]``, of a text, from its
            own ones, its number in the batch and the number of texts.
        there: weights as they are ``[batch head query key]``, and the tokens.
        name: of the layer.

    Raises:
        InterventionError: where they do not fit.
    """
    old, at = there
    laid_out, visible = old.clone(), visible_of(at).expand_as(old)
    for example, (queries, keys) in enumerate(zip(at.queries, at.keys, strict=True)):
        own = old[example][:, queries[:, None], keys]
        given = given_for(own, example, len(at.queries)).to(old)
        shape = tuple(own.shape)
        if tuple(given.shape) not in (shape, shape[1:]):
            raise InterventionError(
                f"{name}: weights of shape {list(given.shape)} were given for text {example}; "
                f"expected [head query key] {list(shape)} or [query key] {list(shape[1:])}"
            )
        given = given.expand(shape)
        # Detached: only values are checked, and gradients must not run through the checks.
        seen = visible[example][:, queries[:, None], keys]
        _check(given.detach(), seen, f"{name}, text {example}")
        # What is given is over the tokens of the text alone; keys of padding get nothing.
        row = torch.zeros_like(old[example])
        # A column of queries and a row of keys index the block of both, in whatever order they lie.
        row[:, queries[:, None], keys] = given
        padded = torch.ones(old.shape[2], dtype=torch.bool, device=old.device)
        padded[queries] = False
        laid_out[example] = old[example].where(padded[:, None], row)
    return laid_out


def _check(given: torch.Tensor, seen: torch.Tensor, name: str) -> None:
    if not torch.isfinite(given).all() or given.min() < 0 or given.sum(-1).max() > 1 + 1e-3:
        raise InterventionError(
            f"{name}: given weights must be from 0 to 1, and rows sum to no more than 1"
        )
    hidden = given.masked_fill(seen, 0.0)
    if hidden.max() > HIDDEN_AT_MOST:
        head, query, key = (hidden == hidden.max()).nonzero()[0].tolist()
        raise InterventionError(
            f"{name}: the weight {hidden.max().item():.3g} was given to row {head}, query "
            f"{query}, key {key}, which the query may not look at"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _MeanOfRecords(Intervention):
    """What is made of several records."""

    records: Sequence[Record] | RecordMeans

    def __post_init__(self) -> None:
        super().__post_init__()
        several = self.records if isinstance(self.records, Sequence) else ()
        fits = several and all(isinstance(record, Record) for record in several)
        if not fits and not isinstance(self.records, RecordMeans):
            raise InterventionError(
                f"{type(self).__name__} needs the records whose mean is to be taken"
            )
        warn_changed(type(self).__name__, [record.changed for record in several])

    def mean(self, place: LayerPlace, heads: tuple[int, ...]) -> torch.Tensor:
        """The mean of some heads: ``[head query key]``, or outputs ``[head feature]``."""
        if isinstance(self.records, RecordMeans):
            return torch.from_numpy(self.records.of(place, heads))
        means = RecordMeans(outputs=self.where == "output")
        for record in self.records:
            means.add((place.stack, place.layer), layer_of(record, place))
        return torch.from_numpy(means.of(place, heads))


@dataclass(frozen=True, kw_only=True, eq=False)
class Mean(_MeanOfRecords):
    """The heads attend as they do on average over texts: what depends on position stays, what on
    content goes.

    ``A[q, k]`` is the mean over the records that have both tokens; the rows are renormalised to 1
    over the keys that the query may look at.

    Source: ours. Positions are counted from the first token, so a text must not be longer than the
    longest record.

    Args:
        records: of the same model on other texts.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: without records, or where they do not fit the model or the text.

    Example:
        >>> others = list(capture_many(model, tokenizer, texts))
        >>> capture(model, tokenizer, text, interventions=[Mean(records=others, layer=0)])
    """

    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "attention made the mean over texts"
    alone: ClassVar[str] = "row"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        whole = self.mean(place, heads)

        def make(old: torch.Tensor, at: CallPositions) -> torch.Tensor:
            visible = visible_of(at).expand_as(old)

            def cut(own: torch.Tensor, example: int, _: int) -> torch.Tensor:
                query, key = at.before_in(example)
                queries, keys = query + own.shape[1], key + own.shape[2]
                if queries > whole.shape[1] or keys > whole.shape[2]:
                    raise InterventionError(
                        f"{place.name}: the text has {queries} x {keys} tokens and the longest "
                        f"record {whole.shape[1]} x {whole.shape[2]}; take the mean over longer "
                        "texts"
                    )
                seen = visible[example][:, at.queries[example][:, None], at.keys[example]]
                # The mean is over texts whose masks differ, so that it may lie on keys that this
                # query may not look at: what is left without them is made to sum to 1.
                rows = whole[:, query:queries, key:keys].to(own).masked_fill(~seen, 0.0)
                sums = rows.sum(-1, keepdim=True)
                return (rows / sums).where(sums > 0, rows)

            return laid(cut, (old, at), place.name)

        return make


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanOutput(_MeanOfRecords):
    """The heads output what they do on average over texts and tokens, whatever they look at ("mean
    ablation").

    ``Att_h = E[sum_k A[q, k] v_k]`` over the queries of all records, each counting the same. In the
    record the rows of such a head are zero: nothing it looked at went further.

    Source: ours in this form; Michel et al. 2019 put zeros in its place, see `Zero`.

    Args:
        records: of the same model on other texts, with values kept.
        layer: see `Intervention`, as for the rest.

    Raises:
        InterventionError: without records, or where they do not fit the model.

    Example:
        >>> with intervene(model, MeanOutput(records=others, layer=1, heads=2)):
        ...     model(**inputs)
    """

    where: ClassVar[Where] = "output"
    does: ClassVar[str] = "output made the mean over texts"

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        mean = self.mean(place, heads)
        return lambda old, at: mean.to(old).expand_as(old)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut(Intervention):
    """The links from these queries to these keys carry nothing: ``A[q, k] = 0``.

    With the rest renormalised this is what the head would compute if the key had been hidden before
    the softmax; a row of which nothing is left is zero. Without, the rest stays as it is and the
    row sums to less than 1.

    Args:
        keys: positions of the tokens that are looked at.
        renormalise: whether the rest of the row is to sum to what the whole did.
        layer: see `Intervention`, as for the rest; ``queries`` are the tokens that look.

    Raises:
        InterventionError: where no key is given.

    Example:
        >>> capture(
        ...     model, tokenizer, text, interventions=[Cut(layer=5, heads=1, queries=4, keys=0)]
        ... )
    """

    keys: Numbers = None
    renormalise: bool = True
    where: ClassVar[Where] = "weights"
    does: ClassVar[str] = "links"
    alone: ClassVar[str] = "link"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "keys", parse_numbers(self.keys, "Cut: keys"))
        if self.keys is None:
            raise InterventionError(
                "Cut needs the keys that are no longer to be looked at: Cut(queries=4, keys=0)"
            )

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Make:
        """See `Intervention`."""
        return self._without

    def _without(self, old: torch.Tensor, at: CallPositions) -> torch.Tensor:
        cut = rows_of(self.keys, at, old.shape[3], old.device, of_keys=True)[:, None, None]  # ty: ignore[invalid-argument-type]
        kept = old.masked_fill(cut, 0.0)
        if not self.renormalise:
            return kept
        # Had the key been hidden before the softmax, its share would have gone to the other keys
        # and to a learned sink alike, which has what the row lacks of 1.
        rest, whole = kept.sum(-1, keepdim=True), old.sum(-1, keepdim=True)
        sink = (1 - whole).clamp(min=0) if at.sinks else torch.zeros_like(whole)
        # Divided first: what is left may be too small a number to divide by it.
        shares = (kept / (rest + sink)).where(rest > 0, torch.zeros_like(kept))
        return shares * (whole + sink)

    def description(self, heads: Any, kind: str = "heads") -> str:
        """See `Intervention`."""
        how = "renormalised" if self.renormalise else "not renormalised"
        keys = ", ".join(map(str, self.keys or ()))  # ty: ignore[invalid-argument-type]
        told = f"links to keys {keys} cut, the rest {how}"
        return super().description(heads, kind).replace("links", told, 1)


Key = tuple[str, int]


class RecordMeans:
    """Sums over records, and their means.

    Args:
        outputs: whether the means are of what heads output, over all tokens; else of what they look
            at, position by position.
    """

    def __init__(self, *, outputs: bool) -> None:
        self._outputs = outputs
        self._totals: dict[Key, np.ndarray] = {}
        self._counts: dict[Key, np.ndarray] = {}

    def update(self, record: Record) -> None:
        """Add a record of the same model on another text."""
        for name, stack in record.stacks.items():
            for layer in stack:
                self.add((name, layer.layer), layer)

    def add(self, key: Key, layer: Layer) -> None:
        """Add one layer of a record, by stack and number."""
        if self._outputs:
            outputs = outputs_of(layer, tuple(range(layer.heads)))
            total, count = outputs.sum(axis=1, dtype=np.float64), np.array(float(outputs.shape[1]))
        else:
            total = layer.weights_of().astype(np.float64)
            count = np.ones(total.shape[1:])
        # A text may be longer or shorter than those before.
        known = self._totals.get(key, np.zeros_like(total)), self._counts.get(key, count * 0)
        shape = tuple(map(max, total.shape[1:], known[0].shape[1:]))
        self._totals[key] = _padded(known[0], shape) + _padded(total, shape)
        self._counts[key] = _padded(known[1], shape) + _padded(count, shape)

    def of(self, place: LayerPlace, heads: tuple[int, ...]) -> Float[np.ndarray, "head ..."]:
        """The means of some heads: ``[head query key]``, or outputs ``[head feature]``.

        Raises:
            InterventionError: where no record had the layer.
        """
        key = place.stack, place.layer
        if key not in self._totals:
            raise InterventionError(f"The records do not fit the model: they have no {place.name}")
        return self._totals[key][list(heads)] / np.maximum(self._counts[key], 1)

    def arrays(self) -> dict[str, np.ndarray]:
        """The sums by name; those of several texts are added up from their beginning."""
        arrays = {}
        for (stack, layer), total in self._totals.items():
            arrays[f"total {stack} {layer}"] = total
            arrays[f"count {stack} {layer}"] = np.atleast_1d(self._counts[stack, layer])
        return arrays

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray], *, outputs: bool) -> RecordMeans:
        """What `arrays` gave, or sums of it."""
        means = RecordMeans(outputs=outputs)
        for name, array in arrays.items():
            kind, stack, layer = name.split(" ")
            sums = means._totals if kind == "total" else means._counts
            sums[stack, int(layer)] = array
        return means


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array with zeros behind its last axes, as large as these; a single number stays one."""
    last = array.ndim - len(shape)
    if last < 0:
        return array
    more = [(0, wanted - size) for wanted, size in zip(shape, array.shape[last:], strict=True)]
    return np.pad(array, [(0, 0)] * last + more)
