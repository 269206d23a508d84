"""headscope: see what every attention head of a transformer does.

The public names and nothing else. They are loaded on first use, so that ``import headscope`` loads neither torch
nor transformers.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from headscope._version import __version__

if TYPE_CHECKING:
    from headscope.capturing import budget, capture, capture_encoded, capture_many, generate, watch, without_embedding
    from headscope.comparison import Comparison, Effect, compare
    from headscope.errors import (
        CaptureError,
        FigureError,
        FileError,
        HeadscopeError,
        InterventionError,
        ModelError,
        PageError,
        RecordError,
        TextError,
    )
    from headscope.interventions import Cut, Given, Intervention, Mean, MeanOutput, Patch, Uniform, Zero, intervene
    from headscope.norms import flow, rollout
    from headscope.patterns import Heads, Mechanism, MechanismTally, Tally, load_mechanism_tally, load_tally
    from headscope.record import (
        Candidate,
        Contributions,
        Generation,
        Layer,
        Mask,
        ModelFacts,
        Record,
        Rotary,
        Stack,
        Tokens,
        from_nnsight,
        from_transformer_lens,
        from_weights,
    )
    from headscope.results import load, save
    from headscope.studies import (
        Ablation,
        AlignedPair,
        AlignmentStudy,
        Coreference,
        Explained,
        Faithfulness,
        NormStudy,
        Probing,
        Relations,
        Tampering,
        ablate,
        alignment_study,
        coref,
        effect,
        embedding_role,
        faithfulness,
        heads,
        load_alignment_study,
        load_coref,
        load_norm_study,
        load_relations,
        mechanism,
        norm_study,
        probe,
        read_aligned_pairs,
        relations,
        word_alignment,
    )
    from headscope.tasks import Task
    from headscope.views import (
        View,
        head_view,
        matrix_view,
        model_view,
        neuron_view,
        page,
        pair_view,
        scatter_view,
        text_view,
        view,
    )
    from headscope.views.figures import (
        ablation_figure,
        alignment_figure,
        faithfulness_figure,
        figure,
        heads_figure,
        mechanism_figure,
    )

_PLACES = {
    "headscope.capturing": (
        "budget",
        "capture",
        "capture_encoded",
        "capture_many",
        "generate",
        "watch",
        "without_embedding",
    ),
    "headscope.comparison": ("Comparison", "Effect", "compare"),
    "headscope.errors": (
        "CaptureError",
        "FigureError",
        "FileError",
        "HeadscopeError",
        "InterventionError",
        "ModelError",
        "PageError",
        "RecordError",
        "TextError",
    ),
    "headscope.interventions": (
        "Cut",
        "Given",
        "Intervention",
        "Mean",
        "MeanOutput",
        "Patch",
        "Uniform",
        "Zero",
        "intervene",
    ),
    "headscope.norms": ("flow", "rollout"),
    "headscope.patterns": ("Heads", "Mechanism", "MechanismTally", "Tally", "load_mechanism_tally", "load_tally"),
    "headscope.record": (
        "Candidate",
        "Contributions",
        "Generation",
        "Layer",
        "Mask",
        "ModelFacts",
        "Record",
        "Rotary",
        "Stack",
        "Tokens",
        "from_nnsight",
        "from_transformer_lens",
        "from_weights",
    ),
    "headscope.results": ("load", "save"),
    "headscope.studies": (
        "Ablation",
        "AlignedPair",
        "AlignmentStudy",
        "Coreference",
        "Explained",
        "Faithfulness",
        "NormStudy",
        "Probing",
        "Relations",
        "Tampering",
        "ablate",
        "alignment_study",
        "coref",
        "effect",
        "embedding_role",
        "faithfulness",
        "heads",
        "load_alignment_study",
        "load_coref",
        "load_norm_study",
        "load_relations",
        "mechanism",
        "norm_study",
        "probe",
        "read_aligned_pairs",
        "relations",
        "word_alignment",
    ),
    "headscope.tasks": ("Task",),
    "headscope.views": (
        "View",
        "head_view",
        "matrix_view",
        "model_view",
        "neuron_view",
        "page",
        "pair_view",
        "scatter_view",
        "text_view",
        "view",
    ),
    "headscope.views.figures": (
        "ablation_figure",
        "alignment_figure",
        "faithfulness_figure",
        "figure",
        "heads_figure",
        "mechanism_figure",
    ),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "Ablation",
    "AlignedPair",
    "AlignmentStudy",
    "Candidate",
    "CaptureError",
    "Comparison",
    "Contributions",
    "Coreference",
    "Cut",
    "Effect",
    "Explained",
    "Faithfulness",
    "FigureError",
    "FileError",
    "Generation",
    "Given",
    "Heads",
    "HeadscopeError",
    "Intervention",
    "InterventionError",
    "Layer",
    "Mask",
    "Mean",
    "MeanOutput",
    "Mechanism",
    "MechanismTally",
    "ModelError",
    "ModelFacts",
    "NormStudy",
    "PageError",
    "Patch",
    "Probing",
    "Record",
    "RecordError",
    "Relations",
    "Rotary",
    "Stack",
    "Tally",
    "Tampering",
    "Task",
    "TextError",
    "Tokens",
    "Uniform",
    "View",
    "Zero",
    "__version__",
    "ablate",
    "ablation_figure",
    "alignment_figure",
    "alignment_study",
    "budget",
    "capture",
    "capture_encoded",
    "capture_many",
    "compare",
    "coref",
    "effect",
    "embedding_role",
    "faithfulness",
    "faithfulness_figure",
    "figure",
    "flow",
    "from_nnsight",
    "from_transformer_lens",
    "from_weights",
    "generate",
    "head_view",
    "heads",
    "heads_figure",
    "intervene",
    "load",
    "load_alignment_study",
    "load_coref",
    "load_mechanism_tally",
    "load_norm_study",
    "load_relations",
    "load_tally",
    "matrix_view",
    "mechanism",
    "mechanism_figure",
    "model_view",
    "neuron_view",
    "norm_study",
    "page",
    "pair_view",
    "probe",
    "read_aligned_pairs",
    "relations",
    "rollout",
    "save",
    "scatter_view",
    "text_view",
    "view",
    "watch",
    "without_embedding",
    "word_alignment",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"headscope has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_PLACE_OF[name]), name)


class _Package(types.ModuleType):
    """nnsight puts a method ``save`` on every object, modules too, which hides what ``__getattr__`` would find."""

    def __getattribute__(self, name: str) -> Any:
        return __getattr__(name) if name in _PLACE_OF else super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return __all__
