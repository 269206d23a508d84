"""Options of capturing, documented and checked in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from headscope.capturing.keep import Keep, KeepChoice, Precision, parse_keep
from headscope.capturing.loading.options import LOADING, LoadOptions
from headscope.capturing.seam import InterventionLike
from headscope.errors import CaptureError, InterventionError


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
    capture is one pass without a key/value cache, and ``record.model.called_with`` says so.
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
    """
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
    for name in options:
        if name not in known:
            raise CaptureError(f"capture has no option {name!r}; there are {', '.join(known)}")
    keeping_of(options)
