"""Figure of an answer: two bars for each part of the prompt; of one about a picture the picture
under the heat of each word, and a strip of the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from headscope.errors import FigureError
from headscope.views.constants import LOOKED, NEEDED
from headscope.views.figures._figure import Spec, specified
from headscope.views.figures._sheet import Box, Sheet
from headscope.views.figures._style import POINT, Scale, head_greys, veiled
from headscope.views.figures.charts import colour_bar
from headscope.views.figures.fonts import in_quotes, mostly_left

MOST_PARTS = 40
"""Of a prompt that are drawn."""
WIDEST = "98 % → < 0.1 %"
"""Of the numbers behind bars."""
MOST_PANELS = 24
"""Number of words whose picture is drawn unless others are chosen: a page has room for no more."""
PANEL, GAP = 27.0, 2.4
"""Smallest width of a picture, and millimetres between pictures."""
SINK_MARK = 0.35
"""Half of the cross on a sink, as a part of its patch."""


@specified("answer")
def answer_figure(
    answer: Any, *, relative: bool = False, words: Sequence[int] | None = None
) -> Spec:
    """Two bars for each part of the prompt, what was looked at and what was needed; of an answer
    about a picture the words with the share of their attention that it got, and below the picture
    under the heat of each word, all on one scale.

    Sinks that are left out have a cross.

    Args:
        answer: a `headscope.answering.Answer`.
        relative: True for the difference to the mean over all words of the answer.
        words: numbers of the words whose picture is drawn, from 0; by default all, of a long answer
            the 24 whose heat differs most from the mean over words.

    Raises:
        FigureError: an unknown word, or an answer without a word.
        RecordError: ``relative`` of a single word.

    Example:
        >>> answer(model, processor, "cat.jpg", "What is this?").figure().save("answer.pdf")
    """
    if not answer.words:
        raise FigureError("The answer has no word to draw; ask for a longer one (max_new_tokens)")
    of = _pictures if answer.grids else _parts
    body, note, notes = of(answer, relative, words)
    both = (answer.prompt, answer.text)
    cells, title = answer.chosen, answer.question
    return Spec(title=title, body=body, note=note, notes=notes, cells=cells, texts=both)


Body = tuple[Callable[[Sheet], None], str, list[str]]
"""What draws a figure, the line above it and the notes below."""


def _pictures(answer: Any, relative: bool, words: Sequence[int] | None) -> Body:
    """The words with their shares, and the picture under the heat of each."""
    shown, values = _chosen(answer, words), answer.values(relative=relative)
    names = [answer.parts[at].name for at in answer.shown]

    def draw(sheet: Sheet) -> None:
        style, largest = sheet.style, float(np.nanmax(np.abs(values[list(shown)]), initial=0.0))
        scale = style.score_scale(largest) if relative else style.weight_scale(largest)
        # A record may hold no pixels: then patches are drawn as plain cells.
        if answer.pictures:
            scale = scale.over_pictures(style.paper)
        _strip(sheet, answer)
        _panels(sheet, answer, shown, values=values, scale=scale)
        label = f"{answer.shares_of} on the patch" + ", less the mean over all words" * relative
        colour_bar(sheet, scale, label)

    notes = [
        f"mean over {answer.mean_of}, of the row that wrote the word",
        f"bar, number: share of {answer.shares_of} on the {answer.media}, sinks too; line: even",
        *[f"from above: {', '.join(names)}"] * (len(names) > 1),
        *[answer.sentences[0].rstrip(".")] * bool(answer.need),
        answer.sentences[-1].rstrip("."),
        "a cross: a sink" * bool(answer.is_sink.any() and not answer.keep_sinks),
        f"{len(shown)} of {len(answer.words)} words have a picture: those whose heat differs most "
        "from the mean, or that were asked for" * (len(shown) < len(answer.words)),
    ]
    return draw, f"{answer.model}: {in_quotes(answer.text.strip())}", notes


def _parts(answer: Any, relative: bool, words: Sequence[int] | None) -> Body:
    """Two bars for each part of a prompt: what was looked at, and what was needed."""
    if relative:
        raise FigureError("relative is of heat over pictures; leave it out for a text")
    shown, asked = answer.foremost(MOST_PARTS), None if words is None else _chosen(answer, words)
    notes = [
        "x: times its length among the compared parts (upright line; of others, of all tokens)",
        "outlined: it alone is enough" * any(each.is_enough for each in answer.part_numbers()),
        f"{len(shown)} of {len(answer.parts)} parts" * (len(shown) < len(answer.parts)),
    ]
    return partial(_bars, answer=answer, parts=shown, words=asked), answer.summary, notes


def _bars(sheet: Sheet, *, answer: Any, parts: Sequence[int], words: Sequence[int] | None) -> None:
    """The bars of parts below each other."""
    style, em, numbers = sheet.style, sheet.style.em, answer.part_numbers(words)
    hues = [each[style.dark] for each in (LOOKED, NEEDED)]
    colours = hues if style.colour else head_greys(2, dark=style.dark)
    above, names = {answer.parts[at].name for at in parts}, []
    for part in (answer.parts[at] for at in parts):
        # Of a part within another that stands above it the end of the name is enough.
        outer, _, inner = part.name.rpartition(", ")
        name = "   " * part.level + inner if outer in above else part.name
        # Names often begin alike, and differ in their ends.
        names.append(sheet.fitted(sheet.shown(name), 0.3 * sheet.width, tail=8))
    side, right = sheet.widest(names, of_notes=False) + 0.8 * em, sheet.width_of(WIDEST) + em
    wide, high, pitch = sheet.width - side - right, 0.75 * em, 1.05 * em
    says = [f"looked: share of {answer.shares_of}"]
    says += [f"needed: part of the probability lost when {answer.gone}"] * bool(answer.need)
    sheet.legend(list(zip(colours, says, strict=False)))
    most = max(max(numbers[at].looked, numbers[at].due) for at in parts) or 1.0
    for at, name in zip(parts, names, strict=True):
        each, middle = numbers[at], sheet.y + 1.4 * em
        sheet.text(0.0, middle, name)
        rows = [(each.looked / most, each.looked_in_words), (each.lost, each.needed_in_words)]
        rows = rows[: 1 if np.isnan(each.lost) else 2]
        top = middle - len(rows) / 2 * pitch
        for row, (part, told) in enumerate(rows):
            box = (side, top + row * pitch + 0.15 * em, wide, high)
            edge = colours[row] if row and each.is_enough else "none"
            sheet.rect(*box, facecolor=style.masked)
            sheet.rect(*box[:2], wide * part, high, facecolor=colours[row])
            sheet.rect(*box, edgecolor=edge, linewidth=0.8)
            sheet.note(side + wide + 0.5 * em, box[1] + high / 2, told)
        x = side + wide * each.due / most
        sheet.line((x, x), (top, top + pitch), style.ink, 0.8)
        sheet.y += 2.6 * em
    sheet.y += 0.6 * em


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


def _strip(sheet: Sheet, answer: Any) -> None:
    """The words in a row, each with its share below it and as a bar."""
    style, em, shares, even = sheet.style, sheet.style.em, answer.word_shares, answer.word_even
    most = float(max(shares.max(), even.max())) or 1.0
    small, tall = 1.2 * style.small * POINT, 1.2 * em
    texts = [sheet.fitted(sheet.shown(word.text), sheet.width) for word in answer.words]
    said = [f"{100 * share:.1f} %" for share in shares]
    widths = [max(sheet.width_of(of), sheet.widest([n])) for of, n in zip(texts, said, strict=True)]
    places = sheet.flow(widths, gap=0.7 * em, leftward=mostly_left(texts))
    pitch = 2.1 * em + small + tall
    for at, (x, line) in enumerate(places):
        top, width, high = sheet.y + line * pitch, widths[at], tall * shares[at] / most
        foot = top + 1.5 * em + tall
        sheet.text(x, top + 0.75 * em, texts[at])
        sheet.rect(x, foot - high, width, high, facecolor=style.accent)
        level = foot - tall * even[at] / most
        sheet.line((x, x + width), (level, level), style.muted, 0.6)
        sheet.note(x, foot + 0.6 * small, said[at])
    sheet.y += (places[-1][1] + 1) * pitch + 0.6 * em


def _panels(
    sheet: Sheet, answer: Any, words: Sequence[int], *, values: np.ndarray, scale: Scale
) -> None:
    """A picture for each word in rows, its word below it."""
    em, small = sheet.style.em, sheet.style.small
    # Several pictures stand below each other in the panel of a word, all of one width; of a picture
    # without pixels the rows and columns of its patches are its size.
    sizes = [each.shape[:2] for each in answer.pictures] or answer.grids
    columns = max(1, min(len(words), int((sheet.width + GAP) / (PANEL + GAP))))
    width = min((sheet.width + GAP) / columns - GAP, 1.6 * PANEL)
    highs = [width * high / wide for high, wide in sizes]
    tall = sum(highs) + 0.5 * (len(sizes) - 1) + 2.2 * em
    leftward = mostly_left([word.text for word in answer.words])
    for at, word in enumerate(words):
        x, top = at % columns * (width + GAP), sheet.y + at // columns * tall
        x = sheet.width - x - width if leftward else x
        for number, high in enumerate(highs):
            pixels = answer.pictures[number] if answer.pictures else None
            laid_out = answer.laid_out(values[word], number)
            _panel(sheet, pixels, laid_out, scale=scale, box=(x, top, width, high))
            top += high + 0.5
        percent = f"{100 * answer.word_shares[word]:.1f} %"
        room = width - sheet.width_of(percent, small) - 0.5 * em
        sheet.text(x, top + 0.4 * em, sheet.fitted(sheet.shown(answer.words[word].text), room))
        sheet.note(x + width, top + 0.4 * em, percent, anchor="right")
    sheet.y += -(-len(words) // columns) * tall + 0.6 * em


def _panel(
    sheet: Sheet, pixels: np.ndarray | None, values: np.ndarray, *, scale: Scale, box: Box
) -> None:
    """One picture under the heat of one word; a cross on each sink that is left out."""
    x, y, width, height = box
    rgb = scale.rgb(np.nan_to_num(values))
    if pixels is not None and scale.paper:
        rgb = veiled(pixels, np.nan_to_num(values), scale)
    sheet.cells(rgb, at=(x, y), size=(width, height))
    side = np.array([width / values.shape[1], height / values.shape[0]])
    for row, column in np.argwhere(np.isnan(values)):
        middle = np.array([x, y]) + (np.array([column, row]) + 0.5) * side
        xs, ys = np.array([middle - SINK_MARK * side, middle + SINK_MARK * side]).T
        for ends in (ys, ys[::-1]):
            sheet.line(xs, ends, sheet.style.muted, 0.5)
