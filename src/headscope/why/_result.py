"""Why a model said a word: links and graphs, what may be claimed of them, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.errors import RecordError
from headscope.record import Part, Record
from headscope.results import Kept, Result, TextTable
from headscope.storage import Finite, array_of

LEAD = 1.0
"""Logits that a lead must have; of less, shares are of noise."""
KEEPS = (0.75, 1.25)
"""What a graph must keep of what attention does."""
MANY, MATTERS = 50, 0.1
"""More links than this that change the lead by so much each: they cancel."""
DRAWN = 20
"""Graphs drawn by weight."""
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60)
"""Numbers of lines that graphs are tried with."""
LEAST = 1e-3
"""Shares below are rounding."""
MOST_ROWS = 24
NUMBERS = ("weight", "carried", "estimate", "measured", "held")
SAYS = {
    "carries": "part of the lead that goes through it, attention, norms and gates held",
    "estimate": "first-order estimate of cutting it",
    "cut": "measured change of the lead with its weight set to 0, the rest not renormalised",
    "by later looking": "part of that which goes when all later heads attend as before",
    "direct": "part of the lead written at the answer's own place",
}
DOCUMENT: dict[str, Any] = {
    **dict.fromkeys(("model", "answer", "instead"), str),
    **dict.fromkeys(("position", "sources"), int),
    **dict.fromkeys(("lead", "none", "probability"), Finite),
    "capped": bool,
    "tokens": [str],
    "cells": [[str, int]],
    "kinds": [[str]],
    "parts": [[str, str, int, [int]]],
}
PART = ("name", "kind", "level", "tokens")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Why(Result):
    """Why a model said a word, and what was measured.

    Positions are columns: the tokens of a text, and of an encoder-decoder those of its source, then
    those its decoder reads. All amounts are logits.

    Args:
        model: its name.
        answer: the token that is explained.
        instead: the token that it is compared with.
        position: column of the row that predicts it.
        sources: how many columns are the source of an encoder-decoder; else 0.
        lead: logit of the answer less that of the other, before any cap.
        none: the lead with all links cut at once.
        probability: of the answer.
        capped: whether the model caps or scales its logits behind the head.
        tokens: as a reader sees them.
        cells: stack and number of each layer, in the order in which they are run.
        kinds: kind of each head of each layer on this text.
        parts: of the text.
        links: ``[link 4]``: index of the layer, head, column of the query, of the key.
        numbers: ``[link 5]``: weight, carried, estimate, measured change of the lead, the same with
            all later weights held (NaN of links that are in no graph).
        graphs: ``[graph link]``, which links are in each, rising in size.
        kept: ``[graph]``, the lead with all other links cut at once.
        drawn: ``[draw graph]``, the same of as many links drawn by weight.
        words: ``[column]``, what each token carries of the lead; behind them, what biases carry.
        direct: ``[layer head key]``, written at the answer's own place by a head from a token.
        rest: ``[part]``, the same by each feed-forward part, by the token itself, and by biases.
        record: of the text; None of a result that was loaded.
    """

    KIND: ClassVar[str] = "why"
    DOCUMENT: ClassVar = DOCUMENT
    model: str
    answer: str
    instead: str
    position: int
    sources: int
    lead: float
    none: float
    probability: float
    capped: bool
    tokens: tuple[str, ...]
    cells: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, ...], ...]
    parts: tuple[Part, ...]
    links: Int[np.ndarray, "link 4"]
    numbers: Float[np.ndarray, "link 5"]
    graphs: Bool[np.ndarray, "graph link"]
    kept: Float[np.ndarray, " graph"]
    drawn: Float[np.ndarray, "draw graph"]
    words: Float[np.ndarray, " column_and_biases"]
    direct: Float[np.ndarray, "layer head key"]
    rest: Float[np.ndarray, " part"]
    record: Record | None = None

    def __repr__(self) -> str:
        return f"<Why {self.answer!r} and not {self.instead!r}, by {self.model}>"

    @property
    def errors(self) -> tuple[float, float]:
        """How far the sums of what is carried, and of the direct parts, are from the lead, relative
        to it.
        """
        sums = self.words.sum(), self.direct.sum() + self.rest.sum()
        carried, direct = (float(abs(each / self.lead - 1)) for each in sums)
        return carried, direct

    def keeps(self, lead: Any) -> Any:
        """The part of what attention does that is left at a lead: ``(m - none) / (all - none)``
        (Marks et al. 2024).
        """
        return (lead - self.none) / (self.lead - self.none)

    @property
    def sizes(self) -> list[int]:
        """How many lines each graph has."""
        return self.graphs.sum(axis=1).tolist()

    @cached_property
    def fitting(self) -> Bool[np.ndarray, " graph"]:
        """Graphs that keep 75 to 125 %, as do all larger ones, two at least."""
        keeps = self.keeps(self.kept)
        fits = (keeps >= KEEPS[0]) & (keeps <= KEEPS[1])
        fits = np.logical_and.accumulate(fits[::-1])[::-1]
        # The largest graphs have none behind them that would show whether they are enough.
        return fits & (np.arange(len(fits)) < len(fits) - 2)

    @cached_property
    def chosen(self) -> int | None:
        """Number of the graph that is drawn: of those that fit, and keep more than twice what 19 of
        20 drawn by weight do, the one nearest to all with few lines; None where there is none.
        """
        keeps, sizes = self.keeps(self.kept), self.sizes
        by_chance = np.quantile(self.keeps(self.drawn), 0.95, axis=0) >= keeps / 2
        cost = np.abs(1 - keeps) + 0.004 * np.array(sizes)
        cost = np.where(self.fitting & ~by_chance, cost, np.inf)
        return int(np.argmin(cost)) if np.isfinite(cost).any() else None

    @property
    def refusal(self) -> str:
        """Why there is no picture, in one sentence; empty where there is one."""
        if self.lead < LEAD:
            return (
                f"a lead of {self.lead:.2g} logits, below {LEAD:g}, is no clear answer; name a "
                "likelier answer, or an unlikelier instead"
            )
        if self.none >= self.lead / 2:
            part = self.none / self.lead
            return f"attention does not make this lead: {part:.0%} of it is left without any link"
        many = int((np.abs(self.numbers[:, 3]) >= MATTERS * self.lead).sum())
        if many > MANY:
            return f"{many} links change the lead by {MATTERS:.0%} or more each: they cancel"
        if not self.fitting.any():
            most = f"no graph of up to {max(SIZES)} lines, with all larger ones,"
            return f"{most} keeps 75 to 125 % of what attention does"
        if self.chosen is None:
            first = int(np.argmax(self.fitting))
            ours, drawn = self.keeps(self.kept[first]), self.keeps(self.drawn[:, first])
            return (
                f"{self.sizes[first]} lines drawn by weight keep up to "
                f"{np.quantile(drawn, 0.95):.0%}, and the strongest {ours:.0%}: any would do"
            )
        return ""

    def lines(self, graph: int | None = None) -> list[int]:
        """Numbers of the links of a graph, by default the chosen one, the strongest first; of a
        refusal the strongest links of all.
        """
        graph = self.chosen if graph is None else graph
        order = np.argsort(-self.strength, kind="stable")
        if graph is None:
            return order[:MOST_ROWS].tolist()
        return [at for at in order.tolist() if self.graphs[graph, at]]

    @property
    def strength(self) -> Float[np.ndarray, " link"]:
        """The larger of what each link carries and what cutting it changes."""
        return np.abs(self.numbers[:, [1, 3]]).max(axis=1, initial=0.0)

    @property
    def later_looking(self) -> Float[np.ndarray, " link"]:
        """What of the measured change goes when all later heads attend as before: what a link did
        by where they look.
        """
        return self.numbers[:, 3] - self.numbers[:, 4]

    def name_of(self, link: int) -> str:
        """Layer and head of a link, with its stack where there are several."""
        index, head = self.links[link, :2]
        stack, layer = self.cells[index]
        return f"{stack} " * bool(self.sources) + f"{layer}-{head}"

    def kind_of(self, link: int) -> str:
        """Kind of its head on this text."""
        index, head = self.links[link, :2]
        return self.kinds[index][head]

    @property
    def sentences(self) -> list[str]:
        """The lead; then what the chosen graph keeps, beside those drawn by weight, or why there is
        no picture.
        """
        cap = ", before the model's cap on logits" * self.capped
        lead = f"“{self.answer}” leads “{self.instead}” by {self.lead:.3g} logits{cap}"
        said = [f"{lead}; it is {self.probability:.0%} probable."]
        if self.refusal or self.chosen is None:
            return [*said, f"No picture: {self.refusal}."]
        lines, drawn = self.sizes[self.chosen], self.keeps(self.drawn[:, self.chosen])
        keeps = f"line{'s' * (lines > 1)} keep{'s' * (lines == 1)}"
        part = self.keeps(self.kept[self.chosen])
        return [
            *said,
            f"{lines} {keeps} {part:.0%} of what attention does here, all others cut at once; "
            f"{lines} drawn by weight keep {_percent(np.median(drawn))}.",
        ]

    @property
    def summary(self) -> str:
        """What was asked, and what may be said."""
        return f"Why “{self.answer}”, not “{self.instead}”? {' '.join(self.sentences)}"

    def _blocks(self) -> list[TextTable | str]:
        lines = self.lines()[:MOST_ROWS]
        head = ["head", "kind", "from", "to", "weight", "carries", "estimate", "cut"]
        rows = [[*head, "by later looking"]]
        for at in lines:
            weight, *amounts = self.numbers[at, :4]
            places = (f"{self.tokens[column]} {column}" for column in self.links[at, :1:-1])
            told = [self._share(amount) for amount in (*amounts, self.later_looking[at])]
            kind = self.kind_of(at).replace("none", "")
            rows.append([self.name_of(at), kind, *places, f"{weight:.2f}", *told])
        title = f"The {len(lines)} strongest of {len(self.links):,} links that were cut"
        note = (
            f"Sums are off by {self.errors[0]:.1g} (carried) and {self.errors[1]:.1g} (direct) of "
            "the lead. Carried is not caused: heads stand in for each other. Cuts are not "
            "renormalised: Cut(renormalise=False)."
        )
        table = TextTable.of_rows(rows, says=SAYS, title=title)
        return [table, self._words(), self._direct(), note]

    def _words(self) -> TextTable:
        order = np.argsort(-np.abs(self.words), kind="stable")[:MOST_ROWS]
        names = [*self.tokens, "biases"]
        rows = [[names[at], str(at), self._share(self.words[at])] for at in sorted(order)]
        return TextTable.of_rows([["word", "at", "carries"], *rows])

    def _direct(self) -> TextTable:
        """What was written at the answer's own place, the strongest first."""
        heads = self.direct.sum(axis=-1)
        parts = [
            (f"{stack} " * bool(self.sources) + f"{layer}-{head}", heads[index, head])
            for index, (stack, layer) in enumerate(self.cells)
            for head in range(len(self.kinds[index]))
        ]
        blocks = [f"feed-forward {number}" for number in range(len(self.rest) - 2)]
        parts += zip([*blocks, "embedding", "biases"], self.rest, strict=True)
        parts.sort(key=lambda part: -abs(part[1]))
        rows = [["part", "direct"], *([name, self._share(own)] for name, own in parts[:MOST_ROWS])]
        return TextTable.of_rows(rows, says=SAYS)

    def _share(self, amount: float) -> str:
        """As a part of the lead; in logits where that is no measure."""
        if np.isnan(amount):
            return ""
        return f"{amount:+.2f}" if self.lead < LEAD else _percent(amount / self.lead, sign=True)

    def columns(self) -> dict[str, list[Any]]:
        """The links that were cut, the strongest first, in logits."""
        order = np.argsort(-self.strength, kind="stable")
        cells = [self.cells[self.links[at, 0]] for at in order]
        table: dict[str, list[Any]] = {
            "stack": [stack for stack, _ in cells],
            "layer": [layer for _, layer in cells],
        }
        for number, name in enumerate(("head", "query", "key"), 1):
            table[name] = self.links[order, number].tolist()
        table["kind"] = [self.kind_of(at) for at in order]
        for number, name in enumerate(NUMBERS[:4]):
            table[name] = self.numbers[order, number].tolist()
        return table | {"by_later_looking": self.later_looking[order].tolist()}

    def _kept(self) -> Kept:
        document = {name: getattr(self, name) for name in DOCUMENT}
        document["parts"] = [[getattr(part, name) for name in PART] for part in self.parts]
        return document, {name: np.asarray(getattr(self, name)) for name in SHAPES}

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Why:
        count = len(document["tokens"])
        sizes = {"words": count + 1, "layer": len(document["cells"])}
        sizes |= {"link": len(arrays["links"]), "graph": len(arrays["kept"])}
        read: dict[str, Any] = {}
        for name, (kind, axes) in SHAPES.items():
            shape = tuple(int(a) if a.isdecimal() else sizes.get(a) for a in axes.split())
            read[name] = array_of(arrays, name, kind, shape)
        links = read["links"]
        most = np.array([sizes["layer"], read["direct"].shape[1], count, count])
        if (links < 0).any() or (links >= most).any() or not 0 <= document["position"] < count:
            raise RecordError("a link is of no layer, head or token")
        fields = {name: _with_tuples(document[name]) for name in DOCUMENT}
        fields["parts"] = tuple(Part(**dict(zip(PART, of, strict=True))) for of in fields["parts"])
        return cls(**fields, **read)


SHAPES = {
    "links": ("i", "link 4"),
    "numbers": ("f", "link 5"),
    "graphs": ("b", "graph link"),
    "kept": ("f", "graph"),
    "drawn": ("f", "draw graph"),
    "words": ("f", "words"),
    "direct": ("f", "layer head key"),
    "rest": ("f", "part"),
}
"""Kind and axes of the arrays of a file."""


def _percent(share: float, *, sign: bool = False) -> str:
    """A share in two digits; what may be rounding is said to be small."""
    if abs(share) < LEAST:
        return "< 0.1 %" if sign else "0 %"
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{100 * share:{'+' * sign}.{digits}f} %".replace("-", "−")


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
