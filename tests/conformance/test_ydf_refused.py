"""YDF models that are refused, that contradict themselves, and trees by hand: YDF need not be there."""

# pyright: basic

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import interpreted
from tests.conformance.ydf_models import kept, stand_in


def changed(name: str, **fields: Any) -> Any:
    return stand_in({**kept(name)[0], **fields})


def leaf(**fields: Any) -> Any:
    return {"value": {"is": "RegressionValue", "num_examples": 1.0, "value": 1.0, **fields}}


def split(kind: str, neg: Any = None, pos: Any = None, **fields: Any) -> Any:
    condition = {"is": kind, "missing": False, "score": 0.0, "attribute": 0, **fields}
    return {"condition": condition, "neg": neg or leaf(), "pos": pos or leaf(value=2.0)}


HIGHER = "NumericalHigherThanCondition"


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("forest", {"model": "MultitaskerModel"}, "YDF model MultitaskerModel; supported: Gradient"),
        ("forest", {"task": "NUMERICAL_UPLIFT"}, "task NUMERICAL_UPLIFT .supported: CLASSIFICATION"),
        ("binary", {"task": "SURVIVAL_ANALYSIS"}, "task SURVIVAL_ANALYSIS"),
        ("forest", {"engines": []}, "no engine of YDF takes the model, so that its predict has no answer"),
        ("forest", {"engines": ["Newer"]}, "engine 'Newer' .supported: "),
        ("forest", {"trees": []}, "a model without trees"),
        ("forest", {"features": []}, "a model without features"),
        ("forest", {"trees": [split("CategoricalSetContainsCondition")]},
         "condition 'CategoricalSetContainsCondition' of 1 nodes"),
        ("forest", {"trees": [leaf(**{"is": "UpliftValue"})]}, "leaf value 'UpliftValue'"),
        ("binary", {"trees": [leaf(**{"is": "ProbabilityValue"})]}, "leaf value 'ProbabilityValue'"),
        ("forest", {"features": [["a", "CATEGORICAL_SET", 0]]}, "feature 'a': semantic CATEGORICAL_SET"),
        ("binary", {"description": "Loss: COX_PROPORTIONAL_HAZARD"}, "loss 'COX_PROPORTIONAL_HAZARD'"),
        ("binary", {"description": "Loss: POISSON"}, "loss 'POISSON' of task CLASSIFICATION"),
        ("binary", {"description": "Loss: POISSON\nLoss: SQUARED_ERROR"}, "does not say its loss"),
        ("binary", {"description": ""}, "does not say its loss"),
        ("binary", {"classes": ["a", "b", "c"]}, "of 3 classes, 1 initial predictions and 4 trees"),
        ("softmax", {"trees": kept("softmax")[0]["trees"][1:]}, "of 3 classes, 3 initial .* and 11 trees"),
        ("softmax", {"initial": [0.0] * 300, "classes": ["c"] * 300, "trees": []}, "300 classes, of at most"),
    ],
)  # fmt: skip
def test_refused_by_name(name: str, fields: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        import_model(changed(name, **fields))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (split(HIGHER, threshold=float("nan")), "compares with NaN"),
        (split(HIGHER, threshold=1.0, attribute=99), "reads column 99, which is none of its features"),
        (split("IsTrueCondition"), "reads feature 'a' as BOOLEAN, which is NUMERICAL"),
        (split("CategoricalIsInCondition", mask=[1]), "reads feature 'a' as CATEGORICAL"),
        (split("DiscretizedNumericalHigherThanCondition", threshold_idx=0, attribute=2), "names bin 0"),
        (split("DiscretizedNumericalHigherThanCondition", threshold_idx=999, attribute=2), "names bin 999"),
        (split("NumericalSparseObliqueCondition", attributes=[], weights=[], threshold=0.0), "has 0 feat"),
        (split("NumericalSparseObliqueCondition", attributes=[0, 1], weights=[1.0], threshold=0.0),
         "has 2 features and 1 weights"),
        (split("NumericalSparseObliqueCondition", attributes=[2], weights=[1.0], threshold=0.0),
         "reads feature 'bin' as NUMERICAL"),
        (split("CategoricalIsInCondition", mask=[-1], attribute=3), "categorical split names category"),
    ],
)  # fmt: skip
def test_conditions_that_contradict(tree: Any, message: str) -> None:
    assert [f[2] for f in kept("forest")[0]["features"]][:4] == [0, 1, 2, 3]
    with pytest.raises(InvalidModelError, match=message):
        import_model(changed("forest", trees=[tree]))


