"""Tasks by name, from files: what the command line gives."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headscope.errors import FileError, HeadscopeError, TextError
from headscope.tasks._classification import classification
from headscope.tasks._loss import masked_word, next_word, repeats, translation
from headscope.tasks._minimal_pairs import minimal_pairs
from headscope.tasks._names import NAMES, check_task
from headscope.tasks._rows import given_labels, given_pairs, read_groups, read_rows
from headscope.tasks._similarity import likeness
from headscope.tasks._task import Task, parse_task


def named_task(
    name: str,
    model: Any,
    tokenizer: Any,
    path: str | Path | None,
    *,
    limit: int | None = None,
    **options: Any,
) -> Task:
    """A task by its name, on the examples of a file.

    Args:
        name: one of `NAMES`, or ``file.py:function``: called with model and tokenizer, it gives a
            `Task`, an `Objective` or a function as `headscope.ablate` takes it.
        model: that will be run.
        tokenizer: of the model.
        path: of the examples; see `read_rows`.
        limit: how many examples are read at most.
        **options: of the task, which also say what becomes of a row without text.

    Raises:
        TextError: where there is no such task, it needs a file, or no row can be read.
        FileError: where the file cannot be read.
    """
    if ":" in name:
        return parse_task(function_of(name)(model, tokenizer))
    check_task(name, path)
    if name == "repeats":
        special = set(tokenizer.all_special_ids)
        tokens = [number for number in range(model.config.vocab_size) if number not in special]
        start = tokenizer.bos_token_id
        return repeats(tokens, start=start, **({"count": limit} if limit else {}), **options)
    path = Path(path or "")  # `check_task` refuses a task without its file
    rows = read_rows(path)[:limit]
    return task_of_rows(name, model, tokenizer, (rows, str(path)), **options)


def task_of_rows(
    name: str, model: Any, tokenizer: Any, examples: tuple[list[Any], str], **options: Any
) -> Task:
    """A task by its name, on rows of examples.

    Args:
        name: one of `NAMES` but ``"repeats"``, which makes its own.
        model: see `named_task`.
        tokenizer: see `named_task`.
        examples: rows as of `read_rows`, and where they are from, for messages.
        **options: see `named_task`.

    Raises:
        TextError: where no row can be read.
        FileError: where the rows lack a field.
    """
    rows, path = examples
    texts = given_pairs(rows, path)

    def pairs() -> list[Any]:
        if not any(isinstance(text, tuple) for text in texts):
            raise TextError(f"{path} has texts without a second one; {name} reads {NAMES[name]}")
        return texts

    # Calls that are not made yet: only the one that is wanted looks at the rows.
    makers: dict[str, Callable[[], Task]] = {
        "next-word": lambda: next_word(tokenizer, _singles(texts), **options),
        "masked-word": lambda: masked_word(tokenizer, _singles(texts), **options),
        "classification": lambda: classification(
            tokenizer, texts, _classes(rows, path, model), **options
        ),
        "likeness": lambda: likeness(tokenizer, pairs(), given_labels(rows, path), **options),
        "minimal-pairs": lambda: minimal_pairs(tokenizer, pairs(), **options),
        "translation": lambda: translation(tokenizer, pairs(), **options),
    }
    return makers[name]().grouped(read_groups(rows))


def _singles(texts: list) -> list[Any]:
    """Pairs joined to one text; what is not a text stays as it is, and is left out where it is
    read.
    """
    return [" ".join(text) if _is_pair(text) else text for text in texts]


def _is_pair(text: Any) -> bool:
    return isinstance(text, tuple) and all(isinstance(part, str) for part in text)


def _classes(rows: list, path: str, model: Any) -> list[Any]:
    """The class of each row; the error in place of one that the model does not have."""
    names = getattr(model.config, "label2id", None) or {}
    count = getattr(model.config, "num_labels", None) or math.inf
    labels = given_labels(rows, path, names)
    for number, label in enumerate(labels):
        if isinstance(label, float) and not (label.is_integer() and 0 <= label < count):
            labels[number] = FileError(
                f"{path}, row {number + 1} has the label {label:g}; the model has {count} classes"
            )
    return labels


def function_of(name: str) -> Callable[..., Any]:
    """A function of a file of the user's own.

    Args:
        name: ``file.py:function``.

    Raises:
        FileError: where there is no such file or function, or the file cannot be run.
    """
    path, _, function = name.rpartition(":")
    spec = None
    if Path(path).is_file():
        spec = importlib.util.spec_from_file_location("headscope_task", path)
    if spec is None or spec.loader is None or not path.endswith(".py"):
        raise FileError(
            f"The task {name!r} is to be a function of {path!r}, which is not a file of Python"
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except HeadscopeError:
        raise
    except (ImportError, SyntaxError) as error:
        raise FileError(f"{path} cannot be run: {error}") from error
    maker = getattr(module, function, None)
    if not callable(maker):
        raise FileError(f"{path} has no function {function!r}")
    return maker
