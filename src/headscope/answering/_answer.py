"""Ask a model, and see which parts of the prompt its answer looked at and needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import torch

from headscope.answering import _looked
from headscope.answering._needed import ForcedAnswer, needed
from headscope.answering._printed import BY, AnswerWord
from headscope.answering._result import DEMO, Answer
from headscope.capturing import (
    ParsedInput,
    check_not_loaded,
    check_reader,
    check_text,
    generate,
    is_conversation,
    load_for,
    parse_call,
)
from headscope.capturing.facts import display_name
from headscope.capturing.generating.about_pictures import prompt_about, written_about
from headscope.capturing.observers import hook_after
from headscope.capturing.options import LOADING
from headscope.capturing.run import unwrapped
from headscope.capturing.walk import reads_target
from headscope.errors import CaptureError, RecordError, TextError
from headscope.parts import Conversation, RenderedText, with_parts
from headscope.record import Generation, Part, Record, Stack, Tokens

MOST_TOKENS = 512
"""Of an answer whose parts are cut."""


def answer(
    model: Any,
    tokenizer: Any = None,
    prompt: Any = None,
    *,
    parts: Any = None,
    need: str | None = "cut",
    of: str | None = None,
    **options: Any,
) -> Answer:
    """Ask a model, and see which parts of its prompt the answer looked at, and which it needed.

    The answer is written with the model's own settings of generation, or given as ``answer``, and
    read again in one pass that is recorded. Looked: share of the attention of the rows that wrote
    each word, by part, mean over heads and layers; and lift, how many times as much a candidate got
    as its length among the candidates gives. Needed: the probability of the same answer once each
    candidate is cut off, so that nothing behind it looks at it (``without``); once all others are
    (``alone``); and once all are. The answer needed a part without which less than half of its
    probability is left.

    Args:
        model: a loaded model that writes, a hub name, a folder, or None for a small model that
            answers from documents (retrieval-tiny, which comes with headscope).
        tokenizer: its tokenizer, or processor; may be left out where the model is named.
        prompt: a text; or a conversation, a list of ``{"role": ..., "content": ...}``, also with
            the role ``"document"``; or ``{"documents": [...], "question": ...}``.
        parts: what parts there are besides turns and documents, as of `headscope.parts.parts_of`:
            ``"sentence"``, ``"paragraph"``, ``"page"``, ``"frame"``, a regular expression, spans.
        need: how candidates are cut: ``"cut"``; ``"direct"``, from the rows that write the answer
            alone; ``"delete"``, with the tokens left out; ``"replace"``, with the same tokens
            in random order; or None, not at all.
        of: the kind of the parts that are compared and cut; by default documents where there are
            some, else what ``parts`` names, pictures or frames, or all turns but the system's and
            the last question.
        **options: ``documents`` and ``question`` in place of ``prompt``; ``image`` or ``video``,
            with a question, for a model that reads them; ``answer``, a text that is read as the
            answer; ``quantity`` of what is looked at, ``"weight"``, ``"norm"`` or ``"alti"``;
            ``layers`` and ``heads`` that the mean is over (numbers, ``(12, 7)`` or ``"12-7"``), by
            default all; ``keep_sinks``, whether patches stay in heat that get outsized attention
            from most of the text; ``chat_template=False`` for a prompt about pictures that is read
            as it is; ``progress``; those of `headscope.generate` (``max_new_tokens``, ``seed``,
            ``do_sample`` ...); and `LoadOptions` for a model that is named.

    Raises:
        TextError: an empty question, or a prompt that leaves no room for an answer.
        ModelError: a model that cannot be loaded, or whose head was not trained.
        CaptureError: a model that cannot write, or whose attention could not be captured exactly or
            cannot be cut.
        RecordError: layers, heads or parts that there are not.

    Example:
        >>> found = answer(
        ...     None,
        ...     documents=["The code of the mill is amber falcon."] * 2,
        ...     question="What is the code of the mill?",
        ... )
        >>> print(found)  # one sentence, and one table
        >>> found.lift(), found.change()  # of the candidates
    """
    check_reader(tokenizer, "answer")
    choice = _looked.parse_choice(options.pop("layers", None), options.pop("heads", None))
    asked = _asked(prompt, options)
    how = {name: options.pop(name, None) for name in ("answer", "quantity", "progress")}
    facts: dict[str, Any] = {
        "quantity": how["quantity"] or "weight",
        "need": need or "",
        "keep_sinks": bool(options.pop("keep_sinks", False)),
        "heads_given": choice != (None, None),
    }
    _check(facts["quantity"], facts["need"], choice)
    media = {name: options.pop(name, None) for name in ("image", "video")}
    given = parse_call(asked, None, media).in_memory()
    model, tokenizer = _loaded(model, tokenizer, given, options)
    if how["answer"] is not None:
        forced = _forced(getattr(tokenizer, "tokenizer", tokenizer), how["answer"])
        options |= forced
    if facts["quantity"] != "weight":
        options["keep"] = ("qk", _looked.QUANTITIES[facts["quantity"]])
    kept: list[Any] = [None]

    def note(*seen: Any) -> None:
        # Keys and values of the steps; the pass that is recorded has none.
        kept[0] = getattr(seen[-1], "past_key_values", None) or kept[0]

    with hook_after(unwrapped(model), note):
        record, facts["prompt"], beside = _written((model, tokenizer), given, parts, options)
    if how["answer"] is not None and len(written_in(record)[0]) < forced["max_new_tokens"]:
        raise TextError(
            f"answer is {how['answer']!r}, and the model stopped after "
            f"{written_in(record)[0].text!r}; leave out tokens that end a text, and max_time"
        )
    _check_found(given.text, record, facts["prompt"])
    question = getattr(given.text, "question", given.text)
    facts |= {"question": question or "", "model": display_name(model)}
    facts |= {"given": len(given.pictures), "candidates": candidates_of(record, parts, of)}
    read = {"beside": beside, "cache": kept[0]}
    facts |= _needs(model, record, facts, read, progress=bool(how["progress"]))
    return seen(record, choice, facts)


def _asked(prompt: Any, options: dict[str, Any]) -> Any:
    """What is asked in one form: a text, messages, or documents and a question."""
    documents, question = (options.pop(name, None) for name in ("documents", "question"))
    if prompt is not None and (documents is not None or question is not None):
        raise TextError("Expected a prompt, or documents and a question, got both; leave one out")
    if documents is not None:
        return {"documents": documents, "question": check_text(question or "", "question")}
    if prompt is not None:
        return prompt
    return question if is_conversation(question) else check_text(question or "", "question")


def _check(quantity: str, need: str, choice: tuple[Any, Any]) -> None:
    """Raise where an option is not what it may be.

    Raises:
        CaptureError: naming it.
    """
    for name, value, known in (
        ("quantity", quantity, _looked.QUANTITIES),
        ("need", need or None, BY),
    ):
        if value is not None and value not in known:
            raise CaptureError(f"{name} is {value!r}; it may be {', '.join(map(repr, known))}")
    if quantity == "alti" and choice[1] is not None:
        raise CaptureError("ALTI is of a whole layer; leave heads out, or give layers")


def _loaded(model: Any, tokenizer: Any, given: ParsedInput, options: dict[str, Any]) -> tuple:
    """The model and what reads its prompt; what loading needed is taken from the options."""
    loading = {name: options.pop(name) for name in LOADING if name in options}
    if model is None or isinstance(model, str | Path):
        anyway = bool(options.get("allow_unfit", False))
        name = DEMO if model is None and not given.has_media else model
        model, own = load_for(name, given, writes=True, allow_unfit=anyway, **loading)
        return model, own if tokenizer is None else tokenizer
    check_not_loaded(model, loading)
    if given.has_media and getattr(tokenizer, "tokenizer", None) is None:
        raise CaptureError(
            f"answer needs the processor of {type(model).__name__} (AutoProcessor), which reads "
            "pictures and text: answer(model, processor, image=..., question=...)"
        )
    return model, tokenizer


def _forced(tokenizer: Any, text: str) -> dict[str, Any]:
    """Options of `generate` under which the model writes this text, one token after the other, and
    its own probabilities are noted.
    """
    if not isinstance(text, str) or not text.strip():
        raise TextError(f"answer is {text!r}, which is empty; give the text that is read as it")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    read = tokenizer.decode(ids)
    if _letters(read) != _letters(text):
        raise TextError(
            f"answer is {text!r}, which the tokenizer, that does not know all of it, reads as "
            f"{read!r}; give an answer in words that it knows"
        )
    begin: list[int] = []

    def only(read: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        begin[:] = begin or [read.shape[1]]
        forced = torch.full_like(scores, -torch.inf)
        forced[:, ids[read.shape[1] - begin[0]]] = 0
        return forced

    written = {"max_new_tokens": len(ids), "do_sample": False, "num_beams": 1}
    return {"logits_processor": [only], **written}


def _letters(text: str) -> str:
    """A text without spaces, in small letters: what tokenizers may change of it."""
    return "".join(normalize("NFKC", text).casefold().split())


def _check_found(text: Any, record: Record, prompt: str) -> None:
    """Raise where documents or turns were asked about, and it is not known where they are."""
    asked = isinstance(text, Conversation) and len(text.messages) + len(text.documents) > 1
    if asked and not written_in(record)[1].key.parts:
        with_parts(record, "turn", prompt=RenderedText(prompt))


def _written(
    readers: tuple[Any, Any], given: ParsedInput, parts: Any, options: dict[str, Any]
) -> tuple[Record, str, Mapping[str, Any]]:
    """The record of prompt and answer, the prompt as it was read, and what the model read besides
    the ids of both.
    """
    model, tokenizer = readers
    template = options.pop("chat_template", True)
    if not given.has_media:
        tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
        prompt: Any = given
        record = generate(model, tokenizer, prompt, parts=parts, **options)
        generation, stack = written_in(record)
        if reads_target(unwrapped(model)):
            raise CaptureError(
                f"{type(model).__name__} is an encoder-decoder, whose prompt stands in another "
                "stack than its answer; capture it with target=, and look at its stack 'cross'"
            )
        text = "".join(stack.query.texts[:1]).removesuffix(generation.text)
        return record, text, {}
    read = prompt_about(tokenizer, given, chat_template=template)
    read = replace(read, parts=parts or ("picture" if given.video is None else "frame"))
    record, arguments = written_about(model, tokenizer, read, **options)
    return record, read.text, arguments


def written_in(record: Record) -> tuple[Generation, Stack]:
    """What was written, and the stack that wrote it.

    Raises:
        CaptureError: where nothing was.
    """
    if record.generation is None:
        raise CaptureError("The record of an answer holds no generation")
    return record.generation, record.stacks[record.generation.stack]


def candidates_of(record: Record, parts: Any, of: str | None) -> tuple[int, ...]:
    """Numbers of the parts that are compared and cut; see `answer`.

    Raises:
        RecordError: where there is no part of this kind.
    """
    generation, stack = written_in(record)
    there, last = stack.key.parts, generation.prompt - 1
    kind = _kind_of([part.kind for part in there], parts, of)
    some = [at for at, part in enumerate(there) if part.kind == kind and last not in part.tokens]
    told = set() if of is not None else _always_needed(there)
    left = [at for at in some if not told.issuperset(there[at].tokens)]
    return tuple(left if left or kind == "turn" else some)


def _always_needed(parts: tuple[Part, ...]) -> set[int]:
    """Tokens of the question and of instructions: without them any answer falls."""
    turns = [part for part in parts if part.kind == "turn"]
    fixed = [part for part in turns if part.name.startswith(("system", "developer"))]
    fixed += [part for part in turns if part.name.startswith("user")][-1:]
    return {token for part in fixed for token in part.tokens}


def _kind_of(kinds: list[str], parts: Any, of: str | None) -> str:
    """The kind of parts that are compared."""
    if of is not None and of not in kinds:
        raise RecordError(f"of is {of!r}; the prompt has parts of the kinds {sorted(set(kinds))}")
    if of is not None:
        return of
    known: tuple[Any, ...] = ("document", "frame", "picture", "time")
    if parts is not None:  # a kind by its name, or those of parts that were given one by one
        known = (parts, "span", "region", "time", *reversed(kinds))
    return next((each for each in known if each in kinds), "turn")


def _needs(
    model: Any, record: Record, facts: dict[str, Any], read: Mapping[str, Any], *, progress: bool
) -> dict[str, Any]:
    """The probability of the answer with parts cut off, by the names of `Answer`.

    Args:
        model: that wrote it.
        record: of prompt and answer.
        facts: what was asked.
        read: what else was read, and kept, as of `ForcedAnswer`.
        progress: whether a bar is shown.
    """
    generation, stack = written_in(record)
    count, some = len(generation), facts["candidates"]
    if not facts["need"] or not some or not _words_of(generation.tokens):
        whole = np.log(np.maximum(generation.probabilities, np.finfo(np.float32).tiny))
        missing = np.full((len(some), count), np.nan)
        cut = {"none": np.full(count, np.nan), "without": missing, "alone": missing}
        return {"whole": whole, **cut, "need": "", "by": "", "checked": None}
    if count > MOST_TOKENS:
        told = f"The answer has {count} tokens, and parts are cut for at most {MOST_TOKENS}; give "
        raise CaptureError(f"{told}max_new_tokens, or need=None")
    ids = (*(stack.query.ids or ())[: generation.prompt], *(generation.tokens.ids or ()))
    places = [tuple(stack.key.parts[number].tokens) for number in some]
    for number, place in zip(some, places, strict=True):
        if facts["need"] == "replace" and len({ids[at] for at in place}) < 2:
            name = stack.key.parts[number].name
            raise CaptureError(f"{name!r} has no two different tokens to replace; use need='cut'")
    forced = ForcedAnswer(unwrapped(model), ids, generation.prompt, stack, **read)
    return needed(forced, places, facts["need"], progress=progress)


def seen(record: Record, choice: Any, facts: dict[str, Any]) -> Answer:
    """What is seen in the record of an answer.

    Args:
        record: of prompt and answer.
        choice: the heads that the mean is over, see `parse_choice`.
        facts: what was asked, and what was measured of it.
    """
    generation, stack = written_in(record)
    cells, tokens = _looked.cells_of(stack, *choice), stack.key
    if facts["quantity"] == "alti":
        cells = tuple(dict.fromkeys((layer, 0) for layer, _ in cells))
    # A patch without a place or a picture of its own counts as the first one.
    places, pictures = tokens.places or (), tokens.pictures or ()
    patches = [at for at, place in enumerate(places) if place is not None]
    # A prompt that nothing divides is one part.
    whole = Part(name="prompt", kind="text", tokens=tuple(range(generation.prompt)))
    parts = tokens.parts or (whole,)
    measured = {name: facts[name] for name in ("quantity", "candidates")}
    members = _looked.members_of(parts, facts["candidates"], generation.prompt, len(tokens))
    return Answer(
        **facts,
        **_looked.looked(stack, generation, members, chosen=cells, **measured),
        times=_looked.sinks(stack, patches, cells) if patches else np.zeros(0),
        pieces=_pieces_of(tokens)[: generation.prompt],
        **{name: getattr(generation, name) for name in ("text", "sampled", "probabilities")},
        tokens=generation.tokens.labels,
        words=_words_of(generation.tokens),
        parts=parts,
        chosen=cells,
        layers=tuple(layer.layer for layer in stack),
        grids=tokens.grids,
        patches=tuple(patches),
        places=tuple([places[at] or (0, 0) for at in patches]),
        picture_of=tuple([pictures[at] or 0 for at in patches]),
        # The pictures where there is one for each grid.
        pictures=record.pictures if len(record.pictures) == len(tokens.grids) else (),
        record=record,
    )


def _pieces_of(tokens: Tokens) -> tuple[str, ...]:
    """The text of each token, with what stands before it: together they are the whole text."""
    pieces, end = [], 0
    for label, place in zip(tokens.labels, tokens.offsets or [None] * len(tokens), strict=True):
        pieces.append(tokens.texts[0][end : place[1]] if place else label)
        end = max(end, place[1]) if place else end
    for part in (part for part in tokens.parts if part.kind == "region"):
        for number, at in enumerate(part.tokens):
            pieces[at] = "" if number else part.name
    return tuple(pieces)


def _words_of(tokens: Tokens) -> tuple[AnswerWord, ...]:
    """The words of an answer, without special tokens."""
    named = zip(tokens.whole_words.names, tokens.whole_words.tokens, strict=True)
    words = [AnswerWord(name.strip(), run) for name, run in named if not tokens.special[run[0]]]
    return tuple(word for word in words if word.text)
