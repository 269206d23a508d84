"""What a live model shows besides its attention: what each layer would predict, and what matters
for a prediction.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.observers import hook_after
from headscope.capturing.seam import intact
from headscope.errors import CaptureError, InterventionError, TextError, is_whole
from headscope.interventions import Zero, gradient_importance
from headscope.interventions.session import intervene, plan_on
from headscope.live._model import Asked, IntactRun, LiveModel
from headscope.live._output import CLASSES, STATES, TOKENS, Reader
from headscope.live._queue import StopSignal, Tell, stoppable
from headscope.live.contract import LensAnswer, LensLayer, MattersDone, MattersValues, WhyEnd
from headscope.studies.ablate.sharing import Sharing
from headscope.studies.runs import logits_in
from headscope.tasks import Task
from headscope.why import why

NORM = "norm"
"""What the class of a last norm is called by, in small letters: LlamaRMSNorm, LayerNorm ..."""
APART = 1e-3
"""How far the states of the last layer may be from what the head reads, as a part of the largest;
ours, above the rounding of half precision.
"""

States = Float[torch.Tensor, "token feature"]


class LogitLens:
    """Notes the states after each layer, and lets the model's own head read them.

    What stands between the last layer and the head, a norm or nothing, is recognised by its
    numbers: the lens of the last layer is what the model predicts. Source: nostalgebraist 2020;
    without the translators of Belrose et al. 2023.

    Args:
        model: with a head for tokens.
        reader: names them.

    Raises:
        CaptureError: where the layers or the head cannot be recognised.
    """

    def __init__(self, model: nn.Module, reader: Reader) -> None:
        self._model, self._reader = model, reader
        self._base: Any = getattr(model, "base_model", model)
        reads: Any = _text_part(model, self._base)
        outer = _outermost_lists(reads)
        if len(outer) != 1 or self._base is model:
            raise CaptureError(f"{type(model).__name__} has no one list of layers below its head")
        self._blocks: list[nn.Module] = list(reads.get_submodule(outer[0]))
        self._norms: list[nn.Module] = [
            module
            for name, module in reads.named_modules()
            if not name.startswith(f"{outer[0]}.") and NORM in type(module).__name__.lower()
        ]
        self._states: dict[int, States] = {}
        self._output: Any = None

    @contextmanager
    def looking(self) -> Generator[None]:
        """Note the states after each layer while the block is open."""
        with ExitStack() as undo:
            for number, block in enumerate(self._blocks):
                undo.callback(hook_after(block, self._noting(number)).remove)
            undo.callback(hook_after(self._base, self._note_output).remove)
            yield

    def layers_at(self, at: int) -> list[LensLayer]:
        """The guesses after each layer in the last pass.

        Args:
            at: row of the states.

        Raises:
            CaptureError: where the head reads something else than the states of the last layer.
        """
        with torch.no_grad():
            after = self._between(at)
            rows = torch.cat([after(states[at][None]) for states in self._states.values()])
            odds = self._read(rows).float().softmax(-1)
        guesses = self._reader.guesses(odds)
        return [
            {"layer": number, "predictions": guess}
            for number, guess in zip(self._states, guesses, strict=True)
        ]

    def _between(self, at: int) -> Any:
        """What the states of a layer go through before the head, found from those of one token."""
        if self._output is None:
            raise CaptureError(
                f"{type(self._model).__name__} does not run {type(self._base).__name__} as a "
                "whole, so that its head cannot be given other states"
            )
        # Only of this token: some models add to the states of pictures between their layers.
        last = self._states[len(self._blocks) - 1][at][None]
        read = _rows(_states_of(self._output))[at][None]
        for after in (nn.Identity(), *self._norms):
            try:
                states = after(last)
            except RuntimeError:
                continue  # a norm of other features
            if (states - read).abs().max() <= APART * read.abs().max():
                return after
        raise CaptureError(
            f"{type(self._model).__name__} does more than one norm between its layers and its "
            "head, so that inner layers cannot be read by it"
        )

    def _read(self, rows: States) -> Float[torch.Tensor, "token vocabulary"]:
        """The head of the model on states, with all that the model does after it."""
        states = rows[None]
        changed = _with_states(self._output, states)
        ids = torch.zeros(states.shape[:2], dtype=torch.long, device=device_of(self._model))
        before = vars(self._base).get("forward")
        # The model's own forward, with these states in place of what its layers would give.
        self._base.forward = lambda *_, **__: changed
        try:
            with intact():
                return self._model(input_ids=ids).logits[0]
        finally:
            del self._base.forward
            if before is not None:
                self._base.forward = before

    def _noting(self, number: int) -> Any:
        def note(_module: nn.Module, _args: tuple, _options: Mapping, output: Any) -> None:
            self._states[number] = _rows(_states_of(output)).detach()

        return note

    def _note_output(self, _: nn.Module, __: tuple, ___: Mapping, output: Any) -> None:
        # What is put in place of it is no output of the layers.
        if "forward" not in vars(self._base):
            self._output = output


def parse_lens(live: LiveModel, given: Any) -> tuple[Asked, int]:
    """Text and changes that a request asks about, and which place of the output.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    asked = live.parsed(given)
    if not live.facts["lens"]:
        raise CaptureError(
            f"{live.facts['name']} predicts no tokens of the text that it reads; serve a causal or "
            "masked language model with its head"
        )
    at = given.get("at")
    if not is_whole(at):
        raise TextError(f"at is a place of the output, from 0 on, not {repr(at)[:40]}")
    return asked, at


