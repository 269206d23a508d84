"""A text that is longer than the model reads is cut where that is asked for, and it is told."""

import warnings

import pytest
from transformers import PreTrainedTokenizer as PythonBackend

import headscope as hs
from headscope.capturing import capture_batches
from headscope.errors import CaptureError, HeadscopeError
from headscope.testing import tiny_model, tiny_tokenizer

LONG = "the cat " * 20
CUT = r"The text has \d+ tokens and the model has positions for 32: the rest is cut off"


@pytest.fixture(scope="module")
def read():
    return tiny_model("bert"), tiny_tokenizer()


def test_the_text_of_the_record_is_what_was_read(read):
    with pytest.warns(UserWarning, match=CUT):
        tokens = hs.capture(*read, LONG, truncate=True)["self"].query
    (text,) = tokens.texts
    assert LONG.startswith(text)
    assert len(text) == tokens.offsets[-2][1] < len(LONG)
    with pytest.warns(UserWarning, match=CUT):
        tokens = hs.capture(*read, LONG, LONG.upper(), truncate=True)["self"].query
    for segment, whole in enumerate((LONG, LONG.upper())):
        read_of = zip(tokens.offsets, tokens.segments, strict=True)
        stop = max(span[1] for span, at in read_of if span and at == segment)
        assert tokens.texts[segment] == whole[:stop]
        assert len(tokens.texts[segment]) < len(whole)


class OfWords(PythonBackend):
    """A tokenizer written in Python, which knows no offsets."""

    def __init__(self, **more):
        self.known = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s"]
        super().__init__(unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", **more)

    vocab_size = property(lambda self: len(self.known))

    def get_vocab(self):
        return {piece: number for number, piece in enumerate(self.known)}

    def _tokenize(self, text, **_):
        return text.replace("cats", "cat ##s").split()

    def _convert_token_to_id(self, token):
        return self.get_vocab().get(token, 1)

    def _convert_id_to_token(self, index):
        return self.known[index]

    def build_inputs_with_special_tokens(self, first, second=None):
        return [2, *first, 3, *(second or ()), *([3] if second else ())]

    def create_token_type_ids_from_sequences(self, first, second=None):
        return [0] * len(self.build_inputs_with_special_tokens(first, second))

    def num_special_tokens_to_add(self, pair=False):
        return 3 if pair else 2


def test_a_tokenizer_without_offsets_tells_the_same(read):
    given = (read[0], OfWords())
    text = "the  cats " * 20
    with pytest.warns(UserWarning, match=CUT):
        tokens = hs.capture(*given, text, truncate=True)["self"].query
    assert tokens.texts == (text[:99],)
    with pytest.warns(UserWarning, match=CUT):
        tokens = hs.capture(*given, text, text, truncate=True)["self"].query
    assert [len(own.replace("cats", "cat s").split()) for own in tokens.texts] == [15, 14]
    assert all(text.startswith(own) for own in tokens.texts)
    with pytest.warns(UserWarning, match=CUT):
        cut, whole = hs.capture_many(*given, [text, "the cat "], truncate=True)
    assert [cut["self"].query.texts, whole["self"].query.texts] == [(text[:99],), ("the cat ",)]


def test_so_it_is_with_a_conversation(read):
    model, tokenizer = read[0], tiny_tokenizer()
    tokenizer.chat_template = "{% for each in messages %}{{ each.content }} {% endfor %}"
    chat = [{"role": "user", "content": LONG}]
    with pytest.warns(UserWarning, match=CUT):
        tokens = hs.capture(model, tokenizer, chat, truncate=True)["self"].query
    assert len(tokens.texts[0]) < len(LONG)


def many(*given, **options):
    return list(hs.capture_many(*given, **options))


def batches(*given, **options):
    return list(capture_batches(*given, **options))


@pytest.mark.parametrize("act", [many, batches, hs.heads])
@pytest.mark.parametrize("family", ["bert", "bart"])
def test_of_many_texts_it_is_told_once(act, family, read):
    model = tiny_model(family)
    texts = [LONG, "the cat", LONG * 2, LONG + "sat"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        act(model, read[1], texts, truncate=True)
    assert sum("is cut off" in str(each.message) for each in told) == 1


@pytest.mark.parametrize("truncate", ["no", -1, 5, None])
def test_what_is_neither_true_nor_false_is_refused(truncate, read):
    with pytest.raises(CaptureError, match="truncate is True or False"):
        hs.capture(*read, "the cat", truncate=truncate)
    for act in (many, batches, hs.heads):
        with pytest.raises(HeadscopeError, match="truncate is True or False"):
            act(*read, ["the cat"], truncate=truncate)
