"""The page of a tree: its data, and a server that answers."""

import json

import numpy as np
import pytest

from headscope.headvis import read_headvis
from headscope.views import _html

from .conftest import SENTENCES


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"viewer('{name}')")


def said(folder, name):
    script = (folder / "data" / f"{name}.js").read_text(encoding="utf-8")
    assert "<" not in script
    return json.loads(f"[{script.split('(', 1)[1].rstrip()[:-1]}]")[1]


def test_the_scripts_hold_what_the_tree_says(foreign_tree, tmp_path):
    tree = read_headvis(foreign_tree)
    folder = tree.view().save(tmp_path / "page").parent
    index = said(folder, "index")
    heads = [(head["layer"], head["head"]) for head in index["heads"]]
    assert heads == [(0, 0), (0, 1), (3, 0)]
    assert index["metrics"][2]["values"] == [0.5, 0.5, None]
    assert index["metrics"][2]["parts"] == [0.5, 0.5, None]
    assert index["metrics"][2]["places"][:2] == ["1 of 2", "1 of 2"]
    assert index["metrics"][2]["says"].endswith(": 0.5 to 0.5")
    head = said(folder, "head-3-0")["tree"]
    told = tree.head(3, 0).sequences
    for sequence, data in zip(told, head["sequences"], strict=True):
        assert data["tokens"] in [list(each) for each in SENTENCES]
        np.testing.assert_allclose(data["weights"], np.sort(sequence.weights)[::-1], atol=1e-4)
        assert sorted(data["queries"]) == sorted(sequence.queries.tolist())
        np.testing.assert_allclose(data["rest"], 1 - sequence.kept, atol=1e-3)
    assert [plot["name"] for plot in head["plots"]] == ["qk_distance_histogram"]
    assert head["tables"][0]["rows"] == [[" cat", 2.5], ["<b>", 1.0]]


def test_a_tree_that_does_not_fit_leaves_no_page(foreign_tree, tmp_path):
    (foreign_tree / "heads" / "L3H0.json").write_text("{")
    with pytest.raises(OSError, match=r"L3H0.json"):
        read_headvis(foreign_tree).view().save(tmp_path / "page")
    assert not (tmp_path / "page" / "index.html").exists()


def test_it_is_served(foreign_tree, monkeypatch):
    pytest.importorskip("starlette", reason="needs the extra server")
    client = pytest.importorskip("starlette.testclient", reason="needs httpx")
    from headscope.cli import run
    from headscope.views import listening

    answers = []

    class Server:
        """Asks for the page in place of a browser."""

        def __init__(self, application):
            self.application = application

        def run(self, sockets):
            asking = client.TestClient(self.application, base_url="http://127.0.0.1:9")
            for path in ("", "data/index.js", "data/head-3-0.js", "data/head-1-0.js"):
                answers.append(asking.get(f"/secret/{path}"))

    monkeypatch.setattr(listening, "new_token", lambda: "secret")
    monkeypatch.setattr(listening, "quiet_server", Server)
    assert run(["serve", str(foreign_tree)]) == 0
    assert [answer.status_code for answer in answers] == [200, 200, 200, 404]
    assert '"metrics":' in answers[1].text
