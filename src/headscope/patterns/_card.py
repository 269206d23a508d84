"""The card of one head: its labels, measures and best examples."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.patterns.label import Label

EXAMPLES = 3
WIDTH = 80


@dataclass(frozen=True, kw_only=True, repr=False)
class HeadCard:
    """One head: labels with their evidence, measures, classes, and the texts that show each label
    best.

    Args:
        layer: number of the layer, from 0.
        head: number of the head, from 0.
        labels: every pattern with its evidence, whether the label holds or not.
        measures: means over texts.
        classes: share of texts in each of Kovaleva's classes.
        scores: for each pattern the texts that can show it with their scores, the highest first.
    """

    layer: int
    head: int
    labels: tuple[Label, ...]
    measures: dict[str, float]
    classes: dict[str, float]
    scores: dict[str, list[tuple[str, float]]]

    def examples(self, pattern: str, count: int = EXAMPLES) -> list[tuple[str, float]]:
        """The texts on which the head follows a pattern most, with their scores."""
        return self.scores[pattern][:count]

    def __repr__(self) -> str:
        held = ", ".join(label.pattern for label in self.labels if label.holds)
        return f"<HeadCard {self.layer}-{self.head}: {held or 'no label'}>"

    def __str__(self) -> str:
        lines = [f"Head {self.layer}-{self.head} (layer and head from 0)"]
        shown = [label for label in self.labels if label.holds or label.candidate]
        lines += [f"  {label}" for label in shown] or ["  no label"]
        for label in shown:
            for text, score in self.examples(label.pattern):
                lines.append(f"  {label.pattern} {score:.2f}: {text[:WIDTH]}")
        measures = [f"{name} {value:.2f}" for name, value in self.measures.items()]
        classes = [f"{name} {share:.0%}" for name, share in self.classes.items() if share]
        lines += [f"  {', '.join(measures)}", f"  {', '.join(classes)}"]
        return "\n".join(lines)
