"""Changing what attention does, and asking what it matters."""

from headscope.interventions._intervention import Intervention
from headscope.interventions._patch import Patch
from headscope.interventions._replaced import Cut, Mean, MeanOutput, SetWeights, Uniform, Zero
from headscope.interventions.importance import (
    Importance,
    PruningCurve,
    confidence_importance,
    gradient_importance,
    greedy_pruning,
    leave_one_out,
    pruning_curve,
)
from headscope.interventions.objective import Objective, classification, masked_word, next_word
from headscope.interventions.session import intervene

__all__ = [
    "Cut",
    "Importance",
    "Intervention",
    "Mean",
    "MeanOutput",
    "Objective",
    "Patch",
    "PruningCurve",
    "SetWeights",
    "Uniform",
    "Zero",
    "classification",
    "confidence_importance",
    "gradient_importance",
    "greedy_pruning",
    "intervene",
    "leave_one_out",
    "masked_word",
    "next_word",
    "pruning_curve",
]
