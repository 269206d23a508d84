"""Conversations, and the text that a model's own chat template makes of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.errors import TextError


class RenderedText(str):
    """A text with all its special tokens in it: a tokenizer puts none around it."""

    __slots__ = ()


@dataclass(frozen=True)
class Conversation:
    """Messages that are one text once it is known whose template renders them.

    Args:
        messages: role and content of each; the content a text, or parts such as ``{"type": "text",
            "text": "Hi"}`` and ``{"type": "image"}``.
    """

    messages: tuple[Mapping[str, Any], ...]

    @property
    def texts(self) -> list[str]:
        """What is said, without pictures."""
        return [text for each in self.messages for text in _texts_of(each)]

    @property
    def has_media(self) -> bool:
        """Whether a message has a place for a picture, a video or a sound."""
        return any("text" not in part for each in self.messages for part in _parts(each))

    @property
    def is_answered(self) -> bool:
        """Whether the assistant has the last word."""
        return self.messages[-1]["role"] == "assistant"

    @property
    def plain(self) -> list[dict[str, Any]]:
        """The messages with plain texts, and without pictures."""
        return [{**each, "content": "\n".join(_texts_of(each))} for each in self.messages]

    @property
    def question(self) -> str:
        """What the user said last."""
        asked = [each["content"] for each in self.plain if each["role"] == "user"]
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
        return Conversation(tuple(messages))

    def rendered(self, reads_with: Any, *, writes: bool = False) -> RenderedText:
        """The text that the model reads.

        The template's prompt for an answer comes last, unless the assistant has the last word. That
        is then closed by the template, or left open to be continued.

        Args:
            reads_with: tokenizer or processor with a chat template.
            writes: whether the text is to be continued.

        Raises:
            TextError: where there is no template, or it refuses the messages or leaves words out.
        """
        form = chat_form_of(reads_with)
        if form is None:
            raise TextError(
                f"{type(reads_with).__name__} has no chat template to make a text of messages; "
                "set its chat_template, or give the conversation as one text"
            )
        ends = {"add_generation_prompt": not self.is_answered}
        if writes and self.is_answered:
            ends = {"continue_final_message": True}
        why = ""
        for messages in self._forms():
            try:
                text = form.apply_chat_template(messages, tokenize=False, **ends)
            except Exception as error:  # noqa: BLE001 - templates are programs of their models
                why = why or f"refuses it: {error}"
                continue
            lost = next(_lost(messages, text), None)
            if lost is None:
                return RenderedText(text)
            why = why or f"leaves out words or pictures of message {lost}"
        raise TextError(
            f"The conversation cannot be rendered: the chat template of {type(form).__name__} {why}"
        )

    def _forms(self) -> Iterator[list[dict[str, Any]]]:
        """The messages with plain texts, and with texts in parts, as templates with pictures take
        them.
        """
        if not self.has_media:
            yield self.plain
        yield [{**each, "content": _parts(each)} for each in self.messages]


def chat_form_of(reads_with: Any) -> Any:
    """The processor or tokenizer that has a chat template; None where neither has one."""
    for each in (reads_with, getattr(reads_with, "tokenizer", None)):
        if getattr(each, "chat_template", None):
            return each
    return None


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _texts_of(message: Mapping[str, Any]) -> list[str]:
    return [part["text"] for part in _parts(message) if "text" in part]


def _lost(messages: Sequence[Mapping[str, Any]], text: str) -> Iterator[int]:
    """The numbers of messages whose words the template left out, or wrote as a list of Python.

    Words that two messages have in common must be there twice. Of answers templates may leave out
    what the model thought.
    """
    wanted = []
    for number, each in enumerate(messages, 1):
        if not isinstance(each["content"], str) and str(each["content"]) in text:
            yield number
        for words in _texts_of(each):
            read = words.rpartition("</think>")[2] if each["role"] == "assistant" else words
            wanted.append((read.strip(), number))
    for words, number in sorted(wanted, key=lambda each: -len(each[0])):
        if words not in text:
            yield number
        text = text.replace(words, "\0", 1) if words else text
