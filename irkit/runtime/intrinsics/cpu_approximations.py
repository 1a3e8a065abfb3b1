"""What stands for the functions of bodies where the IR grants `afn`, and how exact each is."""

from __future__ import annotations

from typing import Final

from irkit.runtime.intrinsics.cpu_functions import (
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

__all__ = [
    "ULP",
    "atan_float32",
    "atan_float64",
    "cos_float32",
    "erf_float32",
    "exp_float32",
    "exp_float64",
    "log1p_float32",
    "log1p_float64",
    "log_float32",
    "log_float64",
    "pow_float32",
    "sin_float32",
    "tanh_float32",
    "tanh_float64",
]

ULP: Final = {
    "atan_float32": 1.3,
    "atan_float64": 1.9,
    "cos_float32": 1.6,
    "erf_float32": 5.5,
    "exp_float32": 1.0,
    "exp_float64": 1.0,
    "log1p_float32": 1.6,
    "log1p_float64": 1.5,
    "log_float32": 0.9,
    "log_float64": 0.9,
    "pow_float32": 0.6,
    "sin_float32": 1.6,
    "tanh_float32": 5.5,
    "tanh_float64": 1.7,
}
"""The largest error of each, in units of the exact result's last place: tests/unit/test_approximations.py."""
