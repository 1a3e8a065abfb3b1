"""What can be imported: `irkit.supported_operators()`."""

from __future__ import annotations

from collections.abc import Mapping


def supported_operators() -> Mapping[str, Mapping[str, str]]:
    """Library → operator or estimator → what is refused of it, empty if nothing is.

    Libraries: "scikit-learn", "ONNX", "LightGBM", "XGBoost", "CatBoost", "YDF". What an estimator refuses is
    refused by name, with an UnsupportedError, before anything is compiled.
    """
    from irkit.frontends import catboost, ydf
    from irkit.frontends.onnx.handlers import CLASSICAL, HANDLERS
    from irkit.frontends.sklearn.restrictions import supported

    return {
        "scikit-learn": supported(),
        "ONNX": dict.fromkeys(sorted({*CLASSICAL, *HANDLERS}), "docs/onnx.md"),
        "LightGBM": dict.fromkeys(("Booster", "LGBMClassifier", "LGBMRanker", "LGBMRegressor"), ""),
        "XGBoost": dict.fromkeys(
            (
                "Booster",
                "XGBClassifier",
                "XGBRFClassifier",
                "XGBRFRegressor",
                "XGBRanker",
                "XGBRegressor",
            ),
            "",
        ),
        "CatBoost": dict.fromkeys(catboost.ESTIMATORS, "categorical, text and embedding features"),
        "YDF": dict.fromkeys(
            ydf.ESTIMATORS,
            "sets of categories, sequences of vectors; uplift, survival; models without an engine of YDF",
        ),
    }
