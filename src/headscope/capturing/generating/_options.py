"""The options of a generation: which are refused, and what ``model.generate`` is given instead."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from headscope.capturing.device import same_random_numbers
from headscope.capturing.inputs.inputs import ends_of
from headscope.capturing.keep import KeepChoice, check_count, parse_keep
from headscope.capturing.options import RecordOptions, kept_of
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError, HeadscopeError, TextError

OBJECTS = ("logits_processor", "prefix_allowed_tokens_fn", "stopping_criteria", "streamer")
"""What ``model.generate`` takes in addition to the fields of its configuration."""

ONE_TEXT = "a record is of one text; call generate once for each"
BEAMS = "beams in groups or under constraints are not followed; num_beams alone is"
ASSISTED = (
    "assisted decoding reads tokens that it takes back, so that no text has one row for each token"
)
RETURNED = (
    "return_dict_in_generate",
    *(f"output_{name}" for name in ("attentions", "hidden_states", "scores", "logits")),
)
"""Options of what ``model.generate`` returns."""
REFUSED: dict[str, tuple[tuple, str]] = {
    "num_beam_groups": ((1,), BEAMS),
    "constraints": ((), BEAMS),
    "force_words_ids": ((), BEAMS),
    "num_return_sequences": ((1,), ONE_TEXT + ", with another seed"),
    "assistant_model": ((), ASSISTED),
    "assistant_early_exit": ((), ASSISTED),
    "prompt_lookup_num_tokens": ((0,), ASSISTED),
    "use_mtp": ((False,), ASSISTED),
    "penalty_alpha": ((0,), "contrastive search reads several candidates at every step"),
    "dola_layers": (
        (),
        "its tokens come from several layers, not from the model's own distribution",
    ),
    "guidance_scale": ((1,), "guidance runs the model on a second text"),
    "token_healing": ((False,), "token healing changes the prompt"),
    "custom_generate": ((), "a generation of your own may run the model in any order"),
    "past_key_values": ((), "what filled the cache was not seen; give the whole prompt"),
    "generation_config": ((), "give its fields by name, such as temperature=0.7"),
    "max_length": ((), "give max_new_tokens, the number of tokens to write"),
    **dict.fromkeys(RETURNED, ((False,), "generate returns a Record")),
}
"""Options that are refused, with the values at which they have no effect, and the reason."""

RETURNED_HERE = {"return_dict_in_generate": True, "output_logits": True}
OVERRIDDEN = dict.fromkeys(RETURNED, False) | RETURNED_HERE | {"disable_compile": True}
"""What a model's own configuration does not decide here; the text is the same."""
LENGTH = 32
"""How many tokens are written at most where neither the call nor the model's own configuration
limits them.
"""
NOTED = ("_previous_max_cache_length", "rope_deltas")
"""What is noted on a model that writes: how long its latest static cache was, and in Qwen's family
where the words behind its latest picture stand.
"""


def parse_options(options: Mapping[str, Any], model: Any) -> tuple[KeepChoice, dict[str, Any]]:
    """What to keep, and the arguments of ``model.generate``.

    Raises:
        CaptureError: an option there is not, or one whose steps cannot be recorded.
    """
    from transformers import GenerationConfig

    fields = {name for name in vars(GenerationConfig()) if not name.startswith("_")}
    known = fields | set(OBJECTS)
    kept = kept_of(options)
    _check_names(options, known | set(RecordOptions.__annotations__))
    _check_refused(options, vars(model.generation_config))
    arguments = {name: options[name] for name in options if name in known}
    if arguments.get("num_beams") is not None:
        check_count("num_beams", arguments["num_beams"])
    # transformers (5.23) makes the cache of a T5 as deep as its encoder, and runs out of layers.
    deep = getattr(model.config, "num_decoder_layers", None) or 0
    is_too_deep = (
        reads_target(model) and deep > model.config.get_text_config(decoder=True).num_hidden_layers
    )
    # Ours come last: what was asked for in their place was refused above, or means the same.
    return parse_keep(**kept), {"use_cache": not is_too_deep} | arguments | OVERRIDDEN


def _check_names(options: Mapping[str, Any], known: set[str]) -> None:
    for name in options:
        if name not in known | set(REFUSED):
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {close[0]}?" if close else ""
            hint = hint or "there are those of transformers.GenerationConfig"
            raise CaptureError(f"generate has no option {name!r}; {hint}")


def _check_refused(options: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise where the user, or the model's own configuration, asks for what cannot be recorded."""
    for name, (idle, why) in REFUSED.items():
        # A length of the model's own is that of `length_of`.
        default = None if name in OVERRIDDEN or name == "max_length" else own.get(name)
        asked = options.get(name, default)
        if asked is not None and asked not in idle:
            is_plain = isinstance(asked, int | float | str)
            shown = repr(asked) if is_plain else type(asked).__name__
            raise CaptureError(f"{name}={shown} cannot be recorded: {why}")


def length_of(model: Any, prompt: int) -> int:
    """How many tokens a model writes at most by its own configuration.

    Args:
        model: that is to write.
        prompt: how many tokens the prompt has; ``max_length`` counts them where there is only a
            decoder, and the start token where there are two.

    Raises:
        TextError: where the prompt alone is as long as the whole may be.
    """
    own = model.generation_config
    if own.max_new_tokens or not own.max_length:
        return own.max_new_tokens or LENGTH
    left = own.max_length - (1 if reads_target(model) else prompt)
    if left < 1:
        raise TextError(
            f"The prompt has {prompt} tokens, and the model's own max_length, which counts them, "
            f"is {own.max_length}; give max_new_tokens (--max-new-tokens)"
        )
    return left


@contextmanager
def left_as_it_was(model: Any) -> Generator[None]:
    """Undo what ``model.generate`` notes on the model."""
    before = []
    for module in model.modules():
        known = vars(module)
        before.append((known, {name: known[name] for name in NOTED if name in known}))
    try:
        yield
    finally:
        for known, noted in before:
            for name in NOTED:
                known.pop(name, None)
            known.update(noted)


@contextmanager
def explained(model: Any) -> Generator[None]:
    """Say that a model cannot write like this where it raises an error about it.

    Raises:
        CaptureError: in place of what the model raised.
    """
    try:
        yield
    except (HeadscopeError, torch.OutOfMemoryError):
        # what the caller's own processors of logits say, and what another machine could do
        raise
    except (AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        name = type(model).__name__
        raise CaptureError(f"{name} cannot generate like this: {why}") from error


def setting(model: Any, arguments: Mapping[str, Any], name: str) -> Any:
    """A setting of ``model.generate``: as it is given, else the model's own."""
    return arguments.get(name, getattr(model.generation_config, name, None))


def seeded(seed: int | None, device: torch.device) -> AbstractContextManager[None]:
    """Random numbers from this seed inside, and the caller's own afterwards; the caller's own
    without a seed.
    """
    return nullcontext() if seed is None else same_random_numbers(seed=seed, device=device)


def padded(arguments: dict[str, Any], model: Any) -> dict[str, Any]:
    """With a token for padding, of which one text has none, so that transformers need not warn of
    choosing one.
    """
    end = ends_of(model, arguments)
    missing = "pad_token_id" not in arguments and model.generation_config.pad_token_id is None
    return arguments | {"pad_token_id": end[0]} if missing and end else arguments
