"""What runs a program: a machine as the scheduler sees it."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.traits import (
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

KINDS = ("cpu", "cuda", "test")


@irdl_op_definition
class VDeviceOp(IRDLOperation):
    """A machine as the scheduler sees it: `veus` execution units, all resident at once.

    `kind` is `cpu`, `cuda` or `test`. Each vEU has `threads`, `shared_bytes` of memory of its own, and
    does `flops_per_ns` and moves `bytes_per_ns`; a wait between two of them costs `wait_ns`. A GPU has
    `multiprocessors`, which hold one vEU each.

    ```mlir
    task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, flops_per_ns = 1.0 : f64, bytes_per_ns = 1.0 : f64, wait_ns = 100.0 : f64}
    ```
    """

    name = "task.vdevice"
    sym_name = prop_def(SymbolNameConstraint())
    kind = prop_def(StringAttr)
    veus = prop_def(IntegerAttr[IntegerType])
    threads = prop_def(IntegerAttr[IntegerType])
    shared_bytes = prop_def(IntegerAttr[IntegerType])
    flops_per_ns = prop_def(FloatAttr[Float64Type])
    bytes_per_ns = prop_def(FloatAttr[Float64Type])
    wait_ns = prop_def(FloatAttr[Float64Type])
    multiprocessors = opt_prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface())
    assembly_format = "$sym_name attr-dict"

    def verify_(self) -> None:
        if self.kind.data not in KINDS:
            raise VerifyException(
                f"'task.vdevice' expects a kind among {', '.join(KINDS)}, got '{self.kind.data}'"
            )
        for name in ("veus", "threads"):
            count = getattr(self, name).value.data
            if count < 1:
                raise VerifyException(f"'task.vdevice' expects 1 or more {name}, got {count}")
        for name in ("flops_per_ns", "bytes_per_ns"):
            rate = getattr(self, name).value.data
            if not rate > 0:
                raise VerifyException(f"'task.vdevice' expects {name} above 0, got {rate}")
        if (self.kind.data == "cuda") != (self.multiprocessors is not None):
            raise VerifyException(
                "'task.vdevice' of kind 'cuda', and no other, has multiprocessors"
            )
