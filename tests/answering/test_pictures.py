"""Answers about pictures: LLaVA, Qwen2-VL and Qwen3-VL with random weights, under sdpa."""

from functools import partial

import numpy as np
import pytest
from PIL import Image

import headscope as hs
from headscope.answering import Answer, sink_times
from headscope.errors import CaptureError, FileError, ModelError, RecordError, TextError
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close
from ..processors import tiny_chat_llava, tiny_llava, tiny_qwen_vl

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 40, 3), np.uint8)
MODELS = {
    "llava": (tiny_chat_llava, (3, 3)),
    "qwen2_vl": (partial(tiny_qwen_vl, "qwen2_vl"), (3, 5)),
    "qwen3_vl": (partial(tiny_qwen_vl, "qwen3_vl"), (3, 5)),
}
QUESTION = "what is it"
ask = partial(hs.answer, image=PIXELS, question=QUESTION)


@pytest.fixture(scope="module", params=list(MODELS))
def asked(request):
    """Model, processor, and the answer of it."""
    make, grid = MODELS[request.param]
    model, processor = make()
    assert model.config._attn_implementation == "sdpa"
    answer = ask(model, processor, max_new_tokens=6)
    assert answer.grids == (grid,)
    return model, processor, answer


@pytest.fixture(scope="module")
def llava():
    return tiny_chat_llava()


def shown(answer):
    """Numbers of the parts that are pictures."""
    return [at for at, part in enumerate(answer.parts) if part.kind == "picture"]


def patches(answer):
    return answer.attention[:, list(answer.patches)]


def apart(answer):
    return np.abs(np.exp(answer.whole) - answer.probabilities).max()


def eager(model, processor, answer):
    """What the model itself says of the steps: ``[token layer head patch]``, and what it wrote."""
    import torch

    read = processor(text=[answer.prompt], images=[PIXELS], return_tensors="pt")
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            made = model.generate(
                **read,
                max_new_tokens=len(answer.tokens),
                do_sample=False,
                output_attentions=True,
                return_dict_in_generate=True,
            )
    finally:
        model.set_attn_implementation("sdpa")
    tokens = made.sequences[0, read["input_ids"].shape[1] :]
    patches = np.flatnonzero(read["input_ids"][0] == model.config.image_token_id)
    # The last row of a step is that of the token whose successor is written.
    rows = [
        [layer[0, :, -1].float().numpy()[:, patches] for layer in step] for step in made.attentions
    ]
    return np.array(rows), tokens.tolist()


def test_the_numbers_are_those_of_the_steps_under_eager(asked):
    model, processor, answer = asked
    own, tokens = eager(model, processor, answer)
    assert tokens == list(answer.record.generation.tokens.ids)
    np.testing.assert_allclose(patches(answer), own.mean(axis=(1, 2)), atol=2e-6)
    np.testing.assert_allclose(answer.shares[..., shown(answer)].sum(-1), own.sum(-1), atol=2e-6)
    rows = [own[list(word.tokens)].mean(axis=(0, 1, 2)) for word in answer.words]
    np.testing.assert_allclose(answer.word_attention, rows, atol=2e-6)
    chosen = ask(model, processor, max_new_tokens=6, layers=[1], heads=[0, 2])
    np.testing.assert_allclose(patches(chosen), own[:, 1, [0, 2]].mean(axis=1), atol=2e-6)
    single = ask(model, processor, max_new_tokens=6, heads=["1-2", (0, 5)])
    both = (own[:, 1, 2] + own[:, 0, 5]) / 2
    np.testing.assert_allclose(patches(single), both, atol=2e-6)
    assert (chosen.mean_of, single.mean_of) == ("heads 1-0, 1-2", "heads 1-2, 0-5")


def test_other_heads_of_an_answer_need_no_other_run(asked, tmp_path):
    model, processor, answer = asked
    for chosen in ({"layers": [1], "heads": [0, 2]}, {"heads": ["1-2", (0, 5)]}, {}):
        wanted = ask(model, processor, max_new_tokens=6, keep_sinks=True, **chosen)
        other = answer.with_heads(**chosen, keep_sinks=True)
        assert (other.chosen, other.keep_sinks) == (wanted.chosen, True)
        for name in ("attention", "shares", "even", "times", "word_attention"):
            np.testing.assert_allclose(getattr(other, name), getattr(wanted, name), atol=1e-7)
    with pytest.raises(RecordError, match="no head 1-99"):
        answer.with_heads(heads=["1-99"])
    with pytest.raises(RecordError, match="loaded from a file"):
        hs.load(answer.save(tmp_path / "a.safetensors")).with_heads(layers=[0])


