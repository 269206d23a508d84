"""What is built: no wheel without the viewer, the same to the last byte each time, all that is
tracked, whole links.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def hook(tmp_path):
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bundles = [tmp_path / bundle for bundle in module.BUNDLES]
    return module.BundleHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel"), bundles


def write(bundles):
    for bundle in bundles:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_text("viewer()")


@pytest.mark.parametrize("missing", range(6))
def test_a_wheel_without_one_of_the_bundles_is_refused(missing, hook):
    write(hook[1][:missing] + hook[1][missing + 1 :])
    with pytest.raises(
        RuntimeError, match=f"^{hook[1][missing].relative_to(hook[0].root)} missing: run"
    ):
        hook[0].initialize("standard", {})


def test_an_editable_install_may_come_before_the_bundles(hook):
    hook[0].initialize("editable", {})


def test_with_the_bundles_it_is_built(hook):
    write(hook[1])
    hook[0].initialize("standard", {})


BUNDLES = [
    ROOT / "src/headscope/views/static" / name
    for name in ("page.js", "live.js", "model.js", "atlas.js", "answer.js", "frame.js")
]


def built(folder, checkout):
    """Wheel and source distribution of a checkout."""
    targets = ["-t", "wheel", "-t", "sdist", "-d", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *targets],
        cwd=checkout,
        check=True,
        capture_output=True,
    )
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Wheel and source distribution of this checkout."""
    if not all(bundle.is_file() for bundle in BUNDLES):
        pytest.skip("the bundles are not built here: make bundle")
    if not (ROOT / "README.md").is_file():
        pytest.skip("README.md is not part of this checkout")
    return built(tmp_path_factory.mktemp("first"), ROOT)


@pytest.fixture(scope="module")
def again(first, tmp_path_factory):
    """The same, built of the unpacked source distribution: other folders, other times of files."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(first[1]) as source:
        source.extractall(folder, filter="data")
    (checkout,) = folder.iterdir()
    for file in checkout.rglob("*"):
        os.utime(file, (1, 1))
    return built(tmp_path_factory.mktemp("again"), checkout)


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_built_again_is_the_same_to_the_last_byte(which, first, again):
    assert first[which].name == again[which].name
    assert first[which].read_bytes() == again[which].read_bytes()


def test_the_bundles_were_built_of_these_sources():
    """By the digests that the build leaves beside them: to build all once more takes as long as two
    hundred tests of pages.
    """
    built_of = BUNDLES[0].parent / "built.json"
    if not built_of.is_file():
        pytest.skip("the bundles are not built here: make bundle")
    known = json.loads(built_of.read_text(encoding="utf-8"))
    assert known["sources"] == digest_of_sources(ROOT / "frontend"), "old bundles: make bundle"
    digests = {path.name: sha256(path.read_bytes()).hexdigest() for path in BUNDLES}
    assert known["bundles"] == digests, "not what the build wrote: make bundle"


def digest_of_sources(frontend):
    """As frontend/tools/build.mjs reckons it."""
    files = [frontend / "package-lock.json"]
    for part in ("contract", "src", "tools"):
        files += [path for path in (frontend / part).rglob("*") if path.is_file()]
    digest = sha256()
    for path in sorted(files, key=lambda path: path.relative_to(frontend).as_posix()):
        if path.is_file():
            digest.update(f"{path.relative_to(frontend).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def test_a_wheel_holds_the_viewer_and_its_notices(first):
    with zipfile.ZipFile(first[0]) as wheel:
        names = set(wheel.namelist())
    assert {
        f"headscope/views/static/{name}.js" for name in ("page", "live", "model", "atlas", "frame")
    } <= names
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert "headscope/py.typed" in names


def test_a_source_distribution_holds_all_that_is_tracked(first):
    with tarfile.open(first[1]) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    for part in (
        "docs/index.md",
        "benchmarks/README.md",
        "tests/test_build.py",
        "frontend/package-lock.json",
    ):
        assert part in names
    assert [
        name for name in names if "node_modules" in name or name.startswith("benchmarks/results")
    ] == []
    elsewhere = (".github/", "docs/pictures/")
    left_out = [name for name in tracked() if name not in names and not name.startswith(elsewhere)]
    assert left_out == []


def tracked():
    """The files that git keeps."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout of git")
    return git("ls-files")


def git(*arguments):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def test_nothing_that_is_built_is_tracked():
    names = tracked()
    assert git("ls-files", "--cached", "--ignored", "--exclude-standard") == []
    made = re.compile(
        r"/static/.*\.js$|(^|/)(dist|build|site|node_modules|__pycache__)/|\.(whl|pyc|safetensors|npz)$"
    )
    # results that tests read, and the small model that ships
    assert [
        name
        for name in names
        if made.search(name)
        and not name.startswith(("tests/results/kept/", "src/headscope/answering/retrieval_tiny/"))
    ] == []
    # pictures, notebooks and tables of the docs are made by commands and shown where nobody runs
    # these
    assert len(names) > 1000


def test_the_description_leads_nowhere_where_nothing_is(first):
    """On a package index there are no pages and pictures beside it, and the project has no address
    yet.
    """
    with zipfile.ZipFile(first[0]) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        head, _, description = wheel.read(metadata).decode("utf-8").partition("\n\n")
    assert "Which document did the answer look at?" in description
    assert re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=", description) == []
    assert "Project-URL" not in head


def test_a_source_distribution_is_small(first):
    assert first[1].stat().st_size < 5_000_000
