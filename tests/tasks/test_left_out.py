"""One example that cannot be read costs itself: it is named, and the rest goes on as if it had not
been given.
"""

import json

import numpy as np
import pytest

import headscope as hs
from headscope.errors import TextError
from headscope.tasks import (
    classification,
    likeness,
    masked_word,
    minimal_pairs,
    named_task,
    next_word,
    translation,
)
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

GOOD = ["the cat sat on it.", "a dog ran off.", "it was she who sat."]
BAD = {1: "a\ud800b", 2: None, 4: float("nan"), 5: " ", 6: 7, 7: "1 2 3 4"}
REASONS = {
    1: "half of a character",
    2: "NoneType",
    4: "not float",
    5: "empty",
    6: "not int",
    7: "are [UNK]",
}
NUMBERS = (0, 3, 8)


@pytest.fixture(scope="module")
def tokenizer():
    found = tiny_tokenizer()
    found.add_special_tokens({"mask_token": "[MASK]"})
    return found


def mixed(other=None):
    """Nine examples, three of them good: texts, or pairs of a good text and one of these."""
    good = iter(GOOD)
    texts = [BAD[number] if number in BAD else next(good) for number in range(9)]
    return texts if other is None else [(other, text) for text in texts]


def tasks(tokenizer, pairs, texts, kept, **reading):
    """Every task that reads texts, on some of the examples."""
    labels = [number % 2 for number in kept]
    return {
        "next word": lambda: next_word(tokenizer, texts, **reading),
        "masked word": lambda: masked_word(tokenizer, texts, **reading),
        "classification": lambda: classification(tokenizer, texts, labels, **reading),
        "likeness": lambda: likeness(tokenizer, pairs, labels, **reading),
        "minimal pairs": lambda: minimal_pairs(tokenizer, pairs, **reading),
        "translation": lambda: translation(tokenizer, pairs, **reading),
    }


def inputs_of(task):
    """What a task reads, but for numbers that its score alone needs."""
    every = [batch.items() for batch in task.batches]
    return [task.order, *({k: v for k, v in own if hasattr(v, "shape")} for own in every)]


NAMES = list(tasks(None, [], [], []))


@pytest.mark.parametrize("name", NAMES)
def test_bad_examples_are_named_and_cost_themselves(name, tokenizer):
    told = {}
    pairs = [("she sat.", text) for text in GOOD]
    task = tasks(tokenizer, mixed("she sat."), mixed(), range(9), on_error=told.__setitem__)[name]()
    # the good text of a pair makes the share of unknown tokens smaller, but for a target, which is
    # looked at alone
    unknown = {7} if name in ("likeness", "minimal pairs") else set()
    assert set(told) == set(BAD) - unknown
    # [UNK] counts as special, and what is hidden is not
    reasons = REASONS | ({7: "nothing but special tokens"} if name == "masked word" else {})
    assert all(reasons[number] in str(error) for number, error in told.items())
    assert task.left_out == {number: str(told[number]) for number in sorted(told)}
    if not unknown:
        assert_close(inputs_of(task), inputs_of(tasks(tokenizer, pairs, GOOD, NUMBERS)[name]()))


@pytest.mark.filterwarnings("error")
def test_without_a_listener_it_is_a_warning(tokenizer):
    with pytest.warns(
        UserWarning, match="text 1 .from 0. was left out: The text holds half of a character"
    ):
        next_word(tokenizer, [GOOD[0], BAD[1]])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "masked word"])
def test_texts_of_unknown_tokens_are_refused(name, tokenizer):
    texts = ["1 2 3 4", "5 6 7"]
    pairs, kept = [(text, text) for text in texts], range(2)
    with pytest.raises(
        TextError, match=r"of the tokens of the texts are \[UNK\]|tokens of the target are \[UNK\]"
    ):
        tasks(tokenizer, pairs, texts, kept)[name]()
    assert tasks(tokenizer, pairs, texts, kept, allow_unfit=True)[name]().left_out == {}


