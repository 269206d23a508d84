"""`alignment_study` over a corpus: in parts, by one process or by many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from headscope.corpus import CorpusText, Engine, Kept, this_process
from headscope.errors import RunError
from headscope.evidence.groups import group_of
from headscope.studies.alignment._capturing import captured, check_model, digest_of
from headscope.studies.alignment._file import OPTIONS, alignment_study_of
from headscope.studies.alignment._pair import AlignedPair
from headscope.studies.alignment._result import AlignmentStudy
from headscope.studies.alignment._sums import summed_alignment
from headscope.studies.shared._corpus_job import check_unique
from headscope.studies.shared._corpus_run import run_study, taken
from headscope.studies.shared._counted_texts import CountingMeasurer, OneByOneJob, row_name


@dataclass(frozen=True, kw_only=True)
class AlignmentJob(OneByOneJob):
    """What a run of `alignment_study` does to each sentence.

    Args:
        target_tokenizer: of the target side, where it is another: its name, or in this process
            itself.
    """

    STUDY: ClassVar[str] = "alignment"
    HAS_SUMS: ClassVar[bool] = True
    target_tokenizer: Any = None

    def options(self) -> dict[str, Any]:
        """What the numbers depend on, known before a model is loaded."""
        target = self.target_tokenizer
        named = target if target is None or isinstance(target, str) else type(target).__name__
        return super().options() | {"target_tokenizer": named}

    def check_engine(self, engine: Engine) -> None:
        """Raise where the tokenizer of the target would have to go to other processes."""
        is_named = self.target_tokenizer is None or isinstance(self.target_tokenizer, str)
        if not is_named and engine.name != this_process().name:
            raise RunError(
                "A loaded target_tokenizer cannot go to other processes; give its name or folder"
            )

    def texts_of(self, text: CorpusText) -> Sequence[str]:
        """What the tokenizer reads of a sentence."""
        if self.target_tokenizer is not None:
            return [text.given["source"]]
        return [text.given["source"], text.given["target"]]

    def check(self, measurer: Any, texts: Sequence[CorpusText]) -> dict[str, Any]:
        """Raise where the model does not read one sentence and write another."""
        check_model(measurer.model)
        return super().check(measurer, texts)

    def empty(self, **judging: Any) -> AlignmentStudy:
        """The study, of no sentence."""
        return AlignmentStudy(**dict(self.how), **judging)

    def study_of(self, measurer: CountingMeasurer, text: CorpusText) -> AlignmentStudy:
        """The study of one sentence."""
        from headscope.capturing.loading.fingerprint import fingerprint_of

        pair, name = _pair_of(text.given), text.given["name"] or text.name
        readers = measurer.tokenizer, _tokenizer(self.target_tokenizer)
        study = self.empty()
        study.fingerprint = fingerprint_of(measurer.model)
        study.digests[name] = digest_of(pair)
        record = captured(measurer.model, readers, pair, allow_unfit=self.allow_unfit)
        study.update(name, record, pair.sure, pair.possible)
        if name in study.left_out:
            raise RunError(study.left_out[name])
        return study

    def renamed(self, study: AlignmentStudy, text: CorpusText, number: int) -> AlignmentStudy:
        """A study of one sentence, as of its document; one without a name is known by what it
        says.
        """
        name = text.given["name"] or row_name(text, number)
        again = copy(study)
        again.statistic = study.statistic.renamed(name, text.group)
        again.diagonal = study.diagonal.renamed(name, text.group)
        again.lengths = dict.fromkeys([name], next(iter(study.lengths.values())))
        again.digests = dict.fromkeys([name], next(iter(study.digests.values())))
        return again

    def restored(self, kept: Kept) -> AlignmentStudy:
        """The study that a part holds."""
        return alignment_study_of(kept, "a part of the run")

    def of_many(
        self, parts: Callable[[], Iterable[AlignmentStudy]], judging: Mapping[str, Any]
    ) -> AlignmentStudy:
        """The study of more sentences than are held, from sums over documents."""
        study = self.empty(**judging)
        for part in parts():
            study.layers, study.heads, study.model = part.layers, part.heads, part.model
            study.fingerprint = part.fingerprint
            study.refused |= part.refused
        study.sums = summed_alignment(parts, study.layers, study.confidence)
        return study

    def note_left_out(self, result: Any, failed: Sequence[Mapping[str, Any]]) -> None:
        """Names and reasons of the sentences that were left out."""
        for each in failed:
            given = each["text"]
            result.left_out[given["name"] or given["source"]] = each["error"]


def alignment_over(
    given: tuple[Any, Any],
    pairs: Iterable[AlignedPair],
    options: dict[str, Any],
    *,
    target_tokenizer: Any = None,
) -> AlignmentStudy:
    """`headscope.studies.alignment_study` as a run.

    Args:
        given: model and tokenizer.
        pairs: with their documents.
        options: of `alignment_study`, of runs and of reading.
        target_tokenizer: its name, or itself.

    Raises:
        RunError: as of `headscope.corpus.run`.
    """
    listed = list(pairs)
    check_unique((pair.name for pair in listed if pair.name), "sentence")
    judging = {"confidence": options.pop("confidence", 0.95)}
    how = taken(options, OPTIONS)
    # Whatever is wrong with the options is said here; and what was not given is as it is usually.
    asked = AlignmentStudy(**how, **judging)
    how = {name: getattr(asked, name) for name in OPTIONS if name not in judging}
    return run_study(
        AlignmentJob,
        given,
        _texts(listed),
        options,
        how={"how": tuple(sorted(how.items())), "target_tokenizer": target_tokenizer},
        judging=judging,
        random_weights=options.pop("random_weights", False),
    )


def _texts(pairs: Iterable[AlignedPair]) -> Iterator[CorpusText]:
    for pair in pairs:
        given = {
            "source": pair.source,
            "target": pair.target,
            "sure": sorted(pair.sure),
            "possible": sorted(pair.possible),
            "name": pair.name,
        }
        yield CorpusText(given, group_of(pair.group))


def _pair_of(given: Mapping[str, Any]) -> AlignedPair:
    sure, possible = (frozenset(map(tuple, given[kind])) for kind in ("sure", "possible"))
    return AlignedPair(given["source"], given["target"], sure, possible, given["name"])


def _tokenizer(target: Any) -> Any:
    return _named_tokenizer(target) if isinstance(target, str) else target


@lru_cache(maxsize=1)
def _named_tokenizer(name: str) -> Any:
    from headscope.capturing import load_tokenizer

    return load_tokenizer(name)
