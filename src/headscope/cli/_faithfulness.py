"""headscope faithfulness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headscope.cli._run import ModelOptions
from headscope.cli._study import capturing, check_results, loaded, parse_texts, tell

STEPS = 500


def faithfulness(
    text: str | None = None,
    text_b: str | None = None,
    /,
    *,
    texts: Path | None = None,
    model: ModelOptions | None = None,
    layer: int = -1,
    query: int = 0,
    permutations: int = 100,
    adversary: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
    confidence: float = 0.95,
    random_weights: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Tell what the attention of a classifier agrees with: gradients, and what leaving tokens out
    changes.

    Kendall's tau and Spearman's rho of attention, contributions (value norms), rollout and ALTI
    with both; what erasing tokens in the order of each does to the answer; how far it moves when
    attention is shuffled. All means over texts, with intervals. Reported, not asserted: agreement
    does not make attention an explanation, nor does its lack unmake it.

    Args:
        text: One text.
        text_b: The second text of a sentence pair.
        texts: A file of texts: .txt (one a line), .jsonl, .csv, .tsv or .parquet (fields text and
            text_b; group names the document of a text, so that intervals are over documents).
        model: Which classifier, and what it reads; the demo model is none.
        layer: Whose attention; counted from the end where negative.
        query: Position of the token that the classifier reads: 0 for [CLS], -1 for the last one.
        permutations: How many times attention is shuffled.
        adversary: Look for other attention that gives the same answer, too: about half a minute for
            each text.
        seed: Of shuffling and adversary.
        confidence: Of the intervals.
        random_weights: Tell the same of this architecture with random weights, too.
        out: Write every mean with its interval to this file (.csv, .json or .parquet) too.
        plot: Draw agreement and erasure of every signal to this file (.svg, .pdf or .png) too.
    """
    check_results(out, plot, texts)
    given, options = parse_texts(text, text_b, texts), model or ModelOptions()
    source = (*loaded(given, options, classifies=True), given)
    from headscope.studies import Tampering
    from headscope.studies import faithfulness as faithfulness_of

    how = Tampering(permutations=permutations, adversary=STEPS if adversary else 0, seed=seed)
    chosen: dict[str, Any] = {"layer": layer, "query": query, "confidence": confidence}
    chosen |= {"tampering": how, "random_weights": random_weights}
    result = faithfulness_of(*source, **chosen, **capturing(given, options, texts))
    tell(result, out, plot)
