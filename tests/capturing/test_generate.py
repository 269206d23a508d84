"""A generated text, joined from its steps, equals one full pass over it; and says what the model thought."""

import pickle

import numpy as np
import pytest
import torch
from transformers import cache_utils

import headscope as hs
from headscope import CaptureError, TextError
from headscope.capturing import capture_ids
from headscope.capturing._join import Joiner
from headscope.testing import tiny_model, tiny_tokenizer

PROMPT, COUNT, NEVER = "the cat", 11, 63
EQUAL_LAYERS = {"num_decoder_layers": 2}  # transformers makes the static cache of a T5 too short otherwise
FAMILIES = {
    "gpt2": {},
    "llama": {},
    "mistral": {},  # its window is 4 tokens, shorter than prompt and text
    "gemma2": {},
    "gemma3_text": {},
    "gpt_oss": {},
    "qwen3_next": {},
    "jamba": {},
    "deepseek_v3": {},
    "gptj": {},
    "bloom": {},
    "falcon": {},
    "falcon (alibi)": {},
    "gpt_neo": {},
    "t5": {},  # its decoder is deeper than its encoder
    "t5 (equal)": EQUAL_LAYERS,
    "switch_transformers": {},
    "bart": {},
}
STATIC = ("gpt2", "llama", "mistral", "gemma2", "qwen3_next", "gptj", "falcon", "t5 (equal)", "bart")


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def model_of(family, **changes):
    changes = FAMILIES.get(family, {}) | changes
    return tiny_model(family.removesuffix(" (equal)"), writes=True, **changes)


