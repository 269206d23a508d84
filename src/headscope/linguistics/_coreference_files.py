"""Readers of texts with mentions: LitBank, GAP, WinoBias, Winogender."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from headscope.errors import FileError, HeadscopeError
from headscope.linguistics.mentions import PRONOUNS, Mention, Passage, Question, order_of
from headscope.linguistics.words import Span, read_whole, spans_of
from headscope.storage import reading

LITBANK_KINDS = {"PRON": "pronoun", "PROP": "proper", "NOM": "nominal"}
OF_NAME = [f"{side}{fact}" for side in "AB" for fact in ("", "-offset", "-coref")]
GAP_FIELDS = ("ID", "Text", "Pronoun", "Pronoun-offset", *OF_NAME)
WORD = re.compile(r"\w+|[^\w\s]")
BRACKETS = re.compile(r"\[([^\[\]]+)\]")
FORMATS = (
    "LitBank (.ann next to .txt, or their folder), GAP and Winogender (.tsv), WinoBias (.txt with "
    "[brackets])"
)


def read_coreference(
    path: str | os.PathLike[str], *, window: int = 128, every_window: bool = False
) -> tuple[Passage, ...]:
    """Read texts with mentions; the format is detected from the file.

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
    passages: list[Passage] = []
    if path.is_dir() or path.suffix == ".ann":
        files = sorted(path.glob("*.ann")) if path.is_dir() else [path]
        if not files:
            raise FileError(
                f"The folder {path} has no .ann files; texts with mentions are {FORMATS}"
            )
        for file in files:
            with reading(file, "texts with mentions"):
                passages += _litbank(file, window, every_window)
        return tuple(passages)
    lines = read_whole(path).splitlines()
    read = _reader_of(path, lines)
    with reading(path, "texts with mentions"):
        passages += read(path, lines)
    if not passages:
        raise FileError(f"{path} holds no question that has an answer")
    return tuple(passages)


def _reader_of(path: Path, lines: list[str]) -> Callable[[Path, list[str]], Iterator[Passage]]:
    """The reader of a file's format, which the first line of a table tells."""
    header = lines[0] if lines and path.suffix == ".tsv" else ""
    if header.startswith("ID\tText\tPronoun"):
        return _gap
    if header.startswith("sentid\t"):
        return _winogender
    if any(BRACKETS.search(line) for line in lines):
        return _winobias
    raise FileError(f"{path} is none of {FORMATS}")


def _litbank(path: Path, window: int, every_window: bool) -> Iterator[Passage]:
    words: list[str] = []
    starts = [0]  # of every sentence, in words of the document
    for line in read_whole(path.with_suffix(".txt")).splitlines():
        words += line.split()
        starts.append(len(words))
    mentions = _litbank_mentions(path, starts)
    for begin in range(0, len(words) if every_window else 1, window):
        own = words[begin : begin + window]
        inside = [
            replace(each, start=each.start - begin, stop=each.stop - begin)
            for each in mentions
            if begin <= each.start and each.stop <= begin + len(own)
        ]
        name, spans = f"{path.stem} {begin}" if every_window else path.stem, spans_of(own)
        yield Passage(
            name=name, text=" ".join(own), spans=spans, mentions=tuple(inside), document=path.stem
        )


def _litbank_mentions(path: Path, starts: list[int]) -> list[Mention]:
    """The mentions of an annotation file, by the words of the whole document."""
    rows = []
    # COREF rows follow the mentions that they speak of, so all of them are read first.
    entities = {}
    for number, line in enumerate(read_whole(path).splitlines(), 1):
        row = line.split("\t")
        if row[0] == "MENTION":
            rows.append((number, row))
        elif row[0] == "COREF" and len(row) > 2:
            entities[row[1]] = row[2]
    mentions = []
    for number, row in rows:
        try:
            # Columns 2 and 3 are the sentence of the first word and its place there, 4 and 5 those
            # of the last word, which is part of the mention.
            start, last = (starts[int(row[at])] + int(row[at + 1]) for at in (2, 4))
            known = {"entity": entities.get(row[1]), "kind": LITBANK_KINDS[row[8]]}
            mentions.append(Mention(start=start, stop=last + 1, **known))
        except (HeadscopeError, ValueError, IndexError, KeyError) as error:
            raise FileError(f"{path}, line {number}: no mention of LitBank's, {error!r}") from None
    return mentions


