"""The folder of a run: its texts in parts, the finished parts, and what they were made of."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headscope.corpus._text import CorpusText, Kept, key_of
from headscope.errors import FileError, HeadscopeError, RunError, TextError
from headscope.storage import (
    FileArray,
    RecordFile,
    check_own,
    load_stored,
    local_path,
    reading,
    save_kept,
    written_whole,
)

try:
    import fcntl
except ImportError:  # Windows: two runs in one folder are not noticed there
    fcntl = None

CORPUS, RUN, FAILED, LOCK = "corpus.json", "run.json", "failed.jsonl", "run.lock"
TEXTS, PARTS, UNDER_WAY = "texts", "parts", "under_way"
KIND = "part of a run"
LEAST, MOST, PARTS_WANTED = 64, 1000, 16
"""Texts in a part: few parts of a small corpus are still enough for several workers, and of 1,000
texts as many share a length as fill batches.
"""
LINES_HELD = 20_000
"""Lines that wait to be written into the files of their parts."""
SAMPLED = 24
"""Texts that are tried out before a run, at most."""


@dataclass(frozen=True)
class SplitCorpus:
    """A corpus that lies in parts.

    Args:
        texts: how many there are, each as often as it is there.
        digest: of all texts and documents, the same in any order.
        parts: how many texts each part has, by name.
        part_size: how many they should have.
    """

    texts: int
    digest: str
    parts: dict[str, int]
    part_size: int


class RunFolder:
    """A folder that holds one run; it can be worked on by many processes on many machines.

    Args:
        path: of the folder; absolute, since workers may have another working directory.

    Raises:
        FileError: for an address, where no run can be.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = local_path(path).absolute()

    def begin(self) -> None:
        """Make the folder, or check that it holds a run.

        Raises:
            RunError: where it holds something else.
            FileError: where it cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            there = {entry.name for entry in self.path.iterdir()}
        except OSError as error:
            raise FileError(
                f"Cannot make the folder {self.path}: {error.strerror}; choose another place"
            ) from None
        if there and not there & {CORPUS, LOCK, TEXTS}:
            raise RunError(
                f"{self.path} holds {', '.join(sorted(there)[:3])} and no run; give a new or empty "
                "folder, or one of a run that is to go on"
            )
        for name in (TEXTS, PARTS, UNDER_WAY):
            (self.path / name).mkdir(exist_ok=True)

    @contextmanager
    def held(self) -> Generator[None]:
        """No other call may drive this run meanwhile.

        Raises:
            RunError: where one does.
        """
        with (self.path / LOCK).open("w") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunError(
                        f"Another call works in {self.path}; wait for it, or give another folder"
                    ) from None
                except OSError:  # a file system without locks
                    pass
            yield

    def corpus(
        self, texts: Iterable[CorpusText | HeadscopeError], part_size: int | None
    ) -> SplitCorpus:
        """Cut a stream of texts, read once, into parts; where that was done, check that these are
        the same texts.

        Whole documents, or texts without one, go to the part that their hash says.

        Args:
            texts: in any order; errors are inputs that are none.
            part_size: texts in a part; by default 64 to 1,000, a sixteenth of the corpus.

        Raises:
            RunError: where the folder was begun with other texts or another size.
            TextError: where there is no text.
            FileError: where the texts cannot be written.
        """
        try:
            return self._cut(texts, part_size)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(
                f"Cannot write the texts of the run into {self.path}: "
                f"{(error.strerror or str(error)).lower()}; make room and call again"
            ) from None

    def _cut(
        self, texts: Iterable[CorpusText | HeadscopeError], part_size: int | None
    ) -> SplitCorpus:
        begun = self._begun()
        spool, refused = self.path / TEXTS / "all", []
        count = total = 0
        with spool.open("w", encoding="utf-8") as file:
            for number, each in enumerate(texts):
                if isinstance(each, HeadscopeError):
                    refused.append({"input": number, "error": str(each)})
                    continue
                total += int.from_bytes(hashlib.sha256(_line(each).encode()).digest(), "big")
                count += 1
                if begun is None:
                    file.write(_line(each) + "\n")
        digest = f"{total % 2**256:064x}"
        if begun is not None:
            spool.unlink()
            self._check_same(begun, (count, digest, part_size))
            return begun
        if not count:
            spool.unlink()
            raise TextError(_no_text(refused))
        size = part_size or min(MOST, max(LEAST, -(-count // PARTS_WANTED)))
        parts = self._distribute(spool, -(-count // size))
        corpus = SplitCorpus(count, digest, parts, size)
        lines = [f"{json.dumps(each, ensure_ascii=True)}\n" for each in refused]
        _write(self.path / TEXTS / FAILED, "".join(lines))
        _write(self.path / CORPUS, json.dumps(asdict(corpus)))
        return corpus

    def texts(self) -> Iterator[CorpusText | HeadscopeError]:
        """All inputs that were cut into parts, each as often as it is there."""
        begun = self._begun()
        for part in sorted(begun.parts) if begun else ():
            for text in self.texts_of(part):
                for _ in range(text.times):
                    yield CorpusText(text.given, text.group)
        for refused in self.refused():
            yield TextError(refused["error"])

    def texts_of(self, part: str) -> list[CorpusText]:
        """The texts of a part, each (document, text) once, sorted by what they say."""
        path = self.path / TEXTS / f"{part}.jsonl"
        times = Counter(path.read_text(encoding="utf-8").splitlines())
        read = ((json.loads(line), times[line]) for line in sorted(times))
        return [CorpusText(given, group, count) for (group, given), count in read]

    def sample(self, corpus: SplitCorpus) -> list[CorpusText]:
        """Some texts of the first part, in which are those that their hash says."""
        texts = self.texts_of(min(corpus.parts))
        most = min(SAMPLED, max(2, corpus.texts // PARTS_WANTED))
        return texts[:: -(-len(texts) // most)]

    def is_finished(self, part: str) -> bool:
        """Whether the file of a part is there and whole, as far as its header tells, and so are the
        files that it names in its state.

        Raises:
            FileError: where one of these holds another record than its own.
        """
        path = self._file(part)
        try:
            with reading(path, KIND):
                named = RecordFile(path).document["said"]["state"].get("files", ())
                files = [RecordFile(self.path / file) for file in named]
        except FileError:
            # Cut by a machine that stopped, or a file was removed; it is measured again.
            path.unlink(missing_ok=True)
            return False
        for file in files:
            check_own(file)
        return True

    def write_part(self, part: str, document: Mapping[str, Any], kept: Kept) -> None:
        """Write a finished part, whole or not at all."""
        state, arrays = kept
        save_kept(self._file(part), KIND, {**document, "state": state}, arrays)

    def document_of(self, part: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a finished part; its arrays are not read.

        Raises:
            RunError: where it is of another run, named by what differs.
            FileError: where it is damaged.
        """
        with reading(self._file(part), KIND):
            document = dict(RecordFile(self._file(part)).document["said"])
        self._check_made(part, document, facts)
        return document

    def read_part(
        self, part: str, facts: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, FileArray]]:
        """A finished part whose arrays stay in its file.

        Raises:
            RunError: where it is of another run, named by what differs.
            FileError: where it is damaged.
        """
        document, arrays = load_stored(self._file(part), KIND)
        self._check_made(part, document, facts)
        return document, arrays

    def _check_made(self, part: str, document: dict[str, Any], facts: Mapping[str, Any]) -> None:
        before = document["facts"] | {"part": document["part"]}
        differing(f"{self._file(part)} was made", before, {**facts, "part": part})

    def facts(self) -> dict[str, Any] | None:
        """What the run was begun with; None where that is not known yet."""
        return _document(self.path / RUN)

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Say what the run is made of."""
        _write(self.path / RUN, json.dumps(facts, indent=1))

    def refused(self) -> list[dict[str, Any]]:
        """The inputs that were no texts."""
        path = self.path / TEXTS / FAILED
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def write_failed(self, failed: Iterable[Mapping[str, Any]]) -> Path:
        """Name all inputs that were left out, and why."""
        lines = sorted(json.dumps(each, ensure_ascii=True) for each in failed)
        _write(self.path / FAILED, "".join(f"{line}\n" for line in lines))
        return self.path / FAILED

    def _file(self, part: str) -> Path:
        return self.path / PARTS / f"{part}.safetensors"

    def _begun(self) -> SplitCorpus | None:
        begun = _document(self.path / CORPUS)
        return SplitCorpus(**begun) if begun else None

    def _check_same(self, begun: SplitCorpus, now: tuple[int, str, int | None]) -> None:
        count, digest, part_size = now
        if (count, digest) != (begun.texts, begun.digest):
            raise RunError(
                f"{self.path} was begun with other texts ({begun.texts:,}, digest "
                f"{begun.digest[:8]}) than were given now ({count:,}, digest {digest[:8]}); give "
                "the same texts and groups, or another folder"
            )
        if part_size not in (None, begun.part_size):
            raise RunError(
                f"{self.path} was cut into parts of {begun.part_size} texts, and part_size is "
                f"{part_size}; leave it out, or give another folder"
            )

    def _distribute(self, spool: Path, count: int) -> dict[str, int]:
        """Lines to the files of their parts; returns how many each has."""
        for path in (self.path / TEXTS).glob("*.jsonl"):
            path.unlink()
        waiting: dict[str, list[str]] = {}
        sizes: Counter[str] = Counter()
        with spool.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                group, given = json.loads(line)
                # The upper end of the hash times the number of parts: even parts of any number.
                at = key_of("cut", CorpusText(given, group).document) * count >> 64
                name = f"{at:06d}"
                waiting.setdefault(name, []).append(line)
                sizes[name] += 1
                if number % LINES_HELD == 0:
                    self._append(waiting)
        self._append(waiting)
        spool.unlink()
        return dict(sorted(sizes.items()))

    def _append(self, waiting: dict[str, list[str]]) -> None:
        for name, lines in waiting.items():
            with (self.path / TEXTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
                file.writelines(lines)
        waiting.clear()


def differing(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise where two runs are not made of the same.

    Args:
        what: was made of the first.
        before: its facts by name.
        now: those that are wanted.

    Raises:
        RunError: naming what differs.
    """
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not names:
        return
    changes = [f"{name} {_short(before.get(name))}, now {_short(now.get(name))}" for name in names]
    raise RunError(
        f"{what} with something else: {'; '.join(changes)}. Give what it was made with, or another "
        "folder"
    )


def _short(fact: Any) -> str:
    document = json.dumps(fact)
    return document if len(document) < 80 else f"{document[:76]} ..."


def _line(text: CorpusText) -> str:
    # Escaped: a line of JSON is then a line of the file, and halves of characters survive.
    return json.dumps([text.group, text.given], sort_keys=True)


def _no_text(refused: list[dict[str, Any]]) -> str:
    if not refused:
        return "A run was given no text; give a list, a file or a stream of them"
    return f"None of the {len(refused)} inputs of the run is a text: {refused[0]['error']}"


def _document(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _write(path: Path, content: str) -> None:
    with written_whole(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
