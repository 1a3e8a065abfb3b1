"""The functions that stand for those of bodies where the IR grants `afn`, on a GPU: libdevice's own.

They have no branches worth avoiding, and errors of one or two units of the last place.
"""

from __future__ import annotations

import math

from irkit.runtime.intrinsics.cuda_libdevice import exp2, log2

acos_float64 = math.acos
asin_float64 = math.asin
atan_float32 = atan_float64 = math.atan
atan2_float64 = math.atan2
cos_float32 = cos_float64 = math.cos
cosh_float64 = math.cosh
erf_float32 = erf_float64 = math.erf
exp_float32 = exp_float64 = math.exp
exp2_float64 = exp2
expm1_float64 = math.expm1
log_float32 = log_float64 = math.log
log10_float64 = math.log10
log1p_float32 = log1p_float64 = math.log1p
log2_float64 = log2
pow_float32 = math.pow
sin_float32 = sin_float64 = math.sin
sinh_float64 = math.sinh
tanh_float32 = tanh_float64 = math.tanh
