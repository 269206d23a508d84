"""The viewer over HTTP on a loaded model: see `headscope.live` for what is asked and answered."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headscope.atlases import Atlas
from headscope.errors import ModelError
from headscope.live import _answering, _queue
from headscope.live._changes import address_of, python_of
from headscope.live._facts import LIMITS, live_atlas, loading_facts
from headscope.live._lens import lens_of, matters, parse_lens, parse_matters, parse_why, why_of
from headscope.live._model import KeptRecord, LiveModel
from headscope.live._writing import parse_write, write
from headscope.live.contract import LiveFacts, LiveLimits
from headscope.storage import save
from headscope.views import server
from headscope.views.answers import PageAnswers, packed_opening
from headscope.views.guard import Guard

MOST_BYTES = 64 * 1024
"""Of a request without a picture or sound: a text of some ten thousand words."""
MOST_OF_PAGE = 64
"""Characters of the name of a page."""
GONE = "This record is no longer kept; ask for it again"
FILE = "headscope"
"""What a downloaded file is called, before its suffix."""

Handler = Callable[[Request, Any], Awaitable[Response]]


@dataclass
class LiveHost:
    """A model that is being loaded, or is there.

    Args:
        name: of the model, as the user called it.
        text: that the page begins with.
        limits: what a request may ask for.
        live: the model; None as long as it is not there.
        failed: why it could not be loaded; else empty.
        second: a model that it can be compared with.
        atlas: of the model, to compare drawings with.
    """

    name: str
    text: Any = ""
    limits: LiveLimits = field(default_factory=lambda: LIMITS)
    live: LiveModel | None = None
    failed: str = ""
    second: LiveModel | None = None
    atlas: Atlas | None = None

    @property
    def facts(self) -> LiveFacts:
        """What is known of it now."""
        if self.live is not None:
            beside = self.second.facts["name"] if self.second is not None else ""
            texts = self.atlas.texts if self.atlas is not None else 0
            return {**self.live.facts, "beside": beside, "atlas": texts}
        return loading_facts(self.name, self.text, self.limits, self.failed)


def live_application(host: LiveHost, token: str, queue: _queue.ModelQueue | None = None) -> Guard:
    """The application that serves one model.

    Args:
        host: holds the model, or will.
        token: what a request must know.
        queue: lets one run after the other have the model; by default one of its own.
    """
    limits = host.limits
    if queue is None:
        queue = _queue.ModelQueue(limits["queue"], limits["seconds"])
    answers = _LiveAnswers(host, queue)
    at_once = anyio.CapacityLimiter(2)
    asked = {
        "ask": answers.ask,
        "compare": answers.compare,
        "write": answers.lines(parse_write, write),
        "lens": answers.lens,
        "answer": answers.lines(_answering.parse_answer, _answering.answer_question),
        "why": answers.lines(parse_why, why_of),
        "attended": answers.lines(_answering.parse_attended, _answering.attended_of),
        "matters": answers.lines(parse_matters, matters),
    }
    routes = [
        Route("/model.json", lambda request: JSONResponse(dict(host.facts))),
        *(Route(f"/{name}", answers.post(of), methods=["POST"]) for name, of in asked.items()),
        Route("/atlas.json", server.in_thread(answers.atlas, at_once)),
        Route("/record/{id}/download", server.in_thread(answers.download, at_once)),
        Route("/record/{id}/page", server.in_thread(answers.page, at_once)),
        *server.record_routes(answers.find, "/record/{id}"),
    ]
    return server.guarded(routes, token, script="model.js")


class _LiveAnswers:
    """What is answered of one model."""

    def __init__(self, host: LiveHost, queue: _queue.ModelQueue) -> None:
        self._host, self._queue = host, queue

    def find(self, request: Request) -> PageAnswers | None:
        """The answers of the record that a request names; None where it is not kept."""
        live = self._host.live
        kept = None if live is None else live.records.get(request.path_params["id"])
        return None if kept is None else kept.answers

    def post(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A question whose body is JSON, checked before anything is done."""

        async def answered(request: Request) -> Response:
            refused = _queue.refusal_of_post(request)
            if refused is not None:
                return refused
            if self._host.live is None:
                failed = self._host.failed
                return _queue.error_line(
                    failed or "The model is being loaded; ask again in a moment", 503
                )
            try:
                return await handler(request, await _queue.body_of(request, self._most_bytes()))
            except Exception as error:  # noqa: BLE001 - whatever it is, the server continues
                return _queue.error_answer(error)

        return answered

    async def ask(self, request: Request, given: Any) -> Response:
        """The opening of a record: see `headscope.live.contract.LiveQuestion`."""
        second = isinstance(given, Mapping) and given.get("second") is True
        live = self._second() if second else self._live()
        asked = live.parsed(given)
        return await self._opening(request, given, lambda signal: (live.ask(asked, signal), {}))

    async def compare(self, request: Request, given: Any) -> Response:
        """Two records side by side: see `headscope.live.contract.CompareQuestion`."""
        records, a, b = self._live().records, self._kept(given.get("a")), self._kept(given.get("b"))
        return await self._opening(request, given, lambda _: _answering.compared(records, a, b))

    async def _opening(
        self,
        request: Request,
        given: Any,
        make: Callable[[_queue.StopSignal], tuple[KeptRecord, _answering.Partners]],
    ) -> Response:
        """The opening of a record that is made when the model is free."""
        began, looking = time.perf_counter(), given.get("looking") or {}

        def run(
            signal: _queue.StopSignal,
        ) -> tuple[KeptRecord, _answering.Partners, dict[str, bytes]]:
            kept, partners = make(signal)
            # Here too, so that the two cores of a small machine are not busy with both.
            return kept, partners, kept.answers.opening(looking)

        kept, partners, chunks = await self._queue.run(_page_of(given), request.receive, run)
        head = _head_of(kept, began)
        if partners:
            head["partners"] = partners
        data = packed_opening(head, chunks)
        return await anyio.to_thread.run_sync(server.sent, request, data, server.BYTES)

    def lines(self, parse: Callable[..., Any], run: Callable[..., None]) -> Handler:
        """An answer line by line: see `headscope.live.contract` for what is asked and told."""

        async def answered(_request: Request, given: Any) -> Response:
            live = self._live()
            return _queue.LinesAnswer(
                self._queue, _page_of(given), partial(run, live, parse(live, given))
            )

        return answered

    async def lens(self, request: Request, given: Any) -> Response:
        """What each layer would say: see `headscope.live.contract.LensQuestion`."""
        live = self._live()
        run = partial(lens_of, live, parse_lens(live, given))
        return JSONResponse(await self._queue.run(_page_of(given), request.receive, run))

    def atlas(self, _request: Request) -> Response:
        """Mean maps of all heads: see `headscope.live.contract.LiveAtlas`."""
        if self._host.atlas is None:
            raise ModelError("There is no atlas; serve one with --atlas FOLDER")
        return JSONResponse(dict(live_atlas(self._host.atlas, self._live().facts["stacks"])))

    def download(self, request: Request) -> Response:
        """The record as a file."""
        with TemporaryDirectory(prefix="headscope-") as folder:
            path = Path(folder) / f"{FILE}.safetensors"
            save(self._kept(request.path_params["id"]).record, path)
            return _file(path.read_bytes(), server.BYTES, path.name)

    def page(self, request: Request) -> Response:
        """The record as one self-contained page, which opens as it is shown now."""
        html = self._kept(request.path_params["id"]).answers.page(
            server.sent_json(request, "selection")
        )
        return _file(html.encode(), "text/html; charset=utf-8", f"{FILE}.html")

    def _kept(self, name: Any) -> KeptRecord:
        kept = self._live().records.get(str(name))
        if kept is None:
            raise server.GoneError(GONE)
        return kept

    def _live(self) -> LiveModel:
        if self._host.live is None:
            raise server.GoneError(GONE)
        return self._host.live

    def _second(self) -> LiveModel:
        if self._host.second is None:
            raise ModelError("There is no second model; serve one with --beside")
        return self._host.second

    def _most_bytes(self) -> int:
        takes = {"image", "audio"} & set(self._host.facts["fields"])
        # base64 makes four bytes of three
        return MOST_BYTES + (self._host.limits["picture_bytes"] * 4 // 3 if takes else 0)


def _head_of(kept: KeptRecord, began: float) -> dict[str, Any]:
    """What an answer holds of a record, in addition to its chunks."""
    return {
        "id": kept.id,
        "header": kept.answers.header,
        "output": kept.output,
        "changes": kept.changes,
        "address": address_of(kept.changes),
        "python": python_of(kept.changes),
        "timings": {**kept.timings, "all": round(1000 * (time.perf_counter() - began), 2)},
    }


def _page_of(given: Any) -> str:
    """The name of the page that asks.

    Raises:
        ValueError: where there is none.
    """
    page = given.get("page")
    if not isinstance(page, str) or not 0 < len(page) <= MOST_OF_PAGE:
        raise ValueError(f"page is a random name of the tab, up to {MOST_OF_PAGE} characters")
    return page


def _file(data: bytes, media_type: str, name: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return Response(data, media_type=media_type, headers={"Content-Disposition": disposition})
