"""What the JSON documents in files must be like, so that nothing of a wrong kind gets into a record
or a result.
"""

from __future__ import annotations

import math
from typing import Any

LARGEST = 2**53
"""Whole numbers that JavaScript has, too; nothing that is counted here comes near."""


class Finite:
    """A number that is neither infinite nor NaN."""


class Seed:
    """A whole number of 64 bits."""


PAIR = [int, int]
PLACED = ([(PAIR, None)], None)

TOKENS: dict[str, Any] = {
    "pieces": [str],
    "texts": [str],
    "ids": ([int], None),
    "offsets": PLACED,
    "special": [bool],
    "segments": [int],
    "words": ([(int, None)], None),
    "labels": [str],
    "grids": [PAIR],
    "places": PLACED,
    "pictures": ([(int, None)], None),
    "times": ([([float, float], None)], None),
    "roles": ([(str, None)], None),
    "frames": [(PAIR, None)],
}
MODEL: dict[str, Any] = {
    "name": str,
    "revision": (str, None),
    "weights": str,
    "model_type": str,
    "class_name": str,
    "implementation": str,
    "dtype": str,
    "positions": str,
    "versions": {str: str},
}
ROTARY: dict[str, Any] = {"frequencies": [float], "style": str, "first": int, "start": int}
CONTRIBUTIONS: dict[str, Any] = {
    "expansion": (float, None),
    "decomposes": str,
    "verified": (float, None),
    "missing": {str: str},
}
LAYER: dict[str, Any] = {
    "layer": int,
    "scale": Finite,
    "soft_cap": (Finite, None),
    "module": str,
    "projection": str,
    "route": str,
    "verified": (float, None),
    "norm": str,
    "latent": (int, None),
    "changes": [str],
    "held_heads": {"numbers": [int], "heads": int, "kv_heads": int},
    "turned": str,
    "contributions": CONTRIBUTIONS,
    "rotary": (ROTARY, None),
    "statistics": (int, None),
}
STACK: dict[str, Any] = {
    "name": str,
    "layers": [LAYER],
    "others": {str: str},
    "routers": [int],
    "query": TOKENS,
    "key": (str, TOKENS),
}
CANDIDATE: dict[str, Any] = {"id": int, "piece": str, "probability": float}
GENERATION: dict[str, Any] = {
    "stack": str,
    "prompt": int,
    "reads": [int],
    "tokens": TOKENS,
    "probabilities": [float],
    "entropies": [float],
    "ranks": [int],
    "alternatives": [[CANDIDATE]],
    "text": str,
    "stop": str,
    "sampled": bool,
    "seed": (Seed, None),
}
DOCUMENT: dict[str, Any] = {
    "format": int,
    "model": MODEL,
    "stacks": [STACK],
    "generation": GENERATION,
    "pictures": int,
}
"""Of `headscope.storage.save`. A tuple names alternatives; ``[kind]`` is a list, ``[kind, kind]``
one of just these; ``{str: kind}`` an object with any names. Names that are not here, of a later
version perhaps, are passed over.
"""


def check_document(document: Any, wanted: dict[str, Any] = DOCUMENT) -> None:
    """Raise where something is of a wrong kind.

    Args:
        document: as JSON gave it.
        wanted: what is known of it, such as `DOCUMENT`.

    Raises:
        TypeError: naming the place and what is there.
    """
    wrong = _wrong(document, wanted, "document")
    if wrong:
        raise TypeError(wrong)


def _wrong(value: Any, wanted: Any, where: str) -> str:
    """What is wrong with a value; empty where nothing is."""
    if isinstance(wanted, tuple):
        reasons = [_wrong(value, each, where) for each in wanted]
        # The longest reason is mostly that of the innermost place: of what came nearest.
        return "" if "" in reasons else max(reasons, key=len)
    if isinstance(wanted, list):
        return _wrong_list(value, wanted, where)
    if isinstance(wanted, dict):
        return _wrong_object(value, wanted, where)
    return "" if _is_plain(value, wanted) else f"its {where} is {str(value)[:40]!r}"


def _wrong_list(value: Any, wanted: list, where: str) -> str:
    if not isinstance(value, list):
        return f"its {where} is not a list"
    if len(wanted) > 1:
        if len(value) != len(wanted):
            return f"its {where} has {len(value)} entries, expected {len(wanted)}"
        for each, kind in zip(value, wanted, strict=True):
            wrong = _wrong(each, kind, where)
            if wrong:
                return wrong
        return ""
    for number, each in enumerate(value):
        wrong = _wrong(each, wanted[0], f"{where}[{number}]")
        if wrong:
            return wrong
    return ""


def _wrong_object(value: Any, wanted: dict, where: str) -> str:
    if not isinstance(value, dict):
        return f"its {where} is not an object"
    for name, each in value.items():
        kind = wanted.get(str, wanted.get(name, Any))
        if kind is not Any:
            wrong = _wrong(each, kind, f"{where}.{name}")
            if wrong:
                return wrong
    return ""


def _is_plain(value: Any, wanted: Any) -> bool:
    if wanted is None:
        return value is None
    # True is an int to Python, but not a number in JSON.
    if wanted in (int, Seed):
        most = LARGEST if wanted is int else 2**64
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= most
    if wanted in (float, Finite):
        if isinstance(value, float):
            return wanted is float or math.isfinite(value)
        return _is_plain(value, int)
    return isinstance(value, wanted)
