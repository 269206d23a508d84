"""Pages on views, figures and notebooks run as they stand."""

import pytest

from page_blocks import Reader

PAGES = "bertviz figures live notebooks patterns views".split()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, desk):
    Reader(page).read()
