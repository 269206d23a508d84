"""What is not fit for a question is refused, by name and by hand, in Python and on the command
line.
"""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope.capturing import demo_model, load_model
from headscope.capturing.fitness import (
    CLASS,
    MASKED,
    NEXT,
    check_fit,
    looks_ahead,
    new_weights,
    share_unknown,
)
from headscope.cli import run
from headscope.errors import CaptureError, ModelError, TextError
from headscope.interventions import (
    Zero,
    gradient_importance,
    greedy_pruning,
    leave_one_out,
    pruning_curve,
)
from headscope.tasks import (
    classification,
    masked_word,
    minimal_pairs,
    next_word,
    repeats,
    translation,
)
from headscope.testing import tiny_model

IDS = [1, 9, 14, 23, 8, 2]
TEXTS = ["the cat sat", "a dog ran off"]
UNTRAINED = "has no trained head that predicts the next word"
SEES = "sees the words after a word"


@pytest.fixture(scope="module")
def untrained():
    """A sentence encoder that a user loaded with a head that it was never trained with."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(demo_model()).eval()


def seeing():
    """A user's own random model that looks both ways, and gives logits."""
    from transformers import BertConfig, BertLMHeadModel

    torch.manual_seed(0)
    sizes = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 20,
    }
    return BertLMHeadModel(BertConfig(vocab_size=64, max_position_embeddings=48, **sizes)).eval()


def test_a_named_model_without_a_trained_head_does_not_write():
    with pytest.raises(
        ModelError, match=f"all-MiniLM-L6-v2 {UNTRAINED}: its files lack cls.predictions.bias and 5"
    ):
        hs.generate(str(demo_model()), prompt="Once upon a time", max_new_tokens=2)
    with pytest.raises(ModelError, match=UNTRAINED):
        load_model(None, writes=True)


