"""Compiled models as scikit-learn estimators; docs/serving.md is the guide."""

from irkit.serving.estimator import CompiledEstimator

__all__ = ["CompiledEstimator"]
