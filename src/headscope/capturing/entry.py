"""Model and text, picture, video, sound or time series to Record."""

from __future__ import annotations

import os
from collections import UserDict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Unpack

import torch

from headscope.capturing._budget import Budget, budget_of, check_memory, is_pair, sum_of
from headscope.capturing.device import device_of, one_at_a_time
from headscope.capturing.fitness import check_known
from headscope.capturing.inputs._processor import check_series, inputs_of, inputs_of_series
from headscope.capturing.inputs.inputs import (
    Inputs,
    check_applies,
    check_length,
    check_reads,
    encode,
    followed_inputs,
    side_by_side,
    with_target,
)
from headscope.capturing.inputs.parse import (
    are_several_inputs,
    check_reader,
    parse_call,
    parse_texts,
)
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import SpecialTokens, tokens_from_encoding, tokens_from_ids
from headscope.capturing.keep import KeepChoice
from headscope.capturing.loading import model_and_reader
from headscope.capturing.media.input_positions import ARGUMENTS, has_more_than_text
from headscope.capturing.options import (
    LOADING,
    CaptureOptions,
    KeepOptions,
    check_options,
    keeping_of,
)
from headscope.capturing.run import at_rest, run, unwrapped
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import Record, Tokens
from headscope.storage import CapturedArrays, load, save

IDS = ("input_ids", "decoder_input_ids")
ROWS = (*IDS, "attention_mask", "decoder_attention_mask", "token_type_ids", "position_ids")
"""Arguments of a forward with a row for each text, which may be given as lists."""

READING = ("truncate", "target_tokenizer")
"""Options that say how an input is read, for inputs of every kind."""


def capture(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    text_pair: str | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[CaptureOptions],
) -> Record:
    """Run a model on a text and keep what every attention head computed.

    The model keeps its own attention implementation and comes back as it was, also after an error.
    Every layer is checked: its output, recomputed from weights, values and the output projection,
    against the model's own; the largest difference is ``record.verified``.

    Args:
        model: a loaded transformers model, a hub name, a folder, or None for the demo model.
        tokenizer: its tokenizer, or its processor for pictures and sounds; may be left out if
            the model is given by name.
        text: the text, or a conversation, a list of ``{"role": ..., "content": ...}`` that the
            tokenizer's chat template makes a text of; leave it out for models that read only
            pictures or sounds.
        text_pair: the second text of a sentence pair.
        out: a file (``.safetensors``) that the record is written to layer by layer, whole or not at
            all, so that it may be larger than memory. While the model runs, as much again is taken
            on the same disk.
        **options: see `CaptureOptions`.

    Returns:
        One `Record`; with ``out`` as `headscope.load` opens it, its arrays in the file. It has the
        stack ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``, or
        ``"vision"`` and ``"text"``.

    Raises:
        TextError: an empty text, or one longer than the model's positions.
        ModelError: a model that cannot be loaded, a device that is missing, or options of loading
            for a model that is already loaded.
        CaptureError: a model whose attention could not be captured exactly.
        InterventionError: an intervention that this model cannot carry.
        FileError: where no record can be written to ``out``.

    Example:
        >>> record = capture("bert-base-uncased", text="The cat sat.", text_pair="It slept.")
        >>> record["self"].weights(layer=2, head=0)  # [query key]
    """
    check_options(options)
    check_reader(tokenizer, call="capture")
    given = parse_call(text, text_pair, options)
    keeping = keeping_of(options)
    if out is None:
        return _captured((model, tokenizer), given, keeping, options)
    # Opened first: a place that cannot be written to is refused before the model is loaded.
    with CapturedArrays(out) as arrays:
        record = _captured((model, tokenizer), given, replace(keeping, put=arrays.put), options)
        save(record, out)
    return load(out)


def _captured(
    named: tuple[Any, Any], given: ParsedInput, keeping: KeepChoice, options: CaptureOptions
) -> Record:
    """The record of one input; ``named`` are model and tokenizer as they were given."""
    model, inputs = prepared(*named, given, options)
    with one_at_a_time(model), at_rest(model):
        check_memory(model, inputs, keeping)
        return run(model, inputs, keeping, interventions=options.get("interventions", ()))[0]


