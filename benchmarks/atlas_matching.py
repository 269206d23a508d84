"""How well heads are matched that are known to be the same, and what matchings of chance look like.

    python benchmarks/atlas_matching.py TEXTS       # a text a line; with 400 sentences four minutes

MiniLM is matched with itself without its last layers, with noise in its weights, and with random
weights; and random weights with those of another seed. The numbers of docs/atlas.md are those of
the first 400 sentences of 21 to 159 characters of the English Web Treebank (dev, then test).
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch

import headscope as hs
from headscope.atlases import PARTS, AtlasComparison
from headscope.atlases._comparison import mean_similarity, one_to_one
from headscope.capturing import load_model, random_twin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path)
    parser.add_argument("--count", type=int, default=400)
    arguments = parser.parse_args()
    lines = arguments.texts.read_text(encoding="utf-8").splitlines()
    texts = lines[: arguments.count]
    model, tokenizer = load_model(None)
    models = {
        "MiniLM": model,
        "four layers": four_layers(model),
        "noise 0.3": noisy(model, 0.3),
        "noise 1": noisy(model, 1.0),
        "random": random_twin(model),
        "other random": random_twin(model, seed=1),
    }
    atlases = {}
    for name, each in models.items():
        atlases[name] = hs.atlas(each, tokenizer, texts, progress=False)
    for name in list(models)[1:-1]:
        told(f"MiniLM and {name}", atlases["MiniLM"].compare(atlases[name]))
    told("random and other random", atlases["random"].compare(atlases["other random"]))


def noisy(model: Any, deviations: float) -> Any:
    """The model with normal noise in each weight, in standard deviations of its tensor."""
    changed = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in changed.parameters():
            noise = torch.randn(weights.shape, generator=generator)
            weights.add_(deviations * weights.std() * noise)
    return changed


def four_layers(model: Any) -> Any:
    """The model without its last layers."""
    cut = copy.deepcopy(model)
    cut.encoder.layer = torch.nn.ModuleList(list(cut.encoder.layer)[:4])
    cut.config.num_hidden_layers = 4
    return cut


def told(name: str, compared: AtlasComparison) -> None:
    without = {part: compared.part_similarities[part] for part in PARTS if part != "links"}
    cells = compared.a.cells, compared.b.cells
    pairs = one_to_one(np.asarray(mean_similarity(without)))
    same = sum(cells[0][at] == cells[1][to] for at, to in pairs)
    print(
        f"{name}: {compared.in_place} of {len(compared.matched)} with the same head "
        f"({same} without links), matched {compared.mean_similarity:.2f}, different heads "
        f"{compared.different_heads:.2f}, random pairs {compared.chance:.2f}"
    )


if __name__ == "__main__":
    main()
