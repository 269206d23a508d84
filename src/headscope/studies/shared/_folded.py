"""Folds over texts: in memory, or as runs in parts."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.corpus import OPTIONS, CorpusText, Sums, TextNames, asks_for_run
from headscope.errors import HeadscopeError, RecordError, check_option_names, check_reading
from headscope.evidence.groups import group_of, listed_groups
from headscope.patterns.records import named_records
from headscope.studies.shared import _corpus_model
from headscope.studies.shared._fold import Fold, FoldResult, Item, taken
from headscope.studies.shared._fold_run import RANDOM, Texts, passed, reading_of, texts_in_parts
from headscope.studies.shared._source import CAPTURING, LOADING, check_texts, plain_of, with_copies

if TYPE_CHECKING:
    from headscope.capturing import Outcome

FEW = "are too few to tell up to"
"""The words about too few texts, before the number of scores."""


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
    inputs: list[Any] = []
    for item in items:
        try:
            inputs.append(fold.input_of(item.what, how))
        except HeadscopeError as error:
            inputs.append(error)
    if all(isinstance(each, HeadscopeError) for each in inputs):
        raise RecordError(f"No {fold.what} is left: {[*inputs, 'none was given'][0]}")
    # What is left out is named in the result.
    texts = read_in_memory(fold, given, inputs, options | {"on_error": passed})
    texts.texts = items
    return _both(texts, fold, how, judging, twin=random_weights, source=source)


def _both(
    read: Texts,
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
    fold: Fold, given: tuple[Any, Any], texts: Any, options: dict[str, Any], *, known: Sequence[str]
) -> Generator[Texts]:
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
        stream = _corpus_model.corpus_texts(texts, options.pop("groups", None))
        with texts_in_parts(fold, given, stream, options) as parts:
            yield parts
        return
    yield read_in_memory(fold, given, texts, options)


def check_options(fold: Fold, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise where there is an option that is not one of reading, runs or the study.

    Raises:
        RecordError: naming it.
    """
    others = [name for name in options if name not in (*CAPTURING, *LOADING, *OPTIONS)]
    check_option_names(fold.name, others, known)
    check_reading(options)


def read_in_memory(
    fold: Fold, given: tuple[Any, Any], texts: Any, options: dict[str, Any]
) -> Texts:
    """Texts, and the model that is to read them.

    Args:
        fold: the study.
        given: a model (loaded, its name or folder, or None for the demo model) and its tokenizer,
            which may be None where that is named.
        texts: a text, a list of texts, pairs or other inputs of `headscope.capture_many`.
        options: of capturing and loading, and ``groups`` of texts.

    Raises:
        RecordError: where a tokenizer is missing, or there is no text.
        ModelError: where a model is none, or cannot be loaded.
        TextError: where the tokenizer does not know most of what is in the texts.
    """
    from headscope.capturing import check_reader, groups_in, parse_texts

    if given[1] is not None:
        check_reader(given[1], "study")
    capturing, loading = taken(options, CAPTURING), taken(options, LOADING)
    telling = {"progress": capturing.pop("progress", False)}
    telling |= {"on_error": capturing.pop("on_error", None)}
    job = reading_of(capturing)
    inputs = parse_texts(texts)
    groups = options.pop("groups", None)
    groups = groups_in(texts) if groups is None else groups
    if groups is not None:
        # Documents are counted before a model is loaded, which may take minutes.
        groups = with_copies(inputs, tuple(listed_groups(groups, len(inputs))))
    anyway = job["allow_unfit"]
    readers = _ready(given, inputs, fold.needed(allow_unfit=anyway), loading)
    if not inputs:
        raise RecordError(
            f"Texts were given as {type(texts).__name__} with none in it; give a text, or a list "
            "of them"
        )
    if not anyway:
        check_texts(readers[1], inputs)
    if fold.check is not None:
        fold.check(readers, inputs, {}, allow_unfit=anyway, truncate=False)
    job |= {"alone": True, "model": _corpus_model.GivenModel(*readers)}
    return Texts(job=job, texts=_items_of(inputs, groups), inputs=inputs, **telling)


def _items_of(inputs: Sequence[Outcome], groups: Sequence[Any] | None) -> list[Item]:
    """Texts as a run knows them: by what they say; by their place where they are no texts."""
    names, items = TextNames(), []
    for number, each in enumerate(inputs):
        says = plain_of(each) if getattr(each, "is_text", False) else number
        text = CorpusText(says, None if groups is None else group_of(groups[number]))
        items.append(Item(names.of(text), text.document, None))
    return items


def check_only_records(tokenizer: Any, options: Mapping[str, Any]) -> None:
    """Raise where something was given with records that belongs to a model and texts.

    Raises:
        RecordError: naming it.
    """
    if tokenizer is not None:
        from headscope.capturing import check_reader

        check_reader(tokenizer, "study")
    given = ["tokenizer"] if tokenizer is not None else []
    given += [name for name in (*CAPTURING, *LOADING) if name in options]
    if given:
        raise RecordError(
            f"{', '.join(given)} belong to a model and texts; give both, as (model, "
            "tokenizer, texts)"
        )


def _ready(
    given: tuple[Any, Any], inputs: tuple[Outcome, ...], needs: str, loading: dict[str, Any]
) -> tuple[Any, Any]:
    """The model, loaded where it was named, and its tokenizer, or its processor where the first of
    its inputs holds a picture or a sound.
    """
    from headscope.capturing import load_for

    model, tokenizer = given
    if model is not None and not isinstance(model, str | Path):
        _corpus_model.check_pair(model, tokenizer, loading)
        return given
    first: Any = inputs[0] if inputs else None
    if needs == "attention" and getattr(first, "has_media", False):
        model, own = load_for(model, first, **loading)
    else:
        name = None if model is None else str(model)
        model, own = _corpus_model.load_named(
            _corpus_model.NamedModel(name, tuple(loading.items()), needs=needs)
        )
    return model, own if tokenizer is None else tokenizer


def warn_of_few(read: Texts, options: Mapping[str, Any]) -> None:
    """Warn before the work where there are too few texts for any label of a head; of one text
    alone there is none.

    Args:
        read: whose texts, or the documents that they are of, are counted.
        options: of `headscope.patterns.heads`.
    """
    from headscope.patterns import PATTERNS
    from headscope.patterns.label import texts_needed

    config = getattr(read.job["model"].model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers = getattr(config, "num_hidden_layers", None)
    heads = getattr(config, "num_attention_heads", None)
    # Chance is estimated over documents: many texts of one, and copies, count once.
    count = len({item.document for item in read.texts})
    if count < 2 or not isinstance(layers, int) or not isinstance(heads, int):
        return
    scores = layers * heads * len(options.get("patterns", PATTERNS))
    needed = texts_needed(scores, options.get("alpha", 0.05), options.get("correction", "holm"))
    what = "texts" if count == len(read.inputs) else "documents"
    if count < needed:
        message = (
            f"{count} {what} {FEW} {scores} scores of heads from chance, so that labels may not "
            "hold; the result shows how many it takes"
        )
        warnings.warn(message, stacklevel=2)
