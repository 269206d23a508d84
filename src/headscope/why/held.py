"""One pass forward and back through a model whose attention, norms and gates may be held as they
are in this run: what is left is linear in what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from headscope.answering import DEMO
from headscope.capturing import LOADING, capture_encoded, load_for, parse_call
from headscope.capturing.contributions import known_norm_of
from headscope.capturing.device import allowed_apart, device_of, full_precision, one_at_a_time
from headscope.capturing.entry import configured, prepared
from headscope.capturing.keep import KeepChoice
from headscope.capturing.observers import hook_after, hook_before, swapped
from headscope.capturing.run import at_rest, run
from headscope.capturing.seam import OPERANDS, LayerChange, Where
from headscope.capturing.walk import ModelModules, modules_of, place_of
from headscope.capturing.watching.running import first_tensor
from headscope.errors import CaptureError, TextError
from headscope.interventions import Intervention, intervene
from headscope.interventions.plan import LayerPlace
from headscope.record import Layer, Record

Cell = tuple[str, int]
"""A layer of a stack."""
Held = Literal["nothing", "held", "own place"]
WITHIN = 1e-5
"""How far sums may be from the whole, relative to its scale."""
ACTIVATIONS = ("torch.nn.modules.activation", "transformers.activations")
"""Modules of Python whose classes are activations."""
PRODUCTS: set[Any] = {torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__}
GATE = "_headscope_gate"
"""Attribute of a tensor that an activation gave."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Change(Intervention):
    """A change of every layer of a stack by a function; see `Intervention`."""

    at: Where
    act: Callable[[Cell, torch.Tensor], torch.Tensor]
    does: ClassVar[str] = "changed for the way of an answer"
    alone: ClassVar[str] = "link"

    def part(self, place: LayerPlace) -> LayerChange:
        """See `Intervention`."""
        count = place.kv_heads if self.at in ("key", "value") else place.heads
        size = (count, place.features[OPERANDS.index(self.at)]) if self.at in OPERANDS else None
        heads = tuple(range(count))
        make = self.maker(place, heads)
        return LayerChange(self.at, heads, make, None, self.does, place.route, size)

    def maker(self, place: LayerPlace, heads: tuple[int, ...]) -> Any:
        """See `Intervention`."""
        return lambda old, _: self.act((place.stack, place.layer), old)


@dataclass(frozen=True, eq=False)
class WhyQuestion:
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

    @cached_property
    def cells(self) -> list[Cell]:
        """Stack and number of all layers in the order in which they are run: those of a decoder
        behind an encoder's, and what attends to the encoder behind each.
        """
        cells = [(name, each.layer) for name, of in self.record.stacks.items() for each in of]
        after = {"decoder": 1, "cross": 1}
        return sorted(cells, key=lambda it: (after.get(it[0], 0), it[1], it[0] == "cross"))

    @cached_property
    def layers(self) -> list[Layer]:
        """These layers."""
        return [self.record[stack].layer(number) for stack, number in self.cells]

    @property
    def sources(self) -> int:
        """How many columns are tokens of an encoder's text, which come first."""
        return len(self.record["encoder"].query) if "cross" in self.record else 0

    def begins(self, index: int) -> tuple[int, int]:
        """Columns of the first query and the first key of a layer."""
        stack = self.cells[index][0]
        return self.sources * (stack != "encoder"), self.sources * (stack == "decoder")

    def block(self, layer: Layer) -> tuple[str, nn.Module]:
        """Path of the list of blocks that a layer stands in, and its block.

        Raises:
            CaptureError: where it stands in none, or several layers are one module.
        """
        place = place_of(self.model, layer.module)
        uses = sum(each.module == layer.module for each in self.layers)
        if place is None or not place.is_list or uses > 1:
            raise CaptureError(
                f"{layer.module} of {type(self.model).__name__} is no block of a list that is run "
                "once, so that the way of an answer cannot be followed through it; take another "
                "model"
            )
        return place.path, list(place.blocks.values())[place.number]

    def check_sums(self, what: str, sums: Sequence[float], whole: float, scale: float) -> None:
        """Raise where parts do not sum to the whole, within rounding of a scale.

        Raises:
            CaptureError: with the sums.
        """
        allowed = allowed_apart(next(self.model.parameters()), WITHIN) * max(abs(whole), scale)
        if not max(abs(each - whole) for each in sums) <= allowed:
            raise CaptureError(
                f"{type(self.model).__name__}: the parts of {what} sum to {sums[0]:.6g} and "
                f"{sums[1]:.6g}, and {what} is {whole:.6g}; a step of it is neither a norm nor an "
                "activation that is known (a router, a gate), so that its way cannot be followed; "
                "take another model"
            )

    @contextmanager
    def read(self) -> Generator[list[torch.Tensor]]:
        """The differences ``[text]`` of the logits of both tokens, one for each pass inside; only
        the row that is asked about goes through the head, before any cap on logits.
        """
        head: Any = getattr(self.model, "get_output_embeddings", lambda: None)()
        if head is None:
            raise CaptureError(
                f"{type(self.model).__name__} has no output embeddings, whose logits would be "
                "explained; load the model with the head that predicts tokens"
            )
        leads: list[torch.Tensor] = []

        def one_row(_: nn.Module, args: tuple, options: dict) -> Any:
            given: Any = first_tensor(args, options)
            return swapped(args, options, given, given[:, self.at : self.at + 1])

        def note(_: nn.Module, args: tuple, options: dict, logits: torch.Tensor) -> None:
            first, second = (logits[:, 0, token].double() for token in self.tokens)
            leads.append(first - second)

        hooks = hook_before(head, one_row), hook_after(head, note)
        try:
            yield leads
        finally:
            for hook in hooks:
                hook.remove()


