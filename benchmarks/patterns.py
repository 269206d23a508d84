"""Measure how often the detectors of patterns are wrong: false labels on null models, misses on
planted heads.

    python benchmarks/patterns.py            # all of it, some minutes
    python benchmarks/patterns.py --models 4 # a short look

Writes results/patterns.json and, with --docs, the tables of benchmarks/tables.md.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from _planted import null_model, planted_model, text
from scipy.stats import binomtest
from transformers import AutoModel

from headscope.capturing import capture_many, load_model
from headscope.patterns import PATTERNS, heads

HERE = Path(__file__).parent
DOCS = HERE / "tables.md"
NAMES = [pattern.name for pattern in PATTERNS]
CONTENT = [pattern.name for pattern in PATTERNS if pattern.pairs is not None]
RANDOM_MODELS = 10
NULLS = {
    "chance": {"kind": "chance"},
    "chance, causal": {"kind": "chance", "causal": True},
    "position": {"kind": "position"},
    "position, causal": {"kind": "position", "causal": True},
}


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--models", type=int, default=100, help="models of each kind")
    options.add_argument("--texts", type=int, default=24, help="texts of each model")
    options.add_argument(
        "--docs", action="store_true", help="write the tables into benchmarks/tables.md"
    )
    chosen = options.parse_args()
    facts = {"models": chosen.models, "texts": chosen.texts}
    measured = facts | {"null": {name: null(name, **facts) for name in NULLS}}
    measured["null"]["random weights"] = random_weights(
        min(RANDOM_MODELS, chosen.models), chosen.texts
    )
    measured["planted"] = {str(above): planted(above, **facts) for above in (0.1, -0.1)}
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "patterns.json").write_text(
        json.dumps(measured, indent=1) + "\n", encoding="utf-8"
    )
    tables = report(measured)
    print(tables)
    if chosen.docs:
        page = DOCS.read_text(encoding="utf-8")
        page = re.sub(
            r"(<!-- measured -->\n).*?(<!-- end -->)",
            lambda m: m[1] + tables + m[2],
            page,
            flags=re.DOTALL,
        )
        DOCS.write_text(page, encoding="utf-8")


def null(name, models, texts):
    """False labels on heads of chance, or of positions."""
    rng = np.random.default_rng([1, list(NULLS).index(name)])
    return counted((heads(null_model(rng, texts, **NULLS[name])) for _ in range(models)), name)


def random_weights(models, texts):
    """False labels on all-MiniLM-L6-v2 with random weights, on made-up pairs that its tokenizer
    cuts into pieces.
    """
    torch.set_num_threads(1)
    model, tokenizer = load_model(None)

    def results():
        for number in range(models):
            rng = np.random.default_rng([4, number])
            torch.manual_seed(number)
            made = (text(rng) for _ in range(texts))
            pairs = [tuple(" ".join(sentence(tokens, part)) for part in (0, 1)) for tokens in made]
            yield heads(
                capture_many(
                    AutoModel.from_config(model.config).eval(), tokenizer, pairs, keep="weights"
                )
            )

    return counted(results(), "random weights")


def sentence(tokens, part):
    return [
        piece
        for piece, special, segment in zip(
            tokens.pieces, tokens.special, tokens.segments, strict=True
        )
        if segment == part and not special
    ]


def counted(results, name):
    """False labels by pattern, and models with any p below 0.05 after Holm whatever the score."""
    false, below, tried, models = Counter(), 0, 0, 0
    largest = dict.fromkeys(NAMES, 0.0)
    for result in results:
        models += 1
        tried += len(result.cells)
        false.update(label.pattern for label in result.labels)
        for label in result.all_labels:
            largest[label.pattern] = max(largest[label.pattern], label.score - label.baseline)
        names = CONTENT if "position" in name else NAMES
        below += any(
            label.corrected < 0.05 for label in result.all_labels if label.pattern in names
        )
    return {
        "heads": tried,
        "models": models,
        "labels": dict(false),
        "models_with_p_below_alpha": below,
        "largest": largest,
    }


def planted(above, models, texts):
    """Labels of each planted head: its own, and others."""
    rng = np.random.default_rng([2, int(above > 0)])
    own, crossed = Counter(), Counter()
    for _ in range(models):
        for label in heads(planted_model(rng, texts, above)).labels:
            if NAMES[label.head] == label.pattern:
                own[label.pattern] += 1
            else:
                crossed[f"{NAMES[label.head]} > {label.pattern}"] += 1
    return {"models": models, "own": dict(own), "crossed": dict(crossed)}


def report(measured):
    models, texts = measured["models"], measured["texts"]
    kinds = measured["null"]
    titles = [f"false: {name}" for name in kinds]
    lines = [
        f"\n{models} models of each kind, {texts} texts each, planted ones as many again of 64 "
        "tokens and more",
        "(`python benchmarks/patterns.py --docs`). False labels",
        "on null models: heads labelled, of all; in brackets the upper end of the 95 % interval. "
        "Heads that depend on",
        "positions alone may well look at neighbours or the first token: there only patterns of "
        "content count.\n",
        f"| pattern | threshold | {' | '.join(titles)} | missed, 0.1 above | labelled, 0.1 below |",
        f"| --- | ---: | {'---: | ' * len(kinds)}---: | ---: |",
    ]
    for pattern in PATTERNS:
        cells = [
            "-"
            if "position" in name and pattern.name not in CONTENT
            else rate(each["labels"].get(pattern.name, 0), each["heads"])
            for name, each in kinds.items()
        ]
        missed = models - measured["planted"]["0.1"]["own"].get(pattern.name, 0)
        cells += [
            rate(missed, models),
            rate(measured["planted"]["-0.1"]["own"].get(pattern.name, 0), models),
        ]
        lines.append(f"| {pattern.name} | {pattern.threshold} | {' | '.join(cells)} |")
    lines += [
        "",
        "For positional heads it is 0.05 above and below. Without the threshold, by the "
        "corrected p alone, null models",
    ]
    lines += [
        "with any false head:",
        "",
        "| null model | models with a corrected p below 0.05 |",
        "| --- | ---: |",
    ]
    lines += [
        f"| {name} | {rate(each['models_with_p_below_alpha'], each['models'])} |"
        for name, each in kinds.items()
    ]
    largest = kinds["random weights"]["largest"]
    name = max(largest, key=largest.get)
    lines += ["", "Heads with random weights do differ from the baselines, a little: by"]
    lines += [f"{largest[name]:.3f} at most (`{name}`), which is below the margin."]
    crossed = measured["planted"]["0.1"]["crossed"]
    shown = [
        f"{name} {count}" for name, count in sorted(crossed.items(), key=lambda entry: -entry[1])
    ]
    lines += [
        "",
        f"Planted heads that got a second label, of {models}:",
        f"{', '.join(shown) or 'none'}.",
        "",
    ]
    return "\n".join(lines) + "\n\n"


def rate(count, of):
    return f"{count}/{of} ({binomtest(count, of).proportion_ci(method='exact').high:.1%})"


if __name__ == "__main__":
    main()
