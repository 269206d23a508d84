"""Words, trees and mentions: what linguists annotate, and attention between words. NumPy only.

Treebanks are read by the library conllu, from the extra ``linguistics``.
"""

from headscope.linguistics._coreference_files import read_coreference, source_name
from headscope.linguistics._treebank import Sentence, Treebank, read_treebank
from headscope.linguistics.dependencies import (
    DIRECTIONS,
    NEAREST_STANFORD,
    OFFSETS,
    OffsetBaseline,
    offset_baseline,
    offset_heads,
    predicted_heads,
)
from headscope.linguistics.mentions import (
    Mention,
    Passage,
    Question,
    head_match,
    nearest,
    sieves,
)
from headscope.linguistics.probes import (
    centre_of_gravity,
    control_heads,
    control_labels,
    control_tree,
    expected_layer,
    read_vectors,
)
from headscope.linguistics.trees import (
    decode_tree,
    power2_embedding,
    spanning_tree,
    tree_depths,
    tree_distances,
)
from headscope.linguistics.words import Words, word_attention, words_at

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
    "centre_of_gravity",
    "control_heads",
    "control_labels",
    "control_tree",
    "decode_tree",
    "expected_layer",
    "head_match",
    "nearest",
    "offset_baseline",
    "offset_heads",
    "power2_embedding",
    "predicted_heads",
    "read_coreference",
    "read_treebank",
    "read_vectors",
    "sieves",
    "source_name",
    "spanning_tree",
    "tree_depths",
    "tree_distances",
    "word_attention",
    "words_at",
]
