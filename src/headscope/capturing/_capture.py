"""Model and text, picture or sound to Record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from typing_extensions import Unpack

from headscope.capturing._inputs import Inputs, encode, with_target
from headscope.capturing._keep import Keeping
from headscope.capturing._load import load_for
from headscope.capturing._options import CaptureOptions, KeepOptions, check_options, keeping_of
from headscope.capturing._origins import has_more_than_text, origins_of
from headscope.capturing._processor import inputs_of
from headscope.capturing._reads import check_reads
from headscope.capturing._run import at_rest, run, unwrapped
from headscope.capturing._tokens import tokens_from_encoding, tokens_from_ids
from headscope.errors import CaptureError
from headscope.record import Record, Tokens


def capture(
    model: Any,
    tokenizer: Any = None,
    text: str | None = None,
    text_pair: str | None = None,
    **options: Unpack[CaptureOptions],
) -> Record:
    """Run a model on a text and keep what every attention head computed.

    The model keeps its own attention implementation and comes back as it was, also after an error. Every layer is
    checked: its output, recomputed from weights, values and the output projection, against the model's own; the
    largest difference is ``record.verified``.

    Args:
        model: a loaded transformers model, a hub name, a folder, or None for the demo model.
        tokenizer: its tokenizer, or its processor for pictures and sounds; may be left out where the model is named.
        text: the text; models of pictures or sounds alone have none.
        text_pair: the second text of a sentence pair.
        **options: see `CaptureOptions`.

    Returns:
        One `Record`, with stack ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``, or ``"vision"`` and
        ``"text"``.

    Raises:
        TextError: an empty text, or one longer than the model's positions.
        ModelError: a model that cannot be loaded.
        CaptureError: a model whose attention could not be captured exactly.
        InterventionError: an intervention that this model cannot carry.

    Example:
        >>> record = capture("bert-base-uncased", text="The cat sat.", text_pair="It slept.")
        >>> record["self"].weights(layer=2, head=0)  # [query key]
    """
    model, inputs = prepared(model, tokenizer, (text, text_pair), options)
    with at_rest(model):
        return run(model, inputs, keeping_of(options), interventions=options.get("interventions", ()))[0]


def prepared(
    model: Any, tokenizer: Any, texts: tuple[str | None, str | None], options: CaptureOptions
) -> tuple[Any, Inputs]:
    """The model, loaded and unwrapped, and what it is to be run on; arguments as of `capture`."""
    check_options(options)
    given: dict[str, Any] = {name: options.get(name) for name in ("image", "sound")}
    more = any(value is not None for value in given.values())
    if model is None or isinstance(model, str | Path):
        trusted = options.get("trust_remote_code", False)
        model, own = load_for(model, texts[0], trust_remote_code=trusted, **given)
        tokenizer = own if tokenizer is None else tokenizer
    if tokenizer is None:
        what = "processor" if more else "tokenizer"
        raise CaptureError(f"capture needs the {what} of {type(model).__name__}: capture(model, {what}, ...)")
    model = unwrapped(model)
    with at_rest(model):
        if more:
            return model, inputs_of(model, tokenizer, texts[0], {"text_pair": texts[1], **options})
        return model, _inputs(model, getattr(tokenizer, "tokenizer", tokenizer), texts, options)


def capture_encoded(model: Any, tokenizer: Any, encoding: Mapping, **options: Unpack[KeepOptions]) -> list[Record]:
    """Run a model on what its tokenizer returned, padded or not, and keep one record for each example.

    Padding is cut off: a record holds real tokens only. Encoder-decoders need ``decoder_input_ids``.

    Args:
        model: a loaded transformers model.
        tokenizer: its tokenizer or processor.
        encoding: what that returned with ``return_tensors="pt"``.
        **options: see `KeepOptions`.

    Raises:
        CaptureError: a model whose attention could not be captured exactly.
    """
    model = unwrapped(model)
    arguments = {name: tensor.to(model.device) for name, tensor in encoding.items() if isinstance(tensor, torch.Tensor)}
    more = has_more_than_text(arguments)
    if "input_ids" not in arguments and not more:
        raise CaptureError(
            f"The encoding holds no tensor input_ids; make it with {type(tokenizer).__name__}(..., return_tensors='pt')"
        )
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    count = len(arguments.get("input_ids", ()))
    source = tuple(tokens_from_encoding(tokenizer, encoding, example=example) for example in range(count))
    target = tuple(tokens_from_ids(tokenizer, ids.tolist()) for ids in arguments.get("decoder_input_ids", ()))
    if getattr(model.config, "is_encoder_decoder", False) and not target:
        raise CaptureError(f"{type(model).__name__} is an encoder-decoder; its encoding needs decoder_input_ids too")
    origins = origins_of(model, arguments) if more else None
    with at_rest(model):
        inputs = Inputs(arguments, source, target, origins)
        return run(model, inputs, keeping_of(options), interventions=options.get("interventions", ()))


def capture_ids(model: Any, **arguments: torch.Tensor) -> list[Record]:
    """Run a model on bare tensors, without a tokenizer or processor: tokens are called by their numbers.

    Args:
        model: a loaded transformers model.
        **arguments: of its forward: ``input_ids`` ``[batch token]``, ``pixel_values``, ``input_features`` ...

    Raises:
        CaptureError: a model whose attention could not be captured exactly.
    """
    model = unwrapped(model)
    sides = [arguments.get("input_ids"), arguments.get("decoder_input_ids")]
    source, target = (() if ids is None else tuple(map(_numbered, ids.tolist())) for ids in sides)
    origins = origins_of(model, arguments) if has_more_than_text(arguments) else None
    with at_rest(model):
        return run(model, Inputs(dict(arguments), source, target, origins), Keeping())


def _numbered(ids: list[int]) -> Tokens:
    return Tokens(pieces=tuple(map(str, ids)), ids=tuple(ids))


def _inputs(model: Any, tokenizer: Any, texts: tuple[str | None, str | None], options: CaptureOptions) -> Inputs:
    text, text_pair = texts
    if text is None:
        raise CaptureError("capture needs a text, an image or a sound: capture(model, tokenizer, text)")
    check_reads(model, text)
    encoding = encode(model, tokenizer, text, text_pair, truncate=options.get("truncate", False))
    named = {name: torch.tensor([values], device=model.device) for name, values in encoding.items()}
    source = tokens_from_encoding(tokenizer, encoding, (text,) if text_pair is None else (text, text_pair))
    if not getattr(model.config, "is_encoder_decoder", False):
        return Inputs(named, (source,))
    named.pop("token_type_ids", None)
    other = options.get("target_tokenizer") or tokenizer
    arguments, target = with_target(model, named, options.get("target"), other)
    return Inputs(arguments, (source,), (target,))
