"""Strangers' strings in every view and every live shell: they are text, and nothing else.

Every page that is opened here fails its test where it asks for anything, or where anything goes
wrong in it.
"""

import dataclasses
import unicodedata
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest

import headscope as hs
from headscope.cli import run
from headscope.linguistics import Sentence
from headscope.patterns import PATTERNS, Heads
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights

from ..hostile import HALVES, NAME

VIEWS = ("head", "matrix", "text", "neuron")
HEADS, FEATURES = 1, 4
CENSUS = """() => {
    const found = { broken: String(window.broken) };
    const add = (name) => { found[name] = (found[name] ?? 0) + 1; };
    const walk = (root) => root.querySelectorAll("*").forEach((element) => {
        add(element.localName);
        for (const { name, value } of element.attributes) {
            if (name.startsWith("on") || ADDRESSES.includes(name)) add(`${element.localName} ${name}`);
            if (name === "style" && /url|expression|image/i.test(value)) add("style of an address");
        }
        if (element.shadowRoot) walk(element.shadowRoot);
    });
    const ADDRESSES = ["href", "src", "srcset", "srcdoc", "action", "formaction", "data", "poster", "background", "is",
        "xlink:href", "http-equiv", "ping"];
    walk(document);
    return found;
}"""
"""How many elements there are of each kind, and how many attributes that run or load something."""

TEXTS = """(selector) => {
    const { shadowRoot } = [...document.querySelectorAll("*")].find((element) => element.shadowRoot);
    return [...shadowRoot.querySelectorAll(selector)].map((element) => element.textContent);
}"""

STEPS = """async ({ view, selector, steps }) => {
    const { shadowRoot } = [...document.querySelectorAll("*")].find((element) => element.shadowRoot);
    const wrong = [];
    for (const [query, key, wanted] of steps) {
        if (window.models) {
            const [model] = window.models;
            model.set("selection", { ...model.state.selection, query: [query], key: [key] });
            model.tell("change:selection");
        } else location.hash = `v=2&view=${view}&query=${query}&key=${key}`;
        let texts;
        for (let frames = 0; frames < 40; frames++) {
            await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
            texts = [...shadowRoot.querySelectorAll(selector)].map((element) => element.textContent);
            if (texts.join("\\0") === wanted.join("\\0")) break;
        }
        if (texts.join("\\0") !== wanted.join("\\0")) wrong.push([query, key, wanted, texts]);
    }
    return wrong;
}"""
"""Pins one pair after the other and says where other texts are shown than wanted."""


def record_of(pieces, rng, name=NAME, **more):
    tokens = Tokens(pieces=tuple(pieces), labels=tuple(pieces), **more)
    vectors = {
        side: rng.normal(size=(HEADS, len(tokens), FEATURES)).astype(np.float32)
        for side in ("queries", "keys")
    }
    stack = Stack(name=name, query=tokens, key=tokens, layers=(Layer(layer=0, **vectors),))
    return Record(stacks={name: stack}, model=ModelFacts(name=name))


def harmless(pieces):
    """As many strings of the same lengths, of which a page must have as many elements."""
    return ["w" * len(piece) for piece in pieces]


ALL = {
    "head": ("[data-column=query] .label", "[data-column=key] .label"),
    "text": (".word .label",),
    "neuron": (".query-list .label",),
}
"""Where a view shows all tokens at once."""

PINNED = {
    "head": "[data-inspector] [data-chosen]",
    "matrix": "[data-status] bdi, .axis [data-at] bdi",
    "text": ".text-view .view-note b",
    "neuron": ".query-name bdi, .formula bdi",
}
"""Where a view shows the tokens that are pinned."""


def wanted_all(view_name, hostile):
    return [shown.page for shown in hostile.values()]


def wanted_pinned(view_name, hostile, query, key):
    tokens = list(hostile)
    first, second = hostile[tokens[query]].page, hostile[tokens[key]].page
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in first)
    return {
        "head": [f"“\u2068{first}\u2069” looks at" if turned else f"“{first}” looks at"],
        "matrix": [first, second, second, first],
        "text": [f"from {first}"],
        "neuron": [first, first, second],
    }[view_name]


def steps(view_name, hostile, every):
    """Pairs of neighbours, and what is to be seen of them: each token once, or one in so many
    pairs.
    """
    pairs = [(query, (query + 1) % len(hostile)) for query in range(0, len(hostile), 2)]
    return [(*pair, wanted_pinned(view_name, hostile, *pair)) for pair in pairs[::every]]


