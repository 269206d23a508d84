"""Tokens of a record from what a tokenizer returned."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import isroutine
from itertools import accumulate, takewhile
from types import SimpleNamespace
from typing import Any, NamedTuple
from unicodedata import category
from weakref import WeakKeyDictionary

from headscope.errors import TextError
from headscope.parts import RenderedText
from headscope.record import Tokens, word_numbers

UNDECODABLE = "\ufffd"
"""What a tokenizer gives for bytes that are not yet a whole letter."""
Span = tuple[int, int]


class _VocabularyToken(NamedTuple):
    """What is known of a token whatever text it is in.

    Args:
        piece: its name.
        special: whether it stands for no text.
        role: of a special token that has one; see `roles_of`.
        label: what a reader should see.
        is_undecodable: whether a reader should see what is written in the text, where that is
            known.
    """

    piece: str
    special: bool
    role: str | None
    label: str
    is_undecodable: bool


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a tokenizer, and what was seen of the others. It takes long to tell
    them, so that of each token a tokenizer is asked once as long as its special tokens stay the
    same.

    Args:
        roles: of those that have one, by id; see `roles_of`.
        ids: of all that count as special.
    """

    roles: Mapping[int, str]
    ids: frozenset[int]
    _known: dict[int, _VocabularyToken] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, tokenizer: Any) -> SpecialTokens:
        """Those of a tokenizer as it is now."""
        roles = roles_of(tokenizer)
        # The token for an unknown word replaces a word of the text, so it is not special. But
        # GPT-2's tokenizer has one token for all roles, unknown words included, which stays
        # special.
        ids = (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}) | set(roles)
        now = cls(roles, frozenset(ids))
        known = _of_tokenizers.get(tokenizer)
        if known is not None and known == now:
            return known
        _of_tokenizers[tokenizer] = now
        return now

    def tokens(self, tokenizer: Any, ids: Sequence[int]) -> list[_VocabularyToken]:
        """What is known of the tokens of a text; of each the tokenizer is asked once."""
        known, nameless = self._known, {}
        new = list(set(ids).difference(known))
        pieces = tokenizer.convert_ids_to_tokens(new) if new else []
        for number, piece in zip(new, pieces, strict=True):
            if isinstance(piece, str):
                known[number] = self._token(tokenizer, number, piece)
            else:
                # A model may write numbers beyond its tokenizer's vocabulary, which come back as
                # None; the vocabulary may get them yet.
                nameless[number] = _VocabularyToken("", False, None, f"[{number}]", False)
        return [known[number] if number in known else nameless[number] for number in ids]

    def _token(self, tokenizer: Any, number: int, piece: str) -> _VocabularyToken:
        is_special, role = number in self.ids, self.roles.get(number)
        if is_special:
            # Those of CANINE are letters of private use, which have no picture.
            label = piece if piece.isprintable() else f"[{role or 'special'}]".upper()
            return _VocabularyToken(piece, is_special, role, label, False)
        plain = piece.removeprefix("##") if len(piece) > 2 else piece
        decoded = _decoded(tokenizer, plain)
        # Some decoders drop the space before a word, others keep it; a token that is nothing but
        # space keeps one.
        label = decoded.strip(" ") or " " * bool(decoded or plain)
        # Some tokenizers give nothing for bytes that are not yet a whole letter.
        is_part = UNDECODABLE in decoded or (not decoded and plain.strip(" \u2581\u0120") != "")
        return _VocabularyToken(piece, is_special, role, label, is_part)


_of_tokenizers: WeakKeyDictionary[Any, SpecialTokens] = WeakKeyDictionary()
"""What was last known of each tokenizer, for other captures."""


def check_tokenizer(tokenizer: Any, place: str = "", advice: str = "") -> None:
    """Raise where something is not a tokenizer.

    Raises:
        TextError: with what was given.
    """
    # A tokenizer is an object that can be called: neither a function nor a class.
    if isroutine(tokenizer) or isinstance(tokenizer, type) or not callable(tokenizer):
        raise TextError(
            f"Expected a tokenizer{place}, got {repr(tokenizer)[:60]}; load one with "
            f"AutoTokenizer.from_pretrained{advice}"
        )


