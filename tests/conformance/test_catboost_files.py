"""CatBoost's JSON files against the answers that CatBoost gave of them, which are kept: CatBoost need not be
there. And files that are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irkit
from irkit.context import IrkitContext
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.catboost_json import is_catboost
from irkit.interp.graph import run_graph
from irkit.passes.graph.tree_to_gemm import TreeToGemm
from irkit.passes.graph.tree_to_perfect_traversal import TreeToPerfectTraversal
from irkit.passes.graph.tree_to_traversal import TreeToTraversal
from tests.conformance.catboost_models import FOLDER, kept
from tests.conformance.interpreted import interpreted, same

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# Of these the raw values are the prediction: CatBoost's bits.
RAW = ("depthwise", "multi_rmse", "ranker", "scaled", "towns")
COMPILED = ("absent", "codes", "depthwise", "patient", "towns", "uncertain")


def written(folder: Path, document: Any) -> Path:
    """The path of a document."""
    path = folder / "model.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def agree(program: Any, name: str, rows: Any, wanted: Any) -> None:
    """Raw values and labels to the bit, in batches and one by one; what goes through exp to its error."""
    assert {*program._methods} == {*wanted}
    for method, values in wanted.items():
        exact = method == "decision_function" or name in RAW or values.dtype.kind != "f"
        for part in (slice(None), slice(3), slice(5, 6), slice(0)):
            found = getattr(program, method)(rows[part])
            same(found, values[part], *((0.0, 0.0) if exact else (1e-12, 1e-300)))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_catboosts_answers(tmp_path: Path, name: str) -> None:
    document, rows, wanted = kept(name)
    agree(interpreted(written(tmp_path, document)), name, rows, wanted)


def test_every_kind_of_model_is_kept() -> None:
    assert len(NAMES) == 16
    assert {*RAW, *COMPILED} <= {*NAMES}


@pytest.mark.parametrize("name", COMPILED)
def test_a_file_is_compiled_saved_and_loaded(tmp_path: Path, name: str) -> None:
    document, rows, wanted = kept(name)
    program = irkit.compile(written(tmp_path, document), "cpu", mode="serial", cache=False)
    agree(program, name, rows, wanted)
    program.save(tmp_path / "model.irkit")
    agree(irkit.load(tmp_path / "model.irkit"), name, rows, wanted)


@pytest.mark.parametrize("name", ["absent", "lossguide"])
@pytest.mark.parametrize("strategy", [TreeToGemm, TreeToPerfectTraversal, TreeToTraversal])
def test_every_strategy_has_the_same_bits(tmp_path: Path, name: str, strategy: Any) -> None:
    document, rows, wanted = kept(name)
    imported = import_model(written(tmp_path, document))
    ctx = IrkitContext(weights=imported.weights)
    strategy().apply(ctx, imported.module)
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    found = run_graph(imported.module, imported.weights, [narrow])
    raw = found[imported.info.outputs.index("raw")]
    np.testing.assert_array_equal(raw, wanted["decision_function"])


@pytest.mark.parametrize("name", ["absent", "scaled", "towns"])
def test_programs_for_a_gpu_are_built(tmp_path: Path, name: str) -> None:
    document, _, _ = kept(name)
    program = irkit.compile(written(tmp_path, document), device="h200", cache=False)
    assert program.report()["device"] == "h200"
    program.save(tmp_path / "model.irkit")
    assert (tmp_path / "model.irkit").stat().st_size > 0


# Files that are others


def test_json_is_told_by_what_is_in_it() -> None:
    document, _, _ = kept("scaled")
    assert is_catboost(json.dumps(document).encode())
    assert is_catboost(json.dumps(document).encode()[:-9])
    assert not is_catboost(b'{"learner": {"features_info": 1}, "features_info": 2}')
    assert not is_catboost(b'{"learner": {"feature_names": ["features_info"]}}')
    assert not is_catboost(b"{L" + b'"features_info"')
    assert not is_catboost(b'["features_info"]')


@pytest.mark.parametrize("name", ["model.cbm", "model.json"])
def test_binary_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"CBM1" + bytes(60))
    message = r"model.* is in CatBoost's binary format \(\.cbm\): save it as JSON"
    with pytest.raises(UnsupportedError, match=message):
        import_model(tmp_path / name)


@pytest.mark.parametrize("name", ["nowhere.cbm", "nowhere.json"])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidModelError, match=f"cannot read '.*{name}': No such file"):
        import_model(tmp_path / name)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(["true", "towns"]), share=st.floats(0.05, 0.999))
def test_truncated(tmp_path: Path, name: str, share: float) -> None:
    whole = json.dumps(kept(name)[0])
    path = tmp_path / "model.json"
    path.write_text(whole[: int(share * (len(whole) - 1))])
    with pytest.raises(InvalidModelError):
        import_model(path)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["true", "lossguide", "multi_rmse", "codes", "towns"]),
    places=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_bytes_that_were_changed(
    tmp_path: Path, name: str, places: list[tuple[float, int]]
) -> None:
    """It is another model, or is refused by name."""
    changed = bytearray(json.dumps(kept(name)[0]).encode())
    for share, byte in places:
        changed[int(share * len(changed))] = byte
    path = tmp_path / "model.json"
    path.write_bytes(changed)
    try:
        import_model(path)
    except (InvalidModelError, UnsupportedError):
        return


def _put(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The document with a value elsewhere."""
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return document


