"""The folder of an atlas: what its scripts say, and who is served."""

import base64
import json
import math

import numpy as np
import pytest

from headscope.atlases import atlas_of, text_counts
from headscope.corpus import Sums
from headscope.errors import FileError
from headscope.patterns import PATTERNS, Heads, Tally
from headscope.record import Tokens
from headscope.views import _html

HOSTILE = "</script><b>\u2028"
CELLS = [(0, 0), (0, 1), (2, 0)]


@pytest.fixture(autouse=True)
def bundle(monkeypatch):
    monkeypatch.setattr(_html, "bundle", lambda name="page.js": f"viewer('{name}')")


@pytest.fixture
def atlas(rng):
    """Three heads over some texts; one word would end a script."""
    scores = (*(pattern.name for pattern in PATTERNS), "confidence")
    sums, tally = Sums(), Tally()
    values = rng.random((9, len(tally.rows), 3))
    for number in range(len(values)):
        length = 3 + number
        pieces = ("[CLS]", *["it", HOSTILE, "dog"][: length - 2], *["a"] * (length - 5), "[SEP]")
        weights = rng.dirichlet(np.ones(length), size=(3, length)).astype(np.float32)
        visible = (np.ones((length, length), bool),) * 2
        counts = text_counts(
            Tokens(pieces=pieces),
            weights=weights,
            visible=visible,
            scores=rng.random((len(scores), 3)),
        )
        sums.add(str(number), str(number), counts, length=length, facts={"scores": list(scores)})
    return atlas_of(Heads(Tally.of_values(PATTERNS, CELLS, values)), sums)


def said(folder, name):
    script = (folder / "data" / f"{name}.js").read_text(encoding="utf-8")
    assert "<" not in script
    assert script.startswith(f'headscopeAtlas("{name}",')
    return json.loads(f"[{script.split('(', 1)[1].rstrip()[:-1]}]")[1]


def test_every_head_and_text_is_there(atlas, tmp_path):
    page = atlas.view().save(tmp_path / "page")
    assert page == tmp_path / "page" / "index.html"
    index = said(page.parent, "index")
    assert [(each["layer"], each["head"]) for each in index["heads"]] == CELLS
    assert (page.parent / "atlas.js").read_text() == "viewer('atlas.js')"
    maps = np.frombuffer(base64.b64decode(index["maps"]), np.uint8).reshape(3, 24, 24)
    assert np.abs((maps / 255.0) ** 2 - np.nan_to_num(atlas.maps)).max() < 0.005
    texts = said(page.parent, "texts")
    assert HOSTILE in {word for text in texts for word in text["words"]}
    assert texts[0]["special"] == [0, len(texts[0]["words"]) - 1]


def test_the_page_of_a_head_has_what_the_atlas_says(atlas, tmp_path):
    folder = atlas.view().save(tmp_path).parent
    head, told = atlas.head(2, 0), said(folder, "head-2-0")
    assert told["pairs"][0][:2] == [head.pairs[0].query, head.pairs[0].key]
    assert told["neighbours"][0][:2] == [head.neighbours[0].layer, head.neighbours[0].head]
    shares = [share for share, _ in told["distance"]]
    assert shares == pytest.approx([share for share, _ in head.distance.values()], abs=1e-3)
    links = np.frombuffer(base64.b64decode(told["links"]), "<u2").reshape(9, 40, 3)
    example = head.strata[0].examples[0]
    place = [text.name for text in atlas.sample].index(example.name)
    assert told["strata"][0]["examples"][0] == place
    query, key, weight = links[place, 0].tolist()
    assert (query, key) == example.links[0][:2]
    assert weight / 65535 == pytest.approx(example.links[0][2], abs=1e-4)


def test_two_atlases_are_one_folder(atlas, tmp_path):
    compared = atlas.compare(atlas, names=("before", HOSTILE))
    folder = compared.view().save(tmp_path).parent
    index = said(folder, "index")
    assert index["kind"] == "comparison"
    assert index["names"] == ["before", HOSTILE]
    assert [(pair["a"], pair["b"], pair["similarity"]) for pair in index["pairs"]] == [
        (0, 0, 1.0),
        (1, 1, 1.0),
        (2, 2, 1.0),
    ]
    assert len(index["differences"]) == len(compared.differences) > 0
    at, one = next(each for each in enumerate(compared.differences) if not math.isnan(each[1].low))
    number, pattern, before, after, low, high = index["differences"][at]
    assert (compared.pairs[number].a, pattern) == ((one.layer, one.head), one.pattern)
    assert (before, after) == pytest.approx((one.before, one.after), rel=1e-3)
    assert (low, high) == pytest.approx((one.low, one.high), abs=1e-3)
    # JSON has no NaN: an interval that is not known is null.
    unknown = [math.isnan(each.low) for each in compared.differences]
    assert [each[4] is None for each in index["differences"]] == unknown
    for side in ("a", "b"):
        assert index[side]["heads"][2]["layer"] == 2
        assert said(folder, f"{side}-head-2-0")["layer"] == 2
        assert len(said(folder, f"{side}-texts")) == 9


def test_a_folder_that_cannot_be_made_is_told(atlas, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="Cannot make the folder"):
        atlas.view().save(tmp_path / "file" / "page")


def test_only_who_knows_the_token_is_served(atlas, tmp_path):
    pytest.importorskip("starlette", reason="needs the extra server")
    client = pytest.importorskip("starlette.testclient", reason="needs httpx")
    from headscope.views.server import atlas_application

    folder = atlas.view().save(tmp_path).parent
    asking = client.TestClient(atlas_application(folder, "secret"), base_url="http://127.0.0.1:9")
    answer = asking.get("/secret/")
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert asking.get("/secret/data/index.js").text.startswith("headscopeAtlas")
    assert asking.get("/").status_code == 404
    assert asking.get("/other/data/index.js").status_code == 404
    assert asking.get("/secret/../../etc/passwd").status_code == 404
    assert asking.get("/secret/", headers={"host": "evil.example"}).status_code == 403
    elsewhere = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "script"}
    assert asking.get("/secret/data/index.js", headers=elsewhere).status_code == 403
