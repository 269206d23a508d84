"""An answer about a picture as a page: choose a word, and its heat is drawn over the picture.

The page has no script. The words are radio buttons, so that arrow keys go from one to the next, and
the style sheet shows the heat of the word that is chosen or pointed at.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import PageError
from headscope.results import shows
from headscope.views._result_page import result_page
from headscope.views._thumbs import png_address
from headscope.views.figures._style import COLOUR, STRENGTH, VEIL
from headscope.views.file_page import FilePage, whole_page

THEMES = ("auto", "light", "dark")
OPTIONS = ("theme", "title")
POSITIVE, NEGATIVE = (28, 92, 214), (214, 96, 20)
"""Colours of heat above and below 0: blue and orange, visible on light and on dark paper."""
BEND = 0.75
"""Exponent of the opacity, ``|value| ** 0.75``, as in figures."""
LIGHT = "--paper:#fff;--ink:#15181d;--muted:#5d646f;--edge:#d5d9df;--bar:#a9c4f5"
DARK = "--paper:#111419;--ink:#e8eaee;--muted:#98a0ac;--edge:#343b46;--bar:#2c4f8f"
STYLES = """
#ID{max-width:var(--widest,72rem);margin:0 auto;padding:var(--room,1rem);
 font:.9rem/1.45 system-ui,sans-serif;
 color:var(--ink);background:var(--paper);box-sizing:border-box}
#ID h1{font-size:1.1rem;margin:0 0 .25rem} #ID p{margin:.4rem 0;max-width:48rem}
#ID small,#ID .note{color:var(--muted)}
#ID .both{display:grid;gap:1.25rem;
 grid-template-columns:minmax(0,min(50%,calc(var(--highest,60rem)*RATIO))) minmax(0,1fr);
 align-items:start;margin:.75rem 0}
#ID .seen{position:sticky;top:.5rem;display:flex;flex-direction:column;gap:.5rem}
#ID .picture{position:relative;background:var(--paper);border:1px solid var(--edge)}
#ID .picture>*{position:absolute;inset:0;width:100%;height:100%;display:block;
 image-rendering:pixelated}
#ID .picture>.base{opacity:PALE;filter:saturate(SATURATE);image-rendering:auto}
#ID .heat{visibility:hidden} #ID svg{pointer-events:none;stroke:var(--ink);fill:none}
#ID fieldset{border:0;margin:0;padding:0;min-width:0}
#ID legend{padding:0;color:var(--muted)}
#ID .words{display:flex;flex-wrap:wrap;gap:.3rem .25rem;margin:.4rem 0}
#ID .words label{position:relative;display:flex;flex-direction:column;padding:.1rem .4rem .15rem;
 border:1px solid transparent;border-radius:.4rem;cursor:pointer;max-width:100%;
 overflow-wrap:anywhere;
 background:linear-gradient(to top,var(--bar) var(--share),transparent var(--share)) no-repeat
 border-box}
#ID .words label:hover{border-color:var(--edge)}
#ID .words label:has(:checked){border-color:var(--ink)}
#ID .words label:has(:focus-visible){outline:2px solid var(--ink);outline-offset:1px}
#ID .words input{position:absolute;opacity:0;width:1px;height:1px;margin:0}
#ID .words small{color:var(--ink);font-size:.7rem;font-variant-numeric:tabular-nums}
#ID .bar{height:.6rem;border:1px solid var(--edge)}
#ID .ends{display:flex;justify-content:space-between;color:var(--muted);font-size:.75rem}
#ID #ID-relative:not(:checked)~.both .signed,#ID #ID-relative:checked~.both .plain{display:none}
#ID .tables{overflow-x:auto} #ID table{border-collapse:collapse}
#ID caption{text-align:left;font-weight:600}
#ID th,#ID td{text-align:left;padding:.15rem .9rem .15rem 0;border-bottom:1px solid var(--edge);
 font-variant-numeric:tabular-nums;white-space:nowrap}
