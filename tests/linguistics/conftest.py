import pytest

from headscope.linguistics import Sentence, Treebank

CATS = Sentence(
    name="cats",
    words=("The", "big", "cats", "do", "n't", "sleep", "."),
    heads=(3, 3, 6, 6, 6, 0, 6),
    relations=("det", "amod", "nsubj", "aux", "advmod", "root", "punct"),
    upos=("DET", "ADJ", "NOUN", "AUX", "PART", "VERB", "PUNCT"),
    written="The big cats don't sleep.",
    contractions=((3, 5, "don't"),),
)
DOGS = Sentence(
    name="dogs",
    words=("Dogs", "were", "seen"),
    heads=(3, 3, 0),
    relations=("nsubj:pass", "aux:pass", "root"),
)


@pytest.fixture
def treebank():
    return Treebank("two", (CATS, DOGS))
