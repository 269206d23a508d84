import pytest
import torch

from headscope.capturing._einsum import attention_axes

BATCH, HEAD, QUERY, KEY, FEATURE = 2, 3, 4, 5, 6
SIZES = {"b": BATCH, "h": HEAD, "q": QUERY, "k": KEY, "f": FEATURE}


@pytest.mark.parametrize(
    "equation",
    ["bhqk,bhkf->bhqf", "bhqk,kbhf->qbhf", "bqhk,bkhf->bqhf", "b h k q, b h f k -> b f h q"],
)
def test_any_order_of_the_axes_is_read(equation):
    weights_axes, rest = equation.replace(" ", "").split(",")
    value_axes = rest.partition("->")[0]
    weights, value = (torch.rand([SIZES[letter] for letter in axes]) for axes in (weights_axes, value_axes))
    context = torch.einsum(equation, weights, value)
    orders = attention_axes(equation)
    weights, value, context = (
        tensor.permute(order) for tensor, order in zip((weights, value, context), orders, strict=True)
    )
    assert weights.shape == (BATCH, HEAD, QUERY, KEY)
    assert value.shape == (BATCH, HEAD, KEY, FEATURE)
    torch.testing.assert_close((weights @ value).transpose(1, 2), context)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bhqk,bhkf->bhf", "bhqk,kf->bhqf", "bhqk,bhkfg->bhqfg"])
def test_other_products_are_not_taken_for_attention(equation):
    assert attention_axes(equation) is None
