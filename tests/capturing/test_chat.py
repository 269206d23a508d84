"""Conversations: a list of messages is one text, in the form that the model's own template makes;
and texts that hold the tokenizer's special tokens already.
"""

import json
import warnings

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import headscope as hs
from headscope import tasks
from headscope.capturing import capture_batches
from headscope.capturing.inputs.tokens import tokenized
from headscope.cli import run
from headscope.errors import HeadscopeError, TextError
from headscope.interventions import Zero
from headscope.testing import tiny_model, tiny_tokenizer

CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "the cat"}]
OTHER = [{"role": "user", "content": "a dog sat"}]
ANSWERED = [*CHAT, {"role": "assistant", "content": "it sat"}]
SAT = {"type": "text", "text": "a dog sat"}
IN_PARTS = [{"role": "user", "content": [SAT]}]
TEMPLATE = (
    "[CLS]{% for each in messages %}{{ each['role'][0] }}, {{ each['content'] }}[SEP]{% endfor %}"
    "{% if add_generation_prompt %}a,{% endif %}"
)


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama", writes=True)


@pytest.fixture(scope="module")
def tokenizer():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def ids_of(record):
    return list(record["self"].query.ids)


def rendered(tokenizer, messages, **ends):
    ends = ends or {"add_generation_prompt": True}
    return tokenizer.apply_chat_template(messages, return_dict=True, **ends)["input_ids"]


def said_by(run):
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run()
    return result, [str(each.message) for each in said if each.category is UserWarning]


def test_messages_are_one_text_wherever_a_text_is_taken(model, tokenizer):
    wanted, other = rendered(tokenizer, CHAT), rendered(tokenizer, OTHER)
    assert ids_of(hs.capture(model, tokenizer, CHAT)) == wanted
    assert ids_of(hs.capture(model, tokenizer, {"messages": CHAT})) == wanted
    written = hs.generate(model, tokenizer, CHAT, max_new_tokens=3, allow_unfit=True)
    assert (ids_of(written)[: len(wanted)], written.generation.prompt) == (wanted, len(wanted))
    pair = hs.generate(model, tokenizer, [CHAT, OTHER], max_new_tokens=2, allow_unfit=True)
    assert [ids_of(each)[:-1] for each in pair] == [wanted, other]
    several = [CHAT, "a cat", OTHER]
    many = [ids_of(each) for each in hs.capture_many(model, tokenizer, several)]
    assert (many[0], many[2]) == (wanted, other)
    batches = capture_batches(model, tokenizer, several, keep="weights")
    assert {each.numbers: ids_of(each.batch) for each in batches}[0,] == wanted
    effect = hs.effect(
        model, tokenizer, CHAT, interventions=[Zero(layer=0, heads=[0])], allow_unfit=True
    )
    assert ids_of(effect.comparison.a) == wanted
    assert hs.heads(model, tokenizer, texts=CHAT, battery=False).texts == 1
    assert hs.heads(model, tokenizer, texts=several, battery=False).texts == 3
    assert str(hs.budget(model, tokenizer, CHAT)) == str(hs.budget(model, tokenizer, [CHAT]))
    task = tasks.next_word(tokenizer, [CHAT, "the cat sat", OTHER])
    rows = [row for batch in task.batches for row in batch["input_ids"].tolist()]
    assert wanted in [row[: len(wanted)] for row in rows]


def test_rows_and_files_may_hold_conversations(model, tokenizer, tmp_path):
    wanted, other = rendered(tokenizer, CHAT), rendered(tokenizer, OTHER)
    rows = [{"messages": CHAT, "label": 1}, {"prompt": OTHER}]
    assert [ids_of(each) for each in hs.capture_many(model, tokenizer, rows)] == [wanted, other]
    run = hs.capture_many(model, tokenizer, [CHAT, IN_PARTS], out=tmp_path / "run")
    assert [ids_of(each) for each in run] == [wanted, other]
    assert hs.heads(model, tokenizer, texts=[CHAT, OTHER], out=tmp_path / "heads").texts == 2


def test_tokens_of_a_conversation_are_those_of_its_text(model, tokenizer):
    tokens = hs.capture(model, tokenizer, OTHER)["self"].query
    (text,) = tokens.texts
    assert text == "[CLS]u, a dog sat[SEP]a,"
    written = [text[slice(*span)] for span in tokens.offsets]
    assert "".join(written) == text.replace(" ", "")
    assert [written[at] for at, on in enumerate(tokens.special) if on] == ["[CLS]", "[SEP]"]
    of_words = [word for word, on in zip(tokens.words, tokens.special, strict=True) if not on]
    assert of_words[0] == 0
    assert None not in of_words
    assert {word for word, on in zip(tokens.words, tokens.special, strict=True) if on} == {None}


