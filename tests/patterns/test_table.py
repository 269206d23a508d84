"""Tables of results, with the real libraries."""

import math
from importlib.util import find_spec

import numpy as np
import pytest

from headscope.patterns import heads
from headscope.testing import tiny_model, tiny_tokenizer

# Looked for, not imported: every worker collects this file, and one runs it.
pytestmark = [
    pytest.mark.skipif(find_spec(name) is None, reason=f"needs {name}")
    for name in ("pandas", "polars", "pyarrow")
]


@pytest.fixture(scope="module")
def results(planted_records):
    import headscope as hs

    found = heads(planted_records)
    live = hs.mechanism(
        hs.capture_many(tiny_model("bert"), tiny_tokenizer(), ["the cat", "it sat on me"])
    )
    return {"heads": found, "one text": heads(planted_records[0]), "mechanism": live}


@pytest.mark.parametrize("name", ["heads", "one text", "mechanism"])
def test_tables_hold_what_the_result_holds(results, name):
    found = results[name]
    columns = found.columns()
    size = len(next(iter(columns.values())))
    import pandas
    import polars
    import pyarrow

    frame, table, arrow = found.to_pandas(), found.to_polars(), found.to_arrow()
    assert isinstance(frame, pandas.DataFrame)
    assert isinstance(table, polars.DataFrame)
    assert isinstance(arrow, pyarrow.Table)
    assert list(frame.columns) == table.columns == arrow.column_names == list(columns)
    assert len(frame) == table.height == arrow.num_rows == size > 0
    for column, values in columns.items():
        for other in (frame[column].tolist(), table[column].to_list(), arrow[column].to_pylist()):
            assert all(map(alike, other, values)), column


def test_tables_hold_the_measures_and_classes_that_are_printed(results):
    found = results["heads"]
    columns = found.columns()
    for name, values in [
        *found.measures.items(),
        *((f"class {each}", of) for each, of in found.classes.items()),
    ]:
        by_head = dict(zip(found.cells, values, strict=True))
        wanted = [by_head[cell] for cell in zip(columns["layer"], columns["head"], strict=True)]
        np.testing.assert_equal(columns[name], wanted)
    assert {
        "entropy",
        "confidence",
        "distance",
        "self",
        "special",
        "class vertical",
    } <= columns.keys()
    assert len(set(columns["entropy"])) > 1


def alike(one, other):
    both_missing = (
        isinstance(other, float)
        and math.isnan(other)
        and isinstance(one, float)
        and math.isnan(one)
    )
    return both_missing or one == other


def test_types_are_those_of_numbers_truths_and_words(results):
    arrow = results["heads"].to_arrow().schema
    assert [str(arrow.field(name).type) for name in ("layer", "score", "pattern", "holds")] == [
        "int64",
        "double",
        "string",
        "bool",
    ]
    frame = results["heads"].to_pandas()
    assert frame["score"].dtype == np.float64
    assert frame[frame["holds"]].groupby("pattern", sort=False)["score"].max()["next"] == max(
        label.score for label in results["heads"].labels if label.pattern == "next"
    )
    import polars

    held = results["heads"].to_polars().filter(polars.col("holds"))
    assert held.height == len(results["heads"].labels)