SPLIT = {"split_type": "FloatFeature", "float_feature_index": 0, "border": 0.5}
FEATURE = ("features_info", "float_features", 0)
TREE = ("oblivious_trees", 0)
CLASSES = ("model_info", "class_params")


CONTRADICTIONS: list[tuple[Any, Any, str]] = [
    ((*TREE, "splits"), [SPLIT] * 17, "17 deep, of at most 16"),
    ((*TREE, "splits"), [SPLIT] * 16, "leaf_values, expected 65536"),
    ((*TREE, "leaf_values"), [1.0], "has 1 leaf_values, expected 8"),
    ((*TREE, "leaf_values"), ["1"] * 8, "is no list of finite numbers"),
    ((*TREE, "leaf_values"), [float("nan")] * 8, "is no list of finite numbers"),
    ((*TREE, "leaf_values"), [10**400] * 8, "is no list of finite numbers"),
    ((*TREE, "leaf_values"), [[1.0]] * 8, "is no list of finite numbers"),
    ((*TREE, "leaf_values"), [[1.0], 2.0], "not readable"),
    ((*TREE, "splits", 0, "float_feature_index"), 3, "names feature 3"),
    ((*TREE, "splits", 0, "float_feature_index"), -1, "names feature -1"),
    ((*TREE, "splits", 0, "float_feature_index"), 0.0, "names feature 0.0"),
    ((*TREE, "splits", 0, "border"), float("inf"), "borders of tree 0 .* finite numbers"),
    ((*TREE, "splits", 0, "border"), None, "borders of tree 0 .* finite numbers"),
    ((*TREE, "splits", 0), 7, "of another kind than CatBoost writes it"),
    (("oblivious_trees",), {}, "without trees"),
    (("trees",), [], "has 2 lists of trees"),
    (("scale_and_bias",), [float("nan"), [0.0]], "the scale .* no list of finite numbers"),
    (("scale_and_bias",), [1.0, [0.0, 0.0]], "leaf_values, expected 16"),
    (("scale_and_bias",), [1.0, []], "leaf_values, expected 0"),
    (("scale_and_bias",), [1.0], "not readable"),
    ((*FEATURE, "flat_feature_index"), 2**40, "numbers its 3 features otherwise"),
    ((*FEATURE, "feature_index"), 1, "numbers its 3 features otherwise"),
    ((*FEATURE, "nan_value_treatment"), "AsZero", "not readable: no 'AsZero'"),
    (("features_info", "float_features"), [], "numbers its 0 features otherwise"),
    ((*CLASSES, "class_to_label"), [0, 2], "has 2 classes, and columns of others"),
    ((*CLASSES, "class_to_label"), [0, 0], "has 2 classes, and columns of others"),
    (("model_info", "binclass_probability_threshold"), "1.5", "threshold=1.5"),
    (("model_info", "binclass_probability_threshold"), "nan", "threshold=nan"),
]


