"""Pictures, videos and sound that commands read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import CycloptsError, Parameter

from headscope.cli._run import RECORD_SUFFIX
from headscope.errors import FileError, TextError


@Parameter(name="*")
@dataclass(frozen=True)
class Media:
    """Pictures, video and sound that the model reads, with a text or without."""

    image: Annotated[tuple[Path, ...], Parameter(negative="")] = ()
    """A picture; give it several times if the text has a place for each."""
    video: Path | None = None
    """A video: a folder of pictures, a GIF, a .npy file, or a film (headscope[video])."""
    sound: Path | None = None
    """A sound file (.wav), at the sampling rate of the model."""

    @property
    def given(self) -> dict[str, Any]:
        """The options of `headscope.capture`."""
        given: dict[str, Any] = {}
        if self.image:
            given["image"] = self.image[0] if len(self.image) == 1 else list(self.image)
        if self.video is not None:
            given["video"] = self.video
        if self.sound is not None:
            given["sound"] = self.sound
        return given

    def check(self, text: str | None, text_b: str | None) -> None:
        """Raise where there is nothing to read, or texts and files cannot be combined, before
        anything is loaded.

        Raises:
            CycloptsError: where nothing was given, which is wrong usage.
            FileError: a file that does not exist.
            TextError: saying what cannot be combined.
        """
        if text is None and not self.given:
            raise CycloptsError(
                msg="Expected a text, or a picture, video or sound with --image, --video or --sound"
            )
        others = (("video", self.video), ("sound", self.sound))
        for what, path in (*(("picture", path) for path in self.image), *others):
            if path is not None and not path.exists():
                raise FileError(f"The {what} {path} does not exist")
        if text_b is not None and self.given:
            raise TextError(f"A picture, video or sound goes with one text only; remove {text_b!r}")
        if str(text).endswith(RECORD_SUFFIX) and self.given:
            raise TextError(
                f"{text} is a record file and already holds its input; remove --image, "
                "--video and --sound"
            )
