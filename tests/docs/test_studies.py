"""Pages on studies run as they stand."""

import pytest

from page_blocks import Reader

PAGES = ("ablation", "language", "many_texts")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, desk):
    Reader(page).read()
