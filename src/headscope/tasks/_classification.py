"""Tasks with a label: the class of a text, and pairs that mean the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Unpack

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from headscope.capturing.fitness import CLASS, logits_of
from headscope.errors import TextError
from headscope.tasks._batches import (
    AT_ONCE,
    Encode,
    ReadingOptions,
    Rows,
    check_counts,
    encoded_pair,
    label_of,
    read_examples,
    run,
)
from headscope.tasks._task import Batch, Task, Values, mean_of_second


def classification(
    tokenizer: Any,
    texts: Sequence[Any],
    labels: Sequence[Any],
    *,
    metric: str = "accuracy",
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Texts or pairs and their classes, for a model with a classification head.

    The score of an example is 1 where the most likely class is the right one (Kovaleva et al. 2019
    use accuracy for disabling), or the log likelihood of the right class in nats, which small
    changes move too. The other one is reported too, and with two classes F1 of class 1.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        labels: number of each one's class; an example whose label is none is left out.
        metric: which of the two is the score.
        **reading: see `ReadingOptions`.

    Raises:
        TextError: where there are not as many labels as texts, no text can be read, or most tokens
            are unknown.

    Example:
        >>> task = classification(tokenizer, [("A man eats.", "Somebody eats.")], [0])
    """
    check_counts(texts, labels, "labels")

    def row_of(example: tuple[Any, Any], encode: Encode) -> Rows:
        text, label = example
        label_of(label, whole=True)
        return (encode(text),)

    read = read_examples(tokenizer, list(zip(texts, labels, strict=True)), row_of, reading)
    kept = torch.tensor([int(labels[number]) for number in read.numbers])
    batches = read.padded()
    for batch, part in zip(batches, read.parts, strict=True):
        batch["labels"] = kept[part]
    return read.task(batches, name="classification", labels=kept, **_how(batches, metric))


def pictures(
    pixel_values: Any, labels: Sequence[int], *, metric: str = "accuracy", batch: int = AT_ONCE
) -> Task:
    """Pictures and their classes, for a model that classifies pictures; see `classification`.

    Args:
        pixel_values: ``[example channel height width]``, as the model reads them.
        labels: number of each one's class.
        metric: which is the score.
        batch: how many at once.

    Raises:
        TextError: where there are not as many labels as pictures.
    """
    values = torch.as_tensor(pixel_values)
    check_counts(values, labels, "labels")
    targets = torch.as_tensor(np.array(labels, int))
    batches = []
    for own, classes in zip(values.split(batch), targets.split(batch), strict=True):
        batches.append({"pixel_values": own, "labels": classes})
    return Task(batches, name="picture classification", **_how(batches, metric))


def f1(values: Values) -> float:
    """``2 tp / (2 tp + fp + fn)`` of class 1; 0 where it is neither a label nor a prediction."""
    # Examples that were left out of a run have no values.
    values = values[np.isfinite(values).all(axis=1)]
    predicted, right = values[:, 2] == 1, values[:, 3] == 1
    # predicted != right are the false positives and the false negatives together.
    both = 2 * int((predicted & right).sum())
    return both / max(both + int((predicted != right).sum()), 1)


def totals_of(other: str, largest: int) -> dict[str, Callable[[Values], float]]:
    """Numbers of all examples in addition to their score.

    Args:
        other: what is noted in addition to the score.
        largest: number of a class.
    """
    totals = {other: mean_of_second}
    # F1 of class 1 says something only where there is no class beyond it.
    if largest == 1:
        totals["F1"] = f1
    return totals


