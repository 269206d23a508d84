"""An atlas of the heads of a model over many texts: what `heads` says, and where attention goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headscope.atlases import ATLAS, CONFIDENCE, Atlas, atlas_of, text_counts
from headscope.corpus import Counted, Counts, Sums
from headscope.errors import RecordError, check_reading
from headscope.patterns import Heads
from headscope.record import BatchStack, Stack
from headscope.studies.heads import heads_of_sums, heads_over, tally_of, token_runs
from headscope.studies.shared._fold import Fold, Readers, Reading, batches_of


def _records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Counted]]:
    """What is counted of each text: of its heads, and of where their attention goes."""
    tally = tally_of(how, measures=True)
    names = [*(pattern.name for pattern in tally.patterns), f"measure {CONFIDENCE}"]
    rows = [tally.rows.index(name) for name in names]
    reading = dict(reading)
    reading.pop("keep", None)
    if how["norms"]:
        # Texts with norms come as records, one by one.
        reading["keep"] = ("weights", "norms")
    for numbers, source in batches_of(readers, given, reading):
        stack, values = tally.measured(source)
        lengths = lengths_of(source[stack.name]) if how["norms"] else None
        for index, counted in enumerate(tally.counts_of(source, stack, values)):
            try:
                counts = _attention_of(stack, index, scores=values[index][rows], lengths=lengths)
            except RecordError as error:
                reading["on_error"](numbers[index], error)
            else:
                facts = counted.facts | {"scores": [*names[:-1], CONFIDENCE]}
                yield numbers[index], Counted({**counted.counts, **counts}, counted.length, facts)


def _attention_of(stack: BatchStack, index: int, **more: Any) -> Counts:
    """Where the attention of all heads goes on one text."""
    weights = np.concatenate([each.weights[index] for each in stack.layers])
    visible = tuple(layer.visible.dense() for layer in stack.layers)
    return text_counts(stack.key[index], weights=weights, visible=visible, **more)


def _result_of(sums: Sums, how: Mapping[str, Any], judging: Mapping[str, Any]) -> Atlas:
    return atlas_of(heads_of_sums(sums.without(ATLAS), how, judging), sums)


FOLD = Fold(
    name="atlas", what="text", result_of=_result_of, records_of=_records_of, beside=token_runs
)


def lengths_of(stack: Stack) -> np.ndarray:
    """``||f(x)||`` of each head and key, layer after layer.

    Raises:
        RecordError: where a layer has none.
    """
    lengths = []
    for layer in stack.layers:
        if layer.value_norms is None:
            raise RecordError(
                f"Norms of layer {layer.layer} are not known; leave out norms=True (--norms)"
            )
        lengths.append(np.asarray(layer.value_norms, np.float64))
    return np.concatenate(lengths)


def atlas(
    model: Any = None,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    random_weights: Heads | bool | None = None,
    norms: bool = False,
    **options: Any,
) -> Atlas:
    """What every head of a model does over many texts: labels with evidence, where its attention
    goes, between which words, and examples, in one pass.

    What is kept does not grow with the number of texts. With ``out``, ``workers`` or ``executor``
    texts are a stream that is measured in parts, by one process or many; the result is the same.
    See docs page "An atlas of heads".

    Args:
        model: loaded, by name or folder, or None for the demo model.
        tokenizer: of a loaded model.
        texts: texts, or pairs of them: a list, or a stream that is read once.
        random_weights: True for the same architecture with random weights as one baseline more of
            the labels; or `heads` of such a model.
        norms: whether to count, too, where what each head adds comes from: shares of ``weight *
            ||f(x)||`` (Kobayashi et al. 2020). It takes longer, as every text is then recorded by
            itself.
        **options: ``out``, ``workers``, ``executor`` and ``part_size`` as of
            `headscope.corpus.RunOptions`; ``groups``, ``patterns``, ``stack``, ``confidence``,
            ``alpha``, ``correction``, ``margin``, ``battery``, ``truncate``, ``allow_unfit`` and
            ``progress`` as of `heads`; where and how a named model is loaded.

    Raises:
        RecordError: where no texts were given, or none could be measured, as of cross-attention.
        RunError: of a run, see `headscope.corpus.run`.
        CaptureError: a model whose attention cannot be captured.

    Example:
        >>> result = atlas("bert-base-uncased", texts=["The cat sat.", "It slept."], out="run")
    """
    if texts is None:
        raise RecordError("An atlas is made over texts; give atlas(model, tokenizer, texts)")
    if not isinstance(random_weights, Heads):
        check_reading({"random_weights": random_weights})
    how = {"distances": False, "norms": norms}
    given = model, tokenizer, texts
    return heads_over(FOLD, given, options, how=how, random_weights=random_weights)
