"""Random YDF models, and models of data sets, against YDF's own answers, where it is installed."""

# pyright: basic

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_linnerud,
    load_wine,
)

import irkit
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.ydf import LOSSES
from irkit.frontends.ydf_model import CONDITIONS
from tests.conformance.interpreted import interpreted, same
from tests.conformance.ydf_models import (
    document_of,
    features,
    models,
    nodes_of,
    rows_at_borders,
    stand_in,
    training_rows,
)

ydf = pytest.importorskip("ydf")
ydf.verbose(0)
pytestmark = pytest.mark.filterwarnings("ignore")
SEEDS, COMPILED = 80, 6
Task = ydf.Task
Boost, Forest, Cart, Isolation = (
    ydf.GradientBoostedTreesLearner,
    ydf.RandomForestLearner,
    ydf.CartLearner,
    ydf.IsolationForestLearner,
)
CURVED = ("BINARY_FOCAL_LOSS", "BINOMIAL_LOG_LIKELIHOOD", "MULTINOMIAL_LOG_LIKELIHOOD", "POISSON")


class Draw:
    """A random model, and rows for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.rows = training_rows(200, seed)
        if self.often(0.3):
            self.rows["a"] *= self.one_of(1e-30, 1e9)
        if self.often(0.3):
            self.rows["bin"] = self.rows["bin"] * 64 + 1e9
        self.rows["y"] += self.one_of(0, 9) * self.rows.a.isna() + self.one_of(0, 5) * (
            self.rows.town == ""
        )
        every = ["a", "b", "bin", "town", "word", "index", "flag"]
        count = int(self.rng.integers(1, len(every) + 1))
        self.names = [str(n) for n in self.rng.permutation(every)[:count]]

    def one_of(self, *given: Any) -> Any:
        return given[self.rng.integers(len(given))]

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def training(self) -> dict[str, Any]:
        found = {
            "features": features(ydf, self.names),
            "max_depth": int(self.rng.integers(1, 9)),
            "min_examples": self.one_of(1, 5),
            "missing_value_policy": self.one_of(
                "GLOBAL_IMPUTATION", "LOCAL_IMPUTATION", "RANDOM_LOCAL_IMPUTATION"
            ),
            "allow_na_conditions": self.often(0.4),
            "categorical_algorithm": self.one_of("CART", "RANDOM"),
            "random_seed": int(self.rng.integers(1000)),
        }
        if self.often(0.3):
            found["split_axis"] = "SPARSE_OBLIQUE"
            found["sparse_oblique_weights"] = self.one_of("BINARY", "CONTINUOUS")
        return found

    def model(self) -> Any:
        training = self.training()
        kind = self.one_of("boost", "boost", "boost", "forest", "forest", "cart", "isolation")
        trees = int(self.rng.integers(1, 12))
        label, task = self.one_of(
            ("y", Task.REGRESSION), ("two", Task.CLASSIFICATION), ("three", Task.CLASSIFICATION)
        )
        rows = self.rows
        if kind == "isolation":
            fitting = {k: training[k] for k in ("features", "random_seed")}
            return Isolation(**fitting, num_trees=trees, subsample_count=self.one_of(2, 50)).train(
                rows
            )
        training |= {"label": label, "task": task}
        if kind == "cart":
            return Cart(**training, validation_ratio=0.1 * self.often(0.5)).train(rows)
        if kind == "forest":
            votes = self.often(0.5)
            learner = Forest(
                **training, num_trees=trees, winner_take_all=votes, compute_oob_performances=False
            )
            return learner.train(rows)
        if label == "three" and self.often(0.5):
            training |= {"task": Task.RANKING, "ranking_group": "group"}
            training |= {"loss": self.one_of("LAMBDA_MART_NDCG", "XE_NDCG_MART")}
        if label == "y":
            training |= {"loss": self.one_of("SQUARED_ERROR", "POISSON", "MEAN_AVERAGE_ERROR")}
            rows = rows.assign(y=np.abs(rows.y))
        if label == "two":
            training |= {"loss": self.one_of("BINOMIAL_LOG_LIKELIHOOD", "BINARY_FOCAL_LOSS")}
        shrinkage = self.one_of(0.1, 1.0)
        model = Boost(**training, num_trees=trees, shrinkage=shrinkage, validation_ratio=0.0).train(
            rows
        )
        if training["task"] == Task.CLASSIFICATION and self.often(0.3):
            model.set_output_logits(True)
        return model


def columns_of(model: Any, rows: Any) -> dict[str, Any]:
    """Rows as YDF takes them without a frame."""
    return {
        name: rows[name].to_numpy(object if name in ("town", "word") else None)
        for name in model.input_feature_names()
    }


def tolerance(model: Any) -> float:
    """0 where nothing goes through exp or pow: NumPy's, which interpret, are not the C library's."""
    document = document_of(model)
    curved = document["description"].removeprefix("Loss: ") in CURVED and not document["logits"]
    return 4e-7 if curved or document["model"] == "IsolationForestModel" else 0.0


def agree(program: Any, model: Any, rows: Any, rtol: float) -> None:
    for part in (rows, rows[:1], rows[:5]):
        want = model.predict(part)
        assert want.dtype == np.float32
        same(program.predict(part), want, rtol)
        same(program.predict(columns_of(model, part)), want, rtol)


def drawn(seed: int) -> tuple[Any, Any]:
    """A model and rows; skips a model that no engine of YDF takes, once it is refused."""
    draw = Draw(seed)
    model = draw.model()
    if not model.list_compatible_engines():
        with pytest.raises(RuntimeError, match="No compatible engine"):
            model.predict(draw.rows)
        with pytest.raises(UnsupportedError, match="no engine of YDF takes the model"):
            import_model(model)
        pytest.skip("refused")
    return model, rows_at_borders(model, draw.rows[:40])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_models(seed: int) -> None:
    model, rows = drawn(seed)
    agree(interpreted(model), model, rows, tolerance(model))


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + COMPILED))
def test_random_models_are_compiled(seed: int, tmp_path: Path) -> None:
    """To the last bit."""
    model, rows = drawn(seed)
    program = irkit.compile(model, "cpu", mode="serial", cache=False)
    program.save(tmp_path / "model.irkit")
    for made in (program, irkit.load(tmp_path / "model.irkit")):
        agree(made, model, rows, 0.0)


def test_draws_are_of_every_kind() -> None:
    """Of those seeds the models have every loss, and every condition."""
    losses: set[str] = set()
    conditions: set[str] = set()
    for seed in range(SEEDS):
        model = Draw(seed).model()
        document = document_of(model)
        losses.add(document["description"].removeprefix("Loss: ").partition("@")[0])
        conditions |= {type(n.condition).__name__ for n in nodes_of(model) if not n.is_leaf}
    assert losses - {""} >= {*LOSSES}
    assert conditions == {*CONDITIONS}


@pytest.mark.parametrize(
    "load", [load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine]
)
@pytest.mark.parametrize("learner", [Boost, Forest, Cart])
def test_data_sets(load: Any, learner: Any) -> None:
    found = load(as_frame=True)
    rows = found.data.copy()
    target = found.target if found.target.ndim == 1 else found.target.iloc[:, 0]
    rows["target"] = target
    task = (
        Task.CLASSIFICATION
        if hasattr(found, "target_names") and target.nunique() < 5
        else Task.REGRESSION
    )
    size = {} if learner is Cart else {"num_trees": 20}
    model = learner(label="target", task=task, **size).train(rows)
    rows = rows_at_borders_of_numbers(model, found.data)
    agree(interpreted(model), model, rows, tolerance(model))


def rows_at_borders_of_numbers(model: Any, rows: Any) -> Any:
    """Every column at every threshold of its own."""
    names = [column.name for column in model.data_spec().columns]
    made = [rows]
    for node in nodes_of(model)[:400]:
        if not node.is_leaf:
            row = rows.iloc[[len(made) % len(rows)]].astype(np.float64)
            row[names[node.condition.attribute]] = node.condition.threshold
            made.append(row)
    return pd.concat(made, ignore_index=True)


def test_oblique_sums_at_their_thresholds() -> None:
    """Products are rounded before they are added: a fused sum would be another, at half of the rows."""
    rows = training_rows()
    model = Boost(
        label="y", task=Task.REGRESSION, features=features(ydf, ("a", "b")), num_trees=1,
        split_axis="SPARSE_OBLIQUE", max_depth=2,
    ).train(rows)  # fmt: skip
    rng, single = np.random.default_rng(0), np.float32
    columns = [f.column_idx for f in model.input_features()]
    at_threshold = fused = 0
    for _ in range(40):
        x, weights = rng.normal(size=2).astype(single), rng.normal(size=2).astype(single)
        products = x * weights
        total = single(products[0] + products[1])
        fused += float(total) != single(float(x[0]) * float(weights[0]) + float(products[1]))
        tree = model.get_tree(0)
        tree.root = ydf.tree.NonLeaf(
            condition=ydf.tree.NumericalSparseObliqueCondition(
                missing=False, score=0.0, attributes=columns, weights=weights.tolist(),
                threshold=float(total), na_replacements=[0.0, 0.0],
            ),
            neg_child=ydf.tree.Leaf(ydf.tree.RegressionValue(1.0, 1.0)),
            pos_child=ydf.tree.Leaf(ydf.tree.RegressionValue(1.0, 2.0)),
        )  # fmt: skip
        model.set_tree(0, tree)
        model.force_engine(model.list_compatible_engines()[0])
        beside = np.stack(
            [x, np.nextafter(x, single(np.inf)), np.nextafter(x, single(-np.inf)), x * np.nan]
        )
        given = {"a": beside[:, 0], "b": beside[:, 1]}
        want = model.predict(given)
        at_threshold += want[0] == single(model.initial_predictions()[0] + single(2))
        same(interpreted(model).predict(given), want)
    assert at_threshold == 40
    assert fused > 5


def test_stand_ins_say_what_models_say() -> None:
    for name, model in models().items():
        rows = columns_of(model, training_rows(30, seed=8))
        again = interpreted(stand_in(document_of(model)))
        same(again.predict(rows), interpreted(model).predict(rows))
        assert name


def test_folders(tmp_path: Path) -> None:
    model = models()["asked"]
    model.save(str(tmp_path / "plain"))
    model.save(str(tmp_path / "prefixed"), advanced_options=ydf.ModelIOOptions(file_prefix="my_"))
    rows = training_rows(30, seed=8)
    for folder in ("plain", "prefixed"):
        for path in (tmp_path / folder, str(tmp_path / folder)):
            agree(interpreted(path), model, rows, 0.0)
    program = irkit.compile(tmp_path / "plain", "cpu", mode="serial", cache=False)
    agree(program, model, rows, 0.0)
    (tmp_path / "plain" / "header.pb").write_bytes(b"\xff" * 40)
    with pytest.raises(InvalidModelError, match=r"ydf cannot read '.*plain'"):
        import_model(tmp_path / "plain")


def test_logits_and_a_loaded_model(tmp_path: Path) -> None:
    rows = training_rows()
    for label in ("two", "three"):
        model = Boost(label=label, features=features(ydf), num_trees=5).train(rows)
        model.set_output_logits(True)
        model.save(str(tmp_path / label))
        agree(interpreted(tmp_path / label), model, rows, 0.0)


def test_no_rows() -> None:
    rows = training_rows().drop(columns="index")
    names = ("a", "b", "bin", "town", "word", "flag")
    for label in ("two", "three"):
        model = Forest(label=label, features=features(ydf, names), num_trees=2).train(rows)
        same(interpreted(model).predict(rows[:0]), model.predict(rows[:0]))


def test_one_class_and_constants() -> None:
    rows = training_rows().assign(only="one", same=2.5)
    columns = features(ydf, ("a", "town"))
    forest = Forest(label="only", features=columns, num_trees=3).train(rows)
    boost = Boost(label="same", task=Task.REGRESSION, features=columns, num_trees=3).train(rows)
    for model in (forest, boost):
        agree(interpreted(model), model, rows, 0.0)


def test_columns_of_columns() -> None:
    rng = np.random.default_rng(1)
    for width in (1, 2, 10, 11):
        rows = {"wide": rng.normal(size=(200, width)).astype(np.float32), "one": rng.random(200)}
        target = rows["wide"].sum(axis=1) + rows["one"]
        model = Forest(label="y", task=Task.REGRESSION, num_trees=3).train({**rows, "y": target})
        assert len(model.input_feature_names()) == width + 1
        same(interpreted(model).predict(rows), model.predict(rows))


def test_what_is_refused() -> None:
    rows = training_rows()
    sets = {"words": [[w, "x"] for w in rows.town], "y": rows.y.to_numpy()}
    columns = [("words", ydf.Semantic.CATEGORICAL_SET)]
    model = Forest(label="y", task=Task.REGRESSION, features=columns, num_trees=2).train(sets)
    with pytest.raises(UnsupportedError) as caught:
        import_model(model)
    assert "feature 'words': semantic CATEGORICAL_SET" in str(caught.value)
    assert "condition 'CategoricalSetContainsCondition' of" in str(caught.value)
    treated = rows.assign(treatment=np.where(rows.flag, "given", "not"))
    uplift = Forest(
        label="y", task=Task.NUMERICAL_UPLIFT, uplift_treatment="treatment", num_trees=2,
        features=features(ydf, ("a", "b")),
    ).train(treated)  # fmt: skip
    with pytest.raises(UnsupportedError, match="task NUMERICAL_UPLIFT"):
        import_model(uplift)
    vectors = {"v": [np.ones((2, 3), np.float32) * v for v in rows.y], "y": rows.y.to_numpy()}
    sequence = Forest(
        label="y", task=Task.REGRESSION, num_trees=2,
        features=[("v", ydf.Semantic.NUMERICAL_VECTOR_SEQUENCE)],
    ).train(vectors)  # fmt: skip
    with pytest.raises(UnsupportedError, match="feature 'v': semantic NUMERICAL_VECTOR_SEQUENCE"):
        import_model(sequence)
    with pytest.raises(
        UnsupportedError, match="YDF model GradientBoostedTreesLearner; supported: Gr"
    ):
        import_model(Boost(label="y"))
