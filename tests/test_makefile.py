"""`make test` runs every test file once."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def recipe(target):
    """The commands of a target, as make would run them."""
    made = subprocess.run(
        ["make", "--dry-run", "--always-make", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.replace("\\\n", " ")


def test_what_runs_with_types_is_left_out_elsewhere_and_is_there():
    pytest_calls = [line for line in recipe("test").splitlines() if "-m pytest" in line]
    plain, typed = sorted(pytest_calls, key=lambda line: "--jaxtyping-packages" in line)
    left_out = re.findall(r"--ignore=(tests/\S+)", plain)
    run = [word for word in typed.split() if word.startswith("tests/")]
    assert left_out == run != []
    assert not [path for path in run if not (ROOT / path).exists()]
