"""All blocks of the docs are run, and the runner itself finds what is wrong."""

import pytest

import page_blocks as blocks
from page_blocks import PAGES, Reader, blocks_of


def test_every_block_says_what_it_is():
    """Code without a language would be passed over."""
    for page in PAGES:
        for block in blocks_of(page):
            assert block.language in ("python", "sh", "text"), block.place


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
            "gone.safetensors does not exist",
        ),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", AssertionError, "what is printed is\n1"),
    ],
    ids=["a name", "a command", "a file", "output"],
)
def test_a_block_that_does_not_run_is_found(text, error, words, written):
    with pytest.raises(error, match=words):
        written(text).read()


def test_blocks_of_a_page_go_on_from_each_other(written):
    reader = written(
        "```python\nx = 1\n```\n```python\nprint(x)\n```\n\n```text\n1\n```\n```sh\nheadscope "
        "\\\n    --version\n```\n"
    )
    reader.read()
    assert reader.names["x"] == 1


def test_commands_in_a_marked_table_are_run(written):
    table = "| a | b |\n| --- | --- |\n| x | `hs.version` |\n| y | `headscope gone` | z |\n"
    with pytest.raises(AssertionError, match="page.md:5: headscope gone"):
        written(
            "<!-- commands in this table are run -->\n"
            + table.replace("| x | `hs.version` |\n", "| x | no |\n")
        ).read()
    with pytest.raises(NameError, match="'hs' is not defined"):
        written(
            "<!-- commands in this table are run -->\n\n" + table.replace("` |\n| y", "` | |\n| y")
        ).read()
    written(table).read()
