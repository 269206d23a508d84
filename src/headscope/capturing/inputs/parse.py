"""What users give to read (texts, rows, pictures, videos, sounds, tables) is parsed here, once."""

from __future__ import annotations

import difflib
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.capturing.inputs.parsed_input import Outcome, ParsedInput, ParsedInputs, with_held
from headscope.capturing.inputs.tokens import check_tokenizer
from headscope.capturing.media.given import (
    parse_pictures,
    parse_series,
    parse_sound_input,
    parse_video,
)
from headscope.errors import CaptureError, HeadscopeError, TextError, listed
from headscope.parts import Conversation
from headscope.storage import (
    FIRST,
    SECOND,
    fields_of,
    names_file,
    read_groups,
    read_rows,
    read_texts,
)

NAMES = ("text", "text_pair", "image", "video", "sound", "sampling_rate", "target")
"""Arguments of `capture` that may differ from input to input."""
ROLES = ("system", "developer", "user", "assistant", "document")
ASKED = ("documents", "question", "system")
"""What is read of documents and a question about them, of which the turn of the system may lack."""
MISSPELT = 0.8
"""Likeness (difflib) from which on an unknown name is a slip of one that is missing; ours."""


def parse_call(
    text: Any, text_pair: Any = None, options: Mapping[str, Any] | None = None
) -> ParsedInput:
    """The input of one `capture`.

    Args:
        text: a text, a conversation (or a row with its ``messages`` alone), None where a picture,
            video or sound is read alone, or an input that is parsed.
        text_pair: the second text of a pair, or None.
        options: of `capture`, of which ``image``, ``video``, ``sound``, ``sampling_rate``,
            ``series`` and ``target`` are read.

    Raises:
        TextError: where a text is none, is empty, or there are several.
        CaptureError: where nothing was given, or what is no picture, video or sound.
    """
    if isinstance(text, ParsedInput):
        return text
    _check_no_ids(text)
    if isinstance(text, Mapping) and set(text) == {"messages"}:
        text = text["messages"]
    if isinstance(text, tuple | list | Mapping) and not is_conversation(text):
        raise TextError(
            f"capture reads one text, and got a {type(text).__name__} of {len(text)}; of many "
            "give capture_many(model, tokenizer, texts), of a pair capture(..., text, text_pair); "
            "a message, too, is put in a list, [{'role': ..., 'content': ...}]; documents are "
            "{'documents': [...], 'question': ...}; a tokenizer's output goes to "
            "headscope.capturing.capture_encoded"
        )
    check_no_file(text)
    parsed = _made(text, text_pair, options or {})
    if text is None and not parsed.has_media and parsed.series is None:
        raise CaptureError(
            "capture needs a text, an image, a video, a sound or a time series: "
            "capture(model, tokenizer, text)"
        )
    return parsed


def parse_input(given: Any) -> ParsedInput:
    """One of several inputs: a text, a pair of texts, or a mapping of arguments of `capture`, what
    else it holds left aside.

    A row of a data set has columns that say nothing to a model (``label``, ``idx``).

    Raises:
        CaptureError: where it is none of these, or holds what there is not.
        TextError: where a text is none, or empty.
    """
    if isinstance(given, ParsedInput):
        return given
    if isinstance(given, str):
        return ParsedInput(check_text(given))
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if isinstance(given, HeadscopeError):  # of a line of a file that is no text
        raise given
    _check_no_ids(given)
    if is_conversation(given):
        return _made(given, None, {})
    if not isinstance(given, tuple | list):
        is_file = isinstance(given, os.PathLike | io.IOBase)
        advice = "; give a file of texts alone, not in a list" if is_file else ""
        raise CaptureError(
            "An input is a text, a pair of texts, a conversation, or a mapping such as "
            f"{{'image': 'cat.png'}}, not {type(given).__name__}{advice}"
        )
    if len(given) not in (1, 2):
        raise CaptureError(f"A text is a string or a pair of strings, not {len(given)} of them")
    first, *second = given
    return ParsedInput(check_text(first), check_text(second[0], "second text") if second else None)


def parse_text(given: Any, name: str = "text") -> ParsedInput:
    """A text, a pair of texts in a tuple, or a conversation: an example of a task.

    Args:
        given: the text, the pair or the messages.
        name: it is called in messages.

    Raises:
        TextError: where it is none, or empty.
    """
    if isinstance(given, ParsedInput):
        return given
    if is_conversation(given):
        return _made(given, None, {})
    if isinstance(given, tuple) and len(given) == 2:
        return ParsedInput(check_text(given[0], name), check_text(given[1], name))
    return ParsedInput(check_text(given, name))


