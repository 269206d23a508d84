"""Videos: from arrays, pictures and files to records whose tokens are named by frame and patch."""

import re

import numpy as np
import pytest
import torch
from PIL import Image

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError, FileError, RecordError
from headscope.record import Tokens
from headscope.testing import tiny_model
from headscope.testing._made_up import made_up

from ..close import assert_close
from ..processors import tiny_qwen_vl, tiny_videos

FRAMES, HEIGHT, WIDTH = 9, 12, 16


@pytest.fixture(scope="module")
def video():
    """Frames with pixels of their own; the tiny models read four of three rows of patches."""
    return np.random.default_rng(3).integers(0, 256, (FRAMES, HEIGHT, WIDTH, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def processor():
    return tiny_videos()


def tiny_timesformer():
    from transformers import TimesformerConfig, TimesformerModel

    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}
    torch.manual_seed(5)
    return TimesformerModel(
        TimesformerConfig(**sizes, num_hidden_layers=2, image_size=12, patch_size=4, num_frames=4)
    ).eval()


def own_weights(model, inputs):
    """What a model returns itself under eager attention."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        returned = model(**inputs, output_attentions=True)
    model.set_attn_implementation(before)
    return [weights.numpy() for weights in returned.attentions]


@pytest.mark.parametrize("family", ["videomae", "vivit", "vjepa2"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_weights_are_the_models_own(family, implementation):
    model = tiny_model(family)
    model.set_attn_implementation(implementation)
    inputs = made_up(model)
    # V-JEPA 2 returns nothing of its predictor under this name.
    own = own_weights(model, inputs)
    records = capture_encoded(model, None, inputs)
    assert len(records) == 2
    for example, record in enumerate(records):
        stack = next(iter(record.stacks.values()))
        assert len(stack) == len(own)
        assert not record.numbered
        for number, weights in enumerate(own):
            assert np.abs(stack.weights(layer=number) - weights[example]).max() < 1e-5
        tokens = stack.query
        assert tokens.video_grid == (2, 3, 3)
        assert tokens.frames == ((0, 1), (2, 3))
        patches = [label for label in tokens.labels if label != "[CLS]"]
        assert patches[:2] == ["f0-1 r0c0", "f0-1 r0c1"]
        assert patches[-1] == "f2-3 r2c2"


def test_a_patch_of_a_video_is_at_its_frame_and_place():
    """Moving one pixel moves the value of the patch that is named after it."""
    model = tiny_model("videomae")
    pixels = made_up(model, 1)["pixel_values"]
    changed = pixels.clone()
    changed[0, 3, :, 4, 9] += 5  # the last frame, row 1 and column 2 of patches of 4 x 4 pixels
    before, after = (
        capture_encoded(model, None, {"pixel_values": each})[0]["self"].layer(0).values[0]
        for each in (pixels, changed)
    )
    moved = np.flatnonzero(np.abs(after - before).max(axis=-1) > 1e-6)
    tokens = capture_encoded(model, None, {"pixel_values": pixels})[0]["self"].key
    assert [tokens.labels[number] for number in moved] == ["f2-3 r1c2"]


def test_divided_attention_is_one_stack_of_time_and_one_of_space():
    """TimeSformer: from one patch to the same place in other frames, and to others in its frame."""
    model = tiny_timesformer()
    inputs = made_up(model)
    calls = {"time": [], "space": []}

    def note(module, given, returned, kind):
        calls[kind].append(returned[1].detach().numpy())

    for layer in model.encoder.layer:
        for kind, own in (("time", layer.temporal_attention), ("space", layer.attention)):
            forward = own.forward
            own.forward = lambda states, output_attentions=False, run=forward: run(states, True)
            own.register_forward_hook(lambda *given, kind=kind: note(*given, kind))
    with torch.no_grad():
        model(**inputs)
    own = {kind: list(weights) for kind, weights in calls.items()}
    records = capture_encoded(tiny_timesformer(), None, inputs)
    assert [set(record.stacks) for record in records] == [{"time", "space"}] * 2
    for example, record in enumerate(records):
        time, space = record["time"], record["space"]
        assert time.query.video_grid == space.query.video_grid == (4, 3, 3)
        assert [label for label in space.query.labels if label.startswith("[")] == [
            f"[CLS {frame}]" for frame in range(1, 5)
        ]
        for layer in range(2):
            weights = time.weights(layer=layer)
            for patch in range(9):
                at = [frame * 9 + patch for frame in range(4)]
                wanted = own["time"][layer][example * 9 + patch]
                assert np.abs(weights[:, at][:, :, at] - wanted).max() < 1e-5
                assert time.query.labels[at[2]] == f"f2 r{patch // 3}c{patch % 3}"
            weights = space.weights(layer=layer)
            for frame in range(4):
                at = slice(frame * 10, frame * 10 + 10)
                wanted = own["space"][layer][example * 4 + frame]
                assert np.abs(weights[:, at, at] - wanted).max() < 1e-5
            assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-5


def test_masks_of_a_predictor_have_names():
    model = tiny_model("vjepa2")
    record = capture_encoded(model, None, made_up(model, 1))[0]
    with pytest.warns(UserWarning, match="are numbered"), hs.watch(model) as seen:
        model(**made_up(model, 1))
    assert list(seen.record.stacks) == list(record.stacks) == ["encoder.layer", "predictor.layer"]
    labels = record["predictor.layer"].query.labels
    assert sum(label.startswith("[MASK ") for label in labels) == 18
    assert sum(label.startswith("f") for label in labels) == 18


def test_of_more_frames_some_are_taken_in_even_steps(video, processor, tmp_path):
    record = hs.capture(tiny_model("videomae"), processor, video=video)
    tokens = record["self"].query
    assert tokens.frames == ((0, 3), (5, 8))  # of 9 frames 0, 3, 5 and 8
    assert tokens.labels[-1] == "f5-8 r2c2"
    kept = processor([list(video[[0, 3, 5, 8]])], return_tensors="pt")["pixel_values"]
    own = own_weights(tiny_model("videomae"), {"pixel_values": kept})
    assert np.abs(record["self"].weights(layer=1) - own[1][0]).max() < 1e-5
    path = tmp_path / "video.safetensors"
    hs.save(record, path)
    again = hs.load(path)
    assert again["self"].query == tokens
    assert all(map(np.array_equal, again.pictures, record.pictures))


def test_each_tube_has_the_frame_that_it_begins_with(video, processor):
    square = np.ascontiguousarray(video[:4, :, :12])
    record = hs.capture(tiny_model("videomae"), processor, video=square)
    assert len(record.pictures) == 2
    assert_close(record.pictures[0], square[0])
    assert_close(record.pictures[1], square[2])


def test_ways_to_give_a_video_are_the_same(video, processor, tmp_path):
    model = tiny_model("videomae")
    folder = tmp_path / "frames"
    folder.mkdir()
    pictures = [Image.fromarray(frame) for frame in video]
    for number, picture in enumerate(pictures):
        picture.save(folder / f"{number:03}.png")
    np.save(tmp_path / "video.npy", video)
    moving = tmp_path / "video.png"
    pictures[0].save(moving, save_all=True, append_images=pictures[1:])
    wanted = hs.capture(model, processor, video=video)
    for given in (pictures, folder, tmp_path / "video.npy", str(moving)):
        record = hs.capture(model, processor, video=given)
        assert record["self"].query == wanted["self"].query
        assert_close(record["self"].weights(), wanted["self"].weights())
    many = hs.capture_many(model, processor, [{"video": video}, {"video": folder}])
    assert [len(each["self"].query) for each in many] == [18, 18]


def test_what_is_no_video_is_refused(video, processor, tmp_path):
    model = tiny_model("videomae")
    (tmp_path / "empty").mkdir()
    Image.fromarray(video[0]).save(tmp_path / "one.png")
    wrong = {
        "has 3 frames and the model reads 4": video[:3],
        "not uint8 [12, 16, 3]": video[0],
        "not float64": video / 255,
        "an empty list": [],
        "not int": 3,
        "must have one size": [video[0], video[1][:5], video[2], video[3]],
    }
    for message, given in wrong.items():
        with pytest.raises(CaptureError, match=re.escape(message)):
            hs.capture(model, processor, video=given)
    files = {
        "does not exist": tmp_path / "none.mp4",
        "holds no pictures": tmp_path / "empty",
        "holds 1 frames and is no video": tmp_path / "one.png",
    }
    for message, path in files.items():
        with pytest.raises(FileError, match=message):
            hs.capture(model, processor, video=path)


def test_a_film_needs_a_library_that_reads_it(processor, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    path = tmp_path / "film.mp4"
    path.write_bytes(b"no picture that Pillow knows")
    with pytest.raises(CaptureError, match=r"needs PyAV: pip install 'headscope\[video\]'"):
        hs.capture(tiny_model("videomae"), processor, video=path)


def test_models_say_that_they_read_no_video(video, processor):
    with pytest.raises(CaptureError, match="ViTModel reads no videos; give a picture"):
        hs.capture(tiny_model("vit"), processor, video=video)
    with pytest.raises(CaptureError, match="BertModel reads no videos; give it a text"):
        hs.capture(tiny_model("bert"), processor, video=video)
    with pytest.raises(CaptureError, match="VideoMAEModel reads videos; give their frames"):
        hs.capture(tiny_model("videomae"), processor, image=video[0])


def test_frames_belong_to_grids():
    places = ((0, 0), (0, 1), (0, 0), (0, 1))
    sides = {"places": places, "grids": ((1, 2), (1, 2)), "pictures": (0, 0, 1, 1)}
    pieces = ("a", "b", "c", "d")
    assert Tokens(pieces=pieces, **sides).video_grid is None
    tokens = Tokens(pieces=pieces, frames=((0, 0), (1, 1)), **sides)
    assert tokens.video_grid == (2, 1, 2)
    assert tokens.take([1, 2]).frames == tokens.frames
    assert Tokens(pieces=pieces, frames=(None, (0, 0)), **sides).video_grid is None
    with pytest.raises(RecordError, match="1 frames were given for 2 grids"):
        Tokens(pieces=pieces, frames=((0, 1),), **sides)
    with pytest.raises(RecordError, match=r"the frames \(3, 1\) of grid 1"):
        Tokens(pieces=pieces, frames=((0, 1), (3, 1)), **sides)


def video_ids(config, steps, patches, times):
    """Ids of a text with a video of so many patches a step; with a word before each step where the
    model is told times (Qwen3-VL).
    """
    start, pads = config.vision_start_token_id, [config.video_token_id] * patches
    video = [start, *pads * steps]
    if times:
        video = [5, start, *pads, config.vision_end_token_id] * steps
    return torch.tensor([[6, 7, *video, 8, 9]])


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_a_video_among_words(family):
    """Steps in time attend to themselves in the vision part, and are merged among the words."""
    model = tiny_qwen_vl(family)[0] if family == "qwen3_vl" else tiny_model(family)
    numbers, (steps, rows, columns) = model.config, (3, 4, 8)
    vision = numbers.vision_config
    size = 3 * vision.temporal_patch_size * vision.patch_size**2
    generator = torch.Generator().manual_seed(1)
    ids = video_ids(numbers, steps, rows * columns // 4, times=family == "qwen3_vl")
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values_videos": torch.randn(steps * rows * columns, size, generator=generator),
        "video_grid_thw": torch.tensor([[steps, rows, columns]]),
        "mm_token_type_ids": (ids == numbers.video_token_id).long() * 2,
    }
    own = own_weights(model, inputs)
    record = capture_encoded(model, None, inputs)[0]
    for layer, weights in enumerate(own):
        assert np.abs(record["text"].weights(layer=layer) - weights[0]).max() < 2e-5
    text, vision = record["text"].query, record["vision"].query
    assert (text.video_grid, vision.video_grid) == ((3, 2, 4), (3, 4, 8))
    assert text.frames == vision.frames == ((0, 1), (2, 3), (4, 5))
    patches = [label for label in text.labels if label.startswith("f")]
    first = text.labels.index("f0-1 r0c0")
    assert first == (4 if family == "qwen3_vl" else 3)
    assert text.labels[first : first + 3] == ("f0-1 r0c0", "f0-1 r0c1", "f0-1 r0c2")
    assert (len(patches), patches[8], patches[-1]) == (24, "f2-3 r0c0", "f4-5 r1c3")
    assert [text.pictures[text.labels.index(patches[number])] for number in (7, 8)] == [0, 1]
    # Merged patches stand together, so the third is below the first.
    assert vision.labels[:3] == ("f0-1 r0c0", "f0-1 r0c1", "f0-1 r1c0")
    weights, frame = record["vision"].weights(layer=0), np.repeat(np.arange(3), rows * columns)
    assert not weights[:, frame[:, None] != frame].any()
    assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-5
