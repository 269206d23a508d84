"""What is shown of long work: what is done, on terminals as a bar, elsewhere as a line now and
then.
"""

import headscope as hs
from headscope import _progress
from headscope._progress import Progress
from headscope.testing import tiny_model, tiny_tokenizer


def test_a_log_gets_a_line_every_so_often(monkeypatch, capsys):
    start = _progress.time.monotonic()
    with Progress("Reading", "batch", 7) as progress:
        for now in (4.0, 9.0, 12.0, 15.0, 23.0):
            monkeypatch.setattr(_progress.time, "monotonic", lambda now=now: start + now)
            progress.step()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "Reading: 3 of 7 batches",
        "Reading: 5 of 7 batches",
    ]


def test_what_was_before_the_first_text_is_not_in_the_rate(monkeypatch, capsys):
    """Loading a model, or texts of an earlier call."""
    monkeypatch.setattr(_progress, "EVERY", 0)
    with Progress("Measuring", "text", 1000, done=900) as progress:
        for done, now in ((901, 160.0), (921, 170.0)):
            progress._bars.get_time = lambda now=now: now
            progress.reach(done)
    assert capsys.readouterr().err.endswith("921 of 1,000 texts, 2 texts/s, 40 s to go\n")


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
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [f"Capturing: {number} of 4 inputs" for number in (1, 2, 3, 4)]
