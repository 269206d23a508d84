"""The one form of what a model is given to read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float32

from headscope.capturing.media.given import PictureInput, ReadSound, VideoInput
from headscope.errors import HeadscopeError, TextError
from headscope.parts import Conversation, PartsChoice, RenderedText
from headscope.record import Part


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
        parts: see `headscope.parts.parts_of`; None for turns and documents alone.
        known: the turns and documents in the text, once it is known what it is read with.
        ids: the tokens that the text stands for, where it would be cut into others; or None.

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
    parts: PartsChoice | None = None
    known: tuple[Part, ...] = ()
    ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.series is not None and (self.texts or self.has_media):
            raise TextError("A time series is read alone; leave texts, pictures and sounds out")
        if self.text_pair is not None and isinstance(self.text, Conversation):
            raise TextError("A conversation is read alone; leave text_pair out")
        if self.text_pair is not None and self.has_media:
            raise TextError("A picture, video or sound goes with one text; leave text_pair out")

    @property
    def texts(self) -> tuple[Any, ...]:
        """The texts that there are; a conversation until it is known what it is read with."""
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
        if self.text.has_media and not kinds:
            raise TextError(
                "The conversation has a place for a picture, and no picture was given; give one to "
                "a model that reads pictures ({'type': 'image', 'image': ...}), or leave it out"
            )
        asked = self.text.with_media(kinds)
        text, known = asked.rendered(reads_with, writes=writes)
        _warn_of_unread(asked, lambda one: one.rendered(reads_with, writes=writes)[0] == text)
        thoughts = [each.partition("</think>") for each in asked.texts]
        if any(
            end and first.split("<think>")[-1].strip() not in text for first, end, _ in thoughts
        ):
            warnings.warn(
                "The chat template leaves out what answers hold up to </think>: the model never "
                "reads it",
                stacklevel=2,
            )
        return replace(self, text=text, known=known)

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


def _warn_of_unread(asked: Conversation, is_same: Callable[[Conversation], bool]) -> None:
    """Warn of fields of messages without which the text is the same."""
    names = {name for each in asked.messages for name in each if each[name]}
    for name in sorted(names - {"role", "content", "part"}):
        bare = [{key: each[key] for key in each if key != name} for each in asked.messages]
        with suppress(TextError):  # a template that demands the field reads it
            if is_same(replace(asked, messages=tuple(bare))):
                warnings.warn(
                    f"The chat template makes nothing of the field {name!r} of the messages: the "
                    "model never reads it; say it in the content, or leave it out",
                    stacklevel=3,
                )


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


def with_held(more: Mapping[str, Any], held: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What was given with a conversation, with the pictures and the video in it.

    Raises:
        TextError: where there are both, or several videos.
    """
    within: dict[str, Any] = {kind: several for kind, several in held.items() if several}
    for kind in within:
        if more.get(kind) is not None:
            raise TextError(f"The conversation holds its {kind} itself; leave {kind} out")
    videos = within.pop("video", [more.get("video")])
    if len(videos) > 1:
        raise TextError(f"The conversation holds {len(videos)} videos; give one at most")
    return {**more, **within, "video": videos[0]}
