"""Limits of the server: how many connections it holds, and how long a request may take to arrive.

Anyone on the machine can connect to a loopback address, token or not. Without limits, connections
that never finish their request would use up the descriptors of the process.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64
"""A browser opens six for one address; several windows and a forwarded port stay far below."""
SECONDS_FOR_REQUEST = 10.0
"""From the start of a connection, or the last answer, to the end of the next request's headers."""


class LimitedProtocol(H11Protocol):
    """uvicorn's protocol with limits: of connections, and of the time until a request is whole."""

    most_connections = MOST_CONNECTIONS
    seconds_for_request = SECONDS_FOR_REQUEST
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Accept the connection; where there are too many, close the one that has waited longest
        for its request.
        """
        super().connection_made(transport)
        self._make_room()
        self._set_deadline()

    def handle_events(self) -> None:
        """Read what has arrived, and stop the clock where it completes a request."""
        super().handle_events()
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request, or close."""
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._stop_clock()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _set_deadline(self) -> None:
        if self._is_answering or self.transport.is_closing():
            self._stop_clock()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds_for_request, self.transport.close)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _make_room(self) -> None:
        # A connection that was just closed stays in the set until the event loop removes it.
        held: list[Any] = [each for each in self.connections if not each.transport.is_closing()]
        if len(held) <= self.most_connections:
            return
        # Connections with a deadline have sent no whole request: nobody waits for their answer.
        waiting = [each for each in held if each._deadline is not None]
        oldest = min(waiting, key=lambda each: each._deadline.when(), default=self)
        oldest.transport.abort()