def check_shown(frame, view_name, hostile, every):
    """Every token is shown as text where a view shows all at once, one pair in so many where it is
    pinned.
    """
    for selector in ALL.get(view_name, ()):
        assert frame.evaluate(TEXTS, selector) == wanted_all(view_name, hostile), selector
    if view_name in PINNED:
        told = {
            "view": view_name,
            "selector": PINNED[view_name],
            "steps": steps(view_name, hostile, every),
        }
        assert frame.evaluate(STEPS, told) == []


def check_same(page, twin):
    """A page has no element and no address that its harmless twin has not, in no frame."""
    found, wanted = ([frame.evaluate(CENSUS) for frame in each.frames] for each in (page, twin))
    assert found == wanted
    assert all(census["broken"] == "undefined" for census in found)


@pytest.fixture(scope="module")
def page_and_twin(kept_pages, hostile):
    """A page of hostile strings and its harmless twin, which stay open for all views."""
    return [
        kept_pages("file", record_of(pieces, np.random.default_rng(4), name), title=name)
        for pieces, name in ((hostile, NAME), (harmless(hostile), "self"))
    ]


@pytest.mark.parametrize("view_name", VIEWS)
def test_tokens_are_text_in_every_view_of_a_page(view_name, page_and_twin, hostile):
    for page in page_and_twin:
        page.follow(view=view_name, query=0, key=3)
        page.page.locator(f'[data-headscope][data-view="{view_name}"]').wait_for(state="attached")
        page.settle()
    view, twin = page_and_twin
    check_same(view.page, twin.page)
    check_shown(view.page, view_name, hostile, every=5 if view_name in ALL else 1)
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert view.page.evaluate(width) <= 0


def test_every_key_of_a_neuron_view_is_text(show, rng, hostile):
    view = show(record_of(hostile, rng), view="neuron")
    found = view.page.evaluate(
        """async () => {
            const { shadowRoot } = document.querySelector("#headscope");
            const list = shadowRoot.querySelector(".key-scroll");
            const found = {};
            for (let top = 0; top < list.scrollHeight; top += list.clientHeight / 2) {
                list.scrollTop = top;
                await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 30)));
                for (const row of list.querySelectorAll("[data-token]"))
                    found[row.dataset.token] = row.querySelector(".label").textContent;
            }
            return Object.values(found);
        }"""
    )
    assert found == [shown.page for shown in hostile.values()]


@pytest.fixture(scope="module")
def evidence_of():
    """A record, and what heads do over twelve texts: one follows patterns that are called
    anything.
    """
    rng = np.random.default_rng(6)
    planted = next(pattern for pattern in PATTERNS if pattern.name == "next")
    records = []
    for text in range(12):
        tokens = Tokens(pieces=tuple(f"w{number}" for number in range(7 + text % 3)))
        weights = random_weights(rng, (3, len(tokens), len(tokens)))
        weights[1] = 0.1 * weights[1] + 0.9 * np.roll(np.eye(len(tokens)), 1, axis=1)
        stack = Stack(
            name="self", query=tokens, key=tokens, layers=(Layer(layer=0, weights=weights),)
        )
        records.append(Record(stacks={"self": stack}, model=ModelFacts(name="planted")))

    @cache
    def evidence_of(names):
        patterns = tuple(
            dataclasses.replace(planted, name=name, says=name, source=name) for name in names
        )
        found = hs.heads(records, patterns=patterns)
        found.tally.sums.facts["model"] = names[0]
        kept = [scores for _, scores in found.tally.examples]
        found.tally.examples = list(zip(names, kept, strict=False))
        return records[0], Heads(found.tally)

    return evidence_of


def test_names_of_labels_are_text(show, hostile, evidence_of):
    opened = []
    for names in (tuple(hostile), tuple(f"w{number}" for number in range(len(hostile)))):
        record, found = evidence_of(names)
        opened.append(show(record, evidence=found, view="head", layer=0, head=1))
    page, valid = opened[0].page, [name.encode("utf-8", "replace").decode() for name in hostile]
    for view_name in ("matrix", "head"):
        for view in opened:
            view.choose(view_name)
        check_same(*(view.page for view in opened))
        assert sorted(page.evaluate(TEXTS, ".label-evidence h2 bdi") or valid) == sorted(valid)
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(width) <= 0


