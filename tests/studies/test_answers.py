"""Answers to many prompts by the small retrieval model, whose heads are known."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, MistralConfig

import headscope as hs
from headscope.answering import DEMO
from headscope.capturing import load_model
from headscope.errors import RecordError

from ..close import assert_close

CODES = {"mill": "amber falcon", "library": "seven", "tower": "copper stone", "barn": "otter"}
FACTS = {place: f"The code of the {place} is {code}." for place, code in CODES.items()}


def prompts():
    """Three that need the document of their place, one that two hold, one that none does."""
    texts = list(FACTS.values())
    asked = [{"documents": texts, "question": f"Which code opens the {each}?"} for each in CODES]
    copied = [*texts, "Otter opens the barn."]
    asked[3] = {"documents": copied, "question": "Which code opens the barn?"}
    return [*asked, {"documents": texts, "question": "Which code opens the chapel?"}]


@pytest.fixture(scope="module")
def readers():
    return load_model(str(DEMO), writes=True)


@pytest.fixture(scope="module")
def found(readers):
    return hs.answers(*readers, prompts(), random_weights=True)


def test_shares_are_of_the_prompts(found):
    assert found.texts == 5
    assert found.share("parts")[0] == pytest.approx(0.6)
    assert found.share("any")[0] == pytest.approx(0.2)
    assert found.share("none")[0] == pytest.approx(0.2)
    assert found.share("agrees")[0] == 1
    # Where all say the same, others may not.
    assert found.share("agrees")[1] < 1 == found.share("agrees")[2]
    assert found.share("several")[:2] == (0, 0) < found.share("several")[1:]
    # One of four documents three times, one or two of five once.
    assert found.share("chance")[0] in (pytest.approx(0.95 / 4), pytest.approx(1.15 / 4))
    assert "needed one or more 60 %" in found.summary


def test_the_planted_heads_are_found(found):
    assert found.best_heads(1) == [(2, 0)]
    head = found.to_pandas().set_index(["layer", "head"]).loc[(2, 0)]
    assert head["share"] > 0.7
    assert (head["agrees"], head["copies"]) == (1, pytest.approx(1, abs=0.3))
    assert head["share_low"] <= head["share"] <= head["share_high"]
    assert "2-0" in found.table()


def test_it_is_the_fold_of_single_answers(found, readers):
    singles = [hs.answer(*readers, prompt) for prompt in prompts()[:4]]
    shares = [each.head_shares()[list(each.verdict.parts)].sum(axis=0) for each in singles]
    assert_close(found.heads[0, :, 0], np.mean(shares, axis=0).ravel(), atol=1e-6)
    lifts = [np.mean(each.lift()[list(each.verdict.parts)]) for each in singles]
    assert found.share("lift")[0] == pytest.approx(np.mean(lifts), abs=1e-6)


def test_heads_are_drawn_with_their_intervals(found, tmp_path):
    found.plot(tmp_path / "answers.svg")
    drawn = (tmp_path / "answers.svg").read_text(encoding="utf-8")
    assert "heads that look at what answers needed" in drawn
    assert all(f"{layer}-{head}" in drawn for layer, head in found.best_heads(12))
    assert "retrieval score" in drawn
    with pytest.raises(hs.errors.FigureError, match="heads"):
        found.figure(heads=0)


def test_one_prompt_is_one(readers):
    one = hs.answers(*readers, prompts()[:1])
    assert "1 prompt. Answers" in one.summary
    assert "Of 1 prompt in which" in one.summary
    assert repr(one) == "<Answers to 1 prompt>"


def test_it_is_added_up_and_kept(found, readers, tmp_path):
    rows = [row | {"id": str(number)} for number, row in enumerate(prompts())]
    first, second = (hs.answers(*readers, part) for part in (rows[:2], rows[2:]))
    assert first.texts + second.texts == 5
    again = hs.load(found.save(tmp_path / "answers.safetensors"))
    assert str(again) == str(found)
    assert again.control is not None


def test_a_run_in_parts_gives_the_same(found, tmp_path):
    rows = [each | {"name": str(number)} for number, each in enumerate(prompts())]
    kept = hs.answers(DEMO, None, rows, out=tmp_path / "run", part_size=2)
    assert_close(kept.heads, found.heads, atol=1e-6)


def test_prompts_without_parts_are_left_out(readers):
    with pytest.raises(RecordError, match="no parts that can be compared"):
        hs.answers(*readers, ["Which code opens the mill?"], on_error=lambda *_: None)


@pytest.mark.parametrize("need", [None, "bad"])
def test_how_parts_are_cut_is_checked_before_a_model_is_loaded(need):
    with pytest.raises(RecordError, match=r"need is .*it may be 'cut'"):
        hs.answers("no-such-model", prompts=prompts(), need=need)


def test_it_is_said_why_there_is_no_control(readers):
    texts = ["The code of the mill is amber falcon.", "The road was quiet on Friday."]
    asked = [{"documents": texts, "question": "What is the code of the mill?"}]
    model = deepcopy(readers[0])
    # So that its random weights are 0, and the special token with number 0 is all they write.
    model.config.initializer_range = 0.0
    with pytest.warns(UserWarning, match="no control with random weights: No prompt is left"):
        found = hs.answers(model, readers[1], asked, random_weights=True)
    assert found.control is None


def windowed(tokenizer, seed, window):
    """A model with random weights whose rows see so many tokens."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": window}
    config = MistralConfig(vocab_size=len(tokenizer), eos_token_id=None, **sizes, **heads)
    model = AutoModelForCausalLM.from_config(config).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.data.normal_(0, 0.6)
    return model, tokenizer


@pytest.mark.parametrize("window", [6, 40])
def test_what_cannot_be_seen_is_not_compared(readers, window):
    rows = [{"documents": [each], "question": "What is the code?"} for each in FACTS.values()]
    rows += prompts()[::2]
    for seed in range(2):
        given = windowed(readers[1], seed, window)
        found = hs.answers(*given, rows, max_new_tokens=3)
        chances = []
        for row in rows:
            one = hs.answer(*given, row, max_new_tokens=3, allow_unfit=True)
            seen = {at for at in one.candidates if one.even_share()[at] > 0}
            meant = seen.intersection(one.verdict.parts)
            if meant and len(seen) > 1:
                chances.append(len(meant) / len(seen))
        assert found.texts == len(rows)
        assert "nan" not in str(found)
        if chances:
            assert found.share("chance")[0] == pytest.approx(np.mean(chances))
            of = "prompt" if len(chances) == 1 else "prompts"
            assert f"Of {len(chances)} {of} in which" in found.summary
        else:
            assert np.isnan(found.share("agrees")[0])