def parse_prompt(given: Any, name: str = "text") -> ParsedInput:
    """A prompt of `generate`: a text, a conversation, or a row of a data set with one.

    Args:
        given: the prompt.
        name: it is called in messages.

    Raises:
        CaptureError: where it is neither.
        TextError: where it is empty, or more than one text.
    """
    check_no_file(given)
    is_row = not isinstance(given, str) and not is_conversation(given)
    parsed = parse_input(given) if is_row else parse_text(given, name)
    if not parsed.is_text or parsed.text_pair is not None:
        raise TextError("A prompt is one text; give no pair, picture or sound with it")
    return parsed


def parse_many(texts: Any) -> ParsedInputs:
    """The inputs of one `capture_many`, parsed as they are read.

    Raises:
        TextError: where one text was given: its letters are no inputs.
    """
    rows = _several(texts, "capture_many", "use capture(model, tokenizer, text)")
    count = len(texts) if isinstance(texts, Sized) else None
    return ParsedInputs((outcome_of(parse_input, each) for each in rows), count)


def _several(given: Any, call: str, advice: str) -> Any:
    """The rows of several inputs; raises a `TextError` where one was given."""
    rows = rows_of(given)
    _check_no_ids(rows)
    if is_one(rows) or not isinstance(rows, Iterable):
        one = {str: "one text", list: "one conversation"}.get(type(rows), type(rows).__name__)
        raise TextError(
            f"{call} reads many inputs and was given {one}; give a list of them, such as [text], "
            f"or {advice}"
        )
    return rows


def are_several_inputs(given: Any) -> bool:
    """Whether `budget` was given a list of inputs, and not one."""
    return isinstance(given, list) and not is_conversation(given)


def parse_prompts(prompts: Any) -> tuple[Outcome, ...]:
    """The prompts of one `generate_many`.

    Raises:
        TextError: where one text was given: its letters are no prompts.
    """
    rows = _several(prompts, "generate_many", "use generate(model, tokenizer, prompt)")
    return tuple(outcome_of(lambda row: parse_prompt(parse_input(row)), each) for each in rows)


def parse_texts(texts: Any) -> tuple[Outcome, ...]:
    """The inputs of a study: one, several, or a table of them; none where they are no texts."""
    rows = several_of(texts)
    if not isinstance(rows, Iterable):
        return ()
    return tuple(outcome_of(parse_input, each) for each in rows)


def several_of(texts: Any) -> Any:
    """The rows of what was given to a study; a single text or conversation is one row."""
    rows = rows_of(texts)
    return (rows,) if is_one(rows) else rows


def parse_shared(texts: Any, shared: Mapping[str, Any]) -> tuple[Outcome, ...]:
    """The inputs of `effect`: a text, a pair in a tuple, a conversation, or a list of them, all
    with the same picture, sound and target.

    Args:
        texts: that were given; None for a picture or a sound alone.
        shared: options of `capture`.

    Raises:
        TextError: where there is no text.
        CaptureError: where a picture or sound is none.
    """
    beside = _made(None, None, shared)
    if texts is None:
        if not beside.has_media:
            raise TextError("effect needs a text, a pair of texts, or a list of them")
        return (beside,)

    def joined(given: Any) -> ParsedInput:
        parsed = parse_input(given)
        if parsed is given:
            return parsed
        if parsed.has_media or parsed.has_target:
            raise TextError(
                "effect takes pictures and sounds as image= and sound=, not in a list of texts"
            )
        return replace(beside, text=parsed.text, text_pair=parsed.text_pair)

    several = [texts] if isinstance(texts, tuple) else several_of(texts)
    several = listed(several, "a text, or a list of texts", TextError)
    if not several:
        raise TextError("effect was given an empty list of texts; give at least one")
    return tuple(outcome_of(joined, each) for each in several)


def outcome_of(parse: Callable[[Any], ParsedInput], given: Any) -> Outcome:
    """What a parser makes of an input, or why it cannot be read; what is parsed stays as it is."""
    if isinstance(given, Outcome):
        return given
    try:
        return parse(given)
    except HeadscopeError as error:
        return error


def check_no_file(text: Any) -> None:
    """Raise where one text was wanted, and the name of a file was given.

    Raises:
        TextError: saying who reads files.
    """
    if _is_file(text):
        raise TextError(
            f"Expected one text, got the name of a file, {str(text)!r}; give what the file holds, "
            "or let capture_many or a study read its texts (--texts, a conversation with --chat)"
        )


def _is_file(texts: Any) -> bool:
    return isinstance(texts, Path) or (isinstance(texts, str) and names_file(texts))


def check_reader(tokenizer: Any, call: str) -> None:
    """Raise where a name, a text or texts stand in the place of a tokenizer.

    Raises:
        TextError: saying what stands where in a call.
    """
    if tokenizer is not None:
        check_tokenizer(tokenizer, " after the model", f": {call}(model, tokenizer, ...)")


