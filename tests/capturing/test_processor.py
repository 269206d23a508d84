"""Processors of several kinds at once, as CLIP and LLaVA have."""

import numpy as np
import pytest

import headscope as hs
from headscope.capturing import loader_of
from headscope.errors import CaptureError, InterventionError, ModelError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

from ..processors import square_pictures, tiny_clip, tiny_llava

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)


@pytest.fixture(scope="module")
def clip():
    return tiny_clip()


@pytest.fixture(scope="module")
def llava():
    return tiny_llava()


def test_a_caption_beside_its_picture(clip):
    record = hs.capture(*clip, "the cat", image=IMAGE)
    text = record["text"].query
    assert text.labels == ("[CLS]", "t", "h", "e", "c", "a", "t", "[SEP]")
    assert text.offsets[4] == (4, 5)
    assert text.texts == record.texts == ("the cat",)
    assert record["vision"].query.grid == (3, 3)
    alone = hs.capture(tiny_model("bert"), clip[1], "the cat")
    assert (
        alone["self"].query
        == hs.capture(tiny_model("bert"), tiny_tokenizer(), "the cat")["self"].query
    )


def test_a_caption_that_is_too_long_is_cut_if_wanted(clip):
    text = "a cat " * 20
    with pytest.raises(TextError, match="The text has 82 tokens and the model has positions for"):
        hs.capture(*clip, text, image=IMAGE)
    with pytest.warns(UserWarning, match="82 tokens .* the rest is cut off"):
        tokens = hs.capture(*clip, text, image=IMAGE, truncate=True)["text"].query
    assert len(tokens) == 32
    assert text.startswith(tokens.texts[0])
    assert len(tokens.texts[0]) < len(text)
    assert tokens.offsets[1:5] == ((0, 1), (2, 3), (3, 4), (4, 5))


def test_patches_stand_where_the_text_has_its_picture(llava):
    text = hs.capture(*llava, "a <image> cat", image=IMAGE)["text"].query
    assert text.labels[:4] == ("[CLS]", "a", "r0c0", "r0c1")
    assert text.labels[-4:] == ("c", "a", "t", "[SEP]")
    assert text.pieces[2] == "<image>"
    assert [
        mask for mask, place in zip(text.special, text.places, strict=True) if place is not None
    ] == [False] * 9
    assert text.texts == ("a <image> cat",)


def test_a_text_without_a_place_for_its_picture_is_refused(llava):
    with pytest.raises(TextError, match="The text has no place for the picture; put <image> where"):
        hs.capture(*llava, "a cat", image=IMAGE)
    assert list(hs.capture(*llava, "a cat").stacks) == ["self"]


def test_what_is_wrong_with_a_text_alone_is_said_as_it_is(llava, clip):
    """It is not taken for a missing picture."""
    with pytest.raises(InterventionError, match="7"):
        hs.capture(*llava, "a cat", interventions=[hs.Zero(layer=7)])
    with pytest.raises(CaptureError, match=r"CLIPModel stopped at a text alone \(.*\); give it a"):
        hs.capture(*clip, "a cat")


def test_whisper_hears_for_itself():
    from transformers import WhisperFeatureExtractor

    extractor = WhisperFeatureExtractor(feature_size=8, hop_length=80, chunk_length=1)
    sound = np.sin(np.arange(900, dtype=np.float32))
    model = tiny_model("whisper", max_source_positions=100)
    record = hs.capture(
        model, extractor, sound=sound, sampling_rate=16000, target_tokenizer=tiny_tokenizer()
    )
    assert record["cross"].key.times[-1] == pytest.approx((0.99, 1.0))
    assert len(record["decoder"].query) > 1


def test_a_folder_brings_its_processor(tmp_path, clip):
    model, _ = clip
    model.vision_model.save_pretrained(tmp_path)
    square_pictures().save_pretrained(tmp_path)
    assert hs.capture(str(tmp_path), image=IMAGE)["self"].query.grid == (3, 3)
    with pytest.raises(ModelError, match="The demo model reads text; name a model of pictures or"):
        hs.capture(None, image=IMAGE)


@pytest.mark.parametrize(
    "name", ["whisper", "vision-encoder-decoder", "encoder-decoder", "speech-encoder-decoder"]
)
def test_models_that_write_are_loaded_with_what_writes(name):
    assert type(tiny_model(name)).__name__.endswith(("ForConditionalGeneration", "DecoderModel"))
    assert loader_of(tiny_model(name).config).__name__ != "AutoModel"
