"""Words, trees and mentions: what linguists annotate, beside attention between words. NumPy only.

Treebanks are read by the library conllu, from the extra ``linguistics``.
"""

from headscope.linguistics._coreference_files import read_coreference
from headscope.linguistics._dependencies import (
    DIRECTIONS,
    NEAREST_STANFORD,
    OFFSETS,
    OffsetBaseline,
    offset_baseline,
    offset_heads,
    predicted_heads,
)
from headscope.linguistics._mentions import (
    Mention,
    Passage,
    Question,
    head_match,
    nearest,
    sieves,
)
from headscope.linguistics._tree import decode_tree
from headscope.linguistics._treebank import Sentence, Treebank, read_treebank
from headscope.linguistics._words import Words, word_attention, words_at

__all__ = [
    "DIRECTIONS",
    "NEAREST_STANFORD",
    "OFFSETS",
    "Mention",
    "OffsetBaseline",
    "Passage",
    "Question",
    "Sentence",
    "Treebank",
    "Words",
    "decode_tree",
    "head_match",
    "nearest",
    "offset_baseline",
    "offset_heads",
    "predicted_heads",
    "read_coreference",
    "read_treebank",
    "sieves",
    "word_attention",
    "words_at",
]
