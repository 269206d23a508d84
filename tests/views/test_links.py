"""Gold links in the header of a page: the words of a sentence, or of any list, and what cannot be
linked.
"""

import re

import numpy as np
import pytest

import headscope as hs
from headscope.errors import PageError, RecordError
from headscope.linguistics import Sentence, words_at
from headscope.record import Layer, ModelFacts, Record, Stack, Tokens
from headscope.testing import random_weights
from headscope.views._on_demand import OnDemand

TEXT = "red strawberries ripen"
PIECES = ("[CLS]", "red", "straw", "##berries", "ripen", "[SEP]")
OFFSETS = (None, (0, 3), (4, 9), (9, 16), (17, 22), None)
TREE = Sentence(
    words=("red", "strawberries", "ripen"),
    heads=(2, 3, 0),
    relations=("amod", "nsubj", "root"),
    name="s1",
)
TOKENS = Tokens(pieces=PIECES, offsets=OFFSETS, texts=(TEXT,))


def record_of(rng, tokens=TOKENS, name="self", **stacks):
    layers = (Layer(layer=0, weights=random_weights(rng, (3, len(tokens), len(tokens)))),)
    return Record(
        stacks={**stacks, name: Stack(name=name, query=tokens, key=tokens, layers=layers)},
        model=ModelFacts(),
    )


def links_of(record, links, **options):
    return hs.view(record, links=links, **options).header["links"]


def test_the_words_of_a_sentence_have_its_tree(rng):
    assert links_of(record_of(rng), TREE) == {
        "stack": "self",
        "name": "s1",
        "tree": True,
        "words": [
            {"label": "red", "tokens": [1]},
            {"label": "strawberries", "tokens": [2, 3]},
            {"label": "ripen", "tokens": [4]},
        ],
        "arcs": [
            {"dependent": 0, "head": 1, "label": "amod"},
            {"dependent": 1, "head": 2, "label": "nsubj"},
        ],
    }
    assert list(words_at(TOKENS, TREE.spans).tokens) == [(1,), (2, 3), (4,)]


def test_the_text_as_it_was_written_will_do(rng):
    written = "red  strawberries ripen"
    offsets = (None, (0, 3), (5, 10), (10, 17), (18, 23), None)
    sentence = Sentence(
        words=TREE.words, heads=TREE.heads, relations=TREE.relations, written=written
    )
    record = record_of(rng, Tokens(pieces=PIECES, offsets=offsets, texts=(written,)))
    assert [word["tokens"] for word in links_of(record, sentence)["words"]] == [[1], [2, 3], [4]]


def test_a_list_links_groups_of_tokens_among_all_other_words(rng):
    found = links_of(record_of(rng), [(4, [3, 2], "coref"), (np.int64(4), 1, "other")])
    assert (found["tree"], found["name"]) == (False, "")
    assert [(word["label"], word["tokens"]) for word in found["words"]] == [
        ("red", [1]),
        ("strawberries", [2, 3]),
        ("ripen", [4]),
    ]
    assert [(arc["dependent"], arc["head"], arc["label"]) for arc in found["arcs"]] == [
        (2, 1, "coref"),
        (2, 0, "other"),
    ]


def test_words_that_are_not_linked_are_whole_unless_a_link_takes_a_piece(rng):
    assert [word["tokens"] for word in links_of(record_of(rng), [(1, 4, "x")])["words"]] == [
        [1],
        [2, 3],
        [4],
    ]
    assert [word["tokens"] for word in links_of(record_of(rng), [(3, 4, "x")])["words"]] == [
        [1],
        [2],
        [3],
        [4],
    ]


def test_links_are_in_the_stack_that_has_the_text(rng):
    other = Tokens(pieces=("<s>", "rote", "Beeren", "</s>"), texts=("rote Beeren",))
    cross = Layer(layer=0, weights=random_weights(rng, (2, 4, 6)))
    record = record_of(
        rng,
        decoder=Stack(
            name="decoder",
            query=other,
            key=other,
            layers=(Layer(layer=0, weights=random_weights(rng, (2, 4, 4))),),
        ),
        cross=Stack(name="cross", query=other, key=TOKENS, layers=(cross,)),
        name="encoder",
    )
    assert links_of(record, TREE, stack="cross")["stack"] == "encoder"
    assert links_of(record, [(1, 2, "x")], stack="encoder")["stack"] == "encoder"
    assert links_of(record, [(1, 2, "x")], stack="decoder")["stack"] == "decoder"
    only = Record(stacks={"cross": record["cross"]}, model=ModelFacts())
    with pytest.raises(PageError, match="no stack has queries and keys of one"):
        hs.view(only, links=TREE)


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("x", "links= was given as 'x'; expected a headscope.linguistics.Sentence, or a list"),
        ([], "links= was given as []; expected"),
        (3, "links= was given as 3; expected"),
        ([(1, 2)], "links= holds (1, 2); expected"),
        ([(1, 2, 3)], "links= holds (1, 2, 3); expected"),
        ([7], "links= holds 7; expected"),
        ([(1, 6, "x")], "tokens are numbers from 0 to 5"),
        ([(-1, 2, "x")], "tokens are numbers from 0 to 5"),
        ([(1, [], "x")], "tokens are numbers from 0 to 5"),
        ([("1", 2, "x")], "tokens are numbers from 0 to 5"),
        ([(2, [2], "x")], "links= links tokens [2] to themselves"),
        ([([2, 3], 1, "x"), (3, 4, "y")], "links= has token 3 in [2, 3] and in [3]"),
    ],
)
def test_what_is_no_link_is_refused(links, said, rng):
    with pytest.raises(PageError, match=re.escape(said)):
        hs.view(record_of(rng), links=links)


def test_a_sentence_of_another_text_is_refused(rng):
    other = Sentence(words=("red", "sky"), heads=(2, 0), relations=("amod", "root"))
    with pytest.raises(PageError, match="The record is of 'red strawberries ripen', and links="):
        hs.view(record_of(rng), links=other)


def test_words_without_tokens_of_their_own_are_refused(rng):
    cut = Tokens(pieces=PIECES[:4], offsets=OFFSETS[:4], texts=(TEXT,))
    with pytest.raises(RecordError, match=re.escape("No token stands for word 2 ('ripen')")):
        hs.view(record_of(rng, cut), links=TREE)
    joined = Tokens(pieces=("red", "strawberries ripen"), offsets=((0, 3), (4, 22)), texts=(TEXT,))
    with pytest.raises(RecordError, match="is part of several words"):
        hs.view(record_of(rng, joined), links=TREE)


def test_a_live_view_has_them_and_cannot_change_them(rng):
    record = record_of(rng)
    assert OnDemand(record, {"links": TREE}).header["links"] == links_of(record, TREE)
    assert "links" not in hs.view(record).header
    widget = hs.view(record, links=TREE).widget()
    assert widget._header["links"] == links_of(record, TREE)
    with pytest.raises(PageError, match="links cannot change while a view is shown"):
        widget.select(links=TREE)
