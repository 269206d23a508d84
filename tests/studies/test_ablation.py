"""Ablation: against weights set to zero by hand, shared against whole runs to the last bit, killed
and gone on with.
"""

import dataclasses
import functools
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import headscope as hs
from headscope import FileError, InterventionError, RecordError, ablate
from headscope.capturing import random_twin
from headscope.evidence import holm, p_flipped
from headscope.interventions import Objective, leave_one_out
from headscope.studies import Ablation
from headscope.studies.ablation.prefix import Prefix
from headscope.tasks import Task, next_word, translation
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["the cat sat on it.", "a bee", "on it she ran", "he, too", "so far so good, no"]


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture(scope="module")
def bert():
    return tiny_model("bert", num_hidden_layers=3)


def states_task(tokenizer, texts=TEXTS, batch=2):
    """The mean of the last states, which every model has and every change moves."""
    inputs = [
        tokenizer(texts[at : at + batch], padding=True, return_tensors="pt")
        for at in range(0, len(texts), batch)
    ]
    names = ("input_ids", "attention_mask")

    def score(model, batch):
        states = model(**batch)[0].double()
        kept = batch["attention_mask"][..., None]
        return (states * kept * torch.linspace(-1, 1, states.shape[-1])).sum((1, 2))

    return Task([{name: one[name] for name in names} for one in inputs], score, "states", "sum")


def test_zero_is_zeros_in_the_projection(bert, tokenizer):
    task = states_task(tokenizer)
    found = ablate(bert, task)
    layers, heads = 3, bert.config.num_attention_heads
    size = bert.config.hidden_size // heads
    assert found.cells[:2] == (("self", 0, 0), ("self", 0, 1))
    assert len(found.cells) == layers * heads + layers
    for cell, column in zip(found.cells, found.scores.T, strict=True):
        _, layer, head = cell
        dense = bert.encoder.layer[layer].attention.output.dense.weight
        kept = dense.detach().clone()
        own = slice(None) if head < 0 else slice(head * size, (head + 1) * size)
        with torch.no_grad():
            dense[:, own] = 0
            wanted = np.concatenate([task.values(bert, number)[:, 0] for number in range(3)])
            dense.copy_(kept)
        np.testing.assert_allclose(column, wanted, atol=1e-4)
    assert np.abs(found.change).min() > 1e-3


@pytest.mark.parametrize("by", ["zero", "uniform", "mean attention", "mean output"])
def test_it_is_leaving_out_one_at_a_time(by, bert, tokenizer):
    task = states_task(tokenizer)
    records = [hs.capture(bert, tokenizer, text, keep=("weights", "values")) for text in TEXTS]
    means = {"mean attention": hs.Mean, "mean output": hs.MeanOutput}
    way = (
        functools.partial(means[by], records=records)
        if by in means
        else {"zero": hs.Zero, "uniform": hs.Uniform}[by]
    )
    objective = Objective(task.batches, lambda model, batch: -task.score(model, batch))
    for layers in (False, True):
        wanted = leave_one_out(bert, objective, by=way, layers=layers)
        found = ablate(bert, task, by=by, heads=not layers, layers=layers)
        assert found.cells == wanted.cells
        np.testing.assert_allclose(found.changes, -wanted.values, atol=1e-4 if by in means else 0)


def test_the_old_name_of_mean_attention_is_told(bert, tokenizer):
    task = states_task(tokenizer)
    with pytest.warns(DeprecationWarning, match="is called 'mean attention' now"):
        old = ablate(bert, task, by="mean", heads=[(0, 0)], layers=False)
    new = ablate(bert, task, by="mean attention", heads=[(0, 0)], layers=False)
    np.testing.assert_array_equal(old.scores, new.scores)
    other = ablate(bert, task, by="mean output", heads=[(0, 0)], layers=False)
    assert (old.by, other.by) == (
        "attention made the mean over texts",
        "output made the mean over texts",
    )
    assert (old.scores != other.scores).any()


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
    assert np.array_equal(found.scores, whole.scores)
    assert np.array_equal(found.intact, whole.intact)
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
    assert np.array_equal(found.scores, whole.scores)


