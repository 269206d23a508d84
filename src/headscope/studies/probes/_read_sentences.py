"""Sentences read by a model: attention between words, hidden states, word vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing import check_known, parse_input
from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.many import OF_ONE_INPUT, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.errors import CaptureError, FileError, HeadscopeError, RecordError
from headscope.linguistics import Sentence, Words, read_vectors, word_attention, words_at
from headscope.record import Record, Tokens
from headscope.studies.probes._items import ProbeItem
from headscope.studies.probes._on_demand import LazySequence

STATES_AT_ONCE = 32
"""How many sentences of like length are read together for their hidden states."""

LeftOut = Callable[[int, HeadscopeError], None]


def with_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sentence],
    *,
    on_error: LeftOut,
    max_unknown: float = 1.0,
) -> Iterator[tuple[int, ProbeItem]]:
    """The hidden states of each sentence as transformers returns them, in half precision.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        sentences: to be read, the words with a space between them.
        on_error: is called with number and error of a sentence that is left out.
        max_unknown: largest share of unknown tokens in a sentence; one with more of them is left
            out.

    Yields:
        The number of each sentence that could be read, and the sentence.

    Raises:
        CaptureError: where the model returns none.
    """
    model = unwrapped(model)
    sizes: dict[int, int] = {}
    pieces: dict[int, tuple[tuple[int, ...], ...]] = {}
    for number, sentence in enumerate(sentences):
        try:
            encoding = encode(model, tokenizer, parse_input(sentence.text).texts)
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
        for batch in batches:
            # Made again: the numbers of all sentences would take as much memory as their texts.
            encoded = {
                number: dict(encode(model, tokenizer, (sentences[number].text,)))
                for number in batch
            }
            for number, states in _batch_states(model, encoded, on_error).items():
                sentence, own = sentences[number], pieces[number]
                yield number, ProbeItem(sentence=sentence, states=states, pieces=own)


def with_embeddings(model: Any, tokenizer: Any, item: ProbeItem) -> ProbeItem:
    """The same with word vectors: the mean of the model's own input embeddings of a word's pieces.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        item: the sentence.
    """
    table = unwrapped(model).get_input_embeddings().weight
    encoding = encode(unwrapped(model), tokenizer, (item.sentence.text,))
    tokens = _words(item.sentence, _tokens(tokenizer, encoding, item.sentence)).tokens
    rows = table[torch.tensor(encoding["input_ids"], device=table.device)]
    rows = rows.detach().float().cpu().numpy()
    return item.with_arrays(vectors=np.stack([rows[list(own)].mean(axis=0) for own in tokens]))


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
