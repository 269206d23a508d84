"""Parts of texts, pictures, videos and sounds: which tokens are whose."""

import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from transformers import Wav2Vec2FeatureExtractor

import headscope as hs
from headscope.answering import DEMO
from headscope.parts import parts_of, with_parts
from headscope.record import Part, Tokens
from headscope.testing import tiny_model

from ..chat_templates import tokenizer_of
from ..processors import tiny_videos

CHINESE = "\u4f60\u597d\u3002", "\u518d\u89c1\uff01"
TEXT = 'The code is 3.5. "Is it?" A dog\nsat... It ran\n\nX\n\n\n' + "".join(CHINESE)


def read(text, *cuts):
    """Tokens of a text that is cut after these characters."""
    spans = tuple(pairwise([0, *cuts, len(text)]))
    pieces = tuple(text[a:b] for a, b in spans)
    return Tokens(pieces=pieces, texts=(text,), offsets=spans, special=(False,) * len(spans))


@cache
def small(kind):
    return tiny_model(kind, vocab_size=700)


def letters(text):
    return read(text, *range(1, len(text)))


def words_of(tokens, parts):
    return ["".join(tokens.texts)[slice(*part.spans[0])] for part in parts]


def test_sentences_paragraphs_and_pages():
    tokens = letters(TEXT)
    assert words_of(tokens, parts_of(tokens, "sentence")) == [
        "The code is 3.5.",
        '"Is it?"',
        "A dog\nsat...",
        "It ran",
        "X",
        *CHINESE,
    ]
    paragraphs = parts_of(tokens, "paragraph")
    assert [part.name for part in paragraphs] == ["paragraph 1", "paragraph 2", "paragraph 3"]
    assert words_of(tokens, paragraphs)[1:] == ["X", "".join(CHINESE)]
    pages = letters("one\fand\n two \f \f.")
    assert words_of(pages, parts_of(pages, "page")) == ["one", "and\n two", "."]
    # what is not of a part is white space alone
    of_parts = {at for part in parts_of(tokens, "sentence") for at in part.tokens}
    assert "".join(TEXT[at] for at in range(len(TEXT)) if at not in of_parts).isspace()


@pytest.mark.parametrize(
    "sentences",
    [
        ("\u0643\u064a\u0641\u061f", "\u062c\u064a\u062f."),  # Arabic
        ("\u06cc\u06c1 \u06c1\u06d2\u06d4", "\u06a9\u06cc\u0627\u061f"),  # Urdu
        ("\u092f\u0939 \u0939\u0948\u0964", "\u0939\u093e\u0901\u0965"),  # Hindi
        ("\u00ab\u0643\u064a\u0641\u061f\u00bb", "\u062c\u064a\u062f!"),
    ],
)
def test_sentences_end_with_the_marks_of_their_script(sentences):
    tokens = letters(" ".join(sentences))
    assert words_of(tokens, parts_of(tokens, "sentence")) == [*sentences]


def test_finer_parts_lie_within_what_is_known():
    text = "a: It is. So\nb: It is."
    known = [
        Part(name="a", kind="turn", spans=((3, 12),)),
        Part(name="b", kind="turn", spans=((16, 22),)),
    ]
    tokens = letters(text)
    parts = parts_of(tokens, "sentence", known=known)
    assert [(part.level, part.name) for part in parts] == [
        (0, "a"),
        (0, "b"),
        (1, "a, sentence 1"),
        (1, "a, sentence 2"),
        (1, "b, sentence 1"),
    ]
    assert parts[0].tokens == tuple(range(3, 12))
    assert [part.name for part in parts_of(tokens, known=known)] == ["a", "b"]
    assert parts_of(tokens, "turn", known=known) == parts_of(tokens, known=known)
    stopped = parts_of(tokens, re.compile("It|is"), prompt=text[:8])
    assert [part.name for part in stopped] == ["It", "is"]


