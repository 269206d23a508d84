"""What is written, what the model thought of it, and where its tokens are in the text."""

import torch

import headscope as hs

from .conftest import COUNT, PROMPT, assert_equal_to_one_pass, bare_tokenizer, written


def test_prompt_and_steps_are_marked(tokenizer):
    _, record = written("gpt2", tokenizer)
    generation, query = record.generation, record["self"].query
    prompt = tokenizer(PROMPT)["input_ids"]
    assert generation.prompt == len(prompt) == 8
    assert query.ids[:8] == tuple(prompt)
    assert query.ids[8:] == generation.tokens.ids[:-1]
    assert generation.reads == (8, *[1] * (COUNT - 1))
    assert generation.prefill.tolist() == [True] * 8 + [False] * (COUNT - 1)
    assert generation.step_of.tolist() == [0] * 8 + list(range(1, COUNT))
    assert generation.chosen_by.tolist() == list(range(7, 7 + COUNT))
    assert repr(record).endswith(f"{7 + COUNT} tokens; {COUNT} tokens generated>")


def test_greedy_tokens_are_of_rank_one_and_lead_their_alternatives(tokenizer):
    generation = written("llama", tokenizer, alternatives=3)[1].generation
    assert generation.ranks == (1,) * COUNT
    assert not generation.sampled
    for position, found in enumerate(generation.alternatives):
        assert found[0].id == generation.tokens.ids[position]
        assert found[0].probability == generation.probabilities[position]
        assert found[0].probability >= found[1].probability >= found[2].probability
        assert tokenizer.convert_ids_to_tokens([found[1].id]) == [found[1].piece]
    assert written("llama", tokenizer, alternatives=0)[1].generation.alternatives == ((),) * COUNT


def test_probabilities_are_the_models_own_whatever_the_sampling_makes_of_them(tokenizer):
    model, record = written("gpt2", tokenizer, do_sample=True, temperature=3.0, top_k=40, seed=5)
    assert max(record.generation.ranks) > 1
    assert record.generation.sampled
    assert_equal_to_one_pass(model, record)


def test_a_seed_gives_the_same_text_and_leaves_the_callers_random_numbers(tokenizer):
    before = torch.get_rng_state()
    drawn = [
        written("gpt2", tokenizer, do_sample=True, temperature=3.0, seed=seed)[1].generation
        for seed in (7, 7, 8)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0].tokens.ids != drawn[2].tokens.ids
    assert drawn[0].seed == 7
    assert torch.equal(torch.get_rng_state(), before)


def test_one_token_is_chosen_by_the_prompt_alone(tokenizer):
    for family in ("gpt2", "bart"):
        model, record = written(family, tokenizer, max_new_tokens=1)
        assert record.generation.reads == (record.generation.prompt,)
        assert len(record[record.generation.stack].query) == record.generation.prompt
        assert_equal_to_one_pass(model, record)


def test_the_text_ends_where_the_model_ends_it(tokenizer):
    model, record = written("gpt2", tokenizer, do_sample=True, temperature=9.0, seed=1)
    ids = record.generation.tokens.ids
    end = next(
        number for place, number in enumerate(ids) if place > 2 and number not in ids[:place]
    )
    place = ids.index(end)
    options = {"do_sample": True, "temperature": 9.0, "seed": 1, "max_new_tokens": COUNT}
    ended = hs.generate(model, tokenizer, PROMPT, eos_token_id=end, **options)
    assert ended.generation.tokens.ids == ids[: place + 1]
    assert ended.generation.stop == "end"
    assert len(ended["self"].query) == 8 + place
    assert record.generation.stop == "length"
    assert_equal_to_one_pass(model, ended)


def test_the_users_own_criterion_and_processor_are_used_too(tokenizer):
    seen = []

    def enough(ids, _scores, **_):
        return torch.tensor([ids.shape[1] >= 12])

    def watched(ids, scores):
        seen.append(ids.shape[1])
        return scores

    _, record = written("gpt2", tokenizer, stopping_criteria=[enough], logits_processor=[watched])
    assert record.generation.stop == "criterion"
    assert len(record.generation) == 4
    assert seen == [8, 9, 10, 11]


def test_tokens_have_their_places_in_the_whole_text_where_the_tokenizer_agrees():
    tokenizer = bare_tokenizer()
    prefer = dict.fromkeys(range(32, 50), 9.0)  # ## pieces, which decode and encode to themselves

    def continued(_ids, scores):
        return scores + torch.tensor(
            [prefer.get(number, 0.0) for number in range(scores.shape[-1])]
        )

    _, record = written("gpt2", tokenizer, logits_processor=[continued])
    query = record["self"].query
    assert query.texts == (PROMPT + record.generation.text,)
    assert [query.texts[0][slice(*span)] for span in query.offsets] == [
        piece.strip("#") for piece in query.pieces
    ]
    assert query.words == (0, 0, 0, *[1] * (len(query) - 3))


def test_where_it_does_not_agree_written_tokens_have_no_place(tokenizer):
    _, record = written("gpt2", tokenizer)
    query = record["self"].query
    assert query.texts == (PROMPT,)
    assert query.offsets[1] == (0, 1)
    assert set(query.offsets[8:]) == {None}
    assert not set(query.words[:8]) & set(query.words[8:]) - {None}
