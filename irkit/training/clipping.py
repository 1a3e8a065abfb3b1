"""Gradients, clipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def clipped(gradients: Sequence[Any], value: float | None, norm: float | None) -> list[Any]:
    """Gradients clipped to [-value, value], and then scaled to at most that Euclidean norm of all of them
    together, as `torch.nn.utils.clip_grad_norm_` does. Squares are summed in the widest dtype among them."""
    found = list(gradients)
    if value is not None:
        found = [np.clip(g, -value, value) for g in found]
    if norm is None or not found:
        return found
    total = found[0].dtype.type(0)
    for gradient in found:
        total = total + (gradient * gradient).sum()
    scale = np.minimum(norm / (np.sqrt(total) + 1e-6), 1)
    return [g * scale.astype(g.dtype) for g in found]
