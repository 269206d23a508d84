"""Control tasks: labels that say nothing of language, and that only a probe with a memory of its
own can learn.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

HEAD_BEHAVIOURS = ("itself", "first", "last")
TREE_BEHAVIOURS = ("previous", "one before", "first")


def drawn_of(name: str, seed: int = 0) -> float:
    """A number from 0 to 1 that belongs to a word type, the same in every sentence and on every
    machine.

    Example:
        >>> drawn_of("the") == drawn_of("the"), drawn_of("the") == drawn_of("cat")
        (True, False)
    """
    # hash() of a string is salted anew in each process, so a checksum takes its place.
    return _drawn(zlib.crc32(name.encode()), seed)


@lru_cache(maxsize=2**16)
def _drawn(checksum: int, seed: int) -> float:
    """Kept for words that come again, since a generator takes some microseconds to make."""
    return float(np.random.default_rng([seed, checksum]).random())


def control_heads(forms: Sequence[str], *, seed: int = 0) -> Int[np.ndarray, " word"]:
    """Heads of the control task: each word type has itself, the first or the last word for its
    head.

    Source: Hewitt and Liang 2019, section 2.2 (dependency edge prediction).

    Args:
        forms: the words of a sentence.
        seed: of the draw.

    Example:
        >>> heads = control_heads(["a", "b", "a", "c"])
        >>> all(head in (place, 0, 3) for place, head in enumerate(heads))
        True
    """
    words = len(forms)
    kinds = [int(len(HEAD_BEHAVIOURS) * drawn_of(form, seed)) for form in forms]
    return np.array([(index, 0, words - 1)[kind] for index, kind in enumerate(kinds)], int)


def control_tree(forms: Sequence[str], *, seed: int = 0) -> Int[np.ndarray, " word"]:
    """Heads of a control tree: each word type hangs from the word before it, the one before that,
    or the first.

    The first word is the root. Hewitt and Liang 2019 have no control task for trees; this is ours,
    after theirs: what a word hangs from says nothing but which word it is.

    Args:
        forms: the words of a sentence.
        seed: of the draw.

    Example:
        >>> bool((control_tree(["a", "b", "c", "d"]) < np.arange(4)).all())
        True
    """
    heads = [-1]
    for index, form in enumerate(forms[1:], start=1):
        kind = int(len(TREE_BEHAVIOURS) * drawn_of(form, seed))
        # All of these stand before the word, so that no word can hang from itself in a circle.
        heads.append((index - 1, max(index - 2, 0), 0)[kind])
    return np.array(heads[: len(forms)], int)


def control_labels(
    names: Iterable[str], shares: Float[np.ndarray, " label"], *, seed: int = 0
) -> np.ndarray:
    """Labels of the control task: each type has one, drawn by how often the true labels are.

    Source: Hewitt and Liang 2019, section 2.1 (part-of-speech tagging).

    Args:
        names: the type of each example, such as its word.
        shares: how often each label is; they sum to 1.
        seed: of the draw.

    Example:
        >>> control_labels(["a", "b", "a"], np.array([0.0, 1.0])).tolist()
        [1, 1, 1]
    """
    draws = np.fromiter((drawn_of(name, seed) for name in names), np.float64)
    labels = np.searchsorted(np.cumsum(shares), draws, side="right")
    # The last sum may be a rounding error below 1, and a draw may lie between the two.
    return np.minimum(labels, len(shares) - 1)
