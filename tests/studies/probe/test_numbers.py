"""Probes of a real model on a real treebank give the numbers that they gave before they were read
in parts alone.
"""

import json

import pytest

import headscope as hs
from headscope.linguistics import read_treebank

from ...close import assert_same_numbers, numbers_before

KINDS = {
    "attention": {},
    "relation": {"least": 5},
    "structural": {"layer": 2, "rank": 16},
    "edge": {"layers": False, "least": 5},
}


def numbers_of(shared, kind, out=None):
    """The table of a probe that learns for two epochs, as JSON holds it."""
    path = next((shared / "ud-english-ewt").glob("*dev*.conllu"))
    bank = [sentence for sentence in read_treebank(path) if 3 < len(sentence) < 16][:90]
    where = {} if out is None else {"out": out / kind.replace(" ", "_"), "part_size": 40}
    found = hs.probe(None, None, bank, kind=kind, epochs=2, **KINDS[kind], **where)
    columns = {name: found.columns()[name] for name in ("task", "measure", "of", "value", "low")}
    return json.loads(json.dumps(columns))


@pytest.mark.parametrize("name", [*KINDS, "attention in parts"])
def test_numbers_of_a_real_model_stay_what_they_were(name, shared, tmp_path):
    wanted = numbers_before("probe")[name]
    found = numbers_of(
        shared, name.removesuffix(" in parts"), tmp_path if "parts" in name else None
    )
    assert_same_numbers(found, wanted)