def written(family, tokenizer, **options):
    model = model_of(family)
    return model, hs.generate(
        model, tokenizer, PROMPT, **{"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False} | options
    )


def full_pass(model, record):
    """The same tokens in one pass: its record and its logits for the last of them."""
    sides = {"input_ids": record.stacks.get("encoder", record[record.generation.stack]).query}
    if "decoder" in record.stacks:
        sides["decoder_input_ids"] = record["decoder"].query
    arguments = {name: torch.tensor([side.ids], device=model.device) for name, side in sides.items()}
    with torch.no_grad():
        logits = model(**arguments).logits[0]
    return capture_ids(model, **arguments)[0], logits.float()


def assert_equal_to_one_pass(model, record):
    whole, logits = full_pass(model, record)
    assert list(record.stacks) == list(whole.stacks)
    for name, stack in whole.stacks.items():
        assert [layer.layer for layer in record[name]] == [layer.layer for layer in stack]
        for ours, theirs in zip(record[name], stack, strict=True):
            assert np.abs(ours.weights_of() - theirs.weights_of()).max() < 1e-5
            assert (ours.queries is None) == (theirs.queries is None)
            for array in ("queries", "keys", "values"):
                mine, other = getattr(ours, array), getattr(theirs, array)
                if mine is not None:
                    # the linear attention of some hybrids takes another path for single steps
                    np.testing.assert_allclose(mine, other, atol=1e-5 * max(1, np.abs(other).max()))
            assert ours.visible == theirs.visible
            assert (ours.module, ours.projection, ours.route) == (theirs.module, theirs.projection, theirs.route)
            assert (ours.scale, ours.soft_cap) == (theirs.scale, theirs.soft_cap)
    generation = record.generation
    odds = logits[generation.prompt - 1 :].log_softmax(-1)
    chosen = odds[torch.arange(len(generation)), list(generation.tokens.ids)]
    np.testing.assert_allclose(generation.probabilities, chosen.exp(), atol=1e-5)
    np.testing.assert_allclose(generation.entropies, -(odds.exp() * odds).sum(-1), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_joined_steps_are_one_full_pass(family, tokenizer):
    model, record = written(family, tokenizer, keep=("qk", "values"))
    assert_equal_to_one_pass(model, record)
    assert record.verified < 1e-5


@pytest.mark.parametrize("family", ["mistral", "gemma2", "gpt_oss", "t5", "bart"])
def test_so_are_weights_that_were_kept(family, tokenizer):
    model, record = written(family, tokenizer)
    assert all(layer.weights is not None for stack in record.stacks.values() for layer in stack)
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("family", ["llama", "gptj", "gemma3_text", "qwen3_next", "deepseek_v3", "bloom"])
def test_what_is_read_off_the_model_is_read_off_its_first_step(family, tokenizer):
    model, record = written(family, tokenizer)
    whole = full_pass(model, record)[0]
    assert record.model == whole.model
    assert record["self"].others == whole["self"].others
    for ours, theirs in zip(record["self"], whole["self"], strict=True):
        assert (ours.norm, ours.latent, ours.rotary is None) == (theirs.norm, theirs.latent, theirs.rotary is None)
        if ours.rotary is not None:
            np.testing.assert_allclose(ours.rotary.frequencies, theirs.rotary.frequencies, atol=1e-4)
            np.testing.assert_allclose(ours.before_positions()[1], theirs.before_positions()[1], atol=2e-3)


@pytest.mark.parametrize("family", STATIC)
def test_so_are_those_of_a_static_cache(family, tokenizer):
    model, record = written(family, tokenizer, keep=("qk", "values"), cache_implementation="static")
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("family", ["llama", "mistral", "t5"])
def test_so_are_those_of_eager_attention(family, tokenizer):
    model = model_of(family, attn_implementation="eager")
    record = hs.generate(model, tokenizer, PROMPT, max_new_tokens=COUNT, eos_token_id=NEVER)
    assert_equal_to_one_pass(model, record)


def test_a_deep_decoder_is_written_by_with_a_cache(tokenizer):
    """The same text as without any cache, which transformers can do."""
    model, record = written("t5", tokenizer)
    source = torch.tensor([tokenizer(PROMPT)["input_ids"]])
    options = {"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False}
    wanted = model.generate(source, use_cache=False, **options)[0, record.generation.prompt :]
    assert list(record.generation.tokens.ids) == wanted.tolist()
    assert record.generation.reads == (1,) * COUNT
    with pytest.raises(CaptureError, match="transformers makes its static cache too short; leave cache_implementation"):
        written("t5", tokenizer, cache_implementation="static")


EXPERTS = ["mixtral", "qwen3_moe", "jamba", "gpt_oss", "switch_transformers"]


@pytest.mark.parametrize("family", EXPERTS)
def test_router_scores_of_all_steps_are_those_of_one_pass(family, tokenizer):
    model, record = written(family, tokenizer, keep="qk", routers=True)
    sides = {"input_ids": record.stacks.get("encoder", record[record.generation.stack]).query}
    if "decoder" in record.stacks:
        sides["decoder_input_ids"] = record["decoder"].query
    arguments = {name: torch.tensor([side.ids]) for name, side in sides.items()}
    with torch.no_grad():
        whole = model(**arguments, output_router_logits=True, use_cache=False)
    for name, stack in record.stacks.items():
        returned = getattr(whole, f"{name}_router_logits" if name != "self" else "router_logits", None) or ()
        own = [scores for scores in returned if isinstance(scores, torch.Tensor)]
        assert len(stack.routers) == len(own)
        for ours, theirs in zip(stack.routers.values(), own, strict=True):
            assert ours.shape == (len(stack.query), theirs.shape[-1])
            np.testing.assert_allclose(ours, theirs.reshape(ours.shape), atol=1e-5)
    assert any(stack.routers for stack in record.stacks.values())


def test_router_scores_leave_the_text_as_it_is_and_are_left_out_unless_asked_for(tokenizer):
    sampled = {"do_sample": True, "seed": 5}
    (_, with_them), (_, without) = (written("mixtral", tokenizer, routers=routers, **sampled) for routers in (1, 0))
    assert with_them.generation.tokens.ids == without.generation.tokens.ids
    assert without["self"].routers == {}
    assert_equal_arrays(with_them["self"], without["self"])


def assert_equal_arrays(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine.queries, other.queries)


@pytest.mark.parametrize("options", [{"prefill_chunk_size": 3}, {"cache_implementation": "static"}])
def test_router_scores_of_a_prompt_in_parts_and_of_a_static_cache(options, tokenizer):
    _, wanted = written("mixtral", tokenizer, routers=True)
    _, record = written("mixtral", tokenizer, routers=True, **options)
    for number, scores in wanted["self"].routers.items():
        np.testing.assert_allclose(record["self"].routers[number], scores, atol=1e-5)


def test_router_scores_of_a_model_that_was_compiled_in_part(tokenizer):
    _, wanted = written("mixtral", tokenizer, routers=True)
    model = model_of("mixtral")
    model.model.layers[1] = torch.compile(model.model.layers[1])
    options = {"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False, "routers": True}
    record = hs.generate(model, tokenizer, PROMPT, **options)
    for number, scores in wanted["self"].routers.items():
        np.testing.assert_array_equal(record["self"].routers[number], scores)


def test_a_model_without_experts_says_so(tokenizer):
    with pytest.raises(CaptureError, match="LlamaForCausalLM offers no router scores; capture without routers=True"):
        written("llama", tokenizer, routers=True)


@pytest.mark.parametrize("family", ["gpt2", "mistral", "bloom"])
def test_a_prompt_may_be_read_in_parts(family, tokenizer):
    model, record = written(family, tokenizer, prefill_chunk_size=3)
    assert record.generation.reads[:3] == (3, 3, 2)
    assert record.generation.step_of[:9].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("chunk", [None, 3])
@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("window", [2, 8, 10, 18, 40])
def test_a_window_may_be_reached_at_any_step(window, cache, chunk, tokenizer):
    """8 tokens are given and 10 read back, so that the cache begins to slide before, at or after the first step."""
    model = model_of("mistral", sliding_window=window)
    record = hs.generate(
        model,
        tokenizer,
        PROMPT,
        max_new_tokens=COUNT,
        cache_implementation=cache,
        prefill_chunk_size=chunk,
        keep=("qk", "values"),
    )
    assert len(record["self"].query) == 18
    assert {layer.kind for layer in record["self"]} == {"sliding" if window < 18 else "causal"}
    assert_equal_to_one_pass(model, record)


@pytest.mark.parametrize("family", ["gpt2", "gptj", "mistral"])
def test_a_prompt_may_be_one_token(family):
    model = model_of(family)
    record = hs.generate(model, bare_tokenizer(), "c", max_new_tokens=6)
    assert record.generation.reads == (1,) * 6
    assert_equal_to_one_pass(model, record)


def test_what_is_asked_for_is_kept_and_nothing_else(tokenizer):
    for keep in ("weights", "qk", ("weights", "values")):
        layer = written("llama", tokenizer, keep=keep)[1]["self"].layer(1)
        kept = {"weights": layer.weights, "qk": layer.queries, "values": layer.values}
        assert {name for name, array in kept.items() if array is not None} == set(np.atleast_1d(keep))
    layer = written("bloom", tokenizer, keep="weights")[1]["self"].layer(0)
    assert layer.weights is not None
    assert layer.values is None


def test_float16_halves_the_arrays(tokenizer):
    exact, half = (written("llama", tokenizer, precision=precision)[1]["self"] for precision in ("float32", "float16"))
    assert half.layer(0).keys.dtype == half.layer(0).weights.dtype == np.float16
    assert 1e-7 < np.abs(half.weights(1) - exact.weights(1)).max() < 5e-4


def test_half_precision_is_captured_in_single(tokenizer):
    model = model_of("llama").to(torch.bfloat16)
    record = hs.generate(model, tokenizer, PROMPT, max_new_tokens=COUNT, eos_token_id=NEVER)
    np.testing.assert_allclose(record["self"].weights(0).sum(-1), 1, atol=1e-6)


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
    assert repr(record).endswith(f"18 tokens; {COUNT} tokens generated>")


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
    drawn = [written("gpt2", tokenizer, do_sample=True, temperature=3.0, seed=seed)[1].generation for seed in (7, 7, 8)]
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
    end = next(number for place, number in enumerate(ids) if place > 2 and number not in ids[:place])
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


def test_a_pass_too_many_is_left_out(tokenizer, monkeypatch):
    """On some devices transformers sees the end one pass late, and takes that pass back."""
    from transformers.generation import utils

    class Late(utils.StopCheck):
        def __init__(self, *_, **__):
            super().__init__()
            self.ends, self.late = False, 0

        @staticmethod
        def is_supported(*_, **__):
            return True

        def __call__(self, unfinished_sequences, tokens, length):
            ends, self.ends = self.ends, bool(unfinished_sequences.max() == 0)
            self.late = int(ends)
            return ends

        def finish(self):
            return self.late

    _, wanted = written("mistral", tokenizer)
    monkeypatch.setattr(utils, "DeferredStopCheck", Late)
    model, record = written("mistral", tokenizer)
    assert record.generation == wanted.generation
    assert_equal_to_one_pass(model, record)


def bare_tokenizer():
    """The tiny tokenizer without the marks that it puts around a text, as those of models that write are."""
    from tokenizers import decoders, processors

    made = tiny_tokenizer()
    made.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1")
    made.backend_tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return made


def test_tokens_have_their_places_in_the_whole_text_where_the_tokenizer_agrees():
    tokenizer = bare_tokenizer()
    prefer = dict.fromkeys(range(32, 50), 9.0)  # ## pieces, which decode and encode to themselves

    def continued(_ids, scores):
        return scores + torch.tensor([prefer.get(number, 0.0) for number in range(scores.shape[-1])])

    _, record = written("gpt2", tokenizer, logits_processor=[continued])
    query = record["self"].query
    assert query.texts == (PROMPT + record.generation.text,)
    assert [query.texts[0][slice(*span)] for span in query.offsets] == [piece.strip("#") for piece in query.pieces]
    assert query.words == (0, 0, 0, *[1] * (len(query) - 3))


def test_where_it_does_not_agree_written_tokens_have_no_place(tokenizer):
    _, record = written("gpt2", tokenizer)
    query = record["self"].query
    assert query.texts == (PROMPT,)
    assert query.offsets[1] == (0, 1)
    assert set(query.offsets[8:]) == set(query.words[8:]) == {None}


def state_of(model):
    names = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")
    return {
        "configuration": model.generation_config.to_dict(),
        "same": id(model.generation_config),
        "implementation": model.config._attn_implementation,
        "training": [module.training for module in model.modules()],
        "hooks": [{name: dict(getattr(module, name)) for name in names} for module in model.modules()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "random": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("family", "cache"), [("gpt2", None), ("llama", "static"), ("bart", None)])
def test_the_model_comes_back_exactly_as_it_was(family, cache, fails, tokenizer):
    from transformers.modeling_utils import AttentionInterface

    model = model_of(family)
    model.train()
    model.generation_config.temperature = 0.5
    passes = []

    def after_three(*_):
        passes.append(1)
        return 1 / 0 if fails and len(passes) == 3 else None

    next(iter(model.children())).register_forward_hook(after_three)
    before, interface = state_of(model), AttentionInterface.get_interface
    options = {"cache_implementation": cache, "eos_token_id": NEVER, "max_new_tokens": 5, "do_sample": True, "seed": 1}
    if fails:
        with pytest.raises(ZeroDivisionError):
            hs.generate(model, tokenizer, PROMPT, **options)
    else:
        hs.generate(model, tokenizer, PROMPT, **options)
    after = state_of(model)
    for name, state in before.items():
        assert after[name] == state, name
    assert AttentionInterface.get_interface is interface
    assert torch.is_grad_enabled()


def test_only_new_rows_are_held(tokenizer, monkeypatch):
    """What is held after a step, pickled: twice as much for twice as many tokens, not four times as much."""
    held, end_step = [], Joiner.end_step

    def weighed(joiner):
        end_step(joiner)
        held.append(len(pickle.dumps(joiner._strands)))

    monkeypatch.setattr(Joiner, "end_step", weighed)
    model = model_of("gpt2", n_positions=160)
    record = hs.generate(model, tokenizer, PROMPT, max_new_tokens=121, keep=("qk", "values"))
    assert len(record["self"].query) == 128
    arrays = [array for layer in record["self"] for array in (layer.queries, layer.keys, layer.values)]
    kept = sum(array.nbytes for array in arrays)
    assert kept < held[-1] < 2 * kept  # the weights would be three times as much
    assert held[-1] < 2.5 * held[56]


def test_weights_are_dropped_where_they_would_be_too_large(tokenizer, monkeypatch):
    monkeypatch.setattr("headscope.capturing._join.WEIGHTS_KEPT_BELOW", 3 * 5 * 12 * 12 * 4)
    model, record = written("gpt2", tokenizer)
    assert {layer.weights is None for layer in record["self"]} == {True}
    assert_equal_to_one_pass(model, record)
    assert {layer.weights is None for layer in written("gpt2", tokenizer, max_new_tokens=5)[1]["self"]} == {False}


def test_a_cache_that_changes_its_keys_is_refused(tokenizer, monkeypatch):
    update = cache_utils.DynamicLayer.update

    def rounded(self, *arguments, **options):
        keys, values = update(self, *arguments, **options)
        self.keys = (keys * 16).round() / 16
        return keys, values

    monkeypatch.setattr(cache_utils.DynamicLayer, "update", rounded)
    with pytest.raises(CaptureError, match="the cache hands back other keys than it was given"):
        written("gpt2", tokenizer)


def test_a_model_that_looks_at_empty_places_of_its_cache_is_refused(tokenizer):
    """A model that looks in both directions does, and transformers' GPT-Neo in its local layers."""
    with pytest.raises(CaptureError, match="weight lies on empty places of the cache, which this model does not hide"):
        written("bert", tokenizer, cache_implementation="static")
    with pytest.raises(CaptureError, match=r"transformer\.h\.1\.attn\.attention: "):
        written("gpt_neo", tokenizer, cache_implementation="static")


def test_a_wrong_reconstruction_at_a_later_step_is_refused(tokenizer):
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def sharpened(module, query, key, value, mask, **options):
        return sdpa_attention_forward(module, query * (1 + (key.shape[2] > 12)), key, value, mask, **options)

    AttentionInterface.register("sharpened later", sharpened)
    AttentionMaskInterface.register("sharpened later", sdpa_mask)
    model = model_of("gpt2")
    model.set_attn_implementation("sharpened later")
    with pytest.raises(CaptureError, match="differs from the model's own by .* and is refused"):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=COUNT, eos_token_id=NEVER)
    assert hs.generate(model, tokenizer, PROMPT, max_new_tokens=3, eos_token_id=NEVER).verified < 1e-5


def telling_model(sharp_from):
    """A model that returns its weights, sharpened from so many keys on: they do not follow from queries and keys."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask
    from transformers.models.llama.modeling_llama import eager_attention_forward

    def telling(module, query, key, value, mask, **options):
        return eager_attention_forward(module, query * (1 + (key.shape[2] >= sharp_from)), key, value, mask, **options)

    AttentionInterface.register("telling", telling)
    AttentionMaskInterface.register("telling", eager_mask)
    model = model_of("llama")
    model.set_attn_implementation("telling")
    return model


def test_weights_are_kept_where_they_do_not_follow_from_queries_and_keys(tokenizer):
    model, options = telling_model(sharp_from=1), {"max_new_tokens": COUNT, "eos_token_id": NEVER}
    record = hs.generate(model, tokenizer, PROMPT, keep="qk", **options)
    whole = full_pass(model, record)[0]
    for ours, theirs in zip(record["self"], whole["self"], strict=True):
        assert ours.queries is None
        assert np.abs(ours.weights - theirs.weights).max() < 1e-5


def test_where_only_later_ones_do_not_follow_it_is_said(tokenizer):
    model, options = telling_model(sharp_from=12), {"max_new_tokens": COUNT, "eos_token_id": NEVER}
    with pytest.raises(CaptureError, match="shows queries and keys in some steps only; generate with keep='weights'"):
        hs.generate(model, tokenizer, PROMPT, keep="qk", **options)
    record = hs.generate(model, tokenizer, PROMPT, keep=("qk", "weights"), **options)
    assert {layer.queries is None for layer in record["self"]} == {True}
    np.testing.assert_allclose(record["self"].weights(1).sum(-1), 1, atol=1e-6)


def test_a_model_without_a_cache_is_refused(tokenizer):
    with pytest.raises(CaptureError, match="reads the text anew at every step, without a key/value cache; record the"):
        written("xlm", tokenizer)


def test_a_model_without_attention_is_refused(tokenizer):
    with pytest.raises(CaptureError, match="MambaForCausalLM computed no softmax attention that could be seen"):
        written("mamba", tokenizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_beams": 4}, "num_beams=4 cannot be recorded: beams read several texts at once"),
        ({"num_return_sequences": 2}, "num_return_sequences=2 .* one text; call generate once for each, with another"),
        (
            {"assistant_model": tiny_model("gpt2", writes=True)},
            "assistant_model=GPT2LMHeadModel .* tokens that it take",
        ),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup_num_tokens=3 cannot be recorded: assisted decoding"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "penalty_alpha=0.6 cannot be recorded: contrastive search"),
        ({"guidance_scale": 1.5}, "guidance_scale=1.5 cannot be recorded: guidance runs the model on a second text"),
        ({"use_cache": False}, "use_cache=False cannot be recorded: steps are recorded with the key/value cache"),
        ({"max_length": 30}, "max_length=30 cannot be recorded: give max_new_tokens"),
        ({"output_scores": True}, "output_scores=True cannot be recorded: generate returns a Record"),
        ({"temperatur": 0.5}, "generate has no option 'temperatur'; did you mean temperature?"),
        ({"colour": 1}, "generate has no option 'colour'; there are those of transformers.GenerationConfig"),
        ({"keep": "all"}, "keep must be 'auto', or one or several of"),
        ({"keep": "statistics"}, "keep='statistics' is for capture"),
        ({"precision": "int8"}, "precision must be 'float32' or 'float16'"),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number from 1 on, not 0"),
        ({"max_new_tokens": True}, "max_new_tokens must be a whole number from 1 on, not True"),
        ({"alternatives": -1}, "alternatives must be a whole number from 0 on, not -1"),
        ({"do_sample": True, "temperature": -1.0}, "GPT2LMHeadModel cannot generate like this: .*temperature"),
    ],
)
def test_what_cannot_be_recorded_is_one_clear_error(options, message, tokenizer):
    with pytest.raises(CaptureError, match=message):
        hs.generate(model_of("gpt2"), tokenizer, PROMPT, **{"max_new_tokens": 4} | options)


def test_beams_in_the_models_own_configuration_are_not_used(tokenizer):
    model = model_of("bart")
    greedy = hs.generate(model, tokenizer, PROMPT, max_new_tokens=4, eos_token_id=NEVER)
    model.generation_config.num_beams = 4
    assert hs.generate(model, tokenizer, PROMPT, max_new_tokens=4, eos_token_id=NEVER).generation == greedy.generation


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, ""), TextError, "The text is empty"),
        ((None, None), CaptureError, "generate needs a prompt"),
        ((None, "a " * 40), TextError, "positions for 32"),
        (
            (tiny_model("gpt2"), PROMPT),
            CaptureError,
            "GPT2Model cannot write: it has no head that predicts tokens; load",
        ),
    ],
)
def test_a_prompt_or_model_that_will_not_do(arguments, error, message, tokenizer):
    model, prompt = arguments
    with pytest.raises(error, match=message):
        hs.generate(model or model_of("gpt2"), tokenizer, prompt)


def test_a_text_that_has_no_room_is_said_before_it_is_begun(tokenizer):
    model = model_of("gpt2")
    with pytest.raises(TextError, match="After 8 tokens the model has positions to write 25 more, and max_new_tokens"):
        hs.generate(model, tokenizer, PROMPT, max_new_tokens=26)
    assert len(hs.generate(model, tokenizer, PROMPT, max_new_tokens=25, eos_token_id=NEVER).generation) == 25


def test_a_model_may_be_named_by_its_folder(tmp_path, tokenizer):
    model = model_of("llama")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    named = hs.generate(tmp_path, prompt=PROMPT, max_new_tokens=4, eos_token_id=NEVER)
    given = hs.generate(model, tokenizer, PROMPT, max_new_tokens=4, eos_token_id=NEVER)
    assert named.generation.tokens == given.generation.tokens
    np.testing.assert_allclose(named.generation.probabilities, given.generation.probabilities, atol=1e-6)
    with pytest.raises(CaptureError, match="generate needs the tokenizer of LlamaForCausalLM"):
        hs.generate(model, prompt=PROMPT)
