"""Every patch is called by its own place, and what is captured of pictures is the model's own."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.errors import CaptureError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from ..processors import tiny_qwen_vl

PATCH = {
    "vit": 4,
    "deit": 4,
    "beit": 4,
    "dinov3_vit": 4,
    "yolos": 4,
    "swin": 2,
    "swinv2": 2,
    "clip_vision_model": 4,
}
SPECIAL = {
    "vit": ["[CLS]"],
    "deit": ["[CLS]", "[DISTILLATION]"],
    "dinov3_vit": ["[CLS]", "[REGISTER 1]", "[REGISTER 2]"],
    "yolos": ["[CLS]", "[DETECTION 1]", "[DETECTION 2]"],
    "swin": [],
}


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def picture_of(model, count=1, seed=0):
    size = model.config.image_size
    height, width = size if isinstance(size, tuple | list) else (size, size)
    return drawn(count, model.config.num_channels, height, width, seed=seed)


@pytest.mark.parametrize("name", SPECIAL)
def test_tokens_have_the_grid_and_learned_tokens_their_names(name):
    model = tiny_model(name)
    tokens = next(
        iter(capture_encoded(model, None, {"pixel_values": picture_of(model)})[0].stacks.values())
    ).query
    assert tokens.grid == ((8, 16) if name == "swin" else (3, 5))
    assert [
        label for label, place in zip(tokens.labels, tokens.places, strict=True) if place is None
    ] == SPECIAL[name]
    assert [
        mask
        for mask, place in zip(tokens.special, tokens.places, strict=True)
        if mask != (place is None)
    ] == []
    assert [place for place in tokens.places if place is not None] == [
        (row, column) for row in range(tokens.grid[0]) for column in range(tokens.grid[1])
    ]
    assert tokens.labels[tokens.places.index((1, 3))] == "r1c3"


@pytest.mark.parametrize("name", ["vit", "beit", "dinov3_vit", "yolos", "swin", "swinv2"])
def test_a_patch_painted_over_changes_the_token_of_its_place_and_no_other(name):
    """Of the first layer, whose keys depend on one patch each."""
    model, patch = tiny_model(name), PATCH[name]
    picture = picture_of(model)
    for place in [(0, 0), (1, 4), (2, 1)]:
        painted = picture.clone()
        rows, columns = (slice(number * patch, (number + 1) * patch) for number in place)
        painted[:, :, rows, columns] += 1
        before, after = (
            next(iter(capture_encoded(model, None, {"pixel_values": pixels})[0].stacks.values()))
            for pixels in (picture, painted)
        )
        values = [stack.layer(0).values for stack in (before, after)]
        changed = np.abs(values[0] - values[1]).max(axis=(0, 2)) > 1e-6
        assert [before.key.places[position] for position in np.flatnonzero(changed)] == [place]


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_swins_windows_are_the_models_own_laid_out_on_the_grid(implementation):
    """What the model returns is [window ...] of the last layer of each stage, the first of which
    shifts its windows.
    """
    model = tiny_model("swin", attn_implementation=implementation)
    pictures = picture_of(model, 2)
    records = capture_encoded(model, None, {"pixel_values": pictures})
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own = model(pixel_values=pictures, output_attentions=True).attentions
    shifts = (2, 0)
    for stage, (shift, (rows, columns)) in enumerate(
        zip(shifts, [(8, 16), (4, 8)], strict=True), start=1
    ):
        numbers = torch.roll(
            torch.arange(rows * columns).reshape(rows, columns), (-shift, -shift), (0, 1)
        )
        windows = (
            numbers.reshape(rows // 4, 4, columns // 4, 4).swapaxes(1, 2).reshape(-1, 16).numpy()
        )
        for example, record in enumerate(records):
            stack = record[f"stage{stage}"]
            wanted = np.zeros((stack.heads, rows * columns, rows * columns))
            theirs = own[stage - 1][example * len(windows) :][: len(windows)].numpy()
            for window, places in zip(theirs, windows, strict=True):
                wanted[:, places[:, None], places] = window
            layer = stack.layer(1)
            assert np.abs(layer.weights_of() - wanted).max() < 2e-6
            assert np.asarray(layer.visible).sum(axis=1).tolist() == [16] * (rows * columns)
            assert layer.projection == f"encoder.layers.{stage - 1}.blocks.1.attention.o_proj"
            assert layer.kind == "masked"


def test_windows_that_reach_over_the_edge_are_refused():
    model = tiny_model("swin", image_size=(20, 32))
    with pytest.raises(CaptureError, match="windows, one of which holds 8 positions that belong"):
        capture_encoded(model, None, {"pixel_values": picture_of(model, 2)})


def clip_inputs(texts=2, pictures=2):
    ids = torch.randint(5, 60, (texts, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[-1, -2:] = 0
    return {"input_ids": ids, "attention_mask": mask, "pixel_values": drawn(pictures, 3, 12, 12)}


@pytest.mark.parametrize("name", ["segformer", "pvt_v2", "glpn"])
def test_all_places_may_look_at_one_key(name):
    """Small pictures are made so coarse that one key is left."""
    model = tiny_model(name, num_attention_heads=[1, 3])
    stages = capture_encoded(model, None, {"pixel_values": drawn(1, 3, 8, 8)})[0].stacks
    assert [(len(stage.query), len(stage.key)) for stage in stages.values()] == [(4, 1), (1, 1)]
    weights = stages["stage1"].weights(layer=0)
    assert weights.shape == (1, 4, 1)
    assert (weights == 1).all()
    assert not stages["stage1"].layer(0).turned


def test_windows_that_cannot_be_followed_are_no_pictures():
    """Swin2SR attends within windows, whose places are lost on the way: rows of a batch of 2
    pictures are then 8 windows, and none of them is a picture.
    """
    from transformers import Swin2SRConfig, Swin2SRModel

    sizes = {"image_size": 16, "window_size": 8, "embed_dim": 12, "depths": [1], "num_heads": [3]}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Swin2SRModel(Swin2SRConfig(**sizes)).eval()
    with pytest.raises(CaptureError, match="on 8 rows where the model was given 2; attention with"):
        capture_encoded(model, None, {"pixel_values": torch.zeros(2, 3, 16, 16)})


def test_a_model_of_windows_without_softmax_attention_is_refused_by_name():
    with pytest.raises(CaptureError, match="MobileViTV2Model computed no softmax attention"):
        capture_encoded(tiny_model("mobilevitv2"), None, {"pixel_values": drawn(1, 3, 64, 64)})


def test_both_sides_of_clip():
    records = capture_encoded(tiny_model("clip"), None, clip_inputs())
    assert [list(record.stacks) for record in records] == [["vision", "text"]] * 2
    assert [len(record["text"].query) for record in records] == [7, 5]
    assert records[1]["vision"].query.grid == (3, 3)
    assert records[1]["vision"].query.labels[0] == "[CLASS]"
    assert records[1]["text"].query.places is None


def test_which_picture_belongs_to_which_text_is_not_guessed():
    with pytest.raises(CaptureError, match="3 pictures were given for 2 texts, and it is unknown"):
        capture_encoded(tiny_model("clip"), None, clip_inputs(pictures=3))


def test_siglips_probe_looks_at_every_patch():
    record = capture_encoded(tiny_model("siglip"), None, clip_inputs())[0]
    assert record["probe"].query.labels == ("[PROBE]",)
    assert record["probe"].key == record["vision"].key
    assert record["probe"].weights(0).shape == (3, 1, 9)


def llava_ids(counts, token=63):
    return torch.tensor([[7, *[token] * counts[0], 8, 9, *[token] * sum(counts[1:]), 10]])


def test_two_pictures_in_one_text():
    model = tiny_model("llava")
    pictures = drawn(2, 3, 12, 12)
    record = capture_encoded(
        model, None, {"input_ids": llava_ids([9, 9]), "pixel_values": pictures}
    )[0]
    text = record["text"].query
    assert text.grids == ((3, 3), (3, 3))
    assert text.labels[:3] == ("7", "p0 r0c0", "p0 r0c1")
    assert text.labels[-3:] == ("p1 r2c1", "p1 r2c2", "10")
    assert text.places[12 + 4] == (1, 1)
    assert text.pictures[:2] == (None, 0)
    vision = record["vision"]
    assert len(vision.query) == 2 * 10
    alone = [
        capture_encoded(
            model, None, {"input_ids": llava_ids([9]), "pixel_values": pictures[number, None]}
        )[0]["vision"]
        for number in range(2)
    ]
    for layer in vision:
        for number, other in enumerate(alone):
            at = [
                position
                for position, picture in enumerate(vision.query.pictures)
                if picture == number
            ]
            assert (
                np.abs(
                    layer.weights_of()[:, at][:, :, at]
                    - other.layer(layer.layer).weights_of()[:, 1:, 1:]
                ).max()
                < 2e-6
            )
            elsewhere = [
                position
                for position, picture in enumerate(vision.query.pictures)
                if picture == 1 - number
            ]
            assert not layer.weights_of()[:, at][:, :, elsewhere].any()


@pytest.mark.parametrize("together", [True, False])
def test_packed_patches_have_the_places_that_the_model_turns_them_by(together):
    """Two pictures of one text, or one in each of two."""
    from transformers.vision_utils import get_vision_position_ids

    model = tiny_model("qwen2_vl")
    grids = torch.tensor([[1, 4, 6], [1, 2, 4]])
    wanted = [tuple(place) for place in get_vision_position_ids(grids, 2).tolist()]
    counts = (grids.prod(-1) // 4).tolist()
    if together:
        ids = llava_ids(counts)
    else:
        texts = [llava_ids([count])[0] for count in counts]
        longest = max(map(len, texts))
        ids = torch.stack(
            [torch.cat([text, torch.full((longest - len(text),), 11)]) for text in texts]
        )
    inputs = {
        "input_ids": ids,
        "mm_token_type_ids": (ids == 63).long(),
        "attention_mask": torch.ones_like(ids),
    }
    records = capture_encoded(
        model, None, {"pixel_values": drawn(32, 96), "image_grid_thw": grids, **inputs}
    )
    assert [place for record in records for place in record["vision"].query.places] == wanted
    assert [grid for record in records for grid in record["vision"].query.grids] == [(4, 6), (2, 4)]
    assert [grid for record in records for grid in record["text"].query.grids] == [(2, 3), (1, 2)]
    assert {len(record["vision"]) for record in records} == {3}
    if together:
        assert {layer.projection for layer in records[0]["vision"]} == {
            f"visual.blocks.{n}.attn.proj" for n in range(3)
        }


@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl"])
def test_two_pictures_of_different_sizes_in_one_text(family):
    """Each stands where the text has its mark, and the weights are the model's own."""
    model, processor = tiny_qwen_vl(family)
    wide, tall = (
        np.random.default_rng(size).integers(0, 256, (size, 40 - size, 3), dtype=np.uint8)
        for size in (16, 24)
    )
    mark = "<|vision_start|><|image_pad|><|vision_end|>"
    text = f"a {mark} or {mark} now"
    record = hs.capture(model, processor, text, image=[wide, tall])
    tokens, vision = record["text"].query, record["vision"]
    assert (tokens.grids, vision.query.grids) == (((2, 3), (3, 2)), ((4, 6), (6, 4)))
    assert not record.numbered
    patches = {
        number: [token for token, picture in enumerate(tokens.pictures) if picture == number]
        for number in (0, 1)
    }
    assert patches == {0: list(range(3, 9)), 1: list(range(13, 19))}
    assert [tokens.labels[at] for at in (1, 2, 3, 8, 9, 10, 13, 18)] == [
        *("a", "<|vision_start|>", "p0 r0c0", "p0 r1c2", "<|vision_end|>"),
        *("o", "p1 r0c0", "p1 r2c1"),
    ]
    for layer in vision:
        weights = layer.weights_of()
        assert not weights[:, :24, 24:].any()
        assert not weights[:, 24:, :24].any()
    own = processor(text=[text], images=[wide, tall], return_tensors="pt")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        returned = model(**own, output_attentions=True)
    for number, weights in enumerate(returned.attentions):
        assert np.abs(record["text"].weights(layer=number) - weights[0].numpy()).max() < 2e-5


