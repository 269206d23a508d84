"""Parts around every view: a title above it, scale and notes below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from headscope.record import Generation, Tokens
from headscope.views.figures._numbers import WORDS_NOTE, find_sinks
from headscope.views.figures._options import FigurePlan, Panel
from headscope.views.figures._sheet import LEADING, Sheet
from headscope.views.figures._style import POINT, Scale, ordinal, parse_hex, percent
from headscope.views.figures.fonts import readable

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


def named_every(every: int) -> str:
    """A note about tokens without a name."""
    return f"every {ordinal(every)} token is named" if every > 1 else ""


def token_name(sheet: Sheet, tokens: Tokens, position: int) -> str:
    """A token as it is written, with a dash where it continues a word."""
    return ("–" if tokens.continues[position] else "") + sheet.shown(tokens.labels[position])


def token_size(pitch: float, wanted: float, least: float = 4.0) -> float:
    """Size in points of the names of tokens at this distance, which is in millimetres."""
    return float(np.clip(pitch / POINT / 1.08, least, wanted))


Drawing = Callable[[FigurePlan], Sheet]


TALLEST_BAR = 7.0
"""Height in millimetres of a probability of 1, and of the largest entropy."""
WIDEST = 3.4
"""Distance of two tokens at most, in units of the font size."""
NAMES_ROOM = 11.0
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
        bottom = top + TALLEST_BAR
        sheet.note(left - 0.5 * style.em, bottom - TALLEST_BAR / 2, name, anchor="right")
        sheet.line(
            (left, left + len(values) * pitch), (bottom, bottom), colour=style.faint, line=0.4
        )
        for x, value in zip(middles, values, strict=True):
            height = TALLEST_BAR * float(np.clip(value / largest, 0, 1))
            sheet.rect(x - 0.36 * pitch, bottom - height, 0.72 * pitch, height, fill=colour)
        top = bottom + 0.5 * style.em
    _upright_names(sheet, generation, middles, top)
    return top + NAMES_ROOM + 0.6 * style.em


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


def _upright_names(sheet: Sheet, generation: Generation, middles: np.ndarray, top: float) -> None:
    """Write the generated tokens upright below their bars; only some where they are close."""
    style = sheet.style
    pitch = float(np.diff(middles).min(initial=WIDEST * style.em))
    size = token_size(pitch, style.size)
    every = spaced(len(generation), pitch, size)
    for at in range(0, len(generation), every):
        name = sheet.fitted(sheet.shown(generation.tokens.labels[at]), NAMES_ROOM, size)
        width = sheet.width_of(name, size)
        sheet.text(float(middles[at]), top + width, name, size=size, upright=True)
