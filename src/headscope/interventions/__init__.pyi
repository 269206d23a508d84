"""The public names of `headscope.interventions`, each once; `lazy_loader` reads them from here."""

from ._intervention import Intervention as Intervention
from ._patch import Patch as Patch
from ._replaced import Cut as Cut
from ._replaced import Mean as Mean
from ._replaced import MeanOutput as MeanOutput
from ._replaced import RecordMeans as RecordMeans
from ._replaced import SetWeights as SetWeights
from ._replaced import Uniform as Uniform
from ._replaced import Zero as Zero
from .importance import Importance as Importance
from .importance import PruningCurve as PruningCurve
from .importance import confidence_importance as confidence_importance
from .importance import gradient_importance as gradient_importance
from .importance import greedy_pruning as greedy_pruning
from .importance import leave_one_out as leave_one_out
from .importance import pruning_curve as pruning_curve
from .session import intervene as intervene
