"""Blocks of several texts, and stacks of blocks: the numbers that each has alone."""

from dataclasses import replace

import numpy as np
import pytest

from headscope import RecordError
from headscope.norms import (
    Block,
    BlockStack,
    ProjectionProducts,
    alti,
    attention_norms,
    attention_vectors,
    globenc_norms,
    head_norms,
    mixing,
    output_norms,
    output_vectors,
    own_norms,
    residual_norms,
    residual_vectors,
    shape_of,
    value_norms,
)

from .conftest import KINDS, made_block

EXACT = {"rtol": 0, "atol": 1e-9}
OF_TEXT = ("weights", "values", "residual", "beside", "stream_again")


def all_of(block):
    """Every kind of norms and ratios that a block has."""
    arrays = {
        "values": value_norms(block),
        "heads": head_norms(block),
        "attention": attention_norms(block),
        "residual": residual_norms(block),
        "mixing_residual": mixing(residual_vectors(block)),
        "own": own_norms(block),
        "normed": block.normed,
    }
    if block.same:
        arrays["mixing_attention"] = mixing(attention_vectors(block))
    if block.after is not None:
        arrays["output"] = output_norms(block)
        arrays["mixing_output"] = mixing(output_vectors(block))
        arrays["globenc"] = globenc_norms(block)
    return arrays


def assert_alike(together, alone):
    """The arrays of each index, in front of all axes, are those of the block that stands there."""
    arrays = all_of(together)
    for index, block in alone.items():
        own = all_of(block)
        assert own.keys() == arrays.keys()
        for name, array in own.items():
            np.testing.assert_allclose(arrays[name][index], array, **EXACT, err_msg=name)


def with_texts(blocks):
    """One block of texts that share a layer's matrices and norms, those of the first."""
    arrays = {}
    for name in OF_TEXT:
        if getattr(blocks[0], name) is not None:
            arrays[name] = np.stack([getattr(block, name) for block in blocks])
    return replace(blocks[0], **arrays)


def texts_of_layer(kind, rng, count=3):
    first = made_block(kind, rng)
    first = replace(first, products=ProjectionProducts(first.projection))
    others = [made_block(kind, rng) for _ in range(count - 1)]
    own = [{name: getattr(other, name) for name in OF_TEXT} for other in others]
    return [first, *(replace(first, **arrays) for arrays in own)]


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("kind", KINDS[::5], ids=str)
def test_texts_of_a_layer_together_have_the_numbers_of_each(kind, products, rng):
    texts = texts_of_layer(kind, rng)
    if not products:
        texts = [replace(text, products=None) for text in texts]
    together = with_texts(texts)
    assert_alike(together, {(number,): text for number, text in enumerate(texts)})
    one, _ = together.one((2,), ())
    np.testing.assert_allclose(alti(one), alti(texts[2]), **EXACT)


@pytest.mark.parametrize("kind", KINDS[::5], ids=str)
def test_layers_of_several_texts_together_have_the_numbers_of_each(kind, rng):
    layers = [texts_of_layer(kind, rng) for _ in range(2)]
    stack = BlockStack.of([with_texts(texts) for texts in layers])
    alone = {
        (layer, number): text
        for layer, texts in enumerate(layers)
        for number, text in enumerate(texts)
    }
    assert_alike(stack, alone)


