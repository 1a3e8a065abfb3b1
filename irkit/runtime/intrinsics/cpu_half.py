"""Numba intrinsics of 16-bit floats on a CPU: pointers that index like arrays of float32, and rounding.

An element that is read is widened, one that is written is rounded to nearest even. float16 is converted by
the processor (F16C on x86, in vectors too); bfloat16, the upper half of a float32, by shifts. NaN stays NaN.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# pyright: reportCallIssue=false, reportUntypedFunctionDecorator=false
from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, register_model

from irkit.runtime.intrinsics.half_conversions import HALF, I16, narrowed, widened


class HalfPointer(types.CPointer):
    """A pointer to float16 or bfloat16, whose elements are float32 to whoever indexes it."""

    def __init__(self, element: str) -> None:
        super().__init__(types.float32)
        self.element = element
        self.name = f"{element}*"

    @property
    def key(self) -> Any:
        return self.element


@register_model(HalfPointer)
class _HalfPointerModel(models.PrimitiveModel):
    """LLVM's half* says float16, i16* bfloat16."""

    def __init__(self, manager: Any, pointer: HalfPointer) -> None:
        pointee = HALF if pointer.element == "float16" else I16
        super().__init__(manager, pointer, pointee.as_pointer())


@lower_builtin(operator.getitem, HalfPointer, types.Integer)
def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer, index = arguments
    return widened(builder, builder.load(builder.gep(pointer, [index])))


@lower_builtin(operator.setitem, HalfPointer, types.Integer, types.Any)
def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer, index, value = arguments
    builder.store(narrowed(builder, value, pointer.type.pointee), builder.gep(pointer, [index]))
    return context.get_dummy_value()


def _pointer_to(element: str) -> Any:
    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        result = HalfPointer(element)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(result))

        return result(types.int64), codegen

    return pointer


float16p = _pointer_to("float16")
bfloat16p = _pointer_to("bfloat16")


def _rounding_to(pointee: Any) -> Any:
    @intrinsic
    def rounding(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return widened(builder, narrowed(builder, arguments[0], pointee))

        return types.float32(types.float32), codegen

    return rounding


round_float16 = _rounding_to(HALF)
"""The float16 nearest to a float32, as a float32."""
round_bfloat16 = _rounding_to(I16)
"""The bfloat16 nearest to a float32, as a float32."""
