"""`choose-devices`: CPU or GPU for the regions of a program.

Calls of the host of which `irkit.costs` says what they take on a GPU too, as their functions have twins
there, are parts of the cut like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.program.check import function_called
from irkit.errors import UnsupportedError
from irkit.passes.placement.planning import Planner, placed
from irkit.remarks import applied
from irkit.schedule.devices import device as find_device
from irkit.schedule.links import link_to

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class ChooseDevices(ModulePass):
    """Cut a program into regions that run on the CPU or on a GPU, at least cost for all of it together.

    What `form-regions` leaves is looked at op by op again: ops are parted at reductions and products and
    where shapes change, about as rOperators will be. The parts' times on the CPU and on `target` follow
    from their work and the devices' calibrated rates, the times of copies from the link between them
    (`pinned`: host arrays lie in pages that stay). A minimum cut over the whole program says where each part
    runs; parts of a device that can stand together are one region, whose call has its `irkit.device`, and
    in `irkit.costs` the nanoseconds on either device, and what the program would take more if this region
    were on the other. `device`: "auto", or "cpu" or "cuda" for everything that may run there. Calls of the
    host and what stays with them are on the CPU, but for calls of which `irkit.costs` says what they take on
    a GPU too: their functions have twins there, and they are parts of the cut like others. `afn`: functions
    of floats may be approximated. Exact.

    ```mlir
    func.call @main_region0(%x, %y)
    ```
    becomes
    ```mlir
    func.call @main_region0(%x, %kept) {irkit.device = "cuda",
        irkit.costs = {cpu = 9.0e+06 : f64, cuda = 1.1e+05 : f64, moved = 4.0e+06 : f64}}
    func.call @main_region1(%kept, %y) {irkit.device = "cpu", ...}
    ```
    """

    name = "choose-devices"
    requires: ClassVar[tuple[str, ...]] = ("program",)
    produces: ClassVar[str] = "program"
    device: str = "auto"
    target: str = "h200"
    host: str = "cpu"
    pinned: bool = False
    afn: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            planner = self._planner()
        except UnsupportedError as error:
            raise PassFailedException(f"pass '{self.name}': {error}") from None
        for function in _roots(op):
            groups = placed(op, function, planner)
            there = sum(group.on_gpu for group in groups)
            text = "{} regions on the CPU, {} on {}"
            applied(function, "ChooseDevices", text, len(groups) - there, there, self.target)

    def _planner(self) -> Planner:
        if self.device not in DEVICES:
            raise PassFailedException(
                f"argument 'device' of pass '{self.name}': expected one of {', '.join(DEVICES)}, got "
                f"'{self.device}'"
            )
        cpu, gpu = find_device(self.host), find_device(self.target)
        if cpu.kind == "cuda" or gpu.kind != "cuda":
            wrong = f"'{cpu.name}' as 'host'" if cpu.kind == "cuda" else f"'{gpu.name}' as 'target'"
            raise PassFailedException(
                f"pass '{self.name}': {wrong}: expected a CPU as host and a GPU as target"
            )
        return Planner(cpu, gpu, link_to(gpu, self.pinned), self.device, self.afn)


def _roots(module: ModuleOp) -> list[FuncOp]:
    """Functions of arrays that no other calls."""
    called = {function_called(op) for op in module.walk() if isinstance(op, CallOp)}
    return [f for f in module.ops if isinstance(f, FuncOp) and f not in called and _is_of_arrays(f)]


def _is_of_arrays(function: FuncOp) -> bool:
    return bool(function.body.blocks) and any(
        isinstance(v.type, MemRefType)
        for v in (*function.body.block.args, *(r for o in function.walk() for r in o.results))
    )
