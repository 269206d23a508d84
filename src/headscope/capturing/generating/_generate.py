"""Model and prompt to the record of a text that the model writes; many prompts in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch

from headscope._progress import Progress
from headscope.capturing.device import device_of, one_at_a_time
from headscope.capturing.fitness import NEXT, check_fit, check_known
from headscope.capturing.generating._options import OVERRIDDEN, left_as_it_was, length_of, setting
from headscope.capturing.generating._written import (
    Writer,
    WrittenText,
    added_text,
    numbers_in,
    writer_of,
)
from headscope.capturing.inputs.inputs import (
    Inputs,
    check_applies,
    check_reads,
    encode,
    ends_of,
    position_limit,
    side_by_side,
)
from headscope.capturing.inputs.parse import check_reader, is_one, parse_prompt, parse_prompts
from headscope.capturing.inputs.parsed_input import ParsedInput, Report
from headscope.capturing.inputs.tokens import (
    joined_tokens,
    tokenized,
    tokens_from_encoding,
    tokens_from_ids,
)
from headscope.capturing.keep import check_count
from headscope.capturing.loading import load_model
from headscope.capturing.many import batches_of, leaving_out
from headscope.capturing.options import LOADING, RecordOptions, check_not_loaded
from headscope.capturing.run import at_rest, unwrapped
from headscope.capturing.seam import sessions
from headscope.capturing.walk import arguments_of, reads_target
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.parts import PartsChoice, check_choice
from headscope.record import Record, Tokens


@overload
def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: str | list[dict[str, Any]] | Mapping[str, Any] | None = None,
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
    """Generate text, and keep what every attention head computed for every token.

    The model runs ``model.generate`` with its key/value cache and comes back as it was, also after
    an error. Then it reads the text once more in one pass, which is captured as `capture` does it:
    one row for each token that was read, prompt and written alike. Each written token must have the
    probability that it had when it was written, or the text is refused. The last token written was
    never read, and so has no row; it and the probability of every token are in
    ``record.generation``, a `Generation`.

    Several prompts are generated from together, padded on the left, and each record equals that of
    its prompt alone. Prompts are run one at a time where a batch would give other numbers:
    encoder-decoders, beams, sampling (a seed then gives each prompt the text that it gives it
    alone), interventions, other fields of the generation config that look at
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
        **options: ``parts``, which parts of the prompt `Tokens.parts` names, as of
            `headscope.parts.parts_of` (by default the turns and documents of a conversation; what
            is written is none of them); ``target_tokenizer``, the tokenizer of what is written,
            where that is another one; ``keep``, ``precision``, ``routers``, ``heads``, ``rows`` and
            ``top`` of `KeepOptions`; and any field of ``transformers.GenerationConfig`` such as
            ``do_sample``, ``temperature``, ``top_p`` or ``num_beams``; where not given, the model's
            own decide, so that the text is that of ``model.generate``. `LoadOptions` for a model
            that is named; ``allow_unfit=True`` for one whose head was not trained.

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
    if prompt is not None and not is_one(prompt):
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
    raise type(error)(f"Prompt {index} (from 0): {error}") from error


