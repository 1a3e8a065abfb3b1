"""Functions of libdevice that no function of Python's `math` stands for in Numba, by their own names, and one
that hides from LLVM where a number is from."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")
cgutils: Any = import_module("numba.cuda.cgutils")
types: Any = import_module("numba.cuda.types")
intrinsic: Any = import_module("numba.cuda.extending").intrinsic


def _called(name: str, builder: Any, arguments: Any) -> Any:
    """The function of libdevice for the type of its arguments: `f` at its end is float32."""
    kind = arguments[0].type
    full = f"__nv_{name}{'f' if isinstance(kind, ir.FloatType) else ''}"
    signature = ir.FunctionType(kind, [kind] * len(arguments))
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, full), arguments)


def _unary(name: str) -> Any:
    @intrinsic
    def function(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _called(name, builder, arguments)

        return x(x), generate

    return function


cbrt = _unary("cbrt")
exp2 = _unary("exp2")
log2 = _unary("log2")


@intrinsic
def fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded once, of floats of one type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called("fma", builder, arguments)

    kind = types.float64 if types.float64 in (x, y, z) else x
    return kind(kind, kind, kind), generate


@intrinsic
def fmod(typing_context: Any, x: Any, y: Any) -> Any:
    """The exact remainder of x / y with the sign of x, of floats of one type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called("fmod", builder, arguments)

    kind = types.float64 if types.float64 in (x, y) else x
    return kind(kind, kind), generate


@intrinsic
def quotient(typing_context: Any, x: Any, y: Any, high: Any, low: Any, least: Any) -> Any:
    """x / y, of floats of one type: a division, whatever its constant divisor's reciprocal is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fdiv(arguments[0], arguments[1])

    return x(x, x, x, x, x), generate


@intrinsic
def as_it_is(typing_context: Any, x: Any) -> Any:
    """x, which LLVM takes for no conversion: its choices beside a zero are left as they are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        single = isinstance(value.type, ir.FloatType)
        code, places = ("mov.f32 $0, $1;", "=f,f") if single else ("mov.f64 $0, $1;", "=d,d")
        kind = ir.FunctionType(value.type, [value.type])
        return builder.call(ir.InlineAsm(kind, code, places, side_effect=False), [value])

    return x(x), generate
