"""View text: the running text, with attention as the colour behind each word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import Float

from headscope.errors import FigureError
from headscope.record import Tokens
from headscope.views.figures._frame import (
    closing,
    colour_bar,
    heading,
    heads_in_words,
    quoted,
    where,
)
from headscope.views.figures._generation import draw_generation, first_written, generation_notes
from headscope.views.figures._numbers import even_of, largest_of, lifts_of, mean_of, numbers_of
from headscope.views.figures._options import FigurePlan
from headscope.views.figures._palette import text_on
from headscope.views.figures._picture_heat import (
    LONGEST,
    LONGEST_OF_SEVERAL,
    PictureHeat,
    PlacedPicture,
    draw_pictured,
    framed,
)
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet

PITCH = 1.75
PADDING = 0.16
SPACE = 0.3
PATCH_GAP = 0.1
GAP = 0.5
"""In units of the font size."""
NEW_LINES = ("\n", "\u010a")
"""A line break in a token: itself, or the character that byte-level vocabularies write for it."""


@dataclass(frozen=True)
class PlacedToken:
    """A token in the running text: its text, and its position and width in millimetres."""

    token: int
    text: str
    x: float
    y: float
    width: float


def draw_text(plan: FigurePlan) -> Sheet:
    """Draw the running text; the colour behind a word is what it receives, what one query gives it,
    or what it gives to one key.
    """
    if plan.query is not None and plan.key is not None:
        raise FigureError(
            "View 'text' shows one query or one key, and both were given; view 'pair' shows both"
        )
    sheet = Sheet(plan.width, plan.style, plan.panel)
    style = plan.style
    side = "query" if plan.key is not None else "key"
    tokens: Tokens = getattr(plan.stack, side)
    heat = heat_of(plan)
    scale = heat_scale(plan, largest_of(heat), plan.layer.size[1])
    y = heading(sheet, plan, _title(sheet, plan))
    placed, pictures, y = _set(sheet, plan, tokens, y)
    veil = PictureHeat.of(scale, style)
    scale = veil if pictures else scale
    chosen = _chosen(plan)
    takes_part = plan.from_ if side == "query" else plan.to
    for picture in pictures:
        draw_pictured(sheet, picture, heat, veil, takes_part=takes_part)
        if chosen in picture.tokens:
            sheet.rect(*picture.cell(chosen), edge=style.ink, line=0.9, layer=3)
    for word in placed:
        rgb = scale.rgb(heat[word.token : word.token + 1])[0]
        draw_word(sheet, word, rgb, takes_part=bool(takes_part[word.token]))
        if word.token == chosen:
            _frame(sheet, word)
        if word.token == first_written(plan, tokens):
            ends = (word.y - 0.8 * style.em, word.y + 0.8 * style.em)
            sheet.line((word.x - 0.1 * style.em,) * 2, ends, colour=style.accent, line=1.2)
    y = colour_bar(
        sheet,
        scale,
        plan.shown.scale_label,
        y=y + 0.6 * style.em,
        masked=bool(np.isnan(heat[takes_part]).any()),
    )
    y = draw_generation(sheet, plan, y)
    closing(sheet, plan, y, [*_notes(plan, scale), *generation_notes(plan)])
    return sheet


def heat_scale(plan: FigurePlan, largest: float, keys: int) -> Scale:
    """Colours of the numbers of `heat_of`, up to the largest, among so many keys."""
    colour = plan.colours[plan.head] if plan.head is not None else None
    one = plan.query is not None or plan.key is not None
    # What many queries give is more even than what one gives, and needs no square root to be seen.
    power = 0.5 if one else 1.0
    return plan.shown.scale(plan.style, largest, keys, colour, power=power)


def _chosen(plan: FigurePlan) -> int | None:
    """The token that is framed: the chosen one, where queries and keys are the same tokens."""
    if plan.stack.query != plan.stack.key:
        return None
    return plan.query if plan.query is not None else plan.key


def _frame(sheet: Sheet, word: PlacedToken) -> None:
    em = sheet.style.em
    height = 1.36 * em
    box = (word.x, word.y - height / 2, word.width, height)
    sheet.rect(*box, edge=sheet.style.ink, line=0.9, round=0.2 * em)


def heat_of(plan: FigurePlan) -> Float[np.ndarray, " token"]:
    """One number for each token that is written, of weights a multiple of the even share; NaN where
    it is masked or takes no part.
    """
    heat = _of_tokens(plan, mean_of(numbers_of(plan.layer, plan.heads, plan.shown, plan.without)))
    if plan.shown.weights:
        return lifts_of(heat, _of_tokens(plan, even_of(plan.layer, plan.shown, plan.without)))
    return heat


def _of_tokens(plan: FigurePlan, values: Float[np.ndarray, "query key"]) -> np.ndarray:
    if plan.query is not None:
        return np.where(plan.to, values[plan.query], np.nan)
    if plan.key is not None:
        return np.where(plan.from_, values[:, plan.key], np.nan)
    if not plan.shown.signed:
        # A masked key receives nothing from that query; a masked score has no such value.
        values = np.nan_to_num(values)
    return np.where(plan.to, mean_of(values[plan.from_]), np.nan)


def _title(sheet: Sheet, plan: FigurePlan) -> str:
    if plan.query is not None:
        return f"Where {quoted(sheet, plan, 'query')} looks"
    if plan.key is not None:
        return f"What looks at {quoted(sheet, plan, 'key')}"
    return plan.shown.received


def _set(
    sheet: Sheet, plan: FigurePlan, tokens: Tokens, y: float
) -> tuple[list[PlacedToken], list[PlacedPicture], float]:
    """Place the tokens as running text, and patches over their picture, or in rows and columns
    where it is not known.
    """
    placed: list[PlacedToken] = []
    pictured: list[PlacedPicture] = []
    pictures = tokens.pictures or (None,) * len(tokens)
    for picture, words in groupby(tokens.whole_words.tokens, key=lambda word: pictures[word[0]]):
        if picture is not None and plan.record.pictures:
            shown = _framed(
                sheet,
                plan.record.pictures,
                tokens,
                [token for word in words for token in word],
                y=y,
            )
            pictured.append(shown)
            y += shown.size[1] + GAP * sheet.style.em
            continue
        put = set_text if picture is None else _picture
        lines, y = put(sheet, tokens, words, y)
        placed += lines
    return placed, pictured, y


def _framed(
    sheet: Sheet, pictures: tuple[np.ndarray, ...], tokens: Tokens, patches: list[int], *, y: float
) -> PlacedPicture:
    picture = (tokens.pictures or ())[patches[0]] or 0
    places = [place for token in patches if (place := (tokens.places or ())[token]) is not None]
    room = min(sheet.width, LONGEST if len(pictures) == 1 else LONGEST_OF_SEVERAL)
    return framed(pictures[picture], tokens.grids[picture], places, tokens=patches, room=room, y=y)


def _picture(
    sheet: Sheet, tokens: Tokens, words: Iterable[Sequence[int]], y: float
) -> tuple[list[PlacedToken], float]:
    """Place patches in rows and columns, with their names where there is room."""
    em, patches = sheet.style.em, [token for word in words for token in word]
    places = [place for token in patches if (place := (tokens.places or ())[token]) is not None]
    names = [sheet.shown(tokens.labels[token]) for token in patches]
    rows, columns = (max(numbers) + 1 for numbers in zip(*places, strict=True))
    widest = max(map(sheet.width_of, names)) + 2 * PADDING * em
    pitch = min(widest + PATCH_GAP * em, sheet.width / columns)
    width = pitch - PATCH_GAP * em
    placed = [
        PlacedToken(
            token,
            name if widest <= width else "",
            column * pitch,
            y + (row + 0.5) * PITCH * em,
            width,
        )
        for token, name, (row, column) in zip(patches, names, places, strict=True)
    ]
    return placed, y + rows * PITCH * em


def set_text(
    sheet: Sheet,
    tokens: Tokens,
    words: Iterable[Sequence[int]],
    y: float,
    *,
    room: float | None = None,
) -> tuple[list[PlacedToken], float]:
    """Place running text in this room, or over the whole width; pieces of a word stay together, and
    the second text of a pair begins a new line.
    """
    em = sheet.style.em
    room = sheet.width if room is None else room
    placed, x = [], 0.0
    line = y + 0.5 * PITCH * em
    for word in words:
        texts, widths = _pieces(sheet, tokens, word, room - em)
        gap = SPACE * em if _spaced(tokens, word[0]) else 0.04 * em
        full = x > 0 and x + gap + sum(widths) > room
        if full or (placed and _begins_text(tokens, word[0])):
            x, line = 0.0, line + PITCH * em
        elif x > 0:
            x += gap
        for token, text, width in zip(word, texts, widths, strict=True):
            if x > 0 and x + width > room:
                x, line = 0.0, line + PITCH * em
            placed.append(PlacedToken(token, text, x, line, width))
            x += width
        if any(mark in tokens.pieces[word[-1]] for mark in NEW_LINES):
            x, line = 0.0, line + PITCH * em
    return placed, max(word.y for word in placed) + 0.5 * PITCH * em


def _pieces(
    sheet: Sheet, tokens: Tokens, word: Sequence[int], room: float
) -> tuple[list[str], list[float]]:
    """The text of each piece of a word, cut to this room, and its width with its padding."""
    texts = [sheet.fitted(sheet.shown(tokens.labels[token]), room) for token in word]
    widths = [sheet.width_of(text) + 2 * PADDING * sheet.style.em for text in texts]
    return texts, widths


def _begins_text(tokens: Tokens, token: int) -> bool:
    """Whether a token is the first of the second text of a pair."""
    return token > 0 and tokens.segments[token] != tokens.segments[token - 1]


def _spaced(tokens: Tokens, token: int) -> bool:
    """Whether the text has a space before a token; True where that is unknown."""
    if tokens.offsets is None or token == 0:
        return True
    before, now = tokens.offsets[token - 1], tokens.offsets[token]
    if before is None or now is None or tokens.segments[token] != tokens.segments[token - 1]:
        return True
    text = tokens.texts[tokens.segments[token]]
    # Some tokenizers leave the space between two tokens, others make it part of the second one.
    return now[0] > before[1] or text[now[0] : now[0] + 1].isspace()


def draw_word(sheet: Sheet, word: PlacedToken, rgb: np.ndarray, *, takes_part: bool) -> None:
    """A token on its colour; faint where it takes no part."""
    style = sheet.style
    height = 1.36 * style.em
    if takes_part:
        fill = "#" + bytes(rgb).hex()
        sheet.rect(word.x, word.y - height / 2, word.width, height, fill=fill, round=0.2 * style.em)
    colour = text_on(rgb) if takes_part else style.faint
    sheet.text(word.x + PADDING * style.em, word.y, word.text, colour=colour)


def _where_of(plan: FigurePlan) -> str:
    if plan.query is not None:
        return f"query {plan.query}"
    return f"key {plan.key}" if plan.key is not None else ""


def _notes(plan: FigurePlan, scale: Scale) -> list[str]:
    over = (
        ""
        if plan.query is not None or plan.key is not None
        else f", mean over {int(plan.from_.sum())} queries"
    )
    where_it_is = where(plan).rpartition(" · ")[0]
    return [
        f"{where_it_is[0].lower()}{where_it_is[1:]}, {heads_in_words(plan, mean=True)}{over}",
        scale.words,
        "what is large hides more of the picture" if isinstance(scale, PictureHeat) else "",
        _where_of(plan),
    ]
