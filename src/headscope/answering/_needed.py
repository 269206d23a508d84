"""What an answer needs: the probability of its tokens once parts of the prompt are cut off."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from headscope._progress import counted
from headscope.capturing.device import allowed_apart, device_of, one_at_a_time
from headscope.capturing.run import at_rest
from headscope.capturing.seam import sessions
from headscope.capturing.walk import arguments_of
from headscope.errors import CaptureError
from headscope.interventions import Cut, intervene
from headscope.record import Stack

HOW = ("cut", "direct", "delete", "replace")
"""Ways to take a part from an answer."""
CHECKED = 96
"""Tokens of the text on which hidden keys are compared with `Cut`."""
WITHIN, HALF_WITHIN = 1e-3, 0.25
"""How far logarithms of probabilities may be apart to count as equal, and in half precision; ours.
"""
HIDDEN_KEYS, BY_CUT = "hidden keys", "Cut"
Places = tuple[int, ...]
"""Positions of tokens, rising."""
Logs = Float[np.ndarray, " token"]


@dataclass(frozen=True)
class Needed:
    """Logarithms of the probabilities of an answer's tokens, forced, with parts of the prompt cut.

    Args:
        whole: ``[token]``, with nothing cut.
        none: ``[token]``, with all parts cut.
        without: ``[part token]``, with one part cut.
        alone: ``[part token]``, with all other parts cut.
        by: how links were cut: ``"hidden keys"`` or ``"Cut"``; empty where tokens were changed.
        checked: largest difference between hidden keys and `Cut` on a short text; NaN where they
            were not compared.
    """

    whole: Logs
    none: Logs
    without: Float[np.ndarray, "part token"]
    alone: Float[np.ndarray, "part token"]
    by: str
    checked: float


@dataclass
class ForcedAnswer:
    """A prompt, and an answer whose tokens are given.

    Args:
        model: that reads them.
        ids: of prompt and answer.
        start: how many of them are the prompt.
        stack: of a record of them: which layers have attention, and what they see.
        beside: arguments of the forward besides ids, such as pixels.
    """

    model: Any
    ids: tuple[int, ...]
    start: int
    stack: Stack
    beside: Mapping[str, Any] = field(default_factory=dict)

    def read(self) -> Logs:
        """The logarithm of the probability of each token of the answer."""
        own = {"attention_mask": torch.ones_like(self._ids)} | dict(self.beside)
        if "use_cache" in arguments_of(self.model):
            own["use_cache"] = False
        return self._logs(self.model(input_ids=self._ids, **own).logits)

    def after(self, prompt: Sequence[int]) -> Logs:
        """The same behind another prompt."""
        ids = (*prompt, *self.ids[self.start :])
        return ForcedAnswer(self.model, ids, len(prompt), self.stack).read()

    def cut(self, hidden: Places, *, direct: bool = False) -> Logs:
        """The same with these tokens cut off by `Cut` in every layer: nobody behind them looks at
        them.

        Args:
            hidden: which tokens.
            direct: whether only the rows that write the answer stop looking.
        """
        if not hidden:
            return self.read()
        gone = set(hidden)
        rows = range(self.start - 1 if direct else hidden[0], len(self.ids) - 1)
        queries = [row for row in rows if row not in gone]
        cuts = [
            Cut(stack=self.stack.name, layer=layer.layer, queries=queries, keys=hidden)
            for layer in self.stack
        ]
        with intervene(self.model, *cuts):
            return self.read()

    def hide(self, hidden: Places, *, direct: bool = False) -> Logs:
        """The same as `cut`, from the keys and values of what comes before: tokens that nobody
        looks at are not read, and the others keep their positions.
        """
        if not hidden:
            return self._whole[1]
        gone, read = set(hidden), len(self.ids) - 1
        first = self.start - 1 if direct else hidden[0]
        before = [at for at in range(first) if at not in gone]
        rest = [at for at in range(first, read) if at not in gone]
        from transformers import DynamicCache

        cache = DynamicCache()
        chosen = torch.tensor(before, dtype=torch.long, device=self._ids.device)
        for number, layer in enumerate(self._whole[0].layers):
            keys, values = (each.index_select(2, chosen) for each in (layer.keys, layer.values))
            cache.update(keys, values, number)
        return self._logs(self._read_on(cache, rest, len(before)))

    @property
    def hides(self) -> bool:
        """Whether `hide` may be tried: a decoder of texts whose every row sees all before it."""
        named = arguments_of(self.model)
        last = np.array([len(self.ids) - 2])
        sees_all = all(bool(layer.visible.rows(last).all()) for layer in self.stack)
        known = {"position_ids", "past_key_values", "attention_mask"} <= set(named)
        return not self.beside and not sessions() and known and sees_all

    def shortened(self) -> ForcedAnswer:
        """Its beginning, as if the last third were the answer."""
        ids = self.ids[:CHECKED]
        return ForcedAnswer(self.model, ids, 2 * len(ids) // 3, self.stack)

    @cached_property
    def _ids(self) -> torch.Tensor:
        return torch.tensor([self.ids[:-1]], device=device_of(self.model))

    @cached_property
    def _whole(self) -> tuple[Any, Logs]:
        """Keys and values of all tokens, and what `read` gives."""
        from transformers import DynamicCache

        cache = DynamicCache()
        return cache, self._logs(self._read_on(cache, list(range(len(self.ids) - 1)), 0))

    def _read_on(self, cache: Any, places: list[int], before: int) -> torch.Tensor:
        at = torch.tensor([places], device=self._ids.device)
        mask = torch.ones((1, before + len(places)), dtype=torch.long, device=at.device)
        own: dict[str, Any] = {"attention_mask": mask, "position_ids": at}
        if "logits_to_keep" in arguments_of(self.model):
            own["logits_to_keep"] = len(self.ids) - self.start
        read = self._ids[:, places]
        return self.model(input_ids=read, past_key_values=cache, use_cache=True, **own).logits

    def _logs(self, logits: torch.Tensor) -> Logs:
        """Of the tokens of the answer, of the last rows of a pass."""
        tokens = torch.tensor(self.ids[self.start :], device=logits.device)
        rows = logits[0, -len(tokens) :].float().log_softmax(-1)
        return rows.gather(1, tokens[:, None])[:, 0].double().cpu().numpy()


def needed(
    answer: ForcedAnswer, parts: Sequence[Places], how: str = "cut", *, progress: bool = False
) -> Needed:
    """The probability of an answer without each part, with each alone, and with none of them.

    Cut: nobody behind a part looks at it, in any layer, and positions stay. Where every row sees
    all tokens before it, the tokens that are hidden are left out of a key/value cache, which costs
    a tenth; that is compared with `Cut` on a short text first, and `Cut` is used where both differ
    (ALiBi, positions that are counted from a mask). ``direct`` cuts the rows alone that write the
    answer. ``delete`` leaves the tokens out, so that those behind them move up; ``replace`` puts
    them in random order.

    Args:
        answer: what is read.
        parts: positions of the tokens of each.
        how: one of `HOW`.
        progress: whether a bar is shown.

    Raises:
        CaptureError: where the model has layers that cannot be cut, or tokens that cannot be
            changed.
    """
    every = tuple(sorted({at for part in parts for at in part}))
    others = [tuple(at for at in every if at not in set(part)) for part in parts]
    cases = [*parts, *others, every]
    model = answer.model
    with one_at_a_time(model), at_rest(model):
        measure, by, checked = _way(answer, how, parts)
        read: dict[Places, Logs] = {}
        left = list(dict.fromkeys([(), *cases]))
        for case in counted(left, "Cutting", "case", shows=progress):
            read[case] = measure(case)
    own, alone = ([read[case] for case in some] for some in (parts, others))
    return Needed(read[()], read[every], np.array(own), np.array(alone), by, checked)


def _way(
    answer: ForcedAnswer, how: str, parts: Sequence[Places]
) -> tuple[Callable[[Places], Logs], str, float]:
    """What measures a case, and how."""
    if how in ("delete", "replace"):
        if answer.beside:
            raise CaptureError(
                f"need={how!r} changes tokens of a text, and a picture is read whole; use "
                "need='cut', or None"
            )
        return (_deleted if how == "delete" else _replaced)(answer, parts), "", float("nan")
    if answer.stack.others:
        number, what = next(iter(answer.stack.others.items()))
        raise CaptureError(
            f"{type(answer.model).__name__} passes tokens on in layer {number} ({what}), which "
            "cannot be cut; use need='delete' or 'replace', or None"
        )
    direct, apart = how == "direct", float("nan")
    if answer.hides:
        short = answer.shortened()
        third = len(short.ids) // 3
        some = tuple(range(third // 2, third))
        both = (way(some, direct=direct) for way in (short.hide, short.cut))
        apart = float(np.abs(np.subtract(*both)).max())
        weights = next(answer.model.parameters())
        if apart <= allowed_apart(weights, WITHIN, HALF_WITHIN):
            return lambda case: answer.hide(case, direct=direct), HIDDEN_KEYS, apart
    return lambda case: answer.cut(case, direct=direct), BY_CUT, apart


def _deleted(answer: ForcedAnswer, _: Sequence[Places]) -> Callable[[Places], Logs]:
    prompt = answer.ids[: answer.start]
    return lambda case: answer.after([n for at, n in enumerate(prompt) if at not in set(case)])


def _replaced(answer: ForcedAnswer, parts: Sequence[Places]) -> Callable[[Places], Logs]:
    def measure(case: Places) -> Logs:
        drawn, prompt = random.Random(0), list(answer.ids[: answer.start])
        for part in parts:
            own = [at for at in part if at in set(case)]
            old = [answer.ids[at] for at in own]
            new = list(old)
            while new == old and len(set(old)) > 1:
                new = drawn.sample(old, len(old))
            for at, token in zip(own, new, strict=True):
                prompt[at] = token
        return answer.after(prompt)

    return measure
