"""Answers from documents by the small retrieval model that ships with headscope."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import headscope as hs
from headscope.answering import DEMO, Answer
from headscope.capturing import load_model
from headscope.errors import CaptureError, RecordError, TextError
from headscope.testing import tiny_model

from ..close import assert_close

MILL = "The code of the mill is amber falcon. It rained near the barn on Monday."
LIBRARY = "At the library they use seven. The road was quiet on Friday."
TOWER = "Copper opens the tower. Nobody at the mill remembers the code."
COPY = "Amber falcon opens the mill. The old map hangs by the door."
QUESTION = "What is the code of the mill?"
ONE_WORD = {"documents": ["falcon", MILL], "question": QUESTION}
ask = hs.answer


@pytest.fixture(scope="module")
def readers():
    return load_model(str(DEMO), writes=True)


@pytest.fixture(scope="module")
def one(readers):
    """One document of three holds the answer."""
    return ask(*readers, documents=[LIBRARY, MILL, TOWER], question=QUESTION)


@pytest.fixture(scope="module")
def two(readers):
    return ask(*readers, documents=[LIBRARY, MILL, TOWER, COPY], question=QUESTION)


@pytest.fixture(scope="module")
def unknown(readers):
    return ask(*readers, documents=[LIBRARY, TOWER, COPY], question="Which code opens the barn?")


def names(answer, numbers):
    return [answer.parts[at].name for at in numbers]


def test_the_needed_document_is_named_with_what_it_looked_at(one):
    assert one.text.strip() == "amber falcon"
    assert names(one, one.candidates) == ["document 1", "document 2", "document 3"]
    assert names(one, one.verdict.parts) == ["document 2"]
    assert names(one, [one.looks_at]) == ["document 2"]
    assert one.by == "hidden keys"
    assert one.checked < 1e-3
    said = one.summary
    assert "“amber falcon” needed document 2: with it cut off, its probability falls" in said
    assert "to less than 0.1 %" in said
    assert "head 2-0 gives it" in said
    lift = one.lift()[list(one.candidates)]
    assert f"{lift[1]:.1f} times as much as its length among the documents gives" in said
    table = one.table()
    for words in ("document 2", "without", "alone", "< 0.1 %", "first token", "template"):
        assert words in table


def test_of_two_sources_each_alone_is_enough(two):
    assert two.verdict.needs == "any"
    assert names(two, two.verdict.parts) == ["document 2", "document 4"]
    assert "one of document 2 and document 4: each alone is enough" in two.summary
    assert np.exp(two.without.sum(axis=1)).min() > 0.9
    assert np.exp(two.alone.sum(axis=1))[[0, 2]].max() < 0.01


def test_heads_are_chosen_by_all_that_was_needed(two):
    assert two.targets == two.verdict.parts
    together = two.head_shares()[list(two.targets)].sum(axis=0)
    layer, head = np.unravel_index(together.argmax(), together.shape)
    wanted = f"head {two.layers[layer]}-{head} gives document 2 and document 4"
    assert f"{wanted} {100 * together.max():.0f} % together." in two.summary
    assert two.view().picture["targets"] == [*two.targets]


def test_an_improbable_answer_needs_more_than_half(one):
    tokens = [token for word in one.words for token in word.tokens]
    one_more = one.whole.copy()
    one_more[tokens[0]] -= 10.0

    def told(nats):
        less = one_more.copy()
        less[tokens[0]] -= nats
        return replace(
            one,
            whole=one_more,
            none=less,
            alone=one.alone * 0 + less,
            without=one.without * 0 + less,
        )

    # Half and a tenth of the ten nats that it costs whatever is cut.
    assert told(1.5).verdict.needs == "none"
    assert told(1.9).verdict.needs == "parts"
    assert "less than about half of P is left (P^1.1 / 2)" in " ".join(told(1.9).table().split())


def test_an_answer_that_ends_at_once_needs_nothing(readers):
    end = readers[1].eos_token_id
    others = [token for token in range(len(readers[1])) if token != end]
    given = {"documents": [LIBRARY, MILL], "question": QUESTION}
    empty = ask(*readers, given, suppress_tokens=others)
    assert empty.summary == "retrieval_tiny wrote nothing."
    assert np.isnan(empty.without).all()
    assert (empty.need, empty.verdict.needs, empty.words) == ("", "", ())
    assert "wrote nothing" in empty.view().picture["says"][0]


def test_of_many_sources_only_the_first_are_named(readers):
    found = ask(*readers, documents=[LIBRARY, TOWER] * 13, question=QUESTION)
    assert len(found.verdict.parts) > 20
    assert f"and {len(found.verdict.parts) - 5} more: each alone is enough" in found.summary


def test_an_answer_that_needs_nothing_says_so(unknown):
    assert unknown.text.strip() == "unknown"
    assert unknown.verdict.needs == "none"
    assert "“unknown” needed none of the 3 documents" in unknown.summary
    assert (
        "it looked at none much more than its length among the documents gives" in unknown.summary
    )


def test_shares_are_the_weights_of_the_rows_that_wrote_the_words(one):
    stack, generation = one.record["self"], one.record.generation
    rows = generation.chosen_by[:2]
    whole = np.mean([layer.weights_of()[:, rows] for layer in stack], axis=(0, 1))
    for part, share in zip(one.parts, one.looked(), strict=False):
        assert whole[:, list(part.tokens)].sum(axis=1).mean() == pytest.approx(share, abs=1e-6)
    # Everything is in a part, or in the rest.
    assert one.shares[:2].sum(axis=-1) == pytest.approx(1.0)
    assert one.even.sum(axis=-1) == pytest.approx(1.0)
    first, second = one.looked([0]), one.looked(["falcon"])
    assert (first + second) / 2 == pytest.approx(one.looked())
    (head,) = [at for at in one.chosen if at == (2, 0)]
    assert one.looked(heads=[head])[one.verdict.parts[0]] > 0.5


def test_probabilities_are_those_of_the_model(one, readers):
    assert np.exp(one.whole) == pytest.approx(one.probabilities, abs=1e-5)
    model, _ = readers
    ids = [*one.record["self"].query.ids, one.record.generation.tokens.ids[-1]]
    with torch.no_grad():
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    wanted = [logs[at - 1, ids[at]].item() for at in range(one.record.generation.prompt, len(ids))]
    assert one.whole == pytest.approx(wanted, abs=1e-5)
    assert one.change() == pytest.approx((one.whole - one.without)[:, :2].sum(axis=1))


def test_messages_and_documents_are_asked_alike(one, readers):
    texts = [LIBRARY, MILL, TOWER]
    messages = [{"role": "document", "content": text} for text in texts]
    messages.append({"role": "user", "content": QUESTION})
    for prompt in (messages, {"documents": texts, "question": QUESTION}):
        answer = ask(*readers, prompt)
        assert answer.prompt == one.prompt
        assert_close(answer.lift(), one.lift())
        assert_close(answer.without, one.without)


@pytest.mark.parametrize(
    ("need", "gone"),
    [
        ("direct", "cut from the answer only"),
        ("delete", "deleted"),
        ("replace", "replaced by its tokens in random order"),
    ],
)
def test_other_ways_to_cut_agree_where_one_document_is_needed(need, gone, one, readers, tmp_path):
    answer = ask(*readers, documents=[LIBRARY, MILL, TOWER], question=QUESTION, need=need)
    assert names(answer, answer.verdict.parts) == ["document 2"]
    assert_close(answer.whole, one.whole, atol=1e-5)
    # Each in its own words: in the sentence, the table, the figure and on the page.
    printed = " ".join(str(answer).split())
    for told in ("with it {}, its probability falls", "with the part {}", "candidates {}"):
        assert told.format(gone) in printed
    assert f"{gone.capitalize()}: " in printed
    assert "cut off" not in printed
    answer.plot(tmp_path / "answer.svg")
    drawn = (tmp_path / "answer.svg").read_text(encoding="utf-8")
    assert f"probability lost when {gone}" in drawn
    assert answer.view().picture["gone"] == gone


def test_only_what_is_looked_at_is_measured_without_need(readers, one):
    answer = ask(*readers, documents=[LIBRARY, MILL, TOWER], question=QUESTION, need=None)
    assert answer.verdict.needs == ""
    assert np.isnan(answer.change()).all()
    assert "without" not in answer.table()
    assert_close(answer.lift(), one.lift())


def test_an_answer_that_is_given_is_read_as_it_is(readers, one):
    given = {"documents": [LIBRARY, MILL, TOWER], "question": QUESTION}
    same = ask(*readers, given, answer="amber falcon")
    assert_close(same.whole, one.whole[:2], atol=1e-5)
    assert_close(same.looked(), one.looked(), atol=1e-5)
    other = ask(*readers, given, answer="copper")
    assert other.text.strip() == "copper"
    assert np.exp(other.whole.sum()) < 0.01


def test_contributions_are_looked_at_in_one_reading(readers, one):
    given = {"documents": [LIBRARY, MILL, TOWER], "question": QUESTION}
    for quantity, heads in (("norm", 4), ("alti", 1)):
        answer = ask(*readers, given, quantity=quantity, need=None)
        assert answer.shares.shape[1:3] == (4, heads)
        assert answer.shares.sum(axis=-1) == pytest.approx(1.0)
        assert int(np.nanargmax(answer.lift())) == one.verdict.parts[0]
        assert answer.lift() != pytest.approx(one.lift(), nan_ok=True, abs=1e-3)


@pytest.mark.parametrize(
    ("quantity", "of", "over", "says"),
    [
        ("norm", "head 2-0", "all heads", "norms of contributions"),
        ("alti", "layer 2", "all layers", "ALTI"),
    ],
)
def test_it_is_said_what_was_looked_at(readers, tmp_path, quantity, of, over, says):
    found = ask(*readers, documents=[LIBRARY, MILL, TOWER], question=QUESTION, quantity=quantity)
    assert f"By {says}, over {over} it looked at document 2 most" in found.summary
    assert f"; {of} gives it" in found.summary
    printed = " ".join(str(found).split())
    assert f"looked: share of the {says} of the rows" in printed
    assert f"mean over all {'heads of all ' * (quantity == 'norm')}layers;" in printed
    for name, text in (("svg", f"looked: share of {says}"), ("html", f"share of the {says}")):
        place = tmp_path / f"answer.{name}"
        (hs.figure(found) if name == "svg" else hs.view(found)).save(place)
        assert text in place.read_text()


def test_heads_may_be_chosen(one, tmp_path):
    alone = one.with_heads(heads=["2-0"])
    assert alone.lift()[one.verdict.parts[0]] > 2
    assert "Over head 2-0 it looked at document 2 most" in alone.summary
    assert "Heads are chosen" in one.table()
    assert "Heads are chosen" not in alone.table()
    assert "the rows that wrote the words, mean over head 2-0;" in " ".join(alone.table().split())
    assert_close(alone.without, one.without)
    with pytest.raises(RecordError, match="no head 2-9"):
        one.with_heads(heads=["2-9"])


def test_sentences_are_compared(readers):
    answer = ask(*readers, documents=[LIBRARY, MILL], question=QUESTION, parts="sentence")
    assert {answer.parts[at].kind for at in answer.candidates} == {"sentence"}
    (needed,) = answer.verdict.parts
    assert answer.parts[needed].name == "document 2, sentence 1"
    # Documents around them have the share of their sentences.
    looked = dict(zip([part.name for part in answer.parts], answer.looked(), strict=False))
    both = looked["document 2, sentence 1"] + looked["document 2, sentence 2"]
    assert looked["document 2"] == pytest.approx(both, abs=1e-6)
    whole = ask(
        *readers, documents=[LIBRARY, MILL], question=QUESTION, parts="sentence", of="document"
    )
    assert names(whole, whole.verdict.parts) == ["document 2"]


def test_a_plain_prompt_is_divided_where_that_is_asked(readers, tmp_path):
    prompt = f"{LIBRARY} {MILL} {QUESTION}"
    answer = ask(*readers, prompt, parts="sentence", need="delete")
    assert len(answer.parts) == 5
    # The question wrote the answer, and is not compared.
    assert names(answer, answer.candidates) == [f"sentence {n}" for n in (1, 2, 3, 4)]
    bare = ask(*readers, prompt)
    assert (names(bare, [0]), bare.candidates, bare.verdict.needs) == (["prompt"], (), "")
    # One word for it in the table, the figure and the page.
    assert "template" not in bare.table()
    bare.plot(tmp_path / "prompt.svg")
    assert "prompt" in (tmp_path / "prompt.svg").read_text(encoding="utf-8")
    assert bare.looked().sum() == pytest.approx(1.0)


@pytest.fixture(scope="module")
def plain():
    """A model with random weights that reads documents as plain text, from the first token on."""
    words = {word: number for number, word in enumerate(["<unk>", "a", "b", "c", "d", "e", "?"])}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")
    model = tiny_model("gpt2", writes=True, vocab_size=len(words))
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(std=0.3, generator=torch.Generator().manual_seed(0))
    return model, tokenizer


@pytest.mark.parametrize("need", ["cut", "direct"])
@pytest.mark.parametrize("documents", [["a b", "c d"], ["a"]])
def test_the_first_token_is_cut_with_the_document_that_has_it(plain, documents, need):
    answer = ask(
        *plain, documents=documents, question="e ?", answer="b", need=need, allow_unfit=True
    )
    first, start = answer.parts[answer.candidates[0]].tokens, answer.record.generation.prompt
    assert first[0] == 0
    ids = torch.tensor([answer.record["self"].query.ids[:start]])
    queries = [at for at in range(start) if at not in first] if need == "cut" else [start - 1]
    cuts = [hs.Cut(layer=layer, queries=queries, keys=first) for layer in answer.layers]
    with torch.no_grad(), hs.intervene(plain[0], *cuts):
        logs = plain[0](input_ids=ids).logits[0, -1].log_softmax(-1)
    assert_close(answer.without[0], logs[[2]].numpy(), atol=1e-4)
    numbers = answer.part_numbers()[answer.candidates[0]]
    assert abs(numbers.without - numbers.whole) > 1e-3
    assert numbers.looked_in_words != "not visible"
    assert answer.looked()[-3] == 0
    assert answer.shares.sum(axis=-1) == pytest.approx(1.0)


def test_a_prompt_of_two_tokens_can_be_cut(plain):
    answer = ask(*plain, "a b", parts=[("a", 0, 1)], answer="c", allow_unfit=True)
    assert answer.candidates == (0,)
    assert np.isfinite(answer.without).all()


def test_long_lists_of_parts_show_what_counts(readers):
    texts = [TOWER.replace("tower", "barn")] * 30 + [MILL]
    answer = ask(*readers, documents=texts, question=QUESTION)
    shown = answer.table()
    assert "document 31" in shown
    assert "24 of 32 parts" in shown
    assert len(answer.to_pandas()) == 32 * len(answer.words)


def test_a_kept_answer_is_read_again(one, tmp_path):
    again = hs.load(one.save(tmp_path / "answer.safetensors"))
    assert isinstance(again, Answer)
    assert str(again) == str(one)
    assert again.record is None
    assert_close(again.shares, one.shares)
    with pytest.raises(RecordError, match="loaded from a file"):
        again.with_heads(layers=[0])


def test_the_table_has_a_line_for_each_word_and_part(one):
    table = one.to_pandas()
    assert len(table) == len(one.words) * len(one.parts)
    documents = table[table["kind"] == "document"]
    assert documents["without"].notna().all()
    assert table[table["kind"] == "turn"]["without"].isna().all()
    own = documents[documents["part"] == "document 2"]
    assert own["without"].max() < 0.01
    assert own["alone"].min() > 0.9


def test_it_is_drawn_and_shown(one, two, tmp_path):
    for answer, words in ((one, "< 0.1 %"), (two, "alone: 99 %")):
        answer.plot(tmp_path / "answer.svg")
        drawn = (tmp_path / "answer.svg").read_text(encoding="utf-8")
        assert "document 2" in drawn
        assert words.replace("<", "&lt;") in drawn
    assert "needed document 2" in one.view().html


def test_long_names_that_begin_alike_are_told_apart(one, tmp_path):
    years = iter(range(2021, 2030))
    named = [replace(part, name=f"the annual report of {next(years)}") for part in one.parts]
    replace(one, parts=tuple(named)).plot(tmp_path / "answer.svg", width=84)
    drawn = (tmp_path / "answer.svg").read_text(encoding="utf-8")
    assert all(str(year) in drawn for year in (2021, 2022, 2023))


def test_a_part_has_what_its_length_gives_and_its_odds(one):
    for each, lift in zip(one.part_numbers(), one.lift(), strict=False):
        assert_close(each.due, each.even if np.isnan(lift) else each.looked / lift)
    without = np.repeat(
        one.whole[None] - np.log(1.5) / len(one.words[0].tokens + one.words[1].tokens), 3, axis=0
    )
    assert replace(one, without=without).part_numbers()[0].needed_in_words == "99 % → 66 %"
    assert one.part_numbers()[2].needed_in_words == "as probable"


def test_no_model_named_is_the_small_one(one):
    answer = ask(None, documents=[LIBRARY, MILL, TOWER], question=QUESTION)
    assert answer.model == "retrieval_tiny"
    assert_close(answer.without, one.without, atol=1e-5)


def test_a_sampled_answer_is_told(readers):
    given = {"documents": [LIBRARY, MILL], "question": QUESTION}
    answer = ask(*readers, given, do_sample=True, seed=0)
    assert answer.sampled
    assert "The answer was sampled" in answer.table()


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({}, TextError, "question is empty"),
        ({"question": ""}, TextError, "question is empty"),
        ({"documents": [MILL]}, TextError, "question is empty"),
        ({"prompt": "a", "question": "b"}, TextError, "leave one out"),
        ({"prompt": QUESTION, "need": "burn"}, CaptureError, "need is 'burn'"),
        ({"prompt": QUESTION, "quantity": "x"}, CaptureError, "quantity is 'x'"),
        ({"prompt": QUESTION, "quantity": "alti", "heads": [1]}, CaptureError, "leave heads out"),
        ({"prompt": QUESTION, "of": "page"}, RecordError, "of is 'page'"),
        ({"prompt": QUESTION, "answer": ""}, TextError, "answer is '', which is empty"),
        ({"prompt": QUESTION, "answer": " "}, TextError, "answer is ' ', which is empty"),
        ({"prompt": QUESTION, "answer": "amber zebra"}, TextError, "'amber zebra', .* reads as"),
        ({"prompt": QUESTION, "answer": "amber <|end|> falcon"}, TextError, "stopped after"),
        ({"prompt": ONE_WORD, "need": "replace"}, CaptureError, "'document 1' has no two"),
        ({"prompt": QUESTION, "heads": [9]}, RecordError, "no head 0-9"),
        ({"prompt": QUESTION, "heads": [-1]}, RecordError, "a head such as .*, got -1"),
        ({"prompt": QUESTION, "heads": [(1.5, 2)]}, RecordError, r"got \(1.5, 2\)"),
        ({"prompt": QUESTION, "layers": "2-1"}, RecordError, "a layer such as 7, got '2-1'"),
        ({"prompt": QUESTION, "parts": "chapter"}, TextError, "chapter"),
        (
            {"prompt": QUESTION, "parts": [(3, 0, 4)]},
            TextError,
            r"was \[\(3, 0, 4\)\]; .* \[\('name', start",
        ),
        ({"prompt": QUESTION, "parts": [("", 0, 4)]}, TextError, "give one of turn, document"),
    ],
)
def test_what_cannot_be_asked_is_told(readers, given, error, told):
    with pytest.raises(error, match=told):
        ask(*readers, **given)


def test_documents_that_the_template_changes_are_refused(readers):
    model, tokenizer = readers[0], copy(readers[1])
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content|length }} {{ m.content }}\n{% endfor %}"
    )
    with pytest.raises(TextError, match="template changes the words"):
        ask(model, tokenizer, documents=[LIBRARY, MILL], question=QUESTION)
    given = [{"role": "user", "content": QUESTION}]
    assert ask(model, tokenizer, given, max_new_tokens=2).candidates == ()


def test_an_answer_without_parts_is_drawn(readers, tmp_path):
    answer = ask(*readers, QUESTION, answer="amber falcon", allow_unfit=True)
    assert [part.name for part in answer.parts] == ["prompt"]
    answer.plot(tmp_path / "answer.svg")
    assert "falcon" in (tmp_path / "answer.svg").read_text(encoding="utf-8")
    assert "falcon" in hs.view(answer).html


def test_an_encoder_decoder_is_refused():
    from headscope.testing import tiny_tokenizer

    with pytest.raises(CaptureError, match="encoder-decoder"):
        ask(tiny_model("t5"), tiny_tokenizer(), "the cat", allow_unfit=True, max_new_tokens=2)


def test_parts_within_others_stand_below_them(readers, tmp_path):
    answer = ask(*readers, documents=[LIBRARY, MILL], question=QUESTION, parts="sentence")
    shown = [answer.parts[at].name for at in answer.foremost(24)]
    assert shown[:3] == ["document 1", "document 1, sentence 1", "document 1, sentence 2"]
    answer.plot(tmp_path / "answer.svg", width=84)
    assert "...<" not in (tmp_path / "answer.svg").read_text(encoding="utf-8")


def test_what_an_improbable_answer_loses_is_a_part_of_it(readers):
    given = {"documents": [LIBRARY, MILL, TOWER], "question": QUESTION}
    answer = ask(*readers, given, answer="seven copper " * 40)
    assert answer.whole.sum() < -200
    for at, numbers in enumerate(answer.part_numbers()):
        assert (0 <= numbers.lost <= 1) == (at in answer.candidates)
    assert " of it" in str(answer)
    assert "nan" not in str(answer)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            "one is enough",
            "the documents, and document 2 alone is enough. With all documents cut off",
        ),
        ("more probable", "from less than 0.1 % to 28 times that"),
        ("one document", "needed the document: with it cut off"),
    ],
)
def test_the_sentence_fits_the_numbers(readers, one, case, told):
    rows = {name: np.array(getattr(one, name)) for name in ("whole", "none", "without", "alone")}
    if case == "one is enough":
        found = replace(one, without=np.tile(one.whole, (3, 1)))
    elif case == "more probable":
        low = rows["whole"] - 10.0
        more = low + np.log(28) / sum(len(word.tokens) for word in one.words)
        found = replace(one, whole=low, none=more, without=rows["without"] * 0 + low)
    else:
        found = ask(*readers, documents=[MILL], question=QUESTION)
    assert told in found.summary


def test_a_single_word_is_given_by_its_number_or_text(one):
    assert_close(one.lift(0), one.lift([0]))
    assert_close(one.lift("falcon"), one.lift([1]))
    assert_close(one.change(1), one.change([1]))


def test_a_prompt_that_is_too_long_is_told_what_can_be_done(readers):
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 32}
    config = GPT2Config(vocab_size=len(readers[1]), bos_token_id=None, eos_token_id=None, **sizes)
    model = GPT2LMHeadModel(config).eval()
    with pytest.raises(TextError, match="shorten it, or take a model with more positions"):
        ask(model, readers[1], documents=[MILL, TOWER], question=QUESTION, allow_unfit=True)


def test_stop_strings_of_a_model_with_whole_words_are_refused_by_name(readers, monkeypatch):
    monkeypatch.setattr(readers[0].generation_config, "stop_strings", ["falcon"])
    given = {"documents": [MILL, LIBRARY], "question": QUESTION}
    with pytest.raises(
        CaptureError, match=r"stop_strings is \['falcon'\], which .*stop_strings=None"
    ):
        ask(*readers, **given)
    assert ask(*readers, **given, stop_strings=None).text.strip() == "amber falcon"
