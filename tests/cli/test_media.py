"""Pictures and sound on the command line, with tiny models that were saved with their
processors.
"""

import wave

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.cli import run
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from ..processors import tiny_clip, tiny_llava

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def models(saved):
    """Folders of models, each with what it reads with."""
    from transformers import Wav2Vec2FeatureExtractor
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return {
        "vit": saved(
            "vit", tiny_model("vit"), ViTImageProcessorPil(size={"height": 12, "width": 20})
        ),
        "clip": saved("clip", *tiny_clip()),
        "llava": saved("llava", *tiny_llava()),
        "wav2vec2": saved(
            "wav2vec2", tiny_model("wav2vec2"), Wav2Vec2FeatureExtractor(sampling_rate=8000)
        ),
        "bert": saved("bert", tiny_model("bert"), tiny_tokenizer()),
    }


@pytest.fixture
def here(here):
    Image.fromarray(PIXELS).save("cat.png")
    Image.fromarray(PIXELS[::-1].copy()).save("dog.png")
    with wave.open("speech.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes((np.sin(np.arange(800) / 5) * 9000).astype("<i2").tobytes())
    (here / "notes.png").write_text("no picture")
    return here


def same(ours, theirs):
    assert list(ours.stacks) == list(theirs.stacks)
    for name, stack in theirs.stacks.items():
        assert ours[name].query == stack.query
        assert_close(ours[name].weights(layer=1, head=2), stack.weights(layer=1, head=2))


@pytest.mark.parametrize(
    ("name", "given", "options"),
    [
        ("vit", ["--image", "cat.png"], {"image": "cat.png"}),
        ("clip", ["a cat", "--image", "cat.png"], {"text": "a cat", "image": "cat.png"}),
        (
            "llava",
            ["--image", "dog.png", "a <image> or <image>", "--image", "cat.png"],
            {"text": "a <image> or <image>", "image": ["dog.png", "cat.png"]},
        ),
        ("wav2vec2", ["--sound", "speech.wav"], {"sound": "speech.wav"}),
    ],
)
def test_capture_keeps_what_python_captures(name, given, options, here, models, capsys):
    assert run(["capture", *given, "--model", models[name], "--out", "run.safetensors"]) == 0
    out, err = capsys.readouterr()
    assert "This keeps" in out
    assert err == ""
    same(hs.load("run.safetensors"), hs.capture(models[name], **options))


@pytest.mark.parametrize(
    "given", [["--image", "cat.png", "vit"], ["--sound", "speech.wav", "wav2vec2"]]
)
def test_view_writes_a_page_without_a_text(given, here, models, capsys):
    kind, file, name = given
    assert run(["view", kind, file, "--model", models[name], "--view", "text"]) == 0
    assert capsys.readouterr().err == ""
    wanted = hs.capture(models[name], **{kind.strip("-"): file})["self"].query.labels[-1]
    assert wanted in (here / "headscope.html").read_text(encoding="utf-8")


def test_effect_changes_a_model_of_pictures(here, models, capsys):
    line = [
        "effect",
        "--image",
        "cat.png",
        "--model",
        models["vit"],
        "--zero",
        "0-1",
        "--out",
        "heads.csv",
    ]
    assert run(line) == 0
    out, err = capsys.readouterr()
    assert "Changed: layer 0: output set to zero (heads 1)" in out
    assert err == ""
    moved = {tuple(row.split(",")[:3]) for row in (here / "heads.csv").read_text().splitlines()[1:]}
    assert len(moved) == 6


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["--image", "gone.png", "--model", "vit"], "The picture gone.png does not exist"),
        (["--image", "notes.png", "--model", "vit"], "Cannot read the picture notes.png: cannot"),
        (["--sound", "cat.png", "--model", "wav2vec2"], "The sound cat.png cannot be read"),
        (["--image", "cat.png", "--model", "bert"], "BertModel reads no pictures; give it a text"),
        (["--sound", "speech.wav", "--model", "vit"], "ViTModel reads no sound; give it"),
        (["--image", "cat.png", "--model", "clip"], "CLIPModel reads a text too; give one with it"),
        (["a cat", "--model", "vit"], "ViTModel reads no text; give it a picture with image="),
        (
            ["--image", "cat.png", "--image", "dog.png", "--model", "vit"],
            "ViTModel reads one picture at a time, and 2 were given",
        ),
        (
            ["a <image> cat", "--image", "cat.png", "--image", "dog.png", "--model", "llava"],
            "The text has 1 place for pictures, and 2 were given; put <image> where each belongs",
        ),
        (["a", "b", "--image", "cat.png", "--model", "clip"], "A picture, video or sound goes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", ["view", "capture"])
def test_bad_input_is_one_line_and_leaves_nothing_behind(
    command, given, line, here, models, capsys
):
    before = sorted(here.iterdir())
    given = [
        models[part] if number and given[number - 1] == "--model" else part
        for number, part in enumerate(given)
    ]
    assert (
        run([command, *given, "--out", "x.safetensors" if command == "capture" else "x.html"]) == 1
    )
    out, err = capsys.readouterr()
    assert err.startswith(f"headscope: {line}")
    assert err.count("\n") == 1
    assert "Wrote" not in out
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("command", ["view", "capture", "effect"])
def test_nothing_to_read_is_wrong_usage(command, here, models, capsys):
    more = {"view": [], "capture": ["--out", "x.safetensors"], "effect": ["--zero", "0-1"]}[command]
    assert run([command, "--model", models["vit"], *more]) == 2
    wanted = (
        "headscope: Expected a text, or a picture, video or sound with --image, --video or --sound"
    )
    assert capsys.readouterr().err == f"{wanted} (headscope --help)\n"
