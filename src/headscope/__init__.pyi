"""The public names, each once: where it is defined. `__init__.py` loads them from there on first
use.
"""

from ._version import __version__ as __version__
from .answering import answer as answer
from .capturing import (
    budget as budget,
    capture as capture,
    capture_encoded as capture_encoded,
    capture_many as capture_many,
    generate as generate,
    watch as watch,
)
from .comparison import Comparison as Comparison, Effect as Effect, compare as compare
from .errors import (
    CaptureError as CaptureError,
    FigureError as FigureError,
    FileError as FileError,
    HeadscopeError as HeadscopeError,
    InterventionError as InterventionError,
    ModelError as ModelError,
    PageError as PageError,
    RecordError as RecordError,
    TextError as TextError,
)
from .foreign import (
    from_nnsight as from_nnsight,
    from_queries_keys as from_queries_keys,
    from_transformer_lens as from_transformer_lens,
)
from .interventions import (
    Cut as Cut,
    SetWeights as SetWeights,
    Intervention as Intervention,
    Mean as Mean,
    Patch as Patch,
    Uniform as Uniform,
    Zero as Zero,
    intervene as intervene,
)
from .live import serve as serve
from .norms import flow as flow, rollout as rollout
from .parts import with_parts as with_parts
from .patterns import Heads as Heads
from .record import (
    Generation as Generation,
    Layer as Layer,
    ModelFacts as ModelFacts,
    Record as Record,
    Stack as Stack,
    Tokens as Tokens,
    from_weights as from_weights,
)
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
from . import texts as texts
from .tasks import Task as Task
from .views import View as View, view as view
from .views.figures import figure as figure
from .why import why as why
