"""Accuracy, likelihood and F1 against one example at a time, and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from headscope.errors import TextError
from headscope.tasks import classification, pictures
from headscope.testing import tiny_model

from .conftest import TEXTS

PAIRS = [(text, other) for text, other in zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)]
LABELS = [1, 0, 1, 1, 0]


def logits(model, tokenizer, pair):
    with torch.no_grad():
        return model(**tokenizer(*pair, return_tensors="pt")).logits[0].double()


@pytest.mark.parametrize("metric", ["accuracy", "log likelihood"])
def test_scores_are_those_of_single_pairs(metric, classifier, tokenizer, scored):
    task = classification(tokenizer, PAIRS, LABELS, metric=metric, batch=2)
    found, values = scored(task, classifier)
    own = [logits(classifier, tokenizer, pair) for pair in PAIRS]
    right = [float(one.argmax() == label) for one, label in zip(own, LABELS, strict=True)]
    likely = [one.log_softmax(-1)[label].item() for one, label in zip(own, LABELS, strict=True)]
    np.testing.assert_allclose(found, right if metric == "accuracy" else likely, atol=1e-5)
    assert 0 < np.mean(right) < 1
    told = [int(one.argmax()) for one in own]
    assert task.totals["F1"](values) == pytest.approx(f1_score(LABELS, told))
    other, wanted = ("log likelihood", likely) if metric == "accuracy" else ("accuracy", right)
    assert task.totals[other](values) == pytest.approx(np.mean(wanted), abs=1e-5)


def test_three_classes_have_no_f1(tokenizer):
    assert "F1" not in classification(tokenizer, PAIRS, [0, 1, 2, 1, 0]).totals


def test_labels_that_do_not_fit_are_refused(classifier, tokenizer, scored):
    with pytest.raises(TextError, match="5 texts and 2 labels were given"):
        classification(tokenizer, PAIRS, [0, 1])
    with pytest.raises(TextError, match=r"The classes 0 to 2 were given, and the model gives \[5"):
        scored(classification(tokenizer, PAIRS, [0, 1, 2, 1, 0]), classifier)
    with pytest.raises(TextError, match="metric is 'loss'; give 'accuracy' or"):
        classification(tokenizer, PAIRS, LABELS, metric="loss")


def test_texts_that_are_too_long_are_refused_or_cut(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer, "model_max_length", 9)
    with pytest.raises(TextError, match="None of the 5 texts can be read: The text has 2."):
        classification(tokenizer, PAIRS, LABELS)
    with pytest.warns(UserWarning, match=r"5 of 5 texts have more tokens .* cut off \(66"):
        task = classification(tokenizer, PAIRS, LABELS, truncate=True)
    assert max(batch["input_ids"].shape[1] for batch in task.batches) == 9


def test_pictures(scored):
    base = tiny_model("vit")
    from transformers import AutoModelForImageClassification

    config = base.config
    config.num_labels = 3
    torch.manual_seed(5)
    model = AutoModelForImageClassification.from_config(config).eval()
    size = (config.num_channels, *config.image_size)
    images = torch.randn(5, *size, generator=torch.Generator().manual_seed(0))
    labels = [0, 2, 1, 1, 0]
    found, _ = scored(pictures(images, labels, metric="log likelihood", batch=2), model)
    with torch.no_grad():
        own = [
            model(pixel_values=image[None]).logits[0].log_softmax(-1)[label]
            for image, label in zip(images, labels, strict=True)
        ]
    np.testing.assert_allclose(found, own, atol=1e-5)
