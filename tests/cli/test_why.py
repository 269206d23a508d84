"""headscope why, of the small model that ships with headscope: its figure."""

import json

import pytest

import headscope as hs
from headscope.answering import DEMO
from headscope.cli import run

pytest.importorskip("matplotlib", reason="needs the extra figures")

DOCUMENTS = [
    "At the library they use seven. The road was quiet on Friday.",
    "The code of the mill is amber falcon. It rained near the barn on Monday.",
    "Copper opens the tower. Nobody at the mill remembers the code.",
]
CHAT = [{"role": "document", "content": text} for text in DOCUMENTS]
CHAT.append({"role": "user", "content": "What is the code of the library?"})


def test_the_figure_is_drawn(here, capsys):
    (here / "chat.json").write_text(json.dumps(CHAT))
    # Without a model it is the small one that ships.
    assert run(["why", "--chat", "chat.json", "--plot", "why.svg"]) == 0
    assert "“seven” 100 %" in (here / "why.svg").read_text(encoding="utf-8")
    assert "why.svg" in capsys.readouterr().out


def test_what_is_refused_has_no_figure_and_is_kept(here, capsys):
    files = ["--save", "why.safetensors", "--plot", "why.svg"]
    assert run(["why", "The old road", "--model", str(DEMO), "--allow-unfit", *files]) == 1
    out, err = capsys.readouterr()
    kept = hs.load("why.safetensors")
    assert kept.refusal
    assert kept.refusal in err
    assert "Traceback" not in err
    assert str(kept) in out
    assert not (here / "why.svg").exists()
