"""Many texts to records, in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from headscope.capturing._capture import capture
from headscope.capturing._inputs import Inputs, encode
from headscope.capturing._options import KeepOptions, keeping_of
from headscope.capturing._run import at_rest, run, unwrapped
from headscope.capturing._tokens import tokens_from_encoding
from headscope.errors import CaptureError, HeadscopeError
from headscope.record import Record, Tokens

Text = str | tuple[str, str]

TEXTS_AT_ONCE = 64
"""How many texts are read ahead, so that those of like length can share a batch."""


@dataclass(frozen=True)
class _Encoded:
    """A text that waits for its turn."""

    index: int
    arguments: dict[str, list[int]]
    tokens: Tokens

    def __len__(self) -> int:
        return len(self.tokens)


def capture_many(
    model: Any,
    tokenizer: Any,
    texts: Iterable[Text],
    *,
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record]:
    """Capture many texts, one record each, in the order given.

    Texts are read 64 ahead and those of like length share a batch, padding cut off again; the whole is never in
    memory. A text that cannot be captured is reported with its number, and the rest goes on.

    Args:
        model: a loaded transformers model. Encoder-decoders go one text at a time.
        tokenizer: its tokenizer; it need not know how to pad.
        texts: texts, or pairs of them, from any iterable.
        batch_tokens: most tokens in a batch, padding included; a longer text is a batch of its own.
        progress: show a bar on stderr, where that is a terminal.
        on_error: is called with number and error of a text that was left out; by default a warning is issued.
        **options: ``truncate`` of `CaptureOptions`, and `KeepOptions`.

    Raises:
        CaptureError: an option there is not.

    Example:
        >>> for record in capture_many(model, tokenizer, ["The cat sat.", ("It slept.", "It woke.")]):
        ...     print(record["self"].weights(layer=0).shape)
    """
    known = ("truncate", *KeepOptions.__annotations__)
    for name in options:
        if name not in known:
            raise CaptureError(f"capture_many has no option {name!r}; of capture's there are {', '.join(known)}")
    keeping_of(options)
    many = _Many(unwrapped(model), tokenizer, options, batch_tokens, on_error or _warn)
    return many.stream(_shown(texts) if progress else texts)


@dataclass(frozen=True)
class _Many:
    model: Any
    tokenizer: Any
    options: dict[str, Any]
    batch_tokens: int
    report: Callable[[int, HeadscopeError], None]

    def stream(self, texts: Iterable[Text]) -> Iterator[Record]:
        numbered = iter(enumerate(texts))
        while ahead := list(islice(numbered, TEXTS_AT_ONCE)):
            if getattr(self.model.config, "is_encoder_decoder", False):
                found = {index: self._alone(index, text) for index, text in ahead}
            else:
                found = self._together(ahead)
            yield from (record for _, record in sorted(found.items()) if record is not None)

    def _together(self, ahead: list[tuple[int, Text]]) -> dict[int, Record | None]:
        texts = dict(ahead)
        encoded = [entry for index, text in ahead if (entry := self._encoded(index, text)) is not None]
        found: dict[int, Record | None] = {}
        for batch in self._batches(sorted(encoded, key=len)):
            try:
                records = self._run(batch)
            except CaptureError:
                # a model that cannot do without its padding is asked for one text at a time
                records = [self._alone(entry.index, texts[entry.index]) for entry in batch]
            found |= dict(zip((entry.index for entry in batch), records, strict=True))
        return found

    def _encoded(self, index: int, text: Text) -> _Encoded | None:
        try:
            texts = _texts(text)
            encoding = encode(self.model, self.tokenizer, *_pair(texts), truncate=self.options.get("truncate", False))
        except HeadscopeError as error:
            self.report(index, error)
            return None
        return _Encoded(index, dict(encoding), tokens_from_encoding(self.tokenizer, encoding, texts))

    def _alone(self, index: int, text: Text) -> Record | None:
        try:
            return capture(self.model, self.tokenizer, *_pair(_texts(text)), **self.options)
        except HeadscopeError as error:
            self.report(index, error)
            return None

    def _batches(self, entries: list[_Encoded]) -> Iterator[list[_Encoded]]:
        """Neighbours by length, as many as fit: the last one is the longest, which all are padded to."""
        batch: list[_Encoded] = []
        for entry in entries:
            if batch and (len(batch) + 1) * len(entry) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(entry)
        if batch:
            yield batch

    def _run(self, batch: list[_Encoded]) -> list[Record]:
        longest = max(map(len, batch))
        # padding goes to the right, where no model counts positions from it; its ids are never looked at
        arguments = {
            name: torch.tensor([_filled(entry.arguments[name], longest) for entry in batch], device=self.model.device)
            for name in batch[0].arguments
        }
        masks = [_filled([1] * len(entry), longest) for entry in batch]
        arguments["attention_mask"] = torch.tensor(masks, device=self.model.device)
        with at_rest(self.model):
            inputs = Inputs(arguments, tuple(entry.tokens for entry in batch))
            interventions = self.options.get("interventions", ())
            return run(self.model, inputs, keeping_of(self.options), interventions=interventions)


def _filled(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def _texts(text: Text) -> tuple[str, ...]:
    texts = (text,) if isinstance(text, str) else tuple(text)
    if len(texts) not in (1, 2):
        raise CaptureError(f"A text is a string or a pair of strings, not {len(texts)} of them")
    return texts


def _pair(texts: tuple[str, ...]) -> tuple[str, str | None]:
    return texts[0], texts[1] if len(texts) == 2 else None


def _warn(index: int, error: HeadscopeError) -> None:
    warnings.warn(f"text {index} was left out: {error}", stacklevel=4)


def _shown(texts: Iterable[Text]) -> Iterable[Text]:
    from tqdm import tqdm

    return tqdm(texts, desc="Capturing", unit="text", disable=None)
