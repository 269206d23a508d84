"""Commands that study a model over annotated data: treebanks, mentions, sentence pairs, tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add as added
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from headscope.cli._files import RECORD, check_suffix, check_writable, layer_number
from headscope.cli._run import Flag, ModelOptions, Paths, left_out, load
from headscope.cli._signature import EVERY_STACK, hyphenated, made_from
from headscope.cli._study import Study
from headscope.errors import FileError, ModelError, RecordError, RunError, TextError

SCORED = "word_rows=rows random_weights stack confidence correction seed splits"
"""How heads are scored, and how the best one is chosen."""
WRITING = ("next-word", "minimal-pairs", "repeats", "translation")
Treebank = Annotated[Path, Parameter(help="A treebank in CoNLL-U, such as en_ewt-ud-dev.conllu.")]


@made_from(
    "headscope.studies:relations",
    "headscope.studies:Relations",
    takes=f"read=text trees universal {SCORED}",
    read="Whether the model reads the words joined by spaces, or the text as it was written.",
)
def relations(
    asked: Study, *, treebank: Treebank, sentences: int | None = None, **options: Any
) -> None:
    """Find the heads that attend along each dependency relation.

    headscope relations --treebank en_ewt-ud-dev.conllu

    headscope relations --treebank en_ewt-ud-dev.conllu --model path/to/a/bert --plot relations.svg

    Args:
        asked: The model, and where the result is written.
        treebank: A file in CoNLL-U.
        sentences: How many sentences are read; by default all. The first ones.
        **options: Of `headscope.relations`.
    """
    from headscope.linguistics import read_treebank

    bank = read_treebank(treebank)
    bank = bank if sentences is None else bank.take(sentences)
    asked.tell(asked.run("relations", bank, what="sentence", **options))


@made_from(
    "headscope.studies:coref",
    "headscope.studies:Coreference",
    "headscope.linguistics:read_coreference",
    takes=f"window every_window {SCORED}",
)
def coref(asked: Study, *, data: Path, **options: Any) -> None:
    """Find the heads that attend to a mention's antecedent.

    headscope coref --data litbank/coref/tsv

    headscope coref --data gap-test.tsv --model path/to/a/bert --plot coref.svg

    Args:
        asked: The model, and where the result is written.
        data: Annotated data: LitBank (a folder of .ann and .txt), GAP or Winogender (.tsv), or
            WinoBias (.txt).
        **options: Of `headscope.coref` and `headscope.linguistics.read_coreference`.
    """
    from headscope.linguistics import read_coreference, source_name

    read = {name: options.pop(name) for name in ("window", "every_window") if name in options}
    passages = read_coreference(data, **read)
    result = asked.run("coref", passages, what="passage", **options)
    result.source = source_name(data)
    asked.tell(result)


@made_from("headscope.studies:probe", takes="random_weights vectors rank epochs seeds confidence")
def probe(
    asked: Study,
    *,
    treebank: Treebank,
    probe: Annotated[
        Literal["attention", "attention-words", "relation", "structural", "edge"],
        Parameter(name=["--probe"], converter=hyphenated),
    ] = "attention",
    sentences: int | None = None,
    layer: int | None = None,
    **options: Any,
) -> None:
    """Train syntactic probes on attention or hidden states.

    headscope probe --treebank en_ewt-ud-dev.conllu

    headscope probe --treebank en_ewt-ud-dev.conllu --probe structural --seeds 0 1 2

    Args:
        asked: The model, and where the result is written.
        treebank: A file in CoNLL-U.
        probe: attention or attention-words: each word's syntactic head from the attention of all
            heads (Clark et al. 2019); relation: whether and how two words are related, from their
            attention (Coenen et al. 2019); structural: tree distances and depths from hidden states
            (Hewitt and Manning 2019); edge: part of speech and dependency from a mix of all layers
            (Tenney et al. 2019).
        sentences: How many sentences are read; by default all. A random sample, by the first seed.
        layer: Layer number, from 0; -1 is the last. For the structural probe, where 0 is the
            embeddings; by default all layers, and the best is reported.
        **options: Of `headscope.probe`.
    """
    model = asked.model
    if model.target is not None or model.target_tokenizer is not None or model.truncate:
        raise TextError(
            "--target, --target-tokenizer and --truncate do not apply to a treebank; remove them"
        )
    model.check()
    from headscope.linguistics import read_treebank

    bank = read_treebank(treebank)
    if asked.in_parts and layer is not None and layer < 0:
        raise RecordError(f"Expected a layer from 0 on for --layer in a run, got {layer}")
    left_out.begin("sentence")
    with asked.reading(what="sentence") as (source, how):
        from headscope.studies import probe as probe_of

        for name in ("truncate", "batch_size"):
            how.pop(name, None)
        # Layer 0 is the embeddings, so that there is one more than the model has layers.
        if layer is not None and not asked.in_parts:
            layer = layer_number(layer, range(source[0].config.num_hidden_layers + 1))
        options |= {"kind": probe, "sentences": sentences, "layer": layer}
        noted: dict[str, Any] = {"on_error": left_out.note, "progress": True}
        result = probe_of(*source, bank, **(noted | how), **options)
    asked.tell(result)


@made_from(
    "headscope.studies:alignment_study",
    "headscope.studies:AlignmentStudy",
    takes="special confidence resume random_weights",
    special="Whether the most attended token may be one that belongs to no word, such as the end "
    "of the source.",
)
def align(
    asked: Study, *, pairs: Paths = (), from_one: Flag = False, add: Paths = (), **options: Any
) -> None:
    """Evaluate word alignment by the attention of a translation model.

    headscope align --pairs pairs.txt --model path/to/a/translator

    headscope align --add first.safetensors second.safetensors --plot alignment.svg

    Args:
        asked: The model, and where the result is written.
        pairs: Files of sentences: .jsonl, .csv, .tsv or .parquet with the fields source, target and
            links (0-1 is sure, 0p1 possible, source first, words separated by white space), or .txt
            with lines of source ||| target ||| links.
        from_one: Links count words from 1, not from 0.
        add: Results of other sentences, saved with --save or --resume, to add to this one.
        **options: Of `headscope.studies.alignment_study`.
    """
    from headscope.studies import AlignmentStudy, read_aligned_pairs

    confidence = options.pop("confidence", 0.95)
    # Made only to check the confidence level before any long work.
    AlignmentStudy(confidence=confidence)
    check_suffix("--resume", options.get("resume"), (RECORD,))
    parts = [AlignmentStudy.load(path) for path in add]
    left_out.begin("sentence")
    listed = []
    for path in pairs:
        listed += read_aligned_pairs(path, first=int(from_one), on_error=left_out.note)
    if not listed and not parts:
        raise TextError("Expected a file of sentences with --pairs, or saved results with --add")
    if listed:
        parts.insert(0, _aligned(asked, listed, **options))
    study = reduce(added, parts)
    # Results that were added may have been saved with another level.
    study.judging["confidence"] = confidence
    asked.tell(study)


def _aligned(asked: Study, listed: list[Any], **options: Any) -> Any:
    model = asked.model
    if model.model is None:
        raise ModelError(
            "Expected an encoder-decoder with --model; the demo model does not translate"
        )
    if model.truncate:
        raise TextError(
            "--truncate would cut words off; remove it: sentences that are too long are left out"
        )
    model.check()
    target = model.target_tokenizer
    if not asked.in_parts:
        target = model.tokenizer_of_target()
        asked = replace(asked, model=replace(model, target_tokenizer=None))
    with asked.reading(what="sentence") as (source, how):
        from headscope.studies import alignment_study

        reads = how if asked.in_parts else {"allow_unfit": model.allow_unfit}
        options |= {"progress": True, "target_tokenizer": target}
        return alignment_study(*source, listed, **(options | reads))


@made_from(
    "headscope.studies:ablate",
    takes="stack screen screen_top=top resume confidence alpha correction random_weights",
    stack=EVERY_STACK,
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
    single_heads: bool = True,
    whole_layers: bool = True,
    limit: int | None = None,
    threads: int | None = None,
    share: bool = True,
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
        **options: Of `headscope.ablate`.
    """
    from headscope.storage import read_rows
    from headscope.tasks import check_task

    if data is not None and not data.is_file():
        raise FileError(f"{data} does not exist")
    if "resume" in options:
        check_writable(options["resume"])
    if ":" not in task:
        # Mistakes in the task's name or file show now, before PyTorch is imported.
        check_task(task, data)
        if data is not None:
            read_rows(data)
    asked.model.check()
    options |= {"heads": single_heads, "layers": whole_layers, "share": share}
    options["by"] = by.replace("-", " ")
    given = {"data": data, "limit": limit, "masked": masked}
    if not asked.in_parts:
        result = _at_once(task, asked.model, given, options, threads)
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