def test_a_changed_model_answers_otherwise(asked):
    model, processor, answer = asked
    with hs.intervene(model, hs.Zero(stack="text", layer=0, heads=[1])):
        changed = ask(model, processor, max_new_tokens=6)
    assert changed.probabilities != pytest.approx(answer.probabilities, abs=1e-3)
    assert apart(changed) < 1e-5
    # silenced heads of the tower that reads the picture change it, too
    with hs.intervene(model, hs.Zero(stack="vision", layer=0, heads=[1])):
        blind = ask(model, processor, max_new_tokens=6)
    assert blind.probabilities != pytest.approx(answer.probabilities, abs=1e-5)


def test_heat_has_the_places_of_the_patches(asked):
    answer = asked[2]
    heat = answer.heat(0)
    assert heat.shape == answer.grids[0]
    for value, (row, column) in zip(answer.word_attention[0], answer.places, strict=True):
        assert heat[row, column] == value
    apart = answer.heat(0, relative=True)
    np.testing.assert_allclose(
        apart, heat - answer.laid_out(answer.word_attention.mean(axis=0)), atol=1e-9
    )
    assert answer.heat(answer.words[1].text)[0, 0] == answer.heat(1)[0, 0]


def test_the_picture_is_the_one_that_the_model_saw(asked):
    _, processor, answer = asked
    (picture,) = answer.pictures
    size = (picture.shape[1], picture.shape[0])
    given = Image.fromarray(PIXELS).resize(size, Image.Resampling.BICUBIC)
    assert np.abs(np.asarray(given, float) - picture).mean() < 2
    # patches in the order of rows, not of the blocks that are merged, would be another picture
    if hasattr(processor.image_processor, "merge_size"):
        assert picture.shape == (24, 40, 3)


def test_the_record_has_the_generation(asked):
    answer = asked[2]
    generation = answer.record.generation
    assert generation.stack == "text"
    assert generation.text == answer.text
    assert generation.reads[0] == generation.prompt
    assert apart(answer) < 1e-5
    stack = answer.record["text"]
    row = stack.weights(layer=1, head=3)[generation.chosen_by[2]]
    patches = [at for at, place in enumerate(stack.key.places) if place is not None]
    share = answer.shares[2, 1, 3, shown(answer)].sum()
    assert row[patches].sum() == pytest.approx(share, abs=1e-6)
    # every token may be looked at that stands before the one that is written
    assert answer.even[2, 0, shown(answer)].sum() == pytest.approx(
        len(patches) / (generation.prompt + 2)
    )


def test_a_kept_answer_is_read_again(asked, tmp_path):
    answer = asked[2]
    again = hs.load(answer.save(tmp_path / "answer.safetensors"))
    assert isinstance(again, Answer)
    assert str(again) == str(answer)
    assert again.record is None
    assert_close(again.attention, answer.attention)
    assert len(again.pictures) == len(answer.pictures)
    for ours, theirs in zip(again.pictures, answer.pictures, strict=True):
        assert_close(ours, theirs)


def test_what_is_printed(llava):
    answer = ask(*llava, max_new_tokens=6)
    shares = answer.word_shares
    assert f"“{answer.words[int(shares.argmax())].text}” ({100 * shares.max():.1f} %)" in str(
        answer
    )
    assert "all heads of all layers" in answer.summary
    table = answer.to_pandas()
    assert list(table["word"].unique()) == list(dict.fromkeys(word.text for word in answer.words))
    assert table[table["kind"] == "picture"]["looked"].tolist() == pytest.approx(shares.tolist())
    assert repr(answer).startswith("<Answer of ")


