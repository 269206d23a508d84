"""A hub that cannot be reached is told at once, and the cache is used where it holds the model."""

import socket

import pytest
import transformers
from huggingface_hub import constants, file_download

import headscope as hs
from headscope.capturing import _hub, load_model
from headscope.errors import ModelError
from headscope.testing import tiny_model, tiny_tokenizer


@pytest.fixture
def refusing(monkeypatch):
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    _hub._unreachable.cache_clear()


@pytest.fixture
def silent(monkeypatch):
    """An address that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(_hub, "WAIT", 0.2)
        _hub._unreachable.cache_clear()
        yield


@pytest.mark.parametrize("hub", ["refusing", "silent"])
def test_a_hub_that_does_not_answer_is_told_before_its_client_tries(hub, request, monkeypatch):
    request.getfixturevalue(hub)
    monkeypatch.setattr(
        transformers.AutoConfig, "from_pretrained", lambda *_, **__: pytest.fail("it was asked")
    )
    with pytest.raises(ModelError, match=r"127.0.0.1:\d+ cannot be reached \(.+\), and no file of"):
        load_model("headscope-no/such-model")


def test_the_wait_is_short():
    assert _hub.WAIT <= 5


def test_what_is_in_the_cache_is_loaded_all_the_same(refusing, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    commit = "0123456789abcdef0123456789abcdef01234567"
    kept = tmp_path / "models--headscope--tiny"
    for part in (tiny_model("bert"), tiny_tokenizer()):
        part.save_pretrained(kept / "snapshots" / commit)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(commit)
    given, own = {}, transformers.AutoConfig.from_pretrained

    def noted(name, **options):
        given.update(options)
        return own(name, **options)

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", noted)
    # it is not asked for adapters either: its client tries for half a minute
    monkeypatch.setattr(
        file_download, "get_hf_file_metadata", lambda *_, **__: pytest.fail("it was asked")
    )
    record = hs.capture("headscope/tiny", text="a cat")
    assert given["local_files_only"] is True
    assert record.model.name == "headscope/tiny"


def test_a_folder_needs_no_hub(refusing, tmp_path):
    for part in (tiny_model("bert"), tiny_tokenizer()):
        part.save_pretrained(tmp_path / "tiny")
    assert load_model(tmp_path / "tiny")[0].config.model_type == "bert"
