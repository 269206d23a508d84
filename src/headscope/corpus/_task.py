"""What a worker does: try the model out, and measure one part. Sent by name, so an installed module
must hold it.

A job is what is to be done to every text of a run, such as
`headscope.studies.shared._fold_run.FoldJob`. It travels to the processes of an engine, so it is
small, can be pickled and hashed, and names its model instead of holding it. The numbers of a text
must depend on the text alone, but for rounding: not on the texts that are measured with it, on
their order, or on their number. Random draws are keyed by what it says.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from headscope._version import __version__
from headscope.corpus._folder import RunFolder, differing
from headscope.corpus._journal import PartJournal
from headscope.corpus._text import CorpusText, Kept
from headscope.results import check_conserved

FORMAT = 1
"""Of the files of a run."""
TRIM_EVERY = 64
"""Texts of a part after which memory that was freed is given back."""
NUMBERS = ("answering", "atlases", "capturing", "corpus", "evidence", "interventions")
NUMBERS += ("linguistics", "measures", "norms", "parts", "patterns", "record", "studies", "tasks")
"""Packages whose code makes the numbers."""


@dataclass(frozen=True)
class PartTask:
    """One part of a run: a few hundred bytes.

    Args:
        job: what is done to its texts.
        folder: of the run, as every worker sees it.
        part: its name.
        facts: what the numbers must be made of.
    """

    job: Any
    folder: str
    part: str
    facts: dict[str, Any]


def try_out(
    job: Any, sample: Sequence[CorpusText], token: str
) -> tuple[dict[str, Any], Kept | None]:
    """Load the model, and check it and some texts; gives the facts that numbers depend on, and what
    is measured once, beside the texts.

    Args:
        job: what is to be done.
        sample: texts of the corpus.
        token: makes every call another one; some engines give the old answer to an equal call.
    """
    loaded = job.begin()
    job.check(loaded, sample)
    return facts_of(job, loaded), job.beside(loaded)


def facts_of(job: Any, loaded: Any) -> dict[str, Any]:
    """What numbers of this job depend on, where its model is loaded."""
    own = {"study": job.study, "headscope": f"{__version__} ({code_version()})", "format": FORMAT}
    return own | job.options() | job.facts(loaded)


def measure_part(task: PartTask, token: str) -> int:
    """Measure a part and write its file, unless it is there.

    Args:
        task: the part.
        token: see `try_out`.

    Returns:
        How many of its texts were left out.

    Raises:
        RunError: where this worker has other weights, code or versions than the run.
        FileError: where the part cannot be written, as on a full disk.
    """
    folder = RunFolder(task.folder)
    # The check belongs here too: some engines run a task again whose result they lost.
    if folder.is_finished(task.part):
        # Of a worker that died between writing its file and removing its journal.
        PartJournal(folder.path, task.part).remove_all()
        return len(folder.document_of(task.part, task.facts)["failed"])
    loaded = task.job.begin()
    here = facts_of(task.job, loaded)
    differing("The run was begun", {name: task.facts[name] for name in here}, here)
    document: dict[str, Any] = {"facts": task.facts, "part": task.part}
    tally = task.job.tally()
    texts = folder.texts_of(task.part)
    with PartJournal(folder.path, task.part).open() as journal:
        failed = _measure((task.job, loaded), texts, tally, journal)
        counts = {"texts": sum(text.times for text in texts), "failed": failed}
        folder.write_part(task.part, document | counts, tally.kept())
    give_back_memory()
    return len(failed)


def give_back_memory() -> None:
    """Give what was freed back to the system, where the C library can."""
    # Arrays of many sizes leave gaps that glibc keeps: nothing lives longer than its part, and the
    # peak still rose from part to part.
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _measure(
    measuring: tuple[Any, Any], texts: Sequence[CorpusText], tally: Any, journal: PartJournal
) -> list[dict[str, Any]]:
    """Measure and count texts; returns those that were left out, and why."""
    job, loaded = measuring
    owners: dict[str, list[CorpusText]] = {}
    for text in texts:
        owners.setdefault(text.name, []).append(text)
    names, counted = set(owners), set()
    why = f"it ended its worker, each of {journal.deaths} times"
    failed = dict.fromkeys(journal.killers & names, why)
    suspects = journal.suspects(names)
    together = [owners[name][0] for name in sorted(names - suspects)]
    alone = [owners[name][0] for name in sorted(suspects - failed.keys())]

    def measured(some: list[CorpusText]) -> None:
        def fail(index: int, error: Exception) -> None:
            ours = type(error).__module__.startswith("headscope.")
            failed[some[index].name] = str(error) if ours else f"{type(error).__name__}: {error}"
            journal.done(some[index].name)

        for count, (index, values) in enumerate(job.values_of(loaded, some, fail), 1):
            for text in owners[some[index].name]:
                job.count(tally, text, values)
            counted.add(some[index].name)
            journal.done(some[index].name)
            if count % TRIM_EVERY == 0:
                give_back_memory()

    if together:
        measured(together)
    for text in alone:
        journal.alone(text.name)
        measured([text])
    check_conserved(len(names), len(counted), len(failed))
    return [_failure(text, failed[name]) for name in sorted(failed) for text in owners[name]]


def _failure(text: CorpusText, error: str) -> dict[str, Any]:
    return {"text": text.given, "group": text.group, "times": text.times, "error": error}


@lru_cache(maxsize=1)
def code_version() -> str:
    """A short name of the code that makes the numbers: another one after any change to it."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for package in NUMBERS:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def reason_of(error: BaseException) -> str:
    """An error in one line, with the line of ours or theirs that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(each.filename).name}:{each.lineno})" for each in last)
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"
