"""What a capture asks of the device that computes: operators, copies, and moments at which it
has to be waited for.
"""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headscope.capturing import capture_encoded
from headscope.capturing.building import _build, statistics
from headscope.capturing.calls import attention
from headscope.testing import tiny_model

TEXTS, TOKENS, LAYERS = 8, 512, 16
OPERATORS = {"qk": 700, "statistics": 1200}
"""That a model of 16 layers may take beyond its own pass, by what is kept."""
TENSORS = {"qk": 2, "statistics": 1}
"""That are kept of each layer: queries and keys, or all statistics in one."""
VIEWS = {
    *("alias", "detach", "view", "_unsafe_view", "transpose", "t", "permute", "unsqueeze"),
    *("squeeze", "expand", "slice", "select", "split", "split_with_sizes", "unbind"),
    *("lift_fresh", "empty", "promote_types"),
}
"""Operators for which a device has nothing to do."""
WAITS = {"_local_scalar_dense", "equal", "nonzero"}


class Asked(TorchDispatchMode):
    """Counts the operators that are called, by name."""

    def __init__(self):
        super().__init__()
        self.operators = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.operators[name] += name not in VIEWS
        return func(*args, **(kwargs or {}))


def asked(act, monkeypatch):
    """How many operators, readings of numbers, and copies to memory of the CPU."""
    called = Counter()

    def counted(name, own):
        def read(*args, **options):
            called[name] += 1
            return own(*args, **options)

        return read

    with Asked() as counts, monkeypatch.context() as patched:
        for where, name in ((torch.Tensor, "tolist"), (_build, "on_cpu"), (statistics, "on_cpu")):
            patched.setattr(where, name, counted(name, getattr(where, name)))
        act()
    operators = counts.operators
    readings = called["tolist"] + sum(operators[name] for name in WAITS)
    return Counter(operators=operators.total(), readings=readings, copies=called["on_cpu"])


@pytest.mark.parametrize("keep", OPERATORS)
def test_what_a_capture_asks_of_the_device(keep, monkeypatch):
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
        beyond = asked(captured, monkeypatch)
        beyond.subtract(plain)
        return beyond

    few, more = beyond_the_pass(2), beyond_the_pass(3)
    each = {name: more[name] - few[name] for name in few}
    operators = few["operators"] + (LAYERS - 2) * each["operators"]
    assert operators <= OPERATORS[keep], each
    # Ids, mask and proof, whatever the number of texts and layers.
    assert few["readings"] <= 3
    assert each["readings"] == 0
    assert each["copies"] <= TENSORS[keep]
