"""The turns of a conversation are found in what its template makes of it, whatever is said."""

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RunError
from headscope.parts import with_parts
from headscope.testing import tiny_model

from ..chat_templates import HOSTILE, TALK, TEMPLATES, tokenizer_of
from ..processors import CHAT, tiny_chat_llava, tiny_qwen_vl

# Most templates leave out what earlier answers thought.
pytestmark = pytest.mark.filterwarnings("ignore:The chat template leaves out what answers hold")
NAMES = ["system", "user 1", "assistant", "user 2"]


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama", vocab_size=700, max_position_embeddings=400, writes=True)


def said(message):
    """What templates leave of a message at least."""
    words = message["content"]
    return (words.rpartition("</think>")[2] if message["role"] == "assistant" else words).strip()


def owner_of(text, span, parts):
    """The part that has most of the characters of a token, by counting; None for the template."""
    at = [place for place in range(*span) if not text[place].isspace()] or list(range(*span))
    counts = dict.fromkeys([None, *[part.name for part in parts]], 0)
    for place in at:
        own = [part.name for part in parts if any(a <= place < b for a, b in part.spans)]
        counts[own[0] if own else None] += 1
    return counts


@pytest.mark.parametrize("kind", ["bytes", "metaspace", "wordpiece"])
@pytest.mark.parametrize("talk", [TALK, HOSTILE], ids=["talk", "hostile"])
@pytest.mark.parametrize("family", TEMPLATES)
def test_every_turn_is_found(model, family, talk, kind):
    tokenizer = tokenizer_of(kind)
    tokenizer.chat_template = TEMPLATES[family]
    talk, names = (talk[1:], NAMES[1:]) if family == "Gemma" else (talk, NAMES)
    side = hs.capture(model, tokenizer, talk)["self"].key
    (text,) = side.texts
    assert sorted(part.name for part in side.parts) == sorted(names)
    by_name = {part.name: part for part in side.parts}
    for name, message in zip(names, talk, strict=True):
        ((start, stop),) = by_name[name].spans
        assert text[start:stop].endswith(said(message))
        assert text[start:stop] in message["content"]
    members = {token: part.name for part in side.parts for token in part.tokens}
    for token, span in enumerate(side.offsets):
        if side.special[token] or span[0] == span[1]:
            assert token not in members
            continue
        counts = owner_of(text, span, side.parts)
        assert counts[members.get(token)] == max(counts.values())


def test_a_template_says_itself_that_it_has_no_system_turn(model):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = TEMPLATES["Gemma"]
    with pytest.raises(
        hs.errors.TextError, match=r"System role not supported; leave the system turn out"
    ):
        hs.capture(model, tokenizer, TALK)


def test_what_a_template_changes_is_not_looked_for(model):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = (
        "{% for each in messages %}{{ '- ' if 'user' == each['content'][:4] }}{{ each['content'] }}"
        ".\n{% endfor %}"
    )
    record = hs.capture(model, tokenizer, HOSTILE[1:2])
    assert record["self"].key.parts == ()
    with pytest.raises(
        hs.errors.TextError, match=r"template changes the words .* give parts=\[\('name'"
    ):
        hs.capture(model, tokenizer, HOSTILE[1:2], parts="sentence")
    (mine,) = hs.capture(model, tokenizer, HOSTILE[1:2], parts=[("mine", 2, 6)])["self"].key.parts
    assert record.texts[0][slice(*mine.spans[0])] == "user"


def test_a_turn_that_is_written_twice_has_two_spans(model):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = "{% for n in [0, 1] %}{{ messages[0]['content'] }};{% endfor %}"
    side = hs.capture(model, tokenizer, TALK[:1])["self"].key
    assert [part.spans for part in side.parts] == [((1, 10), (13, 22))]
    assert len(side.parts[0].tokens) > 2


