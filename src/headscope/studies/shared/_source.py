"""Texts as users give them: their documents, what they say, and whether a tokenizer knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.capturing import Outcome

CAPTURING = ("truncate", "batch_tokens", "batch_size", "progress", "on_error", "allow_unfit")
LOADING = ("device", "dtype", "revision", "device_map", "quantization_config")
LOADING += ("attn_implementation", "trust_remote_code")
"""Names of `headscope.capturing.LoadOptions`, for studies of records, which do without torch."""
LOOKED_AT = 256
"""So many texts are looked at for unknown tokens before any is run."""


def with_copies(inputs: Sequence[Outcome], groups: tuple) -> tuple:
    """The document of each text, where copies of a text are of the document of the first of them:
    what is said twice proves no more than once.
    """
    first: dict[str, Any] = {}
    documents = list(groups)
    for number, given in enumerate(inputs):
        if getattr(given, "is_text", False):
            # A conversation holds dictionaries, which are no keys.
            says = repr(getattr(given, "texts", ()))
            documents[number] = first.setdefault(says, documents[number])
    return tuple(documents)


def plain_of(parsed: Any) -> Any:
    """A text or pair of texts as JSON has it."""
    plain = list(parsed.texts) if parsed.text_pair is not None else parsed.text
    messages, documents = (list(getattr(plain, name, ())) for name in ("messages", "documents"))
    if documents:
        return {"documents": documents, "question": messages[-1]["content"]}
    return messages or plain


def check_texts(tokenizer: Any, inputs: Iterable[Outcome], what: str = "the texts") -> None:
    """Raise where most of the tokens of all texts together are unknown.

    Args:
        tokenizer: of the model, or its processor.
        inputs: of which the texts are looked at; what cannot be read is passed over.
        what: they are called in the message.

    Raises:
        TextError: with the share.
    """
    texts: list[str] = []
    for given in islice(inputs, LOOKED_AT):
        texts += getattr(given, "texts", ())
    check_known_texts(tokenizer, texts, what)


def check_known_texts(tokenizer: Any, texts: Iterable[str], what: str = "the texts") -> None:
    """`check_texts` of texts alone.

    Raises:
        TextError: with the share.
    """
    from headscope.capturing import MOST_UNKNOWN, check_known
    from headscope.parts import Conversation

    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    # A conversation is looked at by itself, once it is rendered.
    plain = (text for text in texts if not isinstance(text, Conversation))
    # Not verbose, or the tokenizer warns of texts that are longer than the model takes.
    read = [tokenizer(text, verbose=False)["input_ids"] for text in islice(plain, LOOKED_AT)]
    if read:  # of pictures alone the processor has no words
        check_known(tokenizer, chain.from_iterable(read), what, MOST_UNKNOWN, texts=len(read))
