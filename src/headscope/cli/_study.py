"""What commands that study a model over texts have in common: the texts, the model, the run in
parts, and the files of the result.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Group, Parameter

from headscope.cli._files import RunResults, check_folder
from headscope.cli._run import Count, ModelOptions, left_out, load, say, say_where, text_or_chat
from headscope.errors import HeadscopeError, RunError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome

FAILED = "failed.jsonl"
TEXT = "text"


@Parameter(name="*", group=Group("Many texts"))
@dataclass(frozen=True)
class CorpusOptions:
    """Who measures the texts."""

    workers: Count = None
    """Number of processes that run at once."""
    dask: str | None = None
    """Address of a Dask scheduler that runs the parts, such as tcp://10.0.0.1:8786; local starts
    one on this machine, with --workers processes.
    """
    part_size: Count = None
    """Texts in a part, which is kept when it is done; by default 64 to 1,000."""

    @contextmanager
    def running(self, folder: Path | None) -> Generator[dict[str, Any]]:
        """Options of `headscope.corpus.RunOptions`, for a ``with`` block; what was left out is
        counted at its end.

        Raises:
            RunError: where Dask is not installed, or no scheduler answers.
            FileError: where the folder cannot be written to.
        """
        if folder is not None:
            check_folder(folder)
        reasons: list[HeadscopeError] = []
        options: dict[str, Any] = {"part_size": self.part_size, "out": folder}
        options["on_error"] = lambda _, error: reasons.append(error)
        if self.dask is None:
            # Without a folder, one that goes with the command; one worker is this process.
            is_alone = self.workers is None and folder is None
            yield options | {"workers": 1 if is_alone else self.workers}
        else:
            from headscope.corpus import dask_cluster

            if self.workers is not None and self.dask != "local":
                raise RunError(
                    "--workers is for this machine or --dask local; a cluster has its own workers"
                )
            with dask_cluster(self.dask, self.workers) as executor:
                yield options | {"executor": executor}
        if reasons:
            # How many there were, and where they are named, stands on the last line.
            why = " ".join(str(reasons[0]).split())
            sys.stderr.write(f"headscope: the first input that was left out: {why}\n")
            left_out.listed = "see above" if folder is None else f"see {folder / FAILED}"
            # The end counts names: here numbers stand in for them.
            left_out.names |= {str(number): "" for number in range(len(reasons))}


@dataclass(frozen=True)
class Study:
    """What a study is asked, whatever its texts are."""

    results: RunResults = RunResults()
    corpus: CorpusOptions = CorpusOptions()
    model: ModelOptions = ModelOptions()

    def __post_init__(self) -> None:
        self.results.check(folder=True)

    @property
    def in_parts(self) -> bool:
        """Whether the texts are measured as a run in parts: with workers, or with a folder."""
        return self.results.folder is not None or self.corpus != CorpusOptions()

    @contextmanager
    def reading(
        self, given: Any = (), groups: Any = None, *, what: str = TEXT, classifies: bool = False
    ) -> Generator[tuple[tuple[Any, Any], dict[str, Any]]]:
        """What a study reads with, for a ``with`` block: the model and its tokenizer, or the name
        of the model where the study runs in parts; and how it reads.

        Args:
            given: what it reads; empty where that is not known yet.
            groups: the documents of the texts, where these are known.
            what: one of them is called; a text that cannot be read is reported here, and else by
                the result.
            classifies: whether the model must have a trained classifier.
        """
        if given:
            left_out.begin(what, len(given))
        how: dict[str, Any] = self.model.for_many() | ({} if groups is None else {"groups": groups})
        if self.in_parts:
            self.model.check()
            with self.corpus.running(self.results.folder) as more:
                yield (self.model.model, None), how | self.model.loading | more
            return
        source = loaded(self.model, classifies=classifies)
        how["progress"] = True
        if what == TEXT:
            # One of many texts may be left out; a single one that cannot be read is an error.
            how["on_error"] = left_out.losing({}, alone=len(given) == 1)
        yield source, how

    def run(self, study: str, *given: Any, what: str = TEXT, **options: Any) -> Any:
        """What the function of `headscope.studies` of this name finds; see `reading`."""
        classifies = study == "faithfulness"
        with self.reading(*given, what=what, classifies=classifies) as (source, how):
            function = getattr(import_module("headscope.studies"), study)
            return function(*source, given[0], **how | options)

    def tell(self, result: Any, **look: Any) -> None:
        """Print a result, and write its files.

        Args:
            result: a `headscope.results.Result`.
            **look: options of its figure.
        """
        # Plain texts were reported by their numbers while they were read.
        if not self.in_parts and left_out.what != TEXT:
            left_out.names |= getattr(result, "left_out", None) or {}
        say(str(result))
        say_where()
        self.results.write(result, **look)


@dataclass(frozen=True)
class TextStudy(Study):
    """What a study of plain texts is asked."""

    text: str | None = None
    """The text to read."""
    text_b: str | None = None
    """The second text of a sentence pair."""
    texts: Path | None = None
    """A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields text,
    text_b and group (the document of a text; intervals are then over documents).
    """
    chat: Path | None = None
    """A conversation to read in place of a text: a .json file with a list of messages, each with
    role and content.
    """

    def given(self) -> tuple[list[Outcome], Any]:
        """The texts, parsed, and the documents that they are of, where these are known."""
        from headscope.capturing import groups_in

        parsed = parse_texts(self.text, self.text_b, self.texts, self.chat)
        return parsed, groups_in(self.texts)


def parse_texts(
    text: str | None, text_b: str | None, texts: Path | None, chat: Path | None = None
) -> list[Outcome]:
    """One text, a pair, a conversation, or the texts of a file.

    Raises:
        TextError: where both a text and a file are given, or neither.
        FileError: where the file cannot be read.
    """
    text = text_or_chat(text, chat, text_b, texts)
    if (text is None) == (texts is None):
        raise TextError(
            "Expected a text (or a pair), or a file of texts with --texts, or of a conversation "
            "with --chat"
        )
    from headscope.capturing import parse_call
    from headscope.capturing import parse_texts as parsed

    return [parse_call(text or "", text_b)] if texts is None else alone_or_all(parsed(texts))


def alone_or_all(outcomes: Any) -> list[Outcome]:
    """Parsed texts of a file; where there are many, one that cannot be read is left out later, with
    its number.

    Raises:
        HeadscopeError: why a single text cannot be read.
    """
    listed = list(outcomes)
    if len(listed) == 1 and isinstance(listed[0], HeadscopeError):
        raise listed[0]
    return listed


def loaded(options: ModelOptions, *, classifies: bool = False) -> tuple[Any, Any]:
    """The model and its tokenizer.

    Args:
        options: the model and how it runs.
        classifies: whether it must have a trained classifier.

    Raises:
        HeadscopeError: errors of the options or the model.
    """
    if options.target is not None or options.target_tokenizer is not None:
        raise TextError(
            "--target and --target-tokenizer are for commands that read one text; remove them"
        )
    options.check()
    if not classifies:
        return load("load_model", options.model, **options.loading)
    model = load("load_classifier", options.model, **options.loading)
    return model, load("load_tokenizer", options.model, **options.loading)


@contextmanager
def warnings_as_lines(*parts: str) -> Generator[None]:
    """Print our warnings that contain one of these parts each time that they are given."""
    with warnings.catch_warnings():
        for part in parts:
            warnings.filterwarnings("always", message=f".*{part}")
        yield
