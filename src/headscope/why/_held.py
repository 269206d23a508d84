"""One pass forward and back through a model whose attention, norms and gates may be held as they
are in this run: what is left is linear in what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from headscope.capturing.contributions import known_norm_of
from headscope.capturing.device import full_precision
from headscope.capturing.observers import hook_after, hook_before, swapped
from headscope.capturing.seam import LayerChange, Where
from headscope.capturing.walk import modules_of, names_of, place_of
from headscope.capturing.watching.running import first_tensor
from headscope.errors import CaptureError
from headscope.interventions import Intervention, intervene
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record

Cell = tuple[str, int]
"""A layer of a stack."""
Held = Literal["nothing", "held", "own place"]
ACTIVATIONS = ("torch.nn.modules.activation", "transformers.activations")
"""Modules of Python whose classes are activations."""
PRODUCTS = {torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__}
BEHIND = "_headscope_activation"
"""Attribute of a tensor that an activation gave: the path and number of its block."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Change(Intervention):
    """A change of every layer of a stack by a function; see `Intervention`."""

    at: Where
    act: Callable[[Cell, torch.Tensor], torch.Tensor]
    does: ClassVar[str] = "changed for the way of an answer"
    alone: ClassVar[str] = "link"

    def part(self, place: LayerPlace) -> LayerChange:
        """See `Intervention`."""
        of_keys = self.at == "key"
        count = place.kv_heads if of_keys else place.heads
        size = (count, place.features[of_keys]) if self.at in ("query", "key") else None
        heads = tuple(range(count))
        make = self.maker(place, heads)
        return LayerChange(self.at, heads, make, None, self.does, place.route, size)

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Any:
        """See `Intervention`."""
        return lambda old, _: self.act((place.stack, place.layer), old)


@dataclass(frozen=True, eq=False)
class Question:
    """A model, what it reads, and the two tokens whose logits are compared at a position.

    Args:
        model: with a head that predicts tokens.
        arguments: of its forward, for one text.
        record: of that pass.
        at: position of the row whose logits are read.
        tokens: the answer, and what is compared with it.
    """

    model: nn.Module
    arguments: Mapping[str, Any]
    record: Record
    at: int
    tokens: tuple[int, int]

    @property
    def layers(self) -> dict[Cell, Layer]:
        """All layers, in the order of the record."""
        stacks = self.record.stacks.values()
        return {(stack.name, layer.layer): layer for stack in stacks for layer in stack}

    def block(self, layer: Layer) -> tuple[str, nn.Module]:
        """Path of the list of blocks that a layer stands in, and its block.

        Raises:
            CaptureError: where it stands in none, or several layers are one module.
        """
        place = place_of(self.model, layer.module)
        uses = [each for each in self.layers.values() if each.module == layer.module]
        if place is None or not place.is_list or len(uses) > 1:
            raise CaptureError(
                f"{layer.module} of {type(self.model).__name__} is no block of a list that is run "
                "once, so that the way of an answer cannot be followed through it; take another "
                "model"
            )
        return place.path, list(place.blocks.values())[place.number]

    @contextmanager
    def read(self) -> Iterator[list[torch.Tensor]]:
        """The differences ``[text]`` of the logits of both tokens, one for each pass inside; only
        the row that is asked about goes through the head, before any cap on logits.
        """
        head, leads = output_head(self.model), []

        def one_row(_: nn.Module, args: tuple, options: dict) -> Any:
            given = first_tensor(args, options)
            return None if given is None else swapped(args, options, given, given[:, self.row])

        def note(_: nn.Module, args: tuple, options: dict, logits: torch.Tensor) -> None:
            first, second = (logits[:, 0, token].float() for token in self.tokens)
            if logits.dtype == torch.float64:
                first, second = (logits[:, 0, token] for token in self.tokens)
            leads.append(first - second)

        hooks = hook_before(head, one_row), hook_after(head, note)
        try:
            yield leads
        finally:
            for hook in hooks:
                hook.remove()

    @property
    def row(self) -> slice:
        """The row that is read, as a part of all."""
        return slice(self.at, self.at + 1)


def output_head(model: nn.Module) -> nn.Module:
    """The module that gives the logits.

    Raises:
        CaptureError: where there is none.
    """
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if not isinstance(head, nn.Module):
        raise CaptureError(
            f"{type(model).__name__} has no output embeddings, whose logits would be explained; "
            "load the model with the head that predicts tokens"
        )
    return head


