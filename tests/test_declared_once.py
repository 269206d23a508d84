"""What is declared in one place arrives everywhere: in a copy of the package one option, one view,
one quantity, one measure and one study are added, by as many edits as CONTRIBUTING says.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from headscope.patterns import COLUMNS, KINDS
from headscope.views.constants import KIND_COLOURS
from headscope.views.options import HeadMeasure, KindName

pytest.importorskip("pydantic", minversion="2.12")
pytest.importorskip("cyclopts", reason="needs the extra cli")

ROOT = Path(__file__).parents[1]
EDITS = {
    "views/options.py": [
        (
            "    theme: Annotated[Theme,",
            '    glow: Annotated[Literal["dim", "bright"], Default("dim")]\n'
            '    """How lines shine: ``"dim"`` (default) or ``"bright"``."""\n'
            "    theme: Annotated[Theme,",
        ),
        (
            'class KeptNumbers(TypedDict):\n    """Heads and tokens as a page keeps them."""\n',
            "    focus: int | str | Sequence[int | str]\n"
            '    """Key tokens that shine: positions or words."""\n\n\n'
            'class KeptNumbers(TypedDict):\n    """Heads and tokens as a page keeps them."""\n\n'
            '    focus: Annotated[list[int], Default((), picture=True, of="key")]\n'
            '    """Tokens that shine."""',
        ),
        ('Literal["overview", "head"', 'Literal["globe", "overview", "head"'),
    ],
    "views/view_table.py": [
        (
            '    "overview": ViewFacts(',
            '    "globe": ViewFacts(wide=True, figure=HEADS),\n    "overview": ViewFacts(',
        )
    ],
    "views/quantities.py": [
        (
            '    "alti": KnownQuantity(',
            '    "loudness": KnownQuantity(\n'
            '        "loudness", "twice the weight", of_layer=lambda layer: 2 * layer.weights\n'
            '    ),\n    "alti": KnownQuantity(',
        )
    ],
    "patterns/_head_measures.py": [
        (
            '    "self": Measure(',
            '    "pointed": Measure(lambda maps: maps.weights.max(axis=(1, 2)), "peak", "peaks"),\n'
            '    "self": Measure(',
        )
    ],
}
STUDY_EDITS = {
    "studies/__init__.pyi": [
        (
            "from .mechanism import Mechanism",
            "from .lengths import Lengths as Lengths\n"
            "from .lengths import lengths as lengths\n"
            "from .mechanism import Mechanism",
        ),
    ],
    "__init__.pyi": [
        ("    mechanism as mechanism,\n", "    lengths as lengths,\n    mechanism as mechanism,\n")
    ],
    "cli/_main.py": [('    "_studies": ', '    "_lengths": "lengths",\n    "_studies": ')],
}
STUDY_FILES = {
    "studies/lengths.py": """
from typing import ClassVar
import numpy as np
from headscope.results import Result, TextTable

class Lengths(Result):
    KIND: ClassVar[str] = "lengths"
    def __init__(self, numbers):
        self.numbers = numbers
    @property
    def summary(self):
        return f"{len(self.numbers)} texts of {sum(self.numbers)} words"
    def columns(self):
        return {"words": list(self.numbers)}
    def _kept(self):
        return {}, {"numbers": np.array(self.numbers, np.float64)}
    @classmethod
    def _of_kept(cls, document, arrays):
        return cls([int(number) for number in arrays["numbers"]])

def lengths(texts):
    return Lengths([len(text.split()) for text in texts])
""",
    "cli/_lengths.py": """
def lengths(text: str, /) -> None:
    \"\"\"Measure texts.\"\"\"
    from headscope.cli._files import say
    from headscope.studies import lengths as measured
    say(str(measured([text])))
""",
    "views/figures/_lengths_figure.py": """
from headscope.results import draws

@draws("lengths")
def lengths_figure(lengths, **options):
    return f"a drawing of {sum(lengths.numbers)} words"
""",
}
SCRIPT = """
import json, sys
sys.path.insert(0, TOOLS)
import write_contract
import headscope as hs
from headscope.cli import run
from headscope.cli._main import app
from headscope.patterns import heads
from headscope.testing import random_record
from headscope.views import _html
from headscope.views._selection import changed_selection
from headscope.views.figures._plan import check_names

_html.bundle = lambda name="page.js": ""
record = random_record()
hs.save(record, "run.safetensors")
found = heads(record)
page = hs.view(record, view="globe", glow="bright", quantity="loudness", evidence=found,
    focus=["k3", 1], tray=["1-0 focus=k2"]).header
assert run(["view", "run.safetensors", "--glow", "bright", "--focus", "k3", "--out", "a.html"]) == 0
arguments = app["view"].assemble_argument_collection()
try:
    hs.view(record, glow="blinding")
except hs.PageError as error:
    refused = str(error)
try:
    hs.view(record, focus=9)
except hs.PageError as error:
    beyond = str(error)
