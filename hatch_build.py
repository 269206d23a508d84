"""Refuses to build a wheel that lacks the viewer bundles."""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = Path("src/headscope/views/static")
BUNDLES = [
    STATIC / name
    for name in ("page.js", "live.js", "model.js", "atlas.js", "answer.js", "frame.js")
]


class BundleHook(BuildHookInterface):
    """Checks that the bundles are there; an editable install may do without them until `make
    bundle`.
    """

    def initialize(self, version: str, build_data: dict) -> None:
        """Raise where a standard wheel would hold no viewer."""
        missing = [str(bundle) for bundle in BUNDLES if not (Path(self.root) / bundle).is_file()]
        if version != "editable" and missing:
            raise RuntimeError(
                f"{' and '.join(missing)} missing: run `make bundle` first (needs Node.js), or "
                "install a released wheel"
            )
