"""headscope atlas --format headvis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.cli._corpus import CorpusOptions
from headscope.cli._run import ModelOptions, note_where, say
from headscope.cli._study import capturing, loaded, parse_texts
from headscope.errors import HeadscopeError


def write_tree(texts: Path, out: Path, options: ModelOptions, stack: str | None) -> None:
    """Write a tree of HeadVis of a model over the texts of a file.

    Args:
        texts: the file, which gives the tree the name of its data set.
        out: the folder to write.
        options: model, and how it runs.
        stack: which of its attention; None for the first.

    Raises:
        HeadscopeError: whatever is wrong with the texts, the model or the folder.
    """
    from headscope.headvis import check_tree_folder, read_headvis, write_headvis

    check_tree_folder(out)
    given = parse_texts(None, None, texts)
    model, tokenizer = loaded(given, options)
    how = capturing(given, options)
    folder = write_headvis(out, model, tokenizer, given, dataset=texts.stem, stack=stack, **how)
    note_where(model)
    say(read_headvis(folder).summary)
    say(f"Wrote {folder.resolve()}; it holds whole texts, under their licence")


def check_of_tree(judged: Mapping[str, tuple[Any, Any]], corpus: CorpusOptions | None) -> None:
    """Raise where an option of an atlas is given for a tree, which has no labels and is written by
    one process.

    Args:
        judged: by its name on the command line each option as it was given, and its default.
        corpus: who measures the texts.

    Raises:
        HeadscopeError: naming it.
    """
    if corpus not in (None, CorpusOptions()):
        raise HeadscopeError(
            "A tree of HeadVis is written by one process; leave out --workers, --dask and "
            "--part-size"
        )
    for name, (value, default) in judged.items():
        if value != default:
            raise HeadscopeError(f"A tree of HeadVis has no labels and no norms; leave out {name}")
