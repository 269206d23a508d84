"""The values of `heads` of many texts, the same for a text in whatever batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headscope.corpus import CorpusText
from headscope.measures import head_distances
from headscope.patterns import BatchValues, Pattern, Tally, facts_of
from headscope.record import BatchStack, Record, Stack, TextBatch
from headscope.studies.shared._corpus_job import as_given
from headscope.studies.shared._corpus_model import one_thread


class HeadsMeasurer:
    """A model with what is measured of each of its heads on a text.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        patterns: what to look for.
        stack: which stack of the records; None for the first.
        reading: options of `headscope.capturing.capture_batches`.
        distances: whether the distances of every two heads are measured, too.
        position_mean: the mean map by position, for one more baseline; see `Tally`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        patterns: tuple[Pattern, ...],
        *,
        stack: str | None = None,
        reading: Mapping[str, Any] | None = None,
        distances: bool = False,
        position_mean: np.ndarray | None = None,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.patterns, self.stack = patterns, stack
        self._has_distances = distances
        self.rows: tuple[str, ...] = Tally(patterns).rows
        # Kept for all batches: what even rows score is worked out once for each layout of tokens.
        self._batch_values = BatchValues(patterns, position_mean)
        self.cells: list[tuple[int, int]] = []
        """Known from the first text on, as facts that all texts share."""
        self.facts: dict[str, Any] = {}
        self._options: dict[str, Any] = dict(reading or {})

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """Values of texts, rows as of `Tally`, and below these the distances of each head, if any;
        see `headscope.corpus.Measurer`.
        """
        for together, values in self.measured(texts, failed):
            if not self._has_distances:
                yield from values.items()
                continue
            layers = self._stack_of(together).layers
            for index, (number, own) in enumerate(values.items()):
                weights = np.concatenate([layer.weights[index] for layer in layers])
                yield number, np.concatenate([own, head_distances(weights)])

    def measured(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[TextBatch | Record, dict[int, np.ndarray]]]:
        """The attention of texts that were run together, and their values by place, in the order in
        which they are in the batch.

        Args:
            texts: see `values_of`.
            failed: see `values_of`.
        """
        from headscope.capturing import capture_batches

        given = [as_given(text.given) for text in texts]
        with one_thread():
            batches = capture_batches(
                self.model, self.tokenizer, given, on_error=failed, **self._options
            )
            for together in batches:
                # Draws are keyed by the name of the text, which is what it says.
                names = [texts[number].name for number in together.numbers]
                batch = together.batch
                stack = self._stack_of(batch)
                values = self._batch_values.of(names, stack)
                self.cells = list(stack.cells)
                self.facts = facts_of(batch, stack)
                yield batch, dict(zip(together.numbers, values, strict=True))

    def _stack_of(self, batch: TextBatch | Record) -> BatchStack:
        stack = batch[self.stack or next(iter(batch.stacks))]
        return BatchStack.of([stack]) if isinstance(stack, Stack) else stack
