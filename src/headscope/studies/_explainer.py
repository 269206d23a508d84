"""A classifier asked what mattered to it in one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch.nn import functional

from headscope.capturing import capture
from headscope.capturing.fitness import check_known
from headscope.capturing.inputs.inputs import encode
from headscope.capturing.inputs.parsed_input import ParsedInput
from headscope.capturing.inputs.tokens import tokens_from_ids
from headscope.capturing.walk import reads_target
from headscope.errors import InterventionError, ModelError, RecordError, TextError
from headscope.interventions import SetWeights, intervene
from headscope.measures import kendall, spearman
from headscope.measures.erasure import Row, erasure_curves, kept_tokens
from headscope.norms import maps_of, rollout
from headscope.patterns import model_facts
from headscope.record import Stack

AT_ONCE = 4096
"""Most tokens that run together."""
LEARNING_RATE = 0.01
PENALTY = 500.0
AIMED_AT = 0.01
"""Largest output difference that the adversary is trained towards; what is reported allows
``within`` (0.05).
"""
READ = ("input_ids", "token_type_ids")
"""What a text is to a classifier; the mask of padding is not needed without any."""


@dataclass(frozen=True)
class CounterfactualAttention:
    """Other attention than the model's own, to see whether the output follows it.

    Source: Jain and Wallace 2019, section 4.2: permutation and adversarial attention.

    Args:
        permutations: how many times the row is shuffled; 0 for not at all.
        adversary: how many steps the adversary takes, 500 in the paper; 0 for none.
        within: largest total variation distance from the own output that counts as none.
        seed: of the shuffling and of the adversary's starts.

    Raises:
        InterventionError: where a number is below 0.
    """

    permutations: int = 100
    adversary: int = 0
    within: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.permutations < 0 or self.adversary < 0:
            raise InterventionError(
                f"permutations and adversary are numbers from 0 on, not {self.permutations} and "
                f"{self.adversary}"
            )


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """One text: how much each token mattered by each signal, and the effect of changed attention.

    Args:
        pieces: the tokens that are ranked; special ones are left out.
        probabilities: ``[class]``, what the classifier says.
        signals: ``[token]`` by name: attention, contribution, rollout, alti, gradient,
            leave_one_out, random.
        missing: by name, why a signal cannot be had of this model.
        facts: about the model, which all texts of a study share.
        erased: ``[2 share]`` by signal: what the answer loses without the top `SHARES` of the
            tokens, and with these alone.
        permuted: ``[permutation]``, total variation distance of the output with shuffled attention.
        adversarial: Jensen-Shannon divergence, in nats, of the most different attention found that
            leaves the output where it was; None where none was found or looked for.
        largest: largest attention weight of the row.
    """

    pieces: tuple[str, ...]
    probabilities: Float[np.ndarray, " class"]
    signals: dict[str, Row]
    erased: dict[str, Float[np.ndarray, "2 share"]]
    permuted: Float[np.ndarray, " permutation"]
    adversarial: float | None
    largest: float
    missing: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def comprehensiveness(self) -> dict[str, float]:
        """By signal, see `erasure`."""
        return {name: float(both[0].mean()) for name, both in self.erased.items()}

    @property
    def sufficiency(self) -> dict[str, float]:
        """By signal, see `erasure`."""
        return {name: float(both[1].mean()) for name, both in self.erased.items()}

    def agreement(self, first: str, second: str) -> tuple[float, float]:
        """Kendall's tau-b and Spearman's rho of two signals; NaN where one of them is all ties."""
        ours, theirs = self.signals[first], self.signals[second]
        return kendall(ours, theirs), spearman(ours, theirs)


class TextExplainer:
    """One text under one classifier.

    Args:
        readers: the classifier, unwrapped and at rest, and its tokenizer.
        text: a text or a pair, parsed.
        how: layer, query and counterfactual attention.
        reading: ``truncate`` and ``max_unknown`` of `headscope.capture_many`.

    Raises:
        TextError: a text that is longer than the model's positions, or has fewer than two tokens
            to rank.
        ModelError: no classifier.
        InterventionError: a layer that does not exist.
    """

    def __init__(
        self, readers: tuple[Any, Any], text: ParsedInput, how: Mapping[str, Any], reading: Any
    ) -> None:
        self._model, tokenizer = readers
        text = text.read_with(tokenizer)
        encoding = encode(self._model, tokenizer, text, truncate=reading.get("truncate", False))
        ids = encoding["input_ids"]
        special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
        self._ranked = np.flatnonzero(~np.array(special, bool))
        # A rank correlation needs two things to put in order.
        if len(self._ranked) < 2:
            shown = text.text if text.text_pair is None else text.texts
            raise TextError(
                f"{shown!r} has {len(self._ranked)} tokens that are not special; give at least two"
            )
        check_known(tokenizer, ids, "the text", reading.get("max_unknown", 1.0))
        self._pieces = tuple(tokenizer.convert_ids_to_tokens([ids[at] for at in self._ranked]))
        self._device = next(self._model.parameters()).device
        self._given = {name: torch.tensor(encoding[name]) for name in READ if name in encoding}
        self._every = range(len(ids))
        self._query = self._every[_position_of(tokenizer, ids, how["query"])]
        self._generator, self._how = torch.Generator(), how["counterfactual"]
        self._check()
        record = capture(*readers, text, truncate=True, keep=("weights", "alti"))
        self._stack, self._facts = next(iter(record.stacks.values())), model_facts(record)
        if len(self._stack.query) != len(ids):
            raise ModelError(
                f"The attention is of {len(self._stack.query)} tokens and the text has {len(ids)}"
            )
        layers = len(self._stack)
        if not -layers <= how["layer"] < layers:
            raise InterventionError(f"The model has layers 0 to {layers - 1}, not {how['layer']}")
        layer = self._stack.layers[how["layer"]]
        self._layer = layer.layer
        weights = np.asarray(layer.weights_of(), np.float32)
        self._row = torch.from_numpy(weights[:, self._query].copy())

    def run(self, seed: int) -> ExplainedText:
        """All that is asked of the text."""
        self._generator.manual_seed(seed)
        row = self._row.mean(0)
        own = self._probabilities([self._every])[0]
        signals, missing = {"attention": row[self._ranked].double().numpy()}, {}
        for name, map_of in FLOWING.items():
            try:
                flow = np.asarray(map_of(self._stack, self._layer), float)
                signals[name] = flow[self._query, self._ranked]
            except RecordError as error:
                missing[name] = str(error)
        without = [[at for at in self._every if at != gone] for gone in self._ranked]
        left_out = (self._probabilities(without) - own).abs().mean(-1)
        signals |= {"gradient": self._gradient(), "leave_one_out": left_out.numpy()}
        signals["random"] = np.random.default_rng(seed).random(len(self._ranked))
        return ExplainedText(
            pieces=self._pieces,
            probabilities=own.numpy(),
            signals=signals,
            erased=self._erased(signals, own),
            permuted=self._permuted(own) if self._how.permutations else np.zeros(0),
            adversarial=self._adversarial(own) if self._how.adversary else None,
            largest=float(row[self._ranked].max()),
            missing=missing,
            facts=self._facts,
        )

    def _check(self) -> None:
        if reads_target(self._model):
            raise ModelError(
                f"{type(self._model).__name__} is an encoder-decoder; expected a classifier with "
                "one stack"
            )
        try:
            with torch.no_grad():
                made = self._model(**self._inputs([self._every] * 2))
        except ValueError as error:
            # Classifiers that read the last token refuse batches until they know what padding is.
            raise ModelError(
                f"{type(self._model).__name__} cannot read two texts at once: {error}"
            ) from error
        logits = getattr(made, "logits", None)
        if logits is None or logits.ndim != 2 or logits.shape[-1] < 2:
            given = "no logits" if logits is None else f"logits {tuple(logits.shape)}"
            raise ModelError(
                f"{type(self._model).__name__} gives {given}; expected a classifier's [example "
                "class] with two classes or more, such as transformers' "
                "AutoModelForSequenceClassification loads"
            )

    def _erased(self, signals: Mapping[str, Row], own: torch.Tensor) -> dict[str, np.ndarray]:
        """What the answer loses by each signal. Texts of one length run together; signals often
        rank alike, and then ask about the same texts: each is run once.
        """
        special = set(self._every) - set(self._ranked.tolist())

        def positions_of(kept: Sequence[int]) -> tuple[int, ...]:
            """Positions of these ranked tokens, with those of all special ones."""
            return tuple(sorted([*special, *self._ranked[list(kept)].tolist()]))

        asked: dict[tuple[int, ...], None] = {}
        for kept in chain.from_iterable(map(kept_tokens, signals.values())):
            asked |= dict.fromkeys(map(positions_of, kept))
        best = int(own.argmax())
        seen = {tuple(self._every): float(own[best])}
        for _, same in groupby(sorted(asked, key=len), len):
            keys = list(same)
            seen |= zip(keys, self._probabilities(keys)[:, best].tolist(), strict=True)
        curves = {}
        for name, signal in signals.items():
            curves[name] = erasure_curves(lambda kept: seen[positions_of(kept)], signal)
        return curves

    def _inputs(self, kept: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        positions = [list(each) for each in kept]
        return {
            name: torch.stack([values[each] for each in positions]).to(self._device)
            for name, values in self._given.items()
        }

    def _probabilities(self, kept: Sequence[Sequence[int]]) -> torch.Tensor:
        """Of each class ``[text class]``, for texts of equal length that keep these positions."""
        at_once, made = max(1, AT_ONCE // len(self._every)), []
        with torch.no_grad():
            for start in range(0, len(kept), at_once):
                inputs = self._inputs(kept[start : start + at_once])
                made.append(self._model(**inputs).logits.softmax(-1).double().cpu())
        return torch.cat(made)

    def _gradient(self) -> Row:
        """Of all classes, with attention that does not follow the words."""
        inputs = self._inputs([self._every])
        embedded = self._model.get_input_embeddings()(inputs.pop("input_ids"))
        vectors = embedded.detach().requires_grad_()
        # Attention is held constant, as in Jain and Wallace: the slope is that of the words alone.
        held = SetWeights(weights=lambda weights: weights.detach())
        with torch.enable_grad(), intervene(self._model, held):
            probabilities = self._model(inputs_embeds=vectors, **inputs).logits.softmax(-1)[0]
            total = torch.zeros(len(self._every), device=self._device)
            for one in probabilities:
                (slope,) = torch.autograd.grad(one, vectors, retain_graph=True)
                total = total + (slope * vectors).sum(-1)[0].abs()
        ranked = total.detach().double().cpu().numpy()[self._ranked]
        return ranked / max(float(ranked.sum()), 1e-30)

    def _with_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """Probabilities ``[run class]`` with these rows ``[run head key]`` of the query."""
        inputs = self._inputs([self._every] * len(rows))
        # `SetWeights` asks once for each text of the batch, in order.
        queue = iter(rows)

        def put(weights: torch.Tensor) -> torch.Tensor:
            row = next(queue).to(weights)
            return torch.cat(
                [weights[:, : self._query], row[:, None], weights[:, self._query + 1 :]], dim=1
            )

        with intervene(self._model, SetWeights(weights=put, layer=self._layer)):
            return self._model(**inputs).logits.softmax(-1).double()

    def _permuted(self, own: torch.Tensor) -> Float[np.ndarray, " permutation"]:
        """The row's weights on the ranked tokens that the query may look at shuffled, in all heads
        alike.
        """
        looked_at = (self._row > 0).any(0).numpy()
        ranked = torch.from_numpy(self._ranked[looked_at[self._ranked]])
        rows = self._row.repeat(self._how.permutations, 1, 1)
        for row in rows:
            row[:, ranked] = row[:, ranked[torch.randperm(len(ranked), generator=self._generator)]]
        at_once = max(1, AT_ONCE // len(self._every))
        with torch.no_grad():
            probabilities = torch.cat([self._with_rows(some) for some in rows.split(at_once)])
        return _distance(probabilities.cpu(), own).numpy()

    def _adversarial(self, own: torch.Tensor, starts: int = 5) -> float | None:
        base = self._row.to(self._device)
        seen = base > 0
        noise = torch.randn(starts, *base.shape, generator=self._generator).to(self._device)
        # So low that no step brings a key back that may not be looked at.
        logits = noise.masked_fill(~seen, -1e9).requires_grad_()
        adam = torch.optim.Adam([logits], lr=LEARNING_RATE)
        own = own.to(self._device)
        with torch.enable_grad():
            for _ in range(self._how.adversary):
                rows = logits.softmax(-1)
                apart = _distance(self._with_rows(rows), own)
                # The starts are kept apart from each other as well, so that they find different
                # attention; a start is at 0 from itself, which leaves starts - 1 others.
                mutual = divergence(rows[:, None], rows[None]).sum() / (starts * (starts - 1))
                moved = functional.relu(apart - AIMED_AT)
                loss = (PENALTY * moved - divergence(rows, base)).mean() - mutual
                adam.zero_grad()
                loss.backward(inputs=[logits])
                adam.step()
        with torch.no_grad():
            rows = logits.softmax(-1)
            held = _distance(self._with_rows(rows), own) <= self._how.within
            distances = divergence(rows, base)[held]
        return float(distances.max()) if len(distances) else None


def divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats of rows ``[... head key]``, mean over heads; at most
    log 2.
    """
    middle = (first + second) / 2
    entropies = [
        -torch.special.xlogy(rows, rows.clamp(min=1e-30)).sum(-1)
        for rows in (middle, first, second)
    ]
    return (entropies[0] - (entropies[1] + entropies[2]) / 2).mean(-1)


