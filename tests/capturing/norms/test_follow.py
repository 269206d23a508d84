"""Where attention's outputs go, from records that are written by hand: no model runs."""

import pytest
import torch
from torch import nn

from headscope.capturing.building.layers import SideTokens
from headscope.capturing.calls.call import Call, Visibility
from headscope.capturing.contributions._path import (
    NormUse,
    ResidualPath,
    Sum,
    follow,
)
from headscope.capturing.contributions._watch import known_norm_of
from headscope.capturing.watching.running import ModuleUse

from ...close import assert_close

BATCH, TOKENS, WIDTH = 2, 5, 6
READER, NORM, SECOND = (
    nn.Module(),
    nn.LayerNorm(WIDTH),
    nn.RMSNorm(WIDTH),
)


def drawn(seed):
    return torch.randn(BATCH, TOKENS, WIDTH, generator=torch.Generator().manual_seed(seed))


SIDE = SideTokens(tokens=(), positions=())
OUTPUT, RESIDUAL, MADE = drawn(0), drawn(1), drawn(2)


def path_of(output=OUTPUT, number=0):
    context = torch.zeros(BATCH, TOKENS, 2, 3)
    call = Call(
        module=READER,
        name="attention",
        route="operators",
        cross=False,
        value=context.transpose(1, 2),
        context=context,
        number=number,
    )
    return ResidualPath(
        call=call,
        sides=(SIDE, SIDE),
        visibility=Visibility(),
        weights=None,
        layers=[],
        reads=(ModuleUse(READER, RESIDUAL),),
        value=None,
        output=output,
    )


def norm_of(use, width):
    norm = known_norm_of(use.module, width)
    return norm and NormUse(norm, type(use.module).__name__, use.output)


def added(first, second):
    return Sum(first, second, first + second)


def used(module, given):
    with torch.no_grad():
        return ModuleUse(module, given, module(given))


def followed(*records, paths=None):
    """The paths after these records; those that have ended are told of no more."""
    paths = [path_of()] if paths is None else paths
    for record in records:
        follow([path for path in paths if not path.ended], record, norm_of)
    return paths


def test_a_post_norm_layer_goes_on_with_what_its_norm_gives():
    first = added(OUTPUT, RESIDUAL)
    norm = used(NORM, first.whole)
    again = added(MADE, norm.output)
    (path,) = followed(first, norm, again, used(SECOND, again.whole))
    assert path.ended
    assert path.goes_on == "normed"
    assert [addend.equal(RESIDUAL) for addend in path.residuals] == [True]
    assert not path.others
    assert (path.after.norm.kind, path.second.norm.kind) == ("LayerNorm", "RMSNorm")
    assert_close(path.again, again.whole)


def test_a_pre_norm_layer_goes_on_with_the_stream():
    first = added(RESIDUAL, OUTPUT)
    (path,) = followed(first, used(NORM, first.whole), added(first.whole, MADE))
    assert path.ended
    assert path.goes_on == "stream"
    assert path.again is None
    assert_close(path.stream, first.whole)


def test_a_parallel_layer_has_the_output_of_a_matrix_beside_the_residual():
    first = added(OUTPUT, MADE)
    second = added(first.whole, RESIDUAL)
    (path,) = followed(first, second, used(NORM, second.whole))
    assert not path.ended
    assert [addend.equal(RESIDUAL) for addend in path.residuals] == [True]
    assert [addend.equal(MADE) for addend in path.others] == [True]
    assert_close(path.stream, second.whole)
    # the next layer adds to the sum what it takes from it
    following = path_of(drawn(3), number=1)
    first = added(following.output, drawn(4))
    second = added(first.whole, path.stream)
    followed(first, second, paths=[path, following])
    assert path.ended
    assert path.goes_on == "stream"


def test_a_norm_of_the_output_itself_comes_before_the_residual():
    norm = used(SECOND, OUTPUT)
    (path,) = followed(norm, added(RESIDUAL, norm.output))
    assert path.before.name == "RMSNorm"
    assert path.after is None
    assert_close(path.stream, RESIDUAL + norm.output)


def test_a_scale_and_another_order_of_rows_are_found():
    (scaled,) = followed(added(RESIDUAL, 0.125 * OUTPUT))
    assert torch.allclose(scaled.scale, torch.full((WIDTH,), 0.125, dtype=torch.double))
    turned = added(RESIDUAL.transpose(0, 1), OUTPUT.transpose(0, 1))
    (path,) = followed(turned)
    assert_close(path.ordered(turned.second), OUTPUT.reshape(-1, WIDTH))
    assert path.scale is None


def test_the_residual_is_what_was_read_before_be_it_times_a_number():
    kinds = {
        "as it is": (RESIDUAL, 1),
        "times a number": (RESIDUAL * 0.5, 1),
        "each feature times its own": (RESIDUAL * torch.arange(1, 7), 0),
        "other rows": (RESIDUAL.roll(1, 1), 0),
    }
    for kind, (addend, count) in kinds.items():
        (path,) = followed(added(OUTPUT, addend))
        assert (len(path.residuals), len(path.others)) == (count, 1 - count), kind


def test_the_output_of_another_attention_is_no_residual():
    one, other = path_of(), path_of(drawn(3), number=1)
    first = added(OUTPUT, RESIDUAL)
    followed(first, added(first.whole, other.output), paths=[one, other])
    assert one.ended
    assert len(one.residuals + one.others) == 1
    # alone it is something else that is added
    (alone,) = followed(first, added(first.whole, other.output))
    assert len(alone.residuals + alone.others) == 2


@pytest.mark.parametrize("kind", ["function", "matrix"])
def test_a_sum_that_something_else_takes_gets_no_more_parts(kind):
    first = added(OUTPUT, RESIDUAL)
    path = path_of()
    followed(first, paths=[path])
    if kind == "function":
        path.where = first.whole.data_ptr()
        taken = [first.whole]
    else:
        taken = used(nn.Linear(WIDTH, WIDTH), first.whole)
    followed(taken, added(first.whole, MADE), paths=[path])
    assert path.ended
    assert len(path.residuals + path.others) == 1
    assert path.after is None


OTHERS = {
    "other numbers": lambda: added(drawn(4), drawn(5)),
    "another size": lambda: added(OUTPUT[:1], RESIDUAL[:1]),
    "squared": lambda: added(OUTPUT * OUTPUT, RESIDUAL),
    "a norm of another tensor": lambda: used(NORM, drawn(4)),
    "a function of another tensor": lambda: [drawn(4)],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_what_has_nothing_to_do_with_it_changes_nothing(kind):
    (path,) = followed(OTHERS[kind]())
    assert path.stream is path.before is path.after is None
    assert not path.residuals + path.others
    assert not path.ended


def test_what_is_noted_are_copies():
    output, residual = OUTPUT.clone(), RESIDUAL.clone()
    record = added(output, residual)
    (path,) = followed(record, paths=[path_of(output.clone())])
    record.whole.zero_()
    residual.zero_()
    assert_close(path.stream, OUTPUT + RESIDUAL)
    assert_close(path.residuals[0], RESIDUAL)