@pytest.mark.parametrize(("place", "value", "message"), CONTRADICTIONS)
def test_numbers_that_contradict(tmp_path: Path, place: Any, value: Any, message: str) -> None:
    path = written(tmp_path, _put(kept("true")[0], place, value))
    with pytest.raises((InvalidModelError, UnsupportedError), match=message) as caught:
        import_model(path)
    assert isinstance(caught.value, InvalidModelError) or message == "without trees"


CATEGORICAL = {"feature_id": "town", "feature_index": 0, "flat_feature_index": 3}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("features_info", "text_features"), [{**CATEGORICAL, "feature_id": ""}],
         "text feature '3': its splits go by numbers that CatBoost computes"),
        (("features_info", "embedding_features"), [CATEGORICAL], "embedding feature 'town'"),
        ((*TREE, "splits", 0, "split_type"), "EstimatedFeature", "tree 0 .*: split 'EstimatedFeature'"),
        (("model_info", "params", "loss_function", "type"), "Mine", "loss 'Mine'"),
        (("model_info", "params", "loss_function", "type"), "MultiClass",
         "loss 'MultiClass' of 1 columns and 2 classes"),
        (("model_info", "params", "loss_function", "type"), "RMSEWithUncertainty",
         "loss 'RMSEWithUncertainty' of 1 columns, expected 2"),
        ((*CLASSES, "class_names"), [True], "columns of others"),
        ((*CLASSES, "class_label_type"), "Time", "class labels of CatBoost's type 'Time'"),
        (("model_info", "class_params"),
         {"class_label_type": "Integer", "class_names": [], "class_to_label": [0, 1],
          "classes_count": 5000}, "5000 classes, of at most 4096"),
    ],
)  # fmt: skip
def test_refused_by_name(tmp_path: Path, place: Any, value: Any, message: str) -> None:
    with pytest.raises((InvalidModelError, UnsupportedError), match=message):
        import_model(written(tmp_path, _put(kept("true")[0], place, value)))


STATISTIC = ("features_info", "ctrs", 0)
TABLE = "the table of the first statistic"
OF_CATEGORIES: list[tuple[Any, Any, str]] = [
    (
        ("features_info", "categorical_features", 1, "flat_feature_index"),
        1,
        "numbers its 3 features",
    ),
    (("features_info", "categorical_features", 1, "feature_index"), 0, "numbers its 3 features"),
    (("features_info", "ctrs"), [], "which is no border of its statistics"),
    (("features_info", "ctrs"), 7, "of another kind"),
    ((*STATISTIC, "identifier"), "{}", "statistic 0 .* has no table"),
    ((*STATISTIC, "ctr_type"), "Median", "statistic 0 .* of type 'Median'"),
    ((*STATISTIC, "elements"), [], "of 0 features, of 1 to 64"),
    ((*STATISTIC, "elements", 0, "cat_feature_index"), 2, "statistic 0 .* names feature 2"),
    ((*STATISTIC, "elements", 0, "cat_feature_index"), -1, "statistic 0 .* names feature -1"),
    ((*STATISTIC, "elements", 0, "combination_element"), "text", "a combination with 'text'"),
    ((*STATISTIC, "borders"), [float("nan")], "the borders of statistic 0"),
    ((*STATISTIC, "borders"), ["1"], "the borders of statistic 0"),
    ((*STATISTIC, "target_border_idx"), 10**12, f"names border {10**12} of"),
    ((*STATISTIC, "target_border_idx"), -1, "names border -1 of"),
    ((*STATISTIC, "scale"), 1e300, "the priors of statistic 0"),
    ((*STATISTIC, "prior_numerator"), None, "the priors of statistic 0"),
    (("ctr_data",), {}, "statistic 0 .* has no table"),
    (("ctr_data", TABLE, "hash_stride"), 0, "rows of 0"),
    (("ctr_data", TABLE, "hash_stride"), 10**30, f"rows of {10**30}"),
    (("ctr_data", TABLE, "hash_stride"), "3", "rows of '3'"),
    (("ctr_data", TABLE), {"hash_map": [], "hash_stride": 10**9}, f"rows of {10**9}"),
    (("ctr_data", TABLE, "hash_map"), {}, "of another kind"),
    (("ctr_data", TABLE, "hash_map", 0), 1.5, "has hash 1.5"),
    (("ctr_data", TABLE, "hash_map", 0), "-7", "has hash '-7'"),
    (("ctr_data", TABLE, "hash_map", 0), "9" * 20, "not readable"),
    (("ctr_data", TABLE, "hash_map", 0), "9" * 5000, "has hash '9"),
    (("ctr_data", TABLE, "hash_map", 1), "7", "has counts that are none"),
    (("ctr_data", TABLE, "hash_map", 1), -1, "has counts that are none"),
    (("ctr_data", TABLE, "hash_map", 1), 2**31, "has counts that are none"),
    (("ctr_data", TABLE, "hash_map", 1), 0.5, "has counts that are none"),
    (("ctr_data", TABLE, "hash_map"), ["7", 2**31 - 1, 1, 1], "counts beyond int32"),
    (("ctr_data", TABLE, "hash_map"), ["7", 1, 1, 1] * 2, "a hash twice"),
    (("ctr_data", TABLE, "counter_denominator"), [], "has counts that are none"),
]


