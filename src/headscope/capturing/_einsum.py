"""Reading the axes of attention off an einsum."""

from __future__ import annotations

Order = tuple[int, int, int, int]


def attention_axes(equation: str) -> tuple[Order, Order, Order] | None:
    """How to permute weights, values and context of ``weights, values -> context``.

    The key axis is summed over; the query axis is of weights and context, the feature axis of values and context;
    of the two axes that all three share the first of the weights is the batch.

    Args:
        equation: such as ``"bnij,jbnd->ibnd"``.

    Returns:
        Orders that give ``[batch head query key]``, ``[batch head key feature]`` and ``[batch query head feature]``;
        None where the equation is of another form.
    """
    inputs, _, output = equation.replace(" ", "").partition("->")
    weights, _, values = inputs.partition(",")
    shared = [letter for letter in weights if letter in values and letter in output]
    keys = [letter for letter in weights if letter in values and letter not in output]
    queries = [letter for letter in weights if letter in output and letter not in values]
    features = [letter for letter in values if letter in output and letter not in weights]
    if [len(axes) for axes in (shared, keys, queries, features)] != [2, 1, 1, 1]:
        return None
    (batch, head), (key,), (query,), (feature,) = shared, keys, queries, features
    return (
        _order(weights, (batch, head, query, key)),
        _order(values, (batch, head, key, feature)),
        _order(output, (batch, query, head, feature)),
    )


def product_axes(equation: str) -> tuple[Order, Order, Order] | None:
    """How to permute queries, keys and scores of ``queries, keys -> scores``.

    The feature axis is summed over; of the two axes that all three share the first of the scores is the batch.

    Args:
        equation: such as ``"ibnd,jbnd->bnij"``.

    Returns:
        Orders that give ``[batch head query feature]``, ``[batch head key feature]`` and ``[batch head query key]``;
        None where the equation is of another form.
    """
    inputs, _, output = equation.replace(" ", "").partition("->")
    queries, _, keys = inputs.partition(",")
    shared = [letter for letter in output if letter in queries and letter in keys]
    features = [letter for letter in queries if letter in keys and letter not in output]
    query = [letter for letter in output if letter in queries and letter not in keys]
    key = [letter for letter in output if letter in keys and letter not in queries]
    if [len(axes) for axes in (shared, features, query, key)] != [2, 1, 1, 1]:
        return None
    batch, head = shared
    return (
        _order(queries, (batch, head, query[0], features[0])),
        _order(keys, (batch, head, key[0], features[0])),
        _order(output, (batch, head, query[0], key[0])),
    )


def _order(letters: str, wanted: tuple[str, str, str, str]) -> Order:
    first, second, third, fourth = (letters.index(letter) for letter in wanted)
    return first, second, third, fourth
