"""Figure of an answer about a picture: the picture under the heat of each word, and a strip of the
words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from headscope.errors import FigureError
from headscope.results import draws
from headscope.views.figures._figure import Figure
from headscope.views.figures._frame import colour_bar
from headscope.views.figures._picture_heat import PictureHeat, veiled
from headscope.views.figures._result import ResultOptions, draw_result
from headscope.views.figures._scale import Scale
from headscope.views.figures._sheet import Sheet
from headscope.views.figures._style import POINT

MOST_PANELS = 24
"""Number of words whose picture is drawn unless others are chosen: a page has room for no more."""
PANEL = 27.0
"""Smallest width of a picture in millimetres."""
GAP = 2.4
"""Millimetres between pictures."""
SINK_MARK = 0.35
"""Half of the cross on a sink, as a part of its patch."""


class AnswerFigureOptions(ResultOptions, total=False):
    """Options of the figure of an answer, in addition to those of all results."""

    relative: bool
    """True for the difference to the mean over all words of the answer."""
    words: Sequence[int]
    """Numbers of the words whose picture is drawn, from 0; by default all, of a long answer the 24
    whose heat differs most from the mean over words.
    """


@dataclass(frozen=True)
class AnswerPlan:
    """The parts of an answer that are drawn.

    Args:
        answer: a `PictureAnswer`.
        words: numbers of the words that have a picture.
        values: ``[word patch]`` of all words; NaN at sinks that are left out.
        relative: whether these are differences to the mean over words.
    """

    answer: Any
    words: tuple[int, ...]
    values: np.ndarray
    relative: bool

    @property
    def scale_of_words(self) -> str:
        """The label of the colour bar."""
        if self.relative:
            return "attention on the patch, less the mean over all words"
        return "attention on the patch"


@draws("answer")
def answer_figure(answer: Any, **options: Unpack[AnswerFigureOptions]) -> Figure:
    """The words of an answer with the share of their attention that the picture got, and below the
    picture under the heat of each word, all on one scale.

    Sinks that are left out have a cross.

    Args:
        answer: a `PictureAnswer`.
        **options: see `AnswerFigureOptions`.

    Raises:
        FigureError: an unknown option or word, an answer without a word, or matplotlib is
            missing.
        RecordError: ``relative`` of a single word.

    Example:
        >>> answer_figure(answer(model, processor, "cat.jpg", "What is this?")).save("answer.pdf")
    """
    relative, wanted = bool(options.pop("relative", False)), options.pop("words", None)
    if not answer.words:
        raise FigureError("The answer has no word to draw; ask for a longer one (max_new_tokens)")
    plan = AnswerPlan(
        answer, _chosen(answer, wanted), answer.values(relative=relative), relative=relative
    )
    chosen = ", relative=True" if relative else ""
    if wanted is not None:
        chosen += f", words={list(plan.words)}"
    return draw_result(
        answer,
        options,
        lambda sheet, y: _draw(sheet, plan, y),
        title=answer.question,
        note=f"{answer.model}: “{answer.text.strip()}”",
        layers=[layer for layer, _ in answer.chosen],
        heads=[head for _, head in answer.chosen],
        texts=(answer.prompt, answer.text),
        chosen=chosen,
    )


def _chosen(answer: Any, wanted: Sequence[int] | None) -> tuple[int, ...]:
    """Numbers of the words that get a picture, in the order of the answer."""
    count = len(answer.words)
    if wanted is not None:
        missing = [word for word in wanted if word not in range(count)]
        if missing or not list(wanted):
            raise FigureError(f"words is {list(wanted)}; the answer has the words 0 to {count - 1}")
        return tuple(wanted)
    if count <= MOST_PANELS:
        return tuple(range(count))
    apart = np.abs(np.nan_to_num(answer.values(relative=True))).sum(axis=-1)
    # Chosen by their difference, but drawn in the order of the answer.
    return tuple(sorted(np.argsort(-apart, kind="stable")[:MOST_PANELS].tolist()))


def _draw(sheet: Sheet, plan: AnswerPlan, y: float) -> tuple[float, list[str]]:
    """Strip, pictures, scale; return the next y and the notes."""
    style = sheet.style
    largest = float(np.nanmax(np.abs(plan.values[list(plan.words)]), initial=0.0))
    if plan.relative:
        plain = style.score_scale(largest)
    else:
        plain = style.weight_scale(largest)
    # A record may hold no pixels: then patches are drawn as plain cells.
    scale = PictureHeat.of(plain, style) if plan.answer.pictures else plain
    y = _strip(sheet, plan.answer, y)
    y = _panels(sheet, plan, scale, y)
    y = colour_bar(sheet, scale, plan.scale_of_words, y=y)
    return y, _notes(plan)


def _strip(sheet: Sheet, answer: Any, y: float) -> float:
    """The words in a row, each with its share below it and as a bar; return the next y."""
    style = sheet.style
    shares = answer.word_shares
    most = float(max(shares.max(), answer.word_even.max())) or 1.0
    small, tall = 1.2 * style.small * POINT, 1.2 * style.em
    pitch = 1.5 * style.em + small + tall + 0.6 * style.em
    x = 0.0
    for word, share, even in zip(answer.words, shares, answer.word_even, strict=True):
        text, percent = sheet.fitted(sheet.shown(word.text), sheet.width), f"{100 * share:.1f} %"
        width = max(sheet.width_of(text), sheet.width_of(percent, style.small))
        if x > 0 and x + width > sheet.width:
            x, y = 0.0, y + pitch
        sheet.text(x, y + 0.75 * style.em, text)
        foot = y + 1.5 * style.em + tall
        sheet.rect(x, foot - tall * share / most, width, tall * share / most, fill=style.accent)
        sheet.line((x, x + width), (foot - tall * even / most,) * 2, colour=style.muted, line=0.6)
        sheet.note(x, foot + 0.6 * small, percent)
        x += width + 0.7 * style.em
    return y + pitch + 0.6 * style.em


def _panels(sheet: Sheet, plan: AnswerPlan, scale: Scale, y: float) -> float:
    """A picture for each word, its word below it; return the next y."""
    style, answer = sheet.style, plan.answer
    sizes = [_size_of(answer, number) for number in range(len(answer.grids))]
    # Several pictures stand below each other in the panel of a word, all of one width.
    columns = max(1, min(len(plan.words), int((sheet.width + GAP) // (PANEL + GAP))))
    width = min((sheet.width - (columns - 1) * GAP) / columns, 1.6 * PANEL)
    heights = [width * tall / wide for tall, wide in sizes]
    row = sum(heights) + 0.5 * (len(heights) - 1) + 2.2 * style.em
    for index, word in enumerate(plan.words):
        x, top = (index % columns) * (width + GAP), y + (index // columns) * row
        for number, height in enumerate(heights):
            values = answer.laid_out(plan.values[word], number)
            box = (x, top, width, height)
            _panel(sheet, plan, number=number, values=values, scale=scale, box=box)
            top += height + 0.5
        percent = f"{100 * answer.word_shares[word]:.1f} %"
        room = width - sheet.width_of(percent, style.small) - 0.5 * style.em
        text = sheet.fitted(sheet.shown(answer.words[word].text), room)
        sheet.text(x, top + 0.4 * style.em, text)
        sheet.text(
            x + width,
            top + 0.4 * style.em,
            percent,
            size=style.small,
            colour=style.muted,
            anchor="right",
        )
    return y + -(-len(plan.words) // columns) * row + 0.6 * style.em


def _size_of(answer: Any, number: int) -> tuple[int, int]:
    """Height and width of a picture, or rows and columns of its patches where it has no pixels."""
    if answer.pictures:
        return answer.pictures[number].shape[:2]
    return answer.grids[number]


def _panel(
    sheet: Sheet,
    plan: AnswerPlan,
    *,
    number: int,
    values: np.ndarray,
    scale: Scale,
    box: tuple[float, float, float, float],
) -> None:
    """One picture under the heat of one word; a cross on each sink that is left out."""
    x, y, width, height = box
    rows, columns = values.shape
    shown = np.nan_to_num(values)
    if isinstance(scale, PictureHeat):
        rgb = veiled(plan.answer.pictures[number], shown, scale)
    else:
        rgb = scale.rgb(shown)
    sheet.cells(rgb, at=(x, y), size=(width, height))
    sheet.rect(x, y, width, height, edge=sheet.style.edge, line=0.35, layer=3)
    across, down = width / columns, height / rows
    for row, column in np.argwhere(np.isnan(values)):
        middle = x + (column + 0.5) * across, y + (row + 0.5) * down
        reach = SINK_MARK * across, SINK_MARK * down
        for turn in (1, -1):
            sheet.line(
                (middle[0] - reach[0], middle[0] + reach[0]),
                (middle[1] - turn * reach[1], middle[1] + turn * reach[1]),
                colour=sheet.style.muted,
                line=0.5,
            )


def _notes(plan: AnswerPlan) -> list[str]:
    answer, (heads, sinks) = plan.answer, plan.answer.in_words
    notes = [
        f"mean over {heads}, of the row that wrote the word",
        "bar and number: share of the attention on the picture, sinks too; line: were it even",
        sinks.rstrip("."),
    ]
    if answer.is_sink.any() and not answer.keep_sinks:
        notes.append("a cross: a sink")
    if len(plan.words) < len(answer.words):
        notes.append(
            f"{len(plan.words)} of {len(answer.words)} words have a picture: those whose heat "
            "differs most from the mean, or that were asked for"
        )
    return notes
