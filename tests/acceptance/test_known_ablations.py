"""What is known of real models: previous-token heads carry induction, a decoder needs its
source.
"""

import numpy as np
import pytest

import headscope as hs
from headscope import tasks
from headscope.capturing import load_model, load_tokenizer


def test_previous_token_heads_carry_induction(shared):
    model, _ = load_model(shared / "models" / "induction-2l-attn-only", writes=True)
    task = tasks.repeats(range(64), start=64, count=24, seed=5)
    found = hs.ablate(model, task)
    assert found.totals["accuracy"][0] == 1
    accuracy = dict(zip(found.cells, found.totals["accuracy"][1:], strict=True))
    assert accuracy["self", 0, -1] < 0.1
    assert accuracy["self", 1, -1] < 0.1
    heads = [accuracy["self", 1, head] for head in range(4)]
    assert min(heads) > 0.99  # each of the induction heads stands in for the others
    assert found.grid()[0].argmin() == 3
    with hs.intervene(model, hs.Zero(layer=0, heads=[0, 1, 3])):
        without = hs.ablate(model, task, heads=[(0, 2)], layers=False)
    assert without.totals["accuracy"][0] < 0.1


def test_a_decoder_needs_its_source(shared):
    folder = shared / "models" / "g2p-bart-us"
    model, tokenizer = load_model(folder)
    phonemes = load_tokenizer(folder / "phonemes")
    words = "attention language model puzzle window kitchen banana thunder garden silver".split()
    pairs = []
    for word in words:
        ids = model.generate(**tokenizer(word, return_tensors="pt"), max_new_tokens=24)[
            0, 1:
        ].tolist()
        pairs.append((word, phonemes.decode(ids, skip_special_tokens=True).replace(" ", "")))
    found = hs.ablate(model, tasks.translation(tokenizer, pairs, target_tokenizer=phonemes))
    assert found.stacks == ("encoder", "decoder", "cross")
    change = dict(zip(found.cells, found.change, strict=True))
    assert change["cross", 0, -1] == change["cross", 0, 0]  # its only head
    assert change["cross", 0, 0] < -1
    assert found.significant[found.cells.index(("cross", 0, 0))]


def test_digits(shared):
    from transformers import AutoModelForImageClassification

    model = AutoModelForImageClassification.from_pretrained(shared / "models" / "vit-mnist").eval()
    kept = np.load(shared / "models" / "vit-mnist" / "digits.npz")
    pictures = ((kept["images"] / 255 - 0.1307) / 0.3081).astype(np.float32)[:, None]
    found = hs.ablate(
        model, tasks.pictures(pictures, kept["labels"].astype(int).tolist(), batch=10)
    )
    assert found.baseline >= 0.95
    assert found.grid().shape == (6, 4)
    assert found.shared == "layers below the changed one were computed once"
    assert found.by_layer().min() < -0.2


def test_stories(shared):
    model, tokenizer = load_model(shared / "models" / "stories260K", writes=True)
    texts = [
        "Once upon a time, there was a little girl named Lily.",
        "Tom and Sue went to the park to play with a ball.",
    ]
    found = hs.ablate(model, tasks.next_word(tokenizer, texts), by="uniform", heads=False)
    assert found.baseline > -3
    assert found.by_layer().shape == (5,)
    assert (found.change < 0).all()


def test_the_demo_model_tells_pairs_apart(minilm):
    model, tokenizer = minilm
    pairs = [
        ("A man is eating.", "Somebody eats."),
        ("A cat sleeps.", "A cat is asleep."),
        ("It rains.", "Two dogs run."),
    ]
    found = hs.ablate(
        model, tasks.likeness(tokenizer, pairs, [1, 1, 0]), heads=[(5, 3)], layers=False
    )
    assert found.baseline == pytest.approx(1)
    assert found.shared == "layers below the changed one were computed once"
