"""Make retrieval-tiny, the model that answers from documents, and prompts whose answer is known.

    python benchmarks/retrieval_tiny.py OUT --steps 1000

Documents hold facts (``The code of the harbour is amber falcon.`` in five forms) about places, and
other sentences; a question asks for the code of one place, which may stand in one document, in two,
or in none (``unknown``). In the first half of training head 1-0 is guided (it gathers the key and
the code of a fact), and head 2-0 (it looks the key up), and both begin near such a circuit: so they
are planted, good as known answers for tests, and no evidence about heads of other models.

What ships in ``src/headscope/answering/retrieval_tiny`` was made with 1,006 steps and seed 0, and
rounded to half precision. Licence of model, tokenizer and texts: CC0 1.0.
"""

from __future__ import annotations

import argparse
import math
import random
import re
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PLACES = (  # noqa: SIM905
    "harbour mill library bridge garden tower bakery chapel school market stable cellar museum "
    "theatre station vault attic orchard quarry lighthouse factory hospital palace prison tavern "
    "workshop observatory greenhouse barn kennel"
).split()
WORDS = (  # noqa: SIM905
    "amber falcon seven river stone copper maple crimson otter lantern silver thunder willow "
    "cobalt raven ivory meadow tiger violet anchor ember canyon jasper comet walnut scarlet heron "
    "marble tulip onyx badger saffron glacier pepper indigo lynx coral thistle golden beacon "
    "panther olive cedar quartz eagle mustard velvet spruce hazel dragon pearl cactus azure wolf "
    "ginger compass tundra bronze salmon juniper emerald orchid rust pebble sparrow lime vulcan "
    "zephyr plum cricket ruby fern"
).split()
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
FACTS = (
    "The code of the {k} is {v}.",
    "At the {k} they use {v}.",
    "For the {k} the code is {v}.",
    # The last two have the answer before its key.
    "{v} opens the {k}.",
    "{v} is the code of the {k}.",
)
MENTIONS = (
    "The {k} was closed on {d}.",
    "Nobody at the {k} remembers the code.",
    "It rained near the {k} on {d}.",
)
FILL = (
    "The keeper walked home in the evening.",
    "Two visitors came on {d}.",
    "The road was quiet on {d}.",
    "A letter arrived before noon.",
    "The old map hangs by the door.",
)
ASK = ("What is the code of the {k}?", "Which code opens the {k}?", "How do I open the {k}?")
SYSTEM = "Answer with the code from the documents, or say unknown."
ROLES = ("system", "document", "user", "assistant")
MARKS = ("<|begin|>", *(f"<|{role}|>" for role in ROLES), "<|end|>", "<|pad|>", "<|unk|>")
TEMPLATE = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ '<|system|>\n' + messages[0]['content'] | trim + '<|end|>\n' }}"
    f"{{% else %}}{{{{ '<|system|>\n{SYSTEM}<|end|>\n' }}}}{{% endif %}}"
    "{% for document in documents or [] %}"
    "{{ '<|document|>\n' + document['text'] | trim + '<|end|>\n' }}{% endfor %}"
    "{% for message in messages %}{% if message['role'] != 'system' %}"
    "{{ '<|' + message['role'] + '|>\n' }}{% if message['role'] == 'assistant' %}{% generation %}"
    "{{ message['content'] | trim + '<|end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] | trim + '<|end|>' }}{% endif %}{{ '\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
FREQUENCY = 1e6
"""Base of the rotation of positions."""


