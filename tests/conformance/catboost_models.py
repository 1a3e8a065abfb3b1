"""CatBoost's models that are kept as files, with rows and CatBoost's own answers.

Tests read them where CatBoost is not installed. `python -m tests.conformance.catboost_models` writes them
anew, where it is.
"""

# pyright: basic

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

# Not named as the package is: tests are imported by their folders, which then have that name.
FOLDER = Path(__file__).parent / "kept_catboost"
TRAINING = {
    "iterations": 3,
    "depth": 3,
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
}
METHODS = ("predict", "predict_proba", "predict_log_proba")


def rows_at_borders(document: Any, rows: Any) -> Any:
    """Rows on which a wrong comparison shows: on borders, next to them in float32 and in float64 (which are
    equal as float32), without a sign of 0, infinite and missing."""
    made = [rows, np.zeros_like(rows[:1]), -np.zeros_like(rows[:1])]
    made += [
        np.full_like(rows[:1], v) for v in (np.nan, np.inf, -np.inf, 1e300, 3.4028234663852886e38)
    ]
    for feature in document["features_info"]["float_features"]:
        for border in feature["borders"]:
            single = np.float32(border)
            with np.errstate(over="ignore"):
                beside = [np.nextafter(single, np.float32(s)) for s in (-np.inf, np.inf)]
                doubles = [np.nextafter(np.float64(single), s) for s in (-np.inf, np.inf)]
            for value in (single, *beside, *doubles):
                row = rows[len(made) % len(rows)].copy()
                row[feature["flat_feature_index"]] = value
                made.append(row[None])
    return np.concatenate(made)


def training_rows() -> tuple[Any, Any]:
    """120 rows of 3 features, a tenth of them NaN, and a target that goes by all three and by what is NaN."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(120, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=120)
    gaps = rng.random(x.shape) < 0.1
    return np.where(gaps, np.nan, x), y + gaps @ [3.0, -3.0, 2.0]


def rows_with_categories() -> tuple[Any, Any]:
    """120 rows of a town, a number and a code, and a target that goes by all three."""
    rng = np.random.default_rng(6)
    x, y = training_rows()
    towns = rng.choice(
        ["Bern", "Łódź", "a town that has a name of more than 64 letters " + "x" * 30], 120
    )
    codes = rng.integers(-3, 9, 120)
    rows = np.empty((120, 3), object)
    rows[:, 0], rows[:, 1], rows[:, 2] = towns, x[:, 1], codes.tolist()
    above = np.nan_to_num(x[:, 1]) > 0
    return rows, y + 4 * ((towns == "Bern") & (codes % 3 > 0)) + 4 * above * (codes % 2) - 2 * (
        towns == "Łódź"
    )


def unseen_categories(document: Any, rows: Any) -> Any:
    """Rows on borders of their number, and with categories that training had not."""
    made = [rows]
    for n, border in enumerate(document["features_info"]["float_features"][0]["borders"]):
        row = rows[n % len(rows)].copy()
        row[1] = border
        made.append(row[None])
    return np.concatenate([*made, np.array([["Basel", 0.5, 3], ["Bern", None, 99]], object)])


def models_with_categories() -> dict[str, Any]:
    """Fitted models of rows that have categories, by their names."""
    cb: Any = importlib.import_module("catboost")
    rows, y = rows_with_categories()
    kinds = ["Borders:TargetBorderCount=2", "Buckets", "BinarizedTargetMeanValue", "Counter"]
    combined = {
        "simple_ctr": kinds,
        "combinations_ctr": kinds,
        "max_ctr_complexity": 3,
        "model_size_reg": 0,
    }
    towns = cb.CatBoostRegressor(
        **TRAINING | {"iterations": 16, "depth": 4},
        **combined,
        one_hot_max_size=3,
        cat_features=[0, 2],
    )
    codes = cb.CatBoostClassifier(
        **TRAINING, grow_policy="Lossguide", nan_mode="Max", cat_features=[0, 2]
    )
    return {"towns": towns.fit(rows, y), "codes": codes.fit(rows, y > 1)}


def models() -> dict[str, Any]:
    """Fitted models of numbers by their names."""
    cb: Any = importlib.import_module("catboost")
    x, y = training_rows()
    three = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    words = np.array(["low", "mid", "high"])

    def classifier(labels: Any, **more: Any) -> Any:
        return cb.CatBoostClassifier(**TRAINING | more).fit(x, labels)

    def regressor(values: Any, **more: Any) -> Any:
        return cb.CatBoostRegressor(**TRAINING | more).fit(x, values)

    patient = classifier(np.where(y > 0, "yes", "no"))
    patient.set_probability_threshold(0.4)
    scaled = regressor(y, loss_function="MAE")
    scaled.set_scale_and_bias(1.3, [0.7])
    groups = {"group_id": np.repeat(np.arange(12), 10)}
    return {
        "absent": classifier(three, class_names=[0, 1, 2, 3]),
        "depthwise": regressor(y, nan_mode="Max", grow_policy="Depthwise"),
        "labels_apart": classifier(np.c_[y > 0, y > 1].astype(int), loss_function="MultiLogloss"),
        "lossguide": classifier(three * 2 + 1, grow_policy="Lossguide"),
        "multi_rmse": regressor(np.c_[y, -y * y], loss_function="MultiRMSE"),
        "multiclass": classifier(words[three]),
        "one_against_all": classifier(three * 0.5, loss_function="MultiClassOneVsAll"),
        "patient": patient,
        "poisson": regressor(np.abs(y), loss_function="Poisson"),
        "ranker": cb.CatBoostRanker(**TRAINING, loss_function="YetiRank").fit(x, three, **groups),
        "scaled": scaled,
        "shares": classifier(1 / (1 + np.exp(-y)), loss_function="CrossEntropy"),
        "true": classifier(y > 0),
        "uncertain": regressor(y, loss_function="RMSEWithUncertainty"),
    }


def answers(model: Any, rows: Any) -> dict[str, Any]:
    """What the methods of a model say, and its raw values as those of `decision_function`."""
    found = {m: getattr(model, m)(rows) for m in METHODS if hasattr(model, m)}
    if "predict_proba" in found:
        found["decision_function"] = model.predict(rows, prediction_type="RawFormulaVal")
    return {method: np.asarray(values) for method, values in found.items()}


def kept(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """A kept model's document, its rows, and the answers by method."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    wanted = {
        method: np.array(values, dtype) for method, (dtype, values) in found["answers"].items()
    }
    rows = found["rows"]
    kind = object if isinstance(rows[0][0], str) else float
    return found["model"], np.array(rows, kind), wanted


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    with_categories = models_with_categories()
    for name, model in (models() | with_categories).items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            model.save_model(path, format="json")
            document = json.loads(path.read_text(encoding="utf-8"))
        # What is not about the model: times, paths, and the course of training.
        for key in ("model_guid", "output_options", "train_finish_time", "training"):
            document["model_info"].pop(key, None)
        loss = document["model_info"]["params"]["loss_function"]
        document["model_info"]["params"] = {"loss_function": loss}
        if name in with_categories:
            rows = unseen_categories(document, rows_with_categories()[0][:12])
        else:
            rows = rows_at_borders(document, training_rows()[0][:12])
        said = {m: (v.dtype.str, v.tolist()) for m, v in answers(model, rows).items()}
        text = json.dumps({"model": document, "rows": rows.tolist(), "answers": said})
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