def _how(batches: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    """How classes are scored."""
    kinds = ("accuracy", "log likelihood")
    if metric not in kinds:
        raise TextError(f"metric is {metric!r}; give {' or '.join(map(repr, kinds))}")
    first = kinds.index(metric)

    def score(model: nn.Module, batch: Batch) -> torch.Tensor:
        logits = logits_of(run(model, batch, without=("labels",)), model, CLASS).float()
        labels = batch["labels"]
        if logits.ndim != 2 or int(labels.max()) >= logits.shape[1] or int(labels.min()) < 0:
            raise TextError(
                f"The classes {int(labels.min())} to {int(labels.max())} were given, and the "
                f"model gives {list(logits.shape)}; expected [example class] with these classes"
            )
        # All four are kept, so that either of the two can be the score and F1 follows from them.
        predicted = logits.argmax(-1)
        likely = logits.log_softmax(-1).gather(1, labels[:, None])[:, 0]
        pair = ((predicted == labels).to(likely), likely)
        columns = [pair[first], pair[1 - first], predicted.to(likely), labels.to(likely)]
        return torch.stack(columns, dim=1)

    other = kinds[1 - first]
    totals = totals_of(other, max(int(batch["labels"].max()) for batch in batches))
    columns = (other, "predicted", "label")
    return {"score": score, "asks": CLASS, "metric": metric, "columns": columns, "totals": totals}


GOLD = "gold"
"""How alike the two of each pair are, in a batch and beside the score."""


def likeness(
    tokenizer: Any,
    pairs: Sequence[Any],
    gold: Sequence[Any],
    *,
    pooling: Literal["mean", "first"] = "mean",
    alone: bool = False,
    **reading: Unpack[ReadingOptions],
) -> Task:
    """Pairs of texts whose embeddings are compared by their cosine.

    Where ``gold`` is whether each pair means the same (0 or 1), the score is 1 where the
    cosine is on the right side of a threshold: the best one, found again for each changed model.
    (One that is best for the intact model alone would make almost any change look harmful.) It is
    chosen on the same pairs, so accuracies are a little too high. Where it is graded, the mean
    score is Spearman's rho of cosine and gold: the score of a pair is the product of its two ranks,
    each standardised over all pairs, so intervals and tests over pairs hold the ranks fixed.

    Args:
        tokenizer: of a model that gives hidden states.
        pairs: two texts each.
        gold: 0 or 1, or how alike the two are; a pair of which that is not a number is left out.
        pooling: mean over the tokens, or the first one.
        alone: whether the pairs are scored in parts: the cosine of each, and beside it how alike
            the two are, by which all are judged together when all are known (`judge_of`).
        **reading: see `ReadingOptions`.

    Raises:
        TextError: where there are not as many numbers as pairs, they are all equal, no pair can
            be read, or most tokens are unknown.

    Example:
        >>> task = likeness(tokenizer, [("a cat", "one cat"), ("a cat", "two dogs")], [1, 0])
    """
    check_counts(pairs, gold, "numbers")

    def rows_of(example: tuple[Any, Any], encode: Encode) -> Rows:
        pair, alike = example
        label_of(alike)
        return encoded_pair(encode, pair)

    def score(model: nn.Module, batch: Batch) -> torch.Tensor:
        states = _states(model, batch).float()
        kept = batch["attention_mask"][..., None].to(states)
        means = states[:, 0] if pooling == "first" else (states * kept).sum(1) / kept.sum(1)
        # First texts of all pairs stand above the second ones, see `Examples.padded`.
        cosines = functional.cosine_similarity(*means.chunk(2), dim=-1)
        return torch.stack([cosines, batch[GOLD].to(cosines)], dim=1)

    read = read_examples(tokenizer, list(zip(pairs, gold, strict=True)), rows_of, reading)
    wanted = torch.tensor([float(gold[number]) for number in read.numbers], dtype=torch.float64)
    batches = read.padded()
    for batch, part in zip(batches, read.parts, strict=True):
        batch[GOLD] = wanted[part]
    more: dict[str, Any] = {"metric": "", "columns": (GOLD,), "finish": not_alone}
    if not alone:
        more["metric"], more["finish"] = judged_by(wanted.numpy())
        more["totals"] = OF_LIKENESS
    return read.task(batches, score, "likeness", labels=wanted, **more)


def judged_by(wanted: np.ndarray) -> tuple[str, Callable[[Values], np.ndarray]]:
    """The metric of a likeness, and what makes the scores of all cosines.

    Args:
        wanted: how alike the two of each pair are.

    Raises:
        TextError: where all pairs are as alike.
    """
    golds = set(wanted.tolist())
    if len(golds) < 2:
        raise TextError(
            "How alike the pairs are must differ between them; give both pairs that are and that "
            "are not"
        )
    is_graded = not golds <= {0.0, 1.0}
    judge = _ranked if is_graded else _binary

    def finish(values: Values) -> np.ndarray:
        cosines, known = values[:, 0], np.isfinite(values[:, 0])
        scores = np.full(len(cosines), np.nan)
        scores[known] = judge(cosines[known], wanted[known])
        return scores

    return "Spearman's rho" if is_graded else "accuracy", finish


def _states(model: nn.Module, batch: Batch) -> torch.Tensor:
    """The states below the head of the model, if it has any."""
    base = getattr(model, "base_model", model)
    if base is model:
        return run(model, batch, without=(GOLD,))[0]
    seen: list[torch.Tensor] = []
    # The whole model is run, since it is what heads are disabled in.
    with base.register_forward_hook(lambda module, given, output: seen.append(output[0])):
        run(model, batch, without=(GOLD,))
    return seen[-1]


def not_alone(*_: Any) -> Any:
    """In place of a score where there is none."""
    raise NotImplementedError("pairs are judged together, by `judged_by`")


def threshold(cosines: np.ndarray, wanted: np.ndarray) -> float:
    """The cosine from which on pairs are best called alike, halfway between two of them."""
    order = np.argsort(-cosines, kind="stable")
    values, alike = cosines[order], wanted[order] == 1
    # Calling the first k alike: right are the alike among them and the others behind them.
    alike_before = np.concatenate([[0], np.cumsum(alike)])
    others_before = np.concatenate([[0], np.cumsum(~alike)])
    right = alike_before + (~alike).sum() - others_before
    # No threshold can part pairs with the same cosine.
    ends = np.concatenate([[True], values[1:] < values[:-1], [True]])
    best = int(np.flatnonzero(ends)[np.argmax(right[ends])])
    if best == 0:
        return float(values[0]) + 1.0  # above all of them: none is alike
    if best == len(values):
        return float(values[-1])
    return float(values[best - 1] + values[best]) / 2


def _binary(cosines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return (cosines >= threshold(cosines, wanted)) == (wanted == 1)


def _ranked(cosines: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    def standard(numbers: np.ndarray) -> np.ndarray:
        ranks = rankdata(numbers)
        return (ranks - ranks.mean()) / max(ranks.std(), 1e-30)

    return standard(cosines) * standard(wanted)


OF_LIKENESS = {"mean cosine": lambda values: float(np.nanmean(values[:, 0]))}
