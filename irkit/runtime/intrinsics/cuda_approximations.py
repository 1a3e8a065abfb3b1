"""The functions that stand for those of bodies where the IR grants `afn`, on a GPU: libdevice's own.

They have no branches worth avoiding, and errors of one or two units of the last place.
"""

from __future__ import annotations

import math

atan_float32 = atan_float64 = math.atan
cos_float32 = math.cos
erf_float32 = math.erf
exp_float32 = exp_float64 = math.exp
log1p_float32 = log1p_float64 = math.log1p
log_float32 = log_float64 = math.log
pow_float32 = math.pow
sin_float32 = math.sin
tanh_float32 = tanh_float64 = math.tanh
