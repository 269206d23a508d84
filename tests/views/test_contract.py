import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from headscope.patterns import KINDS
from headscope.views.constants import KIND_COLOURS
from headscope.views.options import KindName

pytest.importorskip("pydantic", minversion="2.12")  # older ones write another schema

ROOT = Path(__file__).parent.parent.parent
CHECK = [sys.executable, str(ROOT / "tools" / "write_contract.py"), "--check"]


def test_the_schema_is_what_python_declares():
    run = subprocess.run(CHECK, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_drift_is_noticed(tmp_path):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tools")!r})
sys.argv[1:] = ["--check"]
import write_contract
from headscope.views import contract as _contract
_contract.PageLayer.__annotations__["kind"] = int
write_contract.main()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "run `make contract`" in run.stderr


def test_kinds_are_those_of_the_patterns():
    assert get_args(KindName) == KINDS == tuple(KIND_COLOURS)
