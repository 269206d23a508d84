"""Answers about videos: Qwen2-VL and Qwen3-VL with random weights."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.errors import TextError

from ..close import assert_close
from ..processors import tiny_video_qwen_vl

pytest.importorskip("torchvision", reason="transformers reads videos with torchvision")

VIDEO = np.random.default_rng(0).integers(0, 256, (8, 16, 24, 3), np.uint8)
FRAMES = ["frames 0-1", "frames 2-3", "frames 4-5", "frames 6-7"]
QUESTION = "what is it"
MESSAGES = [
    {
        "role": "user",
        "content": [{"type": "video", "video": VIDEO}, {"type": "text", "text": QUESTION}],
    }
]


@pytest.fixture(scope="module", params=["qwen2_vl", "qwen3_vl"])
def asked(request):
    """Model, processor, and the answer of it."""
    model, processor = tiny_video_qwen_vl(request.param)
    return (
        model,
        processor,
        hs.answer(model, processor, video=VIDEO, question=QUESTION, max_new_tokens=4),
    )


def reading(processor, answer):
    """What the model reads, as transformers makes it."""
    given = {"text": [answer.prompt], "videos": [list(VIDEO)]}
    return processor(**given, do_sample_frames=False, return_tensors="pt")


def steps(model, processor, answer):
    """What the model itself says of the steps: ``[token layer head key]``."""
    read = reading(processor, answer)
    own = {"max_new_tokens": len(answer.tokens), "do_sample": False}
    model.set_attn_implementation("eager")
    with torch.no_grad():
        made = model.generate(**read, **own, output_attentions=True, return_dict_in_generate=True)
    model.set_attn_implementation("sdpa")
    ids = made.sequences[0, read["input_ids"].shape[1] :].tolist()
    assert ids == list(answer.record.generation.tokens.ids)
    keys = np.flatnonzero(read["input_ids"][0] == model.config.video_token_id)
    rows = [[layer[0, :, -1].numpy()[:, keys] for layer in step] for step in made.attentions]
    return np.array(rows)


def test_shares_of_frames_are_those_of_the_steps_under_eager(asked):
    _, _, answer = asked
    assert [part.name for part in answer.parts if part.kind == "frame"] == FRAMES
    assert [answer.parts[at].name for at in answer.candidates] == FRAMES
    # Six patches a frame, the first frame first.
    own = steps(*asked).reshape(len(answer.tokens), 2, -1, 4, 6).sum(-1)
    np.testing.assert_allclose(answer.shares[..., answer.shown], own, atol=2e-6)


def test_frames_are_cut_off_by_cut(asked):
    model, processor, answer = asked
    assert (answer.need, answer.by, answer.without.shape) == ("cut", "Cut", (4, 4))
    np.testing.assert_allclose(np.exp(answer.whole), answer.probabilities, atol=1e-5)
    ids = answer.record["text"].query.ids + answer.record.generation.tokens.ids[-1:]
    cut = answer.parts[answer.candidates[1]].tokens
    queries = [row for row in range(cut[0], len(ids) - 1) if row not in cut]
    cuts = [hs.Cut(stack="text", layer=at, queries=queries, keys=cut) for at in answer.layers]
    read = dict(reading(processor, answer))
    there = read["input_ids"].shape[1]
    written = torch.tensor([ids[there:-1]])
    read["input_ids"] = torch.cat([read["input_ids"], written], 1)
    for name, value in (("attention_mask", 1), ("mm_token_type_ids", 0)):
        read[name] = torch.cat([read[name], torch.full_like(written, value)], 1)
    with torch.no_grad(), hs.intervene(model, *cuts):
        logs = model(**read).logits[0, there - 1 :].log_softmax(-1)
    own = logs.gather(1, torch.tensor(ids[there:])[:, None])[:, 0]
    np.testing.assert_allclose(own, answer.without[1], atol=1e-4)


def test_frames_are_named_and_shown(asked):
    _, _, answer = asked
    assert answer.grids == ((2, 3),) * 4
    assert answer.record["text"].key.frames == ((0, 1), (2, 3), (4, 5), (6, 7))
    # The first frame of each tube; the video has the size that the processor wants.
    for picture, frame in zip(answer.pictures, VIDEO[::2], strict=True):
        assert np.array_equal(picture, frame)
    printed = str(answer)
    assert "of their attention to the video" in printed
    assert "picture given" not in printed
    assert any(f"{name} r" in printed for name in FRAMES)


def test_a_conversation_holds_its_video(asked, tmp_path):
    model, processor, answer = asked
    np.save(tmp_path / "video.npy", VIDEO)
    files = {"type": "video", "path": str(tmp_path / "video.npy")}
    given = [[{"role": "user", "content": [files, {"type": "text", "text": QUESTION}]}], MESSAGES]
    for messages in given:
        record = hs.capture(model, processor, messages, parts="frame")
        for stack in record.stacks.values():
            assert [part.name for part in stack.key.parts if part.kind == "frame"] == FRAMES
    again = hs.answer(model, processor, MESSAGES, max_new_tokens=4)
    assert_close(again.whole, answer.whole)
    place = [{"role": "user", "content": [{"type": "video"}, {"type": "text", "text": QUESTION}]}]
    beside = hs.answer(model, processor, place, video=VIDEO, max_new_tokens=4)
    assert_close(beside.whole, answer.whole)


def test_a_conversation_with_a_video_too_many_is_refused(asked):
    model, processor, _ = asked
    with pytest.raises(TextError, match="holds its video itself; leave video out"):
        hs.answer(model, processor, MESSAGES, video=VIDEO)
    with pytest.raises(TextError, match="holds 2 videos; give one at most"):
        hs.answer(model, processor, MESSAGES * 2)
