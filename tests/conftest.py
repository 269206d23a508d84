import os
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def shared():
    """The folder of real data that some machines have beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return SHARED


@pytest.fixture(scope="session")
def minilm():
    """The demo model and its tokenizer."""
    from headscope.capturing import load_model

    return load_model(None)
