"""The hashed pins are in step with constraints.txt and pyproject.toml: `make requirements` writes
them anew.
"""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
FILES = ["requirements.txt", "requirements-dev.txt"]


def pins(file):
    """The versions of each package; several where they depend on the system or Python."""
    versions = {}
    for line in (ROOT / file).read_text().splitlines():
        pin = re.match(r"([\w.-]+)==([^ ;]+)", line)
        if pin:
            versions.setdefault(canonicalize_name(pin[1]), set()).add(Version(pin[2]))
    return versions


def asked(*extras):
    """What pyproject.toml asks for, and what the extras do, with the extras that these name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements, open_extras, read = list(project["dependencies"]), list(extras), set()
    while open_extras:
        extra = open_extras.pop()
        if extra in read:
            continue
        read.add(extra)
        for requirement in map(Requirement, project["optional-dependencies"][extra]):
            if requirement.name == "headscope":
                open_extras += requirement.extras
            else:
                requirements.append(str(requirement))
    return [Requirement(requirement) for requirement in requirements]


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("file", FILES)
def test_every_pin_has_hashes(file):
    entries = re.split(r"\n(?=\S)", (ROOT / file).read_text())
    packages = [entry for entry in entries if not entry.startswith("#")]
    assert len(packages) > 100
    assert [
        entry.splitlines()[0]
        for entry in packages
        if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry)
    ] == []
    assert [entry.splitlines()[0] for entry in packages if not re.match(r"[\w.-]+==", entry)] == []


def test_every_version_of_the_constraints_is_pinned_with_hashes():
    pinned = pins("requirements-dev.txt")
    constraints = pins("constraints.txt")
    assert len(constraints) > 50
    assert {
        name: versions for name, versions in constraints.items() if pinned.get(name) != versions
    } == {}, "run `make requirements`"


@pytest.mark.parametrize(
    ("file", "wanted"), [("requirements.txt", ["all"]), ("requirements-dev.txt", list(extras()))]
)
def test_every_dependency_is_pinned_within_its_bounds(file, wanted):
    pinned = pins(file)
    requirements = asked(*wanted)
    assert {"numpy", "torch", "pyarrow"} <= {requirement.name for requirement in requirements}
    lacking = []
    for requirement in requirements:
        versions = pinned.get(canonicalize_name(requirement.name), set())
        if not versions or not all(version in requirement.specifier for version in versions):
            lacking.append(str(requirement))
    assert lacking == [], "run `make requirements`"


def test_users_get_the_versions_that_are_tested():
    tested = pins("requirements-dev.txt")
    assert {
        name: versions
        for name, versions in pins("requirements.txt").items()
        if tested.get(name) != versions
    } == {}
