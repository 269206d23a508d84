"""What mattered to a classifier in one text, by every signal, and what counterfactual attention
changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from headscope.measures import kendall, spearman
from headscope.studies.explaining._erasure import Row

SIGNALS = ("attention", "contribution", "rollout", "alti", "gradient", "leave_one_out", "random")


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """One text: how much each token mattered by each signal, and the effect of changed attention.

    Args:
        pieces: the tokens that are ranked; special ones are left out.
        probabilities: ``[class]``, what the classifier says.
        signals: ``[token]`` by name: attention, contribution, rollout, alti, gradient,
            leave_one_out, random.
        missing: by name, why a signal cannot be had of this model.
        erased: ``[2 share]`` by signal: what the answer loses without the top `SHARES` of the
            tokens, and with these alone.
        permuted: ``[permutation]``, total variation distance of the output with shuffled attention.
        adversarial: Jensen-Shannon divergence, in nats, of the most different attention found that
            leaves the output where it was; None where none was found or looked for.
        largest: largest attention weight of the row.
    """

    pieces: tuple[str, ...]
    probabilities: Float[np.ndarray, " class"]
    signals: dict[str, Row]
    erased: dict[str, Float[np.ndarray, "2 share"]]
    permuted: Float[np.ndarray, " permutation"]
    adversarial: float | None
    largest: float
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def comprehensiveness(self) -> dict[str, float]:
        """By signal, see `erasure`."""
        return {name: float(both[0].mean()) for name, both in self.erased.items()}

    @property
    def sufficiency(self) -> dict[str, float]:
        """By signal, see `erasure`."""
        return {name: float(both[1].mean()) for name, both in self.erased.items()}

    def agreement(self, first: str, second: str) -> tuple[float, float]:
        """Kendall's tau-b and Spearman's rho of two signals; NaN where one of them is all ties."""
        ours, theirs = self.signals[first], self.signals[second]
        return kendall(ours, theirs), spearman(ours, theirs)
