"""A made-up answer about a picture, without a model."""

import numpy as np

from headscope.answering import Answer, AnswerWord
from headscope.record import Part

SENTENCE = (
    *("A", "small", "house", "with", "a", "red", "roof", "stands", "on", "a", "green", "hill"),
    *("beside", "a", "round", "tree", "."),
)


def made_answer(words=7, grid=(4, 6), **changes):
    """An answer of so many words of one token each, over a picture of so many patches.

    The first word looks at one patch, the second at another, and so on; patch 5 is a sink.
    """
    rng = np.random.default_rng(5)
    patches, layers, heads = grid[0] * grid[1], (0, 2), 3
    attention = rng.random((words, patches)) * 0.004
    attention[np.arange(words), (3 * np.arange(words)) % patches] += 0.05
    attention[:, 5] += 0.2
    looked, even = attention.sum(axis=-1), np.linspace(0.4, 0.3, words)
    # The first key is the first token, the last one the template; the answer looks at itself last.
    columns = np.stack([looked, *[(1 - looked) / 3] * 3], axis=-1)
    shares = np.tile(columns[:, None, None], (1, len(layers), heads, 1))
    evens = np.stack([even, *[(1 - even) / 3] * 3], axis=-1)
    whole = np.full(words, np.log(0.5))
    times = np.ones(patches)
    times[5] = 12.5
    texts = [SENTENCE[at % len(SENTENCE)] for at in range(words)]
    made = {
        "question": "What is <this> & that?",
        "prompt": "USER: <image> What is <this> & that? ASSISTANT:",
        "pieces": ("", *[""] * patches, "What"),
        "text": " ".join(texts),
        "model": "a-model",
        "quantity": "weight",
        "need": "",
        "by": "",
        "checked": None,
        "keep_sinks": False,
        "heads_given": False,
        "sampled": False,
        "given": 1,
        "tokens": tuple(texts),
        "probabilities": (0.5,) * words,
        "words": tuple(AnswerWord(text, (at,)) for at, text in enumerate(texts)),
        "chosen": tuple((layer, head) for layer in layers for head in range(heads)),
        "layers": layers,
        "parts": (Part(name="picture", kind="picture", tokens=tuple(range(1, patches + 1))),),
        "candidates": (0,),
        "patches": tuple(range(1, patches + 1)),
        "grids": (grid,),
        "places": tuple((row, column) for row in range(grid[0]) for column in range(grid[1])),
        "picture_of": (0,) * patches,
        "pictures": (rng.integers(0, 256, (8 * grid[0], 8 * grid[1], 3), np.uint8),),
        "attention": np.pad(attention, ((0, 0), (1, 1))),
        "shares": shares,
        "even": np.tile(evens[:, None], (1, len(layers), 1)),
        "copies": np.zeros((words, len(layers), heads)),
        "times": times,
        "whole": whole,
        "none": np.full(words, np.nan),
        "without": np.full((1, words), np.nan),
        "alone": np.full((1, words), np.nan),
    }
    return Answer(**made | changes)