def test_texts_of_labels_are_text(open_file, hostile, evidence_of, tmp_path):
    record, found = evidence_of(("next",))
    shown = hs.view(record, view="head", evidence=found, layer=0, head=1)
    evidence = shown.header["evidence"]
    evidence["examples"] = [token.encode("utf-8", "replace").decode() for token in hostile]
    evidence["shown"][0] |= {"texts": list(range(len(hostile))), "scores": [0.5] * len(hostile)}
    view = open_file(shown.save(tmp_path / "page.html"))
    assert view.page.evaluate(TEXTS, ".label-evidence .texts bdi") == [
        shown.page for shown in hostile.values()
    ]
    assert view.page.evaluate(CENSUS).keys().isdisjoint(SMUGGLED)


def test_words_and_relations_of_gold_links_are_text(show, rng, hostile):
    opened = []
    for pieces in (list(hostile), harmless(hostile)):
        links = [(number, number + 1, piece) for number, piece in enumerate(pieces[:-1])]
        opened.append(
            show(record_of(pieces, np.random.default_rng(4)), links=links, head=0, view="text")
        )
    check_same(*(view.page for view in opened))
    page, wanted = opened[0].page, [shown.page for shown in hostile.values()]
    assert page.evaluate(TEXTS, "[data-word]") == wanted
    assert page.evaluate(TEXTS, ".links-list b") == wanted[:-1]
    relations = [shown.page for piece, shown in list(hostile.items())[:-1] if piece]
    assert page.evaluate(TEXTS, "[data-half=gold] text") == relations
    assert page.evaluate(TEXTS, ".links-list b + small") == wanted[:-1]


def test_words_and_relations_of_a_gold_tree_are_text(show, rng, hostile):
    """Words of a treebank have no spaces around them."""
    words = [word for word in hostile if word and word == word.strip() and not word.isspace()]
    words = [word for word in words if word.encode("utf-8", "replace").decode() == word]
    tree = Sentence(
        words=tuple(words),
        heads=(0, *range(1, len(words))),
        relations=tuple(reversed(words)),
        name=NAME,
    )
    tokens = Tokens(
        pieces=tuple(words), labels=tuple(words), offsets=tree.spans, texts=(tree.text,)
    )
    weights = random_weights(rng, (1, len(words), len(words)))
    stack = Stack(name="self", query=tokens, key=tokens, layers=(Layer(layer=0, weights=weights),))
    view = show(
        Record(stacks={"self": stack}, model=ModelFacts(name=NAME)), links=tree, view="matrix"
    )
    wanted = [hostile[word].page for word in words]
    assert view.page.evaluate(TEXTS, "[data-word]") == wanted
    assert view.page.evaluate(TEXTS, "[data-half=gold] text") == wanted[::-1][1:]
    assert view.page.evaluate(TEXTS, ".links bdi.view-note") == [NAME]
    assert view.page.evaluate(CENSUS)["broken"] == "undefined"