def test_a_regular_expression_names_what_it_finds():
    tokens = letters("[1] red [2] blue, red")
    assert [part.name for part in parts_of(tokens, re.compile(r"red|\d"))] == [
        "1",
        "red 1",
        "2",
        "red 2",
    ]
    numbered = parts_of(tokens, re.compile(r"\[(\d)\] \w+"))
    assert [(part.name, part.kind) for part in numbered] == [("1", "span"), ("2", "span")]
    assert words_of(tokens, numbered) == ["[1] red", "[2] blue"]


@pytest.mark.parametrize(
    ("cuts", "wanted"),
    [
        ((4,), [(0,), (1,)]),
        ((2,), [(0,), (1,)]),  # of ") bb" most letters are b
        ((5,), [(0,), (1,)]),  # of "aa) b" most are a
        ((3, 4), [(0, 1), (2,)]),  # a space alone is of the part that it stands in
    ],
)
def test_a_token_in_two_parts_is_of_the_one_with_most_of_it(cuts, wanted):
    given = [("a", 0, 4), ("b", 4, 7)]
    assert [part.tokens for part in parts_of(read("aa) bbb", *cuts), given)] == wanted


def test_marks_and_special_tokens_are_of_no_part():
    text = "<s>a bc<s>"
    spans = ((0, 3), (3, 4), (4, 5), (5, 7), (7, 10))
    tokens = Tokens(pieces=tuple(text[a:b] for a, b in spans), texts=(text,), offsets=spans)
    assert [part.tokens for part in parts_of(tokens, [("all", 0, 10)])] == [(1, 2, 3)]
    assert [part.tokens for part in parts_of(tokens, [("half", 4, 6)])] == [(2, 3)]
    with pytest.warns(UserWarning, match="No token stands for less"):
        assert parts_of(tokens, [("less", 6, 7)]) == ()


def test_the_texts_of_a_pair():
    model, tokenizer = small("bert"), tokenizer_of("wordpiece")
    pair = ("It is red. It ran.", "A dog sat.")
    side = hs.capture(model, tokenizer, *pair, parts="text")["self"].key
    assert [(part.name, part.tokens) for part in side.parts] == [
        (f"text {n + 1}", tuple(at for at, each in enumerate(side.segments) if each == n))
        for n in (0, 1)
    ]
    sentences = hs.capture(model, tokenizer, *pair, parts="sentence")["self"].key
    assert [part.name for part in sentences.parts] == [
        "text 1, sentence 1",
        "text 1, sentence 2",
        "text 2, sentence 1",
    ]
    assert words_of(sentences, sentences.parts) == ["It is red.", "It ran.", "A dog sat."]


PATCHES = Tokens(
    pieces=tuple("abcdefghijklmn"),
    grids=((3, 4), (1, 1)),
    places=(*[(row, column) for row in range(3) for column in range(4)], (0, 0), None),
    pictures=(*[0] * 12, 1, None),
)
VIDEO = Tokens(
    pieces=tuple("abcd"),
    grids=((1, 2), (1, 2)),
    places=((0, 0), (0, 1), (0, 0), (0, 1)),
    pictures=(0, 0, 1, 1),
    frames=((0, 0), (4, 5)),
)
SOUND = Tokens(pieces=tuple("abcd"), times=((0.0, 0.5), (0.5, 1.0), (1.0, 1.5), None))
STEPS = Tokens(
    pieces=tuple("abcd"),
    grids=((2, 2),),
    places=((0, 0), (0, 1), (1, 0), (1, 1)),
    times=((0.0, 8.0), (8.0, 16.0), (0.0, 8.0), (8.0, 16.0)),
)


