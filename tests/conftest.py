import gc
import hashlib
import importlib
import os
import socket
import threading
import time
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import find_chromium

from .hostile import CORPUS

os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Examples take as long as the machine is busy; what CI tries is the same every time.
settings.register_profile("headscope", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("headscope")

SLOW_FOLDERS = ("docs", "studies")
"""Folders with the files that take longest: one of them begun last keeps a single core busy."""
SLOW_FILES = tuple(
    (
        "tests/browser/test_hostile.py tests/browser/test_accessibility.py "
        "tests/corpus/test_study_runs.py tests/corpus/test_dask.py "
        "tests/views/figures/test_hostile.py"
    ).split()
)
"""Files elsewhere that take as long."""


def pytest_configure(config):
    """Each worker begins to collect at another place: of a new checkout it compiles the files of a
    third, and finds the others compiled.
    """
    if hasattr(config, "workerinput"):
        places = _places(config)
        number = int(config.workerinput["workerid"].removeprefix("gw"))
        start = number * len(places) // config.workerinput["workercount"]
        config.args = places[start:] + places[:start]


def _places(config):
    """What a run collects, where that is all tests the folders and files in them."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return config.args
    left_out = {Path(path).absolute() for path in config.getoption("ignore") or ()}
    places = [place for place in sorted(Path(__file__).parent.iterdir()) if place not in left_out]
    return [str(place) for place in places if place.is_dir() or place.match("test_*.py")]


def pytest_collection_modifyitems(items):
    """Slow files first: with ``--no-loadscope-reorder`` workers take them in this order, which has
    to be the same in all of them.
    """
    items.sort(key=_turn)


def _turn(item):
    is_slow = item.path.parent.name in SLOW_FOLDERS or item.nodeid.startswith(SLOW_FILES)
    return not is_slow, str(item.path)


def pytest_sessionstart(session):
    """What pytest-rerunfailures asks its controller before every test is sent at once.

    It writes, and before the next test it writes again and waits: TCP holds the second small
    message back until the first is acknowledged, which takes 40 ms, more than most tests.
    """
    failures = getattr(session.config, "failures_db", None)
    if hasattr(failures, "sock"):
        failures.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_collection_finish():
    """Tests and torch stay until the end: the collector need not look at them again, and it looks
    at what tests leave less often than it would by itself (a twentieth of all processor time).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


DURABLE = ("tests/storage/", "tests/corpus/", "tests/studies/ablate/")
"""Where tests try whether files are on the disk when a call returns, and what is left of a run that
ends in the middle: workers that die at once died faster than others finished a part.
"""


@pytest.fixture
def one_thread():
    """One thread of torch, with which the bits of a text do not depend on the size of its batch."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def no_wait_for_the_disk(request):
    """No test waits until what it saves is on the disk: each time takes some milliseconds in which
    nothing is done.
    """
    if request.node.nodeid.startswith(DURABLE):
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", os.fstat)  # which is an error, too, of what is not open
        yield


SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def unchecked():
    """A function without the check of its types that some runs put before it: what it says of bad
    input itself.
    """
    return lambda function: getattr(function, "__wrapped__", function)


@pytest.fixture(scope="session")
def shared():
    """The folder of real data that some machines have beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return SHARED


@pytest.fixture(scope="session")
def minilm():
    """The demo model and its tokenizer."""
    from headscope.capturing import load_model

    return load_model(None)


@pytest.fixture(scope="module")
def tokenizer():
    """The tokenizer of the tiny models."""
    from headscope.testing import tiny_tokenizer

    return tiny_tokenizer()


@pytest.fixture(scope="session")
def _battery():
    """`induction_battery` that counts the runs of one model once: they do not depend on its texts,
    and each study of heads would do so again.
    """
    from headscope.studies.heads import induction_battery

    kept = {}

    def battery(model, tokenizer, patterns, stack):
        weights = hashlib.sha256(str(getattr(model, "config", None)).encode())
        for name, values in model.state_dict().items():
            weights.update(name.encode() + values.contiguous().numpy().tobytes())
        key = (type(model), weights.digest(), len(tokenizer), patterns, stack)
        if key not in kept:
            kept[key] = induction_battery(model, tokenizer, patterns, stack)
        return deepcopy(kept[key])

    return battery


@pytest.fixture
def counted_once(_battery, monkeypatch):
    """Runs of repeated tokens of one model are counted once for all tests that ask for this."""
    # The module is called as its function, which stands in its place in the package.
    module = importlib.import_module("headscope.studies.heads")
    monkeypatch.setattr(module, "induction_battery", _battery)


@pytest.fixture(scope="session")
def hostile():
    """Strings that would like to be more than text, each with what stands for it on a page and in a
    figure.
    """
    assert len(CORPUS) > 200
    return CORPUS


@pytest.fixture(scope="session")
def browser():
    """Chromium, or the Firefox that HEADSCOPE_FIREFOX names."""
    from playwright.sync_api import sync_playwright

    if firefox := os.environ.get("HEADSCOPE_FIREFOX"):
        with sync_playwright() as playwright:
            browser = playwright.firefox.launch(
                channel="moz-firefox",
                executable_path=firefox,
                firefox_user_prefs={"ui.prefersReducedMotion": 1},
            )
            yield browser
            browser.close()
        return
    path = find_chromium.find()
    if path is None:
        pytest.fail("no Chromium was found: python tools/find_chromium.py --install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=find_chromium.FLAGS)
        yield browser
        browser.close()


TOKEN = "right-token"


@pytest.fixture(scope="session")
def serving():
    """Serve a view on a real port for the length of a block: gives the port. The token is
    ``right-token``.
    """
    uvicorn = pytest.importorskip(
        "uvicorn", reason="needs the extra server: pip install 'headscope[server]'"
    )
    from headscope.views.listening import listening_on, quiet_server
    from headscope.views.server import application

    @contextmanager
    def serving(view):
        listening = listening_on(0)
        server = quiet_server(application(view, TOKEN))
        assert isinstance(server, uvicorn.Server)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(20)
            listening.close()
            assert not thread.is_alive()

    return serving
