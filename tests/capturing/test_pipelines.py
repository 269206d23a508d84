"""Diffusion pipelines: each step of the denoiser is captured, with its own weights, and changes
nothing.
"""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch.nn import functional

import headscope as hs
from headscope.diffusion import watch_pipeline
from headscope.errors import CaptureError
from headscope.testing import tiny_tokenizer

from ..close import assert_close

WORDS, ROWS, COLUMNS = 7, 8, 12
TINY = {"attention_head_dim": 8, "num_attention_heads": 3}
JOINT = TINY | {"joint_attention_dim": 20, "pooled_projection_dim": 10}


@pytest.fixture(scope="module", autouse=True)
def diffusers():
    """Imported where these tests run: on top of the file, every worker that collects it would spend
    a second on it.
    """
    return pytest.importorskip(
        "diffusers", reason="needs the extra diffusion: pip install 'headscope[diffusion]'"
    )


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def quiet(pipe):
    pipe.set_progress_bar_config(disable=True)
    return pipe


def flow():
    import diffusers

    return diffusers.FlowMatchEulerDiscreteScheduler()


def unet():
    """Attention to the picture and to the text at two sizes of the picture."""
    import diffusers

    torch.manual_seed(1)
    model = diffusers.UNet2DConditionModel(
        sample_size=8,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=24,
        attention_head_dim=4,  # in UNets of diffusers the number of heads
        norm_num_groups=4,
    )
    coder = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=4)
    pipe = diffusers.StableDiffusionPipeline(
        vae=coder,
        unet=model.eval(),
        scheduler=diffusers.DDIMScheduler(clip_sample=False, steps_offset=1),
        **dict.fromkeys(("text_encoder", "tokenizer", "safety_checker", "feature_extractor")),
        requires_safety_checker=False,
    )
    given = {
        "prompt_embeds": numbers(1, WORDS, 24),
        "negative_prompt_embeds": numbers(1, WORDS, 24) / 2,
        "latents": numbers(1, 4, ROWS, COLUMNS),
    }
    return quiet(pipe), given, model, {"height": ROWS, "width": COLUMNS}


def sd3():
    """Patches of two by two before the words, in one attention."""
    import diffusers

    torch.manual_seed(2)
    model = diffusers.SD3Transformer2DModel(
        **JOINT,
        sample_size=16,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        caption_projection_dim=24,
    )
    parts = (
        "vae",
        *(
            f"{part}{number}"
            for part in ("text_encoder", "tokenizer")
            for number in ("", "_2", "_3")
        ),
    )
    pipe = diffusers.StableDiffusion3Pipeline(
        transformer=model.eval(), scheduler=flow(), **dict.fromkeys(parts)
    )
    given = {
        "prompt_embeds": numbers(1, WORDS, 20),
        "negative_prompt_embeds": numbers(1, WORDS, 20) / 2,
        "pooled_prompt_embeds": numbers(1, 10),
        "negative_pooled_prompt_embeds": numbers(1, 10),
        "latents": numbers(1, 4, ROWS, COLUMNS),
    }
    return quiet(pipe), given, model, {"height": ROWS, "width": COLUMNS}


