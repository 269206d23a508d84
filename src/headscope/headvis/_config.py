"""config.json: what a tree is of, and how its readers show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headscope._version import __version__
from headscope.headvis._head_files import PATTERN
from headscope.headvis._kept_weights import LEAST, ROW
from headscope.headvis._sums import METRICS, HeadvisSums
from headscope.record import ModelFacts

SOURCE = "HeadVis, Luger et al. 2026"
PLOTS = (
    (
        "qk_distance_histogram_all",
        "Distance, all texts",
        "Share of all attention by the distance from query to key",
    ),
    (
        "qk_distance_histogram",
        "Distance, examples",
        "Sum of the weights kept, by the distance from query to key",
    ),
)
TABLES = (
    ("top_key_tokens_all", "Keys, all texts", "Share of all attention that goes to a token"),
    ("top_key_tokens", "Keys, examples", "Sum of the weights kept that go to a token"),
    ("top_query_tokens", "Queries, examples", "Sum of the weights kept that start at a token"),
)


def config_of(
    cells: Sequence[tuple[int, int]],
    sums: HeadvisSums,
    facts: ModelFacts,
    options: dict[str, Any],
    *,
    is_causal: bool,
) -> dict[str, Any]:
    """The document.

    Args:
        cells: layer and head of each.
        sums: of all texts.
        facts: of the model.
        options: ``dataset``, ``intervals``, ``samples`` and ``top_samples`` of `HeadvisOptions`.
        is_causal: whether no query saw what comes after it.
    """
    layers = dict(cells)
    metrics = list(sums.metrics())
    descriptions = {name: METRICS[name] for name in metrics}
    provenance = _provenance(sums, facts, options, is_causal=is_causal)
    plots = [_shown(each) for each in PLOTS]
    tables = [_shown(each) for each in TABLES]
    # The first table is left out where the vocabulary is too large to be counted.
    if sums.keys(0, 1) is None:
        tables = tables[1:]
    last_head = max(head for _, head in cells)
    return {
        "model_name": provenance["model_name"],
        "dataset_name": options["dataset"],
        "heads": [list(cell) for cell in cells],
        "n_layers": len(layers),
        "n_heads": last_head + 1,
        "n_intervals": options["intervals"],
        "metrics": metrics,
        "metric_descriptions": descriptions,
        "head_data_pattern": PATTERN,
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": plots,
        "custom_tables": tables,
        "statistics_display": {
            "n_samples": {"label": "Examples", "format": "integer"},
            "mean_max_activation": {"label": "Mean largest weight, all texts"},
            "kept_share": {"label": "Kept of a row, examples", "format": "percent"},
        },
        "pipeline_config": provenance,
    }


def _provenance(
    sums: HeadvisSums, facts: ModelFacts, options: dict[str, Any], *, is_causal: bool
) -> dict[str, Any]:
    """How the tree was made."""
    return _required(sums, facts, options["dataset"]) | {
        "n_intervals": options["intervals"],
        "samples_per_interval": options["samples"],
        "samples_per_top_interval": options["top_samples"],
        "sparse_topk_per_row": ROW,
        "sparse_threshold": LEAST,
        "headscope": {
            "version": __version__,
            "format": SOURCE,
            "weights": facts.weights,
            "revision": facts.revision,
            "causal": is_causal,
            "tokens": sums.positions,
            "strata": "equal parts of the texts, all of them alike; the last one has the strongest",
        },
    }


def _required(sums: HeadvisSums, facts: ModelFacts, dataset: str) -> dict[str, Any]:
    """What importers of Neuronpedia refuse a tree without; none of it may be null."""
    return {
        "model_name": facts.name or "unknown",
        "dataset_name": dataset,
        "n_sequences": sums.texts,
        "seq_len": sums.longest,
        "dtype": facts.dtype or "unknown",
        "attn_implementation": facts.implementation or "unknown",
    }


def _shown(each: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("key", "label", "description"), each, strict=True))
