"""Options and notes of commands that run over a corpus."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, check_folder
from headscope.cli._study import capturing, groups_of, loaded
from headscope.errors import HeadscopeError, RunError

CORPUS = Group("Many texts")
FAILED = "failed.jsonl"


@Parameter(name="*", group=CORPUS)
@dataclass(frozen=True)
class CorpusOptions:
    """Who measures the texts."""

    workers: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    """Number of processes that run at once."""
    dask: str | None = None
    """Address of a Dask scheduler that runs the parts, such as tcp://10.0.0.1:8786; local starts
    one on this machine, with --workers processes.
    """
    part_size: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    """Texts in a part, which is kept when it is done; by default 64 to 1,000."""

    def asks(self, out: Path | None) -> bool:
        """Whether the texts are measured as a run in parts: with workers, or with a folder."""
        return self.is_given or is_folder(out)

    @property
    def is_given(self) -> bool:
        """Whether any of these options is given."""
        return any(each is not None for each in (self.workers, self.dask, self.part_size))

    @contextmanager
    def running(self, out: Path | None) -> Generator[dict[str, Any]]:
        """Options of `headscope.corpus.RunOptions`, for a ``with`` block.

        Raises:
            RunError: where Dask is not installed, or no scheduler answers.
            FileError: where the folder cannot be written to.
        """
        if is_folder(out) and out is not None:
            check_folder(out)
        skipped = _LeftOutOfRun(out if is_folder(out) else None)
        options: dict[str, Any] = {
            "part_size": self.part_size,
            "out": skipped.folder,
            "on_error": skipped.note,
        }
        if self.dask is None:
            # Without a folder, one that goes with the command; one worker is this process.
            alone = self.workers is None and skipped.folder is None
            yield options | {"workers": 1 if alone else self.workers}
        else:
            from headscope.corpus import dask_cluster

            if self.workers is not None and self.dask != "local":
                raise RunError(
                    "--workers is for this machine or --dask local; a cluster has its own workers"
                )
            with dask_cluster(self.dask, self.workers) as executor:
                yield options | {"executor": executor}
        skipped.end()

    @contextmanager
    def reading(
        self,
        options: ModelOptions,
        out: Path | None,
        *,
        given: list[Any] | None = None,
        texts: Path | None = None,
        **needs: bool,
    ) -> Generator[tuple[tuple[Any, Any], dict[str, Any]]]:
        """What a study reads with, for a ``with`` block: the model and its tokenizer, or the name
        of the model where the study runs in parts; and how it reads.

        Args:
            options: model, and how it runs.
            out: what ``--out`` names.
            given: the texts; None for texts that are annotated.
            texts: their file.
            **needs: what the model must have, as of `loaded`.
        """
        if self.asks(out):
            options.check()
            if given is not None:
                left_out.begin(of=len(given))
            read = {"truncate": options.truncate, "allow_unfit": options.allow_unfit}
            read |= options.loading | options.read_many() | groups_of(texts)
            with self.running(out) as more:
                yield (options.model, None), read | more
            return
        source = loaded(given or [], options, **needs)
        if given is not None:
            yield source, capturing(given, options, texts)
            return
        read = {"truncate": options.truncate, "allow_unfit": options.allow_unfit}
        yield source, read | options.read_many() | {"progress": True}


class _LeftOutOfRun:
    """The inputs that a run left out: the first is printed, and a file names them all.

    Args:
        folder: of the run; None for one that goes with the command.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._reasons: list[HeadscopeError] = []

    def note(self, _: int, error: HeadscopeError) -> None:
        """Count one."""
        self._reasons.append(error)

    def end(self) -> None:
        """Say why one was, and let the command end as one that left out some texts."""
        if not self._reasons:
            return
        # How many there were, and where they are named, stands on the last line of the command.
        why = " ".join(str(self._reasons[0]).split())
        sys.stderr.write(f"headscope: the first input that was left out: {why}\n")
        where = "see above" if self.folder is None else f"see {self.folder / FAILED}"
        left_out.count(len(self._reasons), where)


def is_folder(out: Path | None) -> bool:
    """Whether ``--out`` names the folder of a run, and not the file of a table."""
    return out is not None and (out.is_dir() or not out.suffix)


def table_of(out: Path | None) -> Path | None:
    """The file of a table that ``--out`` names; None for the folder of a run."""
    return None if is_folder(out) else out


def begun_with(folder: Path) -> dict[str, Any] | None:
    """The options of the run that a folder holds; None where none was begun."""
    from headscope.corpus import RunFolder

    return RunFolder(folder).facts()