def budget(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    text_pair: str | None = None,
    **options: Unpack[CaptureOptions],
) -> Budget:
    """The number of bytes that `capture` would keep with the same arguments, or `capture_many` of
    many inputs, found by running the first few tokens.

    Of texts with the same number of tokens one is run. A picture or a sound is run as a whole,
    because it cannot be cut. The records of many inputs are not held together by `capture_many`,
    which gives one after another.

    Args:
        model: see `capture`.
        tokenizer: see `capture`.
        text: see `capture`; or a list of inputs, as `capture_many` takes them.
        text_pair: see `capture`.
        **options: see `CaptureOptions`.

    Raises:
        HeadscopeError: the errors of `capture`; of one of several inputs with its number.

    Example:
        >>> print(budget(model, tokenizer, "The cat sat.", keep="qk"))
        keeps 18 kB: queries and keys 18 kB; not values 9.2 kB, weights 3.6 kB, statistics 9.4 kB
    """
    if are_several_inputs(text):
        given = []
        for number, outcome in enumerate(parse_texts(text)):
            if isinstance(outcome, HeadscopeError):
                raise type(outcome)(f"Input {number}: {outcome}")
            given.append(outcome)
    else:
        given = [parse_call(text, text_pair, options)]
    if not given:
        raise TextError("budget was given an empty list of inputs; give at least one")
    model, tokenizer = model_and_reader(model, tokenizer, given[0], options, call="budget")
    # The model is there now, and options of loading would be refused with it.
    rest: Any = {name: value for name, value in options.items() if name not in LOADING}
    budgets: list[Budget] = []
    known: dict[tuple[int, ...], Budget] = {}
    for each in given:
        own, inputs = prepared(model, tokenizer, each, rest)
        # What is kept of texts follows from the numbers of tokens and of texts alone.
        lengths = (is_pair(inputs), *map(len, (*inputs.source, *inputs.target)))
        if inputs.input_positions is not None or lengths not in known:
            known[lengths] = budget_of(own, inputs, keeping_of(options))
        budgets.append(known[lengths])
    return sum_of(budgets)


def prepared(
    model: Any,
    tokenizer: Any,
    given: ParsedInput,
    options: CaptureOptions,
    *,
    max_unknown: float | None = None,
) -> tuple[Any, Inputs]:
    """The model, loaded and unwrapped, and its inputs; for the arguments see `capture`, for
    ``max_unknown`` `check_known`.
    """
    check_options(options)
    check_reader(tokenizer, call="capture")
    model, tokenizer = model_and_reader(model, tokenizer, given, options, call="capture")
    model = configured(model)
    check_reads(model, given)
    check_applies(model, given, options)
    given = given.read_with(tokenizer)
    # An encoder-decoder may write its target here, which runs the model.
    with one_at_a_time(model), at_rest(model):
        reading = {name: options[name] for name in READING if name in options}
        if given.series is not None:
            inputs = inputs_of_series(model, given.series, truncate=options.get("truncate", False))
        elif given.has_media:
            inputs = inputs_of(model, tokenizer, given, **reading)
        else:
            tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
            inputs = _inputs_of_text(model, tokenizer, given, max_unknown=max_unknown, **reading)
        return model, _with_more(replace(inputs, given=(given,)), model, options)


def capture_encoded(
    model: Any, tokenizer: Any, encoding: Any, **options: Unpack[KeepOptions]
) -> list[Record]:
    """Run a model on what its tokenizer returned, padded or not, and keep one record for each
    example: a list, also of one example.

    The model is called as ``model(**encoding)`` and with nothing else: ``position_ids`` of packed
    texts, ``use_cache`` and any other argument of its forward reach it, and where ``use_cache`` is
    left out the model's own default decides (`capture` runs without a cache). Arguments that had to
    be added are in ``record.model.called_with``.

    Padding is cut off: a record holds real tokens only. Encoder-decoders of texts need
    ``decoder_input_ids``. A mask may have an axis of queries (``[batch 1 query key]``); keys that
    it hides from every query are then the padding. Positions of input that is not a text, picture
    or sound (time series, ``inputs_embeds``) are numbered, with a warning.

    Args:
        model: a loaded transformers model.
        tokenizer: its tokenizer or processor; without one, None, tokens are named by their ids.
        encoding: the arguments of the model's forward, as the processor returned them with
            ``return_tensors="pt"``; or token ids alone: a list, array or tensor of those of one
            text, or of several of one length.
        **options: see `KeepOptions`.

    Raises:
        CaptureError: a model whose attention could not be captured exactly.
    """
    check_reader(tokenizer, "capture_encoded")
    model = unwrapped(model)
    encoding = _with_rows(encoding if isinstance(encoding, Mapping) else {"input_ids": encoding})
    _check_ids(model, encoding)
    device, named, arguments = device_of(model), arguments_of(model), {}
    for name, value in encoding.items():
        if isinstance(value, torch.Tensor):
            arguments[name] = value.to(device)
        # Others, such as lists of offsets, only if the forward has an argument of that name.
        elif name in named and name not in ARGUMENTS:
            arguments[name] = value
    tensors = [value for value in arguments.values() if isinstance(value, torch.Tensor)]
    if "input_ids" not in arguments and not any(tensor.is_floating_point() for tensor in tensors):
        raise CaptureError(
            "The encoding holds no input_ids, and no tensor of anything else; give input_ids, or "
            "return_tensors='pt' to the processor"
        )
    if "past_values" in arguments and hasattr(model.config, "patch_length"):
        check_series(model, arguments["past_values"].shape[1:])
    source, target = _sides(getattr(tokenizer, "tokenizer", tokenizer), encoding, arguments)
    reads_text = source or has_more_than_text(arguments)
    if reads_text and reads_target(model) and "decoder_input_ids" not in arguments:
        raise CaptureError(
            f"{type(model).__name__} is an encoder-decoder; its encoding needs decoder_input_ids "
            "too"
        )
    with one_at_a_time(model), at_rest(model):
        inputs = replace(_bare_inputs(model, arguments, source, target), as_given=True)
        changes = options.get("interventions", ())
        return run(model, inputs, keeping_of(options), interventions=changes)