def test_layers_below_are_passed_over(bert, tokenizer):
    task, runs = states_task(tokenizer), []
    ablated_places(bert, task)  # found once for each model
    handles = [
        layer.intermediate.register_forward_hook(lambda *_, at=at: runs.append(at))
        for at, layer in enumerate(bert.encoder.layer)
    ]
    ablate(bert, task, heads=[(1, 0), (1, 1), (2, 0)], layers=False)
    for handle in handles:
        handle.remove()
    # asking which layers there are; the whole run that the check goes by; the check, from each
    # layer on; three batches that are kept; then each head from its layer on
    counts = [
        1 + 1 + check + 3 + 3 * heads for check, heads in zip((1, 2, 3), (0, 2, 3), strict=True)
    ]
    assert [runs.count(at) for at in range(3)] == counts


def test_one_module_for_all_layers_is_run_as_a_whole(tokenizer):
    model = tiny_model("albert", num_hidden_layers=3)
    found, whole = (ablate(model, states_task(tokenizer), share=share) for share in (True, False))
    assert found.shared == "the whole model was run every time: layers share one module"
    assert np.array_equal(found.scores, whole.scores)
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
        "the whole model was run every time: passing over the layers below Layer 1 changes what "
        "the model returns"
    )
    assert np.array_equal(found.scores, whole.scores)


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
    assert np.array_equal(found.scores, whole.scores)


def ablated_places(model, task):
    from headscope.interventions.session import plan_on

    return plan_on(model, lambda: task.values(model, 0)).places


def test_scores_of_several_runs_that_follow_from_each_other(bert, tokenizer):
    """The second run reads what the first one gave: nothing of it may be taken from the intact
    model.
    """
    ids = tokenizer(TEXTS[:3], padding=True, return_tensors="pt")["input_ids"]

    def score(model):
        more = model(input_ids=ids)[0].argmax(-1) % 60
        return model(input_ids=more)[0].double().sum((1, 2))

    found, whole = (ablate(bert, score, share=share) for share in (True, False))
    assert np.array_equal(found.scores, whole.scores)
    assert found.task.endswith("score")


def test_a_model_that_writes_comes_back_as_it_was(tokenizer):
    model = tiny_model("gpt2", writes=True).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = ablate(model, next_word(tokenizer, TEXTS, batch=3), heads=[(0, 1)], layers=[1])
    assert found.cells == (("self", 0, 1), ("self", 1, -1))
    assert model.training
    assert model.config.use_cache
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


KILLED = """
import os, signal, sys
import torch
import headscope as hs
from headscope.tasks import Task, next_word
from headscope.testing import tiny_model, tiny_tokenizer
torch.set_num_threads(1)
task = next_word(tiny_tokenizer(), {texts!r}, batch=2)
runs = 0
def score(model, batch):
    global runs
    runs += 1
    if runs > 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.score(model, batch)
said = (task.name, task.metric, task.columns, task.order)
own = Task(task.batches, score, *said, totals=task.totals)
hs.ablate(tiny_model("gpt2", writes=True), own, resume=sys.argv[1])
"""


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_killed_halfway_nothing_is_lost(tmp_path, tokenizer, one_thread):
    script, cut, whole = (tmp_path / name for name in ("killed.py", "cut", "whole"))
    script.write_text(KILLED.format(texts=TEXTS), encoding="utf-8")
    assert subprocess.run([sys.executable, script, cut], check=False).returncode == -signal.SIGKILL
    task, model, runs = next_word(tokenizer, TEXTS, batch=2), tiny_model("gpt2", writes=True), []
    wanted = ablate(model, task, resume=whole)
    kept = cut.read_bytes()
    assert 8 < kept.count(b"\n") < whole.read_bytes().count(b"\n") - 8
    cut.write_bytes(
        kept + b'{"batch": 1, "cell": ["self", 0'
    )  # as if it had been killed in the middle of a line

    def counted(model, batch):
        runs.append(1)
        return task.score(model, batch)

    again = ablate(model, dataclasses.replace(task, score=counted), resume=cut)
    assert np.array_equal(again.scores, wanted.scores)
    assert again.columns() == wanted.columns()
    assert cut.read_bytes() == whole.read_bytes()
    assert len(runs) < len(whole.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"texts": TEXTS[1:]}, "another task; give the same again, or name another file"),
        ({"seed": 1}, "another model; give"),
        ({"by": "uniform"}, "another way of disabling heads; give"),
        ({"texts": TEXTS[1:], "seed": 1}, "another model and task; give"),
    ],
)
def test_a_file_of_something_else_is_refused(changed, line, tokenizer, tmp_path):
    given = {"texts": TEXTS, "seed": 0, "by": "zero"}

    def run(texts, seed, by):
        task = next_word(tokenizer, texts)
        return ablate(
            tiny_model("gpt2", writes=True, seed=seed),
            task,
            by=by,
            heads=False,
            resume=tmp_path / "kept.jsonl",
        )

    found = run(**given)
    kept = (tmp_path / "kept.jsonl").read_bytes()
    with pytest.raises(FileError, match=line):
        run(**(given | changed))
    assert (tmp_path / "kept.jsonl").read_bytes() == kept
    assert np.array_equal(run(**given).scores, found.scores)
    assert (tmp_path / "kept.jsonl").read_bytes() == kept


