"""What kind of heads a model has: from the model and texts, or from records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.corpus import WHOLE, Counted, Counts, Kept, RunFolder, Sums, asks_for_run
from headscope.errors import CaptureError, HeadscopeError, RecordError, check_reading, listed
from headscope.measures import repeated_tokens
from headscope.patterns import (
    PATTERNS,
    Heads,
    MissingFunction,
    Pattern,
    Tally,
    TokenRuns,
    check_heads_options,
    levels_of,
    named_related,
    related_patterns,
)
from headscope.patterns import heads as heads_of
from headscope.record import Record
from headscope.studies.shared._corpus_model import RunModel
from headscope.studies.shared._fold import Fold, Readers, Reading, batches_of, stack_of, taken
from headscope.studies.shared._fold_run import RANDOM, RESULT, KeptArrays, Texts
from headscope.studies.shared._folded import check_only_records, read_texts, warn_of_few

JUDGING = ("confidence", "alpha", "correction", "margin")
POSITION_MEAN = "position_mean"
"""Folder of the run of the mean map, or of a mean map that was given, in the folder of the run."""
NO_RUNS: Kept = {"cells": [], "patterns": []}, {"values": np.zeros((0, 0, 0))}


def _maps_of(_: Any, record: Any, *, stack: str | None = None) -> Counts:
    """The maps of all heads of a text, and which places it has."""
    maps = [np.asarray(layer.weights_of(), np.float64) for layer in stack_of(record, stack)]
    whole = np.concatenate(maps)
    return {f"{WHOLE}maps": whole, f"{WHOLE}texts": np.ones(whole.shape[1:])}


MEAN_FOLD = Fold(name="mean map", what="text", counts_of=_maps_of, stage="the mean map by position")


@dataclass(frozen=True)
class RelatedWords:
    """The model whose input embeddings say which words are related, for workers.

    Args:
        model: that each of them loads; random weights are a baseline of what the model itself holds
            to be related.
    """

    model: RunModel
    facts = True

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns, made once in a process."""
        return _related(self.model)


# One alone: it holds the vectors of a vocabulary.
@lru_cache(maxsize=1)
def _related(model: RunModel) -> tuple[Pattern, ...]:
    return related_patterns(input_embeddings(model.load()[0]))


def tally_of(how: Mapping[str, Any], *, measures: bool) -> Tally:
    """Counts of no text.

    Args:
        how: options of the study.
        measures: whether it measures texts; else it holds what was counted of them.
    """
    related = how.get("related")
    patterns, mean = how["patterns"], None
    if measures:
        patterns += () if related is None else related.patterns
        mean = how["position_mean"]
        mean = mean.load()["mean"] if isinstance(mean, KeptArrays) else mean
    elif related is not None:
        patterns += named_related(MissingFunction("related"))
    return Tally(
        patterns,
        stack=how["stack"],
        position_mean=mean,
        distances=how["distances"],
        levels=dict(how["levels"]),
    )


def _records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Counted]]:
    """What is counted of each text."""
    tally = tally_of(how, measures=True)
    # Weights side by side, many times faster than records.
    reading = dict(reading)
    reading.pop("keep", None)
    for numbers, batch in batches_of(readers, given, reading):
        yield from zip(numbers, tally.counted(batch), strict=True)


def token_runs(readers: Readers, how: Mapping[str, Any]) -> Kept:
    """Runs of repeated tokens; none where they are not wanted, or the model cannot be run on
    them.
    """
    runs = None
    if how["battery"]:
        runs = induction_battery(*readers, how["patterns"], how["stack"])
    if runs is None:
        return NO_RUNS
    names = [pattern.name for pattern in runs.patterns]
    return {"cells": runs.cells, "patterns": names}, {"values": runs.values}


