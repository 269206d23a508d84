"""Marks of a generated text: a rule after its prompt, and the probability of each token."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headscope.record import Generation, Tokens
from headscope.views.figures._frame import spaced, token_size
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._sheet import Sheet

BAR = 7.0
"""Height in millimetres of a probability of 1, and of the largest entropy."""
WIDEST = 3.4
"""Distance of two tokens at most, in units of the font size."""
NAMES = 11.0
"""Room in millimetres for the names of generated tokens, which are written upright."""


def first_written(plan: FigurePlan, tokens: Tokens) -> int | None:
    """Position of the first generated token among queries or keys; None where all were given."""
    generation = plan.record.generation
    if generation is None:
        return None
    whole = plan.record[generation.stack].query
    if generation.prompt >= len(whole):
        return None
    if plan.shown.combined.words is None:
        return generation.prompt if tokens == whole else None
    words = whole.whole_words
    if tokens.labels != words.names:
        return None
    return next(at for at, run in enumerate(words.tokens) if generation.prompt in run)


def generation_of(plan: FigurePlan) -> Generation | None:
    """The generation of the query tokens that are drawn; None where they were not generated, and
    for a picture in a row.
    """
    if plan.panel is not None or first_written(plan, plan.stack.query) is None:
        return None
    return plan.record.generation


def draw_generation(sheet: Sheet, plan: FigurePlan, y: float) -> float:
    """Probability and entropy of each written token, below what is drawn; return the next y."""
    generation = generation_of(plan)
    if generation is None:
        return y
    style = sheet.style
    words = sheet.width_of("probability", style.small)
    left = words + 0.8 * style.em
    pitch = min(WIDEST * style.em, (sheet.width - left) / len(generation))
    middles = left + (np.arange(len(generation)) + 0.5) * pitch
    top = y + 0.6 * style.em
    rows = (
        ("probability", np.array(generation.probabilities), 1.0, style.accent),
        ("entropy", np.array(generation.entropies), max(generation.entropies) or 1.0, style.muted),
    )
    for name, values, largest, colour in rows:
        bottom = top + BAR
        sheet.note(left - 0.5 * style.em, bottom - BAR / 2, name, anchor="right")
        sheet.line(
            (left, left + len(values) * pitch), (bottom, bottom), colour=style.faint, line=0.4
        )
        for x, value in zip(middles, values, strict=True):
            height = BAR * float(np.clip(value / largest, 0, 1))
            sheet.rect(x - 0.36 * pitch, bottom - height, 0.72 * pitch, height, fill=colour)
        top = bottom + 0.5 * style.em
    _names(sheet, generation, middles, top)
    return top + NAMES + 0.6 * style.em


def generation_notes(plan: FigurePlan) -> Iterator[str]:
    """Notes that explain the rule and the bars."""
    generation = generation_of(plan)
    if generation is None:
        return
    likely = sum(rank == 1 for rank in generation.ranks)
    yield (
        f"below the rule the model wrote: {len(generation)} tokens, {likely} of them the most "
        "probable"
    )
    yield f"entropy up to {max(generation.entropies):.1f} nats"
    yield "the last token written was never read, and has no row"


def _names(sheet: Sheet, generation: Generation, middles: np.ndarray, top: float) -> None:
    """Write the generated tokens upright below their bars; only some where they are close."""
    style = sheet.style
    pitch = float(np.diff(middles).min(initial=WIDEST * style.em))
    size = token_size(pitch, style.size)
    every = spaced(len(generation), pitch, size)
    for at in range(0, len(generation), every):
        name = sheet.fitted(sheet.shown(generation.tokens.labels[at]), NAMES, size)
        width = sheet.width_of(name, size)
        sheet.text(float(middles[at]), top + width, name, size=size, upright=True)
