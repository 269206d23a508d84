"""An atlas, or two side by side, as a folder of files that any web server can host, and that opens
by double click.

A page opened from a disk may not fetch, so its data comes in scripts: each calls one function with
its name and its JSON. ``data/index.js`` is read first and holds the data of the map of all heads;
the data of each head and the texts are read when a reader opens them.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.atlases import (
    CLASSES,
    PARTS,
    SIDE,
    STEP,
    Atlas,
    AtlasComparison,
    AtlasHead,
    bin_names,
)
from headscope.errors import FileError
from headscope.patterns import Label
from headscope.results import Result, shows
from headscope.storage import local_path, written_whole
from headscope.views import _html
from headscope.views._thumbs import packed, quantise
from headscope.views.file_page import policy_of

SEARCHED = 10
"""Number of pairs of words of each head that the index holds, for the search over all heads."""


@shows(Atlas.KIND)
def atlas_page(atlas: Atlas) -> FolderPage:
    """The page of an atlas, which `FolderPage.save` writes as a folder."""
    title = f"{atlas.model or 'A model'}: atlas of {len(atlas.cells)} heads"
    return FolderPage(atlas, title, partial(atlas_data, atlas))


def atlas_data(atlas: Atlas) -> Iterator[tuple[str, Data]]:
    """Name and content of each script, that of all heads last."""
    for at, (layer, head) in enumerate(atlas.cells):
        yield f"head-{layer}-{head}", _head_data(atlas, at, atlas.head(layer, head))
    texts = [
        {"words": text.words, "special": np.flatnonzero(text.special).tolist()}
        for text in atlas.sample
    ]
    yield "texts", texts
    yield "index", _index_data(atlas)


def _index_data(atlas: Atlas) -> dict[str, Any]:
    """Data for the map of all heads and its search."""
    patterns = [{"name": of.name, "says": of.says} for of in atlas.heads.tally.patterns]
    return {
        "model": atlas.model,
        "texts": atlas.texts,
        "tokens": atlas.tokens,
        "documents": atlas.heads.documents,
        "summary": atlas.summary,
        "caution": atlas.heads.caution,
        "patterns": patterns,
        "classes": list(CLASSES),
        "distances": bin_names(),
        "side": SIDE,
        "heads": [_tile_data(atlas, at) for at in range(len(atlas.cells))],
        "maps": packed_maps(atlas.maps),
    }


def packed_maps(maps: Float[np.ndarray, "head query key"]) -> str:
    """Mean maps in base64: square roots of the weights as bytes, so that weak ones can be
    distinguished; 0 where no text has such a position.
    """
    return packed(quantise(np.nan_to_num(maps)))


def _tile_data(atlas: Atlas, at: int) -> dict[str, Any]:
    """Data of one head on the map of all heads."""
    labels = []
    for label in atlas.labels_of(at):
        if label.holds or label.candidate:
            score = short_number(label.score)
            labels.append({"name": label.pattern, "score": score, "holds": label.holds})
    words = [_pair(pair) for pair in atlas.pairs[at] if pair.is_words]
    return {**_place_data(atlas, at), "labels": labels, "pairs": words[:SEARCHED]}


def _place_data(atlas: Atlas, at: int) -> dict[str, Any]:
    """Which head it is, and what its attention and even attention give to each class of tokens."""
    layer, head = atlas.cells[at]
    keys = {"keys": _key_classes(atlas, at), "evenKeys": _key_classes(atlas, atlas.even_of(at))}
    return {"layer": layer, "head": head, **keys}


def _head_data(atlas: Atlas, at: int, head: AtlasHead) -> dict[str, Any]:
    """Data for the page of one head."""
    index_of = {text.name: number for number, text in enumerate(atlas.sample)}
    score = atlas.scores.index(head.score)
    links = [_links(text.links[at], text.weights[at]) for text in atlas.sample]
    scores = [short_number(float(text.scores[score, at])) for text in atlas.sample]
    relations = {name: [*map(short_number, both)] for name, both in head.relations.items()}
    distance = [[*map(short_number, both)] for both in head.distance.values()]
    neighbours = [[of.layer, of.head, short_number(of.alike)] for of in head.neighbours]
    strata = [
        # A fifth of the texts; its examples by their index in the sample.
        vars(each) | {"examples": [index_of[text.name] for text in each.examples]}
        for each in head.strata
    ]
    return {
        **_place_data(atlas, at),
        "labels": [_evidence(label) for label in head.labels],
        "score": head.score,
        "spread": head.spread,
        "strata": strata,
        "scores": scores,
        "pairs": [_pair(pair) for pair in head.pairs],
        "distance": distance,
        "relations": relations,
        "neighbours": neighbours,
        "norms": {name: short_number(norm) for name, (norm, _) in head.norms.items()},
        "links": packed(np.concatenate(links) if links else np.zeros(0, np.uint16)),
    }


def _links(ends: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Query, key and weight of each link in 16 bits each; unused entries have 65535 as query."""
    # The modulus turns -1, which marks unused entries in the atlas, into 65535.
    whole = np.rint(np.clip(weights.astype(np.float64), 0, 1) * 65535)
    return np.concatenate([ends % 65536, whole[:, None]], axis=1).astype("<u2").reshape(-1)


