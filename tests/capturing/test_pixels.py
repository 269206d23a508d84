"""A record keeps the picture as the model saw it, or none."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.media._pixels import pictures_of
from headscope.testing import tiny_model, tiny_tokenizer

from ..processors import tiny_llava, tiny_qwen_vl

RNG = np.random.default_rng(7)
PICTURE = RNG.integers(0, 256, (12, 20, 3), np.uint8)
PACKED = np.random.default_rng(8).integers(0, 256, (24, 40, 3), np.uint8)


class Steps:
    """A processor that says what it does to pixels."""

    def __init__(self, **steps):
        self.__dict__.update({"do_rescale": False, "do_normalize": False} | steps)


def vit_processor(**options):
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(**{"size": {"height": 12, "width": 20}} | options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]},
        {"do_normalize": False},
        {"rescale_factor": 1 / 127.5, "image_mean": [1.0] * 3, "image_std": [1.0] * 3},
    ],
)
def test_pixels_come_back_as_they_were_given(options):
    """The processor has nothing to scale: the picture has the size that the model wants."""
    record = hs.capture(tiny_model("vit"), vit_processor(**options), image=PICTURE)
    np.testing.assert_array_equal(record.pictures[0], PICTURE)
    assert record["self"].key.grid == (3, 5)


def test_one_channel_becomes_grey():
    grey = PICTURE[:, :, :1]
    processor = vit_processor(image_mean=[0.13], image_std=[0.31], do_convert_rgb=False)
    record = hs.capture(tiny_model("vit", num_channels=1), processor, image=grey)
    np.testing.assert_array_equal(record.pictures[0], np.repeat(grey, 3, axis=2))


def test_a_picture_is_kept_as_it_was_scaled():
    """Not as it was given."""
    given = RNG.integers(0, 256, (31, 47, 3), np.uint8)
    processor = vit_processor(do_normalize=False)
    record = hs.capture(tiny_model("vit"), processor, image=given)
    seen = processor(images=given, return_tensors="np")["pixel_values"][0]
    np.testing.assert_array_equal(
        record.pictures[0], np.rint(np.moveaxis(seen, 0, -1) * 255).astype(np.uint8)
    )


def test_large_pictures_are_shrunk_to_the_mean_of_what_their_pixels_stand_for():
    pixels = RNG.integers(0, 256, (448, 896, 3)).astype(np.float32)
    (found,) = pictures_of(
        Steps(), {"pixel_values": torch.from_numpy(np.moveaxis(pixels, -1, 0)[None])}
    )
    assert found.size == (448, 896)
    means = pixels.reshape(224, 2, 448, 2, 3).mean(axis=(1, 3))
    assert found.pixels.shape == (224, 448, 3)
    assert np.abs(found.pixels - means).max() <= 1  # Pillow rounds after each of the two sides


def test_padding_is_cut_off_and_pictures_of_nothing_else_are_none():
    pixels = RNG.integers(0, 256, (1, 3, 3, 8, 12)).astype(np.float32)
    mask = torch.zeros(1, 3, 8, 12)
    mask[0, 0, :6, :4] = mask[0, 2] = 1
    found = pictures_of(
        Steps(), {"pixel_values": torch.from_numpy(pixels), "pixel_attention_mask": mask}
    )
    assert [picture.size for picture in found] == [(6, 4), (8, 12)]
    np.testing.assert_array_equal(found[0].pixels, np.moveaxis(pixels[0, 0], 0, -1)[:6, :4])


def test_channels_that_a_processor_turns_round_are_turned_back():
    pixels = torch.from_numpy(np.moveaxis(PICTURE[:, :, ::-1], -1, 0)[None].astype(np.float32))
    (found,) = pictures_of(Steps(do_flip_channel_order=True), {"pixel_values": pixels})
    np.testing.assert_array_equal(found.pixels, PICTURE)


@pytest.mark.parametrize(
    ("processor", "pixels"),
    [
        (Steps(), torch.zeros(30, 24)),  # packed patches
        (Steps(), torch.full((1, 3, 4, 8), 300.0)),  # more was done than the processor says
        (
            Steps(do_normalize=True, image_mean=[0.5] * 4, image_std=[0.5] * 4),
            torch.zeros(1, 3, 4, 8),
        ),
        (Steps(), torch.zeros(1, 4, 4, 8)),
        (object(), torch.zeros(1, 3, 4, 8)),
    ],
)
def test_what_cannot_be_told_is_not_guessed(processor, pixels):
    assert pictures_of(processor, {"pixel_values": pixels}) == ()


def test_bare_tensors_and_texts_have_no_pictures():
    (bare,) = capture_encoded(tiny_model("vit"), None, {"pixel_values": torch.zeros(1, 3, 12, 20)})
    assert bare.pictures == ()
    assert hs.capture(tiny_model("bert"), tiny_tokenizer(), "the cat").pictures == ()


def test_patches_that_are_no_equal_parts_of_the_picture_have_none():
    """A picture of 12 x 23 pixels, of which patches of 4 x 4 leave the last 3 columns out: more
    than half a patch.
    """
    model = tiny_model("vit", image_size=(12, 23))
    record = hs.capture(model, vit_processor(size={"height": 12, "width": 23}), image=PICTURE)
    assert record["self"].key.grid == (3, 5)
    assert record.pictures == ()


def test_every_picture_of_a_batch_has_its_own():
    pictures = [RNG.integers(0, 256, (12, 20, 3), np.uint8) for _ in range(3)]
    model = tiny_model("vit")
    records = list(hs.capture_many(model, vit_processor(), [{"image": each} for each in pictures]))
    for record, picture in zip(records, pictures, strict=True):
        np.testing.assert_array_equal(record.pictures[0], picture)


def test_the_pictures_of_one_text_stand_in_its_order():
    pictures = [RNG.integers(0, 256, (12, 12, 3), np.uint8) for _ in range(2)]
    record = hs.capture(*tiny_llava(), "a <image> or <image> cat", image=pictures)
    assert record["text"].query.grids == record["vision"].query.grids == ((3, 3), (3, 3))
    for kept, given in zip(record.pictures, pictures, strict=True):
        np.testing.assert_array_equal(kept, given)


def test_a_changed_run_and_windows_keep_their_picture():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    picture = RNG.integers(0, 256, (16, 32, 3), np.uint8)
    processor = ViTImageProcessorPil(size={"height": 16, "width": 32})
    record = hs.capture(
        tiny_model("swin"),
        processor,
        image=picture,
        interventions=[hs.Zero(stack="stage1", layer=0, heads=[0])],
    )
    assert [stack.key.grid for stack in record.stacks.values()] == [(8, 16), (4, 8)]
    np.testing.assert_array_equal(record.pictures[0], picture)


def test_packed_patches_in_another_order_give_no_picture():
    processor = tiny_qwen_vl()[1].image_processor
    given = Image.fromarray(PACKED)
    features = processor([given], return_tensors="pt")
    (picture,) = pictures_of(processor, features, [given])
    assert picture.size == (6, 10)
    np.testing.assert_array_equal(picture.pixels, PACKED)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    shuffled = dict(features) | {"pixel_values": features["pixel_values"][order]}
    assert pictures_of(processor, shuffled, [given]) == ()
    assert pictures_of(processor, features, [given, given]) == ()
    assert pictures_of(processor, features) == ()


class ChannelAttention(nn.Module):
    """Cross-covariance attention: channels of a head attend to each other (XCiT)."""

    def __init__(self, form):
        super().__init__()
        self.qkv, self.proj, self.form = nn.Linear(24, 72), nn.Linear(24, 24), form

    def forward(self, states):
        parts = self.qkv(states).unflatten(-1, (3, 6, 4)).permute(2, 0, 3, 4, 1)
        query, key, value = parts.unbind(0)  # [batch head channel patch]
        query, key = (functional.normalize(each, dim=-1) for each in (query, key))
        if self.form == "fused":
            context = functional.scaled_dot_product_attention(query, key, value, scale=1.0)
        else:
            context = (query @ key.mT).softmax(-1) @ value
        return states + self.proj(context.permute(0, 3, 1, 2).flatten(2))


class CrossCovariance(nn.Module):
    """Three layers of channels, and one whose learned token attends to the patches."""

    def __init__(self, form):
        super().__init__()
        self.patches = nn.Conv2d(3, 24, 8, 8)
        self.blocks = nn.ModuleList(ChannelAttention(form) for _ in range(3))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, 24))
        self.pool = nn.MultiheadAttention(24, 6, batch_first=True)

    def forward(self, pixels):
        states = self.patches(pixels).flatten(2).mT
        for block in self.blocks:
            states = block(states)
        whole = torch.cat([self.cls_token.expand(len(states), -1, -1), states], dim=1)
        return self.pool(whole[:, :1], whole, whole)[0]


@pytest.mark.parametrize("form", ["fused", "written out"])
@pytest.mark.parametrize("shape", [(1, 3, 16, 16), (2, 3, 16, 24)])
def test_channels_that_attend_to_channels_are_called_channels(form, shape):
    torch.manual_seed(3)
    model = CrossCovariance(form).eval()
    with hs.watch(model, batch=shape[0]) as seen:
        model(torch.randn(shape))
    for record in seen.records:
        channels, pool = record["channel"], record["probe"]
        assert channels.query.pieces == tuple(f"channel {number}" for number in range(4))
        assert (channels.key, len(channels)) == (channels.query, 3)
        places = [f"r{row}c{column}" for row in range(2) for column in range(shape[3] // 8)]
        assert pool.key.pieces == ("[CLS]", *places)


def test_channels_are_not_called_as_the_words_that_are_as_many():
    model = nn.Sequential(ChannelAttention("fused"), ChannelAttention("fused")).eval()
    states = torch.randn(1, 4, 24)
    with pytest.warns(UserWarning, match="No attention was seen that works on its 4 tokens"):  # noqa: SIM117
        with hs.watch(model, list("abcd")) as seen:
            model(states)
    assert seen.record["self"].key.pieces[0] == "channel 0"
