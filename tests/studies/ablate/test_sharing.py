"""Layers below the changed one are computed once, and heads of a layer disabled in one pass, with
the same numbers as by whole runs.
"""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from headscope import SetWeights, Zero, ablate, intervene
from headscope.studies.ablate import sharing
from headscope.studies.ablate.sharing import Sharing
from headscope.tasks import Task, likeness, translation
from headscope.testing import tiny_model

from ...close import assert_close
from .conftest import TEXTS, ablated_places, states_task

ALIKE = [
    ("bert", "zero"),
    ("gpt2", "uniform"),
    ("llama", "zero"),
    ("t5", "uniform"),
    ("bart", "zero"),
    ("mpt", "uniform"),
    ("xlnet", "zero"),
]


FEWER = {"bart": {"encoder_layers": 1}, "t5": {"num_layers": 1}}


SUMS = {"rtol": 1e-4, "atol": 1e-4}
"""Scores of these tasks are sums of many numbers of both signs."""
SHARED = "layers below the changed one were computed once"


@pytest.mark.parametrize(("name", "by"), ALIKE)
def test_what_is_shared_is_exact(name, by, tokenizer):
    model = tiny_model(name, **FEWER.get(name, {}))
    task = states_task(tokenizer, TEXTS[:3])
    if model.config.is_encoder_decoder:
        task = translation(tokenizer, list(zip(TEXTS[:3], TEXTS[2:], strict=True)), batch=2)
    found, whole = (ablate(model, task, by=by, share=share) for share in (True, False))
    assert found.shared == SHARED
    assert whole.shared == "the whole model was run every time"
    assert_close(found.scores, whole.scores)
    assert_close(found.intact, whole.intact)
    assert np.abs(found.change).max() > 0


def test_pictures_share_too():
    model = tiny_model("vit")
    size = (model.config.num_channels, *model.config.image_size)
    images = torch.randn(3, *size, generator=torch.Generator().manual_seed(0))
    task = Task(
        [{"pixel_values": images}],
        lambda model, batch: model(**batch)[0].double().sum((1, 2)),
        "pictures",
    )
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert found.shared == SHARED
    assert_close(found.scores, whole.scores)


def test_layers_below_are_passed_over(bert, tokenizer, monkeypatch):
    monkeypatch.setattr(sharing, "MOST_TOKENS", 0)
    task, runs = states_task(tokenizer), []
    ablated_places(bert, task)  # found once for each model
    handles = [
        layer.intermediate.register_forward_hook(lambda *_, at=at: runs.append(at))
        for at, layer in enumerate(bert.encoder.layer)
    ]
    ablate(bert, task, heads=[(1, 0), (1, 1), (2, 0)], layers=False)
    for handle in handles:
        handle.remove()
    # asking which layers there are; the first batch, which is kept; the check of each layer;
    # two more batches that are kept; then each head from its layer on
    counts = [1 + 1 + 1 + 2 + 3 * heads for heads in (0, 2, 3)]
    assert [runs.count(at) for at in range(3)] == counts


def test_one_module_for_all_layers_is_run_as_a_whole(tokenizer):
    model = tiny_model("albert", num_hidden_layers=3)
    found, whole = (ablate(model, states_task(tokenizer), share=share) for share in (True, False))
    assert found.shared == "the whole model was run every time: layers share one module"
    assert_close(found.scores, whole.scores)
    assert np.abs(np.diff(found.change)).min() > 0


def test_layers_that_pass_something_by_the_side_are_found_out(tokenizer):
    """Layer 0 leaves something in a box that layer 2 takes: passing over layer 0 would leave it
    empty.
    """
    model, box = tiny_model("bert", num_hidden_layers=3), {}
    first, last = (model.encoder.layer[at].output.dense for at in (0, 2))
    handles = [
        first.register_forward_hook(lambda *_: box.update(bias=1.0)),
        last.register_forward_hook(lambda module, args, made: made + box.pop("bias", 0.0)),
    ]
    found, whole = (ablate(model, states_task(tokenizer), share=share) for share in (True, False))
    for handle in handles:
        handle.remove()
    assert found.shared == (
        "the whole model was run every time: passing over the layers below Layer 2 changes what "
        "the model returns"
    )
    assert_close(found.scores, whole.scores)


