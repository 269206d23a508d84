"""The base class of all results of studies; `save` and `load` of records and results."""

from __future__ import annotations

import html
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

import headscope.storage as files
from headscope._missing_packages import library
from headscope.errors import FigureError, FileError, HeadscopeError, PageError
from headscope.record import Record
from headscope.results._table import TextTable, wrapped

LEFT_OUT = "left out of"
Kept = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The fields of a result that JSON can hold, and its arrays by name."""


Kind = TypeVar("Kind", bound="Result")


class Result:
    """The result of a study; base class of all of them.

    A result has a table with one list for each column, which pandas, polars and Arrow take. The
    functions that are registered for its kind draw and show it (`headscope.results.draws`,
    `headscope.results.shows`).
    """

    KIND: ClassVar[str] = ""
    """The kind of result, in a word or two: the key for its figure, page and file."""
    DOCUMENT: ClassVar[dict[str, Any]] = {}
    """What its file holds beside arrays; see `headscope.storage.check_document`."""
    left_out_of = ""
    """How many of its texts were left out, in words."""

    def __init_subclass__(cls) -> None:
        """A result is read by its kind; its repr names how many texts were left out."""
        if "KIND" in cls.__dict__:
            KINDS[cls.KIND] = cls
        short = cls.__repr__

        def long(self: Result) -> str:
            begin, end = short(self), f"; {self.left_out_of}>"
            # A class without a repr of its own has that of its base, which names them already.
            if not self.left_out_of or begin.endswith(end):
                return begin
            return begin.removesuffix(">") + end

        type.__setattr__(cls, "__repr__", long)

    @property
    def summary(self) -> str:
        """The main finding, in one or two plain sentences."""
        return repr(self)

    def table(self) -> str:
        """The text below the summary: tables of at most 100 characters a line, each with its
        legend, and notes.
        """
        blocks = [block for block in _with_each_legend_once(self._blocks()) if block]
        return "\n\n".join(wrapped(each) if isinstance(each, str) else str(each) for each in blocks)

    def _blocks(self) -> list[TextTable | str]:
        """Tables and notes, in the order in which they are printed."""
        return []

    def __str__(self) -> str:
        parts = (wrapped(self.summary), self.left_out_of, self.table())
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        """As notebooks show it; every string is escaped."""
        said = [html.escape(part) for part in (self.summary, self.left_out_of) if part]
        # What is quoted may be written from the right, and turns nothing around it.
        parts = [f"<p>{each}</p>".replace("“", "“<bdi>").replace("”", "</bdi>”") for each in said]
        for block in _with_each_legend_once(self._blocks()):
            if isinstance(block, TextTable):
                parts.append(f'<div style="overflow-x: auto">{block.html()}</div>')
            elif block:
                told = html.escape(block)
                parts.append(f'<p style="white-space: pre-line"><small>{told}</small></p>')
        return "\n".join(parts)

    def columns(self) -> dict[str, list[Any]]:
        """The table, one list for each column, all of one length."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame.

        Raises:
            HeadscopeError: without pandas.
        """
        return library("pandas").DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The table as a polars DataFrame; missing numbers stay NaN.

        Raises:
            HeadscopeError: without polars.
        """
        return library("polars").DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """The table as an Arrow table; missing numbers stay NaN.

        Raises:
            HeadscopeError: without pyarrow.
        """
        return library("pyarrow").table(self.columns())

    def conserved(self, given: int, counted: int, left_out: int, what: str = "texts") -> None:
        """Check that everything was counted or left out; the printed result then names how many
        were left out.

        Raises:
            HeadscopeError: where something is lost.
        """
        check_conserved(given, counted, left_out, what)
        if left_out:
            self.__dict__["left_out_of"] = f"Left out: {left_out} of {given} {what}"

    def save(self, path: str | os.PathLike[str]) -> Path | str:
        """Save the result as one .safetensors file, for `headscope.load`; whole or not at all.

        Texts are not saved, except for the two in the records of a `Comparison` or `Effect`.

        Raises:
            FileError: where this kind of result cannot be saved, or the file cannot be written.
        """
        if files.is_address(path):
            return files.saved_at(str(path), self.save)
        document, arrays = self._kept()
        return files.save_kept(path, self.KIND, document | {LEFT_OUT: self.left_out_of}, arrays)

    @classmethod
    def load(cls: type[Kind], path: str | os.PathLike[str]) -> Kind:
        """Read a result of this kind that `save` wrote, to print it, resume it or add to it.

        Functions of your own, such as those of a pattern, are not in a file: the result is
        complete, but no more texts can be counted.

        Raises:
            FileError: where the file does not exist, is cut, or holds something else.
        """
        document, arrays = files.load_kept(files.fetched(path), cls.KIND)
        with files.reading(path, cls.KIND):
            files.check_document(document, cls.DOCUMENT | {LEFT_OUT: str})
            result = cls._of_kept(document, arrays)
        result.__dict__["left_out_of"] = document.get(LEFT_OUT, "")
        return result

    def _kept(self) -> Kept:
        """The fields and arrays of its file.

        Raises:
            FileError: where this kind of result cannot be saved.
        """
        raise FileError(f"A {type(self).__name__} is not kept as a file; keep to_pandas()")

    @classmethod
    def _of_kept(cls, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        """The result of what `_kept` gave, called inside `headscope.storage.reading`."""
        raise FileError(f"A {cls.__name__} is not kept as a file")

    def figure(self, **options: Any) -> Any:
        """The result drawn for print, as `headscope.figure` draws it.

        Raises:
            FigureError: where this kind of result has no figure, an unknown option, or
                without matplotlib.
        """
        draw = drawing_of(self)
        if draw is None:
            raise FigureError(no_figure(self))
        return draw(self, **options)

    def plot(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draw the figure to a file: .svg, .pdf or .png, with the options of `figure`.

        Raises:
            FigureError: the errors of `figure`, or another suffix.
            FileError: where the file cannot be written.
        """
        return self.figure(**options).save(path)

    def view(self, **options: Any) -> Any:
        """The result as a page, as `headscope.view` shows it.

        Raises:
            PageError: an unknown option.
        """
        show = view_of(self)
        if show is None:
            raise PageError(f"A {type(self).__name__} has no page: print it, or draw it")
        return show(self, **options)


def _with_each_legend_once(blocks: Sequence[TextTable | str]) -> list[TextTable | str]:
    """The blocks, with the legend of a column only below the first table that has this column."""
    explained: set[tuple[str, str]] = set()
    shown: list[TextTable | str] = []
    for block in blocks:
        if isinstance(block, TextTable):
            known = [(column.name, column.says) in explained for column in block.columns]
            explained |= {(column.name, column.says) for column in block.columns}
            pairs = zip(block.columns, known, strict=True)
            again = [replace(column, says="") if told else column for column, told in pairs]
            shown.append(replace(block, columns=tuple(again)))
        else:
            shown.append(block)
    return shown


def no_figure(result: Any) -> str:
    """The error for a kind of result without a figure, with what to use instead."""
    return f"{type(result).__name__} has no figure: print it, or take its table, to_pandas()"


def check_conserved(given: int, counted: int, left_out: int, what: str = "texts") -> None:
    """Raise where something was neither counted nor left out with a reason.

    Raises:
        HeadscopeError: with the three numbers.
    """
    if given != counted + left_out:
        raise HeadscopeError(
            f"Of {given} {what}, {counted} were counted and {left_out} left out, so that "
            f"{given - counted - left_out} are lost; this is a bug in headscope, please report it"
        )


RESULT = "result.safetensors"
"""Name of the result that a run leaves in its folder."""
TREE = "scatter_data.json"
"""A file that every tree of HeadVis has."""


def save(record: Record | Result, path: str | os.PathLike[str]) -> Path | str:
    """Write a record, or the result of a study, to one ``.safetensors`` file, whole or not at all.

    Args:
        record: a `Record`, or a result such as that of `headscope.relations`.
        path: the file to write; an existing one is replaced. Also an address that fsspec knows,
            such as ``"hf://datasets/me/records/run.safetensors"`` or ``"s3://..."``.

    Returns:
        The path or the address, as `load` takes it.

    Raises:
        FileError: where it cannot be written, the name of a record does not end in
            ``.safetensors``, or this kind of result cannot be saved.

    Example:
        >>> save(record, "run.safetensors")
    """
    if isinstance(record, Result):
        return record.save(path)
    if not isinstance(record, Record):
        raise FileError(f"save takes a record or a result, and was given {type(record).__name__}")
    return files.save(record, path)


def load(path: str | os.PathLike[str], *, check: bool = False) -> Any:
    """Read a record or the result of a study, whichever a file holds.

    The arrays of a record stay in the file until they are used. The first use of an array compares
    the whole of it with its checksum; afterwards one head is read without the rest. If the file is
    cut or overwritten while the record is open, reading more of it raises an error and never
    returns other numbers; `save` replaces a file without changing open records. A result is read
    as a whole, and every array is compared with its checksum.

    Args:
        path: a file that `save` or the ``save`` of a result wrote; or its address such as
            ``"hf://datasets/me/records/run.safetensors"``: the file is downloaded, and removed when
            the process ends. For a finished run, its folder; for a tree of HeadVis, its own.
        check: for a record, whether to read all of it now and compare every array with its
            checksum.

    Returns:
        A `Record`, or a result: `Heads`, `Mechanism`, `Ablation`, `AlignmentStudy`, `Relations`,
            `Coreference`, `NormStudy`, `Comparison` ... For a tally, the result made from it; for a
            folder of `capture_many`, its records as a `headscope.storage.RecordFolder`.

    Raises:
        FileError: where the file does not exist, is cut, foreign, damaged or of a newer format.
        RecordError: where it was made with patterns of your own, which only `load_tally` and the
            other functions of `headscope.patterns` accept.

    Example:
        >>> load("run.safetensors", check=True)
        >>> load("relations.safetensors")
    """
    local = files.fetched(path)
    # Unlike those of Path, these do not raise where a name is too long.
    if os.path.exists(local / files.INDEX):  # noqa: PTH110
        return files.RecordFolder(local)
    kind = "headvis" if os.path.exists(local / TREE) else ""  # noqa: PTH110
    if os.path.isdir(local) and not kind:  # noqa: PTH112
        local /= RESULT
        if not local.is_file():
            raise FileError(f"{path} has no {RESULT}; give a file, or the folder of a finished run")
    if not kind:
        try:
            return files.load(local, check=check)
        except files.NoRecord as error:
            kind = error.kind
    result = class_of(kind)
    if result is None:
        raise FileError(
            f"{path} holds {kind!r}, which this headscope does not know; update headscope, or pip "
            f"install 'headscope[{kind}]' where it is of an extra"
        )
    return result.load(local)


Function = TypeVar("Function", bound=Callable[..., Any])

PLUGINS: dict[str, tuple[str, ...]] = {
    "figure": ("views.figures",),
    "view": ("views.opening", "views.atlas_page", "headvis"),
    "file": ("atlases", "comparison", "composition", "headvis", "studies", "why"),
}
"""Packages with functions for each use of a result. Names and not imports, because these packages
import this one.
"""
EVERY_KIND = "*"
"""A function for this kind serves all kinds that have none of their own."""
_ENTRIES: dict[tuple[str, str], Callable[..., Any]] = {}
KINDS: dict[str, type] = {}
"""The class of each kind of result, which `Result` enters here."""


def draws(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that draws results of a kind: ``function(result, **options)`` gives a
    figure.

    Args:
        kind: the ``KIND`` of a `Result`, such as ``"relations"``.

    Example:
        >>> @draws("lengths")
        ... def lengths_figure(lengths, **options): ...
    """
    return partial(_enter, ("figure", kind))


def shows(kind: str) -> Callable[[Function], Function]:
    """Decorate a function that shows results of a kind: ``function(result, **options)`` gives a
    view. An entry for `EVERY_KIND` shows those that have none of their own.
    """
    return partial(_enter, ("view", kind))


def drawing_of(result: Any) -> Callable[..., Any] | None:
    """The function that draws this result; None where there is none."""
    return _entry("figure", result)


def view_of(result: Any) -> Callable[..., Any] | None:
    """The function that shows this result; None where there is none."""
    return _entry("view", result)


def class_of(kind: str) -> Any:
    """The class of results of this kind; None where there is none."""
    _import("file")
    return KINDS.get(kind)


def _enter(entry: tuple[str, str], function: Function) -> Function:
    _ENTRIES[entry] = function
    return function


def _entry(use: str, result: Any) -> Callable[..., Any] | None:
    kind = getattr(result, "KIND", None)
    if kind is None:
        return None
    _import(use)
    return _ENTRIES.get((use, kind), _ENTRIES.get((use, EVERY_KIND)))


def _import(use: str) -> None:
    # Importing registers; after the first time it costs nothing.
    for package in PLUGINS[use]:
        if find_spec(f"headscope.{package}") is not None:  # that of an extra may be missing
            importlib.import_module(f"headscope.{package}")
