import warnings

import pytest

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.capturing.inputs.tokens import SpecialTokens, tokens_from_encoding, tokens_from_ids
from headscope.measures import token_class
from headscope.record import Tokens
from headscope.testing import tiny_model, tiny_tokenizer

TEXT, PAIR = "The cat sat.", "Ab, c"


def test_a_pair_keeps_everything_about_its_tokens():
    tokens = hs.capture(tiny_model("bert"), tiny_tokenizer(), TEXT, PAIR)["self"].query
    assert tokens.texts == (TEXT, PAIR)
    assert " ".join(tokens.pieces) == "[CLS] t ##h ##e c ##a ##t s ##a ##t . [SEP] a ##b , c [SEP]"
    assert "".join(tokens.labels) == "[CLS]thecatsat.[SEP]ab,c[SEP]"
    assert tokens.ids == tuple(tiny_tokenizer()(TEXT, PAIR)["input_ids"])
    assert tokens.segments == (0,) * 12 + (1,) * 5
    assert [i for i, special in enumerate(tokens.special) if special] == [0, 11, 16]
    assert tokens.words == (None, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, None, 4, 4, 5, 6, None)
    written = [
        None if span is None else tokens.texts[s][slice(*span)]
        for span, s in zip(tokens.offsets, tokens.segments, strict=True)
    ]
    assert written == [None, *"The", *"cat", *"sat", ".", None, "A", "b", ",", "c", None]
    assert [i for i, on in enumerate(tokens.continues) if on] == [2, 3, 5, 6, 8, 9, 13]


def test_special_letters_of_private_use_are_shown_by_their_role():
    from transformers import CanineTokenizer

    tokens = tokens_from_ids(CanineTokenizer(), CanineTokenizer()("Ab")["input_ids"])
    assert tokens.labels == ("[CLS]", "A", "b", "[SEP]")


