"""Every model type of transformers is tried, with its default configuration made small."""

import re
from pathlib import Path

import pytest
import transformers
from transformers import CONFIG_MAPPING

from headscope.cli import run
from headscope.testing import _type_process as process
from headscope.testing import every_type, examine_type, examine_types, family_of

NO_WEIGHTS_OF_ITS_OWN = {"qwen3_vl_vision"}
PAGE = Path(__file__).parents[2] / "docs" / "support.md"


def test_reasons_name_no_folder_of_this_machine():
    untried = PAGE.read_text(encoding="utf-8").partition("## Not tried")[2]
    assert "site-packages" not in untried
    support = examine_type("voxtral_realtime_text")
    assert "from 'transformers/models/voxtral_realtime" in support.unbuilt


@pytest.mark.parametrize(
    ("name", "kind", "stacks"),
    [
        ("olmo3", "Text", 1),  # nobody wrote a configuration for it
        ("diffllama", "Text", 1),  # two softmaxes in a module, of which it returns one
        ("deepseek_v4", "Text", 2),  # stages whose layers take turns
        ("qwen3_vl_vision", "Pictures", 1),  # packed patches, with a grid of each picture
        ("moonshine", "Sound", 3),  # waves
        ("fsmt", "Text", 3),  # another mask where it fills a cache
    ],
)
def test_a_type_without_a_configuration_of_its_own_is_captured_exactly(name, kind, stacks):
    support = examine_type(name)
    assert (support.refused, support.unbuilt, support.reads) == ("", "", kind)
    assert len(support.stacks) == stacks
    assert support.output_difference < 2e-5
    if name not in NO_WEIGHTS_OF_ITS_OWN:
        assert support.weights_difference < 2e-5


def test_what_cannot_be_built_says_why():
    assert examine_type("nothing_of_this_name").unbuilt == "KeyError: 'nothing_of_this_name'"
    assert "timm" in examine_type("timm_wrapper").unbuilt


def test_parts_of_a_model_are_of_its_family():
    assert family_of("qwen3_vl_vision") == family_of("qwen3_vl") == "qwen3_vl"
    assert family_of("falcon (alibi)") == "falcon"


def test_every_type_is_every_type():
    names = every_type()
    assert len(set(names)) == len(names)
    assert {name.partition(" (")[0] for name in names} >= set(CONFIG_MAPPING.keys())


def test_processes_answer_for_every_name():
    answers = {each.name: each for each in examine_types(["bert", "resnet"])}
    assert set(answers) == {"bert", "resnet"}
    assert answers["bert"] == examine_type("bert")


STUBBORN = """
import sys, time, json
for name in sys.argv[2:]:
    if name == "dies": sys.exit(1)
    if name == "hangs": time.sleep(60)
    print(json.dumps({"name": name, "class_name": "", "routes": ["interface"]}), flush=True)
"""


def test_a_type_that_dies_or_hangs_costs_that_type(monkeypatch):
    monkeypatch.setattr(process, "CHILD", STUBBORN)
    names = ["first", "dies", "second", "hangs", "third"]
    answers = {each.name: each for each in examine_types(names, seconds=1, workers=2)}
    assert {name: each.unbuilt for name, each in answers.items()} == {
        "first": "",
        "dies": "its process died",
        "second": "",
        "hangs": "it took more than 1 s",
        "third": "",
    }
    assert answers["third"].routes == ("interface",)


def test_no_workers_are_refused(capsys):
    assert run(["support", "--workers", "0"]) == 2
    assert "Must be >= 1" in capsys.readouterr().err


def _rows():
    rows = {}
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "family" and "---" not in line:
            rows[cells[1]] = (section, cells)
    return rows


def test_the_page_has_every_type_once_and_counts_them():
    text = PAGE.read_text()
    rows = _rows()
    kinds = [section for section, _ in rows.values()]
    counts = (kinds.count("Refused"), kinds.count("Not tried"))
    captured = len(kinds) - sum(counts)
    said = re.search(r"(\d+) model types and variants are captured exactly, (\d+) are", text)
    assert (int(said[1]), int(said[2])) == (captured, counts[0])
    assert captured >= 420
    if f"transformers {transformers.__version__} " in text.replace("\n", " "):
        assert set(rows) == set(every_type())


def test_what_the_page_calls_exact_is():
    # Their own weights of an input alone and in a batch differ as much.
    # The outputs of sam3_tracker are in the thousands, where single precision rounds to 2e-4.
    unsteady = {"deimv2", "mobilebert", "sam3", "sam3_lite_text", "sam3_tracker"}
    for name, (section, cells) in _rows().items():
        if section in ("Refused", "Not tried") or name in unsteady:
            continue
        numbers = [cell.partition(" ")[0] for cell in cells[5:7]]
        assert all(number == "-" or float(number) <= 1e-4 for number in numbers), name
