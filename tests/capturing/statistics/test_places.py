"""What is read at single places of a tile is what its whole weights give."""

import pytest
import torch

from headscope.capturing.statistics import _plan
from headscope.capturing.statistics._places import (
    MOST_SINGLE,
    SinglePlaces,
    TokensOfTile,
    places_of,
)
from headscope.capturing.statistics._plan import StatisticsPlan
from headscope.record import OFFSETS

from ...close import assert_close

TEXTS, HEADS, KEYS = 2, 3, 40
ROWS = {"run": torch.arange(8, 21), "sampled": torch.tensor([0, 3, 4, 17, 39])}


@pytest.mark.parametrize("words", [3, 500], ids=["often equal", "seldom equal"])
@pytest.mark.parametrize("special", [0, 2, 20])
@pytest.mark.parametrize("keys", [slice(0, 40), slice(0, 21), slice(9, 30)], ids=str)
@pytest.mark.parametrize("rows", ROWS)
def test_each_column_is_that_of_dense_marks(words, special, keys, rows):
    generator = torch.Generator().manual_seed(words + special)
    rows = ROWS[rows]
    ids = torch.randint(words, (TEXTS, KEYS), generator=generator)
    ids[:, 30] = ids[:, 3]
    marked = torch.zeros(TEXTS, KEYS)
    marked[:, :special] = 1
    real = torch.ones(TEXTS, len(rows), dtype=torch.bool)
    real[1, -2:] = False
    count = keys.stop - keys.start
    weights = torch.rand(TEXTS, HEADS, len(rows), count, generator=generator)

    tokens = TokensOfTile(
        keys=keys,
        real=real,
        special=marked[:, keys] if special else None,
        same=(ids[:, rows], ids[:, keys]),
    )
    places = places_of(tokens, SinglePlaces.of(rows, keys, TEXTS, HEADS))
    single = torch.full((1 + len(OFFSETS), *weights.shape[:3]), 7.0)
    sums = torch.zeros(2, *weights.shape[:3])
    places.read(weights, torch.empty_like(weights), single, sums)

    whole = torch.zeros(TEXTS, HEADS, len(rows), KEYS)
    whole[..., keys] = weights
    torch.testing.assert_close(single[0], whole[..., 0], rtol=0, atol=0)
    for column, offset in enumerate(OFFSETS, 1):
        for row, position in enumerate(rows.tolist()):
            at = position + offset
            wanted = whole[:, :, row, at] if 0 <= at < KEYS else torch.zeros(TEXTS, HEADS)
            assert_close(single[column][:, :, row], wanted)
    is_equal = (ids[:, rows, None] == ids[:, None]).unsqueeze(1)
    wanted = torch.stack([(whole * marked[:, None, None]).sum(-1), (whole * is_equal).sum(-1)])
    # Rows of padding are cut off, whatever is read of them.
    there = real[:, None].expand(-1, HEADS, -1)
    torch.testing.assert_close(sums[:, there], wanted[:, there])
    assert (places.equal is None) == (words == 500)
    share = (whole > 0)[:, 0] & (marked[:, None] > 0) & real[..., None]
    assert (places.special is None) == (share.sum() <= MOST_SINGLE * weights[:, 0].numel())


def test_places_are_shared_by_layers_up_to_a_number_of_bytes(monkeypatch):
    ids = torch.arange(12)[None]
    marks = StatisticsPlan(ids=ids).marks(slice(0, 1))
    real = torch.ones(1, 12, dtype=torch.bool)
    one, other = (
        marks.places(slice(0, 1), torch.arange(12), slice(0, 12), real=real, heads=heads)
        for heads in (2, 3)
    )
    monkeypatch.setattr(_plan, "PLACES_KEPT", other.numbers + 5)
    marks.remember(("one",), one)
    marks.remember(("other",), other)
    # the newest is the one that comes next
    assert marks.known_places == {("other",): other}
