"""What a change of a model moves: run it as it is and changed, on the same input."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headscope.capturing import MOST_UNKNOWN, check_known
from headscope.capturing.fitness import check_fit
from headscope.capturing.inputs.parse import parse_shared
from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput
from headscope.capturing.loading import head_of, load_for
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.options import LOADING, check_not_loaded
from headscope.capturing.run import unwrapped
from headscope.comparison import Comparison, Effect, compare
from headscope.errors import HeadscopeError, InterventionError, check_called, check_count, listed
from headscope.evidence.groups import listed_groups
from headscope.interventions import Intervention
from headscope.record import Record
from headscope.studies.runs import Cells, Runs, done_to, with_changed
from headscope.studies.shared._source import check_texts

OnError = Callable[[int, HeadscopeError], None]


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
    check_called(options.get("on_error"))
    _check(interventions, listed(controls, "lists of interventions as controls"))
    check_count("top", top)
    anyway, on_error = options.pop("allow_unfit", False), options.pop("on_error", None)
    loading: dict[str, Any] = {name: options.pop(name) for name in LOADING if name in options}
    inputs = parse_shared(text, options)
    groups = None if groups is None else listed_groups(groups, len(inputs))
    if model is None or isinstance(model, str | Path):
        named = (model, tokenizer)
        model, tokenizer = _loaded(named, inputs, loading, allow_unfit=anyway)
    else:
        check_not_loaded(model, loading)
    if not anyway:
        _check_fit(model, tokenizer, inputs)
    most_unknown = 1.0 if anyway else MOST_UNKNOWN

    def read(given: ParsedInput) -> Runs:
        """An input as it is and under each change."""
        own = Runs((model, tokenizer), given, options, top)
        ids = own.inputs.arguments.get("input_ids")
        if ids is not None and own.tokenizer is not None:
            check_known(own.tokenizer, ids.reshape(-1).tolist(), "the text", most_unknown)
        for change in (interventions, *controls):
            own.run(change)
        return own

    runs = _all(inputs, read, on_error)
    if groups is not None:
        # Documents of texts that could not be run go with them.
        groups = [groups[number] for number in runs]
    return _effect_of(list(runs.values()), interventions, controls, groups)


def _loaded(
    named: tuple[Any, Any], inputs: Sequence[Outcome], options: dict[str, Any], *, allow_unfit: bool
) -> tuple[Any, Any]:
    """A model that was named, with the head that it was kept with, and what it reads with."""
    name, tokenizer = named
    first = next((given for given in inputs if isinstance(given, ParsedInput)), ParsedInput())
    model, own = load_for(name, first, kept=True, allow_unfit=allow_unfit, **options)
    return model, own if tokenizer is None else tokenizer


def _effect_of(
    runs: list[Runs],
    interventions: Sequence[Any],
    controls: Sequence[Sequence[Any]],
    groups: Sequence[Any] | None,
) -> Effect:
    """What runs of the same texts, intact, changed and under each control, say together."""
    intact = [each.intact.record for each in runs]
    changed = [each.changed[0].record for each in runs]
    comparison = compare(intact, changed, heads="number", groups=groups)
    # The first changed run is that of the change, and those after it of the controls.
    levels = [_control(runs, intact, number) for number in range(1, 1 + len(controls))]
    cells = [ran.cells for ran in runs[0].changed]
    return Effect(
        comparison=with_changed(comparison, cells[0], levels, reached=_reached(comparison, cells)),
        outputs=tuple(each.moved() for each in runs),
        done=done_to(changed[0]),
    )


def _all(
    inputs: Sequence[Outcome], read: Callable[[ParsedInput], Runs], on_error: OnError | None
) -> dict[int, Runs]:
    """The inputs that can be run, by number; one that cannot costs itself alone.

    Raises:
        HeadscopeError: why the first cannot, where none can.
    """
    runs: dict[int, Runs] = {}
    failed: dict[int, HeadscopeError] = {}
    for number, given in enumerate(inputs):
        if isinstance(given, HeadscopeError):
            failed[number] = given
            continue
        try:
            runs[number] = read(given)
        except InterventionError:
            raise  # of the change, which is the same for all texts
        except OF_ONE_INPUT as error:
            failed[number] = reason_of(error)
    if not runs:
        raise next(iter(failed.values()))
    for number, error in failed.items():
        (on_error or _warn)(number, error)
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
        highest = max(
            (min(layer for layer, _ in own[name]) for own in cells if own.get(name)), default=-1
        )
        reached[name] = frozenset(cell for cell in stack.cells if cell[0] > highest)
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


def _warn(number: int, error: HeadscopeError) -> None:
    warnings.warn(f"text {number} was left out: {error}", stacklevel=4)


def _check(interventions: Any, controls: Any) -> None:
    for what in (interventions, *controls):
        several = what if isinstance(what, Sequence) else ()
        if not several or not all(isinstance(each, Intervention) for each in several):
            raise InterventionError(
                "effect takes lists of interventions such as [headscope.Zero(layer=0, "
                f"heads=[1])], not {what!r}"
            )
