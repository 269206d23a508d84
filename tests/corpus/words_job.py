"""A job without a model, whose texts can end or spoil what measures them."""

import json
import os
import signal
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headscope.corpus import run

STEPS = 2.0**30
"""In one, of sums of whole numbers, which add up to the same bits in any order."""


def obey(word):
    kind, _, file = word.partition(":")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "raise":
        raise ZeroDivisionError("it says raise")
    # once: only where the file is not there yet
    if kind == "die-once" and not Path(file).exists():
        Path(file).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "count":
        with Path(file).open("a") as log:
            log.write(f"{os.getpid()}\n")


class WordsTally:
    def __init__(self):
        self.total, self.texts = np.zeros((2, 3), np.int64), 0
        self.documents = set()

    def update(self, text, values):
        self.total += text.times * np.rint(values * STEPS).astype(np.int64)
        self.texts += text.times
        self.documents.add(text.document)

    def kept(self):
        return {"documents": sorted(self.documents)}, {
            "total": self.total,
            "texts": np.array(self.texts),
        }


@dataclass(frozen=True)
class WordsJob:
    takes: float = 0.0
    weights: str = "a"
    study = "words"
    stage = ""

    def options(self):
        return {"takes": self.takes}

    def begin(self):
        return "nothing"

    def facts(self, loaded):
        return {"weights": self.weights}

    def check(self, loaded, texts):
        assert loaded == "nothing"

    def values_of(self, loaded, texts, failed):
        for place, text in enumerate(texts):
            for word in text.given.split():
                obey(word)
            if "fail" in text.given.split():
                failed(place, ValueError("it says fail"))
                continue
            time.sleep(self.takes)
            lengths = [len(word) for word in text.given.split()]
            yield place, np.outer(np.array([len(lengths), sum(lengths) / 7]), [1.0, 0.1, 1 / 3])

    def tally(self):
        return WordsTally()

    def count(self, tally, text, values):
        tally.update(text, values)

    def beside(self, loaded):
        return {"of": loaded}, {"one": np.ones(2)}


@dataclass
class Merged:
    total: np.ndarray
    texts: int
    documents: int

    @property
    def mean(self):
        return self.total / STEPS / self.texts


def merged(finished):
    total, texts, documents = np.zeros((2, 3), np.int64), 0, set()
    for document, arrays in finished.parts():
        total, texts = total + arrays["total"].read(), texts + int(arrays["texts"].read()[0])
        documents |= set(document["documents"])
    return Merged(total, texts, len(documents))


def digest(finished):
    """Every bit of the result."""
    both = merged(finished)
    told = json.dumps([finished.failed, finished.corpus.texts, finished.corpus.digest])
    return told, {"total": both.total.tobytes(), "texts": both.texts}


@contextmanager
def ran(texts, job=None, out=None, **options):
    """A run whose folder goes with the block, where none is given."""
    options = {"progress": False} | options
    with (
        tempfile.TemporaryDirectory() as own,
        run(job or WordsJob(), texts, out or own, **options) as finished,
    ):
        yield finished


def done(texts, job=None, **options):
    with ran(texts, job, **options) as finished:
        return digest(finished)
