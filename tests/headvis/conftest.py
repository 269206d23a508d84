"""Trees of HeadVis by a writer and a checker of our own, from the description of the format alone:
nothing of headscope.headvis is used here.
"""

import json
import math

import numpy as np
import pytest

METRICS = tuple(
    (
        "self_attention_score prev_token_score pattern_entropy qk_distance qk_distance_variance "
        "induction_score"
    ).split()
)
SENTENCES = (
    ("<s>", "The", " cat", " sat", ".", " The", " cat"),
    ("<s>", "<b>", ' "x"', " &", "\n"),
    ("<s>", " Zürich", "日", "本"),
    ("<s>", " no", " no", " repeats", " here", " at"),
)


def map_of(sentence, layer, head):
    """Made-up causal weights of a head on a sentence."""
    rng = np.random.default_rng([len(sentence), layer, head])
    rows = np.tril(rng.random((len(sentence), len(sentence))) ** (2 + head))
    return rows / rows.sum(axis=1, keepdims=True)


def sequence_of(number, sentence, weights, most):
    """As of section 4 of the description: the strongest few of each row."""
    count = len(sentence)
    kept = {}
    for query in range(count):
        row = sorted(range(count), key=lambda key: -weights[query, key])
        for key in row[:most]:
            if weights[query, key] >= 0.005:
                kept[query * count + key] = float(np.float32(round(weights[query, key], 4)))
    largest = max(kept.get(q * count + k, 0) for q in range(1, count) for k in range(1, count))
    return {
        "sequence_id": number,
        "interval": 1 + number % 2,
        "tokens": list(sentence),
        "attention_indices": list(kept),
        "attention_values": list(kept.values()),
        "seq_len": count,
        "max_activation": largest,
    }


def write_tree(folder, cells=((0, 0), (0, 1), (3, 0)), most=2):
    """Write a tree as another program may: float32 tails, entries by strength, gaps in the layers,
    one metric by its other name, no stubs.
    """
    (folder / "heads").mkdir(parents=True)
    rows = []
    for layer, head in cells:
        sequences, maps = [], []
        for number, sentence in enumerate(SENTENCES):
            maps.append(map_of(sentence, layer, head))
            sequences.append(sequence_of(number, sentence, maps[-1], most))
        positions = sum(map(len, SENTENCES))
        rows.append(
            {
                "layer": layer,
                "head": head,
                "self_attention_score": sum(np.trace(each) for each in maps) / positions,
                "previous_token_score": sum(np.trace(each, -1) for each in maps) / (positions - 4),
                "pattern_entropy": None if layer else 0.5,
            }
        )
        document = {
            "sequences": sequences,
            "histogram": {},
            "qk_distance_histogram": {"bin_edges": [0, 1, 2, 4], "bin_values": [1.5, 2.0, 0.25]},
            "top_key_tokens": [{"token": " cat", "weight": 2.5}, {"token": "<b>", "weight": 1}],
            "statistics": {"n_samples": 4, "mean_max_activation": None},
        }
        (folder / "heads" / f"L{layer}H{head}.json").write_text(json.dumps(document))
    config = {
        "heads": [list(cell) for cell in cells],
        "n_intervals": 2,
        "model_name": "made-up",
        "custom_plots": [
            {"key": "qk_distance_histogram", "label": "Distance"},
            {"key": "histogram", "label": "Twice"},
        ],
        "custom_tables": [{"key": "top_key_tokens", "label": "Keys"}, {"key": "absent"}],
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "scatter_data.json").write_text(json.dumps(rows))
    return folder


def is_number(value):
    return type(value) in (int, float) and math.isfinite(value)


def check_sequence(each, intervals):
    """The rules for one text; every one of them breaks some reader."""
    count = each["seq_len"]
    assert type(each["sequence_id"]) is int or "/" not in each["sequence_id"]
    assert count == len(each["tokens"]) >= 2
    assert all(type(token) is str for token in each["tokens"])
    indices, values = each["attention_indices"], each["attention_values"]
    assert len(indices) == len(values) >= 1
    assert indices == sorted(set(indices))
    assert all(type(index) is int and 0 <= index < count**2 for index in indices)
    assert all(is_number(value) and value == round(value, 4) for value in values)
    assert type(each["interval"]) is int
    assert 1 <= each["interval"] <= intervals
    rows = [index // count for index in indices]
    inner = [
        value
        for index, value in zip(indices, values, strict=True)
        if index // count > 0 and index % count > 0
    ]
    assert is_number(each["max_activation"])
    assert each["max_activation"] == max(inner)
    for row in range(count):
        assert rows.count(row) <= 9  # the largest of all may be one more
        assert sum(value for at, value in zip(rows, values, strict=True) if at == row) <= 1.001


def check_tree(folder):
    """Every rule for who writes a tree; the number of texts that were looked at."""
    config = json.loads((folder / "config.json").read_text())
    rows = json.loads((folder / "scatter_data.json").read_text())
    assert json.loads((folder / "server_config.json").read_text()) == {}
    assert json.loads((folder / "attributions" / "manifest.json").read_text()) == {}
    assert [[row["layer"], row["head"]] for row in rows] == config["heads"]
    assert type(config["n_intervals"]) is int
    assert set(config["metrics"]) <= set(METRICS)
    assert set(rows[0]) == {"layer", "head", *config["metrics"]}
    assert all(is_number(row[name]) for row in rows for name in config["metrics"])
    told = config["pipeline_config"]
    for name in ("model_name", "dataset_name", "dtype", "attn_implementation"):
        assert type(told[name]) is str
        assert told[name]
    assert type(told["n_sequences"]) is int
    assert type(told["seq_len"]) is int
    plots = [each["key"] for each in config["custom_plots"]]
    assert len(set(plots)) == len(plots)
    assert "histogram" not in plots
    files = {path.name for path in (folder / "heads").iterdir()}
    assert files == {f"L{layer}H{head}.json" for layer, head in config["heads"]}
    count = 0
    for name in files:
        head = json.loads((folder / "heads" / name).read_text())
        for plot in ("histogram", *plots):
            assert len(head[plot]["bin_edges"]) == len(head[plot]["bin_values"]) + 1 > 1
        for table in config["custom_tables"]:
            shown = head[table["key"]]
            weights = [row["weight"] for row in shown]
            assert weights == sorted(weights, reverse=True)
            assert all(type(row["token"]) is str for row in shown)
        assert head["statistics"]["n_samples"] == len(head["sequences"])
        names = [each["sequence_id"] for each in head["sequences"]]
        assert len(set(names)) == len(names)
        for each in head["sequences"]:
            check_sequence(each, config["n_intervals"])
        count += len(head["sequences"])
    return count


@pytest.fixture
def foreign_tree(tmp_path):
    return write_tree(tmp_path / "tree")
