"""Many texts, pictures or sounds to records, in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch

from headscope.capturing._capture import capture
from headscope.capturing._inputs import Inputs, encode
from headscope.capturing._items import Item, Text, parse_item
from headscope.capturing._options import KeepOptions, keeping_of
from headscope.capturing._origins import origins_of
from headscope.capturing._processor import inputs_of
from headscope.capturing._reads import check_reads
from headscope.capturing._run import at_rest, run, unwrapped
from headscope.capturing._tokens import tokens_from_encoding
from headscope.errors import CaptureError, HeadscopeError
from headscope.record import Record, Tokens

AT_ONCE = 64
"""How many inputs are read ahead, so that those of like length can share a batch."""


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
    texts: Iterable[Text | Mapping[str, Any]],
    *,
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record]:
    """Capture many texts, pictures or sounds, one record each, in the order given.

    Inputs are read 64 ahead; texts of like length share a batch, padding cut off again, and so do pictures of one size
    that come without a text. Anything else is run one at a time. The whole is never in memory. An input that cannot be
    captured is reported with its number, and the rest goes on.

    Args:
        model: a loaded transformers model. Encoder-decoders go one input at a time.
        tokenizer: its tokenizer, which need not know how to pad; its processor for pictures and sounds.
        texts: texts, pairs of them, or mappings such as ``{"image": "cat.png", "text": "a photo of a cat"}``, with
            ``text``, ``text_pair``, ``image``, ``sound``, ``sampling_rate`` and ``target`` of `capture`; from any
            iterable.
        batch_tokens: most tokens in a batch, padding included; a longer input is a batch of its own.
        progress: show a bar on stderr, where that is a terminal.
        on_error: is called with number and error of an input that was left out; by default a warning is issued.
        **options: ``truncate`` of `CaptureOptions`, and `KeepOptions`.

    Raises:
        CaptureError: an option there is not.

    Example:
        >>> for record in capture_many(model, tokenizer, ["The cat sat.", ("It slept.", "It woke.")]):
        ...     print(record["self"].weights(layer=0).shape)
        >>> records = capture_many(model, processor, [{"image": path} for path in folder.glob("*.png")])
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
    lengths: dict[tuple, int] = field(default_factory=dict)
    """How many tokens a picture of a shape becomes, once one was run."""

    def stream(self, inputs: Iterable[Any]) -> Iterator[Record]:
        numbered = iter(enumerate(inputs))
        while ahead := list(islice(numbered, AT_ONCE)):
            items = {index: item for index, given in ahead if (item := self._parsed(index, given)) is not None}
            if getattr(self.model.config, "is_encoder_decoder", False):
                found = {index: self._alone(index, item) for index, item in items.items()}
            else:
                texts = {index: item for index, item in items.items() if item.is_text}
                pictures = {index: item for index, item in items.items() if item.is_picture}
                rest = {index: item for index, item in items.items() if not item.is_text and not item.is_picture}
                found = self._texts(texts) | self._pictures(pictures)
                found |= {index: self._alone(index, item) for index, item in rest.items()}
            yield from (record for _, record in sorted(found.items()) if record is not None)

    def _parsed(self, index: int, given: Any) -> Item | None:
        try:
            return parse_item(given)
        except HeadscopeError as error:
            self.report(index, error)
            return None

    def _texts(self, texts: Mapping[int, Item]) -> dict[int, Record | None]:
        """Records of texts, those of like length together."""
        encoded = [entry for index, text in texts.items() if (entry := self._encoded(index, text)) is not None]
        found: dict[int, Record | None] = {}
        for batch in self._batches(sorted(encoded, key=len)):
            try:
                records = self._run(batch)
            except CaptureError:
                # a model that cannot do without its padding is asked for one text at a time
                records = [self._alone(entry.index, texts[entry.index]) for entry in batch]
            found |= dict(zip((entry.index for entry in batch), records, strict=True))
        return found

    def _pictures(self, pictures: Mapping[int, Item]) -> dict[int, Record | None]:
        """Records of pictures without a text, those of one size together."""
        shapes: dict[tuple, list[tuple[int, Inputs]]] = {}
        for index, item in pictures.items():
            if (inputs := self._looked_at(index, item)) is not None:
                shape = tuple((name, tuple(tensor.shape)) for name, tensor in sorted(inputs.arguments.items()))
                shapes.setdefault(shape, []).append((index, inputs))
        return {
            index: record
            for shape, members in shapes.items()
            for batch in self._batches_of_pictures(shape, members)
            for index, record in self._pictures_together(shape, batch)
        }

    def _looked_at(self, index: int, item: Item) -> Inputs | None:
        try:
            with at_rest(self.model):
                return inputs_of(self.model, self.tokenizer, None, item.more)
        except HeadscopeError as error:
            self.report(index, error)
            return None

    def _batches_of_pictures(
        self, shape: tuple, members: list[tuple[int, Inputs]]
    ) -> Iterator[list[tuple[int, Inputs]]]:
        """As many as fit; the first of a size is run alone, and tells how many tokens each of the others will be."""
        rest = iter(members)
        while batch := list(islice(rest, self._fitting(shape))):
            yield batch

    def _fitting(self, shape: tuple) -> int:
        return max(1, self.batch_tokens // self.lengths[shape]) if shape in self.lengths else 1

    def _pictures_together(self, shape: tuple, batch: list[tuple[int, Inputs]]) -> Iterator[tuple[int, Record | None]]:
        if len(batch) > 1 and all(sizes[0] == 1 for _, sizes in shape):
            first = batch[0][1].arguments
            together = {name: torch.cat([inputs.arguments[name] for _, inputs in batch]) for name in first}
            try:
                pictures = tuple(picture for _, inputs in batch for picture in inputs.pictures)
                known = pictures if len(pictures) == len(batch) else ()
                records = self._recorded(Inputs(together, (), (), origins_of(self.model, together), pictures=known))
            except CaptureError:
                records = []  # a model that cannot tell pictures of a batch apart is asked for one at a time
            if len(records) == len(batch):
                yield from zip((index for index, _ in batch), records, strict=True)
                return
        for index, inputs in batch:
            try:
                record = self._recorded(inputs)[0]
            except HeadscopeError as error:
                self.report(index, error)
                continue
            self.lengths.setdefault(shape, max(len(stack.query) for stack in record.stacks.values()))
            yield index, record

    def _encoded(self, index: int, item: Item) -> _Encoded | None:
        tokenizer = getattr(self.tokenizer, "tokenizer", self.tokenizer)
        try:
            check_reads(self.model, item.text)
            cut = self.options.get("truncate", False)
            encoding = encode(self.model, tokenizer, str(item.text), item.text_pair, truncate=cut)
        except HeadscopeError as error:
            self.report(index, error)
            return None
        return _Encoded(index, dict(encoding), tokens_from_encoding(tokenizer, encoding, item.texts))

    def _alone(self, index: int, item: Item) -> Record | None:
        try:
            return capture(self.model, self.tokenizer, item.text, item.text_pair, **self.options, **item.more)
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
        return self._recorded(Inputs(arguments, tuple(entry.tokens for entry in batch)))

    def _recorded(self, inputs: Inputs) -> list[Record]:
        interventions = self.options.get("interventions", ())
        with at_rest(self.model):
            return run(self.model, inputs, keeping_of(self.options), interventions=interventions)


def _filled(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def _warn(index: int, error: HeadscopeError) -> None:
    warnings.warn(f"input {index} was left out: {error}", stacklevel=4)


def _shown(texts: Iterable[Any]) -> Iterable[Any]:
    from tqdm import tqdm

    return tqdm(texts, desc="Capturing", unit="input", disable=None)
