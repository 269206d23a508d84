"""Loading models and tokenizers by name."""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import torch

from headscope.capturing._hub import check_name, place_of, reached
from headscope.capturing.facts import display_name, leave_out
from headscope.capturing.inputs.inputs import check_reads
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.options import (
    LoadOptions,
    ParsedLoadOptions,
    check_not_loaded,
    loading_of,
    parse_loading,
)
from headscope.capturing.walk import arguments_of
from headscope.errors import CaptureError, ModelError

UNLOADABLE = (OSError, ValueError, KeyError, TypeError, ImportError, AttributeError, RuntimeError)
UNLOADABLE += (pickle.UnpicklingError,)
"""Errors that transformers raises for files that it cannot read, or whose pickles hold code."""


def load_model(
    name: str | Path | None = None,
    *,
    writes: bool = False,
    allow_unfit: bool = False,
    **options: Unpack[LoadOptions],
) -> tuple[Any, Any]:
    """A model and its tokenizer, in evaluation mode.

    Args:
        name: hub name or folder; None for the demo model.
        writes: load it with the head that predicts tokens, which must have been trained.
        allow_unfit: whether that head may be untrained.
        **options: see `LoadOptions`.

    Raises:
        ModelError: if there is no such model or device, the model or its tokenizer cannot be
            loaded, or its files lack the head.
    """
    model = load_bare_model(name, head=NEXT if writes else "", allow_unfit=allow_unfit, **options)
    return model, load_tokenizer(name, **options)


def load_for(
    name: str | Path | None,
    given: ParsedInput | None = None,
    *,
    kept: bool = False,
    writes: bool = False,
    allow_unfit: bool = False,
    **options: Unpack[LoadOptions],
) -> tuple[Any, Any]:
    """A model and its tokenizer or, for pictures and sounds, its processor.

    Whether the model can read the input is checked before its weights are loaded.

    Args:
        name: hub name or folder; None for the demo model.
        given: the input that the model is to read; left out, any text.
        kept: load it with the head that it was saved with, which must have been trained.
        writes: load it with the head that writes about pictures, which must have been trained.
        allow_unfit: whether that head may be untrained.
        **options: see `LoadOptions`.

    Raises:
        ModelError: if there is no such model, the model, its tokenizer or processor cannot be
            loaded, or its files lack the head.
        CaptureError: if the model cannot read the input.
    """
    from transformers import AutoTokenizer

    given = given or ParsedInput()
    if name is None and given.has_media:
        raise ModelError("The demo model reads text; name a model of pictures or sounds (--model)")
    name, loading, config = _read(name, options)
    loader = loader_of(config)
    if kept:
        loader = kept_class(config) or loader_of(config, writes=not given.has_media)
    if writes:
        from transformers import AutoModelForImageTextToText as Answering

        # Some of these configurations are in the map of language models too, without pictures.
        known = type(config) in Answering._model_mapping
        loader = Answering if known else loader_of(config, writes=True)
    cls = class_of(loader, config)
    if cls is not None:
        check_reads(cls, given)
    asks = head_of(cls, config) if kept and not allow_unfit else ""
    if writes and not allow_unfit:
        asks = NEXT
    model = _whole(loader, name, loading, config, asks=asks)
    if given.series is not None:
        return model, None
    if not given.has_media:
        return model, _loaded(AutoTokenizer, name, **loading.files)
    return model, _processor_for(name, loading, given)


def model_and_reader(
    model: Any, tokenizer: Any, given: ParsedInput, options: Mapping[str, Any], *, call: str
) -> tuple[Any, Any]:
    """A model, loaded where it is named, and what reads its input: for a time series nothing.

    Args:
        model: loaded, its name, or None for the demo model.
        tokenizer: or processor; None for that of a named model.
        given: what is to be read.
        options: of the call, of which those of loading are taken.
        call: the function that was called, for messages.

    Raises:
        ModelError: a model that cannot be loaded, or options of loading for one that is.
        CaptureError: where there is nothing to read with.
    """
    if model is None or isinstance(model, str | Path):
        model, own = load_for(model, given, **loading_of(options))
        tokenizer = own if tokenizer is None else tokenizer
    else:
        check_not_loaded(model, options)
    if tokenizer is None and given.series is None:
        what = "processor" if given.has_media else "tokenizer"
        raise CaptureError(
            f"{call} needs the {what} of {type(model).__name__}: {call}(model, {what}, ...)"
        )
    return model, tokenizer


def kept_arguments(name: str | Path | None, **options: Unpack[LoadOptions]) -> tuple[str, ...]:
    """Argument names of the forward of a model with its saved head, found without loading it.

    Args:
        name: hub name or folder; None for the demo model.
        **options: see `LoadOptions`.

    Raises:
        ModelError: if there is no such model.
    """
    config = config_of(name, **options)
    cls: Any = class_of(kept_class(config) or loader_of(config, writes=True), config)
    return () if cls is None else arguments_of(cls)


