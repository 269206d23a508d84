"""What probes learn from, sentences of a treebank with what a model made of them; and how: by Adam,
keeping the epoch that did best on sentences set aside.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope._progress import counted
from headscope.errors import TextError
from headscope.linguistics import Sentence
from headscope.record import Array, array_field, held, part_of

HELD = 2**29
"""Bytes of batches and of what sentences are read as that are held; the rest stays in files."""
LEAST_GAIN = 1e-4


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeItem:
    """A sentence and what a model made of it; only what a probe asks for is there.

    Arrays may be in a file: they are then read each time that they are asked for.

    Args:
        sentence: with its tree.
        maps: attention between words, of all heads of all layers: axes map, word, word.
        ends: attention of the first and last special token to words, and of words to these: axes
            map, direction, end, word; zeros where there is no such token.
        states: hidden states of pieces, layer 0 the embeddings: axes layer, piece, feature.
        pieces: which of them each word is made of, and -1 behind these; axes word, piece.
        vectors: of words, that no sentence changes: axes word, feature.
    """

    sentence: Sentence
    maps: Array | None = array_field()
    ends: Array | None = array_field()
    states: Array | None = array_field()
    pieces: Array | None = array_field()
    vectors: Array | None = array_field()

    def __len__(self) -> int:
        return len(self.sentence)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The words in lower case: their types."""
        return tuple(word.lower() for word in self.sentence.words)

    @cached_property
    def heads(self) -> Int[np.ndarray, " word"]:
        """Number of each word's head, from 0; -1 at the root."""
        return np.array(self.sentence.heads, int) - 1

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Universal relation of each word, without subtype."""
        return tuple(relation.partition(":")[0] for relation in self.sentence.relations)

    @cached_property
    def counted(self) -> Bool[np.ndarray, " word"]:
        """The words that are no punctuation."""
        return np.array([relation != "punct" for relation in self.relations])

    def word_states(self, layer: int) -> Float[np.ndarray, "word feature"]:
        """The mean over each word's pieces, of one layer; no other is read from a file."""
        states = part_of(held(self, "states"), layer)
        pieces = np.asarray(self.pieces)
        return np.stack([states[own[own >= 0]].mean(axis=0, dtype=np.float32) for own in pieces])

    @property
    def states_shape(self) -> tuple[int, ...]:
        """Sizes of `states`, which are not read."""
        return held(self, "states").shape


@dataclass(frozen=True)
class ProbeData:
    """The sentences read by a model and, where that is asked for, by its twin with random weights.

    Args:
        items: read by the model.
        twin: by random weights.
        parts: numbers of the sentences to learn from, to choose by, and to report on.
    """

    items: Sequence[ProbeItem]
    twin: Sequence[ProbeItem] | None
    parts: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

    @cached_property
    def sizes(self) -> Int[np.ndarray, " sentence"]:
        """Words of each sentence."""
        return np.array([len(item) for item in self.items])

    @property
    def sides(self) -> dict[str, Sequence[ProbeItem]]:
        """Whose items, by the name of the score."""
        return {"probe": self.items} | ({} if self.twin is None else {"random weights": self.twin})

    def part(self, number: int) -> list[ProbeItem]:
        """The sentences learnt from (0), set aside (1) or reported on (2)."""
        return [self.items[at] for at in self.parts[number]]


