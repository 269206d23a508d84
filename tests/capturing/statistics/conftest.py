import pytest
import torch

from headscope.capturing.statistics import _engine


@pytest.fixture(autouse=True)
def _no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of so few rows and heads that every example takes many."""
    monkeypatch.setattr(_engine, "TILE", 150)
    monkeypatch.setattr(_engine, "ROWS_AT_ONCE", 4)
