"""Whether an rOperator can be computed as it says: by its rKernel, in its grid, with its parameters.

Asked before a schedule is proved, by `partition-rtasks` of what it is about to offer and by
`verify-schedule` of what it reads. What is legal here is emitted without a refusal: the last condition is
the binding itself, a pure function that emission repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import TensorType
from xdsl.ir.affine import AffineMap

from irkit.dialects.access_boxes import check_rows, grid_of
from irkit.dialects.linalg_generic import combiner, iterators, maps
from irkit.dialects.roperator_body import find_root
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, is_half, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels import families, registry
from irkit.rkernels.accesses import refuses_accesses
from irkit.rkernels.bind import bind, parameters_of
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.binding.scalars import HALVES, numba_type
from irkit.rkernels.boxes import moves
from irkit.rkernels.in_place import refuses_in_place
from irkit.rkernels.library_calls import LIBRARIES, library_call
from irkit.rkernels.rkernel import Parameters, RKernel, Target
from irkit.rkernels.templates import placeholders
from irkit.schedule.block_memory import WALKER_ROOM
from irkit.schedule.model import VDevice


def target_of(device: VDevice) -> Target:
    """Which rKernels a device runs; the test device runs those of the CPU."""
    return "cuda" if device.kind == "cuda" else "cpu"


def why_illegal(op: ROperatorOp, device: VDevice) -> str | None:
    """Why `op` cannot be computed on `device` as its attributes say; None if it can.

    After None, `irkit.rkernels.bind.bind` of the same op raises nothing.
    """
    if op.rkernel is None:
        return "it has no rKernel"
    try:
        rkernel = registry.find(target_of(device), op.rkernel.data)
        root = root_of(op)
        return check(rkernel, op, root, device)
    except UnsupportedError as error:
        return str(error)


_ROUNDED = ("pack", "rowwise", "row_sums")
"""Families of roots whose results may be 16-bit floats: sums, if any, are of wider ones all the same."""


def root_of(op: ROperatorOp) -> Root:
    """The root of an rOperator's body.

    Raises UnsupportedError for a body that is no rOperator's, and for elements that no rKernel has.
    """
    if not op.terminator.values:
        raise UnsupportedError("it has no result")
    for value in (*op.body.block.args, *op.terminator.values):
        if not isinstance(value.type, TensorType):
            raise UnsupportedError(f"an operand or result of type {value.type}")
        numba_type(tensor_type(value).element_type)
    try:
        root = find_root(op.body.block)
    except ValueError as error:
        raise UnsupportedError(str(error)) from None
    if root.value is not None:
        element = tensor_type(root.value).element_type
        numba_type(element)
        if is_half(element) and root.family not in _ROUNDED and not _picks(root):
            raise UnsupportedError(f"sums of {element}: of f32, which `widen-half` makes them")
    return root


def _picks(root: Root) -> bool:
    """Whether a reduction's result is one of its terms, so that nothing is rounded on the way."""
    found = combiner(root.chain[-1]) if root.chain else None
    return found is not None and found[0] in ("max", "min")


def check(rkernel: RKernel, op: ROperatorOp, root: Root, device: VDevice) -> str | None:
    """Why `rkernel` cannot compute `op`, with the grid and parameters that `op` has; None if it can.

    Raises UnsupportedError instead of returning a reason where one was found on the way.
    """
    grid = grid_of(op, root)
    parameters = parameters_of(op)
    return (
        refuses_device(rkernel, device)
        or _refuses_loops(root)
        or families.find(rkernel.family).refuses(root)
        or (None if rkernel.legal(root) else f"rKernel '{rkernel.name}' does not take this root")
        or _refuses_parts(root, grid)
        or families.find(rkernel.family).refuses_grid(root, grid)
        or rkernel.refuses_parameters(root, parameters)
        or refuses_scratch(rkernel, root, parameters, device)
        or _refuses_facts(rkernel, op, root, parameters)
        or _refuses_room(op.scratch_bytes, device)
        or _refuses_maps(rkernel, op)
        or _refuses_library(op, root, device)
        or _refuses_body(rkernel, op, root, device)
    )


