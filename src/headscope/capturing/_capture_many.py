"""Many texts, pictures or sounds to records, here or as files in a folder."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any, overload

from headscope.capturing.inputs.parse import check_reader, parse_many
from headscope.capturing.many import capture_inputs, check_names
from headscope.errors import HeadscopeError
from headscope.record import Record
from headscope.storage import RecordFolder

IN_PARTS = "headscope.studies.captures"
"""What captures to files in parts; a name and not an import, because it imports this package."""
FOR_PARTS = ("out", "workers", "executor", "part_size")
"""Options of `headscope.corpus.RunOptions`."""


@overload
def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: None = None,
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record]: ...


@overload
def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: str | os.PathLike[str],
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> RecordFolder: ...


def capture_many(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    batch_tokens: int = 4096,
    progress: bool = False,
    on_error: Callable[[int, HeadscopeError], None] | None = None,
    **options: Any,
) -> Iterator[Record] | RecordFolder:
    """Capture many texts, pictures or sounds, one record each, in the order given.

    Inputs are read 64 ahead. Texts of similar length share a batch, whose padding is cut off again,
    and so do pictures of equal size without a text. Anything else is run one at a time. A record is
    returned as soon as those before it have been returned. Records that wait for their turn take
    1 GiB at most, so that batches are smaller if records are large. An input that cannot be
    captured is reported with its number, and the others are still captured: the inputs of a batch
    that fails are run again one by one.

    With ``out`` the records of texts go to files in a folder, one for each text, and are read from
    there when they are read. Texts are captured in parts, by one process or by several; the
    same call resumes after the parts that are finished. The files are the same to the last byte
    whatever the number of processes, the order of the texts and what was killed meanwhile, since
    only texts of equal length share a batch.

    Args:
        model: a loaded transformers model, a hub name, a folder, or None for the demo model.
            Encoder-decoders go one input at a time.
        tokenizer: its tokenizer, which need not know how to pad; its processor for pictures and
            sounds; may be left out if the model is given by name.
        texts: texts, pairs of them, conversations, or rows such as ``{"image": "cat.png", "text":
            "a photo of a cat"}``, with ``text``, ``text_pair``, ``image``, ``sound``,
            ``sampling_rate`` and ``target`` of `capture`, or texts as data sets call them
            (``sentence1``, ``premise``, ``question``, ``messages`` ...), other columns left aside;
            from any iterable: a list, ``datasets.Dataset``, a table of pandas, polars or Arrow.
        out: a folder for the records of texts and pairs of them; pictures and sounds are left out.
        batch_tokens: most tokens in a batch, padding included; a longer input is a batch of its
            own.
        progress: show on stderr how many are done: a bar on terminals, else a line every ten
            seconds.
        on_error: is called with number and error of an input that was left out; by default a
            warning is issued.
        **options: ``max_unknown``, the largest share of unknown tokens in a text: one with more of
            them is left out (studies take 0.5; by default more than half gives a warning);
            ``batch_size``, the most inputs in a batch (by default as many as ``batch_tokens``
            allows); ``held``, the most bytes of records that wait for their turn (by default
            1 GiB; one record may be larger);
            ``truncate`` of `CaptureOptions`; `KeepOptions`; and `LoadOptions` for a model given by
            name. With ``out`` also ``workers``, ``executor`` and ``part_size`` of
            `headscope.corpus.RunOptions`, and neither ``held`` nor ``interventions``.

    Returns:
        The records one after the other; with ``out`` a `headscope.storage.RecordFolder`, which
            ``headscope.load(out)`` gives as well.

    Raises:
        CaptureError: an unknown option, or no tokenizer.
        RunError: where the folder holds another run, named by what differs; and as of
            `headscope.corpus.run`.
        TextError: if a single text was given instead of many.
        ModelError: a named model that cannot be loaded.

    Example:
        >>> for record in capture_many(
        ...     model, tokenizer, ["The cat sat.", ("It slept.", "It woke.")]
        ... ):
        ...     print(record["self"].weights(layer=0).shape)
        >>> records = capture_many(
        ...     model, processor, [{"image": path} for path in folder.glob("*.png")]
        ... )
        >>> saved = capture_many("bert-base-uncased", texts=texts, out="run", workers=2)
    """
    # Not a generator itself: mistakes in the options are raised here, when it is called, before any
    # model is loaded or input is read.
    check_reader(tokenizer, "capture_many")
    options["batch_tokens"] = batch_tokens
    in_parts = {name: options.pop(name) for name in FOR_PARTS if name in options}
    check_names(options)
    if out is not None or any(value is not None for value in in_parts.values()):
        captured_over = importlib.import_module(IN_PARTS).captured_over
        options |= in_parts | {"out": out, "progress": progress}
        return captured_over((model, tokenizer), texts, options, on_error=on_error)
    return capture_inputs(
        model, tokenizer, parse_many(texts), progress=progress, on_error=on_error, **options
    )
