"""How a model given by name is loaded: device, precision, revision, quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import nn

from headscope.capturing.loading._hub import check_revision
from headscope.errors import ModelError

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
    unknown = [option for option in options if option not in LOADING]
    if unknown:
        raise ModelError(
            f"Loading a model has no option {unknown[0]!r}; there are {', '.join(LOADING)}"
        )
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
