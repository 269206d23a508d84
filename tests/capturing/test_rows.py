"""Rows of data sets as texts, whatever their columns are called."""

import pytest

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

ROWS = {
    "text and label": ({"text": "a cat", "label": 1}, ("a cat",)),
    "GLUE, one": ({"sentence": "a cat", "label": 1, "idx": 7}, ("a cat",)),
    "GLUE, pairs": ({"sentence1": "a cat", "sentence2": "a dog", "idx": 7}, ("a cat", "a dog")),
    "NLI": ({"premise": "a cat", "hypothesis": "a dog", "label": None}, ("a cat", "a dog")),
    "SQuAD": (
        {"id": "x", "title": "t", "context": "a dog", "question": "a cat", "answers": {}},
        ("a cat", "a dog"),
    ),
    "ours": ({"text": "a cat", "text_b": "a dog", "group": "n"}, ("a cat", "a dog")),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_read_whatever_their_columns_are_called(name):
    row, texts = ROWS[name]
    records = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), [row]))
    assert [record.texts for record in records] == [texts]


class QueryRows:
    """As `datasets.Dataset` is: rows by iteration, a length, and no sequence."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)


def test_any_iterable_of_rows_is_read_by_captures_and_studies():
    rows = QueryRows(
        [
            {"sentence": text, "label": 0, "idx": 1}
            for text in ("a cat sat", "a dog ran", "the hen is here")
        ]
    )
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    assert len(list(hs.capture_many(model, tokenizer, rows))) == 3
    assert "3 texts" in repr(hs.heads(model, tokenizer, rows, battery=False))


def test_data_sets_of_hugging_face_are_read():
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    rows = datasets.Dataset.from_dict({"sentence": ["a cat sat", "a dog ran"], "label": [0, 1]})
    records = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), rows))
    assert [record.texts for record in records] == [("a cat sat",), ("a dog ran",)]


def test_tables_are_rows():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pandas.DataFrame({"sentence": ["a cat sat", "a dog ran"], "label": [0, 1]})
    for table in (frame, pyarrow.Table.from_pandas(frame)):
        records = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), table))
        assert [record.texts for record in records] == [("a cat sat",), ("a dog ran",)]
