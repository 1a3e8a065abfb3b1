"""`specialise-batch`: a program of one batch size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.graph.batch.size import specialise
from irkit.dialects.symbols import symbols
from irkit.errors import UnsupportedError


def _is_whole(function: FuncOp) -> bool:
    """Whether all ops of a function are its own, in loops too."""
    return bool(function.body.blocks) and not any(isinstance(op, CallOp) for op in function.walk())


@dataclass(frozen=True)
class SpecialiseBatch(ModulePass):
    """Give the batch a size: the dynamic dimension, in the arguments and in all that follows from them.

    What mixes rows of the batch (a sum over it, a product of its transpose) has no program for every size,
    but one for each. A loop whose turns hang on data carries values of the new types. Option `size` is the
    number of rows, 1 or more; `symbol` names the dimension, as `irkit.dims` does, where the module has
    several. Exact.

    ```mlir
    func.func @main(%x: tensor<?x4xf32>) -> tensor<4xf32> attributes {irkit.dims = [["batch"]]} {
      %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, ...} : (tensor<?x4xf32>) -> tensor<4xf32>
    ```
    with size=8 becomes
    ```mlir
    func.func @main(%x: tensor<8x4xf32>) -> tensor<4xf32> {
      %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, ...} : (tensor<8x4xf32>) -> tensor<4xf32>
    ```
    """

    name = "specialise-batch"
    requires: ClassVar[tuple[str, ...]] = ("graph",)
    produces: ClassVar[str] = "graph"
    size: int
    symbol: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.size < 1:
            raise UnsupportedError(f"size = {self.size}: a batch has 1 row or more here")
        functions = [f for f in op.ops if isinstance(f, FuncOp) and _is_whole(f)]
        known = list(dict.fromkeys(n for f in functions for n in symbols(f)))
        if self.symbol is None and len(known) > 1:
            raise UnsupportedError(f"symbol: it must be one of {', '.join(known)}")
        if self.symbol is not None and self.symbol not in known:
            shown = ", ".join(known) or "none"
            raise UnsupportedError(f"symbol = {self.symbol}: the module has {shown}")
        for name in known if self.symbol is None else [self.symbol]:
            for function in functions:
                specialise(function, self.size, name)
