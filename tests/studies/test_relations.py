from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RecordError
from headscope.linguistics import OFFSETS, Sentence, Treebank, offset_heads, read_treebank
from headscope.record import Tokens
from headscope.studies import Relations
from headscope.testing import random_weights

from ..close import assert_same_numbers, numbers_before

HEADS = 3
KINDS = ("nsubj", "obj", "nsubj:pass", "det", "punct")


def sentence_of(number, rng):
    """A random tree of words of different lengths."""
    size = int(rng.integers(2, 9))
    order = rng.permutation(size)
    heads = np.zeros(size, int)
    for place in range(1, size):
        heads[order[place]] = order[rng.integers(place)] + 1
    relations = ["root" if head == 0 else KINDS[rng.integers(len(KINDS))] for head in heads]
    words = tuple("abc"[: rng.integers(1, 4)] for _ in range(size))
    return Sentence(
        name=f"s{number}", words=words, heads=tuple(heads.tolist()), relations=tuple(relations)
    )


@pytest.fixture(scope="module")
def bank():
    rng = np.random.default_rng(3)
    return Treebank("made up", tuple(sentence_of(number, rng) for number in range(40)))


def tokens_of(sentence):
    """A letter a token, and special ones at both ends."""
    offsets = [(place, place + 1) for place, letter in enumerate(sentence.text) if letter != " "]
    pieces = ("[CLS]", *(sentence.text[start:stop] for start, stop in offsets), "[SEP]")
    return Tokens(pieces=pieces, offsets=(None, *offsets, None), texts=(sentence.text,))


def spread(sentence, maps, tokens, special=0.4):
    """Maps of tokens whose word level is given, with weight on special tokens beside it."""
    word_of = [
        -1 if span is None else sentence.text[: span[0]].count(" ") for span in tokens.offsets
    ]
    found = np.zeros((len(maps), len(tokens), len(tokens)))
    for row, word in enumerate(word_of):
        for column, other in enumerate(word_of):
            if word >= 0 and other >= 0:
                found[:, row, column] = (1 - special) * maps[:, word, other] / word_of.count(other)
        found[:, row, 0] += 1 - found[:, row].sum(axis=-1)
    return found


def gold(sentence):
    found = np.zeros((len(sentence), len(sentence)))
    for word, head in enumerate(sentence.heads):
        found[word, head - 1 if head else word] = 1
    return found


def shifted(sentence, offset=1):
    found = np.zeros((len(sentence), len(sentence)))
    for word, head in enumerate(offset_heads(len(sentence), offset)):
        found[word, max(head - 1, 0)] = 1
    return found


def study_of(sentences, *maps_of, study=None, first=0, layers=2, **options):
    """A study of records whose last head of the last layer is planted, and the others random."""
    study = Relations(**options) if study is None else study
    for number, sentence in enumerate(sentences, first):
        tokens, rng = tokens_of(sentence), np.random.default_rng(number)
        weights = random_weights(rng, (layers, HEADS, len(tokens), len(tokens))).astype(float)
        for place, make in enumerate(maps_of):
            weights[-1, HEADS - 1 - place] = spread(sentence, make(sentence)[None], tokens)[0]
        study.update(sentence, hs.from_weights(list(weights), tokens, model="planted"))
    return study


@pytest.mark.parametrize("rows", ["mean", "first", "max"])
def test_planted_trees_are_right_on_every_relation_but_root(bank, rows):
    study = study_of(bank, gold, rows=rows)
    assert study.sentences == 40
    assert (
        f"40 sentences (median {np.median([len(tokens_of(each)) for each in bank]):.0f} tokens)"
        in str(study)
    )
    assert study.cells[-1] == (1, 2)
    for score in ("max", "max undirected", "tree", "tree undirected"):
        for relation in study.relations:
            if relation in ("all", "all but punct"):
                continue
            accuracy = study.accuracy(relation, score)
            assert accuracy.shape == (2, 2 * HEADS)
            assert accuracy[0, -1] == (0 if relation == "root" else 1), (score, relation)
            if relation != "root":
                best = study.best(relation, score)
                assert (best.place, best.direction, best.accuracy) == ("1-2", "dep->head", 1)
                assert 0 < best.low < best.high == 1
                # of few words another head may be as good on one half, and be chosen there
                assert best.held_out_place == "1-2"
                assert best.held_out_accuracy > 0.9
    roots = sum(0 in sentence.heads for sentence in bank)
    assert study.best("all").accuracy == pytest.approx(1 - roots / bank.words)
    assert study.best("all but punct and root").p_corrected <= 0.001


