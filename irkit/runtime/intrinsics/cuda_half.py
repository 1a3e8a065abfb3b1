"""16-bit floats in emitted CUDA modules: pointers to them that index like arrays of float32, and rounding.

What `cpu_half.py` has for CPUs. No half arithmetic of Numba's own is used: it links a shim.
"""

# pyright: reportUnknownMemberType=false
from __future__ import annotations

import operator
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.half_conversions import HALF, I16, narrowed, widened

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
_extending: Any = import_module("numba.cuda.extending")
intrinsic: Any = _extending.intrinsic


class HalfPointer(types.CPointer):
    """A pointer to float16 or bfloat16, whose elements are float32 to whoever indexes it."""

    def __init__(self, element: str) -> None:
        super().__init__(types.float32)
        self.element = element
        self.name = f"{element}*"

    @property
    def key(self) -> Any:
        return self.element


class _HalfPointerModel(_extending.core_models.PrimitiveModel):
    """LLVM's half* says float16, i16* bfloat16."""

    def __init__(self, manager: Any, pointer: HalfPointer) -> None:
        pointee = HALF if pointer.element == "float16" else I16
        super().__init__(manager, pointer, pointee.as_pointer())


def narrow(builder: Any, value: Any, element: Any) -> Any:
    """A float32 rounded to nearest even, by one instruction: a half, or the bits of a bfloat16."""
    if element != I16:
        return narrowed(builder, value, element)
    kind = ir.FunctionType(I16, [value.type])
    code = ir.InlineAsm(kind, "cvt.rn.bf16.f32 $0, $1;", "=h,f", side_effect=False)
    return builder.call(code, [value])


def _read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer, index = arguments
    return widened(builder, builder.load(builder.gep(pointer, [index])))


def _write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    pointer, index, value = arguments
    builder.store(narrow(builder, value, pointer.type.pointee), builder.gep(pointer, [index]))
    return context.get_dummy_value()


_extending.register_model(HalfPointer)(_HalfPointerModel)
_extending.lower_builtin(operator.getitem, HalfPointer, types.Integer)(_read)
_extending.lower_builtin(operator.setitem, HalfPointer, types.Integer, types.Any)(_write)


def _pointer_to(element: str) -> Any:
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return HalfPointer(element)(types.uint64), generate

    return intrinsic(pointer)


f16p = _pointer_to("float16")
bf16p = _pointer_to("bfloat16")


def _rounding_to(pointee: Any) -> Any:
    def rounding(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return widened(builder, narrow(builder, args[0], pointee))

        return types.float32(types.float32), generate

    return intrinsic(rounding)


round_float16 = _rounding_to(HALF)
round_bfloat16 = _rounding_to(I16)
