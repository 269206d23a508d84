"""Going on with a text, token by token, each sent as soon as it is written."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from headscope.capturing import generate
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import tokenized
from headscope.errors import CaptureError, TextError
from headscope.live._lens import LogitLens
from headscope.live._model import Asked, LiveModel
from headscope.live._output import SHOWN, Reader
from headscope.live._queue import StopSignal, Tell, stoppable
from headscope.live.contract import WriteEnd, WrittenToken
from headscope.views import view

MOST_WRITTEN = 256


@dataclass(frozen=True)
class WriteRequest:
    """How to continue a text.

    Args:
        asked: the text and the changes.
        tokens: how many to write at most.
        at: how many tokens of the text are kept; None for all.
        written: tokens that come next, before the model chooses any.
        lens: whether each layer is asked what it would have predicted.
    """

    asked: Asked
    tokens: int
    at: int | None
    written: list[int]
    lens: bool


def parse_write(live: LiveModel, given: Any) -> WriteRequest:
    """What a request asks for.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    asked = live.parsed(given)
    if not live.facts["writes"]:
        raise CaptureError(
            f"{live.facts['name']} does not write; serve a causal language model with its head"
        )
    tokens = number_of("tokens", given.get("tokens"), 1, MOST_WRITTEN)
    at = number_of("at", given.get("at"), 1, live.facts["limits"]["tokens"])
    written, last = given.get("written", []), len(live.tokenizer) - 1
    if not isinstance(written, list) or None in written:
        raise TextError(f"written is a list of numbers from 0 to {last}")
    written = [number_of("each of written", number, 0, last) or 0 for number in written]
    return WriteRequest(asked, tokens or SHOWN, at, written, bool(given.get("lens", False)))


def write(live: LiveModel, request: WriteRequest, signal: StopSignal, tell: Tell) -> None:
    """Write on: a line for each token, then one with the record of all.

    Raises:
        StoppedError: where it was asked to stop.
        HeadscopeError: as of `headscope.generate`.
    """
    prompt: Any = _prompt(live, request)
    lens = LogitLens(live.model, live.reader) if request.lens else None
    watch = TokenWatch(live.reader, tell, lens)
    looking = nullcontext() if lens is None else lens.looking()
    with stoppable(live.model, signal), live.changed(request.asked.changes), looking:
        record = generate(
            live.model,
            live.tokenizer,
            prompt,
            max_new_tokens=request.tokens,
            do_sample=False,
            num_beams=1,
            logits_processor=[watch.look],
            stopping_criteria=[watch.wrote],
            allow_unfit=True,
        )
    written = record.generation
    text = prompt.text + (written.text if written is not None else "")
    kept = live.keep(f"written {text} {request.asked.changes}", view(record), request.asked.changes)
    stopped = "end" if written is not None and written.stop == "end" else "length"
    tell(WriteEnd(id=kept.id, text=text, stopped=stopped))


def _prompt(live: LiveModel, request: WriteRequest) -> ParsedInput:
    """The text to continue, cut and with the token that was chosen, and the turns in it.

    Raises:
        TextError: where nothing is left, or there is no room for what is to be written.
    """
    parsed = request.asked.read.parsed
    if len(parsed.texts) != 1 or parsed.has_media:
        raise TextError(
            "Writing continues one text; ask for an answer where the question is about a picture"
        )
    parsed = parsed.read_with(live.reads_with, writes=True)
    text, skips = parsed.texts[0], not parsed.is_rendered
    read = list(encode(live.model, live.tokenizer, parsed)["input_ids"])
    ids = read[: request.at] + request.written
    if ids != read:
        text = type(text)(live.tokenizer.decode(ids, skip_special_tokens=skips))
    most = live.facts["limits"]["tokens"]
    if len(ids) + request.tokens > most + 1:
        raise TextError(
            f"After {len(ids)} tokens there is room for {max(0, most + 1 - len(ids))} more, and "
            f"{request.tokens} are to be written; ask for fewer"
        )
    if ids == read or tokenized(live.tokenizer, text, warns=False)["input_ids"] == ids:
        is_begun = text.startswith(parsed.text) or parsed.text.startswith(text)
        return replace(parsed, text=text, known=parsed.known if is_begun else ())
    return replace(parsed, text=text, known=(), ids=tuple(ids))


@dataclass
class TokenWatch:
    """Reports each token with its probability and the candidates.

    Args:
        reader: names tokens.
        tell: tells a line.
        lens: gives what each layer would have predicted; None where nobody asks.
        count: how many were sent.
    """

    reader: Reader
    tell: Tell
    lens: LogitLens | None
    count: int = 0
    _odds: torch.Tensor = field(default_factory=lambda: torch.zeros(1, 1))

    def look(self, _ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores of a step; called as a logits processor, which changes nothing."""
        self._odds = scores.detach().float().softmax(-1)
        return scores

    def wrote(self, ids: torch.Tensor, _scores: object = None, **_: object) -> torch.Tensor:
        """A token was chosen; called as a stopping criterion, which it never meets."""
        number = int(ids[0, -1])
        (guess,) = self.reader.named([number], [float(self._odds[0, number])])
        line: WrittenToken = {
            "token": guess["label"],
            "continues": guess["continues"],
            "id": number,
            "probability": guess["probability"],
            "entropy": round(float(torch.special.entr(self._odds).sum()), 6),
            "alternatives": self.reader.guesses(self._odds)[0],
        }
        if self.lens is not None:
            line["lens"] = self.lens.layers_at(-1)
        self.tell(line)
        self.count += 1
        return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)


def number_of(name: str, given: Any, least: int, most: int) -> int | None:
    """A number of a request; None where it gives none.

    Raises:
        TextError: where it is none from least to most.
    """
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
        raise TextError(f"{name} is a number from {least} to {most}, not {repr(given)[:40]}")
    return given
