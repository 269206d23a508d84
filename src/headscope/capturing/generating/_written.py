"""Texts that a model writes, and the one pass in which it reads each of them again, watched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.capturing.device import allowed_apart, device_of
from headscope.capturing.generating._options import (
    explained,
    padded,
    parse_options,
    seeded,
    setting,
)
from headscope.capturing.inputs.inputs import Inputs, ends_of
from headscope.capturing.inputs.tokens import tokens_from_ids
from headscope.capturing.keep import KeepChoice, check_count
from headscope.capturing.observers import hook_after
from headscope.capturing.run import run, uncompiled
from headscope.capturing.seam import sessions
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError
from headscope.record import Candidate, Generation, Record, Tokens

ALTERNATIVES = 5
"""How many of the most probable candidates are noted for each token by default."""
EXACT_WITHIN, HALF_WITHIN = 5e-3, 0.25
"""How far the logarithm of the probability of a written token may differ between the step that
wrote it and the one pass that reads it again; in half precision, where single tokens round far
apart, the mean of all. Ours.
"""


@dataclass(frozen=True)
class WrittenText:
    """A text that a model wrote, and what it thought of each token.

    Args:
        ids: of prompt and text, without padding.
        prompt: how many of them were given.
        noted: for each token written its probability, the entropy of the distribution it was
            drawn from, its rank, and the most probable candidates with their probabilities.
        logs: the logarithm of each probability.
    """

    ids: list[int]
    prompt: int
    noted: list[tuple[Any, ...]]
    logs: torch.Tensor

    @property
    def written(self) -> list[int]:
        """The ids of what was written."""
        return self.ids[self.prompt :]


WORD = "abcdef"
"""What transformers reads the pieces of words behind, to know what each adds to a text."""


@dataclass(frozen=True)
class Writer:
    """What texts are written with.

    Args:
        model: that writes.
        tokenizer: of what is written.
        keeping: what to keep.
        alternatives: how many candidates to note for each token.
        arguments: of ``model.generate``.
        seed: of the random numbers.
    """

    model: Any
    tokenizer: Any
    keeping: KeepChoice
    alternatives: int
    arguments: dict[str, Any]
    seed: int | None

    def write(self, inputs: Inputs) -> list[WrittenText]:
        """Texts that go on with these prompts, shorter ones padded on their left.

        Raises:
            CaptureError: where the model cannot write like this.
        """
        model, given = self.model, inputs.arguments
        for session in sessions():
            session.prepare(model, inputs)
        arguments = padded(self.arguments, model)
        if stops := setting(model, arguments, "stop_strings"):
            own = self.tokenizer
            read = own.convert_tokens_to_string(own.tokenize(WORD))
            if WORD not in read:
                raise CaptureError(
                    f"stop_strings is {stops!r}, which needs a tokenizer that reads any word, and "
                    f"{type(own).__name__} reads {WORD!r} as {read!r}; give stop_strings=None"
                )
            arguments = arguments | {"tokenizer": self.tokenizer}
        with uncompiled(model), seeded(self.seed, device_of(model)), explained(model):
            made = model.generate(**given, **arguments)
        first = 1 if reads_target(model) else given["input_ids"].shape[1]
        begins = made.sequences[:, :first]
        is_continued = reads_target(model) or torch.equal(begins, given["input_ids"])
        if not is_continued or made.sequences.shape[1] <= first:
            raise CaptureError(
                f"{type(model).__name__} gives back another text than the prompt and what it "
                "wrote, so that it is unknown which row wrote a word"
            )
        numbers = range(len(made.sequences))
        padding = [first - len(inputs.source[row]) if len(numbers) > 1 else 0 for row in numbers]
        return [self._text(made, row, padding[row], first) for row in numbers]

    def _text(self, made: Any, row: int, padding: int, first: int) -> WrittenText:
        """One text of those that were written, from its first token on."""
        ids = made.sequences[row].tolist()
        written = ids[first:]
        if len(made.sequences) > 1:
            # A text that ended before the others is filled up behind its end.
            ends = ends_of(self.model, self.arguments)
            stops = [at for at, number in enumerate(written, 1) if number in ends]
            written = written[: stops[0]] if stops else written
        beams = getattr(made, "beam_indices", None)
        rows = [row] * len(written) if beams is None else beams[row].tolist()
        steps = [made.logits[step][rows[step]].float() for step in range(len(written))]
        noted = [self._noted(*each) for each in zip(steps, written, strict=True)]
        logs = torch.cat([_logs_of(*each) for each in zip(steps, written, strict=True)])
        return WrittenText(ids[padding:first] + written, first - padding, noted, logs)

    def _noted(self, logits: torch.Tensor, token: int) -> tuple[Any, ...]:
        odds = logits.softmax(-1)
        best = odds.topk(min(self.alternatives, len(odds)))
        # Ties share the better rank: only what is strictly more probable stands before it.
        rank = int((logits > logits[token]).sum()) + 1
        entropy = float(torch.special.entr(odds).sum())
        return float(odds[token]), entropy, rank, best.indices.tolist(), best.values.tolist()

    def read(self, inputs: Inputs, texts: Sequence[WrittenText]) -> list[Record]:
        """The records of these texts, of one pass over all tokens but the last, which is never
        read.

        Raises:
            CaptureError: where the pass gives other probabilities, or cannot be recorded.
        """
        model, differences, within = self.model, [], EXACT_WITHIN
        # Some models give their logits in another precision than they compute in.
        kinds = [each.dtype for each in model.parameters() if each.is_floating_point()]
        lowest = min(kinds, key=lambda kind: kind.itemsize, default=torch.float32)

        def compare(*seen: Any) -> None:
            nonlocal differences, within
            logits = seen[-1].logits
            is_lowered = torch.is_autocast_enabled(logits.device.type)
            some = logits[:, :1].to(torch.bfloat16 if is_lowered else lowest)
            within = allowed_apart(some, EXACT_WITHIN, HALF_WITHIN)
            differences = []
            for own, text in zip(logits, texts, strict=True):
                rows = own[text.prompt - 1 : len(text.ids) - 1]
                differences.append((_logs_of(rows, torch.tensor(text.written)) - text.logs).abs())

        with hook_after(model, compare):
            records = run(model, inputs, self.keeping)
        for logs in differences:
            apart = float(logs.max() if within == EXACT_WITHIN else logs.mean())
            # Written with "not", so that a difference of NaN is refused, too.
            if not apart <= within:
                padding = " with padding" * (len(texts) > 1)
                raise CaptureError(
                    f"{type(model).__name__} computes something else where it writes a text step "
                    f"by step{padding} than where it reads the text in one pass: logarithms of "
                    f"probabilities differ by {apart:.2g}"
                )
        read = inputs.target or inputs.source
        for number, text in enumerate(texts):
            stack = _stack_of(records[number], read[number])
            generation = self._generation(text, stack)
            records[number] = replace(records[number], generation=generation)
        return records

    def _generation(self, text: WrittenText, stack: str) -> Generation:
        model, arguments, written = self.model, self.arguments, text.written
        odds, entropies, ranks, best, values = zip(*text.noted, strict=True)
        chunk = setting(model, arguments, "prefill_chunk_size") or text.prompt
        parts = [min(chunk, text.prompt - at) for at in range(0, text.prompt, chunk)]
        stop = "length" if len(written) == arguments["max_new_tokens"] else "criterion"
        return Generation(
            stack=stack,
            prompt=text.prompt,
            reads=(*parts, *[1] * (len(written) - 1)),
            tokens=tokens_from_ids(self.tokenizer, written),
            probabilities=odds,
            entropies=entropies,
            ranks=ranks,
            alternatives=tuple(map(self._candidates, best, values)),
            text=added_text(self.tokenizer, text.ids[: text.prompt], text.ids),
            stop="end" if written[-1] in ends_of(model, arguments) else stop,
            sampled=bool(setting(model, arguments, "do_sample")),
            seed=self.seed,
        )

    def _candidates(
        self, ids: Sequence[int], probabilities: Sequence[float]
    ) -> tuple[Candidate, ...]:
        """Tokens that might have been written, by name."""
        # A model may have more words than its tokenizer, whose pieces are None then.
        pieces = [piece or "" for piece in self.tokenizer.convert_ids_to_tokens(ids)]
        return tuple(
            Candidate(id=number, piece=piece, probability=probability)
            for number, piece, probability in zip(ids, pieces, probabilities, strict=True)
        )


def numbers_in(options: dict[str, Any]) -> dict[str, int | None]:
    """The numbers among the options of `headscope.generate`, checked and taken out of these.

    Raises:
        CaptureError: one that is none.
    """
    numbers: dict[str, int | None] = {}
    for name, least in (("max_new_tokens", 1), ("alternatives", 0), ("seed", 0)):
        given = options.pop(name, None)
        numbers[name] = None if given is None else check_count(name, given, least)
    return numbers


def writer_of(
    model: Any, tokenizer: Any, numbers: Mapping[str, int | None], options: Mapping[str, Any]
) -> Writer:
    """What texts are written with.

    Args:
        model: that writes.
        tokenizer: of what is written.
        numbers: as of `numbers_in`.
        options: the others, of `headscope.generate`.

    Raises:
        CaptureError: an option there is not, or one whose steps cannot be recorded.
    """
    keeping, arguments = parse_options(options, model)
    arguments["max_new_tokens"] = numbers["max_new_tokens"]
    alternatives = numbers["alternatives"]
    alternatives = ALTERNATIVES if alternatives is None else alternatives
    return Writer(model, tokenizer, keeping, alternatives, arguments, numbers["seed"])


def _logs_of(logits: torch.Tensor, token: int | torch.Tensor) -> torch.Tensor:
    """The logarithm of the probability of one token, or of one for each row."""
    rows = logits.reshape(-1, logits.shape[-1]).float()
    chosen = torch.as_tensor(token, device=logits.device).reshape(-1, 1)
    return (rows.gather(1, chosen) - rows.logsumexp(1, keepdim=True))[:, 0]


def _stack_of(record: Record, tokens: Tokens) -> str:
    """The stack that reads these tokens.

    Raises:
        CaptureError: where none of its heads is kept.
    """
    # The source of an encoder-decoder may be the same tokens.
    for name in sorted(record.stacks, key=lambda each: each != "decoder"):
        stack = record.stacks[name]
        if stack.query.ids == stack.key.ids == tokens.ids:
            return name
    raise CaptureError("heads= keeps no head of the stack that wrote the text; name one of it, too")


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
