"""What commands that run over a corpus share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from headscope.cli._left_out import left_out
from headscope.cli._run import check_folder
from headscope.cli._study import warnings_as_lines
from headscope.errors import RunError

CORPUS = Group("Many texts")


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
        """Whether a run is wanted: several workers, or a folder that it goes on in."""
        return any(self._given) or is_folder(out)

    @property
    def _given(self) -> tuple[bool, ...]:
        return self.workers is not None, self.dask is not None, self.part_size is not None

    @contextmanager
    def running(self, out: Path | None) -> Generator[dict[str, Any]]:
        """Options of `headscope.corpus.RunOptions`, for a ``with`` block.

        Raises:
            RunError: where Dask is not installed, or no scheduler answers.
            FileError: where the folder cannot be written to.
        """
        if is_folder(out) and out is not None:
            check_folder(out)
        options: dict[str, Any] = {"part_size": self.part_size}
        options["out"] = out if is_folder(out) else None
        with warnings_as_lines("left out"):
            if self.dask is None:
                # Without a folder, one that goes with the command; one worker is this process.
                alone = self.workers is None and options["out"] is None
                yield options | {"workers": 1 if alone else self.workers}
                return
            from headscope.corpus import dask_cluster

            if self.workers is not None and self.dask != "local":
                raise RunError(
                    "--workers is for this machine or --dask local; a cluster has its own workers"
                )
            with dask_cluster(self.dask, self.workers) as executor:
                yield options | {"executor": executor}


def is_folder(out: Path | None) -> bool:
    """Whether ``--out`` names the folder of a run, and not the file of a table."""
    return out is not None and (out.is_dir() or not out.suffix)


def note_left_out(count: int, out: Path | None) -> None:
    """Let the command end as one that left out some texts."""
    if count:
        where = f"see {out / 'failed.jsonl'}" if out is not None and is_folder(out) else "see above"
        left_out.count(count, where)