def test_what_the_assistant_said_is_read_whole_and_written_on(model, tokenizer):
    closed = rendered(tokenizer, ANSWERED, add_generation_prompt=False)
    opened = rendered(tokenizer, ANSWERED, continue_final_message=True)
    assert closed != opened
    assert ids_of(hs.capture(model, tokenizer, ANSWERED)) == closed
    written = hs.generate(model, tokenizer, ANSWERED, max_new_tokens=1, allow_unfit=True)
    assert ids_of(written) == opened


def test_a_template_of_parts_gets_parts_and_one_of_texts_gets_texts(model):
    of_parts, of_texts = tiny_tokenizer(), tiny_tokenizer()
    of_parts.chat_template = (
        "{% for each in messages %}{% for part in each['content'] %}{{ part['text'] }}."
        "{% endfor %}{% endfor %}"
    )
    of_texts.chat_template = "{% for each in messages %}{{ each['content'] }}.{% endfor %}"
    for form in (of_parts, of_texts):
        for messages in (OTHER, IN_PARTS):
            assert hs.capture(model, form, messages).texts == ("a dog sat.",)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user"}], "'content'.*'role'.* was given"),
        ([{"content": "Hi"}], "Message 1 is .*'content'"),
        ([*CHAT, "the cat"], "Message 3 is .*str was given"),
        ([{"role": "cat", "content": "a"}], "role 'cat'; there are system"),
        ([{"role": "user", "content": None}], "message 1 is not a text"),
        ([{"role": "user", "content": " "}], "conversation is empty"),
        ([{"role": "user", "content": [{"type": "audio"}]}], "part of type 'audio'"),
        ([{"role": "user", "content": [{"type": "image"}, SAT]}], "no picture was given"),
        ([{"role": "tool", "content": "12"}], "tool"),
        ([{"role": "assistant", "content": "", "tool_calls": [{}]}], "tools=..."),
        (
            [{"role": "user", "content": [{"type": "image", "image": "cat.png"}]}],
            "reads no pictures|no pair, picture",
        ),
    ],
)
@pytest.mark.parametrize("made", [hs.capture, hs.generate], ids=["capture", "generate"])
def test_half_a_conversation_is_refused_in_a_sentence(model, tokenizer, messages, words, made):
    with pytest.raises(HeadscopeError, match=f"(?s){words}"):
        made(model, tokenizer, messages)


@pytest.mark.parametrize("field", ["images", "documents", "reasoning_content"])
def test_fields_that_a_template_does_not_read_are_named(model, field):
    reads, deaf = tiny_tokenizer(), tiny_tokenizer()
    deaf.chat_template = TEMPLATE
    reads.chat_template = f"{TEMPLATE}{{{{ messages[0]['{field}'] }}}}"
    messages = [{"role": "user", "content": "the cat", field: "sat", "name": ""}]
    for form, named in ((reads, []), (deaf, [field])):
        for made in (hs.capture, lambda *given: list(hs.capture_many(*given[:2], [given[2]]))):
            said = said_by(lambda form=form, made=made: made(model, form, messages))[1]
            assert [name for name in named if f"nothing of the field {name!r}" in said[0]] == named
            assert len(said) == len(named)


def test_a_message_is_never_a_prompt_of_its_own(model, tokenizer):
    with pytest.raises(TextError, match="one conversation"):
        list(hs.capture_many(model, tokenizer, CHAT))
    lost = {}
    rows = [{"content": "the cat", "label": 1}, {"text": "a cat"}]
    list(hs.capture_many(model, tokenizer, rows, on_error=lambda at, why: lost.update({at: why})))
    assert list(lost) == [0]
    assert "called text" in str(lost[0])
    with pytest.raises(TextError, match="leave text_pair out"):
        hs.capture(model, tokenizer, CHAT, "a pair")


def test_a_conversation_needs_a_template_that_reads_it(model, tokenizer):
    with pytest.raises(TextError, match=r"has no chat template.*set its chat_template"):
        hs.capture(model, tiny_tokenizer(), CHAT)
    strict = tiny_tokenizer()
    strict.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(TextError, match="refuses it: roles must alternate"):
        hs.generate(model, strict, CHAT)


