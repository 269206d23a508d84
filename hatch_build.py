"""Refuses to build a wheel that lacks the viewer bundle."""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = Path("src/headscope/views/static/page.js")


class BundleHook(BuildHookInterface):
    """Checks that the bundle is there; an editable install may do without it until `make bundle`."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Raise where a standard wheel would hold no viewer."""
        if version != "editable" and not (Path(self.root) / BUNDLE).is_file():
            raise RuntimeError(
                f"{BUNDLE} is missing: run `make bundle` first (needs Node.js), or install a released wheel"
            )
