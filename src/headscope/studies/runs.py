"""One input of a model, run as often as it takes: as it is, and under changes."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing.entry import prepared
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.keep import KeepChoice
from headscope.capturing.observers import hook_after
from headscope.capturing.options import keeping_of
from headscope.capturing.run import at_rest, run
from headscope.comparison import Comparison, OutputChange, StackComparison
from headscope.comparison.effect import OutputKind
from headscope.comparison.stack import largest_of
from headscope.errors import InterventionError
from headscope.interventions import Intervention
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import intervene
from headscope.record import Record

ROUNDING = "give controls= (--control) for the like of this change"
Cells = Mapping[str, frozenset[tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class Ran:
    """What came of one run.

    Args:
        record: what its heads computed.
        output: what the model gave, as it gave it.
        cells: the heads that were changed, by stack.
    """

    record: Record
    output: Any
    cells: Cells


def run_once(
    model: nn.Module,
    inputs: Inputs,
    keeping: KeepChoice,
    interventions: Sequence[Intervention] = (),
) -> Ran:
    """Run a model on an input, changed or as it is.

    Args:
        model: unwrapped; see `headscope.capturing.entry.prepared`.
        inputs: what on.
        keeping: what the record is to hold.
        interventions: what is done to it meanwhile.

    Raises:
        HeadscopeError: as of `headscope.capture`.
    """
    # One block for all of them: each would watch the whole model by itself.
    block = intervene(model, *interventions) if interventions else nullcontext()
    with at_rest(model), _last_output(model) as outputs, block as session:
        record = run(model, inputs, keeping)[0]
    plan = None if session is None else session.plan
    return Ran(record, outputs[-1], {} if plan is None else _cells(plan, interventions))


def _cells(plan: ModelPlan, interventions: Sequence[Intervention]) -> Cells:
    """The heads that are changed, by stack."""
    by_stack: dict[str, set[tuple[int, int]]] = {}
    for intervention in interventions:
        for place, part in intervention.parts(plan):
            by_stack.setdefault(place.stack, set()).update(
                (place.layer, head) for head in part.heads
            )
    return {stack: frozenset(cells) for stack, cells in by_stack.items()}


class Runs:
    """One input, run as often as it takes.

    Args:
        loaded: the model and its tokenizer.
        given: what is read.
        options: of `headscope.capture`.
        top: how many guesses to keep.
    """

    def __init__(self, loaded: tuple[Any, Any], given: ParsedInput, options: Any, top: int) -> None:
        self.model: Any
        self.inputs: Inputs
        # Whoever asks for runs has checked, or allowed, unknown tokens.
        self.model, self.inputs = prepared(*loaded, given, options, max_unknown=1.0)
        self.tokenizer: Any = getattr(loaded[1], "tokenizer", loaded[1])
        self.keeping: KeepChoice = keeping_of(options)
        self.top: int = top
        self.intact: Ran = run_once(self.model, self.inputs, self.keeping)
        self.changed: list[Ran] = []
        self._change: OutputChange | None = None

    def run(self, interventions: Sequence[Intervention]) -> None:
        """Run under some interventions; what came of it is put to `changed`. The first of them is
        the change.
        """
        ran = run_once(self.model, self.inputs, self.keeping, interventions)
        if not self.changed:
            self._change = self._output(ran.record, ran.output)
        # Of further runs nobody asks for the output, which may be large.
        self.changed.append(replace(ran, output=None))

    def moved(self) -> OutputChange:
        """How the change moved the output."""
        if self._change is None:
            raise InterventionError("Nothing was done to the model yet")
        return self._change

    def _output(self, record: Record, after: Any) -> OutputChange:
        kind, before = self._scores(self.intact.output)
        after = self._scores(after)[1]
        labels = self._labels(record, len(before))
        if kind == "states":
            cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
            # The cosine of a vector with itself may be a rounding error below 1.
            same = (before == after).all(-1)
            return OutputChange(
                kind=kind, labels=labels, values=_array(torch.where(same, 0.0, 1 - cosine))
            )
        if kind == "number":
            return OutputChange(
                kind=kind, labels=labels, values=_array((before - after).abs()[:, 0])
            )
        odds = [scores.log_softmax(-1) for scores in (before, after)]
        guesses = [tuple(map(self._guesses, each.exp())) for each in odds]
        return OutputChange(
            kind=kind,
            labels=labels,
            values=_array(divergence(*odds)),
            before=guesses[0],
            after=guesses[1],
        )

    def _scores(self, output: Any) -> tuple[OutputKind, torch.Tensor]:
        """Scores or states ``[position class]`` of an output, in float64."""
        logits = getattr(output, "logits", None)
        if isinstance(logits, torch.Tensor) and logits.ndim in (2, 3) and len(logits) == 1:
            if logits.ndim == 2:
                self._check_single_choice()
            outputs = logits.double().reshape(-1, logits.shape[-1])
            if outputs.shape[1] == 1:
                return "number", outputs
            return "classes" if logits.ndim == 2 else "tokens", outputs
        states = getattr(output, "last_hidden_state", None)
        if isinstance(states, torch.Tensor) and states.ndim == 3 and len(states) == 1:
            return "states", states[0].double()
        raise InterventionError(
            f"{type(self.model).__name__} gives neither scores (logits) nor states that effect "
            "knows; take headscope.compare of two captures for its heads alone"
        )

    def _check_single_choice(self) -> None:
        if getattr(self.model.config, "problem_type", None) == "multi_label_classification":
            raise InterventionError(
                f"{type(self.model).__name__} gives several labels at once, and effect takes "
                "the softmax of one choice; take headscope.compare of two captures for its "
                "heads alone"
            )

    def _labels(self, record: Record, count: int) -> tuple[str, ...]:
        # The last stack that fits: of an encoder-decoder the decoder's, whose tokens are guessed.
        for stack in reversed(list(record.stacks.values())):
            if len(stack.query) == count:
                return stack.query.labels
        return ("the whole",) if count == 1 else tuple(map(str, range(count)))

    def _guesses(self, odds: torch.Tensor) -> tuple[tuple[str, float], ...]:
        best = odds.topk(min(self.top, len(odds)))
        return tuple(
            (self._name(number, len(odds)), probability)
            for number, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        )

    def _name(self, number: int, count: int) -> str:
        """Of a class, or of a token."""
        config = self.model.config
        # Configurations have labels even where the model has no classes: two by default.
        if count == getattr(config, "num_labels", 0) != getattr(config, "vocab_size", None):
            return str(config.id2label.get(number, number))
        if self.tokenizer is None:
            return str(number)
        name = self.tokenizer.decode([number])
        if name.strip():
            return name
        return self.tokenizer.convert_ids_to_tokens(number) or f"[{number}]"


def divergence(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """``sum_y p ln(p / p')`` of log probabilities ``[position outcome]``, in nats; 0 where p is
    0.
    """
    # Where p is 0 the difference of logarithms is -inf or NaN, which times 0 would be NaN.
    apart = before - after
    terms = torch.where(before == -torch.inf, 0.0, before.exp() * apart)
    return terms.sum(-1).clamp(min=0.0)


@contextmanager
def _last_output(model: nn.Module) -> Generator[list]:
    """What a model gives while the block is open; the last of them is what was asked for."""
    outputs: list[Any] = []

    def note(_: nn.Module, __: tuple, ___: dict, output: Any) -> None:
        outputs[:] = [output]

    handle = hook_after(model, note)
    try:
        yield outputs
    finally:
        handle.remove()


def with_changed(
    comparison: Comparison,
    cells: Cells,
    controls: Sequence[Comparison],
    *,
    reached: Cells | None = None,
    spread_of: str = ROUNDING,
) -> Comparison:
    """With the heads that were changed marked, and the largest distance under the controls as
    spread.

    A control says nothing of the heads that it changes itself.

    Args:
        comparison: of the intact model with the changed one.
        cells: the heads that were changed.
        controls: of the intact model with one that was changed in a like way.
        reached: the heads that the change can move; None for all.
        spread_of: what the spread is where there is no control.
    """
    stacks: dict[str, StackComparison] = {}
    for name, stack in comparison.stacks.items():
        nulls = tuple(_null(control[name]) for control in controls)
        stacks[name] = replace(
            stack,
            changed=cells.get(name, frozenset()),
            # nan_to_num makes 0 of what a control changed itself: it says nothing of that head.
            spread=np.max([stack.spread, *map(np.nan_to_num, nulls)], axis=0),
            spread_of=largest_of(len(controls), "control") if controls else spread_of,
            nulls=nulls,
            can_move=None if reached is None else reached.get(name),
        )
    return replace(comparison, stacks=stacks)


def _null(own: StackComparison) -> np.ndarray:
    """How far each head moved under a control; NaN where it was changed itself."""
    return np.array([np.nan if cell in own.changed else own.distance(*cell) for cell in own.cells])


def done_to(record: Record) -> tuple[str, ...]:
    """What was done to the model of a record, in words."""
    done: dict[str, None] = {}
    for name, stack in record.stacks.items():
        of = "" if name == "self" else f" of {name}"
        for layer in stack:
            done |= {f"layer {layer.layer}{of}: {change}": None for change in layer.changes}
    return tuple(done)


def _array(values: torch.Tensor) -> np.ndarray:
    return values.cpu().numpy()
