"""Probes of attention and of hidden states over a treebank, from a model to a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np

from headscope.capturing import LOADING, LoadOptions
from headscope.corpus import OPTIONS, RunOptions, asks_for_run
from headscope.errors import FileError, HeadscopeError, RecordError, TextError
from headscope.linguistics import Sentence, read_treebank, read_vectors
from headscope.record import held
from headscope.results import check_conserved
from headscope.studies.probe._data import LazySequence, ProbeData, ProbeItem, parts_of
from headscope.studies.probe._edges import edge_scores
from headscope.studies.probe._heads import head_scores
from headscope.studies.probe._read import named, read_over
from headscope.studies.probe._relations import relation_scores
from headscope.studies.probe._result import Probing, Score, over_seeds
from headscope.studies.probe._structural import structural_scores
from headscope.studies.probe._training import TRAININGS, Training
from headscope.studies.shared._corpus_run import RESULT, taken
from headscope.studies.shared._source import passed

Kind = Literal["attention", "attention-words", "relation", "structural", "edge"]
KINDS: tuple[str, ...] = get_args(Kind)


class ProbeOptions(LoadOptions, RunOptions, total=False):
    """How `probe` loads a model that is named, reads, trains and reports."""

    sentences: int | None
    """How many of the treebank's sentences, drawn by the first seed; all by default."""
    most_words: int
    """Longer sentences are left out; 128 by default (Clark et al. 2019)."""
    split: tuple[float, float, float]
    """Shares of the sentences to learn from, to choose epoch and layer by, and to report on; 0.7,
    0.1, 0.2.
    """
    seeds: Sequence[int]
    """Random seeds: probes are trained with each, and scores are means; 0 alone by default. The
    first draws and divides sentences.
    """
    epochs: int | None
    """Most epochs; by default 20 to 30. The one that did best on sentences set aside is kept."""
    rate: float | None
    """Of Adam."""
    vectors: str | os.PathLike[str] | None
    """Words of ``attention-words``: a file in GloVe's text format; by default the model's own input
    embeddings.
    """
    layer: int | None
    """The layer of ``structural``, 0 the embeddings; by default all, and the best on sentences set
    aside.
    """
    rank: int
    """Rank of the map of ``structural``; 64 by default."""
    least: int
    """How often a label of ``relation`` or ``edge`` must be among the sentences learnt from; 50 by
    default.
    """
    layers: bool
    """Whether ``edge`` trains a probe for the layers up to each, for the expected layer; True by
    default.
    """
    confidence: float
    """Of the intervals; 0.95 by default."""
    progress: bool
    """Whether to show bars on terminals."""
    allow_unfit: bool
    """Whether sentences that are mostly unknown tokens are read all the same; False by default."""
    on_error: Callable[[str, HeadscopeError], None] | None
    """Is called with name and error of a sentence that is left out; the result names them in any
    case.
    """


