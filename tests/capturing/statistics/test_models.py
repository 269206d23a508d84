"""Statistics of the calls of whole models equal those of the weights that a record of them
holds.
"""

import numpy as np
import pytest

from headscope.capturing import capture_encoded
from headscope.record import STATISTICS
from headscope.testing import tiny_model, tiny_tokenizer

from ...plain_statistics import statistics_of

TEXTS = ["a bee", "the cat sat."]
FAMILIES = "bert gpt2 llama mistral gemma2 gpt_oss t5 bart gptj deberta-v2 xlnet".split()
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


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", FAMILIES)
def test_statistics_equal_those_of_the_record(family, side):
    tokenizer, model = tiny_tokenizer(), tiny_model(family)
    encoding = encoded(tokenizer, model, side)
    records = capture_encoded(model, tokenizer, encoding)
    counted = capture_encoded(model, tokenizer, encoding, keep="statistics")
    for record, other in zip(records, counted, strict=True):
        for name, stack in record.stacks.items():
            queries = stack.query if name == "cross" else None
            for layer, own in zip(stack, other[name], strict=True):
                wanted = statistics_of(layer.weights, stack.key, queries)
                for array in set(STATISTICS) - {"top_keys", "top_weights"}:
                    ours, theirs = getattr(own.statistics, array), getattr(wanted, array)
                    np.testing.assert_allclose(
                        ours, theirs, atol=TOLERANCE, rtol=0, err_msg=f"{name} {array}"
                    )


def test_a_sample_of_a_real_text_is_as_near_as_it_says(minilm):
    """MiniLM, 420 tokens: the means of 64 rows deviate from those of all by about one standard
    error.
    """
    model, tokenizer = minilm
    text = " ".join(np.random.default_rng(0).choice(SENTENCE.split(), 418))
    encoding = tokenizer(text, return_tensors="pt")
    (every,) = capture_encoded(model, tokenizer, encoding, keep="statistics")
    (part,) = capture_encoded(model, tokenizer, encoding, keep="statistics", rows=64)
    ratios = []
    for layer, of_part in zip(every["self"], part["self"], strict=True):
        whole, sample = layer.statistics, of_part.statistics
        assert (whole.sampled, sample.sampled, sample.size) == (False, True, (420, 420))
        np.testing.assert_allclose(sample.entropy, whole.entropy[:, sample.rows], atol=TOLERANCE)
        ratios.append((sample.mean("entropy") - whole.mean("entropy")) / sample.error("entropy"))
    assert 0.3 < np.sqrt(np.mean(np.square(ratios))) < 2
