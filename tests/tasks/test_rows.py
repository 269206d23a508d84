"""Tables as GLUE, BLiMP and people write them."""

import json

import pytest

import headscope as hs
from headscope.errors import FileError
from headscope.storage import given_labels, given_pairs, read_groups, read_rows, read_texts

TABLES = {
    "mrpc.tsv": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    '1\t7\t8\tHe said "so.\tShe said" so.\n0\t1\t2\tA\tB\n',
    "rte.tsv": "index\tsentence1\tsentence2\tlabel\n"
    '0\tHe said "so.\tShe said" so.\tentailment\n1\tA\tB\tNot_Entailment\n',
    "own.csv": 'text,text_b,label\n"He said ""so.","She said"" so.",1\nA,B,0\n',
    "own.jsonl": '{"premise": "He said \\"so.", "hypothesis": "She said\\" so.", "label": 1}\n\n'
    '{"premise": "A", "hypothesis": "B", "label": 0}\n',
}
NAMES = {"entailment": 1, "not_entailment": 0}


@pytest.mark.parametrize("name", TABLES)
def test_pairs_and_labels(name, tmp_path):
    (tmp_path / name).write_text(TABLES[name], encoding="utf-8")
    rows = read_rows(tmp_path / name)
    assert given_pairs(rows, name) == [('He said "so.', 'She said" so.'), ("A", "B")]
    assert given_labels(rows, name, NAMES) == [1.0, 0.0]


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    import pyarrow as pa

    parquet.write_table(
        pa.table({"sentence_good": ["A b."], "sentence_bad": ["B a."]}), tmp_path / "a.parquet"
    )
    assert read_texts(tmp_path / "a.parquet") == [("A b.", "B a.")]


def test_bare_texts(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n two \n", encoding="utf-8")
    assert read_texts(tmp_path / "a.txt") == ["one", "two"]
    (tmp_path / "a.jsonl").write_text(
        json.dumps("one") + "\n" + json.dumps(["two", "three"]) + "\n", encoding="utf-8"
    )
    assert read_texts(tmp_path / "a.jsonl") == ["one", ("two", "three")]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.pdf", "", "is not a file of texts; expected .txt, .jsonl, .csv, .tsv, .parquet"),
        ("a.csv", "", "holds no example"),
        ("a.jsonl", '{"text": 1', "cannot be read: line 1: "),
        ("a.jsonl", "1", "line 1 is neither an object, a text nor a list"),
        ("a.jsonl", '["a", "b", "c"]', "line 1 is a list of 3; expected 1 or 2 texts"),
        ("a.csv", "words\nx\n", "has the fields words; expected one of text, sentence1"),
    ],
)
def test_what_cannot_be_read_is_said(name, content, line, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=line.replace(".", r"\.")):
        read_texts(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('text\nfine\n"an open one\nlost\nlost too\n', "the row from line 3 on: unexpected end"),
        ('text\n"so" it is\nfine\n', "the row from line 2 on: "),
        ('text\n"two\nlines"\n"an open one\n', "the row from line 4 on: "),
    ],
)
def test_an_open_quotation_mark_swallows_no_text(content, line, tmp_path):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=line + ".*close each quotation mark"):
        read_rows(tmp_path / "a.csv")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_another_encoding_is_named_with_advice(name, encoding, tmp_path):
    (tmp_path / name).write_text('"text"\n"café"\n', encoding=encoding)
    with pytest.raises(FileError, match="is not written in UTF-8 .*; save it as UTF-8"):
        read_rows(tmp_path / name)


def test_labels_that_are_none_are_said():
    known, unknown = given_labels([{"label": "entailment"}, {"label": "maybe"}], "t", NAMES)
    assert known == 1
    assert str(unknown) == (
        "t, row 2 has 'maybe' (str) for 'label'; expected one of entailment, not_entailment"
    )
    (missing,) = given_labels([{"label": None}], "t")
    assert str(missing) == "t, row 1 has no 'label'; expected a number"
    with pytest.raises(FileError, match="t has the fields text; expected one of label"):
        given_labels([{"text": "a"}], "t")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"text": 5}', "has 5 (int) for 'text'; expected a string, or a list of messages"),
        ('{"text": ["a", 3]}', "has ['a', 3] (list) for 'text'; expected a string"),
        ('{"text": {"a": 3}}', "has {'a': 3} (dict) for 'text'; expected a string"),
        ('{"text": null}', "has no 'text'; expected a string"),
        ('{"text": "b", "text_b": 7}', "has 7 (int) for 'text_b'; expected a string"),
    ],
)
def test_a_field_of_another_type_is_named_with_its_line(row, said, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('\n{"text": "a", "text_b": "b"}\n\n' + row + "\n")
    first, error = read_texts(path)
    assert first == ("a", "b")
    assert str(error).startswith(f"{path}, line 4 {said}")
    with pytest.raises(FileError, match="line 4"):
        hs.heads(None, None, tmp_path / "a.jsonl", on_error=_raise)


def test_a_group_is_a_name(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "group": ["b"]}\n')
    with pytest.raises(FileError, match=r"line 1 has \['b'\] \(list\) for 'group'; expected a"):
        read_groups(read_rows(tmp_path / "a.jsonl"))


def _raise(_number, error):
    raise error
