"""A run gives the same, whoever does it, and goes on after whatever ended it."""

import json

import pytest
from words_job import WordsJob, done, ran

from headscope.corpus import CorpusText, engine_of, pool
from headscope.errors import FileError, RunError, TextError


def test_the_same_call_again_measures_nothing(corpus, tmp_path):
    log = tmp_path / "log"
    texts = [*corpus, CorpusText(f"count:{log}")]
    first = done(texts, out=tmp_path / "run", part_size=10)
    tried_out = len(log.read_text().splitlines())
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "parts").iterdir()}
    assert done(texts[::-1], out=tmp_path / "run") == first
    again = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "parts").iterdir()}
    assert again == files
    # The sample is tried out in every call, since the model may be another one.
    assert len(log.read_text().splitlines()) in (tried_out, 2 * tried_out - 1)


def test_only_what_is_missing_is_measured(corpus, tmp_path):
    first = done(corpus, out=tmp_path / "run", part_size=10)
    parts = sorted((tmp_path / "run" / "parts").iterdir())
    before = {path: path.stat().st_mtime_ns for path in parts}
    parts[2].unlink()
    # As after a machine that stopped in between, on a file system that forgot the end.
    parts[4].write_bytes(parts[4].read_bytes()[:200])
    assert done(corpus, out=tmp_path / "run") == first
    changed = {path for path in parts if path.stat().st_mtime_ns != before[path]}
    assert changed == {parts[2], parts[4]}


def test_a_part_whose_numbers_were_damaged_is_refused(corpus, tmp_path):
    done(corpus, out=tmp_path / "run", part_size=10)
    part = sorted((tmp_path / "run" / "parts").iterdir())[0]
    content = bytearray(part.read_bytes())
    content[-3] ^= 1
    part.write_bytes(content)
    with pytest.raises(FileError, match="is damaged"):
        done(corpus, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (WordsJob(weights="b"), r'weights "a", now "b"'),
        (WordsJob(takes=1e-9), r"takes 0\.0, now 1e-09"),
    ],
)
def test_another_run_is_refused_by_name(corpus, tmp_path, job, named):
    done(corpus, out=tmp_path / "run")
    with pytest.raises(RunError, match=rf"was begun with something else: {named}"):
        done(corpus, job, out=tmp_path / "run")


def test_other_code_is_refused_by_name(corpus, tmp_path, monkeypatch):
    done(corpus, out=tmp_path / "run")
    for module in ("_task", "_run"):
        monkeypatch.setattr(f"headscope.corpus.{module}.code_version", lambda: "0" * 8)
    with pytest.raises(RunError, match=r'headscope ".*now "code 00000000'):
        done(corpus, out=tmp_path / "run")


def test_a_part_of_another_run_is_refused_by_name(corpus, tmp_path):
    done(corpus, out=tmp_path / "one")
    done(corpus, WordsJob(weights="b"), out=tmp_path / "two")
    part = sorted((tmp_path / "two" / "parts").iterdir())[0]
    (tmp_path / "one" / "parts" / part.name).write_bytes(part.read_bytes())
    with pytest.raises(RunError, match=r'made with something else: weights "b", now "a"'):
        done(corpus, out=tmp_path / "one")


def test_other_texts_and_sizes_are_refused(corpus, tmp_path):
    done(corpus, out=tmp_path / "run", part_size=10)
    with pytest.raises(RunError, match=r"begun with other texts \(90, .* given now \(89, "):
        done(corpus[1:], out=tmp_path / "run")
    with pytest.raises(RunError, match="parts of 10 texts, and part_size is 11"):
        done(corpus, out=tmp_path / "run", part_size=11)


def test_a_folder_of_something_else_is_refused(corpus, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"holds thesis\.tex and no run"):
        done(corpus, out=tmp_path)


def test_two_calls_do_not_drive_one_run(corpus, tmp_path):
    first = ran(corpus, out=tmp_path / "run")
    with first, pytest.raises(RunError, match="Another call works in"):
        done(corpus, out=tmp_path / "run")


def test_texts_that_cannot_be_measured_are_named(corpus, tmp_path):
    bad = [CorpusText("please fail", "d1"), TextError("A text is a string"), CorpusText("fail")]
    first = done([*corpus, *bad], out=tmp_path / "run", part_size=30)
    failed = (tmp_path / "run" / "failed.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in failed]
    assert [line["input"] for line in lines if "input" in line] == [len(corpus) + 1]
    assert sorted(line["error"] for line in lines) == [
        "A text is a string",
        "ValueError: it says fail",
        "ValueError: it says fail",
    ]
    assert first[1] == done(corpus)[1]


def test_nothing_to_measure_is_an_error(tmp_path):
    with pytest.raises(TextError, match="was given no text"):
        done([])
    with pytest.raises(TextError, match="None of the 1 inputs of the run is a text: a number"):
        done([TextError("a number")])


def test_what_is_measured_beside_the_texts(corpus):
    with ran(corpus, engine=pool(1)) as finished:
        said, arrays = finished.beside
    assert said == {"of": "nothing"}
    assert arrays["one"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"workers": 0, "executor": None}, "from 1 on, not 0"),
        ({"workers": True, "executor": None}, "from 1 on, not True"),
        ({"workers": 2, "executor": object()}, "has its own workers"),
        ({"workers": None, "executor": object()}, "executor is object; give a concurrent"),
    ],
)
def test_bad_engines_are_refused(options, match):
    with pytest.raises(RunError, match=match):
        engine_of(**options)