def _with_rows(encoding: Mapping[str, Any]) -> Mapping[str, Any]:
    """The encoding with lists and arrays of ids, and what belongs to them, as ``[batch token]``.

    Raises:
        CaptureError: where one is not of whole numbers in equally long rows.
    """
    rows: dict[str, torch.Tensor] = {}
    for name in ROWS:
        given = encoding.get(name)
        if given is None:
            continue
        try:
            made = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError):
            made = torch.empty(0)
        # A mask may be of floats, and have an axis of queries.
        is_no_id = made.is_floating_point() or made.dtype == torch.bool
        if not made.ndim or not made.numel() or (name in IDS and is_no_id):
            raise CaptureError(
                f"{name} must be token ids, whole numbers in one row or in several of one length, "
                f"not {given!r:.60}; pad texts of several lengths (padding=True), and give the "
                "attention_mask too"
            )
        if made.ndim == 1 or made is not given:
            rows[name] = made[None] if made.ndim == 1 else made
    if not rows:
        return encoding
    # A tokenizer's own mapping knows words and offsets besides.
    own = copy(encoding) if isinstance(encoding, UserDict) else dict(encoding)
    own.update(rows)
    return own


def _check_ids(model: Any, encoding: Mapping[str, Any]) -> None:
    """Raise where an id is not in the vocabulary of the model, or there are more than it has
    positions for.

    Raises:
        CaptureError: with the id and the size of the vocabulary.
        TextError: with both numbers.
    """
    # Placeholders of pictures and sounds may stand outside of the vocabulary.
    if has_more_than_text(encoding):
        return
    _check_beside(encoding)
    for name in (*IDS, "inputs_embeds", "decoder_inputs_embeds"):
        if isinstance(encoding.get(name), torch.Tensor):
            own = encoding.get("decoder_" * name.startswith("decoder_") + "position_ids")
            count = encoding[name].shape[1] if own is None else int(own.max()) + 1
            check_length(model, count, name, "give truncation=True to the tokenizer")
    for name in IDS:
        ids = encoding.get(name)
        try:
            reader = model if name == "input_ids" else model.get_decoder()
            size = getattr(reader.get_input_embeddings(), "num_embeddings", None)
        except (AttributeError, NotImplementedError):
            size = None
        if ids is None or size is None:
            continue
        if ids.ndim > 2:
            raise CaptureError(
                f"{name} has the shape {list(ids.shape)}, and {type(model).__name__} reads [batch "
                "token]; give a row of ids for each text"
            )
        beyond = ids[(ids < 0) | (ids >= size)]
        if len(beyond):
            raise CaptureError(
                f"{name} holds {int(beyond[0])}, and {type(model).__name__} has a vocabulary of "
                f"{size}, 0 to {size - 1}; encode the text with the tokenizer of this model"
            )


def _check_beside(encoding: Mapping[str, Any]) -> None:
    """Raise where what stands beside ids is of other lengths, or a cache.

    Raises:
        CaptureError: with both numbers.
    """
    if encoding.get("past_key_values") is not None:
        raise CaptureError(
            "past_key_values holds tokens that were not seen, and each pass adds to it; give the "
            "whole text"
        )
    for name in ROWS:
        row, ids = encoding.get(name), encoding.get("decoder_" * ("decoder" in name) + "input_ids")
        # A mask may have an axis of queries.
        if row is None or ids is None or row.ndim > 2:
            continue
        if row.shape[1] != ids.shape[1]:
            raise CaptureError(
                f"{name} has {row.shape[1]} positions, and the ids have {ids.shape[1]}; pad or cut"
            )