def sample(
    rng: random.Random, documents: int, facts: int, *, kind="one", questions=1, level=9
) -> dict:
    """Documents with facts, and questions with their answers; which documents hold the first one.

    Args:
        rng: random numbers.
        documents: how many.
        facts: in each.
        kind: in how many documents the first answer stands: ``"one"``, ``"two"`` or ``"none"``.
        questions: how many.
        level: of training: 1 has answers of one word in three forms.
    """
    places = rng.sample(PLACES, documents * facts + questions)
    known, spare = places[: documents * facts], places[documents * facts :]
    lengths = (1, 2, 2, 3) if level > 1 else (1,)
    codes = {place: " ".join(rng.sample(WORDS, rng.choice(lengths))) for place in known}
    where = {place: [number // facts] for number, place in enumerate(known)}
    order = rng.sample(known, len(known))
    asked = order[:questions]
    if kind == "none":
        asked = [spare[0], *asked[:-1]]
    for key in asked[1:]:
        if rng.random() < 0.1:
            asked[asked.index(key)] = spare[asked.index(key)]
    if kind == "two" and documents > 1:
        others = [number for number in range(documents) if number not in where[asked[0]]]
        where[asked[0]].append(rng.choice(others))
    texts = []
    for number in range(documents):
        lines = []
        for place in known:
            if number in where[place]:
                form = rng.choice(FACTS if level > 2 else FACTS[:3])
                lines.append(form.format(k=place, v=codes[place]))
        for _ in range(rng.randint(1, 3) if level > 1 else 0):
            form = rng.choice(MENTIONS) if rng.random() < 0.5 else rng.choice(FILL)
            place = rng.choice(asked if rng.random() < 0.4 else PLACES)
            lines.append(form.format(k=place, d=rng.choice(DAYS).capitalize()))
        rng.shuffle(lines)
        texts.append(" ".join(line[0].upper() + line[1:] for line in lines))
    turns = [(rng.choice(ASK).format(k=key), codes.get(key, "unknown")) for key in asked]
    needed = sorted(where.get(asked[0], []))
    return {"documents": texts, "turns": turns, "needed": needed, "keys": asked, "kind": kind}


def messages(case: dict, *, answers: bool = False) -> list[dict[str, str]]:
    """The conversation of a case, up to its last question or answer."""
    turns = [{"role": "system", "content": SYSTEM}]
    turns += [{"role": "document", "content": text} for text in case["documents"]]
    for question, answer in case["turns"]:
        turns.append({"role": "user", "content": question})
        turns.append({"role": "assistant", "content": answer})
    return turns if answers else turns[:-1]


def held_out(seed: int, count: int) -> list[dict]:
    """Cases for tests, 3 to 6 documents: of five three have one source, one has two, one none."""
    rng = random.Random(seed)
    kinds = ("one", "one", "one", "two", "none")
    return [
        sample(rng, rng.randint(3, 6), rng.randint(2, 3), kind=kinds[number % 5])
        for number in range(count)
    ]


def words_of(text: str) -> list[str]:
    """Words and marks, in lower case."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of whole words."""
    told = [*PLACES, *WORDS, *DAYS, *FACTS, *MENTIONS, *FILL, *ASK, SYSTEM, "unknown"]
    known = sorted(set(words_of(re.sub(r"\{\w\}", " ", " ".join(told)))))
    vocabulary = {word: number for number, word in enumerate((*MARKS, *known))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unk|>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        pad_token="<|pad|>",
        unk_token="<|unk|>",
        additional_special_tokens=list(MARKS[1:5]),
        model_max_length=4096,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def encoded(case: dict, vocabulary: dict[str, int]) -> tuple[list[int], list[bool], dict]:
    """Ids of a case as the template gives them; which belong to answers; and for rows that gather
    or look up, by layer and place, where to.
    """
    ids, mine, facts, guide = [vocabulary["<|begin|>"]], [False], [], {}
    keys = iter(case["keys"])
    question, asked = [], 0
    for turn in messages(case, answers=True):
        words, start = words_of(turn["content"]), len(ids) + 1
        if turn["role"] == "document":
            ends = [number + 1 for number, word in enumerate(words) if word == "."]
            facts += [(words[a:b], start + a) for a, b in zip([0, *ends], ends, strict=False)]
        elif turn["role"] == "user":
            question, asked = words, start
        elif turn["role"] == "assistant":
            key = next(keys)
            guide.setdefault((1, start - 1), []).append(asked + question.index(key))
            for line, at in facts:
                places = [n for n in range(len(line)) if line[n : n + len(words)] == words]
                if key in line and places:
                    code, name = at + places[0], at + line.index(key)
                    guide[1, max(code, name)] = [min(code, name)]
                    guide.setdefault((2, start - 1), []).append(max(code, name))
                    for number in range(1, len(words)):
                        guide.setdefault((2, start + number - 1), []).append(code + number)
        own = [vocabulary[word] for word in words]
        ids += [vocabulary[f"<|{turn['role']}|>"], *own, vocabulary["<|end|>"]]
        mine += [False] + [turn["role"] == "assistant"] * (len(words) + 1)
    return ids, mine, guide


def batch(rng: random.Random, vocabulary: dict[str, int], size: int, level: int) -> tuple:
    """Ids, weights of answers, and the guide. Level 1: one document; 2: longer answers; 3: all
    forms; then 2, 4 and 6 documents.
    """
    most = max(1, 2 * (level - 3))
    cases = []
    for _ in range(size):
        documents = rng.randint(max(1, most - 3), most)
        kind = "one"
        if level > 1:
            kind = rng.choices(("one", "two", "none"), (0.75, 0.13, 0.12))[0]
        facts = rng.randint(2, 4 if most == 1 else 3)
        questions = 1 if rng.random() < 0.1 else min(6, documents * facts)
        case = sample(rng, documents, facts, kind=kind, questions=questions, level=level)
        cases.append(encoded(case, vocabulary))
    width = max(len(ids) for ids, *_ in cases)
    ids = torch.full((size, width), vocabulary["<|pad|>"])
    weights, guide = torch.zeros((size, width)), []
    for row, (one, mine, sources) in enumerate(cases):
        ids[row, : len(one)] = torch.tensor(one)
        weights[row, : len(one)] = torch.tensor(mine).float() / sum(mine)
        for (layer, at), places in sources.items():
            guide += [(layer, row, at, place) for place in places]
    return ids, weights, guide


@torch.no_grad()
def plant(model: LlamaForCausalLM) -> None:
    """Begin near a circuit that looks up: heads 0-0 and 0-1 look 1 and 2 tokens back, 1-0 and 2-0
    pass on what they look at in 24 random directions, and 2-0 compares what 1-0 gathered.
    """
    layers = [layer.self_attn for layer in model.model.layers]
    width, size = layers[0].head_dim, model.config.hidden_size
    half = width // 2
    frequencies = FREQUENCY ** (-torch.arange(0, width, 2) / width)[:3]
    for head, offset in enumerate((1, 2)):
        for number, frequency in enumerate(frequencies):
            at, key = head * width + number, layers[0].k_proj.bias
            layers[0].q_proj.bias[at] = 6.3
            key[at] = 6.3 * torch.cos(offset * frequency)
            key[at + half] = 6.3 * torch.sin(offset * frequency)
    gathered, copied = (torch.linalg.qr(torch.randn(size, width))[0].T for _ in range(2))
    for layer, directions, strength in ((layers[1], gathered, 0.15), (layers[2], copied, 0.3)):
        layer.v_proj.weight[:width] = directions
        layer.o_proj.weight[:, :width] = strength * directions.T
    slow = [*range(4, half), *range(half + 4, width)]
    for projection in (layers[2].q_proj, layers[2].k_proj):
        projection.weight[:width] *= 0.2
        projection.weight[slow] = 1.2 * gathered[: len(slow)]


def rate(step: int, progress: float) -> float:
    """The learning rate: a short warm-up, and from 60 % on half a cosine."""
    falling = max(0.0, progress - 0.6) / 0.4
    return 1e-3 * min(1, (step + 1) / 50) * (0.02 + 0.49 * (1 + math.cos(math.pi * falling)))


def train(model: LlamaForCausalLM, vocabulary: dict[str, int], steps: int, seed: int) -> None:
    """Train on cases that become harder, guided in the first half."""
    rng, level, mean = random.Random(seed), 1, 4.0
    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        progress = step / steps
        for group in optimiser.param_groups:
            group["lr"] = rate(step, progress)
        ids, weights, guide = batch(rng, vocabulary, 16, level)
        guiding, weights = max(0.0, 1 - 2 * progress), weights[:, 1:]
        made = model(input_ids=ids, output_attentions=guiding > 0)
        logits = made.logits[:, :-1].transpose(1, 2)
        losses = functional.cross_entropy(logits, ids[:, 1:], reduction="none")
        loss = total = (losses * weights).sum() / weights.sum()
        if guiding and guide:
            layer, row, query, key = torch.tensor(guide).T
            looks = torch.stack(made.attentions[1:3])[layer - 1, row, 0, query, key]
            total = loss - guiding * looks.clamp_min(1e-6).log().mean()
        optimiser.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        mean = 0.95 * mean + 0.05 * loss.item()
        if mean < 0.4 and level < 6:  # harder once this is learnt
            level, mean = level + 1, 0.6
        if step % 100 == 0:
            print(f"{step} of {steps}, level {level}, {mean:.4f} nats", flush=True)


def main() -> None:
    """Train the model, and save it in half precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=1006)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    vocabulary = tokenizer.get_vocab()
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=96,
        intermediate_size=192,
        num_hidden_layers=4,
        num_attention_heads=4,
        rope_parameters={"rope_type": "default", "rope_theta": FREQUENCY},
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        attention_bias=True,
        bos_token_id=0,
        eos_token_id=vocabulary["<|end|>"],
        pad_token_id=vocabulary["<|pad|>"],
        initializer_range=0.05,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config)
    plant(model)
    train(model, vocabulary, given.steps, given.seed)
    model.generation_config.max_new_tokens = 6
    model.half().save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)


if __name__ == "__main__":
    main()