@pytest.mark.parametrize("command", ["generate", "ablate"])
def test_so_say_the_commands(command, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("a cat sat on the mat\nthe dog ran off\n", encoding="utf-8")
    arguments = {
        "generate": ["Once upon", "--model", str(demo_model()), "--out", "g.safetensors"],
        "ablate": ["--task", "next-word", "--data", "texts.txt", "--no-whole-layers"],
    }
    assert run([command, *arguments[command]]) == 1
    assert UNTRAINED in capsys.readouterr().err
    assert not (tmp_path / "g.safetensors").exists()


def test_a_model_that_the_user_loaded_is_refused_too(untrained, minilm):
    tokenizer = minilm[1]
    with pytest.raises(
        ModelError,
        match=f"BertLMHeadModel {UNTRAINED}: cls.predictions.bias and 4 more were not in",
    ):
        hs.generate(untrained, tokenizer, "Once upon", max_new_tokens=2)
    with pytest.raises(ModelError, match=UNTRAINED):
        hs.ablate(untrained, next_word(tokenizer, TEXTS))
    # It writes then; but it looks in both directions, and one pass reads the text otherwise.
    with pytest.raises(CaptureError, match="computes something else where it writes"):
        hs.generate(untrained, tokenizer, "Once", max_new_tokens=2, allow_unfit=True)


def test_a_new_head_of_one_matrix_is_known_until_it_is_trained(tokenizer, tmp_path):
    """LLaMA's has neither biases nor a norm."""
    from transformers import AutoModel, AutoModelForCausalLM

    config = tiny_model("llama").config
    config.tie_word_embeddings = False
    AutoModel.from_config(config).save_pretrained(tmp_path / "base")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base").eval()
    assert new_weights(model) == ("lm_head.weight",)
    with pytest.raises(ModelError, match="has no trained head that predicts the next word"):
        hs.generate(model, tokenizer, "a cat", max_new_tokens=2)
    ids = torch.tensor([[1, 2, 3]])
    model(ids, labels=ids).loss.backward()
    torch.optim.SGD(model.parameters(), lr=1e-3).step()
    assert new_weights(model) == ()
    assert hs.generate(model, tokenizer, "a cat", max_new_tokens=2).generation


def test_a_head_with_rows_for_new_tokens_is_not_new(tmp_path):
    from transformers import AutoModelForCausalLM

    config = tiny_model("llama").config
    config.tie_word_embeddings = False
    trained = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        trained.lm_head.weight.mul_(1.5)
    trained.save_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    model.resize_token_embeddings(config.vocab_size + 8)
    assert new_weights(model) == ()


@pytest.mark.parametrize("asks", [MASKED, CLASS])
def test_untrained_heads_of_other_kinds(asks, minilm):
    from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

    loader = AutoModelForMaskedLM if asks == MASKED else AutoModelForSequenceClassification
    model, tokenizer = loader.from_pretrained(demo_model()).eval(), minilm[1]
    task = (
        masked_word(tokenizer, TEXTS)
        if asks == MASKED
        else classification(tokenizer, TEXTS, [0, 1])
    )
    with pytest.raises(ModelError, match=r"has no trained (masked-word head|classifier)"):
        hs.ablate(model, task)
    if asks != MASKED:
        with pytest.raises(ModelError, match="has no trained"):
            hs.faithfulness(model, tokenizer, TEXTS)


def test_a_model_that_sees_ahead_predicts_no_next_word(tokenizer):
    model = seeing()
    with pytest.raises(ModelError, match=SEES):
        hs.generate(model, tokenizer, "the cat", max_new_tokens=2)
    for task in (
        next_word(tokenizer, TEXTS),
        repeats(range(10, 60)),
        minimal_pairs(tokenizer, [("ab", "cd")]),
    ):
        with pytest.raises(ModelError, match=SEES):
            hs.ablate(model, task)
    assert hs.ablate(model, next_word(tokenizer, TEXTS), layers=False, allow_unfit=True).cells


def test_neither_is_its_importance_measured(tokenizer):
    model, task = seeing(), next_word(tokenizer, TEXTS)
    for measure in (gradient_importance, leave_one_out, greedy_pruning):
        with pytest.raises(ModelError, match=SEES):
            measure(model, task)
    with pytest.raises(ModelError, match=SEES):
        pruning_curve(model, task, [("self", 0, 0)])


def test_a_model_that_hides_the_next_word_itself_may_write():
    model = tiny_model("xlnet", writes=True)
    assert looks_ahead(model, IDS)
    check_fit(model, NEXT, IDS, generates=True)
    with pytest.raises(ModelError, match=SEES):
        check_fit(model, NEXT, IDS)


def test_an_encoder_decoder_is_asked_for_translations(tokenizer):
    with pytest.raises(ModelError, match="is an encoder-decoder, and was asked for the next word"):
        hs.ablate(tiny_model("t5"), next_word(tokenizer, TEXTS))


def test_a_model_without_a_head_is_one_clear_error(tokenizer):
    model = tiny_model("bert")
    for task in (next_word(tokenizer, TEXTS), classification(tokenizer, TEXTS, [0, 1])):
        with pytest.raises(ModelError, match="BertModel has no .*: it gives no logits; load a"):
            hs.ablate(model, task)
    with pytest.raises(ModelError, match="it gives no logits"):
        leave_one_out(model, next_word(tokenizer, TEXTS))


def words_tokenizer(unknown, begins, **names):
    """A tokenizer of ten words, which knows no other."""
    words = [
        "<s>",
        "</s>",
        "<pad>",
        unknown,
        *["the", "cat", "saw", "a", "dog", "and", "it", "ran", "off", "home"],
    ]
    backend = Tokenizer(
        models.WordLevel(
            {word: number for number, word in enumerate(dict.fromkeys(words))}, unknown
        )
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if begins:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


UNREADABLE = "Nobody knew why our door was open"


@pytest.mark.parametrize(
    ("unknown", "names"),
    [
        ("<s>", {"bos_token": "<s>"}),
        ("<s>", {"bos_token": "<s>", "unk_token": "<s>"}),
        ("<s>", {"bos_token": "<s>", "eos_token": "<s>", "pad_token": "<s>"}),
        ("<pad>", {"pad_token": "<pad>"}),
        ("</s>", {"eos_token": "</s>"}),
        ("[?]", {}),
        ("UNK", {}),
        ("0", {"bos_token": "<s>"}),
    ],
)
@pytest.mark.parametrize("begins", [True, False])
def test_a_text_on_one_id_is_unknown_whatever_the_id_is_called(unknown, names, begins):
    tokenizer = words_tokenizer(unknown, begins, **names)
    assert share_unknown(tokenizer, tokenizer(UNREADABLE)["input_ids"])[0] == 1
    for known in ("the", "the cat saw a dog", "the the the the", "the cat and <s>"):
        assert share_unknown(tokenizer, tokenizer(known)["input_ids"])[0] <= 0.5
    model = tiny_model("gpt2", writes=True, vocab_size=len(tokenizer))
    with pytest.warns(UserWarning, match="100% .* no words that the tokenizer knows") as warned:
        record = hs.capture(model, tokenizer, UNREADABLE)
    assert len(warned) == 1
    assert len(record["self"].query) == len(UNREADABLE.split()) + begins
    for act in (
        lambda: hs.capture(model, tokenizer, UNREADABLE),
        lambda: hs.generate(model, tokenizer, UNREADABLE, max_new_tokens=1),
        lambda: list(hs.capture_many(model, tokenizer, [UNREADABLE])),
    ):
        with pytest.warns(UserWarning, match="100% of the tokens of the .* no words that the"):
            act()
    for study in (
        lambda: hs.heads(model, tokenizer, [UNREADABLE] * 2),
        lambda: hs.ablate(model, next_word(tokenizer, [UNREADABLE] * 2)),
    ):
        with pytest.raises(TextError, match="no words that the tokenizer knows"):
            study()


STUDIES = {
    "atlas": lambda *given: hs.atlas(*given),
    "norm_study": lambda *given: hs.norm_study(*given),
    "mechanism": lambda *given: hs.mechanism(*given),
    "effect": lambda *given: hs.effect(*given, interventions=[Zero(layer=0, heads=[0])]),
    "translation": lambda _, reads, texts: translation(reads, [(text, text) for text in texts]),
    "heads": lambda model, reads, texts: hs.heads(model, reads, texts, battery=False),
}


def marked_tokenizer():
    """As that of T5 and XLM-R: a mark stands before every word, also before an unknown one."""
    pieces = ["<unk>", "<s>", "\u2581", "\u2581the", "\u2581cat", "t", "h", "e", "c", "a"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", unk_token="<unk>")


READERS = {
    "words": (lambda: words_tokenizer("<s>", True, bos_token="<s>"), UNREADABLE),
    "marked": (marked_tokenizer, "\u0440\u0443\u043a\u0438 \u043c\u043e\u0438 \u0434\u043e\u043c"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", STUDIES)
def test_studies_refuse_what_a_model_cannot_read(name, reader):
    made, unreadable = READERS[reader]
    tokenizer = made()
    model = tiny_model("gpt2", writes=True, vocab_size=len(tokenizer))
    with pytest.raises(TextError, match="no words that the tokenizer knows"):
        STUDIES[name](model, tokenizer, [unreadable, unreadable + " w"])


def test_captures_say_so_of_a_target_too():
    tokenizer, unreadable = marked_tokenizer(), READERS["marked"][1]
    assert share_unknown(tokenizer, tokenizer("the cat heath")["input_ids"])[0] == 0
    model = tiny_model("t5", vocab_size=len(tokenizer))
    with pytest.warns(UserWarning, match="100% of the tokens of the target are <unk>"):
        hs.capture(model, tokenizer, "the cat", target=unreadable)
    with pytest.raises(TextError, match="100% of the tokens of the target are <unk>"):
        hs.effect(
            model,
            tokenizer,
            "the cat",
            target=unreadable,
            interventions=[Zero(layer=0, heads=[0], stack="encoder")],
        )


def test_one_unreadable_text_of_many_is_left_out_of_an_encoder_decoder_too():
    tokenizer = words_tokenizer("<s>", False, bos_token="<s>")
    model = tiny_model("bart", vocab_size=len(tokenizer))
    lost = []
    found = hs.heads(
        model,
        tokenizer,
        ["the cat saw a dog", UNREADABLE, "it ran off home"],
        on_error=lambda number, error: lost.append(number),
    )
    assert (lost, found.texts) == ([1], 2)


def test_a_text_of_padding_is_unfit(tokenizer):
    model, text = tiny_model("bert"), "[PAD] [PAD] [PAD] [PAD]"
    with pytest.warns(UserWarning, match=r"100% of the tokens of the text are \[PAD\]"):
        hs.capture(model, tokenizer, text)
    with pytest.raises(TextError, match=r"100% of the tokens of the texts are \[PAD\]"):
        hs.heads(model, tokenizer, [text])
    with pytest.raises(TextError, match=r"100% .* are \[PAD\]"):
        hs.effect(model, tokenizer, text, interventions=[hs.Zero(layer=0, heads=[0])])
    hs.capture(model, tokenizer, "[MASK]")
    hs.capture(model, tokenizer, "the cat [PAD]")
