import copy
import multiprocessing
import pickle

import pytest

import headscope as hs
from headscope.patterns import PATTERNS, Pattern
from headscope.testing import random_record

from ..close import assert_close
from ..full_record import assert_same, full_record

COPIES = {
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.fixture
def record(rng):
    return full_record(rng)


def assert_rebuilt(found, wanted):
    assert_same(found, wanted)
    with pytest.raises(ValueError, match="read-only"):
        found["cross"].layer(4).value_norms[0] = 1
    with pytest.raises(TypeError):
        found["cross"].others[5] = "none (y)"


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_record_is_copied(record, copied):
    assert_rebuilt(copied(record), record)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_record_of_a_file_is_copied_and_needs_the_file_no_more(record, tmp_path, copied):
    path = hs.save(record, tmp_path / "run.safetensors")
    loaded = hs.load(path)
    found = copied(loaded)
    if copied is not copy.copy:
        del loaded
        path.write_bytes(b"another")
    assert_rebuilt(found, record)


def test_a_record_goes_to_another_process():
    record = random_record()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(hs.Record.__getitem__, (record, "cross"))
    assert_close(found.weights(1, 2), record["cross"].weights(1, 2))


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_heads_are_copied(copied):
    own = Pattern(
        name="own", says="a test", source="ours", threshold=0.5, pairs=lambda sides: sides.same_word
    )
    found = hs.heads([random_record(seed=seed) for seed in range(3)], patterns=(*PATTERNS, own))
    again = copied(found)
    assert str(again) == str(found)
    assert [pattern.name for pattern in again.tally.patterns] == [
        *(each.name for each in PATTERNS),
        "own",
    ]
    if copied is COPIES["pickle"]:
        assert again.tally.patterns[:-1] == PATTERNS
        with pytest.raises(
            hs.errors.RecordError, match="'own' was kept without its functions; make it"
        ):
            again.tally.update("new", random_record())
