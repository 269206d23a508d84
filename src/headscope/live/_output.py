"""What a model makes of what it reads: its likeliest guesses, before and after a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeGuard

import torch
from jaxtyping import Float

from headscope.capturing.inputs.tokens import SpecialTokens
from headscope.comparison import OutputChange
from headscope.live.contract import AnswerKind, LiveGuess, LiveOutput, LivePlace
from headscope.record import Record
from headscope.studies.runs import class_name, distances, form_of, labels_at, logits_in

SHOWN = 5
"""Guesses at each place."""
MOST_PLACES = 64
"""Positions whose guesses are given: the last ones. Of a long text and a large vocabulary all of
them would be megabytes of JSON.
"""
NO_HEAD = "The model has no head that predicts; only how far a change moves its states is shown"
NO_MASK = "No word of the text is hidden; put {mask} in place of one"
SEVERAL = "The model gives several labels at once: each probability is its own"
NUMBERS = "The model gives one number for each token; only how far a change moves it is shown"
CANNOT_SAY = "What the model gives is in a form that headscope does not know"

Rows = Float[torch.Tensor, "place outcome"]


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """What one run gave at the places that are shown.

    Args:
        form: what the rows are.
        at: the query token of each row; -1 for the whole.
        rows: logits, or states, in single precision.
        stack: whose tokens the places are; empty for the whole.
        labels: what stands at each place.
    """

    form: str
    at: tuple[int, ...] = ()
    rows: Rows = field(default_factory=lambda: torch.zeros(0, 0))
    stack: str = ""
    labels: tuple[str, ...] = ()


TOKENS, CLASSES, LABELS = "tokens", "classes", "labels"
NUMBER, STATES, NOTHING = "number", "states", "nothing"


class TokenNames:
    """What tokens are called, each worked out once.

    Args:
        tokenizer: None where there is none, and tokens are called by their numbers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[int, tuple[str, bool]] = {}

    def of(self, ids: Iterable[int]) -> list[tuple[str, bool]]:
        """Label of each token, and whether it goes on with the word before it."""
        listed = list(ids)
        new = sorted({number for number in listed if number not in self._known})
        if new and self._tokenizer is None:
            self._known |= {number: (str(number), False) for number in new}
        elif new:
            specials = SpecialTokens.of(self._tokenizer)
            for number, token in zip(new, specials.tokens(self._tokenizer, new), strict=True):
                # The model may have more words than its tokenizer, which have no name.
                named = token.label or f"[{number}]"
                self._known[number] = (named, not token.special and self._continues(number))
        return [self._known[number] for number in listed]

    def _continues(self, number: int) -> bool:
        """Whether no space comes between a token and the same token once more."""
        once, twice = (self._tokenizer.decode([number] * count).strip(" ") for count in (1, 2))
        return bool(once) and twice == once + once