header = hs.view(record).header
changed = changed_selection(header, header["selection"], {"focus": "k4"})
try:
    check_names({"view": "globe", "sinks": False})
except hs.FigureError as error:
    figure = str(error)
lengths = hs.lengths(["a b", "c d e"])
lengths.save("lengths.safetensors")
assert run(["lengths", "a b c"]) == 0
print("FACTS" + json.dumps({
    "selection": page["selection"],
    "measures": page["measures" if "measures" in page else "evidence"]["measures"],
    "quantities": page["quantities"],
    "written": open("a.html").read().count('"glow": "bright"'),
    "focused": open("a.html").read().count('"focus": [3]'),
    "help": {name: each.parameter.help for each in arguments for name in each.names},
    "schema": json.loads(write_contract.schema())["$defs"]["PageSelection"],
    "values": write_contract.values(),
    "refused": refused,
    "beyond": beyond,
    "changed": changed["focus"],
    "figure": figure,
    "columns": list(found.columns()),
    "table": str(found),
    "study": [str(lengths), str(hs.load("lengths.safetensors")), hs.figure(lengths)],
    "drawn": hs.figure(record, quantity="loudness").recipe["call"],
}))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """What a package with these edits says."""
    folder = tmp_path_factory.mktemp("edited")
    shutil.copytree(
        ROOT / "src/headscope",
        folder / "src/headscope",
        # What Python compiled is right for modules without edits; "*.pyc.*" is being written.
        ignore=shutil.ignore_patterns("*.js", "*.pyc.*"),
    )
    for name, content in STUDY_FILES.items():
        path = folder / "src/headscope" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for name, edits in (EDITS | STUDY_EDITS).items():
        path = folder / "src/headscope" / name
        text = path.read_text(encoding="utf-8")
        for before, after in edits:
            assert text.count(before) == 1, f"{before!r} in {name}"
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", f"TOOLS = {str(ROOT / 'tools')!r}\n{SCRIPT}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "1 texts of 3 words" in run.stdout
    return json.loads(run.stdout.partition("FACTS")[2])


def test_an_option_is_in_python_command_line_and_contract(facts):
    assert facts["selection"]["glow"] == "bright"
    assert facts["refused"] == "glow must be one of 'dim', 'bright', not 'blinding'"
    assert facts["written"] == 1
    assert facts["help"]["--glow"] == "How lines shine: dim (default) or bright."
    assert facts["schema"]["properties"]["glow"]["enum"] == ["dim", "bright"]
    assert "glow" in facts["schema"]["required"]
    assert '  glow: ["dim", "bright"],' in facts["values"]
    assert '  glow: "dim",' in facts["values"]


def test_an_option_that_names_tokens_takes_no_more_edits(facts):
    assert facts["selection"]["focus"] == [1, 3]
    assert facts["selection"]["tray"] == ["1-0 focus=2"]
    assert facts["focused"] == 1
    assert facts["changed"] == [4]
    assert facts["beyond"] == "focus=[9]: there are the key tokens 0 to 6; choose at least one"
    assert facts["schema"]["properties"]["focus"]["items"] == {"type": "integer"}
    assert '  focus: "key",' in facts["values"]


def test_a_view_is_in_page_contract_and_figure(facts):
    assert facts["selection"]["view"] == "globe"
    assert '  view: ["globe", "overview",' in facts["values"]
    assert '  wide: ["globe", "neuron",' in facts["values"]
    assert facts["figure"].startswith("View 'globe' has no option 'sinks'; it has view,")


def test_a_quantity_is_in_page_contract_and_figure(facts):
    words = {each["name"]: each["explanation"] for each in facts["quantities"]}
    assert words["loudness"] == "twice the weight"
    assert facts["selection"]["quantity"] == "loudness"
    assert '"loudness", "alti"' in facts["values"]
    assert "quantity='loudness'" in facts["drawn"]


def test_a_measure_is_a_column_and_an_axis(facts):
    assert "pointed" in facts["columns"]
    header = next(line.split() for line in facts["table"].splitlines() if "entropy" in line)
    assert header.index("pointed") == header.index("distance") + 1
    assert "pointed: peak, in peaks" in " ".join(facts["table"].split())
    axes = {each["name"]: each for each in facts["measures"]}
    assert axes["pointed"] == {"name": "pointed", "says": "peak", "unit": "peaks"}


def test_a_study_takes_three_edits_beside_its_own_files(facts):
    assert len(STUDY_EDITS) == 3
    words = "2 texts of 5 words"
    assert facts["study"] == [words, words, "a drawing of 5 words"]


def test_what_stands_on_both_sides_of_a_border_is_the_same():
    # patterns stands below views and may not import it; the help of the command line may not load
    # patterns, which takes NumPy
    assert get_args(KindName) == KINDS == tuple(KIND_COLOURS)
    assert set(get_args(HeadMeasure)) <= set(COLUMNS)
