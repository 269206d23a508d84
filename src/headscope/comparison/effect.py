"""What a change of a model moves: its output, and where its other heads look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float

from headscope.comparison._compare import DOCUMENT as COMPARISON
from headscope.comparison._compare import Comparison
from headscope.comparison.stack import StackComparison
from headscope.evidence.groups import parse_groups
from headscope.record import Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import array_of

OutputKind = Literal["tokens", "classes", "states", "number"]
Guesses = tuple[tuple[str, float], ...]
SAYS = {
    "tokens": ("KL(intact || changed) of the predicted tokens", "nats"),
    "classes": ("KL(intact || changed) of the classes", "nats"),
    "states": (
        "cosine distance of the output states (the model has no language-modelling head)",
        "",
    ),
    "number": ("absolute difference of the one number that the model gives", ""),
}
SHOWN = 3
LEGEND = {
    "at": "where: causal language models predict the next token there, others what stands there",
    "KL": "how far its predictions moved, in nats",
    "intact": "the most probable predictions",
    "changed": "the same under the change",
}
"""The legend of the table."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputChange:
    """How far the output of a model moved on one text.

    Args:
        kind: ``"tokens"`` or ``"classes"``, distributions; ``"states"``, vectors; ``"number"``.
        labels: what stands at each position; a single one for a whole text.
        values: at each position ``KL(intact || changed) = sum_y p ln(p / p')`` in nats, of states
            the cosine distance ``1 - cos``, of numbers the absolute difference.
        before: at each position the most probable tokens or classes of the intact model; none where
            it does not predict.
        after: the same of the changed model.
    """

    kind: OutputKind
    labels: tuple[str, ...]
    values: Float[np.ndarray, " position"]
    before: tuple[Guesses, ...] = ()
    after: tuple[Guesses, ...] = ()

    @property
    def mean(self) -> float:
        """Mean over the positions."""
        return float(self.values.mean())

    @property
    def says(self) -> str:
        """What the values are."""
        return SAYS[self.kind][0]

    def columns(self) -> dict[str, list[Any]]:
        """Every position as a table, one list for each column: what stands there, how far its
        output moved, and the most probable predictions with their probabilities before and after.
        """
        table: dict[str, list[Any]] = {
            "position": list(range(len(self.values))),
            "at": list(self.labels),
            "change": self.values.tolist(),
        }
        for name, guesses in (("intact", self.before), ("changed", self.after)):
            if guesses:
                table[f"{name}_guesses"] = [[word for word, _ in each] for each in guesses]
                table[f"{name}_probabilities"] = [[share for _, share in each] for each in guesses]
        return table

    def description(self) -> str:
        """How far the output moved, in words."""
        unit = SAYS[self.kind][1]
        most = int(self.values.argmax())
        value = f"{self.mean:.4g} {unit}".strip()
        if len(self.values) == 1:
            return f"Output: {self.says} {value}"
        return (
            f"Output: {self.says}, mean {value} over {len(self.values)} positions, "
            f"maximum {self.values[most]:.4g} at {self.labels[most]!r}"
        )

    def guesses(self) -> list[TextTable]:
        """The positions that moved most with their predictions; none where the model predicts
        nothing.
        """
        if not self.before:
            return []
        # Stable, so that of positions that moved alike the first ones are shown.
        order = [int(position) for position in np.argsort(-self.values, kind="stable")][:SHOWN]
        rows = [("at", "KL", "intact", "changed")]
        for position in order:
            words = (_guess_text(guesses[position]) for guesses in (self.before, self.after))
            rows.append((self.labels[position], f"{self.values[position]:.4g}", *words))
        return [TextTable.of_rows(rows, says=LEGEND, wraps=("intact", "changed"))]


