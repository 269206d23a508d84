"""What a tree holds of each head: which texts are chosen, which weights are kept, and the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.headvis._sums import BINS, HeadvisSums, distance_edges
from headscope.record import BatchStack

PATTERN = "L{layer}H{head}.json"
LISTED = 50
"""Tokens in a table."""
SPACES = ("\u0120", "\u2581")
"""What byte-level BPE and SentencePiece write for a space before a token."""
ROW = 8
"""Weights that are kept of a row, at most."""
LEAST = 0.005
"""And none below it."""
DECIMALS = 4
"""As the original writes its numbers."""
MOST = 20_000
"""Texts whose largest weights are held, for the strata: those with the smallest hashes."""


@dataclass(frozen=True)
class ChosenText:
    """A text that a tree shows.

    Args:
        number: its place among all texts.
        given: what a model reads.
        strata: of each head that it is shown for, the stratum, from 1.
    """

    number: int
    given: Any
    strata: Mapping[int, int]


class SampleOfTexts:
    """Holds the largest weights of an even sample of the texts, and the strongest texts of each
    head.

    Both go by the hash of what a text says, so that neither depends on the order of the texts, and
    a text that is there twice is drawn once.

    Args:
        strongest: texts that are held of each head.
        most: texts in the sample.
    """

    def __init__(self, strongest: int, most: int = MOST) -> None:
        self._most, self._count, self._room = most, strongest, 2 * most
        self._texts: dict[int, tuple[tuple[int, Any], np.ndarray]] = {}

    def add(self, key: int, text: tuple[int, Any], maxima: Float[np.ndarray, " head"]) -> None:
        """Look at a text.

        Args:
            key: the hash of what it says.
            text: its place among all texts, and what a model reads.
            maxima: its largest weight in each head.
        """
        self._texts.setdefault(key, (text, maxima.copy()))
        if len(self._texts) > self._room:
            keys, _, strong = self._held()
            kept = {*keys[: self._most], *(keys[at] for at in strong.reshape(-1).tolist())}
            self._texts = {key: self._texts[key] for key in kept}
            # Twice as many at times, so that sorting costs little.
            self._room = 2 * len(kept)

    def _held(
        self,
    ) -> tuple[list[int], Float[np.ndarray, "text head"], Int[np.ndarray, "head strongest"]]:
        """Hashes in their order, largest weights, and the places of each head's strongest texts."""
        keys = sorted(self._texts)
        maxima = np.stack([self._texts[key][1] for key in keys])
        # At a tie the text with the smaller hash.
        order = np.argsort(-maxima, axis=0, kind="stable")
        return keys, maxima, order[: self._count].T

    def chosen(self, strata: int, of_stratum: int) -> list[ChosenText]:
        """The texts to show, by their hashes.

        Args:
            strata: equal parts of the texts by the largest weight; of the last one the strongest
                texts are taken, of the others those with the smallest hashes.
            of_stratum: texts of each but the last.
        """
        keys, maxima, strong = self._held()
        numbers: dict[int, dict[int, int]] = {}
        for head, strongest in enumerate(strong.tolist()):
            even = maxima[: self._most, head]
            borders = borders_of(even, strata)
            stratum = np.searchsorted(borders, even, side="right") + 1
            for number in range(1, strata):
                for index in np.flatnonzero(stratum == number)[:of_stratum].tolist():
                    numbers.setdefault(keys[index], {})[head] = number
            for index in strongest:
                if not len(borders) or maxima[index, head] >= borders[-1]:
                    numbers.setdefault(keys[index], {})[head] = strata
        return [ChosenText(*self._texts[key][0], numbers[key]) for key in sorted(numbers)]


def borders_of(maxima: Float[np.ndarray, " text"], strata: int) -> Float[np.ndarray, " border"]:
    """Where each stratum but the first begins: equal parts of the sorted values.

    Example:
        >>> borders_of(np.array([0.1, 0.4, 0.2, 0.3]), 2).tolist()
        [0.3]
    """
    ordered = np.sort(maxima)
    places = [round(at * len(ordered) / strata) for at in range(1, strata)]
    return ordered[np.minimum(np.array(places, int), len(ordered) - 1)]


def strongest_of_rows(
    weights: Float[np.ndarray, "query key"],
) -> tuple[Int[np.ndarray, " kept"], Float[np.ndarray, " kept"]]:
    """The entries of a map that a tree keeps: the 8 largest of each row, as far as they are at
    least 0.005.

    The largest weight outside row and column 0 is kept even where it is smaller, since readers take
    the maximum from what is kept.

    Returns:
        ``query * tokens + key`` of each entry, ascending, and its weight to four decimals.

    Example:
        >>> indices, values = strongest_of_rows(np.array([[1.0, 0.0], [0.996, 0.004]]))
        >>> indices.tolist(), values.tolist()
        ([0, 2, 3], [1.0, 0.996, 0.004])
    """
    weights = weights.astype(np.float64)
    order = np.argsort(-weights, axis=1, kind="stable")[:, :ROW]
    kept = np.zeros(weights.shape, bool)
    np.put_along_axis(kept, order, values=True, axis=1)
    kept &= weights >= LEAST
    inner = weights[1:, 1:]
    query, key = np.unravel_index(np.argmax(inner), inner.shape)
    kept[query + 1, key + 1] = True
    indices = np.flatnonzero(kept)
    return indices, weights.reshape(-1)[indices].round(DECIMALS)


