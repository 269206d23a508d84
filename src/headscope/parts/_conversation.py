"""Conversations, made a text by a model's own template; and which characters of it are whose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headscope.errors import TextError
from headscope.record import Part

READS_DOCUMENTS = re.compile(r"\{[%{][^{}]*\bdocuments\b")
"""A template that has a place of its own for documents, as that of transformers' documentation."""
Key = tuple[str, int]
"""Kind and number of a part: ``("turn", 2)`` is the third message."""
Mark = Callable[[Key, str], str]
"""Gives a text of a part as the template is to have it."""


class RenderedText(str):
    """A text with all its special tokens in it: a tokenizer puts none around it."""

    __slots__ = ()


@dataclass(frozen=True)
class Conversation:
    """Messages that are one text once it is known whose template renders them.

    Args:
        messages: role and content of each; the content a text, or parts such as ``{"type": "text",
            "text": "Hi"}`` and ``{"type": "image"}``. ``"part"`` names one that is not numbered.
        documents: what the last message is asked about.
    """

    messages: tuple[Mapping[str, Any], ...]
    documents: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """What is said, without pictures."""
        return [text for each in self.messages for text in _texts_of(each)]

    @property
    def has_media(self) -> bool:
        """Whether a message has a place for a picture, a video or a sound."""
        return any("text" not in part for each in self.messages for part in _parts(each))

    @property
    def plain(self) -> list[dict[str, Any]]:
        """The messages with plain texts, the documents before the last question, and without
        pictures.
        """
        messages = self._messages(_unmarked, in_parts=True, joins=True)
        return [{**each, "content": "\n".join(_texts_of(each))} for each in messages]

    @property
    def question(self) -> str:
        """What the user said last."""
        asked = ["\n".join(_texts_of(each)) for each in self.messages if each["role"] == "user"]
        return asked[-1] if asked else ""

    def with_media(self, kinds: Sequence[str]) -> Conversation:
        """With a place for each picture, video or sound, before the words of the user's first
        message; as it is where it has places of its own.
        """
        roles = [each["role"] for each in self.messages]
        if self.has_media or not kinds or "user" not in roles:
            return self
        messages, at = list(self.messages), roles.index("user")
        places = [{"type": kind} for kind in kinds]
        messages[at] = {**messages[at], "content": [*places, *_parts(messages[at])]}
        return replace(self, messages=tuple(messages))

    def rendered(self, reads_with: Any, *, writes: bool = False) -> tuple[str, tuple[Part, ...]]:
        """The text that the model reads, and the turns and documents in it; no parts where the
        template does more with what they say than to strip it.

        The template's prompt for an answer comes last, unless the assistant has the last word. That
        is then closed by the template, or left open to be continued. Documents go where the
        template has a place for them, otherwise before the last question; without a template they
        and the question are a plain text.

        Args:
            reads_with: tokenizer or processor with a chat template.
            writes: whether the text is to be continued.

        Raises:
            TextError: where there is no template, or it refuses the messages or leaves words out.
        """
        form = chat_form_of(reads_with)
        if form is None:
            return self._as_text(reads_with)
        why = ""
        # A content that is one text as a text, or all in parts, as templates with pictures take
        # them. Several texts stay a list: how they are joined is for the template to say.
        for in_parts in (False, True):

            def filled(mark: Mark, in_parts: bool = in_parts) -> str:
                return self._filled(form, mark, in_parts=in_parts, writes=writes)

            text, refused = _tried(filled, _unmarked)
            lost = next(self._lost(text), "")
            if not refused and not lost:
                return RenderedText(text), self._found(filled, text)
            why = why or refused or f"leaves out words or pictures of {lost}"
        if self.messages[0]["role"] == "system" and "system" in why.lower():
            why += "; leave the system turn out, or put its words into the first question"
        raise TextError(
            f"The conversation cannot be rendered: the chat template of {type(form).__name__} {why}"
        )

    def _as_text(self, reads_with: Any) -> tuple[str, tuple[Part, ...]]:
        """Documents and a question as a plain text.

        Raises:
            TextError: where there are messages, which need a chat template.
        """
        if not self.documents or len(self.messages) > 1:
            raise TextError(
                f"{type(reads_with).__name__} has no chat template to make a text of messages; "
                "set its chat_template, or give the conversation as one text"
            )

        def joined(mark: Mark) -> str:
            return "\n".join(_texts_of(self._messages(mark, in_parts=True, joins=True)[0]))

        text = joined(_unmarked)
        return text, self._found(joined, text)

    def _filled(self, form: Any, mark: Mark, *, in_parts: bool, writes: bool) -> str:
        """What a template makes of the messages, each text of them marked."""
        is_answered = self.messages[-1]["role"] == "assistant"
        more: dict[str, Any] = {"add_generation_prompt": not is_answered}
        if writes and is_answered:
            more = {"continue_final_message": True}
        joins = not READS_DOCUMENTS.search(str(form.chat_template))
        if self.documents and not joins:
            more["documents"] = [
                {"doc_id": n, "title": f"Document {n}", "text": mark(("document", n), text)}
                for n, text in enumerate(self.documents, 1)
            ]
        messages = self._messages(mark, in_parts=in_parts, joins=joins)
        return form.apply_chat_template(messages, tokenize=False, **more)

    def _messages(self, mark: Mark, *, in_parts: bool, joins: bool) -> list[dict[str, Any]]:
        """The messages, each text marked; ``joins`` puts the documents before the last question."""
        messages: list[dict[str, Any]] = []
        asked: Any = {}
        for at, each in enumerate(self.messages):
            parts = [_marked(part, mark, at) for part in _parts(each)]
            if each["role"] == "user":
                asked = next((part for part in parts if "text" in part), asked)
            messages.append({key: each[key] for key in each if key != "part"} | {"content": parts})
        if self.documents and joins:
            before = [mark(("document", n), text) for n, text in enumerate(self.documents, 1)]
            asked["text"] = "\n\n".join([*before, asked["text"]])
        for each in messages:
            if not in_parts and [*map(set, each["content"])] == [{"type", "text"}]:
                each["content"] = each["content"][0]["text"]
        return messages

    def _lost(self, text: str) -> Iterator[str]:
        """The messages and documents whose words the template left out, or wrote as a list of
        Python.

        Words that two messages have in common must be there twice. Of answers templates may leave
        out what the model thought.
        """
        wanted = [(words.strip(), f"document {n}") for n, words in enumerate(self.documents, 1)]
        for number, each in enumerate(self.messages, 1):
            if str(_parts(each)) in text:
                yield f"message {number} (give its content as one text)"
            for words in _texts_of(each):
                read = words.rpartition("</think>")[2] if each["role"] == "assistant" else words
                wanted.append((read.strip(), f"message {number}"))
        for words, name in sorted(wanted, key=lambda each: -len(each[0])):
            if words not in text:
                yield name
            text = text.replace(words, "\0", 1) if words else text

    def _found(self, render: Callable[[Mark], str], text: str) -> tuple[Part, ...]:
        """The turns and documents in a rendered text."""
        marks = _PartMarks(text + "".join([*self.documents, *self.texts]))
        spans = marks.spans(_tried(render, marks)[0], text)
        kinds = {("document", n): "document" for n in range(1, len(self.documents) + 1)}
        kinds |= {("turn", at): each["role"] for at, each in enumerate(self.messages)}
        parts: list[Part] = []
        for (key, role), name in zip(kinds.items(), numbered([*kinds.values()]), strict=True):
            kind, at = "document" if role == "document" else "turn", key[1]
            own = self.messages[at].get("part", name) if key[0] == "turn" else name
            if key in spans:
                parts.append(Part(name=own, kind=kind, spans=tuple(spans[key])))
        return tuple(sorted(parts, key=lambda part: part.spans))


