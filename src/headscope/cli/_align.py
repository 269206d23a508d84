"""headscope align."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add as added
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, check_writable, quiet, say, status
from headscope.cli._study import check_results, loaded, tell
from headscope.errors import FileError, ModelError, TextError

if TYPE_CHECKING:
    from headscope.studies import AlignedPair, AlignmentStudy

KEPT = ".safetensors"
Files = Annotated[tuple[Path, ...], Parameter(consume_multiple=True, negative="")]


def align(
    *,
    pairs: Files = (),
    model: ModelOptions | None = None,
    from_one: Annotated[bool, Parameter(negative="")] = False,
    special: bool = True,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    add: Files = (),
    resume: Path | None = None,
    save: Path | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    corpus: CorpusOptions | None = None,
) -> None:
    """Evaluate word alignment by the attention of a translation model, by weight and by norm.

    Needs sentences whose word alignment is known. Prints the alignment error rate of every layer
    with its interval, for the state that writes a word and the state that reads it, next to the
    diagonal baseline; and the best layer and head, chosen on one half of the sentences (of their
    documents, if a field group names them) and measured on the other half, over several splits.

    Args:
        pairs: Files of sentences: .jsonl, .csv, .tsv or .parquet with the fields source, target and
            links (0-1 is sure, 0p1 possible, source first, words separated by white space), or .txt
            with lines of source ||| target ||| links.
        model: Model, and how it runs.
        from_one: Links count words from 1, not from 0.
        special: Whether the most attended token may be one that belongs to no word, such as the end
            of the source.
        confidence: Confidence level of the intervals.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        add: Results of other sentences, saved with --save or --resume, to add to this one.
        resume: Save intermediate results to this file (.safetensors), and continue from it if it
            exists.
        save: Save the result to this file (.safetensors), for headscope.load.
        out: Write the error rate of every layer and head to this file (.csv, .json or .parquet),
            besides printing it; or keep the finished parts of a run in this folder, so that the
            same command resumes after them (without --resume).
        plot: Draw layers and heads, by weight next to norm, to this file (.svg, .pdf or .png).
        corpus: Who measures the sentences.
    """
    from headscope.studies import AlignmentStudy, load_alignment_study, read_aligned_pairs

    running = corpus or CorpusOptions()
    check_results(table_of(out), plot, None)
    # Made only to check the confidence level before any long work.
    AlignmentStudy(confidence=confidence)
    _check_kept(resume, save)
    options = model or ModelOptions()
    parts = [load_alignment_study(path) for path in add]
    left_out.begin("sentence")
    listed = []
    for path in pairs:
        listed += read_aligned_pairs(path, first=int(from_one), on_error=left_out.note)
    if not listed and not parts:
        raise TextError("Expected a file of sentences with --pairs, or saved results with --add")
    if listed:
        chosen: dict[str, Any] = {"special": special, "random_weights": random_weights}
        chosen["allow_unfit"] = options.allow_unfit
        chosen |= {"resume": resume, "progress": True}
        parts.insert(0, _aligned(listed, options, chosen, (running, out)))
    study = reduce(added, parts)
    # Results that were added may have been saved with another level.
    study.confidence = confidence
    if not running.asks(out):
        left_out.take(study.left_out)
    tell(study, table_of(out), plot)
    if save is not None:
        study.save(save)
        say(f"Wrote {save.resolve()}")


def _check_kept(*paths: Path | None) -> None:
    """Raise where a study could not be kept, before any long work."""
    for path in paths:
        if path is None:
            continue
        check_writable(path)
        if path.suffix != KEPT:
            wanted = path.with_suffix(KEPT)
            raise FileError(f"Expected a {KEPT} file for the result, got {path}; use {wanted}")


def _aligned(
    listed: list[AlignedPair],
    options: ModelOptions,
    chosen: dict[str, Any],
    run: tuple[CorpusOptions, Path | None],
) -> AlignmentStudy:
    if options.model is None:
        raise ModelError(
            "Expected an encoder-decoder with --model; the demo model does not translate"
        )
    if options.truncate:
        raise TextError(
            "--truncate would cut words off; remove it: sentences that are too long are left out"
        )
    options.check()
    with status("Loading PyTorch and transformers"):
        from headscope.capturing import load_tokenizer
        from headscope.studies import alignment_study
    running, out = run
    if running.asks(out):
        with running.reading(options, out) as (source, how):
            target = options.target_tokenizer
            return alignment_study(*source, listed, target_tokenizer=target, **(chosen | how))
    model, tokenizer = loaded([], replace(options, target_tokenizer=None))
    if options.target_tokenizer is not None:
        with quiet():
            trusted = options.trust_remote_code
            chosen["target_tokenizer"] = load_tokenizer(
                options.target_tokenizer, trust_remote_code=trusted
            )
    return alignment_study(model, tokenizer, listed, **chosen)
