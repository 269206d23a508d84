"""Patterns that are made of positions or segments go with them; planted in real models by hand."""

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import CaptureError, RecordError
from headscope.capturing import random_twin, without_embedding
from headscope.patterns import Changes, heads
from headscope.testing import tiny_model, tiny_tokenizer

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "it",
    "and",
    "a",
    "dog",
    "ran",
    "off",
    "by",
    "me",
    "to",
    "see",
    "an",
    "owl",
]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(2)
    return [(" ".join(rng.choice(WORDS, 5)), " ".join(rng.choice(WORDS, 4))) for _ in range(24)]


@pytest.fixture(scope="module")
def planted():
    """A BERT of one layer: head 0 finds the previous token by position, head 1 the own sentence by
    segment.

    Positions are angles in features 0 and 1 with a turn of 0.3 a token, segments the sign of
    feature 2; the norm is taken out, and words are noise in the rest.
    """
    model = tiny_model("bert", num_hidden_layers=1)
    width = model.config.hidden_size
    size = width // model.config.num_attention_heads
    table = model.embeddings
    with torch.no_grad():
        angles = 0.1 * torch.arange(table.position_embeddings.num_embeddings)
        for embedding in (
            table.word_embeddings,
            table.position_embeddings,
            table.token_type_embeddings,
        ):
            embedding.weight.zero_()
        table.word_embeddings.weight[:, 3:] = 0.1 * torch.randn(
            table.word_embeddings.num_embeddings,
            width - 3,
            generator=torch.Generator().manual_seed(0),
        )
        table.position_embeddings.weight[:, 0], table.position_embeddings.weight[:, 1] = (
            angles.cos(),
            angles.sin(),
        )
        table.token_type_embeddings.weight[:, 2] = torch.tensor([1.0, -1.0])
        table.LayerNorm = torch.nn.Identity()
        own = model.encoder.layer[0].attention.self
        for part in (own.query, own.key):
            part.weight.zero_()
            part.bias.zero_()
        strength = 40.0 * size**0.25
        turn = torch.tensor([[np.cos(0.1), np.sin(0.1)], [-np.sin(0.1), np.cos(0.1)]]).float()
        own.query.weight[0:2, 0:2] = strength * turn
        own.key.weight[0:2, 0:2] = strength * torch.eye(2)
        own.query.weight[size, 2] = own.key.weight[size, 2] = 4.0
    return model


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = tiny_tokenizer()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return tokenizer


def told(changes, head, pattern):
    return next(each for each in changes.all if (each.head, each.pattern) == (head, pattern))


def test_a_head_made_of_positions_goes_with_them_and_one_made_of_segments_stays(
    planted, tokenizer, texts
):
    with without_embedding(planted, "segment") as names:
        assert names == ("embeddings.token_type_embeddings",)
    changes = hs.embedding_role(planted, tokenizer, texts, role="position")
    first, second = told(changes, 0, "previous"), told(changes, 1, "bag")
    assert first.held
    assert first.gone
    assert first.before_low > 0.8
    assert first.after_high < 0.2
    assert first.change_high < -0.6
    assert first.effect < -5
    assert second.held
    assert not second.gone
    assert second.change == 0


def test_a_head_made_of_segments_goes_with_them_and_one_made_of_positions_stays(
    planted, tokenizer, texts
):
    changes = hs.embedding_role(planted, tokenizer, texts, role="segment")
    assert told(changes, 1, "bag").gone
    assert told(changes, 0, "previous").change == 0
    assert {each.head for each in changes.held if each.gone} == {1}
    lines = str(changes).splitlines()
    assert "without the embedding of segments: of" in lines[0]
    assert any("bag" in line and line.endswith("gone") for line in lines)


def test_the_mean_may_be_left(planted, tokenizer, texts):
    changes = hs.embedding_role(planted, tokenizer, texts, role="position", by="mean")
    assert told(changes, 0, "previous").gone
    assert "(its mean left)" in repr(changes)


def test_random_weights_stand_beside(planted, tokenizer, texts):
    found = hs.embedding_role(planted, tokenizer, texts, random_weights=True)
    wanted = hs.embedding_role(random_twin(planted), tokenizer, texts)
    assert found.control.columns() == wanted.columns()
    held, gone = len(wanted.held), sum(each.gone for each in wanted.held)
    assert str(found).endswith(
        f"\nThe same with random weights: of {held} labels over 24 texts, {gone} are gone"
    )


def test_texts_and_what_they_cannot_tell_are_said(planted, tokenizer, texts):
    few = hs.embedding_role(planted, tokenizer, texts[:4])
    lengths = [
        len(record["self"].query) for record in hs.capture_many(planted, tokenizer, texts[:4])
    ]
    assert f"Texts of {np.median(lengths):.0f} tokens (median)" in str(few)
    assert "4 texts are too few to tell" in str(few)


def test_changes_are_those_of_the_scores(planted, tokenizer, texts):
    changes = hs.embedding_role(planted, tokenizer, texts, role="segment")
    with without_embedding(planted, "segment"):
        after = hs.heads(planted, tokenizer, texts)
    before = hs.heads(planted, tokenizer, texts)
    row = before.tally.rows.index("bag")
    apart = after.tally.statistic.values[:, row, 1] - before.tally.statistic.values[:, row, 1]
    found = told(changes, 1, "bag")
    assert found.change == pytest.approx(apart.mean())
    assert found.change_low < apart.mean() < found.change_high
    columns = changes.columns()
    assert len(set(map(len, columns.values()))) == 1
    assert len(columns["held"]) == len(changes.all)


def test_models_without_and_other_texts_are_refused(planted, tokenizer, texts):
    with pytest.raises(CaptureError, match="its positions are rotary"):
        hs.embedding_role(tiny_model("llama"), tokenizer, texts)
    with pytest.raises(CaptureError, match="gives the model no segments"):
        hs.embedding_role(planted, tiny_tokenizer(), texts, role="segment")
    with pytest.raises(RecordError, match=r"embedding_role\(model, tokenizer, texts\)"):
        hs.embedding_role(planted)
    first, second = (heads(hs.capture_many(planted, tokenizer, texts[:count])) for count in (2, 3))
    with pytest.raises(RecordError, match="not of the same texts"):
        Changes(first, second)
