"""What runs a program: a machine as the scheduler sees it."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import (
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.ir import Attribute
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
from xdsl.utils.hints import isa

from irkit.architectures import ARCHITECTURES
from irkit.dialects.task.figures import check_figures
from irkit.dialects.task.rates import RATES

KINDS = ("cpu", "cuda", "test")


@irdl_op_definition
class VDeviceOp(IRDLOperation):
    """A machine as the scheduler sees it: `veus` execution units, all resident at once.

    `kind` is `cpu`, `cuda` or `test`. Each vEU has `threads` and `shared_bytes` of memory of its own; a
    wait between two of them costs `wait_ns`. `rates` are nanoseconds that a vEU takes for a unit of each
    kind of work, from which costs are computed: a multiply-add, a byte, an exponential
    (`irkit/dialects/task/rates.py` lists them); a kind that is not there has no price. A GPU has
    `multiprocessors`, which hold one vEU each, `l2_bytes` of second-level cache, and an `arch`: the target that
    machine code is made for, `sm_90a`, on which it hangs which rKernels can run.
    Where nothing was measured on such a machine, `rates_from` names the one whose rates its own are estimated
    from.

    ```mlir
    task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64, wait_ns = 100.0 : f64, rates = {byte = 1.0 : f64, fma = 2.0 : f64, start = 100.0 : f64}}
    ```
    """

    name = "task.vdevice"
    sym_name = prop_def(SymbolNameConstraint())
    kind = prop_def(StringAttr)
    veus = prop_def(IntegerAttr[IntegerType])
    threads = prop_def(IntegerAttr[IntegerType])
    shared_bytes = prop_def(IntegerAttr[IntegerType])
    wait_ns = prop_def(FloatAttr[Float64Type])
    rates = prop_def(DictionaryAttr)
    multiprocessors = opt_prop_def(IntegerAttr[IntegerType])
    l2_bytes = opt_prop_def(IntegerAttr[IntegerType])
    arch = opt_prop_def(StringAttr)
    rates_from = opt_prop_def(StringAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface())
    assembly_format = "$sym_name attr-dict"

    def verify_(self) -> None:
        if self.kind.data not in KINDS:
            raise VerifyException(
                f"'task.vdevice' expects a kind among {', '.join(KINDS)}, got '{self.kind.data}'"
            )
        check_figures(
            self, {"veus": 1, "threads": 1, "multiprocessors": 1, "shared_bytes": 0, "l2_bytes": 0}
        )
        if not 0 <= self.wait_ns.value.data < math.inf:
            raise VerifyException(
                f"'task.vdevice' expects wait_ns of 0 or more, got {self.wait_ns.value.data}"
            )
        for name, rate in self.rates.data.items():
            _check_rate(name, rate)
        if "byte" not in self.rates.data:
            raise VerifyException("'task.vdevice' has no rate 'byte', which placing launches needs")
        for name in ("multiprocessors", "l2_bytes", "arch"):
            if (self.kind.data == "cuda") != (getattr(self, name) is not None):
                raise VerifyException(f"'task.vdevice' of kind 'cuda', and no other, has {name}")
        if self.arch is not None and self.arch.data not in ARCHITECTURES:
            raise VerifyException(
                f"'task.vdevice' expects an arch among {', '.join(ARCHITECTURES)}, "
                f"got '{self.arch.data}'"
            )


def _check_rate(name: str, rate: Attribute) -> None:
    if name not in RATES:
        raise VerifyException(f"'task.vdevice' has rate '{name}'; there are {', '.join(RATES)}")
    if not isa(rate, FloatAttr[Float64Type]):
        raise VerifyException(f"'task.vdevice' expects rate '{name}' to be an f64, got {rate}")
    if not 0 < rate.value.data < math.inf:
        raise VerifyException(
            f"'task.vdevice' expects rate '{name}' above 0, got {rate.value.data}"
        )