def tokenized(tokenizer: Any, *texts: str, warns: bool = True, **options: Any) -> Any:
    """The tokenizer's encoding of a text or a pair; special tokens that the text itself begins or
    ends with are not put there a second time, with a warning; around a rendered conversation none
    are put.

    Args:
        tokenizer: of the model.
        *texts: a text, or two.
        warns: whether nobody was warned yet.
        **options: of the tokenizer's call.
    """
    is_rendered = any(isinstance(text, RenderedText) for text in texts)
    bare = {"add_special_tokens": False} if is_rendered else {}
    encoding = tokenizer(*texts, **options | bare)
    if warns and getattr(encoding, "is_fast", False) and not options.get("truncation"):
        _warn_of_unread(tokenizer, encoding[0], texts or (options["text_target"],))
    if is_rendered:
        return encoding
    ids = encoding["input_ids"]
    kept = once(tokenizer, ids, *texts, **options)
    if warns and len(texts) > 1:
        _warn_of_marks_between(tokenizer, *texts)
    if kept == slice(0, len(ids)):
        return encoding
    if warns:
        lost = tokenizer.convert_ids_to_tokens([*ids[: kept.start], *ids[kept.stop :]])
        warnings.warn(
            f"The text holds {' and '.join(map(repr, lost))} already, which "
            f"{type(tokenizer).__name__} puts around every text: they are read once, not twice",
            stacklevel=3,
        )
    from transformers import BatchEncoding

    rows = None
    if encoding.is_fast:
        one = encoding[0]
        own = {name: getattr(one, name)[kept] for name in ("offsets", "sequence_ids")}
        rows = [SimpleNamespace(**own, overflowing=one.overflowing)]
    cut = {name: values[kept] for name, values in encoding.items()}
    return BatchEncoding(cut, encoding=rows, n_sequences=len(texts))  # ty: ignore[invalid-argument-type]


def once(tokenizer: Any, ids: list[int], *texts: str, **options: Any) -> slice:
    """The part of an encoding without a first or last special token that the tokenizer put where
    the text has it already.

    Args:
        tokenizer: that made it.
        ids: of the encoding.
        *texts: that were encoded.
        **options: of the tokenizer's call.
    """
    given = list(filter(None, (*texts, options.get("text_target"))))
    if not ids or not given:
        return slice(0, len(ids))
    first, last = tokenizer.convert_ids_to_tokens([ids[0], ids[-1]])
    # Words that a tokenizer does not know may become the same token; the text does not hold it.
    begins = given[0].lstrip().startswith(first) and ids[0] in roles_of(tokenizer)
    ends = given[-1].rstrip().endswith(last) and ids[-1] in roles_of(tokenizer)
    if not begins and not ends:
        return slice(0, len(ids))
    own = tokenizer(*texts, **options | {"add_special_tokens": False})["input_ids"]

    def is_put(mark: int, *both: list[int]) -> bool:
        written, read = (len(list(takewhile(mark.__eq__, each))) for each in both)
        # Where a blank before the mark is a token, none of the text's marks comes first.
        return mark in both[0] and written < read

    begins = begins and is_put(ids[0], own, ids)
    ends = ends and is_put(ids[-1], own[::-1], ids[::-1])
    return slice(int(begins), len(ids) - ends)


def _warn_of_unread(tokenizer: Any, encoding: Any, texts: Sequence[str]) -> None:
    """Warn of words that no token comes from; signs that a normaliser takes out are no words."""
    unread: list[str] = []
    for segment, text in enumerate(texts):
        own = zip(encoding.offsets, encoding.sequence_ids, strict=True)
        read = {at for span, source in own if source == segment for at in range(*span)}
        for word in re.finditer(r"\S+", text):
            is_word = any(category(letter)[0] in "LNPS" for letter in word[0])
            if is_word and read.isdisjoint(range(*word.span())):
                unread.append(word[0])
    if unread:
        named = ", ".join(map(repr, unread[:5])) + ", ..." * (len(unread) > 5)
        warnings.warn(
            f"{type(tokenizer).__name__} makes no token of {named}: the model never sees "
            f"{len(unread)} of the words; take texts of its own vocabulary",
            stacklevel=4,
        )


