"""headscope capture."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from headscope.cli._run import RECORD_SUFFIX, ModelOptions, captured, say
from headscope.errors import FileError


def capture(
    text: str,
    text_b: str | None = None,
    /,
    *,
    out: Path,
    model: ModelOptions | None = None,
    keep: Literal["auto", "weights", "qk"] = "auto",
) -> None:
    """Capture a text, or a sentence pair, and keep the record as one .safetensors file.

    Args:
        text: The text.
        text_b: The second text of a sentence pair.
        out: Where to write the record; must end in .safetensors.
        model: Which model, and what it reads.
        keep: qk keeps queries, keys and values, from which weights follow exactly; weights keeps these alone; auto
            keeps both while the weights stay below 256 MiB.
    """
    from headscope.storage import save

    if out.suffix != RECORD_SUFFIX:
        raise FileError(
            f"A record is a {RECORD_SUFFIX} file, and --out is {out}; name it {out.with_suffix(RECORD_SUFFIX)}"
        )
    record = captured(text, text_b, model or ModelOptions(), out, keep=keep)
    path = save(record, out)
    say(record.summary)
    say(f"Checked against the model's own layer outputs: largest difference {record.verified:.1e}")
    say(f"Wrote {path.resolve()} ({path.stat().st_size / 1e6:.2f} MB)")
