"""The atlas of a live model: given to its page, and refused where it is of another one."""

import base64
from types import SimpleNamespace

import numpy as np
import pytest

import headscope as hs
from headscope.errors import FileError, ModelError
from headscope.live._facts import check_atlas, parse_atlas
from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import TEXT, page_of


@pytest.fixture(scope="module")
def model():
    """3 layers of 5 heads."""
    return tiny_model("gpt2", writes=True)


@pytest.fixture(scope="module")
def atlas(model):
    texts = [TEXT, "it sat on the cat.", "the mat sat."]
    return hs.atlas(model, tiny_tokenizer(), texts, battery=False, progress=False)


@pytest.fixture(scope="module")
def file(atlas, tmp_path_factory):
    return atlas.save(tmp_path_factory.mktemp("atlas") / "result.safetensors")


def test_a_page_gets_the_mean_map_of_every_head(model, atlas):
    page = page_of(model, tiny_tokenizer(), atlas=atlas)
    assert page.get("/model.json").json()["atlas"] == 3
    page.ask()
    answer = page.get("/atlas.json").json()
    assert (answer["texts"], answer["side"], len(answer["heads"])) == (3, 12, 15)
    assert [tuple(cell) for cell in answer["heads"]] == atlas.cells
    assert answer["stack"] == page.get("/model.json").json()["stacks"][0]["name"]
    roots = np.frombuffer(base64.b64decode(answer["mean_maps"]), np.uint8).reshape(15, 24, 24)
    np.testing.assert_allclose((roots / 255.0) ** 2, np.nan_to_num(atlas.maps), atol=0.01)


def test_without_an_atlas_the_answer_says_how_to_give_one(page):
    answer = page.get("/atlas.json")
    assert (answer.status_code, "--atlas FOLDER" in answer.text) == (400, True)
    assert page.get("/model.json").json()["atlas"] == 0


def test_an_atlas_of_another_stack_is_refused_when_the_heads_are_known(atlas):
    other = page_of(tiny_model("bert"), tiny_tokenizer(), atlas=atlas)
    other.ask()
    other.live.facts["stacks"][0]["heads"] = 4
    answer = other.get("/atlas.json")
    assert answer.status_code == 400
    assert "of 3 layers with 5 heads each" in answer.text


def config(layers=3, heads=5, name="", **more):
    facts = {"num_hidden_layers": layers, "num_attention_heads": heads, "_name_or_path": name}
    return SimpleNamespace(**facts | more)


def named(atlas, name):
    return SimpleNamespace(model=name, cells=atlas.cells)


def test_an_atlas_of_another_model_is_refused(atlas):
    check_atlas(named(atlas, "openai/gpt2"), config(name="gpt2"))
    check_atlas(named(atlas, ""), config(name="gpt2"))
    # Where only some layers have attention.
    hybrid = SimpleNamespace(model="", cells=[(1, 0), (1, 1), (3, 0), (3, 1)])
    check_atlas(hybrid, config(layers=5, heads=2))
    check_atlas(named(atlas, ""), config(layers=9, is_encoder_decoder=True))
    with pytest.raises(ModelError, match="of bert-base, the model is gpt2; give the atlas of this"):
        check_atlas(named(atlas, "bert-base"), config(name="gpt2"))
    for other in (config(heads=4), config(layers=2), config(layers=6)):
        with pytest.raises(ModelError, match="of 3 layers with 5 heads each, the model that is"):
            check_atlas(named(atlas, ""), other)


def test_it_is_refused_before_anything_is_served(atlas, file, capsys):
    other = tiny_model("gpt2", writes=True, n_layer=2)
    for given in (atlas, file):
        with pytest.raises(ModelError, match="of 3 layers with 5 heads each"):
            hs.serve(other, tiny_tokenizer(), atlas=given)
    assert capsys.readouterr().out == ""


def test_what_is_no_atlas_is_an_error(tmp_path):
    path = hs.save(hs.testing.random_record(), tmp_path / "record.safetensors")
    with pytest.raises(FileError, match=r"Expected an atlas, got <Record.*headscope atlas"):
        parse_atlas(path)