@pytest.fixture
def sizes(monkeypatch):
    """How many changes shared each pass, in the order of the passes."""
    sizes, passes = [], Sharing.passes

    def noted(self, *given):
        made = passes(self, *given)
        if not self.reason:
            sizes.extend(len(one.numbers) for one in made)
        return made

    monkeypatch.setattr(Sharing, "passes", noted)
    return sizes


def several(name, tokenizer):
    """A model, and a task of batches that are large enough for copies to come out alike."""
    fewer = {"encoder_layers": 1} if name == "bart" else {}
    model = tiny_model(name, **fewer)
    if model.config.is_encoder_decoder:
        return model, translation(tokenizer, list(zip(TEXTS, TEXTS[::-1], strict=True)), batch=5)
    return model, states_task(tokenizer, batch=5)


def one_by_one(monkeypatch, *given, **options):
    with monkeypatch.context() as patch:
        patch.setattr(sharing, "MOST_TOKENS", 0)
        return ablate(*given, **options)


def test_copies_are_exact_in_every_way_of_disabling(tokenizer, sizes, monkeypatch):
    model, task = several("bert", tokenizer)
    for by in ("zero", "uniform", "mean attention", "mean output"):
        sizes.clear()
        found, whole = (ablate(model, task, by=by, share=share) for share in (True, False))
        # three heads and the whole layer in one pass, for each of two layers
        assert sizes == [4, 4]
        assert_close(found.scores, whole.scores, **SUMS)
        assert_close(found.scores, one_by_one(monkeypatch, model, task, by=by).scores, **SUMS)
        assert np.abs(np.diff(found.change)).min() > 0


def test_a_score_that_looks_inside_the_model_is_given_no_copies(tokenizer, sizes):
    """Embeddings are the states below the head of a classifier."""
    torch.manual_seed(0)
    config = tiny_model("bert").config
    model = AutoModelForSequenceClassification.from_config(config).eval()
    task = likeness(tokenizer, list(zip(TEXTS, TEXTS[::-1], strict=True)), [0, 1, 0, 1, 0.5])
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert set(sizes) == {1}
    assert_close(found.scores, whole.scores, **SUMS)
    assert np.abs(found.totals["mean cosine"][1:]).max() > 0


def test_large_batches_are_given_no_copies(tokenizer, sizes, monkeypatch):
    model, task = several("bert", tokenizer)
    tokens = task.batches[0]["input_ids"].numel()
    for large, together in ((tokens, 4), (tokens - 1, 1)):
        sizes.clear()
        monkeypatch.setattr(sharing, "LARGE", large)
        ablate(model, task)
        assert set(sizes) == {together}


@pytest.mark.parametrize("name", ["gpt2", "llama", "bart", "gemma2", "modernbert", "mixtral", "t5"])
@pytest.mark.parametrize("by", ["zero", "uniform"])
def test_copies_are_exact_in_many_architectures(name, by, tokenizer, sizes):
    model, task = several(name, tokenizer)
    found, whole = (ablate(model, task, by=by, share=share) for share in (True, False))
    assert min(sizes) > 2
    assert_close(found.scores, whole.scores, **SUMS)
    assert np.abs(found.change).max() > 0


