"""Is the class right?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.errors import TextError
from headscope.tasks._batches import AT_ONCE, Text, by_length, check_counts, ids_of, padded, run
from headscope.tasks._task import Batch, Task, Values


def classification(
    tokenizer: Any,
    texts: Sequence[Text],
    labels: Sequence[int],
    *,
    metric: str = "accuracy",
    batch: int = AT_ONCE,
    truncate: bool = False,
) -> Task:
    """Texts or pairs and their classes, for a model with a classification head.

    The score of an example is 1 where the most likely class is the right one (Kovaleva et al. 2019 use accuracy for
    disabling), or the log likelihood of the right class in nats, which small changes move too. The other one is told
    beside it, and with two classes F1 of class 1.

    Args:
        tokenizer: of the model.
        texts: texts, or pairs of them.
        labels: number of each one's class.
        metric: which of the two is the score.
        batch: how many at once.
        truncate: whether texts that are too long are cut.

    Raises:
        TextError: where there are not as many labels as texts, or a text is too long.

    Example:
        >>> task = classification(tokenizer, [("A man eats.", "Somebody eats.")], [0])
    """
    check_counts(texts, labels, "labels")
    rows = ids_of(tokenizer, texts, truncate=truncate)
    parts = by_length([len(row["input_ids"]) for row in rows], batch)
    batches = [
        {**padded([rows[number] for number in part]), "labels": torch.tensor([int(labels[number]) for number in part])}
        for part in parts
    ]
    return _task(batches, "classification", metric, tuple(number for part in parts for number in part))


def pictures(pixel_values: Any, labels: Sequence[int], *, metric: str = "accuracy", batch: int = AT_ONCE) -> Task:
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
    firsts = range(0, len(values), batch)
    batches = [
        {"pixel_values": values[first : first + batch], "labels": targets[first : first + batch]} for first in firsts
    ]
    return _task(batches, "picture classification", metric, None)


def f1(values: Values) -> float:
    """``2 tp / (2 tp + fp + fn)`` of class 1; 0 where it is neither there nor told."""
    told, right = values[:, 2] == 1, values[:, 3] == 1
    both = 2 * int((told & right).sum())
    return both / max(both + int((told != right).sum()), 1)


def _task(batches: list[dict[str, Any]], name: str, metric: str, order: tuple[int, ...] | None) -> Task:
    kinds = ("accuracy", "log likelihood")
    if metric not in kinds:
        raise TextError(f"metric is {metric!r}; give {' or '.join(map(repr, kinds))}")
    first = kinds.index(metric)

    def score(model: nn.Module, batch: Batch) -> torch.Tensor:
        logits, labels = run(model, batch, without=("labels",)).logits.float(), batch["labels"]
        if logits.ndim != 2 or int(labels.max()) >= logits.shape[1] or int(labels.min()) < 0:
            raise TextError(
                f"The classes {int(labels.min())} to {int(labels.max())} were given, and the model gives "
                f"{list(logits.shape)}; wanted are [example class] with these classes"
            )
        told = logits.argmax(-1)
        likely = logits.log_softmax(-1).gather(1, labels[:, None])[:, 0]
        pair = ((told == labels).to(likely), likely)
        return torch.stack([pair[first], pair[1 - first], told.to(likely), labels.to(likely)], dim=1)

    other = kinds[1 - first]
    totals = {other: lambda values: float(values[:, 1].mean())}
    if max(int(batch["labels"].max()) for batch in batches) == 1:
        totals["F1"] = f1
    return Task(batches, score, name, metric, (other, "told", "label"), order, totals=totals)
