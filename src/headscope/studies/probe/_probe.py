"""Probes of attention and of hidden states over a treebank, from a model to a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Unpack, get_args

import numpy as np

from headscope.capturing import LOADING, LoadOptions
from headscope.corpus import OPTIONS, CorpusText, RunOptions, Sums, asks_for_run
from headscope.errors import (
    FileError,
    HeadscopeError,
    RecordError,
    TextError,
    check_count,
    check_option_names,
    check_reading,
    listed,
)
from headscope.evidence.groups import check_confidence
from headscope.linguistics import Sentence, read_vectors
from headscope.record import held, part_of
from headscope.results import check_conserved
from headscope.studies.probe._data import ProbeData, ProbeItem, Training, parts_of
from headscope.studies.probe._heads import head_scores
from headscope.studies.probe._read import MAPS, STATES, WORDS
from headscope.studies.probe._result import Probing, Score
from headscope.studies.probe._spans import edge_scores, relation_scores
from headscope.studies.probe._structural import structural_scores
from headscope.studies.shared._fold import taken
from headscope.studies.shared._fold_run import RANDOM, RESULT, passed, texts_in_parts
from headscope.studies.shared._folded import check_unique
from headscope.studies.shared._sentences import given_of, parse_treebank

Kind = Literal["attention", "attention-words", "relation", "structural", "edge"]
KINDS: tuple[str, ...] = get_args(Kind)
FOLDS = {"maps": MAPS, "words": WORDS, "states": STATES}
"""What a model makes of a sentence."""
READS = {"attention-words": "words", "structural": "states", "edge": "states"}
"""Which of these is learnt from; else maps."""


class ProbeOptions(LoadOptions, RunOptions, total=False):
    """How `probe` loads a model that is named, reads, trains and reports."""

    sentences: int | None
    """How many of the treebank's sentences, drawn by the first seed; all by default."""
    most_words: int
    """Longer sentences are left out and named; 128 by default (Clark et al. 2019)."""
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


