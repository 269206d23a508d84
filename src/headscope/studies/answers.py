"""Over many prompts: does a model look at what its answer needs, and which heads do?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from headscope.answering import Answer
from headscope.corpus import Counts
from headscope.errors import RecordError
from headscope.evidence import interval_of_sums, wilson
from headscope.results import TextTable
from headscope.storage import array_of
from headscope.studies.shared._fold import Fold, FoldResult, Readers, Reading, one_by_one, taken
from headscope.studies.shared._folded import folded_texts

VERDICTS = {
    "none": "needed none",
    "parts": "needed one or more",
    "any": "needed one of several",
    "several": "needed several together",
}
"""What an answer may need, see `headscope.answering.Verdict`."""
ROWS = (*VERDICTS, "looks", "agrees", "chance", "lift")
OF_HEADS = ("share", "lift", "agrees", "copies")
YES_OR_NO: dict[str, Any] = {
    "row": slice(ROWS.index("agrees") + 1),
    "heads": OF_HEADS.index("agrees"),
}
"""Which of these are answers, and no amounts."""
SAYS = {
    "share": "of the head's attention that what was needed got",
    "lift": "times what its length among the candidates gives",
    "agrees": "how often it got most for its length, of all candidates",
    "copies": "retrieval score: how often the token that got most is the one that was written",
}
MOST_HEADS = 8
"""In the printed table."""


def counts_of(_: Any, answered: Answer, **__: Any) -> Counts:
    """What is counted of one prompt: what was needed, whether that was looked at, and by which
    heads; of prompts that needed none nothing is looked for.

    Args:
        answered: the answer.
    """
    if not answered.candidates or not answered.words:
        raise RecordError("The prompt has no parts that can be compared, or the answer no words")
    needs, meant = answered.verdict
    row = dict.fromkeys(ROWS, np.nan) | {name: float(name == needs) for name in VERDICTS}
    row["looks"] = float(answered.looks_at is not None)
    heads = np.full((len(OF_HEADS), *answered.shares.shape[1:3]), np.nan)
    if needs in ("parts", "any"):
        some, shares = list(meant), answered.head_shares()
        lift, whole = answered.head_lift(), answered.lift()
        visible, known = np.flatnonzero(~np.isnan(whole)), ~np.isnan(shares[0])
        needed = np.intersect1d(visible, some)
        heads[0] = shares[some].sum(axis=0)
        # With fewer than two that the answer could see there is nothing to compare.
        if len(needed) and len(visible) > 1:
            row["agrees"] = float(np.nanargmax(whole) in meant)
            row["chance"] = len(needed) / len(visible)
            row["lift"] = whole[needed].mean()
            seen = np.ma.masked_invalid(lift)
            means = seen[needed].mean(axis=0).filled(np.nan)
            heads[1] = np.where(seen.count(axis=0) > 1, means, np.nan)
            most = np.isin(seen.argmax(axis=0, fill_value=-1.0), some)
            heads[2] = np.where(np.isnan(heads[1]), np.nan, most)
        heads[3] = np.where(known, answered.head_copies(), np.nan)
    values, of_heads = np.array(list(row.values())), heads.reshape(len(OF_HEADS), -1)
    counts = {}
    for name, array in (("row", values), ("heads", of_heads)):
        counts[name] = np.nan_to_num(array)
        counts[f"{name} known"] = (~np.isnan(array)).astype(np.int64)
    return counts


class Answers(FoldResult):
    """What answers to many prompts needed and looked at, and by which heads; prints itself, is
    added to others of the same model, and saved.

    Args:
        parts: as of `headscope.answer`.
        need: as of `headscope.answer`.
        of: as of `headscope.answer`.
        max_new_tokens: of an answer.
        confidence: of the intervals over prompts.
    """

    KIND: ClassVar[str] = "answers"
    HOW: ClassVar[dict[str, Any]] = {
        "parts": (str, None),
        "need": str,
        "of": (str, None),
        "max_new_tokens": (int, None),
    }

    def __init__(
        self,
        *,
        parts: str | None = None,
        need: str = "cut",
        of: str | None = None,
        max_new_tokens: int | None = None,
        confidence: float = 0.95,
    ) -> None:
        how = {"parts": parts, "need": need, "of": of, "max_new_tokens": max_new_tokens}
        super().__init__(how, {"confidence": confidence})

    def _check_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        shapes = {"row": (len(ROWS),), "heads": (len(OF_HEADS), len(self.cells))}
        for name, shape in shapes.items():
            for count, kind in ((name, "f"), (f"{name} known", "i")):
                array_of(arrays, f"counts.{count}", kind, (len(self.sums.rows), *shape))

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Layer and head of each column of `heads`."""
        return [(layer, head) for layer, head in self.sums.facts["heads"]]

    def share(self, name: str) -> tuple[float, float, float]:
        """A number of `ROWS` over prompts, and the ends of its interval.

        Args:
            name: one of `VERDICTS`; ``"looks"``, how often some candidate was looked at more than
                its length gives; of answers that needed something and could see it and another
                candidate ``"agrees"``, how often it was looked at most for its length,
                ``"chance"`` of that among those that could be seen, and ``"lift"``.
        """
        at = ROWS.index(name)
        mean, low, high = self._rows[at].tolist()
        return mean, low, high

    @cached_property
    def _rows(self) -> Float[np.ndarray, "row 3"]:
        return self._with_ends("row")

    @cached_property
    def heads(self) -> Float[np.ndarray, "number head 3"]:
        """Share, lift, agreement and retrieval score of each head with the ends of their intervals;
        heads as in ``cells``.
        """
        return self._with_ends("heads")

    def _with_ends(self, name: str) -> np.ndarray:
        sums, known = self.sums[name], self.sums[f"{name} known"]
        total, count = sums.sum(axis=0), known.sum(axis=0)
        mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
        ends = interval_of_sums(sums, known, confidence=self.confidence)
        # Yes or no: where all prompts say the same, others may not.
        at, how = YES_OR_NO[name], {"grouped": self.sums.documents != self.texts}
        alike = (total[at] == 0) | (total[at] == count[at])
        sure = wilson(sums[:, at], known[:, at], confidence=self.confidence, **how)
        ends[at] = np.where(alike[:, None], sure, ends[at])
        return np.concatenate([mean[..., None], ends], axis=-1)

    def best_heads(self, most: int = 3) -> list[tuple[int, int]]:
        """Layer and head of those that give most attention to what was needed, for ``heads=`` of
        `headscope.answer` on other prompts.
        """
        order = np.argsort(-np.nan_to_num(self.heads[0, :, 0], nan=-1.0), kind="stable")
        return [self.cells[at] for at in order[:most]]

    def columns(self) -> dict[str, list[Any]]:
        """A line for each head, one list for each column."""
        named = enumerate(("layer", "head"))
        columns: dict[str, list[Any]] = {name: [c[at] for c in self.cells] for at, name in named}
        for name, values in zip(OF_HEADS, self.heads, strict=True):
            for suffix, column in zip(("", "_low", "_high"), values.T, strict=True):
                columns[f"{name}{suffix}"] = column.tolist()
        if self.control is not None:
            for name, values in zip(OF_HEADS, self.control.heads, strict=True):
                columns[f"random_{name}"] = values[:, 0].tolist()
        return columns

    def __repr__(self) -> str:
        return f"<Answers to {_prompts(self.texts)}>"

    @property
    def summary(self) -> str:
        """What answers needed, and whether that was looked at."""
        if not self.texts:
            return repr(self)
        needed = ", ".join(f"{says} {self._cell(name)}" for name, says in VERDICTS.items())
        told = f"{self.model or 'a model'}: {_prompts(self.texts)}. Answers {needed}."
        compared = int(self.sums["row known"].sum(axis=0)[ROWS.index("agrees")])
        if compared:
            told += (
                f" Of {_prompts(compared)} in which what was needed could be seen beside others, "
                f"it was looked at most for its length in {self._cell('agrees')} (chance "
                f"{100 * self.share('chance')[0]:.0f} %), {self.share('lift')[0]:.2f} times as "
                "much as its length among those gives."
            )
        return told

    def _cell(self, name: str) -> str:
        mean, low, high = (100 * each for each in self.share(name))
        ends = "" if np.isnan(low) else f" [{low:.0f}, {high:.0f}]"
        return f"{mean:.0f} %{ends}"

    def _blocks(self) -> list[TextTable | str]:
        if not self.texts or np.isnan(self.heads[0, :, 0]).all():
            return []
        rows = [["head", *OF_HEADS]]
        for cell in self.best_heads(MOST_HEADS):
            at = self.cells.index(cell)
            cells = [f"{cell[0]}-{cell[1]}"]
            for name, (mean, low, high) in zip(OF_HEADS, self.heads[:, at], strict=True):
                unit, of = (1, ".2f") if name == "lift" else (100, ".0f")
                ends = "" if np.isnan(low) else f" [{unit * low:{of}}, {unit * high:{of}}]"
                cells.append("" if np.isnan(mean) else f"{unit * mean:{of}}{ends}")
            rows.append(cells)
        title = f"Heads that look at what was needed; in %, [{self.confidence:.0%} intervals]"
        blocks: list[TextTable | str] = [
            TextTable.of_rows(rows, says=SAYS, title=title, align="right"),
            "Heads are ranked on these prompts; try them on others: hs.answer(heads=).",
        ]
        if self.control is not None:
            blocks.append(f"The same with random weights:\n{self.control.summary}")
        return blocks


