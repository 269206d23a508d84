"""What kind of heads a model has: from the model and texts, or from records."""

from __future__ import annotations

from typing import Any

import numpy as np

from headscope.corpus import asks_for_run
from headscope.errors import RecordError
from headscope.evidence import MapSum
from headscope.patterns import (
    PATTERNS,
    Heads,
    Tally,
    check_heads_options,
    levels_of,
    related_patterns,
)
from headscope.patterns import heads as heads_of
from headscope.record import Record
from headscope.studies._battery import induction_battery
from headscope.studies._heads_run import input_embeddings
from headscope.studies.shared._source import Source, parse_source, passed, warn_of_few


def heads(
    records: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    random_weights: Heads | bool | None = None,
    position_mean: np.ndarray | bool | None = None,
    related: bool = False,
    **options: Any,
) -> Heads:
    """What kind of heads a model has, over some texts, and how sure that is.

    ``heads(model, tokenizer, texts)`` captures the texts itself; records are read once and not
    kept. Without texts, ``heads(capture(...))`` for one, or ``heads(capture_many(...))`` for many.
    A label holds where the mean score over texts reaches the pattern's threshold and lies above its
    baselines (t-test over texts, corrected for all heads and patterns); one text alone gives no
    label.

    Args:
        records: one record, one for each text, all of one model; or a model, loaded, by name or
            folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        texts: a text, or texts and pairs of them, or pictures and sounds as of `capture_many`, for
            the model to read.
        random_weights: True for the same architecture with random weights as one baseline more, the
            texts run through it too; or `heads` of such records.
        position_mean: True for the map that positions alone would give as one baseline more, the
            texts run twice; or the average map itself, see `MapSum`.
        related: whether to look for related words, too: those whose input embeddings lie near; see
            `related_patterns`.
        **options: ``groups``, the document that each text is of, by name or number, so that
            intervals and tests are over documents; ``patterns``, ``stack``, ``distances``,
            ``confidence``, ``alpha``, ``correction`` and ``margin`` of `headscope.patterns.heads`;
            with a model ``truncate``, ``batch_tokens``, ``progress`` and ``on_error`` of
            `capture_many`, and ``battery=False`` to leave `induction` to the texts: by default runs
            of repeated random tokens decide it (Olsson et al. 2022), since on prose parts of speech
            look much the same. With ``out``, ``workers``, ``executor`` or ``part_size``
            (`headscope.corpus.RunOptions`) the texts are a stream that is measured in parts, by
            several processes or machines, and the result is made of sums: see docs page "Over many
            texts".

    Raises:
        RecordError: where there is no record, an option there is not, or one that needs a model.
        RunError: of a run, see `headscope.corpus.run`.
        CaptureError: a model whose attention cannot be captured.
        HeadscopeError: where SciPy is not installed; raised before any record is read.

    Example:
        >>> result = heads(
        ...     "bert-base-uncased", texts=["The cat sat.", "It slept."], random_weights=True
        ... )
    """
    if asks_for_run(options):
        return _over_corpus(
            (records, tokenizer, texts),
            options,
            random_weights,
            {"position_mean": position_mean, "related": related},
        )
    battery = options.pop("battery", None)
    source = parse_source(records, tokenizer, texts, options)
    if source is None:
        asked = {"random_weights": random_weights is True, "position_mean": position_mean is True}
        asked |= {"related": related, "battery": bool(battery)}
        _check_no_model_needed(asked)
        return heads_of(
            records,
            random_weights=_heads_given(random_weights),
            position_mean=_array(position_mean),
            **options,
        )
    if related:
        more = related_patterns(input_embeddings(source.model))
        options["patterns"] = (*options.get("patterns", PATTERNS), *more)
    # Before the model is run, which may take hours.
    warn_of_few(source, options)
    mean = _array(position_mean)
    if random_weights is True:
        # Only what is measured must be the same; confidence is reported of the model itself.
        shared = {name: options[name] for name in ("patterns", "stack") if name in options}
        random_weights = _heads(source.random_twin(), **shared)
    if position_mean is True:
        mean = average_map(source, options.get("stack"))
    given = _heads_given(random_weights)
    result = _heads(source, random_weights=given, position_mean=mean, **options)
    if battery is not False:
        result.tally.runs = _battery(source, result, options.get("stack"))
    return result


