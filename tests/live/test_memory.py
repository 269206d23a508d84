"""Many requests of many pages leave nothing behind."""

import gc
import random
import threading

import numpy as np
import pytest
import torch

from headscope.testing import tiny_model, tiny_tokenizer

from .conftest import page_of


class Clients:
    """Pages that ask at random, each in a thread of its own."""

    def __init__(self, page, count):
        self.page, self.count, self.statuses = page, count, set()

    def ask(self, requests):
        """So many requests of all pages together."""

        def work(name):
            chance = random.Random(f"{name} {requests}")
            for _ in range(requests // self.count):
                self.statuses.add(self.page.post("/ask", self.message(chance, name)).status_code)

        threads = [
            threading.Thread(target=work, args=(f"page {number}",)) for number in range(self.count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    def message(self, chance, name):
        # Most that a stranger sends is refused before the model runs, which is cheap.
        if chance.random() < 0.6:
            return self.strange(chance, name)
        text = " ".join(chance.choice(["the", "cat", "sat"]) for _ in range(chance.randrange(1, 6)))
        change = {
            "do": chance.choice(["zero", "uniform", "explode"]),
            "layer": chance.randrange(4),
            "heads": [chance.randrange(6)],
        }
        return {
            "page": name,
            "input": {"text": chance.choice([text, text, text, "", 3])},
            "changes": chance.choice([[], [change], "zero"]),
            "looking": chance.choice([{}, {"layer": 2}, {"layer": 99}]),
        }

    def strange(self, chance, name):
        """A request of known and unknown fields with values of any kind."""
        fields = ("page", "input", "changes", "looking", "second", "text")
        values = (None, True, -1, 1e300, "", "the", [], [[]], {}, {"text": ["the"]}, {"do": 3})
        message = {field: chance.choice(values) for field in chance.sample(fields, 4)}
        return chance.choice([{"page": name} | message, [message], None, b"{", b"[" * 200])


def objects():
    """How many objects Python holds, and the bytes of all arrays and tensors among them."""
    gc.collect()
    alive = gc.get_objects()
    # Python's collector knows tensors, but arrays only as what others refer to.
    known = [*alive, *gc.get_referents(*alive)]
    arrays = {id(each): each for each in known if isinstance(each, np.ndarray | torch.Tensor)}
    # A view has no bytes of its own.
    owners = [each for each in arrays.values() if getattr(each, "base", None) is None]
    return len(alive), sum(each.nbytes for each in owners)


def check_growth(page, clients, requests, *, before=200, meanwhile=None):
    """Raise where so many requests leave more behind than a few lists and caches of Python."""
    with page.client:
        # The records that are kept are full after these.
        clients.ask(before)
        count, size = objects()
        if meanwhile is not None:
            meanwhile()
        clients.ask(requests)
        count_after, size_after = objects()
    # A record that stays behind is some 160 objects and 23 kB.
    assert count_after - count < 2000 + requests, "objects stay behind"
    assert size_after - size < 100_000 + 50 * requests, "arrays stay behind"
    hooks = [module for module in page.live.model.modules() if module._forward_pre_hooks]
    assert hooks == [], "hooks stay behind"


@pytest.fixture
def page():
    # Whatever is there already is not counted: a model is a hundredth of it.
    gc.collect()
    gc.freeze()
    return page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())


def test_many_requests_of_twenty_pages_leave_nothing_behind(page):
    clients = Clients(page, 20)
    check_growth(page, clients, 500)
    assert {200, 400} <= clients.statuses <= {200, 400, 409, 503}
    assert (len(page.queue), len(page.live.records)) == (0, 12)
