"""Heads that look at what followed the same token before, and that raise what they look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.measures._mass import mass_on_pairs

Target = Literal["followed", "preceded"]


def prefix_targets(
    names: Sequence[int | str], target: Target = "followed"
) -> Bool[np.ndarray, "query key"]:
    """Where an induction head should look from each token.

    For query q these are the keys ``p + 1`` (``"followed"``) or ``p - 1`` (``"preceded"``) of every
    earlier place ``p < q`` of the same token.

    Source: Olsson et al. 2022. Their appendix says "preceded"; their erratum and every replication
    take the tokens that followed.

    Args:
        names: the tokens, by number or piece.
        target: which neighbour of the earlier places.

    Raises:
        RecordError: a target there is not.

    Example:
        >>> prefix_targets(["a", "b", "a"]).astype(int).tolist()
        [[0, 0, 0], [0, 0, 0], [0, 1, 0]]
    """
    if target not in ("followed", "preceded"):
        raise RecordError(f"target must be 'followed' or 'preceded', not {target!r}")
    # Names may be strings or numbers; small numbers are compared quickly, all with all.
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    ids = np.array([numbers[name] for name in names], int)
    earlier = np.tril(ids[:, None] == ids, -1)
    # Shifted by one key: from the earlier place of the same token to its neighbour.
    targets = np.zeros_like(earlier)
    if target == "followed":
        targets[:, 1:] = earlier[:, :-1]
    else:
        targets[:, :-1] = earlier[:, 1:]
    return targets


def prefix_matching(
    weights: Float[np.ndarray, "head query key"],
    names: Sequence[int | str],
    *,
    target: Target = "followed",
) -> Float[np.ndarray, " head"]:
    """Mean attention to the tokens that followed earlier places of the same token: near 1 for
    induction heads.

    ``mean_{q in Q} sum_{k in T(q)} A[q, k]``, T from `prefix_targets`, Q the queries that have a
    target; NaN where none has.

    Source: Olsson et al. 2022, appendix, on random tokens that are repeated (`repeated_tokens`).
    They take the mean of the entries; ours sums the mass over the repeats, which does not fall as
    these grow in number (up to 3 times as large with 4 repeats).

    Args:
        weights: attention, axes head, query, key; as many queries as keys.
        names: the tokens, by number or piece.
        target: which neighbour of the earlier places.

    Raises:
        RecordError: where tokens and weights do not fit.

    Example:
        >>> prefix_matching(
        ...     np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1]]]), ["a", "b", "a"]
        ... ).tolist()
        [0.8]
    """
    return mass_on_pairs(weights, prefix_targets(names, target))


def repeated_tokens(
    rng: np.random.Generator,
    candidates: Sequence[int],
    *,
    length: int = 25,
    repeats: int = 4,
    start: int | None = None,
) -> Int[np.ndarray, " token"]:
    """Random tokens, repeated several times, to try `prefix_matching` on.

    Source: Olsson et al. 2022, appendix: 25 tokens, 4 times, a start token in front, 10 such
    sequences. They leave the most and the least common tokens out of the candidates. Ours draws
    each token once a run, so that a place in the run has one answer.

    Args:
        rng: where the randomness comes from.
        candidates: vocabulary numbers to draw from.
        length: of the run.
        repeats: how often the run occurs.
        start: vocabulary number of the token in front, if any.

    Raises:
        RecordError: where there are fewer candidates than tokens in a run.

    Example:
        >>> repeated_tokens(np.random.default_rng(0), [7], length=1, repeats=3, start=0).tolist()
        [0, 7, 7, 7]
    """
    if len(candidates) < length:
        raise RecordError(
            f"A run of {length} tokens was asked for, with {len(candidates)} to draw from; "
            "shorten it"
        )
    # Without replacement: a token twice in a run would have two tokens that followed it.
    run = rng.choice(np.asarray(candidates), size=length, replace=False)
    return np.concatenate([[] if start is None else [start], np.tile(run, repeats)]).astype(int)


def copying(
    effects: Float[np.ndarray, "head token vocabulary"], ids: Sequence[int]
) -> Float[np.ndarray, " head"]:
    """How much a head raises the very token it looks at: 1 that one alone, -1 not at all.

    ``4 r - 1`` with ``r = mean_t relu(e[t, id_t]) / sum_v |e[t, v]|`` and ``e`` the effects minus
    their mean over the vocabulary; r lies in 0..0.5, since what e raises equals what it lowers.

    Source: Olsson et al. 2022, appendix ("share that falls on the attended token, in 0..0.5"): that
    range is reached with the absolute sum below the line, which is how we read it. Tokens without
    any effect are left out; NaN where none has one.

    Args:
        effects: what looking at each token adds to the logits: its vector through the values, the
            head's part of the output projection and the unembedding. The vocabulary may be a part
            of the model's. Nothing in headscope makes these yet; of a layer captured with values
            and the model's own matrices they are ``layer.values[head] @ W_O[head] @ W_U`` (without
            the norm before the unembedding).
        ids: index of each token in that vocabulary.

    Raises:
        RecordError: where ids do not fit the effects.

    Example:
        >>> copying(np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]]), [0, 2]).round(9).tolist()
        [0.0]
    """
    effects = np.asarray(effects, np.float64)
    _, tokens, size = effects.shape
    if len(ids) != tokens or not all(0 <= index < size for index in ids):
        raise RecordError(
            f"{len(ids)} ids were given for {tokens} tokens in a vocabulary of {size}; give "
            "one for each, from 0"
        )
    # A number added to all logits changes no probability, and is taken off first.
    centred = effects - effects.mean(axis=-1, keepdims=True)
    raised = np.maximum(0.0, centred[:, np.arange(tokens), list(ids)])
    whole = np.abs(centred).sum(axis=-1)
    counted = whole > 0
    shares = np.divide(raised, whole, out=np.zeros_like(raised), where=counted).sum(axis=1)
    count = counted.sum(axis=1)
    return np.divide(4 * shares, count, out=np.full(len(count), np.nan), where=count > 0) - 1