@pytest.mark.parametrize(("place", "value", "message"), OF_CATEGORIES)
def test_statistics_that_contradict(tmp_path: Path, place: Any, value: Any, message: str) -> None:
    document = kept("towns")[0]
    first = document["features_info"]["ctrs"][0]
    assert first["ctr_type"] == "Borders"
    place = tuple(first["identifier"] if key == TABLE else key for key in place)
    with pytest.raises((InvalidModelError, UnsupportedError), match=message):
        import_model(written(tmp_path, _put(document, place, value)))


def _first(document: Any, kind: str) -> Any:
    """The first split of a kind."""
    every = (s for tree in document["oblivious_trees"] for s in tree["splits"])
    return next(s for s in every if s["split_type"] == kind)


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("OnlineCtr", "split_index", 10**9, f"names split {10**9}, which is no border"),
        ("OnlineCtr", "split_index", 10**30, f"names split {10**30}"),
        ("OnlineCtr", "split_index", 0, "names split 0, which is no border"),
        ("OnlineCtr", "split_index", "1", "names split 1"),
        ("OnlineCtr", "border", 0.125, "which is no border"),
        ("OneHotFeature", "cat_feature_index", 2, "names categorical feature 2"),
        ("OneHotFeature", "value", 2**32, "4294967296 as the hash of a category"),
        ("OneHotFeature", "value", "7", "'7' as the hash of a category"),
        ("FloatFeature", "float_feature_index", 1, "names feature 1"),
    ],
)
def test_splits_of_what_is_not_there(
    tmp_path: Path, kind: str, key: str, value: Any, message: str
) -> None:
    document = kept("towns")[0]
    _first(document, kind)[key] = value
    with pytest.raises(InvalidModelError, match=message):
        import_model(written(tmp_path, document))


@pytest.mark.parametrize("hash_", ["9223372036854775807", "9223372036854775808", "0"])
def test_hashes_at_the_ends(tmp_path: Path, hash_: str) -> None:
    """A table that has the largest, or the least, of them finds all others still."""
    document, rows, wanted = kept("towns")
    for ctr in document["features_info"]["ctrs"]:
        table = document["ctr_data"][ctr["identifier"]]
        if hash_ not in table["hash_map"]:
            table["hash_map"] += [hash_, *[9] * (table["hash_stride"] - 1)]
    agree(interpreted(written(tmp_path, document)), "towns", rows, wanted)


def test_hashes_that_begin_alike(tmp_path: Path) -> None:
    """They are found too, in more steps."""
    document, rows, wanted = kept("towns")
    for ctr in document["features_info"]["ctrs"]:
        table, keys = document["ctr_data"][ctr["identifier"]], range(5 << 40, (5 << 40) + 300)
        if str(keys[0]) not in table["hash_map"]:
            counts = [9] * (table["hash_stride"] - 1)
            table["hash_map"] += [part for key in keys for part in (str(key), *counts)]
    agree(interpreted(written(tmp_path, document)), "towns", rows, wanted)


def test_hashes_that_nearly_all_begin_alike(tmp_path: Path) -> None:
    document = kept("towns")[0]
    name = document["features_info"]["ctrs"][0]["identifier"]
    table = document["ctr_data"][name]
    counts = [9] * (table["hash_stride"] - 1)
    table["hash_map"] += [part for key in range(5000) for part in (str(key), *counts)]
    with pytest.raises(
        UnsupportedError, match="5000 hashes of a table that begin alike, of at most 1024"
    ):
        import_model(written(tmp_path, document))


