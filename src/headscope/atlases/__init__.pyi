"""The public names of `headscope.atlases`, each once; `lazy_loader` reads them from here."""

from ._atlas import CONFIDENCE as CONFIDENCE
from ._atlas import Atlas as Atlas
from ._atlas import AtlasHead as AtlasHead
from ._atlas import Neighbour as Neighbour
from ._atlas import atlas_of as atlas_of
from ._comparison import PARTS as PARTS
from ._comparison import AtlasComparison as AtlasComparison
from ._comparison import HeadPair as HeadPair
from ._comparison import ScoreDifference as ScoreDifference
from ._counts import ATLAS as ATLAS
from ._counts import CLASSES as CLASSES
from ._counts import RELATIONS as RELATIONS
from ._counts import SIDE as SIDE
from ._counts import STEP as STEP
from ._counts import bin_names as bin_names
from ._counts import offset_bins as offset_bins
from ._counts import text_counts as text_counts
from ._examples import Example as Example
from ._examples import FrequentPair as FrequentPair
from ._examples import SampledText as SampledText
from ._examples import Stratum as Stratum
