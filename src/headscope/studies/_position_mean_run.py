"""The mean map by position over a corpus: the run before that of `heads` with `position_mean`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from headscope.corpus import WHOLE, Counts, RunFolder, Sums
from headscope.errors import RunError
from headscope.storage import load_kept, save_kept
from headscope.studies.shared._corpus_job import ModelJob
from headscope.studies.shared._corpus_run import RESULT, RunSettings
from headscope.studies.shared._fold import Fold, input_as_given, stack_of
from headscope.studies.shared._fold_run import FoldJob

FOLDER = "position_mean"
"""Of the run of the mean map, or of a mean map that was given, in the folder of the run."""
KIND = "mean map by position"


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


@dataclass(frozen=True)
class PositionMean:
    """The mean map of some texts ``[head query key]``, and which were left out."""

    mean: np.ndarray
    left_out: dict[str, str] = field(default_factory=dict)


def counts_of(_: Any, record: Any, *, stack: str | None = None) -> Counts:
    """The maps of all heads of a text, and which places it has."""
    maps = [np.asarray(layer.weights_of(), np.float64) for layer in stack_of(record, stack)]
    whole = np.concatenate(maps)
    return {f"{WHOLE}maps": whole, f"{WHOLE}texts": np.ones(whole.shape[1:])}


def _result_of(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> PositionMean:
    """The mean over the texts that are long enough for a place; NaN where none is."""
    total, texts = (sums.total(f"{WHOLE}{name}") for name in ("maps", "texts"))
    # As long as the longest text on either side.
    mean = np.full((len(total), *[max(texts.shape)] * 2), np.nan)
    inside = np.s_[:, : texts.shape[0], : texts.shape[1]]
    mean[inside] = np.divide(total, texts, out=mean[inside].copy(), where=texts > 0)
    return PositionMean(mean)


@dataclass(frozen=True, kw_only=True)
class MeanMapJob(FoldJob):
    """What adds up the maps of all texts."""

    @property
    def stage(self) -> str:
        """The run before that of the heads."""
        return "the mean map by position"

    def write(self, result: PositionMean, path: Path) -> None:
        """Keep the mean map in the folder of its run."""
        MeanMap.written(result.mean, path)


FOLD = Fold(
    name="mean map",
    what="text",
    counts_of=counts_of,
    result_of=_result_of,
    input_of=input_as_given,
)


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
        fold=FOLD,
        how=(("stack", stack),),
        model=job.model,
        truncate=job.truncate,
        allow_unfit=job.allow_unfit,
        together=job.together,
    )
    # Inputs that are left out are told of by the study itself, which reads them again.
    quiet = replace(running, out=place, on_error=lambda number, error: None)
    quiet.result(first, texts, {})
    return MeanMap.read(place / RESULT), RunFolder(place).texts()
