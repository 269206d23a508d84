import dataclasses
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import headscope as hs
from headscope import Record
from headscope.errors import FileError
from headscope.record import Layer, ModelFacts, Stack, Tokens
from headscope.testing import random_record, random_weights

from ..full_record import assert_same, full_record


def test_everything_comes_back_as_it_was(rng, tmp_path):
    record = full_record(rng)
    assert_same(hs.load(hs.save(record, tmp_path / "run.safetensors")), record)


def test_damaged_pictures_and_generations_are_told(rng, tmp_path):
    path = hs.save(full_record(rng), tmp_path / "run.safetensors")
    rewritten(path, lambda document: document["generation"]["ranks"].pop())
    with pytest.raises(FileError, match="is damaged: Generation: 1 ranks for 2 tokens"):
        hs.load(path)
    rewritten(path, lambda document: document.update(generation=None, pictures=3))
    with pytest.raises(FileError, match="is cut or holds no record"):
        hs.load(path)
    plain = hs.save(random_record(), path)
    assert b"pictures." not in path.read_bytes()
    rewritten(plain, lambda document: document.pop("generation", "none") == "none" or 1 / 0)
    assert hs.load(plain).generation is None


@settings(max_examples=25)
@given(
    pieces=st.lists(st.text(max_size=8), min_size=1, max_size=9),
    keys=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_tokens_and_weights_come_back(tmp_path_factory, pieces, keys, seed):
    rng = np.random.default_rng(seed)
    layers = (Layer(layer=0, weights=random_weights(rng, (2, len(pieces), keys))),)
    key = Tokens(pieces=tuple("abcde"[:keys]))
    record = Record(
        stacks={
            "self": Stack(name="self", query=Tokens(pieces=tuple(pieces)), key=key, layers=layers)
        }
    )
    path = tmp_path_factory.mktemp("records") / "any.safetensors"
    assert_same(hs.load(hs.save(record, path)), record)


def test_saving_what_was_loaded_gives_the_same_bytes(rng, tmp_path):
    first = hs.save(full_record(rng), tmp_path / "a.safetensors")
    second = hs.save(hs.load(first), tmp_path / "b.safetensors")
    assert first.read_bytes() == second.read_bytes()
    hs.save(hs.load(first), first)
    assert first.read_bytes() == second.read_bytes()


def test_one_head_is_read_without_the_rest(tmp_path):
    record = random_record(layers=4, heads=16, queries=512, keys=480)
    path = hs.save(record, tmp_path / "run.safetensors")
    code = f"""
import re, headscope as hs
def read():  # bytes that this process has asked the kernel for
    return int(re.search(r"rchar: ([0-9]+)", open("/proc/self/io").read()).group(1))
record = hs.load({str(path)!r})
weights = record["cross"].weights(layer=2, head=6)
before = read()
weights = record["cross"].weights(layer=2, head=7)
print(read() - before, weights.nbytes)
"""
    if not Path("/proc/self/io").exists():
        pytest.skip("only Linux tells how much was read")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    read, head = map(int, run.stdout.split())
    assert head <= read < 1.1 * head


def test_loading_needs_no_torch(rng, tmp_path):
    path = hs.save(full_record(rng), tmp_path / "run.safetensors")
    code = f"""
import sys
import zlib
from pathlib import Path
sys.modules["torch"] = sys.modules["transformers"] = None
import headscope as hs
print(hs.load({str(path)!r})["cross"].weights(3, 1).sum())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) > 0


@pytest.mark.parametrize("array", ["queries", "keys", "bias"])
def test_queries_and_keys_that_changed_are_noticed_when_read(array, rng, tmp_path):
    path = hs.save(full_record(rng), tmp_path / "run.safetensors")
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    start, stop = json.loads(raw[8 : 8 + size])[f"cross.3.{array}"]["data_offsets"]
    path.write_bytes(raw[: 8 + size + start] + b"\xff" * (stop - start) + raw[8 + size + stop :])
    layer = hs.load(path)["cross"].layer(3)
    for read in (layer.weights_of, layer.scores_of):
        with pytest.raises(hs.errors.FileError, match=f"is damaged: cross.3.{array} is not what"):
            read(0)


def rewritten(path, change):
    """The file with its headscope document changed, and a checksum of what it is now."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    document = json.loads(header["__metadata__"]["headscope"])
    sums = document.pop("checksums")
    change(document)
    told = json.dumps(document)[:-1]
    sums[""] = zlib.crc32(told.encode())
    header["__metadata__"]["headscope"] = f'{told}, "checksums": {json.dumps(sums)}}}'
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


def document(change):
    return lambda path: rewritten(path, change)


CUT = "is cut or no .safetensors file"
DAMAGED = {
    "gone": (lambda p: p.unlink(), "does not exist"),
    "empty": (lambda p: p.write_bytes(b""), CUT),
    "tail cut": (lambda p: p.write_bytes(p.read_bytes()[:-5]), CUT),
    "head cut": (lambda p: p.write_bytes(p.read_bytes()[:90]), CUT),
    "pickle": (lambda p: p.write_bytes(b"\x80\x04K\x01." * 99), CUT),
    "foreign": (lambda p: save_file({"a": np.zeros(3)}, p), "but not a headscope record"),
    "json": (lambda p: save_file({"a": np.zeros(3)}, p, {"headscope": "{"}), "is damaged"),
    "newer": (document(lambda d: d.update(format=3)), "3, and this headscope reads .* 2; update"),
    "older": (
        document(lambda d: d.update(format=1)),
        "1, .* reads format 2; update headscope, or capture .* again",
    ),
    "other layer": (document(lambda d: d["stacks"][0]["layers"][0].update(layer=9)), "is damaged"),
    "a token less": (document(lambda d: d["stacks"][0]["query"]["pieces"].pop()), "is damaged"),
    "no model": (document(lambda d: d.pop("model")), "is cut or holds no record: KeyError 'model'"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_broken_file_gives_one_clear_error(tmp_path, name):
    path = hs.save(random_record(), tmp_path / "run.safetensors")
    damage, message = DAMAGED[name]
    damage(path)
    with pytest.raises(FileError, match=message) as caught:
        hs.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hostile_strings_come_back_as_they_were(hostile, tmp_path, rng):
    """In tokens, texts and names; halves of characters too, which JSON can hold."""
    tokens = Tokens(
        pieces=tuple(hostile), labels=tuple(reversed(hostile)), texts=tuple(hostile)[-2:]
    )
    keys = Tokens(pieces=("k0", "k1", "k2"))
    for name in ("cross", *(name for name in hostile if name.isprintable())):
        size = len(tokens) if name == "cross" else 2
        query = tokens if name == "cross" else Tokens(pieces=(name, "w"))
        layer = Layer(layer=4, weights=random_weights(rng, (2, size, 3)))
        stack = Stack(name=name, query=query, key=keys, layers=(layer,), others={1: name})
        record = Record(
            stacks={name: stack}, model=ModelFacts(name=name, revision=name, versions={name: name})
        )
        back = hs.load(hs.save(record, tmp_path / "run.safetensors"))
        assert list(back.stacks) == [name]
        assert (back.model, back[name].query, back[name].others) == (record.model, query, {1: name})
        np.testing.assert_array_equal(back[name].layer(4).weights, layer.weights)
    record = dataclasses.replace(record, model=ModelFacts(name="\ud800\x00"))
    assert hs.load(hs.save(record, tmp_path / "run.safetensors")).model.name == "\ud800\x00"
