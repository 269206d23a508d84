"""Inputs of a model and a score for each example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.fitness import check_fit, first_ids
from headscope.capturing.inputs.inputs import check_length
from headscope.errors import InterventionError
from headscope.evidence.groups import group_of, several_groups

Batch = Mapping[str, Any]
SHORTER = (
    "make the task with tokenizer.model_max_length set, which leaves out or cuts what is longer"
)
if TYPE_CHECKING:  # pyright cannot follow a name for one of jaxtyping's types
    Values: TypeAlias = np.ndarray
else:
    Values = Float[np.ndarray, "example column"]


@dataclass(frozen=True, eq=False)
class Task:
    """Inputs of a model, and the score of each example; higher is better.

    Args:
        batches: what the score reads, some examples at once.
        score: gives ``[example]``, or ``[example column]`` where more is noted than the score,
            which comes first.
        name: of the task.
        metric: what the mean score is: accuracy, log likelihood ...
        columns: what the columns after the first one are.
        order: number of each example, in the order of the batches; by default they come one after
            the other.
        finish: makes the scores ``[example]`` of the values of all examples; by default the first
            column.
        totals: other numbers of all values, by name, such as F1.
        asks: what it needs the model's head for: ``"next word"``, ``"masked word"``, ``"class"`` or
            ``"translation"``; empty where that is not known.
        groups: the document that each example is of, in the order in which they were given; copies
            of an example are one. None where nobody knows.
        left_out: why examples that were given could not be read and are not in the batches, by
            number.

    Example:
        >>> Task(
        ...     batches,
        ...     lambda model, batch: (model(**batch).logits.argmax(-1) == 1).float(),
        ...     "ones",
        ...     "share of ones",
        ... )
    """

    batches: Sequence[Batch]
    score: Callable[[nn.Module, Batch], Any]
    name: str = "task"
    metric: str = "score"
    columns: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    finish: Callable[[Values], np.ndarray] | None = None
    totals: Mapping[str, Callable[[Values], float]] = field(default_factory=dict)
    asks: str = ""
    groups: tuple[Any, ...] | None = None
    left_out: Mapping[int, str] = field(default_factory=dict)

    def grouped(self, groups: Iterable[Any] | None) -> Task:
        """The task with the documents of all examples that were given; those of examples left out
        are passed over. Copies of an example that are of no document stay one.
        """
        if groups is None:
            return self
        several = [each for n, each in enumerate(several_groups(groups)) if n not in self.left_out]
        own = dict(enumerate(self.groups or ()))
        known = [own.get(n) if group_of(each) is None else each for n, each in enumerate(several)]
        return replace(self, groups=tuple(known))

    def check(self, model: nn.Module) -> None:
        """Raise where a model is not fit for the task: an untrained head, or one that sees the word
        it is to predict.

        Raises:
            ModelError: saying why.
        """
        check_fit(model, self.asks, first_ids(self.batches[0]))

    def values(self, model: nn.Module, number: int) -> Values:
        """The values of the examples of one batch; NaN in the row of an example of which one is not
        finite.

        Raises:
            InterventionError: where the score is not one number, or row of numbers, for each
                example.
        """
        scores = self._scored(model, number)
        if isinstance(scores, torch.Tensor):
            scores = scores.detach().double().cpu().numpy()
        scores = np.array(scores, float)
        rows = scores[:, None] if scores.ndim == 1 else scores
        if rows.ndim != 2 or rows.shape[1] != 1 + len(self.columns) or not len(rows):
            raise InterventionError(
                f"The score of {self.name!r} has the shape {list(scores.shape)}; expected one "
                f"number for each example, and {len(self.columns)} more"
            )
        # The whole row, so that no total is taken over an example of which the score is missing.
        rows[~np.isfinite(rows).all(axis=1)] = np.nan
        return rows

    def slopes_from(self, model: nn.Module, number: int) -> torch.Tensor:
        """The scores ``[example]`` of one batch as a tensor that gradients can be asked of.

        Raises:
            InterventionError: where the score has no gradient.
        """
        # What finishes the scores of all examples may be anything, and is no tensor.
        scores = self._scored(model, number) if self.finish is None else None
        if isinstance(scores, torch.Tensor):
            scores = scores if scores.ndim == 1 else scores[:, 0]
            if scores.requires_grad:
                return scores
        raise InterventionError(
            f"The {self.metric} of {self.name!r} has no gradient, which screening heads needs; "
            "take a task whose score is a log likelihood or a loss, or leave the screen out"
        )

    def _scored(self, model: nn.Module, number: int) -> Any:
        device, given = device_of(model), dict(self.batches[number])
        tensors = {name: own for name, own in given.items() if isinstance(own, torch.Tensor)}
        if "input_ids" in tensors:
            check_length(model, tensors["input_ids"].shape[-1], "A text of the task", SHORTER)
        return self.score(model, given | {name: own.to(device) for name, own in tensors.items()})

    def joined(self, batches: Sequence[np.ndarray]) -> Values:
        """The values of all batches, in the order in which the examples were given."""
        values = np.concatenate(batches)
        # Batches hold examples by length: row i of the values is of example order[i].
        return values if self.order is None else values[np.argsort(self.order)]

    def scores(self, values: Values) -> Float[np.ndarray, " example"]:
        """The score of each example."""
        return values[:, 0] if self.finish is None else self.finish(values)


def mean_of_second(values: Values) -> float:
    """Mean of what is noted in addition to the score."""
    return float(np.nanmean(values[:, 1]))


def parse_task(given: Any) -> Task:
    """A task, or a function that gives the score of each example of a model, as a task.

    Raises:
        InterventionError: where it is something else, or has no inputs.
    """
    if not isinstance(given, Task) and callable(given):
        name = getattr(given, "__qualname__", type(given).__name__)
        given = Task(({},), lambda model, _, call=given: call(model), name)
    if not isinstance(given, Task):
        raise InterventionError(
            f"A task was given as {type(given).__name__}; expected a headscope.tasks.Task, such "
            "as next_word makes, or a function that takes the model and gives a score for each "
            "example"
        )
    if not given.batches:
        raise InterventionError(f"The task {given.name!r} has no examples; give at least one")
    return given
