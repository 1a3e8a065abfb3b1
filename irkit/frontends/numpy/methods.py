"""The table of methods of an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.frontends.numpy import indexing, limits, linear, reductions, shaping, views

METHODS: Mapping[str, Callable[..., Any]] = {
    "all": reductions.of_kind("all"),
    "any": reductions.of_kind("any"),
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argsort": reductions.argsort,
    "astype": shaping.cast_to,
    "clip": limits.clip,
    "conj": shaping.conjugated,
    "conjugate": shaping.conjugated,
    "copy": shaping.copied_method,
    "cumprod": reductions.cumprod,
    "cumsum": reductions.cumsum,
    "diagonal": shaping.diagonal,
    "dot": linear.dot,
    "fill": shaping.filled,
    "flatten": shaping.flatten,
    "max": reductions.of_kind("max"),
    "mean": reductions.mean,
    "min": reductions.of_kind("min"),
    "prod": reductions.of_kind("prod"),
    "ravel": shaping.ravel,
    "repeat": shaping.repeat,
    "reshape": shaping.reshape_method,
    "round": shaping.rounded,
    "sort": indexing.sort_in_place,
    "squeeze": shaping.viewing(np.squeeze),
    "std": reductions.std,
    "sum": reductions.of_kind("sum"),
    "swapaxes": shaping.viewing(np.swapaxes),
    "take": indexing.take,
    "trace": shaping.traced_diagonal,
    "transpose": shaping.transposed,
    "var": reductions.var,
    "view": views.view,
}
"""Name of a method → what it is of a traced array."""

OF_COMPLEX = frozenset(METHODS) - frozenset(
    ["argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "max", "min", "prod", "sort"]
)
"""Those that complex numbers have too."""
