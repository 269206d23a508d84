"""headscope atlas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, is_folder
from headscope.cli._run import ModelOptions, say
from headscope.cli._study import parse_texts
from headscope.errors import FileError

PAGE = "page"
"""Folder of the page in that of the run."""


def atlas(
    *,
    texts: Path,
    out: Path,
    model: ModelOptions | None = None,
    stack: str | None = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    correction: Literal["holm", "benjamini-hochberg"] = "holm",
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    battery: bool = True,
    margin: float = 0.1,
    norms: Annotated[bool, Parameter(negative="")] = False,
    corpus: CorpusOptions | None = None,
) -> None:
    """Make an atlas of a model's heads over many texts: labels with evidence, where attention goes,
    between which words, and examples.

    The folder keeps the finished parts, so that the same command resumes after them. When all are
    done it holds result.safetensors, for headscope.load, and page/, which opens by double click and
    which any web server can host; `headscope serve` shows it too.

    Args:
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        out: Write the parts of the run and the atlas to this folder.
        model: Model, and how it runs.
        stack: Attention stack of the model, such as decoder or cross; by default the first.
        confidence: Confidence level of the intervals.
        alpha: Significance level, over all tests together.
        correction: Correction for multiple tests: holm controls the family-wise error rate,
            benjamini-hochberg the false discovery rate.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        margin: How far above 0 the interval of score minus baseline must lie.
        norms: Count, too, where what each head adds comes from: attention weighted by the norm of
            the vector that each token adds. Takes longer.
        corpus: Who measures the texts.
    """
    if not is_folder(out):
        raise FileError(f"Expected a folder for --out, got {out}; an atlas is several files")
    from headscope.studies import atlas as atlas_of

    given, options = parse_texts(None, None, texts), model or ModelOptions()
    judged: dict[str, Any] = {
        "stack": stack,
        "confidence": confidence,
        "alpha": alpha,
        "correction": correction,
        "random_weights": random_weights,
        "battery": battery,
        "margin": margin,
        "norms": norms,
    }
    reading = (corpus or CorpusOptions()).reading(options, out, given=given, texts=texts)
    with reading as (source, how):
        result = atlas_of(*source, given, **how, **judged)
    say(str(result))
    say(f"Wrote {result.view().save(out / PAGE).resolve()}")
