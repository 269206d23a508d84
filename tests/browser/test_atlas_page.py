"""The pages of an atlas and of a HeadVis tree, from disk: what they show, and axe-core on both."""

import json
from contextlib import ExitStack, contextmanager

import pytest

import headscope as hs
from headscope.headvis import read_headvis, write_headvis
from headscope.testing import tiny_model, tiny_tokenizer

from .test_accessibility import AXE, grave

TEXTS = [
    "the cat sat",
    "the dog ran by us",
    "it sat on me",
    "all ran",
    "us and the cat",
    "me by it",
]


@contextmanager
def folder_opened(browser, index, scheme, width=1280):
    """A page with its scripts; in the end it has asked for nothing else, and nothing broke."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_offline(True)
    page, requests, errors = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda told: told.type == "error" and errors.append(told.text))
    page.goto(index.as_uri())
    page.locator("[data-headscope] h1").wait_for()
    yield Followed(page)
    assert [url for url in requests if not url.startswith((index.parent.as_uri(), "data:"))] == []
    assert errors == []
    context.close()


class Followed:
    """A page of an atlas, moved by its address."""

    def __init__(self, page):
        self.page = page

    def go(self, address, waits_for):
        self.page.evaluate("address => { location.hash = address }", address)
        self.page.locator(waits_for).first.wait_for()
        return self

    def settle(self):
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
            "setTimeout(done))))"
        )

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def is_as_wide_as_the_window(self):
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A tree of whose rows the least is known, and an atlas, as pages."""
    at = tmp_path_factory.mktemp("pages")
    model, tokenizer = tiny_model("gpt2"), tiny_tokenizer()
    write_headvis(at / "tree", model, tokenizer, TEXTS, intervals=2)
    path = at / "tree" / "heads" / "L1H2.json"
    head = json.loads(path.read_text())
    for each in head["sequences"]:
        for name in ("attention_indices", "attention_values"):
            each[name] = each[name][:-1]
    path.write_text(json.dumps(head))
    return {
        "tree": read_headvis(at / "tree").view().save(at / "tree-page"),
        "atlas": hs.atlas(model, tokenizer, TEXTS, progress=False).view().save(at / "atlas-page"),
    }


@pytest.fixture(scope="module", params=["light", "dark"])
def tree(request, browser, folders):
    with ExitStack() as opened:
        yield opened.enter_context(folder_opened(browser, folders["tree"], request.param))


def test_the_map_is_coloured_by_a_metric_that_can_be_chosen(tree):
    tree.go("#/", "[data-tile]")
    assert tree.page.locator("[data-tile]").count() == 15
    before = tree.text('[data-tile="1-2"]')
    tree.page.locator(".label-chip", has_text="pattern entropy").click()
    tree.page.locator('.label-chip[aria-current="true"]').wait_for()
    assert tree.text('[data-tile="1-2"]') != before
    assert tree.page.evaluate("location.hash") == "#/find/pattern%20entropy"
    tree.page.locator('[data-tile="0-0"]').focus()
    tree.page.keyboard.press("ArrowDown")
    tree.page.keyboard.press("ArrowRight")
    tree.page.keyboard.press("Enter")
    tree.page.locator("h1", has_text="Head 1-1").wait_for()
    # Keys are listened to from the frame after that one.
    tree.settle()
    tree.page.keyboard.press("]")
    tree.page.locator("h1", has_text="Head 1-2").wait_for()


def test_rows_that_were_cut_say_not_kept(tree):
    tree.go("#/head/1-2", ".atlas-example")
    assert "not kept" in tree.text(".tree-facts")
    tree.go("#/head/1-2/text/0", "[data-from]")
    last = tree.page.locator("[data-from]").last
    assert last.get_attribute("title").endswith("% not kept")
    assert tree.page.locator("[data-from]").first.get_attribute("title").endswith("all kept")
    last.click()
    assert tree.page.locator(".tree-cut").last.inner_text() == "not kept"
    tree.page.keyboard.press("Escape")
    tree.page.locator(".atlas-example").first.wait_for()


needs_axe = pytest.mark.skipif(
    not AXE.exists(),
    reason="axe-core comes with the front end's packages: npm --prefix frontend ci",
)


@needs_axe
@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("#/find/qk%20distance", "[data-tile]"),
        ("#/head/1-2", ".atlas-example"),
        ("#/head/1-2/text/0", "[data-from]"),
    ],
)
def test_axe_finds_nothing_in_a_tree(tree, address, part):
    assert grave(tree.go(address, part)) == []


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_an_atlas(browser, folders, scheme):
    with folder_opened(browser, folders["atlas"], scheme) as atlas:
        for address, part in (
            ("#/", "[data-tile]"),
            ("#/find/it", ".atlas-ranked, .atlas-says"),
            ("#/head/1-2", ".atlas-example"),
            ("#/head/1-2/text/0", "[data-from]"),
        ):
            assert grave(atlas.go(address, part)) == [], address


def test_an_atlas_is_found_by_a_word_and_walked(browser, folders):
    with folder_opened(browser, folders["atlas"], "light") as atlas:
        assert atlas.page.locator("[data-tile]").count() == 15
        atlas.page.keyboard.press("/")
        atlas.page.keyboard.type("1-2")
        atlas.page.keyboard.press("Enter")
        atlas.page.locator('.atlas-ranked [data-tile="1-2"]').click()
        atlas.page.locator("h1", has_text="Head 1-2").wait_for()
        atlas.settle()
        atlas.page.keyboard.press("[")
        atlas.page.locator("h1", has_text="Head 1-1").wait_for()
        atlas.page.locator(".atlas-example").first.click()
        atlas.page.locator("[data-from]").first.wait_for()
        assert "/text/" in atlas.page.evaluate("location.hash")


@pytest.mark.parametrize("name", ["tree", "atlas"])
def test_nothing_is_wider_than_a_phone(browser, folders, name):
    with folder_opened(browser, folders[name], "light", width=390) as page:
        for address, part in (
            ("#/", "[data-tile]"),
            ("#/head/1-2", ".atlas-example"),
            ("#/head/1-2/text/0", "[data-from]"),
        ):
            assert page.go(address, part).is_as_wide_as_the_window(), address