def test_a_stack_comes_in_tiles_of_any_size_alike(rng, monkeypatch):
    from headscope.norms import _block, _block_arrays, _lengths, _products

    blocks = [texts_of_layer(KINDS[0], rng)[0] for _ in range(3)]
    monkeypatch.setattr(_block_arrays, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(_block, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(_lengths, "CACHED_BYTES", 1)
    monkeypatch.setattr(_products, "KEYS_AT_ONCE", 2)
    stack = BlockStack.of(blocks)
    assert len(stack.key_tiles(1)) == stack.size[2]
    assert_alike(stack, {(number,): block for number, block in enumerate(blocks)})


@pytest.mark.parametrize("single", [True, False])
def test_products_are_those_of_the_vectors(single, rng):
    projection, norm = rng.standard_normal((4, 3, 11)), made_block(KINDS[0], rng).after
    products = ProjectionProducts(projection, single=single)
    values = rng.standard_normal((2, 4, 9, 3))
    gram = products.gram(values, ((), (norm,)))[0]
    assert gram.shape == (2, 9, 2, 4, 4)
    exact = 1e-4 if single else 1e-11  # products are of about 10
    vectors = np.swapaxes(values @ projection, -3, -2)
    for number, behind in enumerate((vectors, norm.linear(vectors))):
        wanted = behind @ np.swapaxes(behind, -2, -1)
        np.testing.assert_allclose(gram[..., number, :, :], wanted, rtol=0, atol=exact)


def test_pairs_are_held_of_few_texts(rng):
    """Of one text of 32 tokens, and not of more pairs, be they of a longer text or of others."""
    projection = rng.standard_normal((2, 3, 7))
    products = ProjectionProducts(projection, single=True)
    for texts, tokens, wanted in (
        ((), 32, True),
        ((), 33, False),
        ((4,), 16, True),
        ((5,), 16, False),
    ):
        block = Block(
            weights=np.full((*texts, 2, tokens, tokens), 1 / tokens),
            values=rng.standard_normal((*texts, 2, tokens, 3)),
            projection=projection,
            products=products,
        )
        assert block.is_short == BlockStack.of([block] * 3).is_short == wanted
        assert not block.in_double.is_short


def test_kinds_together_have_the_lengths_of_each(rng, monkeypatch):
    """Those of a stack, in one product for each key; and no product is made twice."""
    stack = BlockStack.of([with_texts(texts_of_layer(KINDS[0], rng)) for _ in range(2)])
    kinds = ((), (stack.after,), (stack.after, stack.second))
    alone = [replace(stack).lengths_behind(norms) for norms in kinds]
    stack.measure(kinds)
    monkeypatch.setattr(BlockStack, "gram", None)
    for norms, lengths in zip(kinds, alone, strict=True):
        np.testing.assert_allclose(stack.lengths_behind(norms), lengths, **EXACT)
    assert value_norms(stack).shape == (2, 3, *stack.weights.shape[2:3], stack.size[2])


@pytest.mark.parametrize("left", [1.0, 1e-4, 1e-8])
def test_heads_that_cancel_in_one_text_of_one_layer_alone_keep_their_digits(rng, left):
    """Layers of two texts; in the second text of the second layer two heads nearly cancel."""
    layers, wanted = [], np.empty((2, 2, 3, 5))
    for layer in range(2):
        turn = np.linalg.qr(rng.standard_normal((6, 6)))[0][:4]  # keeps lengths, 4 to 6 features
        projection = np.stack([turn, turn])
        vectors = 10 * rng.standard_normal((2, 5, 4))
        rest = 10 * rng.standard_normal((2, 5, 4))
        if layer == 1:
            rest[1] = left * rng.standard_normal((5, 4))
        wanted[layer] = np.linalg.norm(0.5 * rest, axis=-1)[:, None]
        layers.append(
            Block(
                weights=np.full((2, 2, 3, 5), 0.5),
                values=np.stack([vectors, rest - vectors], axis=1),
                projection=projection,
                same=False,
                products=ProjectionProducts(projection),
            )
        )
    norms = attention_norms(BlockStack.of(layers))
    np.testing.assert_allclose(norms, wanted, rtol=1e-7, atol=1e-14)


def test_weights_below_zero_keep_their_digits_where_heads_cancel(rng):
    """Of effective weights, which may be negative, a bound without their signs would hide it."""
    vectors = rng.standard_normal((1, 5, 4))
    block = Block(
        weights=np.stack([np.full((3, 5), 0.5), np.full((3, 5), -0.5)]),
        values=np.concatenate([vectors, vectors + 1e-9]),
        projection=np.stack([np.eye(4), np.eye(4)]),
        same=False,
    )
    np.testing.assert_allclose(attention_norms(block), np.full((3, 5), 1e-9), rtol=1e-5)


def test_blocks_of_other_shapes_or_norms_make_no_stack(rng):
    first, second = made_block(KINDS[0], rng), made_block(KINDS[16], rng)
    assert shape_of(first) != shape_of(second)
    with pytest.raises(RecordError, match="same shapes and kinds of norms"):
        BlockStack.of([first, second])


def test_vectors_are_those_of_one_text(rng):
    together = with_texts(texts_of_layer(KINDS[0], rng))
    with pytest.raises(RecordError, match="those of one text"):
        alti(together)
