"""Division and square roots without calls, for kernels that multiply by warp groups (`wgmma`).

`div.rn.f32`, `rcp.rn.f32` and `sqrt.rn.f32` end in the assembler as calls of subroutines, for operands out of
the ordinary, and with a call anywhere in a kernel it runs all its `wgmma` one after another (ptxas C7509).
Computed in float64 from the processor's approximations, by Newton's steps and a last one with the exact
remainder (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990),
they are the same numbers: float64 has more than twice as many digits and two, so rounding twice is rounding
once (S. A. Figueroa, "When is double rounding innocuous?", 1995), and every float32 is an ordinary float64.
"""

from __future__ import annotations

import re

from irkit.runtime.cuda.ptx import split_at_entries

_CALLING = re.compile(
    r"^(?P<indent>\s*)(?P<guard>@!?%p\d+\s+)?(?P<name>div|rcp|sqrt)\.rn\.f32\s+"
    r"(?P<to>%f\d+), (?P<first>[^,;]+)(?:, (?P<second>[^,;]+))?;",
    re.MULTILINE,
)
_WGMMA = "wgmma.mma_async"
_ONE = "0f3F800000"

# Operands of which there is no ordinary quotient (zeros, infinities, NaN) have the right one, with its sign,
# as a product with the approximation: there q is zero or no number.
_DIVIDE = """\
{{ .reg .f64 x, y, r, s, e, q; .reg .pred usual; .reg .f32 z;
cvt.f64.f32 x, {first};
cvt.f64.f32 y, {second};
rcp.approx.ftz.f64 s, y;
neg.f64 y, y;
fma.rn.f64 e, y, s, 0d3FF0000000000000;
fma.rn.f64 r, s, e, s;
fma.rn.f64 e, y, r, 0d3FF0000000000000;
fma.rn.f64 r, r, e, r;
mul.rn.f64 q, x, r;
fma.rn.f64 e, y, q, x;
fma.rn.f64 q, e, r, q;
mul.rn.f64 s, x, s;
setp.ne.f64 usual, q, 0d0000000000000000;
selp.f64 q, q, s, usual;
cvt.rn.f32.f64 z, q;
{guard}mov.f32 {to}, z; }}"""

# Zeros and infinities are their own square roots; those of negative numbers are NaN already.
_ROOT = """\
{{ .reg .f64 x, h, r, e, q; .reg .pred usual, finite; .reg .f32 z;
cvt.f64.f32 x, {first};
rsqrt.approx.ftz.f64 r, x;
mul.rn.f64 q, x, r;
mul.rn.f64 h, r, 0d3FE0000000000000;
neg.f64 e, h;
fma.rn.f64 e, e, q, 0d3FE0000000000000;
fma.rn.f64 q, q, e, q;
fma.rn.f64 h, h, e, h;
neg.f64 e, h;
fma.rn.f64 e, e, q, 0d3FE0000000000000;
fma.rn.f64 q, q, e, q;
fma.rn.f64 h, h, e, h;
neg.f64 e, q;
fma.rn.f64 e, e, q, x;
fma.rn.f64 q, e, h, q;
setp.ne.f64 usual, x, 0d0000000000000000;
setp.ne.and.f64 usual, x, 0d7FF0000000000000, usual;
selp.f64 q, q, x, usual;
cvt.rn.f32.f64 z, q;
{guard}mov.f32 {to}, z; }}"""


def without_calls(ptx: str) -> str:
    """PTX whose kernels that multiply by warp groups call nothing in order to divide float32."""
    if _WGMMA not in ptx:
        return ptx
    parts = split_at_entries(ptx)
    return "".join(_CALLING.sub(_inline, part) if _WGMMA in part else part for part in parts)


def _inline(found: re.Match[str]) -> str:
    first, second = found["first"], found["second"]
    if found["name"] == "rcp":
        first, second = _ONE, first
    text = _ROOT if found["name"] == "sqrt" else _DIVIDE
    return text.format(first=first, second=second, to=found["to"], guard=found["guard"] or "")
