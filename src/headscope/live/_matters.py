"""Which heads matter to one guess of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from headscope.capturing.run import at_rest
from headscope.errors import InterventionError
from headscope.interventions import Objective, Zero, gradient_importance
from headscope.interventions.session import intervene, plan_on
from headscope.live._model import Asked, IntactRun, LiveModel
from headscope.live._output import CLASSES, STATES, TOKENS
from headscope.live._queue import Tell
from headscope.live._stop import StopSignal, stoppable
from headscope.live.contract import MattersDone, MattersValues
from headscope.studies.ablate.sharing import Sharing

METHODS = ("gradient", "exact")
GRADIENT = "size of the slope of the negative log probability in nats, as the head is turned down"
EXACT = "rise of the negative log probability in nats without the head"
APART = "cosine distance of the output states without the head"
Cells = Sequence[tuple[str, int, int]]


@dataclass(frozen=True)
class MattersRequest:
    """What is asked of a model.

    Args:
        asked: the text and the changes.
        method: one of `METHODS`.
        at: place of the output; None for the last.
        id: number of the guess; None for the likeliest.
    """

    asked: Asked
    method: str
    at: int | None
    id: int | None


def parse_matters(live: LiveModel, given: Any) -> MattersRequest:
    """What a request asks for.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    asked = live.parsed(given)
    target, method = given.get("target") or {}, given.get("method")
    if method not in live.facts["matters"]:
        raise InterventionError(
            f"method is one of {', '.join(live.facts['matters'])} for this model, not "
            f"{repr(method)[:40]}"
        )
    numbers = [target.get(name) for name in ("at", "id")] if isinstance(target, Mapping) else ["no"]
    for number in numbers:
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise InterventionError(
                'target is {"at": a place of the output, "id": a predicted token or class}'
            )
    return MattersRequest(asked, method, *numbers)


def matters(live: LiveModel, request: MattersRequest, signal: StopSignal, tell: Tell) -> None:
    """Tell how far it got, and then the effect of each head, a line for each stack.

    Raises:
        StoppedError: where it was asked to stop.
        HeadscopeError: where the guess is none, or a change cannot be made.
    """
    with ExitStack() as opened:
        opened.enter_context(stoppable(live.model, signal))
        intact = live.intact(request.asked.read)
        changes = live.interventions(request.asked.changes)
        opened.enter_context(at_rest(live.model))
        if changes:
            opened.enter_context(intervene(live.model, *changes))
        guess = _Guess.of(live, intact, request)
        if request.method == "gradient":
            cells, effects, label = *_slopes(live, guess, tell), GRADIENT
        else:
            label = APART if intact.answer.form == STATES else EXACT
            cells, effects = _without_each(live, guess, tell)
    for stack in dict.fromkeys(stack for stack, _, _ in cells):
        values = [
            (layer, head, float(f"{effect:.6g}"))
            for (own, layer, head), effect in zip(cells, effects, strict=True)
            if own == stack
        ]
        line: MattersValues = {"stack": stack, "values": values, "label": label}
        tell(line)


@dataclass(frozen=True, eq=False)
class _Guess:
    """One guess of a model, as a loss.

    Args:
        model: that guesses.
        arguments: of its forward.
        at: row of the output; None where it is of the whole.
        id: number of the guess.
        before: states that others are set apart from, of a model that does not guess.
    """

    model: Any
    arguments: Mapping[str, Any]
    at: int | None
    id: int
    before: torch.Tensor | None = None

    @classmethod
    def of(cls, live: LiveModel, intact: IntactRun, request: MattersRequest) -> _Guess:
        """The guess that is meant, of the model with its changes.

        Raises:
            InterventionError: where there is no such place or guess.
        """
        arguments = _passed(live.model, intact.inputs.arguments)
        form, positions = intact.answer.form, intact.answer.at
        if form == STATES:
            states = live.model(**arguments).last_hidden_state
            return cls(live.model, arguments, None, 0, states.detach())
        if form not in (TOKENS, CLASSES) or not positions:
            raise InterventionError("The model predicts nothing here; give another text")
        at = positions[-1] if request.at is None else request.at
        if at not in positions:
            raise InterventionError(
                f"at is a position of the output, {positions[0]} to {positions[-1]}, not {at}"
            )
        guess = cls(live.model, arguments, None if at < 0 else at, 0)
        row = guess.row(live.model(**arguments))
        number = int(row.argmax()) if request.id is None else request.id
        if not 0 <= number < len(row):
            raise InterventionError(f"id is a token or class, 0 to {len(row) - 1}, not {number}")
        return cls(live.model, arguments, guess.at, number)

    def row(self, output: Any) -> torch.Tensor:
        """The scores of the place."""
        logits = output.logits[0]
        return logits if self.at is None else logits[self.at]

    def loss(self) -> torch.Tensor:
        """Negative log probability in nats, or how far the states are from those before."""
        output = self.model(**self.arguments)
        if self.before is None:
            return -self.row(output).double().log_softmax(-1)[self.id]
        states = output.last_hidden_state.double()
        cosine = torch.nn.functional.cosine_similarity(states, self.before.double(), dim=-1)
        return (1 - cosine).mean()


def _passed(model: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a pass that fills no cache."""
    has_cache = hasattr(getattr(model, "config", None), "use_cache")
    return {**arguments, "use_cache": False} if has_cache else dict(arguments)


def _slopes(live: LiveModel, guess: _Guess, tell: Tell) -> tuple[Cells, Sequence[float]]:
    """The slope of the loss in each head: one pass forward and back."""
    tell(_done(0, 1))
    batch = {name: value for name, value in guess.arguments.items() if _is_tensor(value)}
    objective = Objective(
        [batch], lambda model, given: guess.loss()[None], "negative log probability"
    )
    importance = gradient_importance(live.model, objective)
    tell(_done(1, 1))
    return importance.cells, importance.mean.tolist()


def _without_each(live: LiveModel, guess: _Guess, tell: Tell) -> tuple[Cells, Sequence[float]]:
    """How much the loss rises without each head; what lies below a head is computed once."""
    with torch.no_grad():
        places = plan_on(live.model, guess.loss).places
        shared = Sharing(live.model, places)
        shared.check(guess.loss, places[-1:])
        with shared.recording():
            whole = float(guess.loss())
        count = sum(place.heads for place in places)
        cells: list[tuple[str, int, int]] = []
        effects: list[float] = []
        for place in places:
            for head in range(place.heads):
                tell(_done(len(cells), count))
                zero = Zero(stack=place.stack, layer=place.layer, heads=head)
                with shared.sharing(place), intervene(live.model, zero):
                    effects.append(float(guess.loss()) - whole)
                cells.append((place.stack, place.layer, head))
        shared.forget()
        tell(_done(count, count))
    return cells, effects


def _done(done: int, of: int) -> MattersDone:
    return {"done": done, "of": of}


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
