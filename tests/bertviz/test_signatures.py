"""The calls are those of BertViz 1.4.1, name for name, in the same order, with the same
defaults.
"""

import importlib
import inspect

import pytest

SIGNATURES = {
    ("", "head_view"): (
        "(attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, layer=None, "
        "heads=None, encoder_attention=None, decoder_attention=None, cross_attention=None, "
        "encoder_tokens=None, decoder_tokens=None, include_layers=None, html_action='view')"
    ),
    ("", "model_view"): (
        "(attention=None, tokens=None, sentence_b_start=None, prettify_tokens=True, "
        "display_mode='dark', encoder_attention=None, decoder_attention=None, "
        "cross_attention=None, encoder_tokens=None, decoder_tokens=None, include_layers=None, "
        "include_heads=None, html_action='view')"
    ),
    (".neuron_view", "show"): (
        "(model, model_type, tokenizer, sentence_a, sentence_b=None, display_mode='dark', "
        "layer=None, head=None, html_action='view')"
    ),
    (".neuron_view", "get_attention"): (
        "(model, model_type, tokenizer, sentence_a, sentence_b=None, "
        "include_queries_and_keys=False)"
    ),
    (".neuron_view", "format_special_chars"): "(tokens)",
    (".neuron_view", "format_delimiters"): "(tokens, tokenizer)",
    (".util", "format_attention"): "(attention, layers=None, heads=None)",
    (".util", "num_layers"): "(attention)",
    (".util", "num_heads"): "(attention)",
    (".util", "format_special_chars"): "(tokens)",
}


def signature(package, module, name):
    found = inspect.signature(getattr(importlib.import_module(package + module), name))
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


@pytest.mark.parametrize(("module", "name"), SIGNATURES)
def test_ours_is_the_one_written_down(module, name):
    assert signature("headscope.bertviz", module, name) == SIGNATURES[module, name]