@pytest.mark.parametrize(
    ("tokens", "parts", "wanted"),
    [
        (PATCHES, "picture", {"picture 1": range(12), "picture 2": [12]}),
        (VIDEO, "frame", {"frame 0": [0, 1], "frames 4-5": [2, 3]}),
        (SOUND, "time", {"seconds 0-1": [0, 1], "seconds 1-2": [2]}),
        (STEPS, "time", {"steps 0-8": [0, 2], "steps 8-16": [1, 3]}),
        (SOUND, [("late", 0.5, 1.5)], {"late": [1, 2]}),
        (PATCHES, [("left", 0, 0, 0.5, 1)], {"left": [0, 1, 4, 5, 8, 9]}),
        # A patch of two boxes is of the one with most of it, of equals of the first.
        (
            PATCHES,
            [("wide", 0, 0, 0.65, 1), ("right", 0.5, 0, 1, 1)],
            {"wide": [0, 1, 4, 5, 8, 9], "right": [2, 3, 6, 7, 10, 11]},
        ),
        (
            PATCHES,
            [("wide", 0, 0, 0.75, 1), ("right", 0.5, 0, 1, 1)],
            {"wide": [0, 1, 2, 4, 5, 6, 8, 9, 10], "right": [3, 7, 11]},
        ),
    ],
)
def test_pictures_frames_and_times_are_parts(tokens, parts, wanted):
    read = parts_of(tokens, parts)
    assert {part.name: list(part.tokens) for part in read} == {
        name: list(own) for name, own in wanted.items()
    }
    assert all(part.spans == () for part in read)


def test_a_region_that_others_have_all_of_is_refused_by_name():
    with pytest.raises(hs.errors.TextError, match="The region 'inner' has most of no patch"):
        parts_of(PATCHES, [("outer", 0, 0, 1, 1), ("inner", 0.25, 0, 0.5, 1)])


def test_what_is_seen_and_heard_has_its_parts():
    noise = np.random.default_rng(0)
    extractor = Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=False)
    sound = {"sound": noise.standard_normal(12000).astype(np.float32), "sampling_rate": 8000}
    heard = hs.capture(tiny_model("wav2vec2"), extractor, parts="time", **sound)["self"].key
    assert [part.name for part in heard.parts] == ["seconds 0-1", "seconds 1-2"]
    assert sum(len(part.tokens) for part in heard.parts) == len(heard)
    frames = noise.integers(0, 256, (4, 12, 12, 3), dtype=np.uint8)
    record = hs.capture(tiny_model("videomae"), tiny_videos(), video=frames, parts="frame")
    seen = record["self"].query.parts
    assert [(part.name, len(part.tokens)) for part in seen] == [
        ("frames 0-1", 9),
        ("frames 2-3", 9),
    ]


def test_regions_lie_in_their_picture():
    parts = parts_of(PATCHES, "region")
    assert [(part.level, part.name) for part in parts[:4]] == [
        (0, "picture 1"),
        (0, "picture 2"),
        (1, "picture 1, top left"),
        (1, "picture 1, top centre"),
    ]
    assert parts[2].tokens == (0, 1)
    regions = [part.tokens for part in parts if part.kind == "region"]
    assert sorted(at for own in regions for at in own) == list(range(13))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("chapter", "'chapter'; give one of turn, document"),
        ("", "was ''; give"),
        ([("a", 1)], "or a list such as"),
        ("turn", "No turn was found"),
        ("picture", "No picture was found"),
        (re.compile("z"), "No match of 'z'"),
        ([("a", 0, 99)], "'a' was given from 0 to 99; .* text, which has 7"),
        ([("a", 0, 4), ("b", 3, 6)], "'b' and 'a' have characters in common"),
        ([("a", 0, 0, 1, 1)], "'a' is a box, and no picture was read; give start and stop"),
    ],
)
def test_parts_that_are_not_there_are_refused(parts, words):
    with pytest.raises(hs.errors.TextError, match=words):
        parts_of(letters("aa) bbb"), parts)
    with pytest.raises(hs.errors.TextError, match=words):
        hs.capture(small("gpt2"), tokenizer_of("bytes"), "aa) bbb", parts=parts)


@pytest.mark.parametrize(
    "box", [(0, 0, 2, 1), (-0.1, 0, 1, 1), (0.5, 0, 0.5, 1), (0, 1, 1, 0), (0, 0, "1", 1)]
)
def test_boxes_outside_of_the_picture_are_refused(box):
    words = r"The part 'axis' was given the box \[.* shares of the picture, from 0 to 1"
    with pytest.raises(hs.errors.TextError, match=words):
        parts_of(PATCHES, [("whole", 0, 0, 1, 1), ("axis", *box)])
    with pytest.raises(hs.errors.TextError, match=words):  # before a model is loaded
        hs.capture("no/model", image=np.zeros((4, 4, 3), np.uint8), parts=[("axis", *box)])


