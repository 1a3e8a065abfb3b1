"""YDF's models that are kept as documents, with rows and YDF's own answers.

A document has what YDF's Python interface says of a model, and `stand_in` says it again where YDF is not
installed. `python -m tests.conformance.ydf_models` writes them anew, where it is.
"""

# pyright: basic

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

# Not named as the package is: tests are imported by their folders, which then have that name.
FOLDER = Path(__file__).parent / "kept_ydf"
WORDS = [f"word{n}" for n in range(40)]


def training_rows(rows: int = 300, seed: int = 5) -> pd.DataFrame:
    """Columns of every semantic that is read, some of their cells missing, and targets that go by all."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=rows).astype(np.float32),
            "b": rng.integers(0, 5, rows),
            "bin": np.round(rng.normal(size=rows), 2),
            "town": rng.choice(["here", "there", "far", "off", "true"], rows),
            "word": rng.choice(WORDS, rows),
            "index": rng.integers(0, 6, rows),
            "flag": rng.random(rows) < 0.4,
        }
    )
    gaps = rng.random((rows, 3)) < 0.12
    y = frame.a * 2 - frame.b + frame.bin + 2 * frame.flag + 3 * (frame.town == "here")
    y += 2 * (frame["index"] % 3 == 1) + frame.word.str.len() + gaps @ [2.0, -2.0, 1.0]
    frame.loc[gaps[:, 0], "a"] = np.nan
    frame.loc[gaps[:, 1], "bin"] = np.nan
    frame.loc[gaps[:, 2], "town"] = ""
    frame["y"] = y + 0.2 * rng.normal(size=rows)
    frame["two"] = np.where(frame.y > frame.y.median(), "high", "low")
    frame["three"] = np.digitize(frame.y, frame.y.quantile([0.3, 0.7]))
    frame["group"] = [f"g{n // 10}" for n in range(rows)]
    return frame


def features(
    ydf: Any, names: Any = ("a", "b", "bin", "town", "word", "index", "flag")
) -> list[Any]:
    """The columns as YDF is told of them."""
    semantic = ydf.Semantic
    known = {
        "a": semantic.NUMERICAL,
        "b": semantic.NUMERICAL,
        "bin": semantic.DISCRETIZED_NUMERICAL,
        "town": semantic.CATEGORICAL,
        "word": semantic.CATEGORICAL,
        "flag": semantic.BOOLEAN,
    }
    index = ydf.Column("index", semantic.CATEGORICAL, is_already_integerized=True)
    return [index if n == "index" else (n, known[n]) for n in names]


def nodes_of(model: Any) -> list[Any]:
    """All nodes of all trees, parents first."""
    met = [tree.root for tree in model.iter_trees()]
    for node in met:
        met += [] if node.is_leaf else [node.neg_child, node.pos_child]
    return met


def rows_at_borders(model: Any, rows: pd.DataFrame, most: int = 60) -> pd.DataFrame:
    """Rows on which a wrong comparison shows: on thresholds and next to them, infinite, missing, without a
    sign of 0, and with words and numbers that training has not seen."""
    names = [column.name for column in model.data_spec().columns]
    spec = {column.name: column for column in model.data_spec().columns}
    numbers: dict[str, set[np.float32]] = {}
    for node in nodes_of(model):
        kind = "" if node.is_leaf else type(node.condition).__name__
        if kind == "NumericalHigherThanCondition":
            bound = node.condition.threshold
        elif kind == "DiscretizedNumericalHigherThanCondition":
            name = names[node.condition.attribute]
            bound = spec[name].discretized_numerical.boundaries[node.condition.threshold_idx - 1]
        else:
            continue
        numbers.setdefault(names[node.condition.attribute], set()).add(np.float32(bound))
    made: list[tuple[str, Any]] = []
    for name, bounds in numbers.items():
        for bound in sorted(bounds)[:most]:
            beside = [np.nextafter(bound, np.float32(s)) for s in (-np.inf, np.inf)]
            made += [(name, float(value)) for value in (bound, *beside)]
        made += [(name, v) for v in (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e300, -1e300)]
    read = {f.name for f in model.input_features()}
    for name in read & {"town", "word"}:
        made += [(name, word) for word in ("", "unseen", "<OOD>", "here", "true", WORDS[3])]
    if "index" in read:
        made += [("index", number) for number in (-1, 0, *range(1, 6))]
    found = rows.iloc[np.arange(len(made)) % len(rows)].reset_index(drop=True)
    found = found.astype({n: np.float64 for n in ("a", "b", "bin")})
    for number, (name, value) in enumerate(made):
        found.loc[number, name] = value
    return pd.concat([rows.astype({"b": np.float64}), found], ignore_index=True)


def models() -> dict[str, Any]:
    """Trained models by their names."""
    ydf: Any = importlib.import_module("ydf")
    ydf.verbose(0)
    rows, task = training_rows(), ydf.Task
    small = {"features": features(ydf), "num_trees": 4, "max_depth": 4}
    boosted: dict[str, Any] = {**small, "validation_ratio": 0.0}
    plain = {**boosted, "features": features(ydf, ("a", "b", "town"))}
    of_values: dict[str, Any] = {"label": "y", "task": task.REGRESSION}
    boost, forest = ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner
    logits = boost(label="two", **boosted).train(rows)
    logits.set_output_logits(True)
    counts = rows.assign(y=np.abs(rows.y).round())
    gaps = rows.assign(y=9 * rows.a.isna() - 5 * (rows.town == "") + rows.y / 9)
    numbers = {**boosted, "features": features(ydf, ("a", "b", "bin"))}
    return {
        "absolute": boost(**of_values, loss="MEAN_AVERAGE_ERROR", **boosted).train(rows),
        "asked": boost(**of_values, allow_na_conditions=True, **boosted).train(gaps),
        "binary": boost(label="two", **boosted).train(rows),
        "deep": boost(
            **of_values, **plain | {"max_depth": 8, "num_trees": 2}, min_examples=1
        ).train(rows),
        "focal": boost(label="two", loss="BINARY_FOCAL_LOSS", **boosted).train(rows),
        "forest": forest(**of_values, **small).train(rows),
        "isolated": ydf.IsolationForestLearner(
            features=features(ydf), num_trees=4, subsample_count=64
        ).train(rows),
        "local": boost(**of_values, missing_value_policy="LOCAL_IMPUTATION", **numbers).train(gaps),
        "logits": logits,
        "oblique": boost(**of_values, split_axis="SPARSE_OBLIQUE", **plain).train(rows),
        "one_tree": ydf.CartLearner(label="three", features=features(ydf), max_depth=4).train(rows),
        "poisson": boost(**of_values, loss="POISSON", **boosted).train(counts),
        "ranked": boost(label="three", task=task.RANKING, ranking_group="group", **boosted).train(
            rows
        ),
        "shares": forest(label="three", winner_take_all=False, **small).train(rows),
        "softmax": boost(label="three", **boosted).train(rows),
        "votes": forest(label="two", **small).train(rows),
    }


def document_of(model: Any) -> dict[str, Any]:
    """What the interface says of a model, as JSON."""
    boosted = hasattr(model, "initial_predictions")
    of_classes = model.task().name == "CLASSIFICATION"
    loss = [s for s in model.describe("text").splitlines() if s.startswith("Loss: ")]
    return {
        "model": type(model).__name__,
        "task": model.task().name,
        "engines": list(model.list_compatible_engines()),
        "description": "\n".join(loss),
        "features": [(f.name, f.semantic.name, f.column_idx) for f in model.input_features()],
        "columns": [_column(column) for column in model.data_spec().columns],
        "trees": [_node(tree.root) for tree in model.iter_trees()],
        "classes": model.label_classes() if of_classes else [],
        "initial": model.initial_predictions().tolist() if boosted else [],
        "logits": model.output_logits() if boosted and of_classes else False,
        "winner_takes_all": model.winner_takes_all()
        if hasattr(model, "winner_takes_all")
        else False,
        "rows_per_tree": (
            model.num_examples_per_tree() if hasattr(model, "num_examples_per_tree") else 0
        ),
    }


def _column(column: Any) -> dict[str, Any]:
    categorical = column.categorical
    return {
        "name": column.name,
        "mean": column.numerical.mean,
        "boundaries": list(column.discretized_numerical.boundaries),
        "truths": [column.boolean.count_true, column.boolean.count_false],
        "most_frequent": categorical.most_frequent_value,
        "categories": categorical.number_of_unique_values,
        "integers": categorical.is_already_integerized,
        "words": {word: item.index for word, item in categorical.items.items()},
    }


def _node(node: Any) -> Any:
    if node.is_leaf:
        return {"value": _fields(node.value)}
    return {
        "condition": _fields(node.condition),
        "neg": _node(node.neg_child),
        "pos": _node(node.pos_child),
    }


def _fields(found: Any) -> dict[str, Any]:
    own = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    plain = {n: v if isinstance(v, bool | int | float | None) else list(v) for n, v in own.items()}
    return {"is": type(found).__name__, **plain}


def stand_in(document: dict[str, Any]) -> Any:
    """An object that says of itself what YDF's did."""
    found = document

    def constant(value: Any) -> Any:
        return lambda *_: value

    columns = [_column_again(column) for column in found["columns"]]
    inputs = [
        SimpleNamespace(name=name, semantic=SimpleNamespace(name=semantic), column_idx=number)
        for name, semantic, number in found["features"]
    ]
    methods = {
        "task": constant(SimpleNamespace(name=found["task"])),
        "list_compatible_engines": constant(found["engines"]),
        "describe": constant(found["description"]),
        "input_features": constant(inputs),
        "data_spec": constant(SimpleNamespace(columns=columns)),
        "num_trees": constant(len(found["trees"])),
        "get_tree": lambda _, number: SimpleNamespace(root=_node_again(found["trees"][number])),
        "label_classes": constant(found["classes"]),
        "initial_predictions": constant(np.array(found["initial"], np.float32)),
        "output_logits": constant(found["logits"]),
        "winner_takes_all": constant(found["winner_takes_all"]),
        "num_examples_per_tree": constant(found["rows_per_tree"]),
    }
    return type(found["model"], (), {"__module__": "ydf.kept", **methods})()