def test_sinks_get_ten_times_an_even_part_from_three_quarters_of_the_text():
    text = np.full((8, 40), 0.01)
    text[:, 7] = 1.0  # of every token
    text[:5, 21] = 1.0  # of five in eight tokens
    text[7, 30] = 4.0  # of one word, so much that its mean is large, too
    assert list(np.flatnonzero(sink_times(text) >= 10)) == [7]
    text[5, 21] = 1.0  # of six in eight
    assert list(np.flatnonzero(sink_times(text) >= 10)) == [7, 21]
    assert sink_times(np.zeros((3, 5))).tolist() == [0.0] * 5


def test_sinks_are_blank_unless_they_are_kept(llava):
    from dataclasses import replace

    answer = ask(*llava, max_new_tokens=6)
    times = np.zeros(9)
    times[4] = 11.0
    without, kept = (replace(answer, times=times, keep_sinks=keep) for keep in (False, True))
    assert np.isnan(without.heat(0)[1, 1])
    assert np.isnan(without.heat(0)).sum() == 1
    assert not np.isnan(kept.heat(0)).any()
    assert "1 patch of 9 is a sink" in without.summary
    assert without.summary.endswith(", left out.")
    assert kept.summary.endswith(", kept.")
    assert np.average(without.word_sinks, weights=without.word_shares) == pytest.approx(
        answer.word_attention[:, 4].sum() / answer.word_shares.sum()
    )
    assert "r1c1" not in str(without)


def test_several_pictures_have_a_grid_each(llava):
    model, processor = llava
    answer = ask(model, processor, image=[PIXELS, PIXELS[::-1].copy()], max_new_tokens=3)
    assert answer.grids == ((3, 3), (3, 3))
    assert answer.prompt.count("<image>") == 2
    assert answer.heat(0, picture=1)[0, 0] == answer.word_attention[0, 9]
    assert "picture 1 r" in str(answer) or "picture 2 r" in str(answer)
    with pytest.raises(RecordError, match="There is no picture 2; the model read 2"):
        answer.heat(0, picture=2)


def test_a_processor_without_a_template_reads_the_marks_and_the_question():
    _, processor = tiny_llava()
    model, _ = tiny_chat_llava()
    assert processor.chat_template is None
    assert ask(model, processor, max_new_tokens=2).prompt == "<image>what is it"
    assert ask(model, processor, question="a <image> cat", max_new_tokens=2).prompt == (
        "a <image> cat"
    )


def test_a_conversation_is_read_as_the_template_of_the_processor_is(llava, tmp_path):
    from PIL import Image

    (model, processor), file = llava, tmp_path / "cat.png"
    picture = Image.fromarray(PIXELS)
    picture.save(file)
    asked = {"type": "text", "text": QUESTION}
    whole = [{"role": "user", "content": [{"type": "image", "image": picture}, asked]}]
    wanted = processor.apply_chat_template(
        whole, tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )["input_ids"][0]
    held = [{"role": "user", "content": [{"type": "image", "image": str(file)}, asked]}]
    beside = [{"role": "user", "content": QUESTION}]
    for messages, image in ((held, None), (beside, PIXELS)):
        given = {} if image is None else {"image": image}
        (stack,) = (
            each
            for each in hs.capture(model, processor, messages, **given).stacks.values()
            if each.query.ids
        )
        assert stack.query.ids == tuple(wanted.tolist())
        answer = hs.answer(
            model, processor, messages, image=image, max_new_tokens=1, allow_unfit=True
        )
        assert answer.question == QUESTION
        assert answer.prompt == processor.apply_chat_template(
            whole, tokenize=False, add_generation_prompt=True
        )


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"question": " "}, TextError, "The question is empty"),
        ({"question": None}, TextError, "The question is empty"),
        ({"question": 7}, TextError, "question must be a string"),
        ({"image": []}, CaptureError, "image is an empty list"),
        ({"image": "gone.png"}, FileError, "gone.png does not exist"),
        ({"layers": [7]}, RecordError, "no head 7-0 .* layers 0 to 1 and heads 0 to 5"),
        ({"heads": [6]}, RecordError, "no head 0-6"),
        ({"heads": []}, RecordError, "an empty list"),
        ({"heads": ["1-2"], "layers": [1]}, RecordError, "leave out layers"),
        ({"heads": ["a-b"]}, RecordError, "Expected a head such as"),
        ({"num_beam_groups": 3}, CaptureError, "beams"),
        ({"max_new_tokens": 0}, CaptureError, "max_new_tokens must be"),
        ({"max_new_tokens": 900}, TextError, "After 34 tokens the model has positions"),
        ({"device": "cpu"}, ModelError, "device"),
    ],
)
def test_what_cannot_be_asked_is_told(llava, given, error, told):
    with pytest.raises(error, match=told):
        hs.answer(*llava, **{"image": PIXELS, "question": QUESTION, **given})


