"""The page of two atlases, from disk: both maps and what changed, pairs, and axe-core."""

import pytest

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from .test_accessibility import AXE, grave
from .test_atlas_page import TEXTS, folder_opened

NAMES = "all => all.map((tile) => tile.dataset.tile)"
INKS = """all => all.map((map) => {
    const { data } = map.getContext("2d").getImageData(0, 0, map.width, map.height)
    return data.reduce((sum, value) => sum + value, 0)
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of fifteen heads, and one with noise in its weights and a layer less."""
    import torch

    model, tokenizer = tiny_model("gpt2"), tiny_tokenizer()
    other = tiny_model("gpt2", n_layer=len(model.h) - 1)
    with torch.no_grad():
        for ours, theirs in zip(other.h.parameters(), model.h.parameters(), strict=False):
            ours.copy_(
                theirs + 0.02 * torch.sin(torch.arange(theirs.numel())).reshape(theirs.shape)
            )
    atlases = [hs.atlas(each, tokenizer, TEXTS, progress=False) for each in (model, other)]
    compared = atlases[0].compare(atlases[1], names=("step 1", "step 2"))
    at = tmp_path_factory.mktemp("comparison")
    return compared, compared.view().save(at / "page")


def name_of(cell):
    return f"{cell[0]}-{cell[1]}"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_heads_are_joined_and_pairs_opened(browser, folder, scheme, width):
    compared, index = folder
    with folder_opened(browser, index, scheme, width) as opened:
        assert opened.text("h1") == "step 1 and step 2"
        both_maps_stand_there_with_the_changes(opened, compared, width)
        changes_are_listed(opened, compared)
        fits_and_is_accessible(opened)
        pair = compared.pairs[1]
        opened.page.locator(f'[data-tile="{name_of(pair.a)}"]').first.click()
        a_pair_has_a_page(opened, pair)
        fits_and_is_accessible(opened)
        opened.page.keyboard.press("]")
        after = name_of(compared.pairs[2].a)
        opened.page.locator("h1", has_text=f"Head {after} →").wait_for()
        heads_are_shown_alone(opened)


def both_maps_stand_there_with_the_changes(opened, compared, width):
    """Mean maps of both; below a head of the first, how unlike its partner it is."""
    maps = opened.page.locator(".atlas-all")
    for at, atlas in enumerate((compared.a, compared.b)):
        tiles = maps.nth(at).locator("[data-tile]")
        assert tiles.evaluate_all(NAMES) == [*map(name_of, atlas.cells)]
        inks = maps.nth(at).locator("canvas").evaluate_all(INKS)
        assert len(inks) == len(atlas.cells)
        assert len(set(inks)) > 3
    notes = maps.first.locator(".atlas-note").all_text_contents()
    told = dict(zip(map(name_of, compared.a.cells), notes, strict=True))
    for pair in compared.pairs:
        assert float(told[name_of(pair.a)]) == pytest.approx(1 - pair.similarity, abs=0.006)
    assert told[name_of(compared.only_in_a[0])] == "–"
    assert maps.first.locator(".atlas-note").first.is_visible() == (width > 760)


def changes_are_listed(opened, compared):
    first = compared.differences[0]
    row = opened.page.locator(".twin-changes tbody tr").first.inner_text()
    assert f"{first.layer}-{first.head} → {first.other_layer}-{first.other_head}" in row
    assert first.pattern in row
    opened.page.locator(".label-chips a", has_text="previous").first.click()
    opened.page.locator('[aria-current="true"]', has_text="previous").wait_for()
    opened.settle()
    patterns = opened.page.locator("tbody .twin-pattern").all_inner_texts()
    assert len({pattern.strip() for pattern in patterns}) == 1


def a_pair_has_a_page(opened, pair):
    opened.page.locator(".atlas-examples a").first.wait_for()
    assert opened.page.evaluate("location.hash") == f"#/head/{name_of(pair.a)}"
    assert opened.text("h1") == f"Head {name_of(pair.a)} → {name_of(pair.b)}"
    assert opened.page.locator("canvas.atlas-map").count() == 3
    assert opened.text(".twin-parts h2").endswith(f"{pair.similarity:.2f}".lstrip("0"))
    opened.settle()


def heads_are_shown_alone(opened):
    """A text of one head, back to its atlas and to both; one of them is searched."""
    page = opened.page
    page.locator(".atlas-examples a").last.click()
    page.locator("[data-from]").first.wait_for()
    assert page.evaluate("location.hash").startswith("#/b/head/")
    page.keyboard.press("Escape")
    page.locator(".atlas-examples a").first.wait_for()
    page.keyboard.press("Escape")
    page.locator("a", has_text="Both atlases").click()
    page.locator("a", has_text="step 1 alone").click()
    page.locator("input[type=search]").wait_for()
    opened.settle()
    page.keyboard.press("/")
    page.keyboard.type("1-2")
    page.keyboard.press("Enter")
    page.locator('.atlas-ranked [data-tile="1-2"]').wait_for()
    assert page.evaluate("location.hash") == "#/a/find/1-2"


def fits_and_is_accessible(opened):
    assert opened.is_as_wide_as_the_window()
    # axe-core comes with the front end's packages.
    if AXE.exists():
        assert grave(opened) == []
