"""README, and all pages that no other file here names, run as they stand."""

import pytest

from page_blocks import INSTALL, PAGES, Reader

from . import test_models, test_studies, test_views

ELSEWHERE = {*test_models.PAGES, *test_studies.PAGES, *test_views.PAGES}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in ELSEWHERE and "/" not in page]
)
def test_every_block_runs(page, desk):
    Reader(page).read()


@pytest.mark.parametrize("page", ["README", "index", "install"])
def test_the_first_pages_lead_with_what_can_be_installed_today(page):
    lines = PAGES[page].read_text(encoding="utf-8").splitlines()
    assert next(line for line in lines if line.startswith("pip install")) == INSTALL
