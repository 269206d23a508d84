"""headscope headvis, of an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.cli._asked import MODEL, Request
from headscope.cli._files import hs, say
from headscope.cli._signature import made_from


@made_from("headscope.headvis:write_headvis", takes=f"texts! out! {MODEL} stack")
def headvis(asked: Request, **options: Any) -> None:
    """Write a tree of HeadVis: what every head of a model attends to.

    headscope headvis --texts texts.txt --out tree

    headscope headvis --texts texts.txt --model path/to/a/llama --out tree

    Args:
        asked: Texts, folder and model.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b. Its name is that of the data set.
        out: Write the tree to this folder, which may not exist or must be empty: metrics of every
            head, and whole texts, under their licence, with the largest weights of each row.
        **options: The stack.
    """
    hs.headvis.check_tree_folder(asked.out)
    given, _ = asked.given()
    with asked.of_model().reading() as (source, how):
        options["dataset"] = Path(asked.texts or "").stem
        folder = hs.headvis.write_headvis(asked.out, *source, given, **options, **how)
    say(hs.headvis.read_headvis(folder).summary)
    say(f"Wrote {folder.resolve()}; it holds whole texts, under their licence")
