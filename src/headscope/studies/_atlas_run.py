"""An atlas of heads over a corpus: the run of `heads`, which also counts where attention goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headscope.atlases import CONFIDENCE, Atlas, AtlasSums, MeasuredText, atlas_of
from headscope.corpus import CorpusText, FinishedRun, Kept
from headscope.errors import RecordError
from headscope.patterns import MEASURES
from headscope.record import Record, Stack, TextBatch
from headscope.storage import arrays_below
from headscope.studies._heads_measurer import HeadsMeasurer
from headscope.studies._heads_run import HeadsJob, HeadsPart

HEADS, ATLAS = "heads.", "atlas."
"""Before the names of arrays in the file of a part."""


class AtlasMeasurer(HeadsMeasurer):
    """Gives the attention of each text with the values of its heads."""

    norms: bool = False
    """Whether lengths of what heads add are given, too."""

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """A `MeasuredText` of each text; see `headscope.corpus.Measurer`."""
        for together, values in self.measured(texts, failed):
            batch = TextBatch.of([together]) if isinstance(together, Record) else together
            stack = batch[self.stack or next(iter(batch.stacks))]
            visible = tuple(layer.visible.dense() for layer in stack.layers)
            heads = tuple(len(layer.heads) for layer in stack.layers)
            lengths = None
            # Texts with norms come as records, one by one.
            if self.norms and isinstance(together, Record):
                try:
                    lengths = lengths_of(together[stack.name])
                except RecordError as error:
                    failed(next(iter(values)), error)
                    continue
            for index, number in enumerate(values):
                weights = np.concatenate([layer.weights[index] for layer in stack.layers])
                tokens = stack.key[index]
                of_text = (values[number], weights, visible, heads, tokens, lengths)
                yield number, MeasuredText(*of_text)


@dataclass(frozen=True, kw_only=True)
class AtlasJob(HeadsJob):
    """What a run of `atlas` does to each text: what one of `heads` does, and counts of where
    attention goes.

    Args:
        norms: whether shares of norms are counted, too.
    """

    STUDY: ClassVar[str] = "atlas"
    MEASURER: ClassVar[type[HeadsMeasurer]] = AtlasMeasurer

    norms: bool = False

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {"norms": self.norms}

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `headscope.capturing.capture_batches`."""
        more = {"keep": ("weights", "norms")} if self.norms else {}
        return super().reading | more

    def begin(self) -> HeadsMeasurer:
        """The model, loaded once in a process, and what measures with it."""
        measurer = super().begin()
        assert isinstance(measurer, AtlasMeasurer), "as MEASURER says"
        measurer.norms = self.norms
        return measurer

    def tally(self, measurer: HeadsMeasurer) -> Any:
        """Sums of no text."""
        return AtlasPart(self, measurer)

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> Atlas:
        """The atlas of all parts."""
        tally, sums = None, None
        for state, arrays in finished.parts():
            tally = self.with_part(tally, (state, arrays_below(arrays, HEADS)))
            if state["atlas"] is not None:
                cells = [(layer, head) for layer, head in state["cells"]]
                part = AtlasSums.of_kept(cells, state["atlas"], arrays_below(arrays, ATLAS))
                sums = part if sums is None else sums + part
        heads = self.heads_of(tally, finished, judging)
        return atlas_of(heads, sums or AtlasSums(heads.cells, ()))


class AtlasPart:
    """Sums over the texts of a part.

    Args:
        job: what is counted.
        measurer: of the values.
    """

    def __init__(self, job: AtlasJob, measurer: HeadsMeasurer) -> None:
        self._measurer = measurer
        self._heads = HeadsPart(job, measurer)
        self._sums: AtlasSums | None = None
        names = [pattern.name for pattern in job.patterns]
        self._scores: list[str] = [*names, CONFIDENCE]
        self._has_norms = job.norms
        confidence = f"measure {next(name for name in MEASURES if name == CONFIDENCE)}"
        self._rows = [measurer.rows.index(row) for row in (*names, confidence)]
        self.most_open: int = self._heads.most_open

    def update(self, text: CorpusText, values: MeasuredText) -> None:
        """Count a text."""
        self._heads.update(text, values.values)
        if self._sums is None:
            self._sums = AtlasSums(self._measurer.cells, self._scores, has_norms=self._has_norms)
        self._sums.update(text.name, values, values.values[self._rows], text.times)

    def close(self) -> None:
        """The documents so far have no more texts."""
        self._heads.close()

    def kept(self) -> Kept:
        """The sums; none where no text could be measured."""
        state, arrays = self._heads.kept()
        kept = {f"{HEADS}{name}": each for name, each in arrays.items()}
        if self._sums is None:
            return state | {"atlas": None}, kept
        counts, counted = self._sums.kept
        return state | {"atlas": counts}, kept | {
            f"{ATLAS}{name}": each for name, each in counted.items()
        }


def lengths_of(stack: Stack) -> np.ndarray:
    """``||f(x)||`` of each head and key, layer after layer.

    Raises:
        RecordError: where a layer has none.
    """
    lengths = []
    for layer in stack.layers:
        if layer.value_norms is None:
            raise RecordError(
                f"Norms of layer {layer.layer} are not known; leave out norms=True (--norms)"
            )
        lengths.append(np.asarray(layer.value_norms, np.float64))
    return np.concatenate(lengths)
