"""Device, precision, revision and what else says how a named model is loaded."""

import json

import pytest
import torch

import headscope as hs
from headscope.capturing import LOADING, load_bare_model, load_model
from headscope.capturing import options as _loading
from headscope.capturing.inputs.parse import parse_input
from headscope.capturing.loading import load_for
from headscope.capturing.options import parse_device, parse_loading
from headscope.errors import ModelError
from headscope.studies.shared import _source
from headscope.testing import tiny_model, tiny_tokenizer

TEXT = "the cat sat."


@pytest.fixture
def save(tmp_path):
    """Save a tiny model in a precision, and give its folder."""

    def save(dtype, *, stated=True, family="llama"):
        folder = tmp_path / f"{family}-{dtype}-{stated}".replace("torch.", "")
        tiny_model(family, writes=True).to(dtype).save_pretrained(folder)
        tiny_tokenizer().save_pretrained(folder)
        if not stated:
            path = folder / "config.json"
            config = json.loads(path.read_text())
            config.pop("dtype")
            path.write_text(json.dumps(config))
        return folder

    return save


def test_a_checkpoint_in_single_precision_is_loaded_as_it_is(save):
    """So are the demo model's numbers what they always were."""
    folder = save(torch.float32)
    own = tiny_model("llama", writes=True).state_dict()
    loaded = load_model(folder, writes=True)[0].state_dict()
    assert all(torch.equal(loaded[name], weights) for name, weights in own.items())
    assert load_model()[0].dtype is torch.float32


def test_a_head_that_nobody_asked_for_is_no_message(save, caplog, capfd, recwarn):
    """transformers prints a table of weights that it calls unexpected."""
    folder = save(torch.float32)
    with caplog.at_level("WARNING"):
        assert len(hs.capture(folder, text=TEXT)["self"]) > 0
    assert "UNEXPECTED" not in ("".join(capfd.readouterr()) + caplog.text)
    assert not recwarn.list


@pytest.mark.parametrize("writes", [True, False])
def test_a_layer_of_the_files_that_is_not_read_is_named(writes, save):
    folder = save(torch.float32)
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] -= 1
    (folder / "config.json").write_text(json.dumps(config))
    last = rf"hold model\.layers\.{config['num_hidden_layers']}\..* and \d+ more"
    with pytest.warns(UserWarning, match=last):
        load_bare_model(folder, head="next word" if writes else "")


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_single_on_the_processor(half, stated, save):
    folder = save(half, stated=stated)
    record = hs.capture(folder, text=TEXT)
    assert record.model.dtype == "float32"
    assert record.verified < 1e-5  # half precision would be a hundred times as far off
    stored = tiny_model("llama", writes=True).to(half).state_dict()
    loaded = load_model(folder, writes=True)[0].state_dict()
    assert all(torch.equal(loaded[name], weights.float()) for name, weights in stored.items())


def test_a_precision_that_is_asked_for_is_taken(save):
    assert hs.capture(save(torch.float32), text=TEXT, dtype="bfloat16").model.dtype == "bfloat16"
    assert (
        hs.capture(save(torch.bfloat16), text=TEXT, dtype=torch.bfloat16).model.dtype == "bfloat16"
    )


def test_what_was_used_is_in_the_record_and_its_file(save, tmp_path):
    record = hs.capture(save(torch.float32), text=TEXT, device="cpu", attn_implementation="eager")
    assert (record.model.device, record.model.implementation, record.model.quantization) == (
        "cpu",
        "eager",
        "",
    )
    assert record.model.ran == "cpu, float32, eager attention"
    assert hs.load(hs.save(record, tmp_path / "run.safetensors")).model == record.model


def test_a_quantised_model_says_so_and_is_left_as_it_was_loaded():
    model = tiny_model("llama", writes=True).to(torch.bfloat16)
    model.config.quantization_config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    placed = parse_loading("x/y", {}).placed(model)
    assert placed.dtype is torch.bfloat16
    record = hs.capture(placed, tiny_tokenizer(), TEXT)
    assert record.model.quantization == "bitsandbytes"
    assert "bitsandbytes" in record.model.ran


def test_a_device_map_is_handed_on(save):
    pytest.importorskip("accelerate", reason="accelerate, which spreads models, is not installed")
    folder = save(torch.bfloat16)
    record = hs.capture(folder, text=TEXT, device_map={"": "cpu"})
    assert record.model.dtype == "bfloat16"  # as transformers has it
    assert record.model.device == "cpu"
    with pytest.raises(ModelError, match="device='cuda' and device_map='auto' both say where the"):
        hs.capture(folder, text=TEXT, device_map="auto", device="cuda")


