"""headscope headvis, of an extra."""

from __future__ import annotations

from pathlib import Path

from headscope.cli._files import hs, say
from headscope.cli._run import ModelOptions, Study, parse_texts


def headvis(
    *, texts: Path, out: Path, stack: str | None = None, model: ModelOptions = ModelOptions()
) -> None:
    """Write a tree of HeadVis: what every head of a model attends to.

    headscope headvis --texts texts.txt --out tree

    headscope headvis --texts texts.txt --model path/to/a/llama --out tree

    Args:
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b. Its name is that of the data set.
        out: Write the tree to this folder, which may not exist or must be empty: metrics of every
            head, and whole texts, under their licence, with the largest weights of each row.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        model: Model, and how it runs.
    """
    hs.headvis.check_tree_folder(out)
    given = parse_texts(None, None, texts)
    with Study(model=model).reading() as (source, how):
        how |= {"dataset": texts.stem, "stack": stack}
        folder = hs.headvis.write_headvis(out, *source, given, **how)
    say(hs.headvis.read_headvis(folder).summary)
    say(f"Wrote {folder.resolve()}; it holds whole texts, under their licence")