def _column_again(column: dict[str, Any]) -> Any:
    items = {word: SimpleNamespace(index=number) for word, number in column["words"].items()}
    true, false = column["truths"]
    return SimpleNamespace(
        name=column["name"],
        numerical=SimpleNamespace(mean=column["mean"]),
        discretized_numerical=SimpleNamespace(boundaries=column["boundaries"]),
        boolean=SimpleNamespace(count_true=true, count_false=false),
        categorical=SimpleNamespace(
            most_frequent_value=column["most_frequent"],
            number_of_unique_values=column["categories"],
            is_already_integerized=column["integers"],
            items=items,
        ),
    )


def _node_again(node: Any) -> Any:
    if "value" in node:
        return SimpleNamespace(is_leaf=True, value=_object(node["value"]))
    return SimpleNamespace(
        is_leaf=False,
        condition=_object(node["condition"]),
        neg_child=_node_again(node["neg"]),
        pos_child=_node_again(node["pos"]),
    )


def _object(fields: dict[str, Any]) -> Any:
    fields = dict(fields)
    return type(fields.pop("is"), (), fields)()


def kept(name: str) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """A kept model's document, its rows by column, and YDF's answers."""
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = {column: np.array(values, dtype) for column, (dtype, values) in found["rows"].items()}
    return found["document"], rows, np.array(found["answers"], np.float32)


def _write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, model in models().items():
        frame = rows_at_borders(model, training_rows(20, seed=6), most=6)
        read = [f.name for f in model.input_features()]
        rows = {n: frame[n].to_numpy(object if n in ("town", "word") else None) for n in read}
        said = {n: (v.dtype.str, v.tolist()) for n, v in rows.items()}
        answers = model.predict(rows).tolist()
        text = json.dumps({"document": document_of(model), "rows": said, "answers": answers})
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    _write()
