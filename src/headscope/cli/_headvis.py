"""headscope headvis."""

from __future__ import annotations

from pathlib import Path

from headscope.cli._run import ModelOptions, note_where, say
from headscope.cli._study import capturing, loaded, parse_texts


def headvis(
    *, texts: Path, out: Path, model: ModelOptions | None = None, stack: str | None = None
) -> None:
    """Write a tree of HeadVis: metrics of every head, and whole texts with the largest weights of
    each row, for its front end, the importers of Neuronpedia and headscope serve.

    One process writes the tree, as a whole. It holds whole texts, under their licence.

    Args:
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b. Its name is that of the data set.
        out: Write the tree to this folder, which may not exist or must be empty.
        model: Model, and how it runs.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
    """
    from headscope.headvis import check_tree_folder, read_headvis, write_headvis

    check_tree_folder(out)
    options = model or ModelOptions()
    given = parse_texts(None, None, texts)
    model_, tokenizer = loaded(given, options)
    how = capturing(given, options)
    folder = write_headvis(out, model_, tokenizer, given, dataset=texts.stem, stack=stack, **how)
    note_where(model_)
    say(read_headvis(folder).summary)
    say(f"Wrote {folder.resolve()}; it holds whole texts, under their licence")
