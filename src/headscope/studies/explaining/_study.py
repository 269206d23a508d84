"""Does attention show what influenced a prediction? Attention compared with gradients, with leaving
tokens out, and with counterfactual attention.

What comes out is reported; nothing is asserted about it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from headscope._progress import counted
from headscope.capturing.fitness import CLASS, check_fit, check_known
from headscope.capturing.loading.load import display_name
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.corpus import asks_for_run
from headscope.errors import CaptureError, HeadscopeError, RecordError, TextError
from headscope.studies.explaining._counterfactual import CounterfactualAttention
from headscope.studies.explaining._explained import ExplainedText
from headscope.studies.explaining._explaining import TextExplainer
from headscope.studies.explaining._result import Faithfulness
from headscope.studies.explaining._text import ClassifiedText
from headscope.studies.shared._source import Source, parse_source

RANDOM = "random weights"


def faithfulness(
    model: Any,
    tokenizer: Any = None,
    texts: Iterable[Any] | None = None,
    *,
    layer: int = -1,
    query: int | str = 0,
    counterfactual: CounterfactualAttention | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> Faithfulness:
    """Compare what one token looks at with what mattered to a classifier.

    For each text, how much each token matters by these signals:

    - ``attention`` of the query, mean over the heads of a layer;
    - ``contribution``, ``||sum_h a f_h(x_j)||`` to the query in that layer (Kobayashi et al. 2020);
    - ``rollout`` of the weights (Abnar and Zuidema 2020) and ``alti`` (Ferrando et al. 2022), the
      query's row after that layer;
    - ``gradient`` times input, absolute, summed over classes, attention held constant in all
      layers;
    - ``leave_one_out``: mean change of the class probabilities without the token;
    - ``random``: one draw, for comparison.

    Each is set against gradient and leaving out by Kendall's tau-b and Spearman's rho (mid-ranks).
    Erasure by each signal; the output's total variation distance when the row is shuffled, median
    over shuffles; and the most different attention (Jensen-Shannon) in all heads of the layer that
    leaves the output where it was.

    Source: Jain and Wallace 2019 (gradients, leaving out, permutation, adversary: Adam 0.01 from 5
    starts, aimed at a distance of 0.01 and reported up to 0.05); DeYoung et al. 2020 (erasure,
    shares 1, 5, 10, 20, 50 %). They looked at the one attention layer of a BiLSTM; here it is a row
    of one layer among several, and special tokens, at which much of it looks, are left out of the
    ranks but keep their place in the rows. Tokens are left out as word pieces.

    Args:
        model: transformers' classifier (logits ``[example class]``, of which the softmax is taken),
            reading ``inputs_embeds`` as well as ids; or its name or folder.
        tokenizer: of the model; None where that is named.
        texts: texts or pairs, with at least two tokens that are not special.
        layer: whose attention; counted from the end where negative.
        query: whose row: the token that the classifier reads, by its position, 0 for [CLS] and -1
            for the last token of a text, or by its word, ``"[CLS]"``.
        counterfactual: how attention is changed to see what then happens to the output; by default
            100 shuffles and no adversary, which is slow.
        confidence: of the intervals.
        **options: ``groups``, the document that each text is of, so that intervals are over
            documents; ``truncate`` (False); ``random_weights``, for the same of this architecture
            with random weights, ``control`` of the result (False); ``progress``, for a bar on
            terminals (False); ``allow_unfit``, for a classifier that was not trained (False);
            ``on_error``, called with number and error of a text that cannot be explained: the rest
            goes on. By default that is a warning, and of a single text an error; ``out``,
            ``workers``, ``executor`` and ``part_size`` of `headscope.corpus.RunOptions`, for a run
            in parts, see docs page "Over many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        TextError: a text of fewer than two tokens that are not special, or too long; or none is
            left.
        ModelError: a model that is not a classifier, or whose classifier was not trained.
        InterventionError: a layer that does not exist.
        RecordError: an option that there is not.

    Example:
        >>> print(
        ...     faithfulness(
        ...         classifier,
        ...         tokenizer,
        ...         texts,
        ...         counterfactual=CounterfactualAttention(adversary=500),
        ...     )
        ... )
    """
    if not 0 < confidence < 1:
        raise RecordError(f"confidence is a number between 0 and 1, not {confidence}")
    random_weights, anyway = options.pop("random_weights", False), options.get("allow_unfit", False)
    how = counterfactual or CounterfactualAttention()
    if asks_for_run(options):
        from headscope.studies.explaining._run import faithfulness_over

        return faithfulness_over(
            (model, tokenizer),
            texts,
            options,
            how={"layer": layer, "query": query, "counterfactual": how},
            confidence=confidence,
            random_weights=random_weights,
        )
    source = _parsed(model, tokenizer, texts, options)
    if not anyway:
        check_fit(source.model, CLASS)
    texts, groups = _explained(source, (layer, query), how)
    if not texts:
        raise TextError("None of the texts can be explained; give texts of two words or more")
    control = None
    if random_weights:
        beside, theirs = _explained(source.random_twin(), (layer, query), how)
        # Random weights may take none of the texts, which is no reason to lose the result.
        if beside:
            control = Faithfulness(tuple(beside), confidence, RANDOM, layer, None, theirs)
    result = Faithfulness(
        tuple(texts), confidence, display_name(source.model), layer, control, groups
    )
    return source.conserved(result, len(texts))


def _parsed(model: Any, tokenizer: Any, texts: Any, options: dict[str, Any]) -> Source:
    """The classifier and its texts; all options that there are were then taken out."""
    source = parse_source(
        model, tokenizer, () if texts is None else texts, options, load=_classifier
    )
    # Texts are run one by one here, so that the option of batches would do nothing.
    unknown = [*options, *({"batch_tokens"} & set(source.options if source else ()))]
    if source is None or unknown:
        raise RecordError(
            f"faithfulness has no option {unknown}; it has truncate, random_weights, allow_unfit, "
            "progress, on_error"
        )
    return source


def _explained(
    source: Source, at: tuple[int, int | str], how: CounterfactualAttention
) -> tuple[list[ExplainedText], tuple | None]:
    """Each text that can be explained, and the documents that these are of."""
    model, tokenizer, options = unwrapped(source.model), source.tokenizer, source.options
    texts, kept = [], []
    report = options.get("on_error") or (_stop if len(source.inputs) == 1 else _left_out)

    def on_error(number: int, error: HeadscopeError) -> None:
        source.left_out[number] = str(error)
        report(number, error)

    with at_rest(model):
        inputs = counted(source.inputs, "Explaining", "text", shows=options.get("progress", False))
        for number, given in enumerate(inputs):
            if isinstance(given, HeadscopeError):
                on_error(number, given)
                continue
            try:
                read = read_text(model, tokenizer, given, options)
            except OF_ONE_INPUT as error:
                on_error(number, reason_of(error))
                continue
            # Here only what a text itself may be the cause of: a fault of the model stops the run.
            try:
                texts.append(explained((model, tokenizer), read, at, how, seed=how.seed + number))
            except (CaptureError, RecordError, TextError) as error:
                on_error(number, error)
                continue
            kept.append(number)
    if source.groups is None:
        return texts, None
    return texts, tuple(source.groups[number] for number in kept)


def read_text(model: Any, tokenizer: Any, given: Any, options: Mapping[str, Any]) -> ClassifiedText:
    """A text as the classifier reads it.

    Args:
        model: the classifier.
        tokenizer: its tokenizer.
        given: the text, parsed.
        options: ``truncate`` and ``max_unknown`` of `headscope.capture_many`.

    Raises:
        HeadscopeError: where it is too long, too short or mostly unknown.
    """
    read = ClassifiedText.of(model, tokenizer, given, truncate=options.get("truncate", False))
    ids = read.inputs["input_ids"].tolist()
    check_known(tokenizer, ids, "the text", options.get("max_unknown", 1.0))
    return read


def explained(
    source: tuple[Any, Any],
    read: ClassifiedText,
    at: tuple[int, int | str],
    how: CounterfactualAttention,
    *,
    seed: int,
) -> ExplainedText:
    """What mattered in a text.

    Args:
        source: the classifier, unwrapped, and its tokenizer.
        read: the text.
        at: layer and query.
        how: attention is changed.
        seed: of all that is drawn for it.

    Raises:
        HeadscopeError: where it cannot be explained.
    """
    model, tokenizer = source
    position = at[0], read.position_of(tokenizer, at[1])
    return TextExplainer(model, tokenizer, read, position).run(how, seed)


def _stop(_: int, error: HeadscopeError) -> None:
    raise error


def _left_out(number: int, error: HeadscopeError) -> None:
    warnings.warn(f"text {number} was left out: {error}", stacklevel=4)


def _classifier(name: Any, **loading: Any) -> tuple[Any, Any]:
    from headscope.capturing import load_classifier, load_tokenizer

    return load_classifier(name, **loading), load_tokenizer(name, **loading)
