"""Modules with something left out. Each edit works on a copy, and may give one that does not verify."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    RankedStructure,
    i1,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator
from xdsl.utils.hints import isa

from irkit.dialects.types import Tensor, is_float, is_integer, tensor_type


def numbered(module: ModuleOp) -> list[Operation]:
    """All ops of a module; an op has the same number in a copy."""
    return list(module.walk())


# Ops


def droppable(module: ModuleOp) -> list[int]:
    """Numbers of the ops that may be left out: all but the module and the ends of blocks."""
    return [
        number
        for number, op in enumerate(numbered(module))
        if op is not module and not op.has_trait(IsTerminator)
    ]


def without_ops(module: ModuleOp, numbers: Collection[int]) -> ModuleOp | None:
    """A copy without the ops of these numbers. What is used of their results becomes an operand of the
    same type, a new input of the function, or a zero; None if there is none of these."""
    copy = module.clone()
    ops = numbered(copy)
    for number in sorted(numbers, reverse=True):
        if not _dropped(ops[number]):
            return None
    return copy


def _dropped(op: Operation) -> bool:
    for result in op.results:
        if not result.uses:
            continue
        other = _substitute(op, result)
        if other is None:
            return False
        result.replace_all_uses_with(other)
    function = op.parent_op()
    Rewriter.erase_op(op)
    if isinstance(function, FuncOp):
        function.update_function_type()
    return True


def _substitute(op: Operation, result: SSAValue) -> SSAValue | None:
    """Another value that is there where `op` stands: of the type of `result`, unless only the function's
    end reads it, which takes any."""
    same = next((v for v in op.operands if v.type == result.type), None)
    if same is not None:
        return same
    block = op.parent
    assert block is not None
    function = block.parent_op()
    returned = isinstance(function, FuncOp) and all(
        isinstance(use.operation, ReturnOp) for use in result.uses
    )
    if returned and op.operands and isa(op.operands[0].type, Tensor):
        return op.operands[0]
    if isinstance(function, FuncOp) and isa(result.type, Tensor):
        return block.insert_arg(result.type, len(block.args))
    known = next((a for a in block.args if a.type == result.type), None)
    return known if known is not None else _zero(op, result.type)


def _zero(op: Operation, element: Attribute) -> SSAValue | None:
    """A scalar constant before `op`."""
    if is_float(element):
        made = arith.ConstantOp(FloatAttr(0.0, cast(AnyFloat, element)))
    elif isinstance(element, IntegerType | IndexType):
        made = arith.ConstantOp(IntegerAttr(0, cast(IntegerType, element)))
    else:
        return None
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.result


# Inputs and outputs


def functions(module: ModuleOp) -> Iterator[tuple[FuncOp, ReturnOp]]:
    """Functions with a body, and what they return."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.body.blocks:
            end = op.body.block.last_op
            if isinstance(end, ReturnOp):
                yield op, end


def with_outputs(module: ModuleOp, function: int, kept: Collection[int]) -> ModuleOp:
    """A copy whose function of this number returns these of its outputs alone."""
    copy = module.clone()
    found, end = list(functions(copy))[function]
    values = [v for n, v in enumerate(end.operands) if n in kept]
    Rewriter.replace_op(end, ReturnOp(*values))
    found.update_function_type()
    return copy


def with_inputs(module: ModuleOp, function: int, kept: Collection[int]) -> ModuleOp | None:
    """A copy whose function of this number has these of its inputs alone; None if others are used."""
    copy = module.clone()
    found, _ = list(functions(copy))[function]
    for number, argument in reversed(list(enumerate(found.body.block.args))):
        if number in kept:
            continue
        if argument.uses:
            return None
        found.body.block.erase_arg(argument)
    found.update_function_type()
    return copy


# Attributes and constants


def notes_of(module: ModuleOp) -> list[tuple[int, str]]:
    """(number of an op, name) of what modules and functions carry for the host."""
    return [
        (number, name)
        for number, op in enumerate(numbered(module))
        if isinstance(op, ModuleOp | FuncOp)
        for name in op.attributes
    ]


def with_notes(module: ModuleOp, kept: Collection[tuple[int, str]]) -> ModuleOp:
    """A copy with these alone of `notes_of`."""
    copy = module.clone()
    ops = numbered(copy)
    for number, name in notes_of(module):
        if (number, name) not in kept:
            del ops[number].attributes[name]
    return copy


def constants(module: ModuleOp) -> list[int]:
    """Numbers of the tensor constants with more than one value, the largest first."""
    found = [
        (math.prod(op.result.type.get_shape()), number)
        for number, op in enumerate(numbered(module))
        if isinstance(op, arith.ConstantOp)
        and isa(op.result.type, Tensor)
        and not (isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat())
    ]
    return [number for _, number in sorted(found, reverse=True)]


def with_splat(module: ModuleOp, number: int, value: int) -> ModuleOp | None:
    """A copy in which all elements of a constant are `value`; None where its type has no such."""
    copy = module.clone()
    op = numbered(copy)[number]
    assert isinstance(op, arith.ConstantOp)
    splat = _splat(tensor_type(op.result), value)
    if splat is None:
        return None
    op.value = splat
    return copy


def _splat(t: Tensor, value: int) -> DenseIntOrFPElementsAttr | None:
    if not is_float(t.element_type) and not is_integer(t.element_type) and t.element_type != i1:
        return None
    shaped = cast(RankedStructure[Any], t)
    number = float(value) if is_float(t.element_type) else value
    return DenseIntOrFPElementsAttr.from_list(shaped, [number])
