"""Several threads that work on one model: captures, generation and interventions, with plain passes
beside them.
"""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import headscope as hs
from headscope.testing import tiny_model, tiny_tokenizer

from ..close import assert_close

THREADS, CAPTURES = 8, 32
FAMILIES = ("bloom", "gptj", "bert")
TEXTS = ("cat sat.", "a", "who ate", "it is a")
"""Of unlike lengths."""


def state_of(model):
    """Training flags and hooks of all modules, in order."""
    tables = (
        "_forward_hooks",
        "_forward_pre_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
    )
    modules = list(model.modules())
    return [module.training for module in modules], [
        list(vars(module)[name]) for module in modules for name in tables
    ]


def part_in_training(family):
    """A model that is being trained, but for its first block."""
    model = tiny_model(family).train()
    next(module for name, module in model.named_modules() if name.endswith(".0")).eval()
    return model


def same(first, second):
    """Whether two records have the same stacks and layers and the same weights."""
    assert list(first.stacks) == list(second.stacks)
    for name, stack in first.stacks.items():
        assert [layer.module for layer in stack] == [layer.module for layer in second[name]]
        assert_close([layer.weights for layer in stack], [layer.weights for layer in second[name]])
    return True


@pytest.mark.parametrize("family", FAMILIES)
def test_captures_in_threads_are_those_of_one_thread(family):
    model, tokenizer = part_in_training(family), tiny_tokenizer()
    before = state_of(model)
    alone = [hs.capture(model, tokenizer, text) for text in TEXTS]
    with ThreadPoolExecutor(THREADS) as pool:
        records = list(
            pool.map(
                lambda text: hs.capture(model, tokenizer, text), TEXTS * (CAPTURES // len(TEXTS))
            )
        )
    assert all(map(same, records, alone * (CAPTURES // len(TEXTS))))
    assert state_of(model) == before


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_passes_beside_captures_are_the_models_own(family):
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    inputs = tokenizer(TEXTS[0], return_tensors="pt")
    with torch.no_grad():
        own = model(**inputs)[0]
    done, failed = threading.Event(), []

    def run_plainly():
        while not done.is_set():
            try:
                with torch.no_grad():
                    assert_close(model(**inputs)[0], own)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is none of the plain pass
                failed.append(error)

    beside = [threading.Thread(target=run_plainly) for _ in range(2)]
    for thread in beside:
        thread.start()
    try:
        records = [hs.capture(model, tokenizer, text) for text in TEXTS]
    finally:
        done.set()
        for thread in beside:
            thread.join()
    assert not failed
    assert all(map(same, records, [hs.capture(model, tokenizer, text) for text in TEXTS]))


@pytest.mark.parametrize("family", ["gptj", "bert"])
def test_each_thread_sees_its_own_intervention_alone(family):
    model, tokenizer = tiny_model(family), tiny_tokenizer()
    heads = [head % 3 for head in range(THREADS)]

    def zeroed(head):
        return hs.capture(
            model, tokenizer, TEXTS[0], interventions=[hs.Zero(layer=0, heads=[head])]
        )

    alone = {head: zeroed(head) for head in set(heads)}
    with ThreadPoolExecutor(THREADS) as pool:
        records = list(pool.map(zeroed, heads))
    assert all(same(record, alone[head]) for head, record in zip(heads, records, strict=True))
    assert {record["self"].layers[0].changes for record in records} == {
        alone[head]["self"].layers[0].changes for head in range(3)
    }


def test_generation_in_threads_draws_what_it_draws_alone():
    models = [
        tiny_model(name, writes=True, seed=seed) for seed, name in enumerate(("llama", "gpt2"))
    ]
    tokenizer = tiny_tokenizer()

    def written(number):
        model = models[number % len(models)]
        return hs.generate(
            model, tokenizer, TEXTS[0], max_new_tokens=3, do_sample=True, seed=number
        )

    alone = [written(number) for number in range(6)]
    state = torch.get_rng_state()
    with ThreadPoolExecutor(THREADS) as pool:
        records = list(pool.map(written, range(6)))
    assert_close([each.generation for each in records], [each.generation for each in alone])
    assert all(map(same, records, alone))
    assert_close(torch.get_rng_state(), state)


def test_a_part_and_the_whole_at_once_leave_every_training_flag():
    model, tokenizer = part_in_training("bert"), tiny_tokenizer()
    before = state_of(model)
    inside, outside = threading.Event(), threading.Event()

    def watch_the_part():
        with hs.watch(model.encoder):
            inside.set()
            outside.wait(60)

    def left_unused():
        with pytest.raises(hs.errors.CaptureError, match="could be seen"):
            watch_the_part()

    part = threading.Thread(target=left_unused)
    part.start()
    inside.wait(60)
    hs.capture(model, tokenizer, TEXTS[0])
    assert not model.encoder.training
    outside.set()
    part.join()
    assert state_of(model) == before


def test_an_open_block_keeps_no_other_thread_waiting():
    """Whoever waits for another thread inside a block must not wait for ever."""
    model, tokenizer = tiny_model("gptj"), tiny_tokenizer()
    alone = hs.capture(model, tokenizer, TEXTS[0])
    with hs.intervene(model, hs.Zero(layer=0, heads=[1])), ThreadPoolExecutor(1) as pool:
        changed = hs.capture(model, tokenizer, TEXTS[0])
        beside = pool.submit(hs.capture, model, tokenizer, TEXTS[0]).result(timeout=60)
    records = hs.capture_many(model, tokenizer, [TEXTS[0]] * 3)
    next(records)  # and the stream stays open
    with ThreadPoolExecutor(1) as pool:
        between = pool.submit(hs.capture, model, tokenizer, TEXTS[0]).result(timeout=60)
    assert same(beside, alone)
    assert same(between, alone)
    assert changed["self"].layers[0].changes


def test_a_model_that_was_captured_can_be_freed():
    model = tiny_model("bert")
    hs.capture(model, tiny_tokenizer(), TEXTS[0], interventions=[hs.Zero(layer=0, heads=[1])])
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None