def test_models_that_cannot_answer_are_told(llava, tmp_path):
    bert = tiny_model("bert"), tiny_tokenizer()
    with pytest.raises(CaptureError, match="needs the processor of BertModel"):
        ask(*bert)
    gpt2 = tiny_model("gpt2", writes=True)
    with pytest.raises(CaptureError, match="GPT2LMHeadModel reads no pictures"):
        ask(gpt2, llava[1])
    with pytest.raises(CaptureError, match="LlavaModel cannot write"):
        ask(tiny_model("llava"), llava[1])
    with pytest.raises(ModelError, match="demo model reads text"):
        ask(None)
    with pytest.raises(CaptureError, match="encoder-decoder"):
        ask(tiny_model("vision-encoder-decoder"), llava[1])
    unreadable = tmp_path / "notes.png"
    unreadable.write_text("no picture")
    with pytest.raises(FileError, match="Cannot read the picture"):
        ask(*llava, image=unreadable)


def test_relative_needs_two_words(llava):
    answer = ask(*llava, max_new_tokens=2, suppress_tokens=[0])
    assert len(answer.words) == 1
    with pytest.raises(RecordError, match="and the answer has 1"):
        answer.heat(0, relative=True)
    for word, told in ((3, "no word 3"), ("moon", "no word 'moon'")):
        with pytest.raises(RecordError, match=told):
            answer.heat(word)


def test_a_folder_is_loaded_with_its_head(tmp_path, llava):
    for part in llava:
        part.save_pretrained(tmp_path)
    Image.fromarray(PIXELS).save(tmp_path / "cat.png")
    answer = hs.answer(
        str(tmp_path), image=tmp_path / "cat.png", question=QUESTION, max_new_tokens=4
    )
    assert answer.text == ask(*llava, max_new_tokens=4).text


def test_pictures_are_cut_off_like_documents(llava):
    import torch

    (model, processor), images = llava, [PIXELS, PIXELS[::-1].copy()]
    answer = ask(model, processor, image=images, max_new_tokens=3)
    names = [answer.parts[at].name for at in answer.candidates]
    assert (names, answer.by) == (["picture 1", "picture 2"], "Cut")
    stack, hidden = answer.record["text"], answer.parts[answer.candidates[1]].tokens
    read = dict(processor(text=[answer.prompt], images=images, return_tensors="pt"))
    start, written = read["input_ids"].shape[1], answer.record.generation.tokens.ids
    ids = torch.cat([read["input_ids"], torch.tensor([written])], dim=1)
    read |= {"input_ids": ids[:, :-1], "attention_mask": torch.ones_like(ids[:, :-1])}
    queries = [row for row in range(hidden[0], ids.shape[1] - 1) if row not in hidden]
    cuts = [hs.Cut(stack="text", layer=each.layer, queries=queries, keys=hidden) for each in stack]
    with torch.no_grad(), hs.intervene(model, *cuts):
        logs = model(**read).logits[0, start - 1 :].log_softmax(-1)
    wanted = logs.gather(1, torch.tensor(written)[:, None])[:, 0]
    assert answer.without[1] == pytest.approx(wanted.tolist(), abs=1e-4)
    assert answer.without[1] != pytest.approx(answer.whole, abs=1e-4)


def test_regions_that_are_given_are_compared_and_cut(llava):
    answer = ask(*llava, max_new_tokens=3, parts=[("left", 0, 0, 0.5, 1), ("right", 0.5, 0, 1, 1)])
    assert [answer.parts[at].name for at in answer.candidates] == ["left", "right"]
    assert np.isfinite(answer.without).all()
    # Their text on the page is their name; the column in the middle is the first one's.
    told = [answer.pieces[answer.parts[at].tokens[0]] for at in answer.candidates]
    assert told == ["left", "right"]
    assert [len(answer.parts[at].tokens) for at in answer.candidates] == [6, 3]
    assert not any("r0c" in piece for piece in answer.pieces)
