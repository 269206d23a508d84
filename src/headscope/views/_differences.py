"""The page of a comparison: the second record, with how it differs from the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from headscope.comparison import Comparison, Effect, StackComparison, grid_tokens
from headscope.errors import PageError
from headscope.patterns import model_facts
from headscope.record import Layer, ModelFacts, Record, Stack
from headscope.views._payload import Chunks
from headscope.views._quantity_arrays import LazyArray
from headscope.views.constants import valid
from headscope.views.contract import Page, PageMoved, PageStack
from headscope.views.quantities import DIFFERENCE, OTHER, QuantityWords

if TYPE_CHECKING:
    from headscope.views.options import PageOptions

EFFECT = "effect"
DISTANCE = "Jensen-Shannon distance in nats"
AFTER = {
    "weight": QuantityWords("weight after", "softmax of the scores, in the changed model"),
    OTHER: QuantityWords("weight before", "weight in the intact model"),
    DIFFERENCE: QuantityWords("difference", "weight after the change less weight before"),
    EFFECT: QuantityWords(
        "effect",
        "what the key adds to the Jensen-Shannon distance of the row before from the row after, "
        "in nats; 0 in heads that were changed on purpose",
    ),
}
BESIDE = {
    "weight": QuantityWords("weight of B", "softmax of the scores, in the second record"),
    OTHER: QuantityWords("weight of A", "weight in the first record"),
    DIFFERENCE: QuantityWords("difference", "weight of B less weight of A"),
    EFFECT: QuantityWords(
        "effect",
        "what the key adds to the Jensen-Shannon distance of the rows of A and of B, in nats",
    ),
}


def words_of(difference: Comparison | Effect) -> Mapping[str, QuantityWords]:
    """Names and explanations of the quantities on the page of a comparison."""
    return AFTER if isinstance(difference, Effect) else BESIDE


def difference_page(difference: Comparison | Effect) -> tuple[Record, PageOptions]:
    """The record that the page of a comparison shows, and the options that follow from it.

    This is the second record where its tokens and heads are those of the first. Otherwise it is a
    new record with the weights of the second on the aligned spans, its heads in the order of the
    first.
    """
    compared = difference.comparison if isinstance(difference, Effect) else difference
    record = compared.b if _is_whole(compared) else _on_spans(compared)
    quantities: dict[str, dict[str, list[Any]]] = {DIFFERENCE: {}, EFFECT: {}, OTHER: {}}
    for name, stack in compared.stacks.items():
        for layer in record[name]:
            shape, number = (layer.heads, *layer.size), layer.layer
            # `partial` keeps this layer's number; a lambda would read the number of the last layer.
            makes: dict[str, Callable[[], np.ndarray]] = {
                DIFFERENCE: partial(stack.difference, number),
                EFFECT: partial(_of_others, stack, number),
                OTHER: partial(stack.weights, "a", number),
            }
            for quantity, make in makes.items():
                later = LazyArray(shape, quantity == DIFFERENCE, make)
                quantities[quantity].setdefault(name, []).append(later)
    texts = [" / ".join(of.texts) for of in (compared.a, compared.b)]
    title = " → ".join(dict.fromkeys(filter(None, texts))) or _names(compared)
    options: PageOptions = {"comparison": difference, "quantities": quantities, "title": title}
    return record, {**options, "quantity": DIFFERENCE}


def put_comparison(
    header: Page, difference: Comparison | Effect, record: Record, chunks: Chunks
) -> None:
    """Write into a header what is compared and how far each head moved, and the pictures of the
    first record where they differ.

    Raises:
        PageError: where the record does not belong to this comparison.
    """
    compared = difference.comparison if isinstance(difference, Effect) else difference
    header["note"] = valid(_note(difference, compared))
    others = other_pictures(compared, record)
    if others is not None:
        header["other_pictures"] = chunks.add_pictures("other-picture", others)
    for stack in header["stacks"]:
        if stack["name"] in compared.stacks:
            _check(compared[stack["name"]], record[stack["name"]])
            stack["moved"] = _moved(compared[stack["name"]], stack)


def other_pictures(
    difference: Comparison | Effect, record: Record
) -> tuple[np.ndarray, ...] | None:
    """The pictures of the first record; None where the shown record has the same ones, or where no
    patches are compared.
    """
    compared = difference.comparison if isinstance(difference, Effect) else difference
    first, second = compared.a.pictures, record.pictures
    same = len(first) == len(second) and all(map(np.array_equal, first, second))
    return None if same or not _has_patches(compared) else first


def _has_patches(compared: Comparison) -> bool:
    grids = [stack.grid.b for stack in compared.stacks.values()]
    return any(side.grids for stack in grids for side in (stack.query, stack.key))


def _of_others(compared: StackComparison, layer: int) -> Float[np.ndarray, "head query key"]:
    """What each key adds to the distance of each head of a layer; 0 for heads that were changed on
    purpose.
    """
    parts = compared.parts(layer)
    parts[[head for number, head in compared.changed if number == layer]] = 0.0
    return parts


def _moved(compared: StackComparison, stack: PageStack) -> PageMoved:
    numbers = list(dict.fromkeys(layer for layer, _ in compared.cells))
    rows = [numbers.index(layer["layer"]) for layer in stack["layers"]]
    # The page may hold only some of the layers and heads.
    held = np.ix_(rows, stack["head_numbers"])
    own = np.array([cell in compared.changed for cell in compared.cells], float)
    changed = compared.as_map(own)[held] == 1
    within = compared.as_map(np.asarray(~compared.beyond, float))[held] == 1
    distances = np.where(changed, np.nan, compared.as_map(compared.moved)[held])
    # Digits that are shown; JSON has no NaN.
    values = [[None if np.isnan(of) else float(f"{of:.4g}") for of in row] for row in distances]
    return {
        "label": DISTANCE,
        "spread": compared.spread_of,
        "values": values,
        "within": within.tolist(),
        "changed": changed.tolist(),
    }


def _check(compared: StackComparison, stack: Stack) -> None:
    """Raise where a stack does not have the tokens and heads of the comparison."""
    sizes = (len(compared.query), len(compared.key)), (len(stack.query), len(stack.key))
    heads = tuple((layer.layer, head) for layer in stack for head in range(layer.heads))
    if sizes[0] != sizes[1] or compared.cells != heads:
        raise PageError(
            f"The record has {len(heads)} heads and {' x '.join(map(str, sizes[1]))} tokens, and "
            f"the comparison {len(compared.cells)} and {' x '.join(map(str, sizes[0]))}; give it "
            "to view in place of the record"
        )


def _is_whole(compared: Comparison) -> bool:
    """Whether the second record can be shown as it is: same tokens, same order of heads."""
    stacks, own = compared.stacks.items(), compared.b.stacks
    is_same = all(stack.cells == stack.partners and stack.grid.identity for _, stack in stacks)
    return is_same and all(own.get(name) is stack.grid.b for name, stack in stacks)


def _on_spans(compared: Comparison) -> Record:
    """The second record on the aligned tokens of both, with its pictures where patches are
    compared.
    """
    aligned = {}
    for name, stack in compared.stacks.items():
        a, b, layers = stack.grid.a, stack.grid.b, []
        query = grid_tokens(stack.query, a.query, b.query)
        key = grid_tokens(stack.key, a.key, b.key)
        for number in (layer.layer for layer in a):
            weights = stack.weights("b", number)
            # Rows may sum to less than 1, as where a model is changed, and nothing was.
            layers.append(Layer(layer=number, weights=weights, changes=("",)))
        aligned[name] = Stack(name=name, query=query, key=key, layers=tuple(layers))
    pictures = compared.b.pictures if _has_patches(compared) else ()
    return Record(stacks=aligned, model=ModelFacts(name=_names(compared)), pictures=pictures)


def _note(difference: Comparison | Effect, compared: Comparison) -> str:
    stack = next(iter(compared.stacks.values()))
    if isinstance(difference, Effect):
        output = difference.output
        return f"Changed: {'; '.join(difference.done)}. Output: {output.says}: {output.mean:.3g}"
    sentences = [f"A: {_title_of(compared.a)}", f"B: {_title_of(compared.b)}"]
    sentences.append(f"tokens: {stack.query.summary}")
    if not stack.query.identity:
        sentences.append("−word: only in A, +word: only in B, old→new: replaced")
    if stack.candidates > 1:
        sentences.append(f"each head of A and the nearest of {stack.candidates} heads of B")
    return " · ".join(sentences)


def _title_of(record: Record) -> str:
    model = model_facts(record)["model"] or "arrays"
    return " ".join([model, *(f"“{text}”" for text in record.texts[:2])])


def _names(compared: Comparison) -> str:
    names = [record.model.name or "arrays" for record in (compared.a, compared.b)]
    return names[0] if names[0] == names[1] else " → ".join(names)
