"""BertViz's calls over our views: change ``bertviz`` to ``headscope.bertviz`` in an import, and a
notebook runs.

Names, parameters, their order and return values are those of BertViz 1.4.1;
`headscope.bertviz.neuron_view`, `headscope.bertviz.util` and
`headscope.bertviz.transformers_neuron_view` replace the modules of the same name. Calls that crash
there or leave the page blank work here, or raise one of `headscope.errors`.
"""

from headscope.bertviz._weights_views import head_view, model_view

__all__ = ["head_view", "model_view"]
