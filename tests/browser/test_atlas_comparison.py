"""The page of two atlases, from disk: heads joined with their partners, pairs, and axe-core."""

import pytest

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from .live_pages import wait_for
from .test_accessibility import AXE, grave
from .test_atlas_page import TEXTS, folder_opened

MARKED = """all => all
    .filter((map) => getComputedStyle(map).boxShadow.includes("3px"))
    .map((map) => map.closest("[data-tile]").dataset.tile)
"""


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
        assert opened.page.locator("[data-side=a] [data-tile]").count() == len(compared.a.cells)
        assert opened.page.locator("[data-alone]").count() == len(compared.only_in_a) > 0
        partners_are_marked(opened, compared)
        changes_are_listed(opened, compared)
        fits_and_is_accessible(opened)
        pair = compared.pairs[1]
        opened.page.locator(tile("a", pair.a)).click()
        a_pair_has_a_page(opened, pair)
        fits_and_is_accessible(opened)
        opened.page.keyboard.press("]")
        after = name_of(compared.pairs[2].a)
        opened.page.locator("h1", has_text=f"Head {after} →").wait_for()
        heads_are_shown_alone(opened)


def tile(side, cell):
    return f'[data-side={side}] [data-tile="{name_of(cell)}"]'


def marked(opened):
    return opened.page.locator("[data-pair] .atlas-map").evaluate_all(MARKED)


def partners_are_marked(opened, compared):
    """By the pointer and by the keyboard."""
    page, pair = opened.page, compared.pairs[1]
    page.locator(tile("a", pair.a)).hover()
    wait_for(page, lambda: marked(opened) == [name_of(pair.a), name_of(pair.b)])
    assert f"similarity {pair.similarity:.2f}".replace("0.", ".") in opened.text(".twin-said")
    page.locator("h1").hover()
    page.locator("[data-side=b] [data-tile]").first.focus()
    page.keyboard.press("ArrowRight")
    to = next(each for each in compared.pairs if each.b == compared.b.cells[1])
    wait_for(page, lambda: marked(opened) == [name_of(to.a), name_of(to.b)])


def changes_are_listed(opened, compared):
    first = compared.differences[0]
    row = opened.page.locator(".twin-changes tbody tr").first.inner_text()
    assert f"{first.layer}-{first.head} → {first.other_layer}-{first.other_head}" in row
    assert first.pattern in row
    opened.page.locator("select").select_option("previous")
    patterns = opened.page.locator("tbody .twin-pattern").all_inner_texts()
    assert {pattern.strip() for pattern in patterns} == {"previous"}


def a_pair_has_a_page(opened, pair):
    opened.page.locator(".atlas-examples a").first.wait_for()
    assert opened.page.evaluate("location.hash") == f"#/pair/{name_of(pair.a)}"
    assert opened.text("h1") == f"Head {name_of(pair.a)} → {name_of(pair.b)}"
    assert opened.page.locator("canvas.atlas-map").count() == 3
    assert opened.text(".twin-parts h2").endswith(f"{pair.similarity:.2f}".lstrip("0"))
    opened.settle()


def heads_are_shown_alone(opened):
    """A text of one head, back to its pair and to both atlases; one of them is searched."""
    page = opened.page
    page.locator(".atlas-examples a").last.click()
    page.locator("[data-from]").first.wait_for()
    assert page.evaluate("location.hash").startswith("#/b/head/")
    page.locator("a", has_text="matched with").click()
    page.locator(".atlas-examples a").first.wait_for()
    opened.settle()
    page.keyboard.press("Escape")
    page.locator("[data-side=a] h2 a").click()
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
