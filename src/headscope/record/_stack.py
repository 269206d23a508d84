"""The layers that share their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from headscope._missing_packages import library
from headscope.errors import RecordError
from headscope.record._checks import check_number, frozen
from headscope.record._facts import unverified_of
from headscope.record._layer import Floating, Layer
from headscope.record._stored import RebuiltWhenCopied, StoredArrays
from headscope.record._tokens import Tokens
from headscope.record._words import word_layer, word_tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class Stack(RebuiltWhenCopied):
    """Layers that share their query and key tokens: an encoder, a decoder, its cross-attention.

    Args:
        name: ``"self"`` where there is only one; ``"encoder"``, ``"decoder"``, ``"cross"`` ...;
            printable.
        query: the tokens that look.
        key: the tokens that are looked at; the same ones but in cross-attention.
        layers: in order; their numbers need not be without gaps (hybrid models).
        others: the layers in the gaps, by number: ``"linear (...)"`` or ``"none (...)"`` with the
            class of what they do instead of softmax attention, ``"unseen (...)"`` with the class of
            attention that was not seen.
        routers: router scores ``[token expert]`` of mixture-of-experts layers by number, where they
            were asked for.

    Raises:
        RecordError: where tokens and layers do not fit, or the name is not printable.
    """

    name: str
    query: Tokens
    key: Tokens
    layers: tuple[Layer, ...]
    others: Mapping[int, str] = field(default_factory=dict)
    routers: Mapping[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.name.isprintable():
            raise RecordError(
                f"Expected a name of printable characters for a stack, got {self.name!r}; it is "
                "used in files and addresses"
            )
        if not self.layers:
            raise RecordError(f"Stack {self.name!r} has no layers")
        numbers = [layer.layer for layer in self.layers]
        # Rising, since layers are drawn, added up and looked for in the order of the model.
        if sorted(set(numbers)) != numbers:
            raise RecordError(f"Stack {self.name!r}: layer numbers must rise, not {numbers}")
        for layer in self.layers:
            if layer.size != (len(self.query), len(self.key)):
                queries, keys = layer.size
                raise RecordError(
                    f"Stack {self.name!r}, layer {layer.layer}: the arrays have {queries} queries "
                    f"and {keys} keys, but {len(self.query)} query tokens and {len(self.key)} key "
                    "tokens were given; count the tokens that the tokenizer puts before and after "
                    "the text, and cut padding off (positions= of the functions of "
                    "headscope.foreign)"
                )

        self._check_rest(numbers)

    def _check_rest(self, numbers: list[int]) -> None:
        twice = sorted(set(self.others) & set(numbers))
        if twice:
            raise RecordError(
                f"Stack {self.name!r}: layers {twice} are listed both with attention and without"
            )
        # Of routers in a file only the shapes are looked at: .kept does not read them.
        kept = self.routers.kept if isinstance(self.routers, StoredArrays) else dict(self.routers)
        for number, scores in kept.items():
            if scores.ndim != 2 or len(scores) != len(self.query):
                raise RecordError(
                    f"Stack {self.name!r}: router scores of layer {number} have shape "
                    f"{scores.shape}; expected [token expert] for {len(self.query)} tokens"
                )
        object.__setattr__(self, "others", MappingProxyType(dict(self.others)))
        routers = {number: frozen(scores) for number, scores in kept.items()}
        object.__setattr__(self, "routers", StoredArrays(routers))

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    @property
    def kinds(self) -> dict[int, str]:
        """Kind of every layer by number, those without softmax attention included: ``linear``,
        ``none``, ``unseen``.
        """
        kinds = {layer.layer: layer.kind for layer in self.layers}
        kinds |= {number: what.partition(" ")[0] for number, what in self.others.items()}
        return dict(sorted(kinds.items()))

    @property
    def unseen(self) -> tuple[int, ...]:
        """Numbers of the layers that have attention like the others, which was not seen."""
        return tuple(number for number, kind in self.kinds.items() if kind == "unseen")

    @property
    def heads(self) -> int:
        """Number of heads of the layer that has most."""
        return max(layer.heads for layer in self.layers)

    @property
    def _counted_heads(self) -> str:
        """How many heads the layers have, in words."""
        counts = sorted({layer.heads for layer in self.layers})
        return f"{counts[0]} to {counts[-1]} heads" if counts[1:] else f"{counts[0]} heads"

    @property
    def held_heads(self) -> tuple[tuple[int, int], ...]:
        """Every head that the record holds, as numbers of layer and head: all, or those of
        ``capture(heads=...)``.
        """
        return tuple((layer.layer, head) for layer in self.layers for head in layer.head_numbers)

    @property
    def is_whole(self) -> bool:
        """Whether every layer holds all of its heads."""
        return all(layer.held_heads is None for layer in self.layers)

    def layer(self, number: Any) -> Layer:
        """The layer with this number.

        Raises:
            RecordError: where there is none; the message lists those there are.
        """
        check_number("layer", number)
        for layer in self.layers:
            if layer.layer == number:
                return layer
        numbers = _listed([layer.layer for layer in self.layers])
        raise RecordError(f"Stack {self.name!r} has layers {numbers}, not {number}")

    def words(self, layers: Sequence[int] | None = None) -> Stack:
        """The same attention between whole words, which are the tokens of this stack: the sum over
        the pieces of the word that is attended to, the mean over those of the word that looks.

        Source: Clark et al. 2019, section 4.1.

        Args:
            layers: numbers of layers; by default all.

        Raises:
            RecordError: a layer that there is not, or whose weights were not kept.

        Example:
            >>> record["self"].words().query.labels
        """
        chosen = self.layers if layers is None else [self.layer(each) for each in layers]
        query, key = self.query.whole_words, self.key.whole_words
        return Stack(
            name=self.name,
            query=word_tokens(self.query),
            key=word_tokens(self.key),
            layers=tuple(word_layer(layer, query, key) for layer in chosen),
            others=self.others,
        )

    def _shown(self, layer: Any, words: bool) -> Stack:
        """This stack, or that of its words."""
        if not words:
            return self
        return self.words(None if layer is None else [layer])

    def weights(self, layer: Any = None, head: Any = None, *, words: bool = False) -> Floating:
        """Weights of all layers ``[layer head query key]``, of a layer ``[head query key]``, or of
        one head of it.

        Args:
            layer: number of a layer; all by default.
            head: number of a head; all by default.
            words: between whole words in place of tokens; see `words`.

        Raises:
            RecordError: a layer or head that there is not; all layers where they have different
                numbers of heads; all heads where the record holds some.
        """
        if words:
            return self._shown(layer, words).weights(layer, head)
        if layer is not None:
            return self.layer(layer).weights_of(head)
        if head is None and len({each.heads for each in self.layers}) > 1:
            raise RecordError(
                f"Stack {self.name!r}: its layers have {self._counted_heads}, so they are no "
                "one array; take them one by one: weights(layer)"
            )
        return np.stack([each.weights_of(head) for each in self.layers])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.weights(), dtype=dtype)

    def columns(
        self, layer: Any = None, head: Any = None, *, words: bool = False
    ) -> dict[str, Any]:
        """Weights as a table of NumPy arrays: layer, head, query, query_token, key, key_token,
        weight, query_part and key_part where tokens have parts, and unverified where nothing stands
        behind the weights; arguments as of `weights`.

        Raises:
            RecordError: as of `weights`.
        """
        stack = self._shown(layer, words)
        # Layers that hold other heads are no one array, but as rows of a table they can follow each
        # other.
        if layer is None and len({each.head_numbers for each in stack}) > 1 and not stack.is_whole:
            parts = [_columns(stack, each.layer, head) for each in stack]
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return _columns(stack, layer, head)

    def to_xarray(self, layer: Any = None, head: Any = None, *, words: bool = False) -> Any:
        """Weights as an ``xarray.DataArray`` with the axes layer, head, query and key, less those
        that were chosen.

        Its coordinates are numbers of layers and heads, positions, and the tokens (``query_token``,
        ``key_token``).

        Args:
            layer: number of a layer; all by default.
            head: number of a head; all by default.
            words: between whole words in place of tokens; see `words`.

        Raises:
            RecordError: a layer or head that there is not; all layers where they have different
                numbers of heads.
            HeadscopeError: without xarray.

        Example:
            >>> record["self"].to_xarray().sel(layer=2).mean("head")
        """
        stack = self._shown(layer, words)
        xarray = library("xarray")
        numbers, heads, weights = _chosen(stack, layer, head)
        coordinates = {
            "layer": numbers,
            "head": heads,
            "query": np.arange(len(stack.query)),
            "key": np.arange(len(stack.key)),
            **_labels(stack),
        }
        array = xarray.DataArray(weights, dims=AXES, coords=coordinates, name="weight")
        array.attrs = {"stack": stack.name, **_mark(stack)}
        # isel drops the axis but keeps the number as a coordinate, so the array still says whose it
        # is.
        for name, given in (("layer", layer), ("head", head)):
            if given is not None:
                array = array.isel({name: 0})
        return array

    def to_pandas(self, layer: Any = None, head: Any = None, *, words: bool = False) -> Any:
        """Weights as a ``pandas.DataFrame``.

        Of one head of one layer the square: a row for each query, a column for each key, named by
        position and token. Otherwise a row for each weight, with the columns layer, head, query,
        query_token, key, key_token, weight, and query_part and key_part where tokens have parts.

        Args:
            layer: number of a layer; all by default.
            head: number of a head; all by default.
            words: between whole words in place of tokens; see `words`.

        Raises:
            RecordError: as of `to_xarray`.
            HeadscopeError: without pandas.

        Example:
            >>> record["self"].to_pandas(2, 0)
            >>> record["self"].to_pandas().groupby(["layer", "head"])["weight"].max()
            >>> record["self"].to_pandas().groupby(["query", "key_part"])["weight"].sum()
        """
        stack = self._shown(layer, words)
        pandas = library("pandas")
        if layer is not None and head is not None:
            rows, columns = (
                pandas.MultiIndex.from_arrays(
                    [range(len(side)), side.labels], names=[name, f"{name}_token"]
                )
                for name, side in (("query", stack.query), ("key", stack.key))
            )
            return pandas.DataFrame(stack.weights(layer, head), index=rows, columns=columns)
        return pandas.DataFrame(stack.columns(layer, head))

    def to_arrow(self, layer: Any = None, head: Any = None, *, words: bool = False) -> Any:
        """Weights as a ``pyarrow.Table`` with a row for each weight; columns and arguments as of
        `to_pandas`.

        Raises:
            RecordError: as of `to_xarray`.
            HeadscopeError: without pyarrow.
        """
        stack = self._shown(layer, words)
        pyarrow = library("pyarrow")
        columns = stack.columns(layer, head)
        for name in ("query_token", "key_token"):  # each word once
            columns[name] = pyarrow.array(columns[name]).dictionary_encode()
        return pyarrow.table(columns)

    def __repr__(self) -> str:
        """A line that lists what there is; the arrays are in its layers."""
        numbers = [layer.layer for layer in self.layers]
        kinds = ", ".join(dict.fromkeys(layer.kind for layer in self.layers))
        queries, keys = len(self.query), len(self.key)
        tokens = (
            f"{queries} tokens" if self.query == self.key else f"{queries} queries x {keys} keys"
        )
        missing = f"; {len(self.others)} without" if self.others else ""
        chosen = f", {len(self.held_heads)} chosen heads"
        heads = f" x {self._counted_heads}" if self.is_whole else chosen
        return (
            f"<Stack {self.name!r}: layers {_listed(numbers)}{heads} ({kinds}), {tokens}{missing}>"
        )

    def scores(self, layer: Any, head: Any = None) -> Floating:
        """What goes into the softmax, ``[head query key]`` or ``[query key]``; -inf where a query
        may not look.
        """
        return self.layer(layer).scores_of(head)

    def contributions(self, layer: Any, kind: str = "attention") -> Floating:
        """What each key adds to each query over all heads of a layer, ``[query key]``: a map of
        `Contributions`.
        """
        return self.layer(layer).contributions_of(kind)

    def head_contributions(self, layer: Any, head: Any = None) -> Floating:
        """``||a f(x_j)||`` of a layer ``[head query key]``, or of one head of it ``[query
        key]``.
        """
        return self.layer(layer).head_contributions_of(head)


def _listed(numbers: list[int]) -> str:
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


AXES = ("layer", "head", "query", "key")


def _columns(stack: Stack, layer: Any, head: Any) -> dict[str, Any]:
    numbers, heads, weights = _chosen(stack, layer, head)
    axes = (numbers, heads, range(len(stack.query)), range(len(stack.key)))
    columns: dict[str, Any] = {}
    for axis, grid in zip(AXES, np.meshgrid(*map(np.asarray, axes), indexing="ij"), strict=True):
        columns[axis] = grid.ravel()
        for name, (of, labels) in _labels(stack).items():
            if of == axis:
                columns[name] = labels[columns[axis]]
    marks = {name: np.full(weights.size, mark) for name, mark in _mark(stack).items()}
    return {**columns, "weight": weights.ravel(), **marks}


def _mark(stack: Stack) -> dict[str, str]:
    """What is written beside weights that nothing stands behind."""
    told = unverified_of(stack)
    return {"unverified": told} if told else {}


def _labels(stack: Stack) -> dict[str, tuple[str, np.ndarray]]:
    """The axis and names of tokens, ``key_token``, and of the parts that they belong to:
    ``key_part``, and ``key_part_1`` of the next level.
    """
    labels: dict[str, tuple[str, np.ndarray]] = {}
    for axis, side in (("query", stack.query), ("key", stack.key)):
        labels[f"{axis}_token"] = axis, np.array(side.labels)
        for level, names in side.part_names.items():
            labels[f"{axis}_part" + f"_{level}" * bool(level)] = axis, np.array(names)
    return labels


def _chosen(stack: Stack, layer: Any, head: Any) -> tuple[list[int], list[int], np.ndarray]:
    """Numbers of the layers, of the heads, and their weights ``[layer head query key]``."""
    numbers = [each.layer for each in stack] if layer is None else [int(layer)]
    if head is None and not stack.is_whole:
        return (numbers, *_held(stack, numbers))
    weights = stack.weights(layer, head)
    # The axes of one layer and one head, which `weights` leaves off, are put back.
    if layer is not None:
        weights = weights[None]
    if head is None:
        return numbers, list(range(weights.shape[1])), weights
    return numbers, [int(head)], weights[:, None]


def _held(stack: Stack, numbers: list[int]) -> tuple[list[int], np.ndarray]:
    """Numbers and weights of the heads that some layers hold, where they hold the same."""
    layers = [stack.layer(number) for number in numbers]
    if len({each.head_numbers for each in layers}) > 1:
        held = ", ".join(f"{layer}-{head}" for layer, head in stack.held_heads)
        raise RecordError(
            f"Stack {stack.name!r} holds other heads in each layer ({held}), which "
            "are no one array; take them layer by layer, or as a table"
        )
    return list(layers[0].head_numbers), np.stack([each.held_weights() for each in layers])
