"""Sentences against sums over single ones."""

import pytest
import torch

from headscope.tasks import minimal_pairs

from ..processors import with_head
from .conftest import TEXTS

PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))  # the third pair is a tie


def causal(model, tokenizer, text):
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        likely = model(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
    return likely.gather(1, ids[0, 1:, None]).sum().item()


def masked(model, tokenizer, text):
    ids, total = tokenizer(text, return_tensors="pt")["input_ids"], 0.0
    for place in range(1, ids.shape[1] - 1):
        if ids[0, place] in tokenizer.all_special_ids:
            continue
        hidden = ids.clone()
        hidden[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            total += (
                model(input_ids=hidden)
                .logits[0, place]
                .double()
                .log_softmax(-1)[ids[0, place]]
                .item()
            )
    return total


@pytest.mark.parametrize("likely", [causal, masked])
def test_the_more_likely_sentence_wins(likely, writer, tokenizer, scored):
    model = with_head("MaskedLM") if likely is masked else writer
    found, values = scored(minimal_pairs(tokenizer, PAIRS, masked=likely is masked, batch=2), model)
    wanted = [likely(model, tokenizer, good) - likely(model, tokenizer, bad) for good, bad in PAIRS]
    assert values[:, 1].tolist() == pytest.approx(wanted, abs=1e-4)
    assert wanted[2] == 0
    assert found[:2].tolist() == [float(one > 0) for one in wanted[:2]]
    assert found[3:].tolist() == [float(one > 0) for one in wanted[3:]]
    assert set(found.tolist()) > {0.0, 1.0} or {0.0, 1.0} <= set(found.tolist())


def test_a_sentence_beside_itself_is_a_tie(writer, tokenizer, scored):
    found, _ = scored(minimal_pairs(tokenizer, [("the cat", "the cat")], masked=False), writer)
    assert found.tolist() == [0.5]
