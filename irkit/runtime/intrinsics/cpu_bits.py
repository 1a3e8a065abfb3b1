"""Numba intrinsics on the bits of floats, and polynomials of fused multiply-adds: none branches or calls.

Each takes float32 or float64; the operands of one are of one type.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@dataclass(frozen=True)
class _Format:
    """A binary format of IEEE 754, and the integers of its width."""

    letter: str
    float: Any
    integer: Any
    fraction: int
    bias: int
    # The bits of sqrt(1/2), below which a significand is doubled.
    root_half: int
    # 1.5 * 2^fraction, and its bits: an integral value added to it stands in its low bits.
    magic: float
    magic_bits: int


_SINGLE = _Format(
    "f32", ir.FloatType(), ir.IntType(32), 23, 127, 0x3F3504F3, 1.5 * 2.0**23, 0x4B400000
)
_DOUBLE = _Format(
    "f64", ir.DoubleType(), ir.IntType(64), 52, 1023, 0x3FE6A09E667F3BCD, 1.5 * 2.0**52,
    0x4338000000000000,
)  # fmt: skip


def _format_of(value: Any) -> _Format:
    return _SINGLE if isinstance(value.type, ir.FloatType) else _DOUBLE


def _call(builder: Any, name: str, arguments: list[Any]) -> Any:
    """An LLVM intrinsic whose operands and result are of one type."""
    kind = arguments[0].type
    signature = ir.FunctionType(kind, [kind] * len(arguments))
    full = f"llvm.{name}.{_format_of(arguments[0]).letter}"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, full), arguments)


def _bits(builder: Any, value: Any) -> Any:
    return builder.bitcast(value, _format_of(value).integer)


def _two_to(builder: Any, n: Any) -> Any:
    """2^n of an integral float, by its bits."""
    form = _format_of(n)
    # What is left of the magic number's own bits is shifted out.
    whole = _bits(builder, builder.fadd(n, form.float(form.magic)))
    biased = builder.add(whole, form.integer(form.bias))
    return builder.bitcast(builder.shl(biased, form.integer(form.fraction)), form.float)


@intrinsic
def fma(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "fma", list(arguments))

    return x(x, x, x), codegen


@intrinsic
def copysign(typingctx: Any, magnitude: Any, sign: Any) -> Any:
    """`magnitude` with the sign of `sign`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _call(builder, "copysign", list(arguments))

    return magnitude(magnitude, magnitude), codegen


@intrinsic
def horner(typingctx: Any, x: Any, coefficients: Any) -> Any:
    """The polynomial in x with these coefficients, a tuple, the highest power's first."""
    count = len(coefficients)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at, values = arguments
        total = builder.extract_value(values, 0)
        for number in range(1, count):
            total = _call(builder, "fma", [total, at, builder.extract_value(values, number)])
        return total

    return x(x, coefficients), codegen


@intrinsic
def power_of_two(typingctx: Any, n: Any) -> Any:
    """2^n of an integral n between the exponents of the smallest and the largest normal number."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _two_to(builder, arguments[0])

    return n(n), codegen


@intrinsic
def times_power_of_two(typingctx: Any, x: Any, n: Any) -> Any:
    """x * 2^n, rounded once: n may be up to twice what `power_of_two` takes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, n = arguments
        half = _call(builder, "rint", [builder.fmul(n, n.type(0.5))])
        # The first product is exact, so that a denormal is rounded by the second alone.
        first = builder.fmul(x, _two_to(builder, half))
        return builder.fmul(first, _two_to(builder, builder.fsub(n, half)))

    return x(x, x), codegen


# Exponents below this one are taken in two steps: a denormal is rounded by the second alone.
_LOW = -124


def _scaled_at_once(builder: Any, x: Any, whole: Any) -> Any:
    """x * 2^n by one instruction of AVX-512 (VSCALEF)."""
    n = builder.sub(_bits(builder, whole), _SINGLE.integer(_SINGLE.magic_bits))
    signature = ir.FunctionType(x.type, [x.type, n.type])
    name = "llvm.ldexp.f32.i32"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), [x, n])


def _scaled_twice(builder: Any, x: Any, whole: Any) -> Any:
    """x * 2^n as x * 2^(max(n, low) - 1) * 2^(1 + min(n - low, 0)): neither power leaves the normal numbers,
    and the first product is exact."""
    form, integer = _SINGLE, _SINGLE.integer
    # What is left of the magic number's own bits is shifted out.
    n = builder.shl(_bits(builder, whole), integer(form.fraction))
    low = integer(_LOW << form.fraction)
    high = builder.select(builder.icmp_signed(">", n, low), n, low)
    first = builder.add(high, integer((form.bias - 1) << form.fraction))
    # Without a sign, so that no n overflows.
    rest = builder.add(n, integer((form.bias + 1 - _LOW) << form.fraction))
    two = integer((form.bias + 1) << form.fraction)
    second = builder.select(builder.icmp_unsigned("<", rest, two), rest, two)
    scaled = builder.fmul(x, builder.bitcast(first, form.float))
    return builder.fmul(scaled, builder.bitcast(second, form.float))


@intrinsic
def times_two_to(typingctx: Any, x: Any, whole: Any) -> Any:
    """x * 2^n of a float32 about 1, rounded once; `whole` is n + 1.5 * 2^23, n from -150 to 128, or 129, with
    which the result is infinite where x is above 1/2.

    A sum with that number is rounded to the nearest n, which stands in its low bits.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at_once = llvm.get_host_cpu_features().get("avx512f", False)
        return (_scaled_at_once if at_once else _scaled_twice)(builder, *arguments)

    return types.float32(types.float32, types.float32), codegen


def _binade(builder: Any, value: Any) -> tuple[Any, Any]:
    """(bits of a positive normal number, by how much its exponent is above that of its significand
    between sqrt(1/2) and sqrt(2))."""
    form, bits = _format_of(value), _bits(builder, value)
    above = builder.sub(bits, form.integer(form.root_half))
    return bits, builder.ashr(above, form.integer(form.fraction))


@intrinsic
def exponent(typingctx: Any, x: Any) -> Any:
    """The integral e with x = m * 2^e and sqrt(1/2) <= m < sqrt(2), of a positive normal x."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form = _format_of(arguments[0])
        _, above = _binade(builder, arguments[0])
        # A small integer to a float, without a conversion of 64 bits, which few processors have.
        lifted = builder.add(above, form.integer(form.magic_bits))
        return builder.fsub(builder.bitcast(lifted, form.float), form.float(form.magic))

    return x(x), codegen


@intrinsic
def mantissa(typingctx: Any, x: Any) -> Any:
    """The m of `exponent`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form = _format_of(arguments[0])
        bits, above = _binade(builder, arguments[0])
        shifted = builder.shl(above, form.integer(form.fraction))
        return builder.bitcast(builder.sub(bits, shifted), form.float)

    return x(x), codegen


@intrinsic
def whole_significand(typingctx: Any, x: Any) -> Any:
    """The significand of a normal float32 as a whole number of 24 bits, in float64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = _bits(builder, arguments[0])
        fraction = builder.and_(bits, bits.type(0x7FFFFF))
        return builder.sitofp(builder.or_(fraction, bits.type(0x800000)), ir.DoubleType())

    return types.float64(types.float32), codegen
