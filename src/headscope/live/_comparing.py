"""Two records of live models side by side: of two texts, or of two models."""

from __future__ import annotations

from headscope.comparison import Comparison, compare
from headscope.live._record_store import KeptRecord, KeptRecords, size_of
from headscope.views import view
from headscope.views.answers import PageAnswers

Partners = dict[str, list[tuple[int, int, int, int]]]


def compared(records: KeptRecords, a: KeptRecord, b: KeptRecord) -> tuple[KeptRecord, Partners]:
    """The second record with how it differs from the first, and which heads stand side by side.

    Tokens and heads are aligned as `headscope.compare` does.

    Args:
        records: where it is kept.
        a: the first.
        b: the second.

    Raises:
        RecordError: where they cannot be aligned.
    """
    comparison = compare([a.record], [b.record])
    kept = records.answer_to(f"{a.id} {b.id}")
    if kept is None:
        answers = PageAnswers(view(comparison))
        sizes = size_of([a.record, b.record, answers.shown.record])
        kept = KeptRecord(answers, None, [], {}, sizes)
        records.put(f"{a.id} {b.id}", kept)
    return kept, partners_of(comparison)


def partners_of(comparison: Comparison) -> Partners:
    """For each stack whose heads are not matched by number: which head is compared with which."""
    partners: Partners = {}
    for name, stack in comparison.stacks.items():
        rows = [(*own, *other) for own, other in zip(stack.cells, stack.partners, strict=True)]
        if stack.candidates > 1:
            partners[name] = rows
    return partners
