"""Checks whether a model and its texts fit a study; unfit ones are refused here and nowhere else.

Three things make a table of noise that looks like any other: a head that was never trained, a model
that sees the word it is to predict, and texts that the tokenizer does not know. Each is refused
before any computation, with the reason.
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.loading import CLASS, HEADS, MASKED, NEXT, TRANSLATION, listed, needed
from headscope.capturing.run import at_rest, uncompiled, unwrapped
from headscope.capturing.seam import sessions
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import CaptureError, ModelError, TextError

__all__ = ["CLASS", "MASKED", "NEXT", "TRANSLATION"]

MOST_UNKNOWN = 0.5
"""Largest share of unknown tokens in the texts of a study; with more, the study would mostly be
about the unknown token. The value is our choice.
"""
STRANGE = ("\ua510", "\U00012055")
"""Words of scripts (Vai, cuneiform) that no vocabulary holds and that share no byte in UTF-8."""
TRIED = 8
"""Number of tokens that a model is tried on: enough to see whether predictions at the first of them
change with the last one.
"""
MOVED = 1e-4
"""Part of the largest logit; differences by rounding in single precision are far smaller."""
SAMPLED = 2**20
"""How many numbers of a matrix are read: standard deviations that differ by 1 % are then seen to
differ.
"""
ANYWAY = "pass allow_unfit=True (--allow-unfit) if it is meant to be so"


def check_fit(model: Any, asks: str, ids: Sequence[int] = (), *, generates: bool = False) -> None:
    """Raise if a model is not fit for a task, whoever loaded it.

    A head is untrained if transformers initialised its weights while it read the others from files,
    and they have not changed since. A model with only random weights is accepted: the user must
    have meant it. Whether a model sees ahead is found by a trial: the last token is changed, and
    its predictions at earlier tokens must stay the same.

    Args:
        model: a loaded model.
        asks: the task, one of `HEADS`, or empty for a task that needs no head.
        ids: tokens of any text, to try the model on.
        generates: whether it is to continue a text; some models that see ahead then hide the next
            word themselves.

    Raises:
        ModelError: with the reason.
    """
    if asks not in HEADS or not isinstance(model, nn.Module):
        return
    head, new = HEADS[asks], needed(new_weights(model), asks)
    if new:
        raise ModelError(
            f"{type(model).__name__} has no trained {head.what}: {listed(new)} were not in the "
            "files it was loaded from, and nothing was learnt since; take a model that was kept "
            f"with it, such as {head.example}, or {ANYWAY}"
        )
    # An intervention may change what a model sees, and so the outcome of the trial.
    if asks in (NEXT, MASKED) and len(ids) >= 2 and not sessions():
        _check_sight(model, asks, ids, generates=generates)


def _check_sight(model: nn.Module, asks: str, ids: Sequence[int], *, generates: bool) -> None:
    """Raise if a model sees the word it is to predict, or only one side of a masked word."""
    name, head = type(model).__name__, HEADS[asks]
    if reads_target(model):
        if not generates:
            raise ModelError(
                f"{name} is an encoder-decoder, and was asked for the {asks}; take the task "
                f"translation, or a model loaded with {head.loader}"
            )
        return
    from transformers import GenerationMixin

    # XLNet and XLM prepare the text to continue themselves, and hide the next word.
    own = getattr(type(model), "prepare_inputs_for_generation", None)
    if generates and own is not GenerationMixin.prepare_inputs_for_generation:
        return
    ahead = looks_ahead(model, ids, asks)
    if ahead and asks == NEXT:
        # What it writes step by step it would compute otherwise in one pass, and not be recorded.
        anyway = "" if generates else f", or {ANYWAY}"
        raise ModelError(
            f"{name} sees the words after a word, and was asked to predict the next one: it would "
            f"only copy it; take a causal model, such as {head.example}{anyway}"
        )
    if not ahead and asks == MASKED:
        raise ModelError(
            f"{name} looks back only, and was asked for masked words, which are predicted from "
            f"both sides; take a model such as {head.example}, or {ANYWAY}"
        )


def first_ids(batch: Any) -> list[int]:
    """The ids of the first example of a batch, without padding; empty for a batch without ids."""
    ids = batch.get("input_ids")
    if ids is None or not len(ids):
        return []
    mask = batch.get("attention_mask")
    return ids[0].tolist() if mask is None else ids[0][mask[0] == 1].tolist()


def new_weights(model: nn.Module) -> tuple[str, ...]:
    """Names of the weights that were initialised when a model was loaded, and not trained since.

    transformers marks the weights that it reads from files. Of the others, biases start as zeros
    and norms as ones, exactly: one step of training would have changed them. Matrices are written
    once, with normal numbers whose standard deviation the configuration states. A trained matrix
    has been written again; one with rows for new tokens also holds rows that were read from files.
    """
    named = dict(model.named_parameters())
    new = {}
    for name, parameter in named.items():
        if not getattr(parameter, "_is_hf_initialized", False):
            new[name] = parameter
    there = [parameter for parameter in new.values() if not parameter.is_meta]
    # If no weight is marked, the model was not loaded by transformers, or is random on purpose.
    if len(new) == len(named) or not there:
        return ()
    width = getattr(getattr(model, "config", None), "initializer_range", None)
    # A single trained weight shows that the model was trained after it was loaded.
    return tuple(new) if all(_drawn(weight, width) for weight in there) else ()


def looks_ahead(model: nn.Module, ids: Sequence[int], asks: str = NEXT) -> bool:
    """Whether a model's predictions at the first tokens depend on the last one.

    Args:
        model: a model that returns logits ``[batch token word]``.
        ids: tokens of a text.
        asks: the task of its head, for the message.

    Raises:
        ModelError: if it returns no logits.
    """
    first = [int(number) for number in ids[:TRIED]]
    # Where all are the same token, a neighbour in the vocabulary is another one.
    other = next((number for number in first if number != first[-1]), abs(first[-1] - 1))
    given = torch.tensor([first, [*first[:-1], other]], device=device_of(model))
    with at_rest(model), uncompiled(model):
        arguments: dict[str, Any] = {"input_ids": given}
        if "attention_mask" in arguments_of(model):
            arguments["attention_mask"] = torch.ones_like(given)
        if hasattr(getattr(model, "config", None), "use_cache"):
            arguments["use_cache"] = False
        one, two = logits_of(model(**arguments), model, asks)[:, :-1].double()
    kinds = [each.dtype for each in model.parameters() if each.is_floating_point()]
    rounding = max(MOVED, 4 * torch.finfo(kinds[0] if kinds else torch.float32).eps)
    return float((one - two).abs().max()) > rounding * max(float(one.abs().max()), 1e-30)


def logits_of(output: Any, model: Any, asks: str) -> torch.Tensor:
    """The logits in the output of a model.

    Args:
        output: output of the model.
        model: the model, for the message.
        asks: one of `HEADS`.

    Raises:
        ModelError: if it has no head.
    """
    logits = getattr(output, "logits", None)
    if isinstance(logits, torch.Tensor):
        return logits
    head = HEADS[asks]
    raise ModelError(
        f"{type(model).__name__} has no {head.what}: it gives no logits; load a model that was "
        f"trained with one, such as {head.example}, with {head.loader}"
    )


def check_known(
    tokenizer: Any,
    ids: Iterable[int],
    what: str,
    most: float | None = MOST_UNKNOWN,
    *,
    texts: int = 1,
) -> None:
    """Raise if most of a text is unknown to a tokenizer.

    Args:
        tokenizer: tokenizer of the model.
        ids: tokens of the text, or of all texts.
        what: name of the text in the message.
        most: largest share of unknown tokens that is allowed; None to warn of more than half.
        texts: how many texts the tokens are of.

    Raises:
        TextError: with the share.
    """
    share, alike = share_unknown(tokenizer, ids, texts)
    if share <= (MOST_UNKNOWN if most is None else most):
        return
    names = " or ".join(map(str, tokenizer.convert_ids_to_tokens(alike)))
    message = (
        f"{share:.0%} of the tokens of {what} are {names}: no words that the tokenizer knows, "
        "and a model sees them all alike; take texts of its own vocabulary"
    )
    if most is not None:
        raise TextError(f"{message}, or {ANYWAY}")
    warnings.warn(message, stacklevel=2)


def share_unknown(tokenizer: Any, ids: Iterable[int], texts: int = 1) -> tuple[float, list[int]]:
    """Share of the text's own tokens that stand for words which the tokenizer does not know, or of
    several words on one special token, such as that of padding; and these tokens. A mark of a space
    alone is no word: those before unknown words would hide them.

    Args:
        tokenizer: of the model.
        ids: tokens of the text, or of several, with those that the tokenizer adds.
        texts: how many texts they are of.
    """
    unknown, special, passed, added = _vocabulary(tokenizer)
    own = Counter(number for number in ids if number in unknown or number not in passed)
    # A token that is added to every text may be the one that unknown words become, too.
    there = texts * sum(number in unknown for number in added)
    whole = own.total() - there
    if whole <= 0:
        return 0.0, []
    share = max(sum(own[number] for number in unknown) - there, 0) / whole
    # Special tokens may be written in a text; one word alone may well be one.
    repeated = max(special & own.keys(), key=own.__getitem__, default=None)
    if repeated is not None and whole > 1 and own[repeated] / whole > share:
        return own[repeated] / whole, [repeated]
    return share, sorted(unknown)


@lru_cache(maxsize=8)
def _vocabulary(tokenizer: Any) -> tuple[frozenset[int], frozenset[int], Set[int], list[int]]:
    """The ids that words become which a tokenizer does not know, whatever it calls these tokens;
    its other special tokens but the mask; those of no word, marks of spaces and what it adds; and
    the ids that it adds to every text.

    A word is unknown in this sense if another one becomes the same token. Tokenizers that fall back
    on bytes or letters have no such id.
    """
    # Written twice, as the mark of a space may be a token only between two words.
    both = (f"{word} {word}" for word in STRANGE)
    one, two = (set(tokenizer(words, add_special_tokens=False)["input_ids"]) for words in both)
    special, added = set(tokenizer.all_special_ids), list(tokenizer("")["input_ids"])
    unknown, passed = set(), set(added)
    for number in one & two:
        # The mark of a space comes before unknown words, too.
        piece = str(tokenizer.convert_ids_to_tokens(number)).strip("\u2581\u0120 ")
        # An alphabet may have no token for what is unknown, and use a letter.
        is_letter = len(piece) == 1 and piece.isalnum() and _is_alphabet(tokenizer)
        if number in special or (piece and not is_letter):
            unknown.add(number)
        elif not piece:
            passed.add(number)
    others = special - unknown - {getattr(tokenizer, "mask_token_id", None)}
    return frozenset(unknown), frozenset(others), passed, added


def _is_alphabet(tokenizer: Any) -> bool:
    """Whether a vocabulary is of single letters, but for its special tokens."""
    own = set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens)
    return set(map(len, own)) == {1}


def _drawn(matrix: torch.Tensor, width: float | None) -> bool:
    """Whether a bias or a norm still is of zeros or ones, or a matrix still holds the normal
    numbers that it was initialised with: it was written once, and mean, variance and fourth moment
    are those of such numbers.
    """
    if matrix.ndim == 1:
        return bool((matrix == 0).all() or (matrix == 1).all())
    # torch counts how often a tensor is written (`_version`), except for tensors of inference mode,
    # which cannot be trained.
    if not width or not (matrix.is_inference() or matrix._version == 1):
        return False
    numbers = matrix.detach().flatten()[:SAMPLED].double() / width
    mean, square, fourth = (float((numbers**power).mean()) for power in (1, 2, 4))
    # For normal numbers the standard errors of the three are 1, sqrt(2) and sqrt(96), divided by
    # the root of their count. With five of them allowed, chance makes one matrix in half a million
    # look trained.
    allowed = 5 / numbers.numel() ** 0.5
    return (
        abs(mean) < allowed and abs(square - 1) < 1.42 * allowed and abs(fourth - 3) < 9.8 * allowed
    )


def random_twin(model: Any, *, seed: int = 0) -> Any:
    """A model of the same architecture with random weights, as before training: the null model of
    `heads`.

    The caller's random state is not changed.

    Args:
        model: a loaded transformers model.
        seed: seed of the weights.

    Raises:
        CaptureError: where the model cannot be created from its configuration.

    Example:
        >>> records = capture_many(random_twin(model), tokenizer, texts)
    """
    model = unwrapped(model)
    if not hasattr(type(model), "_from_config"):
        raise CaptureError(
            f"{type(model).__name__} is not made of a configuration; give the records of a random "
            "model"
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        # A copy, because creating a model writes to its configuration, such as the implementation
        # of its attention.
        twin = type(model)._from_config(copy.deepcopy(model.config), dtype=model.dtype)
    return twin.to(device_of(model)).eval()
