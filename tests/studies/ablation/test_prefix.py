"""Layers below the changed one are computed once, with the same numbers."""

import numpy as np
import pytest
import torch

from headscope import ablate
from headscope.studies.ablation.prefix import Prefix
from headscope.tasks import Task, translation
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
    monkeypatch.setattr("headscope.studies.ablation._stacks.MOST_TOKENS", 0)
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


@pytest.mark.parametrize(
    ("name", "before", "after"), [("bert", "embeddings", "pooler"), ("gpt2", "wte", "ln_f")]
)
def test_what_comes_before_the_layers_is_passed_over(name, before, after, tokenizer):
    model, task, runs = tiny_model(name), states_task(tokenizer), []

    def counted(name, forward):
        return lambda *args, **options: runs.append(name) or forward(*args, **options)

    for own in (before, after):
        module = model.get_submodule(own)
        module.forward = counted(own, module.forward)
    prefix = Prefix(model, ablated_places(model, task))
    runs.clear()
    with torch.no_grad():
        with prefix.recording():
            task.values(model, 0)
        with prefix.passing_over_all():
            task.values(model, 0)
        assert runs == [before, after, after]
        with prefix.passing_over_all():
            task.values(model, 1)  # another batch
    assert runs[3:] == [before, after]


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


def test_layers_that_write_to_their_inputs_are_not_passed_over(bert, tokenizer):
    def double(_, args):
        # Returns nothing: what a hook returns stands for all arguments, the mask among them.
        args[0].mul_(2)

    task = states_task(tokenizer)
    handle = bert.encoder.layer[1].register_forward_pre_hook(double)
    prefix = Prefix(bert, ablated_places(bert, task))
    with torch.no_grad(), prefix.recording():
        task.values(bert, 0)
    kept = {
        name: [call.given is not None for call in calls] for name, calls in prefix._kept.items()
    }
    found, whole = (ablate(bert, task, share=share) for share in (True, False))
    handle.remove()
    assert kept["encoder.layer.0"] == [False]  # what it returned was doubled
    assert kept["encoder.layer.2"] == [True]
    assert_close(found.scores, whole.scores)


def test_scores_of_several_runs_that_follow_from_each_other(bert, tokenizer):
    """The second run reads what the first one gave: nothing of it may be taken from the intact
    model.
    """
    ids = tokenizer(TEXTS[:3], padding=True, return_tensors="pt")["input_ids"]

    def score(model):
        more = model(input_ids=ids)[0].argmax(-1) % 60
        return model(input_ids=more)[0].double().sum((1, 2))

    found, whole = (ablate(bert, score, share=share) for share in (True, False))
    assert_close(found.scores, whole.scores)
    assert found.task.endswith("score")
