"""BertViz's neuron view, of any model that can be captured: it needs no copy of the model's
code.
"""

# The parameters, their order and their defaults are BertViz's.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.bertviz._weights_views import checked, shown
from headscope.errors import CaptureError
from headscope.record import Layer, Record

__all__ = ["format_delimiters", "format_special_chars", "get_attention", "show"]


def show(
    model: Any,
    model_type: str,
    tokenizer: Any,
    sentence_a: str,
    sentence_b: str | None = None,
    display_mode: str = "dark",
    layer: int | None = None,
    head: int | None = None,
    html_action: str = "view",
) -> Any:
    """Run a model and show its neuron view.

    Args:
        model: a transformers model, such as ``AutoModel.from_pretrained(...)``; no option needs to
            be set.
        model_type: BertViz's name of the model; not used, the model's own configuration is.
        tokenizer: its tokenizer.
        sentence_a: the first sentence.
        sentence_b: the second one.
        display_mode: ``"dark"`` or ``"light"``.
        layer: layer that is shown first.
        head: head that is shown first.
        html_action: ``"view"`` displays it, ``"return"`` returns it.

    Returns:
        None, or one `IPython.display.HTML`.

    Raises:
        HeadscopeError: a text, model, layer or head that cannot be shown, saying why.
    """
    checked("html_action", html_action)
    theme = checked("display_mode", display_mode)
    record = _captured(model, tokenizer, sentence_a, sentence_b)
    heads = None if head is None else [head]
    return shown(record, html_action, view="neuron", layer=layer, heads=heads, theme=theme)


def get_attention(
    model: Any,
    model_type: str,
    tokenizer: Any,
    sentence_a: str,
    sentence_b: str | None = None,
    include_queries_and_keys: bool = False,
) -> dict[str, dict[str, list[Any]]]:
    """Run a model and return its weights, and its queries and keys, as nested lists.

    Args:
        model: see `show`.
        model_type: see `show`; with ``"gpt2"`` delimiters keep their names.
        tokenizer: see `show`.
        sentence_a: the first sentence.
        sentence_b: the second one.
        include_queries_and_keys: whether queries and keys are returned, too.

    Returns:
        ``"all"``, and for a pair ``"aa"``, ``"ab"``, ``"ba"`` and ``"bb"``: each with ``attn`` (for
        each layer ``[head query key]``), ``left_text``, ``right_text``, and ``queries`` and
        ``keys`` (for each layer ``[head token feature]``).

    Raises:
        HeadscopeError: a text or model that cannot be captured, saying why.
    """
    record = _captured(model, tokenizer, sentence_a, sentence_b)
    stack = record["self"]
    tokens = format_special_chars(stack.query.pieces)
    tokens = tokens if model_type == "gpt2" else format_delimiters(tokens, tokenizer)
    text = np.array(tokens, object)
    segments = np.array(stack.query.segments)
    sides = {"all": np.arange(len(segments))}
    names = {"all": ("all", "all")}
    if sentence_b:
        names |= {left + right: (left, right) for left in "ab" for right in "ab"}
        sides |= {"a": np.flatnonzero(segments == 0), "b": np.flatnonzero(segments == 1)}
    attention: dict[str, dict[str, list[Any]]] = {}
    for name, (left, right) in names.items():
        query, key = sides[left], sides[right]
        attention[name] = {
            "attn": [layer.weights_of()[:, query][:, :, key].tolist() for layer in stack],
            "left_text": text[query].tolist(),
            "right_text": text[key].tolist(),
        }
        if include_queries_and_keys:
            both = list(map(_queries_and_keys, stack))
            attention[name]["queries"] = [queries[:, query].tolist() for queries, _ in both]
            attention[name]["keys"] = [keys[:, key].tolist() for _, keys in both]
    return attention


def format_special_chars(tokens: Sequence[str]) -> list[str]:
    """The tokens with a space in place of their tokenizer's mark for it."""
    return [token.replace("\u0120", " ").replace("\u2581", " ") for token in tokens]


def format_delimiters(tokens: Sequence[str], tokenizer: Any) -> list[str]:
    """The tokens with BERT's names in place of their tokenizer's delimiters."""
    names = ((tokenizer.sep_token, "[SEP]"), (tokenizer.cls_token, "[CLS]"))
    formatted = list(tokens)
    for own, name in names:
        if own:
            formatted = [token.replace(own, name) for token in formatted]
    return formatted


def _captured(model: Any, tokenizer: Any, sentence_a: str, sentence_b: str | None) -> Record:
    from headscope.capturing import capture

    # An empty second sentence is none, as in BertViz.
    return capture(model, tokenizer, sentence_a, sentence_b or None)


def _queries_and_keys(layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys, both ``[head token feature]``; shared keys are repeated for each head."""
    if not layer.has("queries") or not layer.has("keys"):
        raise CaptureError(
            f"Layer {layer.layer} of this model was captured without queries and keys, since it "
            "computes its scores in a way of its own; leave include_queries_and_keys out"
        )
    keys = np.repeat(np.asarray(layer.keys), layer.heads // layer.kv_heads, axis=0)
    return np.asarray(layer.queries), keys