def test_a_score_that_is_no_longer_the_same_is_refused(bert, tokenizer, tmp_path):
    task = states_task(tokenizer)
    ablate(bert, task, heads=False, resume=tmp_path / "kept.jsonl")
    other = Task(
        task.batches, lambda model, batch: 2 * task.score(model, batch), task.name, task.metric
    )
    with pytest.raises(FileError, match="other scores of the intact model on batch 0"):
        ablate(bert, other, resume=tmp_path / "kept.jsonl")


@pytest.mark.parametrize(
    "content", [b"a poem\n", b'{"format": "x"}\n', b"[]\n", b"poem", b'{"format": 1}']
)
def test_files_that_are_none_are_refused(content, bert, tokenizer, tmp_path):
    (tmp_path / "poem").write_bytes(content)
    with pytest.raises(FileError, match="is not a journal of an ablation"):
        ablate(bert, states_task(tokenizer), heads=False, resume=tmp_path / "poem")
    assert (tmp_path / "poem").read_bytes() == content
    with pytest.raises(FileError, match="Cannot resume"):
        ablate(bert, states_task(tokenizer), heads=False, resume=tmp_path / "gone" / "kept.jsonl")


@pytest.fixture(scope="module")
def found(tokenizer):
    model = tiny_model("bart", encoder_layers=1, decoder_layers=2)
    return ablate(
        model, translation(tokenizer, [(a, b) for a in TEXTS for b in TEXTS[:4]], batch=8)
    )


def test_evidence_is_paired_and_corrected_by_family(found):
    np.testing.assert_array_equal(found.changes, found.scores - found.intact[:, None])
    assert found.change == pytest.approx(found.changes.mean(0))
    assert (found.intervals[:, 0] <= found.change).all()
    assert (found.change <= found.intervals[:, 1]).all()
    np.testing.assert_array_equal(found.p, p_flipped(found.changes, flips=9999))
    heads = np.array([cell[2] >= 0 for cell in found.cells])
    np.testing.assert_array_equal(found.corrected[heads], holm(found.p[heads]))
    np.testing.assert_array_equal(found.corrected[~heads], holm(found.p[~heads]))
    assert 0 < found.significant.sum() < len(found.cells)


def test_grids_and_bars_have_every_cell(found):
    assert found.stacks == ("encoder", "decoder", "cross")
    for stack, layers in (("encoder", 1), ("decoder", 2), ("cross", 2)):
        grid, bars = found.grid(stack=stack), found.by_layer(stack=stack)
        assert grid.shape[0] == layers == len(bars)
        for (name, layer, head), value in zip(found.cells, found.change, strict=True):
            if name == stack:
                assert (bars[layer] if head < 0 else grid[layer, head]) == value
    assert found.grid("score")[0, 0] == pytest.approx(found.scores[:, 0].mean())
    assert set(np.unique(found.grid("significant", "cross"))) <= {0.0, 1.0}
    with pytest.raises(RecordError, match="no stack 'self'; there are encoder, decoder, cross"):
        found.grid(stack="self")
    with pytest.raises(
        RecordError, match="An ablation has no 'p'; it has change, score, significant"
    ):
        found.grid("p")


def test_tables_say_the_same(found):
    rows = found.to_pandas()
    assert rows.shape == (len(found.cells), 14)
    assert {"change", "low", "high", "intact", "intact_low", "intact_high"} <= set(rows.columns)
    assert rows["change"].tolist() == found.change.tolist()
    assert rows["accuracy"].tolist() == list(found.totals["accuracy"][1:])
    assert found.to_polars()["corrected"].to_list() == found.corrected.tolist()
    assert found.to_arrow().to_pydict() == found.columns()


