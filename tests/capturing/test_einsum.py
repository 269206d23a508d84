import pytest
import torch

from headscope.capturing.watching._einsum import attention_axes, product_axes

BATCH, HEAD, QUERY, KEY, FEATURE = 2, 3, 4, 5, 6
SIZES = {"b": BATCH, "h": HEAD, "q": QUERY, "k": KEY, "f": FEATURE}


@pytest.mark.parametrize(
    "equation",
    ["bhqk,bhkf->bhqf", "bhqk,kbhf->qbhf", "bqhk,bkhf->bqhf", "b h k q, b h f k -> b f h q"],
)
def test_any_order_of_the_axes_is_read(equation):
    weights_axes, rest = equation.replace(" ", "").split(",")
    value_axes = rest.partition("->")[0]
    weights, value = (
        torch.rand([SIZES[letter] for letter in axes]) for axes in (weights_axes, value_axes)
    )
    context = torch.einsum(equation, weights, value)
    orders = attention_axes(equation)
    weights, value, context = (
        reading.read(tensor)
        for tensor, reading in zip((weights, value, context), orders, strict=True)
    )
    assert weights.shape == (BATCH, HEAD, QUERY, KEY)
    assert value.shape == (BATCH, HEAD, KEY, FEATURE)
    torch.testing.assert_close((weights @ value).transpose(1, 2), context)


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("...qk,...kf->...qf", ("bhqk", "bhkf")),
        ("...qk,...kf->...fq", ("bqk", "bkf")),
        ("b...qk,bk...f->bq...f", ("bhqk", "bkhf")),
        ("bhqk,bkf->bhqf", ("bhqk", "bkf")),
        ("bqk,bkf->bqf", ("bqk", "bkf")),
    ],
)
def test_an_ellipsis_and_a_missing_head_are_read(equation, sizes):
    weights, value = (torch.rand([SIZES[letter] for letter in axes]) for axes in sizes)
    context = torch.einsum(equation, weights, value)
    readings = attention_axes(equation, (weights.ndim, value.ndim))
    laid_out = [
        reading.read(tensor)
        for reading, tensor in zip(readings, (weights, value, context), strict=True)
    ]
    wanted = laid_out[0] @ laid_out[1]
    torch.testing.assert_close(wanted.transpose(1, 2) if wanted.ndim == 4 else wanted, laid_out[2])
    torch.testing.assert_close(readings[2].written(laid_out[2]), context)


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bhqk,bhkf->bhf", "bhqk,kf->bhqf", "bhqk,bhkfg->bhqfg"]
)
def test_other_products_are_not_taken_for_attention(equation):
    assert attention_axes(equation) is None


@pytest.mark.parametrize(
    "equation",
    ["bhqf,bhkf->bhqk", "qbhf,kbhf->bhqk", "bqhf,bkhf->bqkh", "b h q f, f k b h -> b h k q"],
)
def test_queries_and_keys_are_read_off_a_product(equation):
    query_axes, rest = equation.replace(" ", "").split(",")
    key_axes = rest.partition("->")[0]
    query, key = (torch.rand([SIZES[letter] for letter in axes]) for axes in (query_axes, key_axes))
    scores = torch.einsum(equation, query, key)
    query, key, scores = (
        reading.read(tensor)
        for tensor, reading in zip((query, key, scores), product_axes(equation), strict=True)
    )
    assert query.shape == (BATCH, HEAD, QUERY, FEATURE)
    assert key.shape == (BATCH, HEAD, KEY, FEATURE)
    torch.testing.assert_close(query @ key.transpose(-1, -2), scores)


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bhqf,bhkf->bhk", "qf,kf->qk", "bhqf,bhkg->bhqk"]
)
def test_other_products_have_no_queries_and_keys(equation):
    assert product_axes(equation) is None