def test_turns_stay_through_an_answer_that_is_none_of_them(model):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = TEMPLATES["ChatML"]
    how = {"max_new_tokens": 4, "allow_unfit": True}
    given = hs.capture(model, tokenizer, TALK)["self"].key.parts
    alone = hs.generate(model, tokenizer, TALK, **how)
    beside, _ = hs.generate(model, tokenizer, [TALK, HOSTILE], **how)
    for record in (alone, beside):
        assert [(each.name, each.tokens) for each in record["self"].key.parts] == [
            (each.name, each.tokens) for each in given
        ]
        assert max(given[-1].tokens) < record.generation.prompt
    finer = hs.generate(model, tokenizer, TALK, parts="paragraph", **how)["self"].query.parts
    assert [part.name for part in finer if part.level == 1] == [
        "system, paragraph 1",
        "user 1, paragraph 1",
        "user 1, paragraph 2",
        "assistant, paragraph 1",
        "user 2, paragraph 1",
        "user 2, paragraph 2",
    ]
    plain = hs.generate(model, tokenizer, "Yes. It is", parts="sentence", **how)
    assert [part.name for part in plain["self"].key.parts] == ["sentence 1", "sentence 2"]
    assert max(plain["self"].key.parts[1].tokens) < plain.generation.prompt


def test_messages_of_many_and_of_files_have_their_turns(model, tmp_path):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = TEMPLATES["Phi"]
    wanted = hs.capture(model, tokenizer, TALK)["self"].key.parts
    for record in hs.capture_many(model, tokenizer, [TALK, {"messages": TALK}, TALK]):
        assert record["self"].key.parts == wanted
    (kept,) = hs.capture_many(model, tokenizer, [TALK], out=tmp_path / "run")
    assert kept["self"].query.parts == wanted
    with pytest.raises(RunError, match=r"parts later: headscope.parts.with_parts\(record, ...\)"):
        hs.capture_many(model, tokenizer, [TALK], out=tmp_path / "other", parts="paragraph")
    finer = hs.capture(model, tokenizer, TALK, parts="paragraph")["self"].key.parts
    assert with_parts(kept, "paragraph")["self"].key.parts == finer
    (same,) = hs.capture_many(model, tokenizer, [TALK], out=tmp_path / "run", parts=None)
    assert same["self"].query.parts == wanted
    record = hs.capture(model, tokenizer, TALK, out=tmp_path / "a.safetensors")
    assert hs.load(tmp_path / "a.safetensors")["self"].key.parts == record["self"].key.parts
    assert record["self"].words().key.parts[0].name == "system"


DOCUMENTS = {"documents": ["The code is red.", "A dog sat."], "question": "Which?"}
OWN_PLACE = (
    "{% for each in documents or [] %}<|im_start|>{{ each['text'] | trim }}<|im_end|>{% endfor %}"
    + TEMPLATES["Phi"]
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (None, "The code is red.\n\nA dog sat.\n\nWhich?"),
        (
            TEMPLATES["Phi"],
            "<|user|>\nThe code is red.\n\nA dog sat.\n\nWhich?<|end|>\n<|assistant|>\n",
        ),
        (
            OWN_PLACE,
            "<|im_start|>The code is red.<|im_end|><|im_start|>A dog sat.<|im_end|><|user|>\n"
            "Which?<|end|>\n<|assistant|>\n",
        ),
    ],
    ids=["no template", "one message", "a place of their own"],
)
def test_documents_are_asked_about(model, template, text):
    tokenizer = tokenizer_of("metaspace")
    tokenizer.chat_template = template
    written = hs.generate(model, tokenizer, DOCUMENTS, max_new_tokens=1, allow_unfit=True)
    (many,) = hs.capture_many(model, tokenizer, [DOCUMENTS])
    for record in (hs.capture(model, tokenizer, DOCUMENTS), many, written):
        side = record["self"].key
        assert side.texts[0].startswith(text)
        read = [(part.name, part.kind, text[slice(*part.spans[0])]) for part in side.parts]
        assert read == [
            ("document 1", "document", "The code is red."),
            ("document 2", "document", "A dog sat."),
            ("user", "turn", "Which?"),
        ]


