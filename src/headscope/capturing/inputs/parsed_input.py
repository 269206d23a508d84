"""The one form of what a model is given to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float32

from headscope.capturing.media.given import PictureInput, ReadSound, VideoInput
from headscope.errors import HeadscopeError, TextError


@dataclass(frozen=True)
class ParsedInput:
    """One input of a model.

    `capture`, `capture_many`, `generate`, studies and commands make it of what they are given, and
    take it in its place; whoever has one need not check again what kind of input it is.

    Args:
        text: the text; a conversation until it is known what it is read with; or None.
        text_pair: the second text of a pair, or None.
        pictures: in the order in which the text names them.
        sound: gives the sound, or None.
        video: the video, or None.
        series: the time series, or None.
        target: what the decoder of an encoder-decoder is to read, or None; or why what was given is
            no text, which matters to models with a decoder alone.
        cuts: numbers of tokens of the texts that were cut so far; one list for all inputs of a run,
            which warns of the first only.

    Raises:
        TextError: where there are two texts and a picture, video or sound, or a time series and
            anything else.
    """

    text: Any = None
    text_pair: str | None = None
    pictures: tuple[PictureInput, ...] = ()
    sound: ReadSound | None = None
    video: VideoInput | None = None
    series: Float32[np.ndarray, "time channel"] | None = None
    target: str | TextError | None = None
    cuts: list[int] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.series is not None and (self.texts or self.has_media):
            raise TextError("A time series is read alone; leave texts, pictures and sounds out")
        if self.text_pair is not None and isinstance(self.text, Conversation):
            raise TextError("A conversation is read alone; leave text_pair out")
        if self.text_pair is not None and self.has_media:
            raise TextError("A picture, video or sound goes with one text; leave text_pair out")

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that there are."""
        return tuple(text for text in (self.text, self.text_pair) if text is not None)

    @property
    def is_rendered(self) -> bool:
        """Whether the text is that of a conversation."""
        return isinstance(self.text, RenderedText)

    @property
    def has_media(self) -> bool:
        """Whether there is a picture, a video or a sound."""
        return bool(self.pictures) or self.sound is not None or self.video is not None

    @property
    def is_text(self) -> bool:
        """Whether there are texts and nothing else."""
        return self.text is not None and not self.has_media and not self.has_target

    @property
    def is_picture(self) -> bool:
        """Whether there are pictures and nothing else."""
        beside = (self.text, self.sound, self.video)
        return bool(self.pictures) and beside == (None, None, None) and not self.has_target

    @property
    def has_target(self) -> bool:
        """Whether there is something for the decoder, even if it cannot be read."""
        return self.target is not None

    def decoder_text(self) -> str | None:
        """The target, for a model that has a decoder.

        Raises:
            TextError: where it is no text.
        """
        if isinstance(self.target, TextError):
            raise self.target
        return self.target

    def read_with(self, reads_with: Any, *, writes: bool = False) -> ParsedInput:
        """The same with a conversation as the text that a model reads.

        Args:
            reads_with: the model's tokenizer or processor.
            writes: whether the text is to be continued.

        Raises:
            TextError: where there is no chat template, or it does not take the conversation.
        """
        if not isinstance(self.text, Conversation):
            return self
        kinds = ["image"] * len(self.pictures)
        kinds += ["video"] * (self.video is not None) + ["audio"] * (self.sound is not None)
        placed = self.text.with_media(kinds)
        return replace(self, text=placed.rendered(reads_with, writes=writes))

    def in_memory(self) -> ParsedInput:
        """The same with its files read, and a video looked through, so that nothing can be wrong
        with them later.

        Raises:
            FileError: where a file is no picture, video or sound.
        """
        if not self.has_media:
            return self
        if self.video is not None:
            self.video.count()
        known = replace(self, pictures=tuple(each.in_memory() for each in self.pictures))
        if self.sound is None:
            return known
        sound = self.sound()
        return replace(known, sound=lambda: sound)


Outcome = ParsedInput | HeadscopeError
"""An input, or why it cannot be read."""
Report = Callable[[int, HeadscopeError], None]
"""Function that is called with number and error of an input that is left out."""


@dataclass(frozen=True)
class ParsedInputs:
    """Several inputs, each parsed when its turn comes.

    Args:
        outcomes: an input each, or why it cannot be read.
        count: how many there are; None where that is not known beforehand.
    """

    outcomes: Iterable[Outcome]
    count: int | None

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)


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
        is_answered = self.messages[-1]["role"] == "assistant"
        ends = {"add_generation_prompt": not is_answered}
        if writes and is_answered:
            ends = {"continue_final_message": True}
        why, in_parts = "", [{**each, "content": _parts(each)} for each in self.messages]
        # With plain texts, and with texts in parts, as templates with pictures take them.
        for messages in [self.plain, in_parts][self.has_media :]:
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
