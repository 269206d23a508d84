import pytest

# Whoever starts the workers of a run reads this file, too: torch is imported where it is used.


@pytest.fixture(autouse=True)
def _no_gradients():
    import torch

    with torch.no_grad():
        yield
