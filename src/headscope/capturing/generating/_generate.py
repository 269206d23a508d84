"""Model and prompt to the record of a text that the model writes; many prompts in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, overload

from headscope._progress import Progress
from headscope.capturing.generating._prompts import parsed
from headscope.capturing.inputs.parse import (
    check_reader,
    is_one_prompt,
    parse_prompt,
    parse_prompts,
)
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.keep import check_count
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import Record


@overload
def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: str | list[dict[str, Any]] | None = None,
    *,
    max_new_tokens: int | None = None,
    alternatives: int = 5,
    seed: int | None = None,
    batch_size: int | None = None,
    **options: Any,
) -> Record: ...


@overload
def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: list[str] | tuple[str, ...] = ...,
    *,
    max_new_tokens: int | None = None,
    alternatives: int = 5,
    seed: int | None = None,
    batch_size: int | None = None,
    **options: Any,
) -> list[Record]: ...


def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: Any = None,
    *,
    max_new_tokens: int | None = None,
    alternatives: int = 5,
    seed: int | None = None,
    batch_size: int | None = None,
    **options: Any,
) -> Record | list[Record]:
    """Generate text, and keep what every attention head computed at every step.

    The model runs ``model.generate`` with its key/value cache and comes back as it was, also after
    an error. The steps are joined to one record, as if the model had read the text in one pass: one
    row for each token that was read, prompt and written alike. The last token written was never
    read, and so has no row; it and the probability of every token are in
    ``record.generation``, a `Generation`. Every layer of every step is checked as `capture` does;
    the largest difference is ``record.verified``.

    Of each step only the new queries, keys and values are held, and the new rows of weights where
    these are kept.

    Several prompts are generated from together, padded on the left, and each record equals that of
    its prompt alone. Prompts are run one at a time where a batch would give other numbers:
    encoder-decoders, beams, sampling (a seed then gives each prompt the text that it gives it
    alone), ``routers=True``, interventions, other fields of the generation config that look at
    tokens before (``repetition_penalty`` ...), and models whose numbers change with padding.

    Args:
        model: a loaded transformers model that writes, a hub name, or a folder.
        tokenizer: its tokenizer; may be left out where the model is named.
        prompt: the text to continue, or a conversation to answer, a list of ``{"role": ...,
            "content": ...}``; for an encoder-decoder, the source. A list of them gives a list of
            records.
        max_new_tokens: how many tokens to write at most; by default as many as the model's own
            configuration says (``max_new_tokens`` or ``max_length``), or
            32.
        alternatives: how many of the most probable candidates to note for each token.
        seed: of the random numbers, where tokens are sampled (``do_sample=True``); the caller's are
            left as they were.
        batch_size: how many prompts of a list run at once at most; by default as many as have 4,096
            tokens, padding and what is to be written included.
        **options: ``target_tokenizer``, the tokenizer of what is written, where that is another
            one; ``keep``, ``precision``, ``routers`` and ``heads`` of `KeepOptions`; and any field
            of ``transformers.GenerationConfig`` such as ``do_sample``, ``temperature``, ``top_p``
            or ``num_beams``; where not given, the model's own decide, so that the text is that of
            ``model.generate``. `LoadOptions` for a model that is named; ``allow_unfit=True`` for
            one whose head was not trained, or that sees ahead.

    Returns:
        One `Record` with stack ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``; a list
        of them for a list of prompts.

    Raises:
        TextError: an empty prompt, or one that leaves no room for so many tokens.
        ModelError: a model that cannot be loaded, whose head was not trained, or that sees the
            words it is to predict.
        CaptureError: a model that cannot write, an option whose steps cannot be recorded (assisted
            decoding, several texts), or attention that could not be captured exactly.

    Example:
        >>> record = generate("gpt2", prompt="Once upon a time", max_new_tokens=20)
        >>> record.generation.text, record.generation.probabilities
        >>> record["self"].weights(layer=2, head=0)  # [query key]
        >>> records = generate("gpt2", prompt=["Once upon a time", "The cat"], batch_size=2)
    """
    check_reader(tokenizer, "generate")
    named: dict[str, Any] = {
        "max_new_tokens": max_new_tokens,
        "alternatives": alternatives,
        "seed": seed,
    }
    if not is_one_prompt(prompt):
        more: dict[str, Any] = {"batch_size": batch_size} | named | options
        return list(generate_many(model, tokenizer, prompt, **more))
    if batch_size is not None:
        check_count("batch_size", batch_size)
    if prompt is None:
        raise CaptureError("generate needs a prompt: generate(model, tokenizer, prompt)")
    given = parse_prompt(prompt)
    return parsed(model, tokenizer, named | options, given).alone(given)


def generate_many(
    model: Any,
    tokenizer: Any = None,
    prompts: Any = (),
    *,
    batch_size: int | None = None,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record]:
    """Generate from many prompts, one record each, in the order given.

    Args:
        model: as of `generate`.
        tokenizer: as of `generate`.
        prompts: texts from any iterable, or rows of a data set with a text.
        batch_size: as of `generate`.
        progress: show on stderr how many are done.
        on_error: is called with number and error of a prompt that was left out; by default the
            error is raised, with the number of its prompt.
        **options: of `generate`.

    Raises:
        HeadscopeError: see `generate`.
    """
    if batch_size is not None:
        check_count("batch_size", batch_size)
    # All are read before the first is run: a prompt that is none must not cost what was written.
    report = _raised if on_error is None else on_error
    outcomes = parse_prompts(prompts)
    given: dict[int, ParsedInput] = {}
    for index, outcome in enumerate(outcomes):
        if isinstance(outcome, HeadscopeError):
            report(index, outcome)
        else:
            given[index] = outcome
    # One is enough to see whether the model reads text at all, before it is tried on all of them.
    first = next(iter(given.values()), None)
    if first is None:
        raise TextError("There is no prompt to generate from; give at least one")
    run = parsed(model, tokenizer, options, first)
    shown = Progress("Generating", "prompt", len(outcomes), shows=progress)
    return _counted(shown, run.each(given, batch_size, report))


def _counted(shown: Progress, records: Iterable[Record | None]) -> Iterator[Record]:
    """The records that there are, each counted."""
    with shown:
        for record in records:
            shown.step()
            if record is not None:
                yield record


def _raised(index: int, error: HeadscopeError) -> None:
    raise type(error)(f"Prompt {index + 1}: {error}") from error
