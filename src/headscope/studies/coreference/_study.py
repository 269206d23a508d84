"""A model asked which of its heads look from a mention at what it means, over many passages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headscope.corpus import asks_for_run
from headscope.errors import RecordError
from headscope.evidence import parse_groups
from headscope.evidence.groups import group_of
from headscope.linguistics import Passage, read_coreference, source_name
from headscope.studies.coreference._result import Coreference
from headscope.studies.shared._corpus_job import check_unique
from headscope.studies.shared._run_study import asked
from headscope.studies.shared._source import parse_source


def coref(
    model: Any,
    tokenizer: Any = None,
    passages: Iterable[Passage] | str | os.PathLike[str] | None = None,
    *,
    rows: str = "mean",
    random_weights: bool = False,
    reading: dict[str, Any] | None = None,
    **options: Any,
) -> Coreference:
    """Which head looks from a mention at what it means, compared with the nearest mention and
    simple rules.

    Of every head the share of mentions whose head word (the last) looks most at the head word of an
    antecedent: among the head words of the candidates, those that end before it, and among all
    other words of the passage. Of candidates that share a head word the one that starts later is
    taken, as by the rules. A passage that cannot be read, or whose words and tokens cannot be
    aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2, which does not say among which tokens the largest is
    sought; there the best head is chosen and measured on the same texts.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        passages: a file or folder that `headscope.linguistics.read_coreference` reads, or passages.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        reading: options of `headscope.linguistics.read_coreference` for a file.
        **options: ``groups``, the document of each passage where it is another than its own;
            ``stack``, ``confidence``, ``correction``, ``seed`` and ``splits`` of `Coreference`;
            ``truncate``, ``batch_tokens`` and ``progress`` of `headscope.capture_many`; ``out``,
            ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, for a run
            in parts, see docs page "Over many texts".

    Raises:
        FileError: where the file cannot be read, with the line and the reason.
        RecordError: where no passage is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.
        RunError: of a run, see `headscope.corpus.run`.

    Example:
        >>> coref("bert-base-uncased", passages="litbank/coref/tsv").best("pronoun").place
        '4-3'
    """
    data, listed = _parsed(passages, reading or {})
    listed = _grouped(listed, options.pop("groups", None))
    # Before the model is loaded, since what is counted is kept by the name of its passage.
    check_unique((each.name for each in listed), Coreference.TEXT)
    if asks_for_run(options):
        # Runs are read with what reads models; records alone do without it.
        from headscope.studies.coreference._run import coref_over

        options["rows"] = rows
        return coref_over(
            (model, tokenizer), listed, options, source=data, random_weights=random_weights
        )
    source = parse_source(model, tokenizer, [each.text for each in listed], options)
    assert source is not None, "texts were given"

    def study() -> Coreference:
        result = Coreference(rows=rows, **options)
        result.data = data
        return result

    return asked(study, source, listed, random_weights=random_weights)


def _parsed(passages: Any, reading: dict[str, Any]) -> tuple[str, tuple[Passage, ...]]:
    """What the passages are called together, and the passages."""
    if isinstance(passages, str | os.PathLike):
        data, listed = source_name(passages), read_coreference(passages, **reading)
    else:
        data, listed = "passages", tuple(passages or ())
    if not listed or not all(isinstance(each, Passage) for each in listed):
        raise RecordError(
            f"Passages were given as {type(passages).__name__}; expected a file, a folder, or a "
            "list of Passage"
        )
    return data, listed


def _grouped(passages: tuple[Passage, ...], groups: Iterable[Any] | None) -> tuple[Passage, ...]:
    """The passages with the documents given for them."""
    if groups is None:
        return passages
    listed = list(groups)
    parse_groups(listed, len(passages), "passage")
    documents = []
    for passage, group in zip(passages, listed, strict=True):
        # Without a document a passage is one by itself, and is drawn by itself.
        documents.append(replace(passage, document=group_of(group) or passage.name))
    return tuple(documents)
