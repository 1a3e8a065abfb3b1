"""Files of LightGBM's and XGBoost's own: as the Boosters that the libraries read, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import irkit
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model, ubjson
from irkit.interp.graph import run_graph

RNG = np.random.default_rng(11)
X = RNG.normal(size=(300, 5))
X[:, 4] = RNG.integers(0, 12, 300)
Y = X[:, 0] + (X[:, 4] % 3) + 0.1 * RNG.normal(size=300)
NEW = RNG.normal(size=(50, 5)).astype(np.float32)
NEW[:, 4] = RNG.integers(-2, 15, 50)
NEW[RNG.random(NEW.shape) < 0.1] = np.nan
DIGITS = np.digitize(Y, [0.0, 1.5])


def interpreted(path: Path, rows: Any, dtype: str) -> Any:
    imported = import_model(path, dtype)
    return run_graph(imported.module, imported.weights, [np.asarray(rows, dtype)])[0]


def _light(**parameters: Any) -> Any:
    y = DIGITS if "num_class" in parameters else (Y > 1 if "binary" in str(parameters) else Y)
    data = lgb.Dataset(X, y, categorical_feature=[4])
    given: dict[str, Any] = {"verbose": -1, "num_leaves": 7, **parameters}
    booster: Any = lgb.train(given, data, 5)
    return booster


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"objective": "binary", "sigmoid": 2.0},
        {"objective": "multiclass", "num_class": 3},
        {"boosting": "dart"},
        {"linear_tree": True},
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lightgbm_text(tmp_path: Path, parameters: Any, dtype: str) -> None:
    path = tmp_path / "model.txt"
    _light(**parameters).save_model(path)
    wanted: Any = lgb.Booster(model_file=path).predict(NEW.astype(dtype))
    np.testing.assert_allclose(interpreted(path, NEW, dtype), wanted, rtol=1e-14, atol=0)


def _extreme(**parameters: Any) -> Any:
    objective = parameters.get("objective", "")
    y: Any = DIGITS if "multi" in objective else Y > 1 if "binary" in objective else Y
    if parameters.get("multi_strategy"):
        data = xgb.DMatrix(X, np.c_[Y, -Y])
        return xgb.train({"max_depth": 3, **parameters}, data, 5)
    rows = np.array(X)
    rows[:, 4] = np.abs(rows[:, 4])
    data = xgb.DMatrix(rows, y, feature_types=["q"] * 4 + ["c"], enable_categorical=True)
    return xgb.train({"max_depth": 3, **parameters}, data, 5)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"objective": "binary:logistic", "base_score": 0.2},
        {"objective": "multi:softprob", "num_class": 3},
        {"objective": "count:poisson", "booster": "dart", "rate_drop": 0.5, "base_score": 3.0},
        {"num_parallel_tree": 2},
        {"multi_strategy": "multi_output_tree", "tree_method": "hist"},
    ],
)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_xgboost_files(tmp_path: Path, parameters: Any, suffix: str) -> None:
    path = tmp_path / f"model.{suffix}"
    booster = _extreme(**parameters) if "poisson" not in str(parameters) else _poisson(parameters)
    booster.save_model(path)
    wanted = booster.predict(xgb.DMatrix(NEW, feature_types=booster.feature_types))
    found = interpreted(path, NEW, "float32")
    np.testing.assert_allclose(found, wanted, rtol=5e-7, atol=1e-7)
    margins = booster.predict(
        xgb.DMatrix(NEW, feature_types=booster.feature_types), output_margin=True
    )
    if "objective" not in parameters:
        np.testing.assert_array_equal(found, margins)


def _poisson(parameters: Any) -> Any:
    data = xgb.DMatrix(np.abs(X), np.floor(np.abs(Y)))
    return xgb.train({"max_depth": 3, **parameters}, data, 5)


def test_no_trees(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    booster = xgb.train(
        {"base_score": 0.3, "objective": "binary:logistic"}, xgb.DMatrix(X, Y > 1), 0
    )
    booster.save_model(path)
    wanted = booster.predict(xgb.DMatrix(NEW))
    np.testing.assert_array_equal(interpreted(path, NEW, "float32"), wanted)


def test_a_file_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    booster = _light()
    booster.save_model(path)
    program = irkit.compile(path, "cpu", mode="serial")
    np.testing.assert_array_equal(program.predict(NEW), booster.predict(NEW))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"cannot read '.*nowhere.ubj': No such file"):
        import_model(tmp_path / "nowhere.ubj")
    with pytest.raises(
        UnsupportedError, match=r"model file '.*model.pkl'; accepted: .* of LightGBM's"
    ):
        import_model(tmp_path / "model.pkl")


def _files(folder: Path) -> dict[str, bytes]:
    light, extreme = _light(), _extreme()
    found: dict[str, bytes] = {}
    for name, booster in (("m.txt", light), ("m.json", extreme), ("m.ubj", extreme)):
        booster.save_model(folder / name)
        found[name] = (folder / name).read_bytes()
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _files(tmp_path_factory.mktemp("files"))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(["m.txt", "m.json", "m.ubj"]), share=st.floats(0, 0.999))
def test_truncated(files: dict[str, bytes], tmp_path: Path, name: str, share: float) -> None:
    """All that is read of LightGBM's files stands before the end of its trees."""
    whole = files[name]
    end = whole.index(b"\nend of trees") if name == "m.txt" else len(whole) - 1
    path = tmp_path / name
    path.write_bytes(whole[: int(share * end)])
    with pytest.raises(InvalidModelError):
        import_model(path)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["m.txt", "m.json", "m.ubj"]),
    places=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_bytes_that_were_changed(
    files: dict[str, bytes], tmp_path: Path, name: str, places: list[tuple[float, int]]
) -> None:
    """It is another model, or is refused by name."""
    changed = bytearray(files[name])
    for share, byte in places:
        changed[int(share * len(changed))] = byte
    path = tmp_path / name
    path.write_bytes(changed)
    try:
        import_model(path)
    except (InvalidModelError, UnsupportedError):
        return