def test_a_text_written_about_a_picture():
    model = tiny_model("vision-encoder-decoder")
    record = capture_encoded(
        model,
        None,
        {"pixel_values": drawn(1, 3, 12, 20), "decoder_input_ids": torch.tensor([[2, 7, 8]])},
    )[0]
    assert list(record.stacks) == ["encoder", "decoder", "cross"]
    assert record["cross"].query.pieces == ("2", "7", "8")
    assert record["cross"].key == record["encoder"].query
    assert record["cross"].key.grid == (3, 5)


def test_positions_that_cannot_be_followed_are_numbered():
    model = tiny_model("vit")
    model.embeddings.register_forward_hook(
        lambda module, args, output: torch.from_numpy(output.numpy().copy())
    )
    with pytest.warns(UserWarning, match="layers.0.attention works on positions that cannot be"):
        capture_encoded(model, None, {"pixel_values": picture_of(model)})


def test_what_was_given_comes_back_unmarked():
    pixels = drawn(1, 3, 12, 20)
    before, names = pixels.clone(), set(dir(pixels))
    model = tiny_model("vit")
    capture_encoded(model, None, {"pixel_values": pixels})
    assert_close(pixels, before)
    assert set(dir(pixels)) == names
    assert not [name for parameter in model.parameters() for name in vars(parameter)]


