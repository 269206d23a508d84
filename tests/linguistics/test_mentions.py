import numpy as np
import pytest

from headscope.errors import FileError, TextError
from headscope.linguistics import (
    Mention,
    Passage,
    Question,
    head_match,
    nearest,
    read_coreference,
    sieves,
    source_name,
)
from headscope.linguistics.mentions import KINDS, mention_answers, rule_hits

WORDS = "Mrs. Hill saw the boys and a son of Mr. Hill . He waved and she left , then Hill wept"
MENTIONS = {  # first and last word, entity, kind
    "Mrs. Hill": (0, 1, "her", "proper"),
    "the boys": (3, 4, "them", "nominal"),
    "a son of Mr. Hill": (6, 10, "him", "nominal"),
    "Mr. Hill": (9, 10, "father", "proper"),
    "He": (12, 12, "him", "pronoun"),
    "she": (15, 15, "her", "pronoun"),
    "Hill": (19, 19, "her", "proper"),
}
ANSWERS = {  # what each rule says, and what is right
    "He": ("Mr. Hill", "Mr. Hill", "Mr. Hill", {"a son of Mr. Hill"}),
    "she": ("He", "He", "Mrs. Hill", {"Mrs. Hill"}),
    "Hill": ("she", "Mr. Hill", "Mr. Hill", {"Mrs. Hill", "she"}),
}


def passage_of(**more):
    words, spans, start = WORDS.split(), [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    mentions = tuple(
        Mention(start=first, stop=last + 1, entity=entity, kind=kind)
        for first, last, entity, kind in MENTIONS.values()
    )
    return Passage(name="hills", text=WORDS, spans=tuple(spans), mentions=mentions, **more)


def named(passage, mention):
    return " ".join(passage.words[mention.start : mention.stop])


def test_every_mention_with_an_antecedent_is_asked_for():
    passage = passage_of()
    assert [named(passage, each.mention) for each in passage.questions] == list(ANSWERS)
    she = passage.questions[1]
    # those that end before it, the one that starts later last where both end with one word
    assert [named(passage, each) for each in she.candidates] == [*list(MENTIONS)[:4], "He"]
    assert she.right == (True, False, False, False, False)


@pytest.mark.parametrize(("rule", "place"), [(nearest, 0), (head_match, 1), (sieves, 2)])
def test_rules_answer_as_they_do_by_hand(rule, place):
    passage = passage_of()
    for question in passage.questions:
        answer = question.candidates[rule(passage, question)]
        assert named(passage, answer) == ANSWERS[named(passage, question.mention)][place]
    assert rule_hits(passage).tolist() == [
        [said[number] in said[3] for said in ANSWERS.values()] for number in range(3)
    ]


def test_number_is_told_from_the_ending():
    passage = passage_of()
    they = Mention(start=12, stop=13, entity="them", kind="pronoun")
    words = WORDS.replace("He", "We").split()
    spans = passage.spans
    other = Passage(
        name="we",
        text=" ".join(words),
        spans=spans,
        mentions=(*passage.mentions[:4], they),
        questions=None,
    )
    (question,) = other.questions
    # a first person fits no noun: the last sieve lets any through
    assert sieves(other, question) == nearest(other, question) == 3


def test_values_that_are_equal_go_to_the_later_start():
    (he, *_) = passage_of().questions
    values = np.zeros((3, 20))
    values[0, 10] = values[1, 1] = values[2, 4] = 1
    assert mention_answers(values, he).tolist() == [3, 0, 1]


def test_nearness_by_start_may_look_ahead():
    passage = passage_of()
    asks, before, after = (passage.mentions[number] for number in (4, 0, 5))
    question = Question(
        mention=asks, candidates=(before, after), right=(True, False), by_start=True
    )
    assert nearest(passage, question) == 1
    assert nearest(passage, question, np.array([True, False])) == 0
    assert nearest(passage, question, np.array([False, False])) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mention(start=2, stop=2, entity=None, kind="proper"), "has none"),
        (lambda: Mention(start=2, stop=3, entity=None, kind="name"), "the kind 'name'"),
        (
            lambda: Passage(name="p", text="a", spans=((0, 1),), mentions=passage_of().mentions),
            "has 1 words",
        ),
    ],
)
def test_mentions_that_are_none_are_refused(make, said):
    with pytest.raises(TextError, match=said):
        make()


