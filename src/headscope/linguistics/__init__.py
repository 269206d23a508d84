"""Words, trees and mentions: what linguists annotate, beside attention between words. NumPy only.

Treebanks are read by the library conllu, from the extra ``linguistics``.
"""

from headscope.linguistics._dependencies import (
    DIRECTIONS,
    NEAREST_STANFORD,
    OFFSETS,
    OffsetBaseline,
    offset_baseline,
    offset_heads,
    predicted_heads,
)
from headscope.linguistics._tree import decode_tree
from headscope.linguistics._treebank import Sentence, Treebank, read_treebank
from headscope.linguistics._words import Words, word_attention, words_at

__all__ = [
    "DIRECTIONS",
    "NEAREST_STANFORD",
    "OFFSETS",
    "OffsetBaseline",
    "Sentence",
    "Treebank",
    "Words",
    "decode_tree",
    "offset_baseline",
    "offset_heads",
    "predicted_heads",
    "read_treebank",
    "word_attention",
    "words_at",
]
