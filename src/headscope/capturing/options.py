"""Options of capturing, documented and checked in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import nn

from headscope.capturing._hub import check_revision
from headscope.capturing.keep import Keep, KeepChoice, Precision, parse_keep
from headscope.capturing.seam import InterventionLike
from headscope.errors import CaptureError, InterventionError, ModelError, check_option_names
from headscope.parts import PartsChoice, check_choice

HALF = (torch.float16, torch.bfloat16)
"""Half precisions, in which a CPU is slow and rounds every result."""


class LoadOptions(TypedDict, total=False):
    """How a model given by name is loaded; refused for a model that is already loaded."""

    device: str | torch.device
    """Where it runs: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"`` ... ``"auto"`` (default) is the
    first CUDA GPU if there is one, else the CPU.
    """
    dtype: str | torch.dtype
    """Precision of its weights: ``"float32"``, ``"bfloat16"``, ``"float16"``, ``"float64"``.
    ``"auto"`` (default) is the precision of its files on an accelerator. On the CPU, files in half
    precision are read as float32: it holds the same weights exactly, and results are not rounded to
    half precision.
    """
    revision: str | None
    """Branch, tag or commit of the hub repository; by default its main branch."""
    device_map: Any
    """As in ``from_pretrained``: ``"auto"`` spreads a model over all GPUs, then over other memory
    (needs accelerate). Use it instead of ``device``.
    """
    quantization_config: Any
    """As in ``from_pretrained``, such as ``transformers.BitsAndBytesConfig(load_in_4bit=True)``."""
    attn_implementation: str | None
    """How it computes attention: ``"sdpa"``, ``"eager"``, ``"flash_attention_2"`` ... by default
    its own choice. The captured numbers are the same up to rounding.
    """
    trust_remote_code: bool
    """Whether Python code that comes with the model's files may be run."""


LOADING = tuple(LoadOptions.__annotations__)
"""Names of the options."""


@dataclass(frozen=True)
class ParsedLoadOptions:
    """`LoadOptions`, parsed.

    Args:
        device: where the model runs; None if ``device_map`` decides it.
        dtype: precision of the weights; None for ``"auto"``.
        files: arguments for every ``from_pretrained`` (configuration, tokenizer, model).
        weights: arguments for the model's ``from_pretrained`` only.
    """

    device: torch.device | None
    dtype: torch.dtype | None
    files: dict[str, Any]
    weights: dict[str, Any]

    def dtype_of(self, config: Any) -> torch.dtype | str:
        """The ``dtype`` to give to ``from_pretrained``, for files with this configuration."""
        if self.dtype is not None:
            return self.dtype
        return torch.float32 if self._widens(config) and _stated(config) in HALF else "auto"

    def placed(self, model: Any) -> Any:
        """The model on its device, in evaluation mode."""
        # If the configuration does not state a precision, "auto" has read the files in the one in
        # which they are saved, which may be half.
        if self.dtype is None and self._widens(model.config) and model.dtype in HALF:
            model = model.float()
        # Quantised weights are placed on their device while they are loaded, and may refuse to be
        # moved.
        if self.device is not None and not quantised(model.config):
            model = model.to(self.device)
        return model.eval()

    def _widens(self, config: Any) -> bool:
        on_processor = self.device is not None and self.device.type == "cpu"
        return on_processor and not quantised(config) and "quantization_config" not in self.weights


def parse_loading(name: str | Path | None, options: Mapping[str, Any]) -> ParsedLoadOptions:
    """The options of `LoadOptions`, checked before anything is read.

    Args:
        name: name of the model; None for the demo model.
        options: as the user gave them; None means not given.

    Raises:
        ModelError: an unknown option, a device that is missing, or a revision of a folder.
    """
    check_option_names("Loading a model", options, LOADING, ModelError)
    given = {option: value for option, value in options.items() if value is not None}
    files = {"trust_remote_code": bool(given.pop("trust_remote_code", False))}
    if "revision" in given:
        files["revision"] = check_revision(name, given.pop("revision"))
    device, dtype = given.pop("device", "auto"), parse_dtype(given.pop("dtype", "auto"))
    if "device_map" not in given:
        return ParsedLoadOptions(parse_device(device), dtype, files, given)
    if device != "auto":
        raise ModelError(
            f"device={str(device)!r} and device_map={given['device_map']!r} both say where the "
            "model runs; give one"
        )
    if find_spec("accelerate") is None:
        raise ModelError(
            "device_map= needs accelerate, which is not installed: pip install accelerate, or "
            "give device="
        )
    return ParsedLoadOptions(None, dtype, files, given)


