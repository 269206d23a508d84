"""Words, trees and mentions: what linguists annotate, beside attention between words. NumPy only.

Treebanks are read by the library conllu, from the extra ``linguistics``.
"""

from headscope.linguistics._treebank import Sentence, Treebank, read_treebank
from headscope.linguistics._words import Words, word_attention, words_at

__all__ = [
    "Sentence",
    "Treebank",
    "Words",
    "read_treebank",
    "word_attention",
    "words_at",
]
