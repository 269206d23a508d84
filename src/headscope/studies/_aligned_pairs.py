"""Sentences with their translations and word alignments: in files, and as a model reads them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from headscope.errors import FileError, ModelError, RecordError, listed
from headscope.measures.alignment import Link
from headscope.record import Record
from headscope.storage import place_of, read_rows, wrong_field
from headscope.studies.shared._corpus_model import state_of
from headscope.studies.shared._fold import Readers, Reading, facts_of, one_by_one, stack_of
from headscope.studies.shared._source import check_known_texts
from headscope.studies.word_alignment import check_links

LINK = re.compile(r"(\d+)([-p])(\d+)")
FIELDS = ("source", "target", "links")
BETWEEN = "|||"


@dataclass(frozen=True)
class AlignedPair:
    """A sentence, its translation, and which words are translations of each other; words are what
    white space separates, from 0.

    Args:
        source: the sentence.
        target: its translation.
        sure: links that must be found, ``(source word, target word)``.
        possible: links that may be found.
        name: its identifier; by default its number among those that are studied
            together.
        group: the document that it is of; None where nobody says.

    Raises:
        RecordError: where a link names a word that does not exist.

    Example:
        >>> AlignedPair.of("das Haus da", "the house", "0-0 1-1 2p1").possible
        frozenset({(2, 1)})
    """

    source: str
    target: str
    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()
    name: str = ""
    group: Any = None

    def __post_init__(self) -> None:
        check_links(self.sure | self.possible, len(self.source.split()), len(self.target.split()))

    @classmethod
    def of(
        cls, source: str, target: str, links: str, *, name: str = "", first: int = 0
    ) -> AlignedPair:
        """From links as files have them: ``0-1`` is sure, ``0p1`` possible, the source first.

        Args:
            source: the sentence.
            target: its translation.
            links: with white space between them.
            name: see `AlignedPair`.
            first: the number of the first word, 0 or 1.

        Raises:
            RecordError: where a link is written otherwise, or names a word that does not exist.
        """
        by_kind: dict[str, set[Link]] = {"-": set(), "p": set()}
        for each in links.split():
            match = LINK.fullmatch(each)
            if match is None:
                raise RecordError(
                    f"{each!r} is not a link; they are written 0-1 (sure) or 0p1 (possible), from "
                    f"{first}"
                )
            by_kind[match[2]].add((int(match[1]) - first, int(match[3]) - first))
        return cls(source, target, frozenset(by_kind["-"]), frozenset(by_kind["p"]), name)


def read_aligned_pairs(
    path: str | Path, *, first: int = 0, on_error: Callable[[str, FileError], None] | None = None
) -> list[AlignedPair]:
    """The pairs of a file: fields ``source``, ``target`` and ``links`` of .jsonl, .csv, .tsv or
    .parquet.

    A line of .txt is ``source ||| target ||| links``. Links are written ``0-1`` (sure) and ``0p1``
    (possible), the source word first. A field ``group`` names the document of a pair. Each pair is
    named by the file and its row, from 1, so that studies of several files add up.

    Args:
        path: of the file.
        first: the number of a sentence's first word in this file, 0 or 1.
        on_error: is called with the name and error of a row that lacks a field or whose links are
            none: it is left out. By default that is a warning.

    Raises:
        FileError: where the file cannot be read, or none of its rows can.
    """
    path = Path(path)
    pairs: list[AlignedPair] = []
    errors: dict[str, FileError] = {}
    for number, row in enumerate(read_rows(path), 1):
        try:
            pairs.append(_pair(row, number, path, first))
        except FileError as error:
            errors[f"{path.stem}:{number}"] = error
    # Reported at the end: where no row can be read, one error says more than a list of warnings.
    if not pairs:
        raise next(iter(errors.values()))
    for name, error in errors.items():
        if on_error is None:
            warnings.warn(f"{name} was left out: {error}", stacklevel=2)
        else:
            on_error(name, error)
    return pairs


def _pair(row: Mapping[str, Any], number: int, path: Path, first: int) -> AlignedPair:
    """The pair of one row.

    Raises:
        FileError: where it is none.
    """
    where = place_of(row, str(path), number)
    fields = row
    if path.suffix == ".txt":
        parts = [part.strip() for part in row["text"].split(BETWEEN)]
        if len(parts) != len(FIELDS):
            raise FileError(
                f"{where} has {len(parts)} parts; expected: source {BETWEEN} target {BETWEEN} links"
            )
        fields = dict(zip(FIELDS, parts, strict=True))
    for name in FIELDS:
        if not isinstance(fields.get(name), str) or not fields[name].strip():
            raise wrong_field(fields, name, where, f"the fields {', '.join(FIELDS)}, each a string")
    try:
        pair = AlignedPair.of(
            *(fields[name] for name in FIELDS), name=f"{path.stem}:{number}", first=first
        )
        return replace(pair, group=row.get("group"))
    except (RecordError, ValueError) as error:
        # Python refuses to read numbers of thousands of digits with a ValueError.
        raise FileError(f"{where}: {error}") from None


def given_of(pair: AlignedPair) -> dict[str, Any]:
    links = {"sure": sorted(pair.sure), "possible": sorted(pair.possible)}
    return {"source": pair.source, "target": pair.target, "name": pair.name, **links}


def pair_of(given: Mapping[str, Any]) -> AlignedPair:
    sure, possible = (frozenset(map(tuple, given[kind])) for kind in ("sure", "possible"))
    return AlignedPair(given["source"], given["target"], sure, possible, given["name"])


def input_of(pair: AlignedPair, _: Mapping[str, Any]) -> Any:
    """A pair as the model reads it.

    Raises:
        HeadscopeError: where one side is not a text.
    """
    from headscope.capturing import parse_call

    return parse_call(pair.source, None, {"target": pair.target})


def records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Record]]:
    """The record of each pair, which is captured by itself."""
    from headscope.capturing import capture

    model, source = readers
    named, target = how["target_tokenizer"], source
    if named is not None:
        target = _tokenizer(named, state_of(named)) if isinstance(named, str) else named

    def read(_: int, pair: Any) -> Record:
        if reading["max_unknown"] < 1:
            check_known_texts(source, pair.texts, "the sentence")
            check_known_texts(target, filter(None, [pair.decoder_text()]), "the sentence")
        more = {} if named is None else {"target_tokenizer": target}
        with warnings.catch_warnings():
            # Checked above, or allowed.
            warnings.filterwarnings("ignore", message=".* no words that the tokenizer knows")
            return capture(model, source, pair, keep=reading["keep"], **more)

    return one_by_one(given, read, reading, "Aligning")


@lru_cache(maxsize=1)
def _tokenizer(name: str, _: tuple[Any, ...]) -> Any:
    from headscope.capturing import load_tokenizer

    return load_tokenizer(name)


def told_of(record: Record, how: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Length of the source, and what all sentences share."""
    stack = stack_of(record, how["stack"])
    return len(stack.key), facts_of(record, stack)


def check_model(readers: Readers, *_: Any, **__: Any) -> None:
    """Raise where a model does not read one sentence and write another.

    Raises:
        ModelError: naming it.
    """
    from headscope.capturing.facts import display_name
    from headscope.capturing.walk import reads_target

    model = readers[0]
    if not reads_target(model):
        raise ModelError(
            f"{display_name(model)} is not an encoder-decoder; words are aligned by a model that "
            "reads a sentence and writes its translation, such as Helsinki-NLP/opus-mt-de-en"
        )


def parse_pairs(given: Any) -> list[AlignedPair]:
    """The pairs, in a list.

    Raises:
        FileError: where a file of them cannot be read.
        RecordError: where one of them is not a pair.
    """
    if isinstance(given, str | Path):
        return read_aligned_pairs(given)
    pairs = listed(given, "a file, or a list of AlignedPair")
    for each in pairs:
        if not isinstance(each, AlignedPair):
            raise RecordError(f"Expected a list of AlignedPair, and one is {repr(each)[:60]}")
    return pairs
