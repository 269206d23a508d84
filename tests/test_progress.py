"""What is shown of long work: what is done, on terminals as a bar, elsewhere as a line now and
then.
"""

import sys

import headscope as hs
from headscope import _progress
from headscope._progress import Progress, counted
from headscope.testing import tiny_model, tiny_tokenizer


def test_a_file_gets_a_line_every_so_often(monkeypatch, capsys):
    clock = iter([0.0, 4.0, 9.0, 12.0, 12.0, 15.0, 23.0, 23.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    with Progress("Reading", "batch", 7) as progress:
        for _ in range(5):
            progress.step()
    assert (
        capsys.readouterr().err
        == "Reading: 3 of 7 batches after 12 s\nReading: 5 of 7 batches after 23 s\n"
    )


def test_an_item_counts_when_it_is_done(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "EVERY", 0)
    done = []
    for item in counted(iter("abc"), "Reading", "letter", shows=True):
        done.append((item, capsys.readouterr().err.partition(" after")[0]))
    assert done == [("a", ""), ("b", "Reading: 1 letters"), ("c", "Reading: 2 letters")]
    list(counted("abc", "Reading", "letter", shows=False))
    assert capsys.readouterr().err.startswith("Reading: 3 letters after")


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress("Reading", "text", 3) as progress:
        progress.step(2)
    assert "Reading:  67%" in capsys.readouterr().err


def test_captures_count_what_was_run_and_what_was_left_out(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "EVERY", 0)
    texts = ["a cat", "", "a dog ran", "the hen sat there"]
    records = hs.capture_many(
        tiny_model("bert"),
        tiny_tokenizer(),
        texts,
        batch_size=1,
        progress=True,
        on_error=lambda *_: None,
    )
    list(records)
    lines = [line.partition(" after")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [f"Capturing: {number} of 4 inputs" for number in (1, 2, 3, 4)]
