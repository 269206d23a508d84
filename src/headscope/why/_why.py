"""Why a model said a word: from the answer back through layers and heads to the words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch

from headscope._progress import Progress
from headscope.capturing.device import one_at_a_time
from headscope.capturing.facts import display_name
from headscope.capturing.fitness import MASKED, NEXT, check_fit
from headscope.capturing.run import at_rest
from headscope.capturing.walk import reads_target
from headscope.errors import TextError
from headscope.patterns import head_kinds
from headscope.record import Tokens
from headscope.why._cutting import cut_alone, drawn_by_weight, keep_only, read_down
from headscope.why._result import DRAWN, SIZES, Why
from headscope.why.held import PulledBack, WhyQuestion, place_in, pulled_back, read_text, through

POOL, EVERY = 400, 1024
"""Links that are cut, and up to how many all are."""


def why(
    model: Any,
    tokenizer: Any = None,
    text: Any = None,
    answer: str | int | None = None,
    *,
    instead: str | int | None = None,
    position: int = -1,
    progress: bool | Callable[[int, int], object] = False,
    **options: Any,
) -> Why:
    """Follow a predicted token back through layers and heads to the words it came from.

    The lead is the logit of the answer less that of the runner-up, before any cap. Of each link,
    one head from one token to another: what it carries, ``a dL/da`` with attention, norms and gates
    held as they are in this run, which sums to the lead exactly over words and biases; an estimate
    of cutting it, ``a dL/da`` of the model itself; and for the strongest of both what was measured,
    the lead with its weight set to 0 and the rest not renormalised, less the lead. Sets of lines
    are tried too: what the lead keeps with all other links cut at once.

    Carried is not caused: heads stand in for each other, and norms fill up. Agreement of estimate
    and measurement is no evidence, as it is there in random models too; see ``refusal``.

    Source: Elhage et al. 2021 (direct), Achtibat et al. 2024 (carried), Syed et al. 2023
    (estimate), Marks et al. 2024 (what a graph keeps).

    Args:
        model: a loaded model, a hub name or a folder: causal, for masked words, or an
            encoder-decoder; None for the small one that answers from documents.
        tokenizer: its tokenizer; may be left out where the model is named.
        text: a text, a conversation or documents with a question, as of `headscope.capture`; token
            ids, or what a tokenizer made.
        answer: the token that is explained, as text or id; by default the likeliest one.
        instead: the token that it is compared with; by default the likeliest other one.
        position: of the token whose row predicts the answer, in the text or in what the decoder
            reads; by default that of the mask, or the last one.
        progress: whether a bar is shown; or what is called with how much is done, and of how much
            at most.
        **options: ``target``, for the decoder of an encoder-decoder; ``allow_unfit``; ``parts``;
            and `LoadOptions` for a model that is named.

    Raises:
        TextError: an answer that is no single token, or a position that there is not.
        ModelError: a model that cannot be loaded, or whose head was not trained.
        CaptureError: a model whose lead is not the sum of its parts.

    Example:
        >>> asked = why(model, tokenizer, "Once upon a time, there was a girl named")
        >>> print(asked)
    """
    anyway = bool(options.pop("allow_unfit", False))
    model, tokenizer, record, arguments = read_text(model, tokenizer, text, options)
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    with one_at_a_time(model), at_rest(model):
        if hasattr(model.config, "use_cache"):
            arguments["use_cache"] = False
        logits = model(**arguments).logits[0]
        ids = list(record.stacks.values())[-1].query.ids or ()
        at = place_in(position, ids, getattr(tokenizer, "mask_token_id", None))
        if not reads_target(model) and not anyway:
            is_masked = ids[at] == getattr(tokenizer, "mask_token_id", None)
            check_fit(model, MASKED if is_masked else NEXT, ids)
        tokens = _tokens(tokenizer, logits[at], answer, instead)
        question = WhyQuestion(model, arguments, record, at, tokens)
        facts: dict[str, Any] = {"model": display_name(model)}
        facts["probability"] = float(logits[at].float().softmax(-1)[tokens[0]])
        facts["answer"], facts["instead"] = (_shown(tokenizer, each) for each in tokens)
        return _answered(question, facts, logits[at], progress)


def _tokens(tokenizer: Any, logits: torch.Tensor, *wanted: Any) -> tuple[int, int]:
    """The answer and what it is compared with.

    Raises:
        TextError: where one is no single token, or both are one.
    """
    known = [None if each is None else _token(tokenizer, each, len(logits)) for each in wanted]
    likely = [token for token in logits.topk(3).indices.tolist() if token not in known]
    answer = likely.pop(0) if known[0] is None else known[0]
    instead = likely.pop(0) if known[1] is None else known[1]
    if answer == instead:
        raise TextError(f"answer and instead are one token, {wanted[0]!r}; give two")
    return answer, instead


def _token(tokenizer: Any, wanted: Any, count: int) -> int:
    if isinstance(wanted, int):
        if not 0 <= wanted < count:
            raise TextError(f"There is no token {wanted}; the model has 0 to {count - 1}")
        return wanted
    if tokenizer is None:
        raise TextError(f"{wanted!r} needs a tokenizer; give the id of the token")
    for text in (wanted, f" {wanted}"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1:
            return ids[0]
    pieces = ", ".join(map(repr, tokenizer.convert_ids_to_tokens(ids)))
    raise TextError(f"{wanted!r} is several tokens, {pieces}; give one of them, or its id")


def _shown(tokenizer: Any, token: int) -> str:
    # Models have more rows than their tokenizer has tokens.
    piece = (tokenizer and tokenizer.convert_ids_to_tokens(token)) or str(token)
    return Tokens(pieces=(piece,)).labels[0] or piece


def _answered(
    question: WhyQuestion, facts: dict[str, Any], logits: torch.Tensor, progress: Any
) -> Why:
    """All that is asked, as a result."""
    held, own, plain = (pulled_back(question, how) for how in ("held", "own place", "nothing"))
    facts |= _sums(question, held, own, plain.lead)
    first, second = (float(logits[token]) for token in question.tokens)
    sums = facts["words"].sum(), facts["direct"].sum() + facts["rest"].sum()
    # Of large parts that cancel each other little is left, but not of their rounding.
    scale = max(abs(first), abs(second), np.abs(facts["words"]).sum())
    question.check_sums("the lead", sums, facts["lead"], scale)
    links, numbers = _pool(question, held, plain)
    position, stacks = question.sources + question.at, question.record.stacks
    most = len(links) + (1 + DRAWN) * len(SIZES) + 1 + max(SIZES)
    with Progress("Cutting", "link", most, shows=progress) as bar:
        numbers[:, 3] = cut_alone(question, links, bar) - plain.lead
        order = np.argsort(-np.abs(numbers[:, [1, 3]]).max(axis=1, initial=0.0), kind="stable")
        graphs = _graphs(links, order, position)
        draws = list(islice(drawn_by_weight(question, max(SIZES)), DRAWN))
        some = [np.zeros((0, 4), int), *(links[graph] for graph in graphs)]
        some += [draw[: len(graph)] for draw in draws for graph in graphs]
        leads = keep_only(question, some, bar)
        shown = graphs[-1] if graphs else order[:0]
        numbers[shown, 4] = cut_alone(question, links[shown], bar, later=False) - plain.lead
    every = np.arange(len(links))
    sides = [each.query for name, each in stacks.items() if name != "cross"]
    return Why(
        **facts,
        capped=abs(first - second - plain.lead) > 1e-4 * max(1.0, abs(plain.lead)),
        position=position,
        sources=question.sources,
        none=float(leads[0]),
        tokens=tuple(label for side in sides for label in _words_so_far(side)),
        cells=tuple(question.cells),
        kinds=_kinds(question),
        parts=sides[0].parts,
        links=links,
        numbers=numbers,
        graphs=np.array([np.isin(every, graph) for graph in graphs]).reshape(-1, len(links)),
        kept=leads[1 : 1 + len(graphs)],
        drawn=leads[1 + len(graphs) :].reshape(DRAWN, len(graphs)),
        record=question.record,
    )


def _kinds(question: WhyQuestion) -> tuple[tuple[str, ...], ...]:
    """The kind of each head of each layer on this text."""
    kinds = {name: head_kinds(stack) for name, stack in question.record.stacks.items()}
    named = []
    for (stack, number), layer in zip(question.cells, question.layers, strict=True):
        named.append(tuple(kinds[stack].kind(number, head) for head in range(layer.heads)))
    return tuple(named)


def _words_so_far(tokens: Tokens) -> Iterator[str]:
    """Labels of tokens; of one that continues a word what there is of the word so far."""
    word = ""
    for label, goes_on in zip(tokens.labels, tokens.continues, strict=True):
        word = word + label if goes_on else label
        yield word


def _sums(question: WhyQuestion, held: PulledBack, own: PulledBack, lead: float) -> dict[str, Any]:
    """What words carry, and what parts write at the answer's own place."""
    layers, cells = question.layers, question.cells
    paths = dict.fromkeys(question.block(layer)[0] for layer in layers)
    words = [*(held.words[path] for path in paths), [held.biases]]
    heads, keys = max(layer.heads for layer in layers), max(layer.size[1] for layer in layers)
    direct = np.zeros((len(cells), heads, keys))
    for index, (cell, layer) in enumerate(zip(cells, layers, strict=True)):
        if cell[0] != "encoder":
            row = through(layer, own.contexts[cell], [question.at])[:, 0]
            direct[index, : len(row), : row.shape[1]] = row
    mlps = [own.mlps[block] for block in sorted(own.mlps) if block[0] == list(paths)[-1]]
    embedding = sum(float(each.sum()) for each in own.words.values())
    rest = np.array([*mlps, embedding, own.biases])
    return {"lead": lead, "words": np.concatenate(words), "direct": direct, "rest": rest}


