"""Losses: functions of NumPy arrays that return one number, or one for each row.

Means are over what has weight: sums of weighted losses over the sum of weights, as PyTorch's; 0 where nothing
has any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.library import LIBRARY
from irkit.training.given import (
    check_array,
    check_floats,
    check_share,
    is_number,
    is_whole,
    weights_of,
)
from irkit.training.gradient_ends import stop_gradient
from irkit.training.labels import check_labels

REDUCTIONS = ("mean", "sum", "none")


def _reduced(losses: Any, weights: Any, reduction: str) -> Any:
    """One number of many. `weights`: what the mean is over; None for all alike. Raises UnsupportedError for
    a reduction that is none."""
    if reduction not in REDUCTIONS:
        raise UnsupportedError(f"reduction '{reduction}': expected {', '.join(REDUCTIONS)}")
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if weights is None:
        return losses.mean()
    total: Any = (weights + np.zeros_like(losses)).sum()
    return losses.sum() / LIBRARY.where(total == 0, total.dtype.type(1), total)


def _weighted(name: str, losses: Any, weights: Any, reduction: str) -> Any:
    """Each loss times its weight, reduced."""
    if weights is None:
        return _reduced(losses, None, reduction)
    weights = weights_of(f"{name}: weights", weights, losses.shape, losses.dtype)
    return _reduced(losses * weights, weights, reduction)


def softmax_cross_entropy(
    logits: Any,
    labels: Any,
    *,
    weights: Any = None,
    class_weights: Any = None,
    ignore: int | None = None,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """The cross-entropy of classes with the softmax of `logits` (..., classes).

    `labels`: numbers of classes (...), integers; or how probable each class is (..., classes), floats.
    `weights`: of each place (...); `class_weights`: of each class (classes). Places whose label is `ignore`
    have no loss. `smoothing`: a share that is given to all classes alike. The mean is over the weights of
    places and of the classes of their labels; of probabilities over those of places alone.

    Computed as ln Σ exp(z − max z) − Σ t (z − max z), t what each class should be: nothing overflows. A class
    that cannot be has a logit of −inf: with labels and no smoothing it counts only where it is the label.
    Raises IndexError for labels that are no class, UnsupportedError for shapes that do not go together, no
    classes, and logits of whole numbers.
    """
    name = "softmax_cross_entropy"
    check_floats(f"{name}: logits", logits)
    if len(logits.shape) == 0 or logits.shape[-1] == 0:
        raise UnsupportedError(
            f"{name}: logits {list(logits.shape)}: expected (..., classes), of one class or more"
        )
    check_share(f"{name}: smoothing", smoothing)
    places, classes = logits.shape[:-1], logits.shape[-1]
    targets, found = _targets(logits, labels, ignore)
    if ignore is not None:
        # What is ignored may be anything, NaN too.
        logits = LIBRARY.where((labels != ignore)[..., None], logits, logits.dtype.type(0))
    norm = targets
    if smoothing:
        spread = targets.sum(axis=-1, keepdims=True) * (smoothing / classes)
        targets = targets * (1 - smoothing) + spread
    if class_weights is not None:
        given = weights_of(f"{name}: class_weights", class_weights, (classes,), logits.dtype)
        # Of probabilities PyTorch counts places, whatever their classes weigh.
        norm = None if found is None else (norm * given).sum(axis=-1)
        targets = targets * given
    elif ignore is not None:
        norm = norm.sum(axis=-1)
    else:
        norm = None
    shifted = logits - stop_gradient(logits.max(axis=-1, keepdims=True))
    logarithms = np.log(np.exp(shifted).sum(axis=-1))
    # Of labels without weights the sum of what classes should be is 1.
    plain = norm is None and found is not None
    whole = logarithms if plain else targets.sum(axis=-1) * logarithms
    losses = whole - _expected(shifted, targets, None if smoothing else found).sum(axis=-1)
    if weights is not None:
        given = weights_of(f"{name}: weights", weights, places, losses.dtype)
        losses = losses * given
        norm = given * (1 if norm is None else norm)
    return _reduced(losses, norm, reduction)


def _expected(shifted: Any, targets: Any, found: Any) -> Any:
    """Each logit times what its class should be. `found`: where that is not 0, if it is for one class alone:
    no other's logit counts, so that one may be -inf, of a class that cannot be."""
    if found is None:
        return targets * shifted
    return targets * LIBRARY.where(found, shifted, shifted.dtype.type(0))


