"""Model and prompt to the record of a text that the model writes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from headscope.capturing.device import device_of
from headscope.capturing.facts import facts_of
from headscope.capturing.facts import positions_of as kind_of_positions
from headscope.capturing.fitness import NEXT, check_fit
from headscope.capturing.generating._cache import deep_cache
from headscope.capturing.generating._join import Joiner
from headscope.capturing.generating._odds import Odds
from headscope.capturing.generating._options import check_count, parse_options
from headscope.capturing.hooks import hook_after, hook_before
from headscope.capturing.inputs._reads import check_reads
from headscope.capturing.inputs.inputs import Inputs, encode, positions_of
from headscope.capturing.inputs.tokens import tokens_from_encoding, tokens_from_ids
from headscope.capturing.keep import Keeping
from headscope.capturing.loading.load import load_model
from headscope.capturing.loading.options import LOADING, check_not_loaded
from headscope.capturing.run import at_rest, uncompiled, unwrapped, warn_of_unseen
from headscope.capturing.seam import sessions
from headscope.capturing.threads import one_at_a_time, same_random_numbers
from headscope.capturing.watching._routers import RouterSteps, RouterWatch
from headscope.capturing.watching._watch import Watch
from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import Candidate, Generation, Record, Stack, Tokens

STATIC_LENGTH = "_previous_max_cache_length"
"""Where transformers notes on the model how long its latest static cache was."""


def generate(
    model: Any,
    tokenizer: Any = None,
    prompt: str | None = None,
    *,
    target_tokenizer: Any = None,
    max_new_tokens: int = 32,
    alternatives: int = 5,
    seed: int | None = None,
    **options: Any,
) -> Record:
    """Let a model write on, and keep what every attention head computed at every step.

    The model runs ``model.generate`` with its key/value cache and comes back as it was, also after
    an error. The steps are joined to one record, as if the model had read the text in one pass: one
    row for each token that was read, prompt and written alike. The last token written was never
    read, and so has no row; it and what the model thought of every token are in
    ``record.generation``, a `Generation`. Every layer of every step is checked as `capture` does;
    the largest difference is ``record.verified``.

    Of each step only the new queries, keys and values are held, and the new rows of weights where
    these are kept.

    Args:
        model: a loaded transformers model that writes, a hub name, or a folder.
        tokenizer: its tokenizer; may be left out where the model is named.
        prompt: the text to go on with; for an encoder-decoder, the source.
        target_tokenizer: the tokenizer of what is written, where that is another one.
        max_new_tokens: how many tokens to write at most.
        alternatives: how many of the most probable candidates to note for each token.
        seed: of the random numbers, where tokens are drawn (``do_sample=True``); the caller's are
            left as they were.
        **options: ``keep``, ``precision``, ``routers`` and ``heads`` of `KeepOptions`, and any
            field of ``transformers.GenerationConfig`` such as ``do_sample``, ``temperature``,
            ``top_p`` or ``cache_implementation``; where not given, the model's own decide, but for
            beams: there is always one. `LoadOptions` for a model that is named;
            ``allow_unfit=True`` for one whose head was not trained, or that sees ahead.

    Returns:
        One `Record` with stack ``"self"``, or ``"encoder"``, ``"decoder"`` and ``"cross"``.

    Raises:
        TextError: an empty prompt, or one that leaves no room for so many tokens.
        ModelError: a model that cannot be loaded, whose head was not trained, or that sees the
            words it is to predict.
        CaptureError: a model that cannot write, an option whose steps cannot be recorded (beams,
            several texts, assisted decoding), or attention that could not be captured exactly.

    Example:
        >>> record = generate("gpt2", prompt="Once upon a time", max_new_tokens=20)
        >>> record.generation.text, record.generation.probabilities
        >>> record["self"].weights(layer=2, head=0)  # [query key]
    """
    for name, number, least in (
        ("max_new_tokens", max_new_tokens, 1),
        ("alternatives", alternatives, 0),
    ):
        check_count(name, number, least)
    loading = {name: options.pop(name) for name in LOADING if name in options}
    anyway = options.pop("allow_unfit", False)
    if isinstance(model, str | Path):
        model, own_tokenizer = load_model(model, writes=True, allow_unfit=anyway, **loading)
        tokenizer = own_tokenizer if tokenizer is None else tokenizer
    else:
        check_not_loaded(model, loading)
    model = unwrapped(model)
    _check(model, tokenizer, prompt)
    keeping, arguments = parse_options(options, model)
    arguments["max_new_tokens"] = max_new_tokens
    if not anyway:
        ids = encode(model, tokenizer, str(prompt), None, truncate=False)["input_ids"]
        check_fit(model, NEXT, ids, generates=True)
    run = _Run(model, tokenizer, str(prompt), keeping, alternatives, target_tokenizer or tokenizer)
    return run.record(arguments, seed)


@dataclass
class _Run:
    """One generation: what it is run on, and what is noted on the way."""

    model: Any
    tokenizer: Any
    prompt: str
    keeping: Keeping
    alternatives: int
    target_tokenizer: Any
    reads: list[int] = field(default_factory=list)

    def record(self, arguments: dict[str, Any], seed: int | None) -> Record:
        encoding = encode(self.model, self.tokenizer, self.prompt, None, truncate=False)
        source = list(encoding["input_ids"])
        encodes = bool(getattr(self.model.config, "is_encoder_decoder", False))
        _check_room(self.model, 1 if encodes else len(source), arguments["max_new_tokens"])
        joiner, odds = Joiner(self.keeping, self.model), Odds(self.alternatives)
        with (
            one_at_a_time(self.model),
            at_rest(self.model),
            uncompiled(self.model),
            _left_as_it_was(self.model),
        ):
            routers = RouterSteps(self.model, self._router_places(source))
            with routers, _seeded(seed, device_of(self.model)):
                ids = self._written(source, joiner, odds, arguments)
        count = len(ids) - odds.prompt
        odds.cut(count)
        tokens = {"source": tokens_from_encoding(self.tokenizer, encoding, (self.prompt,))}
        if encodes:
            tokens["target"] = tokens_from_ids(self.target_tokenizer, ids[:-1])
        else:
            tokens["source"] = self._read(tokens["source"], source, ids)
        end = arguments.get("eos_token_id", self.model.generation_config.eos_token_id)
        ended = ids[-1] in (end if isinstance(end, Sequence) else (end,))
        stop = "length" if count == arguments["max_new_tokens"] else "criterion"
        stacks = joiner.stacks(tokens, routers.scores)
        facts = facts_of(self.model)
        layers = [layer for stack in stacks.values() for layer in stack]
        facts = replace(facts, positions=kind_of_positions(self.model, layers))
        written = tokens["target" if encodes else "source"]
        generation = Generation(
            stack=_stack_of(written, stacks),
            prompt=odds.prompt,
            reads=_up_to(self.reads, len(ids) - 1),
            tokens=tokens_from_ids(self.target_tokenizer, ids[odds.prompt :]),
            probabilities=tuple(odds.probabilities),
            entropies=tuple(odds.entropies),
            ranks=tuple(odds.ranks),
            alternatives=tuple(map(self._candidates, odds.candidates)),
            text=self._added(ids[: odds.prompt], ids),
            stop="end" if ended else stop,
            sampled=bool(arguments.get("do_sample", self.model.generation_config.do_sample)),
            seed=seed,
        )
        record = Record(stacks=stacks, model=facts, generation=generation)
        warn_of_unseen(record)
        return record

    def _written(
        self, source: list[int], joiner: Joiner, odds: Odds, arguments: dict[str, Any]
    ) -> list[int]:
        """Run the model; returns the ids of the whole text, or of what the decoder read and
        wrote.
        """
        from transformers import LogitsProcessorList, StoppingCriteriaList

        model = self.model
        given = torch.tensor([source], device=device_of(model))
        name = (
            "decoder_input_ids"
            if getattr(model.config, "is_encoder_decoder", False)
            else "input_ids"
        )
        prompt = {"input_ids": given, "attention_mask": torch.ones_like(given)}
        for session in sessions():
            session.prepare(model, Inputs(prompt, (tokens_from_ids(self.tokenizer, source),)))
        with Watch(model, 1, joiner.take) as watch:

            def end_step(options: dict, output: Any) -> None:
                watch.settle()
                joiner.end_step()
                odds.look(output)
                self.reads.append(options[name].shape[1])

            arguments = arguments | {
                "stopping_criteria": StoppingCriteriaList(
                    [*(arguments.get("stopping_criteria") or ()), odds]
                ),
                "logits_processor": LogitsProcessorList(arguments.get("logits_processor") or ()),
            }
            if "stop_strings" in arguments:
                arguments["tokenizer"] = self.target_tokenizer
            try:
                arguments = _padded(arguments, model) | deep_cache(model, arguments)
                with _each_pass(model, end_step):
                    found = model.generate(**prompt, **arguments)
            except HeadscopeError:
                raise
            except ValueError as error:
                why = " ".join(str(error).split())
                raise CaptureError(
                    f"{type(model).__name__} cannot generate like this: {why}"
                ) from error
        if not watch.count:
            raise CaptureError(
                f"{type(model).__name__} computed no softmax attention that could be seen"
            )
        return found[0].tolist()

    def _router_places(self, source: list[int]) -> dict[str, int]:
        """Where router scores are found, where these are wanted: told by one pass over the
        prompt.
        """
        if not self.keeping.routers:
            return {}
        arguments = {"input_ids": torch.tensor([source], device=device_of(self.model))}
        if getattr(self.model.config, "is_encoder_decoder", False):
            start = (
                self.model.generation_config.decoder_start_token_id
                or self.model.config.decoder_start_token_id
            )
            arguments["decoder_input_ids"] = torch.tensor(
                [[start or 0]], device=device_of(self.model)
            )
        with RouterWatch(self.model) as watch:
            return watch.places(self.model(**arguments, output_router_logits=True, use_cache=False))

    def _read(self, given: Tokens, source: list[int], ids: list[int]) -> Tokens:
        """The prompt and what was written after it, but the last token, which was not read.

        With offsets into the whole text, where the tokenizer cuts that text into the same tokens.
        """
        text = self.prompt + self._added(source, ids)
        encoding = self.tokenizer(text, padding=False, truncation=False)
        if list(encoding["input_ids"])[: len(ids) - 1] == ids[:-1]:
            return tokens_from_encoding(self.tokenizer, encoding, (text,)).take(range(len(ids) - 1))
        return _joined(given, tokens_from_ids(self.tokenizer, ids[len(source) : -1]))

    def _added(self, before: list[int], ids: list[int]) -> str:
        """What the tokens after these add to the text: some tokenizers write a token otherwise
        where a text begins.
        """
        decode = self.target_tokenizer.decode
        first, whole = (decode(part, skip_special_tokens=True) for part in (before, ids))
        if whole.startswith(first):
            return whole[len(first) :]
        return decode(ids[len(before) :], skip_special_tokens=True)

    def _candidates(self, found: tuple[tuple[int, float], ...]) -> tuple[Candidate, ...]:
        pieces = self.target_tokenizer.convert_ids_to_tokens([number for number, _ in found])
        return tuple(
            Candidate(
                id=number, piece=piece if isinstance(piece, str) else "", probability=probability
            )
            for (number, probability), piece in zip(found, pieces, strict=True)
        )


def _stack_of(written: Tokens, stacks: Mapping[str, Stack]) -> str:
    """The name of the stack whose tokens were written.

    Raises:
        CaptureError: where none of its heads is kept.
    """
    for name, stack in stacks.items():
        if stack.query is written and stack.key is written:
            return name
    raise CaptureError("heads= keeps no head of the stack that wrote the text; name one of it, too")


def _check(model: Any, tokenizer: Any, prompt: Any) -> None:
    name = type(model).__name__
    if model is None or not (hasattr(model, "generate") and model.can_generate()):
        raise CaptureError(
            f"{name} cannot write: it has no head that predicts tokens; load one with "
            "AutoModelForCausalLM or AutoModelForSeq2SeqLM"
        )
    if tokenizer is None:
        raise CaptureError(
            f"generate needs the tokenizer of {name}: generate(model, tokenizer, prompt)"
        )
    if prompt is None:
        raise CaptureError("generate needs a prompt: generate(model, tokenizer, prompt)")
    check_reads(model, prompt)


def _check_room(model: Any, prompt: int, count: int) -> None:
    limit = positions_of(model)
    room = None if limit is None else limit - prompt + 1  # the last token is not read
    if room is not None and count > room:
        raise TextError(
            f"After {prompt} tokens the model has positions to write {max(room, 0)} more, and "
            f"max_new_tokens is {count}; ask for fewer (--max-new-tokens)"
        )


@contextmanager
def _each_pass(model: Any, end: Callable[[dict, Any], None]) -> Generator[None]:
    """Call ``end`` with keyword arguments and output of every pass of a model that writes, while
    the block is open.

    What wraps a model (PEFT) may have the model inside it generate, and is then not run itself: a
    pass is that of the outermost module that can generate.
    """
    running: list[Any] = []

    def begin(module: Any, *_: Any) -> None:
        running.append(module)

    def leave(module: Any, _: tuple, options: dict, output: Any) -> None:
        running.pop()
        if not running and output is not None:  # none where the pass ended with an error
            end(options, output)

    with ExitStack() as undo:
        for module in model.modules():
            if callable(getattr(module, "generate", None)):
                undo.callback(hook_before(module, begin).remove)
                undo.callback(hook_after(module, leave, always=True).remove)
        yield


@contextmanager
def _left_as_it_was(model: Any) -> Generator[None]:
    """Undo what ``model.generate`` notes on the model."""
    before = vars(model).get(STATIC_LENGTH)
    try:
        yield
    finally:
        vars(model).pop(STATIC_LENGTH, None)
        if before is not None:
            setattr(model, STATIC_LENGTH, before)


def _seeded(seed: int | None, device: torch.device) -> AbstractContextManager[None]:
    """Random numbers from this seed inside, and the caller's own afterwards; the caller's own
    without a seed.
    """
    return nullcontext() if seed is None else same_random_numbers(seed=seed, device=device)


def _padded(arguments: dict[str, Any], model: Any) -> dict[str, Any]:
    """With a token for padding, of which one text has none, so that transformers need not warn of
    choosing one.
    """
    end = arguments.get("eos_token_id", model.generation_config.eos_token_id)
    missing = "pad_token_id" not in arguments and model.generation_config.pad_token_id is None
    if not missing or not end:
        return arguments
    return arguments | {"pad_token_id": end[0] if isinstance(end, Sequence) else end}


def _up_to(reads: Sequence[int], total: int) -> tuple[int, ...]:
    """The passes that read this many tokens; one more may have been run before the text was seen to
    have ended.
    """
    found: list[int] = []
    for count in reads:
        if sum(found) < total:
            found.append(count)
    return tuple(found)


def _joined(first: Tokens, second: Tokens) -> Tokens:
    fields: dict[str, Any] = {
        name: getattr(first, name) + getattr(second, name)
        for name in ("pieces", "special", "segments", "labels")
    }
    for name in ("ids", "offsets", "words", "roles"):
        values = getattr(first, name)
        fields[name] = (
            None if values is None else values + (getattr(second, name) or (None,) * len(second))
        )
    return Tokens(texts=first.texts, **fields)