def _pool(
    question: WhyQuestion, held: PulledBack, plain: PulledBack
) -> tuple[np.ndarray, np.ndarray]:
    """The links that are cut, and their numbers: weight, carried, estimate, and room for what is
    measured. In short texts all links, else the strongest by either.
    """
    links, numbers = [np.zeros((0, 4), int)], [np.zeros((0, 5))]
    for index, (cell, layer) in enumerate(zip(question.cells, question.layers, strict=True)):
        weights = layer.weights_of()
        both = [through(layer, each.contexts[cell]) for each in (held, plain)]
        strength = np.where(weights > 0, np.abs(both).max(axis=0), -1.0).ravel()
        order = np.argsort(-strength, kind="stable")[:EVERY]
        places = np.unravel_index(order[strength[order] >= 0], weights.shape)
        layers = np.full(len(places[0]), index)
        links.append(np.add(np.stack([layers, *places], axis=1), [0, 0, *question.begins(index)]))
        missing = np.full(len(layers), np.nan)
        amounts = [each[places] for each in (weights, *both)]
        numbers.append(np.stack([*amounts, missing, missing], axis=1))
    every, amounts = np.concatenate(links), np.concatenate(numbers)
    if len(every) > EVERY:
        chosen = np.argsort(-np.abs(amounts[:, 1:3]).max(axis=1), kind="stable")[:POOL]
        every, amounts = every[chosen], amounts[chosen]
    return every, amounts


def _graphs(links: np.ndarray, order: np.ndarray, position: int) -> list[np.ndarray]:
    """Graphs of rising size: of the strongest links so many that those read from the answer are as
    many as in `SIZES`, or fewer.
    """
    graphs: dict[int, np.ndarray] = {}
    for count in range(1, len(order) + 1):
        graph = order[read_down(links[order[:count]], position)]
        if len(graph) > max(SIZES):
            break
        graphs[len(graph)] = graph
    sizes = {max((size for size in graphs if size <= most), default=0) for most in SIZES}
    return [graphs[size] for size in sorted(sizes - {0})]
