"""Parts around every view: a title above it, scale and notes below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from jaxtyping import Float

from headscope.record import Generation, Tokens
from headscope.views.figures._numbers import WORDS_NOTE, find_sinks
from headscope.views.figures._options import FigurePlan, Panel
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT, ordinal, percent
from headscope.views.figures.fonts import in_quotes, readable

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


def heading(sheet: Sheet, plan: FigurePlan, title: str) -> float:
    """Title on the left, the model on the right or below it; give the y where the view begins."""
    style = sheet.style
    wanted = title if plan.title is None else " ".join(plan.title.split())
    if not wanted:
        return 0.35 * style.em
    if plan.panel is not None:
        return _panel_heading(sheet, plan, plan.panel, wanted)
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


def where(plan: FigurePlan) -> str:
    """``"Layer 2 · head 0"``, ``"Cross · layer 2 · 12 heads"``; in view neuron the query too."""
    text = f"{stack_words(plan)}{layers_in_words(plan)} · {heads_in_words(plan)}"
    if plan.view == "neuron":
        text += f" · query {in_quotes(readable(plan.stack.query.labels[plan.query or 0]))}"
    return text[0].upper() + text[1:]


def stack_words(plan: FigurePlan) -> str:
    """``"Cross · "``; empty for self-attention."""
    return "" if plan.stack.name == "self" else f"{plan.stack.name.capitalize()} · "


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
    return in_quotes(sheet.shown(getattr(plan.stack, side).labels[position]))


def closing(sheet: Sheet, plan: FigurePlan, y: float, notes: Iterable[str]) -> None:
    """Write what the figure shows and hides, and end the sheet below it."""
    missing = "□ stands for a character that no font here can write" if sheet.missing else ""
    words = WORDS_NOTE if plan.shown.combined.words else ""
    weights = _weights_notes(sheet, plan) if plan.shown.weights else []
    notes = [plan.shown.explanation, *notes, words, *plan.hiding, *weights, missing]
    notes = [note for note in notes if note]
    if plan.panel is not None:
        plan.panel.notes.extend(notes)
        notes = []
    sheet.finish(sheet.paragraph(y, notes) + 0.3 * sheet.style.em)


def _weights_notes(sheet: Sheet, plan: FigurePlan) -> Iterator[str]:
    """Notes about keys that take most of the attention, and about rows that do not sum to 1."""
    if plan.view == "scatter":
        return
    if plan.view in ("head", "matrix", "text") and not plan.without:
        sinks = find_sinks(plan.layer, plan.heads).items()
        names = [_share_of(sheet, plan, key, part) for key, part in sinks if plan.to[key]]
        if names:
            yield f"keys that take most of the attention: {', '.join(names)}"
    of_all = plan.view in OF_ALL_LAYERS
    layers = plan.layers if of_all else (plan.layer,)
    cut = [layer.not_kept for layer in layers if layer.partial]
    if cut:
        share, of = sum(cut) / len(cut), "the attention"
        if not of_all:
            share, of = _cut_of(sheet, plan)
        yield f"not kept: {percent(share)} of {of}, cut before it came here"
    elif any(layer.has("sinks") for layer in layers):
        yield "rows sum to less than 1: the rest goes to a learned sink that is not a token"


def _share_of(sheet: Sheet, plan: FigurePlan, key: int, part: float) -> str:
    return f"{in_quotes(sheet.shown(plan.stack.key.labels[key]))} {percent(part)}"


def _cut_of(sheet: Sheet, plan: FigurePlan) -> tuple[float, str]:
    """The share of attention that was cut before headscope saw it, and of what, in words."""
    shares = not_kept_of(plan)
    if plan.query is not None:
        return float(shares[plan.query]), f"what {quoted(sheet, plan, 'query')} looks at"
    rows = shares[plan.from_ & ~plan.layer.dead]
    return float(rows.mean()) if rows.size else 0.0, f"the attention of {of_heads(plan)}"


def not_kept_of(plan: FigurePlan) -> Float[np.ndarray, " query"]:
    """The share of each query's weight that was cut before headscope saw it, mean over heads."""
    sums = [plan.layer.weights_of(head).sum(axis=-1, dtype=np.float64) for head in plan.heads]
    return np.where(plan.layer.dead, 0.0, np.clip(1 - np.mean(sums, axis=0), 0.0, 1.0))


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


Drawing = Callable[[Sheet, FigurePlan], None]
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
    size = token_size(pitch, style.size)
    for at in range(0, count, spaced(count, pitch, size)):
        name = sheet.fitted(sheet.shown(generation.tokens.labels[at]), NAMES_ROOM, size)
        place = (float(middles[at]), y + sheet.width_of(name, size))
        sheet.text(*place, name, size=size, upright=True)
    return y + NAMES_ROOM + 0.6 * style.em


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