GUESSES: Any = [[[str, float]]]
DOCUMENT: dict[str, Any] = {
    **COMPARISON,
    "done": [str],
    "outputs": [{"kind": str, "labels": [str], "before": GUESSES, "after": GUESSES}],
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Effect(Result):
    """What a change of a model moved: what `headscope.effect` found. Prints itself as a table.

    Args:
        comparison: of the intact model (A) with the changed one (B).
        outputs: one for each text.
        done: what was done to the model, in words.
    """

    KIND: ClassVar[str] = "effect"
    DOCUMENT: ClassVar[dict[str, Any]] = DOCUMENT

    comparison: Comparison
    outputs: tuple[OutputChange, ...]
    done: tuple[str, ...]

    @property
    def intact(self) -> Record:
        """The model as it is, on the first text."""
        return self.comparison.a

    @property
    def changed(self) -> Record:
        """The model under the interventions, on the first text."""
        return self.comparison.b

    @property
    def output(self) -> OutputChange:
        """How far the output moved on the first text."""
        return self.outputs[0]

    @property
    def stack(self) -> StackComparison:
        """How far the heads of the first stack moved."""
        return next(iter(self.comparison.stacks.values()))

    @property
    def moved(self) -> Float[np.ndarray, "layer head"]:
        """How far each head of the first stack moved: Jensen-Shannon distance in nats, mean over
        rows and texts.
        """
        return self.stack.map()

    def columns(self) -> dict[str, list[Any]]:
        """Every head as a table, one list for each column; see `Comparison.columns`.

        Of the output, the same in every row: ``output`` its mean change on the first text, over
        positions; ``output_most`` at the position that moved most; ``output_mean`` over all texts,
        ``output_least_text`` and ``output_most_text`` of one text. What it predicted at each
        position is the table of `OutputChange.columns`.
        """
        table = self.comparison.columns()
        # A head is compared with itself here, so that columns of the other one would repeat it.
        columns = {name: table[name] for name in table if not name.startswith("other_")}
        columns["changed"] = [
            (layer, head) in self.comparison[stack].changed
            for stack, layer, head in zip(
                table["stack"], table["layer"], table["head"], strict=True
            )
        ]
        means = [output.mean for output in self.outputs]
        moved = {
            "output": self.output.mean,
            "output_most": float(self.output.values.max()),
            "output_mean": float(np.mean(means)),
            "output_least_text": min(means),
            "output_most_text": max(means),
        }
        rows = len(columns["layer"])
        return columns | {name: [number] * rows for name, number in moved.items()}

    def __repr__(self) -> str:
        return f"<Effect of {'; '.join(self.done)}: output {self.output.mean:.3g}>"

    @property
    def summary(self) -> str:
        """What was done, and how far the output moved."""
        texts = f", {len(self.outputs)} texts" if len(self.outputs) > 1 else ""
        groups = next(iter(self.comparison.stacks.values())).groups
        known = parse_groups(groups, len(self.outputs))
        if known is not None and len(set(known)) < len(known):
            texts += f", {len(set(known))} independent"
        lines = [f"{self.intact.summary}{texts}", *(f"Changed: {done}" for done in self.done)]
        return "\n".join([*lines, self.output.description(), *self.comparison.counts()])

    @property
    def model(self) -> str:
        """Name of the model; empty where nobody knows."""
        return self.intact.model.name

    def _kept(self) -> Kept:
        """The comparison, as it is kept by itself, and the output of every text."""
        document, arrays = self.comparison._kept()
        document |= {"done": list(self.done), "outputs": []}
        for number, output in enumerate(self.outputs):
            said = {name: getattr(output, name) for name in ("kind", "labels", "before", "after")}
            document["outputs"].append(said | {"labels": list(output.labels)})
            arrays[f"outputs.{number}"] = output.values
        return document, arrays

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Effect:
        outputs = []
        for number, said in enumerate(document["outputs"]):
            if said["kind"] not in SAYS:
                raise ValueError(f"an output is of the kind {said['kind']!r}")
            labels = tuple(said["labels"])
            values = array_of(arrays, f"outputs.{number}", "f", (len(labels),))
            for when in ("before", "after"):
                said[when] = tuple(tuple(map(tuple, position)) for position in said[when])
            outputs.append(OutputChange(**(said | {"labels": labels, "values": values})))
        if not outputs:
            raise ValueError("it has no outputs")
        comparison = Comparison._of_kept(document, arrays)
        return Effect(comparison=comparison, outputs=tuple(outputs), done=tuple(document["done"]))

    def _blocks(self) -> list[TextTable | str]:
        blocks: list[TextTable | str] = list(self.output.guesses())
        if len(self.outputs) > 1:
            means = [output.mean for output in self.outputs]
            blocks.append(
                f"Over all texts: mean {np.mean(means):.4g}, from {min(means):.4g} to "
                f"{max(means):.4g}"
            )
        return [*blocks, *self.comparison._blocks()]


def _guess_text(guesses: Guesses) -> str:
    return " ".join(f"{name!r} {probability:.0%}" for name, probability in guesses[:SHOWN])