def _at_once(
    task: str,
    model: ModelOptions,
    given: dict[str, Any],
    options: dict[str, Any],
    threads: int | None,
) -> Any:
    """The ablation of all examples, held in this process."""
    masked = given.pop("masked")
    network, tokenizer = _with_head(task, model, masked=masked)
    import torch

    from headscope.studies import ablate as ablated
    from headscope.tasks import NAMES, named_task

    if threads is not None:
        torch.set_num_threads(threads)
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
    made = named_task(task, network, tokenizer, given["data"], limit=given["limit"], **reads)
    left_out.of = len(made.order or ()) + len(made.left_out)
    options |= {"progress": True, "allow_unfit": model.allow_unfit, "on_error": left_out.number}
    return ablated(network, made, **options)


def _with_head(task: str, model: ModelOptions, *, masked: bool | None) -> tuple[Any, Any]:
    """The model with the head that the task needs, and its tokenizer."""
    tokenizer = load("load_tokenizer", model.model, **model.loading)
    # Where the user does not say, a tokenizer with a mask token means a masked model.
    is_masked = tokenizer.mask_token_id is not None if masked is None else masked
    loading, how = model.loading | {"allow_unfit": model.allow_unfit}, "load_bare_model"
    if task == "masked-word" or (task == "minimal-pairs" and is_masked):
        how = "load_masked_model"
    elif task == "classification":
        how = "load_classifier"
    else:
        loading["writes"] = task in WRITING
    return load(how, model.model, **loading), tokenizer