@pytest.fixture(scope="module")
def processor():
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": 12, "width": 20})


def test_a_picture_as_array_pil_or_path_is_the_same(processor, tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "picture.png")
    given = [
        pixels,
        Image.fromarray(pixels),
        tmp_path / "picture.png",
        str(tmp_path / "picture.png"),
    ]
    model = tiny_model("vit")
    records = [hs.capture(model, processor, image=image) for image in given]
    for record in records:
        assert record["self"].query == records[0]["self"].query
        assert_close(record["self"].weights(0), records[0]["self"].weights(0))
    encoded = capture_encoded(
        model, processor, processor(images=Image.fromarray(pixels), return_tensors="pt")
    )
    assert_close(encoded[0]["self"].weights(1), records[0]["self"].weights(1))


def test_a_record_of_a_picture_is_kept_and_shown(processor, tmp_path):
    pixels = np.zeros((12, 20, 3), np.uint8)
    record = hs.capture(tiny_model("vit"), processor, image=pixels)
    loaded = hs.load(hs.save(record, tmp_path / "picture.safetensors"))
    assert loaded["self"].query == record["self"].query
    assert "r2c4" in str(hs.view(record).html)


def test_a_target_is_captured_beside_a_picture(processor):
    options = {"image": np.zeros((12, 20, 3), np.uint8), "target": "she ran"}
    model = tiny_model("vision-encoder-decoder")
    record = hs.capture(model, processor, target_tokenizer=tiny_tokenizer(), **options)
    assert record["decoder"].query.labels[1:] == ("[CLS]", "s", "h", "e", "r", "a", "n")
    with pytest.raises(CaptureError, match="writes text; pass its tokenizer as target_tokenizer="):
        hs.capture(model, processor, **options)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("vit", {"image": 3}, CaptureError, "image must be a PIL picture, an array .* or a path"),
        ("vit", {"image": np.zeros((4, 5, 3))}, CaptureError, "must be uint8 .*, not float64"),
        ("vit", {"image": np.zeros((4, 5), np.uint8)}, CaptureError, r"not uint8 \[4, 5\]"),
        (
            "vit",
            {"image": np.zeros((4, 5, 3), np.uint8), "text": "a"},
            CaptureError,
            "ViTModel reads no text with it",
        ),
        (
            "clip",
            {"image": np.zeros((4, 5, 3), np.uint8), "text": "a"},
            CaptureError,
            "ViTImageProcessorPil reads no text",
        ),
        (
            "clip",
            {"image": np.zeros((4, 5, 3), np.uint8), "text": "a", "text_pair": "b"},
            TextError,
            "goes with one text; leave text_pair out",
        ),
        ("vit", {}, CaptureError, "capture needs a text, an image, a video, a sound or a time"),
    ],
)
def test_what_does_not_fit_is_refused(name, options, error, message, processor):
    with pytest.raises(error, match=message):
        hs.capture(tiny_model(name), processor, **options)


