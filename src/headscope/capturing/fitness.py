"""Whether a model and its texts are fit for what is asked of them: the one place where they are
refused.

Three things make a table of noise that looks like any other: a head that was never trained, a model
that sees the word it is to predict, and texts that the tokenizer does not know. Each is refused
before any work, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.loading._missing import (
    CLASS,
    HEADS,
    MASKED,
    NEXT,
    TRANSLATION,
    listed,
    needed,
)
from headscope.capturing.run import at_rest, uncompiled
from headscope.capturing.seam import sessions
from headscope.errors import ModelError, TextError

__all__ = [
    "CLASS",
    "MASKED",
    "MOST_UNKNOWN",
    "NEXT",
    "TRANSLATION",
    "check_fit",
    "check_known",
    "first_ids",
    "logits_of",
    "looks_ahead",
    "new_weights",
    "share_unknown",
    "unknown_id",
]

MOST_UNKNOWN = 0.5
"""Largest share of unknown tokens in what a study reads; more than that and it studies the unknown
token. Ours.
"""
TRIED = 8
"""Tokens that a model is tried on: enough to see the first of them move when the last one
changes.
"""
MOVED = 1e-4
"""Part of the largest logit that rounding in single precision stays far below."""
SAMPLED = 2**20
"""Numbers of a matrix that are looked at: they tell widths that differ by one part in a hundred."""
ANYWAY = "pass allow_unfit=True (--allow-unfit) if it is meant to be so"


def check_fit(model: Any, asks: str, ids: Sequence[int] = (), *, generates: bool = False) -> None:
    """Raise where a model is not fit for a question, whoever loaded it.

    A head is untrained where transformers made its weights anew while it read the others from
    files, and they still are what they were made as; random weights in all of a model are the
    user's own business. Whether a model sees ahead is found by its numbers: the last token is
    changed, and what it predicts before must stay.

    Args:
        model: loaded.
        asks: one of `HEADS`, or empty for what needs no head.
        ids: a text to try it on; tokens of any text.
        generates: whether it goes on with a text, where some models that see ahead prepare a place
            for the next word.

    Raises:
        ModelError: saying why.
    """
    if asks not in HEADS or not isinstance(model, nn.Module):
        return
    _check_trained(model, asks)
    # An intervention may change what a model sees, and so the outcome of the trial.
    if asks in (NEXT, MASKED) and len(ids) >= 2 and not sessions():
        _check_sight(model, asks, ids, generates=generates)


def _check_trained(model: nn.Module, asks: str) -> None:
    head = HEADS[asks]
    new = needed(new_weights(model), asks)
    if new:
        raise ModelError(
            f"{type(model).__name__} has no trained {head.what}: {listed(new)} were not in the "
            "files it was loaded from, and nothing was learnt since; take a model that was kept "
            f"with it, such as {head.example}, or {ANYWAY}"
        )


def _check_sight(model: nn.Module, asks: str, ids: Sequence[int], *, generates: bool) -> None:
    """Raise where a model sees the word it is to predict, or only one side of the word to guess."""
    name, head = type(model).__name__, HEADS[asks]
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        if not generates:
            raise ModelError(
                f"{name} is an encoder-decoder, and was asked for the {asks}; take the task "
                f"translation, or a model loaded with {head.loader}"
            )
        return
    if generates and _prepares_its_place(model):
        return
    ahead = looks_ahead(model, ids, asks)
    if ahead and asks == NEXT:
        raise ModelError(
            f"{name} sees the words after a word, and was asked to predict the next one: it would "
            f"only copy it; take a causal model, such as {head.example}, or {ANYWAY}"
        )
    if not ahead and asks == MASKED:
        raise ModelError(
            f"{name} looks back only, and was asked for masked words, which are predicted from "
            f"both sides; take a model such as {head.example}, or {ANYWAY}"
        )


def first_ids(batch: Any) -> list[int]:
    """The tokens of the first example of a batch, without its padding; none where it has no
    tokens.
    """
    ids = batch.get("input_ids")
    if ids is None or not len(ids):
        return []
    mask = batch.get("attention_mask")
    return ids[0].tolist() if mask is None else ids[0][mask[0] == 1].tolist()


def new_weights(model: nn.Module) -> tuple[str, ...]:
    """Names of the weights that were made anew when a model was loaded, and that nothing was learnt
    by since.

    transformers marks the weights that it reads from files. Of the others, biases start as zeros
    and norms as ones, exactly: one step of training would have moved them. Matrices are written
    once, with normal numbers as wide as the configuration says; what is trained is written again,
    and rows for new tokens stand among those that were read.
    """
    named = dict(model.named_parameters())
    new = {}
    for name, parameter in named.items():
        if not getattr(parameter, "_is_hf_initialized", False):
            new[name] = parameter
    there = [parameter for parameter in new.values() if not parameter.is_meta]
    # Without any mark the model was not loaded by transformers, or is random on purpose.
    if len(new) == len(named) or not there:
        return ()
    width = getattr(getattr(model, "config", None), "initializer_range", None)
    for weight in there:
        # One weight that was learnt shows that the model was trained after it was loaded.
        if not (_as_made(weight) if weight.ndim == 1 else _drawn(weight, width)):
            return ()
    return tuple(new)


def looks_ahead(model: nn.Module, ids: Sequence[int], asks: str = NEXT) -> bool:
    """Whether what a model predicts at the first tokens depends on the last one.

    Args:
        model: that gives logits ``[batch token word]``.
        ids: a text.
        asks: what its head is for, for the message.

    Raises:
        ModelError: where it gives no logits.
    """
    first = [int(number) for number in ids[:TRIED]]
    other = next((number for number in first if number != first[-1]), None)
    if other is None:
        # All are the same token; a neighbour in the vocabulary is another one.
        other = first[-1] - 1 if first[-1] else 1
    device = device_of(model)
    differences = []
    with at_rest(model), uncompiled(model):
        for last in (first[-1], other):
            given = torch.tensor([[*first[:-1], last]], device=device)
            differences.append(
                logits_of(model(**_arguments(model, given)), model, asks)[0, :-1].double()
            )
    one, two = differences
    rounding = max(MOVED, 4 * torch.finfo(_dtype(model)).eps)
    return float((one - two).abs().max()) > rounding * max(float(one.abs().max()), 1e-30)


def logits_of(output: Any, model: Any, asks: str) -> torch.Tensor:
    """What a model's head gives.

    Args:
        output: of the model.
        model: for the message.
        asks: one of `HEADS`.

    Raises:
        ModelError: where it has no head.
    """
    logits = getattr(output, "logits", None)
    if isinstance(logits, torch.Tensor):
        return logits
    head = HEADS[asks]
    raise ModelError(
        f"{type(model).__name__} has no {head.what}: it gives no logits; load a model that was "
        f"trained with one, such as {head.example}, with {head.loader}"
    )


def share_unknown(tokenizer: Any, ids: Iterable[int]) -> float:
    """Share of unknown tokens among those of the text itself; 0 where the tokenizer knows
    everything.
    """
    unknown, others = unknown_id(tokenizer)
    if unknown is None:
        return 0.0
    own = [number for number in ids if number not in others]
    return own.count(unknown) / len(own) if own else 0.0


def unknown_id(tokenizer: Any) -> tuple[int | None, Collection[int]]:
    """Number of the unknown token, None where there is none of its own, and those of the other
    special tokens.
    """
    unknown = getattr(tokenizer, "unk_token_id", None)
    names = (
        "cls_token_id",
        "sep_token_id",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "mask_token_id",
    )
    others = {number for name in names if (number := getattr(tokenizer, name, None)) is not None}
    # GPT-2 and its like have one token for everything special, and bytes for all that is unknown.
    return (None if unknown in others else unknown), others


def check_known(tokenizer: Any, ids: Iterable[int], what: str, most: float = MOST_UNKNOWN) -> None:
    """Raise where most of a text is unknown to a tokenizer.

    Args:
        tokenizer: of the model.
        ids: of the text, or of all texts.
        what: is called so in the message.
        most: largest share of unknown tokens.

    Raises:
        TextError: with the share.
    """
    share = share_unknown(tokenizer, ids)
    if share > most:
        raise TextError(
            f"{share:.0%} of the tokens of {what} are {tokenizer.unk_token}: the tokenizer does "
            "not know its words, and a model sees them all alike; take texts of its own "
            f"vocabulary, or {ANYWAY}"
        )


def _as_made(vector: torch.Tensor) -> bool:
    return bool((vector == 0).all()) or bool((vector == 1).all())


def _drawn(matrix: torch.Tensor, width: float | None) -> bool:
    """Whether a matrix holds the normal numbers that it was made with: written once, width and
    tails as drawn.
    """
    # torch counts what is written to a tensor, but for those of inference mode, which cannot be
    # trained.
    if not width or not (matrix.is_inference() or matrix._version == 1):
        return False
    numbers = matrix.detach().flatten()[:SAMPLED].double() / width
    mean, square, fourth = (float((numbers**power).mean()) for power in (1, 2, 4))
    # Standard errors of the three for normal numbers: 1, sqrt(2) and sqrt(96), over the root of how
    # many there are. Within five of them chance makes one matrix in half a million look trained.
    allowed = 5 / numbers.numel() ** 0.5
    return (
        abs(mean) < allowed and abs(square - 1) < 1.42 * allowed and abs(fourth - 3) < 9.8 * allowed
    )


def _prepares_its_place(model: nn.Module) -> bool:
    """Whether a model makes its own input of a text to go on with, as XLNet and XLM do, which hide
    the next word.
    """
    from transformers import GenerationMixin

    own = getattr(type(model), "prepare_inputs_for_generation", None)
    return own is not GenerationMixin.prepare_inputs_for_generation


def _arguments(model: nn.Module, ids: torch.Tensor) -> dict[str, Any]:
    arguments: dict[str, Any] = {"input_ids": ids}
    names = inspect.signature(model.forward).parameters
    if "attention_mask" in names:
        arguments["attention_mask"] = torch.ones_like(ids)
    if hasattr(getattr(model, "config", None), "use_cache"):
        arguments["use_cache"] = False
    return arguments


def _dtype(model: nn.Module) -> torch.dtype:
    return next(
        (each.dtype for each in model.parameters() if each.is_floating_point()), torch.float32
    )
