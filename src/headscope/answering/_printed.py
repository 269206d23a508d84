"""The words and tables of an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from headscope.answering._looked import REST
from headscope.results import TextTable

LOOKS = 1.25
"""An answer looked at a part that got this many times what its length gives; ours."""
HEAD_LOOKS = 0.3
"""Least share of a head that is named in the sentence; ours."""
POWER = 1.1
"""A part was needed where less than half of the answer's probability to this power is left: cuts
move an improbable answer by some nats whatever it says; ours."""
NAMED = 5
"""Parts in a sentence, at most."""
MOST_ROWS = 24
"""Parts in the printed table."""
SAYS = {
    "looked": "share of the {shares} of the rows that wrote the words, mean over {heads}",
    "even": "the same, were each row even over all tokens it sees",
    "lift": "looked over even, among the candidates",
    "head": "the head that looks at the part most, and its share",
    "without": "probability of the answer with the part {gone}",
    "alone": "the same with all other candidates {gone}",
    "share": "part of the {shares} of the rows that wrote the word that falls on pictures",
    "sinks": "part of the share that sinks have",
    "most at": "row and column of the patch with most attention, sinks left out",
}
SHARES = {"weight": "attention", "norm": "norms of contributions", "alti": "ALTI"}
"""What shares are of, by quantity."""
BY = {
    "cut": ("cut off", "nothing behind a part looks at it"),
    "direct": ("cut from the answer only", "the rows that write the answer do not look at it"),
    "delete": ("deleted", "its tokens are left out, and those behind it move up"),
    "replace": ("replaced by its tokens in random order", "the others stay where they are"),
}
"""What is done to a part, and how."""


class AnswerWord(NamedTuple):
    """A word, a mark of punctuation or a character of an answer.

    Args:
        text: as it is written.
        tokens: the tokens that it was written as, counted from the first one written.
    """

    text: str
    tokens: tuple[int, ...]


class Verdict(NamedTuple):
    """What an answer needed.

    Args:
        needs: ``"none"`` of the candidates; ``"parts"``, each of which it cannot do without;
            ``"any"`` of several, each of which is enough alone; ``"several"`` together; or ``""``
            where nothing was cut.
        parts: numbers of those that are meant.
    """

    needs: str
    parts: tuple[int, ...]


class PartNumbers(NamedTuple):
    """What is printed and drawn of one part.

    Args:
        looked: share of the attention.
        even: the same, were each row even over the tokens it sees.
        lift: see `Answer.lift`; NaN for a part that is not compared.
        without: logarithm of the answer's probability with the part cut off; NaN where it was not.
        alone: the same with all other candidates cut off.
        whole: the same with nothing cut.
        none: the same with all candidates cut off.
        lost: part of the probability that is lost without it, from 0 to 1; NaN where it was not
            cut.
        is_enough: whether no single candidate is needed, and this one is enough alone.
    """

    looked: float
    even: float
    lift: float
    without: float
    alone: float
    whole: float
    none: float
    lost: float
    is_enough: bool

    @property
    def due(self) -> float:
        """Share that its length gives among the candidates; of another part among all tokens."""
        return self.looked / self.lift if self.lift > 0 else self.even

    @property
    def looked_in_words(self) -> str:
        """Its share, and how many times what its length gives."""
        if not self.even:
            return "not visible"
        return _share(self.looked) + ("" if math.isnan(self.lift) else f" · {self.lift:.1f} x")

    @property
    def needed_in_words(self) -> str:
        """Probabilities with it and without it, or with it alone."""
        if self.is_enough:
            return f"alone: {_odds(self.alone, self.whole)}"
        if math.isnan(self.lost) or self.lost < 0.01:
            return "" if math.isnan(self.lost) else "as probable"
        return f"{_odds(self.whole)} → {_odds(self.without, self.whole)}"


def sentences_of(answer: Any) -> list[str]:
    """What an answer needed and looked at.

    Args:
        answer: a `headscope.answering.Answer`.
    """
    if not answer.words:
        told = f"answered “{answer.text.strip()}”. There is no word in it"
        return [f"{answer.model} {told if answer.text.strip() else 'wrote nothing'}."]
    parts = [_needed(answer)]
    if answer.candidates:
        parts.append(_looked(answer))
    if answer.shown:
        parts += [_of_pictures(answer), sinks_in_words(answer)]
    return [part.replace("< 0.1 %", "less than 0.1 %") for part in parts]


def _needed(answer: Any) -> str:
    """What was needed, with the probabilities that show it."""
    name, (needs, numbers) = f"“{answer.text.strip()}”", answer.verdict
    if not needs:
        asked = shorten(answer.question, 120, placeholder=" ...")
        return f"Asked “{asked}”, {answer.model} answered {name}."
    rows, kinds, count = answer.part_numbers(), _kinds(answer), len(answer.candidates)
    parts = [_name(answer.parts[number]) for number in numbers or answer.candidates]
    named, each = _and(parts), _it(parts[0]) if len(parts) == 1 else "each of them"
    whole, none, gone = _odds(rows[0].whole), _odds(rows[0].none, rows[0].whole), answer.gone
    falls = f"its probability falls from {whole} to"
    lost = _and([_odds(rows[number].without, rows[number].whole) for number in numbers])
    enough = f"needed no single one of the {kinds}, but one of {named}: each alone is enough"
    if len(parts) == 1:
        enough = f"can do without any single one of the {kinds}, and {named} alone is enough"
    spared = f"needed none of the {count} {kinds}: with all of them"
    spared = spared if count > 1 else f"did not need {named}: with {each}"
    told = {
        "none": f"{spared} {gone}, its probability goes from {whole} to {none}",
        "parts": f"needed {named}: with {each} {gone}, {falls} {lost}",
        "any": f"{enough}. With all {kinds} {gone}, {falls} {none}",
        "several": f"needed several {kinds} together: without any one of them it stays, and none "
        f"alone is enough. With all {kinds} {gone}, {falls} {none}",
    }[needs]
    return f"{name} {told}."


def _looked(answer: Any) -> str:
    """The candidate that was looked at most for its length, and the head that looks most at what
    was needed.
    """
    top, targets = answer.looks_at, answer.targets
    among = f"among the {_kinds(answer)} " if len(answer.candidates) > 1 else ""
    over = "Over" if answer.quantity == "weight" else f"By {SHARES[answer.quantity]}, over"
    where = f"{over} {heads_in_words(answer).removesuffix(' of all layers')}"
    told = f"{where} it looked at none much more than its length {among}gives"
    if top is not None:
        lift = f"{answer.lift()[top]:.1f} times as much as its length {among}gives"
        told = f"{where} it looked at {_name(answer.parts[top])} most, {lift}"
    if targets and not answer.heads_given:
        (layer, head), share, lift = _best_head(answer, targets)
        if share >= HEAD_LOOKS and lift >= LOOKS:
            names = [_name(answer.parts[at]) for at in targets]
            to = _it(names[0]) if targets == (top,) else _and(names)
            one = f"layer {layer}" if answer.quantity == "alti" else f"head {layer}-{head}"
            told += f"; {one} gives {to} {_share(share)}" + " together" * (len(targets) > 1)
    return f"{told}."


def _best_head(answer: Any, parts: Sequence[int]) -> tuple[tuple[int, int], float, float]:
    """Layer and head of the one that gives most attention to some candidates together, its share,
    and its lift.
    """
    some, even = list(parts), answer.even_share()[list(parts)]
    shares = answer.head_shares()[some].sum(axis=0)
    layer, head = np.unravel_index(np.nanargmax(shares), shares.shape)
    lift = np.nan_to_num(answer.head_lift()[some, layer, head]) @ even / max(even.sum(), 1e-12)
    return (answer.layers[layer], int(head)), float(shares[layer, head]), float(lift)


def _of_pictures(answer: Any) -> str:
    """How much attention the pictures got."""
    shares, even, seen = answer.word_shares, answer.word_even, answer.media
    told = (
        f"Its words gave {_percent(shares.mean())} of their {SHARES[answer.quantity]} to the "
        f"{seen} ({heads_in_words(answer)}; even attention would give {_percent(even.mean())})"
    )
    if len(answer.words) > 1:
        most = int(shares.argmax())
        told += f", most for “{answer.words[most].text}” ({_percent(shares[most])})"
    return f"{told}."


def _name(part: Any) -> str:
    return f"the {part.name}" if part.name == part.kind else part.name


def _it(name: str) -> str:
    return "them" if name.partition(" ")[0] in ("frames", "seconds", "steps") else "it"


def _says(answer: Any) -> dict[str, str]:
    """What the columns are, of the quantity that was measured."""
    named = {"shares": answer.shares_of, "heads": answer.mean_of, "gone": answer.gone}
    return {name: text.format(**named) for name, text in SAYS.items()}


def _kinds(answer: Any) -> str:
    kinds = {answer.parts[number].kind for number in answer.candidates}
    return f"{kinds.pop()}s" if len(kinds) == 1 else "parts"


def blocks_of(answer: Any) -> list[TextTable | str]:
    """Tables and notes of an answer, in the order in which they are printed.

    Args:
        answer: a `headscope.answering.Answer`.
    """
    if not answer.words:
        return []
    blocks: list[TextTable | str] = [_parts_table(answer)]
    if answer.shown:
        blocks.append(_words_table(answer))
    if answer.shown and answer.given not in (0, len(answer.grids)):  # 0 of a video
        blocks.append(
            f"{answer.given} picture{'s' * (answer.given > 1)} given; the model read "
            f"{len(answer.grids)} (crops)"
        )
    return [*blocks, _notes(answer)]


def _names_heads(answer: Any) -> bool:
    """Whether heads are chosen on the answer itself."""
    return bool(answer.candidates) and not answer.heads_given and answer.quantity != "alti"


def _parts_table(answer: Any) -> TextTable:
    numbers, heads, need = answer.part_numbers(), _names_heads(answer), bool(answer.need)
    rows = [["part", "tokens", "looked", "even", "lift"]]
    rows[0] += ["head"] * heads + ["without", "alone"] * need
    for at in answer.foremost(MOST_ROWS):
        each, part = numbers[at], answer.parts[at]
        looked = _share(each.looked) if each.even else "not visible"
        row = ["  " * part.level + part.name, str(len(part.tokens)), looked, _share(each.even)]
        if at in answer.candidates:
            (layer, head), share, _ = _best_head(answer, [at])
            row += [f"{each.lift:.2f}", *[f"{layer}-{head} {_share(share)}"] * heads]
            cut = (each.without, each.alone)
            row += [_odds(logarithm, each.whole) for logarithm in cut] * need
        rows.append(row)
    looked, even = answer.looked(), answer.even_share()
    for at, name in enumerate(REST, len(answer.parts)):
        if even[at]:
            rows.append([name, "", _share(looked[at]), _share(even[at])])
    filled = [row + [""] * (len(rows[0]) - len(row)) for row in rows]
    return TextTable.of_rows(filled, says=_says(answer), align="right")


def _words_table(answer: Any) -> TextTable:
    rows: list[Sequence[str]] = [("word", "probability", "share", "even", "sinks", "most at")]
    # The patch with most attention, sinks left out where that was asked for.
    values = np.where(np.isnan(answer.values()), -1.0, answer.values())
    for at, word in enumerate(answer.words):
        most = int(values[at].argmax())
        place = "r{}c{}".format(*answer.places[most])
        part = answer.parts[answer.shown[answer.picture_of[most]]]
        place = f"{part.name} " * (len(answer.grids) > 1) + place
        shares = (answer.word_shares[at], answer.word_even[at], answer.word_sinks[at])
        odds = f"{answer.word_probabilities[at]:.2f}"
        rows.append((word.text, odds, *map(_percent, shares), place))
    return TextTable.of_rows(rows, says=_says(answer), align="right")


def _notes(answer: Any) -> str:
    notes = []
    if answer.need:
        by = {"": "", "hidden keys": "; by hidden keys, which equals Cut in every layer"}
        apart = "" if answer.checked is None else f" (hidden keys: {answer.checked:.2g} apart)"
        gone, how = BY[answer.need]
        how += by.get(answer.by, f"; by Cut{apart}")
        whole = f"Whole: P = {_odds(answer.part_numbers()[0].whole)}"
        needed = f"Needed: less than about half of P is left (P^{POWER} / 2)"
        notes.append(f"{gone.capitalize()}: {how}. {whole}. {needed}.")
    if answer.sampled:
        notes.append(f"The answer was sampled; its tokens are forced with parts {answer.gone}.")
    if _names_heads(answer):
        notes.append("Heads are chosen on this answer; choose them on others: hs.answers.")
    if len(answer.parts) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(answer.parts)} parts; all: to_pandas().")
    return "\n".join(notes)


def heads_in_words(answer: Any) -> str:
    """Which heads the numbers of an answer are the mean of."""
    layers = sorted({layer for layer, _ in answer.chosen})
    there = np.isfinite(answer.shares).all(axis=(0, -1)).sum(axis=-1)
    count = sum(int(there[answer.layers.index(layer)]) for layer in layers)
    if len(answer.chosen) == count:
        some = f"layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"
        some = "all layers" if len(layers) == len(answer.layers) else some
        return some if answer.quantity == "alti" else f"all heads of {some}"
    named = [f"{layer}-{head}" for layer, head in answer.chosen]
    return f"head{'s' * (len(named) > 1)} {', '.join(named)}"


def sinks_in_words(answer: Any) -> str:
    """How many patches are sinks, what they had, and whether they are left out."""
    count = int(answer.is_sink.sum())
    if not count:
        return "No patch is a sink."
    had = _percent(answer.word_attention[:, answer.is_sink].sum() / answer.word_shares.sum())
    done = "kept" if answer.keep_sinks else "left out"
    patches, are = ("patch", "is a sink") if count == 1 else ("patches", "are sinks")
    on = f"{had} of the {SHARES[answer.quantity]} on the {answer.media}, {done}"
    return f"{count} {patches} of {len(answer.places)} {are} with {on}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _share(share: float) -> str:
    """A share in two digits."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def _odds(logarithm: float, whole: float = 0.0) -> str:
    """A probability as it is read: 98 %, 3.2 %, < 0.1 %; where the whole is less than that, as a
    part of it.
    """
    if whole < math.log(0.001):
        times = math.exp(min(logarithm - whole, 700.0))
        return f"{times:.2g} {'times that' if times > 1 else 'of it'}"
    return "< 0.1 %" if logarithm < math.log(0.001) else _share(math.exp(logarithm))


def _and(names: Sequence[str]) -> str:
    names = [*names[:NAMED], f"{len(names) - NAMED} more"] if len(names) > NAMED else names
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