def _evidence(label: Label) -> dict[str, Any]:
    numbers = ("score", "low", "high", "baseline", "threshold", "effect", "corrected")
    known = {name: short_number(float(getattr(label, name))) for name in numbers}
    named = ("holds", "candidate", "against", "texts", "on")
    return known | {"name": label.pattern} | {name: getattr(label, name) for name in named}


def _pair(pair: Any) -> list[Any]:
    numbers = [short_number(pair.share), short_number(pair.even)]
    return [pair.query, pair.key, *numbers, int(pair.is_words)]


def _key_classes(atlas: Atlas, row: int) -> list[float | None]:
    """Share of all attention that goes to tokens of each class."""
    sums = atlas.counts["classes"][row].reshape(len(CLASSES), len(CLASSES)).sum(axis=0)
    return [*map(short_number, sums / STEP / max(1, atlas.tokens))]


SCRIPT = "atlas.js"
POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
Data = Mapping[str, Any] | list[Any]


@dataclass(frozen=True, repr=False)
class FolderPage:
    """Page of an atlas, of two, or of a tree of heads, written as a folder. Made by `view`.

    Args:
        shown: what is shown.
        title: of the page.
        data: gives name and content of each script, ``"index"`` last, so that what it names is
            there.
    """

    shown: Result
    title: str
    data: Callable[[], Iterable[tuple[str, Data]]]

    def __repr__(self) -> str:
        return f"<Page of {self.shown!r}: save(folder) writes it>"

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the folder: index.html, its script, and the data. Existing files are replaced.

        Returns:
            The path of index.html.

        Raises:
            FileError: where it cannot be written, or what is shown cannot be read.
            PageError: where the script of the viewer was not built.
        """
        folder = local_path(folder)
        try:
            (folder / "data").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"Cannot make the folder {folder}: {error.strerror}; choose another place"
            ) from None
        _write(folder / SCRIPT, _html.bundle(SCRIPT))
        for name, content in self.data():
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            script = f'headscopeAtlas("{name}",{text.translate(_html.ESCAPES)})\n'
            _write(folder / "data" / f"{name}.js", script)
        head = f'{policy_of(POLICY)}\n<link rel="icon" href="data:,">'
        body = f'<script src="{SCRIPT}" defer></script>'
        _write(folder / "index.html", _html.document(self.title, head=head, body=body))
        return folder / "index.html"


def short_number(value: float) -> float | None:
    """As JSON has it: four digits, and nothing for what is not known."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _write(path: Path, content: str) -> None:
    with written_whole(path) as temporary:
        # Tokens may hold halves of characters, which no file can.
        temporary.write_text(content, encoding="utf-8", errors="replace")