def flux():
    """Words before packed patches, in blocks of two kinds."""
    import diffusers

    torch.manual_seed(3)
    model = diffusers.FluxTransformer2DModel(
        **JOINT, in_channels=16, num_layers=1, num_single_layers=2, axes_dims_rope=(2, 2, 4)
    )
    parts = ("vae", "text_encoder", "tokenizer", "text_encoder_2", "tokenizer_2")
    pipe = diffusers.FluxPipeline(
        transformer=model.eval(), scheduler=flow(), **dict.fromkeys(parts)
    )
    given = {
        "prompt_embeds": numbers(1, WORDS, 20),
        "pooled_prompt_embeds": numbers(1, 10),
        "latents": numbers(1, ROWS * COLUMNS // 4, 16),
    }
    return quiet(pipe), given, model, {"height": ROWS, "width": COLUMNS}


def ran(pipe, given, size, count=3):
    """The picture, before it is decoded."""
    pixels = {side: 8 * number for side, number in size.items()}
    return pipe(**given, **pixels, num_inference_steps=count, output_type="latent").images


@contextmanager
def own_weights(model):
    """softmax(q k^T / sqrt(d)) of every attention of a denoiser, by module, call after call."""
    seen, before, inside = {}, functional.scaled_dot_product_attention, []

    def plain(query, key, value, *_, **__):
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(dim=-1)
        seen.setdefault(inside[-1], []).append(weights.numpy())
        return weights @ value

    hooks = []
    for name, module in model.named_modules():
        if name.rpartition(".")[2].startswith("attn"):
            hooks += [
                module.register_forward_pre_hook(lambda *_, name=name: inside.append(name)),
                module.register_forward_hook(lambda *_: inside.pop() and None),
            ]
    functional.scaled_dot_product_attention = plain
    try:
        yield seen
    finally:
        functional.scaled_dot_product_attention = before
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize("make", [unet, sd3, flux])
def test_weights_of_each_step_are_the_denoisers_own(make):
    pipe, given, model, size = make()
    with own_weights(model) as own:
        ran(pipe, given, size)
    plain = ran(pipe, given, size)
    with watch_pipeline(pipe, steps=[0, 2]) as seen:
        watched = ran(pipe, given, size)
    assert_close(plain, watched)
    assert "forward" not in vars(model)
    assert seen.steps == (0, 2)
    assert len(set(seen.timesteps)) == 2
    assert set(seen.blocks) == set(own)
    rows = len(seen.records[0])
    assert rows == (1 if make is flux else 2)  # with guidance one has the negative prompt
    for block in seen.blocks:
        for row in range(rows):
            wanted = np.stack([own[block][step][row] for step in seen.steps])
            assert np.abs(seen.weights(block, row=row) - wanted).max() < 2e-6
        assert seen.stack(block, 0).layer(0).route == "operators"
        assert seen.records[0][0].verified < 1e-5


def test_parts_and_places_of_joint_attention():
    """SD3 has the patches first and Flux the words; both grids are patches of two by two."""
    for make, block, first in (
        (sd3, "transformer_blocks.0.attn", "r0c0"),
        (flux, "single_transformer_blocks.1.attn", "w0"),
    ):
        pipe, given, _, size = make()
        with watch_pipeline(pipe, steps=[1]) as seen:
            ran(pipe, given, size, 2)
        tokens = seen.stack(block, 1).query
        assert tokens.labels[0] == first
        assert tokens.grid == (4, 6)
        whole = seen.weights(block)
        parts = {
            (rows, columns): seen.weights(block, rows, columns)
            for rows in ("picture", "text")
            for columns in ("picture", "text")
        }
        assert parts["text", "picture"].shape == (1, 3, WORDS, 24)
        assert parts["picture", "text"].shape == (1, 3, 24, WORDS)
        assert np.isclose(sum(part.sum() for part in parts.values()), whole.sum())
        maps = seen.maps(block, word=2)
        query, key = tokens.labels.index("r3c1"), tokens.labels.index("w2")
        assert maps.shape == (1, 3, 4, 6)
        assert_close(maps[0, :, 3, 1], whole[0, :, query, key])


def test_places_of_a_unet_follow_the_size_of_its_picture():
    pipe, given, _, size = unet()
    words = ["a", "red", "cat", "on", "the", "mat", "."]
    with watch_pipeline(pipe, steps=[0], words=words) as seen:
        ran(pipe, given, size, 2)
    grids = {block: seen.stack(block, 0).query.grid for block in seen.blocks}
    assert {grid for block, grid in grids.items() if block.startswith("mid")} == {(4, 6)}
    assert {grid for block, grid in grids.items() if not block.startswith("mid")} == {(8, 12)}
    to_words = [block for block in seen.blocks if block.endswith("attn2")]
    assert seen.stack(to_words[0], 0).key.labels == tuple(words)
    assert seen.maps(to_words[0], word=2).shape == (1, 4, 8, 12)
    # A changed value of the noise moves what places near its own ask for, also after scaling up.
    other = given["latents"].clone()
    other[0, :, 5, 9] += 1
    with watch_pipeline(pipe, steps=[0]) as moved:
        ran(pipe, given | {"latents": other}, size, 2)
    for block in ("down_blocks.0.attentions.0", "up_blocks.1.attentions.1"):
        stacks = [run.stack(f"{block}.transformer_blocks.0.attn1", 0) for run in (seen, moved)]
        before, after = (stack.layer(0).queries for stack in stacks)
        apart = np.square(after - before).sum(axis=(0, 2))
        assert np.abs((apart @ np.array(stacks[0].query.places) / apart.sum()) - (5, 9)).max() < 1.5


def test_words_are_those_of_the_pipelines_tokenizer():
    """Of the prompt, and of the negative prompt in its own rows."""
    from transformers import CLIPTextConfig, CLIPTextModel

    pipe, *_, size = unet()
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2}
    config = CLIPTextConfig(
        vocab_size=64, num_attention_heads=3, max_position_embeddings=WORDS, **sizes
    )
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = WORDS
    pipe.register_modules(text_encoder=CLIPTextModel(config).eval(), tokenizer=tokenizer)
    with watch_pipeline(pipe, steps=[1]) as seen:
        ran(pipe, {"prompt": "a cat", "negative_prompt": "dog"}, size, 2)
    block = next(name for name in seen.blocks if name.endswith("attn2"))
    rows = [seen.stack(block, 1, row).key for row in (0, 1)]
    assert rows[0].labels == ("[CLS]", "d", "o", "g", "[SEP]", "[PAD]", "[PAD]")
    assert rows[1].labels == ("[CLS]", "a", "c", "a", "t", "[SEP]", "[PAD]")
    assert rows[1].special == (True, False, False, False, False, True, True)


