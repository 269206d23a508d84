"""What a change of a model moves: one input is run as often as it takes, as it is and changed."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope._progress import warn_left_out
from headscope.capturing import MOST_UNKNOWN
from headscope.capturing.entry import prepared
from headscope.capturing.fitness import check_fit
from headscope.capturing.inputs.inputs import Inputs
from headscope.capturing.inputs.parse import check_reader, parse_shared
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput
from headscope.capturing.keep import KeepChoice
from headscope.capturing.loading import head_of, load_for
from headscope.capturing.observers import hook_after
from headscope.capturing.options import LOADING, check_not_loaded, keeping_of
from headscope.capturing.run import at_rest, run, unwrapped
from headscope.comparison import Comparison, Effect, OutputChange, StackComparison, compare
from headscope.comparison.effect import OutputKind
from headscope.comparison.stack import largest_of
from headscope.errors import HeadscopeError, InterventionError, check_count, check_reading, listed
from headscope.evidence.groups import listed_groups
from headscope.interventions import Intervention
from headscope.interventions.plan import ModelPlan
from headscope.interventions.session import intervene
from headscope.record import Record
from headscope.studies.shared._fold import one_by_one
from headscope.studies.shared._source import check_texts, with_copies

ROUNDING = "give controls= (--control) for the like of this change"
DISCRIMINATORS = ("ElectraForPreTraining", "FunnelForPreTraining")
"""Models that say of each token whether another model put it there."""
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
            own = {(place.layer, head) for head in part.heads}
            by_stack.setdefault(place.stack, set()).update(own)
    return {stack: frozenset(cells) for stack, cells in by_stack.items()}


class Runs:
    """One input, run as often as it takes.

    Args:
        loaded: the model and its tokenizer.
        given: what is read.
        options: of `headscope.capture`.
        top: how many guesses to keep.
        most: see `check_known`.
    """

    def __init__(
        self, loaded: tuple[Any, Any], given: ParsedInput, options: Any, *, top: int, most: float
    ) -> None:
        self.model: Any
        self.inputs: Inputs
        self.model, self.inputs = prepared(*loaded, given, options, max_unknown=most)
        self.tokenizer: Any = getattr(loaded[1], "tokenizer", loaded[1])
        self.keeping: KeepChoice = keeping_of(options)
        self.top: int = top
        self.intact: Ran = run_once(self.model, self.inputs, self.keeping)
        self.changed: list[Ran] = []

    def run(self, interventions: Sequence[Intervention]) -> None:
        """Run under some interventions; what came of it is put to `changed`, and how the first of
        them, which is the change, moved the output to `moved`.
        """
        ran = run_once(self.model, self.inputs, self.keeping, interventions)
        if not self.changed:
            self.moved: OutputChange = self._output(ran.record, ran.output)
        # Of further runs nobody asks for the output, which may be large.
        self.changed.append(replace(ran, output=None))

    def _output(self, record: Record, after: Any) -> OutputChange:
        kind, before = self._scores(self.intact.output)
        after = self._scores(after)[1]
        guesses: dict[str, tuple[Any, ...]] = {}
        if kind in ("tokens", "classes"):
            for name, scores in (("before", before), ("after", after)):
                odds = scores.log_softmax(-1).exp()
                guesses[name] = tuple(self._guesses(kind, row) for row in odds)
        values = distances(kind, before, after).cpu().numpy()
        labels = labels_at(record, len(before))[1]
        return OutputChange(kind=kind, labels=labels, values=values, **guesses)

    def _scores(self, output: Any) -> tuple[OutputKind, torch.Tensor]:
        """Scores or states ``[position class]`` of an output, in float64."""
        logits = logits_in(self.model, output)
        if isinstance(logits, torch.Tensor) and logits.ndim in (2, 3) and len(logits) == 1:
            form = form_of(self.model, output, logits)
            if form is None:
                raise InterventionError(
                    f"{type(self.model).__name__} gives several labels at once, and effect "
                    "compares one choice; take headscope.compare of two captures for its heads"
                )
            return form, logits.double().reshape(-1, logits.shape[-1])
        states = getattr(output, "last_hidden_state", None)
        if isinstance(states, torch.Tensor) and states.ndim == 3 and len(states) == 1:
            return "states", states[0].double()
        raise InterventionError(
            f"{type(self.model).__name__} gives neither scores (logits) nor states that effect "
            "knows; take headscope.compare of two captures for its heads alone"
        )

    def _guesses(self, kind: OutputKind, odds: torch.Tensor) -> tuple[tuple[str, float], ...]:
        best = odds.topk(min(self.top, len(odds)))
        name = partial(class_name, self.model) if kind == "classes" else self._token
        return tuple(
            (name(number), probability)
            for number, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        )

    def _token(self, number: int) -> str:
        # What reads pictures or sounds alone knows no tokens.
        if not hasattr(self.tokenizer, "decode"):
            return str(number)
        name = self.tokenizer.decode([number])
        if name.strip():
            return name
        return self.tokenizer.convert_ids_to_tokens(number) or f"[{number}]"


def logits_in(model: Any, output: Any) -> Any:
    """The logits in an output, ``[1 class]`` or ``[1 position class]``; None where there are none.
    A discriminator gives one for each position, the log odds of the second of two classes.
    """
    logits = getattr(output, "logits", None)
    if type(model).__name__ in DISCRIMINATORS and isinstance(logits, torch.Tensor):
        return torch.stack([torch.zeros_like(logits), logits], dim=-1)
    return logits


def form_of(model: Any, output: Any, logits: torch.Tensor) -> OutputKind | None:
    """What logits are of; None of several labels at once, which are no one choice."""
    config, count = getattr(model, "config", None), logits.shape[-1]
    # Configurations have labels even where the model has no classes: two by default.
    classes = getattr(config, "num_labels", 0)
    multiple = getattr(config, "problem_type", None) == "multi_label_classification"
    has_boxes = hasattr(output, "pred_boxes")
    # Of objects, a choice has a class more, for none of them.
    if (logits.ndim == 2 and multiple) or (has_boxes and count == classes):
        return None
    if count == 1:
        return "number"
    is_label = count == classes != getattr(config, "vocab_size", None)
    return "classes" if logits.ndim == 2 or has_boxes or is_label else "tokens"


def class_name(model: Any, number: int) -> str:
    """What a model calls one of its classes."""
    name = type(model).__name__
    if name in DISCRIMINATORS:
        return ("original", "replaced")[number]
    names = dict(getattr(getattr(model, "config", None), "id2label", None) or {})
    if name.endswith("ForObjectDetection"):
        names.setdefault(len(names), "no object")
    return str(names.get(number, number))


def labels_at(record: Record, count: int) -> tuple[str, tuple[str, ...]]:
    """The stack of which an output has that many positions, and what stands at each."""
    # The last stack that fits: of an encoder-decoder the decoder's, whose tokens are guessed.
    for stack in reversed(list(record.stacks.values())):
        if len(stack.query) == count:
            return stack.name, stack.query.labels
    return "", ("the whole",) if count == 1 else tuple(map(str, range(count)))


def distances(kind: str, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """How far each position moved: ``sum_y p ln(p / p')`` in nats of scores of one choice, the
    cosine distance of states, the absolute difference of a number.
    """
    if kind == "number":
        return (before - after).abs()[:, 0]
    if kind == "states":
        cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
        # The cosine of a vector with itself may be a rounding error below 1.
        return torch.where((before == after).all(-1), 0.0, 1 - cosine)
    before, after = before.log_softmax(-1), after.log_softmax(-1)
    # Where p is 0 the difference of logarithms is -inf or NaN, which times 0 would be NaN.
    terms = torch.where(before == -torch.inf, 0.0, before.exp() * (before - after))
    return terms.sum(-1).clamp(min=0.0)


@contextmanager
def _last_output(model: nn.Module) -> Generator[list]:
    """What a model gives while the block is open; the last of them is what was asked for."""
    outputs: list[Any] = []

    def note(_: nn.Module, __: tuple, ___: dict, output: Any) -> None:
        outputs[:] = [output]

    with hook_after(model, note):
        yield outputs


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

    A control is no evidence about heads that it changes itself.

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


def effect(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    *,
    interventions: Sequence[Any],
    controls: Sequence[Sequence[Any]] = (),
    top: int = 5,
    groups: Sequence[Any] | None = None,
    **options: Any,
) -> Effect:
    """What a change of some heads moves: the model's output, and where its other heads look.

    The model is run as it is and changed, on the same input (an encoder-decoder writes its target
    once, unchanged, for both). At each position the output's distributions p and p' are compared
    by ``KL(intact || changed) = sum_y p ln(p / p')``: of predicted tokens, or of classes. A model
    without a prediction head has output states, whose cosine distance is taken. Each head's
    attention is compared row by row by its Jensen-Shannon divergence (Clark et al. 2019, section
    6), in nats; heads in layers below the change move by exactly 0.

    What moves, moves by the computation alone, as both runs have the same input; ``controls``, the
    same done to other heads, show whether it is more than what any such change would do. A head
    above the changed ones then counts as moved where its distance is larger than under each
    control. Without controls heads are ranked and no more.

    Args:
        model: a loaded model, or a hub name or folder, which is loaded with the head that it was
            kept with; or None for the demo model, which has none.
        tokenizer: its tokenizer or processor; may be left out where the model is named.
        text: a text, a pair of them, or a list of such for intervals over texts.
        interventions: what is done, such as ``[Zero(layer=2, heads=[0])]``.
        controls: changes to measure the spread by, each a list of interventions.
        top: how many of the most probable predictions to keep.
        groups: the document that each text is of, so that intervals are over documents.
        **options: as of `headscope.capture`, but ``interventions``; ``allow_unfit``, for a model
            whose head was not trained and texts that are mostly unknown tokens (False);
            ``on_error``, called with number and error of a text that cannot be run: the rest goes
            on. By default that is a warning, and where no text is left an error.

    Raises:
        InterventionError: where there is nothing to be done, or a change cannot be made, or the
            model gives an output that is neither scores nor states.
        ModelError: a model whose head was not trained.
        TextError: an empty text, one longer than the model's positions, or texts that are mostly
            unknown tokens.
        CaptureError: a model whose attention cannot be captured exactly.

    Example:
        >>> comparison = effect(
        ...     model, tokenizer, "The cat sat.", interventions=[Zero(layer=2, heads=[0])]
        ... )
        >>> comparison.moved  # [layer head], nats
    """
    check_reader(tokenizer, "effect")
    check_reading(options)
    _check(interventions, listed(controls, "lists of interventions as controls"))
    check_count("top", top)
    anyway, on_error = options.pop("allow_unfit", False), options.pop("on_error", None)
    loading: dict[str, Any] = {name: options.pop(name) for name in LOADING if name in options}
    inputs = parse_shared(text, options)
    own = range(len(inputs)) if groups is None else listed_groups(groups, len(inputs))
    documents = with_copies(inputs, tuple(own))
    if model is None or isinstance(model, str | Path):
        # With the head that it was kept with.
        first = next((given for given in inputs if isinstance(given, ParsedInput)), ParsedInput())
        model, own = load_for(model, first, kept=True, allow_unfit=anyway, **loading)
        tokenizer = own if tokenizer is None else tokenizer
    else:
        check_not_loaded(model, loading)
    if not anyway:
        _check_fit(model, tokenizer, inputs)

    def read(_: int, given: ParsedInput) -> Runs:
        """An input as it is and under each change."""
        most = 1.0 if anyway else MOST_UNKNOWN
        own = Runs((model, tokenizer), given, options, top=top, most=most)
        for change in (interventions, *controls):
            own.run(change)
        return own

    runs = _all(inputs, read, on_error or warn_left_out)
    # Documents of texts that could not be run go with them.
    documents = [documents[number] for number in runs]
    are_known = groups is not None or len(set(documents)) < len(runs)
    return _effect_of(list(runs.values()), documents if are_known else None)


def _effect_of(runs: list[Runs], groups: Sequence[Any] | None) -> Effect:
    """What runs of the same texts, intact, changed and under each control, say together."""
    intact = [each.intact.record for each in runs]
    changed = [each.changed[0].record for each in runs]
    comparison = compare(intact, changed, heads="number", groups=groups)
    # The first changed run is that of the change, and those after it of the controls.
    cells = [ran.cells for ran in runs[0].changed]
    levels = [_control(runs, intact, number) for number in range(1, len(cells))]
    return Effect(
        comparison=with_changed(comparison, cells[0], levels, reached=_reached(comparison, cells)),
        outputs=tuple(each.moved for each in runs),
        done=changed[0].changes,
    )


def _all(
    inputs: Sequence[Outcome], read: Callable[[int, ParsedInput], Runs], report: Callable[..., None]
) -> dict[int, Runs]:
    """The inputs that can be run, by number; one that cannot costs itself alone."""
    failed: dict[int, HeadscopeError] = {}

    def lose(number: int, error: HeadscopeError) -> None:
        if isinstance(error, InterventionError):
            raise error  # of the change, which is the same for all texts
        failed[number] = error

    runs = dict(one_by_one(inputs, read, {"on_error": lose}, "Running"))
    if not runs:
        raise next(iter(failed.values()))
    for number, error in failed.items():
        report(number, error)
    return runs


def _control(runs: Sequence[Runs], intact: list[Record], number: int) -> Comparison:
    """How far heads move under the control that was run as this one; those that it changes itself
    are marked.
    """
    ran = [each.changed[number] for each in runs]
    comparison = compare(intact, [each.record for each in ran], heads="number")
    return with_changed(comparison, ran[0].cells, ())


def _reached(comparison: Comparison, cells: Sequence[Cells]) -> Cells:
    """The heads that the change and all controls can move, by stack: of a changed stack those above
    the changes.

    What is below a change computes the same, and the other heads of its layer move
    by rounding alone.
    """
    reached: dict[str, frozenset[tuple[int, int]]] = {}
    for name, stack in comparison.stacks.items():
        lowest = [min(layer for layer, _ in own[name]) for own in cells if own.get(name)]
        reached[name] = frozenset(cell for cell in stack.cells if cell[0] > max(lowest, default=-1))
    return reached


def _check_fit(model: Any, tokenizer: Any, inputs: Sequence[Outcome]) -> None:
    """Raise where the output is of a head that was not trained, or most of the texts are unknown to
    the tokenizer.

    Raises:
        ModelError: naming the weights.
        TextError: with the share.
    """
    whole = unwrapped(model)
    check_fit(whole, head_of(type(whole), getattr(whole, "config", None)))
    if tokenizer is not None:
        check_texts(tokenizer, inputs)


def _check(interventions: Any, controls: Any) -> None:
    for what in (interventions, *controls):
        several = what if isinstance(what, Sequence) else ()
        if not several or not all(isinstance(each, Intervention) for each in several):
            raise InterventionError(
                "effect takes lists of interventions such as [headscope.Zero(layer=0, "
                f"heads=[1])], not {what!r}"
            )
