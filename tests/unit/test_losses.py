"""Losses beside their formulas in float64, eager and traced, their gradients beside central differences, and
both beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from irkit.training import losses

rng = np.random.default_rng(0)
Z = rng.standard_normal((6, 4)) * 3
LABELS = np.array([0, 3, 1, -1, 2, 3])
KEPT = LABELS >= 0
SHARES = rng.dirichlet(np.ones(4), 6)
WEIGHTS = rng.random(6) + 0.5
CLASSES = rng.random(4) + 0.5
TARGETS = rng.random((6, 4))
SIGNS = np.where(TARGETS > 0.5, 1.0, -1.0)


def logarithms(z: np.ndarray) -> np.ndarray:
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def picked(z: np.ndarray) -> np.ndarray:
    return -logarithms(z)[np.arange(6)[KEPT], LABELS[KEPT]]


def smoothed(z: np.ndarray) -> np.ndarray:
    return 0.8 * picked(z) - 0.2 * logarithms(z)[KEPT].mean(-1)


def bce(z: np.ndarray) -> np.ndarray:
    s = 1 / (1 + np.exp(-z))
    return -TARGETS * np.log(s) - (1 - TARGETS) * np.log(1 - s)


def huber(z: np.ndarray) -> np.ndarray:
    d = np.abs(z - TARGETS)
    return np.where(d <= 0.7, d * d / 2, 0.7 * (d - 0.35))


CE = losses.softmax_cross_entropy
FULL = np.where(KEPT, LABELS, 0)
CASES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], float]]] = {
    "softmax": (
        lambda z: CE(z, FULL),
        lambda z: -logarithms(z)[np.arange(6), FULL].mean(),
    ),
    "ignored": (lambda z: CE(z, LABELS, ignore=-1), lambda z: picked(z).mean()),
    "shares": (lambda z: CE(z, SHARES), lambda z: -(SHARES * logarithms(z)).sum(-1).mean()),
    "shares of classes": (
        lambda z: CE(z, SHARES, class_weights=CLASSES),
        lambda z: -(SHARES * CLASSES * logarithms(z)).sum(-1).mean(),
    ),
    "weights": (
        lambda z: CE(z, LABELS, weights=WEIGHTS, ignore=-1),
        lambda z: (picked(z) * WEIGHTS[KEPT]).sum() / WEIGHTS[KEPT].sum(),
    ),
    "classes": (
        lambda z: CE(z, LABELS, class_weights=CLASSES, ignore=-1),
        lambda z: (picked(z) * CLASSES[LABELS[KEPT]]).sum() / CLASSES[LABELS[KEPT]].sum(),
    ),
    "smoothing": (
        lambda z: CE(z, LABELS, smoothing=0.2, ignore=-1),
        lambda z: smoothed(z).mean(),
    ),
    "summed": (
        lambda z: CE(z, LABELS, ignore=-1, reduction="sum"),
        lambda z: picked(z).sum(),
    ),
    "sigmoid": (lambda z: losses.sigmoid_cross_entropy(z, TARGETS), lambda z: bce(z).mean()),
    "positive": (
        lambda z: losses.sigmoid_cross_entropy(z, TARGETS, positive_weight=3.0),
        lambda z: (bce(z) + 2 * TARGETS * np.log1p(np.exp(-z))).mean(),
    ),
    "squared": (
        lambda z: losses.mean_squared_error(z, TARGETS, weights=WEIGHTS[:, None]),
        lambda z: ((z - TARGETS) ** 2 * WEIGHTS[:, None]).sum() / (4 * WEIGHTS.sum()),
    ),
    "huber": (lambda z: losses.huber(z, TARGETS, delta=0.7), lambda z: huber(z).mean()),
    "hinge": (
        lambda z: losses.hinge(z, SIGNS, reduction="sum"),
        lambda z: np.maximum(0, 1 - SIGNS * z).sum(),
    ),
    "hinge2": (
        lambda z: losses.hinge(z, SIGNS, squared=True),
        lambda z: (np.maximum(0, 1 - SIGNS * z) ** 2).mean(),
    ),
}  # fmt: skip


def with_labels(labels: Any, **more: Any) -> Callable[[Any], Any]:
    """Softmax cross-entropy with labels that are known."""

    def loss(z: Any) -> Any:
        return CE(z, np.array(labels), **more)

    return loss


def sigmoid_with(targets: np.ndarray) -> Callable[[Any], Any]:
    def loss(z: Any) -> Any:
        return losses.sigmoid_cross_entropy(z, targets)

    return loss


def central(f: Callable[[np.ndarray], float], z: np.ndarray) -> np.ndarray:
    found, h = np.zeros_like(z), 1e-6
    for at in np.ndindex(z.shape):
        up, down = z.copy(), z.copy()
        up[at] += h
        down[at] -= h
        found[at] = (f(up) - f(down)) / (2 * h)
    return found


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_formulas(name: str) -> None:
    loss, formula = CASES[name]
    assert float(loss(Z)) == pytest.approx(formula(Z), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_central_differences(name: str) -> None:
    loss, formula = CASES[name]
    value, found = irkit.value_and_grad(loss, target="cpu", cache=False)(Z)
    assert value == pytest.approx(formula(Z), rel=1e-12)
    np.testing.assert_allclose(found, central(formula, Z), rtol=1e-6, atol=1e-8)


def test_each_row_alone() -> None:
    found = CE(Z, LABELS, ignore=-1, reduction="none")
    np.testing.assert_allclose(found[KEPT], picked(Z), rtol=1e-12)
    assert found[~KEPT].tolist() == [0.0]


def test_nothing_overflows() -> None:
    z = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    value, found = irkit.value_and_grad(with_labels([0, 0]), target="cpu")(z)
    assert value == pytest.approx(1e4)
    np.testing.assert_allclose(found, [[0, 0], [-0.5, 0.5]])
    t = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    value, found = irkit.value_and_grad(sigmoid_with(t), target="cpu")(z)
    assert value == pytest.approx(5e3)
    np.testing.assert_allclose(found, [[0, 0], [-0.25, 0.25]])


def test_nothing_counts_where_all_is_ignored() -> None:
    value, found = irkit.value_and_grad(with_labels([-1] * 6, ignore=-1), target="cpu")(Z)
    assert value == 0
    assert not found.any()


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_a_class_that_cannot_be_has_a_logit_of_minus_infinity(weights: list[float] | None) -> None:
    z, labels = np.array([[0.0, -np.inf, 1.0], [1.0, 2.0, -np.inf]]), np.array([2, 0])
    own = np.array(weights or [1.0] * 3)
    found = irkit.value_and_grad(
        lambda z: CE(z, labels, class_weights=weights, reduction="sum"), target="cpu"
    )
    value, slope = found(z)
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    share = own[labels][:, None]
    assert value == pytest.approx(-(own[labels] * np.log(p[[0, 1], labels])).sum())
    np.testing.assert_allclose(slope, share * (p - np.eye(3)[labels]), atol=1e-12)


def test_what_is_ignored_may_be_nan() -> None:
    z = np.where(KEPT[:, None], Z, np.nan)
    value, found = irkit.value_and_grad(with_labels(LABELS, ignore=-1), target="cpu")(z)
    want, slope = irkit.value_and_grad(with_labels(LABELS, ignore=-1), target="cpu")(Z)
    assert value == want
    np.testing.assert_array_equal(found, slope)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_there_may_be_more_classes_than_the_type_of_labels_has_numbers(dtype: type) -> None:
    z, labels = rng.standard_normal((2, 300)), np.array([3, 43])
    want = CE(z, labels, reduction="none")
    narrow = labels.astype(dtype)
    np.testing.assert_array_equal(CE(z, narrow, reduction="none"), want)
    traced = irkit.jit(target="cpu")(lambda z, y: CE(z, y, reduction="none"))
    np.testing.assert_allclose(traced(z, narrow), want, rtol=1e-12)


def test_a_second_derivative() -> None:
    found = irkit.hessian(with_labels(1), target="cpu")(Z[0])
    p = np.exp(logarithms(Z[:1]))[0]
    np.testing.assert_allclose(found, np.diag(p) - np.outer(p, p), atol=1e-12)


def test_labels_out_of_bounds() -> None:
    bad = np.array([0, 4, 1, 1, 2, 3])
    with pytest.raises(IndexError, match="out of bounds for 4 classes"):
        CE(Z, bad)
    with pytest.raises(IndexError, match="out of bounds for 4 classes"):
        irkit.jit(target="cpu")(with_labels(bad))(Z)
    with pytest.raises(IndexError):
        CE(Z, LABELS)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: CE(Z, FULL[:5]), r"labels of int64 \[5\] for logits \[6, 4\]: expected integers \[6\]"),
        (lambda: CE(Z, SHARES[:, :3]), r"probabilities \[6, 3\]"),
        (lambda: CE(Z, FULL, reduction="max"), r"reduction 'max'"),
        (lambda: losses.mean_squared_error(Z[:, :1], Z[:, 0]), r"targets \[6\] for outputs \[6, 1\]"),
        (lambda: losses.huber(Z, Z, delta=0.0), r"delta=0.0"),
        (lambda: losses.huber(Z, Z, delta="a"), r"delta='a': expected a number above 0"),
        (lambda: CE(Z, FULL, smoothing=1.5), r"smoothing=1.5: expected a number from 0 to 1"),
        (lambda: CE(Z, FULL, smoothing="a"), r"smoothing='a'"),
        (lambda: CE(Z, FULL, ignore=0.5), r"ignore=0.5: expected a whole number"),
        (lambda: CE(Z, FULL, weights=np.ones(5)), r"weights of shape \[5\]: expected \[6\]"),
        (lambda: CE(Z, FULL, weights="all"), r"softmax_cross_entropy: weights of str: expected an array"),
        (lambda: CE(Z, FULL, class_weights=[1, 2]), r"class_weights of shape \[2\]: expected \[4\]"),
        (lambda: losses.hinge(Z, Z, weights=np.ones((2, 6, 4))), r"hinge: weights of shape"),
        (
            lambda: losses.sigmoid_cross_entropy(Z, TARGETS, positive_weight=np.ones(3)),
            r"positive_weight of shape \[3\]: expected \[6, 4\]",
        ),
        (lambda: CE(Z, [0] * 6), r"softmax_cross_entropy: labels of list: expected an array"),
        (lambda: CE(Z[:, :0], FULL), r"logits \[6, 0\]: expected \(..., classes\), of one class or more"),
        (lambda: CE(FULL, FULL), r"softmax_cross_entropy: logits of int64: expected floats"),
        (lambda: losses.mean_squared_error(FULL, Z[:, 0]), r"outputs of int64: expected floats"),
        (lambda: losses.mean_squared_error([Z], Z), r"mean_squared_error: outputs of list: expected"),
        (lambda: losses.huber(Z, Z + 1j), r"huber: targets of complex128: expected an array of numbers"),
    ],
    ids=[
        "labels", "shares", "reduction", "shape", "delta", "delta text", "smoothing", "smoothing text",
        "ignore", "weights", "weights text", "class weights", "hinge weights", "positive weight",
        "list of labels", "no classes", "whole logits", "whole outputs", "list of outputs", "complex targets",
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        call()


def test_weights_may_be_lists() -> None:
    own = [0.5, 2.0, 1.0, 3.0]
    assert CE(Z, FULL, class_weights=own) == CE(Z, FULL, class_weights=np.array(own))
    each = losses.sigmoid_cross_entropy(Z, TARGETS, positive_weight=own, reduction="none")
    for column, weight in enumerate(own):
        alone = losses.sigmoid_cross_entropy(Z, TARGETS, positive_weight=weight, reduction="none")
        np.testing.assert_array_equal(each[:, column], alone[:, column])


def test_pytorchs_losses() -> None:
    torch = pytest.importorskip("torch")
    f = torch.nn.functional
    t = torch.tensor
    z = t(Z)
    ce = f.cross_entropy
    pairs = [
        (CE(Z, LABELS, ignore=-1), ce(z, t(LABELS), ignore_index=-1)),
        (
            CE(Z, LABELS, ignore=-1, class_weights=CLASSES, smoothing=0.3),
            ce(z, t(LABELS), t(CLASSES), ignore_index=-1, label_smoothing=0.3),
        ),
        (CE(Z, SHARES), ce(z, t(SHARES))),
        (CE(Z, SHARES, class_weights=CLASSES), ce(z, t(SHARES), t(CLASSES))),
        (CE(Z, SHARES, smoothing=0.1), ce(z, t(SHARES), label_smoothing=0.1)),
        (
            losses.sigmoid_cross_entropy(Z, TARGETS, positive_weight=3.0),
            f.binary_cross_entropy_with_logits(z, t(TARGETS), pos_weight=t(3.0)),
        ),
        (losses.mean_squared_error(Z, TARGETS), f.mse_loss(z, t(TARGETS))),
        (losses.huber(Z, TARGETS, delta=0.7), f.huber_loss(z, t(TARGETS), delta=0.7)),
    ]
    for mine, theirs in pairs:
        assert float(mine) == pytest.approx(float(theirs), rel=1e-12)