def heads_of_sums(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> Heads:
    """The heads that were counted."""
    tally = tally_of(how, measures=False)
    tally.sums = sums
    document, arrays = judging["beside"]
    # The model may have other heads in these runs.
    if [tuple(cell) for cell in document["cells"]] == tally.cells:
        judged = tally.named(document["patterns"])
        tally.runs = TokenRuns(judged, tally.cells, arrays["values"])
    return Heads(tally, **{name: judging[name] for name in JUDGING if name in judging})


FOLD = Fold(
    name="heads", what="text", result_of=heads_of_sums, records_of=_records_of, beside=token_runs
)


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
    baselines (tested over texts, corrected for all heads and patterns); one text alone gives no
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
            texts run twice; or the average map itself, see `headscope.evidence.mean_map`.
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
    if not isinstance(random_weights, Heads):
        check_reading({"random_weights": random_weights})
    if texts is None and not asks_for_run(options):
        asked = {"random_weights": random_weights is True, "position_mean": position_mean is True}
        asked |= {"related": related, "battery": bool(options.pop("battery", None))}
        check_only_records(tokenizer, options)
        names = ", ".join(name for name, is_asked in asked.items() if is_asked)
        if names:
            raise RecordError(
                f"{names}=True needs a model to run: heads(model, tokenizer, texts, ...)"
            )
        return heads_of(
            records,
            random_weights=random_weights if isinstance(random_weights, Heads) else None,
            position_mean=position_mean if isinstance(position_mean, np.ndarray) else None,
            **options,
        )
    baselines = {"random_weights": random_weights, "position_mean": position_mean}
    return heads_over(
        FOLD,
        (records, tokenizer, texts),
        options,
        how={"distances": options.pop("distances", False), "related": related},
        **baselines,
    )


def heads_over(
    fold: Fold,
    given: tuple[Any, Any, Any],
    options: dict[str, Any],
    *,
    how: dict[str, Any],
    random_weights: Heads | bool | None,
    position_mean: np.ndarray | bool | None = None,
) -> Any:
    """A study that labels the heads of a model over texts.

    Args:
        fold: the study.
        given: a model and its tokenizer, and texts.
        options: of `heads`, of reading and of runs.
        how: options that the counts depend on, beside those of `heads`.
        random_weights: see `heads`.
        position_mean: see `heads`.

    Raises:
        HeadscopeError: as of `heads`.
    """
    judging = taken(options, JUDGING)
    check_heads_options(judging)
    is_related = how.pop("related", False)
    how = {
        "patterns": tuple(listed(options.pop("patterns", PATTERNS), "a list of patterns")),
        "stack": options.pop("stack", None),
        "battery": options.pop("battery", None) is not False,
        "position_mean": None,
        "levels": (),
        **how,
    }
    known = [name for name in how if name not in ("position_mean", "levels")]
    with read_texts(fold, given[:2], given[2], options, known=(*known, *JUDGING)) as read:
        if read.folder is None:
            if is_related:
                how["patterns"] += related_patterns(input_embeddings(read.job["model"].model))
            # Before the model is run, which may take hours.
            warn_of_few(read, how | judging)
            # Random tokens can be put together of a vocabulary, and not of pictures or sounds.
            how["battery"] &= not any(getattr(own, "has_media", False) for own in read.inputs)
        elif is_related:
            how["related"] = RelatedWords(read.job["model"])
        how["position_mean"] = _mean_map(read, position_mean, how["stack"])
        if random_weights is True:
            # Only what is measured must be the same; confidence is reported of the model itself.
            plain = how | {"battery": False, "distances": False, "position_mean": None}
            random_weights = read.folded(FOLD, plain, {}, random=True, place=RANDOM)
        if isinstance(random_weights, Heads):
            how["levels"] = tuple(sorted(levels_of(random_weights).items()))
        return read.folded(fold, how, judging)


def _mean_map(read: Texts, wanted: Any, stack: str | None) -> np.ndarray | KeptArrays | None:
    """The mean map by position over the texts, or one that was given; NaN where no text is long
    enough for a place. None where it is not wanted.
    """
    if wanted is None or wanted is False:
        return None
    mean = np.asarray(wanted)
    if wanted is True:
        sums = read.folded(MEAN_FOLD, {"stack": stack}, {}, place=POSITION_MEAN)
        total, texts = (sums.total(f"{WHOLE}{name}") for name in ("maps", "texts"))
        # As long as the longest text on either side.
        mean = np.full((len(total), *[max(texts.shape)] * 2), np.nan)
        inside = np.s_[:, : texts.shape[0], : texts.shape[1]]
        mean[inside] = np.divide(total, texts, out=mean[inside].copy(), where=texts > 0)
    elif mean.dtype.kind not in "fiu" or mean.ndim != 3:
        raise RecordError(f"position_mean is True or a map [head query key], not {wanted!r}")
    if read.folder is None:
        return mean
    RunFolder(read.folder).begin()
    return KeptArrays.saved(read.folder / POSITION_MEAN / RESULT, {"mean": mean})


def input_embeddings(model: Any) -> Float[np.ndarray, "vocabulary feature"]:
    """The input embedding of each token of a model's vocabulary, float32.

    Raises:
        CaptureError: where the model reads no tokens.

    Example:
        >>> vectors = input_embeddings(model)
    """
    from headscope.capturing.device import in_memory
    from headscope.capturing.run import unwrapped

    table = unwrapped(model).get_input_embeddings()
    if getattr(getattr(table, "weight", None), "ndim", 0) != 2:
        raise CaptureError(
            f"{type(unwrapped(model)).__name__} has no table of input embeddings: it reads no "
            "tokens"
        )
    with in_memory(table):
        return table.weight.detach().float().cpu().numpy()


NAME = "induction"
RUNS, LENGTH, REPEATS, LEAST_LENGTH = 20, 25, 4, 8
"""Olsson et al. take 10 runs of 25 tokens, 4 times; ours are 20: the least p of 10 gives no label
once corrected.
"""
RUNS_AT_ONCE = 5
TAIL = 0.1
"""Share of the vocabulary left out at either end, where its most and its least common tokens are
numbered.
"""


def induction_battery(
    model: Any, tokenizer: Any, patterns: tuple[Pattern, ...], stack: str | None
) -> TokenRuns | None:
    """How far heads look at what followed the same token before, on random tokens that are
    repeated.

    On prose, words that come back are mostly of few kinds, and a head that heeds parts of speech
    looks where an induction head would; random tokens have no parts of speech.

    Source: Olsson et al. 2022, appendix. They leave the most and the least common tokens out; ours
    are distinguished by their number in the vocabulary, which tokenizers give roughly by how common
    they are.

    Args:
        model: loaded.
        tokenizer: of the model.
        patterns: what is looked for.
        stack: which stack of the records; by default the first.

    Returns:
        What was measured on the runs; None where induction is not looked for, or the model does not
        read tokens of a vocabulary, or has room for too few.
    """
    wanted = tuple(pattern for pattern in patterns if pattern in PATTERNS and pattern.name == NAME)
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    if not wanted or not hasattr(tokenizer, "convert_ids_to_tokens"):
        return None
    tally, cells, values = Tally(wanted, stack=stack), [], []
    try:
        for record in _records(model, tokenizer):
            own, measured = tally.measured(record)
            cells = list(own.cells)
            values.append(measured[0])
    except HeadscopeError:
        # A model that wants a picture with its text, or the like; its texts decide, as they do
        # for records.
        return None
    return TokenRuns(wanted, cells, np.stack(values)) if values else None


def _records(model: Any, tokenizer: Any) -> Iterator[Record]:
    import torch

    from headscope.capturing import capture_encoded
    from headscope.capturing.walk import reads_target

    before, after = _around(tokenizer)
    candidates = _candidates(model, tokenizer)
    length, repeats = _sizes(model, len(before) + len(after), len(candidates))
    if length < LEAST_LENGTH:
        return
    rows = []
    for run in range(RUNS):
        drawn = np.random.default_rng(run)
        middle = repeated_tokens(drawn, candidates, length=length, repeats=repeats)
        rows.append([*before, *middle.tolist(), *after])
    for first in range(0, RUNS, RUNS_AT_ONCE):
        ids = torch.tensor(rows[first : first + RUNS_AT_ONCE])
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if reads_target(model):
            inputs["decoder_input_ids"] = ids
        yield from capture_encoded(model, tokenizer, inputs, keep="weights")


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text."""
    ids, special = tokenizer("a")["input_ids"], set(tokenizer.all_special_ids)
    before = list(takewhile(lambda number: number in special, ids))
    after = list(takewhile(lambda number: number in special, reversed(ids[len(before) :])))
    return before, after[::-1]


def _candidates(model: Any, tokenizer: Any) -> list[int]:
    """Vocabulary numbers to draw from: tokens that begin a word."""
    size = len(tokenizer)
    rows = size
    # Tokenizers may have more tokens than the model has embeddings, and the other way round.
    if hasattr(model, "get_input_embeddings"):
        rows = model.get_input_embeddings().num_embeddings
    special = set(tokenizer.all_special_ids)
    numbers = [number for number in range(min(size, rows)) if number not in special]
    cut = int(TAIL * len(numbers))
    numbers = numbers[cut : len(numbers) - cut]
    pieces = tokenizer.convert_ids_to_tokens(numbers)
    candidates = []
    for number, piece in zip(numbers, pieces, strict=True):
        # Pieces that continue a word would make one word of the whole run, which cannot be
        # shuffled.
        if isinstance(piece, str) and not piece.startswith("##"):
            candidates.append(number)
    return candidates


def _sizes(model: Any, around: int, candidates: int) -> tuple[int, int]:
    """How many tokens a run has and how often it occurs, as far as the model has room for them."""
    from headscope.capturing import position_limit

    limit = position_limit(model)
    room = LENGTH * REPEATS if limit is None else limit - around
    length = min(LENGTH, candidates, room // 2)
    return length, min(REPEATS, room // max(length, 1))
