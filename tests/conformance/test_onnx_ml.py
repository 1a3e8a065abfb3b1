"""Operators of the domain ai.onnx.ml against ONNX Runtime: steps, linear models, machines, random trees."""

# pyright: basic

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

DOMAIN = "ai.onnx.ml"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3)).astype(np.float32)
X[0], X[1] = 0, [1, -0.0, 0.5]
ODD = X.copy()
ODD[2, 1], ODD[3, 0], ODD[5, 2] = np.nan, np.inf, -np.inf
WHOLE = RNG.integers(-3, 4, (9, 3))
FORMS = {"float32": X, "odd": ODD, "float64": X.astype(np.float64), "int64": WHOLE}
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def node(op, inputs="x", outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain=DOMAIN, **attributes)


def model(nodes, x, outputs, constants=(), version=3, standard=True):
    """A model of rows; `constants`: of further inputs."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    declared = helper.make_tensor_value_info("x", kind, ["n", *x.shape[1:]])
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    weights = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", [declared], results, weights)
    opsets = [helper.make_opsetid(DOMAIN, version)]
    opsets += [helper.make_opsetid("", 18)] if standard else []
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def judged(proto, x):
    """What ONNX Runtime gives; None where it has no kernel for the input's type."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    except NoKernel:
        return None
    return session.run(None, {"x": x})


def check(proto, x, exact=False):
    imported = import_onnx(proto)
    found = run_graph(imported.module, imported.weights, [x])
    same(found, judged(proto, x), exact)


