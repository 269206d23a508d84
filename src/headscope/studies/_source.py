"""Where the records of a study come from: given ones, or a model that is run on texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope.errors import RecordError
from headscope.record import Record

CAPTURING = ("truncate", "batch_tokens", "progress", "on_error")


@dataclass(frozen=True)
class Source:
    """A model with texts that it can be run on as often as it takes.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        texts: texts, pairs of them, or other inputs of `headscope.capture_many`.
        options: of `headscope.capture_many`.
    """

    model: Any
    tokenizer: Any
    texts: tuple
    options: dict[str, Any] = field(default_factory=dict)

    def records(self, model: Any = None, **more: Any) -> Iterator[Record]:
        """The records of the model, or of another one that reads the same texts."""
        from headscope.capturing import capture_many

        return capture_many(self.model if model is None else model, self.tokenizer, self.texts, **(self.options | more))

    def random_twin(self) -> Source:
        """The same texts for the same architecture with random weights, which is silent on texts it cannot read."""
        from headscope.capturing import random_twin

        return replace(self, model=random_twin(self.model), options=self.options | {"on_error": passed})


def passed(*_: Any) -> None:
    """What cannot be captured is reported once, when the model itself reads it."""


def parse_source(
    records: Any,
    tokenizer: Any,
    texts: Any,
    options: dict[str, Any],
    *,
    load: Callable[[Any], tuple[Any, Any]] | None = None,
) -> Source | None:
    """A model and its texts; None where records were given.

    Options that belong to capturing are taken out of ``options``.

    Args:
        records: records, or a model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be None where that is named.
        texts: a text, a list of texts, pairs or other inputs of `headscope.capture_many`; None for records.
        options: all that was given.
        load: how a named model is loaded.

    Raises:
        RecordError: where a tokenizer or options of capturing were given without texts, or there is no text.
        ModelError: where a named model cannot be loaded.
    """
    capturing = {name: options.pop(name) for name in CAPTURING if name in options}
    if texts is None:
        given = [*(["tokenizer"] if tokenizer is not None else []), *capturing]
        if given:
            raise RecordError(
                f"{', '.join(given)} belong to a model and texts; give both, as (model, tokenizer, texts)"
            )
        return None
    model = records
    if isinstance(model, Record):
        raise RecordError("Texts are read by a model, and a record was given; give either the record or (model, texts)")
    listed = (texts,) if isinstance(texts, str | Mapping) else tuple(texts) if isinstance(texts, Iterable) else ()
    if model is None or isinstance(model, str | Path):
        model, own = _loaded(model, listed, load)
        tokenizer = own if tokenizer is None else tokenizer
    if tokenizer is None:
        raise RecordError(f"The texts need the tokenizer of {type(model).__name__}: (model, tokenizer, texts)")
    if not listed:
        raise RecordError(f"Texts were given as {type(texts).__name__} with none in it; give a text, or a list of them")
    return Source(model, tokenizer, listed, capturing)


def _loaded(name: str | Path | None, inputs: tuple, load: Callable[[Any], tuple[Any, Any]] | None) -> tuple[Any, Any]:
    """A named model and what it reads with: its processor where the first of its inputs holds a picture or a sound."""
    from headscope.capturing import load_for, load_model

    first = inputs[0] if inputs and isinstance(inputs[0], Mapping) else {}
    media = {kind: first[kind] for kind in ("image", "sound") if first.get(kind) is not None}
    if media and load is None:
        return load_for(name, first.get("text"), **media)
    return (load or load_model)(name)