def test_heads_that_look_at_their_dependents_are_read_the_other_way(bank):
    study = study_of(
        bank,
        lambda sentence: (
            (gold(sentence).T + 1e-3) / (gold(sentence).T + 1e-3).sum(1, keepdims=True)
        ),
    )
    assert study.accuracy("all but punct and root", "tree")[1, -1] > 0.9
    best = study.best("all but punct and root")
    assert (best.place, best.direction) == ("1-2", "head->dep")


def chance_of(sentence, word, other, offset):
    """How likely an offset is to name another word for a word."""
    named = word + offset
    if 0 <= named < len(sentence):
        return float(named == other)
    return 1 / (len(sentence) - 1)


def test_an_offset_that_leaves_the_sentence_is_right_by_chance(bank):
    study = study_of(bank, gold)
    directed, undirected = {}, {}
    for sentence in bank:
        for word, head in enumerate(sentence.heads):
            other, relation = head - 1, sentence.relations[word]
            own = directed.setdefault(relation, np.zeros(len(OFFSETS)))
            both = undirected.setdefault(relation, np.zeros(len(OFFSETS)))
            # Neither a head nor an offset can name the root.
            for place, offset in enumerate(OFFSETS if head else ()):
                chance = chance_of(sentence, word, other, offset)
                back = chance_of(sentence, other, word, offset)
                own[place] += chance
                both[place] += chance + back - chance * back
    for score, wanted in (("max", directed), ("tree undirected", undirected)):
        for relation, right in wanted.items():
            each = study.best(relation, score)
            assert each.baseline == pytest.approx(right.max() / each.count)
            assert each.offset == OFFSETS[int(right.round(9).argmax())]


def test_a_few_sentences_are_too_few(bank):
    assert "Too few to judge any head: 2 documents" in study_of(bank.sentences[:2], gold).summary
    assert "Too few" not in study_of(bank, gold).summary


def shares(chosen, other, relation):
    """How many words head and offset of one half get right on the other half."""
    best, count = chosen.best(relation), other.best(relation).count
    place = other.cells.index((best.layer, best.head))
    direction = ("dep->head", "head->dep").index(best.direction)
    hits = other.shares("max", relation, "rules")[OFFSETS.index(best.offset)] * count
    return other.accuracy(relation)[direction, place] * count, hits


