"""`measure-library-calls`: products that a library computes faster, measured on the device at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr, f64
from xdsl.passes import ModulePass

from irkit.dialects.task import ROperatorOp
from irkit.driver.compiler.cache import versions
from irkit.driver.device_at_hand import why_elsewhere
from irkit.driver.measuring import times
from irkit.errors import DeviceError
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.rkernels.library_calls import CUBLASLT, library_call
from irkit.schedule.library_call import LibraryCall


@dataclass(frozen=True)
class MeasureLibraryCalls(ModulePass):
    """Have mode `per-op` call a library where that was measured to be faster than the fastest rKernel.

    Of products that cuBLASLt computes as exactly as they ask for, the whole call is timed on the GPU at hand,
    once, and held against the measured times of the rOperator's alternatives; so it is meant to follow
    `measure-rtasks`, and does nothing where nothing was measured, where the library is not installed, or does
    not load. The alternatives stay, for other modes and other machines. Changes no body.

    ```mlir
    task.roperator @gemm_0(%x, %w) attributes {alternatives = [
        #task.alternative<{cost = 9100.0 : f64, measured_on = "...", ...}>]} {...}
    ```
    becomes
    ```mlir
    task.roperator @gemm_0(%x, %w) attributes {library = "cublaslt", library_cost = 7800.0 : f64,
        alternatives = [#task.alternative<{cost = 9100.0 : f64, measured_on = "...", ...}>]} {...}
    ```
    """

    name = "measure-library-calls"
    requires: ClassVar[tuple[str, ...]] = ("partitioned",)
    produces: ClassVar[str] = "partitioned"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = device_of(op)
        if device.kind != "cuda":
            return
        reason = why_elsewhere(device)
        if reason is not None:
            missed(op, "MeasureLibraryCalls", "{}", reason)
            return
        for one in op.ops:
            if isinstance(one, ROperatorOp):
                consider(one)


def consider(op: ROperatorOp) -> None:
    """Name the library if it is faster than all alternatives, which have to be measured."""
    op.properties.pop("library", None)
    op.properties.pop("library_cost", None)
    if op.alternatives is None or not all(a.is_measured for a in op.alternatives):
        return
    call = library_call(op, root_of(op))
    if call is None:
        return
    try:
        took = _took(call)
    except DeviceError as reason:
        missed(op, "MeasureLibraryCalls", "{}", str(reason))
        return
    best = min(op.alternatives, key=lambda a: a.cost_ns)
    text = "{} takes {:.0f} ns, {} {:.0f} ns"
    facts = (CUBLASLT, took, best.rkernel, best.cost_ns)
    if took >= best.cost_ns:
        missed(op, "MeasureLibraryCalls", text, *facts)
        return
    op.library, op.library_cost = StringAttr(call.library), FloatAttr(took, f64)
    applied(op, "MeasureLibraryCalls", text, *facts)


def _took(call: LibraryCall) -> float:
    """Nanoseconds of a call, measured or kept. Raises DeviceError."""
    from irkit.runtime.cuda.cublaslt import cublaslt
    from irkit.runtime.cuda.driver import call as driver_call
    from irkit.runtime.cuda.driver import device
    from irkit.runtime.cuda.library_calls import call_ns

    version = cublaslt().version
    here = device().name, version, versions(), driver_call("cuDriverGetVersion")
    key = times.time_key(call, here)
    known = times.kept(key)
    if known is None:
        known = call_ns(call)
        times.keep(key, known, f"{call} on {device().name}")
    return known
