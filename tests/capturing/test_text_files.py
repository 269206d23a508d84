"""The name of a file of texts is read as the file, or refused; it is never read as a text."""

import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import headscope as hs
from headscope.capturing import generate_many
from headscope.cli import run
from headscope.errors import FileError, RecordError, TextError
from headscope.interventions import Zero
from headscope.tasks import next_word
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ("the cat sat on a mat", "it slept well", "dogs ran off")
GROUPS = ("novel", "novel", "news")


@pytest.fixture(scope="module")
def read():
    return tiny_model("gpt2", writes=True), tiny_tokenizer()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("\n".join(TEXTS))
    Path("notes").write_text("\n".join(TEXTS))
    rows = [{"text": text, "group": group} for text, group in zip(TEXTS, GROUPS, strict=True)]
    Path("texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = ["text,group", *(f"{row['text']},{row['group']}" for row in rows)]
    Path("texts.csv").write_text("\n".join(lines))
    Path("texts.tsv").write_text("\n".join(lines).replace(",", "\t"))
    return tmp_path


@pytest.mark.parametrize("name", ["texts.txt", "texts.jsonl", "texts.csv", "texts.tsv"])
@pytest.mark.parametrize("of", [str, Path])
def test_studies_read_a_file_as_the_command_line_does(name, of, read, folder):
    wanted = hs.heads(*read, list(TEXTS), groups=None if name == "texts.txt" else GROUPS)
    assert str(hs.heads(*read, of(name))) == str(wanted)


def test_a_run_reads_a_file_with_its_documents(read, folder):
    found = hs.heads(*read, "texts.csv", out="run", progress=False)
    assert "3 texts of 2 documents" in found.summary


OTHERS = {
    "capture_many": lambda *of: len(list(hs.capture_many(*of))),
    "generate_many": lambda *of: len(list(generate_many(*of, max_new_tokens=1))),
    "norm_study": lambda *of: hs.norm_study(*of).texts,
    "effect": lambda *of: len(hs.effect(*of, interventions=[Zero(layer=0, heads=[0])]).outputs),
    "next_word": lambda _, *of: sum(len(one["input_ids"]) for one in next_word(*of).batches),
}


@pytest.mark.parametrize("name", OTHERS)
def test_so_do_others_that_take_many_texts(name, read, folder):
    assert OTHERS[name](*read, Path("texts.txt")) == len(TEXTS)


@pytest.mark.parametrize("given", ["texts.txt", "gone.csv", "notes", Path("texts.txt")])
def test_one_text_is_not_the_name_of_a_file(given, read, folder):
    for act in (hs.capture, hs.generate):
        with pytest.raises(TextError, match="Expected one text, got the name of a file"):
            act(*read, given)
    assert len(hs.capture(*read, "we read texts.txt today")["self"].query) > 4


def test_a_file_that_is_not_there_is_no_text(read, folder):
    with pytest.raises(FileError, match="gone.txt does not exist"):
        hs.heads(*read, "gone.txt")
    with pytest.raises(FileError, match=r"notes is not a file of texts; expected .txt"):
        hs.heads(*read, "notes")


@pytest.mark.parametrize("name", ["TEXTS.CSV", " texts.txt ", "texts.Txt\n"])
def test_neither_case_nor_blanks_make_a_name_a_text(name, read, folder):
    Path("texts.csv").rename("TEXTS.CSV")
    Path("texts.txt").with_name("texts.Txt").write_text("\n".join(TEXTS))
    assert len(list(hs.capture_many(*read, name))) == len(TEXTS)
    with pytest.raises(TextError, match="Expected one text, got the name of a file"):
        hs.capture(*read, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.CSV", "missing.CSV does not exist"),
        ("t.txt.gz", "t.txt.gz is not a file of texts; unpack it first; expected .txt"),
        ("notes.json", "notes.json is not a file of texts; expected .txt"),
    ],
)
def test_a_file_that_cannot_be_read_is_no_text(name, message, read, folder):
    with pytest.raises(FileError, match=message):
        hs.heads(*read, name)


