"""A record as one ``.safetensors`` file.

Tensors are named ``STACK.LAYER.ARRAY``; everything else is one JSON document in the metadata under ``headscope``.
Format 2. A mask is kept as its runs: ``STACK.LAYER.visible.runs`` and ``.firsts``; format 1 kept packed bits.
``STACK.LAYER.value_norms`` and ``STACK.LAYER.contributions.KIND`` are there where norms were kept.
The document holds ``generation`` where the model wrote the text itself.
It holds ``pictures``, how many there are, where they are known: ``pictures.NUMBER`` has the axes height, width, and a
number ``red * 65536 + green * 256 + blue`` for each pixel.
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headscope.errors import FileError, RecordError
from headscope.record import (
    ARRAYS,
    CONTRIBUTIONS,
    STATISTICS,
    Candidate,
    Contributions,
    Generation,
    Layer,
    Mask,
    ModelFacts,
    Record,
    Rotary,
    Stack,
    Statistics,
    Tokens,
)
from headscope.storage._atomic import reason, written_whole

FORMAT = 2
COLOURS = np.array([1 << 16, 1 << 8, 1], np.int32)
"""Whole numbers of a kind that earlier versions read too, which pass over pictures."""
MASK_ARRAYS = ("runs", "firsts")
CONTRIBUTION_FACTS = ("expansion", "decomposes", "verified")
LAYER_FACTS = ("layer", "scale", "soft_cap", "module", "projection", "route", "verified", "norm", "latent")
RARE_FACTS = ("changes", "turned")
"""Written only where there is something to tell."""


def save(record: Record, path: str | os.PathLike) -> Path:
    """Write a record to one ``.safetensors`` file, whole or not at all.

    Args:
        record: what to keep.
        path: where; a file that is there is replaced.

    Returns:
        The path.

    Raises:
        FileError: where it cannot be written.

    Example:
        >>> save(record, "run.safetensors")
    """
    tensors, stacks = {}, []
    for stack in record.stacks.values():
        layers = []
        for layer in stack:
            arrays = {
                name: np.ascontiguousarray(getattr(layer, name)) for name in ARRAYS if getattr(layer, name) is not None
            }
            tensors |= {f"{stack.name}.{layer.layer}.{name}": array for name, array in (arrays | _runs(layer)).items()}
            tensors |= {f"{stack.name}.{layer.layer}.statistics.{name}": a for name, a in _counted(layer).items()}
            tensors |= {f"{stack.name}.{layer.layer}.contributions.{name}": a for name, a in _added(layer).items()}
            layers.append(
                {name: getattr(layer, name) for name in LAYER_FACTS}
                | _said_of(layer.contributions)
                | {name: getattr(layer, name) for name in RARE_FACTS if getattr(layer, name)}
                | {"rotary": _turning(layer.rotary), "statistics": layer.statistics and layer.statistics.queries}
            )
        tensors |= {f"{stack.name}.{number}.router": scores for number, scores in stack.routers.items()}
        sides = {"query": dataclasses.asdict(stack.query)}
        sides["key"] = "query" if stack.key == stack.query else dataclasses.asdict(stack.key)
        others = {str(number): what for number, what in stack.others.items()}
        routers = list(stack.routers)
        stacks.append({"name": stack.name, "layers": layers, "others": others, "routers": routers, **sides})
    document = {"format": FORMAT, "model": dataclasses.asdict(record.model), "stacks": stacks}
    if record.generation is not None:
        document["generation"] = dataclasses.asdict(record.generation)
    if record.pictures:
        document["pictures"] = len(record.pictures)
        tensors |= {f"pictures.{number}": picture @ COLOURS for number, picture in enumerate(record.pictures)}
    with written_whole(path) as temporary:
        save_file(tensors, temporary, metadata={"headscope": json.dumps(document)})
    return Path(path)


def load(path: str | os.PathLike) -> Record:
    """Read a record; arrays stay on disk (memory-mapped) until they are used, so one head is read without the rest.

    Args:
        path: a file that `save` wrote.

    Raises:
        FileError: where there is no such file, or it is cut, foreign, damaged or of a newer format.
    """
    path = Path(path)
    document = _document(path)
    try:
        tensors = _mapped(path)
        model = ModelFacts(**document["model"])
        stacks = [_stack(entry, tensors) for entry in document["stacks"]]
        generation = _generation(document["generation"]) if "generation" in document else None
        pictures = tuple(_picture(tensors[f"pictures.{number}"]) for number in range(document.get("pictures", 0)))
        named = {stack.name: stack for stack in stacks}
        return Record(stacks=named, model=model, generation=generation, pictures=pictures)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        detail = str(error) if isinstance(error, RecordError) else f"{type(error).__name__} {error}"
        raise FileError(f"{path} is damaged: {detail}; capture the record again") from None


def _document(path: Path) -> dict:
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("headscope")
    except FileNotFoundError:
        raise FileError(f"{path} is not there; headscope capture TEXT --out {path.name} makes one") from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {reason(error)}") from None
    except SafetensorError as error:
        raise FileError(f"{path} is cut or no .safetensors file ({error}); capture the record again") from None
    if text is None:
        raise FileError(f"{path} is a .safetensors file, but not a headscope record (a model's weights, perhaps?)")
    try:
        document = json.loads(text)
        version = document["format"]
    except (ValueError, KeyError, TypeError):
        raise FileError(f"{path} is damaged: its headscope document cannot be read; capture the record again") from None
    if version != FORMAT:
        older = isinstance(version, int) and version < FORMAT
        remedy = "capture the record again" if older else "update headscope"
        raise FileError(f"{path} has format {version}, and this headscope reads format {FORMAT}; {remedy}")
    return document


def _stack(entry: dict, tensors: dict[str, np.ndarray]) -> Stack:
    query = _tokens(entry["query"])
    key = query if entry["key"] == "query" else _tokens(entry["key"])
    layers = []
    for facts in entry["layers"]:
        prefix = f"{entry['name']}.{facts['layer']}."
        arrays = {name: tensors[prefix + name] for name in ARRAYS if prefix + name in tensors}
        layers.append(
            Layer(
                **{name: facts[name] for name in LAYER_FACTS},
                changes=tuple(facts.get("changes", ())),
                turned=facts.get("turned", ""),
                **arrays,
                visible=_mask(tensors, prefix, len(key)),
                rotary=_rotary(facts["rotary"]),
                statistics=_statistics(tensors, prefix, facts["statistics"]),
                contributions=_contributions(tensors, prefix, facts.get("contributions")),
            )
        )
    return Stack(
        name=entry["name"],
        query=query,
        key=key,
        layers=tuple(layers),
        others={int(number): what for number, what in entry["others"].items()},
        routers={number: tensors[f"{entry['name']}.{number}.router"] for number in entry["routers"]},
    )


def _tokens(entry: dict) -> Tokens:
    fields: dict[str, Any] = {
        name: None if values is None else tuple(tuple(value) if isinstance(value, list) else value for value in values)
        for name, values in entry.items()
    }
    return Tokens(**fields)


def _generation(entry: dict) -> Generation:
    alternatives = tuple(tuple(Candidate(**candidate) for candidate in found) for found in entry["alternatives"])
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}
    fields |= {"tokens": _tokens(entry["tokens"]), "alternatives": alternatives}
    return Generation(**fields)


def _picture(numbers: np.ndarray) -> np.ndarray:
    return (numbers[..., None] // COLOURS % 256).astype(np.uint8)


def _turning(rotary: Rotary | None) -> dict[str, Any] | None:
    if rotary is None:
        return None
    return dataclasses.asdict(rotary) | {"frequencies": rotary.frequencies.tolist()}


def _rotary(facts: dict[str, Any] | None) -> Rotary | None:
    if facts is None:
        return None
    frequencies = np.array(facts["frequencies"])
    return Rotary(frequencies=frequencies, **{name: facts[name] for name in ("style", "first", "start")})


def _counted(layer: Layer) -> dict[str, np.ndarray]:
    if layer.statistics is None:
        return {}
    named = {name: getattr(layer.statistics, name) for name in (*STATISTICS, "rows")}
    return {name: np.ascontiguousarray(array) for name, array in named.items() if array is not None}


def _statistics(tensors: dict[str, np.ndarray], prefix: str, queries: int | None) -> Statistics | None:
    if queries is None:
        return None
    begin = f"{prefix}statistics."
    arrays: dict[str, Any] = {name[len(begin) :]: a for name, a in tensors.items() if name.startswith(begin)}
    return Statistics(**arrays, queries=queries)


def _added(layer: Layer) -> dict[str, np.ndarray]:
    if layer.contributions is None:
        return {}
    named = {name: getattr(layer.contributions, name) for name in CONTRIBUTIONS}
    return {name: np.ascontiguousarray(array) for name, array in named.items() if array is not None}


def _said_of(contributions: Contributions | None) -> dict[str, Any]:
    if contributions is None:
        return {}
    facts = {name: getattr(contributions, name) for name in CONTRIBUTION_FACTS}
    return {"contributions": facts | {"missing": dict(contributions.missing)}}


def _contributions(tensors: dict[str, np.ndarray], prefix: str, facts: dict | None) -> Contributions | None:
    if facts is None:  # not kept, or written before there were any
        return None
    begin = f"{prefix}contributions."
    arrays: dict[str, Any] = {name[len(begin) :]: a for name, a in tensors.items() if name.startswith(begin)}
    return Contributions(**arrays, **{name: facts[name] for name in (*CONTRIBUTION_FACTS, "missing")})


def _runs(layer: Layer) -> dict[str, np.ndarray]:
    mask = layer.visible
    return {} if mask is None else {f"visible.{name}": getattr(mask, name) for name in MASK_ARRAYS}


def _mask(tensors: dict[str, np.ndarray], prefix: str, keys: int) -> Mask | None:
    found = {name: tensors[f"{prefix}visible.{name}"] for name in MASK_ARRAYS if f"{prefix}visible.{name}" in tensors}
    return Mask(keys=keys, **found) if found else None


def _mapped(path: Path) -> dict[str, np.ndarray]:
    """Every tensor as a window on the file; its header was checked by safetensors before."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    whole = np.memmap(path, mode="r", dtype=np.uint8)
    dtypes = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I32": "<i4", "I64": "<i8"}
    found = {}
    for name, facts in header.items():
        if name != "__metadata__":
            start, stop = (8 + size + offset for offset in facts["data_offsets"])
            found[name] = whole[start:stop].view(dtypes[facts["dtype"]]).reshape(facts["shape"])
    return found
