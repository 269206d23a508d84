"""Is the class right?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch
from torch import nn

from headscope.capturing.fitness import CLASS, logits_of
from headscope.errors import TextError
from headscope.tasks._batches import (
    AT_ONCE,
    Encode,
    ReadingOptions,
    Rows,
    check_counts,
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
    task = _task(batches, "classification", metric, read.order)
    return replace(task, left_out=read.left_out)


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
    return _task(batches, "picture classification", metric, None)


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


def _task(
    batches: list[dict[str, Any]], name: str, metric: str, order: tuple[int, ...] | None
) -> Task:
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
    return Task(batches, score, name, metric, columns, order, totals=totals, asks=CLASS)
