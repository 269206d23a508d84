"""Pictures and sounds among many inputs: in order, in batches where that is safe, and reported
where they are bad.
"""

from functools import lru_cache

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.capturing import many as _many
from headscope.testing import tiny_model

from ..processors import tiny_clip
from .test_many import same


def picture(seed, height=12, width=20):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture(scope="module")
def processor():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": 12, "width": 20})


@pytest.fixture(scope="module")
def clip():
    return tiny_clip()


def passes_of(model, monkeypatch):
    """How many pictures each pass of a model reads."""
    seen = []
    forward = model.forward

    def counted(pixel_values=None, **more):
        seen.append(len(pixel_values))
        return forward(pixel_values=pixel_values, **more)

    monkeypatch.setattr(model, "forward", counted)
    return seen


@lru_cache
def alone(name, processor):
    """A model, pictures, and the record of each by itself."""
    model, pictures = tiny_model(name), [picture(seed) for seed in range(7)]
    return model, pictures, [hs.capture(model, processor, image=each) for each in pictures]


@pytest.mark.parametrize("name", ["vit", "dinov3_vit", "yolos"])
@pytest.mark.parametrize(
    ("batch_tokens", "batches"), [(1, [1] * 7), (60, [1, 3, 3]), (4096, [1, 6])]
)
def test_pictures_of_one_size_share_a_batch(name, batch_tokens, batches, processor, monkeypatch):
    model, pictures, wanted = alone(name, processor)
    seen = passes_of(model, monkeypatch)
    found = list(
        hs.capture_many(
            model, processor, [{"image": each} for each in pictures], batch_tokens=batch_tokens
        )
    )
    assert seen == batches
    for record, by_itself in zip(found, wanted, strict=True):
        same(record, by_itself)
        assert record.verified < 1e-4


def test_windows_are_told_apart_in_a_batch():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = ViTImageProcessorPil(size={"height": 16, "width": 32})
    model, pictures = tiny_model("swin"), [picture(seed, 16, 32) for seed in range(4)]
    found = list(hs.capture_many(model, processor, [{"image": each} for each in pictures]))
    for record, each in zip(found, pictures, strict=True):
        same(record, hs.capture(model, processor, image=each))


def test_sizes_are_kept_apart_and_the_order_holds(monkeypatch):
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    processor = ViTImageProcessorPil(do_resize=False)
    model, sizes = tiny_model("vit_mae"), [(12, 20), (12, 20), (12, 20)]
    found = list(
        hs.capture_many(model, processor, [{"image": picture(3, *size)} for size in sizes])
    )
    assert [record["self"].query.grid for record in found] == [(3, 5)] * 3
    model = tiny_model("dinov3_vit")  # takes any number of patches
    sizes = [(12, 20), (8, 16), (12, 20), (16, 8), (8, 16)]
    monkeypatch.setattr(_many, "AT_ONCE", 4)
    found = list(
        hs.capture_many(model, processor, [{"image": picture(3, *size)} for size in sizes])
    )
    assert [record["self"].query.grid for record in found] == [
        (height // 4, width // 4) for height, width in sizes
    ]


def test_inputs_of_all_kinds_come_in_order(clip):
    inputs = [
        {"image": picture(1), "text": "a cat"},
        {"text": "no picture at all"},
        {"image": picture(2), "text": "an owl"},
        "no picture either",
    ]
    seen = []
    found = list(
        hs.capture_many(
            *clip, inputs, on_error=lambda index, error: seen.append((index, str(error)))
        )
    )
    assert [record.texts for record in found] == [("a cat",), ("an owl",)]
    assert [index for index, _ in sorted(seen)] == [1, 3]
    assert all("stopped at a text alone" in message for _, message in seen)
    for record, given in zip(found, inputs[::2], strict=True):
        same(record, hs.capture(*clip, given["text"], image=given["image"]))


def test_sounds_are_captured_one_after_the_other():
    from transformers import Wav2Vec2FeatureExtractor

    extractor = Wav2Vec2FeatureExtractor(sampling_rate=8000)
    model = tiny_model("wav2vec2")
    sounds = [np.sin(np.arange(length, dtype=np.float32) / 5) for length in (900, 500, 700)]
    found = list(
        hs.capture_many(
            model, extractor, [{"sound": each, "sampling_rate": 8000} for each in sounds]
        )
    )
    for record, sound in zip(found, sounds, strict=True):
        same(record, hs.capture(model, extractor, sound=sound, sampling_rate=8000))
    assert [len(record["self"].query) for record in found] == sorted(
        {len(record["self"].query) for record in found},
        key=[len(record["self"].query) for record in found].index,
    )


def test_a_bad_input_is_reported_with_its_number_and_the_rest_goes_on(processor, tmp_path):
    path = tmp_path / "cat.png"
    Image.fromarray(picture(1)).save(path)
    seen = {}
    inputs = [
        {"image": path},
        {"image": tmp_path / "gone.png"},
        {"picture": path},
        {"image": None},
        3,
        "a cat",
        {"image": picture(2)},
        {"image": path, "text": "a cat"},
    ]
    model = tiny_model("vit")
    found = list(
        hs.capture_many(
            model, processor, inputs, on_error=lambda index, error: seen.update({index: error})
        )
    )
    assert len(found) == 2
    same(found[1], hs.capture(model, processor, image=picture(2)))
    wanted = {
        1: "gone.png does not exist",
        2: "An input has no 'picture'; there are text, text_pair, image",
        3: "An input holds nothing to read; give a text, an image, a video or a sound",
        4: (
            "An input is a text, a pair of texts, a conversation, or a mapping such as {'image': "
            "'cat.png'}, not int"
        ),
        5: "ViTModel reads no text; give it a picture",
        7: "ViTModel reads no text with it",
    }
    assert sorted(seen) == sorted(wanted)
    for index, message in wanted.items():
        assert message in str(seen[index])


def test_a_changed_batch_is_changed_in_every_picture(processor):
    model, change = tiny_model("vit"), [hs.Zero(layer=0, heads=[1])]
    inputs = [{"image": picture(seed)} for seed in range(3)]
    for record, given in zip(
        hs.capture_many(model, processor, inputs, interventions=change), inputs, strict=True
    ):
        assert record["self"].layer(0).changes
        same(record, hs.capture(model, processor, image=given["image"], interventions=change))


def test_heads_of_pictures(processor):
    """What is said of words says nothing of patches, whose pieces are no words."""
    model, inputs = tiny_model("vit"), [{"image": picture(seed)} for seed in range(6)]
    found = hs.heads(hs.capture_many(model, processor, inputs))
    assert (found.texts, len(found.cells)) == (6, 6)
    told = {label.pattern for label in found.all_labels}
    assert {"next", "previous", "first-token"} <= told
    assert not {"same", "same-other", "bag", "induction"} & told
    again = hs.heads(model, processor, inputs, random_weights=True)
    assert [label.score for label in again.all_labels] == pytest.approx(
        [label.score for label in found.all_labels]
    )
    assert hs.heads(model, processor, inputs[0]).texts == 1


def test_heads_of_pictures_by_name(processor, tmp_path):
    tiny_model("vit").save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    assert hs.heads(str(tmp_path), texts=[{"image": picture(seed)} for seed in range(2)]).texts == 2