def _warn_of_marks_between(tokenizer: Any, text: str, pair: str) -> None:
    """Warn of special tokens that a pair of texts holds where the two meet."""
    for mark in tokenizer.convert_ids_to_tokens(list(roles_of(tokenizer))):
        if text.rstrip().endswith(mark) or pair.lstrip().startswith(mark):
            warnings.warn(
                f"{mark!r} is written where the text and its pair meet: it is read beside the "
                f"special tokens that {type(tokenizer).__name__} puts there; leave it out",
                stacklevel=4,
            )


def tokens_from_encoding(
    tokenizer: Any,
    encoding: Any,
    texts: tuple[str, ...] = (),
    example: int = 0,
    *,
    specials: SpecialTokens | None = None,
) -> Tokens:
    """Tokens of one example of a `transformers.BatchEncoding`, padding included.

    Args:
        tokenizer: the tokenizer that made the encoding.
        encoding: an encoding with ``input_ids`` of one text or of a batch.
        texts: one text, or two for a sentence pair; without them the tokens have no offsets.
        example: index of the example in the batch.
        specials: of the tokenizer, where they are known already.
    """
    ids = _plain(encoding["input_ids"], example)
    # Only the tokenizers written in Rust know from which characters a token comes.
    if not getattr(encoding, "is_fast", False):
        texts = _read_of(tokenizer, ids, texts)
        return tokens_from_ids(tokenizer, ids, texts=texts, specials=specials)
    one, specials = encoding[example], specials or SpecialTokens.of(tokenizer)
    sources = one.sequence_ids
    segments = _filled(sources)
    if not texts:
        return tokens_from_ids(tokenizer, ids, specials=specials, segments=segments)
    offsets = zip(one.offsets, sources, strict=True)
    spans = tuple(None if source is None else span for span, source in offsets)
    if one.overflowing:  # of a text that was cut, what was read
        ends = {source: span[1] for span, source in zip(one.offsets, sources, strict=True)}
        texts = tuple(text[: ends.get(source, 0)] for source, text in enumerate(texts))
    known: dict[str, Any] = {"texts": texts, "offsets": spans, "segments": segments}
    return tokens_from_ids(tokenizer, ids, specials=specials, **known)


def _read_of(tokenizer: Any, ids: list[int], texts: tuple[str, ...]) -> tuple[str, ...]:
    """What was read of texts that were cut: the shortest beginnings that become the same tokens."""

    def ids_of(*texts: str, **options: Any) -> list[int]:
        return tokenized(tokenizer, *texts, warns=False, padding=False, **options)["input_ids"]

    if not texts or len(ids_of(*texts, verbose=False, truncation=False)) <= len(ids):
        return texts
    for place in range(len(texts)):

        def cut_at(end: int, place: int = place, texts: tuple[str, ...] = texts) -> tuple[str, ...]:
            beginning = type(texts[place])(texts[place][:end])
            return (*texts[:place], beginning, *texts[place + 1 :])

        def is_read(end: int, cut_at: Callable[[int], tuple[str, ...]] = cut_at) -> bool:
            return ids_of(*cut_at(end), truncation=True, max_length=len(ids)) == ids

        texts = cut_at(bisect_left(range(len(texts[place])), True, key=is_read))
    return texts


def tokens_from_ids(
    tokenizer: Any,
    ids: Sequence[int],
    *,
    texts: tuple[str, ...] = (),
    specials: SpecialTokens | None = None,
    **known: Any,
) -> Tokens:
    """Tokens from vocabulary numbers alone, such as those that a model generated."""
    ids = [int(number) for number in ids]
    specials = SpecialTokens.of(tokenizer) if specials is None else specials
    tokens = specials.tokens(tokenizer, ids)
    labels = [token.label for token in tokens]
    spans, segments, of = known.get("offsets"), known.get("segments", (0,) * len(ids)), texts
    # Offsets are of the text as it was given: a normaliser may make one letter two, or two one, and
    # bytes may share the letters of a whole run.
    if spans is None or any(token.is_undecodable for token in tokens):
        decoded, spans = _decoded_spans(tokenizer, ids, tokens)
        of = (decoded,) * 2
    ends = [0] * len(of)
    for place, (token, span) in enumerate(zip(tokens, spans, strict=True)):
        if token.is_undecodable and span is not None:
            # Of several tokens of one letter the first has it, the others nothing.
            segment = segments[place]
            labels[place] = of[segment][max(span[0], ends[segment]) : span[1]].strip(" ")
            ends[segment] = span[1]
    # A special token that is written in the text is no word of it.
    placed = [None if token.special else span for token, span in zip(tokens, spans, strict=True)]
    roles = tuple(token.role for token in tokens) if specials.roles else None
    return Tokens(
        pieces=tuple(token.piece for token in tokens),
        ids=tuple(ids),
        texts=texts,
        special=tuple(token.special for token in tokens),
        labels=tuple(labels),
        roles=roles,
        words=word_numbers(of, placed, segments),
        **known,
    )


