"""The rate that a run prints is that of its texts, not that of loading a model."""

import pytest

from headscope.corpus import _progress
from headscope.corpus._progress import ProgressLine, RunStatus


def test_what_was_before_the_first_text_does_not_slow_the_rate(monkeypatch):
    now = 100.0
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    status = RunStatus(400, begun=100.0)
    now = 160.0  # a minute for the model
    assert "texts/s" not in status.line()
    status.finished = 4
    now = 161.0
    assert "4 of 400 texts, 396 left, 0.0656 texts/s" in status.line()
    status.finished = 44
    now = 165.0
    assert status.line() == "44 of 400 texts, 356 left, 10 texts/s, 36 s to go, 0 failed"


def test_texts_of_an_earlier_call_are_not_in_the_rate(monkeypatch):
    now = 0.0
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    status = RunStatus(1000, finished=900, before=900, begun=0.0)
    now = 10.0
    assert "texts/s" not in status.line()
    status.finished = 910
    now = 20.0
    assert "0.5 texts/s" in status.line()
    status.finished = 930
    now = 30.0
    assert "2 texts/s, 35 s to go" in status.line()


@pytest.mark.parametrize(("last", "printed"), [("6 of 6 texts", 1), ("7 of 7 texts", 2)])
def test_a_log_ends_with_one_line_for_the_same_counts(monkeypatch, capsys, last, printed):
    monkeypatch.setattr(_progress, "place_of", lambda: "log")
    lines = iter(["6 of 6 texts, 17.8 texts/s, 0 failed", f"{last}, 17.7 texts/s, 0 failed"])
    shown = ProgressLine(lambda: next(lines))
    shown._show()
    shown._show(last=True)
    assert len(capsys.readouterr().err.splitlines()) == printed
