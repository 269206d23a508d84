"""Parts around every view: a title above it, scale and notes below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float

from headscope.views.figures._combined import WORDS_NOTE
from headscope.views.figures._labels import readable
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._palette import parse_hex
from headscope.views.figures._panel import Panel
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._sinks import find_sinks
from headscope.views.figures._style import POINT
from headscope.views.figures._words import percent

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
OF_ALL_LAYERS = ("overview", "model", "pair")
"""Views that show more than the chosen layer."""
BAR = 2.0
"""Height of the bar that explains colours, in millimetres."""


def heading(sheet: Sheet, plan: FigurePlan, title: str) -> float:
    """Title on the left, the model on the right or below it; give the y where the view begins."""
    style = sheet.style
    wanted = title if plan.title is None else " ".join(plan.title.split())
    if not wanted:
        return 0.35 * style.em
    if plan.panel is not None:
        return _panel_heading(sheet, plan.panel, wanted)
    y = sheet.titles(0.0, [(0.0, wanted)], sheet.width, bold=True)
    model = plan.record.model.name.rstrip("/").rpartition("/")[2]
    if model:
        model = sheet.shown(model, None)
        last = sheet.lines(sheet.shown(wanted, None).split(" · "), sheet.width, bold=True)[-1]
        room = sheet.width - sheet.width_of(last, bold=True) - style.em
        if sheet.width_of(model, style.small) <= room:
            sheet.note(sheet.width, y - 0.75 * style.em, model, anchor="right")
        else:
            y = sheet.paragraph(y, [model])
    return y + 0.5 * style.em


def _panel_heading(sheet: Sheet, panel: Panel, wanted: str) -> float:
    """The letter of a picture of a row, the kind of its head and its title; give the next y."""
    em = sheet.style.em
    left = panel_left(sheet, panel.letter)
    sheet.text(0, 0.6 * em, panel.letter, bold=True)
    y = 0.0
    if panel.kind:
        colour = sheet.style.kind(panel.kind)
        words = [(left, CLAUSES[panel.kind])]
        y = sheet.titles(y, words, sheet.width - left, bold=True, colour=colour)
    y = sheet.titles(y, [(left, wanted)], sheet.width - left)
    # The pictures of a row begin at one height, that of the longest title.
    return max(y, panel.titles) + 0.3 * em


def panel_left(sheet: Sheet, letter: str) -> float:
    """Where the title of a picture of a row begins, behind its letter."""
    return sheet.width_of(letter, bold=True) + 0.7 * sheet.style.em


def where(plan: FigurePlan) -> str:
    """``"Layer 2 · head 0"``, ``"Cross · layer 2 · 12 heads"``; in view neuron the query too."""
    stack = "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "
    text = f"{stack}{layers_in_words(plan)} · {heads_in_words(plan)}"
    if plan.view == "neuron":
        text += f" · query “{readable(plan.stack.query.labels[plan.query or 0])}”"
    return text[0].upper() + text[1:]


def heads_in_words(plan: FigurePlan, *, mean: bool = False) -> str:
    """``"head 0"``, ``"heads 0, 3"`` or ``"12 heads"``; with ``mean``, ``"mean of 12 heads"``."""
    if plan.shown.whole and not plan.shown.combined.heads:
        return "all heads together"
    if len(plan.heads) == 1:
        return f"head {plan.heads[0]}"
    few = len(plan.heads) < plan.layer.heads and len(plan.heads) <= 6
    words = f"heads {', '.join(map(str, plan.heads))}" if few else f"{len(plan.heads)} heads"
    return f"mean of {words}" if mean or plan.shown.whole else words


def of_heads(plan: FigurePlan) -> str:
    """The heads behind the word "of"."""
    words = heads_in_words(plan)
    return f"the {words}" if words.startswith("mean") else words


def layers_in_words(plan: FigurePlan) -> str:
    """``"layer 2"``, or ``"mean of layers 2, 3, 4"``."""
    numbers = [str(layer.layer) for layer in plan.shown.combined.layers[plan.layer.layer]]
    return f"mean of layers {', '.join(numbers)}" if len(numbers) > 1 else f"layer {numbers[0]}"


def quoted(sheet: Sheet, plan: FigurePlan, side: str) -> str:
    """The chosen query or key in quotation marks."""
    position = getattr(plan, side)
    return f"“{sheet.shown(getattr(plan.stack, side).labels[position])}”"


def closing(sheet: Sheet, plan: FigurePlan, y: float, notes: Iterable[str]) -> None:
    """Write what the figure shows and hides, and end the sheet below it."""
    notes = [
        note
        for note in (
            plan.shown.explanation,
            *notes,
            WORDS_NOTE if plan.shown.combined.words else "",
            *plan.hiding,
            most_note(sheet, plan),
            sinks_note(sheet, plan),
            missing_note(sheet),
        )
        if note
    ]
    if plan.panel is not None:
        plan.panel.notes.extend(notes)
        notes = []
    sheet.finish(sheet.paragraph(y, notes) + 0.3 * sheet.style.em)


def missing_note(sheet: Sheet) -> str:
    """A note about squares that replace characters without a glyph."""
    if not sheet.missing:
        return ""
    return "□ stands for a character that no font here can write"


def most_note(sheet: Sheet, plan: FigurePlan) -> str:
    """A note about keys that take most of the attention, where they are drawn."""
    if plan.view not in ("head", "matrix", "text") or not plan.shown.weights or plan.without:
        return ""
    sinks = {key: part for key, part in find_sinks(plan.layer, plan.heads).items() if plan.to[key]}
    names = ", ".join(
        f"“{sheet.shown(plan.stack.key.labels[key])}” {percent(part)}"
        for key, part in sinks.items()
    )
    return f"keys that take most of the attention: {names}" if sinks else ""


def not_kept_of(plan: FigurePlan) -> Float[np.ndarray, " query"]:
    """The share of each query's weight that was cut before headscope saw it, mean over heads."""
    kept = np.mean(
        [plan.layer.weights_of(head).sum(axis=-1, dtype=np.float64) for head in plan.heads], axis=0
    )
    return np.where(plan.layer.dead, 0.0, np.clip(1 - kept, 0.0, 1.0))


