"""What is wrong with a built site: links, pictures and frames that lead nowhere, and requests to
other hosts.

The builders check links between pages and nothing else: a picture or frame that is not there passes
their strict mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    "img": "src",
    "iframe": "src",
    "script": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
"""Attribute of each element that a browser fetches by itself."""
LEFT_OUT = ("404.html",)
"""Its links start with the address that the site is published at."""


@dataclass
class Found(HTMLParser):
    """What a page links to and fetches, and which places in it can be linked to."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.fetched.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])
        if "srcset" in given:
            self.fetched += [part.split()[0] for part in given["srcset"].split(",")]


def read(page: Path) -> Found:
    """What is in one page."""
    content = Found()
    content.feed(page.read_text(encoding="utf-8"))
    return content


def faults_of(site: Path) -> list[str]:
    """What is wrong with a site, one line for each fault."""
    pages = {page: read(page) for page in sorted(site.rglob("*.html")) if page.name not in LEFT_OUT}
    faults = []
    for page, content in pages.items():
        name = page.relative_to(site)
        for address in content.fetched:
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                faults.append(f"{name}: fetches {address} from another host")
            else:
                faults += _missing(page, address, pages, name)
        for address in content.links:
            if not urlsplit(address).scheme and not address.startswith("//"):
                faults += _missing(page, address, pages, name)
        if "Traceback (most recent call last)" in page.read_text(encoding="utf-8"):
            faults.append(f"{name}: shows a traceback")
    return faults


def _missing(page: Path, address: str, pages: dict[Path, Found], name: Path) -> list[str]:
    """A line where a local address leads to no file, or to no place in its page."""
    parts = urlsplit(address)
    if parts.scheme == "data":
        return []
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return [f"{name}: {address} leads to no file"]
    anchor = unquote(parts.fragment)
    # a viewer page reads its own fragment
    known = pages.get(target)
    if (
        anchor
        and known
        and "viewer" not in target.parts
        and anchor not in known.anchors
        and anchor != "__top"
    ):
        return [f"{name}: {address} leads to no place in {target.name}"]
    return []
