"""One run of ``model.generate``, watched: one text, or a batch of prompts padded on the left."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from headscope.capturing.building._build import Builder
from headscope.capturing.device import allowed_apart, device_of, one_at_a_time
from headscope.capturing.facts import facts_of, position_kind
from headscope.capturing.generating._options import (
    by_beams,
    deep_cache,
    explained,
    left_as_it_was,
    padded,
    seeded,
)
from headscope.capturing.generating._steps import JoinedSteps
from headscope.capturing.inputs.inputs import Inputs, ends_of
from headscope.capturing.inputs.tokens import (
    joined_tokens,
    tokenized,
    tokens_from_encoding,
    tokens_from_ids,
)
from headscope.capturing.keep import KeepChoice
from headscope.capturing.observers import hook_after, hook_before
from headscope.capturing.run import at_rest, uncompiled
from headscope.capturing.seam import level, sessions
from headscope.capturing.walk import (
    ModelModules,
    WatchedModules,
    arguments_of,
    names_of,
    reads_target,
)
from headscope.capturing.watching._routers import (
    Router,
    check_routers,
    find_routers,
    scores_of_steps,
)
from headscope.capturing.watching._watch import Watch
from headscope.capturing.watching.tape import ModuleOutputs, Tape
from headscope.errors import CaptureError
from headscope.record import Candidate, Generation, Record, Stack, Tokens

KINDS = "token_type_ids"
"""What a tokenizer may give for each token, besides its id, that transformers writes on with."""
PADDED_WITHIN = 1e-4, 3e-2
"""How far probabilities of a padded prompt may be from those that it gets alone, in single and in
half precision; ours.
"""


@dataclass(frozen=True)
class GenerationRun:
    """What texts are written with.

    Args:
        model: that writes.
        tokenizer: of the prompts.
        target_tokenizer: of what is written.
        keeping: what to keep.
        alternatives: how many candidates to note for each token.
        arguments: of ``model.generate``.
        seed: of the random numbers.
    """

    model: Any
    tokenizer: Any
    target_tokenizer: Any
    keeping: KeepChoice
    alternatives: int
    arguments: dict[str, Any]
    seed: int | None

    def records(self, prompts: Sequence[tuple[str, Any]]) -> list[Record]:
        """The records of texts that are written together; of one, as the model reads it alone.

        Args:
            prompts: the text and the encoding of each.

        Raises:
            CaptureError: where they cannot be recorded, or padding changes what the model computes.
        """
        model, texts = self.model, [WrittenText(self.alternatives, *each) for each in prompts]
        longest = max(len(text.source) for text in texts)
        for text in texts:
            text.padding = longest - len(text.source)
        steps = JoinedSteps(self.keeping, [text.padding for text in texts])
        with one_at_a_time(model), at_rest(model), uncompiled(model), left_as_it_was(model):
            routers = self._routers(texts[0].source)
            outputs = ModuleOutputs([module for module, _, _ in filter(None, routers)])
            with seeded(self.seed, device_of(model)):
                rows, left_out = self._written(texts, steps, outputs)
            ids = [rows[0]]
            if len(texts) > 1:
                # Texts that ended before the others were filled up behind their end.
                pairs = zip(texts, rows, strict=True)
                ids = [row[text.padding : longest + text.count] for text, row in pairs]
            builder, written = self._builder(texts, ids, len(rows[0]) - 1, steps)
            routed = scores_of_steps(routers, outputs.uses, names_of(model))
            builder.left_out = left_out
            builder.routers = {name: [scores] for name, scores in routed.items()}
            records = builder.records(facts_of(model))
            for number, text in enumerate(texts):
                stack = _stack_of(records[number].stacks, written[number])
                known = {"stack": stack, "seed": self.seed}
                writer = model, self.target_tokenizer
                generation = text.generation(writer, ids[number], self.arguments, **known)
                layers = [layer for stack in records[number].stacks.values() for layer in stack]
                facts = replace(records[number].model, positions=position_kind(model, layers))
                records[number] = replace(records[number], model=facts, generation=generation)
            self._check_padding(texts, ids, records)
        return records

    def _builder(
        self, texts: list[WrittenText], ids: list[list[int]], read: int, steps: JoinedSteps
    ) -> tuple[Builder, tuple[Tokens, ...]]:
        """What makes records of the joined steps, in which so many tokens were read, and the tokens
        of each text that was written.
        """
        sources = [
            tokens_from_encoding(self.tokenizer, text.encoding, (text.text,)) for text in texts
        ]
        if reads_target(self.model):
            targets = (tokens_from_ids(self.target_tokenizer, ids[0][:-1]),)
            inputs, lengths = Inputs({}, tuple(sources), targets), {"target": read}
            lengths["source"] = len(sources[0])
        else:
            pairs = zip(texts, sources, ids, strict=True)
            sources = tuple(self._read(*each) for each in pairs)
            real = torch.zeros(len(texts), read, dtype=torch.long, device=device_of(self.model))
            for row, text, tokens in zip(real, texts, sources, strict=True):
                row[text.padding : text.padding + len(tokens)] = 1
            inputs, lengths = Inputs({"attention_mask": real}, sources), {"source": read}
        builder = Builder(inputs, self.keeping, self.model)
        for call in steps.calls(lengths):
            builder.take(call)
        builder.complete()
        return builder, inputs.target or inputs.source

    def _read(self, text: WrittenText, given: Tokens, ids: list[int]) -> Tokens:
        """The prompt and what was written after it, but the last token, which was not read.

        With offsets into the whole text, where the tokenizer cuts that text into the same tokens.
        """
        source = text.source
        whole = type(text.text)(text.text + added_text(self.target_tokenizer, source, ids))
        options = {"padding": False, "truncation": False}
        encoding = tokenized(self.tokenizer, whole, warns=False, **options)
        if list(encoding["input_ids"])[: len(ids) - 1] == ids[:-1]:
            tokens = tokens_from_encoding(self.tokenizer, encoding, (whole,))
            return tokens.take(range(len(ids) - 1))
        return joined_tokens(given, tokens_from_ids(self.tokenizer, ids[len(source) : -1]))

    def _written(
        self, texts: list[WrittenText], joined: JoinedSteps, routers: ModuleOutputs
    ) -> tuple[list[list[int]], list[str]]:
        """Run the model; returns the ids of each whole text, or of what the decoder read and wrote,
        and the names of modules whose attention was not seen.
        """
        model, prompt = self.model, self._prompts(texts)
        for session in sessions():
            tokens = (tokens_from_ids(self.tokenizer, texts[0].source),)
            session.prepare(model, Inputs(prompt, tokens))
        name = "decoder_input_ids" if reads_target(model) else "input_ids"
        # A single text ends with the run.
        ends = ends_of(model, self.arguments) if len(texts) > 1 else ()

        def end_pass(options: dict, output: Any) -> None:
            # What was put off until its tensors were complete belongs to the pass that ends here.
            watch.settle()
            joined.end_pass()
            for text, logits in zip(texts, output.logits[:, -1], strict=True):
                text.end_pass(options[name].shape[1], logits)
            # Once a single token was read behind others, every pass does the same.
            if options[name].shape[1] == 1 < len(texts[0].reads) and not sessions():
                watch.expect_the_same()

        def wrote(ids: torch.Tensor, _scores: object = None, **_: object) -> torch.Tensor:
            # Called as a stopping criterion, which it never meets.
            for text, row in zip(texts, ids, strict=True):
                text.wrote(row, ends)
            return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)

        arguments = padded(dict(self.arguments), model)
        if "stop_strings" in arguments or model.generation_config.stop_strings:
            arguments["tokenizer"] = self.target_tokenizer
        with explained(model, "generate"):
            arguments = by_beams(model, prompt, arguments)
            criteria = [*(arguments.get("stopping_criteria") or ()), wrote]
            arguments = arguments | {"stopping_criteria": criteria}
            with (
                Watch(model, len(texts), joined.take, readers=[routers]) as watch,
                _each_pass(model, end_pass),
            ):
                ids = model.generate(**prompt, **arguments, **deep_cache(model, arguments))
        return ids.tolist(), watch.left_out

    def _prompts(self, texts: list[WrittenText]) -> dict[str, torch.Tensor]:
        """The prompts, shorter ones with padding on their left, and where they are tokens."""
        known = (self.tokenizer.pad_token_id, *ends_of(self.model, self.arguments), 0)
        padding = next(number for number in known if number is not None)
        ids = [[padding] * text.padding + text.source for text in texts]
        real = [[0] * text.padding + [1] * len(text.source) for text in texts]
        rows = {"input_ids": ids, "attention_mask": real}
        reads = set(texts[0].encoding).intersection(arguments_of(self.model))
        if others := sorted(reads - rows.keys() - {KINDS}):
            raise CaptureError(
                f"{type(self.model).__name__} reads {', '.join(others)} of its tokenizer, and it "
                "is not known how that continues with the words it writes; capture the whole text"
            )
        if KINDS in reads:
            # transformers goes on with the last kind for each word that it writes
            rows[KINDS] = [[0] * text.padding + list(text.encoding[KINDS]) for text in texts]
        device = device_of(self.model)
        return {name: torch.tensor(row, device=device) for name, row in rows.items()}

    def _routers(self, source: list[int]) -> list[Router | None]:
        """The routers of a model, where their scores are wanted: one pass over the prompt shows
        them.
        """
        if not self.keeping.routers:
            return []
        check_routers(self.model)
        arguments = {"input_ids": torch.tensor([source], device=device_of(self.model))}
        if reads_target(self.model):
            start = (
                self.model.generation_config.decoder_start_token_id
                or self.model.config.decoder_start_token_id
            )
            arguments["decoder_input_ids"] = torch.tensor(
                [[start or 0]], device=device_of(self.model)
            )
        modules = ModelModules.of(self.model)
        given = ModuleOutputs(modules.all)
        with Tape(WatchedModules(modules, (), (), ()), readers=[given]):
            outputs = self.model(**arguments, output_router_logits=True, use_cache=False)
        return find_routers(given.uses, outputs, self.model)

    def _check_padding(
        self, texts: list[WrittenText], written: list[list[int]], records: list[Record]
    ) -> None:
        """Raise where the text with the most padding gets other probabilities alone.

        Positions that count the padding, or a state that runs through it, change what a model
        computes, at the first step or at a later one; so one plain pass over the whole text is
        compared with all steps.
        """
        at = max(range(len(texts)), key=lambda number: texts[number].padding)
        generation = records[at].generation
        if not texts[at].padding or generation is None:
            return
        # The last token was written and never read.
        read = torch.tensor([written[at][:-1]], device=device_of(self.model))
        own = self._prompts([replace(texts[at], padding=0)])
        given = {"input_ids": read, "attention_mask": torch.ones_like(read)}
        if KINDS in own:
            more = read.shape[1] - own[KINDS].shape[1]
            given[KINDS] = torch.cat([own[KINDS], own[KINDS][:, -1:].expand(1, more)], 1)
        logits = self.model(**given).logits[0]
        name = type(self.model).__name__
        what = f"{name} computes something else where a prompt is padded"
        check_same_text(generation, logits, PADDED_WITHIN, what)


def _stack_of(stacks: Mapping[str, Stack], written: Tokens) -> str:
    """The name of the stack whose tokens were written.

    Raises:
        CaptureError: where none of its heads is kept.
    """
    for name, stack in stacks.items():
        if stack.query is written and stack.key is written:
            return name
    raise CaptureError("heads= keeps no head of the stack that wrote the text; name one of it, too")


@contextmanager
def _each_pass(model: Any, end: Callable[[dict, Any], None]) -> Generator[None]:
    """Call ``end`` with keyword arguments and output of every pass of a model that writes, while
    the block is open.

    What wraps a model (PEFT) may have the model inside it generate, and is then not run itself: a
    pass is that of the outermost module that can generate. What is run in a block of `intact`
    meanwhile, such as the head on states of inner layers, is no pass of the text.
    """
    running: list[Any] = []
    own = level()

    def begin(module: Any, *_: Any) -> None:
        running.append(module)

    def leave(module: Any, _: tuple, options: dict, output: Any) -> None:
        running.pop()
        # There is no output where the pass ended with an error.
        if not running and output is not None and level() == own:
            end(options, output)

    with ExitStack() as undo:
        for module in model.modules():
            if callable(getattr(module, "generate", None)):
                undo.callback(hook_before(module, begin).remove)
                undo.callback(hook_after(module, leave, always=True).remove)
        yield


@dataclass
class WrittenText:
    """A text that is being written; looks at the logits of every step, and at the token that was
    made of them.

    Args:
        top: how many of the most probable candidates to note.
        text: that it begins with.
        encoding: the tokenizer's encoding of that.
        padding: how many tokens of padding stand before it, in a batch.
        reads: how many tokens each pass read, without padding.
        ended: whether it has ended while others of its batch go on.
        prompt: how many tokens there were before the first was written.
    """

    top: int
    text: str = ""
    encoding: Any = None
    padding: int = 0
    reads: list[int] = field(default_factory=list)
    ended: bool = False
    prompt: int = 0
    _logits: torch.Tensor | None = None
    _noted: list[tuple[torch.Tensor, ...]] = field(default_factory=list)

    @property
    def source(self) -> list[int]:
        """The ids of the prompt."""
        return list(self.encoding["input_ids"])

    @property
    def count(self) -> int:
        """How many tokens were written."""
        return len(self._noted)

    def end_pass(self, read: int, logits: torch.Tensor) -> None:
        """A pass is over.

        Args:
            read: how many tokens it read, padding included.
            logits: ``[vocabulary]`` of the last of them.
        """
        if not self.ended:
            # Only the first pass reads the prompt, and the padding before it.
            self.reads.append(read if self.reads else read - self.padding)
            # A copy, since processors of logits may write to them before a token is chosen.
            self._logits = logits.detach().to(torch.float32, copy=True)

    def wrote(self, ids: torch.Tensor, ends: Sequence[int] = ()) -> None:
        """The text with its new token, which may end it."""
        logits, chosen = self._logits, ids[-1]
        if self.ended or logits is None:
            return
        self.prompt = self.prompt or len(ids) - self.padding - 1
        odds = logits.softmax(-1)
        best = odds.topk(min(self.top, len(odds)))
        # Ties share the better rank: only what is strictly more probable stands before it.
        rank = (logits > logits[chosen]).sum() + 1
        entropy = torch.special.entr(odds).sum()
        self._noted.append((odds[chosen], entropy, rank, best.indices, best.values))
        self.ended = bool(ends) and int(chosen) in ends

    def generation(
        self,
        writer: tuple[Any, Any],
        ids: list[int],
        arguments: Mapping[str, Any],
        **known: Any,
    ) -> Generation:
        """What is known of the text.

        Args:
            writer: the model that wrote it, and its tokenizer.
            ids: of prompt and text, without padding.
            arguments: of ``model.generate``.
            **known: ``stack`` and ``seed`` of the `Generation`.
        """
        (model, tokenizer), written = writer, ids[self.prompt :]
        # One more pass may have been run, and one more token written, before the text was seen to
        # have ended.
        reads, noted = list(self.reads), self._noted[: len(written)]
        while sum(reads[:-1]) >= len(ids) - 1:
            reads.pop()
        odds, entropies, ranks, best, values = zip(*noted, strict=True) if noted else [()] * 5
        stop = "length" if len(written) == arguments["max_new_tokens"] else "criterion"
        return Generation(
            prompt=self.prompt,
            tokens=tokens_from_ids(tokenizer, written),
            probabilities=_numbers(odds),
            entropies=_numbers(entropies),
            ranks=_numbers(ranks),
            alternatives=tuple(
                _candidates(tokenizer, *each)
                for each in zip(_numbers(best), _numbers(values), strict=True)
            ),
            text=added_text(tokenizer, ids[: self.prompt], ids),
            stop="end" if ids[-1] in ends_of(model, arguments) else stop,
            sampled=bool(arguments.get("do_sample", model.generation_config.do_sample)),
            reads=tuple(reads),
            **known,
        )


def _numbers(noted: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    return tuple(torch.stack(list(noted)).tolist()) if noted else ()


def _candidates(
    tokenizer: Any, ids: Sequence[int], probabilities: Sequence[float]
) -> tuple[Candidate, ...]:
    """Tokens that might have been written, by name."""
    # A model may have more words than its tokenizer, whose pieces are None then.
    pieces = [piece or "" for piece in tokenizer.convert_ids_to_tokens(ids)]
    return tuple(
        Candidate(id=number, piece=piece, probability=probability)
        for number, piece, probability in zip(ids, pieces, probabilities, strict=True)
    )


def added_text(tokenizer: Any, before: list[int], ids: list[int]) -> str:
    """What the tokens after these add to the text: some tokenizers write a token otherwise where a
    text begins.

    Args:
        tokenizer: of what is written.
        before: the first tokens.
        ids: all of them.
    """
    decode = tokenizer.decode
    first, whole = (decode(part, skip_special_tokens=True) for part in (before, ids))
    if whole.startswith(first):
        return whole[len(first) :]
    return decode(ids[len(before) :], skip_special_tokens=True)


def check_same_text(
    generation: Generation, logits: torch.Tensor, within: tuple[float, float], what: str
) -> float:
    """How far the probabilities of a written text are from those of one pass over it.

    Args:
        generation: of the text.
        logits: ``[token word]`` of the pass over all tokens but the last, which was never read.
        within: how far they may be, in single and in half precision.
        what: goes wrong where they are farther, for the message.

    Raises:
        CaptureError: where they are not of one and the same text.
    """
    rows = torch.from_numpy(generation.chosen_by).to(logits.device)
    probabilities = logits[rows].float().softmax(-1).cpu()
    chosen = probabilities[torch.arange(len(generation)), list(generation.tokens.ids or ())]
    apart = (chosen - torch.tensor(generation.probabilities)).abs().max().item()
    allowed = allowed_apart(logits, *within)
    # Written with "not", so that a difference of NaN is refused, too.
    if not apart <= allowed:
        raise CaptureError(f"{what}: probabilities differ by {apart:.2g}")
    return apart
