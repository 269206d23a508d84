"""headscope relations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._asking import AskingOptions
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, loaded, tell


def relations(
    *,
    treebank: Path,
    model: ModelOptions | None = None,
    sentences: int | None = None,
    text: Literal["words", "written"] = "words",
    trees: bool = True,
    universal: Annotated[bool, Parameter(negative="")] = False,
    asking: AskingOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell which head looks along each dependency relation, beside position alone and a choice that
    was held out.

    The table has one line for each relation: the best head and direction on all sentences, the best
    fixed offset, and both chosen on one half of the documents (# newdoc) and measured on the other,
    both ways over several splits, with interval, spread and corrected test.

    Args:
        treebank: A file in CoNLL-U, such as en_ewt-ud-dev.conllu.
        model: Which model, and what it reads.
        sentences: How many of the first sentences are read; by default all.
        text: Whether it reads the words joined by spaces, or the text as it was written.
        trees: Whether the best trees are decoded, too, from the gold root.
        universal: Leave off subtypes of relations, nsubj for nsubj:pass.
        asking: How heads are asked, and how the best one is told.
        out: Write every relation by every score to this file (.csv, .json or .parquet), too.
        plot: Draw the held-out accuracies beside their baselines to this file (.svg, .pdf or .png),
            too.
    """
    from headscope.linguistics import read_treebank
    from headscope.studies import relations as relations_of

    check_results(out, plot, None)
    bank = read_treebank(treebank)
    bank = bank if sentences is None else bank.take(sentences)
    options = model or ModelOptions()
    left_out.begin("sentence", len(bank))
    result = relations_of(
        *loaded([], options),
        bank,
        text=text,
        trees=trees,
        universal=universal,
        **asdict(asking or AskingOptions()),
        truncate=options.truncate,
        allow_unfit=options.allow_unfit,
        **options.read_many(),
        progress=True,
    )
    left_out.take(result.left_out)
    tell(result, out, plot)
