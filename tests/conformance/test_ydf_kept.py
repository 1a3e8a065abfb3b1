"""YDF models as YDF's interface describes them, and YDF's own answers that are kept: YDF need not be there.
And models that contradict themselves."""

# pyright: basic

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import irkit
from irkit.context import IrkitContext
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.interp.graph import run_graph
from irkit.passes.graph.tree_to_gemm import TreeToGemm
from irkit.passes.graph.tree_to_perfect_traversal import TreeToPerfectTraversal
from irkit.passes.graph.tree_to_traversal import TreeToTraversal
from irkit.runtime.named_columns import named_rows_of
from tests.conformance.interpreted import interpreted, same
from tests.conformance.ydf_models import FOLDER, kept, stand_in

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# What goes through exp or pow: NumPy's are others than the C library's, by at most two units.
CURVED = ("binary", "focal", "isolated", "poisson", "softmax")
COMPILED = ("asked", "isolated", "oblique", "softmax")


def agree(program: Any, name: str, rows: Any, wanted: Any, exact: bool = False) -> None:
    rtol = 0.0 if exact or name not in CURVED else 4e-7
    for part in (slice(None), slice(3), slice(5, 6), slice(0)):
        given = {column: values[part] for column, values in rows.items()}
        for found in (program.predict(given), program.predict(pd.DataFrame(given))):
            same(found, wanted[part], rtol)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_ydfs_answers(name: str) -> None:
    document, rows, wanted = kept(name)
    agree(interpreted(stand_in(document)), name, rows, wanted)


def test_every_kind_of_model_is_kept() -> None:
    assert len(NAMES) == 16
    assert {*CURVED, *COMPILED} <= {*NAMES}


@pytest.mark.parametrize("name", COMPILED)
def test_a_model_is_compiled_saved_and_loaded(tmp_path: Path, name: str) -> None:
    """To the last bit: exp and pow are the C library's, as in YDF."""
    document, rows, wanted = kept(name)
    program = irkit.compile(stand_in(document), "cpu", mode="serial", cache=False)
    agree(program, name, rows, wanted, exact=True)
    program.save(tmp_path / "model.irkit")
    agree(irkit.load(tmp_path / "model.irkit"), name, rows, wanted, exact=True)


@pytest.mark.parametrize("name", ["asked", "deep", "oblique"])
@pytest.mark.parametrize("strategy", [TreeToGemm, TreeToPerfectTraversal, TreeToTraversal])
def test_every_strategy_has_the_same_bits(name: str, strategy: Any) -> None:
    document, rows, wanted = kept(name)
    imported = import_model(stand_in(document))
    ctx = IrkitContext(weights=imported.weights)
    strategy().apply(ctx, imported.module)
    numbers = named_rows_of(imported.info, rows)
    (found,) = run_graph(imported.module, imported.weights, [numbers])
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["asked", "oblique"])
def test_programs_for_a_gpu_are_built(tmp_path: Path, name: str) -> None:
    program = irkit.compile(stand_in(kept(name)[0]), device="h200", cache=False)
    assert program.report()["device"] == "h200"
    program.save(tmp_path / "model.irkit")
    assert (tmp_path / "model.irkit").stat().st_size > 0


# Rows


def test_rows_of_numbers_have_categories_by_their_numbers() -> None:
    document, rows, wanted = kept("binary")
    model = stand_in(document)
    program = interpreted(model)
    info = import_model(model).info
    numbers = named_rows_of(info, rows)
    assert numbers.dtype == np.float32
    same(program.predict(numbers), program.predict(rows))
    same(program.predict(numbers.astype(np.float64)), wanted, 4e-7)
    # What is no category's number is in no dictionary.
    town = info.columns.index("town")
    strange, unknown = numbers.copy(), numbers.copy()
    unknown[:, town] = 0
    for value in (-1.0, -np.inf, np.inf, 1e9, 6.0):
        strange[:, town] = value
        same(program.predict(strange), program.predict(unknown))
    with pytest.raises(InvalidInputError, match="expected shape rowsx7, got 10x6"):
        program.predict(numbers[:10, 1:])


def test_columns_go_by_their_names() -> None:
    document, rows, _ = kept("binary")
    program = interpreted(stand_in(document))
    want = program.predict(rows)
    frame = pd.DataFrame(rows)
    same(program.predict(frame[[*frame.columns[::-1]]].assign(more="x")), want)
    same(program.predict({**dict(reversed(rows.items())), 7: None}), want)
    same(program.predict({n: v.tolist() for n, v in rows.items()}), want)
    same(program(rows), want)
    same(program.run([frame])[0], want)
    assert program.takes_strings
    with pytest.raises(UnsupportedError, match="sparse matrices"):
        program.predict(sparse.csr_matrix((3, 7)))
    with pytest.raises(InvalidInputError, match="expected dtype float32, float64, got object"):
        program.predict(frame.to_numpy())
    with pytest.raises(InvalidInputError, match=r"lack columns 'town', 'word'; it has 'a', "):
        program.predict(frame.drop(columns=["town", "word"]))
    with pytest.raises(InvalidInputError, match="several columns of one name"):
        program.predict(pd.concat([frame, frame["a"]], axis=1))
    with pytest.raises(InvalidInputError, match=r"disagree on the number of rows: \[3, "):
        program.predict({**rows, "a": np.zeros(3)})