def lens_of(live: LiveModel, request: tuple[Asked, int], signal: StopSignal) -> LensAnswer:
    """What each layer would say at one place of a text.

    Raises:
        StoppedError: where it was told to stop.
        HeadscopeError: where the layers of the model cannot be read, or there is no such place.
    """
    (asked, at), lens = request, LogitLens(live.model, live.reader)
    with stoppable(live.model, signal):
        run = live.intact(asked.read)
        positions = run.answer.at if run.answer.form == TOKENS else ()
        if at not in positions:
            raise TextError(f"at is one of the places {', '.join(map(str, positions))}")
        with live.changed(asked.changes), lens.looking():
            live.model(**run.inputs.arguments)
        return {"at": at, "layers": lens.layers_at(at)}


def _states_of(output: Any) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output[0]


def _with_states(output: Any, states: torch.Tensor) -> Any:
    """The output of a model with other states."""
    if isinstance(output, Mapping):
        return type(output)(**{**output, "last_hidden_state": states})
    return (states, *output[1:]) if isinstance(output, Sequence) else states


def _rows(states: torch.Tensor) -> States:
    # [batch token feature], or [token feature] of models that take the batch away
    return states.reshape(-1, states.shape[-1])


def _text_part(model: nn.Module, base: nn.Module) -> nn.Module:
    """What a head reads from: of a model of pictures and text the part that reads both."""
    part = getattr(model, "get_decoder", None)
    # Only where layers of pictures stand next to those of text: other models name other things so.
    if part is None or len(_outermost_lists(base)) == 1:
        return base
    decoder = part()
    is_inside = any(decoder is each for each in base.modules())
    return decoder if is_inside else base


def _outermost_lists(base: nn.Module) -> list[str]:
    """Names of the lists of modules; experts of a layer are a list within the list of layers."""
    lists = [name for name, child in base.named_modules() if _is_list(child)]
    return [name for name in lists if not any(name.startswith(f"{at}.") for at in lists)]


def _is_list(module: nn.Module) -> bool:
    return isinstance(module, nn.ModuleList) and len(module) > 1


def parse_why(live: LiveModel, given: Any) -> tuple[Asked, int, Any]:
    """Text and changes that a request asks about, the row, and the token that is explained.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    return *parse_lens(live, given), given.get("id")


def why_of(live: LiveModel, request: tuple, signal: StopSignal, tell: Tell) -> None:
    """Tell how far it got, and then the way back from a token.

    Raises:
        StoppedError: where it was told to stop.
        HeadscopeError: as of `headscope.why`.
    """
    (asked, at, token), reader = request, live.reads_with
    options: Any = {"position": at, "allow_unfit": True}
    options["progress"] = lambda done, of: tell(_done(done, of))
    with stoppable(live.model, signal), live.changed(asked.changes):
        result = why(live.model, reader, asked.read.parsed.read_with(reader), token, **options)
    tell(WhyEnd(picture=result.view().picture))


METHODS = ("gradient", "exact")
GRADIENT = "size of the slope of the negative log probability in nats, as the head is turned down"
EXACT = "rise of the negative log probability in nats without the head"
STATES_APART = "cosine distance of the output states without the head"
Cells = Sequence[tuple[str, int, int]]


def parse_matters(live: LiveModel, given: Any) -> tuple[Any, ...]:
    """Text and changes that a request asks about, one of `METHODS`, the place of the output (None:
    the last), and the number of the guess (None: the likeliest).

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
    return (asked, method, *numbers)


def matters(live: LiveModel, request: tuple, signal: StopSignal, tell: Tell) -> None:
    """Tell how far it got, and then the effect of each head, a line for each stack.

    Raises:
        StoppedError: where it was asked to stop.
        HeadscopeError: where the guess is none, or a change cannot be made.
    """
    asked, method, *meant = request
    with ExitStack() as opened:
        opened.enter_context(stoppable(live.model, signal))
        intact = live.intact(asked.read)
        opened.enter_context(live.changed(asked.changes))
        guess = _Guess.of(live, intact, *meant)
        if method == "gradient":
            cells, effects, label = *_slopes(live, guess, tell), GRADIENT
        else:
            label = STATES_APART if intact.answer.form == STATES else EXACT
            cells, effects = _without_each(live, guess, tell)
    for stack in dict.fromkeys(stack for stack, _, _ in cells):
        values = [
            (layer, head, float(f"{effect:.6g}"))
            for (own, layer, head), effect in zip(cells, effects, strict=True)
            if own == stack
        ]
        tell(MattersValues(stack=stack, values=values, label=label))


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
    def of(cls, live: LiveModel, intact: IntactRun, at: int | None, number: int | None) -> _Guess:
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
        at = positions[-1] if at is None else at
        if at not in positions:
            raise InterventionError(
                f"at is a position of the output, {positions[0]} to {positions[-1]}, not {at}"
            )
        guess = cls(live.model, arguments, None if at < 0 else at, 0)
        row = guess.row(live.model(**arguments))
        number = int(row.argmax()) if number is None else number
        if not 0 <= number < len(row):
            raise InterventionError(f"id is a token or class, 0 to {len(row) - 1}, not {number}")
        return cls(live.model, arguments, guess.at, number)

    def row(self, output: Any) -> torch.Tensor:
        """The scores of the place."""
        logits = logits_in(self.model, output)[0]
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
    batch = {name: value for name, value in guess.arguments.items() if torch.is_tensor(value)}
    task = Task([batch], lambda model, given: -guess.loss()[None])
    importance = gradient_importance(live.model, task)
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
