"""Folds over texts: in memory, or as runs in parts."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from headscope.corpus import OPTIONS, CorpusText, Sums, asks_for_run
from headscope.errors import HeadscopeError, RecordError, check_reading
from headscope.evidence.groups import group_of, listed_groups
from headscope.patterns.records import named_records
from headscope.studies.shared._corpus_model import corpus_texts
from headscope.studies.shared._fold import Fold, FoldResult, Item
from headscope.studies.shared._fold_run import RANDOM, TextsInParts, texts_in_parts
from headscope.studies.shared._source import (
    CAPTURING,
    LOADING,
    TextsInMemory,
    check_only_records,
    passed,
    read_in_memory,
)


def check_unique(names: Iterable[str], what: str) -> None:
    """Raise where two annotated texts have one name, by which what is read of them is kept.

    Raises:
        RecordError: naming it.
    """
    known: set[str] = set()
    for name in names:
        if name in known:
            raise RecordError(f"Two {what}s are called {name!r}; give each a name of its own")
        known.add(name)


def folded(
    asked: FoldResult,
    given: tuple[Any, Any],
    items: Sequence[Item],
    options: dict[str, Any],
    *,
    random_weights: bool = False,
    **more: Any,
) -> Any:
    """The result of a study over texts.

    Args:
        asked: the result of no text, with the options of the study.
        given: a model (loaded, its name or folder, or None for the demo model) and the tokenizer of
            a loaded one.
        items: the texts.
        options: of reading, and of `headscope.corpus.RunOptions` for a run in parts; all that there
            are; ``groups``, the document of each text where it is another than its own; and
            ``source``, what the texts are called together.
        random_weights: whether the same architecture with random weights reads the texts, too.
        **more: further options that the counts depend on.

    Raises:
        RecordError: where no text is left, two have one name, or there is not a group for each.
        RunError: of a run, see `headscope.corpus.run`.
    """
    check_reading({"random_weights": random_weights})
    fold, how, judging = asked.FOLD, asked.how | more, asked.judging
    groups, source = options.pop("groups", None), options.pop("source", "")
    if groups is not None:
        documents = map(group_of, listed_groups(groups, len(items), fold.what))
        pairs = zip(items, documents, strict=True)
        items = [replace(item, document=document) for item, document in pairs]
    check_unique((item.name for item in items), fold.what)
    check_options(fold, options, (*how, *judging))
    items = _with_copies(fold, items, how)
    if asks_for_run(options):
        texts = [CorpusText(fold.given_of(item.what), item.document) for item in items]
        with texts_in_parts(fold, given, texts, options) as parts:
            return _both(parts, fold, how, judging, twin=random_weights, source=source)
    readable, inputs, left_out = [], [], {}
    for item in items:
        try:
            inputs.append(fold.input_of(item.what, how))
            readable.append(item)
        except HeadscopeError as error:
            left_out[item.name] = str(error)
    if not readable:
        raise RecordError(f"No {fold.what} is left: {[*left_out.values(), 'none was given'][0]}")
    # They are named in the result.
    texts = read_in_memory(fold, given, inputs, options | {"on_error": passed})
    texts.items, texts.left_out = readable, left_out
    return _both(texts, fold, how, judging, twin=random_weights, source=source)


def _both(
    read: TextsInMemory | TextsInParts,
    fold: Fold,
    how: Mapping[str, Any],
    judging: Mapping[str, Any],
    *,
    twin: bool,
    source: str = "",
) -> Any:
    """The result of a study, with that of random weights where these read the texts, too."""
    result = read.folded(fold, how, judging)
    if twin:
        # Random weights may take none of the texts, which is no reason to lose the result.
        try:
            result.control = read.folded(fold, how, judging, random=True, place=RANDOM)
        except RecordError as error:
            warnings.warn(f"There is no control with random weights: {error}", stacklevel=2)
    for each in (result, result.control):
        if each is not None:
            each.source = source
    if twin or source:
        read.keep(result)
    return result


def _with_copies(fold: Fold, items: Sequence[Item], how: Mapping[str, Any]) -> list[Item]:
    """The texts, where copies that are of no document are of one: what is said twice proves no more
    than once.
    """
    first: dict[str, str] = {}
    own = list(items)
    for number, item in enumerate(items):
        if item.document is None:
            with suppress(HeadscopeError):
                unit = first.setdefault(repr(fold.input_of(item.what, how)), item.unit)
                if unit != item.unit:
                    own[number] = replace(item, document=unit)
    return own


def folded_texts(
    asked: FoldResult,
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    random_weights: bool = False,
    fold: Fold | None = None,
) -> Any:
    """The result of a study over texts that are known by what they say, or over records.

    Args:
        asked: the result of no text, with the options of the study.
        given: records; or a model and its tokenizer, see `folded`.
        texts: for the model to read, as of `headscope.capture_many`; None for records.
        options: as of `folded`, with ``groups``, the document of each text.
        random_weights: whether the same architecture with random weights reads the texts, too.
        fold: where it is not that of the result.

    Raises:
        RecordError: where no text is left, or random weights are asked of records.
        RunError: of a run, see `headscope.corpus.run`.
    """
    check_reading({"random_weights": random_weights})
    fold, how, judging = fold or asked.FOLD, asked.how, asked.judging
    if texts is not None or asks_for_run(options):
        with read_texts(fold, given, texts, options, known=(*how, *judging)) as read:
            return _both(read, fold, how, judging, twin=random_weights)
    check_options(fold, options, (*how, *judging, "groups"))
    groups = options.pop("groups", None)
    check_only_records(given[1], options)
    if random_weights:
        raise RecordError(
            f"random_weights=True needs a model to run: {fold.name}(model, tokenizer, texts)"
        )
    sums = Sums(fold.what)
    for name, record, document in named_records(given[0], groups, fold.name):
        fold.counted(None, record, **how).add_to(sums, name, document)
    if not len(sums):
        raise RecordError(f"{fold.name} was given no record; capture at least one text")
    return fold.result_of(sums, how, judging)


@contextmanager
def read_texts(
    fold: Fold,
    given: tuple[Any, Any],
    texts: Any,
    options: dict[str, Any],
    *,
    known: Sequence[str],
) -> Generator[TextsInMemory | TextsInParts]:
    """Texts for folds, in memory or in parts, for the length of a block.

    Args:
        fold: the study.
        given: a model and its tokenizer.
        texts: for the model to read.
        options: of reading and of runs; all that there are.
        known: names of the options of the study.

    Raises:
        HeadscopeError: as of `folded_texts`.
    """
    check_options(fold, options, (*known, "groups"))
    if asks_for_run(options):
        stream = corpus_texts(texts, options.pop("groups", None))
        with texts_in_parts(fold, given, stream, options) as parts:
            yield parts
        return
    yield read_in_memory(fold, given, texts, options)


def check_options(fold: Fold, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise where there is an option that is not one of reading, runs or the study.

    Raises:
        RecordError: naming it.
    """
    unknown = [name for name in options if name not in (*CAPTURING, *LOADING, *OPTIONS, *known)]
    if unknown:
        raise RecordError(
            f"{fold.name} has no option {unknown[0]!r}; it has {', '.join(known)}; to count fewer "
            "texts, give fewer"
        )
    check_reading(options)
