"""What a reader has to know of the machine to judge a figure."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from _bertviz import VERSION as BERTVIZ
from _browser import chromium_version

PACKAGES = ("headscope", "torch", "transformers", "playwright")


def facts(chromium: str) -> dict[str, str | int | float]:
    """The machine, the versions and the day, by name."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_at_start": round(psutil.getloadavg()[0], 2),
        "system": platform.platform(),
        "chromium": chromium_version(chromium),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "bertviz": BERTVIZ,
    }


def _processor() -> str:
    """The processor's model name; Python itself knows it on few systems."""
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
