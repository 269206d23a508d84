"""Guides run as they stand; tutorials do in test_notebooks.py, as notebooks."""

import pytest

from page_blocks import PAGES, Reader


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("guides/")])
def test_every_block_runs(page, desk):
    Reader(page).read()
