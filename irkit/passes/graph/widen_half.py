"""`widen-half`: arithmetic of 16-bit floats as that of float32, its results rounded."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.graph import CastOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import MOVES
from irkit.dialects.precision import inherit
from irkit.dialects.types import is_half, tensor_type
from irkit.remarks import applied

RULE = "WidenHalf"


@dataclass
class _Widening:
    """One function: which values are known in float32."""

    wide: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def __call__(self, op: GraphOp) -> None:
        """Compute `op` in float32, if it computes with anything narrower."""
        values = (*op.operands, *op.results)
        if type(op) in MOVES or not any(_is_half(v) for v in values):
            return
        if isinstance(op, CastOp) and f32 in {tensor_type(v).element_type for v in values}:
            return
        applied(op, RULE)
        made: list[GraphOp] = []
        operands = [self._widened(v, made) for v in op.operands]
        if isinstance(op, CastOp):
            operands, results = self._by_way_of_f32(op, operands[0], made)
        else:
            results = self._in_f32(op, operands, made)
        for new in made:
            new.location = op.location
        for old, new in zip(op.results, results, strict=True):
            new.name_hint = old.name_hint
        PatternRewriter(op).replace(op, made, results)

    def _widened(self, value: SSAValue, made: list[GraphOp]) -> SSAValue:
        """`value`, or a float32 of it, which is made once."""
        if not _is_half(value):
            return value
        if value not in self.wide:
            self.wide[value] = _cast(value, f32, made)
        return self.wide[value]

    def _in_f32(self, op: GraphOp, operands: list[SSAValue], made: list[GraphOp]) -> list[SSAValue]:
        wide = type(op).make(operands, op.properties)
        inherit(wide, op)
        made.append(wide)
        return [
            _cast(new, tensor_type(old).element_type, made) if _is_half(old) else new
            for old, new in zip(op.results, wide.results, strict=True)
        ]

    def _by_way_of_f32(
        self, op: CastOp, x: SSAValue, made: list[GraphOp]
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """To a narrow type from any other, or from one."""
        if is_half(op.to) and tensor_type(x).element_type != f32:
            x = _cast(x, f32, made)
        return [x], [_cast(x, op.to, made)]


def _cast(value: SSAValue, to: Attribute, made: list[GraphOp]) -> SSAValue:
    made.append(CastOp.make([value], {"to": to}))
    return made[-1].results[0]


def widen(function: FuncOp) -> None:
    """Widen every op of `function`'s body that computes with 16-bit floats."""
    widening = _Widening()
    for op in [op for block in function.body.blocks for op in block.ops]:
        if isinstance(op, GraphOp):
            widening(op)


def _is_half(value: SSAValue) -> bool:
    return is_half(tensor_type(value).element_type)


@dataclass(frozen=True)
class WidenHalf(ModulePass):
    """Compute ops on f16 and bf16 in float32: operands are cast up, results are rounded back.

    What only moves elements (reshapes, slices, gathers, selections, ...) stays, and so do tensors between
    ops: they are 16 bits each. A cast to a 16-bit float from anything but f32 goes by way of f32. Exact: it
    spells out what an op on 16-bit floats means (docs/graph.md).

    ```mlir
    %y = graph.matmul %x, %w : (tensor<?x8xf16>, tensor<8x16xf16>) -> tensor<?x16xf16>
    ```
    becomes
    ```mlir
    %0 = graph.cast %x {to = f32} : (tensor<?x8xf16>) -> tensor<?x8xf32>
    %1 = graph.cast %w {to = f32} : (tensor<8x16xf16>) -> tensor<8x16xf32>
    %2 = graph.matmul %0, %1 : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
    %y = graph.cast %2 {to = f16} : (tensor<?x16xf32>) -> tensor<?x16xf16>
    ```
    """

    name = "widen-half"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if is_straight(function):
                widen(function)