def test_leaves_that_contradict() -> None:
    shares = {"is": "ProbabilityValue", "num_examples": 4.0, "probability": [0.25, 0.75]}
    with pytest.raises(InvalidModelError, match="has 2 classes, and the model 3"):
        import_model(changed("shares", trees=[{"value": shares}]))
    for name, tree, message in (
        (
            "shares",
            leaf(),
            r"leaf value 'RegressionValue' of task CLASSIFICATION \(expected 'Probab",
        ),
        ("forest", {"value": shares}, r"leaf value 'ProbabilityValue' of task REGRESSION"),
        ("isolated", leaf(), r"leaf value 'RegressionValue' .*expected 'AnomalyDetectionValue'"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            import_model(changed(name, trees=[tree]))
    outside = {**shares, "probability": [0.25, 0.0]}
    with pytest.raises(UnsupportedError, match="labels that are in no dictionary"):
        import_model(changed("votes", trees=[{"value": outside}]))


def test_a_dictionary_with_holes() -> None:
    columns = kept("forest")[0]["columns"]
    (town,) = (column for column in columns if column["name"] == "town")
    town["words"]["here"] = 99
    with pytest.raises(
        InvalidModelError, match=r"feature 'town' .* dictionary of 6 words, and 6 cat"
    ):
        import_model(changed("forest", columns=columns))


def test_a_node_that_asks_nothing() -> None:
    tree = {"condition": {"is": HIGHER}, "neg": leaf(), "pos": leaf()}
    model = changed("forest", trees=[tree])
    root = model.get_tree(0).root
    root.condition = None
    type(model).get_tree = lambda *_: SimpleNamespace(root=root)
    with pytest.raises(
        InvalidModelError, match="tree 0 of the YDF model has a node without a cond"
    ):
        import_model(model)


def test_a_tree_that_is_too_deep() -> None:
    model = stand_in(kept("forest")[0])

    def endless(_: Any, number: int) -> Any:
        return endless(_, number)

    type(model).get_tree = endless
    with pytest.raises(UnsupportedError, match="tree 0 of the YDF model is too deep"):
        import_model(model)


# Trees by hand


def numbers(tree: Any, **fields: Any) -> Any:
    return interpreted(changed("forest", trees=[tree], **fields))


def rows_of(**columns: Any) -> dict[str, Any]:
    count = len(next(iter(columns.values())))
    own = {n: np.resize(v[:1], count) for n, v in kept("forest")[1].items()}
    return {**own, **columns}


@pytest.mark.parametrize("missing", [False, True])
def test_a_missing_number_goes_as_its_node_says(missing: bool) -> None:
    """Where YDF's engines cannot put the mean everywhere."""
    program = numbers(split(HIGHER, threshold=0.5, missing=missing))
    found = program.predict(
        rows_of(a=np.array([np.nan, 0.5, np.float32(0.49999997), np.inf, -np.inf]))
    )
    assert found.tolist() == [1.0 + missing, 2.0, 1.0, 2.0, 1.0]


def test_below_an_oblique_split_a_missing_number_is_the_mean() -> None:
    """Whatever nodes say: YDF does not look at them."""
    columns = kept("forest")[0]["columns"]
    mean = columns[0]["mean"]
    below = split(HIGHER, threshold=mean - 1, missing=False)
    oblique = {"attributes": [1], "weights": [1.0], "na_replacements": [], "threshold": -1e30}
    tree = split("NumericalSparseObliqueCondition", pos=below, **oblique)
    assert numbers(tree).predict(rows_of(a=np.array([np.nan]))).tolist() == [2.0]
    assert numbers(below).predict(rows_of(a=np.array([np.nan]))).tolist() == [1.0]


def test_a_missing_category_is_the_most_frequent_one() -> None:
    """Whatever nodes say below an oblique split."""
    most = kept("forest")[0]["columns"][3]["most_frequent"]
    oblique = {"attributes": [1], "weights": [1.0], "na_replacements": [], "threshold": -1e30}
    for mask, want in (([most, 5], 2.0), ([5], 1.0)):
        below = split("CategoricalIsInCondition", attribute=3, mask=mask, missing=want == 1.0)
        tree = split("NumericalSparseObliqueCondition", pos=below, **oblique)
        assert numbers(tree).predict(rows_of(town=[""])).tolist() == [want]


@pytest.mark.parametrize("truths", [[3, 3], [2, 3]])
def test_a_missing_truth_is_the_more_frequent_one(truths: list[int]) -> None:
    columns = kept("forest")[0]["columns"]
    (flag,) = (n for n, c in enumerate(columns) if c["name"] == "flag")
    columns[flag]["truths"] = truths
    program = numbers(split("IsTrueCondition", attribute=flag), columns=columns)
    rows = np.zeros((3, 7), np.float32)
    rows[:, flag] = [0.0, 1.0, np.nan]
    assert program.predict(rows).tolist() == [1.0, 2.0, 1.0 + (truths == [3, 3])]


def test_bins_of_large_numbers_are_compared_by_their_middles() -> None:
    """Beside 1e9 the middle of two float32 numbers, and one less, may be the larger of them."""
    columns = kept("forest")[0]["columns"]
    ends = [float(np.float32(1e9)), float(np.float32(1e9 + 64)), float(np.float32(1e9 + 256))]
    columns[2]["boundaries"], columns[2]["mean"] = ends, 0.0
    for number, want in (
        (1, [2.0, 2.0, 2.0, 2.0]),
        (2, [1.0, 1.0, 2.0, 2.0]),
        (3, [1.0, 1.0, 1.0, 2.0]),
    ):
        tree = split("DiscretizedNumericalHigherThanCondition", threshold_idx=number, attribute=2)
        program = numbers(tree, columns=columns)
        found = program.predict(rows_of(bin=np.array([0.0, ends[0], ends[1], ends[2]])))
        assert found.tolist() == want


def test_a_tree_of_one_leaf_and_no_trees() -> None:
    assert numbers(leaf(value=0.25)).predict(rows_of(a=np.zeros(2))).tolist() == [0.25, 0.25]
    for name in ("logits", "deep"):
        model = changed(name, trees=[])
        initial = model.initial_predictions()
        rows = {n: v[:2] for n, v in kept(name)[1].items()}
        assert interpreted(model).predict(rows).tolist() == [initial[0]] * 2


def test_a_row_of_training_alone() -> None:
    """No depth is expected of an isolation forest of one row."""
    leaves = [{"value": {"is": "AnomalyDetectionValue", "num_examples_without_weight": 1}}]
    model = changed("isolated", trees=leaves, rows_per_tree=1)
    rows = {n: v[:2] for n, v in kept("isolated")[1].items()}
    assert interpreted(model).predict(rows).tolist() == [0.0, 0.0]


def test_one_class() -> None:
    value = {"is": "ProbabilityValue", "num_examples": 4.0, "probability": [1.0]}
    program = interpreted(changed("votes", trees=[{"value": value}] * 3, classes=["only"]))
    rows = {n: v[:2] for n, v in kept("votes")[1].items()}
    assert program.predict(rows).tolist() == [1.0, 1.0]


# Folders


def test_a_folder_needs_ydf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data_spec.pb", "header.pb"):
        (tmp_path / f"my_{name}").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "ydf", None)
    with pytest.raises(
        UnsupportedError, match="is the folder of a YDF model, which ydf reads: pip install"
    ):
        import_model(tmp_path)


def test_another_folder(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"model file '.*'; accepted: .* YDF model's folder"):
        import_model(tmp_path)
