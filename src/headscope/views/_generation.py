"""What a page says of a text that the model wrote itself."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.record import Generation, Record, Tokens
from headscope.views._page_text import valid
from headscope.views.contract import Page, PageGeneration, PageStack

ALTERNATIVES = 5
"""Candidates of each token that a page shows."""


def put_generation(header: Page, record: Record) -> None:
    """Add how the text was written to a header, and mark the first written token of each side that
    holds it.
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
    """The tokens that were written, with what the model thought of each of them."""
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
    return (
        Tokens(pieces=tuple(candidate.piece for candidate in candidates)).labels
        if candidates
        else ()
    )


def _mark(page: PageStack, record: Record, written: Tokens, prompt: int) -> None:
    stack = record[page["name"]]
    for name, tokens in (("query", stack.query), ("key", stack.key)):
        if tokens == written and prompt < len(tokens):
            page[name]["written"] = prompt
