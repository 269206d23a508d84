from dataclasses import fields, replace

import numpy as np
import pytest

from headscope.errors import RecordError
from headscope.norms import (
    Block,
    Norm,
    alti,
    attention_norms,
    attention_vectors,
    globenc_norms,
    mixing,
    output_norms,
    output_vectors,
    own_norms,
    residual_norms,
    residual_vectors,
    value_norms,
)

from .plain import Plain, length, lengths

EXACT = {"rtol": 0, "atol": 1e-9}


@pytest.fixture
def plain(block):
    return Plain(block)


def test_norms_of_values(block, plain):
    wanted = [[length(vector) for vector in vectors] for vectors in plain.f]
    np.testing.assert_allclose(value_norms(block), wanted, **EXACT)


def test_attention_norms_sum_vectors_over_heads(block, plain):
    np.testing.assert_allclose(attention_norms(block), lengths(plain.S), **EXACT)


def test_residual_norms(block, plain):
    np.testing.assert_allclose(residual_norms(block), lengths(plain.R), **EXACT)


def test_output_norms(block, plain):
    if block.after is None:
        with pytest.raises(RecordError, match="no norm after it"):
            output_norms(block)
        return
    np.testing.assert_allclose(output_norms(block), lengths(plain.T), **EXACT)
    np.testing.assert_allclose(globenc_norms(block), lengths(plain.U), **EXACT)
    np.testing.assert_allclose(own_norms(block), [length(own) for own in plain.own_T], **EXACT)


def test_mixing_ratios(block, plain):
    pairs = [(residual_vectors, "R", "own_R")] + (
        [(output_vectors, "T", "own_T")] if block.after else []
    )
    for pieces, name, own in pairs:
        wanted = plain.mixing(getattr(plain, name), getattr(plain, own))
        np.testing.assert_allclose(mixing(pieces(block)), wanted, **EXACT)
    if block.same:
        np.testing.assert_allclose(
            mixing(attention_vectors(block)), plain.mixing(plain.S, None), **EXACT
        )
    else:
        with pytest.raises(RecordError, match="no token looks at itself"):
            mixing(attention_vectors(block))


def test_alti(block, plain):
    found = alti(block)
    np.testing.assert_allclose(found, plain.alti(), **EXACT)
    assert found.min() >= 0
    if block.same:
        sums = found.sum(
            -1
        )  # of nothing where no piece comes nearer to the whole than nothing does
        np.testing.assert_allclose(sums[sums > 0], 1, **EXACT)
    else:
        assert (found.sum(-1) < 1).any()


def test_first_identity_pieces_and_bias_sum_to_the_attention_output(block, plain):
    np.testing.assert_allclose(attention_vectors(block).total() + block.bias, plain.o, **EXACT)
    np.testing.assert_allclose(block.output, plain.o, **EXACT)


def test_second_identity_pieces_bias_and_shift_sum_to_the_norm_output(block, plain):
    if block.after is None:
        return
    rows = 1 / block.after.deviation(np.array(plain.p))
    constant = np.broadcast_to(block.bias, block.residual.shape)
    if block.before is not None:
        deviation = block.before.deviation(np.array(plain.o))[:, None]
        constant = block.before.linear(constant) / deviation + block.before.shift
    constant = constant + (0 if block.beside is None else block.beside)
    found = (
        output_vectors(block).total()
        + block.after.linear(constant) * rows[:, None]
        + block.after.shift
    )
    np.testing.assert_allclose(found, plain.y, **EXACT)
    np.testing.assert_allclose(block.normed, plain.y, **EXACT)


@pytest.mark.parametrize("left", [1.0, 1e-2, 1e-4, 1e-6, 1e-8])
def test_lengths_stay_right_where_heads_nearly_cancel(rng, left):
    """Two heads of lengths about 20, of whose sum this share is left."""
    vectors = 10 * rng.standard_normal((5, 4))
    rest = left * rng.standard_normal((5, 4))
    block = Block(
        weights=np.full((2, 3, 5), 0.5),
        values=np.stack([vectors, rest - vectors]),
        projection=np.stack([np.eye(4), np.eye(4)]),
        same=False,
    )
    wanted = np.linalg.norm(0.5 * rest, axis=-1)
    np.testing.assert_allclose(attention_norms(block), np.tile(wanted, (3, 1)), atol=1e-6)


def test_tensors_and_some_queries_of_a_text_give_the_same(block):
    """What a capture does on a device: torch in place of NumPy, rows by and by, texts together."""
    import torch

    def in_torch(value):
        if isinstance(value, Norm):
            parts = {name: torch.from_numpy(getattr(value, name)) for name in ("gain", "shift")}
            return replace(value, **parts)
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    given = {each.name: in_torch(getattr(block, each.name)) for each in fields(block)}
    grams = {}
    for kinds in (attention_norms, residual_norms, output_norms, globenc_norms, alti, value_norms):
        if block.after is None and kinds in (output_norms, globenc_norms):
            continue
        wanted, parts = kinds(block), []
        for rows in (slice(0, 2), slice(2, None)):
            some = given | {"grams": grams, "first": rows.start}
            for name in ("residual", "beside", "stream_again"):
                some[name] = None if given[name] is None else torch.stack([given[name][rows]] * 2)
            some["weights"] = torch.stack([given["weights"][:, rows]] * 2)
            some["values"] = torch.stack([given["values"]] * 2)
            parts.append(kinds(Block(**some)))
        found = parts[0] if kinds is value_norms else torch.cat(parts, dim=1)
        for text in found:
            np.testing.assert_allclose(text.numpy(), wanted, **EXACT)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"values": np.ones((3, 2, 1))}, "2 heads cannot use 3 heads of values"),
        ({"values": np.ones((2, 4, 1))}, "values of a block has shape"),
        ({"residual": np.ones((2, 5))}, "residual of a block has shape"),
        ({"same": True}, "cannot have the same tokens"),
        ({"projection": np.ones((2, 5))}, "projection of a block has 2 axes"),
    ],
)
def test_what_does_not_fit_is_refused(change, match):
    sizes = {
        "weights": np.ones((2, 3, 2)),
        "values": np.ones((2, 2, 1)),
        "projection": np.ones((2, 1, 5)),
    }
    with pytest.raises(RecordError, match=match):
        Block(**(sizes | {"same": False} | change))


def test_kinds_of_blocks_without_parts_say_so():
    block = Block(
        weights=np.ones((1, 2, 2)), values=np.ones((1, 2, 1)), projection=np.ones((1, 1, 3))
    )
    with pytest.raises(RecordError, match="no residual"):
        residual_norms(block)
    with pytest.raises(RecordError, match="no second norm"):
        globenc_norms(block)