def test_names_of_files_in_a_list_are_no_texts(read, folder):
    message = "text 'texts.txt' is the name of a file; give what the file holds; where many"
    with pytest.warns(UserWarning, match=message), pytest.raises(RecordError, match=message):
        hs.norm_study(*read, ["texts.txt"])
    with pytest.warns(UserWarning, match=message):
        assert len(list(hs.capture_many(*read, [TEXTS[0], "texts.txt"]))) == 1


def test_neither_are_those_in_a_pair_or_a_row(read, folder):
    message = "text 'texts.txt' is the name of a file"
    for given in ([TEXTS[0], "texts.txt"], {"text": "texts.txt"}, {"sentence1": "texts.txt"}):
        with pytest.warns(UserWarning, match=message):
            assert len(list(hs.capture_many(*read, [TEXTS[0], given]))) == 1
    with pytest.raises(TextError, match=message):
        hs.capture(*read, TEXTS[0], "texts.txt")


def test_names_of_files_are_no_documents(folder):
    with pytest.raises(TextError, match="document 2 'texts.txt' is the name of a file; give what"):
        hs.answer(None, documents=[TEXTS[0], "texts.txt"], question="What is the code?")


PAIRS = [
    ("text", "text_pair"),
    ("text", "text_b"),
    ("question", "context"),
    ("sentence1", "sentence2"),
]


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_rows_of_a_file_are_read_as_the_same_rows_in_memory(names, read, folder):
    """A second text is not lost because of the name of its column."""
    row = dict(zip(names, TEXTS, strict=False)) | {"source": "web"}
    Path("rows.jsonl").write_text(json.dumps(row))
    (wanted,) = hs.capture_many(*read, [row])
    (found,) = hs.capture_many(*read, "rows.jsonl")
    assert found["self"].query.labels == wanted["self"].query.labels
    assert "".join(found["self"].query.labels).count("slept") == 1


def test_a_conversation_is_not_its_source(read, folder):
    row = {"messages": [{"role": "user", "content": TEXTS[0]}], "source": "web"}
    Path("rows.jsonl").write_text(json.dumps(row))
    with (
        pytest.warns(UserWarning, match="chat template"),
        pytest.raises(RecordError, match="chat template"),
    ):
        hs.norm_study(*read, "rows.jsonl")


@pytest.mark.parametrize(
    "command",
    ["heads", "view", "norms", "capture --out a.safetensors", "generate --model none --out a.html"],
)
def test_neither_is_it_on_the_command_line(command, folder, capsys):
    assert run([*command.split(), "texts.txt"]) == 1
    assert "--texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("two.csv", "text,text\nthe cat,it sat\n"),
        ("two.tsv", "text\ttext\nthe cat\tit sat\n"),
        ("two.jsonl", '{"text": "the cat", "text": "it sat"}\n'),
    ],
)
def test_two_columns_of_one_name_are_refused(name, content, read, folder):
    Path(name).write_text(content)
    with pytest.raises(FileError, match=f"{name} cannot be read: .*wo fields are called 'text'"):
        hs.heads(*read, name)
    Path("one.csv").write_text("text,,\nthe cat sat,,\nit sat,,\n")
    assert hs.heads(*read, "one.csv").texts == 2
    table = pyarrow.table([["the cat"], ["it sat"]], names=["text", "text"])
    with pytest.raises(RecordError, match="Two fields are called 'text'; give each a name"):
        hs.heads(*read, table)
    parquet.write_table(table, "two.parquet")
    with pytest.raises(FileError, match="Two fields are called 'text'"):
        hs.heads(*read, "two.parquet")


def test_an_address_is_not_read_as_a_file(read):
    with pytest.raises(FileError, match=r"x\.txt is an address; save it as a file"):
        hs.heads(*read, "https://example.com/x.txt")
    with pytest.raises(FileError, match=r"nowhere.x\.txt does not exist"):
        hs.heads(*read, "nowhere/x.txt")


def test_a_file_of_messages_goes_to_chat(folder, capsys):
    Path("chat.json").write_text(json.dumps([{"role": "user", "content": "the cat"}]))
    assert run(["capture", "chat.json", "--out", "a.safetensors"]) == 1
    assert "a conversation with --chat" in capsys.readouterr().err.replace("\n", " ")
