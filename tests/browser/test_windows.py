"""Windows that tests use one after the other."""

from contextlib import ExitStack

import pytest

from .windows import Windows

MADE = "<p style='height: 600px'>here</p><style>p:hover { color: red } @media print { p { top: 1px } }</style>"
FOUND = """() => ({
    stored: [localStorage.length, sessionStorage.length],
    size: [innerWidth, innerHeight],
    pointed: document.querySelectorAll('p:hover').length,
    print: matchMedia('print').matches,
    dark: matchMedia('(prefers-color-scheme: dark)').matches,
    still: matchMedia('(prefers-reduced-motion: reduce)').matches,
})"""

pytestmark = pytest.mark.usefixtures("chromium_only")


@pytest.fixture
def address(tmp_path):
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html>{MADE}", encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def two(browser):
    windows = Windows(browser)
    yield windows
    windows.close()


def test_a_window_comes_back_as_new(two, address):
    with two.window(size=(700, 500), scheme="dark") as first:
        first.goto(address)
        new = first.evaluate(FOUND)
        first.evaluate("localStorage.kept = 1; sessionStorage.kept = 1")
        first.mouse.move(100, 100)
        first.set_viewport_size({"width": 300, "height": 200})
        first.emulate_media(media="print")
        first.route("**/*", lambda route: route.abort())
        used = first.evaluate(FOUND)
    assert new["dark"]
    assert new["still"]
    assert all(used[name] != new[name] for name in ("stored", "size", "pointed", "print"))
    with two.window(size=(700, 500), scheme="dark") as second:
        second.goto(address)
        second.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")
        assert second is first
        assert second.evaluate(FOUND) == new


def test_other_kinds_further_tabs_and_faults_have_a_window_of_their_own(two):
    with two.window(size=(700, 500)) as first:
        pass
    with two.window(size=(700, 500), offline=False) as other:
        assert other is not first
    with two.window(size=(700, 500)) as again:
        assert again is first
        again.context.new_page()
    assert first.is_closed()
    with ExitStack() as stack:
        broken = stack.enter_context(two.window(size=(700, 500)))
        stack.callback(broken.close)
    with two.window(size=(700, 500)) as last:
        assert last is not broken
