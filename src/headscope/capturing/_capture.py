"""Model and text, picture or sound to Record."""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import nn
from typing_extensions import Unpack

from headscope.capturing._build import Builder
from headscope.capturing._facts import facts_of
from headscope.capturing._inputs import Inputs, encode, with_target
from headscope.capturing._keep import Keep, Keeping, Precision, parse_keep
from headscope.capturing._load import load_model, load_with_processor
from headscope.capturing._origins import followed, has_more_than_text, origins_of
from headscope.capturing._outputs import take_returned
from headscope.capturing._processor import inputs_of
from headscope.capturing._routers import RouterWatch
from headscope.capturing._tokens import tokens_from_encoding, tokens_from_ids
from headscope.capturing._watch import Watch
from headscope.errors import CaptureError
from headscope.record import Record, Tokens


class KeepOptions(TypedDict, total=False):
    """What of a capture is kept."""

    keep: Keep
    """One or several of ``"weights"``; ``"qk"``, queries and keys, from which weights follow exactly; ``"values"``;
    ``"statistics"``, numbers about every row without the row. ``"auto"`` (default): queries, keys and values, and the
    weights too while these stay below 256 MiB."""
    precision: Precision
    """``"float32"`` (default), or ``"float16"`` for half the memory: weights recomputed from queries and keys are
    then off by a few thousandths at most."""
    rows: int | None
    """How many rows the statistics sample; by default all."""
    top: int
    """How many of the largest weights of each row the statistics name; by default none."""
    routers: bool
    """Whether to keep the router scores of mixture-of-experts layers, in models that offer them."""


class CaptureOptions(KeepOptions, total=False):
    """Options of `capture`."""

    target: str | None
    """Text for the decoder of an encoder-decoder; by default what the model itself generates, greedily."""
    target_tokenizer: Any
    """Tokenizer of the target side, where it is another one."""
    image: Any
    """A PIL picture, an array ``[height width channel]`` of uint8, or a path; ``tokenizer`` is the processor then."""
    sound: Any
    """Floats ``[sample]``, or the path of a .wav file; ``tokenizer`` is the processor then."""
    sampling_rate: int | None
    """Samples a second of a sound; a file tells its own."""
    truncate: bool
    """Cut a text that is longer than the model's positions instead of raising."""
    trust_remote_code: bool
    """Whether a model that is named may bring code of its own."""


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

    Example:
        >>> record = capture("bert-base-uncased", text="The cat sat.", text_pair="It slept.")
        >>> record["self"].weights(layer=2, head=0)  # [query key]
    """
    _check_options(options)
    more = any(options.get(name) is not None for name in ("image", "sound"))
    if model is None or isinstance(model, str | Path):
        trusted = options.get("trust_remote_code", False)
        model, own = (load_with_processor if more else load_model)(model, trust_remote_code=trusted)
        tokenizer = own if tokenizer is None else tokenizer
    if tokenizer is None:
        what = "processor" if more else "tokenizer"
        raise CaptureError(f"capture needs the {what} of {type(model).__name__}: capture(model, {what}, ...)")
    model = unwrapped(model)
    if more:
        with at_rest(model):
            inputs = inputs_of(model, tokenizer, text, {"text_pair": text_pair, **options})
            return run(model, inputs, keeping_of(options))[0]
    if text is None:
        raise CaptureError("capture needs a text, an image or a sound: capture(model, tokenizer, text)")
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    encoding = encode(model, tokenizer, text, text_pair, truncate=options.get("truncate", False))
    texts = (text,) if text_pair is None else (text, text_pair)
    with at_rest(model):
        inputs = _inputs(model, tokenizer, encoding, texts=texts, options=options)
        return run(model, inputs, keeping_of(options))[0]


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
        return run(model, Inputs(arguments, source, target, origins), keeping_of(options))


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


@contextmanager
def at_rest(model: nn.Module) -> Generator[None]:
    """No gradients and evaluation mode inside; every module's training flag as it was afterwards."""
    training = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        for module, flag in training:
            module.training = flag


def keeping_of(options: Mapping) -> Keeping:
    """What the options say is to be kept."""
    return parse_keep(**{name: options[name] for name in KeepOptions.__annotations__ if name in options})


def run(model: nn.Module, inputs: Inputs, keeping: Keeping) -> list[Record]:
    """Run a model once and build one record for each example; see `capture` for what is raised."""
    with uncompiled(model):
        return _run(model, inputs, keeping)


def _run(model: nn.Module, inputs: Inputs, keeping: Keeping) -> list[Record]:
    facts = facts_of(model)
    builder = Builder(inputs, keeping, model)
    routers = RouterWatch(model) if keeping.routers else nullcontext()
    options = _without_cache(model) | ({"output_router_logits": True} if keeping.routers else {})
    try:
        with (
            followed(model, inputs.arguments, inputs.origins) as (arguments, unfollowed),
            Watch(model, inputs.count, unfollowed(builder.take), unfollowed(builder.join)),
            routers,
        ):
            outputs = model(**arguments, **options)
    except CaptureError as error:
        has_more = inputs.origins is not None
        returned = None if has_more else take_returned(model, inputs, keeping, _without_cache(model))
        if returned is None:
            raise error from None
        return returned.records(facts)
    if isinstance(routers, RouterWatch):
        builder.routers = routers.found(outputs, inputs.count)
    if builder.seen:
        return builder.records(facts)
    raise CaptureError(
        f"{type(model).__name__} computed no softmax attention that could be seen: it has none (as state-space models "
        "do), or computes it in a form that headscope does not know"
    )


def _inputs(model: Any, tokenizer: Any, encoding: Any, *, texts: tuple[str, ...], options: CaptureOptions) -> Inputs:
    named = {name: torch.tensor([values], device=model.device) for name, values in encoding.items()}
    source = tokens_from_encoding(tokenizer, encoding, texts)
    if not getattr(model.config, "is_encoder_decoder", False):
        return Inputs(named, (source,))
    named.pop("token_type_ids", None)
    other = options.get("target_tokenizer") or tokenizer
    arguments, target = with_target(model, named, options.get("target"), other)
    return Inputs(arguments, (source,), (target,))


def unwrapped(model: Any) -> Any:
    """The model behind ``torch.compile``, which would run past any watching."""
    return getattr(model, "_orig_mod", model)


@contextmanager
def uncompiled(model: nn.Module) -> Generator[None]:
    """Run parts of a model that were compiled as they are written, so that they can be watched."""
    if "torch._dynamo" not in sys.modules:  # nothing can have been compiled
        yield
        return
    before = [(module, module._compiled_call_impl) for module in model.modules()]
    try:
        for module, call in before:
            if call is not None:
                module._compiled_call_impl = None
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        for module, call in before:
            if call is not None:
                module._compiled_call_impl = call


def _without_cache(model: nn.Module) -> dict[str, bool]:
    return {"use_cache": False} if hasattr(model.config, "use_cache") else {}


def _check_options(options: Mapping) -> None:
    known = KeepOptions.__annotations__ | CaptureOptions.__annotations__
    for name in options:
        if name not in known:
            raise CaptureError(f"capture has no option {name!r}; there are {', '.join(known)}")
    keeping_of(options)
