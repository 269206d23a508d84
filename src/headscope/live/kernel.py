"""A live model in a notebook: the page of `serve` in a widget, answered by the kernel."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import traitlets
from starlette.types import Message

from headscope.atlases import Atlas
from headscope.errors import RecordError
from headscope.live._facts import LIMITS, atlas_for, parse_limits
from headscope.live._model import LiveModel
from headscope.live._server import LiveHost, live_application
from headscope.record import Record
from headscope.views.guard import TOKEN_HEADER
from headscope.views.listening import new_token
from headscope.views.widget_base import AnyWidget, script_of


def live_widget(
    model: Any,
    tokenizer: Any,
    text: Any = "",
    *,
    max_tokens: int = LIMITS["tokens"],
    seconds: float = LIMITS["seconds"],
    atlas: Atlas | str | os.PathLike[str] | None = None,
) -> LiveWidget:
    """Show a loaded model in a notebook: what is typed there it reads, and heads can be changed.

    The page is that of `serve`. All that it asks goes through the messages of the notebook, so that
    it works wherever the kernel runs, and no port is opened.

    Args:
        model: a loaded transformers model, best with the head that it was trained with.
        tokenizer: its tokenizer, or its processor.
        text: that the page begins with, or a conversation, a list of messages.
        max_tokens: most tokens that are read at a time.
        seconds: most seconds that a run may take.
        atlas: the model's atlas, or the folder of one, to compare drawings with.

    Raises:
        HeadscopeError: without the extras ``notebook`` and ``server``.
        ModelError: where the atlas is of another model.

    Example:
        >>> widget = live_widget(model, tokenizer, "The cat sat on the mat.")
        >>> widget  # shows itself
        >>> widget.record  # what is shown now, as `headscope.capture` gives it
    """
    live = LiveModel(model, tokenizer, limits=parse_limits(max_tokens, seconds), text=text)
    return LiveWidget(live, atlas_for(model, atlas))


LOCAL = "localhost"
"""What a request that comes from no network calls its host."""
Tell = Callable[[dict[str, Any], list[bytes]], None]


class LiveWidget(AnyWidget):
    """A live model that a running notebook and Python share. Made by `live_widget`.

    ``asked`` is what the model reads and what is changed of it, as
    ``{"input": {"text": "..."}, "changes": [...]}``; setting it asks the model. ``selection`` is
    what the view shows, as of the widget of a record. Pictures and sounds are in neither.

    Args:
        live: the model.
        atlas: of the model, to compare drawings with.
    """

    asked: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    selection: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    _shown_id: traitlets.Unicode[str, str | bytes] = traitlets.Unicode().tag(sync=True)

    def __init__(self, live: LiveModel, atlas: Atlas | None = None) -> None:
        self._live = live
        facts = live.facts
        host = LiveHost(facts["name"], facts["text"], facts["limits"], live, atlas=atlas)
        self._messages = MessageAnswers(host, self.send)
        super().__init__(_esm=script_of("model.js"))
        self.on_msg(self._heard)

    @property
    def record(self) -> Record:
        """The record that is shown.

        Raises:
            RecordError: before anything is shown.
        """
        kept = self._live.records.get(self._shown_id)
        if kept is None:
            raise RecordError("Nothing is shown yet; run the cell that shows the widget first")
        return kept.record

    def ask(self, text: str) -> None:
        """Let the model read another text, with the changes that there are."""
        self.asked = {**self.asked, "input": {"text": text}}

    def close(self) -> None:
        """Take it off the page, and end what still runs."""
        self._messages.close()
        super().close()

    def __repr__(self) -> str:
        # what a notebook shows that was saved and is open without a kernel
        return f"<live model {self._live.facts['name']}: run the cell again>"

    def _heard(self, _: Any, content: Any, __: Any) -> None:
        self._messages.hear(content)


class MessageAnswers:
    """Answers messages as the server answers requests: by the same application, in a thread of its
    own, so that a newer question can stop a run.

    Args:
        host: holds the model.
        tell: sends a message and its buffers to the page; may be called from any thread.
    """

    def __init__(self, host: LiveHost, tell: Tell) -> None:
        self._tell = tell
        self._token = new_token()
        self._application = live_application(host, self._token)
        self._going: dict[str, asyncio.Event] = {}
        self._loop = asyncio.new_event_loop()
        # A daemon: a kernel that is asked to end does not wait for a page.
        threading.Thread(target=self._run, daemon=True).start()

    def hear(self, content: Any) -> None:
        """One message of the page: a question, or that nobody waits for an answer any more."""
        if not isinstance(content, Mapping) or not isinstance(content.get("id"), str):
            return
        if content.get("type") == "ask":
            self._start(self._answer(content["id"], content))
        elif content.get("type") == "stop":
            self._start(self._stop(content["id"]))

    def close(self) -> None:
        """Answer no more; may be called again."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._loop.is_closed():
            work.close()
            return
        asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _stop(self, name: str) -> None:
        if name in self._going:
            self._going[name].set()

    async def _answer(self, name: str, content: Mapping[str, Any]) -> None:
        gone = self._going[name] = asyncio.Event()
        body = str(content.get("body", "")).encode()
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        status = 500

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                return
            more = message.get("more_body", False)
            header = {"type": "answer", "id": name, "status": status, "more": more}
            self._tell(header, [message.get("body", b"")])

        try:
            await self._application(self._scope(content), receive, send)
        finally:
            del self._going[name]

    def _scope(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """A request of our own page, as ASGI has it."""
        where = urlsplit(str(content.get("path", "")))
        headers = {
            "host": LOCAL,
            "origin": f"http://{LOCAL}",
            "content-type": "application/json",
            TOKEN_HEADER.lower(): self._token,
        }
        return {
            "type": "http",
            "method": "POST" if "body" in content else "GET",
            "path": f"/{unquote(where.path)}",
            "raw_path": where.path.encode(),
            "query_string": where.query.encode(),
            "root_path": "",
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        }
