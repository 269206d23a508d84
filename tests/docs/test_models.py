"""Pages on capturing and changing models run as they stand."""

import runpy

import pytest

from page_blocks import PAGES as PAGES_BY_NAME
from page_blocks import ROOT, Reader

PAGES = ("answers capturing compare generation interventions large_models measures media").split()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page, desk):
    Reader(page).read()


def test_the_sizes_of_large_models_are_those_that_the_script_finds():
    script = runpy.run_path(str(ROOT / "benchmarks" / "large_models.py"))
    page = PAGES_BY_NAME["large_models"].read_text(encoding="utf-8")
    for table in (script["weights_table"], script["record_table"]):
        assert "\n".join(table()) in page
