"""headscope probe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._layers_and_heads import hyphenated, layer_number
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, note_where, quiet, status
from headscope.cli._study import check_results, tell
from headscope.errors import RecordError, TextError


def probe(
    *,
    treebank: Path,
    probe: Annotated[
        Literal["attention", "attention-words", "relation", "structural", "edge"],
        Parameter(name=["--probe"], converter=hyphenated),
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
    corpus: CorpusOptions | None = None,
) -> None:
    """Train syntactic probes on attention or hidden states, and compare them with controls.

    Sentences are split: 70 % for training, 10 % for model selection, 20 % for testing. Controls are
    the majority or best offset, distances, the control task (random labels per word type),
    embeddings, and random weights.

    Args:
        treebank: A treebank in CoNLL-U, such as en_ewt-ud-dev.conllu.
        probe: attention or attention-words: each word's syntactic head from the attention of all
            heads (Clark et al. 2019); relation: whether and how two words are related, from their
            attention (Coenen et al. 2019); structural: tree distances and depths from hidden states
            (Hewitt and Manning 2019); edge: part of speech and dependency from a mix of all layers
            (Tenney et al. 2019).
        model: Model, and how it runs.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        sentences: How many sentences are read; by default all. A random sample, by the first seed.
        vectors: Word vectors in GloVe's text format for attention-words; by default the model's
            input embeddings.
        layer: Layer number, from 0; -1 is the last. For the structural probe, where 0 is the
            embeddings; by default all layers, and the best is reported.
        rank: Rank of the structural probe.
        epochs: Maximum number of epochs; the best on the validation sentences is kept.
        seeds: Random seeds: a probe is trained with each, and scores are means. The first one also
            samples and splits the sentences.
        confidence: Confidence level of the intervals.
        out: Write every score with its interval to this file (.csv, .json or .parquet), besides
            printing it; or keep what is read of the sentences in this folder, in parts, so that the
            same command resumes after them.
        plot: Draw the probe next to its controls to this file (.svg, .pdf or .png).
        corpus: Who reads the sentences.
    """
    options = model or ModelOptions()
    if options.target is not None or options.target_tokenizer is not None or options.truncate:
        raise TextError(
            "--target, --target-tokenizer and --truncate do not apply to a treebank; remove them"
        )
    running, table = corpus or CorpusOptions(), table_of(out)
    check_results(table, plot, None)
    options.check()
    from headscope.linguistics import read_treebank

    with status("Reading the treebank"):
        bank = read_treebank(treebank)
    left_out.begin("sentence")
    chosen: dict[str, Any] = {
        "kind": probe,
        "random_weights": random_weights,
        "sentences": sentences,
        "vectors": vectors,
        "rank": rank,
        "epochs": epochs,
        "seeds": seeds,
        "confidence": confidence,
        "allow_unfit": options.allow_unfit,
        "progress": True,
    }
    if running.asks(out):
        if layer is not None and layer < 0:
            raise RecordError(f"Expected a layer from 0 on for --layer in a run, got {layer}")
        with status("Loading PyTorch and transformers"):
            from headscope.studies import probe as probe_of
        with running.running(out) as more:
            how = chosen | options.loading | more
            result = probe_of(options.model, None, bank, layer=layer, **how)
        tell(result, table, plot)
        return
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_model
        from headscope.studies import probe as probe_of
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        loaded = load_model(options.model, **options.loading)
    note_where(loaded[0])
    # Layer 0 is the embeddings, so that there is one more than the model has layers.
    if layer is not None:
        layer = layer_number(layer, range(loaded[0].config.num_hidden_layers + 1))
    result = probe_of(*loaded, bank, layer=layer, on_error=left_out.note, **chosen)
    tell(result, table, plot)