def test_what_is_kept_is_chosen(tmp_path):
    pipe, given, model, size = flux()
    with watch_pipeline(pipe, blocks=["single_transformer_blocks.1"]) as seen:
        ran(pipe, given, size, 2)
    assert seen.blocks == ("single_transformer_blocks.1.attn",)
    assert seen.steps == (0, 1)
    positions, features, heads = 24 + WORDS, 8, 3
    # Queries and keys in single precision, as the docstring says, and little else.
    assert seen.nbytes == 2 * heads * 8 * positions * features
    with watch_pipeline(model, steps=[0], keep="weights") as weights:
        ran(pipe, given, size, 2)
    block = seen.blocks[0]
    assert np.abs(weights.weights(block)[0] - seen.weights(block)[0]).max() < 1e-6
    record = seen.records[1][0]
    hs.save(record, tmp_path / "step.safetensors")
    assert_close(hs.load(tmp_path / "step.safetensors")[block].weights(), record[block].weights())


def test_what_cannot_be_seen_is_refused():
    pipe, given, model, size = flux()
    wrong = {
        r"ran 2 steps .* none of the steps \[5\] was kept": {"steps": [5]},
        r"None of the blocks \['gone'\] is there; there are t": {"blocks": ["gone"]},
        "1 words were given for a text of 7 positions": {"words": ["cat"]},
    }
    for message, chosen in wrong.items():
        with pytest.raises(CaptureError, match=message), watch_pipeline(pipe, **chosen):
            ran(pipe, given, size, 2)
    with pytest.raises(CaptureError, match="str has no transformer and no unet"):
        watch_pipeline("pipe").__enter__()
    assert "forward" not in vars(model)
    with watch_pipeline(pipe, steps=[0]) as seen:
        assert seen.blocks == ()
        ran(pipe, given, size, 2)
    for wrong in (
        lambda: seen.stack("gone", 0),
        lambda: seen.stack(seen.blocks[0], 1),
        lambda: seen.stack(seen.blocks[0], 0, row=4),
        lambda: seen.weights(seen.blocks[0], "sound"),
        lambda: seen.maps(seen.blocks[0], WORDS),
    ):
        with pytest.raises(CaptureError, match="there are|There is no|positions of text"):
            wrong()