def test_weights_and_states_that_a_model_returns_are_those_of_the_copy(tokenizer, sizes):
    model = tiny_model("bert", num_hidden_layers=3)
    model.set_attn_implementation("eager")
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")

    def score(model, batch):
        out = model(**batch, output_hidden_states=True, output_attentions=True)
        each = [*out.hidden_states, *out.attentions]
        return sum(own.double().square().flatten(1).sum(1) for own in each)

    names = ("input_ids", "attention_mask")
    task = Task([{name: inputs[name] for name in names}], score, "all")
    found, whole = (ablate(model, task, by="uniform", share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)


def test_what_is_seen_otherwise_is_run_one_by_one(tokenizer, sizes):
    ablate(*several("xlnet", tokenizer), layers=False)
    # Layers that are seen otherwise are not even tried.
    assert max(sizes, default=1) == 1


def test_a_model_in_which_texts_mix_is_given_no_copies(tokenizer, sizes):
    """The largest of a batch is the same over copies of it, until one of them is changed."""
    model, task = several("bert", tokenizer)
    handle = model.encoder.layer[1].output.dense.register_forward_hook(
        lambda module, args, made: made + made.amax(0)
    )
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    handle.remove()
    assert set(sizes) == {1}
    assert_close(found.scores, whole.scores, **SUMS)


def test_changes_of_ones_own_are_made_one_by_one_in_the_order_of_the_heads(tokenizer, sizes):
    model, task = several("bert", tokenizer)

    def drawn(draw, **where):
        def rows(own):
            return own * torch.rand(1, generator=draw)

        return SetWeights(weights=rows, **where)

    results = []
    for share in (True, False):
        draw = torch.Generator().manual_seed(0)
        by = lambda draw=draw, **where: drawn(draw, **where)  # noqa: E731
        results.append(ablate(model, task, by=by, layers=False, share=share).scores)
    assert_close(*results)


class Halved(Zero):
    """Of one's own, by another name than its parent's."""

    def maker(self, place, heads):
        return lambda old, at: old / 2


def test_a_class_of_ones_own_is_not_taken_for_its_parent(tokenizer):
    model, task = several("bert", tokenizer)
    found, whole = (ablate(model, task, by=Halved, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)
    assert (found.scores != ablate(model, task).scores).all()


def test_a_second_run_that_follows_from_the_first_is_made_for_each_head(tokenizer):
    """Its layers are given something else for every copy: nothing of it may be taken from the
    intact model.
    """
    model = tiny_model("bert", num_hidden_layers=3)
    ids = tokenizer(TEXTS, padding=True, return_tensors="pt")["input_ids"]

    def score(model):
        more = model(input_ids=ids)[0].argmax(-1) % 60
        return model(input_ids=more)[0].double().sum((1, 2))

    found, whole = (ablate(model, score, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)
    assert found.task.endswith("score")


def test_states_that_are_written_to_between_layers_are_not_of_the_copies(tokenizer):
    model, task = several("bert", tokenizer)

    def double(_, args):
        args[0].mul_(2)

    handle = model.encoder.layer[1].register_forward_pre_hook(double)
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    handle.remove()
    assert_close(found.scores, whole.scores, **SUMS)


def test_what_a_score_writes_to_one_copy_is_not_of_the_others(tokenizer):
    model, task = several("bert", tokenizer)

    def score(model, batch):
        return model(**batch)[0].mul_(3).double().sum((1, 2))

    task = Task(task.batches, score, "tripled")
    found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores, **SUMS)


def test_changes_that_are_made_meanwhile_are_of_the_batch(tokenizer, sizes):
    model, task = several("bert", tokenizer)
    with intervene(model, Zero(layer=1, heads=0)):
        found, whole = (ablate(model, task, share=share) for share in (True, False))
    assert not sizes
    assert_close(found.scores, whole.scores, **SUMS)
    assert (found.intact != ablate(model, task).intact).any()


def test_compiled_layers_are_passed_over_too(tokenizer, sizes):
    model, task = several("bert", tokenizer)
    whole = ablate(model, task, share=False)
    for layer in model.encoder.layer:
        layer.compile(backend="eager")
    found = ablate(model, task)
    assert sizes == [4, 4]
    assert_close(found.scores, whole.scores, **SUMS)
