"""Model and prompt to the record of a text that the model writes; many prompts in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

from headscope._progress import Progress
from headscope.capturing.building._inventory import lost_tokens, not_read, warn_of_gaps
from headscope.capturing.fitness import NEXT, check_fit, check_known
from headscope.capturing.generating._options import (
    KEPT,
    OVERRIDDEN,
    beams_of,
    length_of,
    parse_options,
)
from headscope.capturing.generating._run import GenerationRun
from headscope.capturing.inputs.inputs import (
    Inputs,
    batches_of,
    check_applies,
    check_reads,
    encode,
    position_limit,
)
from headscope.capturing.inputs.parse import (
    check_reader,
    is_one_prompt,
    parse_prompt,
    parse_prompts,
)
from headscope.capturing.inputs.parsed_input import ParsedInput, Report
from headscope.capturing.inputs.tokens import tokens_from_encoding
from headscope.capturing.keep import check_count
from headscope.capturing.loading import load_model
from headscope.capturing.many import leaving_out
from headscope.capturing.options import LOADING, check_not_loaded
from headscope.capturing.run import unwrapped
from headscope.capturing.seam import sessions
from headscope.capturing.walk import modules_of, reads_target
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import Record


@overload
def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: str | list[dict[str, Any]] | None = None,
    **options: Any,
) -> Record: ...


@overload
def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: list[str] | tuple[str, ...] = ...,
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
    ``record.generation``, a `Generation`. Every layer is checked as `capture` does, over all steps;
    the largest difference is ``record.verified``.

    Until the text is finished only what is new is held of each step, on the model's device:
    queries, keys, values and outputs of attention, and the rows of weights that it returns.

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
    options |= {"max_new_tokens": max_new_tokens, "alternatives": alternatives, "seed": seed}
    if not is_one_prompt(prompt):
        return list(generate_many(model, tokenizer, prompt, batch_size=batch_size, **options))
    if batch_size is not None:
        check_count("batch_size", batch_size)
    if prompt is None:
        raise CaptureError("generate needs a prompt: generate(model, tokenizer, prompt)")
    given = parse_prompt(prompt)
    runner = parsed(model, tokenizer, options, given)
    return runner.records([runner.read(given)])[0]


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
    return run.each(given, batch_size, report, shown)


def _raised(index: int, error: HeadscopeError) -> None:
    raise type(error)(f"Prompt {index + 1}: {error}") from error


AT_ONCE = 64
"""How many prompts are read ahead, so that those of like length can share a batch."""
BATCH_TOKENS = 4096
"""Most tokens in a batch, padding and what is to be written included; as of `capture_many`."""
NOT_LOOKING_BACK = {
    *OVERRIDDEN,
    "max_new_tokens",
    "max_length",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "suppress_tokens",
    "transformers_version",
}
"""Fields of a generation config that mean the same for a prompt with padding before it."""


def parsed(
    model: Any, tokenizer: Any, options: Mapping[str, Any], prompt: ParsedInput
) -> PromptRunner:
    """The model, loaded, and the options of `generate`, checked.

    Args:
        model: loaded, or its name.
        tokenizer: its tokenizer; may be None where the model is named.
        options: of `generate`, all of them.
        prompt: the first prompt.

    Raises:
        HeadscopeError: see `generate`.
    """
    options = dict(options)
    count = options.pop("max_new_tokens", None)
    count = None if count is None else check_count("max_new_tokens", count)
    alternatives = check_count("alternatives", options.pop("alternatives", 5), 0)
    seed, target = options.pop("seed", None), options.pop("target_tokenizer", None)
    seed = None if seed is None else check_count("seed", seed, 0)
    loading = {name: options.pop(name) for name in LOADING if name in options}
    anyway = options.pop("allow_unfit", False)
    if isinstance(model, str | Path):
        model, own_tokenizer = load_model(model, writes=True, allow_unfit=anyway, **loading)
        tokenizer = own_tokenizer if tokenizer is None else tokenizer
    else:
        check_not_loaded(model, loading)
    model = unwrapped(model)
    check_writes(model, "AutoModelForCausalLM or AutoModelForSeq2SeqLM")
    if tokenizer is None:
        name = type(model).__name__
        raise CaptureError(
            f"generate needs the tokenizer of {name}: generate(model, tokenizer, prompt)"
        )
    check_reads(model, prompt)
    check_applies(model, prompt, {"target_tokenizer": target})
    keeping, arguments = parse_options(options, model)
    arguments["max_new_tokens"] = count
    run = GenerationRun(
        model, tokenizer, target or tokenizer, keeping, alternatives, arguments, seed
    )
    return PromptRunner(run, set(options), checks_fitness=not anyway)


@dataclass
class PromptRunner:
    """Goes on with prompts.

    Args:
        run: what with.
        given: options that the user gave.
        checks_fitness: whether the model has yet to be tried on a text before it writes.
    """

    run: GenerationRun
    given: set[str]
    checks_fitness: bool

    def each(
        self, prompts: Mapping[int, ParsedInput], size: int | None, report: Report, shown: Progress
    ) -> Iterator[Record]:
        """The records in the order of the prompts, without those that are left out.

        Args:
            prompts: by number.
            size: how many are run at once at most; None where only their tokens count.
            report: is called with number and error of a prompt that is left out.
            shown: how many are done.
        """
        # No reason is given for prompts run one by one if the caller chose that.
        reason = "" if size == 1 else self._alone_because()
        if reason and size is not None:
            warnings.warn(f"Prompts are run one at a time: {reason}", stacklevel=4)
        most = 1 if reason else size
        numbered = iter(prompts.items())
        with shown:
            while ahead := dict(islice(numbered, AT_ONCE)):
                read: dict[int, tuple[str, Any]] = {}
                for index, prompt in ahead.items():
                    with leaving_out(index, report):
                        read[index] = self.read(prompt)
                # What is to be written takes room too.
                sizes = {index: len(each["input_ids"]) for index, (_, each) in read.items()}
                lengths = {index: size + self._length(size) for index, size in sizes.items()}
                done: dict[int, Record] = {}
                for batch in batches_of(lengths, BATCH_TOKENS, most):
                    done |= self._batch({index: read[index] for index in batch}, report)
                for index in ahead:
                    shown.step()
                    if index in done:
                        yield done[index]

    def _batch(self, prompts: Mapping[int, tuple[str, Any]], report: Report) -> dict[int, Record]:
        """Records of prompts that are run together; one by one where that cannot be recorded."""
        if len(prompts) > 1:
            try:
                together = self.records(list(prompts.values()))
                return dict(zip(prompts, together, strict=True))
            except CaptureError as error:
                why = error
        done: dict[int, Record] = {}
        for index, prompt in prompts.items():
            with leaving_out(index, report):
                done[index] = self.records([prompt])[0]
        if len(prompts) > 1 and done:
            warnings.warn(f"{len(prompts)} prompts were run one at a time: {why}", stacklevel=5)
        return done

    def _length(self, prompt: int) -> int:
        """How many tokens are written at most after so many of a prompt."""
        count = self.run.arguments["max_new_tokens"]
        return length_of(self.run.model, prompt) if count is None else count

    def records(self, prompts: list[tuple[str, Any]]) -> list[Record]:
        """The records of one prompt, or of several of the same length to write."""
        length = self._length(len(prompts[0][1]["input_ids"]))
        run = replace(self.run, arguments=self.run.arguments | {"max_new_tokens": length})
        records = run.records(prompts)
        read = [tokens_from_encoding(run.tokenizer, given, (text,)) for text, given in prompts]
        lost = lost_tokens(records, Inputs({}, tuple(read)))
        unread = not_read(modules_of(run.model), run.model, prompts[0][1])
        warn_of_gaps(records[0], unread, lost=lost)
        return records

    def read(self, prompt: ParsedInput) -> tuple[str, Any]:
        """The text of a prompt, and its encoding.

        Raises:
            TextError: where it is empty, or leaves no room for what is to be written.
            ModelError: where the model is not fit to continue a text.
        """
        model, tokenizer = self.run.model, self.run.tokenizer
        given = prompt.read_with(tokenizer, writes=True)
        encoding = encode(model, tokenizer, given)
        ids = encoding["input_ids"]
        check_known(tokenizer, ids, "the prompt", None)
        if self.checks_fitness:
            check_fit(model, NEXT, ids, generates=True)
            self.checks_fitness = False
        before = 1 if reads_target(model) else len(ids)
        check_room(model, before, self._length(len(ids)))
        return given.texts[0], encoding

    def _alone_because(self) -> str:
        """Why prompts cannot be run together; empty where they can."""
        model, arguments = self.run.model, self.run.arguments
        own = model.generation_config
        if reads_target(model):
            return "an encoder-decoder reads one source at a time"
        if arguments.get("do_sample", own.do_sample):
            return "each is sampled with the seed that it would have alone"
        if beams_of(model, arguments) > 1:
            return "its beams are a batch"
        if self.run.keeping.routers:
            return "router scores are kept"
        if arguments["max_new_tokens"] is None and own.max_length and not own.max_new_tokens:
            return "the model's own max_length counts the tokens of each prompt"
        if sessions():
            return "an intervention is open"
        known = {name for name in own.to_diff_dict() if not name.startswith("_")}
        looking_back = (self.given | known) - NOT_LOOKING_BACK - set(KEPT)
        if looking_back:
            return f"{', '.join(sorted(looking_back))} may depend on the padding"
        return ""


def check_writes(model: Any, loaders: str) -> None:
    """Raise where a model has no head that predicts tokens.

    Raises:
        CaptureError: naming the model, and what loads one that has.
    """
    if model is None or not (hasattr(model, "generate") and model.can_generate()):
        raise CaptureError(
            f"{type(model).__name__} cannot write: it has no head that predicts tokens; load one "
            f"with {loaders}"
        )


def check_room(model: Any, prompt: int, count: int) -> None:
    """Raise where a model has not positions for a prompt and so many tokens after it.

    Raises:
        TextError: with the numbers.
    """
    limit = position_limit(model)
    # The last token is written and not read, so that it needs no position.
    room = None if limit is None else limit - prompt + 1
    if room is not None and count > room:
        raise TextError(
            f"After {prompt} tokens the model has positions to write {max(room, 0)} more, and "
            f"max_new_tokens is {count}; ask for fewer (--max-new-tokens)"
        )
