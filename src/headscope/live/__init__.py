"""A loaded model that is asked again and again, over HTTP: type, change heads, write on.

The messages are declared in `headscope.live.contract`. Every request but those for the page itself
carries the token in the header ``X-Headscope-Token``; a ``POST`` also needs ``Origin`` and
``Content-Type: application/json``.

- ``GET /``: a page whose script calls ``serve(element)`` of ``model.js``, where that of
  ``headscope serve RECORD`` calls that of ``live.js``.
- ``GET /model.json``: `LiveFacts`. ``loading`` is true until the model is there.
- ``POST /ask`` with `LiveQuestion`: the opening of a record, `LiveOpening` and its chunks.
- ``GET /record/ID/opening?looking=JSON``: the same of a record that is still kept; of a server of
  one record ``GET /opening?looking=JSON``.
- ``GET /record/ID/header.json``, ``/record/ID/chunk/NAME``,
  ``/record/ID/figure/KIND?options=JSON``: as of ``headscope serve RECORD``.
  ``/record/ID/download``: the file. ``/record/ID/page?selection=JSON``: one self-contained page,
  which opens with this selection.
- ``POST /compare`` with `CompareQuestion`: the opening of two records side by side.
- ``POST /write`` with `WriteQuestion`: lines of `WrittenToken`, then `WriteEnd`.
- ``POST /lens`` with `LensQuestion`: `LensAnswer`.
- ``POST /answer`` with `AnswerQuestion`: lines of `WrittenToken`, then `AnswerEnd`.
- ``POST /why`` with `WhyTokenQuestion`: lines of `MattersDone`, then `WhyEnd`.
- ``POST /attended`` with `AttendedQuestion`: a line with `AttendedAnswer`.
- ``POST /matters`` with `MattersQuestion`: lines of `MattersDone`, then `MattersValues` for each
  stack.
- ``GET /atlas.json``: `LiveAtlas`, where the server was given an atlas.

What goes wrong is `LiveError`: 400 what was asked for cannot be, 403 not our page, 409 a newer
question of the same page came, 410 the record is no longer kept (ask again with text and changes),
413 too large, 415 no JSON, 503 busy or still loading. In a streamed answer it is the last line.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from headscope._missing_packages import missing_package
from headscope.errors import HeadscopeError

_loaded, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(_names)  # noqa: PLE0605 -- the stub is the one list


def __getattr__(name: str) -> Any:
    try:
        return _loaded(name)
    except ModuleNotFoundError as error:
        raise HeadscopeError(missing_package(error)) from None
