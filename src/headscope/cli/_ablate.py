"""headscope ablate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._layers_and_heads import hyphenated
from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, check_writable, note_where, quiet, say, status
from headscope.cli._study import check_results, tell
from headscope.errors import FileError, RunError

WRITING = ("next-word", "minimal-pairs", "repeats", "translation")


def ablate(
    *,
    task: Annotated[str, Parameter(converter=hyphenated)],
    data: Path | None = None,
    model: ModelOptions | None = None,
    by: Annotated[
        Literal["zero", "uniform", "mean-attention", "mean-output", "mean"],
        Parameter(converter=hyphenated),
    ] = "zero",
    single_heads: bool = True,
    whole_layers: bool = True,
    stack: str | None = None,
    screen: Literal["gradient"] | None = None,
    screen_top: int | None = None,
    limit: int | None = None,
    threads: int | None = None,
    resume: Path | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    save: Path | None = None,
    share: bool = True,
    masked: Annotated[bool | None, Parameter(negative="--causal")] = None,
    confidence: float = 0.95,
    alpha: float = 0.05,
    correction: Literal["holm", "benjamini-hochberg"] = "holm",
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    corpus: CorpusOptions | None = None,
) -> None:
    """Measure how much each head and each layer matters for a task, by disabling one after the
    other.

    Tasks: next-word, masked-word (texts), classification (texts or pairs with a label), likeness
    (similarity of pairs with a label or score; by embeddings), minimal-pairs (sentence_good,
    sentence_bad), translation (source, target; summaries too), repeats (repeated random tokens), or
    file.py:function, which is called with model and tokenizer. The table lists the change of the
    score without each head, with an interval over examples and a paired test corrected for the
    number of heads.

    Args:
        task: Name of the task; next-word and next_word are the same.
        data: Annotated data: a file of examples: .jsonl, .csv, .tsv, .parquet, or .txt with one
            text per line. Fields are named as in GLUE, BLiMP or our own files: text, text_b, label;
            sentence1, sentence2; premise, hypothesis ... The field group names the document of an
            example, so that intervals and tests are over documents.
        model: Model, and how it runs.
        by: What replaces what is disabled: zeros (zero; Michel et al. 2019), uniform attention
            (uniform; Kovaleva et al. 2019), a head's mean attention over the examples by position
            (mean-attention), or its mean output over examples and tokens, the usual mean ablation
            (mean-output).
        single_heads: Disable each head on its own.
        whole_layers: Disable each layer as a whole.
        stack: Attention stack of the model, such as decoder or cross; by default all.
        screen: Disable only the heads with the largest effect by a first estimate from one backward
            pass (gradient); needs a score that has a gradient, such as a log likelihood.
        screen_top: How many heads a screen leaves; by default 10.
        limit: Maximum number of examples to read.
        threads: Number of threads that PyTorch uses.
        resume: Save intermediate results to this file (.safetensors), and continue from it if it
            exists.
        out: Write the table of heads and layers to this file (.csv, .json or .parquet), besides
            printing it; or keep the finished parts of a run in this folder, so that the same
            command resumes after them. A run scores examples one by one; file.py:function is then
            called with model, tokenizer and a list of one example.
        plot: Draw the score without each head and layer to this file (.svg, .pdf or .png).
        save: Save the result to this file (.safetensors), for headscope.load.
        share: Compute the layers below the disabled one only once.
        masked: For minimal pairs: whether the model predicts masked words (--masked) or the next
            word (--causal).
        confidence: Confidence level of the intervals.
        alpha: Significance level, over all tests together.
        correction: Correction for multiple tests: holm controls the family-wise error rate,
            benjamini-hochberg the false discovery rate.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        corpus: Who scores the examples.
    """
    from headscope.tasks import check_task, read_rows

    table, run_options = table_of(out), corpus or CorpusOptions()
    check_results(table, plot, data)
    _check_files(data, resume, save)
    if ":" not in task:
        # Mistakes in the task's name or file show now, before PyTorch is imported.
        check_task(task, data)
        if data is not None:
            read_rows(data)
    options = model or ModelOptions()
    options.check()
    chosen: dict[str, Any] = {
        "heads": single_heads,
        "layers": whole_layers,
        "stack": stack,
        "screen": screen,
        "top": screen_top,
        "resume": resume,
        "share": share,
    }
    evidence: dict[str, Any] = {"confidence": confidence, "alpha": alpha, "correction": correction}
    chosen |= evidence | {"by": by.replace("-", " "), "random_weights": random_weights}
    given = _GivenTask(task, data, limit, masked)
    if run_options.asks(out):
        if threads is not None or options.target_tokenizer is not None:
            raise RunError(
                "--threads and --target-tokenizer are not for runs in parts, whose workers have "
                "one thread each; leave them out, or --out FOLDER, --workers and --dask"
            )
        with run_options.running(out) as how:
            result = _in_parts(given, options, chosen | how)
    else:
        result = _at_once(given, options, chosen, threads=threads)
    tell(result, table, plot)
    if save is not None:
        say(f"Wrote {result.save(save).resolve()}")


@dataclass(frozen=True)
class _GivenTask:
    """The task that was asked for.

    Args:
        name: of the task, or ``file.py:function``.
        data: file of its examples.
        limit: how many of them are read at most.
        masked: for minimal pairs, whether the model predicts masked words.
    """

    name: str
    data: Path | None
    limit: int | None
    masked: bool | None


def _in_parts(given: _GivenTask, options: ModelOptions, chosen: dict[str, Any]) -> Any:
    """The ablation as a run over the examples of the file."""
    rows = _rows_of(given)
    left_out.begin("example", of=len(rows))
    with status("Loading PyTorch and transformers"):
        from headscope.studies import ablate as ablated
    reading: dict[str, Any] = {"truncate": options.truncate, "allow_unfit": options.allow_unfit}
    reading |= options.loading | {"masked": given.masked, "texts": rows}
    return ablated(options.model, given.name, **reading, **chosen)


def _rows_of(given: _GivenTask) -> list[Any]:
    from headscope.tasks import read_rows, repeated_runs

    if given.name == "repeats":
        return repeated_runs(given.limit) if given.limit else repeated_runs()
    if given.data is None:
        raise RunError("A run in parts needs a file of examples; give --data")
    return read_rows(given.data)[: given.limit]


def _at_once(
    given: _GivenTask, options: ModelOptions, chosen: dict[str, Any], *, threads: int | None
) -> Any:
    """The ablation of all examples, held in this process."""
    with status("Loading PyTorch and transformers"):
        import torch

        from headscope.studies import ablate as ablated
        from headscope.tasks import named_task
    if threads is not None:
        torch.set_num_threads(threads)
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        loaded, tokenizer = _loaded(given.name, options, masked=given.masked)
    note_where(loaded)
    reading = _reading(given.name, options, batch=options.batch_size or 16, masked=given.masked)
    left_out.begin("example")
    limit = given.limit
    made = named_task(given.name, loaded, tokenizer, given.data, limit=limit, **reading)
    left_out.of = len(made.order or ()) + len(made.left_out)
    chosen |= {"progress": True, "allow_unfit": options.allow_unfit, "on_error": left_out.number}
    return ablated(loaded, made, **chosen)


def _check_files(data: Path | None, resume: Path | None, save: Path | None) -> None:
    """Raise where files do not exist or could not be written, before any long work."""
    if data is not None and not data.is_file():
        raise FileError(f"{data} does not exist")
    for path in (resume, save):
        if path is not None:
            check_writable(path)
    if save is not None and save.suffix != ".safetensors":
        raise FileError(f"Expected a .safetensors file for --save, got {save}")


def _reading(
    task: str, options: ModelOptions, *, batch: int, masked: bool | None
) -> dict[str, Any]:
    """The options of the command that the task takes, too."""
    from headscope.tasks import NAMES

    # A function of the user's own gets model and tokenizer only.
    reading: dict[str, Any] = {"batch": batch} if ":" not in task else {}
    if task == "minimal-pairs":
        reading["masked"] = masked
    if task == "translation" and options.target_tokenizer is not None:
        from headscope.capturing import load_tokenizer

        reading["target_tokenizer"] = load_tokenizer(options.target_tokenizer)
    if task in NAMES and task != "repeats":
        reading |= {
            "truncate": options.truncate,
            "allow_unfit": options.allow_unfit,
            "on_error": left_out.number,
        }
    return reading


def _loaded(task: str, options: ModelOptions, *, masked: bool | None) -> tuple[Any, Any]:
    """The model with the head that the task needs, and its tokenizer."""
    from headscope.capturing import (
        load_bare_model,
        load_classifier,
        load_masked_model,
        load_tokenizer,
    )

    name, loading = options.model, options.loading
    tokenizer = load_tokenizer(name, **loading)
    # Where the user does not say, a tokenizer with a mask token means a masked model.
    is_masked = tokenizer.mask_token_id is not None if masked is None else masked
    if task == "masked-word" or (task == "minimal-pairs" and is_masked):
        return load_masked_model(name, allow_unfit=options.allow_unfit, **loading), tokenizer
    if task == "classification":
        return load_classifier(name, allow_unfit=options.allow_unfit, **loading), tokenizer
    writes = task in WRITING
    return load_bare_model(
        name, writes=writes, allow_unfit=options.allow_unfit, **loading
    ), tokenizer
