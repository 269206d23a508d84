"""Notebooks for BertViz become notebooks for headscope, and run."""

import json

import pytest

from headscope.bertviz.__main__ import main, rewrite_notebook, rewritten
from headscope.errors import FileError


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from bertviz import head_view, model_view",
            "from headscope.bertviz import head_view, model_view",
        ),
        (
            "  from bertviz.neuron_view import show",
            "  from headscope.bertviz.neuron_view import show",
        ),
        ("import bertviz", "import headscope.bertviz as bertviz"),
        ("import bertviz as bv", "import headscope.bertviz as bv"),
        ("import bertviz.util as util  # x", "import headscope.bertviz.util as util  # x"),
        ("import bertviz.util", "import headscope.bertviz as bertviz, headscope.bertviz.util"),
        ("!pip install bertviz", '!pip install "headscope[all]"'),
        ("%pip install -q bertviz==1.4.0 torch", '%pip install -q "headscope[all]" torch'),
        ("x = tok.encode_plus(a, b, return_tensors='pt')", "x = tok(a, b, return_tensors='pt')"),
        ("x = tok.batch_encode_plus([a])", "x = tok([a])"),
        ("attention = outputs[-1]", "attention = outputs.attentions"),
        (
            "attention = model(ids, mask=make(ids))[-1]",
            "attention = model(ids, mask=make(ids)).attentions",
        ),
        (
            "with tok.as_target_tokenizer():\n    ids = tok('a b', "
            "return_tensors='pt').input_ids\nnext_line = 1\n",
            "ids = tok(text_target='a b', return_tensors='pt').input_ids\nnext_line = 1\n",
        ),
        (
            "m = AutoModel.from_pretrained('x', output_attentions=True)",
            "m = AutoModel.from_pretrained('x', output_attentions=True, "
            'attn_implementation="eager")',
        ),
        (
            "m = BertForMaskedLM.from_pretrained(\n    name(),\n    output_attentions=True,\n)",
            "m = BertForMaskedLM.from_pretrained(\n    name(),\n    output_attentions=True,"
            ' attn_implementation="eager")',
        ),
    ],
)
def test_what_is_rewritten(before, after):
    assert rewritten(before)[0] == after
    assert rewritten(after)[0] == after  # and once is enough


@pytest.mark.parametrize(
    "code",
    [
        "from bertvizard import head_view",
        "tokens[-1]",
        "losses = loss(model)[-1]",
        "m = AutoModel.from_pretrained('x')",
        "t = AutoTokenizer.from_pretrained('x', output_attentions=True)",
        "m = AutoModel.from_pretrained('x', output_attentions=True, attn_implementation='eager')",
        "# pip install bertviz",
    ],
)
def test_what_is_left_alone(code):
    assert rewritten(code) == (code, [])


def notebook(path, *cells):
    """A notebook with these cells; a cell that begins with # is Markdown."""
    made = []
    for cell in cells:
        if cell.startswith("#"):
            made.append({"cell_type": "markdown", "metadata": {}, "source": cell})
            continue
        shown = [{"output_type": "stream", "name": "stdout", "text": ["old"]}]
        lines = cell.splitlines(keepends=True)
        made.append(
            {
                "cell_type": "code",
                "execution_count": 3,
                "metadata": {},
                "outputs": shown,
                "source": lines,
            }
        )
    path.write_text(
        json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}),
        encoding="utf-8",
    )
    return path


def test_models_of_one_cell_are_eager_where_another_asks_for_weights(tmp_path):
    old = notebook(
        tmp_path / "two.ipynb",
        "import bertviz\nm = GPT2Model.from_pretrained('x')",
        "m(ids, output_attentions=True)",
    )
    target, _ = rewrite_notebook(old, tmp_path / "new.ipynb")
    first, *_ = json.loads(target.read_text(encoding="utf-8"))["cells"]
    assert "".join(first["source"]).endswith(
        "GPT2Model.from_pretrained('x', attn_implementation=\"eager\")"
    )


def test_on_the_command_line(tmp_path, capsys):
    script = tmp_path / "old.py"
    script.write_text("from bertviz import head_view\n", encoding="utf-8")
    assert main([str(script)]) == 0
    assert (tmp_path / "old-headscope.py").read_text(
        encoding="utf-8"
    ) == "from headscope.bertviz import head_view\n"
    assert "imports from headscope.bertviz" in capsys.readouterr().out
    assert main([str(tmp_path / "gone.ipynb")]) == 1
    assert capsys.readouterr().err.startswith("headscope: Cannot read")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "from bertviz import x", "neither a notebook nor a script"),
        ("a.ipynb", "{}", "does not use BertViz"),
        ("b.ipynb", "bertviz, but no JSON", "is not a notebook of format 4"),
        ("c.ipynb", '{"worksheets": ["bertviz"]}', "is not a notebook of format 4"),
        ("a.py", "x = 1", "does not use BertViz"),
    ],
)
def test_what_cannot_be_rewritten_is_said(name, text, message, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message):
        rewrite_notebook(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
