"""The process of Dask beside each worker, which ends it; loaded where a cluster is started."""

from __future__ import annotations

from typing import Literal

from distributed import Nanny

PATIENCE = 15
"""Seconds, of which Dask waits four fifths for a worker to end before it kills it, warning of each.
By default it is 5, and a process that has loaded torch and a model took 2 to 4 s to end.
"""


class PatientNanny(Nanny):
    """Waits as long as workers with a model take to end."""

    async def close(self, timeout: float = PATIENCE, reason: str = "nanny-close") -> Literal["OK"]:
        """Ask the worker to end, and wait for it."""
        return await super().close(timeout=timeout, reason=reason)
