"""What a program of arrays must keep to, beyond what its ops check alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from xdsl.dialects import affine, memref, scf
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StridedLayoutAttr, StringAttr
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.functions import function_named
from irkit.dialects.levels import Fault, is_number
from irkit.dialects.program.call import CallOp
from irkit.dialects.program.spaces import CUDA, device_of_call, is_of_device, on_device, space_fault
from irkit.dialects.program.views import (
    StridedView,
    affine_of,
    array_type,
    has_layout,
    is_buffer,
    row_major,
    trips_of,
    view_of,
    view_type,
)
from irkit.dialects.types import DYNAMIC
from irkit.errors import InvalidModelError


def program_faults(module: ModuleOp) -> Iterator[Fault]:
    """What is wrong with the programs of arrays in `module`, in the order of the text."""
    for function in module.ops:
        if isinstance(function, FuncOp):
            yield from _function_faults(function)


def _function_faults(function: FuncOp) -> Iterator[Fault]:
    first = function.body.first_block
    for argument in () if first is None else first.args:
        if isinstance(argument.type, MemRefType):
            wrong = _buffer_fault(argument)
            yield from _fault(function, wrong and f"has argument {argument.index}, which {wrong}")
    yield from _fault(function, _mixed(function))
    written: set[SSAValue] = set()
    for op in function.walk():
        check = _CHECKS.get(type(op))
        if check is None or not _is_reached(op):
            continue
        yield from _fault(op, _said(lambda op=op, check=check: check(op)))
        yield from _fault(op, _elsewhere(op, function))
        yield from _fault(op, _said(lambda op=op: _unwritten(op, written)))


def _fault(op: Operation, text: str | None) -> Iterator[Fault]:
    if text is not None:
        yield Fault(op, text)


def _said(check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except InvalidModelError as error:
        return str(error)


def _mixed(function: FuncOp) -> str | None:
    if not is_of_device(function):
        return None
    arrays = (v for op in function.walk() for v in (*op.operands, *op.results))
    arguments = (a for b in function.body.blocks for a in b.args)
    mixed = any(isinstance(v.type, MemRefType) and not on_device(v) for v in (*arrays, *arguments))
    return "has arrays of the device and of the host: it can run on neither" if mixed else None


def _elsewhere(op: Operation, function: FuncOp) -> str | None:
    """What an op of the host does to arrays of the device."""
    if is_of_device(function):
        return "calls the host from the device" if isinstance(op, CallOp) else None
    if isinstance(op, (FunctionCall, memref.CopyOp)):
        return None
    if isinstance(op, CallOp) and device_of_call(op) == CUDA:
        there = set(map(on_device, op.arrays))
        return "is called on the device with arrays of both sides" if len(there) > 1 else None
    touched = [*arrays_read(op), *arrays_written(op)]
    if isinstance(op, ReturnOp):
        touched = list(op.operands)
    if any(map(on_device, touched)):
        return "touches an array of the device, and is the host's: what the host needs is copied"
    return None


def _is_reached(op: Operation) -> bool:
    """Whether no loop around an op is known never to be run."""
    loop = op.parent_op()
    while loop is not None and not isinstance(loop, FuncOp):
        if isinstance(loop, scf.ForOp) and _trips(loop) == 0:
            return False
        loop = loop.parent_op()
    return True


def _trips(loop: scf.ForOp) -> int:
    try:
        return len(trips_of(loop))
    except InvalidModelError:
        return 1  # said of the loop itself


def _buffer_fault(value: SSAValue) -> str | None:
    array = array_type(value)
    if not is_number(array.element_type):
        return f"holds elements of type {array.element_type}, of which NumPy has none"
    if DYNAMIC in array.get_shape():
        return f"is {array}: shapes are numbers"
    if has_layout(array):
        return f"is {array}: a buffer has no layout of its own"
    return space_fault(array.memory_space)


def _check_alloc(op: Operation) -> str | None:
    assert isinstance(op, memref.AllocOp)
    wrong = _buffer_fault(op.memref)
    return wrong and f"makes what {wrong}"


def _check_view(op: Operation) -> str | None:
    assert isinstance(op, memref.ReinterpretCastOp)
    view, source = view_of(op.result), array_type(op.source)
    expected = view_type(source.element_type, view)
    # An offset may have been found to be a number since.
    layout = StridedLayoutAttr(view.strides, None)
    general = MemRefType(source.element_type, view.sizes, layout, source.memory_space)
    if array_type(op.result) not in (expected, general if op.offsets else expected):
        return f"expected a result of type {expected}, got {op.result.type}"
    return _out_of_bounds(view)


def _out_of_bounds(view: StridedView) -> str | None:
    shape = array_type(view.buffer).get_shape()
    elements = row_major((1, *shape))[0] if shape else 1
    if view.is_empty:
        return None
    low, high = view.offset.bounds()
    first, last = low + view.reach()[0], high + view.reach()[1]
    if first >= 0 and last < elements:
        return None
    return f"reaches elements {first} to {last} of a buffer of {elements}"


def _check_read(op: Operation) -> str | None:
    assert isinstance(op, ToTensorOp)
    view_of(op.memref)
    return None


def _check_write(op: Operation) -> str | None:
    assert isinstance(op, MaterializeInDestinationOp)
    if not isinstance(op.dest.type, MemRefType):
        return "writes a tensor: a program writes arrays"
    if view_of(op.dest).repeats():
        return "writes a view that has an element of its buffer twice"
    return None


def _check_call(op: Operation) -> str | None:
    assert isinstance(op, CallOp)
    for array in op.arrays:
        view_of(array)
    return None


def _check_called(op: Operation) -> str | None:
    assert isinstance(op, FunctionCall)
    arrays = [v for v in op.operands if isinstance(v.type, MemRefType)]
    if arrays and function_called(op) is None:
        return f"calls @{op.callee.string_value()}, which is no function of the module"
    if not all(map(is_buffer, arrays)):
        return "gives a view to a function: its arguments are buffers"
    return None


def _check_copy(op: Operation) -> str | None:
    assert isinstance(op, memref.CopyOp)
    view_of(op.source)
    if view_of(op.destination).repeats():
        return "copies to a view that has an element of its buffer twice"
    return None


def _check_return(op: Operation) -> str | None:
    for value in op.operands:
        if not isinstance(value.type, MemRefType):
            # Of a function of tensors, which may stand beside it.
            return None
        view_of(value)
    return None


def _check_loop(op: Operation) -> str | None:
    assert isinstance(op, scf.ForOp)
    if op.iter_args:
        # A loop of tensors, of which other levels say what it may be.
        arrays = any(isinstance(v.type, MemRefType) for v in op.iter_args)
        return "carries arrays: what a loop changes, it writes" if arrays else None
    trips_of(op)
    return None


def _check_apply(op: Operation) -> str | None:
    affine_of(op.results[0])
    return None


_CHECKS: Mapping[type[Operation], Callable[[Operation], str | None]] = {
    affine.ApplyOp: _check_apply,
    memref.AllocOp: _check_alloc,
    memref.CopyOp: _check_copy,
    memref.ReinterpretCastOp: _check_view,
    ToTensorOp: _check_read,
    MaterializeInDestinationOp: _check_write,
    CallOp: _check_call,
    FunctionCall: _check_called,
    ReturnOp: _check_return,
    scf.ForOp: _check_loop,
}


def _unwritten(op: Operation, written: set[SSAValue]) -> str | None:
    """What reads an array of which nothing was written before; notes what is written now."""
    for value in arrays_read(op):
        view = view_of(value)
        buffer = view.buffer
        if 0 in view.sizes:
            continue  # of no elements there is nothing to write
        if isinstance(buffer.owner, memref.AllocOp) and buffer not in written:
            return "reads an array that was never written"
    written.update(view_of(value).buffer for value in arrays_written(op))
    return None


def arrays_read(op: Operation) -> list[SSAValue]:
    """The arrays that an op itself may read, but for a call of another function of the program."""
    match op:
        case ToTensorOp():
            return [op.memref]
        case memref.CopyOp():
            return [op.source]
        case CallOp():
            return op.read
        case _:
            return []


def arrays_written(op: Operation) -> list[SSAValue]:
    """The arrays that an op itself may write."""
    match op:
        case MaterializeInDestinationOp() if isinstance(op.dest.type, MemRefType):
            return [op.dest]
        case memref.CopyOp():
            return [op.destination]
        case CallOp():
            return op.written
        case FunctionCall() if (callee := function_called(op)) is not None:
            return [op.operands[n] for n in written_arguments(callee)]
        case _:
            return []


def function_called(op: FunctionCall) -> FuncOp | None:
    """The function of the same module that an op calls, if there is one."""
    module = op.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    return None if module is None else function_named(module, op.callee.string_value())


def result_names(function: FuncOp) -> list[str]:
    """Names of what a program returns, and then of the arguments that it may write: their own, or, where that is
    taken, a longer one. Made up where the function has none."""
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    names = _names(function, "irkit.outputs", len(outputs), "output")
    arguments = _names(function, "irkit.inputs", len(inputs), "input")
    for n in written_arguments(function):
        name = arguments[n]
        while name in names:
            name += "_left"
        names.append(name)
    return names


def _names(function: FuncOp, attribute: str, count: int, prefix: str) -> list[str]:
    given = function.attributes.get(attribute)
    if isa(given, ArrayAttr[StringAttr]) and len(given) == count:
        return [name.data for name in given]
    return [f"{prefix}{n}" for n in range(count)]


def written_arguments(function: FuncOp) -> list[int]:
    """Numbers of the argument buffers that a program may write, in order."""
    written = {view_of(v).buffer for op in function.walk() for v in arrays_written(op)}
    return [a.index for a in function.body.block.args if a in written]
