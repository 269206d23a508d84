"""An atlas of the heads of a model, over many texts."""

from __future__ import annotations

from typing import Any

from headscope.atlases import Atlas
from headscope.errors import RecordError
from headscope.patterns import Heads


def atlas(
    model: Any = None,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    random_weights: Heads | bool | None = None,
    norms: bool = False,
    **options: Any,
) -> Atlas:
    """What every head of a model does over many texts: labels with evidence, where its attention
    goes, between which words, and examples, in one pass.

    Texts are read as a stream and measured in parts, by one process or many; memory does not grow
    with their number, and the result is the same for any number of workers, size of parts and
    order of texts. See docs page "An atlas of heads".

    Args:
        model: loaded, by name or folder, or None for the demo model.
        tokenizer: of a loaded model.
        texts: texts, or pairs of them: a list, or a stream that is read once.
        random_weights: True for the same architecture with random weights as one baseline more of
            the labels; or `heads` of such a model.
        norms: whether to count, too, where what each head adds comes from: shares of ``weight *
            ||f(x)||`` (Kobayashi et al. 2020). It takes longer, as every text is then recorded by
            itself.
        **options: ``out``, ``workers``, ``executor`` and ``part_size`` as of
            `headscope.corpus.RunOptions`; ``groups``, ``patterns``, ``stack``, ``confidence``,
            ``alpha``, ``correction``, ``margin``, ``battery``, ``truncate``, ``allow_unfit`` and
            ``progress`` as of `heads`; where and how a named model is loaded.

    Raises:
        RecordError: where there is no text, or one whose queries are not its keys.
        RunError: of a run, see `headscope.corpus.run`.
        CaptureError: a model whose attention cannot be captured.

    Example:
        >>> result = atlas("bert-base-uncased", texts=["The cat sat.", "It slept."], out="run")
    """
    # A run is read with what reads models; atlases that were kept do without it.
    from headscope.studies._atlas_run import AtlasJob
    from headscope.studies._heads_run import over_texts

    if texts is None:
        raise RecordError("An atlas is made over texts; give atlas(model, tokenizer, texts)")
    return over_texts(
        AtlasJob,
        (model, tokenizer),
        texts,
        options,
        random_weights=random_weights,
        more={"norms": norms},
    )