def check_text(text: Any, name: str = "text") -> str:
    """The text, which must be a string that is not blank.

    Raises:
        TextError: where it is not, holds half of a character, or names a file of texts.
    """
    _check_no_ids(text)
    if not isinstance(text, str):
        advice = "decode it" if isinstance(text, bytes) else "many texts go to capture_many"
        raise TextError(f"The {name} must be a string, not {type(text).__name__}; {advice}")
    if not text.strip():
        raise TextError(f"The {name} is empty; give at least one word")
    # Surrogates, which files read with errors="surrogateescape" hold, cannot be written as UTF-8.
    half = re.search("[\ud800-\udfff]", text)
    if half:
        raise TextError(
            f"The {name} holds half of a character (U+{ord(half[0]):04X} at position "
            f"{half.start()}), which no tokenizer reads; take it out, or write the whole character"
        )
    if re.match("(second )?text|document", name) and Path(text.strip()).suffix and names_file(text):
        raise TextError(
            f"The {name} {text!r} is the name of a file; give what the file holds; where many "
            "texts are read, its name alone stands for them, not in a list"
        )
    return text


def _check_no_ids(given: Any) -> None:
    """Raise where token ids were given for a text: an array or a list of numbers."""
    first = given
    while isinstance(first, tuple | list) and first:
        first = first[0]
    are_listed = first is not given and isinstance(first, int)
    if are_listed or (getattr(given, "ndim", 0) and "int" in str(getattr(given, "dtype", ""))):
        raise TextError(
            "Expected a text, got token ids; these go to headscope.capturing.capture_encoded"
        )


def is_conversation(given: Any) -> bool:
    """Whether these are messages, not rows of a data set, or documents and a question."""
    if isinstance(given, Mapping):
        return "documents" in given
    return isinstance(given, list | tuple) and any(
        isinstance(each, Mapping)
        and ("role" in each or each.keys() == {"content"})
        and not set(FIRST) & set(each)
        for each in given
    )


def _conversation(given: Any, more: Mapping[str, Any]) -> tuple[Conversation, dict[str, Any]]:
    """The conversation of some messages, or of documents and a question, and what was given with
    it, with the pictures and the video in it.

    Raises:
        TextError: naming the message or document that cannot be read.
    """
    held: dict[str, list[Any]] = {"image": [], "video": []}
    documents, asked = _documents(given) if isinstance(given, Mapping) else ((), given)
    messages = [_message(each, f"Message {n}", held) for n, each in enumerate(asked, 1)]
    conversation = Conversation(tuple(messages), documents)
    if documents and not conversation.question.strip():
        raise TextError("Documents are asked about; end with a question of the user")
    if not any(held.values()):
        check_text("\n".join(conversation.texts), "conversation")
    return conversation, with_held(more, held)


def _documents(given: Mapping) -> tuple[tuple[str, ...], Any]:
    """Documents, and the messages that ask about them."""
    unread = [key for key in given if key not in ASKED]
    if unread:
        raise TextError(
            f"{unread} was given beside {', '.join(ASKED)}; leave it out, or give it as an argument"
        )
    several = listed(given["documents"], "a list of documents", TextError)
    if not several:
        raise TextError("No document was given; give one at least, or the question as a text")
    documents = tuple(check_text(each, f"document {n}") for n, each in enumerate(several, 1))
    asked: Any = given.get("question")
    if not is_conversation(asked):
        asked = [{"role": "user", "content": check_text(asked, "question")}]
    if given.get("system") is not None:
        asked = [{"role": "system", "content": check_text(given["system"], "system")}, *asked]
    return documents, asked


def _message(given: Any, name: str, media: Mapping[str, list[Any]]) -> dict[str, Any]:
    """One message, its pictures and videos put to the others."""
    held = list(given) if isinstance(given, Mapping) else type(given).__name__
    if not {"role", "content"} <= set(held):
        raise TextError(
            f"{name} is {{'role': ..., 'content': ...}} in a conversation, and {held} was given"
        )
    role, content = given["role"], given["content"]
    if role == "tool" or given.get("tool_calls") or given.get("function_call"):
        raise TextError(
            f"{name} is a call of a tool or its answer, not rendered here; give the text that "
            "apply_chat_template(messages, tools=..., tokenize=False) makes"
        )
    if role not in ROLES:
        raise TextError(f"{name} has the role {role!r}; there are {', '.join(ROLES)}")
    if isinstance(content, list | tuple):
        content = [_part(each, name, media) for each in content]
    elif not isinstance(content, str):
        raise TextError(f"The content of {name.lower()} is not a text: {type(content).__name__}")
    return {**given, "content": content}


