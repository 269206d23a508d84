"""What a file holds of answers that are known by their sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from headscope.storage import array_of, check_document
from headscope.studies.shared._answer_sums import SummedAnswers

SUMMED = "summed"
WHOLE = ("best", "rule", "count", "held_best", "held_rule", "held_out_count")
"""Numbers of a chosen head that are whole, or None where nothing was chosen."""
SHARES = (
    "accuracy",
    "low",
    "high",
    "rule_share",
    "held_out_chosen",
    "held_out_accuracy",
    "held_out_low",
    "held_out_high",
    "held_out_spread",
    "held_out_rule",
    "held_out_above",
    "held_out_above_low",
    "held_out_above_high",
    "held_out_above_spread",
    "p",
    "p_corrected",
)
DOCUMENT: dict[str, Any] = {
    SUMMED: {
        "texts": int,
        "documents": int,
        "lengths": [[int, int]],
        "counts": {str: int},
        "asked": [[str, str]],
        "others": [str],
    }
}


def kept_of_answers(summed: SummedAnswers) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file of them holds, for `answers_of_kept`."""
    keys = list(summed.wholes)
    document = {
        "texts": summed.texts,
        "documents": summed.documents,
        "lengths": [list(each) for each in sorted(summed.lengths.items())],
        "counts": dict(sorted(summed.counts.items())),
        "asked": [list(key) for key in keys],
        "others": sorted(summed.others),
    }
    rows = [[_number(summed.numbers[key][name]) for name in (*WHOLE, *SHARES)] for key in keys]
    arrays = {
        "wholes": np.array([summed.wholes[key] for key in keys], np.int64),
        "hits": np.array([summed.hits[key] for key in keys], np.int64),
        "others": np.array([summed.others[name] for name in document["others"]], np.int64),
        "numbers": np.array(rows, np.float64),
    }
    return {SUMMED: document}, arrays


def answers_of_kept(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> SummedAnswers:
    """What `kept_of_answers` gave.

    Raises:
        TypeError: where something is of a wrong kind.
        ValueError: where its parts do not fit each other.
    """
    check_document(document, DOCUMENT)
    known = document[SUMMED]
    keys = [(how, what) for how, what in known["asked"]]
    wholes = array_of(arrays, "wholes", "i", (len(keys),)).tolist()
    hits = array_of(arrays, "hits", "i", (len(keys), None))
    rows = array_of(arrays, "numbers", "f", (len(keys), len(WHOLE) + len(SHARES))).tolist()
    if len(set(keys)) != len(keys) or not keys:
        raise ValueError("its questions are asked twice, or there are none")
    numbers = {}
    for key, row in zip(keys, rows, strict=True):
        whole, shares = row[: len(WHOLE)], row[len(WHOLE) :]
        own: dict[str, Any] = dict(zip(SHARES, shares, strict=True))
        for name, value in zip(WHOLE, whole, strict=True):
            own[name] = None if np.isnan(value) else int(value)
        numbers[key] = own
    others = dict(zip(known["others"], arrays["others"], strict=True))
    return SummedAnswers(
        texts=known["texts"],
        documents=known["documents"],
        lengths=Counter(dict(known["lengths"])),
        counts=known["counts"],
        wholes=dict(zip(keys, wholes, strict=True)),
        hits=dict(zip(keys, hits, strict=True)),
        others=others,
        numbers=numbers,
    )


def _number(value: int | float | None) -> float:
    return np.nan if value is None else float(value)
