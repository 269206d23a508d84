"""headscope relations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._annotated_texts import AnnotatedTextOptions
from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, tell


def relations(
    *,
    treebank: Path,
    model: ModelOptions | None = None,
    sentences: int | None = None,
    read: Literal["words", "written"] = "words",
    trees: bool = True,
    universal: Annotated[bool, Parameter(negative="")] = False,
    asking: AnnotatedTextOptions | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    corpus: CorpusOptions | None = None,
) -> None:
    """Find the heads that attend along each dependency relation, with position baselines and
    held-out choice.

    The table has one line per relation: the best head and direction on all sentences, the best
    fixed offset, and both chosen on one half of the documents (# newdoc) and measured on the other
    half, over several splits, with interval, spread and corrected test.

    Args:
        treebank: A treebank in CoNLL-U, such as en_ewt-ud-dev.conllu.
        model: Model, and how it runs.
        sentences: How many sentences are read; by default all. The first ones.
        read: Whether the model reads the words joined by spaces, or the text as it was written.
        trees: Whether the best trees are decoded, too, from the gold root.
        universal: Ignore subtypes of relations: nsubj for nsubj:pass.
        asking: How heads are scored, and how the best one is chosen.
        out: Write every relation with its scores to this file (.csv, .json or .parquet), besides
            printing it; or keep the finished parts of a run in this folder, so that the same
            command resumes after them.
        plot: Draw the held-out accuracies next to their baselines to this file (.svg, .pdf or
            .png).
        corpus: Who measures the sentences.
    """
    from headscope.linguistics import read_treebank
    from headscope.studies import relations as relations_of

    table = table_of(out)
    check_results(table, plot, None)
    bank = read_treebank(treebank)
    bank = bank if sentences is None else bank.take(sentences)
    left_out.begin("sentence", len(bank))
    how_asked = (asking or AnnotatedTextOptions()).options
    running = corpus or CorpusOptions()
    with running.reading(model or ModelOptions(), out) as (source, how):
        result = relations_of(
            *source, bank, text=read, trees=trees, universal=universal, **how_asked, **how
        )
    if not running.asks(out):
        left_out.take(result.left_out)
    tell(result, table, plot)
