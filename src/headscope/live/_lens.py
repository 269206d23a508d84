"""What a model would say were it to end after one of its layers ("logit lens")."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import nn

from headscope.capturing.device import device_of
from headscope.capturing.hooks import hook_after
from headscope.capturing.run import at_rest
from headscope.capturing.seam import intact
from headscope.errors import CaptureError, TextError
from headscope.interventions.session import intervene
from headscope.live._model import Asked, LiveModel
from headscope.live._output import TOKENS, Reader
from headscope.live._stop import StopSignal, stoppable
from headscope.live.contract import LensAnswer, LensLayer

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


@dataclass(frozen=True)
class LensRequest:
    """Of which text, and of which of its places.

    Args:
        asked: text and changes.
        at: place of the output.
    """

    asked: Asked
    at: int


def parse_lens(live: LiveModel, given: Any) -> LensRequest:
    """What a request asks for.

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
    if not isinstance(at, int) or isinstance(at, bool) or at < 0:
        raise TextError(f"at is a place of the output, from 0 on, not {repr(at)[:40]}")
    return LensRequest(asked, at)


def lens_of(live: LiveModel, request: LensRequest, signal: StopSignal) -> LensAnswer:
    """What each layer would say at one place of a text.

    Raises:
        StoppedError: where it was told to stop.
        HeadscopeError: where the layers of the model cannot be read, or there is no such place.
    """
    lens = LogitLens(live.model, live.reader)
    with ExitStack() as opened:
        opened.enter_context(stoppable(live.model, signal))
        run = live.intact(request.asked.read)
        positions = run.answer.at if run.answer.form == TOKENS else ()
        if request.at not in positions:
            raise TextError(f"at is one of the places {', '.join(map(str, positions))}")
        changes = live.interventions(request.asked.changes)
        opened.enter_context(at_rest(live.model))
        if changes:
            opened.enter_context(intervene(live.model, *changes))
        opened.enter_context(torch.no_grad())
        with lens.looking():
            live.model(**run.inputs.arguments)
        return {"at": request.at, "layers": lens.layers_at(request.at)}


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
