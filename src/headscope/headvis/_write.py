"""A tree of HeadVis, written of a model over texts."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from headscope._progress import warn_left_out
from headscope._version import __version__
from headscope.corpus import key_of
from headscope.errors import CaptureError, FileError, HeadscopeError, RecordError, TextError
from headscope.headvis import _heads
from headscope.headvis._sums import METRICS, HeadvisSums
from headscope.record import BatchStack, ModelFacts, Record, TextBatch
from headscope.storage import check_parent

Report = Callable[[int, HeadscopeError], None]
SHOWN = ("key", "label", "description")
SOURCE = "HeadVis, Luger et al. 2026"
ALL_BY, KEPT_BY = "Share of all attention by", "Sum of the weights kept, by"
DISTANCE = "the distance from query to key"
PLOTS = (
    ("qk_distance_histogram_all", "Distance, all texts", f"{ALL_BY} {DISTANCE}"),
    ("qk_distance_histogram", "Distance, examples", f"{KEPT_BY} {DISTANCE}"),
)
TABLES = (
    ("top_key_tokens_all", "Keys, all texts", "Share of all attention that goes to a token"),
    ("top_key_tokens", "Keys, examples", "Sum of the weights kept that go to a token"),
    ("top_query_tokens", "Queries, examples", "Sum of the weights kept that start at a token"),
)


class HeadvisOptions(TypedDict, total=False):
    """What a tree holds, and how its texts are read."""

    dataset: str
    """What the texts are called in the tree, by default ``"texts"``."""
    intervals: int
    """Strata of the texts by the largest weight of a head, by default 5."""
    samples: int
    """Texts of each stratum but the highest, by default 4."""
    top_samples: int
    """Texts of the highest stratum, by default 10: the strongest."""
    stack: str | None
    """Which attention of the model; by default the first."""
    truncate: bool
    """Whether texts that are too long for the model are cut."""
    allow_unfit: bool
    """Whether texts of mostly unknown tokens are read."""
    batch_size: int | None
    """Most texts that run at once; by default 64."""
    progress: bool
    """Show on stderr how many texts are done."""
    on_error: Callable[[int, HeadscopeError], None] | None
    """Is called with number and error of a text that was left out; by default a warning is
    issued.
    """


DEFAULTS: dict[str, Any] = dict.fromkeys(HeadvisOptions.__annotations__) | {
    **{"dataset": "texts", "intervals": 5, "samples": 4, "top_samples": 10},
    **dict.fromkeys(("truncate", "allow_unfit", "progress"), False),
}


def write_headvis(
    folder: str | os.PathLike[str],
    model: Any,
    tokenizer: Any,
    texts: Any,
    **options: Unpack[HeadvisOptions],
) -> Path:
    """Write how every head of a model attends over texts as a tree of HeadVis (Luger et al.
    2026), for its front end, the importers of Neuronpedia and `read_headvis`.

    The texts are read as a stream, once; those that the tree shows are run a second time. Memory
    does not grow with their number, and their order changes nothing. Strata are of all texts alike,
    so that no text is lost to a warm-up, as in Neuronpedia's pipeline. The tree holds whole texts:
    whoever passes it on passes these texts on, under their licence.

    Args:
        folder: to write; it may not exist, or must be empty.
        model: a loaded transformers model.
        tokenizer: its tokenizer.
        texts: texts, or pairs of them, of at least two tokens; a list or a stream.
        **options: see `HeadvisOptions`.

    Returns:
        The folder.

    Raises:
        FileError: where the folder holds something or cannot be written.
        RecordError: an option that does not exist or makes no sense, or where no text could be
            read.
        CaptureError: of cross-attention, which a tree cannot show.

    Example:
        >>> write_headvis("tree", model, tokenizer, ["The cat sat.", "It slept well."])
    """
    settled = _settled(dict(options))
    check_tree_folder(folder)
    from headscope.capturing import MOST_UNKNOWN

    reads = {name: settled[name] for name in ("truncate", "batch_size")}
    reads["max_unknown"] = 1.0 if settled["allow_unfit"] else MOST_UNKNOWN
    reading = _TextsOfModel(model, tokenizer, settled["stack"], reads)
    report = settled["on_error"] or warn_left_out
    sums, chosen = _counted(reading, texts, settled, report)
    with _written_folder(Path(folder)) as made:
        (made / "heads").mkdir()
        files = _heads.HeadFiles(made / "heads", reading.cells, tokenizer)

        def missed(index: int, error: HeadscopeError) -> None:
            report(chosen[index].number, error)

        given = [each.given for each in chosen]
        for together, stack in reading.batches(given, missed, progress=settled["progress"]):
            for text, (index, _) in enumerate(together):
                files.add(stack, text, index, dict(chosen[index].strata))
        files.close(sums)
        config = _config_of(reading, sums, settled)
        _write(made / "config.json", config)
        _write(made / "scatter_data.json", _rows(reading.cells, sums))
        _write(made / "server_config.json", {})
        (made / "attributions").mkdir()
        _write(made / "attributions" / "manifest.json", {})
    return Path(folder)


def check_tree_folder(folder: str | os.PathLike[str]) -> None:
    """Raise where a tree could not be written, before any long work.

    Raises:
        FileError: saying why.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"Expected a folder for the tree, got the file {folder}")
    if folder.is_dir() and any(folder.iterdir()):
        raise FileError(
            f"{folder} is not empty, and a tree is written whole; choose a new folder, or remove it"
        )
    check_parent(folder)