DEFAULTS: dict[str, Any] = {
    "most_words": 128,
    "split": (0.7, 0.1, 0.2),
    "seeds": (0,),
    "rank": 64,
    "least": 50,
    "layers": True,
    "confidence": 0.95,
    "progress": False,
    "allow_unfit": False,
}
"""Of the options; of the others None."""
TRAININGS = {
    "attention": Training(epochs=20, rate=0.005),
    "attention-words": Training(epochs=20, rate=0.002),
    "relation": Training(epochs=30, rate=0.005, decay=1e-5),
    "structural": Training(epochs=40, rate=0.002, drop=0.1, patience=5),
    "edge": Training(epochs=20, rate=0.001, patience=2),
}
"""How each kind of probe is trained by default."""


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
        CaptureError: a model whose attention cannot be captured.
        ModelError: a model without hidden states, where these are learnt from.
        FileError: a treebank or table of vectors that cannot be read.

    Example:
        >>> print(probe(None, None, "en_ewt-ud-train.conllu", kind="structural", sentences=2000))
    """
    given: dict[str, Any] = dict(options)
    reading = taken(given, (*LOADING, *OPTIONS))
    plan, out = _plan(kind, given), reading.get("out")
    numbered = enumerate(parse_treebank(treebank), 1)
    bank = [replace(each, name=each.name or f"sentence {number}") for number, each in numbered]
    check_unique((sentence.name for sentence in bank), "sentence")
    if asks_for_run(reading):
        # In an order that does not depend on that of their file.
        bank.sort(key=lambda sentence: sentence.name)
    why = f"words are more than most_words={plan.most_words}"
    left_out = {each.name: f"{len(each)} {why}" for each in bank if len(each) > plan.most_words}
    sentences = [sentence for sentence in bank if sentence.name not in left_out]
    if not sentences:
        raise TextError(f"The treebank has no sentence of at most {plan.most_words} words")
    # The first so many of one permutation, so that a larger number holds the sentences of a smaller
    # one, in the order of the treebank.
    drawn = np.random.default_rng(plan.seeds[0]).permutation(len(sentences))[: plan.sentences]
    sentences = [sentences[number] for number in sorted(drawn)]
    asked = len(left_out) + len(sentences)
    reading |= {"progress": plan.progress, "allow_unfit": plan.allow_unfit}
    if plan.on_error is not None or not asks_for_run(reading):
        # They are named one by one when all are read, and in the result.
        reading["on_error"] = passed
    how = {"reads": READS.get(kind, "maps")}
    if kind == "attention-words" and plan.vectors is not None:
        how["reads"] = "maps"
    fold = FOLDS[how["reads"]]
    texts = (CorpusText(given_of(each), each.document or None) for each in sentences)
    with texts_in_parts(fold, (model, tokenizer), texts, reading) as parts:
        both = [parts.folded(fold, how, {})]
        if random_weights:
            both.append(parts.folded(fold, how, {}, random=True, place=RANDOM))
        for read in both:
            left_out |= read.left_out
        for name, why in left_out.items():
            (plan.on_error or passed)(name, RecordError(why))
        read = [each for each in sentences if each.name not in left_out]
        check_conserved(asked, len(read), len(left_out), "sentences")
        result = replace(_learnt(kind, plan, both, read), left_out=left_out)
        if out is not None:
            result.save(Path(out) / RESULT)
    return result


def _learnt(
    kind: str, plan: SimpleNamespace, both: Sequence[Sums], sentences: Sequence[Sentence]
) -> Probing:
    """What is learnt of what was read."""
    vectors, sides = None, []
    if kind == "attention-words" and plan.vectors is not None:
        vectors = vectors_in(Path(plan.vectors), sentences)
    for read in both:
        sides.append(_items_of(read, sentences, vectors))
        if kind == "attention-words":
            # Random weights have the vectors of the model: nothing but its attention is lacking.
            vectors = [held(item, "vectors") for item in sides[0]]
    parts = parts_of(sentences, plan.split, plan.seeds[0])
    data = ProbeData(sides[0], sides[1] if sides[1:] else None, parts)
    scores, facts = _trained(kind, data, plan)
    return Probing(
        kind=kind,
        model=both[0].facts["model"],
        scores=scores,
        sentences=(len(parts[0]), len(parts[1]), len(parts[2])),
        seeds=plan.seeds,
        confidence=plan.confidence,
        facts=facts,
        words=float(np.median([len(item) for item in data.part(2)])),
    )


def _trained(
    kind: str, data: ProbeData, plan: SimpleNamespace
) -> tuple[tuple[Score, ...], dict[str, Any]]:
    """The scores, means over the seeds, and the facts of the first seed."""
    how = TRAININGS[kind]
    how = replace(how, epochs=plan.epochs or how.epochs, rate=plan.rate or how.rate)
    train: Callable[..., Any] = {
        "relation": partial(relation_scores, least=plan.least),
        "structural": partial(structural_scores, layer=plan.layer, rank=plan.rank),
        "edge": partial(edge_scores, layers=plan.layers, least=plan.least),
    }.get(kind, head_scores)
    runs = [train(data, replace(how, seed=seed, progress=plan.progress)) for seed in plan.seeds]
    facts = runs[0][1]
    if len(runs) > 1 and "layer" in facts:
        facts["layers of the seeds"] = tuple(own["layer"] for _, own in runs)
    documents = tuple(each.sentence.document for each in data.part(2))
    # Sentences are divided by the first seed alone, so that every seed has hits of the same ones,
    # in the same order of scores.
    same = zip(*(of_seed for of_seed, _ in runs), strict=True)
    return tuple(_mean_of(own, documents) for own in same), facts


def _mean_of(scores: Sequence[Score], documents: tuple[str, ...]) -> Score:
    """The mean over seeds of one score, with the document of each sentence where any has one."""
    groups = tuple(name or None for name in documents) if any(documents) else None
    hits = np.mean([score.hits for score in scores], axis=0)
    seeds = tuple(score.value for score in scores)
    return replace(scores[0], hits=hits, seeds=seeds, groups=groups)


def _items_of(
    read: Sums, sentences: Sequence[Sentence], vectors: Sequence[Any] | None
) -> list[ProbeItem]:
    """Sentences with what the model made of them, whose arrays are in the files of a run."""
    arrays = {name: own for (name, _), own in read.each.items()}
    items = []
    for number, sentence in enumerate(sentences):
        own = dict(arrays[sentence.name])
        # Small, and asked for word by word.
        if "pieces" in own:
            own["pieces"] = part_of(own["pieces"])
        if vectors is not None:
            own["vectors"] = vectors[number]
        items.append(ProbeItem(sentence=sentence, **own))
    return items


def vectors_in(path: Path, sentences: Sequence[Sentence]) -> list[np.ndarray]:
    """The vectors of the words of sentences from a file in GloVe's text format; zeros for words
    that are not in it.

    Raises:
        FileError: where it cannot be read, or holds none of the words.
        RecordError: where it is malformed.
    """
    forms = [[word.lower() for word in sentence.words] for sentence in sentences]
    wanted = {form for own in forms for form in own}
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
    return [np.stack([table.get(form, none) for form in own]) for own in forms]


def _plan(kind: str, options: dict[str, Any]) -> SimpleNamespace:
    """The options, checked."""
    if kind not in KINDS:
        raise RecordError(f"There is no probe {kind!r}; there are {', '.join(KINDS)}")
    known = ProbeOptions.__annotations__
    check_option_names("probe", options, known)
    plan = SimpleNamespace(**dict.fromkeys(known) | DEFAULTS | options)
    split = listed(plan.split, "three shares as split")
    for share in split:
        check_confidence(share, "a share of split")
    # Shares such as 0.7, 0.1 and 0.2 miss 1 in the last binary place.
    if (len(split), round(sum(split), 6)) != (3, 1):
        raise RecordError(f"split is three shares above 0 that sum to 1, not {plan.split}")
    seeds = listed(plan.seeds, "numbers as seeds")
    plan.seeds = tuple(check_count("a seed", seed, 0) for seed in seeds)
    if not seeds:
        raise RecordError("seeds is empty; give at least one")
    check_confidence(plan.confidence)
    check_reading(vars(plan))
    for name in ("sentences", "most_words", "epochs", "rank", "least"):
        if getattr(plan, name) is not None or DEFAULTS.get(name) is not None:
            check_count(name, getattr(plan, name))
    return plan
