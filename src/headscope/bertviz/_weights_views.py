"""BertViz's head view and model view, and its two actions on a view: show it, or return it."""

# The parameters, their order and their defaults are BertViz's; the fifth differs between the two.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headscope.errors import HeadscopeError, PageError, RecordError
from headscope.record import Record, Tokens, from_weights
from headscope.record.bare_arrays import parse_tokens
from headscope.views import view

Pieces = Sequence[str]
WORDS = {"html_action": ("view", "return"), "display_mode": ("dark", "light")}


def head_view(
    attention: Any = None,
    tokens: Pieces | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Pieces | None = None,
    decoder_tokens: Pieces | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: str = "view",
) -> Any:
    """The head view of weights that a model returned.

    Layers may have different numbers of heads, encoder and decoder different depths, and a layer
    may be None.

    Args:
        attention: weights ``[1 head query key]`` for each layer, such as ``outputs.attentions``.
        tokens: one string for each token.
        sentence_b_start: position of the first token of the second sentence.
        prettify_tokens: whether the tokenizer's marks for spaces and word ends are removed from
            what is shown.
        layer: layer that is shown first.
        heads: heads that are shown first.
        encoder_attention: weights of an encoder.
        decoder_attention: weights of a decoder.
        cross_attention: weights from decoder to encoder tokens.
        encoder_tokens: tokens of the encoder.
        decoder_tokens: tokens of the decoder.
        include_layers: layers that are kept; all by default.
        html_action: ``"view"`` displays it, ``"return"`` returns it.

    Returns:
        None, or one `IPython.display.HTML`.

    Raises:
        RecordError: where weights and tokens do not fit.
        PageError: layers or heads that are not there.
    """
    checked("html_action", html_action)
    record = _record(
        prettify_tokens,
        sentence_b_start,
        self=(attention, tokens),
        encoder=(encoder_attention, encoder_tokens),
        decoder=(decoder_attention, decoder_tokens),
        cross=cross_attention,
    )
    return shown(
        record, html_action, view="head", layer=layer, heads=heads, include_layers=include_layers
    )


def model_view(
    attention: Any = None,
    tokens: Pieces | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: str = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Pieces | None = None,
    decoder_tokens: Pieces | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: str = "view",
) -> Any:
    """The model view of weights that a model returned: `head_view` describes the parameters.

    Args:
        attention: see `head_view`.
        tokens: see `head_view`.
        sentence_b_start: see `head_view`.
        prettify_tokens: see `head_view`.
        display_mode: ``"dark"`` or ``"light"``.
        encoder_attention: see `head_view`.
        decoder_attention: see `head_view`.
        cross_attention: see `head_view`.
        encoder_tokens: see `head_view`.
        decoder_tokens: see `head_view`.
        include_layers: layers that are kept; all by default.
        include_heads: heads that are kept; all by default.
        html_action: ``"view"`` displays it, ``"return"`` returns it.

    Returns:
        None, or one `IPython.display.HTML`.

    Raises:
        RecordError: where weights and tokens do not fit.
        PageError: layers or heads that are not there.
    """
    checked("html_action", html_action)
    theme = checked("display_mode", display_mode)
    record = _record(
        prettify_tokens,
        sentence_b_start,
        self=(attention, tokens),
        encoder=(encoder_attention, encoder_tokens),
        decoder=(decoder_attention, decoder_tokens),
        cross=cross_attention,
    )
    kept: dict[str, Any] = {"include_layers": include_layers, "include_heads": include_heads}
    return shown(record, html_action, view="model", theme=theme, **kept)


Side = tuple[Any, Pieces | None]


def _record(
    pretty: bool,
    sentence_b_start: int | None,
    *,
    self: Side,
    encoder: Side,
    decoder: Side,
    cross: Any,
) -> Record:
    given = {"attention": self[0], "encoder_attention": encoder[0], "decoder_attention": decoder[0]}
    for name, array in (given | {"cross_attention": cross}).items():
        _check_given(name, array)
    read: dict[str, Any] = {"encoder": encoder[0], "decoder": decoder[0], "cross": cross}
    for name, (_, pieces) in (("encoder_tokens", encoder), ("decoder_tokens", decoder)):
        read[name] = _tokens(pieces, pretty)
    whole = self[0], _tokens(self[1], pretty, sentence_b_start)
    try:
        return from_weights(*whole, **read)
    except RecordError as error:
        # BertViz's notebooks set the weights of delimiters to 0, so rows may sum to less than 1.
        try:
            return from_weights(*whole, **read, partial=True)
        except RecordError:
            raise error from None


def _check_given(name: str, array: Any) -> None:
    """Raise where a model returned no weights, as with BertViz's recipes under transformers 5."""
    # Without eager attention, transformers 5 returns None for each layer.
    if isinstance(array, tuple | list) and all(layer is None for layer in array):
        raise RecordError(
            f"{name} holds no weights. Give outputs.attentions, not outputs[-1], of a model "
            "loaded with attn_implementation='eager' and output_attentions=True; or "
            "headscope.capture(model, tokenizer, text), which needs neither"
        )


def _tokens(
    pieces: Pieces | None, pretty: bool, sentence_b_start: int | None = None
) -> Tokens | None:
    if pieces is None:
        return None
    tokens = parse_tokens(pieces, sentence_b_start)
    # A token that is nothing but the mark keeps it: an empty label could not be seen.
    labels = [label.replace("</w>", "") or label for label in tokens.labels]
    return replace(tokens, labels=tuple(labels if pretty else tokens.pieces))


def checked(name: str, given: str) -> str:
    """One of BertViz's two words for ``html_action`` or ``display_mode``, before any work.

    Raises:
        PageError: naming both.
    """
    words = WORDS[name]
    if given not in words:
        raise PageError(f"{name} must be {' or '.join(map(repr, words))}, not {given!r}")
    return given


def shown(record: Record, html_action: str, **options: Any) -> Any:
    """Display the view and return None, or return it as one `IPython.display.HTML`.

    Args:
        record: the record to show.
        html_action: an action that `checked` has accepted.
        **options: options of `headscope.view`; those that are None are not given.
    """
    made = view(record, **{name: value for name, value in options.items() if value is not None})
    try:
        from IPython.display import HTML, display
    except ModuleNotFoundError:
        raise HeadscopeError(
            "BertViz's calls need the package IPython: pip install 'headscope[notebook]'; "
            "without it, headscope.view(record).save('page.html') writes the page"
        ) from None
    shown_html = HTML(made._repr_html_())
    if html_action == "return":
        return shown_html
    display(shown_html)
    return None
