"""Which values an attribute may have, whoever imports its node: a handler, or the operator's body."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

FLAGS = frozenset(
    {
        "align_corners", "allowzero", "antialias", "ceil_mode", "count_include_pad", "detect_negative",
        "detect_positive", "do_rotary", "exclude_outside", "exclusive", "fmod", "interleaved", "is_causal",
        "keepdims", "largest", "layout", "linear_before_reset", "noop_with_empty_axes", "reverse",
        "rotary_interleaved", "select_last_index", "sorted", "storage_order", "training_mode", "transA",
        "transB", "transBatchA", "transBatchB", "unidirectional", "upper",
    }
)  # fmt: skip
"""Attributes that ONNX declares as numbers and means as truth values: of others, runtimes make either."""


def _is_at_least_zero(value: float) -> bool:
    return value >= 0


def _is_finite(value: float) -> bool:
    return math.isfinite(value)


def _is_divisor(value: float) -> bool:
    return math.isfinite(value) and value != 0


def _is_mode_of_attention(value: float) -> bool:
    return value in (0, 1, 2, 3)


_NUMBERS: Mapping[tuple[str, str, str], tuple[Callable[[float], bool], str]] = {
    ("", "Attention", "qk_matmul_output_mode"): (_is_mode_of_attention, "0, 1, 2 or 3"),
    ("", "Attention", "scale"): (_is_at_least_zero, "0 or more"),
    ("", "Attention", "softcap"): (_is_at_least_zero, "0 or more"),
    ("", "Celu", "alpha"): (_is_divisor, "a finite number other than 0"),
    ("", "Selu", "alpha"): (_is_finite, "a finite number"),
}
"""By domain, operator and name, numbers that not all formulas for the operator make the same of."""


def wrong_value(domain: str, operator: str, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first attribute of a node whose value has no meaning, as `name = value`, and what it may be."""
    for name in sorted(given):
        value = given[name]
        if name in FLAGS and value not in (0, 1):
            return f"{name} = {value}", "expected 0 or 1"
        is_right, needed = _NUMBERS.get((domain, operator, name), (None, ""))
        if is_right is not None and not (isinstance(value, int | float) and is_right(value)):
            return f"{name} = {value}", f"{needed} is needed"
    return None
