"""Layers that are other in training than in evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irkit.errors import UnsupportedError
from irkit.training import random
from irkit.training.given import check_floats, check_share


def batch_norm(
    x: Any,
    scale: Any,
    shift: Any,
    mean: Any,
    variance: Any,
    *,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Channels, dimension 1 of `x` (rows, channels, ...), normalised, scaled and shifted.

    While it is trained by the mean and variance of the batch, of which `momentum` is taken into `mean` and
    `variance` (channels), the statistics, in place; the variance without bias, as PyTorch has it. Else by the
    statistics. Raises UnsupportedError in training for one number a channel, which has no variance; for `x`
    of less than two dimensions; for what is no array of floats, as statistics of whole numbers would be
    rounded; and for a `momentum` that is no number from 0 to 1.
    """
    for name, array in {"x": x, "mean": mean, "variance": variance}.items():
        check_floats(f"batch_norm: {name}", array)
    check_share("batch_norm: momentum", momentum)
    if x.ndim < 2:
        raise UnsupportedError(
            f"batch_norm: x of shape {list(x.shape)}: expected (rows, channels, ...)"
        )
    axes = (0, *range(2, x.ndim))
    around = (1, x.shape[1], *[1] * (x.ndim - 2))
    here, spread = mean, variance
    if training:
        count = math.prod(x.shape[d] for d in axes)
        if count < 2:
            raise UnsupportedError(
                f"batch_norm: {count} numbers a channel: training needs 2 or more, for their variance"
            )
        here, spread = x.mean(axis=axes), x.var(axis=axes)
        mean[...] = (1 - momentum) * mean + momentum * here
        variance[...] = (1 - momentum) * variance + momentum * (count / (count - 1)) * spread
    factor = scale / np.sqrt(spread + eps)
    return (x - here.reshape(around)) * factor.reshape(around) + shift.reshape(around)


def dropout(key: Any, x: Any, rate: float, *, training: bool) -> Any:
    """`random.dropout` in training; `x` as it is else."""
    return random.dropout(key, x, rate) if training else x
