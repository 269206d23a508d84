"""Write one head view to a file and print, as JSON, how long that took.

Run by head_view.py in a process of its own, so that every page is written cold and the memory of
one tool is not counted for the other:

    python _write_page.py TOOL MODEL_FOLDER TOKENS PAGE [EXTRA_PACKAGES_FOLDER]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from _text import passage
from transformers import AutoModel, AutoTokenizer, logging


def write_headscope(model: object, tokenizer: object, text: str, page: Path) -> dict[str, float]:
    """Write the page of headscope; return the seconds spent on capture and on the page."""
    import headscope as hs  # noqa: PLC0415 (each process imports one tool only)

    start = time.perf_counter()
    record = hs.capture(model, tokenizer, text)
    captured = time.perf_counter()
    hs.view(record).save(page)
    return _seconds(start, captured)


def write_bertviz(model: object, tokenizer: object, text: str, page: Path) -> dict[str, float]:
    """Write the page of BertViz; return the seconds spent on the forward pass and on the page."""
    from bertviz import head_view  # noqa: PLC0415

    start = time.perf_counter()
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        attention = model(**encoded, output_attentions=True).attentions
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    captured = time.perf_counter()
    html = head_view(attention, tokens, html_action="return")
    page.write_text(html.data, encoding="utf-8")
    return _seconds(start, captured)


WRITERS = {"headscope": write_headscope, "bertviz": write_bertviz}


def _seconds(start: float, captured: float) -> dict[str, float]:
    return {"capture_s": captured - start, "write_s": time.perf_counter() - captured}


def main(tool: str, model_folder: str, tokens: str, page: str, *packages: str) -> None:
    """Write the page of one tool at one length."""
    sys.path.extend(packages)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, attn_implementation="eager").eval()
    text = passage(tokenizer, int(tokens))
    print(json.dumps(WRITERS[tool](model, tokenizer, text, Path(page))))


if __name__ == "__main__":
    main(*sys.argv[1:])
