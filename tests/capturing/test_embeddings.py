"""A model without its positions or segments: found by trying, gone inside, whole again behind."""

import copy

import jaxtyping
import pytest
import torch

import headscope as hs
from headscope import CaptureError
from headscope.capturing import without_embedding
from headscope.testing import tiny_model, tiny_tokenizer

IDS = torch.tensor([[7, 9, 11, 30, 8, 21, 40]])
ORDER = torch.tensor([4, 0, 6, 2, 5, 1, 3])


def hidden(model, ids=IDS, **more):
    with torch.no_grad():
        return model(input_ids=ids, **more).last_hidden_state


def hooks(model):
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "embeddings.position_embeddings"),
        ("roberta", "embeddings.position_embeddings"),
        ("albert", "embeddings.position_embeddings"),
        ("distilbert", "embeddings.position_embeddings"),
    ],
)
def test_without_positions_an_encoder_does_not_know_the_order(family, name):
    model = tiny_model(family)
    assert not torch.allclose(hidden(model)[:, ORDER], hidden(model, IDS[:, ORDER]), atol=1e-3)
    with without_embedding(model, "position") as names:
        torch.testing.assert_close(
            hidden(model)[:, ORDER], hidden(model, IDS[:, ORDER]), atol=1e-5, rtol=0
        )
    assert names == (name,)


def test_without_segments_a_model_does_not_tell_texts_apart():
    model = tiny_model("bert")
    segments = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    assert not torch.allclose(hidden(model, token_type_ids=segments), hidden(model), atol=1e-3)
    with without_embedding(model, "segment") as names:
        torch.testing.assert_close(hidden(model, token_type_ids=segments), hidden(model))
    assert names == ("embeddings.token_type_embeddings",)


def test_taking_away_is_a_table_of_zeros():
    model, changed = tiny_model("gpt2"), copy.deepcopy(tiny_model("gpt2"))
    changed.wpe.weight.data.zero_()
    with without_embedding(model, "position"):
        torch.testing.assert_close(hidden(model), hidden(changed))


def test_the_mean_is_left_where_asked():
    model, changed = tiny_model("bert"), copy.deepcopy(tiny_model("bert"))
    table = changed.embeddings.position_embeddings.weight
    table.data[:7] = table.data[:7].mean(dim=0)
    with without_embedding(model, "position", by="mean"):
        torch.testing.assert_close(hidden(model), hidden(changed))


def test_words_that_share_their_table_with_segments_stay():
    model = tiny_model("gpt2")
    segments = torch.tensor([[3, 3, 3, 5, 5, 5, 5]])
    with without_embedding(model, "segment") as names:
        assert names == ("wte",)
        torch.testing.assert_close(hidden(model, token_type_ids=segments), hidden(model))
        assert not torch.allclose(hidden(model), hidden(model, IDS + 1), atol=1e-3)


def test_both_sides_of_an_encoder_decoder_lose_their_positions():
    with without_embedding(tiny_model("bart"), "position") as names:
        assert names == ("model.encoder.embed_positions", "model.decoder.embed_positions")


def test_the_model_is_whole_again_also_after_an_error():
    model = tiny_model("bert")
    model.train()
    before = hooks(model)
    whole = hidden(model.eval())
    model.train()

    def fail():
        assert hooks(model) > before
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), without_embedding(model, "position"):
        fail()
    assert hooks(model) == before
    assert model.training
    assert torch.equal(hidden(model.eval()), whole)


def test_captures_inside_are_of_the_changed_model():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    whole = hs.capture(model, tokenizer, "the cat", "it sat")
    with without_embedding(model, "segment"):
        changed = hs.capture(model, tokenizer, "the cat", "it sat")
    assert abs(whole["self"].weights(0) - changed["self"].weights(0)).max() > 0.01
    assert changed.verified < 1e-4


@pytest.mark.parametrize(
    ("family", "role", "why"),
    [
        ("llama", "position", "its positions are rotary: they turn queries and keys"),
        ("roformer", "position", "its positions are rotary"),
        ("bloom", "position", "its positions are ALiBi"),
        ("t5", "position", "its positions are relative"),
        ("mamba", "position", "none was seen"),
        ("distilbert", "segment", "DistilBertModel has no embedding of segments"),
        ("yoso", "segment", "has no embedding of segments"),
        ("vit", "position", "ViTModel does not read words alone"),
    ],
)
def test_a_model_without_is_refused_with_the_reason(family, role, why):
    model = tiny_model(family)
    before = hooks(model)
    with pytest.raises(CaptureError, match=why), without_embedding(model, role):
        pass
    assert hooks(model) == before


def test_rotary_turns_as_wide_as_the_words_are_no_embedding():
    model = tiny_model("roformer", num_attention_heads=1)
    with pytest.raises(CaptureError, match="rotary"), without_embedding(model, "position"):
        pass


@pytest.mark.parametrize(("role", "by"), [("positions", "zero"), ("position", "median")])
def test_what_there_is_not_is_refused(role, by, monkeypatch):
    monkeypatch.setitem(jaxtyping.config.__dict__, "jaxtyping_disable", True)
    with (
        pytest.raises(CaptureError, match="there are position and segment, by zero or mean"),
        without_embedding(tiny_model("bert"), role, by=by),
    ):
        pass
