"""The public names of the root, each once: where it is defined. `__init__.py` loads them from there
on first use. What else is public has its address in its package, such as `headscope.record.Stack`.
"""

from . import errors as errors, foreign as foreign, interventions as interventions, texts as texts
from ._version import __version__ as __version__
from .answering import answer as answer
from .capturing import (
    budget as budget,
    capture as capture,
    capture_many as capture_many,
    generate as generate,
    watch as watch,
)
from .comparison import compare as compare
from .composition import composition as composition
from .interventions import Cut as Cut, Patch as Patch, Zero as Zero, intervene as intervene
from .live import serve as serve
from .norms import flow as flow, rollout as rollout
from .record import Record as Record, from_weights as from_weights
from .results import load as load, save as save
from .studies import (
    ablate as ablate,
    alignment_study as alignment_study,
    answers as answers,
    atlas as atlas,
    coref as coref,
    effect as effect,
    faithfulness as faithfulness,
    heads as heads,
    mechanism as mechanism,
    norm_study as norm_study,
    probe as probe,
    relations as relations,
    word_alignment as word_alignment,
)
from .views import view as view
from .views.figures import figure as figure
from .why import why as why