@pytest.mark.parametrize(
    "missing", [None, "", float("nan"), np.nan, pd.NA, np.float64("nan"), b"", "\0"]
)
def test_no_word_is_a_missing_one(missing: Any) -> None:
    document, rows, _ = kept("asked")
    program = interpreted(stand_in(document))
    town = np.full(len(rows["town"]), "", object)
    want = program.predict({**rows, "town": town})
    town[:] = [missing] * len(town)
    same(program.predict({**rows, "town": town}), want)
    same(program.predict(pd.DataFrame({**rows, "town": town})), want)


@pytest.mark.parametrize(
    "words",
    [
        np.array(["true"]), np.array([True]), [True], np.array([b"true"]), np.array(["true"], object),
        ["true"], ("true",), [np.str_("true")], np.array(["true\0"], object), [b"true"],
        pd.Series(["true"]), pd.Series(pd.Categorical(["true"])), pd.Series([True], dtype="boolean"),
    ],
)  # fmt: skip
def test_spellings_of_a_word(words: Any) -> None:
    info = import_model(stand_in(kept("binary")[0])).info
    town = info.columns.index("town")
    rows = {n: v[:1] for n, v in kept("binary")[1].items()}
    number = info.semantics[town][2].index("true")
    assert named_rows_of(info, {**rows, "town": words})[0, town] == number
    assert named_rows_of(info, {**rows, "town": [17]})[0, town] == 0


def test_a_column_of_columns_is_several() -> None:
    document, rows, _ = kept("forest")
    for number, feature in enumerate(document["features"][:2]):
        feature[0] = document["columns"][feature[2]]["name"] = f"pair.{number}_of_2"
    program = interpreted(stand_in(document))
    pair = np.stack([rows.pop("a"), rows.pop("b")], axis=1)
    want = program.predict({**rows, "pair.0_of_2": pair[:, 0], "pair.1_of_2": pair[:, 1]})
    same(want, kept("forest")[2])
    same(program.predict({**rows, "pair": pair}), want)
    with pytest.raises(InvalidInputError, match=r"lack columns 'pair.0_of_2', 'pair.1_of_2'"):
        program.predict({**rows, "pair": pair[:, [0, 1, 1]]})


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("a", ["x"], "column 'a': expected numbers: could not convert"),
        ("a", np.array([1j]), "column 'a': expected numbers, got dtype complex128"),
        ("a", np.array(["2020-01-01"], "M8[D]"), "column 'a': expected numbers, got dtype datetime"),
        ("a", [[1.0]], r"column 'a': expected one dimension, got shape \(1, 1\)"),
        ("a", [[1.0], [1.0, 2.0]], "column 'a' is no array"),
        ("a", [10**400], "column 'a': expected numbers"),
        ("town", [1.5], "column 'town': expected strings or integers as categories, got dtype float"),
        ("town", np.array([1.5], object), "column 'town': float is neither a string nor an integer"),
        ("town", np.array([{}], object), "column 'town': dict is neither|unhashable"),
        ("index", [1.0], "column 'index': expected integers, got dtype float64"),
        ("index", [-2], "column 'index' has category -2: expected 0 to 5, or -1 for a missing one"),
        ("index", [6], "column 'index' has category 6: expected 0 to 5"),
        ("index", np.array([2**32 + 1]), "column 'index' has category 4294967297"),
        ("flag", [1], "column 'flag': expected True and False, got dtype int64"),
        ("flag", [None], "column 'flag': expected True and False, got dtype object"),
    ],
)  # fmt: skip
def test_columns_that_hold_something_else(column: str, values: Any, message: str) -> None:
    document, rows, _ = kept("binary")
    program = interpreted(stand_in(document))
    with pytest.raises(InvalidInputError, match=message):
        program.predict({**{n: v[:1] for n, v in rows.items()}, column: values})


def test_numbers_are_rounded_to_float32() -> None:
    info = import_model(stand_in(kept("forest")[0])).info
    rows = {n: v[:1] for n, v in kept("forest")[1].items()}
    for values, want in (
        ([1e300], np.inf), ([None], np.nan), (["1.5"], 1.5), ([True], 1.0), ([2**24 + 1], 2.0**24),
        (np.array([0.1]), np.float32(0.1)), (np.array([pd.NA], object), np.nan),
    ):  # fmt: skip
        np.testing.assert_array_equal(named_rows_of(info, {**rows, "a": values})[0, 0], want)


# Models that are refused


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
    with pytest.raises(InvalidModelError, match="classifier of YDF's is a RegressionValue"):
        import_model(changed("shares", trees=[leaf()]))
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
