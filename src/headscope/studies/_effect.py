"""What a change of a model moves: run it as it is and changed, on the same input."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.capturing._capture import prepared
from headscope.capturing._load import load_for
from headscope.capturing._options import keeping_of
from headscope.capturing._run import at_rest, run
from headscope.comparison import Comparison, Effect, OutputChange, StackComparison, compare
from headscope.comparison._effect import OutputKind
from headscope.comparison._stack import largest_of
from headscope.errors import InterventionError, TextError
from headscope.interventions import Intervention
from headscope.interventions._session import plan_on
from headscope.record import Record

ROUNDING = "rounding alone; give controls= for the like of this change"
Cells = Mapping[str, frozenset[tuple[int, int]]]
Text = str | tuple[str, str]


def effect(
    model: Any,
    tokenizer: Any = None,
    text: Text | Sequence[Text] | None = None,
    *,
    interventions: Sequence[Any],
    controls: Sequence[Sequence[Any]] = (),
    top: int = 5,
    **options: Any,
) -> Effect:
    """What a change of some heads moves: the model's output, and where its other heads look.

    The model is run as it is and changed, on the same input (an encoder-decoder writes its target once, unchanged, for
    both). At each position the output's distributions p and p' are set apart by ``KL(intact || changed) = sum_y
    p ln(p / p')``: of tokens guessed, or of classes. A model without a head that guesses has output states, whose
    cosine distance is taken. Each head's attention is compared row by row by its Jensen-Shannon divergence (Clark et
    al. 2019, section 6), in nats; heads in layers below the change move by exactly 0.

    What moves, moves by the computation alone, as both runs have the same input; whether it is more than what any such
    change would do is told by ``controls``: the same done to other heads. A head then counts as moved where its
    distance is larger than under each control.

    Args:
        model: a loaded model, or a hub name or folder, which is loaded with the head that it was kept with; or None for
            the demo model, which has none.
        tokenizer: its tokenizer or processor; may be left out where the model is named.
        text: a text, a pair of them, or a list of such for intervals over texts.
        interventions: what is done, such as ``[Zero(layer=2, heads=[0])]``.
        controls: changes to measure the spread by, each a list of interventions.
        top: how many of the most probable guesses to keep.
        **options: as of `headscope.capture`, but ``interventions``.

    Raises:
        InterventionError: where there is nothing to be done, or a change cannot be made, or the model gives an output
            that is neither scores nor states.
        TextError: an empty text, or one longer than the model's positions.
        CaptureError: a model whose attention cannot be captured exactly.

    Example:
        >>> found = effect(model, tokenizer, "The cat sat.", interventions=[Zero(layer=2, heads=[0])])
        >>> found.moved  # [layer head], nats
    """
    _check(interventions, controls)
    if model is None or isinstance(model, str | Path):
        given = {name: options.get(name) for name in ("image", "sound", "trust_remote_code")}
        model, own = load_for(model, text, kept=True, **given)
        tokenizer = own if tokenizer is None else tokenizer
    runs = [_Runs((model, tokenizer), pair, options, top) for pair in _texts(text, options)]
    outputs = [each.output(interventions) for each in runs]
    intact, changed = [each.intact for each in runs], [each.records[-1] for each in runs]
    found = compare(intact, changed, heads="number")
    levels = [_control(runs, intact, control) for control in controls]
    return Effect(
        comparison=_with_changed(found, runs[0].cells(interventions), levels),
        outputs=tuple(outputs),
        done=tuple(dict.fromkeys(_done(changed[0]))),
    )


class _Runs:
    """One input, run as often as it takes.

    Args:
        loaded: the model and its tokenizer.
        texts: the text, and the second of a pair.
        options: of `headscope.capture`.
        top: how many guesses to keep.
    """

    def __init__(self, loaded: tuple[Any, Any], texts: tuple[str | None, str | None], options: Any, top: int) -> None:
        self.model, self.inputs = prepared(*loaded, texts, options)
        self.tokenizer = getattr(loaded[1], "tokenizer", loaded[1])
        self.keeping, self.top = keeping_of(options), top
        self.records: list[Record] = []
        self.intact, self._before = self._run(())

    def record(self, interventions: Sequence[Intervention]) -> Record:
        """The record under some interventions."""
        return self._run(interventions)[0]

    def output(self, interventions: Sequence[Intervention]) -> OutputChange:
        """How some interventions move the output; their record is the last of `records`."""
        record, after = self._run(interventions)
        self.records.append(record)
        kind, before = self._scores(self._before)
        after = self._scores(after)[1]
        labels = self._labels(record, len(before))
        if kind == "states":
            cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
            same = (before == after).all(-1)
            return OutputChange(kind=kind, labels=labels, values=_array(torch.where(same, 0.0, 1 - cosine)))
        if kind == "number":
            return OutputChange(kind=kind, labels=labels, values=_array((before - after).abs()[:, 0]))
        odds = [scores.log_softmax(-1) for scores in (before, after)]
        guesses = [tuple(map(self._guesses, each.exp())) for each in odds]
        return OutputChange(
            kind=kind, labels=labels, values=_array(divergence(*odds)), before=guesses[0], after=guesses[1]
        )

    def cells(self, interventions: Sequence[Intervention]) -> Cells:
        """The heads that are changed, by stack."""
        plan = plan_on(self.model, lambda: run(self.model, self.inputs, self.keeping))
        found: dict[str, set[tuple[int, int]]] = {}
        for intervention in interventions:
            for place, part in intervention.parts(plan):
                found.setdefault(place.stack, set()).update((place.layer, head) for head in part.heads)
        return {stack: frozenset(cells) for stack, cells in found.items()}

    def _run(self, interventions: Sequence[Intervention]) -> tuple[Record, Any]:
        with at_rest(self.model), _last_output(self.model) as outputs:
            record = run(self.model, self.inputs, self.keeping, interventions=interventions)[0]
        return record, outputs[-1]

    def _scores(self, output: Any) -> tuple[OutputKind, torch.Tensor]:
        """Scores or states ``[position class]`` of an output, in float64."""
        logits = getattr(output, "logits", None)
        if isinstance(logits, torch.Tensor) and logits.ndim in (2, 3) and len(logits) == 1:
            found = logits.double().reshape(-1, logits.shape[-1])
            several = getattr(self.model.config, "problem_type", None) == "multi_label_classification"
            if several and logits.ndim == 2:
                raise InterventionError(
                    f"{type(self.model).__name__} gives several labels at once, and effect takes the softmax of one "
                    "choice; take headscope.compare of two captures for its heads alone"
                )
            return ("number" if found.shape[1] == 1 else "classes" if logits.ndim == 2 else "tokens"), found
        states = getattr(output, "last_hidden_state", None)
        if isinstance(states, torch.Tensor) and states.ndim == 3 and len(states) == 1:
            return "states", states[0].double()
        raise InterventionError(
            f"{type(self.model).__name__} gives neither scores (logits) nor states that effect knows; take "
            "headscope.compare of two captures for its heads alone"
        )

    def _labels(self, record: Record, count: int) -> tuple[str, ...]:
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
        if count == getattr(config, "num_labels", 0) != getattr(config, "vocab_size", None):
            return str(config.id2label.get(number, number))
        if self.tokenizer is None:
            return str(number)
        name = self.tokenizer.decode([number])
        return name if name.strip() else self.tokenizer.convert_ids_to_tokens(number) or f"[{number}]"


def divergence(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """``sum_y p ln(p / p')`` of log probabilities ``[position outcome]``, in nats; 0 where p is 0."""
    apart = before - after
    terms = torch.where(before == -torch.inf, 0.0, before.exp() * apart)
    return terms.sum(-1).clamp(min=0.0)


@contextmanager
def _last_output(model: nn.Module) -> Generator[list]:
    """What a model gives while the block is open; the last of them is what was asked for."""
    found: list[Any] = []

    def note(_: nn.Module, __: tuple, output: Any) -> None:
        found[:] = [output]

    handle = model.register_forward_hook(note)
    try:
        yield found
    finally:
        handle.remove()


def _control(runs: Sequence[_Runs], intact: list[Record], control: Sequence[Intervention]) -> Comparison:
    """How far heads move under a control; those that it changes itself are marked."""
    found = compare(intact, [each.record(control) for each in runs], heads="number")
    return _with_changed(found, runs[0].cells(control), ())


def _with_changed(found: Comparison, cells: Cells, controls: Sequence[Comparison]) -> Comparison:
    """With the heads that were changed marked, and the largest distance under the controls as spread.

    A control says nothing of the heads that it changes itself.
    """
    stacks: dict[str, StackComparison] = {}
    for name, stack in found.stacks.items():
        told = largest_of(len(controls), "control") if controls else ROUNDING
        spread = stack.spread
        for control in controls:
            own = control[name]
            spread = np.maximum(spread, [0.0 if cell in own.changed else own.distance(*cell) for cell in own.cells])
        stacks[name] = replace(stack, changed=cells.get(name, frozenset()), spread=spread, spread_of=told)
    return replace(found, stacks=stacks)


def _done(record: Record) -> Iterator[str]:
    for name, stack in record.stacks.items():
        of = "" if name == "self" else f" of {name}"
        for layer in stack:
            yield from (f"layer {layer.layer}{of}: {change}" for change in layer.changes)


def _texts(text: Any, options: Mapping) -> list[tuple[str | None, str | None]]:
    if text is None and any(options.get(name) is not None for name in ("image", "sound")):
        return [(None, None)]
    if text is None:
        raise TextError("effect needs a text, a pair of texts, or a list of them")
    listed = [text] if isinstance(text, str | tuple) else list(text)
    if not listed:
        raise TextError("effect was given an empty list of texts; give at least one")
    return [(each, None) if isinstance(each, str) else tuple(each) for each in listed]


def _check(interventions: Any, controls: Any) -> None:
    for what in (interventions, *controls):
        if not isinstance(what, Sequence) or not what or not all(isinstance(each, Intervention) for each in what):
            raise InterventionError(
                f"effect takes lists of interventions such as [headscope.Zero(layer=0, heads=[1])], not {what!r}"
            )


def _array(values: torch.Tensor) -> np.ndarray:
    return values.cpu().numpy()