def test_tokens_without_characters_have_no_sentences():
    with pytest.raises(
        hs.errors.TextError, match="which characters of the text a token stands for"
    ):
        parts_of(Tokens(pieces=("a",), texts=("a",)), "sentence")


def test_what_follows_the_prompt_is_of_no_part():
    record = hs.capture(small("gpt2"), tokenizer_of("bytes"), "Yes. It is so. No")
    side = with_parts(record, "sentence", prompt="Yes. It is")["self"].key
    assert words_of(side, side.parts) == ["Yes.", "It is"]
    assert len(with_parts(record, "sentence")["self"].key.parts) == 3


def test_a_record_gets_parts_in_every_stack_that_reads_them():
    record = hs.capture(small("bart"), tokenizer_of("bytes"), "It is. So", target="Yes.")
    parts = with_parts(record, "sentence")
    assert [len(each.parts) for each in (parts["cross"].query, parts["cross"].key)] == [1, 2]
    assert parts["encoder"].query is parts["encoder"].key


@pytest.mark.filterwarnings("ignore:The text has")
def test_parts_that_were_cut_off_are_named():
    model, text = small("gpt2"), ("word " * 400 + "\n\n") * 8
    wanted = "No token stands for paragraph 2; .*; paragraph 6 and 2 more parts, so left out"
    with pytest.warns(UserWarning, match=wanted):
        side = hs.capture(model, tokenizer_of("bytes"), text, parts="paragraph", truncate=True)[
            "self"
        ].key
    (part,) = side.parts
    assert (part.name, part.tokens) == ("paragraph 1", tuple(range(len(side))))
    assert part.spans == ((0, len(side.texts[0])),)


def test_a_target_that_begins_like_the_source_was_not_cut():
    both = {"target": "It is.", "parts": "sentence"}
    record = hs.capture(small("bart"), tokenizer_of("bytes"), "It is. So", **both)
    assert [len(each.parts) for each in (record["cross"].query, record["cross"].key)] == [1, 2]


@pytest.mark.filterwarnings("ignore:The text has")
def test_parts_of_a_pair_that_were_cut_off_are_named():
    """Spans of the second text count on from the first as it was given, and are those of what was
    read.
    """
    model, tokenizer = tiny_model("gpt2", vocab_size=700, n_positions=40), tokenizer_of("bytes")
    first, second = "Yes it is. No. " * 3, "So it was. Well then. " * 3
    with pytest.warns(UserWarning, match="for text 1, sentence 6; text 2, sentence 4; .*so left"):
        side = hs.capture(model, tokenizer, first, second, parts="sentence", truncate=True)[
            "self"
        ].key
    whole = "".join(side.texts)
    written = [whole[slice(*part.spans[0])] for part in side.parts]
    assert written[4:] == ["Yes it is.", "So it was.", "Well then.", "So it was."]
    given = [("own", len(first), len(first) + 6), ("lost", len(first) - 4, len(first) - 1)]
    with pytest.warns(UserWarning, match="No token stands for lost, so left out"):
        side = hs.capture(model, tokenizer, first, second, parts=given, truncate=True)["self"].key
    (part,) = side.parts
    assert "".join(side.texts)[slice(*part.spans[0])] == second[:6]


def test_parts_of_a_generation_are_looked_for_within_its_turns():
    prompt = [
        {"role": "user", "content": "The code is amber. It rained."},
        {"role": "assistant", "content": "unknown"},
        {"role": "user", "content": "What is the code?"},
    ]
    record = hs.generate(DEMO, prompt=prompt, max_new_tokens=3)
    plain = hs.generate(DEMO, prompt="The code is amber. It rained.", max_new_tokens=3)
    key = with_parts(record, "sentence")["self"].key
    names = ["user 1, sentence 1", "user 1, sentence 2", "assistant, sentence 1"]
    assert [part.name for part in key.parts if part.level] == [*names, "user 2, sentence 1"]
    for one in (record, plain):
        found = with_parts(one, "sentence")
        assert max(at for part in found["self"].key.parts for at in part.tokens) < (
            one.generation.prompt
        )
