"""The part of a page about a text that the model generated."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.record import Generation, Record, Tokens
from headscope.views._page_text import valid
from headscope.views.contract import Page, PageGeneration, PageStack

ALTERNATIVES = 5
"""Number of candidates that a page shows for each token."""


def put_generation(header: Page, record: Record) -> None:
    """Add to a header how the text was generated, and mark the first generated token in queries and
    keys.
    """
    generation = record.generation
    if generation is None:
        return
    written = record[generation.stack].query
    for page in header["stacks"]:
        _mark(page, record, written, generation.prompt)
    if generation.stack in [stack["name"] for stack in header["stacks"]]:
        header["generation"] = page_generation(generation)


def page_generation(generation: Generation) -> PageGeneration:
    """The generated tokens, with their probabilities, entropies, ranks and alternatives."""
    return {
        "stack": generation.stack,
        "prompt": generation.prompt,
        "labels": [valid(label) for label in generation.tokens.labels],
        "probabilities": list(generation.probabilities),
        "entropies": list(generation.entropies),
        "ranks": list(generation.ranks),
        "alternatives": [
            [
                {"label": valid(label), "probability": candidate.probability}
                for candidate, label in zip(
                    listed[:ALTERNATIVES], labels_of(listed[:ALTERNATIVES]), strict=True
                )
            ]
            for listed in generation.alternatives
        ],
    }


def labels_of(candidates: Sequence) -> tuple[str, ...]:
    """The candidates as a reader should see them."""
    if not candidates:
        return ()
    # `Tokens` replaces the marks of a vocabulary (such as ## and Ġ) by readable text.
    return Tokens(pieces=tuple(candidate.piece for candidate in candidates)).labels


def _mark(page: PageStack, record: Record, written: Tokens, prompt: int) -> None:
    stack = record[page["name"]]
    for name, tokens in (("query", stack.query), ("key", stack.key)):
        if tokens == written and prompt < len(tokens):
            page[name]["written"] = prompt
