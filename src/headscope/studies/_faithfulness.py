"""Does attention say what mattered? Attention beside gradients, leaving out, and attention that was tampered with.

What comes out is reported; nothing is asserted about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from torch.nn import functional

from headscope.capturing._run import at_rest, unwrapped
from headscope.errors import InterventionError, TextError
from headscope.interventions import Given, intervene
from headscope.measures import kendall, spearman

SHARES = (0.01, 0.05, 0.10, 0.20, 0.50)
SIGNALS = ("attention", "gradient", "leave_one_out")
LEARNING_RATE = 0.01
PENALTY = 500.0
AIMED_AT = 0.01
"""Largest output difference that the adversary is trained towards; what is reported allows ``within`` (0.05)."""

Row = Float[np.ndarray, " token"]


@dataclass(frozen=True)
class Tampering:
    """How attention is tampered with.

    Args:
        permutations: how many times the row is shuffled; 0 for not at all.
        adversary: how many steps the adversary takes; 0 for none.
        within: largest total variation distance from the own output that counts as none.
        seed: of the shuffling and of the adversary's starts.
    """

    permutations: int = 100
    adversary: int = 500
    within: float = 0.05
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Explained:
    """One text: how much each token mattered by each signal, and what tampering with attention did.

    Args:
        pieces: the tokens that are ranked; special ones are left out.
        probabilities: ``[class]``, what the classifier says.
        signals: ``[token]`` by name: attention, gradient, leave_one_out.
        comprehensiveness: by signal, see `erasure`.
        sufficiency: by signal, see `erasure`.
        permuted: ``[permutation]``, total variation distance of the output with shuffled attention.
        adversarial: Jensen-Shannon divergence, in nats, of the most different attention found that leaves the output
            where it was; None where none was found or looked for.
        largest: largest attention weight of the row.
    """

    pieces: tuple[str, ...]
    probabilities: Float[np.ndarray, " class"]
    signals: dict[str, Row]
    comprehensiveness: dict[str, float]
    sufficiency: dict[str, float]
    permuted: Float[np.ndarray, " permutation"]
    adversarial: float | None
    largest: float

    def agreement(self, first: str, second: str) -> tuple[float, float]:
        """Kendall's tau-b and Spearman's rho of two signals; NaN where one of them is all ties."""
        ours, theirs = self.signals[first], self.signals[second]
        return kendall(ours, theirs), spearman(ours, theirs)


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """What `faithfulness` found on each text; prints as a table of means and standard deviations."""

    texts: tuple[Explained, ...]

    def agreement(self, first: str = "attention", second: str = "gradient") -> Float[np.ndarray, "text 2"]:
        """Kendall's tau-b and Spearman's rho of two signals on each text."""
        return np.array([text.agreement(first, second) for text in self.texts])

    def __str__(self) -> str:
        lines = [f"{len(self.texts)} texts; mean (standard deviation)", f"{'':34}{'Kendall':>16}{'Spearman':>16}"]
        for first, second in (("attention", "gradient"), ("attention", "leave_one_out"), ("gradient", "leave_one_out")):
            both = [_told(column) for column in self.agreement(first, second).T]
            lines.append(f"{f'{first} and {second}':34}{both[0]:>16}{both[1]:>16}")
        lines.append(f"{'':34}{'comprehensive':>16}{'sufficient':>16}")
        for name in SIGNALS:
            both = [_told([getattr(text, what)[name] for text in self.texts]) for what in METRICS]
            lines.append(f"{f'erasure by {name}':34}{both[0]:>16}{both[1]:>16}")
        medians = [float(np.median(text.permuted)) for text in self.texts if len(text.permuted)]
        found = [text.adversarial for text in self.texts if text.adversarial is not None]
        lines += [f"{'output moved by shuffled attention':34}{_told(medians):>16}  (median distance)"] * bool(medians)
        lines += [f"{'attention moved, output held':34}{_told(found):>16}  (nats, {len(found)} texts)"] * bool(found)
        return "\n".join(lines)


METRICS = ("comprehensiveness", "sufficiency")


def faithfulness(
    model: nn.Module,
    tokenizer: Any,
    texts: Iterable[str],
    *,
    layer: int = -1,
    query: int = 0,
    tampering: Tampering | None = None,
) -> Faithfulness:
    """Compare the attention of one token with what mattered to a classifier.

    For each text: the attention of the query, mean over the heads of a layer; gradient times input, absolute, summed
    over features and classes, attention held constant in all layers; leaving out one token at a time, mean change of
    the class probabilities. Their ranks agree by Kendall's tau-b and Spearman's rho with mid-ranks. Erasure by each
    signal; the output's distance when the row is shuffled; and the most different attention in all heads of the layer
    that leaves the output where it was.

    Source: Jain and Wallace 2019 (gradients, leaving out, permutation, adversary: Adam 0.01 from 5 starts, aimed at a
    distance of 0.01 and reported up to 0.05); DeYoung et al. 2020 (erasure, shares 1, 5, 10, 20, 50 %). They looked at
    the one attention layer of a BiLSTM; here it is a row of one layer among several, and special tokens, at which much
    of it looks, are left out of the ranks but keep their place in the rows.

    Args:
        model: transformers' classifier (logits ``[example class]``), reading ``inputs_embeds`` as well as ids.
        tokenizer: of the model.
        texts: with at least two tokens that are not special.
        layer: whose attention; counted from the end where negative.
        query: whose row: the token that the classifier reads, 0 for [CLS] and -1 for the last token of a text.
        tampering: how attention is tampered with.

    Raises:
        TextError: a text of fewer than two tokens that are not special.
        InterventionError: a layer that is not there.

    Example:
        >>> print(faithfulness(classifier, tokenizer, texts, tampering=Tampering(adversary=0)))
    """
    model, how = unwrapped(model), tampering or Tampering()
    with at_rest(model):
        found = [
            _Study(model, _Text.of(tokenizer, text), (layer, query)).run(how, how.seed + number)
            for number, text in enumerate(texts)
        ]
    return Faithfulness(tuple(found))


def erasure(
    probability: Callable[[Sequence[int]], float], signal: Row, shares: Sequence[float] = SHARES
) -> tuple[float, float]:
    """Comprehensiveness and sufficiency: ``p(x) - p(x without top k)`` and ``p(x) - p(top k alone)``, mean over k.

    Source: DeYoung et al. 2020, section 4. At least one token is in the top; it never is all of them.

    Args:
        probability: of the class in question, given the numbers of the ranked tokens that are kept.
        signal: how much each token matters.
        shares: of the tokens, k.
    """
    count = len(signal)
    order = np.argsort(-np.asarray(signal), kind="stable")
    everything = probability(range(count))
    without, alone = [], []
    for share in shares:
        top = order[: min(count - 1, max(1, round(share * count)))]
        without.append(everything - probability(sorted(set(range(count)) - set(top.tolist()))))
        alone.append(everything - probability(sorted(top.tolist())))
    return float(np.mean(without)), float(np.mean(alone))


@dataclass(frozen=True, eq=False)
class _Text:
    """Ids of a text, and the positions and names of the tokens that are ranked."""

    ids: torch.Tensor
    ranked: np.ndarray
    pieces: tuple[str, ...]

    @classmethod
    def of(cls, tokenizer: Any, text: str) -> _Text:
        ids = tokenizer(text)["input_ids"]
        special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        ranked = np.flatnonzero(~np.array(special, bool))
        if len(ranked) < 2:
            raise TextError(f"{text!r} has {len(ranked)} tokens that are not special; give at least two")
        pieces = tokenizer.convert_ids_to_tokens([ids[at] for at in ranked])
        return cls(torch.tensor(ids), ranked, tuple(pieces))


class _Study:
    """One text under one model."""

    def __init__(self, model: nn.Module, text: _Text, at: tuple[int, int]) -> None:
        self._model: Any = model
        self._ids, self._ranked, self._pieces = text.ids, text.ranked, text.pieces
        self._generator = torch.Generator()
        self._device = next(model.parameters()).device
        self._query = at[1] % len(self._ids)
        self._rows, layers = self._attention()
        if not -layers <= at[0] < layers:
            raise InterventionError(f"The model has layers 0 to {layers - 1}, not {at[0]}")
        self._layer = at[0] % layers

    def run(self, how: Tampering, seed: int) -> Explained:
        """All that is asked of the text."""
        self._generator.manual_seed(seed)
        row = self._rows[self._layer].mean(0)
        own = self._probabilities([range(len(self._ids))])[0]
        signals = {
            "attention": row[self._ranked].double().numpy(),
            "gradient": self._gradient(),
            "leave_one_out": self._left_out(own),
        }
        best = int(own.argmax())
        erased = {name: erasure(self._of_class(best), signal) for name, signal in signals.items()}
        return Explained(
            pieces=self._pieces,
            probabilities=own.numpy(),
            signals=signals,
            comprehensiveness={name: both[0] for name, both in erased.items()},
            sufficiency={name: both[1] for name, both in erased.items()},
            permuted=self._permuted(own, how.permutations) if how.permutations else np.zeros(0),
            adversarial=self._adversarial(own, how.adversary, how.within) if how.adversary else None,
            largest=float(row[self._ranked].max()),
        )

    def _attention(self) -> tuple[list[torch.Tensor], int]:
        """Rows ``[head key]`` of the query in each layer."""
        rows: dict[int, torch.Tensor] = {}

        def keep(layer: int) -> Callable[[torch.Tensor], torch.Tensor]:
            def kept(weights: torch.Tensor) -> torch.Tensor:
                rows[layer] = weights[:, self._query].detach().cpu()
                return weights

            return kept

        with intervene(self._model) as session:
            self._probabilities([range(len(self._ids))])
            places = session.plan.places if session.plan is not None else ()
        numbers = [place.layer for place in places]
        with intervene(self._model, *(Given(weights=keep(number), layer=number) for number in numbers)):
            self._probabilities([range(len(self._ids))])
        return [rows[number] for number in numbers], len(numbers)

    def _of_class(self, number: int) -> Callable[[Sequence[int]], float]:
        special = sorted(set(range(len(self._ids))) - set(self._ranked.tolist()))

        def probability(kept: Sequence[int]) -> float:
            positions = sorted([*special, *(int(self._ranked[at]) for at in kept)])
            return float(self._probabilities([positions])[0, number])

        return probability

    def _probabilities(self, kept: Sequence[Sequence[int]]) -> torch.Tensor:
        """Of each class ``[text class]``, for texts of equal length that keep these positions."""
        ids = torch.stack([self._ids[list(positions)] for positions in kept]).to(self._device)
        with torch.no_grad():
            return self._model(input_ids=ids).logits.softmax(-1).double().cpu()

    def _left_out(self, own: torch.Tensor) -> Row:
        every = range(len(self._ids))
        without = self._probabilities([[at for at in every if at != gone] for gone in self._ranked])
        return (without - own).abs().mean(-1).numpy()

    def _gradient(self) -> Row:
        """Of all classes, with attention that does not follow the words."""
        vectors = self._model.get_input_embeddings()(self._ids[None].to(self._device)).detach().requires_grad_()
        held = Given(weights=lambda weights: weights.detach())
        with torch.enable_grad(), intervene(self._model, held):
            found = self._model(inputs_embeds=vectors).logits.softmax(-1)[0]
            slopes = [torch.autograd.grad(one, vectors, retain_graph=True)[0] for one in found]
        total = sum(((slope * vectors).sum(-1)[0].abs() for slope in slopes), torch.zeros(len(self._ids)))
        ranked = total.detach().double().cpu().numpy()[self._ranked]
        return ranked / max(float(ranked.sum()), 1e-30)

    def _with_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Probabilities ``[run class]`` with these rows ``[run head key]`` of the query."""
        ids = self._ids.to(self._device).expand(len(rows), -1)
        queue = iter(rows)

        def put(weights: torch.Tensor) -> torch.Tensor:
            row = next(queue).to(weights)
            return torch.cat([weights[:, : self._query], row[:, None], weights[:, self._query + 1 :]], dim=1)

        with intervene(self._model, Given(weights=put, layer=self._layer)):
            return self._model(input_ids=ids).logits.softmax(-1).double()

    def _permuted(self, own: torch.Tensor, count: int) -> Float[np.ndarray, " permutation"]:
        """The row's weights on the ranked tokens shuffled, in all heads alike."""
        ranked = torch.from_numpy(self._ranked)
        rows = self._rows[self._layer].repeat(count, 1, 1)
        for row in rows:
            row[:, ranked] = row[:, ranked[torch.randperm(len(ranked), generator=self._generator)]]
        with torch.no_grad():
            return _distance(self._with_rows(rows).cpu(), own).numpy()

    def _adversarial(self, own: torch.Tensor, steps: int, within: float, starts: int = 5) -> float | None:
        base = self._rows[self._layer].to(self._device)
        seen = base > 0
        noise = torch.randn(starts, *base.shape, generator=self._generator).to(self._device)
        logits = noise.masked_fill(~seen, -1e9).requires_grad_()
        adam = torch.optim.Adam([logits], lr=LEARNING_RATE)
        own = own.to(self._device)
        with torch.enable_grad():
            for _ in range(steps):
                rows = logits.softmax(-1)
                apart = _distance(self._with_rows(rows), own)
                mutual = divergence(rows[:, None], rows[None]).sum() / (starts * (starts - 1))
                loss = (PENALTY * functional.relu(apart - AIMED_AT) - divergence(rows, base)).mean() - mutual
                adam.zero_grad()
                loss.backward(inputs=[logits])
                adam.step()
        with torch.no_grad():
            rows = logits.softmax(-1)
            held = _distance(self._with_rows(rows), own) <= within
            found = divergence(rows, base)[held]
        return float(found.max()) if len(found) else None


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats of rows ``[... head key]``, mean over heads; at most log 2."""
    middle = (first + second) / 2
    entropies = [-torch.special.xlogy(rows, rows.clamp(min=1e-30)).sum(-1) for rows in (middle, first, second)]
    return (entropies[0] - (entropies[1] + entropies[2]) / 2).mean(-1)


def _distance(found: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Total variation distance of distributions ``[run class]`` and ``[class]``."""
    return (found - own).abs().sum(-1) / 2


def _told(values: Any) -> str:
    values = np.asarray(values, float)
    return f"{np.nanmean(values):.2f} ({np.nanstd(values):.2f})" if np.isfinite(values).any() else "-"
