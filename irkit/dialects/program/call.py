"""Calls of functions that irkit does not compile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    MemRefType,
    SymbolRefAttr,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.types import int_array, ints


@irdl_op_definition
class CallOp(IRDLOperation):
    """A function of the host, called with arrays.

    `reads` and `writes` are numbers of operands: of no other does it read, or write, an element. Without them it may
    read, or write, whatever it is given. What it is, and what else it is given, is known beside the module.

    ```mlir
    func.func @main(%x: memref<8xf64>, %y: memref<8xf64>) {
      program.call @smooth(%x, %y) {reads = array<i64: 0>, writes = array<i64: 1>}
        : memref<8xf64>, memref<8xf64>
      func.return
    }
    ```
    """

    name = "program.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arrays = var_operand_def(MemRefType)
    reads = opt_prop_def(DenseArrayBase)
    writes = opt_prop_def(DenseArrayBase)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$callee `(` $arrays `)` attr-dict (`:` type($arrays)^)?"

    def __init__(
        self,
        callee: str,
        arrays: Sequence[SSAValue],
        reads: Sequence[int] | None = None,
        writes: Sequence[int] | None = None,
    ) -> None:
        given = {"reads": reads, "writes": writes}
        super().__init__(
            operands=[arrays],
            properties={
                "callee": SymbolRefAttr(callee),
                **{name: int_array(n) for name, n in given.items() if n is not None},
            },
        )

    def verify_(self) -> None:
        for what in ("reads", "writes"):
            numbers = self._numbers(what)
            if sorted(set(numbers)) != numbers or not set(numbers) <= set(range(len(self.arrays))):
                raise VerifyException(
                    f"'{self.name}': expected ascending numbers of its {len(self.arrays)} operands as "
                    f"'{what}', got {numbers}"
                )

    @property
    def read(self) -> list[SSAValue]:
        """The arrays that it may read."""
        return [self.arrays[n] for n in self._numbers("reads")]

    @property
    def written(self) -> list[SSAValue]:
        """The arrays that it may write."""
        return [self.arrays[n] for n in self._numbers("writes")]

    def _numbers(self, what: str) -> list[int]:
        given = self.properties.get(what)
        return list(range(len(self.arrays))) if given is None else ints(given)
