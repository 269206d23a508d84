"""Likelihoods against the loss that transformers computes of single texts."""

import numpy as np
import pytest
import torch

from headscope.errors import InterventionError, TextError
from headscope.tasks import masked_word, next_word, repeats, translation
from headscope.testing import tiny_model, tiny_tokenizer

from ..processors import with_head
from .conftest import TEXTS


def test_next_words_are_those_of_single_texts(writer, tokenizer, scored):
    found, values = scored(next_word(tokenizer, TEXTS, batch=2), writer)
    for text, score, right in zip(TEXTS, found, values[:, 1], strict=True):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            output = writer(input_ids=ids, labels=ids)
        assert score == pytest.approx(-output.loss.item(), abs=1e-5)
        assert right == pytest.approx(
            (output.logits[0, :-1].argmax(-1) == ids[0, 1:]).double().mean().item()
        )


def test_batches_hold_texts_of_like_length(tokenizer):
    sizes = [batch["input_ids"].shape for batch in next_word(tokenizer, TEXTS, batch=2).batches]
    lengths = sorted(len(tokenizer(text)["input_ids"]) for text in TEXTS)
    assert sizes == [(2, lengths[1]), (2, lengths[3]), (1, lengths[4])]


def test_masked_words_are_hidden_and_guessed(tokenizer, scored):
    model = with_head("MaskedLM")
    task = masked_word(tokenizer, TEXTS, share=0.3, batch=3)
    found, _ = scored(task, model)
    wanted = np.empty(len(TEXTS))
    rows = [(batch, row) for batch in task.batches for row in range(len(batch["labels"]))]
    for place, (batch, row) in zip(task.order, rows, strict=True):
        kept = batch["attention_mask"][row].bool()
        ids, labels = batch["input_ids"][row, kept], batch["labels"][row, kept]
        plain = torch.tensor(tokenizer(TEXTS[place])["input_ids"])
        hidden = labels != -100
        assert torch.equal(torch.where(hidden, labels, ids), plain)
        assert (ids[hidden] == tokenizer.mask_token_id).all()
        assert hidden.sum() == max(1, round(0.3 * (len(plain) - 2)))
        with torch.no_grad():
            wanted[place] = -model(input_ids=ids[None], labels=labels[None]).loss.item()
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_masked_words_need_a_mask():
    with pytest.raises(InterventionError, match="has no mask token; use next_word"):
        masked_word(tiny_tokenizer(), TEXTS)


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_translations_are_those_of_single_pairs(name, tokenizer, scored):
    model = tiny_model(name)
    model.config.pad_token_id = 0
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    found, _ = scored(translation(tokenizer, pairs, batch=2), model)
    for (source, target), score in zip(pairs, found, strict=True):
        labels = tokenizer(target, return_tensors="pt")["input_ids"]
        start = torch.cat(
            [torch.tensor([[model.config.decoder_start_token_id]]), labels[:, :-1]], dim=1
        )
        with torch.no_grad():
            logits = model(
                input_ids=tokenizer(source, return_tensors="pt")["input_ids"],
                decoder_input_ids=start,
            ).logits
        wanted = logits[0].log_softmax(-1)[torch.arange(labels.shape[1]), labels[0]].mean().item()
        assert score == pytest.approx(wanted, abs=1e-5)


def test_repeats_count_what_is_said_again(writer, scored):
    task = repeats(range(10, 60), period=5, times=3, count=4, start=1, batch=3)
    found, _ = scored(task, writer)
    ids = torch.cat([batch["input_ids"] for batch in task.batches])
    assert ids.shape == (4, 16)
    assert (ids[:, 0] == 1).all()
    assert torch.equal(ids[:, 1:6], ids[:, 6:11])
    assert torch.equal(ids[:, 1:6], ids[:, 11:])
    assert all(len(set(row)) == 5 for row in ids[:, 1:6].tolist())
    with torch.no_grad():
        logits = writer(input_ids=ids).logits[:, 5:-1].log_softmax(-1)
    np.testing.assert_allclose(found, logits.gather(2, ids[:, 6:, None])[..., 0].mean(1), atol=1e-5)


@pytest.mark.parametrize(
    ("act", "line"),
    [
        (lambda t: next_word(t, []), "No text was given"),
        (lambda t: next_word(t, ["a"], batch=0), "batch is 0"),
        (lambda t: repeats(range(3), period=5), "64 runs of 5 of 3 tokens, each 3 times"),
        (lambda t: repeats(range(30), period=5, times=1), "each 1 times"),
    ],
)
def test_bad_input_is_refused(act, line, tokenizer):
    with pytest.raises(TextError, match=line):
        act(tokenizer)
