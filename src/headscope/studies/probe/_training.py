"""How probes are trained: Adam, and the epoch that did best on sentences set aside."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope._progress import counted

LEAST_GAIN = 1e-4


@dataclass(frozen=True)
class Training:
    """How a probe is trained.

    Args:
        epochs: at most.
        rate: of Adam.
        drop: what the rate is multiplied by after an epoch that did not lower the loss on the
            sentences set aside.
        patience: how many such epochs in a row end the training.
        decay: L2 penalty.
        progress: whether to show a bar on terminals.
        seed: of the first weights, the order and dropout.
    """

    epochs: int
    rate: float
    drop: float = 0.5
    patience: int = 3
    decay: float = 0.0
    progress: bool = False
    seed: int = 0


TRAININGS = {
    "attention": Training(epochs=20, rate=0.005),
    "attention-words": Training(epochs=20, rate=0.002),
    "relation": Training(epochs=30, rate=0.005, decay=1e-5),
    "structural": Training(epochs=40, rate=0.002, drop=0.1, patience=5),
    "edge": Training(epochs=20, rate=0.001, patience=2),
}
"""How each kind of probe is trained by default."""


@dataclass(frozen=True)
class FittedProbe:
    """A trained probe, and the epoch that it is from, counted from 1."""

    module: Any
    epoch: int
    loss: float


def fit(
    make: Callable[[], nn.Module],
    batches: tuple[Sequence[Any], Sequence[Any]],
    loss: Callable[[Any, Any], Tensor],
    how: Training,
    *,
    name: str = "probe",
) -> FittedProbe:
    """Train a probe; the same seed gives the same probe, and the caller's random state stays as it
    was.

    Args:
        make: makes the module.
        batches: to learn from, and to choose the epoch by; in each epoch they come in another
            order.
        loss: of a module on a batch, a mean.
        how: the rest.
        name: for the bar.
    """
    learnt, aside = batches
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(how.seed)
        module = make()
        # Before any training: a probe that never gets better stays as it was made.
        best, best_epoch = _mean_loss(module, aside, loss), 0
        kept = copy.deepcopy(module.state_dict())
        optimiser, since = _adam(module, how, how.rate), 0
        rate = how.rate
        for epoch in counted(
            range(1, how.epochs + 1), name, "epoch", shows=how.progress, stays=False
        ):
            module.train()
            for number in torch.randperm(len(learnt)).tolist():
                optimiser.zero_grad(set_to_none=True)
                loss(module, learnt[number]).backward()
                optimiser.step()
            reached = _mean_loss(module, aside, loss)
            if reached < best - LEAST_GAIN * abs(best):
                best, best_epoch, since = reached, epoch, 0
                kept = copy.deepcopy(module.state_dict())
                continue
            since += 1
            if since >= how.patience:
                break
            # Adam begins anew: its momentum is of steps at the larger rate.
            rate *= how.drop
            optimiser = _adam(module, how, rate)
    module.load_state_dict(kept)
    return FittedProbe(module.eval(), best_epoch, best)


def _adam(module: nn.Module, how: Training, rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=rate, weight_decay=how.decay, fused=True)


def _mean_loss(
    module: nn.Module, batches: Sequence[Any], loss: Callable[[Any, Any], Tensor]
) -> float:
    module.eval()
    with torch.no_grad():
        return sum(float(loss(module, batch)) for batch in batches) / len(batches)
