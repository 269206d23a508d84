"""Faithfulness kept as a file. Texts are not kept: the tokens come back as their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from headscope.evidence import StatisticSums
from headscope.evidence.groups import group_of
from headscope.results import Kept, reads
from headscope.storage import Finite, array_of, check_document, load_kept, reading
from headscope.studies.explaining._explained import ExplainedText
from headscope.studies.explaining._result import Faithfulness
from headscope.studies.explaining._sums import ROWS, FaithfulnessSums

KIND = "faithfulness"
CONTROL = "random."
"""Before the names of the arrays of the same architecture with random weights."""
TEXT: dict[str, Any] = {
    "tokens": int,
    "classes": int,
    "permutations": int,
    "signals": [str],
    "missing": {str: str},
    "largest": Finite,
    "adversarial": (Finite, None),
}
SUMS: dict[str, Any] = {
    "confidence": Finite,
    "model": str,
    "layer": int,
    "missing": {str: str},
    "statistic": {"names": [str], "lengths": [[int, int]]},
}
"""Of a file of sums, without single texts."""
DOCUMENT: dict[str, Any] = {
    "confidence": Finite,
    "model": str,
    "layer": int,
    "groups": ([(str, None)], None),
    "texts": [TEXT],
}


def kept_of(faithfulness: Faithfulness) -> Kept:
    """What a file of it holds: the numbers of each text, or sums, and those with random weights."""
    document, arrays = _of_one(faithfulness)
    document["control"] = None
    if faithfulness.control is not None:
        document["control"], theirs = _of_one(faithfulness.control)
        arrays |= {f"{CONTROL}{name}": array for name, array in theirs.items()}
    return document, arrays


def _of_one(faithfulness: Faithfulness) -> Kept:
    """Without random weights."""
    sums = faithfulness.sums
    if sums is None:
        return _of_texts(faithfulness)
    statistic, arrays = sums.statistic.kept
    document = {name: getattr(faithfulness, name) for name in ("confidence", "model", "layer")}
    return document | {"missing": dict(sums.missing), "statistic": statistic}, arrays


def _of_texts(faithfulness: Faithfulness) -> Kept:
    texts = faithfulness.texts
    groups = faithfulness.groups
    document = {
        "confidence": faithfulness.confidence,
        "model": faithfulness.model,
        "layer": faithfulness.layer,
        "groups": None if groups is None else [group_of(each) for each in groups],
        "texts": [_document_of(text) for text in texts],
    }
    # Arrays of all texts one after the other: a file of some thousand arrays would be slow.
    signals, erased, permuted, probabilities = [], [], [], []
    for text in texts:
        signals += text.signals.values()
        erased += [text.erased[name] for name in text.signals]
        permuted.append(text.permuted)
        probabilities.append(text.probabilities)
    arrays = {
        "signals": np.concatenate(signals),
        "erased": np.stack(erased),
        "permuted": np.concatenate(permuted),
        "probabilities": np.concatenate(probabilities),
    }
    return document, {name: np.asarray(array, np.float64) for name, array in arrays.items()}


def _document_of(text: ExplainedText) -> dict[str, Any]:
    return {
        "tokens": len(text.pieces),
        "classes": len(text.probabilities),
        "permutations": len(text.permuted),
        "signals": list(text.signals),
        "missing": text.missing,
        "largest": float(text.largest),
        "adversarial": None if text.adversarial is None else float(text.adversarial),
    }


@reads(KIND)
def load_faithfulness(path: str | os.PathLike[str]) -> Faithfulness:
    """Faithfulness that was kept.

    Raises:
        FileError: where the file does not exist, is cut, or is none of ours.
    """
    document, arrays = load_kept(path, KIND)
    with reading(path, KIND):
        control = None
        if document["control"] is not None:
            theirs = {
                name.removeprefix(CONTROL): array
                for name, array in arrays.items()
                if name.startswith(CONTROL)
            }
            control = _made(document["control"], theirs, None)
        return _made(document, arrays, control)


def faithfulness_of(kept: Kept) -> Faithfulness:
    """What `kept_of` gave, without random weights.

    Raises:
        TypeError: where something is of a wrong kind.
        ValueError: where its parts do not fit each other.
    """
    return _made(*kept, None)


def _made(
    document: dict[str, Any], arrays: dict[str, np.ndarray], control: Faithfulness | None
) -> Faithfulness:
    if "statistic" in document:
        return _of_sums(document, arrays, control)
    check_document(document, DOCUMENT)
    if not 0 < document["confidence"] < 1 or not document["texts"]:
        raise ValueError(
            f"it has {len(document['texts'])} texts, confidence {document['confidence']}"
        )
    entries = document["texts"]
    signals = sum(each["tokens"] * len(each["signals"]) for each in entries)
    erased = array_of(
        arrays, "erased", "f", (sum(len(each["signals"]) for each in entries), 2, None)
    )
    parts = {
        "signals": iter(np.split(array_of(arrays, "signals", "f", (signals,)), _ends(entries))),
        "erased": iter(erased),
        "permuted": iter(_split(arrays, "permuted", [each["permutations"] for each in entries])),
        "probabilities": iter(
            _split(arrays, "probabilities", [each["classes"] for each in entries])
        ),
    }
    texts = [_text(each, parts) for each in entries]
    groups = _groups(document["groups"], len(texts))
    model, layer = document["model"], document["layer"]
    return Faithfulness(tuple(texts), document["confidence"], model, layer, control, groups)


def _of_sums(
    document: dict[str, Any], arrays: dict[str, np.ndarray], control: Faithfulness | None
) -> Faithfulness:
    check_document(document, SUMS)
    statistic = StatisticSums.of_kept(document["statistic"], arrays)
    if statistic.names != ROWS or statistic.shape != (len(ROWS),) or not len(statistic):
        raise ValueError(f"it has other measures, or sums of {len(statistic)} texts")
    if not 0 < document["confidence"] < 1:
        raise ValueError(f"its confidence is {document['confidence']}")
    sums = FaithfulnessSums(statistic, document["missing"])
    facts = {name: document[name] for name in ("confidence", "model", "layer")}
    return Faithfulness((), control=control, sums=sums, **facts)


def _groups(groups: list[str | None] | None, texts: int) -> tuple[str | None, ...] | None:
    if groups is not None and len(groups) != texts:
        raise ValueError(f"it has {len(groups)} entries of {texts} texts")
    return None if groups is None else tuple(groups)


def _text(entry: dict[str, Any], parts: dict[str, Iterator[np.ndarray]]) -> ExplainedText:
    """The next text, of what is left of the arrays."""
    names = entry["signals"]
    return ExplainedText(
        # Words are not kept, so that a file can be shared whatever the texts were.
        pieces=tuple(map(str, range(entry["tokens"]))),
        probabilities=next(parts["probabilities"]),
        signals={name: next(parts["signals"]) for name in names},
        erased={name: next(parts["erased"]) for name in names},
        permuted=next(parts["permuted"]),
        adversarial=entry["adversarial"],
        largest=entry["largest"],
        missing=entry["missing"],
    )


def _ends(entries: list[dict[str, Any]]) -> np.ndarray:
    """Where each signal of each text ends, but the last."""
    sizes = [each["tokens"] for each in entries for _ in each["signals"]]
    return np.cumsum(sizes)[:-1]


def _split(arrays: dict[str, np.ndarray], name: str, sizes: list[int]) -> list[np.ndarray]:
    """An array of all texts, text by text."""
    return np.split(array_of(arrays, name, "f", (sum(sizes),)), np.cumsum(sizes)[:-1])
