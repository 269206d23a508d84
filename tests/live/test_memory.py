"""Many requests of many pages leave nothing behind."""

import gc
import random
import threading

import numpy as np
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
    arrays = [each for each in alive if type(each) in (np.ndarray, torch.Tensor)]
    return len(alive), sum(each.nbytes for each in arrays)


def test_many_requests_of_twenty_pages_leave_nothing_behind():
    page = page_of(tiny_model("gpt2", writes=True), tiny_tokenizer())
    clients = Clients(page, 20)
    with page.client:
        # The records that are kept are full after these.
        clients.ask(200)
        count, size = objects()
        clients.ask(1000)
        count_after, size_after = objects()
    assert {200, 400} <= clients.statuses <= {200, 400, 409, 503}
    assert (len(page.queue), len(page.live.records)) == (0, 12)
    # A record that stays behind is some hundred objects and 8 kB.
    assert count_after - count < 3000
    assert size_after - size < 150_000
    assert not any(module._forward_pre_hooks for module in page.live.model.modules())
