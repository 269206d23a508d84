import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import FileError, HeadscopeError, TextError
from headscope.linguistics import Sentence, Treebank, read_treebank

FILE = """# newdoc id = d
# sent_id = s-1
# text = He can't, though.
1\tHe\the\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\tcan\tAUX\tMD\t_\t0\troot\t0:root\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t2:advmod\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:xcomp\t_
4\t,\t,\tPUNCT\t,\t_\t5\tpunct\t5:punct\t_
5\tthough\tthough\tADV\t_\t_\t2\tadvmod\t2:advmod\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_


# text = Zum Haus
1-2\tZum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\tzu\tADP\t_\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t_\t_
"""


def written(folder, text):
    path = folder / "bank.conllu"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_file_is_read(tmp_path, ends):
    found = read_treebank(written(tmp_path, FILE.replace("\n", ends)))
    assert repr(found) == "<Treebank bank: 2 sentences, 9 words>"
    first, second = found
    assert first.name == "s-1"
    assert first.words == ("He", "ca", "n't", ",", "though", ".")
    assert first.heads == (2, 0, 2, 5, 2, 2)
    assert first.relations == ("nsubj", "root", "advmod", "punct", "advmod", "punct")
    assert first.upos == ("PRON", "AUX", "PART", "PUNCT", "ADV", "PUNCT")
    assert first.xpos == ("PRP", "MD", "RB", ",", "", ".")
    assert (first.line, second.line, second.name) == (1, 14, "line 14")
    assert first.depths == (1, 0, 1, 2, 1, 1)
    assert first.root == 1
    assert first.text == "He ca n't , though ."
    assert [first.text[slice(*span)] for span in first.spans] == list(first.words)
    assert [first.written[slice(*span)] for span in first.written_spans()] == list(first.words)
    assert first.written_spans()[1:3] == ((3, 5), (5, 8))
    with pytest.raises(TextError, match="the words 'zu', 'dem' are written as one, 'Zum'"):
        second.written_spans()
    assert found.take(1).sentences == (first,)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("3\tn't", "4\tn't", r"line 7: the word has number 4, expected 3"),
        ("\t5\tpunct", "\t9\tpunct", r"line 9: the head is 9; expected a number from 0 to 6"),
        ("\t5\tpunct", "\t_\tpunct", r"line 9: the head is None"),
        ("\t5\tpunct", "\tx\tpunct", r"line 9: Failed parsing field 'head': 'x' is not a valid"),
        ("\tadvmod\t2:advmod\tSpaceAfter=No", "\tadvmod", "line 10: 8 columns where CoNLL-U has"),
        ("1\tHe", "one\tHe", r"line 4: Failed parsing field 'id'"),
        ("6\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_", "the end", r"line 11: Invalid line format"),
        ("_\t0\troot\t0:root", "_\t3\troot\t0:root", r"line 1: Sentence 's-1' has 0 roots"),
        ("2\tadvmod\t2:advmod\tSp", "4\tadvmod\t2:advmod\tSp", "line 1: Sentence 's-1' is not a"),
        ("2-3\tcan't", "2-9\tcan't", r"line 5: words 2 to 9 cannot be written as one"),
        ("# text = Zum", "# sent_id = s-1\n# text = Zum", r"Two sentences of the treebank 'bank'"),
    ],
)
def test_a_malformed_file_gives_file_line_and_reason(tmp_path, old, new, said):
    assert FILE.count(old) == 1
    with pytest.raises(FileError, match=rf"bank\.conllu.*{said}"):
        read_treebank(written(tmp_path, FILE.replace(old, new)))


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(FileError, match="does not exist"):
        read_treebank(tmp_path / "none.conllu")
    with pytest.raises(FileError, match="has no sentences"):
        read_treebank(written(tmp_path, "# only = this\n"))
    (tmp_path / "bytes.conllu").write_bytes(b"\xff\xfe1\t")
    with pytest.raises(FileError, match="cannot be read"):
        read_treebank(tmp_path / "bytes.conllu")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("headscope.linguistics._treebank.find_spec", lambda name: None)
    with pytest.raises(HeadscopeError, match=r"pip install 'headscope\[linguistics\]'"):
        read_treebank("x.conllu")


def test_words_that_are_not_in_the_text_as_written_are_named(treebank):
    cats, dogs = treebank
    with pytest.raises(TextError, match="'dogs' comes without its text as written"):
        dogs.written_spans()
    with pytest.raises(TextError, match="'cats', word 3, is not at character 8 of the text, where"):
        dataclasses.replace(cats, written="The big dogs don't sleep.").written_spans()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"words": (), "heads": (), "relations": ()}, "has no words"),
        ({"relations": ("root",)}, "1 relations for 2 words"),
        ({"words": ("a", " ")}, "Word 2 of sentence '' has no letters"),
        ({"heads": (0, 0)}, "2 roots"),
        ({"heads": (0, 3)}, "the head 3 does not exist"),
        ({"heads": (-1, 0)}, "the head -1 does not exist"),
    ],
)
def test_a_sentence_that_is_no_tree_is_refused(fields, said):
    with pytest.raises(TextError, match=said):
        Sentence(**({"words": ("a", "b"), "heads": (0, 1), "relations": ("root", "dep")} | fields))


@given(st.integers(1, 12), st.integers(0, 999))
def test_depths_are_steps_to_the_root(size, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    heads = np.zeros(size, int)
    for place in range(1, size):
        heads[order[place]] = order[rng.integers(place)] + 1
    sentence = Sentence(words=("w",) * size, heads=tuple(heads.tolist()), relations=("r",) * size)
    for word in range(size):
        steps, place = 0, word
        while heads[place]:
            place, steps = heads[place] - 1, steps + 1
        assert sentence.depths[word] == steps


def test_the_real_treebanks_have_the_known_numbers(shared):
    found = read_treebank(shared / "ud-english-ewt" / "en_ewt-ud-dev.conllu")
    assert (len(found), found.words) == (2001, 25147)
    for sentence in found:
        assert [sentence.written[slice(*span)] for span in sentence.written_spans()] == list(
            sentence.words
        )
    found = read_treebank(shared / "ud-english-pud" / "en_pud-ud-test.conllu")
    assert (len(found), found.words) == (1000, 21180)


def test_a_treebank_needs_sentences():
    with pytest.raises(TextError, match="'none' has no sentences"):
        Treebank("none", ())
