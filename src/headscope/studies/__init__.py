"""The literature's analyses end to end over many texts; each returns a result that prints, plots and exports."""

from headscope.studies._norm_plot import check_plot
from headscope.studies._norms import NormStudy, load_norm_study, norm_study

__all__ = ["NormStudy", "check_plot", "load_norm_study", "norm_study"]