YES = {"role": "user", "content": "it"}
THOUGHT = {"role": "assistant", "content": "<think>a dog</think>\n\nit sat"}


@pytest.mark.parametrize(
    ("messages", "read", "lost"),
    [
        (CHAT, "messages[1:]", 1),
        (ANSWERED, "messages if each.role != 'assistant'", 3),
        ([*CHAT, THOUGHT, YES], "messages if each.role != 'assistant'", 3),
        ([YES, THOUGHT, YES], "messages[:1]", 2),
        ([YES, {"role": "assistant", "content": "sat"}, YES], "messages[:2]", 3),
    ],
)
def test_a_template_that_leaves_a_message_out_is_named(model, messages, read, lost):
    deaf = tiny_tokenizer()
    deaf.chat_template = f"{{% for each in {read} %}}{{{{ each['content'] }}}} {{% endfor %}}"
    with pytest.raises(TextError, match=f"leaves out words or pictures of message {lost}"):
        hs.capture(model, deaf, messages)


def test_several_texts_of_a_message_are_joined_by_the_template_alone(model):
    """Lists are for the template to read; where it reads none, nobody knows what is between."""
    said = [{"type": "text", "text": "the"}, {"type": "text", "text": "cat"}]
    asked = [{"role": "user", "content": said}, {"role": "assistant", "content": "it sat"}]
    lists, texts = tiny_tokenizer(), tiny_tokenizer()
    texts.chat_template = "{% for each in messages %}{{ each.content + ' ' }}{% endfor %}"
    lists.chat_template = (
        "{% for each in messages %}{% if each.content is string %}{{ each.content }}{% else %}"
        "{% for part in each.content %}{{ part.text + ' and ' }}{% endfor %}{% endif %}{% endfor %}"
    )
    record = hs.capture(model, lists, asked)
    assert record.texts == ("the and cat and it sat",)
    assert record.texts[0] == lists.apply_chat_template(asked, tokenize=False)
    with pytest.raises(TextError, match="cannot be rendered"):
        hs.capture(model, texts, asked)
    asked[0]["content"] = said[:1]
    assert hs.capture(model, texts, asked).texts == ("the it sat ",)
    with pytest.raises(TextError, match="put in a list"):
        hs.capture(model, texts, asked[0])


def test_thoughts_may_be_left_out_and_that_is_told(model):
    plain = tiny_tokenizer()
    chat = [YES, THOUGHT, YES]
    plain.chat_template = "{% for each in messages %}{{ each.content }} {% endfor %}"
    assert said_by(lambda: hs.capture(model, plain, chat))[1] == []
    plain.chat_template = (
        "{% for each in messages %}{{ each.content.split('</think>')[-1] }} {% endfor %}"
    )
    read = plain("it it sat it", add_special_tokens=False).input_ids
    record, said = said_by(lambda: hs.capture(model, plain, chat))
    assert [each for each in ids_of(record) if each != 51] == [each for each in read if each != 51]
    (told,) = said
    assert "leaves out what answers hold up to </think>" in told


@pytest.mark.parametrize(
    ("marked", "bare"),
    [
        (("[CLS] the cat",), ("the cat",)),
        (("[CLS] the cat [SEP]",), ("the cat",)),
        (("the cat [SEP]",), ("the cat",)),
        ((" \n[CLS] the cat [SEP]\n",), ("the cat",)),
        (("[CLS] the cat", "a dog [SEP]"), ("the cat", "a dog")),
    ],
)
@pytest.mark.parametrize("kind", ["bert", "llama", "bart"])
def test_special_tokens_in_a_text_are_read_once(kind, marked, bare):
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    target = {"target": "it sat [SEP]"} if kind == "bart" else {}
    record, said = said_by(lambda: hs.capture(model, tokenizer, *marked, **target))
    plain = hs.capture(model, tokenizer, *bare, **({"target": "it sat"} if target else {}))
    assert len(said) == 1 + bool(target)
    assert "they are read once, not twice" in said[0]
    for name, stack in record.stacks.items():
        assert stack.query.ids == plain[name].query.ids
        assert stack.query.words == plain[name].query.words
        assert np.allclose(stack.weights(), plain[name].weights(), atol=1e-6)
    (many,), _ = said_by(lambda: list(hs.capture_many(model, tokenizer, [marked])))
    assert many[next(iter(many.stacks))].query.ids == plain[next(iter(plain.stacks))].query.ids


