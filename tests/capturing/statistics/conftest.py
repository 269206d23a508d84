import pytest

# Whoever starts the workers of a run reads this file, too: torch is imported where it is used.


@pytest.fixture(autouse=True)
def _no_gradients():
    import torch

    with torch.no_grad():
        yield


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles of so few rows and heads that every example takes many."""
    from headscope.capturing.calls import tiles

    for name in ("TILE", "TILE_OF_LONG"):
        monkeypatch.setattr(tiles, name, 150)
    monkeypatch.setattr(tiles, "ROWS_AT_ONCE", 4)
    monkeypatch.setattr(tiles, "ROWS_OF_HIDDEN", 4)