def shares(passages):
    asked = [(passage, question) for passage in passages for question in passage.questions]
    hits = np.array(
        [
            [question.right[rule(passage, question)] for passage, question in asked]
            for rule in (nearest, head_match)
        ]
    )
    kinds = np.array([question.mention.kind for _, question in asked])
    chosen = {"all": np.ones(len(kinds), bool)} | {kind: kinds == kind for kind in KINDS}
    return {
        kind: [int(which.sum()), *(100 * hits[:, which].mean(axis=1)).round(2).tolist()]
        for kind, which in chosen.items()
        if which.any()
    }


def test_litbank_has_the_known_baselines(shared):
    assert shares(read_coreference(shared / "litbank-coref" / "tsv")) == {
        "all": [863, 47.05, 71.96],
        "pronoun": [656, 53.96, 76.98],
        "nominal": [128, 19.53, 46.09],
        "proper": [79, 34.18, 72.15],
    }
    assert shares(read_coreference(shared / "litbank-coref" / "tsv", every_window=True)) == {
        "all": [16255, 47.82, 70.86],
        "pronoun": [12943, 52.83, 74.90],
        "nominal": [1915, 27.00, 48.25],
        "proper": [1397, 29.92, 64.42],
    }


@pytest.mark.parametrize(
    ("part", "count", "share"),
    [("development", 1799, 52.20), ("validation", 392, 56.63), ("test", 1773, 50.08)],
)
def test_gap_has_the_known_baselines(shared, part, count, share):
    assert shares(read_coreference(shared / "gap" / f"gap-{part}.tsv"))["all"][:2] == [count, share]


def test_schemas_ask_for_one_of_two(shared):
    found = read_coreference(shared / "winogender" / "all_sentences.tsv")
    assert len(found) == 720
    assert {each.group for each in found} == {"male", "female", "neutral"}
    assert shares(found)["all"] == [720, 50.0, 50.0]
    for side, stereotype in (("type1", "pro"), ("type2", "anti")):
        found = read_coreference(shared / "winobias" / f"{stereotype}_stereotyped_{side}.dev.txt")
        assert len(found) == 396
        assert all(
            sum(each.right) == 1 < len(each.right)
            for passage in found
            for each in passage.questions
        )
    first = found[0]
    assert first.text[0].isalpha()
    assert "[" not in first.text


FILES = {
    "gap.tsv": (
        "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
        "g-1\tAnn's aunt met Bo, who knew her.\ther\t28\tAnn\t0\tFALSE\tBo\t15\tFALSE\tx\n"
        "g-2\tAnn's aunt met Bo, who knew her.\ther\t28\tAnn\t0\tTRUE\tBo\t15\tFALSE\tx\n"
    ),
    "winogender.tsv": (
        "sentid\tsentence\nclerk.someone.1.male.txt\tThe clerk told someone that he could pay.\n"
    ),
    "bias.txt": "1 [The clerk] met the taxi driver because [he] lost [his] key.\n"
    "2 The clerk met [the taxi driver] because [he] was late.\n",
    "d.ann": "MENTION\tT0\t0\t0\t0\t0\tAnn\tPER\tPROP\nMENTION\tT1\t1\t0\t1\t0\tShe\tPER\tPRON\n"
    "MENTION\tT2\t1\t2\t1\t3\ther aunt\tPER\tNOM\nCOREF\tT0\tAnn-1\nCOREF\tT1\tAnn-1\n",
}


def written(folder, name, text=None):
    (folder / name).write_text(FILES[name] if text is None else text, encoding="utf-8")
    (folder / "d.txt").write_text("Ann came .\nShe met her aunt .\n", encoding="utf-8")
    return folder / name


