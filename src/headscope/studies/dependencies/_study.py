"""A model asked which of its heads look along dependency relations, over a treebank."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headscope.corpus import asks_for_run
from headscope.errors import RecordError, TextError
from headscope.evidence import parse_groups
from headscope.evidence.groups import group_of
from headscope.linguistics import Sentence, Treebank, read_treebank
from headscope.studies.dependencies._result import Relations
from headscope.studies.shared._run_study import asked
from headscope.studies.shared._source import parse_source

TEXTS = ("words", "written")


def relations(
    model: Any,
    tokenizer: Any = None,
    treebank: Treebank | Iterable[Sentence] | str | os.PathLike[str] | None = None,
    *,
    text: str = "words",
    rows: str = "mean",
    trees: bool = True,
    random_weights: bool = False,
    **options: Any,
) -> Relations:
    """Which head looks along each dependency relation, compared with position alone and a
    choice that was held out.

    Of every head and both directions the share of words whose head is looked at most (Clark), and
    of those whose head is above them in the best tree (Htut), relation by relation. A sentence that
    cannot be read, or whose words and tokens cannot be aligned, is left out, counted and named.

    Source: Clark et al. 2019, section 4.2; Htut et al. 2019. There the best head is chosen and
    measured on the same sentences; that number is given here, too, and with it one of documents
    that it was not chosen on: chosen on one half and measured on the other, both ways, mean and
    spread over several splits.

    Args:
        model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        treebank: a `Treebank`, its sentences, or a file in CoNLL-U.
        text: ``"words"`` joined by spaces, so that no token is part of two; or the text as it was
            ``"written"``.
        rows: how rows of a word's tokens become one: ``"mean"``, ``"first"`` or ``"max"``.
        trees: whether the best trees are decoded, too, from the gold root.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        **options: ``groups``, the document of each sentence where the treebank does not say, or
            says it otherwise (``# newdoc``); ``universal``, ``stack``, ``confidence``,
            ``correction``, ``seed`` and ``splits`` of `Relations`; ``truncate``, ``batch_tokens``
            and ``progress`` of `headscope.capture_many`; ``out``, ``workers``, ``executor`` and
            ``part_size`` of `headscope.corpus.RunOptions`, for a run in parts, see docs page "Over
            many texts".

    Raises:
        FileError: where the treebank cannot be read, with the line and the reason.
        RecordError: where no sentence is left, or an option is not what it may be.
        ModelError: where a named model cannot be loaded.
        RunError: of a run, see `headscope.corpus.run`.

    Example:
        >>> relations("bert-base-uncased", treebank="en_ewt-ud-dev.conllu").best("det").accuracy
        0.94
    """
    if text not in TEXTS:
        raise RecordError(f"text is {text!r}; it may be {' or '.join(map(repr, TEXTS))}")
    bank = grouped(parse_treebank(treebank), options.pop("groups", None))
    if asks_for_run(options):
        # Runs are read with what reads models; records alone do without it.
        from headscope.studies.dependencies._run import relations_over

        how = {"rows": rows, "trees": trees}
        return relations_over(
            (model, tokenizer), bank, options | how, text=text, random_weights=random_weights
        )
    # Before the model is run: a sentence whose words are not in its text as written cannot be
    # counted, and needs not be read.
    readable, unreadable = [], {}
    for sentence in bank:
        try:
            (sentence.spans if text == "words" else sentence.written_spans())
            readable.append(sentence)
        except TextError as error:
            unreadable[sentence.name] = str(error)
    texts = [sentence.text if text == "words" else sentence.written for sentence in readable]
    if not texts:
        raise RecordError(f"No sentence is left: {next(iter(unreadable.values()))}")
    source = parse_source(model, tokenizer, texts, options)
    assert source is not None, "texts were given"

    def study() -> Relations:
        result = Relations(rows=rows, trees=trees, **options)
        result.treebank = bank.name
        return result

    return asked(study, source, readable, random_weights=random_weights, unreadable=unreadable)


def grouped(bank: Treebank, groups: Iterable[Any] | None) -> Treebank:
    """The sentences with the documents given for them.

    Raises:
        RecordError: where there is not one for each sentence.
    """
    if groups is None:
        return bank
    listed = list(groups)
    parse_groups(listed, len(bank), "sentence")
    documents = [group_of(group) or "" for group in listed]
    pairs = zip(bank, documents, strict=True)
    return Treebank(
        bank.name, tuple(replace(sentence, document=document) for sentence, document in pairs)
    )


def parse_treebank(treebank: Any) -> Treebank:
    """A treebank from what users have.

    Raises:
        FileError: where a file cannot be read.
        RecordError: where it is none.
    """
    if isinstance(treebank, Treebank):
        return treebank
    if isinstance(treebank, str | os.PathLike):
        return read_treebank(treebank)
    listed = tuple(treebank) if isinstance(treebank, Iterable) else ()
    if not listed or not all(isinstance(each, Sentence) for each in listed):
        raise RecordError(
            f"A treebank was given as {type(treebank).__name__}; expected a file in CoNLL-U, a "
            "Treebank or its sentences"
        )
    return Treebank("sentences", listed)
