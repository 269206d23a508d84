"""README, and all pages that no other file here names, run as they stand."""

import pytest

from page_blocks import PAGES, Reader

from . import test_models, test_studies, test_views

ELSEWHERE = {*test_models.PAGES, *test_studies.PAGES, *test_views.PAGES}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in ELSEWHERE and "/" not in page]
)
def test_every_block_runs(page, desk):
    Reader(page).read()