def joined_tokens(first: Tokens, second: Tokens) -> Tokens:
    """The tokens of a text and others that stand before or behind them, without a text."""
    fields: dict[str, Any] = {}
    for name in ("pieces", "special", "segments", "labels", "ids", "offsets", "words", "roles"):
        sides = [(tokens, getattr(tokens, name)) for tokens in (first, second)]
        if any(values is not None for _, values in sides):
            parts = [(None,) * len(side) if values is None else values for side, values in sides]
            if name == "words":  # counted from 0 in each
                start = 1 + max((word for word in parts[0] if word is not None), default=-1)
                parts[1] = tuple(None if word is None else word + start for word in parts[1])
            fields[name] = parts[0] + parts[1]
    return Tokens(texts=first.texts or second.texts, **fields)


def _decoded_spans(
    tokenizer: Any, ids: Sequence[int], tokens: Sequence[_VocabularyToken]
) -> tuple[str, tuple[Span | None, ...]]:
    """The text that tokens without offsets make, and the characters of it that each comes from, as
    a fast tokenizer gives them: those of one letter all come from it.
    """
    text, spans = "", [None] * len(ids)
    plain = [at for at, token in enumerate(tokens) if token.piece and not token.special]
    # Decoded behind the token before them: some decoders drop the space at the beginning of a text.
    before: list[int] = []
    waiting: list[int] = []
    for at in plain:
        waiting.append(at)
        known = _decoded_ids(tokenizer, *(ids[each] for each in before))
        now = _decoded_ids(tokenizer, *(ids[each] for each in (*before, *waiting)))
        if (now.endswith(UNDECODABLE) or now == known) and at != plain[-1]:
            continue
        start = len(text)
        alike = takewhile(lambda both: both[0] == both[1], zip(known, now, strict=False))
        text += now[len(list(alike)) :]
        own = _decoded_ids(tokenizer, ids[at])
        # Bytes before a token that is letters of its own are no part of these.
        is_own = len(waiting) > 1 and own != "" and UNDECODABLE not in own and text.endswith(own)
        middle = max(start, len(text) - len(own)) if is_own else start
        for each in waiting:
            spans[each] = (start, middle) if is_own and each != at else (middle, len(text))
        before, waiting = waiting, []
    return text, tuple(spans)


@lru_cache(maxsize=2**16)
def _decoded_ids(tokenizer: Any, *ids: int) -> str:
    # Kept as `_decoded` is.
    return tokenizer.decode(list(ids), skip_special_tokens=True) if ids else ""


def roles_of(tokenizer: Any) -> dict[int, str]:
    """Roles of a tokenizer's special tokens, by their ids; the first role of a token counts."""
    # BERT's [CLS] and [SEP] may be named bos and eos too; their own names say more.
    roles: dict[int, str] = {}
    for role in ("cls", "bos", "sep", "eos"):
        number = getattr(tokenizer, f"{role}_token_id", None)
        if number is not None:
            roles.setdefault(number, role)
    return roles


@lru_cache(maxsize=2**16)
def _decoded(tokenizer: Any, piece: str) -> str:
    # Kept, because a call takes longer than all else that is done with a token.
    return tokenizer.convert_tokens_to_string([piece])


def _filled(sources: Sequence[int | None]) -> tuple[int, ...]:
    """Segment of every token; a special token belongs to the text before it, or to the first."""
    filled = accumulate(sources, lambda last, now: last if now is None else now, initial=0)
    return tuple(filled)[1:]


def _plain(ids: Any, example: int) -> list[int]:
    ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    return ids[example] if ids and isinstance(ids[0], list) else ids