def test_no_document_is_on_both_sides(bank):
    # sentences of a document are copies of one another, so that a split within it would choose on
    # what it measures
    texts = [
        replace(bank.sentences[0], name=f"{place}", document=f"{place // 10}")
        for place in range(40)
    ]
    rng = np.random.default_rng(0)
    maps = [
        random_weights(rng, (2, HEADS, *[len(tokens_of(texts[0]))] * 2)).astype(float)
        for _ in range(4)
    ]
    grouped, alone = Relations(trees=False), Relations(trees=False)
    for place, sentence in enumerate(texts):
        record = hs.from_weights(list(maps[place // 10]), tokens_of(sentence))
        grouped.update(sentence, record)
        alone.update(replace(sentence, document=""), record)
    assert (grouped.documents, alone.documents) == (4, 40)
    assert grouped.best("all").held_out_accuracy < alone.best("all").held_out_accuracy
    wide, narrow = (each.best("all").high - each.best("all").low for each in (grouped, alone))
    assert wide > 2 * narrow
    assert "40 sentences of 4 documents" in str(grouped)


def test_documents_begin_where_the_treebank_says(tmp_path):
    row = "1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_\n\n"
    comments = ["", "# newdoc id = weblog-1\n", "", "# newdoc\n", "# sent_id = last\n# newpar\n"]
    (tmp_path / "a.conllu").write_text(
        "".join(comment + row for comment in comments), encoding="utf-8"
    )
    found = [sentence.document for sentence in read_treebank(tmp_path / "a.conllu")]
    assert found == ["", "weblog-1", "weblog-1", "line 8", "line 8"]


def test_subtypes_can_be_left_off(bank):
    study = study_of(bank, gold, universal=True)
    assert "nsubj:pass" not in study.relations
    full = study_of(bank, gold)
    assert study.best("nsubj").count == full.best("nsubj").count + full.best("nsubj:pass").count
    assert full.best("nsubj:pass").stanford == "nsubjpass"
    assert full.best("det").stanford == "det"


def test_what_was_told_is_told_anew_of_more_sentences(bank):
    sentences = list(bank)
    study = study_of(sentences[:9], gold)
    assert study.best("det").count < study_of(sentences, gold).best("det").count
    study_of(sentences[9:], gold, study=study, first=9)
    assert str(study) == str(study_of(sentences, gold))


def test_studies_add_up_and_are_kept(bank, tmp_path):
    whole = study_of(bank, gold)
    left, right = Relations(), Relations()
    for number, sentence in enumerate(bank):
        tokens, rng = tokens_of(sentence), np.random.default_rng(number)
        weights = random_weights(rng, (2, HEADS, len(tokens), len(tokens))).astype(float)
        weights[-1, -1] = spread(sentence, gold(sentence)[None], tokens)[0]
        (left if number % 3 else right).update(
            sentence, hs.from_weights(list(weights), tokens, model="planted")
        )
    assert str(left + right) == str(whole)
    assert str(Relations.load(left.save(tmp_path / "left.safetensors")) + right) == str(whole)
    assert Relations.load(Relations().save(tmp_path / "none.safetensors")).sentences == 0
    for other in ({"rows": "max"}, {"trees": False}, {"universal": True}, {"stack": "encoder"}):
        with pytest.raises(RecordError, match="One was counted with"):
            left + Relations(**other)
    with pytest.raises(RecordError, match="share a sentence"):
        whole + left


def test_sentences_that_cannot_be_aligned_are_counted_and_named(bank):
    study = study_of(list(bank)[:5], gold)
    lost = Sentence(name="lost", words=("ab", "c"), heads=(2, 0), relations=("det", "root"))
    tokens = tokens_of(lost).take([0, 1, 2, 4])
    weights = random_weights(np.random.default_rng(0), (2, HEADS, 4, 4))
    record = hs.from_weights(weights, tokens, model="planted")
    study.update(lost, record)
    assert study.sentences == 5
    assert study.left_out == {
        "lost": (
            "No token stands for word 1 ('c'); the tokenizer dropped it, or the text was cut "
            "before it"
        )
    }
    assert "1 sentences are left out:\n  lost: No token stands for word 1" in str(study)
    with pytest.raises(RecordError, match="'lost' was counted before"):
        study.update(lost, record)
    other = list(bank)[6]
    with pytest.raises(RecordError, match=f"not of the sentence '{other.name}'"):
        study.update(other, record)


def test_what_is_not_there_is_refused(bank):
    study = study_of(list(bank)[:4], trees=False)
    with pytest.raises(RecordError, match="score is 'tree'; it may be max, max undirected"):
        study.accuracy("all", "tree")
    with pytest.raises(RecordError, match="about 'pobj'; there are all"):
        study.best("pobj")
    with pytest.raises(RecordError, match="correction is 'none'"):
        Relations(correction="none")
    with pytest.raises(RecordError, match="text is 'raw'"):
        hs.relations(None, treebank=bank, text="raw")
    with pytest.raises(RecordError, match="A treebank was given as list"):
        hs.relations(None, treebank=[])
    assert repr(Relations()) == str(Relations()) == "<Relations of 0 sentences>"


def test_tables_and_pictures_hold_every_relation(bank, tmp_path):
    study = study_of(bank, gold)
    study.control = study_of(bank)
    columns = study.columns()
    assert {len(column) for column in columns.values()} == {4 * len(study.relations)}
    assert columns["random_held_out_accuracy"][0] == study.control.best("all").held_out_accuracy
    assert study.to_arrow().num_rows == 4 * len(study.relations)
    assert "random weights" in str(study)
    drawn = study.plot(tmp_path / "relations.svg", least=1).read_text(encoding="utf-8")
    for relation in KINDS:
        assert relation in drawn
    for said in ("best head", "best offset", "random weights, best head"):
        assert said in drawn


def test_the_demo_model_looks_along_relations(minilm, shared):
    few = read_treebank(shared / "ud-english-ewt" / "en_ewt-ud-dev.conllu").take(30)
    found = hs.relations(*minilm, few, random_weights=True, trees=False)
    assert found.sentences + len(found.left_out) == 30
    assert len(found.cells) == 72
    best = found.best("all but punct and root")
    assert best.accuracy > best.baseline + 0.05
    assert found.control.best("all but punct and root").accuracy < best.baseline
    written = hs.relations(*minilm, few, text="written", trees=False)
    assert written.left_out
    assert written.sentences + len(written.left_out) == 30
    assert all(
        "several words" in reason or "No token" in reason for reason in written.left_out.values()
    )


def test_numbers_of_a_real_treebank_stay_what_they_were(minilm, shared):
    """Every fifth row of the table, as it was before documents had rows of their own."""
    bank = read_treebank(shared / "ud-english-ewt" / "en_ewt-ud-dev.conllu")
    columns = hs.relations(*minilm, list(bank)[:60], seed=1, progress=False).columns()
    found = {name: column[::5] for name, column in columns.items()}
    assert_same_numbers(found, numbers_before("relations"))


def test_relations_are_labels_of_heads_in_the_viewer(bank):
    study = study_of(bank, gold, shifted)
    found = study.as_heads(least=5)
    assert [pattern.name for pattern in found.tally.patterns] == [
        name for name in study.named if has(study, name, 5)
    ]
    held = {(label.layer, label.head, label.pattern) for label in found.labels}
    assert held == {(1, 2, name) for name in ("nsubj", "obj", "nsubj:pass", "det", "punct")}
    label = next(
        each for each in found.all_labels if (each.layer, each.head, each.pattern) == (1, 1, "obj")
    )
    shares, offsets = [], []
    for sentence in bank:
        own = [word for word, name in enumerate(sentence.relations) if name == "obj"]
        if own:
            shares.append(
                np.mean(
                    [sentence.heads[word] - 1 == np.argmax(shifted(sentence)[word]) for word in own]
                )
            )
            best = study.best("obj").offset
            chances = [chance_of(sentence, word, sentence.heads[word] - 1, best) for word in own]
            offsets.append(np.mean(chances))
    assert (label.texts, label.against) == (len(shares), "position")
    assert label.baseline == pytest.approx(np.mean(offsets))
    assert label.score == pytest.approx(np.mean(shares), abs=0.1), (
        "clamped ends hit the word itself"
    )
    record = hs.from_weights(
        list(random_weights(np.random.default_rng(0), (2, HEADS, 4, 4))), list("abcd")
    )
    page = hs.view(record, view="model", evidence=found)
    assert [pattern["name"] for pattern in page.header["evidence"]["patterns"]] == [
        pattern.name for pattern in found.tally.patterns
    ]
    with pytest.raises(RecordError, match="No relation has 1000 words or more"):
        study.as_heads(least=1000)


def has(study, name, least):
    return study.best(name).count >= least
