"""A text that is being written: what is known of each of its tokens, as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from headscope.capturing.device import allowed_apart
from headscope.capturing.inputs.inputs import ends_of
from headscope.capturing.inputs.tokens import tokens_from_ids
from headscope.errors import CaptureError
from headscope.record import Candidate, Generation


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
