"""Parts around every view: a title above it, scale and notes below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from headscope.record import Generation
from headscope.views.figures import charts
from headscope.views.figures._numbers import WORDS_NOTE, find_sinks
from headscope.views.figures._plan import OF_ALL_LAYERS, OF_ONE_LAYER, FigurePlan, Panel
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._style import POINT, Scale, ordinal, parse_hex, percent

COLOUR_BAR = 2.0
"""Height of the bar that explains colours, in millimetres."""
CLAUSES = {
    "next": "next token",
    "previous": "previous token",
    "same": "same word",
    "own": "own sentence",
    "near": "nearby",
    "broad": "spread broadly",
    "resting": "resting",
    "none": "none of these",
}
"""Words for each kind of heads."""


def heading(sheet: Sheet, plan: FigurePlan, title: str) -> float:
    """Title on the left, the model on the right or below it; give the y where the view begins."""
    style, em = sheet.style, sheet.style.em
    wanted = title if plan.title is None else " ".join(plan.title.split())
    if not wanted:
        return 0.35 * em
    if plan.panel is not None:
        return _panel_heading(sheet, plan, plan.panel, wanted)
    y = sheet.titles(0.0, [(0.0, wanted)], sheet.width, bold=True)
    model = plan.record.model.name.rstrip("/").rpartition("/")[2]
    if model:
        model = sheet.shown(model, None)
        last = sheet.lines(sheet.shown(wanted, None).split(" · "), sheet.width, bold=True)[-1]
        room = sheet.width - sheet.width_of(last, bold=True) - em
        if sheet.width_of(model, style.small) <= room:
            sheet.note(sheet.width, y - 0.75 * em, model, anchor="right")
        else:
            y = sheet.paragraph(y, [model])
    return y + 0.5 * em


def _panel_heading(sheet: Sheet, plan: FigurePlan, panel: Panel, wanted: str) -> float:
    """The letter of a picture of a row, the kind of its head and its title; give the next y."""
    em, left, y = sheet.style.em, panel_left(sheet, panel.letter), 0.0
    sheet.text(0, 0.6 * em, panel.letter, bold=True)
    if plan.kind:
        words, colour = [(left, CLAUSES[plan.kind])], plan.colour
        y = sheet.titles(y, words, sheet.width - left, bold=True, colour=colour)
    y = sheet.titles(y, [(left, wanted)], sheet.width - left)
    return max(y, panel.titles) + 0.3 * em


def panel_left(sheet: Sheet, letter: str) -> float:
    """Where the title of a picture of a row begins, behind its letter."""
    return sheet.width_of(letter, bold=True) + 0.7 * sheet.style.em


def closing(sheet: Sheet, plan: FigurePlan, y: float, notes: Iterable[str]) -> None:
    """Draw what the model wrote, write what the figure shows and hides, and end the sheet below."""
    notes = [plan.record.changed * (plan.view != "texts"), plan.shown.explanation, *notes]
    if (generation := plan.generation) is not None:
        y = _draw_generation(sheet, generation, y)
        likely = sum(rank == 1 for rank in generation.ranks)
        notes += [
            f"below the rule the model wrote: {len(generation)} tokens, {likely} of them the most "
            "probable",
            f"entropy up to {max(generation.entropies):.1f} nats",
            "the last token written was never read, and has no row",
        ]
    notes += [WORDS_NOTE] * (plan.shown.combined.words is not None) + list(plan.hiding)
    if plan.shown.weights and plan.view != "scatter":
        notes += _weights_notes(sheet, plan)
    if sheet.missing:
        notes.append("□ stands for a character that no font here can write")
    notes = [note for note in notes if note]
    if plan.panel is not None:
        plan.panel.notes.extend(notes)
        notes = []
    sheet.finish(sheet.paragraph(y, notes) + 0.3 * sheet.style.em)


def _weights_notes(sheet: Sheet, plan: FigurePlan) -> Iterator[str]:
    """Notes about keys that take most of the attention, and about rows that do not sum to 1."""
    if plan.view in OF_ONE_LAYER and not plan.without:
        names = []
        for key, part in find_sinks(plan.layer, plan.heads).items():
            if plan.to[key]:
                names.append(f"{sheet.quoted(plan.stack.key.labels[key])} {percent(part)}")
        if names:
            yield f"keys that take most of the attention: {', '.join(names)}"
    of_all = plan.view in OF_ALL_LAYERS
    layers = plan.layers if of_all else (plan.layer,)
    if cut := [layer.not_kept for layer in layers if layer.partial]:
        share, of = sum(cut) / len(cut), "the attention"
        if plan.query is not None and not of_all:
            share = float(plan.not_kept[plan.query])
            of = f"what {sheet.quoted(plan.label('query'))} looks at"
        elif not of_all:
            rows, of = plan.not_kept[plan.from_ & ~plan.layer.dead], f"{of} of {plan.of_heads}"
            share = float(rows.mean()) if rows.size else 0.0
        yield f"not kept: {percent(share)} of {of}, cut before it came here"
    elif any(layer.has("sinks") for layer in layers):
        yield "rows sum to less than 1: the rest goes to a learned sink that is not a token"


def colour_bar(  # noqa: PLR0913 - what a bar may show
    sheet: Sheet,
    scale: Scale,
    words: str,
    *,
    y: float,
    span: tuple[float, float] | None = None,
    masked: bool = False,
    ticks: Sequence[tuple[float, str]] | None = None,
    values: Float[np.ndarray, " column"] | None = None,
) -> float:
    """The bar of a scale, words on its left and numbers below; return the next y.

    Args:
        sheet: what is drawn on.
        scale: what is explained.
        words: on the left.
        y: the upper edge.
        span: the ends of its room, in millimetres; by default those of the sheet.
        masked: whether it explains masked cells too.
        ticks: parts of its width, and what is written there; by default the scale's.
        values: the numbers from its left to its right end; by default the whole scale.
    """
    (left, right), style = span or (0.0, sheet.width), sheet.style
    text, below = LEADING * style.small * POINT, y + COLOUR_BAR + 0.6
    sheet.note(left, y + COLOUR_BAR / 2, words)
    start = left + sheet.width_of(words, style.small) + style.em
    legend = (sheet.width_of("masked", style.small) + 2.2 * style.em + COLOUR_BAR) * masked
    width = max(12.0, min(45.0, right - start - 0.6 * style.em - legend))
    rgb = scale.bar(round(2 * width / COLOUR_BAR)) if values is None else scale.rgb(values[None])
    sheet.cells(rgb, at=(start, y), size=(width, COLOUR_BAR))
    ticks, numbers = ticks or scale.ticks(), {}
    # The largest number first, which then has its room.
    for part, number in [ticks[-1], *ticks[:-1]]:
        x = start + part * width
        sheet.line((x, x), (y + COLOUR_BAR, below), colour=style.muted, line=0.4)
        numbers[x] = number
    charts.write_below(sheet, numbers, below + text / 2)
    if masked:
        x = start + width + 1.6 * style.em
        swatch, hidden = parse_hex(style.masked)[None, None], np.ones((1, 1), bool)
        sheet.cells(swatch, at=(x, y), size=(COLOUR_BAR, COLOUR_BAR), hidden=hidden)
        sheet.note(x + COLOUR_BAR + 0.4 * style.em, y + COLOUR_BAR / 2, "masked")
    return below + text + 0.35 * style.em


def named_every(every: int) -> str:
    """A note about tokens without a name."""
    return f"every {ordinal(every)} token is named" if every > 1 else ""


TALLEST_BAR = 7.0
"""Height in millimetres of a probability of 1, and of the largest entropy."""
WIDEST = 3.4
"""Distance of two tokens at most, in units of the font size."""
NAMES_ROOM = 11.0
"""Room in millimetres for the names of generated tokens, which are written upright."""


def _draw_generation(sheet: Sheet, generation: Generation, y: float) -> float:
    """Probability and entropy of each written token, below what is drawn; return the next y."""
    style, count = sheet.style, len(generation)
    left = sheet.width_of("probability", style.small) + 0.8 * style.em
    pitch = min(WIDEST * style.em, (sheet.width - left) / count)
    middles, y = left + (np.arange(count) + 0.5) * pitch, y + 0.6 * style.em
    rows = (
        ("probability", generation.probabilities, 1.0, style.accent),
        ("entropy", generation.entropies, max(generation.entropies) or 1.0, style.muted),
    )
    for name, values, largest, colour in rows:
        y += TALLEST_BAR
        sheet.note(left - 0.5 * style.em, y - TALLEST_BAR / 2, name, anchor="right")
        sheet.line((left, left + count * pitch), (y, y), colour=style.faint, line=0.4)
        for x, value in zip(middles, values, strict=True):
            height = TALLEST_BAR * float(np.clip(value / largest, 0, 1))
            sheet.rect(x - 0.36 * pitch, y - height, 0.72 * pitch, height, fill=colour)
        y += 0.5 * style.em
    # The tokens stand upright below their bars; only some where they are close.
    size, every = sheet.naming(pitch, count)
    for at in range(0, count, every):
        name = sheet.fitted(sheet.shown(generation.tokens.labels[at]), NAMES_ROOM, size)
        place = (float(middles[at]), y + sheet.width_of(name, size))
        sheet.text(*place, name, size=size, upright=True)
    return y + NAMES_ROOM + 0.6 * style.em