@media (max-width:44rem){#ID .both{grid-template-columns:minmax(0,1fr);gap:.5rem}
 #ID .seen{top:0;z-index:1;background:var(--paper);padding-bottom:.3rem}
 #ID .picture{max-height:46vh;max-width:calc(46vh*RATIO);width:100%;margin:0 auto}}
"""


@dataclass(frozen=True, repr=False)
class AnswerPage(FilePage):
    """Page of an answer about a picture: it shows itself in a notebook, saves itself as one file,
    and opens in a browser. Made by `view`.

    Args:
        answer: a `headscope.answering.Answer`.
        options: ``theme`` and ``title``.
    """

    answer: Any
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        unknown = [name for name in self.options if name not in OPTIONS]
        if unknown:
            raise PageError(
                f"The page of an answer has no option {unknown[0]!r}; there are "
                f"{', '.join(OPTIONS)}"
            )
        if self._theme not in THEMES:
            raise PageError(f"theme is {self._theme!r}; give {', '.join(map(repr, THEMES))}")

    @property
    def _theme(self) -> str:
        return self.options.get("theme", "auto")

    @property
    def title(self) -> str:
        """The heading of the page: the question, unless another title was given."""
        return str(self.options.get("title") or self.answer.question)

    @cached_property
    def html(self) -> str:
        """The page as one self-contained file: no script, offline, opens from disk."""
        light = DARK if self._theme == "dark" else LIGHT
        dark = _when_dark(":root") if self._theme == "auto" else ""
        styles = f"body{{margin:0;background:var(--paper)}}:root{{{light}}}{dark}"
        return whole_page(self.title, styles, self.body, schemes="light dark")

    @cached_property
    def body(self) -> str:
        """Question, answer, picture and words, and tables, as HTML; every string is escaped."""
        return self._standing_in("main", f'<h1 dir="auto">{html.escape(self.title)}</h1>')

    @cached_property
    def part(self) -> str:
        """The same to stand in another page, without the question and with the tables folded.

        That page gives its colours, ``--paper``, ``--ink``, ``--muted``, ``--edge`` and ``--bar``,
        and perhaps ``--room``, the space around all, ``--widest`` and ``--highest``, of a picture.
        """
        return self._standing_in("div", "", "<details><summary>numbers</summary>{}</details>")

    def _standing_in(self, tag: str, heading: str, tables_in: str = "{}") -> str:
        answer = self.answer
        words = answer._repr_html_()
        summary, _, tables = words.partition("\n")
        tables = tables_in.format(f'<div class="tables">{tables}</div>')
        choice = ""
        if len(answer.words) > 1:
            choice = (
                f'<input type="checkbox" id="{self._id}-relative"> <label '
                f'for="{self._id}-relative">more (blue) or less (orange) than the mean over all '
                "words</label>"
            )
        return (
            f'<{tag} id="{self._id}"><style>{self._styles}</style>\n'
            f"{heading}\n{summary}\n{choice}"
            f'<div class="both"><div class="seen">{self._pictures}{self._scales}</div>'
            f"{self._words}</div>\n{tables}</{tag}>"
        )

    @cached_property
    def _id(self) -> str:
        """The id of the page's element, so that a notebook can show several answers."""
        # A digest of the answer and not a running number: the same answer always gives the same
        # file.
        content = f"{self.answer.prompt} {self.answer.text} {self.answer.attention.tobytes()!r}"
        return f"answer-{hashlib.sha256(content.encode()).hexdigest()[:10]}"

    @cached_property
    def _styles(self) -> str:
        rows, columns = self._size(0)
        sheet = STYLES.replace("PALE", str(STRENGTH)).replace("SATURATE", str(COLOUR))
        sheet = sheet.replace("RATIO", f"{columns / rows:.4f}").replace("ID", self._id)
        rules = [sheet]
        main = f"#{self._id}"
        if self._theme == "dark":
            rules.append(f"{main}{{{DARK}}}")
        for word in range(len(self.answer.words)):
            rules.append(f"{main}:has(#{self._id}-{word}:checked) .h{word}{{visibility:visible}}")
        # What is pointed at goes before what is chosen, but where keys lead from word to word and
        # the mouse only rests somewhere.
        main += ":not(:has(:focus-visible))"
        rules.append(f"{main}:has(.words :hover) .heat{{visibility:hidden!important}}")
        for word in range(len(self.answer.words)):
            rules.append(
                f"{main}:has(.words .w{word}:hover) .h{word}{{visibility:visible!important}}"
            )
        return "\n".join(rules)

    @cached_property
    def _values(self) -> dict[str, Float[np.ndarray, "word patch"]]:
        """The values that are shown, by style class: attention, and its difference to the mean over
        all words.
        """
        values = {"plain": self.answer.values()}
        if len(self.answer.words) > 1:
            values["signed"] = self.answer.values(relative=True)
        return values

    @property
    def _pictures(self) -> str:
        return "".join(self._picture(number) for number in range(len(self.answer.grids)))

    def _picture(self, number: int) -> str:
        """A picture, the heat of each word over it, and a cross on each sink that is left out."""
        answer = self.answer
        height, width = self._size(number)
        parts = []
        if answer.pictures:
            parts.append(
                f'<img class="base" alt="The picture that the model saw" '
                f'src="{png_address(answer.pictures[number])}">'
            )
        for kind, values in self._values.items():
            largest = float(np.nanmax(np.abs(values), initial=0.0))
            for word, row in enumerate(values):
                overlay = _overlay(answer.laid_out(row, number), largest)
                parts.append(
                    f'<img class="heat {kind} h{word}" alt="" src="{png_address(overlay)}">'
                )
        parts.append(self._crosses(number))
        return f'<div class="picture" style="aspect-ratio:{width}/{height}">{"".join(parts)}</div>'

    def _crosses(self, number: int) -> str:
        answer = self.answer
        if answer.keep_sinks or not answer.is_sink.any():
            return ""
        rows, columns = answer.grids[number]
        sinks = answer.laid_out(answer.is_sink.astype(float), number)
        lines = [
            f"M{column + 0.2} {row + 0.2}l.6 .6m0-.6l-.6 .6"
            for row, column in np.argwhere(sinks > 0)
        ]
        # One unit is one patch, and patches need not be square: without non-scaling-stroke the
        # lines of a cross would be thicker in one direction.
        return (
            f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" aria-hidden="true">'
            f'<path stroke-width="1" vector-effect="non-scaling-stroke" d="{" ".join(lines)}"/>'
            "</svg>"
        )

    @property
    def _scales(self) -> str:
        """The colour bars of both scales; the style sheet shows one of them."""
        parts = []
        for kind, values in self._values.items():
            largest = float(np.nanmax(np.abs(values), initial=0.0))
            # A gradient of CSS is linear between its stops: nine follow the curve of the opacity.
            parts_of_bar = np.linspace(-1 if kind == "signed" else 0, 1, 9)
            stops = ",".join(_colour(part) for part in parts_of_bar)
            least = f"−{largest:.2g}" if kind == "signed" else "0"
            says = "less the mean over words" if kind == "signed" else "attention on the patch"
            parts.append(
                f'<div class="{kind}"><div class="bar" style="background:linear-gradient(to right,'
                f'{stops})"></div><div class="ends"><span>{least}</span><span>{says}</span>'
                f"<span>{largest:.2g}</span></div></div>"
            )
        return "".join(parts)

    @property
    def _words(self) -> str:
        """The words as radio buttons, each over a bar as high as its share."""
        answer = self.answer
        # The lower limit keeps the division below defined where no word looks at the picture.
        most = float(max(answer.word_shares.max(initial=0.0), 1e-9))
        labels = []
        for word, (each, share) in enumerate(zip(answer.words, answer.word_shares, strict=True)):
            checked = " checked" if word == 0 else ""
            labels.append(
                f'<label class="w{word}" style="--share:{100 * share / most:.1f}%">'
                f'<input type="radio" name="{self._id}" id="{self._id}-{word}"{checked}>'
                f"<span>{html.escape(each.text)}</span>"
                f'<small dir="ltr">{100 * share:.1f} %</small></label>'
            )
        return (
            "<fieldset><legend>Words of the answer, with the share of their attention on the "
            f'picture</legend><div class="words" dir="auto">{"".join(labels)}</div>'
            '<p class="note">Point at a word, or choose one: the heat over the picture is that of '
            "the row that wrote it. Arrow keys go from word to word. "
            f"{html.escape(self._cross_in_words)}</p></fieldset>"
        )

    @property
    def _cross_in_words(self) -> str:
        is_crossed = self.answer.is_sink.any() and not self.answer.keep_sinks
        return "A cross: a sink, left out." if is_crossed else ""

    def _size(self, number: int) -> tuple[int, int]:
        """Height and width of a picture, or rows and columns where it has no pixels."""
        if self.answer.pictures:
            return self.answer.pictures[number].shape[:2]
        return self.answer.grids[number]

    def _repr_html_(self) -> str:
        light = DARK if self._theme == "dark" else LIGHT
        dark = _when_dark(f"#{self._id}") if self._theme == "auto" else ""
        return f"<style>#{self._id}{{{light}}}{dark}</style>{self.body}"

    def _mime_(self) -> tuple[str, str]:
        return "text/html", self._repr_html_()

    def __repr__(self) -> str:
        return f"<Page of {self.answer!r}>"


@shows("answer")
def answer_page(answer: Any, **options: Any) -> FilePage:
    """The page of an answer: of one about a picture its own, else that of any result.

    Args:
        answer: a `headscope.answering.Answer`.
        **options: ``theme`` (``"auto"``, ``"light"`` or ``"dark"``) and ``title``.

    Raises:
        PageError: an unknown option.
    """
    return AnswerPage(answer, options) if answer.grids else result_page(answer, **options)


def _when_dark(where: str) -> str:
    return f"@media (prefers-color-scheme:dark){{{where}{{{DARK}}}}}"


def _overlay(values: Float[np.ndarray, "row column"], largest: float) -> np.ndarray:
    """Red, green, blue and opacity of each patch; sinks and missing patches are transparent."""
    part = np.clip(np.nan_to_num(np.abs(values)) / (largest or 1.0), 0, 1)
    overlay = np.empty((*values.shape, 4), np.uint8)
    overlay[..., :3] = np.where((values < 0)[..., None], NEGATIVE, POSITIVE)
    overlay[..., 3] = np.rint(255 * VEIL * part**BEND)
    return overlay


def _colour(value: float) -> str:
    """Colour of the bar at a number from -1 to 1."""
    red, green, blue = NEGATIVE if value < 0 else POSITIVE
    return f"rgba({red},{green},{blue},{VEIL * abs(value) ** BEND:.3f})"
