"""The mean map by position over a corpus: the run before that of `heads` with `position_mean`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headscope.corpus import CorpusText, FinishedRun, Kept, RunFolder
from headscope.errors import RunError
from headscope.evidence import MapSum
from headscope.record import BatchStack, Stack
from headscope.storage import load_kept, save_kept
from headscope.studies.shared._corpus_job import ModelJob, as_given, check_measured
from headscope.studies.shared._corpus_model import one_thread
from headscope.studies.shared._corpus_run import RESULT, RunSettings

FOLDER = "position_mean"
"""Of the run of the mean map, or of a mean map that was given, in the folder of the run."""
KIND = "mean map by position"
NONE: Kept = {"none": True}, {"none": np.zeros(0)}
"""Kept of a part of which no text could be measured."""


@dataclass(frozen=True)
class MeanMap:
    """A mean map in a file, since it is too large to travel with every part.

    Args:
        path: of the file, as every worker sees it.
        digest: of what it holds: a part of another mean is refused.
    """

    path: str
    digest: str

    @staticmethod
    def written(mean: np.ndarray, path: Path) -> MeanMap:
        """Write a mean map into a file."""
        digest = hashlib.sha256(repr(mean.shape).encode() + mean.tobytes()).hexdigest()[:16]
        save_kept(path, KIND, {"digest": digest}, {"mean": mean})
        return MeanMap(str(path), digest)

    @staticmethod
    def read(path: Path) -> MeanMap:
        """The mean map that a file holds."""
        return MeanMap(str(path), load_kept(path, KIND)[0]["digest"])

    def load(self) -> np.ndarray:
        """The mean map ``[head query key]``, read once in a process."""
        return _loaded(self)


# One alone: a mean of long texts is large.
@lru_cache(maxsize=1)
def _loaded(mean: MeanMap) -> np.ndarray:
    document, arrays = load_kept(mean.path, KIND)
    if document["digest"] != mean.digest:
        raise RunError(
            f"{mean.path} holds another mean map than this run was begun with; give another folder"
        )
    return arrays["mean"]


@dataclass(frozen=True, kw_only=True)
class MeanMapJob(ModelJob):
    """What adds up the maps of all texts.

    Args:
        of: which stack of the records; None for the first.
    """

    STUDY: ClassVar[str] = "mean map"
    of: str | None = None

    @property
    def stage(self) -> str:
        """The run before that of the heads."""
        return "the mean map by position"

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        return super().options() | {"stack": self.of}

    def begin(self) -> MapMeasurer:
        """The model, loaded once in a process, and what gives its maps."""
        return MapMeasurer(*self.model.load(), stack=self.of, reading=self.reading)

    def tally(self, measurer: Any) -> MapPart:
        """The sum of no map."""
        return MapPart()

    def made(self, finished: FinishedRun, judging: Mapping[str, Any]) -> np.ndarray:
        """The mean map of all parts, as large as the longest text."""
        whole = None
        for state, arrays in finished.parts():
            if "none" in state:
                continue
            part = MapSum.of_arrays(arrays, ())
            whole = part if whole is None else added_maps(whole, part)
        check_measured(finished, any_text=whole is not None)
        assert whole is not None, "that was checked"
        return whole.mean

    def write(self, result: np.ndarray, path: Path) -> None:
        """Keep the mean map in the folder of its run."""
        MeanMap.written(result, path)


class MapMeasurer:
    """A model, whose maps are the values of a text.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        stack: which stack of the records; None for the first.
        reading: options of `headscope.capturing.capture_batches`.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, stack: str | None, reading: Mapping[str, Any]
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self._stack, self._reading = stack, reading

    def values_of(
        self, texts: Sequence[CorpusText], failed: Callable[[int, Exception], None]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """The maps of all heads ``[head query key]``; see `headscope.corpus.Measurer`."""
        from headscope.capturing import capture_batches

        given = [as_given(text.given) for text in texts]
        with one_thread():
            batches = capture_batches(
                self.model, self.tokenizer, given, on_error=failed, **self._reading
            )
            for together in batches:
                stack = together.batch[self._stack or next(iter(together.batch.stacks))]
                layers = (BatchStack.of([stack]) if isinstance(stack, Stack) else stack).layers
                for index, number in enumerate(together.numbers):
                    yield number, np.concatenate([layer.weights[index] for layer in layers])


class MapPart:
    """The sum of the maps of a part."""

    def __init__(self) -> None:
        # Documents are of no account here: nothing is kept of one.
        self.most_open: int = 1
        self._maps: MapSum | None = None

    def update(self, text: CorpusText, values: np.ndarray) -> None:
        """Add a map, as often as its text is there."""
        heads, *sides = values.shape
        longest = max(sides)
        if self._maps is None:
            self._maps = MapSum(heads, longest)
        self._maps = self._maps.padded(longest)
        self._maps.update(None, values, times=text.times)

    def close(self) -> None:
        """Nothing is open."""

    def kept(self) -> Kept:
        """The sum, as large as the longest text of the part."""
        return NONE if self._maps is None else ({}, dict(self._maps.arrays))


def added_maps(one: MapSum, other: MapSum) -> MapSum:
    """The sum of two sums, whose longest texts may differ."""
    longest = max(one.length, other.length)
    return one.padded(longest) + other.padded(longest)


def mean_map_over(
    job: ModelJob,
    wanted: Any,
    texts: Iterable[Any],
    running: RunSettings,
    *,
    stack: str | None,
) -> tuple[MeanMap, Iterable[Any]]:
    """The mean map of a run, and the texts once more.

    Args:
        job: of the study that compares with it: its model, and how that reads.
        wanted: True for the mean over the texts; or a mean map.
        texts: a stream.
        running: with a folder.
        stack: which stack of the records.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    folder = RunFolder(running.out or "")
    folder.begin()
    place = folder.path / FOLDER
    if wanted is not True:
        place.mkdir(exist_ok=True)
        return MeanMap.written(np.asarray(wanted, np.float64), place / RESULT), texts
    first = MeanMapJob(
        model=job.model,
        truncate=job.truncate,
        allow_unfit=job.allow_unfit,
        together=job.together,
        of=stack,
    )
    # Inputs that are left out are told of by the study itself, which reads them again.
    quiet = replace(running, out=place, on_error=lambda number, error: None)
    quiet.result(first, texts, {})
    return MeanMap.read(place / RESULT), RunFolder(place).texts()
