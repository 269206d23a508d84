"""Treebanks: sentences whose words know their heads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from headscope.errors import FileError, HeadscopeError, RecordError, TextError
from headscope.linguistics.trees import tree_depths
from headscope.linguistics.words import Span, read_whole, spans_of
from headscope.storage import reading

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
MISSING = "Reading treebanks needs conllu: pip install 'headscope[linguistics]'"


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence with its dependency tree. Every list but ``contractions`` has one entry for each
    word.

    A model reads `text`, the words with a space between them, as in Clark et al. 2019 words are
    tokenised one by one; or `written`, the text as it was, where "don't" may be cut otherwise than
    into the words "do" and "n't".

    Args:
        words: the words (in a treebank, its syntactic words).
        heads: the number of each word's head, counted from 1; 0 for the root.
        relations: of each word to its head, subtype included, such as ``"nsubj:pass"``.
        upos: universal part of speech; by default empty.
        xpos: the treebank's own part of speech; by default empty.
        name: its identifier.
        written: the text as it was written; None where nobody knows.
        contractions: ``(first, stop, form)`` of words that are written as one, words from 0.
        line: where it starts in its file, from 1; 0 for none.
        document: what it is part of, such as a text of a newspaper; empty where nobody says.

    Raises:
        TextError: where there is no word, lists differ in length, a head does not exist, or heads
            are no tree.

    Example:
        >>> sentence = Sentence(words=("Cats", "sleep"), heads=(2, 0), relations=("nsubj", "root"))
        >>> sentence.text, sentence.spans, sentence.depths
        ('Cats sleep', ((0, 4), (5, 10)), (1, 0))
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    upos: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    name: str = ""
    written: str | None = None
    contractions: tuple[tuple[int, int, str], ...] = ()
    line: int = 0
    document: str = ""
    depths: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """Of each word, how many steps it is from the root."""

    def __post_init__(self) -> None:
        size = len(self.words)
        if not size:
            raise TextError(f"Sentence {self.name!r} has no words")
        for each in ("words", "heads", "relations", "upos", "xpos"):
            values = tuple(getattr(self, each)) or ("",) * size
            object.__setattr__(self, each, values)
            if len(values) != size:
                raise TextError(f"Sentence {self.name!r} has {len(values)} {each} for {size} words")
        empty = [number for number, word in enumerate(self.words, 1) if not word.strip()]
        if empty:
            raise TextError(f"Word {empty[0]} of sentence {self.name!r} has no letters")
        object.__setattr__(self, "depths", self._depths())

    def _depths(self) -> tuple[int, ...]:
        far = [head for head in self.heads if not 0 <= head <= len(self)]
        if far:
            raise TextError(
                f"Sentence {self.name!r}: the head {far[0]} does not exist; it has {len(self)} "
                "words"
            )
        roots = self.heads.count(0)
        if roots != 1:
            raise TextError(
                f"Sentence {self.name!r} has {roots} roots (words whose head is 0); expected one"
            )
        try:
            return tuple(tree_depths(np.array(self.heads) - 1).tolist())
        except RecordError as error:
            raise TextError(f"Sentence {self.name!r} is not a tree: {error}") from None

    def __len__(self) -> int:
        return len(self.words)

    @property
    def root(self) -> int:
        """The word without a head, from 0."""
        return self.heads.index(0)

    @cached_property
    def text(self) -> str:
        """The words with a space between them."""
        return " ".join(self.words)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Where each word is in `text`, in characters."""
        return spans_of(self.words)

    def written_spans(self) -> tuple[Span, ...]:
        """Where each word is in `written`, in characters.

        Raises:
            TextError: where the text as written is not known, or a word is not to be found in it.
        """
        if self.written is None:
            raise TextError(f"Sentence {self.name!r} comes without its text as written")
        spans: list[Span] = []
        index = 0
        for surface, words in self._surfaces():
            while self.written[index : index + 1].isspace():
                index += 1
            if not self.written.startswith(surface, index):
                raise TextError(
                    f"Sentence {self.name!r}: {surface!r}, word {len(spans) + 1}, is not at "
                    f"character {index} of the text, where {self.written[index : index + 20]!r} "
                    "stands"
                )
            for word in words:
                spans.append((index, index + len(word)))
                index += len(word)
        return tuple(spans)

    def _surfaces(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """What is written, and the words in it."""
        number = 0
        starts = {first: (stop, form) for first, stop, form in self.contractions}
        while number < len(self.words):
            stop, form = starts.get(number, (number + 1, self.words[number]))
            words = self.words[number:stop]
            # "don't" is "do" and "n't" side by side; French "du" is "de" and "le", of which no
            # letter can be given to one word alone.
            if "".join(words) != form:
                raise TextError(
                    f"Sentence {self.name!r}: the words {', '.join(map(repr, words))} are written "
                    f"as one, {form!r}, and have no characters of their own"
                )
            yield form, words
            number = stop


@dataclass(frozen=True)
class Treebank:
    """Sentences with dependency trees.

    Args:
        name: what it is called.
        sentences: the sentences; each has a name of its own.

    Raises:
        TextError: where there is no sentence, or two have one name.
    """

    name: str
    sentences: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentences", tuple(self.sentences))
        if not self.sentences:
            raise TextError(f"The treebank {self.name!r} has no sentences")
        seen: set[str] = set()
        for sentence in self.sentences:
            if sentence.name in seen:
                raise TextError(
                    f"Two sentences of the treebank {self.name!r} are called {sentence.name!r}"
                )
            seen.add(sentence.name)

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    def __repr__(self) -> str:
        return f"<Treebank {self.name}: {len(self)} sentences, {self.words} words>"

    @property
    def words(self) -> int:
        """Number of words."""
        return sum(map(len, self.sentences))

    def take(self, count: int) -> Treebank:
        """Its first sentences."""
        return Treebank(self.name, self.sentences[:count])


def read_treebank(path: str | os.PathLike[str]) -> Treebank:
    """Read a treebank in CoNLL-U.

    Lines of multi-word tokens and empty nodes are no words; the former say how words are written.
    A sentence is called by its ``sent_id``, or else by its line. Documents begin at ``# newdoc``;
    sentences before the first have none.

    Source: the format of Universal Dependencies (universaldependencies.org/format.html), read by
    the library conllu.

    Args:
        path: a file, UTF-8.

    Raises:
        FileError: where the file cannot be read or is malformed, with the line and the reason.
        HeadscopeError: where conllu is not installed.

    Example:
        >>> read_treebank("en_ewt-ud-dev.conllu")
        <Treebank en_ewt-ud-dev: 2001 sentences, 25147 words>
    """
    if find_spec("conllu") is None:
        raise HeadscopeError(MISSING)
    path = Path(path)
    lines = read_whole(path).split("\n")
    sentences, document = [], ""
    with reading(path, "treebank"):
        for block in _blocks(lines):
            document = _document(block) or document
            sentences.append(_sentence(path, block, document))
    try:
        return Treebank(path.stem, tuple(sentences))
    except TextError as error:
        raise FileError(f"{path}: {error}") from None


Line = tuple[int, str]


def _blocks(lines: list[str]) -> Iterator[list[Line]]:
    """The lines of each sentence with their numbers."""
    block: list[Line] = []
    # An empty line ends a sentence; the one added here ends a last sentence without one.
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            block.append((number, line.rstrip("\r")))
        elif block:
            # Comments alone, such as a licence at the head of a file, are no sentence.
            if any(not line.startswith("#") for _, line in block):
                yield block
            block = []


def _document(block: list[Line]) -> str:
    """The name of the document that begins with a sentence, or the line where none is given; empty
    for none.
    """
    for number, line in block:
        mark, _, name = line.lstrip("#").partition("=")
        if line.startswith("#") and mark.split() in (["newdoc"], ["newdoc", "id"]):
            return name.strip() or f"line {number}"
    return ""


def _sentence(path: Path, block: list[Line], document: str) -> Sentence:
    comments, rows = [], []
    for number, line in block:
        if line.startswith("#"):
            comments.append(line)
        else:
            rows.append((number, _row(path, number, line)))
    words, contractions = _words(path, rows)
    known = _parsed("\n".join(comments)).metadata if comments else {}
    first = block[0][0]

    def column(name: str) -> tuple[Any, ...]:
        return tuple(row[name] for row in words)

    try:
        return Sentence(
            words=column("form"),
            heads=column("head"),
            relations=column("deprel"),
            upos=column("upos"),
            # conllu reads "_", for which a treebank has no tag, as None.
            xpos=tuple(tag or "" for tag in column("xpos")),
            name=known.get("sent_id") or f"line {first}",
            written=known.get("text"),
            contractions=contractions,
            line=first,
            document=document,
        )
    except TextError as error:
        raise FileError(f"{path}, line {first}: {error}") from None


def _row(path: Path, number: int, line: str) -> Any:
    """One line of a word, parsed by conllu."""
    from conllu.exceptions import ParseException

    try:
        row = _parsed(line)[0]
    except ParseException as error:
        raise FileError(f"{path}, line {number}: {error}") from None
    if len(row) != len(FIELDS) or line.count("\t") >= len(FIELDS):
        raise FileError(
            f"{path}, line {number}: {line.count(chr(9)) + 1} columns where CoNLL-U has "
            f"{len(FIELDS)}, with tabs between them"
        )
    return row


def _parsed(line: str) -> Any:
    """What conllu reads in a line of a word, or in comments."""
    from conllu import parse_token_and_metadata
    from conllu.parser import DEFAULT_FIELD_PARSERS

    # Nothing here reads these columns, and a fault in one is no reason to refuse a treebank.
    plain = dict.fromkeys(("feats", "deps", "misc"), list.__getitem__)
    return parse_token_and_metadata(line, FIELDS, DEFAULT_FIELD_PARSERS | plain)


def _words(
    path: Path, rows: list[tuple[int, Any]]
) -> tuple[list[Any], tuple[tuple[int, int, str], ...]]:
    """The words, and which of them are written as one."""
    words, contractions = [], []
    for number, row in rows:
        at = row["id"]
        # conllu gives (3, "-", 4) for a contraction and (3, ".", 1) for an empty node.
        if not isinstance(at, tuple):
            words.append((number, row))
            if at != len(words):
                raise FileError(
                    f"{path}, line {number}: the word has number {at}, expected {len(words)}"
                )
        elif at[1] == "-":
            contractions.append((number, at[0] - 1, at[2], row["form"]))
    _check_numbers(path, words, contractions)
    named = tuple((first, stop, form) for _, first, stop, form in contractions)
    return [row for _, row in words], named


def _check_numbers(path: Path, words: list[Any], contractions: list[Any]) -> None:
    """Raise where a head, or a word that is written with others, does not exist."""
    size, last = len(words), 0
    for number, row in words:
        head = row["head"]
        if head is None or not 0 <= head <= size:
            raise FileError(
                f"{path}, line {number}: the head is {head}; expected a number from 0 to {size}"
            )
    for number, first, stop, _ in contractions:
        if not last <= first < stop <= size:
            raise FileError(
                f"{path}, line {number}: words {first + 1} to {stop} cannot be written as one here"
            )
        last = stop
