"""Models in wrappers: those that run the model inside are captured, those that cannot be watched
say so.
"""

import numpy as np
import pytest
import torch
from torch import nn

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

TEXT = "the cat sat."


def with_adapters(family):
    """A model with LoRA adapters that do something, by PEFT."""
    peft = pytest.importorskip(
        "peft", reason="peft, which puts adapters into models, is not installed"
    )
    model = tiny_model(family, writes=True)
    if family == "t5":
        config = peft.LoraConfig(target_modules=["q", "v"], task_type="SEQ_2_SEQ_LM")
    else:
        config = peft.LoraConfig(
            target_modules=["q_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM"
        )
    torch.manual_seed(0)
    wrapped = peft.get_peft_model(model, config).eval()
    for name, parameter in wrapped.named_parameters():
        if "lora" in name:
            nn.init.normal_(parameter, std=0.3)
    return wrapped


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_a_model_in_peft_generates_as_the_model_inside(family):
    wrapped, tokenizer = with_adapters(family), tiny_tokenizer()
    options = {"max_new_tokens": 4, "eos_token_id": 63}
    outside = hs.generate(wrapped, tokenizer, TEXT, **options)
    inside = hs.generate(wrapped.base_model.model, tokenizer, TEXT, **options)
    assert_close(outside.generation, inside.generation)
    assert outside.generation.reads == inside.generation.reads
    for name, stack in outside.stacks.items():
        for layer, other in zip(stack, inside[name], strict=True):
            assert_close(layer.weights, other.weights)
    assert not any(module._forward_hooks for module in wrapped.modules())


@pytest.mark.parametrize("act", [hs.capture, hs.generate])
def test_copies_of_a_model_are_refused_in_one_line(act):
    with pytest.raises(
        hs.errors.CaptureError, match="DataParallel runs copies of a model; give the"
    ):
        act(nn.DataParallel(tiny_model("llama", writes=True)), tiny_tokenizer(), TEXT)


def test_a_traced_model_is_refused_in_one_line():
    traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), torch.ones(2, 3))
    with (
        pytest.raises(hs.errors.CaptureError, match="runs as a graph of TorchScript"),
        hs.watch(traced),
    ):
        pass


def test_a_model_of_sounds_says_so_before_it_writes():
    with pytest.raises(hs.errors.CaptureError, match=r"reads no text; give it a sound"):
        hs.generate(tiny_model("whisper", writes=True), tiny_tokenizer(), TEXT)


def test_nothing_to_run_on_is_one_line():
    with pytest.raises(hs.errors.CaptureError, match="holds no input_ids, and no tensor"):
        capture_encoded(tiny_model("llama"), None, {})


class Inner(nn.Module):
    """Attention that is handed ``use_cache`` by the model around it."""

    def __init__(self):
        super().__init__()
        self.projection = nn.Linear(6, 6)

    def forward(self, states, use_cache=None):
        return self.projection(
            nn.functional.scaled_dot_product_attention(states, states, states)[:, 0]
        )


def test_a_model_that_sets_use_cache_itself_is_not_given_it_twice():
    """As the encoders of Mimi and Pocket TTS."""
    from transformers import PretrainedConfig, PreTrainedModel

    class Outer(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.embedding, self.inner = nn.Embedding(9, 6), Inner()
            self.post_init()

        def forward(self, input_ids, streams=False, **options):
            return self.inner(self.embedding(input_ids)[:, None], use_cache=streams, **options)

    config = PretrainedConfig()
    config.use_cache = True
    (record,) = capture_encoded(
        Outer(config).eval(), None, {"input_ids": torch.tensor([[1, 2, 3]])}
    )
    assert record["self"].layers[0].size == (3, 3)


class Joint(nn.Module):
    """Joint attention as in Stable Diffusion 3: both sequences are queries and keys alike."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, hidden_states, encoder_hidden_states=None, joint=True):
        both = torch.cat([hidden_states, encoder_hidden_states], 1)
        query, key, value = (
            part(states).unflatten(-1, (2, 4)).transpose(1, 2)
            for part, states in (
                (self.to_q, both if joint else hidden_states),
                (self.to_k, both if joint else encoder_hidden_states),
                (self.to_v, both if joint else encoder_hidden_states),
            )
        )
        context = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.to_out(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("joint", "stack", "size"), [(True, "self", (7, 7)), (False, "cross", (4, 3))]
)
def test_joint_attention_is_no_cross_attention(joint, stack, size):
    class AttentionModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = JointAttention()

        def forward(self, states, text):
            return self.attention(states, encoder_hidden_states=text, joint=joint)

    class JointAttention(Joint):
        pass

    model = AttentionModel()
    with hs.watch(model) as seen:
        model(torch.randn(1, 4, 8), torch.randn(1, 3, 8))
    assert list(seen.record.stacks) == [stack]
    assert seen.record[stack].layers[0].size == size


def test_what_a_full_layer_shows_is_a_mask_of_everything():
    layer = hs.capture(tiny_model("bert"), tiny_tokenizer(), TEXT)["self"].layers[0]
    visible = np.asarray(layer.visible)
    assert visible.shape == layer.size
    assert visible.dtype == bool
    assert visible.all()
    assert layer.kind == "full"


def test_what_is_written_is_read_by_the_tokenizer_of_the_target_side():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    letters = {f"<{number}>": number for number in range(64)}
    other = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(letters, unk_token="<0>")), unk_token="<0>"
    )
    model = tiny_model("bart", writes=True)
    record = hs.generate(
        model, tiny_tokenizer(), TEXT, target_tokenizer=other, max_new_tokens=3, min_new_tokens=3
    )
    written = record.generation.tokens
    assert written.pieces == tuple(f"<{number}>" for number in written.ids)
    assert all(piece in record.generation.text for piece in written.pieces)
    assert record["decoder"].query.pieces[0].startswith("<")
    assert record["encoder"].query.pieces[0] == "[CLS]"
    assert all(
        each.piece.startswith("<")
        for alternatives in record.generation.alternatives
        for each in alternatives
    )
