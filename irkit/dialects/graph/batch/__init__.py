"""Which dimension of each value is the batch, and where rows of the batch mix."""

from irkit.dialects.graph.batch.analysis import BatchAnalysis, Mixing, analyse
from irkit.dialects.graph.batch.dims import UNKNOWN, BatchDim, RowsMix

__all__ = ["UNKNOWN", "BatchAnalysis", "BatchDim", "Mixing", "RowsMix", "analyse"]
