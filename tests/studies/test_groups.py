"""Every study over texts takes the documents that its texts are of."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.evidence import interval, p_flipped
from headscope.studies import Ablation
from headscope.tasks import next_word
from headscope.testing import random_record, tiny_model, tiny_tokenizer

from ..close import assert_close

TEXTS = [
    "the cat sat.",
    "a bee ran.",
    "on it she sat.",
    "the dog ran far.",
    "it sat.",
    "she ran on.",
]
GROUPS = ["a", "a", "b", "b", "c", None]


@pytest.fixture(scope="module")
def reader():
    return tiny_model("bert"), tiny_tokenizer()


def test_labels_are_told_over_documents():
    records = [random_record(seed=seed) for seed in range(6)]
    found, alone = hs.heads(records, groups=GROUPS), hs.heads(records)
    rows = found.tally.rows
    label = next(each for each in found.all_labels if each.texts == 6)
    cell = found.cells.index((label.layer, label.head))
    values = np.concatenate([found.tally.measured(each)[1] for each in records])[:, :, cell]
    scores = values[:, [rows.index(label.pattern)]]
    low, high = interval(scores, groups=GROUPS)[0]
    # Documents are drawn in another order.
    assert (label.low, label.high) == pytest.approx((low, high), abs=0.3 * (high - low))
    even = values[:, [rows.index(f"{label.pattern}:uniform")]]
    assert label.p >= p_flipped(scores - even, groups=GROUPS, two_sided=False)[0]
    assert found.documents == 4
    assert "6 texts of 4 documents" in str(found)
    assert "interval over documents" in str(found)
    assert "documents" not in str(alone)


def test_as_many_groups_as_records_are_wanted():
    records = [random_record(seed=seed) for seed in range(3)]
    with pytest.raises(RecordError, match="given 2 groups, and more records"):
        hs.heads(records, groups=["a", "b"])
    with pytest.raises(RecordError, match="more groups than its 3 records"):
        hs.heads(records, groups=iter("abcd"))
    with pytest.raises(RecordError, match="2 groups were given for 6 texts"):
        hs.heads("a model", tiny_tokenizer(), TEXTS, groups=["a", "b"])


def test_a_text_that_is_left_out_takes_its_group_along(reader):
    lost, texts = [], [TEXTS[0], "", *TEXTS[1:]]
    options = {"groups": ["x", "lost", *"bcdef"], "on_error": lambda number, _: lost.append(number)}
    found = hs.heads(*reader, texts, battery=False, **options)
    assert found.tally.sums.rows == ("b", "c", "d", "e", "f", "x")
    assert lost == [1]


@pytest.mark.parametrize(
    "study",
    [
        lambda *source, **options: hs.norm_study(*source, **options).intervals,
        lambda *source, **options: np.array(
            hs.mechanism(*source, **options).columns()["neurons_low"]
        ),
        lambda *source, **options: np.array(
            [each.low for each in hs.heads(*source, **options).all_labels]
        ),
    ],
    ids=["norms", "mechanism", "heads"],
)
def test_intervals_of_a_model_are_over_documents(reader, study):
    alone, grouped = study(*reader, TEXTS), study(*reader, TEXTS, groups=GROUPS)
    assert alone.shape == grouped.shape
    known = ~np.isnan(alone)
    assert (alone[known] != grouped[known]).mean() > 0.5


def test_intervals_of_ablation_are_over_documents_and_kept(reader, tmp_path):
    model, tokenizer = tiny_model("gpt2", writes=True), tiny_tokenizer()
    task = next_word(tokenizer, TEXTS)
    alone, grouped = (
        hs.ablate(model, task, layers=False, groups=groups) for groups in (None, GROUPS)
    )
    assert_close(alone.change, grouped.change)
    assert_close(grouped.intervals, interval(alone.changes, groups=GROUPS, method="expanded"))
    assert grouped.p.min() >= 2.0**-3
    assert "6 examples of 4 documents" in str(grouped)
    assert "over documents" in str(grouped)
    again = Ablation.load(grouped.save(tmp_path / "kept.safetensors"))
    assert again.sums.rows == grouped.sums.rows
    assert again.sums.rows[:3] == ("a", "b", "c")
    with pytest.raises(RecordError, match="2 groups were given for 6 examples"):
        hs.ablate(model, task, layers=False, groups=["a", "b"])


def test_a_run_of_sentences_keeps_their_groups_and_what_they_are_called(reader, tmp_path):
    row = "1\t{}\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    words = "".join(map(row.format, ("the", "a", "on")))
    (tmp_path / "three.conllu").write_text(words, encoding="utf-8")
    given = (*reader, tmp_path / "three.conllu")
    found = hs.relations(*given, groups=["x", "x", "y"], trees=False, out=tmp_path / "run")
    kept = hs.load(tmp_path / "run")
    assert (kept.source, kept.documents, kept.sentences) == (found.source, 2, 3)
    assert found.source == "three"
    with pytest.raises(RecordError, match="2 groups were given for 3 sentences"):
        hs.relations(*given, groups=["x", "y"])
