"""Marks go where the numbers go."""

import math

import pytest
import torch
from torch.nn import functional

from headscope.capturing.media.position_marks import PositionMarks, marked, marks_of

CLASS = torch.nn.Parameter(torch.zeros(1, 1, 4))


def numbers(*shape):
    return torch.arange(1, math.prod(shape) + 1, dtype=torch.int32).reshape(shape)


MOVES = {
    "reshape": lambda x: x.reshape(5, 3, 4),
    "view of a transposed one": lambda x: x.transpose(0, 1).contiguous().view(5, 12),
    "roll": lambda x: torch.roll(x, (-1, 2), dims=(0, 1)),
    "windows": lambda x: x[:, :4].reshape(3, 2, 2, 4).swapaxes(1, 2).flatten(0, 1),
    "slices joined": lambda x: torch.cat([x[1:2], x[:, ::2].repeat(1, 2, 1)[:1, :5]]),
    "chosen": lambda x: x[torch.tensor([2, 0]), 1:],
    "chosen by a mask": lambda x: x[torch.tensor([True, False, True])],
    "parts": lambda x: x.unbind(1)[3],
    "split": lambda x: torch.split(x, [2, 3], dim=1)[1],
    "where": lambda x: torch.where(torch.eye(3, 5, dtype=torch.bool)[..., None], x, x.flip(0)),
    "where as a method": lambda x: x.where(torch.eye(3, 5, dtype=torch.bool)[..., None], x.flip(1)),
    "stacked": lambda x: torch.stack([x, x.flip(0)])[1],
    "gathered": lambda x: x.gather(0, torch.tensor([2, 1]).reshape(2, 1, 1).expand(2, 5, 4)),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_entries_moves_marks(name):
    marks = numbers(3, 5, 4)
    with PositionMarks([CLASS]):
        found = MOVES[name](marked(torch.randn(3, 5, 4), marks))
    assert torch.equal(marks_of(found), MOVES[name](marks))


COMPUTES = {
    "sum": lambda x: torch.randn(3, 5, 4) + x,
    "norm": lambda x: functional.layer_norm(x, (4,)),
    "linear": lambda x: functional.linear(x, torch.randn(7, 4)),
    "product": lambda x: x @ torch.randn(3, 4, 6),
    "attention": lambda x: functional.scaled_dot_product_attention(
        x, torch.randn(3, 9, 4), torch.randn(3, 9, 4)
    ),
    "weights": lambda x: (x @ torch.randn(3, 4, 5)).softmax(-1) @ torch.randn(3, 5, 5),
    "gate": lambda x: functional.glu(x, dim=-1),
    "in place": lambda x: x.clone().mul_(2),
}


@pytest.mark.parametrize("name", COMPUTES)
def test_what_computes_with_entries_keeps_the_marks_of_its_rows(name):
    marks = numbers(3, 5)[..., None].expand(3, 5, 4)
    with PositionMarks([CLASS]):
        found = COMPUTES[name](marked(torch.randn(3, 5, 4), marks))
    assert found.shape[:2] == (3, 5)
    assert torch.equal(marks_of(found), numbers(3, 5)[..., None].expand(found.shape))


def test_a_convolution_marks_the_middle_of_what_it_saw():
    picture = marked(torch.randn(1, 2, 6, 15), numbers(6, 15))
    with PositionMarks([CLASS]):
        patches = functional.conv2d(picture, torch.randn(8, 2, 3, 3), stride=3)
        padded = functional.conv2d(picture, torch.randn(8, 2, 3, 3), padding=1)
        sound = functional.conv1d(picture[:, :, 0], torch.randn(8, 2, 5), stride=4, padding=1)
    assert marks_of(patches)[0, 5].tolist() == numbers(6, 15)[1::3, 1::3].tolist()
    assert marks_of(padded)[0, 0].tolist() == numbers(6, 15).tolist()
    assert marks_of(sound)[0, 0].tolist() == [2, 6, 10, 14]


def test_windows_cut_out_of_a_picture_keep_their_marks():
    marks = numbers(1, 1, 4, 6).expand(1, 2, 4, 6)
    with PositionMarks([]):
        windows = functional.unfold(marked(torch.randn(1, 2, 4, 6), marks), kernel_size=2, stride=2)
    assert torch.equal(
        marks_of(windows), functional.unfold(marks.double(), kernel_size=2, stride=2).int()
    )
    assert marks_of(windows)[0, :, 0].tolist() == [1, 2, 7, 8] * 2


def test_learned_tokens_padding_and_written_ones():
    with PositionMarks([torch.nn.Parameter(torch.zeros(2)), CLASS]):
        patches = marked(torch.randn(2, 3, 4), numbers(2, 3, 1))
        whole = torch.cat([CLASS.expand(2, -1, -1), patches, torch.zeros(2, 1, 4)], dim=1)
        padded = functional.pad(patches, (0, 0, 1, 0), value=3.0)
        words = torch.randn(2, 3, 4).masked_scatter(
            torch.eye(2, 3, dtype=torch.bool)[..., None], patches[:, :1]
        )
        words[0, 2] = patches[1, 1]
    assert marks_of(whole)[..., 0].tolist() == [[-2, 1, 2, 3, 0], [-2, 4, 5, 6, 0]]
    assert marks_of(padded)[..., 0].tolist() == [[0, 1, 2, 3], [0, 4, 5, 6]]
    assert marks_of(words)[..., 0].tolist() == [[1, 0, 5], [0, 4, 0]]


def test_elements_of_the_input_go_before_learned_tokens_in_a_sum():
    positions = torch.nn.Parameter(torch.randn(1, 3, 4))
    with PositionMarks([CLASS, positions]):
        whole = torch.cat([CLASS, marked(torch.randn(1, 2, 4), numbers(1, 2, 1))], dim=1)
        sums = [whole + positions, positions + whole, torch.randn(1, 3, 4) + whole]
    assert [marks_of(found)[0, :, 0].tolist() for found in sums] == [
        [-1, 1, 2],
        [-1, 1, 2],
        [-1, 1, 2],
    ]


def test_nothing_is_followed_outside_nor_written_on_what_was_given():
    given = torch.randn(2, 3)
    x = marked(given, numbers(2, 3))
    assert marks_of(given) is None
    assert marks_of(x + 1) is None
    with PositionMarks([]) as follow:
        assert marks_of(follow.unfollowed(lambda y: y + 1)(x)) is None
        assert marks_of(x + 1) is not None