def refuses_device(rkernel: RKernel, device: VDevice) -> str | None:
    """Why `rkernel` cannot run in the device's blocks."""
    if device.kind != "cuda":
        return None
    if device.threads < 64 or device.threads % 32:
        return f"a block of {device.threads} threads: two whole warps or more are needed"
    if rkernel.threads not in (None, device.threads):
        return (
            f"rKernel '{rkernel.name}' runs in blocks of {rkernel.threads} threads, "
            f"{device.name} has {device.threads}"
        )
    if rkernel.wgmma and not device.architecture.has_wgmma:
        return (
            f"rKernel '{rkernel.name}' is of wgmma, which {device.architecture.name} does not have"
        )
    return None


def refuses_scratch(
    rkernel: RKernel, root: Root, parameters: Parameters, device: VDevice
) -> str | None:
    """Why its scratch does not fit beside the walker's tables; a CPU has memory for any."""
    return _refuses_room(rkernel.scratch(root, parameters), device)


def _refuses_room(needed: int, device: VDevice) -> str | None:
    room = device.shared_bytes - (WALKER_ROOM if device.kind == "cuda" else 0)
    if device.kind == "cpu" or needed <= room:
        return None
    return f"{needed} bytes of scratch, {device.name} has {room}"


def _refuses_facts(
    rkernel: RKernel, op: ROperatorOp, root: Root, parameters: Parameters
) -> str | None:
    """Why what `op` says of its rKernel is not so."""
    scratch, granted = rkernel.scratch(root, parameters), op.fastmath or FastMathFlagsAttr("none")
    if rkernel.schedules is not None:
        # Its binding checks what follows from the schedule.
        scratch = op.scratch_bytes
    if scratch != op.scratch_bytes:
        return f"its rKernel needs {scratch} bytes of scratch, it has {op.scratch_bytes}"
    if set(granted.data) != set(rkernel.fastmath.data):
        return f"its rKernel computes with {rkernel.fastmath}, it grants {granted}"
    return None


def _refuses_maps(rkernel: RKernel, op: ROperatorOp) -> str | None:
    """Why the copy engine cannot be told where its operands are."""
    if not rkernel.maps or not moves(op):
        return None
    return f"rKernel '{rkernel.name}' takes operands that do not move with the turns of loops"


def _refuses_library(op: ROperatorOp, root: Root, device: VDevice) -> str | None:
    """Why the library that it names cannot be called for it."""
    if op.library is None:
        return None
    name = op.library.data
    if device.kind != "cuda" or name not in LIBRARIES:
        return f"library '{name}': expected {', '.join(LIBRARIES)}, on a GPU"
    if library_call(op, root, name) is None:
        return f"library '{name}' does not compute it, or not as exactly"
    return None


def _refuses_loops(root: Root) -> str | None:
    """Templates and footprints take the parallel loops of a root to come first, in the result's order."""
    for op in root.chain:
        parallel = iterators(op)
        out = maps(op)[-1]
        if sorted(parallel, reverse=True) != parallel:
            return "a reduction loop before a parallel one"
        identity = AffineMap.identity(out.num_dims).results[: sum(parallel)]
        if len(op.results) != 1 or tuple(out.results) != tuple(identity):
            return f"a root that writes as {out}"
    return None


def _refuses_parts(root: Root, grid: Sequence[int]) -> str | None:
    """Every rTask has elements to compute."""
    for d, (size, parts) in enumerate(zip(root.parallel, grid, strict=True)):
        if parts < 1 or (size != DYNAMIC and parts > size):
            return f"grid {list(grid)}: dimension {d} has {size} elements"
    return None


def _refuses_body(rkernel: RKernel, op: ROperatorOp, root: Root, device: VDevice) -> str | None:
    """What only an attempt tells. Raises UnsupportedError."""
    check_rows(op, root)
    binding = bind(op, root, rkernel, device.threads)
    return (
        _refuses_halves(rkernel, binding)
        or refuses_accesses(op, rkernel, binding)
        or refuses_in_place(op, rkernel, binding)
    )


def _refuses_halves(rkernel: RKernel, binding: Binding) -> str | None:
    """Why it cannot read what it reads by pointer; what fused functions read is widened by them."""
    if rkernel.halves:
        return None
    # All operands are handed on to fused functions: where there is one, its name is theirs.
    named = {binding.names[name] for name in placeholders(rkernel) - {"OPERANDS"}}
    for pointer, kind in zip(binding.pointers, binding.pointer_types, strict=True):
        if kind in HALVES.values() and pointer in named:
            return f"rKernel '{rkernel.name}' reads no elements of {kind}"
    return None
