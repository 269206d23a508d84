"""One run of the model at a time; of each page only the newest question."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from torch import nn

from headscope.capturing.observers import hook_before
from headscope.capturing.walk import modules_of
from headscope.errors import HeadscopeError
from headscope.views.server import GoneError

NEWER = "A newer question of this page is being answered"
BUSY = "Many pages wait for the model; ask again in a moment"

Tell = Callable[[Mapping[str, Any]], None]


class BusyError(Exception):
    """More pages wait for the model than may."""


class ModelQueue:
    """Lets one run after the other have the model.

    Args:
        most: pages that may wait or run.
        seconds: that a run may take.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._newest: dict[str, StopSignal] = {}
        self._one = anyio.CapacityLimiter(1)

    def __len__(self) -> int:
        return len(self._newest)

    async def run(self, page: str, receive: Receive, act: Callable[[StopSignal], Any]) -> Any:
        """The result of an act, in a thread of its own once the model is free.

        Args:
            page: who asks.
            receive: tells that the page goes away, which stops the act.
            act: what is done.

        Raises:
            StoppedError: because a newer question of the same page came, or the page went away.
            BusyError: where too many wait.
        """
        older = self._newest.get(page)
        if older is not None:
            older.stop()
        elif len(self._newest) >= self._most:
            raise BusyError(BUSY)
        signal = self._newest[page] = StopSignal(self._seconds)

        def work() -> Any:
            signal.start()
            signal.check()  # it may have been stopped while it waited
            return act(signal)

        async def watch() -> None:
            # Not request.is_disconnected(), which only looks whether the message is there already.
            while (await receive())["type"] != "http.disconnect":
                pass
            signal.stop()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                outcome = await _outcome_in_thread(work, self._one)
                group.cancel_scope.cancel()
        finally:
            if self._newest.get(page) is signal:
                del self._newest[page]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def _outcome_in_thread(work: Callable[[], Any], limiter: anyio.CapacityLimiter) -> Any:
    """The result of some work, or its error: raised in a task group it would come in a group."""

    def outcome() -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - raised again by who asked
            return error

    return await anyio.to_thread.run_sync(outcome, limiter=limiter)


def error_answer(error: Exception) -> Response:
    """The answer to an error; the name of its type where it is not one of ours.

    The server continues after each of them.
    """
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return error_line(str(error) or NEWER, status)
    what = " ".join(str(error).split())[:300]
    return error_line(f"The model cannot be run on this: {type(error).__name__}: {what}", 400)


def error_line(error: str, status: int) -> Response:
    """An error as one line of JSON."""
    return JSONResponse({"error": error}, status)


class LinesAnswer(Response):
    """An answer that comes line by line while the model runs, each line JSON.

    What goes wrong before the first line has a status of its own; later it is the last line.

    Args:
        queue: lets the run have the model.
        page: who asks.
        act: is given a signal to look at, and what tells a line.
    """

    def __init__(
        self, queue: ModelQueue, page: str, act: Callable[[StopSignal, Tell], None]
    ) -> None:
        super().__init__(media_type="application/x-ndjson")
        self._queue, self._page, self._act = queue, page, act

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        begun = False

        async def line(message: Mapping[str, Any]) -> None:
            nonlocal begun
            if not begun:
                begun = True
                start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                await send(start)
            text = json.dumps(message, ensure_ascii=False) + "\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

        def run(signal: StopSignal) -> None:
            self._act(signal, lambda message: anyio.from_thread.run(line, message))

        # Of no length: it is not known before.
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        try:
            await self._queue.run(self._page, receive, run)
        except Exception as error:  # noqa: BLE001 - whatever it is, the server continues
            answer = error_answer(error)
            if not begun:
                await answer(scope, receive, send)
                return
            await line(json.loads(bytes(answer.body)))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def body_of(request: Request, most: int) -> Any:
    """The JSON of a request, counted while it comes: a body may say nothing of its length.

    Raises:
        TooLargeError: where it is larger.
        ValueError: where it is no JSON.
    """
    size = 0
    parts = []
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLargeError(f"A request has at most {most:,} bytes")
        parts.append(part)
    try:
        return json.loads(b"".join(parts))
    except RecursionError:
        raise ValueError("A request is not nested that deeply") from None


class TooLargeError(Exception):
    """A request is larger than it may be."""


def refusal_of_post(request: Request) -> Response | None:
    """Why a request that does something is not answered, besides what `headscope.views.guard`
    refuses; None where it is.

    A form of another page can be sent without asking the reader's browser, JSON cannot. Every
    browser names the origin of a POST, so that one without is none of our page.
    """
    if request.headers.get("origin") is None:
        return error_line("The model is run for the page itself only", 403)
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return error_line("The model is run for the page itself only", 403)
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        return error_line("A question comes as application/json", 415)
    return None


class StoppedError(Exception):
    """A run was given up because a newer one is wanted, or nobody waits any more.

    None of `headscope.errors`: what catches those goes on in another way, and this must not.
    """


class TooLongError(Exception):
    """A run took longer than it may; none of `headscope.errors` for the same reason."""


STATUSES: dict[type[Exception], int] = {
    StoppedError: 409,
    BusyError: 503,
    TooLargeError: 413,
    GoneError: 410,
    HeadscopeError: 400,
    TooLongError: 400,
    ValueError: 400,
}


class StopSignal:
    """Tells one run to stop. `stop` may be called from any thread, at any time.

    Args:
        seconds: that the run may take, from `start` on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._event = Event()
        self._until = float("inf")

    def start(self) -> None:
        """The run begins now: it no longer waits for others."""
        self._until = time.monotonic() + self.seconds

    def stop(self) -> None:
        """Nobody wants the outcome any more."""
        self._event.set()

    def check(self) -> None:
        """Raise where the run is to stop.

        Raises:
            StoppedError: because it was asked to.
            TooLongError: because its time is over.
        """
        if self._event.is_set():
            raise StoppedError
        if time.monotonic() > self._until:
            raise TooLongError(
                f"The run took longer than {self.seconds:g} seconds and was stopped; give a "
                "shorter text, or allow more with --seconds"
            )


@contextmanager
def stoppable(model: nn.Module, signal: StopSignal) -> Generator[None]:
    """Let a signal stop the passes of a model that this thread runs: before each of its modules.

    The model is as it was afterwards. One operation that takes long stops at its end only.
    """

    def look(*_: object) -> None:
        signal.check()

    with ExitStack() as undo:
        for module in modules_of(model):
            undo.callback(hook_before(module, look).remove)
        yield