KINDS = "token_type_ids"
"""What a tokenizer may give for each token, besides its id, that transformers writes on with."""
AT_ONCE = 64
"""How many prompts are read ahead, so that those of like length can share a batch."""
BATCH_TOKENS = 4096
"""Most tokens in a batch, padding and what is to be written included; as of `capture_many`."""
NOT_LOOKING_BACK = {
    *OVERRIDDEN,
    *("use_cache", "max_new_tokens", "max_length", "do_sample", "temperature", "top_k", "top_p"),
    *("min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "bos_token_id", "eos_token_id"),
    *("pad_token_id", "decoder_start_token_id", "suppress_tokens", "transformers_version"),
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
    numbers, target = numbers_in(options), options.pop("target_tokenizer", None)
    parts = options.pop("parts", None)
    check_choice(parts)
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
    writer = writer_of(model, target or tokenizer, numbers, options)
    return PromptRunner(writer, tokenizer, set(options), parts, checks_fitness=not anyway)


Prompt = tuple[ParsedInput, Any]
"""What the model reads, and its encoding."""


@dataclass
class PromptRunner:
    """Goes on with prompts.

    Args:
        writer: what with.
        tokenizer: of the prompts.
        given: options that the user gave.
        parts: which of the prompts; see `headscope.parts.parts_of`.
        checks_fitness: whether the model has yet to be tried on a text before it writes.
    """

    writer: Writer
    tokenizer: Any
    given: set[str]
    parts: PartsChoice | None
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
                read = self._readable(ahead, report)
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

    def _readable(self, prompts: Mapping[int, ParsedInput], report: Report) -> dict[int, Prompt]:
        read: dict[int, Prompt] = {}
        for index, prompt in prompts.items():
            with leaving_out(index, report):
                read[index] = self.read(prompt)
        return read

    def _batch(self, prompts: Mapping[int, Prompt], report: Report) -> dict[int, Record]:
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
        count = self.writer.arguments["max_new_tokens"]
        return length_of(self.writer.model, prompt) if count is None else count

    def records(self, prompts: list[Prompt]) -> list[Record]:
        """The records of one prompt, or of several of the same length to write."""
        model = self.writer.model
        length = self._length(len(prompts[0][1]["input_ids"]))
        writer = replace(self.writer, arguments=self.writer.arguments | {"max_new_tokens": length})
        sources = tuple(
            tokens_from_encoding(self.tokenizer, each, () if given.ids else given.texts)
            for given, each in prompts
        )
        with one_at_a_time(model), at_rest(model), left_as_it_was(model):
            prompt = self._prompts([encoding for _, encoding in prompts], sources)
            texts = writer.write(prompt)
            if reads_target(model):
                ids = texts[0].ids[:-1]
                more = {"decoder_input_ids": torch.tensor([ids], device=device_of(model))}
                target = (tokens_from_ids(writer.tokenizer, ids),)
                read = replace(prompt, arguments=prompt.arguments | more, target=target)
            else:
                read = self._whole(prompts, sources, texts)
            read = replace(read, given=tuple(given for given, _ in prompts))
            return writer.read(read, texts)

    def _prompts(self, encodings: list[Any], sources: tuple[Tokens, ...]) -> Inputs:
        """The prompts, shorter ones with padding on their left, and where they are tokens."""
        model = self.writer.model
        known = (self.tokenizer.pad_token_id, *ends_of(model, self.writer.arguments), 0)
        padding = next(number for number in known if number is not None)
        reads = {"input_ids", *encodings[0].keys() & arguments_of(model)} - {"attention_mask"}
        if others := sorted(reads - {"input_ids", KINDS}):
            raise CaptureError(
                f"{type(model).__name__} reads {', '.join(others)} of its tokenizer, and it "
                "is not known how that continues with the words it writes; capture the whole text"
            )
        rows = [{name: list(each[name]) for name in sorted(reads)} for each in encodings]
        return side_by_side(model, rows, sources, before=padding)

    def _whole(
        self, prompts: list[Prompt], sources: tuple[Tokens, ...], texts: list[WrittenText]
    ) -> Inputs:
        """Prompts and what was written, but the last token, which was never read, side by side."""
        rows, tokens = [], []
        for (given, encoding), source, written in zip(prompts, sources, texts, strict=True):
            read = written.ids[:-1]
            row = {"input_ids": read}
            if KINDS in encoding:
                # transformers goes on with the last kind for each word that it writes.
                kinds = list(encoding[KINDS])
                row[KINDS] = kinds + kinds[-1:] * (len(read) - len(kinds))
            rows.append(row)
            tokens.append(self._tokens(given.texts[0], source, written))
        return side_by_side(self.writer.model, rows, tokens)

    def _tokens(self, text: str, given: Tokens, written: WrittenText) -> Tokens:
        """With offsets into the whole text, where the tokenizer cuts it into these tokens."""
        ids, prompt = written.ids, written.ids[: written.prompt]
        whole = type(text)(text + added_text(self.writer.tokenizer, prompt, ids))
        options = {"padding": False, "truncation": False}
        encoding = tokenized(self.tokenizer, whole, warns=False, **options)
        if list(encoding["input_ids"])[: len(ids) - 1] == ids[:-1]:
            tokens = tokens_from_encoding(self.tokenizer, encoding, (whole,))
            return tokens.take(range(len(ids) - 1))
        behind = tokens_from_ids(self.tokenizer, ids[written.prompt : -1])
        return joined_tokens(given, behind)

    def read(self, prompt: ParsedInput) -> Prompt:
        """A prompt as the model reads it, and its encoding.

        Raises:
            TextError: where it is empty, or leaves no room for what is to be written.
            ModelError: where the model is not fit to continue a text.
        """
        model, tokenizer = self.writer.model, self.tokenizer
        given = replace(prompt, parts=self.parts).read_with(tokenizer, writes=True)
        encoding = encode(model, tokenizer, given, advice="take a model with more positions")
        ids = encoding["input_ids"]
        check_known(tokenizer, ids, "the prompt", None)
        if self.checks_fitness:
            check_fit(model, NEXT, ids, generates=True)
            self.checks_fitness = False
        before = 1 if reads_target(model) else len(ids)
        check_room(model, before, self._length(len(ids)))
        return given, encoding

    def _alone_because(self) -> str:
        """Why prompts cannot be run together; empty where they can."""
        model, arguments = self.writer.model, self.writer.arguments
        own = model.generation_config
        counts_prompt = arguments["max_new_tokens"] is None and not own.max_new_tokens
        known = {name for name in own.to_diff_dict() if not name.startswith("_")}
        looking_back = (self.given | known) - NOT_LOOKING_BACK - set(RecordOptions.__annotations__)
        reasons = {
            "an encoder-decoder reads one source at a time": reads_target(model),
            "each is sampled with the seed that it would have alone": setting(
                model, arguments, "do_sample"
            ),
            "its beams are a batch": (setting(model, arguments, "num_beams") or 1) > 1,
            "the model's own max_length counts the tokens of each prompt": (
                counts_prompt and own.max_length
            ),
            "an intervention is open": sessions(),
            f"{', '.join(sorted(looking_back))} may depend on the padding": looking_back,
        }
        return next(filter(reasons.get, reasons), "")


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