def test_nested_trees_that_are_none(tmp_path: Path) -> None:
    for tree, message in (
        ({"value": [1.0, 2.0]}, "leaves of other than 3 columns"),
        ({"split": SPLIT, "left": {"value": [0, 0, 0]}}, "no 'right'"),
        ({"split": SPLIT, "left": 1, "right": 2}, "of another kind"),
        ({"value": None}, "leaves of other than 3 columns"),
    ):
        path = written(tmp_path, _put(kept("lossguide")[0], ("trees", 0), tree))
        with pytest.raises(InvalidModelError, match=message):
            import_model(path)


def test_nested_too_deeply(tmp_path: Path) -> None:
    text = json.dumps(_put(kept("lossguide")[0], ("trees", 0), "HERE"))
    path = tmp_path / "model.json"
    deep = '{"left":' * 100_000 + "1" + "}" * 100_000
    path.write_text(text.replace('"HERE"', deep))
    with pytest.raises(InvalidModelError):
        import_model(path)


def test_one_leaf_and_constants(tmp_path: Path) -> None:
    """Trees of no split, of either kind."""
    document = kept("scaled")[0]
    document["oblivious_trees"] = [{"splits": None, "leaf_values": [0.25], "leaf_weights": [1]}]
    program = interpreted(written(tmp_path, document))
    scale, (bias,) = document["scale_and_bias"]
    same(program.predict(np.zeros((2, 3))), np.full(2, 0.25 * scale + bias))
    del document["oblivious_trees"]
    document["trees"] = [{"value": 0.25, "weight": 1}]
    program = interpreted(written(tmp_path, document))
    same(program.predict(np.zeros((1, 3))), np.array([0.25 * scale + bias]))


def test_columns_go_by_what_their_names_are_spelled_as(tmp_path: Path) -> None:
    document, rows, wanted = kept("scaled")
    features = document["features_info"]["float_features"]
    for number, feature in enumerate(features):
        feature["feature_id"] = str(number)
    program = interpreted(written(tmp_path, document))
    frame: Any = pd.DataFrame(rows)
    for names in ([0, 1, 2], [2, 0, 1]):
        same(program.predict(frame[names]), wanted["predict"])
    frame.columns = [0, "0", 1]
    with pytest.raises(InvalidInputError, match="lacks columns '2'"):
        program.predict(frame)
    with pytest.raises(InvalidInputError, match="several columns of one name"):
        program.predict(frame.assign(two=0.0).set_axis([0, "0", 1, 2], axis=1))


def test_even_odds_are_the_first_class(tmp_path: Path) -> None:
    document = kept("true")[0]
    document["scale_and_bias"] = [0.0, [0.0]]
    program = interpreted(written(tmp_path, document))
    same(program.predict(np.zeros((2, 3))), np.array([False, False]))
    same(program.predict_proba(np.zeros((1, 3))), np.array([[0.5, 0.5]]))


def test_missing_goes_above_where_training_saw_some(tmp_path: Path) -> None:
    """CatBoost's own answers of such files: where has_nans is false, NaN is compared as it is."""
    document = kept("scaled")[0]
    split = {**SPLIT, "border": -5.0}
    document["oblivious_trees"] = [{"splits": [split], "leaf_values": [1.0, 2.0]}]
    document["scale_and_bias"] = [1, [0]]
    rows = np.zeros((1, 3)) * np.nan
    for treatment, seen, wanted in (
        ("AsTrue", True, 2.0),
        ("AsTrue", False, 1.0),
        ("AsFalse", True, 1.0),
        ("AsIs", False, 1.0),
    ):
        feature = document["features_info"]["float_features"][0]
        feature |= {"nan_value_treatment": treatment, "has_nans": seen}
        same(interpreted(written(tmp_path, document)).predict(rows), np.array([wanted]))


def test_parts_that_are_written_as_text(tmp_path: Path) -> None:
    """Some releases write objects of model_info as strings."""
    document, rows, wanted = kept("multiclass")
    info = document["model_info"]
    info |= {key: json.dumps(info[key]) for key in ("params", "class_params")}
    agree(interpreted(written(tmp_path, document)), "multiclass", rows, wanted)