def test_documents_may_have_a_turn_of_the_system(model):
    tokenizer = tokenizer_of("metaspace")
    tokenizer.chat_template = TEMPLATES["Phi"]
    told = DOCUMENTS | {"system": "Answer in French."}
    (row,) = hs.capture_many(model, tokenizer, [told | {"id": 7}])  # a column of a data set
    written = hs.generate(model, tokenizer, told, max_new_tokens=1, allow_unfit=True)
    for record in (hs.capture(model, tokenizer, told), row, written):
        side = record["self"].key
        assert [part.name for part in side.parts] == ["system", "document 1", "document 2", "user"]
        assert side.texts[0].startswith("<|system|>\nAnswer in French.<|end|>\n<|user|>\nThe code")
    tokenizer.chat_template = None
    with pytest.raises(hs.errors.TextError, match="no chat template"):
        hs.capture(model, tokenizer, told)


def test_messages_may_be_documents(model):
    tokenizer = tokenizer_of("metaspace")
    tokenizer.chat_template = TEMPLATES["Phi"]
    messages = [{"role": "document", "content": text} for text in DOCUMENTS["documents"]]
    side = hs.capture(model, tokenizer, [*messages, TALK[3]], parts="document")["self"].key
    assert [(part.name, part.kind) for part in side.parts] == [
        ("document 1", "document"),
        ("document 2", "document"),
        ("user", "turn"),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"documents": "a dog", "question": "x"}, "a list of documents"),
        ({"documents": ["a dog", " "], "question": "x"}, "document 2 is empty"),
        ({"documents": ["a dog"]}, "question must be a string"),
        ({"documents": [], "question": "x"}, "No document was given; give one at least"),
        (DOCUMENTS | {"sytem": "Be short."}, r"\['sytem'\] was given beside"),
        (DOCUMENTS | {"image": "a.png"}, r"\['image'\] was given beside .* as an argument"),
        (DOCUMENTS | {"system": 3}, "system must be a string"),
        ({"documents": ["a dog"], "question": TALK[:1]}, "end with a question of the user"),
    ],
)
def test_half_a_question_is_refused(model, given, words):
    for made in (hs.capture, hs.generate):
        with pytest.raises(hs.errors.TextError, match=words):
            made(model, tokenizer_of("bytes"), given)


@pytest.mark.filterwarnings("ignore:The text has")
def test_a_turn_that_was_cut_off_is_named(model):
    tokenizer = tokenizer_of("bytes")
    tokenizer.chat_template = TEMPLATES["Phi"]
    whole = hs.capture(model, tokenizer, TALK)["self"].key
    short = tiny_model("gpt2", vocab_size=700, n_positions=whole.parts[1].tokens[2])
    with pytest.warns(UserWarning, match="No token stands for assistant; user 2, so left out"):
        side = hs.capture(short, tokenizer, TALK, truncate=True)["self"].key
    assert [part.name for part in side.parts] == ["system", "user 1"]
    assert side.parts[1].tokens == whole.parts[1].tokens[:2]
    assert np.shape(side.parts[1].spans) == (1, 2)


@pytest.mark.parametrize("made", [tiny_chat_llava, tiny_qwen_vl])
def test_words_about_a_picture_are_a_turn_beside_it(made):
    model, processor = made()
    if not processor.chat_template:
        mark = getattr(processor, "image_token", "<image>")
        processor.chat_template = CHAT.replace("PICTURE", mark)
    pixels = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)
    asked = [{"type": "image", "image": pixels}, {"type": "text", "text": "the cat, it sat"}]
    record = hs.capture(model, processor, [{"role": "user", "content": asked}], parts="region")
    side = next(stack.key for stack in record.stacks.values() if stack.key.texts)
    picture, turn = side.parts[0], next(part for part in side.parts if part.kind == "turn")
    assert (picture.kind, turn.name) == ("picture", "user")
    assert "".join(side.labels[at] for at in turn.tokens) == "thecat,itsat"
    assert picture.tokens == tuple(at for at, on in enumerate(side.worded) if not on)
    regions = [part.tokens for part in side.parts if part.kind == "region"]
    assert sorted(at for own in regions for at in own) == list(picture.tokens)