class _PartMarks:
    """Marks around the words of each part, which are found again in what a template makes of them.

    They stand inside of the white space around a text, so that a template strips what it would
    strip.

    Args:
        avoid: a text that holds none of the characters that marks are made of.
    """

    def __init__(self, avoid: str) -> None:
        # Of private use: no template splits or escapes them.
        free = (letter for letter in map(chr, range(0xE000, 0xF900)) if letter not in avoid)
        self._begin, self._end = next(free), next(free)
        self._words: list[tuple[Key, str]] = []

    def __call__(self, key: Key, text: str) -> str:
        words = text.strip()
        if not words:
            return text
        begin, end = (f"{letter}{len(self._words)}{letter}" for letter in (self._begin, self._end))
        self._words.append((key, words))
        return text.replace(words, f"{begin}{words}{end}", 1)

    def spans(self, marked: str, text: str) -> dict[Key, list[tuple[int, int]]]:
        """The characters of each part in a text; none where it is not the marked one without its
        marks.
        """
        plain, last, begun = "", 0, {}
        spans: dict[Key, list[tuple[int, int]]] = {}
        for mark in re.finditer(f"([{self._begin}{self._end}])(\\d+)\\1", marked):
            plain += marked[last : mark.start()]
            last, number = mark.end(), int(mark[2])
            if mark[1] == self._begin:
                begun[number] = len(plain)
                continue
            key, words = self._words[number]
            start = begun.pop(number, None)
            if start is None:
                # Where thoughts are dropped the beginning is gone: the longest end that is there.
                cut = next(n for n in range(len(words) + 1) if plain.endswith(words[n:]))
                start = len(plain) - len(words[cut:].lstrip())
            spans.setdefault(key, []).append((start, len(plain)))
        return spans if plain + marked[last:] == text and not begun else {}


def numbered(names: Sequence[str]) -> list[str]:
    """The names, those that there are several of with a number."""
    counts, seen = Counter(names), Counter()
    several: list[str] = []
    for name in names:
        seen[name] += 1
        several.append(f"{name} {seen[name]}" if counts[name] > 1 else name)
    return several


def chat_form_of(reads_with: Any) -> Any:
    """The processor or tokenizer that has a chat template; None where neither has one."""
    both = reads_with, getattr(reads_with, "tokenizer", None)
    return next((each for each in both if getattr(each, "chat_template", None)), None)


def _unmarked(_: Key, text: str) -> str:
    return text


def _marked(part: Mapping[str, Any], mark: Mark, message: int) -> dict[str, Any]:
    """A part of a message as the template is to have it."""
    said = {"text": mark(("turn", message), part["text"])} if "text" in part else {}
    return {**part, **said}


def _tried(render: Callable[[Mark], str], mark: Mark) -> tuple[str, str]:
    """A rendered text, and why there is none."""
    try:
        return render(mark), ""
    except Exception as error:  # noqa: BLE001 - templates are programs of their models
        return "", f"refuses it: {error}"


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _texts_of(message: Mapping[str, Any]) -> list[str]:
    return [part["text"] for part in _parts(message) if "text" in part]