def test_a_single_one_that_cannot_be_read_is_an_error(tokenizer):
    with pytest.raises(TextError, match="half of a character"):
        next_word(tokenizer, [BAD[1]])
    with pytest.raises(TextError, match="None of the 2 texts can be read"):
        next_word(tokenizer, [BAD[1], BAD[5]])
    with pytest.raises(TextError, match="A task has no option 'truncated'; it has batch, truncate"):
        next_word(tokenizer, GOOD, truncated=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("error")
def test_texts_that_are_cut_are_named_with_what_they_lose(name, tokenizer, monkeypatch):
    texts = ["a cat.", "the cat sat on it and sat on it and on it.", "she sat."]
    pairs = [(text, "a cat.") for text in texts]
    make = tasks(tokenizer, pairs, texts, range(3), truncate=True)[name]
    make()  # nothing is cut, and nobody is warned
    tokens = [len(tokenizer(text)["input_ids"]) for text in texts]
    monkeypatch.setattr(tokenizer, "model_max_length", max(tokens[0], tokens[2]))
    lost = tokens[1] - tokenizer.model_max_length
    said = rf"1 of 3 texts have .* cut off \({lost} tokens\): text 1 .from 0. loses {lost}"
    with pytest.warns(UserWarning, match=said):
        task = make()
    assert not task.left_out


@pytest.mark.parametrize("label", [None, "perhaps", float("nan"), float("inf"), 0.5])
@pytest.mark.parametrize("name", ["classification", "likeness"])
def test_a_bad_label_costs_its_example(name, label, tokenizer):
    if name == "likeness" and label == 0.5:
        pytest.skip("any number says how alike two texts are")
    told = {}
    make = {"classification": classification, "likeness": likeness}[name]
    texts = GOOD if name == "classification" else [("she sat.", text) for text in GOOD]
    task = make(tokenizer, texts, [0, label, 1], on_error=told.__setitem__)
    assert list(task.left_out) == list(told) == [1]
    assert f"The label is {label!r}; expected" in task.left_out[1]
    assert_close(inputs_of(task), inputs_of(make(tokenizer, texts[::2], [0, 1])))


def test_a_bad_label_of_a_file_costs_its_row(tokenizer, tmp_path):
    model = tiny_model("bert")
    model.config.label2id, model.config.id2label = {"no": 0, "yes": 1}, {0: "no", 1: "yes"}
    rows = zip([*GOOD, "a dog sat."], ["No", "perhaps", "7", "yes"], strict=True)
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    task = named_task(
        "classification", model, tokenizer, tmp_path / "a.jsonl", on_error={}.__setitem__
    )
    assert list(task.left_out) == [1, 2]
    assert "line 2 has 'perhaps' (str) for 'label'; expected one of no, yes" in task.left_out[1]
    assert "line 3 has the label 7; the model has 2 classes" in task.left_out[2]
    assert sorted(label for batch in task.batches for label in batch["labels"].tolist()) == [0, 1]


def test_groups_are_those_of_what_is_left(tokenizer):
    model = tiny_model("gpt2", writes=True)
    task = next_word(tokenizer, mixed(), on_error=lambda *_: None)
    # The first two that are left are of one document, whose row is their mean.
    found = hs.ablate(model, task, groups=list("abcaefghi"), layers=False)
    alone = hs.ablate(model, next_word(tokenizer, GOOD), layers=False)
    for ours, theirs in ((found.intact, alone.intact), (found.scores, alone.scores)):
        assert_close(ours, np.stack([theirs[:2].mean(axis=0), theirs[2]]))


def test_texts_longer_than_the_model_reads_are_never_run(tokenizer, monkeypatch):
    # A tokenizer of one's own knows no length; only the model does.
    monkeypatch.setattr(tokenizer, "model_max_length", 10**30)
    model, texts = tiny_model("llama", writes=True), [*GOOD, "the cat sat. " * 40]
    most = model.config.max_position_embeddings
    told = f"A text of the task has .* the model has positions for {most}.*model_max_length"
    with pytest.raises(TextError, match=told):
        hs.ablate(model, next_word(tokenizer, texts), heads=[(0, 0)], allow_unfit=True)
    monkeypatch.setattr(tokenizer, "model_max_length", most)
    with pytest.warns(UserWarning, match="text 3 .from 0. was left out"):
        task = next_word(tokenizer, texts)
    assert hs.ablate(model, task, heads=[(0, 0)], allow_unfit=True).examples == 3