def test_what_is_given_reaches_transformers(save, monkeypatch):
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    seen = {}
    for loader in (AutoConfig, AutoModel, AutoTokenizer):
        own = loader.from_pretrained

        def noted(name, *args, own=own, called=loader.__name__, **given):
            seen[called] = given
            return own(
                name,
                *args,
                **{key: value for key, value in given.items() if key != "quantization_config"},
            )

        monkeypatch.setattr(loader, "from_pretrained", noted)
    monkeypatch.setattr(_loading, "check_revision", lambda name, revision: revision)
    how = {"load_in_4bit": True}
    load_for(
        save(torch.float32, family="bert"),
        parse_input(TEXT),
        revision="main",
        quantization_config=how,
        dtype="float32",
    )
    assert {given["revision"] for given in seen.values()} == {"main"}
    assert seen["AutoModel"]["quantization_config"] == how
    assert "quantization_config" not in seen["AutoTokenizer"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "There is no device 'gpu'; give auto, cpu, cuda"),
        ({"device": "meta"}, "There is no device 'meta'"),
        ({"device": 3.5}, "There is no device '3.5'"),
        ({"dtype": "bf16"}, "There is no precision 'bf16' for weights; give auto, float32"),
        ({"dtype": "int8"}, "There is no precision 'int8' for weights"),
        ({"revision": "main"}, "revision='main' is of a repository on the hub, and the demo model"),
    ],
)
def test_what_is_not_there_is_one_clear_error(options, message):
    with pytest.raises(ModelError, match=message) as caught:
        hs.capture(None, text=TEXT, **options)
    assert "\n" not in str(caught.value)


def test_a_folder_has_no_revision(save):
    with pytest.raises(ModelError, match="is of a repository on the hub, and the folder .* has"):
        hs.capture(save(torch.float32), text=TEXT, revision="v2")


def test_a_gpu_that_is_not_there_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="The device 'cuda' is not available: PyTorch .* sees no"):
        parse_device("cuda")
    assert parse_device("auto").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert parse_device("auto").type == "cuda"
    assert parse_device("cuda:1").index == 1
    with pytest.raises(ModelError, match="'cuda:2' is not available: this machine has cuda:0 to"):
        parse_device("cuda:2")


GIVEN = {
    "capture": lambda model: hs.capture(model, tiny_tokenizer(), TEXT, device="cpu"),
    "capture_many": lambda model: hs.capture_many(model, tiny_tokenizer(), [TEXT], device="cpu"),
    "generate": lambda model: hs.generate(model, tiny_tokenizer(), TEXT, device="cpu"),
    "heads": lambda model: hs.heads(model, tiny_tokenizer(), [TEXT], device="cpu"),
    "effect": lambda model: hs.effect(
        model, tiny_tokenizer(), TEXT, interventions=[hs.Zero(layer=0)], device="cpu"
    ),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_model_that_is_loaded_takes_no_options_of_loading(way):
    with pytest.raises(ModelError, match="device='cpu' is for a model that is named, .* move it"):
        GIVEN[way](tiny_model("llama", writes=True))


@pytest.mark.parametrize("load", [load_bare_model, load_model])
def test_every_loader_takes_the_options(load, save):
    folder = save(torch.float32)
    loaded = load(folder, dtype="bfloat16", device="cpu")
    assert (loaded[0] if isinstance(loaded, tuple) else loaded).dtype is torch.bfloat16
    with pytest.raises(ModelError, match="Loading a model has no option 'devise'"):
        load(folder, devise="cpu")


def test_loaders_of_heads_take_the_options(tmp_path):
    from transformers import BertForMaskedLM, BertForSequenceClassification

    config = tiny_model("bert").config
    for own, head in ((BertForMaskedLM, "masked word"), (BertForSequenceClassification, "class")):
        own(config).save_pretrained(tmp_path / own.__name__)
        loaded = load_bare_model(tmp_path / own.__name__, head=head, dtype="float64")
        assert type(loaded) is own
        assert loaded.dtype is torch.float64


def test_studies_take_the_options_of_loading(save):
    assert set(_source.LOADING) == set(LOADING)
    folder = save(torch.float32)
    found = hs.heads(
        folder,
        texts=["the cat sat.", "a dog ran off."],
        dtype="bfloat16",
        battery=False,
        batch_size=1,
    )
    assert "2 texts" in repr(found)
    with pytest.raises(hs.errors.RecordError, match="device belong to a model and texts"):
        hs.heads(hs.capture(folder, text=TEXT), device="cpu")
