import subprocess
import sys
from pathlib import Path

import pytest

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