def test_a_passage_of_gap_may_be_of_any_length(tmp_path):
    path = written(tmp_path, "gap.tsv")
    header, _, row = path.read_text().splitlines()
    cells = row.split("\t")
    cells[1] += " and so on" * 20_000
    path.write_text("\n".join([header, "\t".join(cells)]))
    (found,) = read_coreference(path)
    assert len(found.text) > 200_000


def test_gap_is_read(tmp_path):
    (found,) = read_coreference(written(tmp_path, "gap.tsv"))
    (question,) = found.questions
    assert found.words == ("Ann", "'", "s", "aunt", "met", "Bo", ",", "who", "knew", "her", ".")
    assert (question.mention.start, [each.start for each in question.candidates]) == (9, [0, 5])
    assert question.right == (True, False)
    assert nearest(found, question) == 1


def test_schemas_are_read(tmp_path):
    (found,) = read_coreference(written(tmp_path, "winogender.tsv"))
    (question,) = found.questions
    assert [named(found, each) for each in question.candidates] == ["The clerk", "someone"]
    assert (question.right, found.group) == ((False, True), "male")
    first, second = read_coreference(written(tmp_path, "bias.txt"))
    assert first.text == "The clerk met the taxi driver because he lost his key."
    assert [named(first, each.mention) for each in first.questions] == ["he", "his"]
    for question in first.questions:
        assert [named(first, each) for each in question.candidates] == [
            "The clerk",
            "the taxi driver",
        ]
        assert question.right == (True, False)
    assert [each.right for each in second.questions] == [(False, True)]


def test_litbank_is_cut_into_windows(tmp_path):
    file = written(tmp_path, "d.ann")
    (found,) = read_coreference(file)
    assert (found.text, found.document) == ("Ann came . She met her aunt .", "d")
    assert [(each.start, each.stop, each.kind, each.entity) for each in found.mentions] == [
        (0, 1, "proper", "Ann-1"),
        (3, 4, "pronoun", "Ann-1"),
        (5, 7, "nominal", None),
    ]
    assert [each.right for each in found.questions] == [(True,)]
    assert read_coreference(tmp_path)[0] == found
    assert source_name(file) == "d (first 128 words of each text)"
    assert source_name(file, every_window=True) == "d"
    first, second = read_coreference(file, window=6, every_window=True)
    # "her aunt" leaves the first window
    assert [len(each.mentions) for each in (first, second)] == [2, 0]
    assert (second.name, second.text, second.document) == ("d 6", "aunt .", "d")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("gap.tsv", "her\t28\tAnn\t0\tTRUE", "her\t27\tAnn\t0\tTRUE", "line 3: 'her' is not at"),
        ("gap.tsv", "\tB\tB-offset\tB-coref", "", "line 2: expected the columns"),
        ("gap.tsv", "0\tTRUE", "0\tFALSE", "no question that has an answer"),
        ("winogender.tsv", ".male", "", "line 2: expected occupation"),
        ("winogender.tsv", "someone that", "her that", "line 2: 'clerk', 'someone' and one"),
        ("bias.txt", "[he] was", "Bo was", "line 2: expected one entity and a pronoun"),
        ("d.ann", "PROP", "NAME", r"line 1: no mention of LitBank's, KeyError\('NAME'\)"),
        ("d.ann", "T1\t1\t0", "T1\t7\t0", "line 2: no mention of LitBank's"),
    ],
)
def test_malformed_files_give_line_and_reason(tmp_path, name, old, new, said):
    assert FILES[name].count(old) == 1
    with pytest.raises(FileError, match=said):
        read_coreference(written(tmp_path, name, FILES[name].replace(old, new)))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileError, match="is none of LitBank"):
        read_coreference(written(tmp_path, "notes.txt", "nothing to see\n"))
    with pytest.raises(FileError, match="does not exist"):
        read_coreference(tmp_path / "none.tsv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"has no \.ann files"):
        read_coreference(tmp_path / "empty")
    with pytest.raises(FileError, match="A window of 0 words"):
        read_coreference(tmp_path, window=0)
