"""Counterfactual attention: how it is made."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.errors import InterventionError


@dataclass(frozen=True)
class CounterfactualAttention:
    """Other attention than the model's own, to see whether the output follows it.

    Source: Jain and Wallace 2019, section 4.2: permutation and adversarial attention.

    Args:
        permutations: how many times the row is shuffled; 0 for not at all.
        adversary: how many steps the adversary takes, 500 in the paper; 0 for none.
        within: largest total variation distance from the own output that counts as none.
        seed: of the shuffling and of the adversary's starts.

    Raises:
        InterventionError: where a number is below 0.
    """

    permutations: int = 100
    adversary: int = 0
    within: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.permutations < 0 or self.adversary < 0:
            raise InterventionError(
                f"permutations and adversary are numbers from 0 on, not {self.permutations} and "
                f"{self.adversary}"
            )
