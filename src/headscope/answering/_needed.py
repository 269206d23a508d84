"""What an answer needs: the probability of its tokens once parts of the prompt are cut off."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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

CHECKED = 48
"""Tokens of the text on which hidden keys are compared with `Cut`."""
BLOCK = 256
"""Tokens that are read at once, so that a mask has no more rows."""
WITHIN, HALF_WITHIN = 1e-3, 0.25
"""How far logarithms of probabilities may be apart to count as equal, and in half precision; ours.
"""
LONG = 200_000
"""Tokens that are read before it is said what cuts take; ours."""
HIDDEN_KEYS, BY_CUT = "hidden keys", "Cut"
Places = tuple[int, ...]
"""Positions of tokens, rising."""
Logs = Float[np.ndarray, " token"]


@dataclass
class ForcedAnswer:
    """A prompt, and an answer whose tokens are given.

    Args:
        model: that reads them.
        ids: of prompt and answer.
        start: how many of them are the prompt.
        stack: of a record of them: which layers have attention, and what they see.
        beside: arguments of the forward besides ids, such as pixels.
        cache: what was kept of keys and values as the answer was written.
    """

    model: Any
    ids: tuple[int, ...]
    start: int
    stack: Stack
    beside: Mapping[str, Any] = field(default_factory=dict)
    cache: Any = None

    def read(self) -> Logs:
        """The logarithm of the probability of each token of the answer."""
        own = {"attention_mask": torch.ones_like(self._ids), **self._last_rows(), **self.beside}
        if "use_cache" in arguments_of(self.model):
            own["use_cache"] = False
        return self._logs(self.model(input_ids=self._ids, **own).logits)

    def after(self, prompt: Sequence[int]) -> Logs:
        """The same behind another prompt."""
        return replace(self, ids=(*prompt, *self.ids[self.start :]), start=len(prompt)).read()

    def cut(self, hidden: Places, *, direct: bool = False) -> Logs:
        """The same with these tokens cut off by `Cut` in every layer: nobody behind them looks at
        them.

        Args:
            hidden: which tokens.
            direct: whether only the rows that write the answer stop looking.
        """
        if not hidden:
            return self.read()
        rows = range(self.start - 1 if direct else hidden[0], len(self.ids) - 1)
        queries = sorted(set(rows).difference(hidden))
        cuts = [
            Cut(stack=self.stack.name, layer=layer.layer, queries=queries, keys=hidden)
            for layer in self.stack
        ]
        with intervene(self.model, *cuts):
            return self.read()

    def hidden(self, cases: Iterable[Places], *, direct: bool = False) -> Iterator[Logs]:
        """The same as `cut` of each case, from keys and values that cases share: tokens that nobody
        looks at are not read, and the others keep their positions.

        A case goes on where it leaves the one before, so in rising order of the tokens that are
        read, which begins with none hidden, no token is read twice behind the same ones.
        """
        cache, rows = self._kept(), len(self.ids) - self.start
        before = list(range(cache.get_seq_length()))
        for case in cases:
            gone = set(case)
            places = [at for at in range(len(self.ids) - 1) if direct or at not in gone]
            # The rows that write the answer are read in any case.
            common = min(_alike(before, places), len(places) - rows)
            if 8 * common < len(places):
                common = 0  # from the beginning no mask of rows and keys is needed
            cache.crop(common - len(before))
            mask = torch.ones((1, len(places)), dtype=torch.long, device=self._ids.device)
            mask[:, case if direct else ()] = 0
            while common and len(places) - common > BLOCK + rows:
                # The last token stands behind each block, and is taken back: frequencies of rotary
                # positions may follow from the length of a text.
                block = [*range(common, common + BLOCK), len(places) - 1]
                self._read_on(cache, places, block, mask)
                cache.crop(-1)
                common += BLOCK
            yield self._logs(self._read_on(cache, places, [*range(common, len(places))], mask))
            before = places

    def _read_on(
        self, cache: Any, places: list[int], some: list[int], mask: torch.Tensor
    ) -> torch.Tensor:
        """Logits of the last of some places, behind those that are read."""
        at = torch.tensor([[places[number] for number in some]], device=self._ids.device)
        own = {"input_ids": self._ids[:, at[0]], "position_ids": at, **self._last_rows()}
        own["attention_mask"] = torch.cat([mask[:, : some[0]], mask[:, some]], dim=1)
        return self.model(past_key_values=cache, use_cache=True, **own).logits

    def _kept(self) -> Any:
        """Keys and values of all tokens, where the text was written with a cache of all, else of
        none.
        """
        from transformers import DynamicCache

        cache, read = DynamicCache(), len(self.ids) - 1
        given = isinstance(self.cache, DynamicCache) and not self.cache.offloading
        layers = self.cache.layers if given else []
        if all(layer.is_initialized and layer.keys.shape[::2] == (1, read) for layer in layers):
            for number, layer in enumerate(layers):
                cache.update(layer.keys, layer.values, number)
        return cache

    @property
    def hides(self) -> bool:
        """Whether `hidden` may be tried: a decoder of texts whose every row sees all before it."""
        last = np.array([len(self.ids) - 2])
        sees_all = all(bool(layer.visible.rows(last).all()) for layer in self.stack)
        known = set(arguments_of(self.model)) >= {"position_ids", "past_key_values"}
        return not self.beside and not sessions() and known and sees_all

    @cached_property
    def _ids(self) -> torch.Tensor:
        return torch.tensor([self.ids[:-1]], device=device_of(self.model))

    def _last_rows(self) -> dict[str, Any]:
        """What asks a model for no other logits than those of the answer, where it can be asked."""
        rows = len(self.ids) - self.start
        return {"logits_to_keep": rows} if "logits_to_keep" in arguments_of(self.model) else {}

    def _logs(self, logits: torch.Tensor) -> Logs:
        """Of the tokens of the answer, of the last rows of a pass."""
        tokens = torch.tensor(self.ids[self.start :], device=logits.device)
        rows = logits[0, -len(tokens) :].float().log_softmax(-1)
        return rows.gather(1, tokens[:, None])[:, 0].double().cpu().numpy()


def needed(
    answer: ForcedAnswer, parts: Sequence[Places], how: str = "cut", *, progress: bool = False
) -> dict[str, Any]:
    """Logarithms of the probabilities of an answer's tokens, forced: whole, without each part, with
    each alone, and with none of them; and how links were cut. By the names of `Answer`.

    Cut: nobody behind a part looks at it, in any layer, and positions stay. Where every row sees
    all tokens before it, the tokens that are hidden are left out of a key/value cache, which costs
    a tenth; that is compared with `Cut` on a short text first, and `Cut` is used where both differ
    (ALiBi, positions that are counted from a mask). ``direct`` cuts the rows alone that write the
    answer. ``delete`` leaves the tokens out, so that those behind them move up; ``replace`` puts
    them in random order.

    Args:
        answer: what is read.
        parts: positions of the tokens of each.
        how: one of `BY`.
        progress: whether a bar is shown.

    Raises:
        CaptureError: where the model has layers that cannot be cut, or tokens that cannot be
            changed.
    """
    every = tuple(sorted({at for part in parts for at in part}))
    others = [tuple(sorted(set(every).difference(part))) for part in parts]
    # In rising order of what is left, so that `hidden` reads least.
    cases = {(), every, *parts, *others}
    order = sorted(cases, key=lambda case: (*case, len(answer.ids)), reverse=True)
    with one_at_a_time(answer.model), at_rest(answer.model):
        measure, by, checked = _way(answer, how, parts)
        # Hidden keys are read again behind each part alone, and by `direct` not at all.
        passes = len(parts) * (how != "direct") // 2 if by == HIDDEN_KEYS else len(order)
        told = f"Cutting {len(parts)} parts is about {passes} passes of {len(answer.ids):,} tokens"
        if passes * len(answer.ids) > LONG:
            warnings.warn(f"{told}; larger parts take fewer, need=None none", stacklevel=4)
        shown = counted(order, "Cutting", "case", shows=progress)
        read = dict(zip(order, measure(shown), strict=True))
    without, alone = (np.array([read[case] for case in some]) for some in (parts, others))
    whole = {"whole": read[()], "none": read[every]}
    return {**whole, "without": without, "alone": alone, "by": by, "checked": checked}


def _way(
    answer: ForcedAnswer, how: str, parts: Sequence[Places]
) -> tuple[Callable[[Iterable[Places]], Iterable[Logs]], str, float | None]:
    """What measures cases, how links are cut, and how far hidden keys are from `Cut`."""
    if how in ("delete", "replace"):
        if answer.beside:
            raise CaptureError(
                f"need={how!r} changes tokens of a text, and a picture is read whole; use "
                "need='cut', or None"
            )
        return partial(map, partial(_changed, answer, how, parts)), "", None
    if answer.stack.others:
        number, what = next(iter(answer.stack.others.items()))
        raise CaptureError(
            f"{type(answer.model).__name__} passes tokens on in layer {number} ({what}), which "
            "cannot be cut; use need='delete' or 'replace', or None"
        )
    direct, apart = how == "direct", None
    if answer.hides:
        # Its beginning, as if the last third were the answer.
        ids = answer.ids[:CHECKED]
        third = len(ids) // 3
        short = replace(answer, ids=ids, start=2 * third, cache=None)
        some = tuple(range(third // 2, third))
        _, hidden = short.hidden([(), some], direct=direct)
        apart = float(np.abs(hidden - short.cut(some, direct=direct)).max())
        if apart <= allowed_apart(next(answer.model.parameters()), WITHIN, HALF_WITHIN):
            return partial(answer.hidden, direct=direct), HIDDEN_KEYS, apart
    return partial(map, partial(answer.cut, direct=direct)), BY_CUT, apart


def _alike(one: list[int], other: list[int]) -> int:
    """How many numbers both lists begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _changed(answer: ForcedAnswer, how: str, parts: Sequence[Places], case: Places) -> Logs:
    """What is read of the answer with tokens left out, or those of each part in another order."""
    drawn, prompt, gone = random.Random(0), np.array(answer.ids[: answer.start]), set(case)
    if how == "delete":
        return answer.after(np.delete(prompt, case).tolist())
    for part in parts:
        own = [at for at in part if at in gone]
        old = [answer.ids[at] for at in own]
        new = list(old)
        while new == old and len(set(old)) > 1:
            new = drawn.sample(old, len(old))
        prompt[own] = new
    return answer.after(prompt.tolist())