def _sides(
    tokenizer: Any, encoding: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[tuple[Tokens, ...], tuple[Tokens, ...]]:
    """Tokens of each example: those of the source, and those that its decoder reads."""
    read, written = _ids(arguments), _ids(arguments, "decoder_input_ids")
    if tokenizer is None or not (len(read) or len(written)):
        named = [Tokens(pieces=tuple(map(str, ids)), ids=tuple(ids)) for ids in (*read, *written)]
        return tuple(named[: len(read)]), tuple(named[len(read) :])
    # What is known of a token is asked of the tokenizer once for all texts.
    specials = SpecialTokens.of(tokenizer)
    # The encoding has words and offsets for the source only; for the target it has just ids.
    source = tuple(
        tokens_from_encoding(tokenizer, encoding, example=example, specials=specials)
        for example in range(len(read))
    )
    target = tuple(tokens_from_ids(tokenizer, ids, specials=specials) for ids in written)
    return source, target


def configured(model: Any) -> Any:
    """The model inside a wrapper, whose configuration names what it reads.

    Raises:
        CaptureError: if it has none, as models of other libraries.
    """
    model = unwrapped(model)
    if not hasattr(model, "config"):
        raise CaptureError(
            f"{type(model).__name__} has no configuration of transformers that names its inputs; "
            "run it yourself: with hs.watch(model) as seen: model(...)"
        )
    return model


def _with_more(inputs: Inputs, model: Any, options: CaptureOptions) -> Inputs:
    """The inputs together with the user's own arguments of the model's forward.

    Raises:
        CaptureError: if an argument is already made from the text.
    """
    more = options.get("model_kwargs") or {}
    if not isinstance(more, Mapping):
        raise CaptureError(
            f"model_kwargs holds arguments of the model's forward by name, such as "
            f"{{'use_cache': True}}, not {type(more).__name__}"
        )
    taken = [name for name in more if name in inputs.arguments]
    if taken:
        raise CaptureError(
            f"model_kwargs holds {taken[0]}, which capture makes itself; give it in the encoding "
            "of headscope.capturing.capture_encoded"
        )
    # Users mostly have tensors on the CPU; other values, such as True, are passed unchanged.
    device, arguments = device_of(model), dict(inputs.arguments)
    for name, each in more.items():
        arguments[name] = each.to(device) if isinstance(each, torch.Tensor) else each
    return replace(inputs, arguments=arguments)


def _ids(arguments: Mapping[str, torch.Tensor], name: str = "input_ids") -> list[list[int]]:
    """The ids of each example; empty without ids, or if a position has several (codes of sound)."""
    ids = arguments.get(name)
    # Of all at once: a device is waited for once.
    return [] if ids is None or ids.ndim != 2 else ids.tolist()


def _bare_inputs(
    model: Any,
    arguments: Mapping[str, torch.Tensor],
    source: tuple[Tokens, ...],
    target: tuple[Tokens, ...],
) -> Inputs:
    """Inputs from tensors; positions are numbered if these are neither text, picture nor sound."""
    if has_more_than_text(arguments):
        return followed_inputs(configured(model), dict(arguments), source, target)
    if source:
        return Inputs(dict(arguments), source, target)
    reason = (
        f"{type(model).__name__} was given {', '.join(arguments)}, whose positions have no names"
    )
    # Not every argument has the batch as first axis; the one that transformers calls the main input
    # has.
    main = getattr(model, "main_input_name", "")
    examples = len(arguments[main] if main in arguments else next(iter(arguments.values())))
    return Inputs(dict(arguments), source, target, numbered=reason, examples=examples)


def _inputs_of_text(
    model: Any,
    tokenizer: Any,
    given: ParsedInput,
    *,
    truncate: bool = False,
    target_tokenizer: Any = None,
    max_unknown: float | None = None,
) -> Inputs:
    encoding = encode(model, tokenizer, given, truncate=truncate)
    check_known(tokenizer, encoding["input_ids"], "the text", max_unknown)
    source = tokens_from_encoding(tokenizer, encoding, given.texts)
    inputs = side_by_side(model, [dict(encoding)], [source])
    if not reads_target(model):
        return inputs
    # BERT's tokenizers make segments for encoder-decoders too, whose forward does not take them.
    inputs.arguments.pop("token_type_ids", None)
    other = target_tokenizer or tokenizer
    arguments, target = with_target(model, inputs.arguments, given.decoder_text(), other)
    if given.decoder_text() is not None:  # the model's own may be anything; the first one starts it
        check_known(other, (target.ids or ())[1:], "the target", max_unknown)
    return Inputs(arguments, (source,), (target,))