def parse_device(given: Any) -> torch.device:
    """The device that was asked for, if this machine has it.

    Raises:
        ModelError: if it is no device, or this machine does not have it.
    """
    if given == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(given)
        kind = torch.get_device_module(device)
    except (RuntimeError, TypeError):
        device = None
    # torch knows a device "meta", but tensors there have a shape and no numbers.
    if device is None or device.type == "meta":
        raise ModelError(
            f"There is no device {str(given)!r}; give auto, cpu, cuda, cuda:1, mps or xpu "
            "(--device)"
        )
    if not kind.is_available():
        raise ModelError(
            f"The device {str(given)!r} is not available: PyTorch {torch.__version__} sees no "
            f"{device.type} on this machine; give cpu (--device cpu), or install the PyTorch that "
            "is built for it"
        )
    count = kind.device_count()
    if device.index is not None and device.index >= count:
        there = f"{device.type}:0" + (f" to {device.type}:{count - 1}" if count > 1 else " only")
        raise ModelError(f"The device {str(given)!r} is not available: this machine has {there}")
    return device


def parse_dtype(given: Any) -> torch.dtype | None:
    """The floating-point precision; None for ``"auto"``.

    Raises:
        ModelError: if it is not a floating-point precision.
    """
    if isinstance(given, str) and given == "auto":
        return None
    dtype = getattr(torch, given.removeprefix("torch."), None) if isinstance(given, str) else given
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ModelError(
            f"There is no precision {str(given)!r} for weights; give auto, float32, bfloat16, "
            "float16 or float64 (--dtype)"
        )
    return dtype


def check_not_loaded(model: Any, options: Mapping[str, Any]) -> None:
    """Raise if a loaded model is none, or if options of loading are given for it, where they would
    do nothing.

    ``trust_remote_code`` may be given: the model's code has been run already.

    Raises:
        ModelError: with what to do instead.
    """
    if model is not None and not isinstance(model, nn.Module):
        raise ModelError(
            f"Expected a model (a torch.nn.Module, its name or its folder), got "
            f"{type(model).__name__}; give the model first and its tokenizer second"
        )
    for name in LOADING:
        if name == "trust_remote_code" or options.get(name) is None:
            continue
        how = "move it with model.to(...)" if name in ("device", "dtype") else "load it that way"
        raise ModelError(
            f"{name}={str(options[name])!r} is for a model that is named, and this "
            f"{type(model).__name__} is loaded already; leave {name} out, or {how}"
        )


def quantised(config: Any) -> str:
    """How a model's weights are quantised, such as ``"bitsandbytes"``; empty if they are not."""
    how = getattr(config, "quantization_config", None)
    if how is None:
        return ""
    method = (how if isinstance(how, Mapping) else vars(how)).get("quant_method", "")
    return str(getattr(method, "value", method)) or "quantised"


def _stated(config: Any) -> torch.dtype | None:
    """The precision that a configuration, or that of the text model inside it, states."""
    inner = config.get_text_config() if hasattr(config, "get_text_config") else config
    dtype = getattr(config, "dtype", None) or getattr(inner, "dtype", None)
    return getattr(torch, dtype, None) if isinstance(dtype, str) else dtype


class RecordOptions(TypedDict, total=False):
    """Options that choose what a record holds."""

    keep: Keep
    """One or several of ``"weights"``; ``"qk"``, queries and keys, from which weights follow
    exactly; ``"values"``; ``"before"``, queries and keys before positions are applied, as the model
    made them; ``"statistics"``, numbers about every row without the row; ``"norms"``, value norms
    and contributions (given alone, it keeps queries and keys too, and weights as ``"auto"`` does);
    ``"alti"``, the same with ALTI, which takes longer than all other contributions together.
    ``"auto"`` (default): queries, keys and values, and the weights too while these stay below
    256 MiB.
    """
    precision: Precision
    """``"float32"`` (default), or ``"float16"`` for half the memory: weights recomputed from
    queries and keys are then off by a few thousandths at most.
    """
    rows: int | None
    """How many rows the statistics sample; by default all."""
    top: int
    """How many of the largest weights of each row the statistics name; by default none."""
    heads: Sequence[tuple[int, int] | tuple[str, int, int]] | None
    """The only heads to keep, as pairs of layer and head, ``[(12, 7), (3, 0)]``; put the stack
    first to choose from one stack only, ``[("cross", 3, 0)]``. Layers without a chosen head are
    left out of the record; every layer is still checked. With ``"norms"``, value norms are those of
    these heads, and contributions are still sums over all heads of the layer. All by default.
    """
    routers: bool
    """Whether to keep the router scores of mixture-of-experts layers, in models that offer them."""


