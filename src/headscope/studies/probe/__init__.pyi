"""The public names of `headscope.studies.probe`, each once; `lazy_loader` reads them from here."""

from ._probe import KINDS as KINDS
from ._probe import ProbeOptions as ProbeOptions
from ._probe import probe as probe
from ._result import Probing as Probing
from ._result import Score as Score
