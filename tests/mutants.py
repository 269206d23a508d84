"""Damaged files: what disks, networks and strangers make of whole ones.

``HEADSCOPE_MUTANTS`` says how many of each file are tried; CI takes the first few, the same each
time.
"""

import io
import json
import os
import struct
import zipfile
import zlib

import numpy as np

COUNT = int(os.environ.get("HEADSCOPE_MUTANTS", "40"))
FIRST = int(os.environ.get("HEADSCOPE_FIRST_MUTANT", "0"))
"""To try the rest in parts."""
VALUES = (
    None,
    True,
    0,
    -1,
    7,
    2**31,
    2**70,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    [None],
)


def mutants(raw):
    """Number and bytes of so many damaged files."""
    for number in range(FIRST, FIRST + COUNT):
        yield number, _mutant(raw, np.random.default_rng(number))


def _mutant(raw, rng):
    inner = _inner_of(raw)
    ways = [*BYTES, *(inner for _ in BYTES)] if inner else BYTES
    return ways[rng.integers(len(ways))](raw, rng)


def _flipped(raw, rng):
    found = bytearray(raw)
    for place in rng.integers(0, len(raw), rng.integers(1, 4)):
        found[place] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _cut(raw, rng):
    return raw[: rng.integers(0, len(raw))]


def _overwritten(raw, rng):
    start = int(rng.integers(0, len(raw)))
    length = int(rng.integers(1, 40))
    filling = rng.bytes(length) if rng.integers(2) else bytes(length)
    return raw[:start] + filling + raw[start + length :]


def _inserted(raw, rng):
    start = int(rng.integers(0, len(raw)))
    tokens = (
        b"\x00",
        b"\xff\xfe",
        b"\n",
        b"\t",
        b",",
        b'"',
        b"[" * 3000,
        b"9" * 6000,
        b"-1",
        b"NaN",
        rng.bytes(9),
    )
    return raw[:start] + tokens[rng.integers(len(tokens))] + raw[start:]


def _moved(raw, rng):
    """A part is left out, or stands twice."""
    start, stop = sorted(rng.integers(0, len(raw), 2).tolist())
    return raw[:start] + raw[stop:] if rng.integers(2) else raw[:stop] + raw[start:]


BYTES = (_flipped, _cut, _overwritten, _inserted, _moved)


def _inner_of(raw):
    """What changes the parts of a file and writes it whole again, checksums of the format
    included.
    """
    if raw[:2] == b"PK":
        return _archive
    if raw[8:9] == b"{":
        return _record
    return _lines if raw[:1] == b"{" else None


def _archive(raw, rng):
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    name = list(parts)[rng.integers(len(parts))]
    array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
    is_text = array.dtype == np.uint8
    array = (
        np.frombuffer(_document(array.tobytes(), rng), np.uint8) if is_text else _array(array, rng)
    )
    written = io.BytesIO()
    np.save(written, array)
    parts[name] = written.getvalue()
    if rng.random() < 0.1:
        del parts[name]
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in parts.items():
            file.writestr(name, part)
    return found.getvalue()


def _array(array, rng):
    ways = [
        lambda: array[:-1] if array.ndim else array[None],
        lambda: array.reshape(-1),
        lambda: array[..., None],
        lambda: array.astype(np.complex64 if array.dtype.kind in "fiub" else np.float32),
        lambda: array.astype(np.int64) if array.dtype.kind in "fiub" else array,
        lambda: np.asfortranarray(array),
        lambda: np.full_like(array, np.array(rng.integers(-200, 200)).astype(array.dtype)),
        lambda: np.zeros((0, *array.shape[1:]), array.dtype),
    ]
    with np.errstate(all="ignore"):
        return ways[rng.integers(len(ways))]()


def _record(raw, rng):
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    if rng.random() < 0.3:
        text = _document(json.dumps(header).encode(), rng)
    else:
        document = json.loads(header["__metadata__"]["headscope"])
        sums = document.pop("checksums")
        told = _document(json.dumps(document).encode(), rng)[:-1]
        sums[""] = zlib.crc32(told)
        text = told.decode("utf-8", "replace") + f', "checksums": {json.dumps(sums)}}}'
        header["__metadata__"]["headscope"] = text
        text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw[8 + size :]


def _lines(raw, rng):
    """One line of JSON is changed; of a journal its sum is made anew."""
    lines = raw.splitlines()
    place = int(rng.integers(len(lines)))
    row = _document(lines[place], rng)
    if b'"sum": ' in lines[place] and rng.integers(2):
        told = json.dumps(
            {name: value for name, value in json.loads(row).items() if name != "sum"}
        )[:-1]
        row = f'{told}, "sum": {zlib.crc32(told.encode())}}}'.encode()
    lines[place] = row
    return b"\n".join(lines) + b"\n"


def _document(raw, rng):
    """Something in a JSON document is replaced, left out or written twice."""
    document = json.loads(raw)
    places = list(_places(document))
    if not places:
        return raw
    holder, name = places[rng.integers(len(places))]
    how = rng.random()
    if how < 0.2:
        del holder[name]
    elif how < 0.3 and isinstance(holder, list):
        holder.append(holder[name])
    elif how < 0.35:
        deep = []
        for _ in range(300):
            deep = [deep]
        holder[name] = deep
    else:
        holder[name] = VALUES[rng.integers(len(VALUES))]
    return json.dumps(document).encode()


def _places(value):
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, each in inside:
        yield value, name
        yield from _places(each)
