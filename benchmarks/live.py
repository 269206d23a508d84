"""What a live model costs beyond a plain pass, and whether it stays as it is under many requests.

    python benchmarks/live.py                      # MiniLM, new texts and changes; about a minute
    python benchmarks/live.py --clients 20 --requests 1000

Times are processor time of the whole process, the server's answer with all that a page draws first
included, beside that of a plain pass over the same texts, taking turns in one run; the page's own
drawing is not in them. Medians in milliseconds, of one torch thread. Of many requests the resident
memory after each tenth of them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time

import psutil
import torch
from starlette.testclient import TestClient

from headscope.capturing import load_model
from headscope.live._model import LiveModel
from headscope.live._server import LiveHost, live_application
from headscope.views import _html

WORDS = (
    *("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"),
    *("and", "then", "it", "sleeps", "in", "the", "warm", "sun"),
)
TOKEN = "token"


def text_of(number: int, words: int = 18) -> str:
    """A text that no other number has: 20 tokens of MiniLM with its special ones."""
    chance = random.Random(number)
    return " ".join(chance.choice(WORDS) for _ in range(words))


def clock(act) -> tuple[float, float]:
    """Processor time and time of an act, in milliseconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    act()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


def median_of(rows) -> str:
    cpu, wall = (statistics.median(row[axis] for row in rows) for axis in (0, 1))
    return f"processor {cpu:7.1f}   wall {wall:7.1f}"


def costs(model, tokenizer, client, rounds: int) -> None:
    """Print what a new text and a change cost."""
    rows = {"plain pass": [], "new text": [], "one head changed": [], "change undone": []}
    for number in range(rounds + 2):
        text = text_of(number)
        inputs = tokenizer(text, return_tensors="pt")
        change = [{"do": "zero", "layer": 2, "heads": [number % 12]}]
        with torch.no_grad():
            timed = {"plain pass": clock(lambda given=inputs: model(**given))}
        timed["new text"] = clock(lambda given=text: ask(client, given))
        timed["one head changed"] = clock(lambda given=text, do=change: ask(client, given, do))
        timed["change undone"] = clock(lambda given=text: ask(client, given))
        # the first two find the places of the model's attention
        for name, row in timed.items() if number >= 2 else ():
            rows[name].append(row)
    print(f"{len(inputs['input_ids'][0])} tokens, {rounds} rounds, milliseconds")
    for name, own in rows.items():
        print(f"  {name:18} {median_of(own)}")


def ask(client, text: str, changes=(), page: str = "one"):
    message = {"page": page, "input": {"text": text}, "changes": list(changes)}
    message["looking"] = {"layer": 3}
    return post(client, message)


def post(client, message):
    headers = {
        "X-Headscope-Token": TOKEN,
        "Origin": "http://localhost",
        "Content-Type": "application/json",
    }
    return client.post("/ask", content=json.dumps(message), headers=headers)


def at_random(chance: random.Random, page: str) -> dict:
    """A request that may be anything."""
    changes = [
        {
            "do": chance.choice(["zero", "uniform", "zero", "explode"]),
            "layer": chance.randrange(7),
            "heads": [chance.randrange(13)],
        }
    ]
    text = text_of(chance.randrange(10**6), chance.randrange(1, 40))
    if chance.random() < 0.2:
        text = chance.choice(["", 3, None, "long " * 600])
    return {
        "page": page,
        "input": {"text": text},
        "changes": chance.choice([[], changes, changes, "zero"]),
        "looking": chance.choice([{}, {"layer": 2}, {"layer": 99}]),
    }


def under_load(client, clients: int, requests: int) -> None:
    """Print statuses and resident memory while several clients ask at random."""
    process, statuses, sizes = psutil.Process(), {}, []
    left = iter(range(requests))
    lock = threading.Lock()

    def work(name: str) -> None:
        chance = random.Random(name)
        while True:
            with lock:
                number = next(left, None)
                if number is None:
                    return
                if number % max(1, requests // 10) == 0:
                    sizes.append(round(process.memory_info().rss / 2**20))
            status = post(client, at_random(chance, name)).status_code
            with lock:
                statuses[status] = statuses.get(status, 0) + 1

    threads = [threading.Thread(target=work, args=(f"page {n}",)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sizes.append(round(process.memory_info().rss / 2**20))
    print(f"{requests} requests of {clients} clients: statuses {dict(sorted(statuses.items()))}")
    print(f"  resident MiB after each tenth: {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--requests", type=int, default=1000)
    given = parser.parse_args()

    torch.set_num_threads(1)
    _html.bundle = lambda name="page.js": ""  # the page itself is not looked at
    model, tokenizer = load_model()
    live = LiveModel(model, tokenizer)
    application = live_application(LiveHost("demo", live=live), TOKEN)
    with TestClient(application, base_url="http://localhost") as client:
        costs(model, tokenizer, client, given.rounds)
        if given.clients:
            under_load(client, given.clients, given.requests)


if __name__ == "__main__":
    main()
