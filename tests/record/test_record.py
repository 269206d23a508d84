import numpy as np
import pytest

from headscope import Record
from headscope.errors import RecordError
from headscope.record import Layer, Stack, Tokens
from headscope.testing import random_record, random_weights


def stack(rng, numbers=(0, 2, 5)):
    layers = tuple(
        Layer(layer=n, weights=random_weights(rng, (3, 4, 6)), verified=n / 10) for n in numbers
    )
    return Stack(
        name="cross",
        query=Tokens(pieces=tuple("abcd"), texts=("abcd",)),
        key=Tokens(pieces=tuple("uvwxyz")),
        layers=layers,
    )


def test_layers_are_found_by_their_own_number(rng):
    found = stack(rng)
    np.testing.assert_array_equal(found.weights(layer=5, head=1), found.layers[2].weights[1])
    with pytest.raises(RecordError, match="has layers 0, 2, 5, not 1"):
        found.layer(1)
    with pytest.raises(RecordError, match="has layers 0 to 3, not 4"):
        stack(rng, (0, 1, 2, 3)).layer(4)


def test_layers_out_of_order_are_refused(rng):
    with pytest.raises(RecordError, match="layer numbers must rise"):
        stack(rng, (1, 0))
    with pytest.raises(RecordError, match="has no layers"):
        stack(rng, ())


def test_tokens_that_do_not_fit_the_arrays_are_refused(rng):
    layer = Layer(layer=0, weights=random_weights(rng, (3, 4, 6)))
    with pytest.raises(RecordError, match="4 queries and 6 keys, but 4 query tokens and 4 key"):
        Stack(
            name="self",
            query=Tokens(pieces=tuple("abcd")),
            key=Tokens(pieces=tuple("abcd")),
            layers=(layer,),
        )


def test_a_record_knows_its_stacks_texts_and_worst_difference(rng):
    record = Record(stacks={"cross": stack(rng)})
    assert record.verified == 0.5
    assert record.texts == ("abcd",)
    assert record.summary == "arrays: cross 3 layers x 3 heads, 4 x 6 tokens"
    with pytest.raises(RecordError, match="has the stacks 'cross', not 'self'"):
        record["self"]
    with pytest.raises(TypeError):
        record.stacks["self"] = stack(rng)


def test_without_a_model_nothing_is_verified():
    assert random_record().verified is None


def test_stacks_must_be_there_and_called_what_they_are(rng):
    with pytest.raises(RecordError, match="at least one stack"):
        Record(stacks={})
    with pytest.raises(RecordError, match="calls itself 'cross'"):
        Record(stacks={"self": stack(rng)})


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "\u202e", "\x00"])
def test_a_stack_has_a_name_that_can_be_printed(name, rng):
    tokens = Tokens(pieces=("a", "b"))
    layer = Layer(layer=0, weights=random_weights(rng, (3, 2, 2)))
    with pytest.raises(RecordError, match="Expected a name of printable characters"):
        Stack(name=name, query=tokens, key=tokens, layers=(layer,))


def test_pictures_are_bytes_and_one_for_each_grid(rng):
    tokens = Tokens(pieces=tuple("abcdef"), grids=((2, 3),), places=tuple(np.ndindex(2, 3)))
    layer = Layer(layer=0, weights=random_weights(rng, (4, 6, 6)))
    stacks = {"self": Stack(name="self", query=tokens, key=tokens, layers=(layer,))}
    picture = rng.integers(0, 256, (8, 12, 3), np.uint8)
    assert Record(stacks=stacks, pictures=(picture,)).pictures[0] is picture
    for wrong in (picture / 255, picture[..., :1], picture[0], picture[:0]):
        with pytest.raises(RecordError, match=r"Picture 0 must be uint8 with the axes \[height"):
            Record(stacks=stacks, pictures=(wrong,))
    with pytest.raises(RecordError, match="2 pictures were given for tokens of 1; give one for"):
        Record(stacks=stacks, pictures=(picture, picture[:, 1:]))


def test_all_layers_come_as_one_array_with_their_axes_in_order(rng):
    layers = stack(rng)
    every = layers.weights()
    assert every.shape == (3, 3, 4, 6)
    np.testing.assert_array_equal(every[2, 1], layers.weights(5, 1))
    np.testing.assert_array_equal(layers.weights(head=1), every[:, 1])
    np.testing.assert_array_equal(np.asarray(layers), every)


def test_layers_with_other_numbers_of_heads_are_no_one_array(rng):
    tokens = {"query": Tokens(pieces=tuple("abcd")), "key": Tokens(pieces=tuple("uvwxyz"))}
    layers = tuple(Layer(layer=n, weights=random_weights(rng, (2 + n, 4, 6))) for n in range(2))
    with pytest.raises(RecordError, match="have 2 to 3 heads, so they are no one array; take them"):
        Stack(name="cross", layers=layers, **tokens).weights()


def test_stacks_and_layers_say_what_they_hold_in_one_line(rng):
    layers = stack(rng)
    assert repr(layers) == "<Stack 'cross': layers 0, 2, 5 x 3 heads (full), 4 queries x 6 keys>"
    assert repr(layers.layer(2)) == "<Layer 2: 3 heads, 4 x 6, full; holds weights>"
    assert len(repr(layers.query)) < 400