def parts_of(
    sentences: Sequence[Sentence], shares: tuple[float, float, float], seed: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Draw which documents are learnt from, set aside and reported on; no document lies in two
    parts.

    Sentences of one document stay together, and so do equal sentences that are of none. A sentence
    of which an equal one of another document lies in an earlier part is left out of the later ones:
    nothing is reported on that was learnt from.

    Args:
        sentences: to be divided.
        shares: of the sentences that each of the three parts is to have; they sum to 1.
        seed: of the draw.

    Raises:
        TextError: where a part would be empty.
    """
    forms = [sentence.text.lower() for sentence in sentences]
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (sentence, form) in enumerate(zip(sentences, forms, strict=True)):
        of = sentence.document, "" if sentence.document else form
        groups.setdefault(of, []).append(number)
    listed = list(groups.values())
    order = np.random.default_rng(seed).permutation(len(listed))
    # Documents differ in length: parts end where their share of sentences does. 1e-9 is for shares
    # that a sum of rounded numbers puts a little behind the sentence that completes them.
    sizes = np.cumsum([len(listed[at]) for at in order])
    ends = np.searchsorted(sizes, np.cumsum(shares)[:2] * len(sentences) - 1e-9) + 1
    # A long document must not take the place of the parts after it: each part has one document at
    # least.
    first, second = np.minimum(ends, [len(listed) - 2, len(listed) - 1]).tolist()
    parts, seen = [], set()
    for part in np.split(order, [first, max(second, first + 1)]):
        own = sorted(number for at in part for number in listed[at] if forms[number] not in seen)
        parts.append(tuple(own))
        seen.update(map(forms.__getitem__, own))
    if not all(parts):
        raise TextError(
            f"{len(listed)} different documents or sentences are too few to be divided into "
            f"{', '.join(map('{:.0%}'.format, shares))}"
        )
    train, aside, test = parts
    return train, aside, test


class HeldBatches(Sequence[Any]):
    """Tuples of tensors that are made when they are asked for, the same at any time.

    Args:
        parts: what each is made of.
        make: makes one.
        room: bytes that may still be held, which several share. Those that are made first stay:
            where every entry is asked for once an epoch, that saves as many as any other choice.
    """

    def __init__(self, parts: Sequence[Any], make: Callable[[Any], Any], room: list[int]) -> None:
        self._parts, self._make, self._room = parts, make, room
        self._held: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: Any) -> Any:
        if number in self._held:
            return self._held[number]
        made = self._make(self._parts[number])
        size = sum(part.nbytes for part in made if part is not None)
        if size <= self._room[0]:
            self._room[0] -= size
            self._held[number] = made
        return made


def filled(arrays: Iterable[np.ndarray], shape: tuple[int, ...], nothing: float = 0) -> Tensor:
    """Arrays of several sizes in one tensor, filled up; numbers in float32. Each is read when it is
    put there.
    """
    whole = np.zeros(0)
    for number, array in enumerate(arrays):
        if not number:
            kind = np.float32 if array.dtype.kind == "f" else array.dtype
            whole = np.full(shape, nothing, kind)
        whole[(number, *map(slice, array.shape))] = array
    return torch.from_numpy(whole)


@dataclass(frozen=True)
class Training:
    """How a probe is trained.

    Args:
        epochs: at most.
        rate: of Adam.
        drop: what the rate is multiplied by after an epoch that did not lower the loss on the
            sentences set aside.
        patience: how many such epochs in a row end the training.
        decay: L2 penalty.
        progress: whether to show a bar on terminals.
        seed: of the first weights, the order and dropout.
    """

    epochs: int
    rate: float
    drop: float = 0.5
    patience: int = 3
    decay: float = 0.0
    progress: bool = False
    seed: int = 0


def fit(
    make: Callable[[], nn.Module],
    batches: tuple[Sequence[Any], Sequence[Any]],
    loss: Callable[[Any, Any], Tensor],
    how: Training,
    *,
    name: str,
) -> tuple[Any, int]:
    """Train a probe; the same seed gives the same probe, and the caller's random state stays as it
    was.

    Args:
        make: makes the module.
        batches: to learn from, and to choose the epoch by; in each epoch they come in another
            order.
        loss: of a module on a batch, a mean.
        how: the rest.
        name: for the bar.

    Returns:
        The probe, and the epoch that it is from, counted from 1.
    """
    learnt, aside = batches

    def reached() -> float:
        module.eval()
        with torch.no_grad():
            return sum(float(loss(module, batch)) for batch in aside) / len(aside)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(how.seed)
        module = make()
        # Before any training: a probe that never gets better stays as it was made.
        best, best_epoch, since, rate = reached(), 0, 0, how.rate
        kept = copy.deepcopy(module.state_dict())
        optimiser = _adam(module, how, rate)
        epochs = range(1, how.epochs + 1)
        for epoch in counted(epochs, name, "epoch", shows=how.progress, stays=False):
            module.train()
            for number in torch.randperm(len(learnt)).tolist():
                optimiser.zero_grad(set_to_none=True)
                loss(module, learnt[number]).backward()
                optimiser.step()
            now = reached()
            if now < best - LEAST_GAIN * abs(best):
                best, best_epoch, since = now, epoch, 0
                kept = copy.deepcopy(module.state_dict())
                continue
            since += 1
            if since >= how.patience:
                break
            # Adam begins anew: its momentum is of steps at the larger rate.
            rate *= how.drop
            optimiser = _adam(module, how, rate)
    module.load_state_dict(kept)
    return module.eval(), best_epoch


def _adam(module: nn.Module, how: Training, rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=rate, weight_decay=how.decay, fused=True)
