"""Numba intrinsics of generated loop nests on a CPU: values that are vectors of elements.

A vector of 16 float32 is one register or two, as the processor has them; it is a value like any other in
Numba's eyes, so that a nest's sums stay in registers.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_I32 = ir.IntType(32)


class Vector(types.Type):
    """So many elements of a type."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(name=f"vector({element} x {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        element = dmm.lookup(fe_type.element).get_value_type()
        super().__init__(dmm, fe_type, ir.VectorType(element, fe_type.lanes))


def _place(context: Any, builder: Any, pointer: Any, at: Any, kind: Any) -> Any:
    """Where a vector begins, as a pointer to it, and the alignment that it surely has."""
    first = builder.gep(pointer, [at])
    size = context.get_abi_sizeof(pointer.type.pointee)
    return builder.bitcast(first, kind.as_pointer()), size


@intrinsic(prefer_literal=True)
def load_vector(typingctx: Any, lanes: Any, pointer: Any, at: Any) -> Any:
    """`lanes` elements, a literal number, from element `at` on."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    result = Vector(pointer.dtype, lanes.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, place = arguments
        where, align = _place(context, builder, first, place, context.get_value_type(result))
        return builder.load(where, align=align)

    return result(lanes, pointer, types.int64), codegen


@intrinsic
def store_vector(typingctx: Any, pointer: Any, at: Any, vector: Any) -> Any:
    """Write all elements, from element `at` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, place, value = arguments
        where, align = _place(context, builder, first, place, value.type)
        builder.store(value, where, align=align)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, vector), codegen


@intrinsic(prefer_literal=True)
def spread_vector(typingctx: Any, lanes: Any, element: Any) -> Any:
    """One element in each of `lanes` lanes, a literal number."""
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    own = types.unliteral(element)
    result = Vector(own, lanes.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(result)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[1], _I32(0))
        mask = ir.Constant(ir.VectorType(_I32, result.lanes), [0] * result.lanes)
        return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), mask)

    return result(lanes, own), codegen


def _is_float(value: Any) -> bool:
    return isinstance(value.type.element, ir.FloatType | ir.DoubleType)


def _lane_by_lane(name: str, compute: Callable[[Any, Any, Any], Any]) -> Any:
    """An intrinsic of two vectors."""

    def both(typingctx: Any, a: Any, b: Any) -> Any:
        if not isinstance(a, Vector) or a != b:
            return None

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return compute(builder, *arguments)

        return a(a, b), codegen

    both.__name__ = both.__qualname__ = name
    return intrinsic(both)


def _extreme(sign: str) -> Callable[[Any, Any, Any], Any]:
    """The greater or smaller, NaN where the first or the second is NaN."""

    def compute(builder: Any, a: Any, b: Any) -> Any:
        if not _is_float(a):
            return builder.select(builder.icmp_signed(sign, a, b), a, b)
        kept = builder.or_(builder.fcmp_ordered(sign, a, b), builder.fcmp_unordered("uno", a, a))
        return builder.select(kept, a, b)

    return compute


def _sum(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b) if _is_float(a) else builder.add(a, b)


def _product(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b) if _is_float(a) else builder.mul(a, b)


add_vectors = _lane_by_lane("add_vectors", _sum)
multiply_vectors = _lane_by_lane("multiply_vectors", _product)
greater_vectors = _lane_by_lane("greater_vectors", _extreme(">"))
smaller_vectors = _lane_by_lane("smaller_vectors", _extreme("<"))


@intrinsic
def add_product(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    if not isinstance(a, Vector) or a != b or a != c:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y, z = arguments
        if not _is_float(x):
            return builder.add(builder.mul(x, y), z)
        letter = "f32" if a.element == types.float32 else "f64"
        kind = ir.FunctionType(x.type, [x.type] * 3)
        name = f"llvm.fma.v{a.lanes}{letter}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return a(a, b, c), codegen