def _targets(logits: Any, labels: Any, ignore: int | None) -> tuple[Any, Any]:
    """What each class should be, in the dtype of `logits`; of labels also where it is the label's, as
    booleans."""
    check_array("softmax_cross_entropy: labels", labels)
    if labels.dtype.kind == "f":
        if labels.shape != logits.shape or ignore is not None:
            raise UnsupportedError(
                f"softmax_cross_entropy: probabilities {list(labels.shape)} for logits {list(logits.shape)}: "
                "expected the same shape, and nothing to ignore"
            )
        return labels.astype(logits.dtype), None
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:-1]:
        raise UnsupportedError(
            f"softmax_cross_entropy: labels of {labels.dtype} {list(labels.shape)} for logits "
            f"{list(logits.shape)}: expected integers {list(logits.shape[:-1])}, or floats of the same shape"
        )
    classes = logits.shape[-1]
    # A uint8 has no number for each of 300 classes.
    numbers = labels.dtype if classes - 1 <= np.iinfo(labels.dtype).max else np.dtype(np.int64)
    found = labels.astype(numbers)[..., None] == np.arange(classes, dtype=numbers)
    if ignore is not None and not is_whole(ignore):
        raise UnsupportedError(f"softmax_cross_entropy: ignore={ignore!r}: expected a whole number")
    if ignore is None:
        check_labels(labels, classes)
    else:
        kept = labels != ignore
        check_labels(np.where(kept, labels, np.zeros_like(labels)), classes)
        found = np.logical_and(found, kept[..., None])
    return found.astype(logits.dtype), found


def sigmoid_cross_entropy(
    logits: Any,
    targets: Any,
    *,
    weights: Any = None,
    positive_weight: Any = 1.0,
    reduction: str = "mean",
) -> Any:
    """The cross-entropy of yes and no with the sigmoid of `logits`, element by element.

    `targets`: 1 or 0, or what lies between, of the shape of `logits`; `positive_weight`: of what should be
    1, a number or an array that broadcasts to them.
    max(z, 0) − z t + ln(1 + exp(−|z|)), which does not overflow; by cases, as the magnitude and the maximum
    have no second derivative at 0, where the loss has one.
    """
    targets = _alike("sigmoid_cross_entropy", logits, targets)
    positive, zero = logits > 0, np.zeros_like(logits)
    rest = np.log1p(np.exp(LIBRARY.where(positive, -logits, logits)))
    losses = LIBRARY.where(positive, logits, zero) - logits * targets + rest
    if not is_number(positive_weight) or positive_weight != 1:
        own = weights_of(
            "sigmoid_cross_entropy: positive_weight", positive_weight, losses.shape, losses.dtype
        )
        more = (own - 1) * targets
        losses = losses + more * (LIBRARY.where(positive, zero, -logits) + rest)
    return _weighted("sigmoid_cross_entropy", losses, weights, reduction)


def mean_squared_error(
    outputs: Any, targets: Any, *, weights: Any = None, reduction: str = "mean"
) -> Any:
    """Squares of differences."""
    targets = _alike("mean_squared_error", outputs, targets)
    difference = outputs - targets
    return _weighted("mean_squared_error", difference * difference, weights, reduction)


def huber(
    outputs: Any,
    targets: Any,
    *,
    delta: float = 1.0,
    weights: Any = None,
    reduction: str = "mean",
) -> Any:
    """Half the square of a difference up to `delta`, above that `delta` (|difference| − `delta` / 2)."""
    if not is_number(delta) or not delta > 0:
        raise UnsupportedError(f"huber: delta={delta!r}: expected a number above 0")
    targets = _alike("huber", outputs, targets)
    size = np.abs(outputs - targets)
    near = np.minimum(size, delta)
    # near (size − near / 2) is both, and so is its slope.
    return _weighted("huber", near * (size - 0.5 * near), weights, reduction)


def hinge(
    outputs: Any,
    targets: Any,
    *,
    squared: bool = False,
    weights: Any = None,
    reduction: str = "mean",
) -> Any:
    """max(0, 1 − t y) of margins y, `targets` t being 1 or −1; or its square."""
    targets = _alike("hinge", outputs, targets)
    margin = 1 - targets * outputs
    # Where it is 0 the slope is 0, as of relu: `maximum` would take half of it.
    losses = LIBRARY.where(margin > 0, margin, np.zeros_like(margin))
    return _weighted("hinge", losses * losses if squared else losses, weights, reduction)


def _alike(name: str, outputs: Any, targets: Any) -> Any:
    """`targets` in the dtype of `outputs`. Raises UnsupportedError for another shape: broadcasting would make
    a matrix of a vector and a column; for outputs of whole numbers, which would round targets; and for what
    is no array of numbers."""
    check_floats(f"{name}: outputs", outputs)
    check_array(f"{name}: targets", targets)
    if targets.shape != outputs.shape:
        raise UnsupportedError(
            f"{name}: targets {list(targets.shape)} for outputs {list(outputs.shape)}: expected the same "
            "shape"
        )
    return targets.astype(outputs.dtype)
