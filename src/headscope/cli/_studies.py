"""Commands that study a model over texts, plain or annotated: treebanks, mentions, sentence pairs,
tasks.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import reduce
from operator import add as added
from pathlib import Path
from typing import Any

from headscope.cli import _files as files
from headscope.cli._asked import MODEL, ONE_TEXT, RUN, STUDY, Request
from headscope.cli._files import hs, left_out, say, warnings_as_lines
from headscope.cli._signature import made_from
from headscope.errors import FigureError, ModelError, RecordError, TextError

HEADS = ("headscope.studies:heads", "headscope.patterns:heads", "headscope.patterns:Heads")
JUDGED = "stack confidence alpha correction random_weights margin"
"""Options of labels of heads."""
SCORED = "word_rows=rows random_weights stack confidence correction seed splits"
"""How heads are scored, and how the best one is chosen."""
FEW = "are too few to tell up to"
"""Part of the warning about too few texts of `headscope.studies.heads` and other studies."""
MOST_DRAWN = 12
STEPS = 500
"""Of the search of an adversary."""
TEXTS = f"{ONE_TEXT} texts {STUDY}"


@made_from(*HEADS, takes=f"{TEXTS} {JUDGED} position_mean related")
def heads(asked: Request, *, battery: bool = True, classes: bool = False, **options: Any) -> None:
    """Classify the heads of a model by their patterns, with evidence.

    headscope heads "I went to the store."

    headscope heads --texts texts.txt --plot heads.svg --out heads.csv

    Args:
        asked: Texts and model.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        classes: With --plot: draw the classes of Kovaleva et al. per layer instead, as stacked
            bars.
        position_mean: Also compare patterns of content with the mean map by position.
        **options: Of `headscope.heads`.
    """
    if classes and asked.plot is None:
        raise FigureError("--classes needs a file to draw to; add --plot classes.svg")
    given, groups = asked.given()
    options |= {"battery": battery, "distances": _adds_distances(asked.folder, asked.plot)}
    with warnings_as_lines(FEW):
        result = asked.run("heads", given, groups, **options)
    asked.tell(result, **({"classes": True} if classes else {}))


def _adds_distances(folder: Path | None, plot: Path | None) -> bool:
    """Whether distances of heads are added up, for the map of them in a figure."""
    begun = None if folder is None else hs.corpus.RunFolder(folder).facts()
    if begun is None:
        return plot is not None
    # Parts that are kept have them or not, whatever is drawn now.
    has = bool(begun.get("distances"))
    if plot is not None and not has:
        sys.stderr.write(
            f"headscope: {plot} has no map of all heads, since the run in {folder} was begun "
            "without --plot and added up no distances of heads; give another folder to have it\n"
        )
    return has


@made_from("headscope.studies:norm_study", takes=f"{TEXTS} stack confidence random_weights")
def norms(asked: Request, **options: Any) -> None:
    """Compare attention weights with norm-based contributions.

    headscope norms "I went to the store."

    headscope norms --texts texts.txt --plot shares.svg
    """
    asked.tell(asked.run("norm_study", *asked.given(), **options))


@made_from(
    "headscope.studies:mechanism", takes=f"{TEXTS} at pattern stack confidence random_weights"
)
def mechanism(asked: Request, **options: Any) -> None:
    """Find the query/key neurons and embeddings behind a head's pattern.

    headscope mechanism --texts texts.txt

    headscope mechanism --texts texts.txt --at 2-0 7-3 --plot neurons.svg

    Args:
        asked: Texts and model.
        pattern: Which keys to explain: a pattern such as sep or next, or a rule such as "word ->
            first"; by default the most attended ones.
        **options: Of `headscope.mechanism`.
    """
    given, groups = asked.given()
    cells = _cells_of(asked)
    if asked.plot is not None and not 0 < len(cells) <= MOST_DRAWN:
        raise RecordError(
            f"Expected 1 to {MOST_DRAWN} heads with --at for --plot, such as --at 2-0 7-3, got "
            f"{' '.join(asked.at) or 'none'}"
        )
    with asked.reading(groups) as (source, how):
        result = hs.studies.mechanism(*source, given, at=cells or None, **options, **how)
    asked.tell(result)
    if not cells and len(given) > 1 and not asked.in_parts:
        # The texts are read a second time, for the labels: those left out have been named already.
        how |= {"on_error": lambda *_: None, "progress": False}
        with warnings_as_lines(FEW):
            labels = hs.studies.heads(*source, given, stack=options.get("stack"), **how).by_label()
        if result.grouped(labels).all:
            say(f"\n{result.grouped(labels)}")


def _cells_of(asked: Request) -> list[tuple[int, int]]:
    cells = []
    for layer, numbers in files.parse_places(asked.at, "--at"):
        heads = numbers or range(asked.config().num_attention_heads)
        cells += [(layer, head) for head in heads]
    return cells


@made_from(
    "headscope.studies:faithfulness",
    "headscope.studies:CounterfactualAttention",
    takes=f"{TEXTS} permutations seed layer confidence random_weights",
)
def faithfulness(
    asked: Request, *, query: str = "0", adversary: bool = False, **options: Any
) -> None:
    """Check whether attention agrees with gradients and leave-one-out importance.

    headscope faithfulness "a fine film" --model path/to/a/classifier

    headscope faithfulness --texts texts.txt --model path/to/a/classifier --query "[CLS]"

    Args:
        asked: Texts and the classifier, which the demo model is not.
        query: Token that the classifier reads: its position from 0 (-1 is the last), or its word,
            such as [CLS].
        adversary: Also search for different attention that gives the same prediction: about half a
            minute per text.
        layer: Layer number, from 0; -1 is the last.
        **options: Of `headscope.faithfulness`.
    """
    given, groups = asked.given()
    asked.check_model()
    shuffled = {name: options.pop(name) for name in ("permutations", "seed") if name in options}
    shuffled["adversary"] = STEPS if adversary else 0
    options["counterfactual"] = hs.studies.CounterfactualAttention(**shuffled)
    options["query"] = files.position_or_word(query)
    asked.tell(asked.run("faithfulness", given, groups, **options))


@made_from(*HEADS, "headscope.studies:atlas", takes=f"texts! out! {RUN} {MODEL} {JUDGED}")
def atlas(asked: Request, *, battery: bool = True, norms: bool = False, **options: Any) -> None:
    """Make an atlas of a model's heads over many texts, with examples.

    headscope atlas --texts texts.txt --out atlas

    headscope atlas --texts texts.txt --model path/to/a/llama --workers 2 --out atlas

    Args:
        asked: Texts, folder and model.
        out: Write the parts of the run and the atlas to this folder; the same command resumes after
            the finished parts, and headscope serve shows its page.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        norms: Count, too, where what each head adds comes from: attention weighted by the norm of
            the vector that each token adds. Takes longer.
        **options: Of `headscope.atlas`.
    """
    files.check_folder(asked.place)
    result = asked.run("atlas", *asked.given(), battery=battery, norms=norms, **options)
    say(str(result))
    say(f"Wrote {result.view().save(asked.place / 'page').resolve()}")


@made_from(
    "headscope.studies:relations",
    "headscope.studies:Relations",
    takes=f"treebank! {STUDY} read=text trees universal {SCORED}",
)
def relations(asked: Request, *, sentences: int | None = None, **options: Any) -> None:
    """Find the heads that attend along each dependency relation.

    headscope relations --treebank en_ewt-ud-dev.conllu

    headscope relations --treebank en_ewt-ud-dev.conllu --model path/to/a/bert --plot relations.svg

    Args:
        asked: The model, and where the result is written.
        sentences: How many sentences are read; by default all. The first ones.
        read: Whether the model reads the words joined by spaces, or the text as it was written.
        **options: Of `headscope.relations`.
    """
    bank = hs.linguistics.read_treebank(asked.treebank)
    chosen = bank if sentences is None else bank.take(sentences)
    asked.tell(asked.run("relations", chosen, what="sentence", **options))


@made_from(
    "headscope.studies:coref",
    "headscope.studies:Coreference",
    "headscope.linguistics:read_coreference",
    takes=f"{STUDY} window every_window {SCORED}",
)
def coref(asked: Request, *, data: Path, **options: Any) -> None:
    """Find the heads that attend to a mention's antecedent.

    headscope coref --data litbank/coref/tsv

    headscope coref --data gap-test.tsv --model path/to/a/bert --plot coref.svg

    Args:
        asked: The model, and where the result is written.
        data: Annotated data: LitBank (a folder of .ann and .txt), GAP or Winogender (.tsv), or
            WinoBias (.txt).
        **options: Of `headscope.coref` and `headscope.linguistics.read_coreference`.
    """
    read = {name: options.pop(name) for name in ("window", "every_window") if name in options}
    passages = hs.linguistics.read_coreference(data, **read)
    result = asked.run("coref", passages, what="passage", **options)
    result.source = hs.linguistics.source_name(data, **read)
    asked.tell(result)


@made_from(
    "headscope.studies:probe",
    takes=f"treebank! {STUDY} probe=kind sentences layer random_weights vectors rank epochs seeds "
    "confidence",
)
def probe(asked: Request, **options: Any) -> None:
    """Train syntactic probes on attention or hidden states.

    headscope probe --treebank en_ewt-ud-dev.conllu

    headscope probe --treebank en_ewt-ud-dev.conllu --probe structural --seeds 0 1 2

    Args:
        asked: The model, and where the result is written.
        probe: attention or attention-words: each word's syntactic head from the attention of all
            heads (Clark et al. 2019); relation: whether and how two words are related, from their
            attention (Coenen et al. 2019); structural: tree distances and depths from hidden states
            (Hewitt and Manning 2019); edge: part of speech and dependency from a mix of all layers
            (Tenney et al. 2019).
        sentences: How many sentences are read; by default all. A random sample, by the first seed.
        layer: Layer number, from 0; -1 is the last. For the structural probe, where 0 is the
            embeddings; by default all layers, and the best is reported.
        **options: Of `headscope.probe`.
    """
    if asked.truncate:
        raise TextError("--truncate does not apply to a treebank; remove it")
    bank = hs.linguistics.read_treebank(asked.treebank)
    layer = options.get("layer")
    if layer is not None and layer < 0:
        # Layer 0 is the embeddings, so that there is one more than the model has layers.
        numbers = range(asked.config().num_hidden_layers + 1)
        options["layer"] = files.layer_number(layer, numbers)
    left_out.begin("sentence")
    with asked.reading() as (source, how):
        del how["truncate"]
        how.pop("batch_size", None)
        noted: dict[str, Any] = {"on_error": left_out.note, "progress": True}
        result = hs.studies.probe(*source, bank, **(noted | how), **options)
    asked.tell(result)


@made_from(
    "headscope.studies:alignment_study",
    "headscope.studies:AlignmentStudy",
    takes=f"{STUDY} special confidence random_weights",
)
def align(
    asked: Request,
    *,
    pairs: tuple[Path, ...] = (),
    from_one: bool = False,
    add: tuple[Path, ...] = (),
    **options: Any,
) -> None:
    """Evaluate word alignment by the attention of a translation model.

    headscope align --pairs pairs.txt --model path/to/a/translator

    headscope align --add first.safetensors second.safetensors --plot alignment.svg

    Args:
        asked: The model, and where the result is written.
        pairs: Files of sentences: .jsonl, .csv, .tsv or .parquet with the fields source, target and
            links (0-1 is sure, 0p1 possible, source first, words separated by white space), or .txt
            with lines of source ||| target ||| links.
        from_one: Links count words from 1, not from 0.
        special: Whether the most attended token may be one that belongs to no word, such as the end
            of the source.
        add: Results of other sentences, saved with --save, to add to this one.
        **options: Of `headscope.studies.alignment_study`.
    """
    confidence = options.pop("confidence", 0.95)
    # Made only to check the confidence level before any long work.
    hs.studies.AlignmentStudy(confidence=confidence)
    parts = [hs.studies.AlignmentStudy.load(path) for path in add]
    left_out.begin("sentence")
    listed = []
    for path in pairs:
        listed += hs.studies.read_aligned_pairs(path, first=int(from_one), on_error=left_out.note)
    if not listed and not parts:
        raise TextError("Expected a file of sentences with --pairs, or saved results with --add")
    if listed:
        parts.insert(0, _aligned(asked, listed, **options))
    study = reduce(added, parts)
    # Results that were added may have been saved with another level.
    study.judging["confidence"] = confidence
    asked.tell(study)


def _aligned(asked: Request, listed: list[Any], **options: Any) -> Any:
    if asked.model is None:
        raise ModelError("Expected a translator with --model; the demo model does not translate")
    if asked.truncate:
        raise TextError(
            "--truncate would cut words off; remove it: sentences that are too long are left out"
        )
    asked.check_model()
    target = asked.target_tokenizer if asked.in_parts else asked.tokenizer_of_target()
    with replace(asked, target_tokenizer=None).reading() as (source, how):
        how["target_tokenizer"] = target
        return hs.studies.alignment_study(*source, listed, **options, **how)


@made_from("headscope.headvis:write_headvis", takes=f"texts! out! {MODEL} stack")
def headvis(asked: Request, **options: Any) -> None:
    """Write a tree of HeadVis: what every head of a model attends to.

    headscope headvis --texts texts.txt --out tree

    headscope headvis --texts texts.txt --model path/to/a/llama --out tree

    Args:
        asked: Texts, folder and model.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text and text_b. Its name is that of the data set.
        out: Write the tree to this folder, which may not exist or must be empty: metrics of every
            head, and whole texts, under their licence, with the largest weights of each row.
        **options: The stack.
    """
    hs.headvis.check_tree_folder(asked.out)
    given, _ = asked.given()
    with asked.of_model().reading() as (source, how):
        options["dataset"] = Path(asked.texts or "").stem
        folder = hs.headvis.write_headvis(asked.out, *source, given, **options, **how)
    say(hs.headvis.read_headvis(folder).summary)
    say(f"Wrote {folder.resolve()}; it holds whole texts, under their licence")
