"""Windows of the browser, in which one test after the other opens its page."""

from collections import defaultdict
from contextlib import contextmanager

MOST_IDLE = 2
"""Windows of one kind that wait for the next test: some open a page and its twin."""


class Windows:
    """Windows that are used again: a new one takes a third of the time that a page takes, as
    Chromium starts a process for it and compiles the script of the page anew.

    A window that comes back is as a new one: no page, no stored data, no pointer in it, nothing
    rerouted, its first size and media. One in which a test opened further tabs, or in which
    anything went wrong, is closed.

    Args:
        browser: of Playwright.
    """

    def __init__(self, browser):
        self._browser, self._idle = browser, defaultdict(list)

    @contextmanager
    def window(self, *, size, scheme="light", density=1, offline=True):
        """An empty page in a window of this kind, for the length of a block."""
        idle = self._idle[size, scheme, density, offline]
        page = idle.pop() if idle else self._new(size, scheme, density, offline)
        try:
            yield page
            again = len(idle) < MOST_IDLE and len(page.context.pages) == 1
            if again:
                _clear(page, size)
        except BaseException:
            page.context.close()
            raise
        if again:
            idle.append(page)
        else:
            page.context.close()

    def _new(self, size, scheme, density, offline):
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
            device_scale_factor=density,
            offline=offline,
        )
        return context.new_page()

    def close(self):
        """Close the windows that wait."""
        for idle in self._idle.values():
            for page in idle:
                page.context.close()
        self._idle.clear()


def _clear(page, size):
    # An empty page has no store, and may not ask for one.
    if page.url != "about:blank":
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.unroute_all()
    page.goto("about:blank")
    page.emulate_media(media="null")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    # Outside of the window: the next page must not find a pointer on what it draws.
    page.mouse.move(-1, -1)