def sinks_note(sheet: Sheet, plan: FigurePlan) -> str:
    """A note about rows that do not sum to 1."""
    if not plan.shown.weights or plan.view == "scatter":
        return ""
    layers = plan.layers if plan.view in OF_ALL_LAYERS else (plan.layer,)
    cut = [layer.not_kept for layer in layers if layer.partial]
    if cut:
        share, of = _cut_of(sheet, plan, cut)
        return f"not kept: {percent(share)} of {of}, cut before it came here"
    if any(layer.has("sinks") for layer in layers):
        return "rows sum to less than 1: the rest goes to a learned sink that is not a token"
    return ""


def _cut_of(sheet: Sheet, plan: FigurePlan, cut: Sequence[float]) -> tuple[float, str]:
    """The share of attention that was cut before headscope saw it, and of what, in words."""
    if plan.view in OF_ALL_LAYERS:
        return sum(cut) / len(cut), "the attention"
    shares = not_kept_of(plan)
    if plan.query is not None:
        return float(shares[plan.query]), f"what {quoted(sheet, plan, 'query')} looks at"
    rows = shares[plan.from_ & ~plan.layer.dead]
    return float(rows.mean()) if rows.size else 0.0, f"the attention of {of_heads(plan)}"


def colour_bar(
    sheet: Sheet,
    scale: Scale,
    words: str,
    *,
    y: float,
    span: tuple[float, float] | None = None,
    masked: bool = False,
) -> float:
    """The bar of a scale, words on its left and numbers below, within a span of the width; give the
    next y.
    """
    left, right = span or (0.0, sheet.width)
    style = sheet.style
    size = style.small
    text = LEADING * size * POINT
    sheet.note(left, y + BAR / 2, words)
    start = left + sheet.width_of(words, size) + style.em
    legend = sheet.width_of("masked", size) + 2.2 * style.em + BAR if masked else 0.0
    width = max(12.0, min(45.0, right - start - 0.6 * style.em - legend))
    sheet.cells(scale.bar(round(2 * width / BAR)), at=(start, y), size=(width, BAR))
    sheet.rect(start, y, width, BAR, edge=style.edge, line=0.35, layer=3)
    for at, number in scale.ticks():
        x = start + at * width
        sheet.line((x, x), (y + BAR, y + BAR + 0.6), colour=style.muted, line=0.4)
        sheet.note(x, y + BAR + 0.6 + text / 2, number, anchor="center")
    if masked:
        x = start + width + 1.6 * style.em
        swatch = parse_hex(style.masked)[None, None]
        sheet.cells(swatch, at=(x, y), size=(BAR, BAR), hidden=np.ones((1, 1), bool))
        sheet.rect(x, y, BAR, BAR, edge=style.edge, line=0.35)
        sheet.note(x + BAR + 0.4 * style.em, y + BAR / 2, "masked")
    return y + BAR + 0.6 + text + 0.35 * style.em


def spaced(count: int, pitch: float, size: float) -> int:
    """1 where all tokens at this distance can have their name, n where only every nth can."""
    # Less a little: a name that fits exactly must not be left out by a rounding error.
    return max(1, int(np.ceil(size * POINT / pitch - 1e-9))) if count else 1


def token_size(pitch: float, wanted: float, least: float = 4.0) -> float:
    """Size in points of the names of tokens at this distance, which is in millimetres."""
    return float(np.clip(pitch / POINT / 1.08, least, wanted))


Drawing = Callable[[FigurePlan], Sheet]
