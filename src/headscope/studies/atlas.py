"""An atlas of the heads of a model over many texts: what `heads` says, and where attention goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from headscope.atlases import CONFIDENCE, Atlas, atlas_of, text_counts
from headscope.corpus import CorpusText, Counts, FinishedRun, Kept, Sums
from headscope.errors import RecordError
from headscope.patterns import Heads
from headscope.record import Record, Stack, TextBatch
from headscope.storage import arrays_below
from headscope.studies._heads_run import HeadsJob, HeadsMeasurer, HeadsPart, over_texts

HEADS, ATLAS = "heads.", "atlas."
"""Before the names of arrays in the file of a part."""


@dataclass(frozen=True, eq=False)
class AtlasText:
    """What was counted of a text.

    Args:
        values: of each head, see `HeadsMeasurer`.
        counts: of where attention goes.
        length: of the text in tokens.
    """

    values: np.ndarray
    counts: Counts
    length: int


class AtlasMeasurer(HeadsMeasurer):
    """Gives the values of heads on each text, and counts of where their attention goes."""

    norms: bool = False
    """Whether shares of norms are counted, too."""
    most_tried: int = 0
    """Counts are the same in any batch but for rounding, and nothing is tried before a run."""

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, Any]]:
        """A `AtlasText` of each text; see `headscope.corpus.Measurer`."""
        names = [*(pattern.name for pattern in self.patterns), f"measure {CONFIDENCE}"]
        rows = [self.rows.index(name) for name in names]
        for together, values in self.measured(texts, failed):
            batch = TextBatch.of([together]) if isinstance(together, Record) else together
            stack = batch[self.stack or next(iter(batch.stacks))]
            for index, (number, own) in enumerate(values.items()):
                try:
                    # Texts with norms come as records, one by one.
                    own_stack = together[stack.name]
                    lengths = None
                    if self.norms and isinstance(own_stack, Stack):
                        lengths = lengths_of(own_stack)
                    counts = text_counts(
                        texts[number].name,
                        stack.key[index],
                        weights=np.concatenate([each.weights[index] for each in stack.layers]),
                        visible=tuple(layer.visible.dense() for layer in stack.layers),
                        scores=own[rows],
                        lengths=lengths,
                    )
                except RecordError as error:
                    failed(number, error)
                else:
                    yield number, AtlasText(own, counts, len(stack.key[index]))


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
        tally, sums = None, Sums()
        for state, arrays in finished.parts():
            tally = self.with_part(tally, (state, arrays_below(arrays, HEADS)))
            sums = sums + Sums.of_kept((state["atlas"], arrays_below(arrays, ATLAS)))
        return atlas_of(self.heads_of(tally, finished, judging), sums)


class AtlasPart:
    """Sums over the texts of a part.

    Args:
        job: what is counted.
        measurer: of the values.
    """

    def __init__(self, job: AtlasJob, measurer: HeadsMeasurer) -> None:
        self._measurer, self._heads, self._sums = measurer, HeadsPart(job, measurer), Sums()
        self._scores = [*(pattern.name for pattern in job.patterns), CONFIDENCE]
        self.most_open: int = self._heads.most_open

    def update(self, text: CorpusText, values: AtlasText) -> None:
        """Count a text, as often as it is there."""
        self._heads.update(text, values.values)
        for number in range(text.times):
            name = f"{text.name} of {text.unit}, {number}"
            facts = {"scores": self._scores, "heads": [list(cell) for cell in self._measurer.cells]}
            self._sums.add(name, text.unit, values.counts, length=values.length, facts=facts)

    def close(self) -> None:
        """The documents so far have no more texts."""
        self._heads.close()

    def kept(self) -> Kept:
        """The sums."""
        state, arrays = self._heads.kept()
        counts, counted = self._sums.kept()
        kept = {f"{HEADS}{name}": each for name, each in arrays.items()}
        kept |= {f"{ATLAS}{name}": each for name, each in counted.items()}
        return state | {"atlas": counts}, kept


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


def atlas(
    model: Any = None,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    random_weights: Heads | bool | None = None,
    norms: bool = False,
    **options: Any,
) -> Atlas:
    """What every head of a model does over many texts: labels with evidence, where its attention
    goes, between which words, and examples, in one pass.

    Texts are read as a stream and measured in parts, by one process or many; memory does not grow
    with their number, and the result is the same for any number of workers, size of parts and
    order of texts. See docs page "An atlas of heads".

    Args:
        model: loaded, by name or folder, or None for the demo model.
        tokenizer: of a loaded model.
        texts: texts, or pairs of them: a list, or a stream that is read once.
        random_weights: True for the same architecture with random weights as one baseline more of
            the labels; or `heads` of such a model.
        norms: whether to count, too, where what each head adds comes from: shares of ``weight *
            ||f(x)||`` (Kobayashi et al. 2020). It takes longer, as every text is then recorded by
            itself.
        **options: ``out``, ``workers``, ``executor`` and ``part_size`` as of
            `headscope.corpus.RunOptions`; ``groups``, ``patterns``, ``stack``, ``confidence``,
            ``alpha``, ``correction``, ``margin``, ``battery``, ``truncate``, ``allow_unfit`` and
            ``progress`` as of `heads`; where and how a named model is loaded.

    Raises:
        RecordError: where no texts were given.
        RunError: where no text could be measured, as of cross-attention; of a run, see
            `headscope.corpus.run`.
        CaptureError: a model whose attention cannot be captured.

    Example:
        >>> result = atlas("bert-base-uncased", texts=["The cat sat.", "It slept."], out="run")
    """
    if texts is None:
        raise RecordError("An atlas is made over texts; give atlas(model, tokenizer, texts)")
    return over_texts(
        AtlasJob,
        (model, tokenizer),
        texts,
        options,
        random_weights=random_weights,
        more={"norms": norms},
    )
