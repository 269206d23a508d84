"""Pictures and sound that commands read."""

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
    """Pictures and sound that the model reads, with a text or without."""

    image: Annotated[tuple[Path, ...], Parameter(negative="")] = ()
    """A picture; may be given several times, where the text has a place for each."""
    sound: Path | None = None
    """A sound (.wav), with as many samples a second as the model wants."""

    @property
    def given(self) -> dict[str, Any]:
        """The options of `headscope.capture`."""
        given: dict[str, Any] = {}
        if self.image:
            given["image"] = self.image[0] if len(self.image) == 1 else list(self.image)
        if self.sound is not None:
            given["sound"] = self.sound
        return given

    def check(self, text: str | None, text_b: str | None) -> None:
        """Raise where there is nothing to read, or texts and files do not go together, before
        anything is loaded.

        Raises:
            CycloptsError: where nothing was given, which is wrong usage.
            FileError: a file that is not there.
            TextError: saying what does not go together.
        """
        if text is None and not self.given:
            raise CycloptsError(
                msg=(
                    "There is nothing to read: give a text, a picture with --image, or a sound "
                    "with --sound"
                )
            )
        for what, path in (*(("picture", path) for path in self.image), ("sound", self.sound)):
            if path is not None and not path.exists():
                raise FileError(f"The {what} {path} is not there")
        if text_b is not None and self.given:
            raise TextError(f"A picture or sound goes with one text; leave {text_b!r} out")
        if text is not None and text.endswith(RECORD_SUFFIX) and self.given:
            raise TextError(
                f"{text} is a record file, which holds what was read already; leave --image and "
                "--sound out"
            )

    def check_files(self) -> None:
        """Raise where a file is not there, or no picture or sound, before the model is loaded.

        Raises:
            FileError: naming the file.
        """
        from headscope.capturing import parse_image, parse_sound

        for path in self.image:
            parse_image(path)
        if self.sound is not None:
            parse_sound(self.sound, None)
