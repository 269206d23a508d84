"""Changing what attention does, and asking what it matters."""

from headscope.interventions._cut import Cut
from headscope.interventions._given import Given
from headscope.interventions._intervention import Intervention
from headscope.interventions._mean import Mean, MeanOutput
from headscope.interventions._patch import Patch
from headscope.interventions._session import intervene
from headscope.interventions._uniform import Uniform
from headscope.interventions._zero import Zero

__all__ = ["Cut", "Given", "Intervention", "Mean", "MeanOutput", "Patch", "Uniform", "Zero", "intervene"]
