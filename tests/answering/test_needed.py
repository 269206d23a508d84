"""Answers with parts of their prompt cut off: tiny models with random weights."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.answering import ForcedAnswer, needed
from headscope.capturing import capture_encoded
from headscope.cli import run
from headscope.errors import CaptureError
from headscope.testing import tiny_model

PARTS = [tuple(range(3, 8)), tuple(range(8, 14)), tuple(range(16, 20))]
START, COUNT = 24, 30
HALF = 4
"""Of the eight features of a head."""
KEYS, CUT = "hidden keys", "Cut"


def forced(name, count=COUNT, **changes):
    """An answer of six tokens behind others, by a model whose weights are large enough that
    what it looks at matters."""
    model = tiny_model(name, writes=True, **changes)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(std=0.3, generator=torch.Generator().manual_seed(0))
    ids = np.random.default_rng(0).integers(1, 60, count).tolist()
    stack = capture_encoded(model, None, torch.tensor([ids[:-1]]))[0]["self"]
    with torch.no_grad():
        kept = model(input_ids=torch.tensor([ids[:-1]])).get("past_key_values")
    return ForcedAnswer(model, tuple(ids), count - COUNT + START, stack, cache=kept)


def by_hand(answer, hidden, *, direct=False):
    """The same as `needed`, by `Cut` in every layer."""
    first = answer.start - 1 if direct else hidden[0]
    queries = [row for row in range(first, len(answer.ids) - 1) if row not in hidden]
    cuts = [hs.Cut(layer=each.layer, queries=queries, keys=hidden) for each in answer.stack]
    ids = torch.tensor([answer.ids])
    with torch.no_grad(), hs.intervene(answer.model, *cuts):
        logs = answer.model(input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
    return logs[answer.start - 1 :].gather(1, ids[0, answer.start :, None])[:, 0].numpy()


@pytest.mark.parametrize("first", [3, 0], ids=["behind the first token", "with the first token"])
@pytest.mark.parametrize(
    ("name", "changes", "by"),
    [
        ("llama", {}, KEYS),
        ("gpt2", {}, KEYS),
        ("gpt_neox", {}, KEYS),
        ("opt", {}, KEYS),
        ("mistral", {"sliding_window": 40}, KEYS),
        # Positions within a window are counted among the tokens that are there.
        ("mistral", {"sliding_window": 8}, CUT),
        ("bloom", {}, CUT),
        ("falcon (alibi)", {}, CUT),
    ],
)
def test_what_is_cut_off_is_what_cut_does_in_every_layer(name, changes, by, first):
    answer = forced(name, **changes)
    parts = [tuple(range(first, 8)), *PARTS[1:]]
    every = tuple(at for part in parts for at in part)
    found = needed(answer, parts)
    assert found["by"] == by
    for part, without, alone in zip(parts, found["without"], found["alone"], strict=True):
        others = tuple(at for at in every if at not in part)
        np.testing.assert_allclose(without, by_hand(answer, part), atol=1e-4)
        np.testing.assert_allclose(alone, by_hand(answer, others), atol=1e-4)
    np.testing.assert_allclose(found["none"], by_hand(answer, every), atol=1e-4)
    assert np.abs(found["without"] - found["whole"]).max() > 0.1
    direct = needed(answer, parts, "direct")["without"]
    wanted = [by_hand(answer, part, direct=True) for part in parts]
    np.testing.assert_allclose(direct, wanted, atol=1e-4)


@pytest.mark.parametrize("kept", [True, False], ids=["with what was kept", "read again"])
@pytest.mark.parametrize("rope", ["default", "longrope"])
def test_a_long_text_is_cut_alike(rope, kept):
    # Frequencies of these positions follow from the length of the text.
    scaled = {"rope_type": rope, "rope_theta": 1e4, "original_max_position_embeddings": 600}
    scaled |= {"factor": 2.0, "short_factor": [1.0] * HALF, "long_factor": [3.0] * HALF}
    answer = forced("llama", 700, max_position_embeddings=1024, rope_parameters=scaled)
    answer.cache = answer.cache if kept else None
    parts = [tuple(range(first, first + 40)) for first in (20, 150, 640)]
    found = needed(answer, parts)
    assert found["by"] == KEYS
    wanted = [by_hand(answer, part) for part in parts]
    np.testing.assert_allclose(found["without"], wanted, atol=1e-3)
    assert (np.abs(found["without"] - found["whole"]).max(axis=1) > 0.01).all()


def test_deleted_tokens_are_not_there_and_replaced_ones_are_in_another_order():
    answer = forced("gpt2")

    def logs(prompt):
        ids = torch.tensor([[*prompt, *answer.ids[START:]]])
        with torch.no_grad():
            found = answer.model(input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
        return found[len(prompt) - 1 :].gather(1, ids[0, len(prompt) :, None])[:, 0].numpy()

    prompt = answer.ids[:START]
    found = needed(answer, PARTS, "delete")
    wanted = [logs([n for at, n in enumerate(prompt) if at not in part]) for part in PARTS]
    np.testing.assert_allclose(found["without"], wanted, atol=1e-5)
    replaced = needed(answer, PARTS, "replace")
    assert np.abs(replaced["without"] - found["whole"]).max() > 0.1
    np.testing.assert_allclose(needed(answer, PARTS, "replace")["without"], replaced["without"])
    # Two tokens have one other order, which each pair gets.
    pairs = [(at, at + 1) for at in range(2, 18, 2)]
    swapped = [*prompt[:2], *[prompt[at + 1 - 2 * (at % 2)] for at in range(2, 18)], *prompt[18:]]
    np.testing.assert_allclose(needed(answer, pairs, "replace")["none"], logs(swapped), atol=1e-5)


def test_a_changed_model_is_cut_as_it_is_changed():
    answer = forced("llama")
    with hs.intervene(answer.model, hs.Zero(layer=0, heads=[1])):
        found = needed(answer, PARTS)
    plain = needed(answer, PARTS)
    assert (found["by"], plain["by"]) == (CUT, KEYS)
    assert np.abs(found["whole"] - plain["whole"]).max() > 1e-3
    assert np.abs(found["without"] - plain["without"]).max() > 1e-3


def test_a_model_that_cannot_be_cut_is_refused():
    answer = forced("jamba")
    with pytest.raises(CaptureError, match="need='delete' or 'replace'"):
        needed(answer, PARTS)
    assert np.isfinite(needed(answer, PARTS, "delete")["without"]).all()


@pytest.mark.parametrize(
    ("name", "how", "passes"), [("llama", "cut", 1), ("bloom", "cut", 8), ("bloom", "delete", 8)]
)
def test_long_cuts_say_before_what_they_cost(name, how, passes, monkeypatch):
    # Three parts cut one by one, each alone, all and none are eight cases.
    answer, limit = forced(name), "headscope.answering._needed.LONG"
    monkeypatch.setattr(limit, passes * COUNT)
    needed(answer, PARTS, how)  # without a warning, which would be an error
    monkeypatch.setattr(limit, passes * COUNT - 1)
    told = f"Cutting 3 parts is about {passes} passes of 30 tokens; larger parts take fewer"
    with pytest.warns(UserWarning, match=told):
        needed(answer, PARTS, how)
    monkeypatch.setattr(limit, 0)
    if name == "llama":
        needed(answer, PARTS, "direct")  # reads no token of the prompt again


def test_ctrl_c_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, code in (("a", "amber falcon"), ("b", "seven")):
        (tmp_path / f"{name}.txt").write_text(f"The code of the mill is {code}.")
    asked = ["ask", "--documents", "a.txt", "b.txt", "--question", "What is the code of the mill?"]
    asked += ["--save", "answer.safetensors", "--out", "answer.csv"]
    read, done = ForcedAnswer._logs, []

    def interrupted(self, logits):
        done.append(logits)
        if len(done) == 4:
            raise KeyboardInterrupt
        return read(self, logits)

    with monkeypatch.context() as patched:
        patched.setattr(ForcedAnswer, "_logs", interrupted)
        assert end_of(asked) == 130
    assert len(done) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]
    assert end_of(asked) == 0
    assert (tmp_path / "answer.safetensors").exists()


def end_of(command):
    """The exit code of a command, 130 where it was interrupted."""
    try:
        return run(command)
    except KeyboardInterrupt:
        return 130
