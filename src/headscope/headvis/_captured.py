"""The attention of texts, batch by batch, with what each of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from headscope.errors import CaptureError, HeadscopeError, TextError
from headscope.record import BatchStack, ModelFacts, Record, TextBatch

Report = Callable[[int, HeadscopeError], None]


class TextsOfModel:
    """Runs a model on texts, as often as it takes.

    Args:
        model: loaded.
        tokenizer: its tokenizer.
        stack: which of its attention; None for the first.
        options: of `headscope.capturing.BatchOptions`.
    """

    def __init__(self, model: Any, tokenizer: Any, stack: str | None, options: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._stack, self._options = stack, options
        self.facts: ModelFacts = ModelFacts()
        """Known from the first text on."""
        self.cells: tuple[tuple[int, int], ...] = ()
        self.is_causal: bool = True
        """Whether no query saw what comes after it, in any text."""

    def batches(
        self, texts: Iterable[Any], report: Report, *, progress: bool = False
    ) -> Iterator[tuple[list[tuple[int, Any]], BatchStack]]:
        """Texts of one length, each with its place among those given, and their attention.

        Args:
            texts: parsed inputs, or errors in place of them.
            report: is called with the place of a text that cannot be read, and the reason.
            progress: show on stderr how many are done.

        Raises:
            CaptureError: where queries look at other tokens than themselves.
            RecordError: where there is no such stack.
        """
        from headscope.capturing import ParsedInputs, capture_batches

        waiting: dict[int, Any] = {}

        def remembered() -> Iterator[Any]:
            for number, given in enumerate(texts):
                waiting[number] = given
                yield given

        def left_out(number: int, error: HeadscopeError) -> None:
            waiting.pop(number, None)
            report(number, error)

        count = len(texts) if isinstance(texts, list | tuple) else None
        given = ParsedInputs(remembered(), count)
        options = self._options | {"on_error": left_out, "progress": progress}
        for together in capture_batches(self._model, self._tokenizer, given, **options):
            stack = self._stack_of(together.batch)
            if len(stack.key[0]) < 2:
                for number in together.numbers:
                    left_out(number, TextError("It has one token, and so no attention to another"))
                continue
            yield [(number, waiting.pop(number)) for number in together.numbers], stack

    def _stack_of(self, read: TextBatch | Record) -> BatchStack:
        batch = TextBatch.of([read]) if isinstance(read, Record) else read
        name = self._stack or next(iter(batch.stacks))
        stack = batch[name]
        for query, key in zip(stack.query, stack.key, strict=True):
            if name.endswith("cross") or query.pieces != key.pieces:
                raise CaptureError(
                    f"A tree of HeadVis shows how texts attend to themselves, and {name!r} is "
                    f"cross-attention; choose another stack of {', '.join(batch.stacks)}"
                )
        self.facts, self.cells = batch.model, stack.cells
        for layer in stack.layers:
            self.is_causal &= not np.triu(layer.visible.dense(), 1).any()
        return stack


def ids_of(stack: BatchStack) -> Int[np.ndarray, "text key"]:
    """Vocabulary numbers of the tokens.

    Raises:
        CaptureError: where the tokenizer gave none.
    """
    if any(tokens.ids is None for tokens in stack.key):
        raise CaptureError("The tokens have no vocabulary numbers; give texts, not bare pieces")
    return np.array([tokens.ids for tokens in stack.key])


def weights_of(stack: BatchStack, text: int) -> Iterator[Float[np.ndarray, "query key"]]:
    """The map of every head on one text, layer after layer."""
    for layer in stack.layers:
        yield from layer.weights[text]