def test_digits_of_a_real_model(shared):
    folder = shared / "models" / "vit-mnist"
    record = hs.capture(str(folder), image=np.load(folder / "digits.npz")["images"][3][:, :, None])
    assert record["self"].query.grid == (7, 7)
    assert len(record["self"]) == 6
    assert record.verified < 1e-4


@pytest.mark.parametrize("keep", ["qk", "weights", "statistics"])
def test_windows_are_kept_in_every_form(keep):
    model = tiny_model("swin")
    inputs = {"pixel_values": picture_of(model)}
    whole = capture_encoded(model, None, inputs)[0]["stage1"]
    kept = capture_encoded(model, None, inputs, keep=keep)[0]["stage1"]
    for ours, theirs in zip(kept, whole, strict=True):
        if keep == "statistics":
            weights = theirs.weights_of()
            entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)
            np.testing.assert_allclose(ours.statistics.entropy, entropy, atol=2e-6)
        else:
            np.testing.assert_allclose(ours.weights_of(), theirs.weights_of(), atol=1e-6)


@pytest.mark.parametrize("name", ["swin", "segformer", "clip"])
def test_a_page_shows_every_stack(name):
    model = tiny_model(name)
    inputs = clip_inputs(1, 1) if name == "clip" else {"pixel_values": picture_of(model)}
    assert "r2c1" in str(hs.view(capture_encoded(model, None, inputs)[0]).html)


