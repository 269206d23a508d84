"""Where the records of a study come from: given ones, or a model that is run on texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope._progress import warn_left_out
from headscope.corpus import CorpusText, Sums, TextNames
from headscope.errors import HeadscopeError, ModelError, NoSuchStackError, RecordError
from headscope.evidence.groups import group_of, listed_groups
from headscope.studies.shared._fold import Fold, Item, taken

if TYPE_CHECKING:
    from headscope.capturing import Outcome

CAPTURING = ("truncate", "batch_tokens", "batch_size", "progress", "on_error", "allow_unfit")
LOADING = ("device", "dtype", "revision", "device_map", "quantization_config")
LOADING += ("attn_implementation", "trust_remote_code")
"""Names of `headscope.capturing.LoadOptions`, for studies of records, which do without torch."""
FEW = "are too few to tell up to"
"""The words about too few texts, before the number of scores."""
LOOKED_AT = 256
"""So many texts are looked at for unknown tokens before any is run."""


@dataclass
class TextsInMemory:
    """A model with texts that are folded in this process, as often as it takes.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        inputs: texts, pairs of them, pictures or sounds, or why one of them cannot be read.
        options: of `headscope.capture_many`.
        items: their names and documents.
        left_out: by name, why others cannot be read.
    """

    model: Any
    tokenizer: Any
    inputs: tuple[Outcome, ...]
    options: dict[str, Any]
    items: Sequence[Item]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def has_media(self) -> bool:
        """Whether there are pictures or sounds."""
        return any(getattr(given, "has_media", False) for given in self.inputs)

    def keep(self, result: Any) -> None:
        """Nothing: there is no folder."""

    def folded(
        self,
        fold: Fold,
        how: Mapping[str, Any],
        judging: Mapping[str, Any],
        *,
        random: bool = False,
        place: str = "",
    ) -> Any:
        """The result of a study over the texts.

        Args:
            fold: the study.
            how: options that the counts depend on.
            judging: options that they do not depend on.
            random: whether random weights read them.
            place: of a fold that is made before or after that of the study, which tells of no text
                that is left out.

        Raises:
            RecordError: where no text is left.
        """
        from headscope.capturing import ParsedInputs, random_twin

        readers = random_twin(self.model) if random else self.model, self.tokenizer
        sums, lost = Sums(fold.what), {}
        # Random weights are silent on texts that they cannot read.
        report = self.options.get("on_error") or warn_left_out
        report = passed if place or random else report

        def lose(at: int, error: HeadscopeError) -> None:
            # What is wrong whatever the text ends a run, too.
            if isinstance(error, ModelError | NoSuchStackError):
                raise error
            lost[self.items[at].name] = str(error)
            report(at, error)

        whats = [item.what for item in self.items]
        reading = self.options | {"on_error": lose}
        given = ParsedInputs(list(self.inputs), len(self.inputs))
        for at, values in fold.counts(readers, given, whats, how=how, reading=reading):
            values.add_to(sums, self.items[at].name, self.items[at].unit)
        if fold.beside is not None and len(sums):
            judging = {**judging, "beside": fold.beside(readers, how)}
        left_out = self.left_out | lost
        counts = {"given": len(self.items) + len(self.left_out), "lost": len(left_out)}
        return fold.concluded(sums, how, judging, left_out=left_out, **counts)


def passed(*_: Any) -> None:
    """What cannot be captured is reported once, when the model itself reads it."""


def read_in_memory(
    fold: Fold, given: tuple[Any, Any], texts: Any, options: dict[str, Any]
) -> TextsInMemory:
    """Texts, and the model that is to read them.

    Args:
        fold: the study.
        given: a model (loaded, its name or folder, or None for the demo model) and its tokenizer,
            which may be None where that is named.
        texts: a text, a list of texts, pairs or other inputs of `headscope.capture_many`.
        options: of capturing and loading, and ``groups`` of texts.

    Raises:
        RecordError: where a tokenizer is missing, or there is no text.
        ModelError: where a model is none, or cannot be loaded.
        TextError: where the tokenizer does not know most of what is in the texts.
    """
    from headscope.capturing import check_reader, groups_in, parse_texts

    if given[1] is not None:
        check_reader(given[1], "study")
    capturing, loading = taken(options, CAPTURING), taken(options, LOADING)
    inputs = parse_texts(texts)
    groups = options.pop("groups", None)
    groups = groups_in(texts) if groups is None else groups
    if groups is not None:
        # Documents are counted before a model is loaded, which may take minutes.
        groups = with_copies(inputs, tuple(listed_groups(groups, len(inputs))))
    anyway = capturing.pop("allow_unfit", False)
    readers = _ready(given, inputs, fold.needed(allow_unfit=anyway), loading)
    if not inputs:
        raise RecordError(
            f"Texts were given as {type(texts).__name__} with none in it; give a text, or a list "
            "of them"
        )
    capturing["max_unknown"] = 1.0 if anyway else check_texts(readers[1], inputs)
    if fold.check is not None:
        fold.check(readers, inputs, {}, allow_unfit=anyway, truncate=False)
    return TextsInMemory(*readers, inputs, capturing, _items_of(inputs, groups))


def _items_of(inputs: Sequence[Outcome], groups: Sequence[Any] | None) -> list[Item]:
    """Texts as a run knows them: by what they say; by their place where they are no texts."""
    names, items = TextNames(), []
    for number, each in enumerate(inputs):
        says = plain_of(each) if getattr(each, "is_text", False) else number
        text = CorpusText(says, None if groups is None else group_of(groups[number]))
        items.append(Item(names.of(text), text.document, None))
    return items


def check_only_records(tokenizer: Any, options: Mapping[str, Any]) -> None:
    """Raise where something was given with records that belongs to a model and texts.

    Raises:
        RecordError: naming it.
    """
    if tokenizer is not None:
        from headscope.capturing import check_reader

        check_reader(tokenizer, "study")
    given = ["tokenizer"] if tokenizer is not None else []
    given += [name for name in (*CAPTURING, *LOADING) if name in options]
    if given:
        raise RecordError(
            f"{', '.join(given)} belong to a model and texts; give both, as (model, "
            "tokenizer, texts)"
        )


def _ready(
    given: tuple[Any, Any], inputs: tuple[Outcome, ...], needs: str, loading: dict[str, Any]
) -> tuple[Any, Any]:
    """The model, loaded where it was named, and its tokenizer, or its processor where the first of
    its inputs holds a picture or a sound.
    """
    from headscope.capturing import load_for
    from headscope.studies.shared._corpus_model import NamedModel, check_pair, load_named

    model, tokenizer = given
    if model is not None and not isinstance(model, str | Path):
        check_pair(model, tokenizer, loading)
        return given
    first: Any = inputs[0] if inputs else None
    if needs == "attention" and getattr(first, "has_media", False):
        model, own = load_for(model, first, **loading)
    else:
        name = None if model is None else str(model)
        model, own = load_named(NamedModel(name, tuple(loading.items()), needs=needs))
    return model, own if tokenizer is None else tokenizer


def with_copies(inputs: Sequence[Outcome], groups: tuple) -> tuple:
    """The document of each text, where copies of a text are of the document of the first of them:
    what is said twice proves no more than once.
    """
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
    messages, documents = (list(getattr(plain, name, ())) for name in ("messages", "documents"))
    if documents:
        return {"documents": documents, "question": messages[-1]["content"]}
    return messages or plain


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
    from headscope.parts import Conversation

    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    # A conversation is looked at by itself, once it is rendered.
    plain = (text for text in texts if not isinstance(text, Conversation))
    # Not verbose, or the tokenizer warns of texts that are longer than the model takes.
    read = [tokenizer(text, verbose=False)["input_ids"] for text in islice(plain, LOOKED_AT)]
    if read:  # of pictures alone the processor has no words
        check_known(tokenizer, chain.from_iterable(read), what, MOST_UNKNOWN, texts=len(read))
    return MOST_UNKNOWN


def warn_of_few(read: TextsInMemory, options: Mapping[str, Any]) -> None:
    """Warn before the work where there are too few texts for any label of a head; of one text
    alone there is none.

    Args:
        read: whose texts, or the documents that they are of, are counted.
        options: of `headscope.patterns.heads`.
    """
    from headscope.patterns import PATTERNS
    from headscope.patterns.label import texts_needed

    config = getattr(read.model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    layers = getattr(config, "num_hidden_layers", None)
    heads = getattr(config, "num_attention_heads", None)
    # Chance is estimated over documents: many texts of one, and copies, count once.
    count = len({item.document for item in read.items})
    if count < 2 or not isinstance(layers, int) or not isinstance(heads, int):
        return
    scores = layers * heads * len(options.get("patterns", PATTERNS))
    needed = texts_needed(scores, options.get("alpha", 0.05), options.get("correction", "holm"))
    what = "texts" if count == len(read.inputs) else "documents"
    if count < needed:
        message = (
            f"{count} {what} {FEW} {scores} scores of heads from chance, so that labels may not "
            "hold; the result says how many it takes"
        )
        warnings.warn(message, stacklevel=2)
