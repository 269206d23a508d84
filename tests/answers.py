"""A made-up answer about a picture, without a model."""

import numpy as np

from headscope.studies import AnswerWord, PictureAnswer

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
    shares = np.tile(attention.sum(axis=-1)[:, None, None], (1, len(layers), heads))
    times = np.ones(patches)
    times[5] = 12.5
    texts = [SENTENCE[at % len(SENTENCE)] for at in range(words)]
    made = {
        "question": "What is <this> & that?",
        "prompt": "USER: <image> What is <this> & that? ASSISTANT:",
        "text": " ".join(texts),
        "model": "a-model",
        "keep_sinks": False,
        "given": 1,
        "tokens": tuple(texts),
        "probabilities": (0.5,) * words,
        "words": tuple(AnswerWord(text, (at,)) for at, text in enumerate(texts)),
        "chosen": tuple((layer, head) for layer in layers for head in range(heads)),
        "layers": layers,
        "grids": (grid,),
        "places": tuple((row, column) for row in range(grid[0]) for column in range(grid[1])),
        "picture_of": (0,) * patches,
        "pictures": (rng.integers(0, 256, (8 * grid[0], 8 * grid[1], 3), np.uint8),),
        "attention": attention,
        "shares": shares,
        "even": np.linspace(0.4, 0.3, words),
        "times": times,
        "apart": 0.0,
    }
    return PictureAnswer(**made | changes)