@dataclass(frozen=True)
class Reader:
    """Says in words what a model gave.

    Args:
        model: that gave it.
        tokenizer: names its tokens; None where it has none.
        kind: what it says.
        untrained: why its guesses are hidden; empty where they are shown.
    """

    model: Any
    tokenizer: Any
    kind: AnswerKind
    untrained: str = ""

    @cached_property
    def names(self) -> TokenNames:
        """What tokens are called."""
        return TokenNames(self.tokenizer)

    def answer(self, record: Record, output: Any, ids: Any) -> ModelAnswer:
        """The rows of an output that are shown.

        Args:
            record: of the same run.
            output: as the model gave it.
            ids: ``[1 token]`` of what it read; None where it read no text.
        """
        logits = logits_in(self.model, output)
        if _is_of_one(logits, 2):
            form = form_of(self.model, output, logits) or LABELS
            return ModelAnswer(form, (-1,), logits.detach().float().clone())
        form, rows = STATES, getattr(output, "last_hidden_state", None)
        if isinstance(logits, torch.Tensor):
            form, rows = form_of(self.model, output, logits) or LABELS, logits
        if not _is_of_one(rows, 3):
            return ModelAnswer(NOTHING)
        stack, labels = labels_at(record, rows.shape[1])
        at = list(range(rows.shape[1]))[-MOST_PLACES:]
        if self.kind == "masked":
            at = self._masked(ids)
        chosen = rows[0, at].detach().float().clone()
        return ModelAnswer(form, tuple(at), chosen, stack, tuple(map(labels.__getitem__, at)))

    def _masked(self, ids: Any) -> list[int]:
        """The places of hidden words."""
        mask = getattr(self.tokenizer, "mask_token_id", None)
        if ids is None or mask is None:
            return []
        hidden = [index for index, number in enumerate(ids[0].tolist()) if number == mask]
        return hidden[:MOST_PLACES]

    def output(self, before: ModelAnswer, after: ModelAnswer | None) -> LiveOutput:
        """What the model says, with a change before and after it."""
        moved = None if after is None else _moved(before, after)
        first, second = (self._guesses(answer) for answer in (before, after))
        positions: list[LivePlace] = []
        for row, at in enumerate(before.at):
            token = before.labels[row] if before.labels else ""
            position: LivePlace = {"at": at, "token": token, "before": first[row] if first else []}
            if second:
                position["after"] = second[row]
            if moved is not None:
                position["kl"] = round(float(moved[row]), 6)
            positions.append(position)
        if before.form == STATES and after is None:
            positions = []
        note = self._note(before, after)
        return {"kind": self.kind, "stack": before.stack, "places": positions, "note": note}

    def change(self, before: ModelAnswer, after: ModelAnswer) -> OutputChange | None:
        """How far a change moved the output, as `headscope.effect` measures it; None where that
        is unknown.
        """
        moved = _moved(before, after)
        if moved is None or not len(moved):
            return None
        form = before.form if before.form in (TOKENS, CLASSES, NUMBER) else STATES
        return OutputChange(
            kind=form, labels=before.labels or ("the whole",), values=moved.double().cpu().numpy()
        )

    def guesses(self, odds: Rows, *, form: str = TOKENS) -> list[list[LiveGuess]]:
        """The most probable outcomes of each row, best first."""
        best = odds.topk(min(SHOWN, odds.shape[1]))
        return [
            self.named(ids, shares, form=form)
            for ids, shares in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def named(
        self, ids: Sequence[int], shares: Sequence[float], *, form: str = TOKENS
    ) -> list[LiveGuess]:
        """Outcomes with their names and probabilities."""
        names = [(class_name(self.model, number), False) for number in ids]
        if form == TOKENS:
            names = self.names.of(ids)
        return [
            {"id": number, "label": label, "continues": continues, "probability": round(share, 6)}
            for number, (label, continues), share in zip(ids, names, shares, strict=True)
        ]

    def _guesses(self, answer: ModelAnswer | None) -> list[list[LiveGuess]]:
        if answer is None or self.untrained or answer.form in (STATES, NUMBER, NOTHING):
            return []
        odds = answer.rows.sigmoid() if answer.form == LABELS else answer.rows.softmax(-1)
        return self.guesses(odds, form=answer.form)

    def _note(self, before: ModelAnswer, after: ModelAnswer | None) -> str:
        if self.untrained:
            return self.untrained
        if before.form == NUMBER and before.at != (-1,):
            return NUMBERS
        if before.form == NUMBER:
            numbers = [f"{float(each.rows[0, 0]):.4g}" for each in (before, after) if each]
            return f"The model gives one number: {' → '.join(numbers)}"
        if self.kind == "masked" and not before.at:
            return NO_MASK.format(mask=getattr(self.tokenizer, "mask_token", None) or "a mask")
        notes = {STATES: NO_HEAD, NOTHING: CANNOT_SAY, LABELS: SEVERAL}
        return notes.get(before.form, "")


def _is_of_one(output: Any, axes: int) -> TypeGuard[torch.Tensor]:
    """Whether an output is a tensor of so many axes, of one input."""
    return isinstance(output, torch.Tensor) and output.ndim == axes and len(output) == 1


def _moved(before: ModelAnswer, after: ModelAnswer) -> torch.Tensor | None:
    """How far each place moved; None where that is unknown."""
    if before.form in (LABELS, NOTHING):
        return None
    return distances(before.form, before.rows.double(), after.rows.double())