def config_of(name: str | Path | None, **options: Unpack[LoadOptions]) -> Any:
    """The configuration of a model, which is read without its weights.

    Args:
        name: hub name or folder; None for the demo model.
        **options: see `LoadOptions`.

    Raises:
        ModelError: if there is no such model.
    """
    return _read(name, options)[2]


def load_bare_model(
    name: str | Path | None,
    *,
    head: str = "",
    allow_unfit: bool = False,
    **options: Unpack[LoadOptions],
) -> Any:
    """A model without a tokenizer, in evaluation mode.

    Args:
        name: hub name or folder; None for the demo model.
        head: the task whose head it is to have: ``"next word"``, ``"masked word"`` or ``"class"``;
            none by default.
        allow_unfit: whether that head may be untrained: its predictions then mean nothing.
        **options: see `LoadOptions`.

    Raises:
        ModelError: if there is no such model, or its files lack the head.
    """
    import transformers

    name, loading, config = _read(name, options)
    loader = loader_of(config, writes=head == NEXT)
    if head not in ("", NEXT):
        loader = getattr(transformers, HEADS[head].loader)
    return _whole(loader, name, loading, config, asks="" if allow_unfit else head)


def kept_class(config: Any) -> type | None:
    """The class of transformers, with its head, that a model was saved as; None if unknown."""
    import transformers

    name = next(iter(getattr(config, "architectures", None) or ()), "")
    cls = getattr(transformers, name, None)
    return cls if isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel) else None


def head_of(model_class: type | None, config: Any) -> str:
    """The task that the head of a class of transformers is for, one of `HEADS`, or empty.

    Args:
        model_class: class of the model.
        config: of the model.
    """
    import transformers

    loaders = [(asks, head.loader) for asks, head in HEADS.items()]
    for asks, loader in (*loaders, (CLASS, "AutoModelForImageClassification")):
        known = class_of(getattr(transformers, loader), config)
        if known is not None and known is model_class:
            return asks
    return ""


def class_of(loader: Any, config: Any) -> type | None:
    """The class that a loader chooses for a configuration; None if that is not known beforehand."""
    classes = getattr(loader, "_model_mapping", None)
    cls = loader if classes is None else classes.get(type(config), None)
    # Some configurations belong to several models; the mapping then holds a tuple of classes.
    return cls if isinstance(cls, type) else None


def loader_of(config: Any, *, writes: bool = False) -> Any:
    """The class of transformers that loads a model of this configuration.

    Args:
        config: configuration of the model.
        writes: whether a model without an encoder is to have the head that predicts tokens.
    """
    import transformers

    # Without a head the maps are the same, and fewer weights are loaded; an encoder-decoder needs
    # its head to write the target that its decoder reads.
    if not getattr(config, "is_encoder_decoder", False):
        return transformers.AutoModelForCausalLM if writes else transformers.AutoModel
    for head in ("ForSeq2SeqLM", "ForSpeechSeq2Seq", "ForImageTextToText", ""):
        loader = getattr(transformers, f"AutoModel{head}")
        if type(config) in loader._model_mapping:
            return loader
    return transformers.AutoModelForSeq2SeqLM


def load_tokenizer(name: str | Path | None, **options: Unpack[LoadOptions]) -> Any:
    """A tokenizer by hub name or folder; None for that of the demo model.

    Args:
        name: hub name or folder.
        **options: options of its model; a tokenizer uses only the revision and the permission to
            run its own code.

    Raises:
        ModelError: if there is no such tokenizer.
    """
    from transformers import AutoTokenizer

    loading = parse_loading(name, options)
    return _loaded(AutoTokenizer, place_of(name, loading.files.get("revision")), **loading.files)


def _read(
    name: str | Path | None, options: LoadOptions
) -> tuple[str | Path, ParsedLoadOptions, Any]:
    """The name of a model or the folder of the demo model, the options, and its configuration."""
    from transformers import AutoConfig

    loading = parse_loading(name, options)
    name = place_of(name, loading.files.get("revision"))
    return name, loading, _loaded(AutoConfig, name, **loading.files)


def _processor_for(name: str | Path, loading: ParsedLoadOptions, given: ParsedInput) -> Any:
    """The processor for these inputs: the whole one if there is one, else a part of it."""
    import transformers
    from transformers.utils import is_torchvision_available

    try:
        return _loaded(transformers.AutoProcessor, name, **loading.files)
    except ModelError:
        if given.text is not None:
            raise
    # A folder of wav2vec 2.0 without a tokenizer has what a sound needs, but no whole processor.
    part: Any = transformers.AutoFeatureExtractor
    if given.video is not None and is_torchvision_available():
        part = transformers.AutoVideoProcessor
    elif given.video is not None or given.pictures:
        # Processors of videos need torchvision; that of VideoMAE is one of pictures, too.
        part = transformers.AutoImageProcessor
    return _loaded(part, name, **loading.files)