def test_words_never_join_what_space_or_punctuation_separates():
    """A tokenizer that cuts letter by letter, spaces too, and calls it all one word."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {piece: number for number, piece in enumerate(["<unk>", "a", "b", ",", "\u2581"])}
    backend = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    backend.decoder = decoders.Metaspace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    tokens = hs.capture(tiny_model("gpt2"), tokenizer, "ab, b a")["self"].query
    assert tokens.pieces == ("\u2581", "a", "b", ",", "\u2581", "b", "\u2581", "a")
    assert tokens.labels == (" ", "a", "b", ",", " ", "b", " ", "a")
    words = [
        word for piece, word in zip(tokens.pieces, tokens.words, strict=True) if piece != "\u2581"
    ]
    assert words[0] == words[1]
    assert len(set(words)) == 4


def test_bytes_of_other_alphabets_read_as_what_was_written():
    """Byte-level pieces such as ``Ã©`` are shown as the characters they stand for."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "\u00c3\u00a9"]
    backend = Tokenizer(
        models.BPE({piece: n for n, piece in enumerate(pieces)}, [("\u00c3", "\u00a9")])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    model = tiny_model("gpt2", vocab_size=len(pieces))
    tokens = hs.capture(model, PreTrainedTokenizerFast(tokenizer_object=backend), "\u00e9 \u20ac")[
        "self"
    ].query
    assert tokens.pieces[0] == "\u00c3\u00a9"
    assert tokens.labels[0] == "\u00e9"
    # of the three bytes of the euro sign, none of which is a character, the first has it
    assert tokens.labels[2:] == ("\u20ac", "", "")
    # the first two bytes of the next sign are the same, and are known by then
    fast = PreTrainedTokenizerFast(tokenizer_object=backend)
    texts = ["\u20ac", "\u20ab", "\u20ac"]
    specials = SpecialTokens.of(fast)
    for text in texts:
        tokens = tokens_from_encoding(fast, fast(text), (text,), specials=specials)
        assert tokens.labels == (text, "", "")

    # an encoding without its text has the same labels
    (record,) = capture_encoded(model, fast, fast("\u00e9 \u20ac", return_tensors="pt"))
    assert record["self"].query.labels == ("\u00e9", " ", "\u20ac", "", "")
    assert len(set(record["self"].query.words[1:])) == 1


def test_words_that_no_token_comes_from_are_told():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.train_from_iterator(["the cat sat"], trainers.BpeTrainer(show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="t")
    model = tiny_model("gpt2", vocab_size=len(tokenizer))
    message = "no token of 'my', 'big', 'dog', '\u4f60\u597d', 'on': .* sees 5 of the words"
    for run in (
        lambda text: hs.capture(model, tokenizer, text),
        lambda text: list(hs.capture_many(model, tokenizer, [text])),
    ):
        with pytest.warns(UserWarning, match=message) as said:
            run("my big dog sat \u4f60\u597d on the cat")
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            run("  the c\u00e1t\n\t sat \u0301 \u200b \x01 the ")


def named(**names):
    """A tokenizer that puts its first special token in front of a text of letters, whatever it is
    called.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    marks = list(dict.fromkeys(names.values()))
    vocabulary = {piece: number for number, piece in enumerate([*marks, "a", "b"])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=marks[-1]))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single=f"{marks[0]} $A", special_tokens=[(marks[0], 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


@pytest.mark.parametrize(
    "names",
    [
        {"bos_token": "<bos>", "eos_token": "<eos>"},
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"},
        {"bos_token": "^", "eos_token": "$"},
        {"cls_token": "[ANY]", "sep_token": "[WORD]"},
    ],
)
def test_delimiters_are_those_of_the_tokenizer_whatever_they_are_called(names, tmp_path):
    record = hs.capture(tiny_model("gpt2"), named(**names), "a b a")
    tokens = record["self"].query
    assert tokens.roles == (next(iter(names)).removesuffix("_token"), None, None, None)
    assert token_class(tokens, "cls").tolist() == [True, False, False, False]
    assert tokens.special == (True, False, False, False)
    assert hs.load(hs.save(record, tmp_path / "a.safetensors"))["self"].query == tokens


def test_pieces_that_only_look_like_delimiters_are_none():
    tokenizer = named(bos_token="<s>", unk_token="[UNK]", eos_token="</s>")
    assert tokens_from_ids(tokenizer, [0, 1, 2]).roles == ("bos", None, "eos")
    bare = Tokens(pieces=("<s>", "a", "</s>"))
    assert bare.roles is None
    assert token_class(bare, "delimiter").tolist() == [True, False, True]
    with pytest.raises(
        hs.errors.RecordError, match="roles are None, bos, cls, sep, eos, not begin"
    ):
        Tokens(pieces=("a",), roles=("begin",))


def bytes_of_bpe():
    """Bytes as GPT-2 and LLaMA 3 have them, without a merge."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({piece: number for number, piece in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


def bytes_of_fallback():
    """Pieces of English letters and bytes for all others, as LLaMA 2 has them."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    letters = [*map(chr, range(97, 123)), *map(chr, range(65, 91)), "\u2581", "n!"]
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return backend


def test_bytes_that_are_no_letter_do_not_take_the_next_one():
    """Half of a letter, as a model may write it; then each letter stands once."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_of_bpe())
    half, p, q = (tokenizer.convert_tokens_to_ids(each) for each in ("\u00be", "P", "Q"))
    for ids, labels in {
        (half, p, q): ("\ufffd", "P", "Q"),
        (q, half, half, p): ("Q", "\ufffd\ufffd", "", "P"),
        (p, half): ("P", "\ufffd"),
    }.items():
        assert tokens_from_ids(tokenizer, list(ids)).labels == labels


LETTERS = {
    "Se\u00e1n": ["Se\u00e1n"],
    "\u0141\u00f3d\u017a a": ["\u0141\u00f3d\u017a", "a"],
    "\u4f60\u597d \u4e16a": ["\u4f60", "\u597d", "\u4e16", "a"],
    "\u0645\u064f\u062f\u064e\u0631\u0651\u0650\u0633 \u0643": [
        "\u0645\u064f\u062f\u064e\u0631\u0651\u0650\u0633",
        "\u0643",
    ],
    "\U0001f4a9\U0001f600": ["\U0001f4a9", "\U0001f600"],
    "\U0001f469\u200d\U0001f4bb ab": ["\U0001f469\u200d\U0001f4bb", "ab"],
    "\U0001f44d\U0001f3fd\U0001f44e\U0001f3ff a": [
        "\U0001f44d\U0001f3fd",
        "\U0001f44e\U0001f3ff",
        "a",
    ],
    "\U0001f1e9\U0001f1ea a": ["\U0001f1e9\U0001f1ea", "a"],
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7\U0001f1e9": [
        "\U0001f1e9\U0001f1ea",
        "\U0001f1eb\U0001f1f7",
        "\U0001f1e9",
    ],
    "\u2764\ufe0f a": ["\u2764\ufe0f", "a"],
    "x\u00b2 + y2": ["x\u00b2", "+", "y2"],
    "\uc548\ub155 a": ["\uc548\ub155", "a"],
    "u\u0308ber! x": ["u\u0308ber", "!", "x"],
    "\u4f60\uff1f\uff01 \U0001f600\u200d a_b\u00ad, \u200b": [
        *("\u4f60", "\uff1f\uff01", "\U0001f600\u200d", "a_b\u00ad", ",", "\u200b")
    ],
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd": ["\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd"],
}
"""Texts and their words: Latin with accents, Chinese, Arabic with its vowels, emoji with colours of
skin, a flag, digits behind letters, Korean.
"""


@pytest.mark.parametrize("text", LETTERS)
@pytest.mark.parametrize("backend", [bytes_of_bpe, bytes_of_fallback])
@pytest.mark.parametrize("known", ["offsets", "ids", "pieces"])
def test_each_letter_is_written_once_and_words_are_the_text(backend, known, text):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend(), unk_token="<unk>")
    encoding = tokenizer(text)
    assert len(encoding["input_ids"]) > len(text)
    if known == "offsets":
        tokens = tokens_from_encoding(tokenizer, encoding, (text,))
    elif known == "ids":
        tokens = tokens_from_ids(tokenizer, encoding["input_ids"])
    else:
        pieces = tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        tokens = Tokens(pieces=("\u0120",) * (backend is bytes_of_bpe) + tuple(pieces))
    assert "".join(tokens.labels).replace(" ", "") == text.replace(" ", "")
    assert list(tokens.whole_words.names) == LETTERS[text]
    assert len(tokens.labels) == len(tokens.pieces)


