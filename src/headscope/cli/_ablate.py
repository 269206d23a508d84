"""headscope ablate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._left_out import left_out
from headscope.cli._run import ModelOptions, check_place, note_where, quiet, say, status
from headscope.cli._study import check_results, tell
from headscope.errors import FileError

WRITING = ("next-word", "minimal-pairs", "repeats", "translation")


def ablate(
    *,
    task: str,
    data: Path | None = None,
    model: ModelOptions | None = None,
    by: Literal["zero", "uniform", "mean-attention", "mean-output", "mean"] = "zero",
    heads: bool = True,
    layers: bool = True,
    stack: str | None = None,
    limit: int | None = None,
    batch: Annotated[int | None, Parameter(show=False)] = None,
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
) -> None:
    """Tell what each head and each layer matters to a task, by disabling one after the other.

    Tasks: next-word, masked-word (texts), classification (texts or pairs with a label), likeness
    (pairs with a label or score; by embeddings), minimal-pairs (sentence_good, sentence_bad),
    translation (source, target; summaries too), repeats (random tokens said again), or
    file.py:function, which is called with model and tokenizer. The table has the change of the
    score without each head, with an interval over examples and a paired test corrected for their
    number.

    Args:
        task: Which task.
        data: A file of examples: .jsonl, .csv, .tsv, .parquet, or .txt with a text on each line.
            Fields are named as in GLUE, BLiMP or our own files: text, text_b, label; sentence1,
            sentence2; premise, hypothesis ... The field group names the document of an example, so
            that intervals and tests are over documents.
        model: Which model, with the head that the task needs.
        by: What disabled heads do: hand on zeros (Michel et al. 2019), look at everything alike
            (Kovaleva et al. 2019), attend as they do on average over the examples by position
            (mean-attention), or hand on their mean output over examples and tokens, the field's
            mean ablation (mean-output).
        heads: Disable single heads.
        layers: Disable whole layers.
        stack: Of which stack of the model, such as decoder; all by default.
        limit: How many examples are read at most.
        batch: The former name of --batch-size, of examples here.
        threads: How many threads torch takes.
        resume: Keep every value in this file as it is found; go on from it where it is there
            already.
        out: Write the row of every head and layer to this file (.csv, .json or .parquet) too.
        plot: Draw heads and layers around the intact score to this file (.svg, .pdf or .png) too.
        save: Keep the scores of all examples in this file (.safetensors), for headscope.load.
        share: Compute layers below the changed one once.
        masked: For minimal pairs: whether the model guesses hidden words, or the next one.
        confidence: Of the intervals.
        alpha: Chance of a false change that is accepted, over all heads.
        correction: For trying many heads; holm keeps any false change away, benjamini-hochberg
            their share.
        random_weights: Do the same to this architecture with random weights, too.
    """
    from headscope.tasks import check_task, read_rows

    check_results(out, plot, data)
    _check_files(data, resume, save)
    if ":" not in task:
        check_task(task, data)
        if data is not None:
            read_rows(data)
    options = model or ModelOptions()
    options.check()
    with status("Loading PyTorch and transformers"):
        import torch

        from headscope.studies import ablate as ablated
        from headscope.tasks import named_task
    if threads is not None:
        torch.set_num_threads(threads)
    with status(f"Loading {options.model or 'the demo model'}"), quiet():
        loaded, tokenizer = _loaded(task, options, masked=masked)
    note_where(loaded)
    reading = _reading(task, options, batch=options.batch_size or batch or 16, masked=masked)
    left_out.begin("example")
    made = named_task(task, loaded, tokenizer, data, limit=limit, **reading)
    left_out.of = len(made.order or ()) + len(made.left_out)
    chosen: dict[str, Any] = {
        "heads": heads,
        "layers": layers,
        "stack": stack,
        "resume": resume,
        "share": share,
    }
    evidence: dict[str, Any] = {"confidence": confidence, "alpha": alpha, "correction": correction}
    chosen |= {"random_weights": random_weights, "progress": True}
    chosen |= {"allow_unfit": options.allow_unfit, "on_error": left_out.number}
    result = ablated(loaded, made, by=by.replace("-", " "), **chosen, **evidence)
    tell(result, out, plot)
    if save is not None:
        say(f"Wrote {result.save(save).resolve()}")


def _check_files(data: Path | None, resume: Path | None, save: Path | None) -> None:
    """Raise where files are not there or could not be written, before any long work."""
    if data is not None and not data.is_file():
        raise FileError(f"{data} is not there")
    for path in (resume, save):
        if path is not None:
            check_place(path)
    if save is not None and save.suffix not in (".safetensors", ".npz"):
        raise FileError(f"--save is {save}; scores are kept as .safetensors")


def _reading(
    task: str, options: ModelOptions, *, batch: int, masked: bool | None
) -> dict[str, Any]:
    """The options that a task takes of those that say how it is read."""
    from headscope.tasks import NAMES

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
    guesses = task == "minimal-pairs" and (
        tokenizer.mask_token_id is not None if masked is None else masked
    )
    if task == "masked-word" or guesses:
        return load_masked_model(name, allow_unfit=options.allow_unfit, **loading), tokenizer
    if task == "classification":
        return load_classifier(name, allow_unfit=options.allow_unfit, **loading), tokenizer
    writes = task in WRITING
    return load_bare_model(
        name, writes=writes, allow_unfit=options.allow_unfit, **loading
    ), tokenizer