class KeepOptions(RecordOptions, total=False):
    """Options that choose what a capture keeps, and of which model."""

    interventions: Sequence[InterventionLike]
    """Interventions on the model during the run, such as ``[headscope.Zero(layer=2, heads=[0])]``;
    by default none.
    """


class CaptureOptions(KeepOptions, LoadOptions, total=False):
    """Options of `capture`; those of `LoadOptions` are for models given by name."""

    target: str | None
    """Text for the decoder of an encoder-decoder; by default what the model itself generates,
    without sampling. As in training the decoder reads it shifted: the start token and all tokens
    but the last, and the row of each token is where the next one is written. The last token, the
    end where the tokenizer adds one, has no row.
    """
    parts: PartsChoice | None
    """Which parts of what is read ``Tokens.parts`` names, as of `headscope.parts.parts_of`; by
    default the turns and documents of a conversation.
    """
    target_tokenizer: Any
    """Tokenizer of the target side, if it differs from that of the source."""
    image: Any
    """A PIL picture, an array ``[height width channel]`` of uint8, or a path; or a list of them for
    a text with a placeholder for each picture. ``tokenizer`` is the processor then.
    """
    video: Any
    """An array ``[frame height width channel]`` of uint8, a list of pictures, or the path of a
    folder of pictures, of a .npy file, a GIF or a film (``headscope[video]``); ``tokenizer`` is the
    processor then. Of more frames than a model has positions for, as many are taken in even steps.
    """
    sound: Any
    """Floats ``[sample]``, or the path of a .wav file; ``tokenizer`` is the processor then."""
    sampling_rate: int | None
    """Samples per second of a sound; a file contains its own."""
    series: Any
    """Numbers ``[time]`` or ``[time channel]`` for a model of time series (PatchTST, TimesFM),
    which needs no ``tokenizer``.
    """
    model_kwargs: Mapping[str, Any]
    """More arguments of the model's forward, such as ``{"use_cache": True}``. Without that a
    capture is one pass without a key/value cache, and ``record.model.called_with`` records it.
    """
    truncate: bool
    """Cut a text that is longer than the model's positions instead of raising, or a sound or time
    series that is longer than the model reads (of a series the last steps stay). A warning gives
    the numbers, of many texts once, and the record holds the part of a text that was read.
    """


def keeping_of(options: Mapping[str, Any]) -> KeepChoice:
    """The choice of what to keep, from the options.

    Raises:
        CaptureError: an option whose value is not allowed.
        InterventionError: interventions that are none.
        TextError: parts that are none.
    """
    check_choice(options.get("parts"))
    cut, changes = options.get("truncate", False), options.get("interventions", ())
    if not isinstance(cut, bool):
        raise CaptureError(f"truncate is True or False, whether to cut long texts, not {cut!r}")
    listed = isinstance(changes, Sequence)
    if not listed or not all(isinstance(each, InterventionLike) for each in changes):
        raise InterventionError(
            "interventions takes a list such as [headscope.Zero(layer=0, heads=[1])], not "
            f"{changes!r}"
        )
    return parse_keep(**kept_of(options))


def kept_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say what a record holds."""
    return {name: options[name] for name in RecordOptions.__annotations__ if name in options}


def loading_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say how a model is loaded."""
    return {name: value for name, value in options.items() if name in LOADING}


def check_options(options: Mapping[str, Any]) -> None:
    """Raise if an option is not one of `CaptureOptions`, or its value is not allowed.

    Raises:
        CaptureError: naming the option.
    """
    known = KeepOptions.__annotations__ | CaptureOptions.__annotations__
    check_option_names("capture", options, known, CaptureError)
    keeping_of(options)