def _distance(probabilities: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Total variation distance of distributions ``[run class]`` and ``[class]``."""
    return (probabilities - own).abs().sum(-1) / 2


def _rolled(quantity: Any) -> Callable[[Stack, int], np.ndarray]:
    return lambda stack, layer: rollout(maps_of(stack, quantity), quantity)[layer]


FLOWING: dict[str, Callable[[Stack, int], np.ndarray]] = {
    "contribution": lambda stack, layer: stack.layer(layer).contributions_of("attention"),
    "rollout": _rolled("weights"),
    "alti": _rolled("alti"),
}
"""Maps ``[query key]`` of a layer, or through all layers up to it."""


def _position_of(tokenizer: Any, ids: Sequence[int], token: int | str) -> int:
    """The position of a token that is given by its position or by its word.

    Raises:
        TextError: where the word is not in the text, or is there several times.
    """
    if isinstance(token, str):
        named = tokens_from_ids(tokenizer, list(ids))
        names = list(zip(named.pieces, named.labels, strict=True))
        positions = [at for at, both in enumerate(names) if token in both]
        if len(positions) != 1:
            raise TextError(
                f"Expected a token that is in the text once for query, got {token!r}, which is "
                f"there {len(positions)} times; give a position"
            )
        return positions[0]
    if not -len(ids) <= token < len(ids):
        raise TextError(f"The text has {len(ids)} tokens, and query is {token}")
    return token
