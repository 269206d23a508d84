"""A question about pictures, in the form of messages that a model was trained on."""

from __future__ import annotations

from typing import Any

from headscope.capturing.inputs._processor import PLACEHOLDERS
from headscope.errors import TextError


def question_prompt(processor: Any, question: str, pictures: int) -> str:
    """What a model is to read: the pictures, then the question, as one message of a user.

    A processor without a chat template reads the mark of each picture and then the question.

    Args:
        processor: of the model.
        question: a text.
        pictures: how many there are.

    Raises:
        TextError: where the template refuses such a message.
    """
    if not getattr(processor, "chat_template", None):
        return _without_template(processor, question, pictures)
    parts = [{"type": "image"}] * pictures + [{"type": "text", "text": question}]
    messages = [{"role": "user", "content": parts}]
    try:
        prompt = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # noqa: BLE001 - templates are programs that come with a model
        raise TextError(
            f"The chat template of {type(processor).__name__} refuses the question: {error}"
        ) from None
    return _without_beginning(getattr(processor, "tokenizer", processor), prompt)


def _without_template(processor: Any, question: str, pictures: int) -> str:
    """The question behind a mark for each picture, where the processor has one."""
    named = (getattr(processor, name, None) for name in PLACEHOLDERS)
    mark = next((mark for mark in named if isinstance(mark, str)), "")
    if not mark or mark in question:
        return question
    return mark * pictures + question


def _without_beginning(tokenizer: Any, prompt: str) -> str:
    """The prompt without the token that the tokenizer puts before every text by itself."""
    begin = getattr(tokenizer, "bos_token", None)
    if not begin or not prompt.startswith(begin):
        return prompt
    ids = tokenizer("a")["input_ids"]
    puts_it = bool(ids) and ids[0] == tokenizer.bos_token_id
    return prompt.removeprefix(begin) if puts_it else prompt
