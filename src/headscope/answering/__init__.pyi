"""The public names of `headscope.answering`, each once; `lazy_loader` reads them from here."""

from ._answer import answer as answer
from ._looked import parse_choice as parse_choice
from ._looked import sink_times as sink_times
from ._needed import ForcedAnswer as ForcedAnswer
from ._needed import needed as needed
from ._printed import BY as BY
from ._printed import AnswerWord as AnswerWord
from ._printed import PartNumbers as PartNumbers
from ._printed import Verdict as Verdict
from ._result import DEMO as DEMO
from ._result import Answer as Answer