def same(found, wanted, exact=False):
    for got, want in zip(found, wanted or found, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if exact or want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


def one(op, x, outputs="y", constants=(), version=3, exact=False, **attributes):
    inputs = " ".join(("x", *(name for name, _ in constants)))
    proto = model([node(op, inputs, outputs, **attributes)], x, outputs, constants, version)
    check(proto, x, exact)


# Steps


@pytest.mark.parametrize("form", FORMS)
def test_scalers_and_selections(form):
    x = FORMS[form]
    one("Scaler", x, offset=[1.0, 2.0, 3.0], scale=[2.0, 0.5, 3.0])
    one("Scaler", x, offset=[0.1], scale=[2.0])
    one("FeatureVectorizer", x, inputdimensions=[3])
    one("ArrayFeatureExtractor", x, constants=[("which", np.array([2, 0, 2]))], exact=True)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_norms(norm, form):
    one("Normalizer", FORMS[form], norm=norm)


@pytest.mark.parametrize("x", [X, ODD], ids=["plain", "odd"])
def test_imputers(x):
    one("Imputer", x, imputed_value_floats=[9.0], replaced_value_float=float("nan"), exact=True)
    values = [9.0, 8.0, 7.0]
    one("Imputer", x, imputed_value_floats=values, replaced_value_float=0.0, exact=True)
    one("Imputer", WHOLE, imputed_value_int64s=[9], replaced_value_int64=0, exact=True)


def test_categories():
    for x in (X, X * 3, WHOLE):
        one("OneHotEncoder", x, cats_int64s=[1, 0, 3], zeros=1, exact=True)
    one("Binarizer", X, threshold=0.2, exact=True)
    for x in (X, ODD):
        one("LabelEncoder", x, keys_floats=[1.0, 0.5, 0.0], values_int64s=[5, 6, 7])
        one("LabelEncoder", x, keys_floats=[1.0, 0.5], values_floats=[5.0, 6.0], default_float=3.0)
    one("LabelEncoder", WHOLE, keys_int64s=[1, 2, -3], values_floats=[0.5, 0.25, 2.0])
    one("LabelEncoder", WHOLE, keys_int64s=[1, 2, -3], values_int64s=[5, 2, 2], default_int64=77)
    keys, values = np.array([1, 2]), np.array([1.5, 2.0], np.float32)
    tensors: dict[str, Any] = {
        "keys_tensor": numpy_helper.from_array(keys),
        "values_tensor": numpy_helper.from_array(values),
        "default_tensor": numpy_helper.from_array(values[:1] * 9),
    }
    one("LabelEncoder", WHOLE, version=4, exact=True, **tensors)


# Linear models and machines

WEIGHTS = [0.1, 0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_linear_models(name, form):
    x = FORMS[form]
    two = {"coefficients": WEIGHTS[:3], "intercepts": [0.1], "classlabels_ints": [5, 7]}
    one("LinearClassifier", x, "label scores", post_transform=name, **two)
    many = {"coefficients": WEIGHTS, "intercepts": [0.1, 0.0, 0.0], "classlabels_ints": [5, 7, -2]}
    one("LinearClassifier", x, "label scores", post_transform=name, **many)
    several = {"coefficients": WEIGHTS[:6], "intercepts": [0.1, 0.0], "targets": 2}
    one("LinearRegressor", x, post_transform=name, **several)
    one("LinearRegressor", x, coefficients=WEIGHTS[:3], intercepts=[0.5])


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_machines(kernel):
    vectors = {
        "kernel_type": kernel,
        "kernel_params": [0.5, 0.3, 3.0],
        "support_vectors": RNG.normal(size=12).astype(np.float32).tolist(),
    }
    weights = [0.1, -0.2, 0.3, 0.7]
    for one_class in (0, 1):
        own = {"coefficients": weights, "n_supports": 4, "rho": [0.1], "one_class": one_class}
        one("SVMRegressor", X, **own, **vectors)
    for name in ("NONE", "LOGISTIC", "SOFTMAX"):
        two = {"vectors_per_class": [2, 2], "rho": [0.1], "classlabels_ints": [3, 9]}
        both = {"coefficients": weights, "post_transform": name}
        one("SVMClassifier", X, "label scores", **two, **both, **vectors)
        three = {"vectors_per_class": [2, 1, 1], "rho": [0.1, -0.1, 0.05]}
        both["coefficients"] = [*weights, 0.5, 0.6, -0.1, 0.9]
        one("SVMClassifier", X, "l s", classlabels_ints=[0, 1, 2], **three, **both, **vectors)


# Trees

MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
LISTS = (
    "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_values", "nodes_modes",
    "nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true",
)  # fmt: skip


class Grown:
    """The lists of a random ensemble, whose thresholds are often values that rows have."""

    def __init__(self, rng, trees, features, modes):
        self.rng, self.features, self.modes = rng, features, modes
        self.lists = {name: [] for name in LISTS}
        self.leaves = []
        for tree in range(trees):
            self.count = 0
            self.grow(tree, rng.choice((0, 1, 3, 5)))

    def grow(self, tree, depth):
        rng, lists, row, own = self.rng, self.lists, len(self.lists["nodes_modes"]), self.count
        self.count += 1
        leaf = depth == 0
        split = float(np.float32(rng.choice((0.0, 1.0, -1.0, 0.5, -0.0, rng.gauss(0, 1)))))
        mode = "LEAF" if leaf else f"BRANCH_{rng.choice(self.modes)}"
        feature, tracks = rng.randrange(self.features), int(rng.random() < 0.4 and not leaf)
        entry = (tree, own, feature, split, mode, 0, 0, tracks)
        for name, value in zip(LISTS, entry, strict=True):
            lists[name].append(value)
        if leaf:
            self.leaves.append((tree, own))
            return own
        lists["nodes_truenodeids"][row] = self.grow(tree, depth - 1)
        lists["nodes_falsenodeids"][row] = self.grow(tree, depth - 1)
        return own

    def weights(self, prefix, columns, low=-1.0):
        """Each leaf's weights, for the columns that `columns` says of its tree."""
        made = {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
        for tree, leaf in self.leaves:
            for c in columns(tree):
                entry = (tree, leaf, c, float(np.float32(self.rng.uniform(low, 1))))
                for kept, value in zip(made.values(), entry, strict=True):
                    kept.append(value)
        return made


def case(seed):
    """A random ensemble, and rows at its thresholds, of NaN, infinities, denormals and zeros."""
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    features = rng.choice((1, 3, 5))
    modes = MODES if seed % 3 == 0 else (MODES[seed % 6],)
    edges = noise.choice([0, 1, -1, 0.5, -0.0, np.nan, np.inf, -np.inf, 1e-45, 2], (40, features))
    x = np.where(noise.random(edges.shape) < 0.6, edges, noise.normal(size=edges.shape))
    dtype = np.float64 if seed % 4 == 3 else np.float32
    return rng, Grown(rng, rng.choice((1, 3, 20)), features, modes), x.astype(dtype)


@pytest.mark.parametrize("seed", range(24))
def test_regressors(seed):
    rng, trees, x = case(seed)
    targets = rng.choice((1, 1, 3))
    own = trees.weights("target", lambda _: range(targets))
    name = "NONE" if targets == 1 else rng.choice(TRANSFORMS)
    base = {"base_values": [rng.uniform(-1, 1) for _ in range(targets)]} if seed % 2 else {}
    attributes = {**trees.lists, **own, **base, "n_targets": targets, "post_transform": name}
    how = rng.choice(("SUM", "AVERAGE"))
    one("TreeEnsembleRegressor", x, exact=name == "NONE", aggregate_function=how, **attributes)


@pytest.mark.parametrize("seed", range(24))
def test_classifiers(seed):
    rng, trees, x = case(seed)
    classes = rng.choice((2, 2, 3, 5))
    if classes == 2:
        only = rng.choice((0, 0, 1))
        own = trees.weights("class", lambda _: [only], low=rng.choice((-1.0, 0.0)))
        base = {"base_values": [0.1]} if only == 0 and seed % 2 else {}
    else:
        whole = rng.random() < 0.5
        places = range(classes)
        own = trees.weights("class", lambda tree: places if whole else [tree % classes])
        base = {"base_values": [0.1, -0.2, 0.3, 0.4, -0.5][:classes]} if seed % 2 else {}
    labels = rng.choice((list(range(classes)), [7, -2, 5, 9, 11][:classes]))
    own = {**own, **base, "classlabels_int64s": labels, "post_transform": rng.choice(TRANSFORMS)}
    one("TreeEnsembleClassifier", x, "label scores", **trees.lists, **own)


def test_thresholds_of_float64():
    """They are compared with float64, and decide between numbers that float32 does not tell apart."""
    near = 0.1 + np.arange(-3, 4)[:, None] * 1e-12
    trees = Grown(random.Random(0), 5, 1, ("LEQ", "GT"))
    own = trees.weights("target", lambda _: [0])
    tensors: dict[str, Any] = {}
    for name in ("nodes_values", "target_weights"):
        lists = trees.lists if name in trees.lists else own
        array = np.array(lists.pop(name)) + (0.1 if name == "nodes_values" else 0)
        tensors[f"{name}_as_tensor"] = numpy_helper.from_array(array, name)
    one("TreeEnsembleRegressor", near, exact=True, n_targets=1, **trees.lists, **own, **tensors)


def test_a_pipeline_compiled(compiled):
    """It does not name the standard domain, as it has none of its operators."""
    _, trees, x = case(0)
    x = x[:, :1] * np.ones((1, 5), np.float32)
    own = trees.weights("class", lambda tree: [tree % 3], low=0.1)
    last = {**trees.lists, **own, "classlabels_int64s": [4, 5, 6], "post_transform": "SOFTMAX"}
    nodes = [
        node("Imputer", "x", "whole", imputed_value_floats=[0.5], replaced_value_float=np.nan),
        node("Scaler", "whole", "scaled", offset=[0.1], scale=[2.0]),
        node("TreeEnsembleClassifier", "scaled", "label scores", **last),
    ]
    proto = model(nodes, x, "label scores", standard=False)
    program = compiled(proto, mode="serial")
    for rows in (x, x[:1]):
        same(program.run([rows]), judged(proto, rows))


# Refusals

LABELS = {"coefficients": WEIGHTS[:3], "intercepts": [0.1]}
STUMP = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.0, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
BOTH = {
    "class_treeids": [0] * 4,
    "class_nodeids": [1, 1, 2, 2],
    "class_ids": [0, 1, 0, 1],
    "class_weights": [0.7, 0.3, 0.2, 0.8],
    "classlabels_int64s": [0, 1],
}
TARGETS = {"target_treeids": [0], "target_nodeids": [1], "target_ids": [0], "target_weights": [1.0]}
REFUSED = [
    (
        "LinearClassifier",
        LABELS | {"classlabels_ints": [0, 1], "post_transform": "PROBIT"},
        "post_transform = 'PROBIT': of one score of two classes",
    ),
    ("TreeEnsembleClassifier", STUMP | BOTH, "class_ids: two classes, and weights .* of both"),
    (
        "TreeEnsembleRegressor",
        STUMP | TARGETS | {"aggregate_function": "MIN"},
        "aggregate_function = 'MIN': only SUM and AVERAGE",
    ),
    (
        "TreeEnsembleRegressor",
        STUMP | TARGETS | {"nodes_truenodeids": [0, 0, 0]},
        "nodes: node 0 of a tree of the ensemble is its own child",
    ),
    (
        "TreeEnsembleRegressor",
        STUMP | TARGETS | {"nodes_featureids": [7, 0, 0]},
        "nodes_featureids: a feature that is none of 3",
    ),
    (
        "TreeEnsembleRegressor",
        STUMP | TARGETS | {"target_nodeids": [0]},
        "target_nodeids: weights of a node that is no leaf",
    ),
    (
        "TreeEnsembleRegressor",
        STUMP | TARGETS | {"target_weights": [float("nan")]},
        "target_weights: a number that is not finite",
    ),
    (
        "LinearClassifier",
        {"coefficients": [1.0, 2.0, np.inf], "intercepts": [0.1], "classlabels_ints": [0, 1]},
        "coefficients: a number that is not finite",
    ),
    ("OneHotEncoder", {"cats_int64s": [1], "zeros": 0}, "zeros = 0: an unknown category"),
    ("OneHotEncoder", {"cats_strings": ["a"]}, "input 'x': it has not what the categories are"),
    ("Scaler", {"offset": [1.0, 2.0], "scale": [1.0]}, "offset: it has 2 numbers, expected 3"),
]


@pytest.mark.parametrize(("op", "attributes", "words"), REFUSED)
def test_refused_by_name(op, attributes, words):
    outputs = "label scores" if op.endswith("Classifier") else "y"
    proto = model([node(op, "x", outputs, **attributes)], X, outputs)
    with pytest.raises(UnsupportedError, match=rf"\({op}\): {words}"):
        import_onnx(proto)
