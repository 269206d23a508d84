"""What is not run of the docs is rare, has a reason, and the runner itself finds what is wrong."""

from collections import Counter

import pytest

import page_blocks as blocks
from page_blocks import PAGES, Reader, blocks_of

NOT_RUN = {
    "ablation": 1,
    "alignment": 1,
    "bertviz": 1,
    "faithfulness": 1,
    "notebooks": 3,
}
"""Blocks of each page that are not run. Before one is added: a small model under the name that the page uses, in
conftest.py, runs most."""


def marked():
    return [block for page in PAGES for block in blocks_of(page) if block.reason]


def test_what_is_not_run_is_counted_and_has_a_reason():
    assert Counter(block.page for block in marked()) == NOT_RUN
    assert sum(NOT_RUN.values()) <= 12
    assert sum(block.language == "python" for block in marked()) <= 4
    assert all(len(block.reason.split()) >= 3 for block in marked())


def test_every_block_says_what_it_is():
    """Code without a language would be passed over."""
    for page in PAGES:
        for block in blocks_of(page):
            assert block.language in ("python", "sh", "text"), block.place


def test_no_mark_stands_where_it_marks_nothing():
    for page, path in PAGES.items():
        marks = path.read_text(encoding="utf-8").count("not run:")
        assert marks == sum(bool(block.reason) for block in blocks_of(page)), page


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a page and give a reader of it."""

    def written(text):
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        monkeypatch.setitem(PAGES, "page", page)
        monkeypatch.setattr(blocks, "ROOT", tmp_path)
        return Reader("page")

    return written


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("```python\nx = 1\n```\nand\n```python\nx + y\n```\n", NameError, "'y' is not defined"),
        ("```sh\n# a comment\nheadscope gone\n```\n", AssertionError, "page.md:3: headscope gone"),
        (
            "```sh\nheadscope figure gone.safetensors --out a.pdf\n```\n",
            AssertionError,
            "gone.safetensors is not there",
        ),
        ("```sh\ngit clone x\n```\n", AssertionError, "page.md:2: git is not run here"),
        ("```sh\nmake dist\nmake gone\n```\n", AssertionError, "page.md:3: there is no make gone"),
        (
            "```sh\npip install 'headscope[all]'\npip install 'headscope[all,gone] @ file://x'\n```\n",
            AssertionError,
            "page.md:3: there is no pip gone",
        ),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", AssertionError, "what is printed is\n1"),
    ],
    ids=["a name", "a command", "a file", "another command", "a target", "an extra", "output"],
)
def test_a_block_that_does_not_run_is_found(text, error, words, written):
    with pytest.raises(error, match=words):
        written(text).read()


def test_blocks_of_a_page_go_on_from_each_other_and_marked_ones_are_passed_over(written):
    reader = written(
        "```python\nx = 1\n```\n<!-- not run: needs a GPU, say -->\n```python\nx = 2\n```\n"
        "```python\nprint(x)\n```\n\n```text\n1\n```\n```sh\nheadscope \\\n    --version\n```\n"
    )
    reader.read()
    assert reader.names["x"] == 1
