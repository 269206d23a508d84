import headscope as hs
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
    words = [word for piece, word in zip(tokens.pieces, tokens.words, strict=True) if piece != "\u2581"]
    assert words[0] == words[1]
    assert len(set(words)) == 4


def test_bytes_of_other_alphabets_read_as_what_was_written():
    """Byte-level pieces such as ``Ã©`` are shown as the characters they stand for."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, "\u00c3\u00a9"]
    backend = Tokenizer(models.BPE({piece: n for n, piece in enumerate(pieces)}, [("\u00c3", "\u00a9")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    model = tiny_model("gpt2", vocab_size=len(pieces))
    tokens = hs.capture(model, PreTrainedTokenizerFast(tokenizer_object=backend), "\u00e9 \u20ac")["self"].query
    assert tokens.pieces[0] == "\u00c3\u00a9"
    assert tokens.labels[0] == "\u00e9"
    # the three bytes of the euro sign, none of which is a character, stand for it together
    assert tokens.labels[2:] == ("\u20ac",) * 3
