"""Models without their position or segment embeddings, to see what these do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.device import device_of, in_memory
from headscope.capturing.entry import capture_ids
from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.inputs._modalities import MEDIA
from headscope.capturing.inputs.inputs import position_limit
from headscope.capturing.run import at_rest, uncompiled, unwrapped
from headscope.capturing.walk import arguments_of
from headscope.errors import CaptureError, HeadscopeError

Role = Literal["position", "segment"]
Removal = Literal["zero", "mean"]
ROLES: tuple[Role, ...] = get_args(Role)
REMOVALS: tuple[Removal, ...] = get_args(Removal)
TEXTS, LENGTH, TARGETS = 2, 6, 4
"""Sizes of the trial input: all different, and unlikely to be the width of a model."""

Place = tuple[nn.Module, int]
"""A module and the number of its call in a pass: one table may have two uses (GPT-2 reads segments
from its table of words).
"""


def input_embeddings(model: Any) -> Float[np.ndarray, "vocabulary feature"]:
    """The input embedding of each token of a model's vocabulary, float32.

    Raises:
        CaptureError: where the model reads no tokens.

    Example:
        >>> vectors = input_embeddings(model)
    """
    table = unwrapped(model).get_input_embeddings()
    if not isinstance(getattr(table, "weight", None), torch.Tensor) or table.weight.ndim != 2:
        raise CaptureError(
            f"{type(unwrapped(model)).__name__} has no table of input embeddings: it reads no "
            "tokens"
        )
    with in_memory(table):
        return table.weight.detach().float().cpu().numpy()


@contextmanager
def without_embedding(
    model: Any, role: Role, *, by: Removal = "zero"
) -> Generator[tuple[str, ...]]:
    """Remove the position or segment embedding from a model inside the ``with`` block.

    Where segments are read from the table of words (GPT-2), only their contribution is removed,
    which is nothing where no segments are given.

    The modules are found by running the model on trial inputs, not by their names. The output of a
    position embedding changes along a text, but neither with its words nor with its segments; the
    output of a segment embedding changes only with the segments. The model's weights are not
    changed, and the model is complete again after the block, also after an error.

    Source: Vig 2019, part 2, asks what makes the patterns; the intervention is ours.

    Args:
        model: a loaded transformers model that reads text.
        role: ``"position"`` or ``"segment"``.
        by: ``"zero"`` removes the embedding; ``"mean"`` replaces it by its mean over the tokens of
            each text, so that all tokens get the same and the norm of the sum changes less.

    Yields:
        The names of the modules.

    Raises:
        CaptureError: where the model has no such embedding, as with rotary positions or ALiBi, or
            reads no text.

    Example:
        >>> with without_embedding(model, "segment"):
        ...     record = capture(model, tokenizer, "The cat sat.", "It slept.")
    """
    if role not in ROLES or by not in REMOVALS:
        raise CaptureError(
            f"without_embedding was given {role!r} and by={by!r}; there are {' and '.join(ROLES)}, "
            f"by {' or '.join(REMOVALS)}"
        )
    model = unwrapped(model)
    uses = embeddings_of(model, role)
    wanted = set(uses)

    def remove(module: nn.Module, number: int, output: torch.Tensor) -> torch.Tensor | None:
        if (module, number) not in wanted:
            return None
        if by == "zero":
            return torch.zeros_like(output)
        return output.mean(dim=-2, keepdim=True).expand_as(output)

    with _watched(model, {module for module, _ in uses}, remove):
        names = {module: name for name, module in model.named_modules()}
        yield tuple(dict.fromkeys(names[module] for module, _ in uses))


def embeddings_of(model: Any, role: Role) -> list[Place]:
    """The calls of modules that embed a model's positions or segments.

    Raises:
        CaptureError: saying why there is no such module.
    """
    with at_rest(model), uncompiled(model):
        first, words, segments = _tried(model)
    of_words = {use: _differs(each, words.get(use)) for use, each in first.items()}
    widths = _widths(model, first, of_words)
    uses = []
    for use, output in first.items():
        # An embedding that is added to words is as wide as they are; a table of biases or of
        # experts is not.
        is_added = output.shape[-1] in widths and _is_of_tokens(output)
        is_free = is_added and not of_words[use]
        if is_free and _role_of(output, segments.get(use)) == role:
            uses.append(use)
    # Rotary angles are as wide as the words in a model with one head, but are not added to them.
    if not uses or (role == "position" and _positions(model) == "rotary"):
        raise CaptureError(_why_none(model, role))
    return uses


def _widths(
    model: Any, outputs: dict[Place, torch.Tensor], of_words: dict[Place, bool]
) -> set[int]:
    """Possible widths of words: in some models they have another width before positions are
    added.
    """
    widths = {output.shape[-1] for use, output in outputs.items() if of_words[use]}
    return widths | {getattr(model.config.get_text_config(), "hidden_size", 0)}


def _role_of(output: torch.Tensor, with_other_segments: torch.Tensor | None) -> Role | None:
    """The role of a table whose output does not depend on words."""
    if _differs(output, with_other_segments):
        return "segment"
    is_along = bool((output != output[..., :1, :]).any())
    return "position" if is_along else None


@contextmanager
def _watched(
    model: nn.Module,
    modules: Collection[nn.Module],
    see: Callable[[nn.Module, int, torch.Tensor], torch.Tensor | None],
) -> Generator[None]:
    """Call ``see`` with each module, the number of its call in a pass of the model, and its output;
    what it returns takes the place of that.
    """
    calls: dict[nn.Module, int] = {}

    # A table may be called for segments first and then for words; the order is the same in
    # every pass.
    def begin(*_: Any) -> None:
        calls.clear()

    def after(module: nn.Module, _: tuple, __: dict, output: Any) -> Any:
        number = calls.get(module, 0)
        calls[module] = number + 1
        return see(module, number, output) if isinstance(output, torch.Tensor) else None

    handles = [hook_before(model, begin)]
    try:
        handles += [hook_after(module, after) for module in modules]
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tried(model: nn.Module) -> Iterator[dict[Place, torch.Tensor]]:
    """The output of every table, learnt or computed: for a text, for other words, and for other
    segments.
    """
    tables = _tables(model)
    options = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
    first = _probe(model)
    other_words = dict(first)
    for name in first:
        if name.endswith("input_ids"):
            # No word of the probe is repeated, so that every position gets another word.
            other_words[name] = first[name].roll(1, dims=-1)
    other_segments = dict(first)
    if "token_type_ids" in first:
        other_segments["token_type_ids"] = 1 - first["token_type_ids"]
    for arguments in (first, other_words, other_segments):
        seen: dict[Place, torch.Tensor] = {}

        def keep(module: nn.Module, number: int, output: torch.Tensor, seen: dict = seen) -> None:
            # A copy, because the model may add the words to it in place.
            seen[module, number] = output.detach().clone()

        with _watched(model, tables, keep):
            model(**arguments, **options)
        yield seen


def _tables(model: nn.Module) -> set[nn.Module]:
    """Modules without submodules that may be an embedding, learnt or computed."""
    tables = set()
    for module in model.modules():
        has_parts = next(module.children(), None) is not None
        if not has_parts and (isinstance(module, nn.Embedding) or _computes_a_table(module)):
            tables.add(module)
    return tables


def _computes_a_table(module: nn.Module) -> bool:
    """Whether this may be a table without learnt weights; torch's own modules never are."""
    return not type(module).__module__.startswith("torch.") and not list(module.parameters())