def _settled(options: dict[str, Any]) -> dict[str, Any]:
    unknown = set(options) - set(DEFAULTS)
    if unknown:
        raise RecordError(
            f"write_headvis has no option {min(unknown)!r}; there are {', '.join(DEFAULTS)}"
        )
    settled = DEFAULTS | options
    for name in ("intervals", "samples", "top_samples"):
        if not isinstance(settled[name], int) or settled[name] < 1:
            raise RecordError(f"{name} must be a whole number from 1 on, not {settled[name]!r}")
    return settled


def _counted(
    reading: _TextsOfModel, texts: Any, settled: dict[str, Any], report: Report
) -> tuple[HeadvisSums, list[_heads.ChosenText]]:
    """The first pass, over all texts."""
    sums, sample = None, None
    for together, stack in reading.batches(_parsed(texts), report, progress=settled["progress"]):
        if sums is None or sample is None:
            sums = HeadvisSums(len(stack.cells))
            sample = _heads.SampleOfTexts(settled["top_samples"])
        maxima = sums.update([layer.weights for layer in stack.layers], _ids_of(stack))
        for row, (number, given) in enumerate(together):
            sample.add(key_of("headvis", *map(str, given.texts)), (number, given), maxima[row])
    if sums is None or sample is None:
        raise RecordError("A tree is made over texts of at least two tokens; none could be read")
    return sums, sample.chosen(settled["intervals"], settled["samples"])


def _ids_of(stack: BatchStack) -> np.ndarray:
    if any(tokens.ids is None for tokens in stack.key):
        raise CaptureError("The tokens have no vocabulary numbers; give texts, not bare pieces")
    return np.array([tokens.ids for tokens in stack.key])


def _parsed(texts: Any) -> Iterable[Any]:
    from headscope.capturing import outcome_of, parse_input, several_of

    rows = several_of(texts)
    parsed = (outcome_of(parse_input, each) for each in rows)
    # A list keeps its length, for the bar.
    return list(parsed) if isinstance(rows, list | tuple) else parsed


def _rows(cells: Sequence[tuple[int, int]], sums: HeadvisSums) -> list[dict[str, Any]]:
    """The metrics of every head; one that no text measures is in no row, since readers take
    the columns from the first.
    """
    metrics = sums.metrics()
    rows = []
    for index, (layer, head) in enumerate(cells):
        values = {
            name: round(float(each[index]), _heads.DECIMALS) for name, each in metrics.items()
        }
        rows.append({"layer": layer, "head": head} | values)
    return rows


@contextmanager
def _written_folder(folder: Path) -> Generator[Path]:
    """Give a temporary folder next to another one; in the end it takes its name, or is removed."""
    beside = folder.absolute()
    made = beside.with_name(f".{beside.name}.{secrets.token_hex(4)}.part")
    try:
        made.mkdir()
        try:
            yield made
            if folder.is_dir():
                folder.rmdir()
            made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        if isinstance(error, HeadscopeError):
            raise
        raise FileError(f"Cannot write {folder}: {error.strerror}; choose another place") from None


def _write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, allow_nan=False), encoding="utf-8")


class _TextsOfModel:
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


def _config_of(
    reading: _TextsOfModel, sums: HeadvisSums, options: dict[str, Any]
) -> dict[str, Any]:
    """config.json: what a tree is of, and how its readers show it."""
    metrics, facts = list(sums.metrics()), reading.facts
    # The first table is left out where the vocabulary is too large to be counted.
    tables = TABLES if sums.keys(0, 1) is not None else TABLES[1:]
    # What importers of Neuronpedia refuse a tree without; none of it may be null.
    required = {
        "model_name": facts.name or "unknown",
        "dataset_name": options["dataset"],
        "n_sequences": sums.texts,
        "seq_len": sums.longest,
        "dtype": facts.dtype or "unknown",
        "attn_implementation": facts.implementation or "unknown",
    }
    made = {
        "n_intervals": options["intervals"],
        "samples_per_interval": options["samples"],
        "samples_per_top_interval": options["top_samples"],
        "sparse_topk_per_row": _heads.ROW,
        "sparse_threshold": _heads.LEAST,
        "headscope": {
            "version": __version__,
            "format": SOURCE,
            "weights": facts.weights,
            "revision": facts.revision,
            "causal": reading.is_causal,
            "tokens": sums.positions,
            "strata": "equal parts of the texts, all of them alike; the last one has the strongest",
        },
    }
    return {
        "model_name": required["model_name"],
        "dataset_name": options["dataset"],
        "heads": [list(cell) for cell in reading.cells],
        "n_layers": len(dict(reading.cells)),
        "n_heads": max(head for _, head in reading.cells) + 1,
        "n_intervals": options["intervals"],
        "metrics": metrics,
        "metric_descriptions": {name: METRICS[name] for name in metrics},
        "head_data_pattern": _heads.PATTERN,
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": [dict(zip(SHOWN, each, strict=True)) for each in PLOTS],
        "custom_tables": [dict(zip(SHOWN, each, strict=True)) for each in tables],
        "statistics_display": {
            "n_samples": {"label": "Examples", "format": "integer"},
            "mean_max_activation": {"label": "Mean largest weight, all texts"},
            "kept_share": {"label": "Kept of a row, examples", "format": "percent"},
        },
        "pipeline_config": required | made,
    }
