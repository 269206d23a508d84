"""Every architecture is captured exactly or refused with a reason; nothing in between."""

import re
import warnings
from functools import cache

import pytest
import transformers

from headscope.cli import run
from headscope.errors import ModelError
from headscope.testing import ARCHITECTURES, KINDS, examine, examine_type, tiny_model

REFUSED = {
    "big_bird (sparse)": "computes attention in pieces of .* that cannot be put together",
    "longt5": "captured in part: attention of encoder.block.0.layer.0.LocalSelfAttention, .*",
    "prophetnet": "captured in part: attention of prophetnet.decoder.layers.0.self_attn, .*",
    "yoso": "no softmax attention",
    "fnet": "no softmax attention",
    "mamba": "no softmax attention",
    "rwkv": "no softmax attention",
    "mobilevitv2": "no softmax attention",
    "convnext": "no softmax attention",
}
NO_WEIGHTS_OF_ITS_OWN = {
    "falcon",
    "falcon (alibi)",
    "longformer",
    "squeezebert",
    "data2vec-vision",
    "pvt_v2",
    "swin",
    "swinv2",
    "canine",
    "funnel",
    "cpmant",
}
RETURNED = {"led": ("operators", "outputs"), "longformer": ("outputs",)}
REMARKS = {
    "wavlm": "mean over heads",
    "led": "6 of 8 layers",
    "siglip_vision_model": "2 of 3 layers",
    "siglip": "5 of 6 layers",
    "llava": "2 of 5 layers",
    "qwen2_vl": "2 of 5 layers",
    "qwen2_5_vl": "2 of 5 layers",
    "internvl": "2 of 5 layers",
    "git": "2 of 5 layers",
    "paligemma": "2 of 6 layers",
    "vjepa2": "2 of 5 layers",
}
ROLES = {
    "encoder": set(
        (
            "whisper speech_to_text encoder-decoder vision-encoder-decoder speech-encoder-decoder"
        ).split()
    ),
    "vision": set("clip siglip llava qwen2_vl qwen2_5_vl internvl blip git paligemma".split()),
    "stage1": {"swin", "swinv2", "segformer", "pvt_v2", "glpn"},
    "encoder.layer": {"vjepa2"},
}
"""Models with several stacks, by the name of the first."""
OPERATORS = set(
    (
        "deberta mpnet xlnet big_bird roformer gpt_neo gptj bloom mpt falcon codegen blip pvt_v2 "
        "swinv2 wavlm"
    ).split()
)
UNSTEADY = {"mobilebert"}
"""Its values grow by orders of magnitude without a norm, and with them what float32 rounds away."""


@cache
def examined(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return examine(tiny_model(name), name)


def test_there_are_enough_of_them():
    assert len(ARCHITECTURES) >= 120
    assert set(REFUSED) | NO_WEIGHTS_OF_ITS_OWN | OPERATORS <= set(ARCHITECTURES)


@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - set(REFUSED)))
def test_captured_exactly(name):
    found = examined(name)
    assert found.refused == ""
    assert found.output_difference < (1e-3 if name in UNSTEADY else 2e-5)
    if name in NO_WEIGHTS_OF_ITS_OWN:
        assert found.weights_difference is None
    else:
        assert found.weights_difference < (1e-3 if name in UNSTEADY else 2e-5)
    assert found.remark == REMARKS.get(name, "")
    if name in OPERATORS:
        assert found.routes == ("operators",)
    if name in RETURNED:
        assert sorted(found.routes) == sorted(RETURNED[name])


@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - set(KINDS["Text"]) - set(REFUSED)))
def test_stacks_are_called_by_what_they_work_on(name):
    first = next((first for first, names in ROLES.items() if name in names), "self")
    if name == "siglip_vision_model":
        first = "vision"  # beside its probe
    assert examined(name).stacks[0].startswith(f"{first} ")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_with_the_reason(name):
    found = examined(name)
    assert found.output_difference is None
    assert re.search(REFUSED[name], found.refused)


def test_an_unknown_architecture_lists_those_there_are():
    with pytest.raises(ModelError, match="There is no tiny model 'brt'; there are bert"):
        tiny_model("brt")


def test_a_model_that_reads_nothing_known_is_refused():
    from transformers import PreTrainedConfig, PreTrainedModel

    class Reader(PreTrainedModel):
        def forward(self, numbers):
            return numbers

    assert (
        "reads neither text nor pictures nor sound"
        in examine(Reader(PreTrainedConfig()), "reader").refused
    )


def test_a_model_that_cannot_read_what_is_made_up_is_said_to():
    model = tiny_model("vit")
    model.config.image_size = (10, 20)
    assert (
        "it cannot read what was made up for it (ValueError: Input image size"
        in examine(model).refused
    )


def test_the_models_setting_comes_back():
    model = tiny_model("bert")
    examine(model)
    assert model.config._attn_implementation == "sdpa"


def test_the_command_prints_a_row_for_a_folder(tmp_path, capsys):
    tiny_model("gpt2").save_pretrained(tmp_path / "model")
    assert run(["support", str(tmp_path / "model")]) == 0
    assert "| gpt2 | gpt2 | GPT2Model | self 3 x 5 causal | interface |" in capsys.readouterr().out
    assert run(["support", str(tmp_path / "model"), "--out", str(tmp_path / "table.json")]) == 0
    assert '"output_difference"' in (tmp_path / "table.json").read_text()
    assert run(["support", "--out", str(tmp_path / "table.csv")]) == 1
    assert "Expected .md, .json for --out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bert", "t5", "wav2vec2", "llava"])
def test_a_batch_may_hold_any_number_of_texts(name):
    """One has no padding, of four every second one has."""
    for size in (1, 4):
        found = examine(tiny_model(name), name, batch_size=size)
        assert found.stacks == examined(name).stacks
        assert (found.refused, found.remark) == ("", examined(name).remark)
        assert found.output_difference < 1e-4


@pytest.fixture
def no_processes(monkeypatch):
    """The command tries model types in this process: each other one imports torch for seconds, and
    tests/testing/test_every_type.py has real ones.
    """

    def here(names, *, batch_size, workers):
        assert workers >= 1
        return (examine_type(name, batch_size=batch_size) for name in names)

    monkeypatch.setattr("headscope.testing.examine_types", here)


@pytest.mark.usefixtures("no_processes")
def test_a_transformers_that_is_too_old_for_an_architecture_says_so(monkeypatch, tmp_path):
    monkeypatch.setitem(ARCHITECTURES, "late_bert", {})  # none of this name is in any transformers
    with pytest.raises(
        ModelError,
        match=f"^transformers {transformers.__version__} has no 'late_bert'; a newer one",
    ):
        tiny_model("late_bert")
    monkeypatch.setitem(KINDS["Text"], "late_bert", {})
    names = ["bert", "late_bert", "later_bert"]  # the last one is in no list of architectures
    monkeypatch.setattr("headscope.testing.every_type", lambda: names)
    assert run(["support", "--out", str(tmp_path / "table.md"), "--workers", "1"]) == 0
    table = (tmp_path / "table.md").read_text()
    assert re.search(r"\| bert \| bert \| BertModel \| self", table)
    untried = table.partition("## Not tried\n")[2]
    assert re.search(r"late_bert \| transformers .* has no 'late_bert'", untried)
    assert "later_bert | KeyError: 'later_bert'" in untried


def test_a_configuration_that_a_model_does_not_know_is_one_clear_error():
    with pytest.raises(ModelError, match=r"makes no tiny bert model: .*heads"):
        tiny_model("bert", num_attention_heads=5)
