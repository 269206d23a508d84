"""Commands that change heads of a model: effects on one input, ablation over a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli import _files as files
from headscope.cli import _run as run
from headscope.cli._run import Input, ModelOptions, left_out, load, say
from headscope.cli._signature import hyphenated, made_from
from headscope.cli._study import Study
from headscope.errors import FileError, InterventionError, RunError

WRITING = ("next-word", "minimal-pairs", "repeats", "translation")
"""Tasks for which a model must write."""


@made_from("headscope.studies:effect", takes="stack")
def effect(
    asked: Input,
    *,
    zero: tuple[str, ...] = (),
    uniform: tuple[str, ...] = (),
    control: tuple[str, ...] = (),
    results: files.Results = files.Results(),
    **options: Any,
) -> None:
    """Measure what disabling heads changes.

    headscope effect "The rabbit hopped." --zero 1-8

    headscope effect "The rabbit hopped." --uniform 2-0,3 --control 2-1 2-2 --out effect.html

    Args:
        asked: What is read, and the model, loaded with the head that was saved with it.
        zero: Heads whose output is set to zero: layer and heads, such as 2-0, 2-0,3,5, or 2 for all
            heads of layer 2.
        uniform: Heads that attend uniformly; written as for --zero.
        control: Heads that are disabled in the same way, one after the other, to show what any such
            change does; written as for --zero.
        results: Where the result is written.
        **options: The stack.
    """
    results.check()
    zeroed, evened, controls = (files.parse_places(each) for each in (zero, uniform, control))
    if not zero and not uniform:
        raise InterventionError(
            "Expected heads to disable with --zero or --uniform, such as --zero 2-0"
        )
    given, model = asked.parsed(), asked.model
    model.check()
    with run.status("Loading PyTorch and transformers"):
        from headscope.interventions import Uniform, Zero
        from headscope.studies import effect as effect_of
    reads: dict[str, Any] = model.fitting | {"truncate": model.truncate}
    if model.target_tokenizer:
        reads["target_tokenizer"] = model.tokenizer_of_target()

    def changes(kind: Any, places: list[tuple[int, list[int]]]) -> list[Any]:
        return [kind(layer=layer, heads=heads or None, **options) for layer, heads in places]

    reads["interventions"] = [*changes(Zero, zeroed), *changes(Uniform, evened)]
    # Controls change other heads in the same way as the heads in question.
    reads["controls"] = [[each] for each in changes(Zero if zero else Uniform, controls)]
    with run.status("Running the model"), run.quiet():
        result = effect_of(model.model, None, given, **reads)
    say(str(result))
    facts = result.comparison.a.model
    say(f"{facts.name} ran on {facts.ran}")
    results.write(result)


@made_from(
    "headscope.studies:ablate",
    takes="+single_heads=heads +whole_layers=layers +share stack screen screen_top=top resume "
    "confidence alpha correction random_weights",
)
def ablate(
    asked: Study,
    *,
    task: Annotated[str, Parameter(converter=hyphenated)],
    data: Path | None = None,
    by: Annotated[
        Literal["zero", "uniform", "mean-attention", "mean-output", "mean"],
        Parameter(converter=hyphenated),
    ] = "zero",
    limit: int | None = None,
    threads: int | None = None,
    masked: Annotated[bool | None, Parameter(negative="--causal")] = None,
    **options: Any,
) -> None:
    """Measure how much each head matters for a task.

    headscope ablate --task next-word --data texts.txt --model path/to/a/gpt2

    headscope ablate --task likeness --data pairs.jsonl --no-whole-layers --plot heads.svg

    Args:
        asked: The model, and where the result is written.
        task: Name of the task: next-word, masked-word (texts), classification (texts or pairs with
            a label), likeness (similarity of pairs with a label or score; by embeddings),
            minimal-pairs (sentence_good, sentence_bad), translation (source, target; summaries
            too), repeats (repeated random tokens), or file.py:function, which is called with model
            and tokenizer, and of a run in parts with a list of one example, too.
        data: Annotated data: a file of examples: .jsonl, .csv, .tsv, .parquet, or .txt with one
            text per line. Fields are named as in GLUE, BLiMP or our own files: text, text_b, label;
            sentence1, sentence2; premise, hypothesis ... The field group names the document of an
            example, so that intervals and tests are over documents.
        by: What replaces what is disabled: zeros (zero; Michel et al. 2019), uniform attention
            (uniform; Kovaleva et al. 2019), a head's mean attention over the examples by position
            (mean-attention), or its mean output over examples and tokens, the usual mean ablation
            (mean-output).
        single_heads: Disable each head on its own.
        whole_layers: Disable each layer as a whole.
        limit: Maximum number of examples to read.
        threads: Number of threads that PyTorch uses.
        share: Compute the layers below the disabled one only once.
        masked: For minimal pairs: whether the model predicts masked words (--masked) or the next
            word (--causal).
        stack: Attention stack of the model, such as decoder or cross; by default all.
        **options: Of `headscope.ablate`.
    """
    from headscope.storage import read_rows
    from headscope.tasks import check_task

    if data is not None and not data.is_file():
        raise FileError(f"{data} does not exist")
    if "resume" in options:
        files.check_writable(options["resume"])
    if ":" not in task:
        # Mistakes in the task's name or file show now, before PyTorch is imported.
        check_task(task, data)
        if data is not None:
            read_rows(data)
    asked.model.check()
    options["by"] = by.replace("-", " ")
    if not asked.in_parts:
        if threads is not None:
            import torch

            torch.set_num_threads(threads)
        network, made = _whole_task(task, asked.model, data, limit=limit, masked=masked)
        from headscope.studies import ablate as ablated

        options |= {"allow_unfit": asked.model.allow_unfit, "on_error": left_out.number}
        result = ablated(network, made, progress=True, **options)
    elif threads is not None or asked.model.target_tokenizer is not None:
        raise RunError(
            "--threads and --target-tokenizer are not for runs in parts, whose workers have one "
            "thread each; leave them out, or --out FOLDER, --workers and --dask"
        )
    else:
        rows = _rows_of(task, data, limit)
        with asked.reading(rows, what="example") as (source, how):
            from headscope.studies import ablate as ablated

            how.pop("batch_size", None)
            result = ablated(source[0], task, masked=masked, texts=rows, **how, **options)
    asked.tell(result)


def _rows_of(task: str, data: Path | None, limit: int | None) -> list[Any]:
    """The examples of a run in parts."""
    from headscope.storage import read_rows
    from headscope.tasks import repeated_runs

    if task == "repeats":
        return repeated_runs(limit) if limit else repeated_runs()
    if data is None:
        raise RunError("A run in parts needs a file of examples; give --data")
    return read_rows(data)[:limit]


def _whole_task(
    task: str, model: ModelOptions, data: Path | None, *, limit: int | None, masked: bool | None
) -> tuple[Any, Any]:
    """The model, and the task on all examples, held in this process."""
    network, tokenizer = _with_head(task, model, masked=masked)
    from headscope.tasks import NAMES, named_task

    # A function of the user's own gets model and tokenizer only.
    reads: dict[str, Any] = {"batch": model.batch_size or 16} if ":" not in task else {}
    if task == "minimal-pairs":
        reads["masked"] = masked
    if task == "translation":
        reads["target_tokenizer"] = model.tokenizer_of_target()
    if task in NAMES and task != "repeats":
        reads |= {"truncate": model.truncate, "allow_unfit": model.allow_unfit}
        reads["on_error"] = left_out.number
    left_out.begin("example")
    made = named_task(task, network, tokenizer, data, limit=limit, **reads)
    left_out.of = len(made.order or ()) + len(made.left_out)
    return network, made


def _with_head(task: str, model: ModelOptions, *, masked: bool | None) -> tuple[Any, Any]:
    """The model with the head that the task needs, and its tokenizer."""
    tokenizer = load("load_tokenizer", model.model, **model.loading)
    # Where the user does not say, a tokenizer with a mask token means a masked model.
    is_masked = tokenizer.mask_token_id is not None if masked is None else masked
    loading, how = model.fitting, "load_bare_model"
    if task == "masked-word" or (task == "minimal-pairs" and is_masked):
        how = "load_masked_model"
    elif task == "classification":
        how = "load_classifier"
    else:
        loading["writes"] = task in WRITING
    return load(how, model.model, **loading), tokenizer