def _gap(path: Path, lines: list[str]) -> Iterator[Passage]:
    # Texts of GAP hold unpaired quotation marks; a reader that minds them would swallow lines.
    names = lines[0].split("\t") if lines else []
    for number, line in enumerate(lines[1:], 2):
        row = dict(zip(names, line.split("\t"), strict=False))
        if any(row.get(name) is None for name in GAP_FIELDS):
            raise FileError(f"{path}, line {number}: expected the columns {', '.join(GAP_FIELDS)}")
        text, right = row["Text"], {side: row[f"{side}-coref"] == "TRUE" for side in "AB"}
        if not any(right.values()):
            continue
        spans = {}
        for name in ("Pronoun", "A", "B"):
            # Offsets count characters, not bytes, so the name must stand there to the letter.
            start = int(row[f"{name}-offset"]) if row[f"{name}-offset"].isdigit() else -1
            if start < 0 or not text.startswith(row[name], start):
                raise FileError(
                    f"{path}, line {number}: {row[name]!r} is not at character "
                    f"{row[f'{name}-offset']}"
                )
            spans[name] = (start, start + len(row[name]))
        yield _asking(row["ID"], text, spans, right, kind="proper")


def _winogender(path: Path, lines: list[str]) -> Iterator[Passage]:
    for number, line in enumerate(lines[1:], 2):
        parts = line.split("\t")
        facts = parts[0].split(".")
        if len(parts) != 2 or len(facts) != 5 or facts[2] not in ("0", "1"):
            raise FileError(
                f"{path}, line {number}: expected occupation.participant.answer.gender.txt, a "
                "tab and the sentence"
            )
        text = parts[1]
        # The question is always about he, she or they; an "it" in the sentence means a thing.
        asking = PRONOUNS.keys() - {"it"}
        pronouns = [each.span() for each in WORD.finditer(text) if each[0].lower() in asking]
        first, second = _noun(text, facts[0]), _noun(text, facts[1])
        if len(pronouns) != 1 or first is None or second is None:
            raise FileError(
                f"{path}, line {number}: {facts[0]!r}, {facts[1]!r} and one pronoun are not all "
                f"in {text!r}"
            )
        spans = {"Pronoun": pronouns[0], "A": first, "B": second}
        right = {"A": facts[2] == "0", "B": facts[2] == "1"}
        known = {"document": facts[0], "group": facts[3]}
        yield _asking(parts[0].removesuffix(".txt"), text, spans, right, kind="nominal", **known)


def _winobias(path: Path, lines: list[str]) -> Iterator[Passage]:
    # Lines of the release are numbered, "1 The developer argued ...".
    lines = [re.sub(r"^\d+ ", "", line) for line in lines]
    inside = [match[1].lower() for line in lines for match in BRACKETS.finditer(line)]
    # What stands in brackets anywhere in the file and is no pronoun, without its article.
    nouns = {re.sub(r"^(?:the|an?)\s+", "", noun) for noun in inside if noun not in PRONOUNS}
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _winobias_passage(path, number, line, nouns)


def _winobias_passage(path: Path, number: int, line: str, nouns: set[str]) -> Passage:
    text, spans = BRACKETS.sub(r"\1", line), []
    for before, match in enumerate(BRACKETS.finditer(line)):
        # Two brackets of every pair before it, and the one that opens its own, are gone.
        moved = 2 * before + 1
        spans.append((match.start(1) - moved, match.end(1) - moved))
    pronouns = [span for span in spans if text[slice(*span)].lower() in PRONOUNS]
    bracketed = [span for span in spans if span not in pronouns]
    others = _nouns(text, nouns, spans)
    if not pronouns or len(bracketed) != 1 or not others:
        raise FileError(
            f"{path}, line {number}: expected one entity and a pronoun in brackets and "
            f"another entity, given is {line!r}"
        )
    candidates = [(bracketed[0], True), *((span, False) for span in others)]
    # Two lines make a pair that differs in what the pronoun means.
    pair = f"{path.stem}, pair {(number + 1) // 2}"
    name = f"{path.stem} {number}"
    return _passage(name, text, pronouns, candidates, kind="nominal", document=pair)


