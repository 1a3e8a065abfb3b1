"""Verify a module: every op's own rules, then SSA dominance. Failures are diagnostics with a place."""

from __future__ import annotations

import io

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.program.check import program_faults
from irkit.dialects.state import state_of
from irkit.dialects.symbols import dims_fault
from irkit.dialects.types import tensor_type
from irkit.driver.diagnostics.diagnostic import Diagnostic, UserError, note
from irkit.driver.diagnostics.locations import place_of
from irkit.driver.files.parsing import UNCHECKED
from irkit.driver.verification.dominance import Violation, dominance_violation
from irkit.errors import InvalidModelError, UnsupportedError


def check_module(module: ModuleOp) -> None:
    """Raise UserError if `module` does not verify."""
    try:
        _verify(module)
    except (VerifyException, ValueError) as error:
        raise _op_error(module, error) from None
    except UNCHECKED:
        raise _op_error(module, VerifyException("malformed attribute or type")) from None
    except RecursionError:
        raise UserError("regions are nested too deeply to verify") from None
    if (op := _open_block(module)) is not None:
        raise UserError(f"'{op.name}' has a block without a terminator", place_of(op))
    if (violation := dominance_violation(module)) is not None:
        raise _dominance_error(violation)
    _check_slices(module)
    for op in module.ops:
        if isinstance(op, FuncOp) and (wrong := dims_fault(op)) is not None:
            raise UserError(f"'{op.name}' {wrong}", place_of(op))
        if isinstance(op, FuncOp):
            _check_state(op)
    if (found := next(program_faults(module), None)) is not None:
        raise UserError(f"'{found.op.name}' {found.text}", place_of(found.op))


def _verify(op: Operation, nested: bool = True) -> None:
    """As `Operation.verify`, some of xDSL's ops of which raise a plain Exception."""
    try:
        op.verify(verify_nested_ops=nested)
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise VerifyException(str(error)) from None


def _check_state(function: FuncOp) -> None:
    try:
        state_of(function)
    except (InvalidModelError, UnsupportedError) as error:
        raise UserError(str(error), place_of(function)) from error


def _check_slices(module: ModuleOp) -> None:
    for op in module.walk():
        if isinstance(op, ExtractSliceOp | InsertSliceOp) and (wrong := _slice_fault(op)):
            raise UserError(f"'{op.name}' {wrong}", place_of(op))


def _slice_fault(op: ExtractSliceOp | InsertSliceOp) -> str | None:
    """What upstream's verifier refuses of a slice and xDSL's does not: too few or too many numbers."""
    whole = op.source if isinstance(op, ExtractSliceOp) else op.dest
    rank = tensor_type(whole).get_num_dims()
    said = {
        "offset": op.static_offsets, "size": op.static_sizes, "stride": op.static_strides,
    }  # fmt: skip
    for what, numbers in said.items():
        if len(numbers) != rank:
            return f"expected {rank} {what} values, got {len(numbers)}"
    return None


def _open_block(module: ModuleOp) -> Operation | None:
    """An op with a block, one of several of a region, that does not end in a terminator: xDSL accepts
    an empty one."""
    for op in module.walk():
        for region in op.regions:
            if len(region.blocks) > 1 and any(_is_open(b) for b in region.blocks):
                return op
    return None


def _is_open(block: Block) -> bool:
    last = block.last_op
    return last is None or not (last.has_trait(IsTerminator) or isinstance(last, UnregisteredOp))


def message_of(error: Exception) -> str:
    """The first line of an xDSL error, in house style."""
    text = str(error).strip() or type(error).__name__
    text = text.split("\n", 1)[0].removeprefix("Operation does not verify: ")
    return text[:1].lower() + text[1:] if text[:1].isupper() and not text[1:2].isupper() else text


def _op_error(module: ModuleOp, error: Exception) -> UserError:
    op = _failing_op(module)
    if op is None:
        return UserError(message_of(error))
    message = message_of(error)
    if op.name not in message:
        message = f"'{op.name}': {message}"
    place = place_of(op)
    return UserError(message, place, [] if place else [_current_operation(op)])


def _failing_op(root: Operation) -> Operation | None:
    """The innermost first op that does not verify."""
    for op in root.walk(region_first=True):
        try:
            _verify(op, nested=False)
        except (VerifyException, ValueError, *UNCHECKED):
            return op
    return next((o for o in root.walk(region_first=True) if _block_fails(o)), None)


def _block_fails(op: Operation) -> bool:
    # A block's own rules (its terminator) are checked with the op around it.
    try:
        _verify(op)
    except (VerifyException, ValueError, *UNCHECKED):
        return True
    return False


def _current_operation(op: Operation) -> Diagnostic:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(op)
    return note(f"see current operation: {stream.getvalue().split(chr(10), 1)[0]}")


def _describe(value: SSAValue) -> str:
    if value.name_hint:
        return f"'%{value.name_hint}'"
    match value:
        case OpResult():
            return f"result {value.index} of '{value.op.name}'"
        case BlockArgument():
            return f"block argument {value.index}"
        case _:
            return "a value"


def _dominance_error(violation: Violation) -> UserError:
    user, value = violation.user, violation.value
    name = _describe(value)
    owner = value.owner
    if isinstance(owner, Block):
        here = note(f"{name} is an argument of a block of this op", place_of(owner.parent_op()))
    else:
        here = note(f"{name} is defined here, {_relation(user, owner)}", place_of(owner))
    message = f"operand {violation.index} of '{user.name}', {name}, does not dominate this use"
    return UserError(message, place_of(user), [here])


def _relation(user: Operation, definition: Operation) -> str:
    if definition.parent is user.parent:
        return "later in the same block" if user is not definition else "by the same op"
    if definition.parent is not None and definition.parent.find_ancestor_op_in_block(user):
        return "later in an enclosing block"
    return "in a block that does not dominate"
