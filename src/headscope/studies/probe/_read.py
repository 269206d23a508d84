"""What `probe` learns from, read by a model: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope.capturing import check_known, parse_input
from headscope.capturing.device import device_of
from headscope.capturing.facts import facts_of
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.many import OF_ONE_INPUT, leaving_out, reason_of
from headscope.capturing.run import at_rest, unwrapped
from headscope.corpus import EACH, Counted
from headscope.errors import CaptureError, RecordError
from headscope.linguistics import Sentence, Words, word_attention, words_at
from headscope.record import Record, Tokens, held, part_of
from headscope.studies.probe._data import ARRAYS, ProbeItem, filled
from headscope.studies.shared._fold import Fold, FoldSums, Readers, Reading, captured
from headscope.studies.shared._sentences import given_of, sentence_of
from headscope.studies.shared._source import check_known_texts

STATES_AT_ONCE = 32
"""How many sentences of like length are read together for their hidden states."""

Failed = Callable[[int, Exception], None]
"""Is called with number and error of a sentence that is left out."""
Encodings = dict[int, dict[str, list[int]]]


def with_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[Sentence],
    failed: Failed,
    *,
    max_unknown: float = 1.0,
) -> Iterator[tuple[int, ProbeItem]]:
    """The hidden states of each sentence as transformers returns them, in half precision.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        sentences: to be read, the words with a space between them.
        failed: is called with number and error of a sentence that is left out.
        max_unknown: largest share of unknown tokens in a sentence; one with more of them is left
            out.

    Yields:
        The number of each sentence that could be read, and the sentence.

    Raises:
        CaptureError: where the model returns none.
    """
    model, read = unwrapped(model), {}
    for number, sentence in enumerate(sentences):
        with leaving_out(number, failed):
            encoding, pieces = _read(model, tokenizer, sentence)
            check_known(tokenizer, encoding["input_ids"], "the sentence", max_unknown)
            read[number] = encoding, pieces
    order = sorted(read, key=lambda number: len(read[number][0]["input_ids"]))
    with at_rest(model):
        for first in range(0, len(order), STATES_AT_ONCE):
            batch = {number: read[number][0] for number in order[first : first + STATES_AT_ONCE]}
            for number, states in _batch_states(model, batch, failed):
                own, pieces = sentences[number], read[number][1]
                yield number, ProbeItem(sentence=own, states=states, pieces=pieces)


def with_embeddings(model: Any, tokenizer: Any, item: ProbeItem) -> ProbeItem:
    """The same with word vectors: the mean of the model's own input embeddings of a word's pieces.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        item: the sentence.
    """
    table = unwrapped(model).get_input_embeddings().weight
    encoding, pieces = _read(unwrapped(model), tokenizer, item.sentence)
    rows = table[torch.tensor(encoding["input_ids"], device=table.device)]
    rows = rows.detach().float().cpu().numpy()
    return item.with_arrays(vectors=np.stack([rows[own[own >= 0]].mean(axis=0) for own in pieces]))


def _read(model: Any, tokenizer: Any, sentence: Sentence) -> tuple[dict[str, list[int]], Any]:
    """What the tokenizer makes of a sentence, and which pieces each word is made of."""
    encoding = encode(model, tokenizer, parse_input(sentence.text))
    tokens = tokens_from_encoding(tokenizer, encoding, (sentence.text,))
    words = _words(sentence, tokens).tokens
    shape = len(words), max(map(len, words))
    return dict(encoding), filled(map(np.array, words), shape, -1).numpy()


def _words(sentence: Sentence, tokens: Tokens) -> Words:
    words = words_at(tokens, sentence.spans)
    words.check()
    return words


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


def _batch_states(
    model: Any, encodings: Encodings, failed: Failed
) -> Iterator[tuple[int, np.ndarray]]:
    """The hidden states of a batch by number; one that fails as a whole is run again one by one.

    Raises:
        CaptureError: where the model returns none, which no sentence is to blame for.
    """
    try:
        states = _states(model, list(encodings.values()))
    except CaptureError:
        raise
    except OF_ONE_INPUT as error:
        for number, encoding in encodings.items():
            if len(encodings) == 1:
                failed(number, reason_of(error))
            else:
                yield from _batch_states(model, {number: encoding}, failed)
        return
    for number, own in zip(encodings, states, strict=True):
        if np.isfinite(own).all():
            yield number, own
        else:
            said = "the hidden states of the sentence are not finite in half precision"
            failed(number, RecordError(said))


def _states(model: Any, encodings: Sequence[dict[str, list[int]]]) -> list[np.ndarray]:
    """Hidden states ``[layer piece feature]`` of each, padding cut off."""
    sizes = [len(encoding["input_ids"]) for encoding in encodings]
    longest, arguments = max(sizes), {}
    filled = [each | {"attention_mask": [1] * len(each["input_ids"])} for each in encodings]
    for name in filled[0]:
        rows = [each[name] + [0] * (longest - len(each[name])) for each in filled]
        arguments[name] = torch.tensor(rows, device=device_of(model))
    outputs = model(**arguments, output_hidden_states=True)
    states = getattr(outputs, "hidden_states", None)
    if states is None:
        raise CaptureError(
            f"{type(model).__name__} returns no hidden_states; a probe of hidden states needs them"
        )
    # Half precision: states of all layers of a treebank would not fit into memory else.
    together = torch.stack([layer.half() for layer in states]).cpu().numpy()
    return [together[:, number, :size] for number, size in enumerate(sizes)]


def items_of(read: FoldSums, sentences: Iterable[Sentence]) -> list[ProbeItem]:
    """Sentences with what the model made of them, whose arrays are in the files of a run."""
    arrays = {name: own for (name, _), own in read.sums.each.items()}
    items = []
    for sentence in sentences:
        own = dict(arrays[sentence.name])
        # Small, and asked for word by word.
        if "pieces" in own:
            own["pieces"] = part_of(own["pieces"])
        items.append(ProbeItem(sentence=sentence, **own))
    return items


def _records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Counted]]:
    """What the model made of each sentence."""
    sentences, model = list(given), facts_of(unwrapped(readers[0])).name
    failed, unknown = reading["on_error"], reading["max_unknown"]
    if how["reads"] == "states":
        items = with_states(*readers, sentences, failed, max_unknown=unknown)
    else:
        items = _with_maps(readers, sentences, reading)
    for number, item in items:
        own = with_embeddings(*readers, item) if how["embeddings"] else item
        arrays = {f"{EACH}{name}": held(own, name) for name in ARRAYS}
        there = {name: array for name, array in arrays.items() if array is not None}
        yield number, Counted(there, len(item), {"model": model})


def _with_maps(
    readers: Readers, sentences: Sequence[Sentence], reading: Reading
) -> Iterator[tuple[int, ProbeItem]]:
    texts = [sentence.text for sentence in sentences]
    for number, record in captured(readers, texts, {}, reading):
        try:
            yield number, mapped(sentences[number], record)
        except RecordError as error:
            reading["on_error"](number, error)


def _check(readers: Readers, given: Sequence[Any], *_: Any, allow_unfit: bool, **__: Any) -> None:
    """Raise where most of the words are unknown to the tokenizer."""
    if not allow_unfit:
        check_known_texts(readers[1], [sentence.text for sentence in given])


READ = Fold(
    name="probe",
    what="sentence",
    given_of=given_of,
    item_of=sentence_of,
    records_of=_records_of,
    reads_texts=False,
    check=_check,
)