@dataclass(eq=False)
class PulledBack:
    """The lead of an answer, and its gradient at what the model is made of.

    Args:
        lead: difference of the two logits.
        contexts: ``[query head feature]`` of each layer, at the outputs of its heads.
        words: ``[token]`` by path of blocks, value times gradient of what the first block reads.
        mlps: value times gradient of each block's feed-forward part, where that is held.
        biases: the same of all biases above the first block.
    """

    lead: float
    contexts: dict[Cell, np.ndarray] = field(default_factory=dict)
    words: dict[str, np.ndarray] = field(default_factory=dict)
    mlps: dict[tuple[str, int], float] = field(default_factory=dict)
    biases: float = 0.0


class Parts:
    """What a pass is made of, whose gradients are asked for."""

    def __init__(self, question: Question, held: Held) -> None:
        self.held, self.question = held, question
        self.contexts: dict[Cell, torch.Tensor] = {}
        self.words: dict[str, torch.Tensor] = {}
        self.mlps: dict[tuple[str, int], list[torch.Tensor]] = {}
        self.biases: list[nn.Parameter] = []
        self._names = names_of(question.model)

    def context(self, cell: Cell, old: torch.Tensor) -> torch.Tensor:
        """Outputs of the heads of a layer ``[text query head feature]``."""
        if self.held == "own place":
            self.contexts[cell] = leaf = old.detach().requires_grad_()
            return leaf
        self.contexts[cell] = nothing = torch.zeros_like(old).requires_grad_()
        return old + nothing

    def entry(self, path: str, _: nn.Module, args: tuple, options: dict) -> Any:
        """What the first block of a list reads."""
        given = first_tensor(args, options)
        if given is None or path in self.words:
            return None
        self.words[path] = leaf = given.detach().requires_grad_()
        return swapped(args, options, given, leaf)

    def norm(self, module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
        """A norm with the denominators of this run."""
        given = first_tensor(args, options)
        if given is None or not given.requires_grad:
            return None
        norm = known_norm_of(module, given.shape[-1])
        if norm is None or not norm.divided:
            return None
        straight = given - given.mean(-1, keepdim=True) if norm.centred else given
        gain, shift = (torch.as_tensor(part).to(given) for part in (norm.gain, norm.shift))
        bias = getattr(module, "bias", None)
        deviation = (straight.detach().square().mean(-1, keepdim=True) + norm.eps).sqrt()
        return straight / deviation * gain + (shift if bias is None else bias)

    def activation(self, module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
        """An activation as a factor ``f(x) / x``; a part of its own where parts are held at the
        answer's place.
        """
        given = first_tensor(args, options)
        if given is None or not given.requires_grad:
            return None
        place = place_of(self.question.model, self._names[id(module)])
        if self.held == "own place" and place is not None and place.path in self.words:
            return self.part(place[:2], output)
        is_none = given == 0
        ratio = (output / given.masked_fill(is_none, 1.0)).masked_fill(is_none, 0.0).detach()
        new = given * ratio
        setattr(new, BEHIND, (None, 0) if place is None else place[:2])
        return new

    def part(self, block: tuple[str, int], output: torch.Tensor) -> torch.Tensor:
        """A feed-forward part that is held, as a part of the lead."""
        leaf = output.detach().requires_grad_()
        setattr(leaf, BEHIND, block)
        self.mlps.setdefault(block, []).append(leaf)
        return leaf


class _Gates(TorchFunctionMode):
    """Products of an activation and another part: the activation is held, or the product is."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run a function of torch."""
        if func not in PRODUCTS or len(args) != 2:
            return func(*args, **(kwargs or {}))
        both = [one for one in args if isinstance(one, torch.Tensor) and one.requires_grad]
        gates = [one for one in both if hasattr(one, BEHIND)]
        if len(both) < 2 or not gates:
            return func(*args, **(kwargs or {}))
        gate = gates[0]
        made = func(*(one.detach() if one is gate else one for one in args))
        block = getattr(gate, BEHIND)
        if self._parts.held == "own place" and block[0] is not None:
            return self._parts.part(block, made)
        return made


def pulled_back(question: Question, held: Held) -> PulledBack:
    """The lead, and its gradient at the parts of the model.

    ``nothing``: of the model itself, so that ``a * (g . v)`` is the first-order estimate of what a
    link does (attribution patching with zeros; Syed et al. 2023). ``held``: attention, norms and
    gates are held, so that it is what a link carries, and words and biases sum to the lead
    (Ali et al. 2022; AttnLRP, Achtibat et al. 2024). ``own place``: outputs of heads and
    feed-forward parts are held too, so that only what is written at the answer's own place counts
    (direct logit attribution; Elhage et al. 2021, ALTI-Logit, Ferrando et al. 2023).
    """
    model, parts = question.model, Parts(question, held)
    stacks = list(question.record.stacks)
    changes = [Change(stack=name, at="output", act=parts.context) for name in stacks]
    if held == "held":
        for side in ("query", "key"):
            stopped = [Change(stack=name, at=side, act=_stopped) for name in stacks]
            changes += stopped  # ty: ignore[invalid-argument-type]
    firsts = {}
    for layer in question.layers.values():
        path, block = question.block(layer)
        firsts.setdefault(path, block)
    with ExitStack() as undo:
        undo.enter_context(torch.enable_grad())
        undo.enter_context(full_precision())
        undo.enter_context(_only_biases(model, parts.biases))
        undo.enter_context(_Gates(parts))
        for path, block in firsts.items():
            hook = hook_before(block, lambda *given, path=path: parts.entry(path, *given))
            undo.callback(hook.remove)
        if held != "nothing":
            for module, act in _hooked(model, parts):
                undo.callback(hook_after(module, act).remove)
        undo.enter_context(intervene(model, *changes))
        leads = undo.enter_context(question.read())
        model(**question.arguments)
        return _gradients(parts, leads[-1][0])


def _stopped(_: Cell, old: torch.Tensor) -> torch.Tensor:
    return old.detach()


def _hooked(model: nn.Module, parts: Parts) -> Iterator[tuple[nn.Module, Any]]:
    """Modules without parts, and what is done where they may be norms or activations."""
    for module in modules_of(model):
        if not module._modules:
            is_activation = type(module).__module__ in ACTIVATIONS
            yield module, parts.activation if is_activation else parts.norm


@contextmanager
def _only_biases(model: nn.Module, biases: list[nn.Parameter]) -> Iterator[None]:
    """Gradients of biases, and of no other weights."""
    were = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        for name, weight in model.named_parameters():
            is_bias = name.endswith("bias") and weight.is_floating_point() and weight.ndim == 1
            weight.requires_grad_(is_bias)
            biases += [weight] if is_bias else []
        yield
    finally:
        for weight, wanted in were:
            weight.requires_grad_(wanted)


def _gradients(parts: Parts, lead: torch.Tensor) -> PulledBack:
    mlps = [(block, leaf) for block, leaves in parts.mlps.items() for leaf in leaves]
    leaves = [*parts.contexts.values(), *parts.words.values(), *(leaf for _, leaf in mlps)]
    slopes = iter(
        torch.autograd.grad(
            lead, [*leaves, *parts.biases], allow_unused=True, materialize_grads=True
        )
    )
    made = PulledBack(float(lead.detach()))
    for cell in parts.contexts:
        made.contexts[cell] = next(slopes)[0].double().cpu().numpy()
    for path, leaf in parts.words.items():
        made.words[path] = (leaf.detach().double() * next(slopes).double()).sum(-1)[0].cpu().numpy()
    for block, leaf in mlps:
        own = float((leaf.detach().double() * next(slopes).double()).sum())
        made.mlps[block] = made.mlps.get(block, 0.0) + own
    for bias in parts.biases:
        made.biases += float((bias.detach().double() * next(slopes).double()).sum())
    return made


def through(layer: Layer, slopes: np.ndarray, queries: Sequence[int] | None = None) -> np.ndarray:
    """``a * (g . v)`` of every link of a layer: ``[head query key]``.

    Args:
        layer: with weights and values.
        slopes: ``[query head feature]``, the gradient at the outputs of the heads.
        queries: some of them; None for all.
    """
    rows = slice(None) if queries is None else list(queries)
    values = np.asarray(layer.values)[layer.kv_head_of]
    return layer.weights_of()[:, rows] * np.einsum("qhf,hkf->hqk", slopes[rows], values)
