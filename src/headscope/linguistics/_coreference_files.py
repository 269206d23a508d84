"""Readers of texts with mentions: LitBank, GAP, WinoBias, Winogender."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from headscope.errors import FileError, HeadscopeError
from headscope.linguistics.mentions import PRONOUNS, Mention, Passage, Question, order_of
from headscope.linguistics.words import Span
from headscope.storage import reading

LITBANK_KINDS = {"PRON": "pronoun", "PROP": "proper", "NOM": "nominal"}
GAP_FIELDS = (
    "ID",
    "Text",
    "Pronoun",
    "Pronoun-offset",
    "A",
    "A-offset",
    "A-coref",
    "B",
    "B-offset",
    "B-coref",
)
WORD = re.compile(r"\w+|[^\w\s]")
BRACKETS = re.compile(r"\[([^\[\]]+)\]")
FORMATS = (
    "LitBank (.ann beside .txt, or their folder), GAP and Winogender (.tsv), WinoBias (.txt with "
    "[brackets])"
)


def read_coreference(
    path: str | os.PathLike[str], *, window: int = 128, every_window: bool = False
) -> tuple[Passage, ...]:
    """Read texts with mentions; the format is told from the file.

    LitBank: documents are cut into windows, mentions that leave their window are left out; mentions
    without an entity (appositions and the like) are candidates, too. GAP: pronoun, A and B;
    questions without an answer are left out. WinoBias: the candidates are a bracketed entity and
    every other noun that is bracketed elsewhere in the file. Winogender: occupation and
    participant. Sentences of one pair (WinoBias), or of one occupation (Winogender), are one
    document: they are no independent evidence.

    Args:
        path: a file, or a folder of LitBank's.
        window: how many words a window of LitBank has.
        every_window: whether to take every window, or the first of each document.

    Raises:
        FileError: where the file cannot be read or is malformed, with the line and the reason.

    Example:
        >>> len(read_coreference("litbank/coref/tsv"))
        100
    """
    path = Path(path)
    if window < 1:
        raise FileError(f"A window of {window} words has none")
    if path.is_dir():
        files = sorted(path.glob("*.ann"))
        if not files:
            raise FileError(
                f"The folder {path} has no .ann files; texts with mentions are {FORMATS}"
            )
        return tuple(each for file in files for each in _annotated(file, window, every_window))
    if path.suffix == ".ann":
        return _annotated(path, window, every_window)
    lines = _lines(path)
    with reading(path, "texts with mentions"):
        if path.suffix == ".tsv" and lines and lines[0].startswith("ID\tText\tPronoun"):
            found = tuple(_gap(path, lines))
        elif path.suffix == ".tsv" and lines and lines[0].startswith("sentid\t"):
            found = tuple(_winogender(path, lines))
        elif any(BRACKETS.search(line) for line in lines):
            found = tuple(_winobias(path, lines))
        else:
            raise FileError(f"{path} is none of {FORMATS}")
    if not found:
        raise FileError(f"{path} holds no question that has an answer")
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise FileError(f"{path} is not there") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path} cannot be read: {error}") from None


def _joined(words: Iterable[str]) -> tuple[str, tuple[Span, ...]]:
    spans, start = [], 0
    listed = list(words)
    for word in listed:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(listed), tuple(spans)


def _annotated(path: Path, window: int, every_window: bool) -> tuple[Passage, ...]:
    with reading(path, "texts with mentions"):
        return tuple(_litbank(path, window, every_window))


def _litbank(path: Path, window: int, every_window: bool) -> Iterator[Passage]:
    sentences = [line.split() for line in _lines(path.with_suffix(".txt"))]
    starts = [0]
    for sentence in sentences:
        starts.append(starts[-1] + len(sentence))
    words = [word for sentence in sentences for word in sentence]
    rows = [
        (number, line.split("\t")) for number, line in enumerate(_lines(path), 1) if line.strip()
    ]
    entities = {row[1]: row[2] for _, row in rows if row[0] == "COREF" and len(row) > 2}
    mentions = []
    for number, row in rows:
        if row[0] != "MENTION":
            continue
        try:
            first, last = (starts[int(row[place])] + int(row[place + 1]) for place in (2, 4))
            mentions.append(
                Mention(
                    start=first,
                    stop=last + 1,
                    entity=entities.get(row[1]),
                    kind=LITBANK_KINDS[row[8]],
                )
            )
        except (HeadscopeError, ValueError, IndexError, KeyError) as error:
            raise FileError(f"{path}, line {number}: no mention of LitBank's, {error!r}") from None
    for begin in range(0, len(words) if every_window else 1, window):
        end = min(begin + window, len(words))
        inside = [each for each in mentions if begin <= each.start and each.stop <= end]
        moved = [
            Mention(
                start=each.start - begin, stop=each.stop - begin, entity=each.entity, kind=each.kind
            )
            for each in inside
        ]
        text, spans = _joined(words[begin:end])
        name = f"{path.stem} {begin}" if every_window else path.stem
        yield Passage(name=name, text=text, spans=spans, mentions=tuple(moved), document=path.stem)


def _gap(path: Path, lines: list[str]) -> Iterator[Passage]:
    for number, row in enumerate(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), 2):
        if any(row.get(name) is None for name in GAP_FIELDS):
            raise FileError(
                f"{path}, line {number}: wanted are the columns {', '.join(GAP_FIELDS)}"
            )
        text, right = row["Text"], {side: row[f"{side}-coref"] == "TRUE" for side in "AB"}
        if not any(right.values()):
            continue
        places = {}
        for name in ("Pronoun", "A", "B"):
            start = int(row[f"{name}-offset"]) if row[f"{name}-offset"].isdigit() else -1
            if start < 0 or not text.startswith(row[name], start):
                raise FileError(
                    f"{path}, line {number}: {row[name]!r} is not at character "
                    f"{row[f'{name}-offset']}"
                )
            places[name] = (start, start + len(row[name]))
        yield _asking(row["ID"], text, places, right, kind="proper")


def _winogender(path: Path, lines: list[str]) -> Iterator[Passage]:
    for number, line in enumerate(lines[1:], 2):
        parts = line.split("\t")
        facts = parts[0].split(".")
        if len(parts) != 2 or len(facts) != 5 or facts[2] not in ("0", "1"):
            raise FileError(
                f"{path}, line {number}: wanted are occupation.participant.answer.gender.txt, a "
                "tab and the sentence"
            )
        text = parts[1]
        found = [match.span() for match in WORD.finditer(text) if match.group().lower() in PRONOUNS]
        pronouns = [span for span in found if text[slice(*span)].lower() != "it"]
        first, second = (_noun(text, name) for name in facts[:2])
        if len(pronouns) != 1 or first is None or second is None:
            raise FileError(
                f"{path}, line {number}: {facts[0]!r}, {facts[1]!r} and one pronoun are not all "
                f"in {text!r}"
            )
        places = {"Pronoun": pronouns[0], "A": first, "B": second}
        right = {"A": facts[2] == "0", "B": facts[2] == "1"}
        told = {"document": facts[0], "group": facts[3]}
        yield _asking(parts[0].removesuffix(".txt"), text, places, right, kind="nominal", **told)


def _winobias(path: Path, lines: list[str]) -> Iterator[Passage]:
    lines = [re.sub(r"^\d+ ", "", line) for line in lines]
    marked = [list(BRACKETS.finditer(line)) for line in lines]
    nouns = {
        _bare(each.group(1))
        for matches in marked
        for each in matches
        if each.group(1).lower() not in PRONOUNS
    }
    for number, (line, matches) in enumerate(zip(lines, marked, strict=True), 1):
        if not line.strip():
            continue
        text = BRACKETS.sub(r"\1", line)
        # every bracket before a place moves it one to the left
        places = [
            (each.start(1) - 1 - 2 * turn, each.end(1) - 1 - 2 * turn)
            for turn, each in enumerate(matches)
        ]
        pronouns = [span for span in places if text[slice(*span)].lower() in PRONOUNS]
        bracketed = [span for span in places if span not in pronouns]
        others = [span for noun in nouns if (span := _noun(text, noun)) is not None]
        others = [span for span in others if not any(_overlap(span, each) for each in places)]
        others = [
            span
            for span in others
            if not any(_within(span, each) for each in others if each != span)
        ]
        if not pronouns or len(bracketed) != 1 or not others:
            raise FileError(
                f"{path}, line {number}: wanted are one entity and a pronoun in brackets and "
                f"another entity, given is {line!r}"
            )
        candidates = [(bracketed[0], True), *((span, False) for span in others)]
        # two lines make a pair that differs in what the pronoun means
        pair = f"{path.stem}, pair {(number + 1) // 2}"
        yield _passage(
            f"{path.stem} {number}", text, pronouns, candidates, kind="nominal", document=pair
        )


def _asking(
    name: str, text: str, places: dict[str, Span], right: dict[str, bool], *, kind: str, **told: str
) -> Passage:
    """One pronoun, and A and B to choose from."""
    candidates = [(places[side], right[side]) for side in "AB"]
    return _passage(name, text, [places["Pronoun"]], candidates, kind=kind, **told)


def _passage(
    name: str,
    text: str,
    pronouns: list[Span],
    candidates: list[tuple[Span, bool]],
    *,
    kind: str,
    **known: str,
) -> Passage:
    every = [*pronouns, *(span for span, _ in candidates)]
    cuts = {place for span in every for place in span}
    spans = tuple(part for match in WORD.finditer(text) for part in _cut(match.span(), cuts))

    def mention(span: Span, entity: str | None, kind: str) -> Mention:
        inside = [
            number
            for number, (start, stop) in enumerate(spans)
            if start >= span[0] and stop <= span[1]
        ]
        return Mention(start=inside[0], stop=inside[-1] + 1, entity=entity, kind=kind)

    told = [(mention(span, "asked" if right else None, kind), right) for span, right in candidates]
    told.sort(key=lambda each: order_of(each[0]))
    asking = [mention(span, "asked", "pronoun") for span in pronouns]
    others, right = tuple(other for other, _ in told), tuple(right for _, right in told)
    questions = tuple(
        Question(
            mention=each,
            candidates=others,
            right=right,
            by_start=True,
        )
        for each in asking
    )
    mentions = (*(other for other, _ in told), *asking)
    return Passage(
        name=name, text=text, spans=spans, mentions=mentions, questions=questions, **known
    )


def _cut(span: Span, cuts: set[int]) -> Iterator[Span]:
    start, stop = span
    for place in sorted(each for each in cuts if start < each < stop):
        yield start, place
        start = place
    yield start, stop


def _bare(noun: str) -> str:
    """Without its article."""
    return re.sub(r"^(?:the|an?)\s+", "", noun.lower())


def _noun(text: str, noun: str) -> Span | None:
    """Where a noun is, its article included."""
    found = re.search(rf"\b(?:(?:the|an?)\s+)?{re.escape(noun)}\b", text, re.IGNORECASE)
    return None if found is None else found.span()


def _overlap(span: Span, other: Span) -> bool:
    return span[0] < other[1] and other[0] < span[1]


def _within(span: Span, other: Span) -> bool:
    return other[0] <= span[0] and span[1] <= other[1]


def source_name(path: str | os.PathLike[str]) -> str:
    """What a file or folder is called in results; a folder's name alone says too little.

    Args:
        path: of the file or folder; it need not be there.

    Example:
        >>> source_name("data/gap-development.tsv")
        'gap-development'
    """
    path = Path(path).resolve()
    return f"{path.parent.name}/{path.name}" if path.is_dir() else path.stem
