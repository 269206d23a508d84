"""headscope probe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, note_where, quiet, status
from headscope.cli._study import check_results, tell
from headscope.errors import TextError


def probe(
    *,
    treebank: Path,
    probe: Annotated[
        Literal["attention", "attention-words", "relation", "structural", "edge"],
        Parameter(name=["--probe"]),
    ] = "attention",
    model: ModelOptions | None = None,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    sentences: int | None = None,
    vectors: Path | None = None,
    layer: int | None = None,
    rank: int = 64,
    epochs: int | None = None,
    seeds: tuple[int, ...] = (0,),
    confidence: float = 0.95,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell what of syntax can be learnt from attention or hidden states, beside what controls can.

    Sentences are divided: 70 % to learn from, 10 % to choose by, 20 % to report on. Controls are
    the majority or best offset, distances, the control task (labels drawn for each word type),
    embeddings, and random weights.

    Args:
        treebank: A CoNLL-U file.
        probe: attention or attention-words: each word's head from all heads' attention (Clark
            2019); relation: whether and which relation, from the attention of two words (Coenen
            2019); structural: distances and depths in the tree from hidden states (Hewitt and
            Manning 2019); edge: part of speech and dependency from a mix of all layers (Tenney
            2019).
        model: Which model.
        random_weights: Probe the same architecture with random weights, too.
        sentences: How many sentences, drawn by the first seed; by default all.
        vectors: Word vectors in GloVe's text format for attention-words; by default the model's
            input embeddings.
        layer: Which layer structural looks at, 0 the embeddings; by default all, and the best is
            told.
        rank: Of the structural probe.
        epochs: At most; the best on sentences set aside is kept.
        seeds: Probes are trained with each, scores are means; the first draws and divides
            sentences.
        confidence: Of the intervals.
        out: Write every score with its interval to this file (.csv, .json or .parquet) too.
        plot: Draw the probe beside its controls to this file (.svg, .pdf or .png) too.
    """
    options = model or ModelOptions()
    if options.target is not None or options.target_tokenizer is not None or options.truncate:
        raise TextError(
            "--target, --target-tokenizer and --truncate belong to texts; sentences are read whole"
        )
    check_results(out, plot, None)
    options.check()
    from headscope.linguistics import read_treebank

    with status("Reading the treebank"):
        bank = read_treebank(treebank)
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_model
        from headscope.studies import probe as probe_of
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        loaded = load_model(options.model, **options.loading)
    note_where(loaded[0])
    left_out.begin("sentence")
    result = probe_of(
        *loaded,
        bank,
        kind=probe,
        random_weights=random_weights,
        sentences=sentences,
        vectors=vectors,
        layer=layer,
        rank=rank,
        epochs=epochs,
        seeds=seeds,
        confidence=confidence,
        progress=True,
        allow_unfit=options.allow_unfit,
        on_error=left_out.note,
    )
    tell(result, out, plot)
