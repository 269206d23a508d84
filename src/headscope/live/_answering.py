"""Answers of a live model besides its attention: pictures, two records compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from headscope.answering import Answer, answer, parse_choice
from headscope.capturing import ParsedInput, check_text
from headscope.capturing.many import bytes_of
from headscope.comparison import Comparison, compare
from headscope.composition import attended
from headscope.errors import CaptureError, TextError, is_whole
from headscope.live._model import Asked, KeptRecord, KeptRecords, LiveModel
from headscope.live._queue import StopSignal, Tell, stoppable
from headscope.live._writing import MOST_WRITTEN, TokenWatch, number_of
from headscope.live.contract import AnswerEnd, AttendedAnswer
from headscope.views import view
from headscope.views.answers import PageAnswers

TOKENS = 32
"""That an answer has at most where none is given, as of `headscope.answer`."""


@dataclass(frozen=True)
class AnswerRequest:
    """A question, about a picture where there is one.

    Args:
        asked: text and picture, and the changes.
        question: what is asked, or a conversation, with its picture.
        tokens: how many to write at most.
        shown: which heads the attention is the mean of, and whether sinks stay, as of
            `headscope.answering.Answer.with_heads`.
    """

    asked: Asked
    question: ParsedInput
    tokens: int
    shown: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The same where the same is written."""
        return f"answer {self.asked.key} {self.tokens}"


@dataclass(frozen=True, eq=False)
class KeptAnswer:
    """The last answer, so that other heads need no other run.

    Args:
        key: of its request.
        name: of its record among those that are kept.
        answer: the answer itself, over all heads.
    """

    key: str
    name: str
    answer: Answer


def parse_answer(live: LiveModel, given: Any) -> AnswerRequest:
    """What a request asks for.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    asked = live.parsed(given)
    if not live.facts["writes"]:
        raise CaptureError(
            f"{live.facts['name']} does not write, and so answers nothing; serve a causal or "
            "vision-language model with its head"
        )
    read = asked.read.parsed
    if "messages" not in given["input"]:
        question = read.text or ""
        if read.pictures and getattr(live.reads_with, "chat_template", None):
            # The template puts the picture in its place itself.
            question = question.replace(live.facts["picture_mark"], " ").strip()
        read = replace(read, text=check_text(question, "question"))
    tokens = number_of("tokens", given.get("tokens"), 1, MOST_WRITTEN)
    shown = {name: given.get(name) for name in ("layers", "heads")}
    parse_choice(**shown)
    shown["keep_sinks"] = given.get("keep_sinks") is True
    return AnswerRequest(asked, read, TOKENS if tokens is None else tokens, shown)


def answer_question(
    live: LiveModel, request: AnswerRequest, signal: StopSignal, tell: Tell
) -> None:
    """Answer: a line for each token, then one with the record of all and what words looked at.

    What was answered last is not written again where only other heads are asked for: then there is
    the last line alone.

    Raises:
        StoppedError: where it was told to stop.
        HeadscopeError: as of `headscope.answer`.
    """
    kept = live.answered
    if kept is None or kept.key != request.key or live.records.get(kept.name) is None:
        kept = live.answered = _answered(live, request, signal, tell)
    signal.check()
    shown = kept.answer.with_heads(**request.shown)
    picture = shown.view().picture
    tell(AnswerEnd(id=kept.name, question=shown.question, text=shown.text, picture=picture))


def _answered(
    live: LiveModel, request: AnswerRequest, signal: StopSignal, tell: Tell
) -> KeptAnswer:
    room = live.facts["limits"]["tokens"] - request.tokens
    watch = TokenWatch(live.reader, tell, None)

    def look(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # How many tokens a picture is, is known when the first one is written.
        if watch.count == 0 and ids.shape[1] > room:
            raise TextError(
                f"Question and picture have {ids.shape[1]} tokens, and with an answer of "
                f"{request.tokens} at most {room} are read; ask for fewer, or give a smaller "
                "picture"
            )
        return watch.look(ids, scores)

    question = request.question
    with stoppable(live.model, signal), live.changed(request.asked.changes):
        answered = answer(
            live.model,
            live.reads_with,
            question,
            # A picture takes seconds to be read once, and again for each cut.
            need=None if question.pictures else "cut",
            parts="sentence" if isinstance(question.text, str) and not question.pictures else None,
            max_new_tokens=request.tokens,
            do_sample=False,
            num_beams=1,
            logits_processor=[look],
            stopping_criteria=[watch.wrote],
            allow_unfit=True,
        )
    if answered.record is None:
        raise CaptureError("An answer has no record, and so no heads to look at")
    kept = live.keep(request.key, view(answered.record), request.asked.changes)
    return KeptAnswer(request.key, kept.id, answered)


Partners = dict[str, list[tuple[int, int, int, int]]]


def compared(records: KeptRecords, a: KeptRecord, b: KeptRecord) -> tuple[KeptRecord, Partners]:
    """The second record with how it differs from the first, and which heads stand side by side.

    Tokens and heads are aligned as `headscope.compare` does.

    Args:
        records: where it is kept.
        a: the first.
        b: the second.

    Raises:
        RecordError: where they cannot be aligned.
    """
    comparison = compare([a.record], [b.record])
    kept = records.answer_to(f"{a.id} {b.id}")
    if kept is None:
        answers = PageAnswers(view(comparison))
        size = sum(map(bytes_of, (a.record, b.record, answers.shown.record)))
        kept = KeptRecord(answers, None, [], {}, size)
        records.put(f"{a.id} {b.id}", kept)
    return kept, partners_of(comparison)


def partners_of(comparison: Comparison) -> Partners:
    """For each stack whose heads are not matched by number: which head is compared with which."""
    partners: Partners = {}
    for name, stack in comparison.stacks.items():
        rows = [(*own, *other) for own, other in zip(stack.cells, stack.partners, strict=True)]
        if stack.candidates > 1:
            partners[name] = rows
    return partners


def attended_of(live: LiveModel, request: tuple, signal: StopSignal, tell: Tell) -> None:
    """Tell what wrote the query and the key of a pair.

    Raises:
        HeadscopeError: as of `headscope.composition.attended`.
    """
    (asked, pair), reader = request, live.reads_with
    with stoppable(live.model, signal), live.changed(asked.changes):
        told = attended(live.model, reader, asked.read.parsed.read_with(reader), **pair)
    tell(AttendedAnswer(pair=[told.query, told.key], html=told._repr_html_()))


def parse_attended(live: LiveModel, given: Any) -> tuple[Asked, dict[str, Any]]:
    """Text and changes that a request asks about, and the pair.

    Raises:
        HeadscopeError: what of it cannot be.
    """
    asked, place = live.parsed(given), given.get("place")
    if not (isinstance(place, list) and len(place) in (3, 4) and all(map(is_whole, place))):
        raise TextError(f"place is [layer, head, query, key] from 0 on, not {repr(place)[:40]}")
    pair = dict(zip(("query", "key"), place[2:], strict=False))
    return asked, {"stack": given.get("stack"), "head": tuple(place[:2]), **pair}
