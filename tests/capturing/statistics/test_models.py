"""Statistics of the calls of whole models equal those of the weights that a record of them
holds.
"""

import numpy as np
import pytest
import torch

from headscope.capturing import capture_encoded
from headscope.capturing.building.stacks import group_of, name_groups
from headscope.capturing.calls.attention import QueryRows, weights_of
from headscope.capturing.calls.visibility import visibility_of
from headscope.capturing.statistics import StatisticsPlan, statistics_of_call
from headscope.capturing.watching._watch import Watch
from headscope.record import STATISTICS, statistics_of
from headscope.testing import tiny_model, tiny_tokenizer

TEXTS = ["a bee", "the cat sat."]
FAMILIES = (
    "bert",
    "gpt2",
    "llama",
    "mistral",
    "gemma2",
    "gpt_oss",
    "t5",
    "bart",
    "gptj",
    "deberta-v2",
    "xlnet",
)
SENTENCE = "the cat sat on the mat and a dog ran home while she read her book by the open window"
TOLERANCE = 5e-6


def encoded(tokenizer, model, side):
    tokenizer.padding_side = side
    encoding = tokenizer(TEXTS, return_tensors="pt", padding=True)
    if model.config.model_type != "bert":
        encoding.pop("token_type_ids", None)
    if model.config.is_encoder_decoder:
        encoding["decoder_input_ids"] = tokenizer(["she ran home"] * 2, return_tensors="pt")[
            "input_ids"
        ]
    return encoding


def calls_by_stack(model, encoding):
    calls = []
    with Watch(model, len(TEXTS), calls.append):
        model(**encoding, **({"use_cache": False} if hasattr(model.config, "use_cache") else {}))
    calls.sort(key=lambda call: call.number)
    names = name_groups([group_of(call) for call in calls])
    return {
        name: [call for call in calls if group_of(call) == group] for group, name in names.items()
    }


def plan_of(encoding, stack, special, **asked):
    ids = {"source": encoding["input_ids"], "target": encoding.get("decoder_input_ids")}
    real = {
        "source": encoding["attention_mask"],
        "target": torch.ones_like(encoding.get("decoder_input_ids", ids["source"])),
    }
    query, key = {"decoder": ("target", "target"), "cross": ("target", "source")}.get(
        stack, ("source", "source")
    )
    plan = StatisticsPlan(
        special=torch.isin(ids[key], torch.tensor(sorted(special))),
        ids=ids[key],
        query_ids=ids[query] if stack == "cross" else None,
        **asked,
    )
    kept = ([row.nonzero()[:, 0] for row in real[side]] for side in (query, key))
    return plan, dict(zip(("kept_queries", "kept_keys"), kept, strict=True))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", FAMILIES)
def test_statistics_equal_those_of_the_record(family, side):
    tokenizer, model = tiny_tokenizer(), tiny_model(family)
    encoding = encoded(tokenizer, model, side)
    records = capture_encoded(model, tokenizer, encoding)
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    for name, calls in calls_by_stack(model, encoding).items():
        plan, kept = plan_of(encoding, name, special)
        for number, call in enumerate(calls):
            for record, found in zip(records, statistics_of_call(call, plan, **kept), strict=True):
                stack = record[name]
                queries = stack.query if name == "cross" else None
                wanted = statistics_of(stack.layers[number].weights, stack.key, queries)
                for array in set(STATISTICS) - {"top_keys", "top_weights"}:
                    ours, theirs = getattr(found, array), getattr(wanted, array)
                    np.testing.assert_allclose(
                        ours, theirs, atol=TOLERANCE, rtol=0, err_msg=f"{name} {number} {array}"
                    )


@pytest.mark.parametrize("family", ["bert", "llama", "deberta-v2"])
def test_weights_of_some_rows_give_the_models_own_context(family):
    model = tiny_model(family)
    encoding = encoded(tiny_tokenizer(), model, "left")
    (calls,) = calls_by_stack(model, encoding).values()
    rows = encoding["attention_mask"][0].nonzero()[1:, 0]
    for call in calls:
        weights = weights_of(call, visibility_of(call), QueryRows(rows))[0]
        values = call.value[0].repeat_interleave(len(weights) // call.value.shape[1], dim=0)
        assert (weights @ values - call.context[0, rows].transpose(0, 1)).abs().max() < 1e-5


def test_a_sample_of_a_real_text_is_as_near_as_it_says(minilm):
    """MiniLM, 420 tokens: the means of 64 rows deviate from those of all by about one standard
    error.
    """
    model, tokenizer = minilm
    text = " ".join(np.random.default_rng(0).choice(SENTENCE.split(), 418))
    encoding = tokenizer(text, return_tensors="pt")
    (calls,) = calls_by_stack(model, encoding).values()
    plan, kept = plan_of(encoding, "self", tokenizer.all_special_ids)
    part, _ = plan_of(encoding, "self", tokenizer.all_special_ids, rows=64)
    ratios = []
    for call in calls:
        (whole,), (sample,) = (statistics_of_call(call, asked, **kept) for asked in (plan, part))
        assert (whole.sampled, sample.sampled, sample.size) == (False, True, (420, 420))
        np.testing.assert_allclose(sample.entropy, whole.entropy[:, sample.rows], atol=TOLERANCE)
        ratios.append((sample.mean("entropy") - whole.mean("entropy")) / sample.error("entropy"))
    assert 0.3 < np.sqrt(np.mean(np.square(ratios))) < 2
