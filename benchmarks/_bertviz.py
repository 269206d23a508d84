"""BertViz and the scripts its pages fetch, installed beside the repository's own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "1.4.1"
# What a BertViz page asks of cdnjs.cloudflare.com, by file name there: npm package, file in it.
# BertViz names jQuery 2.0.0, which npm does not have; 2.1.0 stands in for it.
SCRIPTS = {
    "require.min.js": ("requirejs@2.3.6", "require.js"),
    "d3.min.js": ("d3@5.7.0", "dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.1.0", "dist/jquery.min.js"),
}
CALLBACK_RETURNED = "bertviz:callback-returned"
# The view is drawn inside one requirejs callback and says nothing when it is done.
MARK_RETURN = """
;(() => {
  const original = requirejs;
  requirejs = Object.assign((names, callback) => original(names, (...modules) => {
    callback(...modules);
    performance.mark('%s');
  }), original);
})();
"""


def install_package(folder: Path) -> Path:
    """Install BertViz with what its head view imports; return the folder to put on sys.path.

    Its declared dependencies (boto3, sentencepiece and others) serve only its neuron view.
    """
    target = folder / "bertviz"
    if not (target / f"bertviz-{VERSION}.dist-info").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
        subprocess.run([*pip, "ipython"], check=True)
        subprocess.run(
            [*pip, "--no-deps", f"bertviz=={VERSION}"], check=True
        )  # last: its presence says all is there
    return target


def install_scripts(folder: Path) -> dict[str, str]:
    """Install the three scripts with npm; return their texts by file name on the CDN."""
    paths = {
        name: folder / "node_modules" / package.partition("@")[0] / inner
        for name, (package, inner) in SCRIPTS.items()
    }
    if not all(path.is_file() for path in paths.values()):
        packages = [package for package, _ in SCRIPTS.values()]
        _npm("install", "--prefix", str(folder), "--no-save", "--silent", *packages)
    scripts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    scripts["require.min.js"] += MARK_RETURN % CALLBACK_RETURNED
    return scripts


def _npm(*arguments: str) -> None:
    """Run npm from PATH, or from beside the running Python."""
    beside = Path(sys.executable).parent
    path = os.pathsep.join([os.environ.get("PATH", ""), str(beside)])
    npm = shutil.which("npm", path=path)
    if npm is None:
        raise SystemExit(f"npm was found neither on PATH nor in {beside}; install Node.js.")
    subprocess.run([npm, *arguments], check=True, env={**os.environ, "PATH": path})
