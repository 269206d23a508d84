"""A translation model run on sentences whose word alignment is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope._progress import counted
from headscope.corpus import asks_for_run
from headscope.errors import RecordError, RunError
from headscope.evidence import parse_groups
from headscope.record import Record
from headscope.studies.alignment._capturing import captured, check_model, digest_of, parsed
from headscope.studies.alignment._file import OPTIONS, load_alignment_study
from headscope.studies.alignment._pair import AlignedPair
from headscope.studies.alignment._result import AlignmentStudy
from headscope.studies.shared._source import check_known_texts

if TYPE_CHECKING:
    from headscope.capturing import ParsedInput

KEPT_EVERY = 20
"""Sentences after which a study is kept that may be resumed."""


def alignment_study(
    model: Any,
    tokenizer: Any,
    pairs: Iterable[AlignedPair],
    *,
    target_tokenizer: Any = None,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: Any,
) -> AlignmentStudy:
    """How well every layer and head of an encoder-decoder aligns words, by weight and by norm.

    Of each layer and head `headscope.word_alignment` against the gold links, for both states; error
    rates of all sentences together with bootstrap intervals over sentences, and the diagonal's;
    the best layer and head, chosen on one half of the sentences and measured on the other. A
    sentence that cannot be captured or whose words are unknown is left out and named.

    Source: Kobayashi et al. 2020, section 5; there the best layer is chosen and measured on the
    same sentences.

    Args:
        model: an encoder-decoder, loaded.
        tokenizer: its tokenizer.
        pairs: sentences with their translations and links.
        target_tokenizer: of the target side, where it is another.
        resume: a file that what was counted is kept in, every 20 sentences; where it is there
            already, go on from it. What is counted with random weights is saved next to it
            (``study.random.safetensors``).
        progress: whether to show a bar on terminals.
        **options: ``groups``, the document of each pair where it does not say so itself;
            ``special`` and ``confidence`` of `AlignmentStudy`; ``random_weights``, for the same of
            this architecture with random weights, ``control`` of the result; ``allow_unfit``, for
            sentences that are mostly unknown tokens, of which one is left out and most are refused
            otherwise (False); ``out``, ``workers``, ``executor`` and ``part_size`` of
            `headscope.corpus.RunOptions`, for a run in parts of a model that may be named, see docs
            page "Over many texts".

    Raises:
        RunError: of a run, see `headscope.corpus.run`.
        ModelError: a model that is not an encoder-decoder.
        TextError: where the tokenizer does not know most of what is in the sentences.
        RecordError: where no sentence is left, two have one name, or what was kept is of another
            model, other weights, other options or other sentences.
        FileError: where the file to resume is none of ours, or cannot be written.

    Example:
        >>> alignment_study(model, tokenizer, [AlignedPair.of("das Haus", "the house", "0-0 1-1")])
        <AlignmentStudy of 1 sentences>
    """
    if asks_for_run(options):
        from headscope.studies.alignment._run import alignment_over

        if resume is not None:
            raise RunError("resume and a run were given; the folder of a run resumes by itself")
        options["progress"] = progress
        grouped = _grouped(pairs, options.pop("groups", None))
        return alignment_over(
            (model, tokenizer), grouped, options, target_tokenizer=target_tokenizer
        )
    from headscope.capturing import ParsedInput, outcome_of, random_twin
    from headscope.capturing.loading.fingerprint import fingerprint_of
    from headscope.capturing.loading.load import display_name

    check_model(model)
    named = _named(_grouped(pairs, options.pop("groups", None)))
    random_weights, anyway = options.pop("random_weights", False), options.pop("allow_unfit", False)
    inputs = {name: outcome_of(parsed, pair) for name, pair in named.items()}
    readers = tokenizer, tokenizer if target_tokenizer is None else target_tokenizer
    if not anyway:
        # All together first: where most of everything is unknown, no sentence need be tried.
        _check_known(readers, [one for one in inputs.values() if isinstance(one, ParsedInput)])

    def study(model: Any, kept: Path | None) -> AlignmentStudy:
        def read(name: str) -> Record:
            return captured(model, (tokenizer, target_tokenizer), inputs[name], allow_unfit=anyway)

        whole = AlignmentStudy(**options)
        whole.fingerprint = fingerprint_of(model)
        if kept is not None and kept.exists():
            whole = _resumed(whole, kept, display_name(model), named)
        _count(whole, named, read, kept=kept, progress=progress)
        if not whole.sentences:
            reason = next(iter(whole.left_out.values()), "none was given")
            raise RecordError(f"alignment_study has no sentence left: {reason}")
        return whole

    path = None if resume is None else Path(resume)
    result = study(model, path)
    if random_weights:
        beside = path and path.with_name(f"{path.stem}.random{path.suffix}")
        result.control = study(random_twin(model), beside)
    return result


def _grouped(pairs: Iterable[AlignedPair], groups: Iterable[Any] | None) -> Iterable[AlignedPair]:
    """The pairs with the documents given for them."""
    if groups is None:
        return pairs
    listed, given = list(pairs), list(groups)
    parse_groups(given, len(listed), "pair")
    return [replace(pair, group=group) for pair, group in zip(listed, given, strict=True)]


def _check_known(readers: tuple[Any, Any], parsed: Sequence[ParsedInput]) -> None:
    """Raise where the tokenizers do not know most of what is in all sentences together."""
    check_known_texts(readers[0], [one.texts[0] for one in parsed])
    check_known_texts(readers[1], [one.target for one in parsed if one.target])


def _named(pairs: Iterable[AlignedPair]) -> dict[str, AlignedPair]:
    named: dict[str, AlignedPair] = {}
    for number, pair in enumerate(pairs):
        name = pair.name or f"{number:06}"
        if name in named:
            raise RecordError(
                f"Two sentences are called {name!r}; give every one a name of its own"
            )
        named[name] = pair
    return named


def _count(
    study: AlignmentStudy,
    named: dict[str, AlignedPair],
    captured: Callable[[str], Record],
    *,
    kept: Path | None,
    progress: bool,
) -> None:
    """Count the sentences that were not counted before, and keep the study on the way."""
    from headscope.capturing.many import OF_ONE_INPUT, reason_of

    left = [(name, pair) for name, pair in named.items() if name not in study]
    for number, (name, pair) in enumerate(counted(left, "Aligning", "sentence", shows=progress), 1):
        # Noted of those left out too, so that a changed sentence is seen whatever became of it.
        study.digests[name] = digest_of(pair)
        try:
            record = captured(name)
        except OF_ONE_INPUT as error:
            study.left_out[name] = str(reason_of(error))
        else:
            study.update(name, record, pair.sure, pair.possible, group=pair.group)
        if kept is not None and (number % KEPT_EVERY == 0 or number == len(left)):
            study.save(kept)


def _resumed(
    fresh: AlignmentStudy, path: Path, model: str, named: dict[str, AlignedPair]
) -> AlignmentStudy:
    """What was kept, where it is of the same model, options and sentences."""
    study = load_alignment_study(path)
    what = _difference(study, fresh, model, named)
    if what:
        raise RecordError(
            f"{path} keeps a study {what}; resume with the same, or name another file"
        )
    study.confidence = fresh.confidence
    return study


def _difference(
    study: AlignmentStudy, fresh: AlignmentStudy, model: str, named: dict[str, AlignedPair]
) -> str:
    """What a study that was kept is of, where it is not of the same as this one."""
    if study.model and study.model != model:
        return f"of the model {study.model}, and this one is {model}"
    if study.fingerprint != fresh.fingerprint:
        return f"of {model} with other weights"
    for name in OPTIONS:
        # Intervals are computed anew, so that another confidence does no harm.
        if name != "confidence" and getattr(study, name) != getattr(fresh, name):
            return f"with {name}={getattr(study, name)!r}"
    for name, digest in study.digests.items():
        if name in named and digest != digest_of(named[name]):
            return f"of another sentence {name!r}"
    return ""
