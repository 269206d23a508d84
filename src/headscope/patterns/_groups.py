"""Heads by their labels: the number of neurons that carry each kind, and how fixed they are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from headscope.errors import RecordError
from headscope.results import Kept, Result, TextTable


@dataclass(frozen=True, kw_only=True)
class Group:
    """Heads of one label: the number of neurons that carry them, and how fixed these are.

    Args:
        label: the label that all of them hold.
        heads: number of heads.
        neurons: number of neurons that carry the score of a query, mean over heads and texts.
        neurons_low: lower end of its interval over texts, or over their documents.
        neurons_high: upper end.
        fixed: mean Jaccard index of the sets of two positions above chance, where 0 is chance and 1
            the same set: ``(J - J_chance) / (1 - J_chance)``.
        fixed_low: lower end.
        fixed_high: upper end.
    """

    label: str
    heads: int
    neurons: float
    neurons_low: float
    neurons_high: float
    fixed: float
    fixed_low: float
    fixed_high: float


@dataclass(frozen=True, eq=False)
class Groups(Result):
    """Heads by their labels; prints itself as a table.

    Args:
        all: the groups.
        confidence: confidence level of the intervals.
    """

    KIND: ClassVar[str] = "mechanism groups"

    all: tuple[Group, ...]
    confidence: float = 0.95

    def __getitem__(self, label: str) -> Group:
        for group in self.all:
            if group.label == label:
                return group
        raise RecordError(
            f"No head holds {label!r}; labels held are "
            f"{', '.join(group.label for group in self.all)}"
        )

    def columns(self) -> dict[str, list[Any]]:
        """One row for each label."""
        return {
            field.name: [getattr(group, field.name) for group in self.all]
            for field in fields(Group)
        }

    def _kept(self) -> Kept:
        from headscope.patterns._mechanism_file import kept_of_groups

        return kept_of_groups(self)

    @property
    def summary(self) -> str:
        """The number of neurons that carry the heads of each label."""
        groups = [
            f"{group.label} ({group.heads} heads): {group.neurons:.1f} neurons"
            for group in self.all
        ]
        return (
            "Neurons that carry a query's score, by label: "
            f"{', '.join(groups) or 'no head holds a label'}"
        )

    def _blocks(self) -> list[TextTable | str]:
        rows = [
            (
                group.label,
                str(group.heads),
                f"{group.neurons:.1f} [{group.neurons_low:.1f}, {group.neurons_high:.1f}]",
                f"{group.fixed:.2f} [{group.fixed_low:.2f}, {group.fixed_high:.2f}]",
            )
            for group in self.all
        ]
        says = {
            "heads": "how many hold the label",
            "neurons": "the fewest that carry the score of a query, mean",
            "fixed": (
                "Jaccard above chance, 1 the same neurons at all positions "
                f"[{self.confidence:.0%} over texts]"
            ),
        }
        return [TextTable.of_rows([("label", "heads", "neurons", "fixed"), *rows], says=says)]