class Patches(torch.nn.Module):
    """A vision transformer of one layer that does something to its patches first."""

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.cut = torch.nn.Conv2d(3, 24, 4, 4)
        self.project = torch.nn.Linear(48, 24)
        self.cls_token = torch.nn.Parameter(torch.randn(1, 1, 24))
        self.pos = torch.nn.Parameter(torch.randn(1, 15, 24))
        self.attend = torch.nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, pixels):
        patches = self.change(self, pixels)
        if patches.shape[1] == self.pos.shape[1]:
            patches = patches + self.pos
        states = torch.cat([self.cls_token.expand(len(pixels), -1, -1), patches], 1)
        return self.attend(states, states, states, need_weights=False)[0]


def plain(model, pixels):
    return model.cut(pixels).flatten(2).mT


def mean_first(model, pixels):
    patches = plain(model, pixels)
    return torch.cat([patches.mean(1, keepdim=True), patches[:, :14]], 1)


def smaller(model, pixels):
    return plain(model, torch.nn.functional.interpolate(pixels, scale_factor=0.5))


def gathered(model, pixels):
    index = torch.tensor([14, 3, 7, 0])[None, :, None].expand(len(pixels), -1, 24)
    return plain(model, pixels).gather(1, index)


GRID = tuple(f"r{row}c{column}" for row in range(3) for column in range(5))
NUMBERS = tuple(map(str, range(1, 16)))
UNKNOWN, PARTLY = "cannot be followed back", "not all there"
CHANGED = {
    "unshuffled": (
        lambda model, pixels: model.project(
            torch.nn.functional.pixel_unshuffle(pixels, 4).flatten(2).mT
        ),
        NUMBERS,
        UNKNOWN,
    ),
    "mean": (mean_first, ("1", *GRID[:14]), UNKNOWN),
    "smaller": (smaller, NUMBERS[:2], UNKNOWN),
    "pairs": (
        lambda model, pixels: (plain(model, pixels)[:, :14:2] + plain(model, pixels)[:, 1::2]) / 2,
        NUMBERS[:7],
        UNKNOWN,
    ),
    "gathered": (gathered, NUMBERS[:4], PARTLY),
    "column left out": (
        lambda model, pixels: model.cut(pixels)[..., :4].flatten(2).mT,
        NUMBERS[:12],
        PARTLY,
    ),
    "edge cut off": (lambda model, pixels: plain(model, pixels[..., 4:, 4:]), NUMBERS[:8], PARTLY),
}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("change", CHANGED)
def test_patches_that_are_not_known_are_numbered(change, batch):
    act, names, why = CHANGED[change]
    with (
        pytest.warns(UserWarning, match=f"numbered: .*{why}"),
        hs.watch(model := Patches(act), batch=batch) as seen,
    ):
        model(drawn(batch, 3, 12, 20))
    for record in seen.records:
        assert record["self"].query.labels == ("[CLS]", *names)
        assert bool(record["self"].query.grids) == (change == "mean")


def test_a_later_example_without_names_is_told_too():
    def act(model, pixels):
        index = torch.arange(15).repeat(2, 1)
        index[1] = 0
        return plain(model, pixels).gather(1, index[..., None].expand(-1, -1, 24))

    with (
        pytest.warns(UserWarning, match=f"numbered: .*{PARTLY}"),
        hs.watch(model := Patches(act), batch=2) as seen,
    ):
        model(drawn(2, 3, 12, 20))
    assert [bool(record.numbered) for record in seen.records] == [False, True]


def test_patches_keep_their_names_where_all_are_there(recwarn):
    with hs.watch(model := Patches(plain)) as seen:
        model(drawn(1, 3, 12, 20))
    assert seen.record["self"].query.labels == ("[CLS]", *GRID)
    assert seen.record["self"].query.grids == ((3, 5),)
    assert not recwarn.list


@pytest.mark.parametrize("seed", range(5))
def test_places_of_masked_patches_are_those_of_the_whole_picture(seed):
    """Or there are none."""
    model = tiny_model("vit_mae", mask_ratio=0.75)
    torch.manual_seed(seed)
    with pytest.warns(UserWarning, match=PARTLY):
        (record,) = capture_encoded(model, None, {"pixel_values": drawn(1, 3, 12, 20)})
    assert record["self"].query.labels == ("[CLS]", "1", "2", "3")
    assert record["self"].query.grids == ()
