import json
import struct

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FileError
from headscope.testing import random_record


@pytest.fixture
def path(tmp_path):
    return hs.save(random_record(), tmp_path / "run.safetensors")


def layout(raw):
    """Where the arrays begin, and the header."""
    (size,) = struct.unpack("<Q", raw[:8])
    return 8 + size, json.loads(raw[8 : 8 + size])


def at_layer(raw, place):
    """The layer whose weights hold a byte."""
    start, header = layout(raw)
    spans = [header[f"cross.{layer}.weights"]["data_offsets"] for layer in (0, 1)]
    return [begin <= place - start < end for begin, end in spans].index(True)


def test_every_flipped_bit_of_an_array_is_noticed(path):
    """Of most of them nothing else would be seen: rows still sum to 1 as far as rounding goes."""
    raw = path.read_bytes()
    start, _ = layout(raw)
    rng = np.random.default_rng(0)
    for place in rng.integers(start, len(raw), 60):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"is damaged: cross\.[01]\.weights is not what was"):
            hs.load(path, check=True)
        # Without check, when the array is first read, and of any part of it.
        layer = hs.load(path)["cross"].layer(at_layer(raw, place))
        with pytest.raises(FileError, match="is damaged"):
            layer.part("weights", 0)


def test_every_flipped_bit_of_the_document_is_noticed_at_once(path):
    raw = path.read_bytes()
    start, _ = layout(raw)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, start, 200):
        damaged = bytearray(raw)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            hs.load(path, check=True)


def test_arrays_that_changed_places_are_noticed(path):
    raw = path.read_bytes()
    start, header = layout(raw)
    (a, b), (c, d) = (header[f"cross.{layer}.weights"]["data_offsets"] for layer in (0, 1))
    body = raw[start:]
    path.write_bytes(
        raw[:start] + body[c:d] + body[a:b] if a == 0 else raw[:start] + body[a:b] + body[c:d]
    )
    with pytest.raises(FileError, match="is not what was written"):
        hs.load(path)["cross"].weights(0, 0)
    with pytest.raises(FileError, match="is not what was written"):
        hs.load(path, check=True)


def test_checksums_that_are_taken_out_are_missed(path):
    raw = path.read_bytes()
    start, header = layout(raw)
    text = header["__metadata__"]["headscope"]
    header["__metadata__"]["headscope"] = text.replace('"checksums"', '"chequesums"')
    told = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(told)) + told + raw[start:])
    with pytest.raises(FileError, match="its document is not what was written"):
        hs.load(path)