def test_marks_between_a_text_and_its_pair_are_told():
    model, tokenizer = tiny_model("bert"), tiny_tokenizer()
    for pair in (("the cat", "[CLS] a dog"), ("the cat [SEP]", "a dog")):
        record, (said,) = said_by(lambda pair=pair: hs.capture(model, tokenizer, *pair))
        assert "is written where the text and its pair meet" in said
        assert list(record["self"].query.ids) == tokenizer(*pair)["input_ids"]


def test_a_word_that_becomes_the_first_mark_is_kept():
    backend = Tokenizer(models.WordLevel({"<s>": 0, "t1": 1, "t2": 2, "\n": 3}, "<s>"))
    backend.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")
    model = tiny_model("gpt2", vocab_size=4)
    assert [*tokenized(tokenizer, "\n <s> t1", warns=False)["input_ids"]] == [3, 0, 1]
    for text in ("zebra t1 <s> t2", "t1 <s> t2", "t1"):
        record, said = said_by(lambda text=text: hs.capture(model, tokenizer, text))
        assert list(record["self"].query.ids) == tokenizer(text)["input_ids"]
        assert not any("read once" in each for each in said)


def test_the_text_of_a_template_is_read_as_the_template_is(model, tokenizer):
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)
    # The tokenizer ends every text with [SEP], which a text that is given as such gets.
    wanted = [*rendered(tokenizer, CHAT), tokenizer.sep_token_id]
    record, said = said_by(lambda: hs.capture(model, tokenizer, text))
    assert (ids_of(record), len(said)) == (wanted, 1)
    assert "'[CLS]'" in said[0]
    how = {"max_new_tokens": 1, "allow_unfit": True}
    written, said = said_by(lambda: hs.generate(model, tokenizer, text, **how))
    assert (ids_of(written), len(said)) == (wanted, 1)
    texts = [text, "a cat", text]
    batches, _ = said_by(lambda: list(capture_batches(model, tokenizer, texts, keep="weights")))
    assert [ids_of(each.batch) for each in batches if 1 not in each.numbers] == [wanted, wanted]
    task, said = said_by(lambda: tasks.next_word(tokenizer, [text]))
    assert len(said) == 1
    assert task.batches[0]["input_ids"].tolist() == [wanted]


def test_a_token_that_a_tokenizer_does_not_add_stays_as_often_as_it_is_written(model):
    from tokenizers import processors

    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A")
    record, said = said_by(lambda: hs.capture(model, tokenizer, "[CLS] [CLS] the"))
    assert record["self"].query.labels == ("[CLS]", "[CLS]", "t", "h", "e")
    assert said == []


def test_commands_read_a_conversation_from_a_file(model, tokenizer, tmp_path, capsys):
    folder, file = tmp_path / "model", tmp_path / "chat.json"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    file.write_text(json.dumps({"messages": CHAT}))
    wanted, out = rendered(tokenizer, CHAT), tmp_path / "a.safetensors"
    given = ["--chat", str(file), "--model", str(folder)]
    run(["capture", *given, "--out", str(out)])
    assert ids_of(hs.load(out)) == wanted
    run(["generate", *given, "--out", str(out), "--max-new-tokens", "1", "--allow-unfit"])
    assert ids_of(hs.load(out)) == wanted
    assert run(["view", *given, "--out", str(tmp_path / "a.html")]) == 0
    for command in (["effect", "--zero", "0-0", "--allow-unfit"], ["heads"], ["norms"]):
        assert run([*command, *given]) == 0
    lines = tmp_path / "chats.jsonl"
    lines.write_text("\n".join(json.dumps(each) for each in (CHAT, {"messages": OTHER})))
    more = ["--texts", str(lines), "--model", str(folder), "--allow-unfit"]
    run(["generate", *more, "--out", str(tmp_path / "all"), "--max-new-tokens", "1"])
    assert ids_of(hs.load(tmp_path / "all" / "2.safetensors")) == rendered(tokenizer, OTHER)
    file.write_text('["Hello"]')
    capsys.readouterr()
    assert run(["capture", *given, "--out", str(out)]) == 1
    assert run(["heads", "the cat", *given]) == 1
    assert "Expected a conversation in" in (said := capsys.readouterr().err)
    assert "Expected --chat alone" in said