def _whole(
    loader: Any, name: str | Path, loading: ParsedLoadOptions, config: Any, *, asks: str
) -> Any:
    """A model in evaluation mode; weights that its files lack are an error if ``asks`` needs them,
    else a warning.
    """
    # transformers fills missing weights with random numbers and only logs it. Its lists of weights
    # let us raise or warn instead, and of a head that nobody asked for nothing need be told.
    weights = loading.weights | {"dtype": loading.dtype_of(config), "output_loading_info": True}
    with without_report():
        model, loaded = _loaded(loader, name, **loading.files, **weights)
    warn_of_unread(model, display_name(model), loaded["unexpected_keys"])
    missing = set(loaded["missing_keys"])
    lacking = needed(missing, asks)
    if lacking and asks:
        head = HEADS[asks]
        raise ModelError(
            f"{display_name(model)} has no trained {head.what}: its files lack {listed(lacking)}; "
            f"take a model that was kept with it, such as {head.example}"
        )
    if lacking:
        warnings.warn(
            f"The files of {display_name(model)} lack {listed(lacking)}: these weights are random, "
            "and so is what follows from them",
            stacklevel=2,
        )
    leave_out(model, missing.difference(lacking))
    try:
        return loading.placed(model)
    except torch.OutOfMemoryError as error:
        raise ModelError(
            f"{display_name(model)} does not fit on {loading.device}: {_first_sentence(error)}; "
            "give dtype='bfloat16' (--dtype), quantization_config=, device_map='auto', or "
            "device='cpu' (--device)"
        ) from error


def _loaded(loader: Any, name: str | Path, **options: Any) -> Any:
    check_name(name)
    options |= reached(name, options.get("revision"))
    if "local_files_only" in options and "output_loading_info" in options:
        # Loaders of models look for adapters too, and do not pass them local_files_only.
        options["adapter_kwargs"] = {"local_files_only": options["local_files_only"]}
    try:
        return loader.from_pretrained(str(name), **options)
    except UNLOADABLE as error:
        what = "tokenizer" if "Tokenizer" in loader.__name__ else "model"
        if "Processor" in loader.__name__ or "FeatureExtractor" in loader.__name__:
            what = "processor"
        advice = (
            "expected a folder made by save_pretrained, or a hub name that can be reached from here"
        )
        if options.get("attn_implementation") and not isinstance(error, OSError):
            advice = "leave attn_implementation out, or take 'sdpa' or 'eager'"
        raise ModelError(
            f"Cannot load the {what} {str(name)!r}: {_first_sentence(error)}; {advice}"
        ) from error


def _first_sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".:;")


POOLER = "pooler"
"""The layer over [CLS] that models of the BERT family come with: neither attention nor word heads
read it.
"""


class OutputHead(NamedTuple):
    """What a question needs a model to have.

    Args:
        what: its name in messages.
        loader: class of transformers that loads a model with it.
        example: a model that was kept with it.
    """

    what: str
    loader: str
    example: str


NEXT, MASKED, CLASS, TRANSLATION = "next word", "masked word", "class", "translation"
HEADS = {
    NEXT: OutputHead(
        "head that predicts the next word", "AutoModelForCausalLM", "HuggingFaceTB/SmolLM2-135M"
    ),
    MASKED: OutputHead("masked-word head", "AutoModelForMaskedLM", "google-bert/bert-base-uncased"),
    CLASS: OutputHead(
        "classifier",
        "AutoModelForSequenceClassification",
        "distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    ),
    TRANSLATION: OutputHead(
        "head that writes", "AutoModelForSeq2SeqLM", "Helsinki-NLP/opus-mt-en-de"
    ),
}
"""By the task."""


@contextmanager
def without_report() -> Generator[None]:
    """Keep transformers from printing its table of weights that are missing or not expected."""

    def is_other(line: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in line.getMessage()

    logger = logging.getLogger("transformers.modeling_utils")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)


def warn_of_unread(model: Any, name: str, unexpected: Iterable[str]) -> None:
    """Say so where the files hold weights of parts of the model that it does not have, such as
    further layers; heads, which are parts of their own, are left out on purpose.
    """
    parts = {part for of in (model, model.base_model) for part, _ in of.named_children()}
    prefix = f"{model.base_model_prefix}."
    inside = [key for key in unexpected if "lm_head" not in key.split(".")]
    unread = sorted(key for key in inside if key.removeprefix(prefix).split(".")[0] in parts)
    if unread:
        warnings.warn(
            f"The files of {name} hold {listed(unread)}, which its configuration has no place for: "
            "they are not read",
            stacklevel=2,
        )


def needed(names: Iterable[str], asks: str) -> list[str]:
    """Of missing weights those that matter; a classifier may read the pooler."""
    # By whole parts of the name, since other names may hold the word within.
    return sorted(name for name in names if asks == CLASS or POOLER not in name.split("."))


def listed(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"
