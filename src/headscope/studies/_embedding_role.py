"""What the embeddings of positions and segments do for the patterns of heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headscope.errors import CaptureError, RecordError
from headscope.patterns import Changes
from headscope.patterns import heads as heads_of
from headscope.studies.shared._source import Source, parse_source, passed, warn_of_few


def embedding_role(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    role: Any = "position",
    by: Any = "zero",
    random_weights: bool = False,
    **options: Any,
) -> Changes:
    """Patterns of heads with and without the embedding of positions, or of segments, on the same
    texts.

    What goes with it was made of it; what stays was not. Taking an embedding away also changes the
    length of what goes into the first layer: ``by="mean"`` changes that less.

    Source: Vig 2019, part 2, asks for what makes the patterns; the intervention is ours.

    Args:
        model: loaded, by name or folder, or None for the demo model.
        tokenizer: its tokenizer; may be left out where the model is named.
        texts: a text, or texts and pairs of them; two at least for intervals.
        role: ``"position"`` or ``"segment"``.
        by: ``"zero"`` or ``"mean"``, see `without_embedding`.
        random_weights: whether the same is done to this architecture with random weights:
            ``control`` of the result.
        **options: ``groups``, the document that each text is of; ``patterns``, ``stack``,
            ``confidence``, ``alpha`` and ``correction`` of `heads`, and ``truncate``,
            ``batch_tokens``, ``progress`` and ``on_error`` of `capture_many`.

    Raises:
        CaptureError: a model that has no such embedding, as those of rotary positions or ALiBi.
        RecordError: where there is no text that could be captured.

    Example:
        >>> print(embedding_role("bert-base-uncased", texts=texts, role="segment"))
    """
    from headscope.capturing import without_embedding

    source = parse_source(model, tokenizer, texts, options)
    if source is None:
        raise RecordError("embedding_role runs a model: embedding_role(model, tokenizer, texts)")
    if role == "segment" and "token_type_ids" not in getattr(
        source.tokenizer, "model_input_names", ()
    ):
        raise CaptureError(
            f"{type(source.tokenizer).__name__} gives the model no segments (token_type_ids): "
            "there is nothing to remove; use a tokenizer that does"
        )

    warn_of_few(source, options)

    def changes(source: Source) -> Changes:
        # First without: a model that has no such embedding is refused before hours of work. Texts
        # that cannot be captured are reported once, in the run after it.
        with without_embedding(source.model, role, by=by):
            after = heads_of(**source.grouped(on_error=passed), **options)
        before = heads_of(**source.grouped(), **options)
        return Changes(
            before,
            after,
            what=f"without the embedding of {role}s{' (its mean left)' * (by == 'mean')}",
        )

    result = changes(source)
    return replace(result, control=changes(source.random_twin())) if random_weights else result
