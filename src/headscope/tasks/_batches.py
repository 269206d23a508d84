"""Texts as padded batches, those of like length together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypedDict

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from headscope._progress import warn_left_out
from headscope.capturing import check_known, parse_text, several_of
from headscope.capturing.inputs.tokens import check_tokenizer, tokenized
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.corpus import documents_of
from headscope.errors import HeadscopeError, TextError, check_option_names, check_reading
from headscope.tasks._task import Task

AT_ONCE = 16
"""Examples in a batch: on one core all-MiniLM-L6-v2 takes 1.1 to 1.9 times as long with 32 to
256.
"""
NO_LIMIT = 10**6
"""Tokenizers without a limit say so by a huge number."""

CUT_NAMED = 3
"""Texts that were cut, named in a warning."""

Rows = tuple[dict[str, Any], ...]
Encode = Callable[..., dict[str, Any]]


class ReadingOptions(TypedDict, total=False):
    """How the tasks of this package read their examples."""

    batch: int
    """How many examples at once, 16."""
    truncate: bool
    """Cut texts that are too long (False); a warning names them, and the tokens left out."""
    cuts: list[int]
    """Takes how many tokens each such text loses; of several tasks, one list gives one warning."""
    allow_unfit: bool
    """Take texts that are mostly unknown tokens all the same (False)."""
    on_error: Callable[[int, HeadscopeError], None] | None
    """Is called with number and error of an example that cannot be read: it is left out, and the
    rest goes on. By default that is a warning, and of a single example an error.
    """


@dataclass(frozen=True)
class Examples:
    """What could be read of the examples of a task.

    Args:
        numbers: of the examples that were read, as they were given.
        rows: what the tokenizer made of each of their texts.
        left_out: why the others could not be read, by number.
        parts: which of those that were read each batch holds.
    """

    numbers: tuple[int, ...]
    rows: tuple[Rows, ...]
    left_out: dict[int, str]
    parts: list[list[int]]

    def task(
        self,
        batches: list[dict[str, Any]],
        score: Any,
        name: str,
        *,
        labels: torch.Tensor | None = None,
        **more: Any,
    ) -> Task:
        """A task of batches of these examples, of which copies with one label are one document."""
        beside = [None] * len(self.rows) if labels is None else labels.tolist()
        more["groups"] = documents_of(map(repr, zip(self.rows, beside, strict=True)))
        order = tuple(chain.from_iterable(self.parts))
        return Task(batches, score, name, order=order, left_out=self.left_out, **more)

    def padded(self) -> list[dict[str, torch.Tensor]]:
        """The texts as padded batches; of pairs the second texts stand below all first ones."""
        sides = [zip(*(self.rows[each] for each in part), strict=True) for part in self.parts]
        return [padded(list(chain.from_iterable(of_part))) for of_part in sides]


def read_examples(
    tokenizer: Any,
    examples: Sequence[Any],
    read: Callable[[Any, Encode], Rows],
    options: ReadingOptions,
    *,
    sides: int = 2,
) -> Examples:
    """What the tokenizer makes of each example; one that cannot be read costs itself alone.

    Args:
        tokenizer: of the model, which knows its unknown token.
        examples: of the task.
        read: gives the rows of one example, of which each is made by what it is given second:
            `encoded` for this tokenizer.
        options: of the task.
        sides: in so many rows of each example unknown tokens are looked for.

    Raises:
        TextError: where there is no example, none can be read, or most of their tokens are unknown.
    """
    check_tokenizer(tokenizer)
    # A TypedDict is checked by type checkers alone; a misspelt option would do nothing.
    check_option_names("A task", options, ReadingOptions.__annotations__, TextError)
    check_reading(options)
    examples = several_of(examples)
    if not len(examples):
        raise TextError("No text was given; give at least one")
    rows, failed = _read_all(tokenizer, examples, read, options)
    if not options.get("allow_unfit", False):
        failed |= _unknown(tokenizer, {number: own[:sides] for number, own in rows.items()})
    if len(failed) == len(examples):
        raise _none_of(list(failed.values()))
    numbers = tuple(number for number in rows if number not in failed)
    kept = tuple(rows[number] for number in numbers)
    lengths = [max(len(row["input_ids"]) for row in own) for own in kept]
    said = _reported(failed, options)
    return Examples(numbers, kept, said, by_length(lengths, options.get("batch", AT_ONCE)))


def _none_of(errors: list[HeadscopeError]) -> HeadscopeError:
    """What to raise where no example could be read: of a single one its own error."""
    several = TextError(f"None of the {len(errors)} texts can be read: {errors[0]}")
    return several if len(errors) > 1 else errors[0]


def _reported(failed: dict[int, HeadscopeError], options: ReadingOptions) -> dict[int, str]:
    report, said = options.get("on_error") or partial(warn_left_out, what="text"), {}
    for number, error in sorted(failed.items()):
        report(number, error)
        said[number] = str(error)
    return said


def _read_all(
    tokenizer: Any,
    examples: Sequence[Any],
    read: Callable[[Any, Encode], Rows],
    options: ReadingOptions,
) -> tuple[dict[int, Rows], dict[int, HeadscopeError]]:
    """Rows of the examples that can be read, and why the others cannot, both by number."""
    rows: dict[int, Rows] = {}
    failed: dict[int, HeadscopeError] = {}
    known, lost = options.get("cuts", []), {}
    is_told = bool(known)
    for number, example in enumerate(examples):
        cuts: list[int] = []
        encode = partial(encoded, tokenizer, truncate=options.get("truncate", False), cuts=cuts)
        try:
            rows[number] = read(example, encode)
        except OF_ONE_INPUT as error:
            failed[number] = reason_of(error)
        else:
            known += cuts
            if cuts:
                lost[number] = sum(cuts)
    if lost and not is_told:
        named = [f"text {each} (from 0) loses {lost[each]}" for each in list(lost)[:CUT_NAMED]]
        more = f" and {len(lost) - CUT_NAMED} more" if len(lost) > CUT_NAMED else ""
        warnings.warn(
            f"{len(lost)} of {len(examples)} texts have more tokens than the model takes, and the "
            f"rest is cut off ({sum(lost.values())} tokens): {', '.join(named)}{more}",
            stacklevel=4,
        )
    return rows, failed


def encoded(
    tokenizer: Any, text: Any, *, truncate: bool, cuts: list[int], least: int = 1
) -> dict[str, Any]:
    """What the tokenizer makes of a text or a pair.

    Args:
        tokenizer: of the model.
        text: a text, a pair of them, or a conversation.
        truncate: whether a text that is too long is cut.
        cuts: takes how many tokens are left out then.
        least: how many tokens a text must have.

    Raises:
        TextError: where it is not a text, is blank, or is too long or too short.
    """
    parts = parse_text(text).read_with(tokenizer).texts
    limit = getattr(tokenizer, "model_max_length", None) or NO_LIMIT
    # verbose=False: the tokenizer would warn of a text that is too long, which raises below.
    one = tokenized(tokenizer, *parts, verbose=False)
    count = len(one["input_ids"])
    if truncate and limit < min(count, NO_LIMIT):
        one = tokenized(tokenizer, *parts, warns=False, truncation=True, max_length=limit)
        cuts.append(count - len(one["input_ids"]))
    elif count > limit:
        raise TextError(
            f"The text has {count} tokens, and the model takes {limit}; cut it, or pass "
            "truncate=True (--truncate)"
        )
    if count < least:
        raise TextError(f"The text has {count} tokens; expected {least} at least")
    return {name: list(one[name]) for name in one if name in tokenizer.model_input_names}


def encoded_pair(encode: Encode, pair: Any, *, least: int = 1) -> Rows:
    """The same of two texts that are read apart.

    Raises:
        TextError: where these are no two texts, or one of them cannot be read.
    """
    check_pair(pair)
    return tuple(encode(text, least=least) for text in pair)


def label_of(given: Any, *, whole: bool = False) -> float:
    """The label of an example.

    Args:
        given: a number, or the error that was met where one was looked for.
        whole: whether it is the number of a class.

    Raises:
        TextError: where it is not a number, or not finite.
        HeadscopeError: that was given.
    """
    if isinstance(given, HeadscopeError):
        raise given
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or (whole and number != int(number)):
        wanted = "the number of a class" if whole else "a number"
        raise TextError(f"The label is {given!r}; expected {wanted}")
    return number


def check_pair(pair: Any) -> None:
    """Raise where something is no pair of texts.

    Raises:
        TextError: saying what it is.
    """
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        given = "a single text" if isinstance(pair, str) else type(pair).__name__
        raise TextError(f"An example is {given}; expected a pair of texts")


def _unknown(tokenizer: Any, rows: Mapping[int, Rows]) -> dict[int, HeadscopeError]:
    """The examples that are mostly unknown tokens.

    Raises:
        TextError: where most of the tokens of all examples are.
    """
    ids = {}
    for number, own in rows.items():
        ids[number] = [each for row in own for each in row["input_ids"]]
    # All together first: if most tokens are unknown, it is the tokenizer that is wrong, and one
    # error says so instead of a warning for each text.
    count = sum(map(len, rows.values()))
    check_known(tokenizer, chain.from_iterable(ids.values()), "the texts", texts=count)
    failed: dict[int, HeadscopeError] = {}
    for number, own in ids.items():
        try:
            check_known(tokenizer, own, "the text", texts=len(rows[number]))
        except TextError as error:
            failed[number] = error
    return failed


def by_length(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Numbers of the examples of each batch, from the shortest to the longest.

    Raises:
        TextError: where a batch would hold nothing.
    """
    if batch < 1:
        raise TextError(f"batch is {batch}; a batch holds at least one example")
    # Texts of like length together, so that little of a batch is padding.
    order = sorted(range(len(lengths)), key=lambda number: (lengths[number], number))
    return [order[first : first + batch] for first in range(0, len(order), batch)]


def run(model: nn.Module, batch: Mapping[str, Any], *, without: Sequence[str] = ()) -> Any:
    """What the model gives on a batch, without what the score alone reads, and without a cache."""
    arguments = {name: value for name, value in batch.items() if name not in without}
    # Nothing is generated here: a cache would keep keys and values of every layer for nobody.
    if hasattr(getattr(model, "config", None), "use_cache"):
        arguments["use_cache"] = False
    return model(**arguments)


def padded(rows: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """Rows of one batch, padded with zeros on the right, where no model counts positions from; with
    their mask.
    """
    names = [name for name in rows[0] if name != "attention_mask"]
    lists = {name: [torch.tensor(row[name]) for row in rows] for name in names}
    lists["attention_mask"] = list(map(torch.ones_like, lists["input_ids"]))
    return {name: pad_sequence(own, batch_first=True) for name, own in lists.items()}


def check_counts(texts: Sized, beside: Sized, what: str) -> None:
    """Raise where there is not one for each text.

    Raises:
        TextError: with both numbers.
    """
    if len(texts) != len(beside):
        raise TextError(
            f"{len(texts)} texts and {len(beside)} {what} were given; give one for each text"
        )
