"""What commands are asked, as far as several have it, and what they do with it: read an input or
many texts, run a model or a study, write a result.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import CycloptsError, Group, Parameter
from cyclopts.validators import Number

from headscope.cli import _files as files
from headscope.cli._files import TEXT, hs, left_out, load, quiet, say, status
from headscope.errors import FigureError, FileError, HeadscopeError, RunError, TextError

if TYPE_CHECKING:
    from headscope.capturing import Outcome, ParsedInput
    from headscope.record import Record

ONE_TEXT = "text text_b chat"
INPUT = f"{ONE_TEXT} image video sound"
RESULT = "out plot save"
RUN = "workers dask part_size"
MACHINE = "device dtype revision batch_size trust_remote_code"
FIT = f"{MACHINE} allow_unfit"
MODEL = f"{FIT} model target target_tokenizer truncate"
STUDY = f"{RESULT} {RUN} {MODEL}"
FILES = "beside quantities evidence evidence_of"
PAGE_FILES = f"{FILES} comparison links treebank sentence"
"""Names of fields that commands take together."""
COMMON = "out open_ model texts plot view layer heads query quantity evidence_of"
GROUPED = (
    ("Input", "chat image video sound"),
    ("Model", MODEL),
    ("Many texts", RUN),
    ("Files", PAGE_FILES),
    (
        "Statistics",
        "confidence alpha correction random_weights margin splits seed screen screen_top",
    ),
    ("Writing", "max_new_tokens sample temperature top_p"),
    ("Other", "save share keep_sinks relative"),
    (Group("Common", sort_key=0), COMMON),
)
GROUPS: dict[str, Any] = {name: title for title, names in GROUPED for name in names.split()}
"""Of options, in the help, which explains common ones and those of one command alone first."""
SHORT = {"model": "-m", "out": "-o", "texts": "-t", "layer": "-l", "plot": "-p"}
KeepName = Literal["auto", "weights", "qk", "values", "before", "statistics", "norms", "alti"]
DEVICE = re.compile(r"auto|cpu|(cuda|mps|xpu)(:\d+)?")
FAILED = "failed.jsonl"
Count = Annotated[int | None, Parameter(validator=Number(gte=1))]


def _device(_: Any, given: str | None) -> None:
    """Refuse an impossible name of a device before torch is imported; whether the device exists is
    known only to torch.
    """
    if given is not None and not DEVICE.fullmatch(given):
        raise ValueError(f"Expected auto, cpu, cuda, cuda:1, mps or xpu, got {given!r}.")


@dataclass(frozen=True)
class Request:
    """What a command was asked, of the options that it has; the others are as if not given."""

    text: str | None = None
    """The text to read; leave it out for models of pictures or sounds alone."""
    text_b: str | None = None
    """The second text of a sentence pair."""
    chat: Path | None = None
    """A conversation to read in place of a text: a .json file with a list of messages, each with
    role and content.
    """
    texts: Path | None = None
    """A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields text,
    text_b and group (the document of a text; intervals are then over documents).
    """
    image: Annotated[tuple[Path, ...], Parameter(consume_multiple=False)] = ()
    """A picture; give it several times if the text has a place for each."""
    video: Path | None = None
    """A video: a folder of pictures, a GIF, a .npy file, or a film (headscope[video])."""
    sound: Path | None = None
    """A sound file (.wav), at the sampling rate of the model."""
    out: Path | None = None
    """Write the table of the result to this file (.csv, .json or .parquet), or its page (.html),
    besides printing it; or keep the finished parts of a run in this folder, so that the same
    command resumes after them.
    """
    plot: Path | None = None
    """Draw the result to this file (.svg, .pdf or .png)."""
    save: Path | None = None
    """Save the result with all its numbers to this file (.safetensors), for headscope.load."""
    keep: Annotated[tuple[KeepName, ...], Parameter(consume_multiple=False)] = ("auto",)
    """What to store; may be given several times. weights; qk for queries and keys, from which
    weights follow exactly; values; before for queries and keys before positions are applied;
    statistics for numbers about every row without the row; norms for the norms of contributions.
    auto stores queries, keys and values, and weights as long as these stay below 256 MiB.
    """
    keep_heads: tuple[str, ...] = ()
    """Heads to store, as layer and head: 12-7 3-0, or cross:3-0 for one stack; by default all."""
    at: tuple[str, ...] = ()
    """Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; by default all heads,
    which are grouped by their labels.
    """
    beside: tuple[str, ...] = ()
    """Further records (.safetensors), or for a page texts that the same model reads; the tray calls
    them b, c ...: --tray 2-0 "2-0 record=b". For serve --model: one second model (hub name or
    folder), to compare the first with on what is typed.
    """
    quantities: Path | None = None
    """Further quantities: a .npz with an array for each, axes layer, query, key, or layer, head,
    query, key. It is called as the quantity is, or cross/NAME for stack cross.
    """
    evidence: bool = False
    """Say what kinds of heads there are; seen on this one text, which the page says."""
    evidence_of: Path | None = None
    """The same over texts (.txt, .jsonl, .csv, .tsv, .parquet), heads that were kept, or relations
    of a .conllu.
    """
    comparison: Path | None = None
    """The record (.safetensors) that this one is compared with: the page shows how they differ."""
    links: Path | None = None
    """Gold links that are shown next to what heads attend to: a .json with a list of [tokens of a
    dependent, tokens of its head, label], tokens being positions from 0; for trees see --treebank.
    """
    treebank: Path | None = None
    """A treebank in CoNLL-U, such as en_ewt-ud-dev.conllu."""
    sentence: str | None = None
    """Which sentence of the treebank: its sent_id, or its number, counted from 0; the first by
    default.
    """
    open_: Annotated[bool, Parameter(name="--open")] = False
    """Open the page in the browser."""
    workers: Count = None
    """Number of processes that run at once."""
    dask: str | None = None
    """Address of a Dask scheduler that runs the parts, such as tcp://10.0.0.1:8786; local starts
    one on this machine, with --workers processes.
    """
    part_size: Count = None
    """Texts in a part, which is kept when it is done; by default 64 to 1,000."""
    device: Annotated[str, Parameter(validator=_device)] = "auto"
    """Device that the model runs on: auto (the first CUDA GPU if there is one, else the CPU), cpu,
    cuda, cuda:1, mps, xpu.
    """
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"] = "auto"
    """Precision of the model's weights: auto is that of its files; on a CPU, half precision is
    loaded as float32.
    """
    revision: str | None = None
    """Branch, tag or commit of the model on the hub; by default the main branch."""
    batch_size: Count = None
    """Maximum number of texts that run at once; by default as many as have 4096 tokens
    (support: 2).
    """
    trust_remote_code: bool = False
    """Run code that comes with the model's files."""
    allow_unfit: bool = False
    """Run a model or texts that do not fit the question anyway: an untrained head, a model that
    sees the word it predicts, texts of mostly unknown tokens.
    """
    model: str | None = None
    """Hub name or folder; by default all-MiniLM-L6-v2, from the extra "demo"."""
    target: str | None = None
    """Text for the decoder of an encoder-decoder; by default what the model generates."""
    target_tokenizer: str | None = None
    """Hub name or folder of the tokenizer of the target side, if it has its own."""
    truncate: bool = False
    """Truncate texts that are too long for the model, instead of stopping."""

    @property
    def loading(self) -> dict[str, Any]:
        """The options of `headscope.capturing.LoadOptions`."""
        names = ("device", "dtype", "revision", "trust_remote_code")
        return {name: getattr(self, name) for name in names}

    @property
    def fitting(self) -> dict[str, Any]:
        """The options of loading, and whether an unfit model is taken."""
        return self.loading | {"allow_unfit": self.allow_unfit}

    @property
    def many(self) -> dict[str, Any]:
        """How many texts are read, as `headscope.capture_many` and studies take it."""
        many = {} if self.batch_size is None else {"batch_size": self.batch_size}
        return {"allow_unfit": self.allow_unfit} | many

    @property
    def media(self) -> dict[str, Any]:
        """Pictures, video and sound, as options of `headscope.capture`."""
        image = self.image[0] if len(self.image) == 1 else list(self.image)
        given = {"image": image or None, "video": self.video, "sound": self.sound}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def kept(self) -> dict[str, Any]:
        """What a record holds, as options of `headscope.capture`."""
        what = "auto" if self.keep == ("auto",) else self.keep
        return {"keep": what, "heads": files.parse_heads(self.keep_heads)}

    @property
    def folder(self) -> Path | None:
        """The folder of a run that ``--out`` names; None for a file."""
        return self.out if files.is_folder(self.out) else None

    @property
    def place(self) -> Path:
        """What ``--out`` names, of a command that needs it."""
        return self.out or Path()

    @property
    def is_run(self) -> bool:
        """Whether there are options of runs in parts."""
        return (self.workers, self.dask, self.part_size) != (None, None, None)

    @property
    def in_parts(self) -> bool:
        """Whether the texts are measured as a run in parts: with workers, or with a folder."""
        return self.folder is not None or self.is_run

    def of_model(self, **more: Any) -> Request:
        """The same model, asked nothing but what is given here."""
        return Request(**{name: getattr(self, name) for name in MODEL.split()} | more)

    def check_model(self) -> None:
        """Raise where no model can have this name, before torch is imported.

        Raises:
            ModelError: naming the form of a model's name.
        """
        files.check_model(self.model, self.revision)
        files.check_model(self.target_tokenizer)

    def tokenizer_of_target(self) -> Any:
        """The tokenizer of the target side, loaded; None where it has none of its own."""
        name, trusted = self.target_tokenizer, self.trust_remote_code
        return name and load("load_tokenizer", name, trust_remote_code=trusted)

    def config(self) -> Any:
        """The configuration of the model, or of the part of it that reads text."""
        self.check_model()
        config = hs.capturing.loading.config_of(self.model, **self.loading)
        return getattr(config, "get_text_config", lambda: config)()

    def parsed(self) -> ParsedInput:
        """The input, parsed, and its pictures and sound read, before anything is loaded.

        Raises:
            CycloptsError: where nothing was given, which is wrong usage.
            FileError: a file that does not exist.
            TextError: saying what cannot be combined.
        """
        text, text_b = files.text_or_chat(self.text, self.chat, self.text_b), self.text_b
        media = self.media
        if text is None and not media:
            raise CycloptsError(
                msg="Expected a text, or a picture, video or sound with --image, --video or --sound"
            )
        if text_b is not None and media:
            raise TextError(f"A picture, video or sound goes with one text only; remove {text_b!r}")
        options = {"target": self.target} | media
        return hs.capturing.parse_call(text, text_b, options).in_memory()

    def given(self) -> tuple[list[Outcome], Any]:
        """The texts of a study, parsed, and the documents that they are of, where these are
        known.
        """
        parsed = files.parse_texts(self.text, self.text_b, self.texts, self.chat)
        return parsed, hs.capturing.groups_in(self.texts)

    def captured(self, given: ParsedInput, out: Path | None = None, **more: Any) -> Record:
        """The record of an input, which is parsed already.

        Args:
            given: the input.
            out: file that the record goes to layer by layer, after a line that lists what will be
                stored; None for none.
            **more: options of `headscope.capture`.

        Raises:
            HeadscopeError: errors of the input, the model or the file to write.
        """
        self.check_model()
        model, tokenizer = load("load_for", self.model, given, **self.loading)
        more |= {"truncate": self.truncate, "target_tokenizer": self.tokenizer_of_target()}
        if out is not None:
            with status("Counting what is kept"), quiet():
                counted = hs.capturing.budget(model, tokenizer, given, **more)
            say(f"This {counted}")
            more["out"] = out
        with status("Capturing"), quiet():
            return hs.capturing.capture(model, tokenizer, given, **more)

    @contextmanager
    def reading(
        self, groups: Any = None, *, classifies: bool = False
    ) -> Generator[tuple[tuple[Any, Any], dict[str, Any]]]:
        """What a study reads with, for a ``with`` block: the model and its tokenizer, or the name
        of the model where the study runs in parts; and how it reads.

        Args:
            groups: the documents of the texts, where these are known.
            classifies: whether the model must have a trained classifier.
        """
        if self.target is not None or self.target_tokenizer is not None:
            raise TextError(
                "--target and --target-tokenizer are for commands that read one text; remove them"
            )
        self.check_model()
        how: dict[str, Any] = {"truncate": self.truncate} | self.many
        how |= {} if groups is None else {"groups": groups}
        if self.in_parts:
            with self._running() as more:
                yield (self.model, None), how | self.loading | more
            return
        if classifies:
            network = load("load_bare_model", self.model, head="class", **self.loading)
            source = network, load("load_tokenizer", self.model, **self.loading)
        else:
            source = load("load_model", self.model, **self.loading)
        how["progress"] = True
        if left_out.what == TEXT:
            # One of many texts may be left out; a single one that cannot be read is an error.
            # What is not a plain text is reported by the result.
            how["on_error"] = left_out.losing(left_out.of)[0]
        yield source, how

    @contextmanager
    def _running(self) -> Generator[dict[str, Any]]:
        """Options of `headscope.corpus.RunOptions`, for a ``with`` block; what was left out is
        counted at its end.

        Raises:
            RunError: where Dask is not installed, or no scheduler answers.
            FileError: where the folder cannot be written to.
        """
        folder = self.folder
        if folder is not None:
            files.check_folder(folder)
        reasons: list[HeadscopeError] = []
        options: dict[str, Any] = {"part_size": self.part_size, "out": folder}
        options["on_error"] = lambda _, error: reasons.append(error)
        if self.dask is None:
            yield options | {"workers": self.workers}
        elif self.workers is not None and self.dask != "local":
            raise RunError(
                "--workers is for this machine or --dask local; a cluster has its own workers"
            )
        else:
            with hs.corpus.dask_cluster(self.dask, self.workers) as executor:
                yield options | {"executor": executor}
        if reasons:
            left_out.end_run(reasons, None if folder is None else folder / FAILED)

    def run(
        self, study: str, given: Any, groups: Any = None, *, what: str = "", **options: Any
    ) -> Any:
        """What the function of `headscope.studies` of this name finds in what is given, each of
        which is called ``what`` where it is not a plain text; see `reading`.
        """
        if what:
            left_out.begin(what, len(given))
        with self.reading(groups, classifies=study == "faithfulness") as (source, how):
            return getattr(hs.studies, study)(*source, given, **how | options)

    def check(self, *, folder: bool = False) -> None:
        """Raise where a result could not be written.

        Args:
            folder: whether ``--out`` may be the folder of a run.

        Raises:
            FileError: saying why.
            FigureError: where figures cannot be drawn.
        """
        table = None if folder and self.folder is not None else self.out
        files.check_file("--out", table, (*files.TABLES, files.PAGE))
        files.check_file("--plot", self.plot, files.PICTURES)
        files.check_file("--save", self.save, (files.RECORD,))
        if table is not None and table.suffix == ".parquet" and find_spec("pyarrow") is None:
            raise FileError(f"{table} needs pyarrow: pip install 'headscope[tables]', or use .csv")
        if self.plot is not None and find_spec("matplotlib") is None:
            raise FigureError("--plot needs matplotlib: pip install 'headscope[figures]'")

    def tell(self, result: Any, **look: Any) -> None:
        """Print a result, and where the model ran; write its table or page, draw it, and save it,
        where files are given.

        Args:
            result: a `headscope.results.Result`.
            **look: options of its figure.
        """
        # Plain texts were reported by their numbers while they were read.
        if not self.in_parts and left_out.what != TEXT:
            left_out.names |= getattr(result, "left_out", None) or {}
        say(str(result))
        files.say_where()
        table = self.out if self.folder is None else None
        if table is not None:
            with status("Writing"):
                if table.suffix == files.PAGE:
                    result.view().save(table)
                else:
                    files.write_table(table, result.columns(), result.to_arrow)
        if self.save is not None:
            result.save(self.save)
        if self.plot is not None:
            with status("Drawing"):
                result.plot(self.plot, **look)
        for path in filter(None, (table, self.plot, self.save)):
            say(f"Wrote {path.resolve()}")
