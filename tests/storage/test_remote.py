"""Records at addresses, tried in fsspec's memory: no network."""

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FileError
from headscope.storage.atomic import is_address

fsspec = pytest.importorskip("fsspec", reason="fsspec, which opens addresses, is not installed")
RECORD = hs.from_weights(np.full((2, 3, 4, 4), 0.25), list("abcd"), model="me")


def test_a_record_goes_to_an_address_and_comes_back():
    address = "memory://records/run.safetensors"
    assert str(hs.save(RECORD, address)).endswith("run.safetensors")
    assert fsspec.filesystem("memory").exists("/records/run.safetensors")
    loaded = hs.load(address, check=True)
    assert loaded.model == RECORD.model
    assert np.array_equal(loaded["self"].weights(), RECORD["self"].weights())


def test_what_was_brought_stays_while_it_is_read():
    """The file at the address may change meanwhile."""
    address = "memory://records/other.safetensors"
    hs.save(RECORD, address)
    loaded = hs.load(address)
    fsspec.filesystem("memory").rm("/records/other.safetensors")
    assert loaded["self"].weights(layer=1, head=2).shape == (4, 4)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("memory://records/gone.safetensors", "memory://records/gone.safetensors does not exist"),
        ("nowhere://a.safetensors", "nowhere://a.safetensors cannot be opened: Protocol not known"),
    ],
)
def test_what_is_not_there_is_one_clear_error(address, message):
    with pytest.raises(FileError, match=message):
        hs.load(address)


def test_a_record_is_called_as_records_are_there_too():
    named = "this is called 'run.npz'; name it run.safetensors"
    with pytest.raises(FileError, match=f"A record is a .safetensors file, and {named}"):
        hs.save(RECORD, "memory://records/run.npz")


def test_a_name_that_is_no_more_than_its_ending_is_named():
    with pytest.raises(FileError, match="called '.safetensors'; name it record.safetensors"):
        hs.save(RECORD, ".safetensors")


def test_a_place_that_refuses_is_one_clear_error(monkeypatch):
    def refuse(*_):
        raise PermissionError("401 Unauthorized\nlog in")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "put_file", refuse)
    with pytest.raises(FileError, match="Cannot write memory://a.safetensors: 401 Unauthorized"):
        hs.save(RECORD, "memory://a.safetensors")


def test_paths_are_no_addresses():
    assert is_address("hf://datasets/me/records/run.safetensors")
    assert not any(
        map(is_address, ("run.safetensors", "c:/run.safetensors", "a/b", Path("hf://a")))
    )
