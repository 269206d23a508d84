"""Which neurons carry what heads look at: from the model and texts, or from records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headscope.corpus import asks_for_run
from headscope.errors import RecordError
from headscope.patterns import Mechanism
from headscope.patterns import mechanism as mechanism_of
from headscope.studies.shared._source import parse_source


def mechanism(
    records: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    random_weights: bool = False,
    **options: Any,
) -> Mechanism:
    """Which neurons carry what heads look at, over many texts (Vig 2019, part 2).

    For each word that looks: the fewest neurons that together make up 90 % of the positive score of
    what it looks at; how many these are, and how alike they are at different positions of a text.
    Rotary models have frequency pairs instead of neurons.

    Args:
        records: one record, one for each text, all of one model; or a model, loaded, by name or
            folder, or None for the demo model.
        tokenizer: of the model; may be left out where that is named.
        texts: a text, or texts and pairs of them, for the model to read.
        random_weights: whether the same architecture with random weights reads them, too:
            ``control`` of the result.
        **options: ``groups``, the document that each text is of, so that intervals are over
            documents; ``at``, ``pattern``, ``stack``, ``share`` and ``confidence`` of
            `headscope.patterns.mechanism`; with a model ``truncate``, ``batch_tokens``,
            ``progress`` and ``on_error`` of `capture_many`; ``out``, ``workers``, ``executor`` and
            ``part_size`` of `headscope.corpus.RunOptions`, for a run in parts, see docs page "Over
            many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        RecordError: where there is no record, head or pattern, queries and keys were not kept, or
            random weights are asked for and no model is there.

    Example:
        >>> result = mechanism("bert-base-uncased", texts=texts, at=[(7, 3)], pattern="sep")
        >>> result.neurons(7, 3)[0]  # the neuron that tells [SEP] most
    """
    if asks_for_run(options):
        # Runs are read with what reads models; records alone do without it.
        from headscope.studies._mechanism_run import mechanism_over

        return mechanism_over((records, tokenizer), texts, options, random_weights=random_weights)
    source = parse_source(records, tokenizer, texts, options)
    if source is None:
        if random_weights:
            raise RecordError(
                "random_weights=True needs a model to run: mechanism(model, tokenizer, texts, ...)"
            )
        return mechanism_of(records, **options)
    result = mechanism_of(**source.grouped(keep="qk"), **options)
    source.conserved(result, result.texts)
    if not random_weights:
        return result
    return replace(
        result, control=mechanism_of(**source.random_twin().grouped(keep="qk"), **options)
    )
