"""What each extra adds on disk, with everything that it brings: the sizes in docs/install.md.

Counted in the environment that runs this, where all extras are installed:

    python benchmarks/extras.py
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = (
    "capture",
    "pictures",
    "figures",
    "notebook",
    "server",
    "statistics",
    "linguistics",
    "tables",
    "demo",
    "all",
)


def brought(name: str, extras: tuple[str, ...] = (), known: set[str] | None = None) -> set[str]:
    """The names of a package and of all that it needs, those of these extras included."""
    known = set() if known is None else known
    name = canonicalize_name(name)
    if name in known and not extras:
        return known
    try:
        requires = distribution(name).requires or []
    except PackageNotFoundError:
        return known
    known.add(name)
    for text in requires:
        wanted = Requirement(text)
        if wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in (*extras, "")
        ):
            brought(wanted.name, tuple(wanted.extras), known)
    return known


def size(names: set[str]) -> float:
    """Megabytes of their files."""
    paths = [path.locate() for name in names for path in distribution(name).files or []]
    return sum(path.stat().st_size for path in map(type(paths[0]), paths) if path.is_file()) / 1e6


if __name__ == "__main__":
    plain = brought("headscope")
    print(f"headscope with NumPy, safetensors, cyclopts: {size(plain):,.0f} MB")
    for extra in EXTRAS:
        print(f"{extra}: {size(brought('headscope', (extra,)) - plain):,.0f} MB more")
