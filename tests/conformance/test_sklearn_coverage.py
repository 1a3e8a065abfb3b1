"""Every estimator of scikit-learn does what the record, and docs/sklearn.md, say of it."""

from __future__ import annotations

import importlib.util
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.preprocessing import LabelBinarizer, LabelEncoder

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import catboost, ydf
from tests.conformance.interpreted import interpreted, same

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location(
    "sklearn_coverage", ROOT / "tools" / "sklearn_coverage.py"
)
assert spec is not None
assert spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage)

KNOWN = json.loads(coverage.RECORD.read_text(encoding="utf-8"))
THIRD = 3
of_this_version = pytest.mark.skipif(
    sklearn.__version__ != KNOWN["scikit-learn"],
    reason=f"the record is of scikit-learn {KNOWN['scikit-learn']}",
)


@of_this_version
def test_the_record_is_true() -> None:
    """One in THIRD estimators, as fitting all takes a while; which they are hangs on their names alone."""
    every: dict[str, Any] = coverage.estimators()
    assert every.keys() == KNOWN["estimators"].keys(), "run tools/sklearn_coverage.py"
    some = {n: c for n, c in every.items() if zlib.crc32(n.encode()) % THIRD == 0}
    found: dict[str, Any] = coverage.outcomes("", interpreted, some=some)
    changed = {n: o for n, o in found.items() if o != KNOWN["estimators"][n]}
    assert not changed, "run tools/sklearn_coverage.py"


def test_nothing_is_wrong() -> None:
    assert not [name for name, o in KNOWN["estimators"].items() if "wrong" in o]


def test_the_page_is_up_to_date() -> None:
    page = coverage.page(KNOWN["scikit-learn"], KNOWN["estimators"])
    assert coverage.PAGE.read_text(encoding="utf-8") == page


@of_this_version
def test_supported_operators_are_those_of_the_record() -> None:
    supported = irkit.supported_operators()["scikit-learn"]
    imported = {name for name, o in KNOWN["estimators"].items() if "methods" in o}
    # Those that are still experimental are no part of all_estimators().
    assert imported == {n for n in supported if not n.startswith(("Halving", "IterativeImputer"))}


def test_every_library_is_named() -> None:
    known = irkit.supported_operators()
    assert set(known) == {"scikit-learn", "ONNX", "LightGBM", "XGBoost", "CatBoost", "YDF"}
    assert set(known["CatBoost"]) == set(catboost.ESTIMATORS)
    assert set(known["YDF"]) == set(ydf.ESTIMATORS)
    assert "predict_proba" in known["scikit-learn"]["SVC"]
    assert known["ONNX"]["Conv"] == "docs/onnx.md"


def test_labels_of_rows() -> None:
    for model in (LabelEncoder(), LabelBinarizer(neg_label=-1, pos_label=2)):
        for labels in ([5, 2, 9, 2], [7.0, 2.0, 5.0], [3, 1, 3, 1]):
            y = np.asarray(labels, np.float64)
            program = interpreted(model.fit(np.asarray(labels)))
            same(program.transform(y), model.transform(np.asarray(labels)))
    encoder = LabelEncoder().fit([1, 2])
    with pytest.raises(ValueError, match="unseen labels"):
        encoder.transform([3])
    with pytest.raises(InvalidInputError, match="row 1: LabelEncoder found a label"):
        interpreted(encoder).transform(np.array([1.0, 3.0]))
    odd: Any = np.array([b"a", b"b"], object)
    with pytest.raises(UnsupportedError, match="class labels of dtype"):
        interpreted(LabelEncoder().fit(odd))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_labels_that_are_strings() -> None:
    for model in (LabelEncoder(), LabelBinarizer(neg_label=-1, pos_label=2)):
        for labels in (list("cabbage"), ["no", "yes", "no"]):
            program = interpreted(model.fit(labels))
            for given in (labels, labels[:1], np.array(labels, object), np.array(labels)[:, None]):
                same(program.transform(given), model.transform(given))
        for odd, message in (([None], "None among them"), ([1], "expected strings")):
            with pytest.raises(InvalidInputError, match=message):
                interpreted(model).transform(np.array(odd, object if odd == [None] else None))
    with pytest.raises(InvalidInputError, match="row 1: LabelEncoder found a label"):
        interpreted(LabelEncoder().fit(["a", "b"])).transform(["a", "c"])
