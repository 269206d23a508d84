"""Probes: what can be learnt of syntax from attention and hidden states, each beside its controls.

A probe is trained with torch, in minutes on a processor; what is pure about it is in
`headscope.linguistics`.
"""

from headscope.studies.probes._probe import KINDS, ProbeOptions, probe
from headscope.studies.probes._probing import Probing
from headscope.studies.probes._score import Score

__all__ = ["KINDS", "ProbeOptions", "Probing", "Score", "probe"]