def _heads(
    source: Source,
    *,
    random_weights: Heads | None = None,
    patterns: Any = PATTERNS,
    stack: str | None = None,
    position_mean: np.ndarray | None = None,
    distances: bool = False,
    **options: Any,
) -> Heads:
    """The heads of a model over its texts, in batches of one length where all are texts."""
    counting = {
        "patterns": patterns,
        "stack": stack,
        "position_mean": position_mean,
        "distances": distances,
    }
    if not source.is_text:
        records = source.grouped()
        result = heads_of(**records, random_weights=random_weights, **counting, **options)
        return source.conserved(result, result.texts)
    check_heads_options(options)
    levels = None if random_weights is None else levels_of(random_weights)
    tally = Tally(**counting, levels=levels)
    for together in source.batches():
        # By its place among the texts that could be read: draws are keyed by this name.
        names = [f"{number:06}" for number in together.readable]
        groups = None
        if source.groups is not None:
            groups = [source.groups[number] for number in together.numbers]
        batch = together.batch
        if isinstance(batch, Record):
            tally.update(names[0], batch, group=None if groups is None else groups[0])
        else:
            tally.update_batch(names, batch, groups=groups)
    return source.conserved(heads_of(tally, **options), tally.texts)


def _over_corpus(
    given: tuple[Any, Any, Any],
    options: dict[str, Any],
    random_weights: Heads | bool | None,
    more: dict[str, Any],
) -> Heads:
    """The study as a run, which reads a stream of texts once."""
    # Runs are read with what reads models; records alone do without it.
    from headscope.studies._heads_run import HeadsJob, over_texts

    records, tokenizer, texts = given
    wanted = {name: each for name, each in more.items() if each is not None and each is not False}
    both = options | wanted
    return over_texts(HeadsJob, (records, tokenizer), texts, both, random_weights=random_weights)


def _check_no_model_needed(asked: dict[str, bool]) -> None:
    """Raise where records were given and something was asked that a model must be run for."""
    names = ", ".join(name for name, is_asked in asked.items() if is_asked)
    if names:
        raise RecordError(f"{names}=True needs a model to run: heads(model, tokenizer, texts, ...)")


def _heads_given(random_weights: Heads | bool | None) -> Heads | None:
    return random_weights if isinstance(random_weights, Heads) else None


def _battery(source: Source, result: Heads, stack: str | None) -> Any:
    """Runs of repeated tokens through the model, for texts that are no pictures or sounds."""
    # Random tokens can be put together of a vocabulary, and not of pictures or sounds.
    if source.has_media:
        return None
    # None where the model has other heads in its runs, or cannot be run on tokens alone.
    runs = induction_battery(source.model, source.tokenizer, result.tally.patterns, stack)
    return runs if runs is not None and runs.cells == result.cells else None


def average_map(source: Source, stack: str | None) -> np.ndarray:
    """The mean map by position of all heads, layer after layer, over the texts of a source."""
    longest, maps = 0, None
    # Twice over the texts: the sum is as large as the longest of them, which is only then known.
    for record in source.records(on_error=passed):
        chosen = record[stack or next(iter(record.stacks))]
        longest = max(longest, len(chosen.query), len(chosen.key))
    for number, record in enumerate(source.records(on_error=passed)):
        weights = np.concatenate(
            [layer.weights_of() for layer in record[stack or next(iter(record.stacks))]]
        )
        maps = maps or MapSum(len(weights), longest)
        maps.update(str(number), weights)
    if maps is None:
        raise RecordError("heads was given no text that could be captured")
    return maps.mean


def _array(mean: Any) -> np.ndarray | None:
    return None if mean is None or isinstance(mean, bool) else mean
