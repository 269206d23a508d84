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
    weights, values, output = _sides(equation)
    found = _letters(weights, values, output)
    if found is None:
        return None
    shared, key, query, feature = found
    batch, head = sorted(shared, key=weights.index)
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
    queries, keys, output = _sides(equation)
    found = _letters(queries, keys, output)
    if found is None:
        return None
    shared, feature, query, key = found
    batch, head = sorted(shared, key=output.index)
    return (
        _order(queries, (batch, head, query, feature)),
        _order(keys, (batch, head, key, feature)),
        _order(output, (batch, head, query, key)),
    )


def _sides(equation: str) -> tuple[str, str, str]:
    inputs, _, output = equation.replace(" ", "").partition("->")
    first, _, second = inputs.partition(",")
    return first, second, output


def _letters(first: str, second: str, output: str) -> tuple[str, str, str, str] | None:
    """The two axes of all three, the one summed over, the first's own and the second's own; None for other forms."""
    shared = "".join(letter for letter in output if letter in first and letter in second)
    summed = "".join(letter for letter in first if letter in second and letter not in output)
    of_first = "".join(letter for letter in output if letter in first and letter not in second)
    of_second = "".join(letter for letter in output if letter in second and letter not in first)
    found = shared, summed, of_first, of_second
    return found if [len(axes) for axes in found] == [2, 1, 1, 1] else None


def _order(letters: str, wanted: tuple[str, str, str, str]) -> Order:
    first, second, third, fourth = (letters.index(letter) for letter in wanted)
    return first, second, third, fourth
