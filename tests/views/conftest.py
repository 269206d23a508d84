"""What tests of all views share."""

import pytest


@pytest.fixture(autouse=True)
def cheap(rough_maps):
    """What takes long in every page and is looked at elsewhere is done roughly."""