def _part(given: Any, name: str, media: Mapping[str, list[Any]]) -> dict[str, Any]:
    """A part of a message: a text, or the place of a picture or video."""
    kind = given.get("type") if isinstance(given, Mapping) else type(given).__name__
    if kind == "text" and isinstance(given.get("text"), str):
        return {"type": "text", "text": given["text"]}
    if kind not in media:
        raise TextError(
            f"{name} has a part of type {kind!r}; there are {{'type': 'text', 'text': ...}}, "
            "{'type': 'image', 'image': ...} and {'type': 'video', 'video': ...}"
        )
    media[kind].extend(given[key] for key in (kind, "path", "url") if key in given)
    return {"type": kind}


def rows_of(texts: Any) -> Any:
    """The rows of a file of texts or of a table (pandas, polars, Arrow); anything else as it is."""
    if _is_file(texts):
        return read_texts(Path(texts))
    if getattr(texts, "closed", False):
        raise TextError("The file of texts was closed before it was read; give its name instead")
    names = getattr(texts, "column_names", None) or getattr(texts, "columns", None)
    if isinstance(names, Iterable):
        fields_of([(name, None) for name in names])
    if hasattr(texts, "iterrows"):
        return texts.to_dict("records")
    if hasattr(texts, "iter_rows"):
        return list(texts.iter_rows(named=True))
    return texts.to_pylist() if hasattr(texts, "to_pylist") else texts


def groups_in(texts: Any) -> tuple[Any, ...] | None:
    """The document of each text of a file, its field "group"; None where texts are not a file."""
    return read_groups(read_rows(texts)) if _is_file(texts) else None


def _by_our_names(given: Mapping) -> Mapping:
    """The same with texts under our names, whatever a data set calls them; other columns stay."""
    renamed = dict(given)
    wanted = {"text": FIRST, "text_pair": SECOND}
    # A picture is read without a text too, so a column is its text only where it is called so.
    if {"image", "video", "sound"} & set(given):
        wanted = {"text": ("text", "messages")}
    for ours, names in wanted.items():
        theirs = next((name for name in names if name in given), None)
        # A second text alone, such as the context of a row without a question, is no pair.
        is_needed = ours == "text" or "text" in renamed
        if theirs is not None and theirs != ours and is_needed:
            renamed[ours] = renamed.pop(theirs)
    return renamed


def _check_spelling(given: Mapping) -> None:
    """Raise where a name looks like a slip; other columns of a data set are left aside."""
    missing = [name for name in NAMES if name not in given]
    for name in given:
        close = difflib.get_close_matches(str(name), missing, n=1, cutoff=MISSPELT)
        if name not in NAMES and close:
            raise CaptureError(f"An input has no {name!r}; did you mean {close[0]!r}")


def _from_mapping(given: Mapping) -> ParsedInput:
    asked = {key: given[key] for key in ASKED if key in given}
    given = {**given, "text": asked} if is_conversation(given) else _by_our_names(given)
    if "text" not in given and "content" in given:
        raise TextError(
            "A content is read as a message of a conversation, which is a list: [{'role': ..., "
            "'content': ...}]; a text of its own is called text"
        )
    _check_spelling(given)
    if not {"text", "image", "video", "sound"} & set(given):
        listed = " nor ".join(map(repr, given)) or "text"
        raise CaptureError(f"An input has no {listed}; there are {', '.join(NAMES)}")
    # A time series is captured alone, and rows of a data set may have a column of that name.
    more = {name: given[name] for name in NAMES if name in given}
    parsed = _made(given.get("text"), given.get("text_pair"), more)
    if parsed.text is None and not parsed.has_media:
        raise TextError("An input holds nothing to read; give a text, an image, a video or a sound")
    return parsed


def _made(text: Any, text_pair: Any, more: Mapping[str, Any]) -> ParsedInput:
    """An input of texts, and of picture, video, sound and target among other arguments of
    `capture`.
    """
    if is_conversation(text):
        text, more = _conversation(text, more)
    elif text is not None:
        check_text(text)
    shown, video = more.get("image"), more.get("video")
    sound, series = more.get("sound"), more.get("series")
    target = more.get("target")
    try:
        target = None if target is None else check_text(target, "target")
    except TextError as error:
        target = error
    return ParsedInput(
        text=text,
        text_pair=None if text_pair is None else check_text(text_pair, "second text"),
        pictures=() if shown is None else parse_pictures(shown),
        sound=None if sound is None else parse_sound_input(sound, more.get("sampling_rate")),
        video=None if video is None else parse_video(video),
        series=None if series is None else parse_series(series),
        target=target,
        parts=more.get("parts"),
    )


def is_one(given: Any) -> bool:
    """Whether this is one text, conversation or row, and not several."""
    is_plain = isinstance(given, str | bytes | Path | Mapping | ParsedInput)
    return is_plain or is_conversation(given)