@shows(AtlasComparison.KIND)
def atlas_comparison_page(comparison: AtlasComparison) -> FolderPage:
    """The page of two atlases, which `FolderPage.save` writes as a folder."""
    one, other = (name or "a model" for name in comparison.names)
    title = f"Atlases of {one} and {other}"
    return FolderPage(comparison, title, partial(_comparison_data, comparison))


def _comparison_data(comparison: AtlasComparison) -> Iterator[tuple[str, Data]]:
    """Name and content of each script: those of both atlases, and last the data of all pages."""
    indices: dict[str, Data] = {}
    for side, atlas in (("a", comparison.a), ("b", comparison.b)):
        for name, content in atlas_data(atlas):
            if name == "index":
                indices[side] = content
            else:
                yield f"{side}-{name}", content
    content = {**indices, **_pairs_data(comparison), "metrics": _changes(comparison)}
    yield "index", content | {"kind": "comparison"}


def _changes(comparison: AtlasComparison) -> list[dict[str, Any]]:
    """What the heads of A are coloured by: how much each differs from its partner, as a whole and
    in the score of each pattern; NaN where it has none.
    """
    place = {cell: at for at, cell in enumerate(comparison.a.cells)}
    values: dict[str, np.ndarray] = defaultdict(lambda: np.full(len(place), np.nan))
    for pair in comparison.pairs:
        values["unlike"][place[pair.a]] = 1 - pair.similarity
    for each in comparison.differences:
        values[each.pattern][place[each.layer, each.head]] = abs(each.difference)
    says = {"unlike": "1 less the similarity of a head and its partner"}
    score = "how much this score differs in a head and its partner"
    return [metric_data(name, says.get(name, score), of) for name, of in values.items()]


def metric_data(name: str, says: str, values: np.ndarray) -> dict[str, Any]:
    """A metric of all heads: what it is and its range, its values, how large each is between the
    least and the most (0 to 1), and which it is from the top.
    """
    known = values[~np.isnan(values)]
    least, most = np.quantile(known, [0, 1]) if len(known) else (0.0, 0.0)
    parts = (values - least) / (most - least) if most > least else values * 0 + 0.5
    return {
        "name": name,
        "says": f"{says}: {least:.3g} to {most:.3g}",
        "values": [*map(short_number, values.tolist())],
        "parts": [*map(short_number, parts.tolist())],
        "places": [f"{1 + (known > value).sum()} of {len(known)}" for value in values],
    }


def _pairs_data(comparison: AtlasComparison) -> dict[str, Any]:
    """The pairs of heads, and the differences of their scores in the order of the result."""
    pairs = []
    for (at, to), pair in zip(comparison.matched, comparison.pairs, strict=True):
        numbers = {"similarity": pair.similarity, "chance": pair.chance, "nextBest": pair.next_best}
        known = {name: short_number(number) for name, number in numbers.items()}
        parts = [short_number(pair.parts[name]) for name in PARTS]
        labels = {"gained": pair.gained, "lost": pair.lost}
        pairs.append({"a": at, "b": to, "parts": parts, **known, **labels})
    number_of = {pair.a: number for number, pair in enumerate(comparison.pairs)}
    differences = []
    for each in comparison.differences:
        numbers, pair = (each.before, each.after, each.low, each.high), (each.layer, each.head)
        differences.append([number_of[pair], each.pattern, *map(short_number, numbers)])
    return {
        "names": comparison.names,
        "summary": comparison.summary,
        "caution": comparison.caution,
        "parts": PARTS,
        "similarity": short_number(comparison.mean_similarity),
        "chance": short_number(comparison.chance),
        "different": short_number(comparison.different_heads),
        "confidence": comparison.a.heads.confidence,
        "sameTexts": comparison.same_texts,
        "pairs": pairs,
        "differences": differences,
    }
