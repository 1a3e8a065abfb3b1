"""Probits, and probabilities of support vector machines, of the domain ai.onnx.ml against ONNX Runtime."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from tests.conformance import test_onnx_ml
from tests.conformance.test_onnx_ml import BOTH, STUMP, model, node

judged: Any = test_onnx_ml.judged
F = np.float32
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def rows(seed, count=40):
    x = np.random.default_rng(seed).normal(size=(count, 3)).astype(F)
    x[0, 0], x[1, 1], x[2] = np.nan, np.inf, 0
    return x


def check(proto, x, atol=1e-6):
    """On many rows, on one and on none."""
    imported = import_onnx(proto)
    for part in (x, x[:1], x[3:4], x[:0]):
        found = run_graph(imported.module, imported.weights, [part])
        for got, want in zip(found, judged(proto, part), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=atol)


def one(op, x, outputs="y", atol=1e-6, **attributes):
    check(model([node(op, "x", outputs, **attributes)], x, outputs), x, atol)


# Probits


def quantiles():
    """At the ends, outside, and near a half, where the formula cancels."""
    odd = [0, 1, 0.5, 0.5000001, 0.499, 1e-30, -0.1, 1.2, np.nan, np.inf, -0.0, 0.9999999]
    some = np.random.default_rng(1).uniform(0.01, 0.99, 300)
    x = np.zeros((len(odd) + len(some), 3), F)
    x[:, 0] = [*odd, *some]
    return x


def test_probits_have_the_rounding_of_the_formula():
    same = {"coefficients": [1.0, 0.0, 0.0], "intercepts": [0.0], "post_transform": "PROBIT"}
    x = quantiles()
    one("LinearRegressor", x, **same)
    two = {"coefficients": [1.0, 0.0, 0.0] * 2, "intercepts": [0.0, 0.0], "targets": 2}
    one("LinearRegressor", x, **(same | two))
    two = {"coefficients": [1.0, 0.0, 0.0, -1.0, 0.0, 0.0], "intercepts": [0.0, 1.0]}
    one("LinearClassifier", x, "l s", 1e-3, classlabels_ints=[4, 2], **(same | two))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probits_of_trees(dtype):
    x = rows(2).astype(dtype)
    weights: dict[str, Any] = {
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_weights": [0.7, 0.2],
    }
    weights |= {"target_ids": [0, 0], "n_targets": 1, "post_transform": "PROBIT"}
    one("TreeEnsembleRegressor", x, **(STUMP | weights), base_values=[0.05])
    several: dict[str, Any] = {"class_ids": [0, 1, 2, 1], "classlabels_int64s": [3, 5, 4]}
    several |= {"class_nodeids": [1, 1, 1, 2], "class_weights": [0.7, 0.2, 0.1, 0.4]}
    several["post_transform"] = "PROBIT"
    one("TreeEnsembleClassifier", x, "l s", **(STUMP | BOTH | several))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LinearClassifier", {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.1]}),
        (
            "SVMClassifier",
            {
                "coefficients": [1.0, -1.0],
                "support_vectors": [1.0] * 6,
                "vectors_per_class": [1, 1],
                "rho": [0.1],
            },
        ),
    ],
    ids=["linear", "machine"],
)
def test_a_probit_of_one_score_of_two_classes_is_refused(op, attributes):
    """ONNX Runtime writes one of two columns there."""
    made = node(op, "x", "l s", **attributes, classlabels_ints=[0, 1], post_transform="PROBIT")
    with pytest.raises(
        UnsupportedError, match="post_transform = 'PROBIT': of one score of two classes"
    ):
        import_onnx(model([made], rows(0), "l s"))


# Machines


def machine(classes, seed, name="NONE", **own):
    rng = np.random.default_rng(seed)
    each = rng.integers(1, 4, classes)
    count, pairs = int(each.sum()), classes * (classes - 1) // 2

    def some(size, scale=1.0):
        return (rng.normal(size=size) * scale).astype(F).tolist()

    given = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0], "post_transform": name,
        "vectors_per_class": each.tolist(), "support_vectors": some(count * 3),
        "coefficients": some(count * (classes - 1)), "rho": some(pairs),
        "prob_a": some(pairs, 3.0), "prob_b": some(pairs), "classlabels_ints": [*range(5, 5 + classes)],
    }  # fmt: skip
    return given | own


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3, 4, 10])
def test_probabilities_of_machines(classes, name):
    atol = 1e-4 if name == "PROBIT" else 1e-6
    one("SVMClassifier", rows(classes), "l s", atol, **machine(classes, classes, name))


def test_labels_are_votes_and_not_the_most_probable():
    """So it is in libsvm: signs of decisions alone."""
    own = machine(2, 0, prob_a=[2.0], prob_b=[0.0])
    x = rows(5)
    proto = model([node("SVMClassifier", "x", "l s", **own)], x, "l s")
    label, scores = judged(proto, x)
    assert (label[3:] != np.array([5, 6])[scores[3:].argmax(axis=1)]).any()
    check(proto, x)
    own.pop("classlabels_ints")
    texts = node("SVMClassifier", "x", "l s", **own, classlabels_strings=["no", "yes"])
    import_onnx(model([texts], x, "l s"))


def test_pairs_that_contradict_one_another_and_pairs_that_are_sure():
    a, b = [-900.0, 900.0, -900.0], [0.0, 30.0, -30.0]
    one("SVMClassifier", rows(6), "l s", **machine(3, 6, prob_a=a, prob_b=b))


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_machines_without_vectors(classes, name, positive):
    """Of two classes without probabilities, the second one wins by a limit, not by the larger score."""
    weights = np.random.default_rng(9).normal(size=3 * classes).astype(F)
    own = {
        "kernel_type": "LINEAR", "kernel_params": [0.5, 0.0, 0.0], "rho": [0.1] * 3,
        "coefficients": (np.abs(weights) if positive else weights).tolist(),
        "classlabels_ints": [4, 7, 9][:classes], "post_transform": name,
    }  # fmt: skip
    atol = 1e-4 if name == "PROBIT" else 1e-6
    one("SVMClassifier", rows(7), "l s", atol, **own)
    one("SVMClassifier", rows(7), "l s", atol, **own, prob_a=[0.5] * 3, prob_b=[0.1] * 3)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"prob_a": [1.0]}, "prob_a: it has 1 numbers, expected 3"),
        ({"prob_b": [0.5] * 4}, "prob_b: it has 4 numbers, expected 3"),
        ({"prob_b": [0.0, np.nan, 0.0]}, "prob_b: a number that is not finite"),
        ({"classlabels_ints": [1]}, "classlabels_ints: one class"),
    ],
)
def test_refused_by_name(own, words):
    made = node("SVMClassifier", "x", "l s", **machine(3, 1, **own))
    with pytest.raises(UnsupportedError, match=words):
        import_onnx(model([made], rows(0), "l s"))


def test_more_classes_than_sweeps_are_known_for_are_refused():
    made = node("SVMClassifier", "x", "l s", **machine(11, 1))
    with pytest.raises(UnsupportedError, match="probabilities of more than 10 classes"):
        import_onnx(model([made], rows(0), "l s"))


def test_compiled(compiled):
    x = rows(8)
    proto = model([node("SVMClassifier", "x", "l s", **machine(3, 8))], x, "l s")
    program = compiled(proto, mode="serial")
    for part in (x, x[:1]):
        for got, want in zip(program.run([part]), judged(proto, part), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)
