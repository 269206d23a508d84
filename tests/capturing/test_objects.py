"""Detectors of objects: encoder-decoders that write no text, captured from a picture."""

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_tokenizer

OBJECTS = tuple(f"object {number}" for number in range(5))
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 8, 12, 16], "depths": [1] * 4}
LAYERS = {"encoder_layers": 2, "decoder_layers": 3, "num_queries": 5, "num_labels": 3} | {
    f"{side}_{what}": size
    for side in ("encoder", "decoder")
    for what, size in (("attention_heads", 4), ("ffn_dim", 40))
}


@pytest.fixture(autouse=True)
def same_weights_every_time():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def resnet(*read, kind="ResNetConfig"):
    made = getattr(transformers, kind)
    return made(**RESNET, layer_type="basic", out_features=list(read or ("stage4",)))


def detector(kind="Detr"):
    """A tiny detector, whose attention is not even."""
    sizes = LAYERS | {"hidden_size" if kind == "DabDetr" else "d_model": 32}
    config = getattr(transformers, f"{kind}Config")(backbone_config=resnet(), **sizes)
    return sharp(getattr(transformers, f"{kind}ForObjectDetection")(config))


def chooser():
    """A detector that begins with the patches that look most like objects."""
    config = transformers.RTDetrConfig(
        backbone_config=resnet("stage2", "stage3", "stage4", kind="RTDetrResNetConfig"),
        encoder_in_channels=[8, 12, 16],
        decoder_in_channels=[32] * 3,
        encoder_hidden_dim=32,
        encoder_attention_heads=4,
        encoder_ffn_dim=40,
        d_model=32,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=40,
        num_queries=5,
    )
    return sharp(transformers.RTDetrForObjectDetection(config))


def sharp(model):
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and "backbone" not in name:
                weight.normal_(std=1.6 / weight.shape[-1] ** 0.5, generator=draw)
    return model.eval()


@pytest.fixture(scope="module")
def processor():
    from transformers.models.detr.image_processing_pil_detr import DetrImageProcessorPil

    return DetrImageProcessorPil(size={"shortest_edge": 96, "longest_edge": 160})


def picture(height=96, width=160):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def own_weights(model, inputs):
    """Attention of each kind that the model itself returns."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(**inputs, output_attentions=True)
    return {name: output[f"{name}_attentions"] for name in ("encoder", "decoder", "cross")}


@pytest.mark.parametrize("kind", ["Detr", "TableTransformer", "ConditionalDetr", "DabDetr"])
def test_objects_look_at_the_patches_of_a_picture(kind, processor):
    model = detector(kind)
    record = hs.capture(model, processor, image=picture())
    assert set(record.stacks) == {"encoder", "decoder", "cross"}
    cross = record["cross"]
    assert cross.query.labels == record["decoder"].query.labels == OBJECTS
    assert not any(cross.query.special)
    assert cross.key == record["encoder"].query
    assert cross.key.grid == (3, 5)
    assert cross.key.labels[:6] == ("r0c0", "r0c1", "r0c2", "r0c3", "r0c4", "r1c0")
    assert [each.shape for each in record.pictures] == [(96, 160, 3)]
    inputs = processor(picture(), return_tensors="pt")
    for name, layers in own_weights(model, inputs).items():
        for number, weights in enumerate(layers):
            assert np.abs(record[name].weights(number) - weights[0].numpy()).max() < 2e-5
    alone = capture_encoded(model, None, {"pixel_values": inputs["pixel_values"]})[0]
    assert alone["cross"].query == cross.query
    np.testing.assert_allclose(alone["cross"].weights(1), cross.weights(1), atol=1e-6)


def test_padding_of_a_smaller_picture_is_cut(processor):
    model, pictures = detector(), [picture(), picture(96, 128)]
    records = capture_encoded(model, None, processor(pictures, return_tensors="pt"))
    assert [record["cross"].key.grid for record in records] == [(3, 5), (3, 4)]
    together = list(hs.capture_many(model, processor, [{"image": each} for each in pictures]))
    assert [record["cross"].key.grid for record in together] == [(3, 5), (3, 4)]


def test_chosen_patches_are_objects_and_no_picture(processor):
    # Its objects sample places of the picture, which is no attention over all patches.
    with pytest.warns(UserWarning, match=r"out: model\.decoder\.layers\.0\.encoder_attn"):
        record = hs.capture(chooser(), processor, image=picture())
    assert record["decoder"].query.labels == OBJECTS
    assert record["decoder"].query.grids == ()
    assert record["encoder"].query.grid == (3, 5)
    assert [each.shape for each in record.pictures] == [(96, 160, 3)]


def test_a_detector_is_loaded_by_name(processor, tmp_path):
    detector().save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    assert hs.capture(tmp_path, image=picture())["cross"].query.labels == OBJECTS


def test_heads_of_objects_are_changed(processor):
    model = detector()
    even = hs.interventions.Uniform(stack="cross", layer=1, heads=[2])
    record = hs.capture(model, processor, image=picture(), interventions=[even])
    np.testing.assert_allclose(record["cross"].weights(1)[2], 1 / 15, atol=1e-6)


def test_an_encoder_of_an_encoder_decoder_needs_no_target():
    model = transformers.T5ForTokenClassification(
        transformers.T5Config(vocab_size=30, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3)
    ).eval()
    ids = {"input_ids": torch.tensor([[4, 5, 6, 7]])}
    assert "decoder" not in capture_encoded(model, tiny_tokenizer(), ids)[0].stacks


def test_a_change_moves_the_classes_of_objects(processor):
    change = [hs.Zero(layer=0, heads=[0], stack="encoder")]
    found = hs.effect(detector(), processor, image=picture(), interventions=change).output
    assert (found.kind, found.labels) == ("classes", OBJECTS)
    assert {name for name, _ in found.before[0]} == {"LABEL_0", "LABEL_1", "LABEL_2", "no object"}
    # Its classes do not exclude each other.
    with pytest.raises(hs.errors.InterventionError, match="several labels at once"):
        hs.effect(detector("ConditionalDetr"), processor, image=picture(), interventions=change)