def _prompts(count: int) -> str:
    return f"{count} prompt{'s' * (count != 1)}"


def _records_of(
    readers: Readers, given: Iterable[Any], how: Mapping[str, Any], reading: Reading
) -> Iterator[tuple[int, Answer]]:
    """The answer to each prompt, one after the other."""
    from headscope.answering import answer

    options = {name: each for name, each in how.items() if each is not None}

    def read(_: int, prompt: Any) -> Answer:
        return answer(*readers, prompt, **options, allow_unfit=True)

    return one_by_one(given, read, reading, "Answering")


def told_of(answered: Answer, _: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Length of a prompt with its answer, and what all prompts share."""
    heads = [[layer, head] for layer in answered.layers for head in range(answered.shares.shape[2])]
    model = {"model": answered.model, "class": "", "weights": ""}
    return answered.attention.shape[1], {"heads": heads, **model}


FOLD = Answers.FOLD = Fold(
    name="answers",
    what="prompt",
    counts_of=counts_of,
    result_of=Answers.of_sums,
    records_of=_records_of,
    told_of=told_of,
    needs="next words",
)


def answers(
    model: Any,
    tokenizer: Any = None,
    prompts: Any = None,
    *,
    parts: str | None = None,
    need: str = "cut",
    random_weights: bool = False,
    **options: Any,
) -> Answers:
    """Ask a model many prompts, and see whether it looks at what its answers need, and which heads
    do.

    Of each prompt what `headscope.answer` finds: which candidates the answer needed, and which of
    them got most attention for their length. Of each head, over the prompts that needed something:
    the share of its attention that this got, and its lift; how often it looked there most; and its
    retrieval score, how often the token of a candidate that got most is the one that was written.

    Source: Wu et al. 2024 (retrieval heads), section 2, where the score counts tokens of one
    needle, and here those of all candidates; the rest is ours.

    Args:
        model: as of `headscope.answer`.
        tokenizer: of the model; may be left out where that is named.
        prompts: texts, conversations, or rows with ``documents`` and ``question``.
        parts: what is compared, by its name, as of `headscope.answer`.
        need: how it is cut, as of `headscope.answer`.
        random_weights: whether the same architecture with random weights reads the prompts, too:
            ``control`` of the result.
        **options: ``of`` and ``max_new_tokens`` as of `headscope.answer`; ``confidence`` of the
            intervals (0.95); ``groups``, the document of each prompt, for intervals over documents;
            ``progress``, ``on_error`` and `LoadOptions`; ``out``, ``workers``, ``executor`` and
            ``part_size`` of `headscope.corpus.RunOptions`, for a run in parts, see docs page "Over
            many texts".

    Raises:
        RecordError: no prompt is left, or an option that there is not.
        ModelError: a model that cannot be loaded, or whose head was not trained.
        RunError: of a run, see `headscope.corpus.run`.

    Example:
        >>> answered = answers(None, prompts=[{"documents": texts, "question": "Which code?"}])
        >>> answered.best_heads(), answered.share("agrees")
    """
    from headscope.answering import BY, DEMO

    if need not in BY:
        raise RecordError(f"need is {need!r}; it may be {', '.join(map(repr, BY))}")
    own = taken(options, ("of", "max_new_tokens", "confidence"))
    asked = Answers(parts=parts, need=need, **own)
    readers = DEMO if model is None else model, tokenizer
    return folded_texts(asked, readers, prompts, options, random_weights=random_weights)
