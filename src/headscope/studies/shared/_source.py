"""Where the records of a study come from: given ones, or a model that is run on texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.corpus import CorpusText
from headscope.errors import RecordError
from headscope.evidence.groups import group_of, listed_groups
from headscope.record import Record

if TYPE_CHECKING:
    from headscope.capturing import Outcome

CAPTURING = ("truncate", "batch_tokens", "batch_size", "progress", "on_error", "allow_unfit")
LOADING = (
    "device",
    "dtype",
    "revision",
    "device_map",
    "quantization_config",
    "attn_implementation",
    "trust_remote_code",
)
"""Names of `headscope.capturing.LoadOptions`, for studies of records, which do without torch."""
FEW = "are too few to tell up to"
"""The words about too few texts, before the number of scores."""
LOOKED_AT = 256
"""So many texts are looked at for unknown tokens before any is run."""


@dataclass(frozen=True)
class Source:
    """A model with texts that it can be run on as often as it takes.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        inputs: texts, pairs of them, pictures or sounds, or why one of them cannot be read.
        options: of `headscope.capture_many`.
        groups: the document that each text is of; None where none was given.
    """

    model: Any
    tokenizer: Any
    inputs: tuple[Outcome, ...]
    options: dict[str, Any] = field(default_factory=dict)
    groups: tuple | None = None

    def text(self, number: int) -> CorpusText:
        """A text as a run knows it: by what it says, and its document; by its place where it is no
        text.
        """
        given = self.inputs[number]
        is_text = getattr(given, "is_text", False)
        group = None if self.groups is None else group_of(self.groups[number])
        return CorpusText(plain_of(given) if is_text else number, group)

    @property
    def report(self) -> Callable[[int, Any], Any]:
        """What is called with a text that is left out."""
        return self.options.get("on_error") or warn_of_left_out

    @property
    def has_media(self) -> bool:
        """Whether there are pictures or sounds."""
        return any(getattr(given, "has_media", False) for given in self.inputs)

    @property
    def parsed(self) -> Any:
        """The inputs, as `headscope.capturing` takes them."""
        from headscope.capturing import ParsedInputs

        return ParsedInputs(list(self.inputs), len(self.inputs))

    def random_twin(self) -> Source:
        """The same texts for the same architecture with random weights, which is silent on texts it
        cannot read.
        """
        from headscope.capturing import random_twin

        return replace(
            self, model=random_twin(self.model), options=self.options | {"on_error": passed}
        )


def warn_of_left_out(number: int, error: Any) -> None:
    """Warn of an input that is left out."""
    warnings.warn(f"input {number} was left out: {error}", stacklevel=5)


def passed(*_: Any) -> None:
    """What cannot be captured is reported once, when the model itself reads it."""


def parse_source(
    records: Any,
    tokenizer: Any,
    texts: Any,
    options: dict[str, Any],
    *,
    load: Callable[..., tuple[Any, Any]] | None = None,
) -> Source | None:
    """A model and its texts; None where records were given.

    Options that belong to capturing and loading, and ``groups`` of texts, are taken out of
    ``options``.

    Args:
        records: records, or a model: loaded, its name or folder, or None for the demo model.
        tokenizer: of the model; may be None where that is named.
        texts: a text, a list of texts, pairs or other inputs of `headscope.capture_many`; None for
            records.
        options: all that was given.
        load: how a named model is loaded; takes `headscope.capturing.LoadOptions`.

    Raises:
        RecordError: where a tokenizer or options of capturing were given without texts, or there is
            no text.
        ModelError: where a named model cannot be loaded.
        TextError: where the tokenizer does not know most of what is in the texts.
    """
    if tokenizer is not None:
        from headscope.capturing import check_reader

        check_reader(tokenizer, "study")
    capturing = {name: options.pop(name) for name in CAPTURING if name in options}
    loading = {name: options.pop(name) for name in LOADING if name in options}
    if texts is None:
        _check_only_records(tokenizer, [*capturing, *loading])
        return None
    if isinstance(records, Record):
        raise RecordError(
            "Texts are read by a model, and a record was given; give either the record or "
            "(model, texts)"
        )
    from headscope.capturing import parse_texts

    inputs = parse_texts(texts)
    # Documents are counted before a model is loaded, which may take minutes.
    groups = with_copies(inputs, _grouped(options, texts, len(inputs)))
    model, tokenizer = _ready(records, tokenizer, inputs, load=load, loading=loading)
    if not inputs:
        raise RecordError(
            f"Texts were given as {type(texts).__name__} with none in it; give a text, or a list "
            "of them"
        )
    anyway = capturing.pop("allow_unfit", False)
    capturing["max_unknown"] = 1.0 if anyway else check_texts(tokenizer, inputs)
    return Source(model, tokenizer, inputs, capturing, groups)


def _check_only_records(tokenizer: Any, options: list[str]) -> None:
    given = [*(["tokenizer"] if tokenizer is not None else []), *options]
    if given:
        raise RecordError(
            f"{', '.join(given)} belong to a model and texts; give both, as (model, "
            "tokenizer, texts)"
        )


def _ready(
    model: Any,
    tokenizer: Any,
    inputs: tuple[Outcome, ...],
    *,
    load: Callable[..., tuple[Any, Any]] | None,
    loading: dict[str, Any],
) -> tuple[Any, Any]:
    """The model, loaded where it was named, and its tokenizer."""
    if model is None or isinstance(model, str | Path):
        model, own = _loaded(model, inputs, load, loading)
        tokenizer = own if tokenizer is None else tokenizer
    else:
        from headscope.capturing import check_not_loaded

        check_not_loaded(model, loading)
    if tokenizer is None:
        raise RecordError(
            f"The texts need the tokenizer of {type(model).__name__}: (model, tokenizer, texts)"
        )
    return model, tokenizer


def _grouped(options: dict[str, Any], texts: Any, count: int) -> tuple | None:
    """The document of each text, taken out of the options, or read from the file of the texts.

    Raises:
        RecordError: where there are not as many as texts.
    """
    from headscope.capturing import groups_in

    groups = options.pop("groups", None)
    groups = groups_in(texts) if groups is None else groups
    if groups is None:
        return None
    return tuple(listed_groups(groups, count))


def with_copies(inputs: Sequence[Outcome], groups: tuple | None) -> tuple | None:
    """The document of each text, where copies of a text are of the document of the first of them:
    what is said twice proves no more than once.
    """
    if groups is None:  # what is of no document is of that of its copies anyhow
        return None
    first: dict[str, Any] = {}
    documents = list(groups)
    for number, given in enumerate(inputs):
        if getattr(given, "is_text", False):
            # A conversation holds dictionaries, which are no keys.
            says = repr(getattr(given, "texts", ()))
            documents[number] = first.setdefault(says, documents[number])
    return tuple(documents)


def plain_of(parsed: Any) -> Any:
    """A text or pair of texts as JSON has it."""
    plain = list(parsed.texts) if parsed.text_pair is not None else parsed.text
    return list(getattr(plain, "messages", ())) or plain


def check_texts(tokenizer: Any, inputs: Iterable[Outcome], what: str = "the texts") -> float:
    """Raise where most of the tokens of all texts together are unknown; returns how many may be in
    one text.

    Args:
        tokenizer: of the model, or its processor.
        inputs: of which the texts are looked at; what cannot be read is passed over.
        what: they are called in the message.

    Raises:
        TextError: with the share.
    """
    texts: list[str] = []
    for given in islice(inputs, LOOKED_AT):
        texts += getattr(given, "texts", ())
    return check_known_texts(tokenizer, texts, what)


def check_known_texts(tokenizer: Any, texts: Iterable[str], what: str = "the texts") -> float:
    """`check_texts` of texts alone.

    Raises:
        TextError: with the share.
    """
    from headscope.capturing import MOST_UNKNOWN, check_known
    from headscope.capturing.inputs.parsed_input import Conversation

    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    # A conversation is looked at by itself, once it is rendered.
    plain = (text for text in texts if not isinstance(text, Conversation))
    # Not verbose, or the tokenizer warns of texts that are longer than the model takes.
    read = [tokenizer(text, verbose=False)["input_ids"] for text in islice(plain, LOOKED_AT)]
    if read:  # of pictures alone the processor has no words
        check_known(tokenizer, chain.from_iterable(read), what, MOST_UNKNOWN, texts=len(read))
    return MOST_UNKNOWN


def too_few_texts(source: Source, options: Mapping[str, Any]) -> str:
    """That there are too few texts for any label of a head; empty where there are enough, or one,
    which gives none.

    Args:
        source: whose texts, or the documents that they are of, are counted.
        options: of `headscope.patterns.heads`.
    """
    from headscope.patterns import PATTERNS
    from headscope.patterns.label import texts_needed

    config = getattr(source.model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers = getattr(config, "num_hidden_layers", None)
    heads = getattr(config, "num_attention_heads", None)
    # Chance is estimated over documents: many texts of one, and copies, count once.
    count = len({source.text(number).unit for number in range(len(source.inputs))})
    if count < 2 or not isinstance(layers, int) or not isinstance(heads, int):
        return ""
    scores = layers * heads * len(options.get("patterns", PATTERNS))
    needed = texts_needed(scores, options.get("alpha", 0.05), options.get("correction", "holm"))
    what = "texts" if count == len(source.inputs) else "documents"
    if count >= needed:
        return ""
    return (
        f"{count} {what} {FEW} {scores} scores of heads from chance, so that labels may not hold; "
        "the result says how many it takes"
    )


def warn_of_few(source: Source, options: Mapping[str, Any]) -> None:
    """Warn before the work where there are too few texts for any label of a head."""
    message = too_few_texts(source, options)
    if message:
        warnings.warn(message, stacklevel=3)


def _loaded(
    name: str | Path | None,
    inputs: tuple[Outcome, ...],
    load: Callable[..., tuple[Any, Any]] | None,
    loading: dict[str, Any],
) -> tuple[Any, Any]:
    """A named model and what it reads with: its processor where the first of its inputs holds a
    picture or a sound.
    """
    from headscope.capturing import ParsedInput, load_for, load_model

    first = inputs[0] if inputs else None
    if isinstance(first, ParsedInput) and first.has_media and load is None:
        return load_for(name, first, **loading)
    return (load or load_model)(name, **loading)
