"""One result of every kind, small, with a random twin where the kind has one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.comparison import Effect, OutputChange
from headscope.studies import ExplainedText, Faithfulness, Probing
from headscope.studies.faithfulness import counts_of
from headscope.studies.probe._result import CONTROL, PROBE, Score
from headscope.testing import random_record

KEPT = Path(__file__).parent / "kept"
TOKENS = ("a", "bee", "on", "a", "rock", "in", "rain")


def planted(seed, *, follows):
    """Two layers of three heads; head 1-2 looks at the token before where it follows."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(TOKENS)), (2, 3, len(TOKENS)))
    if follows:
        before = np.maximum(np.arange(len(TOKENS)) - 1, 0)
        weights[1, 2] = 0.02 / len(TOKENS)
        weights[1, 2][np.arange(len(TOKENS)), before] += 0.98
    return hs.from_weights(weights[:, None], list(TOKENS))


def heads_of(*, follows, first=0):
    seeds = range(first, first + 24)
    return hs.patterns.heads([planted(seed, follows=follows) for seed in seeds])


def mechanism():
    found = with_twin("mechanism.safetensors")
    found.judging["confidence"] = 0.9
    return found


def groups():
    found = mechanism()
    return found.grouped({"previous token": found.cells[:1], "own": found.cells})


def with_twin(name):
    found = hs.load(KEPT / name)
    found.control = hs.load(KEPT / name)
    return found


def explained(rng):
    signals = {name: rng.random(6) for name in ("attention", "gradient", "leave_one_out", "random")}
    return ExplainedText(
        pieces=TOKENS[:6],
        probabilities=rng.dirichlet(np.ones(3)),
        signals=signals,
        missing={"alti": "the model has no norms"},
        erased={name: rng.random((2, 5)) for name in signals},
        permuted=rng.random(4),
        adversarial=float(rng.random()) / 2,
        largest=float(rng.random()),
    )


def faithfulness(seed=0, control=None):
    rng = np.random.default_rng(seed)
    found = Faithfulness(layer=1, confidence=0.9)
    for number, group in enumerate("aabbccdde"):
        counts, facts = counts_of(None, explained(rng)), {"model": "tiny"}
        found.sums.add(f"{number}", group, counts, length=6, facts=facts)
    found.control = control
    return found


def probing():
    rng = np.random.default_rng(4)
    scores, words = [], rng.integers(5, 20, 30)
    for of in (PROBE, CONTROL, "layer 0", "layer 1", "layer 2"):
        for measure, lengths in (("UAS", None), ("Spearman", words)):
            wholes = rng.integers(4, 9, 30)
            hits = np.stack([rng.integers(0, wholes), wholes], axis=1).astype(float)
            seeds = tuple(rng.random(2))
            score = Score(task="head of each word", measure=measure, of=of, hits=hits)
            groups = tuple(f"d{number // 3}" for number in range(30))
            scores.append(replace(score, lengths=lengths, seeds=seeds, groups=groups))
    return Probing(
        kind="structural",
        model="tiny",
        scores=tuple(scores),
        sentences=(200, 20, 30),
        seeds=(0, 1),
        facts={"epochs": 3, "labels": ("nsubj", "obj"), "rank": 8},
        left_out={"s7": "its words cannot be aligned"},
        words=12.0,
    )


def comparison(**options):
    pairs = [random_record(seed=seed) for seed in range(8)]
    return hs.compare(pairs[:4], pairs[4:], spread=[(pairs[0], pairs[5])], **options)


def effect():
    outputs = []
    for seed in range(3):
        values = np.random.default_rng(seed).random(4)
        guesses = ((("bee", 0.61), ("rock", 0.27)),) * 4
        outputs.append(
            OutputChange(
                kind="tokens",
                labels=("a", "b", "c", "d"),
                values=values,
                before=guesses,
                after=guesses[:1] * 4,
            )
        )
    return Effect(comparison=comparison(), outputs=tuple(outputs), done=("head 1-0 disabled",))


EVERY = {
    "Heads": lambda: heads_of(follows=True),
    "Mechanism": mechanism,
    "Groups": groups,
    "Ablation": lambda: with_twin("ablation.safetensors"),
    "AlignmentStudy": lambda: with_twin("alignment.safetensors"),
    "Relations": lambda: with_twin("relations.safetensors"),
    "Coreference": lambda: with_twin("coref.safetensors"),
    "NormStudy": lambda: with_twin("norms.safetensors"),
    "Probing": probing,
    "Faithfulness": lambda: faithfulness(control=faithfulness(seed=7)),
    "Comparison": comparison,
    "Effect": effect,
}


@pytest.fixture(params=EVERY)
def result(request):
    """A result of every kind, one after the other."""
    made = EVERY[request.param]()
    assert type(made).__name__ == request.param
    return made
