"""`select-accesses`: how rKernels read their operands, once it is known where these are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.errors import UnsupportedError
from irkit.passes.task.part_in_place import part_in_place
from irkit.passes.task.program_text import programs_of
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.rkernels import registry
from irkit.rkernels.accesses import (
    VECTOR_BYTES,
    appends_listed,
    can_read_vectors,
    kept_operands,
)
from irkit.rkernels.bind import bind
from irkit.rkernels.legality import root_of, target_of
from irkit.schedule.model import VDevice


@dataclass(frozen=True)
class SelectAccesses(ModulePass):
    """Say on each rOperator how its rKernel reads: in vectors, and from shared memory.

    An rKernel that can read vectors, or whose compiler can, does so if every append places all that it reads
    so at multiples of 16 bytes (`vector_bytes`). One that can have its weights in shared memory gets a second
    copy for that if every append keeps them there (`residents`). Of an rOperator that some appends update in
    place, and others not, those that do get a copy, which need not store what is there already
    (`part_in_place`). Needs `plan-memory`; removes `verified`; changes nothing else.

    ```mlir
    task.roperator @cell(%x, %w) attributes {rkernel = "gemv.rows"} {...}
    ```
    becomes
    ```mlir
    task.roperator @cell(%x, %w) attributes {rkernel = "gemv.rows",
        vector_bytes = 16 : i64, residents = array<i64: 1>} {...}
    ```
    """

    name = "select-accesses"
    requires: ClassVar[tuple[str, ...]] = ("planned",)
    produces: ClassVar[str] = "planned"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = device_of(op)
        for program in programs_of(op):
            program.retract()
        part_in_place(op)
        with appends_listed(op):
            for roperator in op.ops:
                if isinstance(roperator, ROperatorOp):
                    _select(roperator, device)


def _select(op: ROperatorOp, device: VDevice) -> None:
    """Raises PassFailedException for an rOperator that its rKernel cannot compute."""
    try:
        _say_accesses(op, device)
    except UnsupportedError as error:
        raise PassFailedException(f"@{op.sym_name.data}: {error}") from None


def _say_accesses(op: ROperatorOp, device: VDevice) -> None:
    """Raises UnsupportedError for an rOperator that its rKernel cannot compute."""
    op.vector_bytes = op.residents = None
    if op.rkernel is None:
        raise UnsupportedError("it has no rKernel")
    rkernel = registry.find(target_of(device), op.rkernel.data)
    if not (rkernel.vectors or rkernel.kept or rkernel.aligns):
        return
    binding = bind(op, root_of(op), rkernel, device.threads)
    if can_read_vectors(op, rkernel, binding):
        op.vector_bytes = IntegerAttr(VECTOR_BYTES, i64)
        applied(op, "SelectAccesses", "vectors of {} bytes", VECTOR_BYTES)
    if operands := kept_operands(op, rkernel, binding):
        op.residents = int_array(operands)
        applied(op, "SelectAccesses", "a copy for operands {} in shared memory", operands)
