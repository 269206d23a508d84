"""What a capture asks of the device that computes: operators, copies, and moments at which it
has to be waited for.
"""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headscope.capturing import capture_encoded
from headscope.capturing.calls import attention
from headscope.testing import tiny_model

NAMES = "operators", "readings", "copies"
TEXTS, TOKENS = 8, 512


class Asked(TorchDispatchMode):
    """Counts the operators that are called, by name."""

    def __init__(self):
        super().__init__()
        self.operators = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def asked(act, monkeypatch):
    """How many operators, readings of numbers and copies."""
    readings = Counter()

    def counted(name):
        own = getattr(torch.Tensor, name)

        def read(self, *args):
            readings[name] += 1
            return own(self, *args)

        return read

    with Asked() as counts, monkeypatch.context() as patched:
        for name in ("tolist", "item"):
            patched.setattr(torch.Tensor, name, counted(name))
        act()
    found = counts.operators
    scalars = found["_local_scalar_dense"]
    return found.total(), readings["tolist"] + scalars, found["_to_copy"] + found["clone"]


MOST = {"qk": (130, 1, 8), "statistics": (190, 2, 6)}
"""Operators, readings and copies that one more layer may take, by what is kept."""


@pytest.mark.parametrize("keep", MOST)
def test_what_each_layer_asks_of_the_device(keep, monkeypatch):
    # Blocks of the size that a card works on.
    monkeypatch.setitem(attention.NUMBERS, "cpu", attention.NUMBERS["cuda"])
    ids = torch.randint(5, 20, (TEXTS, TOKENS), generator=torch.Generator().manual_seed(0))
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def beyond_the_pass(layers):
        model = tiny_model("llama", num_hidden_layers=layers, max_position_embeddings=TOKENS)

        def captured():
            capture_encoded(model, None, given, keep=keep)

        captured()
        with torch.no_grad():
            plain = asked(lambda: model(**given, use_cache=False), monkeypatch)
        return [all_ - own for all_, own in zip(asked(captured, monkeypatch), plain, strict=True)]

    few, many = beyond_the_pass(2), beyond_the_pass(4)
    for name, less, more, most in zip(NAMES, few, many, MOST[keep], strict=True):
        assert (more - less) / 2 <= most, f"{name}: {less} with 2 layers, {more} with 4"
