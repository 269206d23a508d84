"""Texts that tiny models write, and one full pass over each."""

import numpy as np
import torch

import headscope as hs
from headscope.capturing import capture_encoded
from headscope.testing import tiny_model, tiny_tokenizer

PROMPT, COUNT, NEVER = "the cat", 5, 63
EQUAL_LAYERS = {
    "num_decoder_layers": 2
}  # transformers makes the static cache of a T5 too short otherwise
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


def model_of(family, **changes):
    changes = FAMILIES.get(family, {}) | changes
    return tiny_model(family.removesuffix(" (equal)"), writes=True, **changes)


def written(family, tokenizer, **options):
    model = model_of(family)
    return model, hs.generate(
        model,
        tokenizer,
        PROMPT,
        **{"max_new_tokens": COUNT, "eos_token_id": NEVER, "do_sample": False} | options,
    )


def full_pass(model, record):
    """The same tokens in one pass: its record and its logits for the last of them."""
    sides = {"input_ids": record.stacks.get("encoder", record[record.generation.stack]).query}
    if "decoder" in record.stacks:
        sides["decoder_input_ids"] = record["decoder"].query
    arguments = {
        name: torch.tensor([side.ids], device=model.device) for name, side in sides.items()
    }
    with torch.no_grad():
        logits = model(**arguments).logits[0]
    return capture_encoded(model, None, arguments)[0], logits.float()


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
            assert (ours.module, ours.projection, ours.route) == (
                theirs.module,
                theirs.projection,
                theirs.route,
            )
            assert (ours.scale, ours.soft_cap) == (theirs.scale, theirs.soft_cap)
    generation = record.generation
    logs = logits[generation.prompt - 1 :].log_softmax(-1)
    chosen = logs[torch.arange(len(generation)), list(generation.tokens.ids)]
    np.testing.assert_allclose(generation.probabilities, chosen.exp(), atol=1e-4)
    np.testing.assert_allclose(generation.entropies, -(logs.exp() * logs).sum(-1), atol=1e-4)


def bare_tokenizer():
    """The tiny tokenizer without the marks that it puts around a text, as those of models that
    write are.
    """
    from tokenizers import decoders, processors

    made = tiny_tokenizer()
    made.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B:1"
    )
    made.backend_tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return made