def _probe(model: Any) -> dict[str, torch.Tensor]:
    """Two texts that differ at every position, in two segments where the model has segments."""
    reads = arguments_of(model)
    config = model.config.get_text_config()
    size = getattr(config, "vocab_size", 0)
    _check_words(model, reads, size)
    # A padding token may change the mask or positions, and the mark of a picture needs a picture.
    marks = {getattr(config, name, None) for name in MARKS}
    free = [number for number in range(size) if number not in marks]
    device = device_of(model)
    length = min(LENGTH, position_limit(model) or LENGTH)
    texts = torch.tensor(free[-TEXTS * LENGTH :], device=device).reshape(TEXTS, LENGTH)
    ids = texts[:, :length]
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if getattr(model.config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = ids[:, :TARGETS].clone()
    if "token_type_ids" in reads and getattr(config, "type_vocab_size", 2) > 1:
        is_second = torch.arange(length, device=device) >= length // 2
        inputs["token_type_ids"] = is_second.long().expand_as(ids)
    return {name: tensor for name, tensor in inputs.items() if name in reads}


def _check_words(model: Any, reads: Collection[str], size: Any) -> None:
    """Raise where a model reads no words, or something else too, or has too small a vocabulary."""
    is_large = isinstance(size, int) and size >= TEXTS * LENGTH
    if "input_ids" not in reads or MEDIA & set(reads) or not is_large:
        raise CaptureError(
            f"{type(model).__name__} does not read words alone; only an embedding that is added to "
            "words can be removed"
        )


MARKS = ("pad_token_id", "eos_token_id", "bos_token_id", "decoder_start_token_id", "image_token_id")


def _differs(output: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is None or output.shape != other.shape or not torch.equal(output, other)


def _is_of_tokens(output: torch.Tensor) -> bool:
    """Whether the output has a row for each token, for one text or for all; a bias ``[query key
    head]`` does not.
    """
    return output.is_floating_point() and (
        output.ndim == 2 or (output.ndim == 3 and len(output) <= TEXTS)
    )


def _why_none(model: Any, role: Role) -> str:
    name = type(model).__name__
    if role == "segment":
        return (
            f"{name} has no embedding of segments: nothing that is added to its words "
            "distinguishes two texts"
        )
    how = {
        "rotary": "its positions are rotary: they turn queries and keys in every layer",
        "alibi": "its positions are ALiBi: the distance is taken off the scores in every layer",
        "relative": "its positions are relative: a bias by distance is added to the scores",
    }
    return (
        f"{name} has no embedding of positions that could be removed; "
        f"{how.get(_positions(model), 'none was seen')}"
    )


def _positions(model: Any) -> str:
    """The kind of positions of a model, as in its records; empty where nothing can be captured."""
    try:
        return capture_ids(model, **_probe(model))[0].model.positions
    except HeadscopeError:
        return ""
