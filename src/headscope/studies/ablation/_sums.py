"""What disabling each head does to more examples than are kept: sums over these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.evidence import GroupSums


@dataclass(frozen=True, eq=False)
class AblationSums:
    """What examples say of a model without each head, none of which is kept.

    Args:
        changes: of the score, for each cell.
        intact: of the score of the model as it is, a single number.
    """

    changes: GroupSums
    intact: GroupSums

    @staticmethod
    def of(
        scores: Float[np.ndarray, "example cell"],
        intact: Float[np.ndarray, " example"],
        groups: Sequence[str | None] | None,
    ) -> AblationSums:
        """Of examples whose documents have no others."""
        documents = [None] * len(intact) if groups is None else groups
        given = [(group, 1) for group in documents]
        changes, own = GroupSums(scores.shape[1:]), GroupSums((1,))
        changes.update_many(scores - intact[:, None], given)
        own.update_many(intact[:, None], given)
        return AblationSums(changes.close(), own.close())

    def __add__(self, other: AblationSums) -> AblationSums:
        """The examples of both, which share no document."""
        return AblationSums(self.changes + other.changes, self.intact + other.intact)

    @property
    def examples(self) -> int:
        """How many."""
        return self.intact.texts

    @property
    def documents(self) -> int:
        """That they are of; an example without one counts as its own."""
        return self.intact.documents

    @property
    def has_groups(self) -> bool:
        """Whether an example is of a document."""
        return self.intact.has_groups

    def arrays(self, before: str) -> dict[str, np.ndarray]:
        """What a file holds; ``before`` begins the names."""
        kinds = {"changes": self.changes, "intact": self.intact}
        return {
            f"{before}{kind} {name}": array
            for kind, sums in kinds.items()
            for name, array in sums.arrays.items()
        }

    @staticmethod
    def of_arrays(arrays: Mapping[str, np.ndarray], before: str, cells: int) -> AblationSums:
        """What `arrays` gave of so many cells.

        Raises:
            KeyError: where an array is missing.
            ValueError: where arrays have other shapes.
        """
        kinds = []
        for kind, count in (("changes", cells), ("intact", 1)):
            start = f"{before}{kind} "
            own = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            sums = GroupSums.of_arrays(own)
            if sums.shape != (count,) or not sums.texts:
                raise ValueError(f"it has sums of {sums.texts} examples, of shape {sums.shape}")
            kinds.append(sums)
        return AblationSums(*kinds)
