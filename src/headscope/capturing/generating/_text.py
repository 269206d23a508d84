"""One text that is being written: its steps as they come, and its record at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from headscope.capturing.calls.call import Call
from headscope.capturing.device import allowed_apart
from headscope.capturing.facts import facts_of, position_kind
from headscope.capturing.generating._step_joiner import StepJoiner
from headscope.capturing.inputs.inputs import ends_of
from headscope.capturing.inputs.tokens import (
    joined_tokens,
    tokenized,
    tokens_from_encoding,
    tokens_from_ids,
)
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError
from headscope.record import Candidate, Generation, Record, Stack, Tokens


@dataclass
class GeneratedText:
    """A text that is being written.

    Args:
        prompt: the text that it begins with.
        encoding: the tokenizer's encoding of the prompt.
        tokenizer: of the prompt.
        target_tokenizer: of what is written.
        joiner: takes the calls of each step.
        token_probabilities: notes the probability of each token.
        padding: how many tokens of padding stand before the prompt, in a batch.
        reads: how many tokens each pass read, without padding.
        ended: whether the text has ended while others of its batch go on.
    """

    prompt: str
    encoding: Any
    tokenizer: Any
    target_tokenizer: Any
    joiner: StepJoiner
    token_probabilities: TokenProbabilities
    padding: int = 0
    reads: list[int] = field(default_factory=list)
    ended: bool = False

    @property
    def source(self) -> list[int]:
        """The ids of the prompt."""
        return list(self.encoding["input_ids"])

    def take(self, call: Call, example: int, before: int) -> None:
        """Its part of a call of the batch.

        Args:
            call: of the whole batch.
            example: which of the batch this text is.
            before: how many tokens, padding included, were read before this pass.
        """
        queries, keys = call.size[2:]
        # A cache that slides has dropped the first keys, padding before anything else.
        dropped = max(before + queries - keys, 0)
        self.joiner.take(
            _call_of_example(
                call,
                example,
                queries=0 if before else self.padding,
                keys=max(self.padding - dropped, 0),
            )
        )

    def end_pass(self, read: int, logits: torch.Tensor) -> None:
        """A pass is over.

        Args:
            read: how many tokens it read, padding included.
            logits: ``[vocabulary]`` of the last of them.
        """
        self.joiner.end_step()
        self.token_probabilities.look(logits)
        # Only the first pass reads the prompt, and the padding before it.
        self.reads.append(read if self.reads else read - self.padding)

    def record(
        self,
        model: Any,
        ids: list[int],
        arguments: Mapping[str, Any],
        *,
        seed: int | None,
        routers: Mapping[str, np.ndarray] | None = None,
    ) -> Record:
        """The record of the whole text.

        Args:
            model: that wrote it.
            ids: of prompt and text, or of what the decoder of an encoder-decoder read and wrote;
                without padding.
            arguments: of ``model.generate``.
            seed: of the random numbers.
            routers: see `StepJoiner.stacks`.
        """
        # In a batch a text is known to have ended only after others ran on: their extra is cut.
        self.token_probabilities.cut(len(ids) - self.token_probabilities.prompt)
        encodes = reads_target(model)
        tokens = {"source": tokens_from_encoding(self.tokenizer, self.encoding, (self.prompt,))}
        if encodes:
            tokens["target"] = tokens_from_ids(self.target_tokenizer, ids[:-1])
        else:
            tokens["source"] = self._read(tokens["source"], ids)
        stacks = self.joiner.stacks(tokens, routers)
        layers = [layer for stack in stacks.values() for layer in stack]
        facts = facts_of(model)
        facts = replace(facts, positions=position_kind(model, layers), unseen=self.joiner.unseen)
        generation = generation_of(
            (model, self.target_tokenizer),
            ids,
            self.token_probabilities,
            arguments,
            stack=_stack_of(tokens["target" if encodes else "source"], stacks),
            reads=_up_to(self.reads, len(ids) - 1),
            seed=seed,
        )
        return Record(stacks=stacks, model=facts, generation=generation)

    def _read(self, given: Tokens, ids: list[int]) -> Tokens:
        """The prompt and what was written after it, but the last token, which was not read.

        With offsets into the whole text, where the tokenizer cuts that text into the same tokens.
        """
        source = self.source
        text = type(self.prompt)(self.prompt + added_text(self.target_tokenizer, source, ids))
        whole = {"padding": False, "truncation": False}
        encoding = tokenized(self.tokenizer, text, warns=False, **whole)
        if list(encoding["input_ids"])[: len(ids) - 1] == ids[:-1]:
            return tokens_from_encoding(self.tokenizer, encoding, (text,)).take(range(len(ids) - 1))
        return joined_tokens(given, tokens_from_ids(self.tokenizer, ids[len(source) : -1]))


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


def generation_of(
    writer: tuple[Any, Any],
    ids: list[int],
    noted: TokenProbabilities,
    arguments: Mapping[str, Any],
    **known: Any,
) -> Generation:
    """What is known of a text that was written.

    Args:
        writer: the model that wrote it, and its tokenizer.
        ids: of prompt and text.
        noted: the probability of each token.
        arguments: of ``model.generate``.
        **known: ``stack``, ``reads`` and ``seed`` of the `Generation`.
    """
    (model, tokenizer), written = writer, ids[noted.prompt :]
    stop = "length" if len(written) == arguments["max_new_tokens"] else "criterion"
    return Generation(
        prompt=noted.prompt,
        tokens=tokens_from_ids(tokenizer, written),
        probabilities=tuple(noted.probabilities),
        entropies=tuple(noted.entropies),
        ranks=tuple(noted.ranks),
        alternatives=tuple(_candidates(tokenizer, each) for each in noted.candidates),
        text=added_text(tokenizer, ids[: noted.prompt], ids),
        stop="end" if ids[-1] in ends_of(model, arguments) else stop,
        sampled=bool(arguments.get("do_sample", model.generation_config.do_sample)),
        **known,
    )


def _candidates(tokenizer: Any, noted: tuple[tuple[int, float], ...]) -> tuple[Candidate, ...]:
    """Tokens that might have been written, by name; ``noted`` are number and probability of
    each.
    """
    pieces = tokenizer.convert_ids_to_tokens([number for number, _ in noted])
    candidates = []
    for (number, probability), piece in zip(noted, pieces, strict=True):
        # A model may have more words than its tokenizer, whose pieces are None then.
        named = piece if isinstance(piece, str) else ""
        candidates.append(Candidate(id=number, piece=named, probability=probability))
    return tuple(candidates)


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


def _stack_of(written: Tokens, stacks: Mapping[str, Stack]) -> str:
    """The name of the stack whose tokens were written.

    Raises:
        CaptureError: where none of its heads is kept.
    """
    for name, stack in stacks.items():
        if stack.query is written and stack.key is written:
            return name
    raise CaptureError("heads= keeps no head of the stack that wrote the text; name one of it, too")


def _up_to(reads: Sequence[int], total: int) -> tuple[int, ...]:
    """The passes that read this many tokens; one more may have been run before the text was seen to
    have ended.
    """
    kept: list[int] = []
    for count in reads:
        if sum(kept) < total:
            kept.append(count)
    return tuple(kept)


def _call_of_example(call: Call, example: int, *, queries: int, keys: int) -> Call:
    """The call as if the model had read this example alone, without the padding before it.

    Args:
        call: of the whole batch, whose padding stands on the left.
        example: which of the batch.
        queries: how many of its first queries are padding.
        keys: how many of its first keys are padding.
    """
    sizes = call.size[2:]

    def both(tensor: torch.Tensor | None) -> torch.Tensor | None:
        """Of ``[batch head query key]``, where axes may be 1."""
        if tensor is None:
            return None
        if tensor.shape[2] > 1:
            tensor = tensor[:, :, queries:]
        # A mask may be longer than the keys, where the cache has empty places.
        return tensor[..., keys:] if tensor.shape[3] >= sizes[1] > 1 else tensor

    # Behind a cache only the new keys have a form before positions, and none of them is padding.
    is_whole = call.key_before is not None and call.key_before.shape[2] == sizes[1]
    call = replace(
        call.of_text(example),
        query_before=_of_text(call.query_before, example),
        key_before=_of_text(call.key_before, example) if is_whole else None,
    )
    parts: dict[str, Any] = {
        name: both(getattr(call, name)) for name in ("weights", "mask", "bias")
    }
    for names, axis, padding in (
        (("query", "query_before"), 2, queries),
        (("key", "key_before", "value"), 2, keys),
        (("context", "output", "added"), 1, queries),
    ):
        for name in names:
            tensor = getattr(call, name)
            if tensor is not None:
                parts[name] = tensor.narrow(axis, padding, tensor.shape[axis] - padding)
    return replace(call, **parts)


def _of_text(tensor: torch.Tensor | None, example: int) -> torch.Tensor | None:
    return None if tensor is None else tensor[example : example + 1]


@dataclass
class TokenProbabilities:
    """Looks at the logits of every step of one text, and at the token that was made of them.

    Args:
        top: how many of the most probable candidates to note.
        prompt: how many tokens there were before the first was written.
    """

    top: int
    prompt: int = 0
    probabilities: list[float] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    candidates: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    _logits: torch.Tensor | None = None

    def look(self, logits: torch.Tensor) -> None:
        """The logits ``[vocabulary]`` of the last token of a pass."""
        # A copy, since processors of logits may write to them before a token is chosen.
        self._logits = logits.detach().to(torch.float32, copy=True)

    def wrote(self, ids: torch.Tensor) -> None:
        """The text with its new token."""
        if self._logits is not None:
            self.prompt = self.prompt or len(ids) - 1
            self._note(self._logits, int(ids[-1]))

    def cut(self, count: int) -> None:
        """Forget tokens beyond these: the model may write one more before it sees that the text has
        ended.
        """
        for noted in (self.probabilities, self.entropies, self.ranks, self.candidates):
            del noted[count:]

    def _note(self, logits: torch.Tensor, chosen: int) -> None:
        probabilities = logits.softmax(-1)
        self.probabilities.append(probabilities[chosen].item())
        self.entropies.append(torch.special.entr(probabilities).sum().item())
        # Ties share the better rank: only what is strictly more probable stands before it.
        self.ranks.append(int((logits > logits[chosen]).sum().item()) + 1)
        best = probabilities.topk(min(self.top, len(probabilities)))
        self.candidates.append(tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
