"""`heads` over a corpus: the same however it is run, and what keeps every text
says the same.
"""

import json
from contextlib import closing, contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook

import headscope as hs
from headscope.errors import ModelError, RecordError, RunError
from headscope.evidence import interval, mean_map
from headscope.patterns import Pattern
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "by", "it", "us", "me", "all"]


def corpus(count, seed=0):
    """Texts of several lengths, of documents and alone."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(count):
        words = rng.choice(WORDS, rng.integers(2, 7)).tolist()
        middle = len(words) // 2
        text = " ".join(words)
        texts.append((" ".join(words[:middle]), text) if number % 5 == 0 else text)
    return texts, [f"d{number % 12}" if number % 4 else None for number in range(count)]


def over(folder, texts, groups=None, **options):
    options.setdefault("part_size", 20)
    return hs.heads(folder, texts=texts, groups=groups, progress=False, **options)


def kept_of(result):
    return result.columns()


@pytest.fixture(scope="module")
def wanted(folder):
    return over(folder, *corpus(48))


def test_the_result_is_kept(wanted, folder, tmp_path):
    assert "95% interval over documents" in " ".join(str(wanted).split())
    result = over(folder, *corpus(48), out=tmp_path / "run")
    for path in (tmp_path / "run" / "result.safetensors", result.save(tmp_path / "h.safetensors")):
        loaded = hs.load(path)
        assert_close(kept_of(loaded), kept_of(wanted))
        assert loaded.summary == wanted.summary
        assert str(loaded.head(0, 0)) == str(wanted.head(0, 0))
    assert (wanted.texts, wanted.documents) == (48, 9 + 12)


def test_a_mean_map_that_is_given_is_that_of_the_texts(folder, tmp_path):
    texts, groups = corpus(24)
    out = tmp_path / "run"
    result = over(folder, texts, groups, out=out, position_mean=True, battery=False)
    records = hs.capture_many(folder, texts=texts)
    maps = (np.concatenate([layer.weights_of() for layer in each["self"]]) for each in records)
    mean = mean_map(maps, 30)
    given = over(folder, texts, groups, position_mean=mean, battery=False)
    without = over(folder, texts, groups, battery=False)
    higher = 0
    for own, same, less in zip(
        result.all_labels, given.all_labels, without.all_labels, strict=True
    ):
        assert own.against == same.against
        assert own.baseline == pytest.approx(same.baseline, abs=1e-6, nan_ok=True)
        higher += "position" in own.against and own.baseline > less.baseline
    assert higher > 10
    # Another mean map is another run.
    with pytest.raises(RunError, match='position_mean "'):
        over(folder, texts, groups, out=out, position_mean=mean / 2, battery=False)


def looks_first(maps):
    """1 where the last query looks at the first token more than evenly, else 0."""
    return (maps.weights[:, -1, 0] > 1 / maps.weights.shape[-1]).astype(float)


@pytest.mark.parametrize("has_documents", [False, True])
def test_scores_of_0_and_1_of_a_whole_run_have_wilsons_interval(folder, has_documents):
    unlike = dict(zip(*corpus(60), strict=True))  # copies would be of one document
    texts, groups = list(unlike), list(unlike.values()) if has_documents else None
    pattern = Pattern(name="first", says="", source="", threshold=0.5, score=looks_first)
    given = {"patterns": (pattern,), "battery": False, "confidence": 0.9}
    result = over(folder, texts, groups, **given)
    held = hs.heads(folder, texts=texts, groups=groups, **given)
    by_text = {says: own[0] for says, own in held.tally.examples}
    scores = np.array(
        [by_text[text if isinstance(text, str) else " / ".join(text)] for text in texts]
    )
    assert set(np.unique(scores[~np.isnan(scores)])) == {0.0, 1.0}
    exact = interval(scores, groups=groups, method="wilson", confidence=0.9)
    rates = np.nanmean(scores, axis=0)
    shared = 0
    for label, ends, rate in zip(result.all_labels, exact, rates, strict=True):
        assert label.score == pytest.approx(rate)
        # Scores that are all 0 may be of any kind, and are no shares.
        if rate > 0:
            shared += 1
            assert (label.low, label.high) == pytest.approx(tuple(ends), abs=1e-9)
            assert 0 <= label.low <= rate <= label.high <= 1
    assert shared > 3


def test_texts_that_cannot_be_read_are_named(folder, tmp_path):
    texts, groups = corpus(24)
    bad = ["", 7, "cat " * 1000, {"image": object()}]
    with pytest.warns(UserWarning, match=r"4 inputs were left out, named in .*failed\.jsonl"):
        result = over(folder, [*texts, *bad], [*groups, *"abcd"], out=tmp_path / "run")
    assert result.texts == 24
    assert (tmp_path / "run" / "failed.jsonl").read_text().count("\n") == 4
    for found in (result, hs.load(tmp_path / "run")):
        assert "Left out: 4 of 28 texts" in str(found)


def test_other_weights_are_refused_by_name(folder, tmp_path):
    texts, groups = corpus(24)
    over(folder, texts, groups, out=tmp_path / "run")
    model = tiny_model("bert")
    with torch.no_grad():
        next(model.parameters()).add_(1e-3)
    with pytest.raises(RunError, match=r'was begun with something else: weights "'):
        hs.heads(model, tiny_tokenizer(), texts, groups=groups, out=tmp_path / "run")
    with pytest.raises(RunError, match=r"truncate false, now true"):
        over(folder, texts, groups, out=tmp_path / "run", truncate=True)


def test_an_error_of_an_input_is_its_own_reason(folder, tmp_path):
    """As lines of files have it that are no texts."""
    lost = [ModelError("line 3 has no 'text'"), *corpus(4)[0]]
    over(folder, lost, out=tmp_path / "run", on_error=lambda *_: None)
    assert json.loads((tmp_path / "run" / "failed.jsonl").read_text())["error"] == str(lost[0])


def test_a_part_that_is_damaged_or_of_another_name_is_named(folder, tmp_path):
    texts, groups = corpus(48)
    wanted = over(folder, texts, groups, out=tmp_path / "run")
    one, other = sorted((tmp_path / "run" / "parts").glob("0*"))[:2]
    whole = other.read_bytes()
    for damaged, error, match in (
        (one.read_bytes(), RunError, f'{other} was made with something else: part "{one.stem}"'),
        (
            whole[:-1] + bytes([whole[-1] ^ 255]),
            hs.errors.FileError,
            "is damaged.*delete it and run",
        ),
    ):
        (tmp_path / "run" / "result.safetensors").unlink(missing_ok=True)
        other.write_bytes(damaged)
        with pytest.raises(error, match=match):
            over(folder, texts, groups, out=tmp_path / "run")
    other.unlink()
    assert_close(over(folder, texts, groups, out=tmp_path / "run").columns(), wanted.columns())


def halved(module, given, output):
    return tuple(each / 2 for each in output) if isinstance(output, tuple) else output / 2


@contextmanager
def scaled(attention):
    attention.scaling *= 3
    try:
        yield
    finally:
        attention.scaling /= 3


@contextmanager
def replaced(module, by):
    name = "intermediate_act_fn" if isinstance(by, torch.nn.Module) else "forward"
    before = getattr(module, name)
    setattr(module, name, by)
    try:
        yield
    finally:
        setattr(module, name, before)
        vars(module).pop("forward", None)


CHANGES = {
    "autocast": lambda model: torch.autocast("cpu", torch.bfloat16),
    "interventions": lambda model: hs.intervene(model, hs.Zero(layer=0)),
    "hook": lambda model: closing(
        SimpleNamespace(close=model.encoder.layer[0].register_forward_hook(halved).remove)
    ),
    "scale": lambda model: scaled(model.encoder.layer[0].attention.self),
    "module": lambda model: replaced(model.encoder.layer[0].intermediate, torch.nn.ReLU()),
    "forward": lambda model: replaced(model.encoder.layer[0].output.dense, torch.zeros_like),
    "hook on all": lambda model: closing(
        SimpleNamespace(close=register_module_forward_hook(lambda *call: None).remove)
    ),
}
SAID = {
    "autocast": "runs on .* autocast bfloat16",
    "interventions": r'by "nothing", now "layer 0: output set to zero \(all heads\)"\. Give',
    "scale": "begun with something else: modules and their numbers ",
    "module": "begun with something else: modules and their numbers ",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_does_not_go_on_with_what_was_changed_around_the_model(name, tmp_path):
    texts, _ = corpus(6)
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    run = {"out": tmp_path / "run", "progress": False, "battery": False}
    first = hs.heads(model, tokenizer, texts, **run)
    match = SAID.get(name, 'changed by "nothing", now "a hook on ')
    with CHANGES[name](model), pytest.raises(RunError, match=match):
        hs.heads(model, tokenizer, texts, **run)
    assert_close(first.columns(), hs.heads(model, tokenizer, texts, **run).columns())


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"workers": 2, "patern": 1}, RecordError, "no option 'patern'"),
        ({"workers": 2, "correction": "bonferroni"}, RecordError, "give one of holm, benj"),
        ({"workers": 0}, RunError, "from 1 on, not 0"),
        ({"out": "run", "groups": ["a"]}, RecordError, "1 groups were given for"),
    ],
)
def test_what_a_run_cannot_do_is_said(folder, tmp_path, monkeypatch, options, error, match):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        hs.heads(folder, texts=corpus(6)[0], **options)


def test_a_loaded_model_does_not_go_to_other_processes(folder):
    model = tiny_model("bert")
    with pytest.raises(RunError, match="cannot go to other processes; give its name"):
        hs.heads(model, tiny_tokenizer(), corpus(6)[0], workers=2)
    with pytest.raises(RunError, match="leave tokenizer out"):
        hs.heads(folder, tiny_tokenizer(), corpus(6)[0], workers=2)
    with pytest.raises(RecordError, match=r"are for a run over texts; give \(model"):
        hs.heads(hs.capture(model, tiny_tokenizer(), "the cat"), workers=2)
    with pytest.raises(ModelError):
        hs.heads(f"{folder}-not", texts=corpus(6)[0], workers=1, progress=False)