def token_reader(tokenizer: Any) -> Callable[[int], str]:
    """What writes each token of a vocabulary as a reader should see it, with the space that it
    begins with.
    """
    words = getattr(tokenizer, "tokenizer", tokenizer)

    @cache
    def read(number: int) -> str:
        piece = words.convert_ids_to_tokens(number) or ""
        text = words.decode([number], clean_up_tokenization_spaces=False)
        # A decoder of SentencePiece takes the first token for the beginning of a text.
        lost = piece.startswith(SPACES) and not text.startswith(" ")
        return f" {text}" if lost else text or piece

    return read


class HeadFiles:
    """Writes the files of heads: texts one after the other as they come, to lines next to each
    file, since the texts of all heads together may not fit in memory.

    Args:
        folder: of the files.
        cells: layer and head of each.
        tokenizer: of the model.
    """

    def __init__(self, folder: Path, cells: Sequence[tuple[int, int]], tokenizer: Any) -> None:
        self._folder, self._cells = folder, cells
        self._read = token_reader(tokenizer)

    def add(self, stack: BatchStack, text: int, name: int, strata: dict[int, int]) -> None:
        """Put down a text for some heads.

        Args:
            stack: the attention of a batch.
            text: its place in the batch.
            name: its number in the tree.
            strata: the stratum of each head that it is shown for, by place.
        """
        tokens = [self._read(number) for number in stack.key[text].ids or ()]
        index = 0
        for layer in stack.layers:
            for weights in layer.weights[text]:
                if index in strata:
                    indices, values = strongest_of_rows(weights)
                    inner = (indices >= len(tokens)) & (indices % len(tokens) > 0)
                    sequence = {
                        "sequence_id": name,
                        "interval": strata[index],
                        "tokens": tokens,
                        "attention_indices": indices.tolist(),
                        "attention_values": values.tolist(),
                        "seq_len": len(tokens),
                        # Of what readers look at: all but row and column 0.
                        "max_activation": float(values[inner].max()),
                    }
                    with self._lines(index).open("a", encoding="utf-8") as file:
                        file.write(json.dumps(sequence) + "\n")
                index += 1

    def close(self, sums: HeadvisSums) -> None:
        """Make a file of the lines of each head, with what was counted over all texts."""
        for index, (layer, head) in enumerate(self._cells):
            lines = self._lines(index)
            written = lines.read_text(encoding="utf-8") if lines.exists() else ""
            sequences = [json.loads(line) for line in written.splitlines()]
            lines.unlink(missing_ok=True)
            sequences.sort(key=lambda each: (each["interval"], -each["max_activation"]))
            document = self._document(sequences, sums, index)
            name = PATTERN.format(layer=layer, head=head)
            (self._folder / name).write_text(json.dumps(document), encoding="utf-8")

    def _lines(self, head_index: int) -> Path:
        return self._folder / f"{head_index}.lines"

    def _document(self, sequences: list[Any], sums: HeadvisSums, head_index: int) -> dict[str, Any]:
        edges, shares = sums.distances(head_index)
        bins = [round(at / BINS, DECIMALS) for at in range(BINS + 1)]
        document = {
            "sequences": sequences,
            "histogram": _plot_of(bins, sums.histogram[head_index]),
            "qk_distance_histogram_all": _plot_of(edges, shares.round(DECIMALS)),
            "statistics": {
                "n_samples": len(sequences),
                "mean_max_activation": round(float(sums.maxima[head_index]) / sums.texts, DECIMALS),
                "kept_share": _kept_share(sequences),
            },
        }
        keys = sums.keys(head_index, LISTED)
        if keys is not None:
            document["top_key_tokens_all"] = [
                {"token": self._read(number), "weight": round(share, 2 * DECIMALS)}
                for number, share in keys
            ]
        return document | _of_sample(sequences)


def _plot_of(edges: list[Any], values: np.ndarray) -> dict[str, list[Any]]:
    return {"bin_edges": edges, "bin_values": values.tolist()}


def _kept_share(sequences: list[Any]) -> float | None:
    """Mean weight that is kept of a row."""
    rows = sum(each["seq_len"] for each in sequences)
    kept = sum(sum(each["attention_values"]) for each in sequences)
    return round(kept / rows, DECIMALS) if rows else None


def _of_sample(sequences: list[Any]) -> dict[str, Any]:
    """What HeadVis sums over the weights that are kept: by distance, and by the token at both
    ends.
    """
    longest = max((each["seq_len"] for each in sequences), default=1)
    edges = distance_edges(longest)
    by_distance = np.zeros(len(edges) - 1)
    by_token: tuple[dict[str, float], dict[str, float]] = {}, {}
    for each in sequences:
        values = np.array(each["attention_values"])
        ends = np.divmod(np.array(each["attention_indices"]), each["seq_len"])
        bins = np.searchsorted(edges, np.abs(ends[0] - ends[1]), side="right") - 1
        by_distance += np.bincount(bins, values, len(edges) - 1)
        for side, weights in zip(ends, by_token, strict=True):
            of_position = np.bincount(side, values, each["seq_len"])
            for token, weight in zip(each["tokens"], of_position.tolist(), strict=True):
                weights[token] = weights.get(token, 0.0) + weight
    return {
        "qk_distance_histogram": _plot_of(edges, by_distance.round(DECIMALS)),
        "top_query_tokens": _heaviest(by_token[0]),
        "top_key_tokens": _heaviest(by_token[1]),
    }


def _heaviest(weights: dict[str, float]) -> list[dict[str, Any]]:
    rounded = [(token, round(weight, DECIMALS)) for token, weight in weights.items()]
    rounded.sort(key=lambda each: (-each[1], each[0]))
    return [{"token": token, "weight": weight} for token, weight in rounded[:LISTED]]
