"""What `probe` learns from, read by a model: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from headscope.capturing import check_known
from headscope.capturing.device import device_of
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.run import at_rest, unwrapped
from headscope.corpus import EACH, Counts
from headscope.errors import ModelError, RecordError
from headscope.linguistics import Sentence, Words, word_attention, words_at
from headscope.record import Record, Tokens
from headscope.studies.probe._data import filled
from headscope.studies.shared._corpus_model import changed_name
from headscope.studies.shared._fold import Fold, Readers, Reading, captured, one_by_one
from headscope.studies.shared._sentences import given_of, sentence_of


def maps_of(sentence: Sentence, record: Record, **_: Any) -> Counts:
    """Attention between words, and between words and the special tokens at both ends.

    Raises:
        RecordError: where there is no self-attention, or words and tokens cannot be aligned.
    """
    stack = next((stack for stack in record.stacks.values() if stack.query == stack.key), None)
    if stack is None:
        raise RecordError("The model has no self-attention, in which words look at words")
    words = _words(sentence, stack.query)
    columns = list(words.places)
    first, last = columns[0], columns[-1]
    maps, ends = [], []
    for layer in stack:
        among = word_attention(np.asarray(layer.weights_of(), np.float64), words)
        maps.append(among[:, columns][:, :, columns])
        own = np.zeros((len(among), 2, 2, len(columns)))
        # A model may have a special token at one end alone, or none: what is not there stays 0.
        for end, is_there in enumerate((first > 0, last < among.shape[1] - 1)):
            if is_there:
                own[:, 0, end], own[:, 1, end] = among[:, -end, columns], among[:, columns, -end]
        ends.append(own)
    both = {"maps": np.concatenate(maps), "ends": np.concatenate(ends)}
    return {f"{EACH}{name}": array.astype(np.float32) for name, array in both.items()}


def _words(sentence: Sentence, tokens: Tokens) -> Words:
    words = words_at(tokens, sentence.spans)
    words.check()
    return words


class Read(NamedTuple):
    """What a model made of a sentence.

    Args:
        model: its name.
        tokens: of the sentence.
        array: input embeddings, or hidden states, of the tokens.
        record: of attention, where that is asked for.
    """

    model: str
    tokens: Tokens
    array: np.ndarray
    record: Record | None = None


def _with_rows(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Read]]:
    """The record of each sentence, and the model's own input embeddings of its tokens."""
    table = unwrapped(readers[0]).get_input_embeddings().weight
    for number, record in captured(readers, given, how, reading):
        tokens = next(iter(record.stacks.values())).query
        rows = table[torch.tensor(tokens.ids, device=table.device)].detach().float().cpu().numpy()
        yield number, Read(changed_name(readers[0]), tokens, rows, record)


def words_of(sentence: Sentence, read: Read, **_: Any) -> Counts:
    """Attention as of `maps_of`, and word vectors: the mean over the tokens of each word."""
    assert read.record is not None, "else it was not read with one"
    words = _words(sentence, read.tokens).tokens
    vectors = np.stack([read.array[list(own)].mean(axis=0) for own in words])
    return {**maps_of(sentence, read.record), f"{EACH}vectors": vectors}


def _with_states(
    readers: Readers, given: Iterable[Any], _: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Read]]:
    """The hidden states ``[layer piece feature]`` of each sentence as transformers returns them.

    Raises:
        ModelError: where the model returns none.
    """
    model, tokenizer = unwrapped(readers[0]), readers[1]
    device, name = device_of(model), changed_name(model)

    def read(_: int, text: Any) -> Read:
        encoding = encode(model, tokenizer, text)
        check_known(tokenizer, encoding["input_ids"], "the sentence", reading["max_unknown"])
        inputs = {each: torch.tensor([row], device=device) for each, row in encoding.items()}
        states = getattr(model(**inputs, output_hidden_states=True), "hidden_states", None)
        if states is None:
            raise ModelError(
                f"{type(model).__name__} returns no hidden_states; a probe of hidden states needs "
                "them"
            )
        # Half precision: states of all layers of a treebank would not fit into memory else.
        half = torch.stack([layer[0].half() for layer in states]).cpu().numpy()
        if not np.isfinite(half).all():
            raise RecordError("the hidden states are not finite in half precision")
        return Read(name, tokens_from_encoding(tokenizer, encoding, text.texts), half)

    with at_rest(model):
        yield from one_by_one(given, read, reading, "Reading")


def states_of(sentence: Sentence, read: Read, **_: Any) -> Counts:
    """Hidden states, and which pieces each word is made of."""
    words = _words(sentence, read.tokens).tokens
    pieces = filled(map(np.array, words), (len(words), max(map(len, words))), -1).numpy()
    return {f"{EACH}states": read.array, f"{EACH}pieces": pieces}


def _input_of(sentence: Sentence, _: Mapping[str, Any]) -> str:
    return sentence.text


def _told_of(read: Read, _: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    return len(read.tokens), {"model": read.model}


MAPS = Fold(
    name="probe",
    what="sentence",
    counts_of=maps_of,
    input_of=_input_of,
    given_of=given_of,
    item_of=sentence_of,
)
WORDS = replace(MAPS, counts_of=words_of, records_of=_with_rows, told_of=_told_of)
STATES = replace(MAPS, counts_of=states_of, records_of=_with_states, told_of=_told_of)