def _nouns(text: str, nouns: set[str], bracketed: list[Span]) -> list[Span]:
    """Where nouns of the file stand in a text, outside of what is bracketed there."""
    others: list[Span] = []
    spans = filter(None, (_noun(text, noun) for noun in nouns))
    # Of "construction worker" and "worker" only the longer one is an entity of the sentence.
    for span in sorted(spans, key=lambda each: each[0] - each[1]):
        if all(span[1] <= start or stop <= span[0] for start, stop in bracketed + others):
            others.append(span)
    return others


def _asking(
    name: str, text: str, spans: dict[str, Span], right: dict[str, bool], *, kind: str, **known: str
) -> Passage:
    """One pronoun, and A and B to choose from."""
    candidates = [(spans[side], right[side]) for side in "AB"]
    return _passage(name, text, [spans["Pronoun"]], candidates, kind=kind, **known)


def _passage(
    name: str,
    text: str,
    pronouns: list[Span],
    candidates: list[tuple[Span, bool]],
    *,
    kind: str,
    **known: str,
) -> Passage:
    spans: list[Span] = []
    # Words are cut at the ends of mentions, so that each mention is made of whole words.
    ends = np.ravel([*pronouns, *(span for span, _ in candidates)]).tolist()
    for start, stop in pairwise(sorted({0, *ends, len(text)})):
        spans += [match.span() for match in WORD.finditer(text, start, stop)]
    mentions = []
    for span, right in candidates:
        mentions.append((_mention(spans, span, "asked" if right else None, kind), right))
    # A Question wants its candidates in this order, so that of equal ones the last is taken.
    mentions.sort(key=lambda each: order_of(each[0]))
    others = tuple(mention for mention, _ in mentions)
    answers = tuple(right for _, right in mentions)
    asking = [_mention(spans, span, "asked", "pronoun") for span in pronouns]
    questions = tuple(
        Question(mention=each, candidates=others, right=answers, by_start=True) for each in asking
    )
    return Passage(
        name=name,
        text=text,
        spans=tuple(spans),
        mentions=(*others, *asking),
        questions=questions,
        **known,
    )


def _mention(spans: list[Span], span: Span, entity: str | None, kind: str) -> Mention:
    """The mention that stands at some characters of a text, by the words there."""
    inside = []
    for number, (start, stop) in enumerate(spans):
        if span[0] <= start and stop <= span[1]:
            inside.append(number)
    return Mention(start=inside[0], stop=inside[-1] + 1, entity=entity, kind=kind)


def _noun(text: str, noun: str) -> Span | None:
    """Where a noun is, its article included."""
    match = re.search(rf"\b(?:(?:the|an?)\s+)?{re.escape(noun)}\b", text, re.IGNORECASE)
    return None if match is None else match.span()


def source_name(
    path: str | os.PathLike[str], *, window: int = 128, every_window: bool = False
) -> str:
    """What a file or folder is called in results; a folder's name alone is too short, and of
    LitBank only a part is read by default.

    Args:
        path: of the file or folder; it need not be there.
        window: see `read_coreference`.
        every_window: see `read_coreference`.

    Example:
        >>> source_name("data/gap-development.tsv")
        'gap-development'
    """
    path = Path(path).resolve()
    name = f"{path.parent.name}/{path.name}" if path.is_dir() else path.stem
    is_cut = (path.is_dir() or path.suffix == ".ann") and not every_window
    return f"{name} (first {window} words of each text)" if is_cut else name
