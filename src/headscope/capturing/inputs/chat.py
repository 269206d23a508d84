"""Prompts for questions about pictures, in the message format that a model was trained on."""

from __future__ import annotations

from typing import Any

from headscope.capturing.inputs._processor import marks_of
from headscope.errors import TextError


def question_prompt(processor: Any, question: str, pictures: int) -> str:
    """The prompt for a question: the pictures, then the question, as one message of a user.

    Without a chat template it is the placeholder of each picture, followed by the question.

    Args:
        processor: the model's processor.
        question: the question, a text.
        pictures: number of pictures.

    Raises:
        TextError: if the template refuses such a message.
    """
    if not getattr(processor, "chat_template", None):
        marks = marks_of(processor, "picture")
        if not marks or marks[0] in question:
            return question
        return marks[0] * pictures + question
    parts = [{"type": "image"}] * pictures + [{"type": "text", "text": question}]
    messages = [{"role": "user", "content": parts}]
    try:
        prompt = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # noqa: BLE001 - templates are programs that come with a model
        raise TextError(
            f"The chat template of {type(processor).__name__} refuses the question: {error}"
        ) from None
    return _without_beginning(getattr(processor, "tokenizer", processor), prompt)


def _without_beginning(tokenizer: Any, prompt: str) -> str:
    """The prompt without the token that the tokenizer itself puts before every text."""
    begin = getattr(tokenizer, "bos_token", None)
    if not begin or not prompt.startswith(begin):
        return prompt
    ids = tokenizer("a")["input_ids"]
    puts_it = bool(ids) and ids[0] == tokenizer.bos_token_id
    return prompt.removeprefix(begin) if puts_it else prompt