def test_names_of_patches_over_their_picture_are_text(show, hostile):
    columns = 20
    grid = (-(-len(hostile) // columns), columns)
    opened = []
    for pieces in (list(hostile), harmless(hostile)):
        places = tuple(divmod(number, columns) for number in range(len(pieces)))
        record = record_of(pieces, np.random.default_rng(4), "self", grids=(grid,), places=places)
        picture = np.zeros((2 * grid[0], 2 * grid[1], 3), np.uint8)
        record = dataclasses.replace(record, pictures=(picture,))
        opened.append(show(record, view="text", query=0))
    check_same(*(view.page for view in opened))
    wanted = [shown.page for shown in hostile.values()]
    assert opened[0].page.evaluate(TEXTS, ".pictured .word .label") == wanted
    opened[0].choose("head")
    assert opened[0].page.evaluate(TEXTS, "[data-column=key] .label") == wanted


def test_tokens_of_a_comparison_are_text(show, hostile):
    """Most of the tokens are in both records, the others in one alone."""
    opened = []
    for pieces, name in ((list(hostile), NAME), (harmless(hostile), "wide")):
        size = len(pieces) // 5
        a, b = (
            record_of(part, np.random.default_rng(4), "self", texts=(name,))
            for part in (pieces[: 4 * size], pieces[size:])
        )
        a, b = (dataclasses.replace(record, model=ModelFacts(name=name)) for record in (a, b))
        opened.append(show(hs.compare(a, b), view="head", query=3))
    view = opened[0]
    labels = view.page.evaluate(TEXTS, "[data-column=key] .label")
    for token, shown in list(hostile.items())[:100]:
        assert f"−{shown.page}" in labels or shown.page in labels, token
    for view_name in ("head", "matrix", "text"):
        for page in opened:
            if view_name != "head":
                page.choose(view_name)
        assert view.page.evaluate("window.broken") is None
        assert view.page.evaluate(CENSUS).keys() == opened[1].page.evaluate(CENSUS).keys()
        assert f"A: {NAME} “{NAME}”" in view.text("[data-note]")


SHELLS = ("widget", "server", "frame", "bertviz head_view")


@pytest.mark.parametrize("shell", SHELLS)
def test_tokens_are_text_in_every_live_shell(shell, request, hostile):
    views = ("head", "matrix", "text") if shell.startswith("bertviz") else VIEWS
    with opened_in(shell, request, list(hostile), NAME) as page:
        for view_name in views:
            frame = page.frames[-1]
            shown = frame.locator("[data-headscope]")
            if shown.get_attribute("data-view") == "overview":
                frame.locator('[data-option="one"]').click()
                frame.locator('[data-option="text"]').wait_for(state="attached")
            if shown.get_attribute("data-view") != view_name:
                frame.locator(f'[data-option="{view_name}"]').click()
            frame.locator(f'[data-headscope][data-view="{view_name}"]').wait_for(state="attached")
            # All tokens were seen in the page; a shell brings them there by another way.
            check_shown(frame, view_name, hostile, every=20)
        for frame in page.frames:
            census = frame.evaluate(CENSUS)
            assert census["broken"] == "undefined"
            assert census.keys().isdisjoint(SMUGGLED)
        scripts = [frame.evaluate(CENSUS).get("script", 0) for frame in page.frames]
        frames = len(page.frames)
    with opened_in(shell, request, harmless(hostile), "wide") as page:
        assert scripts == [frame.evaluate(CENSUS).get("script", 0) for frame in page.frames]
        assert frames == len(page.frames)


SMUGGLED = tuple("img object base video source math template a foreignObject image use set".split())
"""What no shell of ours has."""


@contextmanager
def opened_in(shell, request, pieces, name):
    """The page of a live shell; the last of its frames is the one with the views in it."""
    record = record_of(pieces, np.random.default_rng(4), name)
    if shell == "widget":
        yield request.getfixturevalue("widgets")(hs.view(record, view="head", title=name))
    elif shell == "server":
        with request.getfixturevalue("served")(record, title=name) as view:
            yield view.page
    elif shell == "frame":
        yield request.getfixturevalue("notebook")(hs.view(record, view="head", title=name))
    else:
        pytest.importorskip("IPython", reason="needs the extra notebook")
        from headscope import bertviz

        weights = record[name].layer(0).weights_of()[None]
        shown = getattr(bertviz, shell.split()[1])([weights], pieces, html_action="return")
        yield request.getfixturevalue("notebook")(outputs=shown.data)


def test_a_page_from_the_command_line_is_inert(open_file, hostile, tmp_path):
    hs.save(record_of(hostile, np.random.default_rng(4), NAME), tmp_path / "run.safetensors")
    assert (
        run(["view", str(tmp_path / "run.safetensors"), "--out", str(tmp_path / "page.html")]) == 0
    )
    view = open_file(tmp_path / "page.html")
    # So many tokens open as a matrix; as lines, every one of them is shown at once.
    check_shown(view.page, "matrix", hostile, every=20)
    view.choose("head")
    check_shown(view.page, "head", hostile, every=20)
    assert view.page.title() == NAME
    assert view.page.evaluate(CENSUS).keys().isdisjoint(SMUGGLED)


def test_what_breaks_out_is_seen(browser, hostile, tmp_path):
    """Unescaped, the same strings run code, ask for files and add elements: the checks above can
    fail.
    """
    path = tmp_path / "open.html"
    loose = [token for token in hostile if token not in HALVES and "refresh" not in token]
    path.write_text("<!doctype html><p>" + "<p>".join(loose), encoding="utf-8")
    context = browser.new_context()
    context.route("**//example.com/**", lambda route: route.abort())
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_timeout(300)
    census = page.evaluate(CENSUS)
    context.close()
    assert census["broken"] == "1"
    assert set(census) & set(SMUGGLED)
    assert [url for url in requests if url != path.as_uri()]
