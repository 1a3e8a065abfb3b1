"""Which estimators of scikit-learn are imported, by whom; and which of them are none of rows."""

from __future__ import annotations

from irkit.frontends.sklearn import (
    adaboost,
    bayes,
    boosters,
    calibration,
    clusters,
    codes,
    columns,
    curves,
    documents,
    encoders,
    ensembles,
    factors,
    functions,
    graphs,
    histogram,
    imputation,
    iterative_imputation,
    linear,
    multiple,
    neighbours,
    neural,
    preprocessing,
    processes,
    projections,
    svm,
    targets,
    trees,
)
from irkit.frontends.sklearn.importer import Predictor, Transformer

TRANSFORMERS: dict[str, Transformer] = {
    **calibration.TRANSFORMERS,
    **clusters.TRANSFORMERS,
    **codes.TRANSFORMERS,
    **columns.TRANSFORMERS,
    **curves.TRANSFORMERS,
    **documents.TRANSFORMERS,
    **encoders.TRANSFORMERS,
    **ensembles.TRANSFORMERS,
    **factors.TRANSFORMERS,
    **functions.TRANSFORMERS,
    **graphs.TRANSFORMERS,
    **imputation.TRANSFORMERS,
    **iterative_imputation.TRANSFORMERS,
    **neural.TRANSFORMERS,
    **preprocessing.TRANSFORMERS,
    **projections.TRANSFORMERS,
    **trees.TRANSFORMERS,
}
PREDICTORS: dict[str, Predictor] = {
    **adaboost.PREDICTORS,
    **bayes.PREDICTORS,
    **boosters.PREDICTORS,
    **calibration.PREDICTORS,
    **clusters.PREDICTORS,
    **ensembles.PREDICTORS,
    **graphs.PREDICTORS,
    **histogram.PREDICTORS,
    **linear.PREDICTORS,
    **multiple.PREDICTORS,
    **neighbours.PREDICTORS,
    **neural.PREDICTORS,
    **processes.PREDICTORS,
    **projections.PREDICTORS,
    **svm.PREDICTORS,
    **targets.PREDICTORS,
    **trees.PREDICTORS,
}
COMPOSITIONS = ("ColumnTransformer", "FeatureUnion", "Pipeline")
DELEGATES = {
    "FrozenEstimator": "estimator",
    "GridSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "RANSACRegressor": "estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "SelfTrainingClassifier": "estimator_",
}
"""Estimators that answer as another one does, which is their attribute."""
REFUSED = {
    "DictVectorizer": "its input is dictionaries",
    "FeatureHasher": "its input is dictionaries, pairs or strings",
    "LatentDirichletAllocation": "its iterations end by what has converged so far",
    "MiniBatchNMF": "its iterations end when the whole batch has converged",
    "MultiLabelBinarizer": "its input is sets of labels",
    "PatchExtractor": "it makes several rows of each",
}
"""Why there are estimators of scikit-learn that are no program of rows."""
