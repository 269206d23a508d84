"""headscope faithfulness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._corpus import CorpusOptions, table_of
from headscope.cli._page import position_or_word
from headscope.cli._run import ModelOptions
from headscope.cli._study import check_results, parse_texts, tell

STEPS = 500


def faithfulness(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    chat: Path | None = None,
    model: ModelOptions | None = None,
    layer: int = -1,
    query: str = "0",
    permutations: int = 100,
    adversary: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    plot: Path | None = None,
    corpus: CorpusOptions | None = None,
) -> None:
    """Check whether the attention of a classifier agrees with gradients and leave-one-out
    importance.

    Reports Kendall's tau and Spearman's rho of attention, contributions (value norms), rollout and
    ALTI with both; what erasing tokens in the order of each does to the prediction; and how far the
    prediction moves when attention is shuffled. All are means over texts, with intervals. Agreement
    does not make attention an explanation, and disagreement does not rule it out.

    Args:
        text: The text to read.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one per line), .jsonl, .csv, .tsv or .parquet with the fields
            text, text_b and group (the document of a text; intervals are then over documents).
        chat: A conversation to read in place of a text: a .json file with a list of messages, each
            with role and content.
        model: Classifier, and how it runs; the demo model is none.
        layer: Layer number, from 0; -1 is the last.
        query: Token that the classifier reads: its position from 0 (-1 is the last), or its word,
            such as [CLS].
        permutations: How many times attention is shuffled.
        adversary: Also search for different attention that gives the same prediction: about half a
            minute per text.
        seed: Random seed.
        confidence: Confidence level of the intervals.
        random_weights: Repeat with the same architecture and random weights, as a baseline.
        out: Write every mean with its interval to this file (.csv, .json or .parquet), besides
            printing it; or keep the finished parts of a run in this folder, so that the same
            command resumes after them.
        plot: Draw agreement and erasure for every signal to this file (.svg, .pdf or .png).
        corpus: Who measures the texts.
    """
    table = table_of(out)
    check_results(table, plot, texts)
    given, options = parse_texts(text, text_b, texts, chat), model or ModelOptions()
    running = corpus or CorpusOptions()
    reading = running.reading(options, out, given=given, texts=texts, classifies=True)
    with reading as (source, how):
        from headscope.studies import CounterfactualAttention
        from headscope.studies import faithfulness as faithfulness_of

        chosen: dict[str, Any] = {
            "layer": layer,
            "query": position_or_word(query),
            "confidence": confidence,
            "random_weights": random_weights,
            "counterfactual": CounterfactualAttention(
                permutations=permutations, adversary=STEPS if adversary else 0, seed=seed
            ),
        }
        result = faithfulness_of(*source, given, **chosen, **how)
    tell(result, table, plot)