def _with(files: dict[str, bytes], **changes: Any) -> bytes:
    document = json.loads(files["m.json"])
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    parameters = document["learner"]["learner_model_param"]
    for key, value in changes.items():
        (parameters if key in parameters else tree)[key] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left_children": [1]}, "lists of several lengths"),
        ({"num_feature": "2147483648"}, "has 2147483648 features"),
        ({"num_class": "1000000"}, "5 trees, and 1000000 outputs"),
        (
            {"categories_nodes": [0], "categories_segments": [0], "categories_sizes": [99]},
            "not there",
        ),
        ({"num_feature": "1"}, "name feature|names feature"),
        ({"base_score": "many"}, "XGBoost cannot read the model"),
    ],
)
def test_numbers_that_contradict(
    files: dict[str, bytes], tmp_path: Path, changes: Any, message: str
) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(_with(files, **changes))
    with pytest.raises(InvalidModelError, match=message):
        import_model(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"num_leaves=7", b"num_leaves=99999999999", "expected 99999999999"),
        (b"max_feature_idx=4", b"max_feature_idx=4000000000", "has 5 feature_names"),
        (b"num_tree_per_iteration=1", b"num_tree_per_iteration=0", "num_tree_per_iteration=0"),
        (b"left_child=", b"left_child=x", "left_child that are no int64"),
        (b"cat_boundaries=0", b"cat_boundaries=9", "no set of categories"),
    ],
)
def test_texts_that_contradict(
    files: dict[str, bytes], tmp_path: Path, old: bytes, new: bytes, message: str
) -> None:
    assert old in files["m.txt"]
    path = tmp_path / "m.txt"
    path.write_bytes(files["m.txt"].replace(old, new, 1))
    with pytest.raises(InvalidModelError, match=message):
        import_model(path)


def test_a_node_of_two_parents(files: dict[str, bytes], tmp_path: Path) -> None:
    """Levels that double would fill the memory."""
    nodes = 64
    below = [*range(1, nodes), -1]
    changes = {
        "left_children": below,
        "right_children": below,
        "split_conditions": [0.0] * nodes,
        "split_indices": [0] * nodes,
        "default_left": [0] * nodes,
    }
    path = tmp_path / "m.json"
    path.write_bytes(_with(files, **changes))
    with pytest.raises(InvalidModelError, match="a node of two parents"):
        import_model(path)


def test_a_node_that_is_its_own_child(files: dict[str, bytes], tmp_path: Path) -> None:
    """Its library would never come to an end."""
    tree = json.loads(files["m.json"])["learner"]["gradient_booster"]["model"]["trees"][0]
    text = files["m.txt"]
    start = text.index(b"right_child=")
    damaged = text[:start] + b"right_child=0" + text[text.index(b" ", start) :]
    for side in ("left_children", "right_children"):
        children = [0, *tree[side][1:]]
        (tmp_path / "m.json").write_bytes(_with(files, **{side: children}))
        with pytest.raises(InvalidModelError, match=r"node 0 of a tree .* is its own child"):
            import_model(tmp_path / "m.json")
    (tmp_path / "m.txt").write_bytes(damaged)
    with pytest.raises(InvalidModelError, match=r"node 0 of a tree .* is its own child"):
        import_model(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"{U\x01a[$l#L" + bytes(7) + b"\x02" + bytes(7) + b"\x05}", {"a": [0, 5]}),
        (b"[i\xffI\x01\x00ZTF]", [-1, 256, None, True, False]),
        (b"{#U\x01U\x01xD?\xf0" + bytes(6), {"x": 1.0}),
        (b"SU\x02ab", "ab"),
    ],
)
def test_ubjson(data: bytes, value: Any) -> None:
    found: Any = ubjson.parsed(data)
    if isinstance(value, dict) and "a" in value:
        found["a"] = found["a"].tolist()
    assert found == value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "truncated at byte 0"),
        (b"[" * 99, "nested deeper than 64"),
        (b"[$l#L" + b"\x7f" + b"\xff" * 7, "truncated"),
        (b"[$l]", "not counted"),
        (b"Zx", "1 bytes behind its end"),
        (b"q", "byte 113 where a value begins"),
    ],
)
def test_no_ubjson(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ubjson.parsed(data)
