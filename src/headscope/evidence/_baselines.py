"""What a score would be without the pattern."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import RecordError
from headscope.evidence._statistic import Statistic
from headscope.record import Record


def uniform_map(visible: Bool[np.ndarray, "query key"]) -> Float[np.ndarray, "1 query key"]:
    """The head that looks at everything it may look at alike.

    Args:
        visible: True where a query may look; a query that may look at nothing keeps a row of zeros.

    Example:
        >>> uniform_map(np.array([[True, False], [True, True]])).tolist()
        [[[1.0, 0.0], [0.5, 0.5]]]
    """
    counts = visible.sum(axis=1, keepdims=True)
    return np.divide(visible, counts, out=np.zeros(visible.shape), where=counts > 0)[None]


def shuffled_pairs(
    pairs: Bool[np.ndarray, "query key"],
    *,
    query_words: Bool[np.ndarray, " query"],
    key_words: Bool[np.ndarray, " key"],
    rng: np.random.Generator,
) -> Bool[np.ndarray, "query key"]:
    """Pairs after the words of the text changed places: what a head's map hits if it does not heed which word is where.

    The map stays as it is and so does every special token; for one list of tokens (as many queries as keys, the same
    words) both sides change places together, so that a token stays its own partner.

    Args:
        pairs: True where key belongs to query.
        query_words: True for the tokens that may change places.
        key_words: the same for the keys.
        rng: where the randomness comes from.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> words = np.array([False, True, True])
        >>> shuffled_pairs(np.eye(3, dtype=bool), query_words=words, key_words=words, rng=rng).astype(int).tolist()
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    rows = _shuffled(query_words, rng)
    together = len(query_words) == len(key_words) and bool((query_words == key_words).all())
    columns = rows if together else _shuffled(key_words, rng)
    return pairs[rows][:, columns]


def rng_of(text: str, seed: int = 0) -> np.random.Generator:
    """Randomness that belongs to a text, so that it does not depend on which texts came before.

    Example:
        >>> bool(rng_of("a").random() == rng_of("a").random())
        True
    """
    return np.random.default_rng([seed, zlib.crc32(text.encode())])


def null_scores(records: Iterable[Record], score: Callable[[Record], Float[np.ndarray, "..."]]) -> Statistic:
    """Scores on records of a model without the pattern: the same architecture with random weights.

    Such a model is made by ``AutoModel.from_config(model.config)``; capture the same texts with it.

    Args:
        records: of that model, one for each text.
        score: values of one record, such as ``lambda record: entropy(record["self"].weights(0))``.

    Raises:
        RecordError: where there is no record.

    Example:
        >>> from headscope.testing import random_record
        >>> len(null_scores([random_record()], lambda record: record["cross"].weights(0).max(axis=(1, 2))))
        1
    """
    found: Statistic | None = None
    for number, record in enumerate(records):
        values = np.asarray(score(record), np.float64)
        if found is None:
            found = Statistic(values.shape)
        found.update(str(number), values)
    if found is None:
        raise RecordError("No record of the model with random weights was given; capture the texts with it")
    return found


def _shuffled(words: Bool[np.ndarray, " token"], rng: np.random.Generator) -> np.ndarray:
    order = np.arange(len(words))
    order[words] = rng.permutation(order[words])
    return order
