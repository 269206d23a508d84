"""Commands that study a model over plain texts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from headscope.cli._files import RunResults, is_folder, parse_places, position_or_word
from headscope.cli._run import Flag, ModelOptions, Words, say
from headscope.cli._signature import made_from
from headscope.cli._study import CorpusOptions, TextStudy, warnings_as_lines
from headscope.errors import FigureError, FileError, RecordError

HEADS = ("headscope.studies:heads", "headscope.patterns:heads", "headscope.patterns:Heads")
JUDGED = "stack confidence alpha correction random_weights margin"
"""Options of labels of heads."""
FEW = "are too few to tell up to"
"""Part of the warning about too few texts of `headscope.studies.heads` and other studies."""
MOST_DRAWN = 12
STEPS = 500
"""Of the search of an adversary."""


@made_from(
    *HEADS,
    takes=f"{JUDGED} position_mean related",
    position_mean="Also compare patterns of content with the mean map by position.",
)
def heads(asked: TextStudy, *, battery: bool = True, classes: Flag = False, **options: Any) -> None:
    """Classify the heads of a model by their patterns, with evidence.

    headscope heads "I went to the store."

    headscope heads --texts texts.txt --plot heads.svg --out heads.csv

    Args:
        asked: Texts and model.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        classes: With --plot: draw the classes of Kovaleva et al. per layer instead, as stacked
            bars.
        **options: Of `headscope.heads`.
    """
    plot = asked.results.plot
    if classes and plot is None:
        raise FigureError(
            "--classes needs a file to draw to; add --plot, such as --plot classes.svg"
        )
    given, groups = asked.given()
    options |= {"battery": battery, "distances": _adds_distances(asked.results.folder, plot)}
    with warnings_as_lines(FEW):
        result = asked.run("heads", given, groups, **options)
    asked.tell(result, **({"classes": True} if classes else {}))


def _adds_distances(folder: Path | None, plot: Path | None) -> bool:
    """Whether distances of heads are added up, for the map of them in a figure."""
    from headscope.corpus import RunFolder

    begun = None if folder is None else RunFolder(folder).facts()
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


@made_from("headscope.studies:norm_study", takes="stack confidence random_weights")
def norms(asked: TextStudy, **options: Any) -> None:
    """Compare attention weights with norm-based contributions.

    headscope norms "I went to the store."

    headscope norms --texts texts.txt --plot shares.svg
    """
    asked.tell(asked.run("norm_study", *asked.given(), **options))


@made_from(
    "headscope.studies:mechanism",
    takes="pattern stack confidence random_weights",
    pattern='Which keys to explain: a pattern such as sep or next, or a rule such as "word -> '
    'first"; by default the most attended ones.',
)
def mechanism(asked: TextStudy, *, at: Words = (), **options: Any) -> None:
    """Find the query/key neurons and embeddings behind a head's pattern.

    headscope mechanism --texts texts.txt

    headscope mechanism --texts texts.txt --at 2-0 7-3 --plot neurons.svg

    Args:
        asked: Texts and model.
        at: Layer and heads, such as 2-0, 2-0,3,5, or 2 for all heads of layer 2; by default all
            heads, which are grouped by their labels.
        **options: Of `headscope.mechanism`.
    """
    by_layer = parse_places(at, "--at")
    whole = [layer for layer, numbers in by_layer if not numbers]
    count = sum(len(numbers) for _, numbers in by_layer)
    given, groups = asked.given()
    if asked.results.plot is not None and (whole or not 0 < count <= MOST_DRAWN):
        raise RecordError(
            f"Expected 1 to {MOST_DRAWN} heads with --at for --plot, such as --at 2-0 7-3, got "
            f"{' '.join(at) or 'none'}"
        )
    if asked.in_parts and whole:
        raise RecordError(
            f"Expected layer and heads for --at, such as {whole[0]}-0,1, got layer {whole[0]} "
            "alone; a run names its heads before a model is loaded"
        )
    with asked.reading(given, groups) as (source, how):
        from headscope.studies import heads as heads_of
        from headscope.studies import mechanism as mechanism_of

        cells = [
            (layer, head)
            for layer, numbers in by_layer
            for head in numbers or _heads_of_a_layer(source[0])
        ]
        result = mechanism_of(*source, given, at=cells or None, **options, **how)
    asked.tell(result)
    if not cells and len(given) > 1 and not asked.in_parts:
        # The texts are read a second time, for the labels: those left out have been named already.
        how |= {"on_error": lambda *_: None, "progress": False}
        with warnings_as_lines(FEW):
            labels = heads_of(*source, given, stack=options.get("stack"), **how).by_label()
        if result.grouped(labels).all:
            say(f"\n{result.grouped(labels)}")


def _heads_of_a_layer(model: Any) -> range:
    # A model of pictures and text has a configuration for each part.
    config = model.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    return range(config.num_attention_heads)


@made_from(
    "headscope.studies:faithfulness",
    "headscope.studies:CounterfactualAttention",
    takes="permutations seed layer confidence random_weights",
    layer="Layer number, from 0; -1 is the last.",
)
def faithfulness(
    asked: TextStudy, *, query: str = "0", adversary: Flag = False, **options: Any
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
        **options: Of `headscope.faithfulness`.
    """
    given, groups = asked.given()
    with asked.reading(given, groups, classifies=True) as (source, how):
        from headscope.studies import CounterfactualAttention
        from headscope.studies import faithfulness as faithfulness_of

        shuffled = {name: options.pop(name) for name in ("permutations", "seed") if name in options}
        changed = CounterfactualAttention(adversary=STEPS if adversary else 0, **shuffled)
        options["query"] = position_or_word(query)
        result = faithfulness_of(*source, given, counterfactual=changed, **options, **how)
    asked.tell(result)


@made_from(*HEADS, "headscope.studies:atlas", takes=JUDGED)
def atlas(
    *,
    texts: Path,
    out: Path,
    model: ModelOptions = ModelOptions(),
    battery: bool = True,
    norms: Flag = False,
    corpus: CorpusOptions = CorpusOptions(),
    **options: Any,
) -> None:
    """Make an atlas of a model's heads over many texts, with examples.

    headscope atlas --texts texts.txt --out atlas

    headscope atlas --texts texts.txt --model path/to/a/llama --workers 2 --out atlas

    Args:
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        out: Write the parts of the run and the atlas to this folder; the same command resumes after
            the finished parts, and headscope serve shows its page.
        model: Model, and how it runs.
        battery: Detect induction with runs of repeated random tokens, not with the texts.
        norms: Count, too, where what each head adds comes from: attention weighted by the norm of
            the vector that each token adds. Takes longer.
        corpus: Who measures the texts.
        **options: Of `headscope.atlas`.
    """
    if not is_folder(out):
        raise FileError(f"Expected a folder for --out, got {out}; an atlas is several files")
    asked = TextStudy(RunResults(out), corpus, model, texts=texts)
    result = asked.run("atlas", *asked.given(), battery=battery, norms=norms, **options)
    say(str(result))
    say(f"Wrote {result.view().save(out / 'page').resolve()}")
