"""Class labels that are no numbers, or start anywhere."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

LABELS: dict[str, Any] = {
    "booleans": np.array([False, True]),
    "negative": np.array([-7, 0, 90]),
    "objects": np.array(["a", "long name", "ü"], object),
    "small": np.array([250, 251, 255], np.uint8),
    "strings": np.array(["a", "long name", "ü"]),
}
MODELS: dict[str, Any] = {
    "ada": lambda: AdaBoostClassifier(n_estimators=5, random_state=0),
    "boosted": lambda: GradientBoostingClassifier(n_estimators=3),
    "forest": lambda: RandomForestClassifier(5, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=3),
    "lightgbm": lambda: lgb.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
    "logistic": lambda: LogisticRegression(max_iter=50),
    "machine": SVC,
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", MODELS)
def test_labels(name: str, labels: str) -> None:
    x, y = data("iris")
    known = LABELS[labels]
    model = MODELS[name]().fit(x, known[np.minimum(y, len(known) - 1)])
    compare(interpreted(model), model, x, rtol=1e-9, atol=1e-9)
