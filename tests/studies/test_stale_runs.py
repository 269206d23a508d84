"""A run in a folder goes on with the model and tokenizer it was begun with, and no others."""

import numpy as np
import pytest
from tokenizers import processors

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat. it ran on", "go on and on now", "a b c d a b c", "she is here. he is not"]


def bare_tokenizer():
    """One that puts no special tokens around a text."""
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B", special_tokens=[]
    )
    return tokenizer


@pytest.mark.parametrize("run", [hs.heads, hs.norm_study, hs.capture_many])
def test_another_tokenizer_is_refused_by_name(run, tmp_path):
    def made(tokenizer):
        result = run(tiny_model("bert"), tokenizer, TEXTS, out=tmp_path / "run")
        return list(result) if run is hs.capture_many else result

    made(tiny_tokenizer())
    made(tiny_tokenizer())
    with pytest.raises(HeadscopeError, match="tokenizer"):
        made(bare_tokenizer())


def test_other_settings_are_refused_by_name(tmp_path):
    model, other = tiny_model("llama"), tiny_model("llama")
    other.config.rope_parameters = {"rope_type": "default", "rope_theta": 3.0}
    hs.heads(model, tiny_tokenizer(), texts=TEXTS, out=tmp_path / "run")
    with pytest.raises(HeadscopeError, match="config"):
        hs.heads(other, tiny_tokenizer(), texts=TEXTS, out=tmp_path / "run")


@pytest.mark.parametrize("run", [hs.heads, hs.norm_study, hs.atlas])
def test_a_study_of_a_changed_model_says_what_was_changed(run):
    model = tiny_model("bert")
    assert "changed" not in str(run(model, tiny_tokenizer(), texts=TEXTS))
    with hs.intervene(model, hs.Zero(layer=1, heads=[0])):
        changed = run(model, tiny_tokenizer(), texts=TEXTS)
    assert "BertModel (changed: " in str(changed)
    assert run is hs.atlas or "BertModel (changed: " in changed.view().html


@pytest.mark.parametrize("options", [{"rows": 3}, {"top": 2}])
def test_norms_have_no_rows(options):
    with pytest.raises(HeadscopeError, match="rows and top belong to the statistics"):
        hs.capture(tiny_model("bert"), tiny_tokenizer(), "the cat", keep="norms", **options)


def test_weights_come_with_norms_whatever_else_is_kept():
    record = hs.capture(
        tiny_model("bert"), tiny_tokenizer(), "the cat sat", keep=("values", "norms")
    )
    alone = hs.capture(tiny_model("bert"), tiny_tokenizer(), "the cat sat", keep="norms")
    np.testing.assert_allclose(record["self"].weights(), alone["self"].weights(), atol=1e-6)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_end_where_lines_end(mark, tmp_path):
    texts, rows = tmp_path / "t.txt", tmp_path / "r.jsonl"
    texts.write_text(f"{mark}one line \u2028 same\nthe cat\n", encoding="utf-8")
    rows.write_text(f'{mark}{{"text": "one line \u2028 same"}}\n"the cat"\n', encoding="utf-8")
    for path in (texts, rows):
        read = list(hs.capture_many(tiny_model("bert"), tiny_tokenizer(), str(path)))
        assert [record.texts for record in read] == [("one line \u2028 same",), ("the cat",)]