def test_it_prints_what_it_found(found):
    text = str(found)
    words = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    counts = found.counts()
    assert (
        text.startswith("Bart")
        or "translation, 20 examples; disabled: output set to zero" in text.splitlines()[0]
    )
    assert f"{counts['heads']} heads: without them the score falls for {counts['lower']} " in words
    assert "change of log likelihood by layer and head, cross" in text
    assert "\ncross layer 1 " in text
    assert "\nencoder 0-0 " in text
    assert "holm over all heads (and over all layers), alpha 0.05; layers below" in words
    assert repr(found) == f"<Ablation: translation, {counts['heads']} heads, 20 examples>"
    assert (
        counts["raise"] + counts["lower"]
        <= counts["heads"]
        == sum(cell[2] >= 0 for cell in found.cells)
    )


def test_it_is_kept_whole(found, tmp_path):
    again = Ablation.load(found.save(tmp_path / "a.npz"))
    assert str(again) == str(found)
    assert again.columns() == found.columns()
    (tmp_path / "b.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-40])
    with pytest.raises(FileError, match=r"b\.npz is cut or holds no ablation"):
        Ablation.load(tmp_path / "b.npz")
    with pytest.raises(FileError, match=r"c\.npz does not exist"):
        Ablation.load(tmp_path / "c.npz")


def test_random_weights_stand_beside(bert, tokenizer, tmp_path):
    task = states_task(tokenizer)
    found = ablate(bert, task, layers=False, random_weights=True, resume=tmp_path / "part")
    alone, null = ablate(bert, task, layers=False), ablate(random_twin(bert), task, layers=False)
    np.testing.assert_array_equal(found.scores, alone.scores)
    np.testing.assert_array_equal(found.control.scores, null.scores)
    np.testing.assert_array_equal(found.control.intact, null.intact)
    assert (found.control.scores != found.scores).any()
    assert found.columns()["random_change"] == null.change.tolist()
    assert {path.name for path in tmp_path.iterdir()} == {"part", "part.random"}
    largest = (
        f"largest change of a head there {np.abs(null.change).max():.2g}, here "
        f"{np.abs(alone.change).max():.2g}"
    )
    assert (
        f"\n\nThe same architecture with random weights:\nintact: {null.metric} {null.baseline:.4g}"
        in str(found)
    )
    assert largest in str(found)
    again = Ablation.load(found.save(tmp_path / "a.npz"))
    assert (str(again), again.columns()) == (str(found), found.columns())


def test_loading_a_result_needs_no_torch(found, tmp_path):
    path = found.save(tmp_path / "a.npz")
    load = f"Ablation.load({str(path)!r})"
    code = (
        f"import sys; from headscope.studies import Ablation; print({load}); sys.exit('torch' in "
        "sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL
        ).returncode
        == 0
    )


def test_the_figure_is_drawn(found, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra figures")
    text = found.plot(tmp_path / "a.svg").read_text(encoding="utf-8")
    for words in (
        "cross, without one head",
        "decoder, without the whole layer",
        ">intact −",
        "a dot: the change is",
    ):
        assert words in text
    assert found.plot(tmp_path / "a.png", width=90).stat().st_size > 5000
    recipe = found.figure().recipe
    assert (recipe["view"], recipe["layers"]) == ("ablation", [0, 1])


def test_one_example_says_nothing_of_others(bert, tokenizer):
    found = ablate(bert, states_task(tokenizer, TEXTS[:1]), heads=False)
    assert np.isnan(found.p).all()
    assert not found.significant.any()
    assert "self" in found.stacks
    assert len(str(found)) > 50


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"heads": [(0, 9)]}, "There is no head 0-9; there are 0-0 to 2-2"),
        ({"layers": [7]}, "There is no layer 7; there are"),
        ({"heads": False, "layers": False}, "Nothing is to be disabled"),
        ({"stack": "cross"}, "This model has the stacks 'self', not 'cross'"),
        ({"by": "nil"}, "by is 'nil'; give 'zero', 'uniform', 'mean attention', 'mean output'"),
        ({"alpha": 2}, "alpha is a number between 0 and 1, not 2"),
        ({"correction": "none"}, "correction is 'none'; give 'holm' or 'benjamini-hochberg'"),
        ({"head": 1}, "ablate has no option 'head'; it has heads, layers"),
    ],
)
def test_bad_options_are_refused(options, line, bert, tokenizer):
    with pytest.raises((InterventionError, RecordError), match=line):
        ablate(bert, states_task(tokenizer), **options)


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("next-word", "A task was given as str; expected a headscope.tasks.Task"),
        (Task((), lambda model, batch: 0, "none"), "The task 'none' has no examples"),
        (
            Task(({},), lambda model, batch: torch.zeros(()), "point"),
            r"The score of 'point' has the shape \[\]",
        ),
        (lambda model: [1.0, 2.0], "The loss does not run BertModel"),
    ],
)
def test_bad_tasks_are_refused(task, line, bert):
    with pytest.raises(InterventionError, match=line):
        ablate(bert, task)


