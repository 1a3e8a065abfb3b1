"""What stands for the functions of bodies where the IR grants `afn`, and how exact each is."""

from __future__ import annotations

from typing import Final

from irkit.runtime.intrinsics.cpu_exponentials64 import (
    cosh_float64,
    erf_float64,
    exp2_float64,
    expm1_float64,
    log2_float64,
    log10_float64,
    sinh_float64,
)
from irkit.runtime.intrinsics.cpu_functions import (
    atan2_float32,
    atan_float32,
    erf_float32,
    exp_float32,
    log1p_float32,
    log_float32,
    tanh_float32,
)
from irkit.runtime.intrinsics.cpu_functions64 import (
    atan_float64,
    exp_float64,
    log1p_float64,
    log_float64,
    tanh_float64,
)
from irkit.runtime.intrinsics.cpu_power import pow_float32
from irkit.runtime.intrinsics.cpu_trigonometry import cos_float32, sin_float32
from irkit.runtime.intrinsics.cpu_trigonometry64 import (
    acos_float64,
    asin_float64,
    atan2_float64,
    cos_float64,
    sin_float64,
)

__all__ = [
    "ULP",
    "acos_float64",
    "asin_float64",
    "atan2_float32",
    "atan2_float64",
    "atan_float32",
    "atan_float64",
    "cos_float32",
    "cos_float64",
    "cosh_float64",
    "erf_float32",
    "erf_float64",
    "exp2_float64",
    "exp_float32",
    "exp_float64",
    "expm1_float64",
    "log1p_float32",
    "log1p_float64",
    "log2_float64",
    "log10_float64",
    "log_float32",
    "log_float64",
    "pow_float32",
    "sin_float32",
    "sin_float64",
    "sinh_float64",
    "tanh_float32",
    "tanh_float64",
]

ULP: Final = {
    "acos_float64": 0.8,
    "asin_float64": 0.8,
    "atan2_float32": 1.6,
    "atan2_float64": 2.5,
    "atan_float32": 1.3,
    "atan_float64": 1.9,
    "cos_float32": 1.6,
    "cos_float64": 1.0,
    "cosh_float64": 1.5,
    "erf_float32": 5.5,
    "erf_float64": 1.5,
    "exp2_float64": 1.2,
    "exp_float32": 1.0,
    "exp_float64": 1.0,
    "expm1_float64": 2.4,
    "log10_float64": 0.8,
    "log1p_float32": 1.6,
    "log1p_float64": 1.5,
    "log2_float64": 0.8,
    "log_float32": 0.9,
    "log_float64": 0.9,
    "pow_float32": 0.6,
    "sin_float32": 1.6,
    "sin_float64": 1.0,
    "sinh_float64": 2.6,
    "tanh_float32": 5.5,
    "tanh_float64": 1.7,
}
"""The largest error of each, in units of the exact result's last place: tests/unit/test_approximations.py."""