@dataclass(frozen=True, kw_only=True)
class ProbePlan:
    """The options, checked."""

    sentences: int | None = None
    most_words: int = 128
    split: tuple[float, float, float] = (0.7, 0.1, 0.2)
    seeds: tuple[int, ...] = (0,)
    epochs: int | None = None
    rate: float | None = None
    vectors: str | os.PathLike[str] | None = None
    layer: int | None = None
    rank: int = 64
    least: int = 50
    layers: bool = True
    confidence: float = 0.95
    progress: bool = False
    allow_unfit: bool = False
    on_error: Callable[[str, HeadscopeError], None] | None = None

    def __post_init__(self) -> None:
        # Shares such as 0.7, 0.1 and 0.2 miss 1 in the last binary place.
        if len(self.split) != 3 or min(self.split) <= 0 or abs(sum(self.split) - 1) > 1e-9:
            raise RecordError(f"split is three shares above 0 that sum to 1, not {self.split}")
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if not self.seeds:
            raise RecordError("seeds is empty; give at least one")
        if not 0 < self.confidence < 1:
            raise RecordError(f"confidence is a number between 0 and 1, not {self.confidence}")
        for name in ("sentences", "most_words", "epochs", "rank", "least"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise RecordError(f"{name} is at least 1, not {value}")

    def training(self, kind: str) -> Training:
        """How this kind is trained."""
        given = {}
        for name in ("epochs", "rate"):
            if getattr(self, name) is not None:
                given[name] = getattr(self, name)
        return replace(TRAININGS[kind], progress=self.progress, **given)


def probe(
    model: Any,
    tokenizer: Any,
    treebank: str | os.PathLike[str] | Iterable[Sentence],
    *,
    kind: Kind = "attention",
    random_weights: bool = False,
    **options: Unpack[ProbeOptions],
) -> Probing:
    """What can be learnt of syntax from a model's attention or hidden states, and what controls
    can.

    - ``attention``: each word's head from ``softmax_i(sum_k w_k A^k_ij + u_k A^k_ji)`` over all
      heads k, fixed, and candidates i, the root included (Clark et al. 2019, section 5). UAS
      without punctuation.
    - ``attention-words``: weights that depend on the two words' vectors (the same).
    - ``relation``: from the model-wide attention vector of two words, whether there is a relation,
      classes balanced, and which one there is (Coenen et al. 2019, section 3.1); linear, L2.
    - ``structural``: a linear map under which squared distances of hidden states are distances in
      the tree, and squared lengths depths (Hewitt and Manning 2019). UUAS, DSpr, root found, NSpr.
    - ``edge``: part of speech of a word, and relation of a word to its head, from a mix of all
      layers (Tenney et al. 2019); centre of gravity and expected layer.

    Controls: majority, or the best single offset; distances only, or words with distances; the
    control task, whose selectivity is the probe's score less its own (Hewitt and Liang 2019: labels
    drawn for each word type); the embeddings for hidden states; and the same architecture with
    random weights. Documents are divided (sentences where the treebank names none), never words or
    pairs, and no sentence is reported on that was learnt from. A text's words are read with a space
    between them.

    Where ours differs: papers train on the Penn Treebank with Stanford or 30 relations and on far
    more sentences; the epoch is chosen on sentences set aside; Coenen's pairs are divided as pairs;
    Tenney's labels are independent.

    Args:
        model: loaded, by name or folder, or None for the demo model.
        tokenizer: of the model; None where that is named.
        treebank: sentences with their trees, such as `read_treebank` gives, or a CoNLL-U file.
        kind: which probe.
        random_weights: whether the same architecture with random weights is probed, too; the words
            of ``attention-words`` stay those of the model.
        **options: see `ProbeOptions`.

    Raises:
        RecordError: a kind or option there is not.
        TextError: too few sentences, or most of their tokens are unknown to the tokenizer.
        RunError: of a run, see `headscope.corpus.run`: sentences are read in parts, and learnt from
            when all are.
        CaptureError: a model whose attention, or hidden states, cannot be read.
        FileError: a treebank or table of vectors that cannot be read.

    Example:
        >>> print(probe(None, None, "en_ewt-ud-train.conllu", kind="structural", sentences=2000))
    """
    given: dict[str, Any] = dict(options)
    reading = taken(given, (*LOADING, *OPTIONS))
    plan = _plan(kind, given)
    bank = named(read_treebank(treebank) if isinstance(treebank, str | os.PathLike) else treebank)
    if asks_for_run(reading):
        # In an order that does not depend on that of their file.
        bank = tuple(sorted(bank, key=lambda sentence: sentence.name))
    sentences = _drawn([sentence for sentence in bank if len(sentence) <= plan.most_words], plan)
    out = reading.get("out")
    reading |= {"progress": plan.progress, "allow_unfit": plan.allow_unfit}
    if plan.on_error is not None or not asks_for_run(reading):
        # They are named one by one when all are read, and in the result.
        reading["on_error"] = passed
    has_embeddings = kind == "attention-words" and plan.vectors is None
    what = "states" if kind in ("structural", "edge") else "maps"
    how = {"reads": what, "has_embeddings": has_embeddings}
    readers = model, tokenizer
    with read_over(readers, sentences, reading, how=how, random_weights=random_weights) as read:
        if plan.on_error is not None:
            for name, why in read.left_out.items():
                plan.on_error(name, RecordError(why))
        items, others = read.both(sentences)
        check_conserved(len(sentences), len(items), len(read.left_out), "sentences")
        if kind == "attention-words" and plan.vectors is not None:
            items = with_table(Path(plan.vectors), items)
        if others is not None:
            others = _with_vectors_of(items, others)
        data = _data(items, others, plan)
        result = _probing(kind, data, plan, facts=(read.left_out, read.model))
        if out is not None:
            result.save(Path(out) / RESULT)
    return result


def _probing(
    kind: str, data: ProbeData, plan: ProbePlan, *, facts: tuple[dict[str, str], str]
) -> Probing:
    """What is learnt of what was read.

    Args:
        kind: of the probe.
        data: what was read.
        plan: how.
        facts: sentences that were left out, and the name of the model.
    """
    scores, learnt = _trained(kind, data, plan)
    left_out, model = facts
    return Probing(
        scores=scores,
        sentences=(len(data.parts.train), len(data.parts.aside), len(data.parts.test)),
        facts=learnt,
        left_out=left_out,
        kind=kind,
        model=model,
        seeds=plan.seeds,
        confidence=plan.confidence,
        words=float(np.median([len(item.sentence) for item in data.test])),
    )


def with_table(path: Path, items: Sequence[ProbeItem]) -> LazySequence[ProbeItem]:
    """The same with word vectors of a file in GloVe's text format; zeros for words that are not in
    it.

    Raises:
        FileError: where it cannot be read, or holds none of the words.
        RecordError: where it is malformed.
    """
    wanted = {form for item in items for form in item.forms}
    try:
        with path.open(encoding="utf-8") as lines:
            table = read_vectors(lines, wanted)
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read the word vectors {path}: {error}") from None
    if not table:
        raise FileError(
            f"{path} has a vector for none of the {len(wanted)} words; GloVe's text files have "
            "lower case"
        )
    none = np.zeros_like(next(iter(table.values())))

    def with_vectors(number: int) -> ProbeItem:
        item = items[number]
        return item.with_arrays(vectors=np.stack([table.get(form, none) for form in item.forms]))

    return LazySequence(len(items), with_vectors)


def _with_vectors_of(items: Sequence[ProbeItem], twin: Sequence[ProbeItem]) -> Sequence[ProbeItem]:
    """Sentences as random weights read them, with the vectors of the model's words: the twin lacks
    nothing but its attention.
    """
    return LazySequence(
        len(items), lambda at: twin[at].with_arrays(vectors=held(items[at], "vectors"))
    )


def _plan(kind: str, options: Any) -> ProbePlan:
    if kind not in KINDS:
        raise RecordError(f"There is no probe {kind!r}; there are {', '.join(KINDS)}")
    unknown = sorted(set(options) - set(ProbeOptions.__annotations__))
    if unknown:
        raise RecordError(
            f"probe has no option {', '.join(unknown)}; it has "
            f"{', '.join(ProbeOptions.__annotations__)}"
        )
    return ProbePlan(**options)


def _drawn(sentences: list[Sentence], plan: ProbePlan) -> list[Sentence]:
    if not sentences:
        raise TextError(f"The treebank has no sentence of at most {plan.most_words} words")
    if plan.sentences is None or plan.sentences >= len(sentences):
        return sentences
    # The first so many of one permutation, so that a larger number holds the sentences of a smaller
    # one, in the order of the treebank.
    drawn = np.random.default_rng(plan.seeds[0]).permutation(len(sentences))[: plan.sentences]
    return [sentences[number] for number in sorted(drawn)]


def _data(
    items: Sequence[ProbeItem], twin: Sequence[ProbeItem] | None, plan: ProbePlan
) -> ProbeData:
    return ProbeData(
        items, twin, parts_of([item.sentence for item in items], plan.split, plan.seeds[0])
    )


def _trained(
    kind: str, data: ProbeData, plan: ProbePlan
) -> tuple[tuple[Score, ...], dict[str, Any]]:
    """The scores, means over the seeds, and the facts of the first seed."""
    runs, facts = [], []
    for seed in plan.seeds:
        scores, new_facts = _scores(kind, data, plan, seed)
        runs.append({(score.task, score.measure, score.of): score for score in scores})
        facts.append(new_facts)
    # Sentences are divided by the first seed alone, so that every seed has hits of the same ones.
    documents = data.documents
    scores = tuple(
        replace(over_seeds([run[key] for run in runs]), groups=documents) for key in runs[0]
    )
    return scores, facts[0] | (
        {"layers of the seeds": tuple(each["layer"] for each in facts)} if _many(facts) else {}
    )


def _many(facts: Sequence[dict[str, Any]]) -> bool:
    return len(facts) > 1 and "layer" in facts[0]


def _scores(
    kind: str, data: ProbeData, plan: ProbePlan, seed: int
) -> tuple[list[Score], dict[str, Any]]:
    how = replace(plan.training(kind), seed=seed)
    if kind == "relation":
        return relation_scores(data, how, least=plan.least)
    if kind == "structural":
        return structural_scores(data, how, layer=plan.layer, rank=plan.rank)
    if kind == "edge":
        return edge_scores(data, how, layers=plan.layers, least=plan.least)
    scores, epochs = head_scores(data, how)
    return scores, {"epochs": epochs}