def test_an_example_without_a_finite_score_is_left_out(bert, tokenizer, tmp_path):
    """One example is NaN from the start, another one where a head is disabled."""
    whole = states_task(tokenizer, batch=1)
    count = len(whole.batches)
    with torch.no_grad():
        intact = [float(whole.score(bert.eval(), batch)[0]) for batch in whole.batches]

    def score(model, batch):
        values = whole.score(model, batch)
        number = next(
            at for at, own in enumerate(whole.batches) if own["input_ids"] is batch["input_ids"]
        )
        if number == 0:
            return values * np.nan
        changed = abs(float(values[0]) - intact[number]) > 1e-6
        return values / 0 if number == 2 and changed else values

    options = {"heads": [(0, 0)], "layers": False}
    holed = Task(whole.batches, score, "holed", groups=tuple("abcdefgh"[:count]))
    told = {}
    kept = [number for number in range(count) if number not in (0, 2)]
    path = tmp_path / "kept.jsonl"
    part = ablate(
        bert,
        holed,
        **options,
        resume=path,
        on_error=lambda number, error: told.update({number: str(error)}),
    )
    assert told == {
        0: "The score of 'holed' is not finite",
        2: "The score of 'holed' is not finite with head 0-0 disabled",
    }
    full = ablate(bert, whole, **options)
    np.testing.assert_allclose(part.intact, full.intact[kept], atol=1e-5)
    np.testing.assert_allclose(part.scores, full.scores[kept], atol=1e-5)
    assert part.groups == tuple("abcdefgh"[number] for number in kept)
    with (
        pytest.warns(
            UserWarning, match="example 0 was left out: The score of 'holed' is not finite"
        ),
        pytest.warns(UserWarning, match="example 2 was left out"),
    ):
        again = ablate(bert, holed, **options, resume=path)
    np.testing.assert_array_equal(again.scores, part.scores)


def test_a_task_without_any_finite_score_is_refused(bert, tokenizer):
    whole = states_task(tokenizer)
    with pytest.raises(InterventionError, match="The score of 'hole' is not finite"):
        ablate(
            bert,
            Task(whole.batches, lambda *given: whole.score(*given) * np.nan, "hole"),
            heads=[(0, 0)],
        )


def test_values_are_put_back_in_the_order_of_the_texts(tokenizer):
    model = tiny_model("gpt2", writes=True)
    orders = [TEXTS, TEXTS[::-1]]
    one, two = (
        ablate(model, next_word(tokenizer, texts, batch=2), heads=[(1, 0)], layers=False)
        for texts in orders
    )
    np.testing.assert_allclose(one.scores, two.scores[::-1], atol=1e-5)
    np.testing.assert_allclose(one.intact, two.intact[::-1], atol=1e-5)
    assert len(set(one.intact)) == len(TEXTS)


def test_lines_of_the_file_are_json(bert, tokenizer, tmp_path):
    ablate(
        bert, states_task(tokenizer), heads=[(0, 0)], layers=False, resume=tmp_path / "kept.jsonl"
    )
    header, *rows = map(
        json.loads, (tmp_path / "kept.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert header["format"] == "headscope ablation"
    assert [(row["batch"], row["cell"]) for row in rows[:2]] == [(0, None), (0, ["self", 0, 0])]
    assert len(rows) == 6
