"""Made-up texts, heads with a planted pattern of a known score, and heads without any."""

from __future__ import annotations

import numpy as np

from headscope.measures import prefix_targets, same_form, same_segment, token_class
from headscope.patterns import PATTERNS
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens

WORDS = tuple(
    f"{first}{last}"
    for first in "bdfgklmnprtv"
    for last in ("alo", "eni", "iro", "omu", "uta", "ako", "erin")
)
SPREAD = 0.05
POSITIONAL = ("positional-next", "positional-previous")


def text(rng, *, causal=False, long=False):
    """A pair of sentences of 10 to 20 words in which words come back as in prose, or longer ones,
    or one text.
    """
    if causal:
        sizes = rng.integers(20, 40, 1)
    else:
        sizes = rng.integers(*((32, 45) if long else (10, 21)), 2)
    chances = 1 / np.arange(1, len(WORDS) + 1)
    pieces, segments = ([], []) if causal else (["[CLS]"], [0])
    for number, size in enumerate(sizes):
        pieces += rng.choice(WORDS, size, p=chances / chances.sum()).tolist() + (
            [] if causal else ["[SEP]"]
        )
        segments += [number] * (size + (not causal))
    return Tokens(pieces=tuple(pieces), segments=tuple(segments))


def noise(rng, visible, sharpness):
    """Softmax of normal scores: nothing but chance."""
    raised = np.where(visible, np.exp(sharpness * rng.standard_normal(visible.shape)), 0.0)
    return raised / raised.sum(axis=1, keepdims=True)


def by_position(rng, size, lines, visible):
    """A head that heeds offsets and the first token only, the same ones in every text, and a little
    chance.
    """
    offsets = np.arange(size)[None] - np.arange(size)[:, None]
    scores = lines[offsets + 64] + 2 * lines[0] * (offsets == -np.arange(size)[:, None])
    raised = np.where(visible, np.exp(scores + 0.3 * rng.standard_normal((size, size))), 0.0)
    return raised / raised.sum(axis=1, keepdims=True)


def targets_of(name, tokens):
    """Where a head of a pattern looks."""
    size, own = len(tokens), same_segment(tokens, tokens)
    words = ~np.array(tokens.special)
    return {
        "next": lambda: np.eye(size, k=1, dtype=bool) & own,
        "previous": lambda: np.eye(size, k=-1, dtype=bool) & own,
        "same": lambda: same_form(tokens, tokens, itself=False),
        "same-other": lambda: same_form(tokens, tokens, itself=False) & ~own,
        "delimiter": lambda: np.broadcast_to(token_class(tokens, "delimiter"), (size, size)),
        "bag": lambda: own,
        "positional-next": lambda: np.eye(size, k=1, dtype=bool) & own,
        "positional-previous": lambda: np.eye(size, k=-1, dtype=bool) & own,
        "first-token": lambda: np.broadcast_to(np.arange(size) == 0, (size, size)),
        "sink": lambda: np.broadcast_to(np.arange(size) == 0, (size, size)),
        "sink-elsewhere": lambda: np.broadcast_to(
            np.arange(size) == tokens.pieces.index("[SEP]"), (size, size)
        ),
        "induction": lambda: prefix_targets(tokens.pieces) & words[:, None] & words,
        "previous-token": lambda: np.eye(size, k=-1, dtype=bool),
    }[name]()


def planted(rng, name, tokens, score):
    """A map whose score is about this, a little other on every text; rows without a target are
    chance.
    """
    targets = targets_of(name, tokens)
    score = np.clip(score + SPREAD * rng.standard_normal(), 0, 1)
    rest = noise(rng, np.ones(targets.shape, bool), 0.0 if name == "bag" else 2.0)
    count = targets.sum(axis=1, keepdims=True)
    wanted = np.divide(targets, count, out=np.zeros(targets.shape), where=count > 0)
    if name in POSITIONAL:
        peaked = (rng.random(len(tokens)) < score)[:, None] & (count > 0)
        elsewhere = np.where(targets & ~peaked, 0.0, rest)
        share = np.where(peaked, 0.6, 0.0)
        return share * wanted + (1 - share) * elsewhere / elsewhere.sum(axis=1, keepdims=True)
    even = targets.sum(axis=1) / targets.shape[1]
    level = even[even > 0].mean() if even.any() and name != "bag" else 0.0
    share = np.where(count > 0, max(0.0, (score - level) / (1 - level)), 0.0)
    return share * wanted + (1 - share) * rest


def record(maps, tokens, *, causal=False):
    """One layer whose heads are these maps."""
    visible = np.tril(np.ones((len(tokens), len(tokens)), bool)) if causal else None
    layer = Layer(layer=0, weights=np.stack(maps), visible=visible)
    stack = Stack(name="self", query=tokens, key=tokens, layers=(layer,))
    return Record(stacks={"self": stack}, model=ModelFacts(name="made up"))


def null_model(rng, texts, kind, *, heads=12, causal=False):
    """Records of a model without patterns: ``chance``, or ``position`` whose heads heed positions
    only.
    """
    lines = rng.normal(0, 1.0, (heads, 160))
    sharp = rng.choice([0.5, 1.0, 2.0, 3.0], heads)
    for _ in range(texts):
        tokens = text(rng, causal=causal)
        size = len(tokens)
        visible = np.tril(np.ones((size, size), bool)) if causal else np.ones((size, size), bool)
        maps = [
            noise(rng, visible, sharp[head])
            if kind == "chance"
            else by_position(rng, size, lines[head], visible)
            for head in range(heads)
        ]
        yield record(maps, tokens, causal=causal)


def planted_model(rng, texts, above):
    """Records of a model with one head for each pattern, its score so far above the threshold.

    Every other text is long: `first-token` is told of texts below 64 tokens only, `sink` of longer
    ones.
    """
    for number in range(2 * texts):
        tokens = text(rng, long=number % 2 == 1)
        maps = [
            planted(
                rng, p.name, tokens, p.threshold + (above / 2 if p.name in POSITIONAL else above)
            )
            for p in PATTERNS
        ]
        yield record(maps, tokens)