class PulledBack(NamedTuple):
    """The lead of an answer, and its gradient at what the model is made of.

    Args:
        lead: difference of the two logits.
        contexts: ``[query head feature]`` of each layer, at the outputs of its heads.
        words: ``[token]`` by path of blocks, value times gradient of what the first block reads.
        mlps: the same of each block's activations, where these are held.
        biases: the same of all biases.
    """

    lead: float
    contexts: dict[Cell, np.ndarray]
    words: dict[str, np.ndarray]
    mlps: dict[tuple[str, int], float]
    biases: float


class _Parts:
    """What a pass is made of, whose gradients are asked for: by what it is, and where."""

    def __init__(self, question: WhyQuestion, held: Held) -> None:
        self.held, self.model = held, question.model
        self.leaves: dict[tuple[str, Any], torch.Tensor] = {}
        self._names = ModelModules.of(question.model).names

    def context(self, cell: Cell, old: torch.Tensor) -> torch.Tensor:
        """Outputs of the heads of a layer ``[text query head feature]``."""
        if self.held == "own place":
            self.leaves["context", cell] = leaf = old.detach().requires_grad_()
            return leaf
        self.leaves["context", cell] = nothing = torch.zeros_like(old).requires_grad_()
        return old + nothing

    def entry(self, path: str, _: nn.Module, args: tuple, options: dict) -> Any:
        """What the first block of a list reads."""
        given: Any = first_tensor(args, options)
        self.leaves["words", path] = leaf = given.detach().requires_grad_()
        return swapped(args, options, given, leaf)

    def step(self, module: nn.Module, args: tuple, options: dict, output: Any) -> Any:
        """A module without parts: norms keep the denominators of this run, activations are factors
        ``f(x) / x``, or parts of their own where only the answer's place counts.
        """
        given = first_tensor(args, options)
        if given is None or not given.requires_grad:
            return None
        if type(module).__module__ in ACTIVATIONS:
            return self._activation(module, given, output)
        norm = known_norm_of(module, given.shape[-1])
        if norm is None or not norm.divided:
            return None
        straight = given - given.mean(-1, keepdim=True) if norm.centred else given
        deviation = (straight.detach().square().mean(-1, keepdim=True) + norm.eps).sqrt()
        bias = getattr(module, "bias", None)
        normed = straight / deviation * torch.as_tensor(norm.gain).to(given)
        return normed if bias is None else normed + bias

    def _activation(
        self, module: nn.Module, given: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        place = place_of(self.model, self._names[id(module)])
        if self.held == "own place" and place is not None and ("words", place.path) in self.leaves:
            self.leaves["mlp", place[:2]] = made = output.detach().requires_grad_()
        else:
            is_none = given == 0
            ratio = (output / given.masked_fill(is_none, 1.0)).masked_fill(is_none, 0.0)
            made = given * ratio.detach()
        setattr(made, GATE, True)
        return made


class _Gates(TorchFunctionMode):
    """Products of an activation and what else depends on the words: one of them is held."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self._held = held

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Run a function of torch."""
        are_gates = [hasattr(one, GATE) for one in args if getattr(one, "requires_grad", False)]
        if func in PRODUCTS and len(args) == 2 and sorted(are_gates) == [False, True]:
            # At the answer's own place the activation is a part, else a factor.
            stopped = self._held != "own place"
            pairs = zip(args, are_gates, strict=True)
            args = tuple(one.detach() if own == stopped else one for one, own in pairs)
        return func(*args, **(kwargs or {}))


def pulled_back(question: WhyQuestion, held: Held) -> PulledBack:
    """The lead, and its gradient at the parts of the model.

    ``nothing``: of the model itself, so that ``a * (g . v)`` is the first-order estimate of what a
    link does (attribution patching with zeros; Syed et al. 2023). ``held``: attention, norms and
    gates are held, so that it is what a link carries, and words and biases sum to the lead
    (Ali et al. 2022; AttnLRP, Achtibat et al. 2024). ``own place``: outputs of heads and
    activations are parts too, so that only what is written at the answer's own place counts
    (direct logit attribution; Elhage et al. 2021, ALTI-Logit, Ferrando et al. 2023).
    """
    model, parts, stacks = question.model, _Parts(question, held), question.record.stacks
    changes = [Change(stack=name, at="output", act=parts.context) for name in stacks]
    sides: Any = {"held": ("query", "key")}.get(held, ())
    changes += [Change(stack=name, at=side, act=_stopped) for side in sides for name in stacks]
    firsts = dict(reversed([question.block(layer) for layer in question.layers]))
    with ExitStack() as undo:
        undo.enter_context(torch.enable_grad())
        undo.enter_context(full_precision())
        biases = undo.enter_context(_only_biases(model))
        undo.enter_context(_Gates(held))
        for path, block in firsts.items():
            undo.callback(hook_before(block, partial(parts.entry, path)).remove)
        for module in modules_of(model) if held != "nothing" else ():
            if not module._modules:
                undo.callback(hook_after(module, parts.step).remove)
        undo.enter_context(intervene(model, *changes))
        leads = undo.enter_context(question.read())
        model(**question.arguments)
        parts.leaves |= {("bias", number): bias for number, bias in enumerate(biases)}
        wanted, lead = list(parts.leaves.values()), leads[-1][0]
        slopes = torch.autograd.grad(lead, wanted, allow_unused=True, materialize_grads=True)
    return _by_part(parts, lead, slopes)


def _by_part(parts: _Parts, lead: torch.Tensor, slopes: Sequence[torch.Tensor]) -> PulledBack:
    made: dict[str, dict[Any, Any]] = {name: {} for name in ("context", "words", "mlp", "bias")}
    for ((what, where), leaf), slope in zip(parts.leaves.items(), slopes, strict=True):
        if what == "context":
            made[what][where] = slope[0].double().cpu().numpy()
            continue
        own = (leaf.detach().double() * slope.double()).cpu().numpy()
        made[what][where] = own[0].sum(axis=-1) if what == "words" else float(own.sum())
    biases = sum(made["bias"].values())
    return PulledBack(float(lead.detach()), made["context"], made["words"], made["mlp"], biases)


def _stopped(_: Cell, old: torch.Tensor) -> torch.Tensor:
    return old.detach()


@contextmanager
def _only_biases(model: nn.Module) -> Generator[list[nn.Parameter]]:
    """The biases of a model, of which alone gradients may be asked."""
    named = dict(model.named_parameters())
    biases = [name for name, each in named.items() if name.endswith("bias") and each.ndim == 1]
    were = {name: weight.requires_grad for name, weight in named.items()}
    try:
        for name, weight in named.items():
            weight.requires_grad_(name in biases)
        yield [named[name] for name in biases]
    finally:
        for name, weight in named.items():
            weight.requires_grad_(were[name])


def through(layer: Layer, slopes: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
    """``a * (g . v)`` of every link of a layer: ``[head query key]``.

    Args:
        layer: with weights and values.
        slopes: ``[query head feature]``, the gradient at the outputs of the heads.
        rows: some of the queries.
    """
    values = np.asarray(layer.values)[layer.kv_head_of]
    return layer.weights_of()[:, rows] * np.einsum("qhf,hkf->hqk", slopes[rows], values)


def read_text(model: Any, tokenizer: Any, text: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The model, what reads it, the record of a text, and the arguments of its pass."""
    is_list = isinstance(text, list) and text and isinstance(text[0], int)
    rows = {"input_ids": text} if is_list or isinstance(text, torch.Tensor) else text
    if isinstance(rows, Mapping) and "input_ids" in rows:
        model = configured(model)
        device = device_of(model)
        arguments = {n: torch.atleast_2d(torch.as_tensor(r)).to(device) for n, r in rows.items()}
        return model, tokenizer, capture_encoded(model, tokenizer, arguments)[0], arguments
    given = parse_call(text, None, options)
    if given.has_media or given.series is not None:
        raise CaptureError("why reads a text or a conversation; leave pictures and sounds out")
    loading: Any = {name: options.pop(name) for name in LOADING if name in options}
    if model is None or isinstance(model, str | Path):
        model, own = load_for(DEMO if model is None else model, given, kept=True, **loading)
        tokenizer = own if tokenizer is None else tokenizer
        loading = {}
    model, inputs = prepared(model, tokenizer, given, cast("Any", {**options, **loading}))
    with one_at_a_time(model), at_rest(model):
        record = run(model, inputs, KeepChoice())[0]
    return model, tokenizer, record, dict(inputs.arguments)


def place_in(position: int, ids: Sequence[int], mask: int | None = None) -> int:
    """The row at a position; by default that of the mask, or the last one.

    Raises:
        TextError: where there is none at this position.
    """
    if position == -1 and mask is not None and mask in ids:
        return list(ids).index(mask)
    if not -len(ids) <= position < len(ids):
        raise TextError(f"position is {position}, and the text has the tokens 0 to {len(ids) - 1}")
    return position % len(ids)
