"""Analyses end to end: from a model and texts, or from records, to a result that prints, plots and exports."""

from headscope.studies._embedding_role import embedding_role
from headscope.studies._heads import heads
from headscope.studies._mechanism import mechanism

__all__ = ["embedding_role", "heads", "mechanism"]
