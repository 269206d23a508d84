"""Jobs lie in a module that other processes can import."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def corpus():
    """Texts of several lengths, some of them of documents, some twice."""
    from headscope.corpus import CorpusText

    texts = []
    for number in range(90):
        words = " ".join(f"w{number * 7 % 13}" for _ in range(number % 11 + 1))
        texts.append(CorpusText(f"{words} {number % 40}", f"d{number % 9}" if number % 3 else None))
    return texts
