"""Probabilities that a model gave the tokens it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass
class TokenProbabilities:
    """Looks at the logits of every step of one text, and at the token that was made of them.

    Args:
        top: how many of the most probable candidates to note.
        prompt: how many tokens there were before the first was written.
    """

    top: int
    prompt: int = 0
    probabilities: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    candidates: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    _logits: torch.Tensor | None = None

    def look(self, logits: torch.Tensor) -> None:
        """The logits ``[vocabulary]`` of the last token of a pass."""
        # A copy, since processors of logits may write to them before a token is chosen.
        self._logits = logits.detach().to(torch.float32, copy=True)

    def wrote(self, ids: torch.Tensor) -> None:
        """The text with its new token."""
        if self._logits is not None:
            self.prompt = self.prompt or len(ids) - 1
            self._note(self._logits, int(ids[-1]))

    def cut(self, count: int) -> None:
        """Forget tokens beyond these: the model may write one more before it sees that the text has
        ended.
        """
        for noted in (self.probabilities, self.entropies, self.ranks, self.candidates):
            del noted[count:]

    def _note(self, logits: torch.Tensor, chosen: int) -> None:
        probabilities = logits.softmax(-1)
        self.probabilities.append(probabilities[chosen].item())
        self.entropies.append(torch.special.entr(probabilities).sum().item())
        # Ties share the better rank: only what is strictly more probable stands before it.
        self.ranks.append(int((logits > logits[chosen]).sum().item()) + 1)
        best = probabilities.topk(min(self.top, len(probabilities)))
        self.candidates.append(tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
