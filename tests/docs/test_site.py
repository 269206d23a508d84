"""The documentation builds as a site, strictly and offline, and what is wrong with a site is
found.
"""

import json
import re

import pytest

import build_docs
import headscope
from check_site import faults_of
from page_blocks import DOCS, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    assert build_docs.build(folder) == []
    return folder


def test_it_builds_without_a_fault(site):
    assert {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")} <= {
        page.relative_to(site).with_suffix("").as_posix() for page in site.rglob("*.html")
    }


def test_every_page_is_in_the_menu(site):
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        assert re.search(
            rf"[ :]{re.escape(page.relative_to(DOCS).as_posix())}$", menu, re.MULTILINE
        ), page


def test_every_public_name_has_its_place_in_the_reference(site):
    pages = {page.stem: page.read_text("utf-8") for page in (site / "reference").glob("*.html")}
    shown = set(re.findall(r'id="headscope\.(\w+)"', "".join(pages.values())))
    for module in ("errors", "foreign", "interventions", "texts"):
        assert f'id="headscope.{module}.' in pages[module]
        shown.add(module)
    assert set(headscope.__all__) - {"__version__"} - shown == set()


def test_options_are_spelled_out(site):
    text = (site / "reference/capturing.html").read_text(encoding="utf-8")
    for option in ("keep", "precision", "target_tokenizer", "sampling_rate", "truncate"):
        assert f"<code>{option}</code>" in text, option


@pytest.mark.parametrize(
    ("typed", "page"),
    [
        ("heatmap", "figures"),
        ("activation patching", "interventions"),
        ("pruning", "ablation"),
        ("RAG", "answers"),
        ("LoRA", "large_models"),
        ("chat", "capturing"),
        ("significance", "intervals"),
        ("rollout", "measures"),
        ("induction", "patterns"),
        ("prefix_matching", "reference/measures"),
    ],
)
def test_search_finds_what_people_type(typed, page, site):
    (index,) = site.rglob("search*.json")
    sections = json.loads(index.read_text(encoding="utf-8"))["items"]
    found = [
        section["location"].partition(".html")[0]
        for section in sections
        if _words(typed) <= _words(section["title"] + " " + section["text"])
    ]
    assert page in found


def _words(text):
    return set(re.findall(r"\w+", text.lower()))


def test_the_docs_are_a_book_of_one_sitting():
    """At most 25 pages and 30,000 words, tutorials included; the reference is generated, and the
    table of supported models is searched, not read.
    """
    pages = [page for page in DOCS.rglob("*.md") if page.name != "support.md"]
    tutorials = (ROOT / "notebooks").glob("*.md")
    words = [
        word
        for page in [*pages, *tutorials]
        for word in page.read_text(encoding="utf-8").split()
        if re.search(r"\w", word)
    ]
    assert len(pages) <= 25
    assert len(words) <= 30_000


def test_the_gallery_shows_live_pages_of_the_demo_model(site):
    frames = re.findall(
        r'<iframe class="viewer" src="([^"]+)"', (site / "gallery.html").read_text(encoding="utf-8")
    )
    assert len(frames) >= 8
    for frame in frames:
        assert "all-MiniLM-L6-v2" in (site / frame).read_text(encoding="utf-8")


def test_every_work_that_is_cited_is_in_the_bibliography():
    listed = (DOCS / "literature.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\*\*([A-Z]\w+)[^*]*?(\d{4})\.\*\*", listed))
    cited = re.compile(
        r"\b([A-Z][a-z]\w*)(?:\s+et\s+al\.|\s+(?:&|and)\s+[A-Z][a-z]\w*)?,?\s+\(?"
        r"((?:19|20)\d\d)\b"
    )
    places = [*DOCS.rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    found = {work for place in places for work in cited.findall(place.read_text(encoding="utf-8"))}
    assert {
        work for work in found if work[0] not in ("Techniques", "November", "CoNLL")
    } - listed == set()


PHONE, DESKTOP = 390, 1280
LOOKED_AT = (
    "index tutorials/first_look gallery literature notebooks patterns support reference/capturing"
).split()


def test_pages_fit_a_phone_and_a_desktop_and_ask_nobody_else(site, browser):
    """In a browser: no page is wider than the window, nothing fails, and no request leaves the
    disk.
    """
    asked, wide = [], []
    tab = browser.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    for page in LOOKED_AT:
        # A page that is loaded once for both widths: the gallery has ten pages in it.
        tab.set_viewport_size({"width": PHONE, "height": 900})
        tab.goto((site / f"{page}.html").as_uri())
        tab.locator("h1").wait_for()
        for width in (PHONE, DESKTOP):
            tab.set_viewport_size({"width": width, "height": 900})
            if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append((page, width))
    tab.close()
    assert wide == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<img src="gone.png">', "index.html: gone.png leads to no file"),
        ('<iframe src="gone.html"></iframe>', "index.html: gone.html leads to no file"),
        ('<img srcset="a.png 1x, gone.png 2x">', "index.html: gone.png leads to no file"),
        (
            '<a href="other.html#gone">x</a>',
            "index.html: other.html#gone leads to no place in other.html",
        ),
        ('<a href="#gone">x</a>', "index.html: #gone leads to no place in index.html"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "index.html: fetches https://cdn.example/x.js",
        ),
        (
            '<link rel="stylesheet" href="//fonts.example/x.css">',
            "index.html: fetches //fonts.example/x.css",
        ),
        ("<pre>Traceback (most recent call last)</pre>", "index.html: shows a traceback"),
    ],
)
def test_a_fault_is_found(page, fault, tmp_path):
    (tmp_path / "other.html").write_text('<h1 id="there">x</h1>', encoding="utf-8")
    (tmp_path / "a.png").touch()
    whole = (
        '<a href="other.html#there">x</a> <a href="https://example.org/">x</a> <img src="a.png">'
    )
    (tmp_path / "index.html").write_text(whole, encoding="utf-8")
    assert faults_of(tmp_path) == []
    (tmp_path / "index.html").write_text(whole + page, encoding="utf-8")
    assert [line[: len(fault)] for line in faults_of(tmp_path)] == [fault]


def test_the_rows_of_the_support_table_can_be_filtered(site, browser):
    page = browser.new_page()
    page.goto((site / "support.html").as_uri())
    field = page.get_by_label("Filter the rows of all tables")
    every = page.locator("article tbody tr").count()
    field.fill("qwen3_vl vision")
    shown = page.locator("article tbody tr:visible").all_inner_texts()
    assert 0 < len(shown) < every
    assert all("qwen3_vl" in row and "vision" in row.lower() for row in shown)
    assert page.get_by_text(f"{len(shown)} of {every} rows").is_visible()
    field.fill("")
    assert page.locator("article tbody tr:visible").count() == every
    page.goto((site / "terms.html").as_uri())
    assert page.get_by_label("Filter the rows of all tables").count() == 0
    page.close()
