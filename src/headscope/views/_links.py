"""Gold links between words, to compare heads with: a dependency tree, or any other annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from headscope.errors import PageError
from headscope.linguistics import Sentence, words_at
from headscope.record import Generation, Record, Tokens
from headscope.views import contract
from headscope.views.constants import valid

Group = tuple[int, ...]
WANTED = "a headscope.linguistics.Sentence, or a list of (dependent tokens, head tokens, label)"


def page_links(
    links: Any, record: Record, stacks: Sequence[contract.PageStack], first: str
) -> contract.PageLinks:
    """The part of a page about gold links.

    For a `Sentence` the words are those of the sentence. For a list they are the linked groups of
    tokens; all other tokens form words as the tokenizer marks them, without special tokens.

    Args:
        links: a `Sentence` or a list of triples, as the user gave it.
        record: the record that the page shows.
        stacks: the page's stacks.
        first: the stack that is shown first; it is preferred where the links fit several.

    Raises:
        PageError: links of another text, or to tokens that do not exist.
        RecordError: words whose tokens are unknown.
    """
    same = [stack for stack in stacks if record[stack["name"]].query == record[stack["name"]].key]
    # Sorting is stable: the first stack comes to the front, the others keep their order.
    same.sort(key=lambda stack: stack["name"] != first)
    if not same:
        raise PageError("links= are within one text; no stack has queries and keys of one")
    if isinstance(links, Sentence):
        return _of_sentence(links, record, same)
    words, arcs = _of_list(_parsed(links, len(same[0]["query"]["labels"])), same[0])
    return {"stack": same[0]["name"], "name": "", "tree": False, "words": words, "arcs": arcs}


def _of_sentence(
    sentence: Sentence, record: Record, stacks: Sequence[contract.PageStack]
) -> contract.PageLinks:
    for stack in stacks:
        tokens = record[stack["name"]].query
        if tokens.texts and tokens.texts[0] in (sentence.text, sentence.written):
            arcs: list[contract.PageArc] = []
            links = zip(sentence.heads, sentence.relations, strict=True)
            for word, (head, relation) in enumerate(links):
                # CoNLL-U numbers words from 1, and 0 is the head of the root, which has no arc.
                if head:
                    arcs.append({"dependent": word, "head": head - 1, "label": valid(relation)})
            name, words = valid(sentence.name), _words_of(sentence, tokens)
            of = stack["name"]
            return {"stack": of, "name": name, "tree": True, "words": words, "arcs": arcs}
    raise PageError(
        f"The record is of {' / '.join(record.texts)[:40]!r}, and links= is the sentence "
        f"{sentence.text[:40]!r}: capture its text, or the text as it was written"
    )


def _words_of(sentence: Sentence, tokens: Tokens) -> list[contract.PageWord]:
    spans = sentence.spans if tokens.texts[0] == sentence.text else sentence.written_spans()
    words = words_at(tokens, spans)
    words.check()
    return [
        {"label": valid(name), "tokens": list(positions)}
        for name, positions in zip(sentence.words, words.tokens, strict=True)
    ]


def _parsed(links: Any, count: int) -> list[tuple[Group, Group, str]]:
    listed = list(links) if isinstance(links, Sequence) and not isinstance(links, str) else []
    if not listed:
        raise PageError(f"links= was given as {links!r:.60}; expected {WANTED}")
    parsed = []
    for link in listed:
        if not isinstance(link, Sequence) or len(link) != 3 or not isinstance(link[2], str):
            raise PageError(f"links= holds {link!r:.60}; expected {WANTED}")
        dependent, head = (_group(part, link, count) for part in link[:2])
        if dependent == head:
            raise PageError(f"links= links tokens {list(head)} to themselves; name another word")
        parsed.append((dependent, head, link[2]))
    return parsed


def _group(given: Any, link: Any, count: int) -> Group:
    positions = [given] if isinstance(given, Integral) else given
    positions = list(positions) if isinstance(positions, Sequence) else []
    known = [isinstance(each, Integral) and 0 <= int(each) < count for each in positions]
    if not known or not all(known):
        raise PageError(f"links= holds {link!r:.60}; tokens are numbers from 0 to {count - 1}")
    return tuple(sorted({int(each) for each in positions}))


def _of_list(
    links: Sequence[tuple[Group, Group, str]], stack: contract.PageStack
) -> tuple[list[contract.PageWord], list[contract.PageArc]]:
    """The linked groups of tokens and all other words, in the order of the text, and the links
    between them.
    """
    tokens = stack["query"]
    groups = _groups_of(tokens, _linked(links))
    index = {group: number for number, group in enumerate(groups)}
    words: list[contract.PageWord] = [
        {"label": _label(group, tokens), "tokens": list(group)} for group in groups
    ]
    arcs: list[contract.PageArc] = [
        {"dependent": index[dependent], "head": index[head], "label": valid(label)}
        for dependent, head, label in links
    ]
    return words, arcs


def _linked(links: Sequence[tuple[Group, Group, str]]) -> dict[int, Group]:
    """The group of each token that is linked."""
    linked: dict[int, Group] = {}
    for group in dict.fromkeys(part for link in links for part in link[:2]):
        for token in group:
            if token in linked:
                raise PageError(
                    f"links= has token {token} in {list(linked[token])} and in {list(group)}; "
                    "words do not overlap: link the head word of each"
                )
            linked[token] = group
    return linked


def _groups_of(tokens: contract.PageTokens, linked: Mapping[int, Group]) -> list[Group]:
    """The words of a text: linked groups as they were given, all others by the pieces that continue
    them.
    """
    groups: list[Group] = []
    for token in range(len(tokens["labels"])):
        joins = tokens["continues"][token] and token - 1 not in linked
        # A group is entered once, at its first token.
        if token in linked:
            groups += [linked[token]] if token == linked[token][0] else []
        # A piece joins only the token just before it, and never a group that the user made.
        elif joins and groups and groups[-1][-1] == token - 1:
            groups[-1] = (*groups[-1], token)
        elif not tokens["special"][token]:
            groups.append((token,))
    return groups


def _label(group: Group, tokens: contract.PageTokens) -> str:
    return "".join(
        (" " if at and not tokens["continues"][token] else "") + tokens["labels"][token]
        for at, token in enumerate(group)
    )


ALTERNATIVES = 5
"""Number of candidates that a page shows for each token."""


def put_generation(header: contract.Page, record: Record) -> None:
    """Add to a header how the text was generated, and mark the first generated token in queries and
    keys.
    """
    generation = record.generation
    if generation is None:
        return
    written = record[generation.stack].query
    for page in header["stacks"]:
        _mark(page, record, written, generation.prompt)
    if generation.stack in [stack["name"] for stack in header["stacks"]]:
        header["generation"] = page_generation(generation)


def page_generation(generation: Generation) -> contract.PageGeneration:
    """The generated tokens, with their probabilities, entropies, ranks and alternatives."""
    alternatives: list[list[contract.PageCandidate]] = []
    for listed in generation.alternatives:
        first = listed[:ALTERNATIVES]
        named = zip(labels_of(first), first, strict=True)
        alternatives.append(
            [{"label": valid(label), "probability": of.probability} for label, of in named]
        )
    return {
        "stack": generation.stack,
        "prompt": generation.prompt,
        "labels": [valid(label) for label in generation.tokens.labels],
        "probabilities": list(generation.probabilities),
        "entropies": list(generation.entropies),
        "ranks": list(generation.ranks),
        "alternatives": alternatives,
    }


def labels_of(candidates: Sequence) -> tuple[str, ...]:
    """The candidates as a reader should see them."""
    if not candidates:
        return ()
    # `Tokens` replaces the marks of a vocabulary (such as ## and Ġ) by readable text.
    return Tokens(pieces=tuple(candidate.piece for candidate in candidates)).labels


def _mark(page: contract.PageStack, record: Record, written: Tokens, prompt: int) -> None:
    stack = record[page["name"]]
    for name, tokens in (("query", stack.query), ("key", stack.key)):
        if tokens == written and prompt < len(tokens):
            page[name]["written"] = prompt
