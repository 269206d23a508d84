"""Sentences read by a model: attention between words, hidden states, word vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope._progress import counted
from headscope.capturing import Outcome, ParsedInputs, capture_inputs, check_known
from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.errors import CaptureError, FileError, HeadscopeError, RecordError
from headscope.linguistics import Sentence, Words, read_vectors, word_attention, words_at
from headscope.record import Record, Tokens, held
from headscope.studies.probes._items import ARRAYS, ProbeItem
from headscope.studies.probes._on_demand import LazySequence

STATES_AT_ONCE = 32
"""How many sentences of like length are read together for their hidden states."""

LeftOut = Callable[[int, HeadscopeError], None]
Put = Callable[[np.ndarray], Any]
"""Takes an array and gives it back, or one in a file with the same numbers."""


def in_memory(array: np.ndarray) -> np.ndarray:
    """The array itself."""
    return array


def with_maps(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sentence],
    inputs: Sequence[Outcome],
    *,
    on_error: LeftOut,
    progress: bool = False,
    max_unknown: float = 1.0,
) -> Iterator[tuple[int, ProbeItem]]:
    """Attention between the words of each sentence, of all heads of all layers.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        sentences: to be read, the words with a space between them.
        inputs: their texts, parsed.
        on_error: is called with number and error of a sentence that is left out.
        progress: whether to show a bar on terminals.
        max_unknown: largest share of unknown tokens in a sentence; one with more of them is left
            out.

    Yields:
        The number of each sentence that could be read, and the sentence.
    """
    failed: set[int] = set()

    def note(number: int, error: HeadscopeError) -> None:
        failed.add(number)
        on_error(number, error)

    given = ParsedInputs(inputs, len(inputs))
    records = capture_inputs(
        model, tokenizer, given, progress=progress, on_error=note, max_unknown=max_unknown
    )
    number = -1
    # Records do not name their text: a text that fails is reported before any later record
    # comes, so the next number that did not fail is its own.
    for record in records:
        number += 1
        while number in failed:
            number += 1
        try:
            item = mapped(sentences[number], record)
        except RecordError as error:
            on_error(number, error)
        else:
            yield number, item


def with_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sentence],
    inputs: Sequence[Outcome],
    *,
    on_error: LeftOut,
    progress: bool = False,
    max_unknown: float = 1.0,
) -> Iterator[tuple[int, ProbeItem]]:
    """The hidden states of each sentence as transformers returns them, in half precision; see
    `with_maps`.

    Raises:
        CaptureError: where the model returns none.
    """
    model = unwrapped(model)
    sizes: dict[int, int] = {}
    pieces: dict[int, tuple[tuple[int, ...], ...]] = {}
    for number, (sentence, given) in enumerate(zip(sentences, inputs, strict=True)):
        if isinstance(given, HeadscopeError):
            on_error(number, given)
            continue
        try:
            encoding = encode(model, tokenizer, given.texts)
            check_known(tokenizer, encoding["input_ids"], "the sentence", max_unknown)
            tokens = _tokens(tokenizer, encoding, sentence)
            pieces[number] = _words(sentence, tokens).tokens
            sizes[number] = len(encoding["input_ids"])
        except OF_ONE_INPUT as error:
            on_error(number, reason_of(error))
    order = sorted(sizes, key=sizes.__getitem__)
    batches = [
        order[first : first + STATES_AT_ONCE] for first in range(0, len(order), STATES_AT_ONCE)
    ]
    with at_rest(model):
        for batch in counted(batches, "Reading", "batch", shows=progress):
            # Made again: the numbers of all sentences would take as much memory as their texts.
            encoded = {
                number: dict(encode(model, tokenizer, (sentences[number].text,)))
                for number in batch
            }
            for number, states in _batch_states(model, encoded, on_error).items():
                sentence, own = sentences[number], pieces[number]
                yield number, ProbeItem(sentence=sentence, states=states, pieces=own)


def put_away(item: ProbeItem, put: Put) -> ProbeItem:
    """A sentence whose arrays were put somewhere."""
    arrays = {name: held(item, name) for name in ARRAYS if held(item, name) is not None}
    return item.with_arrays(**{name: put(np.ascontiguousarray(a)) for name, a in arrays.items()})


def with_embeddings(
    model: Any, tokenizer: Any, items: dict[int, ProbeItem], put: Put = in_memory
) -> dict[int, ProbeItem]:
    """The same with word vectors: the mean of the model's own input embeddings of a word's pieces.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        items: by number.
        put: takes the vectors of each sentence as soon as they are made.
    """
    table = unwrapped(model).get_input_embeddings().weight.detach().float().cpu().numpy()
    by_number = {}
    for number, item in items.items():
        encoding = encode(unwrapped(model), tokenizer, (item.sentence.text,))
        ids = np.array(encoding["input_ids"])
        tokens = _words(item.sentence, _tokens(tokenizer, encoding, item.sentence)).tokens
        vectors = np.stack([table[ids[list(pieces)]].mean(axis=0) for pieces in tokens])
        by_number[number] = item.with_arrays(vectors=put(vectors))
    return by_number


def with_table(path: Path, items: Sequence[ProbeItem]) -> LazySequence[ProbeItem]:
    """The same with word vectors of a file in GloVe's text format; zeros for words that are not in
    it.

    Raises:
        FileError: where it cannot be read, or holds none of the words.
        RecordError: where it is malformed.
    """
    wanted = {form for item in items for form in item.forms}
    try:
        with path.open(encoding="utf-8") as lines:
            table = read_vectors(lines, wanted)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read the word vectors {path}: {error}") from None
    if not table:
        raise FileError(
            f"{path} has a vector for none of the {len(wanted)} words; GloVe's text files have "
            "lower case"
        )
    none = np.zeros_like(next(iter(table.values())))

    def with_vectors(number: int) -> ProbeItem:
        item = items[number]
        return item.with_arrays(vectors=np.stack([table.get(form, none) for form in item.forms]))

    return LazySequence(len(items), with_vectors)


def mapped(sentence: Sentence, record: Record) -> ProbeItem:
    """Attention between words, and between words and the special tokens at both ends."""
    stack = next((stack for stack in record.stacks.values() if stack.query == stack.key), None)
    if stack is None:
        raise RecordError("The model has no self-attention, in which words look at words")
    words = _words(sentence, stack.query)
    columns = list(words.places)
    maps, ends = [], []
    for layer in stack:
        among = word_attention(np.asarray(layer.weights_of(), np.float64), words)
        maps.append(among[:, columns][:, :, columns])
        ends.append(_ends(among, columns))
    return ProbeItem(
        sentence=sentence,
        maps=np.concatenate(maps).astype(np.float32),
        ends=np.concatenate(ends).astype(np.float32),
    )


def _ends(
    among: Float[np.ndarray, "head unit unit"], columns: list[int]
) -> Float[np.ndarray, "head direction end word"]:
    """Attention of the first and last special token to words, and of words to these."""
    last = among.shape[1] - 1
    ends = np.zeros((len(among), 2, 2, len(columns)))
    # A model may have a special token at one end alone, or none: what is not there stays 0.
    if columns[0] > 0:
        ends[:, 0, 0], ends[:, 1, 0] = among[:, 0, columns], among[:, columns, 0]
    if columns[-1] < last:
        ends[:, 0, 1], ends[:, 1, 1] = among[:, last, columns], among[:, columns, last]
    return ends


def _words(sentence: Sentence, tokens: Tokens) -> Words:
    words = words_at(tokens, sentence.spans)
    words.check()
    return words


def _tokens(tokenizer: Any, encoding: Any, sentence: Sentence) -> Tokens:
    return tokens_from_encoding(tokenizer, encoding, (sentence.text,))


def _batch_states(
    model: Any, encodings: dict[int, dict[str, list[int]]], on_error: LeftOut
) -> dict[int, np.ndarray]:
    """The hidden states of a batch by number; one that fails as a whole is run again one by one.

    Raises:
        CaptureError: where the model returns none, which no sentence is to blame for.
    """
    try:
        states = dict(zip(encodings, _states(model, list(encodings.values())), strict=True))
    except CaptureError:
        raise
    except OF_ONE_INPUT:
        states = {}
        for number, encoding in encodings.items():
            try:
                states[number] = _states(model, [encoding])[0]
            except OF_ONE_INPUT as error:
                on_error(number, reason_of(error))
    by_number = {}
    for number, own in states.items():
        if np.isfinite(own).all():
            by_number[number] = own
        else:
            on_error(
                number,
                RecordError("the hidden states of the sentence are not finite in half precision"),
            )
    return by_number


def _states(model: Any, encodings: Sequence[dict[str, list[int]]]) -> list[np.ndarray]:
    """Hidden states ``[layer piece feature]`` of each, padding cut off."""
    sizes = [len(encoding["input_ids"]) for encoding in encodings]
    longest = max(sizes)
    device = device_of(model)
    arguments = {
        name: torch.tensor(
            [each[name] + [0] * (longest - len(each[name])) for each in encodings], device=device
        )
        for name in encodings[0]
    }
    arguments["attention_mask"] = torch.tensor(
        [[1] * size + [0] * (longest - size) for size in sizes], device=device
    )
    outputs = model(**arguments, output_hidden_states=True)
    states = getattr(outputs, "hidden_states", None)
    if states is None:
        raise CaptureError(
            f"{type(model).__name__} returns no hidden_states; a probe of hidden states needs them"
        )
    # Half precision: states of all layers of a treebank would not fit into memory else.
    together = torch.stack([layer.half() for layer in states]).cpu().numpy()
    return [together[:, number, :size] for number, size in enumerate(sizes)]
