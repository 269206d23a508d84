"""From a model and a treebank to a result, by call and by command."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.cli import run
from headscope.errors import FileError, RecordError, TextError
from headscope.linguistics import Sentence, read_treebank
from headscope.studies.probe import KINDS
from headscope.studies.probe._data import ProbeItem
from headscope.studies.probe._probe import vectors_in
from headscope.studies.probe._read import MAPS, STATES, WORDS
from headscope.testing import tiny_model, tiny_tokenizer

QUICK = {"epochs": 1, "least": 2, "layers": False, "rank": 3}
CONTROLS = {
    "attention": {"random weights", "control task", "distances", "next word"},
    "attention-words": {"random weights", "control task", "distances and words", "next word"},
    "relation": {"random weights", "control task", "distances", "majority", "both directions"},
    "structural": {"random weights", "control task", "chain of words", "layer 0"},
    "edge": {"random weights", "control task", "majority", "distances", "layer 0"},
}


@pytest.fixture(scope="module")
def tiny():
    return tiny_model("bert"), tiny_tokenizer()


@pytest.fixture
def sentences(sentence_of):
    """Short enough for the 32 positions of the tiny model, whose tokens are letters."""
    found = [sentence_of(number) for number in range(90)]
    return [sentence for sentence in found if sum(map(len, sentence.words)) <= 30]


def fails(number, error):
    raise error


def items_of(fold, tiny, sentences, failed=fails):
    """What a model made of sentences, by number."""
    texts = [sentence.text for sentence in sentences]
    reading = {"on_error": failed, "max_unknown": 1.0}
    items = {}
    for number, counted in fold.counts(tiny, texts, sentences, how={}, reading=reading):
        arrays = {name.removeprefix("each/"): array for name, array in counted.counts.items()}
        items[number] = ProbeItem(sentence=sentences[number], **arrays)
    return items


@pytest.mark.parametrize("kind", KINDS)
def test_each_probe_has_all_its_controls(kind, tiny, sentences):
    found = hs.probe(*tiny, sentences[:30], kind=kind, random_weights=True, **QUICK)
    assert {score.of for score in found.scores} >= {"probe", *CONTROLS[kind]}
    assert len(found.selectivity) == len({(score.task, score.measure) for score in found.scores})
    assert sum(found.sentences) == 30
    assert f"{kind} probe of " in str(found)
    assert all(-1 <= score.value <= 1 for score in found.scores)


def test_maps_are_those_of_words_with_special_tokens_apart(tiny):
    sentence = Sentence(
        words=("cat", "a", "tree"), heads=(0, 3, 1), relations=("root", "det", "obj")
    )
    item = items_of(MAPS, tiny, [sentence])[0]
    stack = hs.capture(*tiny, "cat a tree")["self"]
    weights = np.concatenate([layer.weights_of() for layer in stack]).astype(np.float64)
    words = [[1, 2, 3], [4], [5, 6, 7, 8]]
    assert weights.shape[1:] == (10, 10)
    assert item.maps.shape == (len(weights), 3, 3)
    for v, rows in enumerate(words):
        for w, columns in enumerate(words):
            wanted = weights[:, rows][:, :, columns].sum(-1).mean(-1)
            assert item.maps[:, v, w] == pytest.approx(wanted, abs=1e-6)
        for end, place in enumerate((0, 9)):
            assert item.ends[:, 0, end, v] == pytest.approx(
                weights[:, place, rows].sum(-1), abs=1e-6
            )
            assert item.ends[:, 1, end, v] == pytest.approx(
                weights[:, rows, place].mean(-1), abs=1e-6
            )


def test_states_are_those_that_the_model_returns(tiny, sentences):
    model, tokenizer = tiny
    items = items_of(STATES, tiny, sentences[:5])
    for number, item in items.items():
        encoding = tokenizer(sentences[number].text, return_tensors="pt")
        with torch.no_grad():
            wanted = model(**encoding, output_hidden_states=True).hidden_states
        assert item.states == pytest.approx(torch.cat(wanted).numpy(), abs=5e-3)
        pieces = [piece for word in item.pieces for piece in word if piece >= 0]
        assert pieces == list(range(1, item.states.shape[1] - 1))
        own = [piece for piece in item.pieces[-1] if piece >= 0]
        for layer, of_layer in enumerate(wanted):
            words = item.word_states(layer)
            assert words.shape == (len(item), of_layer.shape[-1])
            mean = item.states[layer, own].astype(np.float64).mean(axis=0)
            np.testing.assert_allclose(words[-1], mean, atol=1e-6)
    assert not model.training


def test_vectors_are_input_embeddings_or_a_table(tiny, tmp_path):
    sentence = Sentence(words=("Cat", "a"), heads=(0, 1), relations=("root", "det"))
    table = tiny[0].get_input_embeddings().weight.detach().numpy()
    ids = tiny[1]("cat a")["input_ids"]
    found = items_of(WORDS, tiny, [sentence])[0].vectors
    assert found == pytest.approx(np.stack([table[ids[1:4]].mean(0), table[ids[4]]]), abs=1e-6)
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2 3\ncat 4 5 6\n", encoding="utf-8")
    assert vectors_in(path, [sentence])[0].tolist() == [[4, 5, 6], [0, 0, 0]]
    path.write_text("the 1 2 3\n", encoding="utf-8")
    with pytest.raises(FileError, match="has a vector for none of the 2 words"):
        vectors_in(path, [sentence])
    with pytest.raises(FileError, match="Cannot read the word vectors"):
        vectors_in(tmp_path / "none.txt", [sentence])


def test_a_sentence_that_cannot_be_read_is_named_and_left_out(tiny, sentences):
    long, too_long = (
        Sentence(
            words=("cat",) * words,
            heads=tuple(range(words)),
            relations=("root", *["obj"] * (words - 1)),
            name=name,
        )
        for name, words in (("long", 100), ("too long", 129))
    )
    told = []
    bank = [sentences[0], long, too_long, *sentences[1:30]]
    found = hs.probe(
        *tiny, bank, on_error=lambda name, error: told.append(name), random_weights=True, **QUICK
    )
    limit = tiny[0].config.max_position_embeddings
    assert told == ["too long", "long"]
    assert found.left_out["too long"] == "129 words are more than most_words=128"
    assert f"has 302 tokens and the model has positions for {limit}" in found.left_out["long"]
    assert sum(found.sentences) == 30
    assert "left out: 2 of 32 sentences, such as too long: 129 words" in str(found)


def test_sentences_are_drawn_by_the_first_seed(tiny, sentences):
    told = [
        hs.probe(*tiny, sentences, sentences=20, seeds=seeds, **QUICK)
        for seeds in ((0,), (0, 1), (5,))
    ]
    assert [sum(found.sentences) for found in told] == [20, 20, 20]
    assert len(told[1].score().seeds) == 2
    assert "±" in str(told[1])
    assert told[0].score("next word").hits.tolist() == told[1].score("next word").hits.tolist()
    assert told[0].score("next word").hits.tolist() != told[2].score("next word").hits.tolist()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"depth": 3}, "no option 'depth'; it has .*sentences"),
        ({"split": (0.5, 0.5, 0.5)}, "split is three shares above 0 that sum to 1"),
        ({"seeds": ()}, "seeds is empty"),
        ({"confidence": 2.0}, "confidence is a number between 0 and 1, not 2.0"),
        ({"epochs": 0}, "epochs must be a whole number from 1 on, not 0"),
        ({"kind": "structural", "layer": 9}, "layer is 9; the model's hidden states are 0 to 2"),
    ],
)
def test_what_cannot_be_is_said(options, said, tiny, sentences):
    with pytest.raises(RecordError, match=said):
        hs.probe(*tiny, sentences[:20], **options)


def test_a_probe_there_is_not_is_said():
    with pytest.raises(RecordError, match="no probe 'heads'; there are attention, attention-words"):
        hs.probe(None, None, [], kind="heads")


def test_a_treebank_without_a_short_sentence_is_refused(tiny, sentences):
    with pytest.raises(TextError, match="no sentence of at most 2 words"):
        hs.probe(*tiny, sentences, most_words=2)


def written(path, sentences):
    rows = []
    for sentence in sentences:
        cells = zip(sentence.words, sentence.upos, sentence.heads, sentence.relations, strict=True)
        rows += [
            f"{n}\t{w}\t_\t{t}\t_\t_\t{h}\t{r}\t_\t_" for n, (w, t, h, r) in enumerate(cells, 1)
        ] + [""]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_the_command_prints_writes_and_draws(folder, sentences, tmp_path, capsys):
    bank, table, picture = (
        str(tmp_path / name) for name in ("bank.conllu", "probe.csv", "probe.svg")
    )
    written(tmp_path / "bank.conllu", sentences[:30])
    what = [
        "probe",
        "--treebank",
        bank,
        "--probe",
        "structural",
        "--model",
        folder,
        "--random-weights",
    ]
    assert run([*what, "--epochs", "1", "--rank", "2", "--out", table, "--plot", picture]) == 0
    out, _ = capsys.readouterr()
    assert "structural probe of tiny" in out
    assert "21 sentences" in out
    with Path(table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["of"] for row in rows} >= {
        "probe",
        "random weights",
        "control task",
        "layer 0",
        "selectivity",
    }
    drawn = Path(picture).read_text(encoding="utf-8")
    for text in (
        "distance in the tree: UUAS",
        "random weights",
        "chain of words",
        "layer (0: embeddings)",
    ):
        assert text in drawn
    assert len(read_treebank(bank)) == 30


@pytest.mark.parametrize("kind", ["attention", "structural"])
def test_sentences_of_unknown_tokens_are_refused_but_where_they_are_meant(kind, tiny, sentences):
    unknown = [
        Sentence(words=("1", "2"), heads=(0, 1), relations=("root", "obj"), name=f"u{n}")
        for n in range(40)
    ]
    with pytest.raises(TextError, match=r"of the tokens of the texts are \[UNK\].*allow_unfit"):
        hs.probe(*tiny, unknown, kind=kind, **QUICK)
    found = hs.probe(*tiny, [*sentences[:20], unknown[0]], kind=kind, **QUICK)
    assert set(found.left_out) == {"u0"}
    found = hs.probe(*tiny, [*sentences[:20], unknown[0]], kind=kind, **QUICK, allow_unfit=True)
    assert found.left_out == {}