WRITTEN = 'Well?! (It\'s 3.14, "isn\u2019t it"...)\n\nYes_no: 50% x+1\u00a0!'
WORDS = ["Well", "?!", "(", "It's", "3.14", ",", '"', "isn\u2019t", "it", '"...)']
WORDS += ["Yes_no", ":", "50", "%", "x", "+", "1", "!"]


@pytest.mark.parametrize("cut", ["BertPreTokenizer", "ByteLevel", "Metaspace", "Whitespace"])
def test_words_are_a_property_of_the_text_whatever_cuts_it(cut):
    """Each mark alone, several marks or a mark and letters as one token, or letter by letter."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(unk_token="?"))
    backend.pre_tokenizer = getattr(pre_tokenizers, cut)()
    size = {"ByteLevel": 400, "Metaspace": 1}.get(cut, 40)
    backend.train_from_iterator(
        [WRITTEN], trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=["?"])
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    tokens = tokens_from_encoding(tokenizer, tokenizer(WRITTEN), (WRITTEN,))
    names = [
        WRITTEN[tokens.offsets[run[0]][0] : tokens.offsets[run[-1]][1]].strip()
        for run in tokens.whole_words.tokens
    ]
    assert [name for name in names if name] == WORDS


def bytes_of_text(normal=None):
    """Bytes as GPT-2 has them, of a text in a normal form, or as ByT5 has them."""
    from tokenizers import normalizers
    from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

    if normal is None:
        return ByT5Tokenizer()
    backend = bytes_of_bpe()
    backend.normalizer = getattr(normalizers, normal)()
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def bytes_of_unigram():
    """A tokenizer that gives every byte of a run the characters of the whole run."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    scores = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256))]
    scores += [(letter, -2.0) for letter in "\u2581abcdefghijklmnopqrstuvwxyz"]
    backend = Tokenizer(models.Unigram(scores, 0, byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


@pytest.mark.parametrize(
    ("made", "text", "words"),
    [
        (bytes_of_text, "n\u00e9 \u0645\u0631 \u4f60", ["n\u00e9", "\u0645\u0631", "\u4f60"]),
        (lambda: bytes_of_text("NFC"), "cafe\u0301 x", ["caf\u00e9", "x"]),
        (lambda: bytes_of_text("NFC"), "\u1112\u1161\u11ab\u1100\u1173\u11af", ["\ud55c\uae00"]),
        (lambda: bytes_of_text("NFD"), "caf\u00e9 x", ["cafe\u0301", "x"]),
        (lambda: bytes_of_text("NFD"), "\uac01 x", ["\u1100\u1161\u11a8", "x"]),
        (bytes_of_unigram, "a \u00e9! b", ["a", "\u00e9", "!", "b"]),
        (bytes_of_unigram, "\u4f60!\u4f60 ab", ["\u4f60", "!", "\u4f60", "ab"]),
    ],
)
def test_letters_are_those_that_the_model_reads(made, text, words):
    """Offsets are of the text as it was given, and several bytes may share them; some tokenizers
    have none.
    """
    tokenizer = made()
    tokens = tokens_from_encoding(tokenizer, tokenizer(text, add_special_tokens=False), (text,))
    assert "".join(tokens.labels).replace(" ", "") == "".join(words)
    assert list(tokens.whole_words.names) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the catches!", ["the", "catches", "!"]),
        ("cat\nches", ["cat", "ches"]),
        ("cat! 77", ["cat", "!", "77"]),
        ("cat  ches", ["cat", "ches"]),
    ],
)
def test_words_of_a_text_that_a_model_wrote_are_known(text, words):
    """Its tokens have no offsets: what each adds is decoded."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_of_bpe())
    tokens = tokens_from_ids(tokenizer, tokenizer(text)["input_ids"])
    assert tokens.offsets is None
    assert [name for name in tokens.whole_words.names if name.strip()] == words


def test_a_mark_behind_a_blank_gets_no_second_one():
    """A tokenizer to which a blank is a token, and a template that begins with one: as
    `apply_chat_template` reads it.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {"<s>": 0, "\u0120": 1, "the": 2, "\u0120cat": 3, "<unk>": 4}
    backend = Tokenizer(models.WordLevel(words, "<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", unk_token="<unk>"
    )
    model = tiny_model("gpt2")
    with pytest.warns(UserWarning, match="read once, not twice"):
        assert hs.capture(model, tokenizer, " <s>the cat")["self"].query.ids == (1, 0, 2, 3)
    with pytest.warns(UserWarning, match="read once, not twice"):
        assert hs.capture(model, tokenizer, "<s>the cat")["self"].query.ids == (0, 2, 3)


def test_an_id_that_the_tokenizer_does_not_have_is_called_by_its_number():
    tokenizer = tiny_tokenizer()
    beyond = len(tokenizer) + 3
    model = tiny_model("bert", vocab_size=beyond + 1)
    (record,) = capture_encoded(model, tokenizer, [2, 5, beyond])
    assert record["self"].query.labels[2] == f"[{beyond}]"
